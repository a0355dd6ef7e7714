use proptest::prelude::*;
use zerocopy::IntoBytes;

use super::*;
use crate::layout::vnet;

/// A block as the kernel writes one.
struct Builder {
    bytes: Vec<u8>,
    frames: u32,
    last: usize,
}

impl Builder {
    fn new() -> Self {
        Self { bytes: vec![0; BlockHeader::LEN], frames: 0, last: 0 }
    }

    fn add(&mut self, frame: &[u8], change: impl FnOnce(&mut FrameHeader, &mut VnetHeader)) {
        const MAC: usize = 92;
        let mut header = FrameHeader {
            snaplen: (frame.len() as u32).into(),
            len: (frame.len() as u32).into(),
            status: rx_status::USER.into(),
            mac: (MAC as u16).into(),
            next_offset: (((MAC + frame.len()).next_multiple_of(8)) as u32).into(),
            ..FrameHeader::default()
        };
        let mut offloads = VnetHeader::default();
        change(&mut header, &mut offloads);
        self.last = self.bytes.len();
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(LinkAddress { pkttype: 3, ..LinkAddress::default() }.as_bytes());
        self.bytes.resize(self.last + MAC - VnetHeader::LEN, 0);
        self.bytes.extend_from_slice(offloads.as_bytes());
        self.bytes.extend_from_slice(frame);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.frames += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.frames > 0 {
            self.bytes[self.last..self.last + 4].fill(0);
        }
        let header = BlockHeader {
            num_pkts: self.frames.into(),
            offset_to_first_pkt: (BlockHeader::LEN as u32).into(),
            ..BlockHeader::default()
        };
        self.bytes[..BlockHeader::LEN].copy_from_slice(header.as_bytes());
        self.bytes
    }
}

fn walk(block: &[u8]) -> Vec<Step<'_>> {
    let mut cursor = Cursor::open(block);
    let mut all = Vec::new();
    loop {
        match cursor.next(block) {
            Step::End => return all,
            step => all.push(step),
        }
    }
}

fn frames<'b>(steps: &[Step<'b>]) -> Vec<Frame<'b>> {
    steps.iter().map(|s| if let Step::Frame(f) = s { *f } else { panic!("{s:?}") }).collect()
}

#[test]
fn frames_come_out_in_order_with_what_is_known_of_them() {
    let mut b = Builder::new();
    b.add(&[1; 60], |_, v| v.flags = vnet::DATA_VALID);
    b.add(&[2; 61], |h, _| {
        h.status = (rx_status::USER | rx_status::VLAN_VALID | rx_status::VLAN_TPID_VALID).into();
        (h.vlan_tci, h.vlan_tpid) = (0x2005.into(), 0x88a8.into());
    });
    b.add(&[3; 64], |h, _| h.status = (rx_status::USER | rx_status::VLAN_VALID).into());
    b.add(&[4; 90], |h, _| h.len = 9000.into());
    let block = b.finish();
    let all = frames(&walk(&block));
    assert_eq!(all.iter().map(|f| f.bytes.len()).collect::<Vec<_>>(), [60, 61, 64, 90]);
    assert!(all.iter().zip(1..).all(|(f, n)| f.bytes.iter().all(|&b| b == n) && f.pkttype == 3));
    assert_eq!((all[0].vnet.flags, all[1].vnet), (vnet::DATA_VALID, VnetHeader::default()));
    let tags: Vec<_> = all.iter().map(|f| f.tag).collect();
    assert_eq!(tags, [None, Some((0x88a8, 0x2005)), Some((0x8100, 0)), None], "802.1Q if nothing is said");
    assert_eq!(all.iter().map(|f| f.whole).collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn a_frame_that_the_kernel_gave_up_is_passed_over() {
    let mut b = Builder::new();
    b.add(&[1; 60], |_, _| ());
    b.add(&[2; 60], |h, _| (h.status, h.snaplen) = (0.into(), u32::MAX.into()));
    b.add(&[3; 60], |_, _| ());
    let block = b.finish();
    assert!(matches!(walk(&block)[..], [Step::Frame(_), Step::GivenUp, Step::Frame(f)] if f.bytes[0] == 3));
}

#[test]
fn what_is_not_inside_the_block_is_bad_and_the_next_one_is_not() {
    type Change = fn(&mut FrameHeader);
    let changes: [Change; 4] = [
        |h| h.snaplen = 5000.into(),
        |h| h.snaplen = u32::MAX.into(),
        |h| h.mac = 77.into(),
        |h| h.mac = u16::MAX.into(),
    ];
    for change in changes {
        let mut b = Builder::new();
        b.add(&[1; 60], |h, _| change(h));
        b.add(&[2; 60], |_, _| ());
        let block = b.finish();
        assert!(matches!(walk(&block)[..], [Step::Bad, Step::Frame(f)] if f.bytes[0] == 2));
    }
}

#[test]
fn a_link_that_leads_nowhere_makes_all_that_follow_bad() {
    for next in [0u32, 1, 47, 100, 1 << 20, u32::MAX] {
        let mut b = Builder::new();
        b.add(&[1; 60], |h, _| h.next_offset = next.into());
        b.add(&[2; 60], |_, _| ());
        b.add(&[3; 60], |_, _| ());
        let block = b.finish();
        assert!(matches!(walk(&block)[..], [Step::Frame(_), Step::Bad, Step::Bad]), "next {next}");
    }
}

#[test]
fn a_block_claims_no_more_frames_than_headers_fit() {
    let mut block = Builder::new().finish();
    assert_eq!(walk(&block), []);
    block.resize(480, 0);
    block[BlockHeader::NUM_PKTS..][..4].fill(0xff);
    assert_eq!(Cursor::open(&block).left(), 9);
    assert_eq!(walk(&[]), []);
    assert_eq!(walk(&block[..47]), []);
}

/// Bytes that look like a block here and there.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => 0u32..300,
        1 => any::<u32>(),
        2 => Just(1u32),
        2 => (0u32..32).prop_map(|n| n * 48),
    ];
    (proptest::collection::vec(word, 0..300), 0usize..4).prop_map(|(words, cut)| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_block_says_the_walk_stays_inside_and_ends(block in hostile()) {
        let left = Cursor::open(&block).left() as usize;
        let steps = walk(&block);
        prop_assert_eq!(steps.len(), left, "one step for each frame that was claimed");
        prop_assert!(left <= block.len() / FrameHeader::LEN);
        let inside = block.as_ptr_range();
        for s in steps {
            if let Step::Frame(f) = s {
                let bytes = f.bytes.as_ptr_range();
                prop_assert!(inside.start <= bytes.start && bytes.end <= inside.end);
            }
        }
    }

    #[test]
    fn a_whole_block_is_read_back(sizes in proptest::collection::vec(0usize..200, 0..40)) {
        let mut b = Builder::new();
        for (i, &n) in sizes.iter().enumerate() {
            b.add(&vec![i as u8; n], |_, _| ());
        }
        let block = b.finish();
        let all = frames(&walk(&block));
        prop_assert_eq!(all.len(), sizes.len());
        for (i, (f, &n)) in all.iter().zip(&sizes).enumerate() {
            prop_assert!(f.bytes.len() == n && f.bytes.iter().all(|&b| b == i as u8) && f.whole);
        }
    }
}
