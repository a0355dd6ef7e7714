//! The ports of a bridge, and who may reach whom.

use crate::StageError;

/// Most ports of a bridge: a set of them is one word.
pub(super) const MOST_PORTS: usize = 64;
/// No place.
const NONE: u8 = u8::MAX;

/// Who is connected to whom. Inside the bridge a port is its place here, below [`MOST_PORTS`].
#[derive(Clone)]
pub(super) struct Ports {
    /// By number: the place, or [`NONE`].
    place: Vec<u8>,
    /// By place.
    number: [u16; MOST_PORTS],
    /// By place: the ports that it reaches, a bit each. No port reaches one that is not there, nor itself.
    reach: [u64; MOST_PORTS],
    /// Places taken, a bit each.
    taken: u64,
}

impl Default for Ports {
    /// None.
    fn default() -> Self {
        Self { place: Vec::new(), number: [0; MOST_PORTS], reach: [0; MOST_PORTS], taken: 0 }
    }
}

impl Ports {
    /// The place of port `number`.
    #[inline(always)]
    pub fn place(&self, number: u16) -> Option<u8> {
        self.place.get(usize::from(number)).copied().filter(|&p| p != NONE)
    }
    /// The number of the port at `place`, which is taken.
    #[inline(always)]
    pub const fn number(&self, place: u8) -> u16 {
        self.number[place as usize % MOST_PORTS]
    }
    /// The ports that the one at place `from` reaches, a bit each.
    #[inline(always)]
    pub const fn reach(&self, from: u8) -> u64 {
        self.reach[from as usize % MOST_PORTS]
    }
    /// The numbers of a set of ports.
    pub fn numbers(&self, set: u64) -> impl Iterator<Item = u16> {
        self.number.iter().enumerate().filter(move |(i, _)| set >> i & 1 == 1).map(|(_, &n)| n)
    }
    /// All ports: place and number.
    pub fn all(&self) -> impl Iterator<Item = (u8, u16)> {
        self.number.iter().enumerate().filter(|(i, _)| self.taken >> i & 1 == 1).map(|(i, &n)| (i as u8, n))
    }
    /// Whether the same port was at `place` before.
    pub const fn kept(&self, old: &Self, place: u8) -> bool {
        (self.taken & old.taken) >> place & 1 == 1 && self.number(place) == old.number(place)
    }

    /// The same with other ports; those that stay keep their places.
    pub fn with(&self, ports: &[u16], isolated: &[u16]) -> Result<Self, StageError> {
        let mut sorted = ports.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(StageError::PortTwice(twice[0]));
        }
        if let Some(&port) = isolated.iter().find(|p| !ports.contains(p)) {
            return Err(StageError::NotOfTheBridge(port));
        }
        if ports.len() > MOST_PORTS {
            return Err(StageError::TooManyPorts { asked: ports.len(), most: MOST_PORTS });
        }
        let mut new = Self::default();
        new.place.resize(sorted.last().map_or(0, |&p| usize::from(p) + 1), NONE);
        let (stay, come): (Vec<u16>, Vec<u16>) = ports.iter().partition(|&&p| self.place(p).is_some());
        for port in stay.into_iter().chain(come) {
            let place = self.place(port).unwrap_or(new.taken.trailing_ones() as u8);
            new.place[usize::from(port)] = place;
            new.number[usize::from(place)] = port;
            new.taken |= 1 << place;
        }
        let alone = isolated.iter().filter_map(|&p| new.place(p)).fold(0, |set, p| set | 1u64 << p);
        for (i, reach) in new.reach.iter_mut().enumerate() {
            let others = new.taken & !(1 << i);
            *reach = if alone >> i & 1 == 1 { others & !alone } else { others };
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_stay_keep_their_places_and_what_comes_takes_free_ones() {
        let old = Ports::default().with(&[10, 300, 12], &[]).unwrap();
        assert_eq!([10, 300, 12, 11].map(|p| old.place(p)), [Some(0), Some(1), Some(2), None]);
        let new = old.with(&[7, 12, 10, 8], &[]).unwrap();
        assert_eq!([10, 300, 12, 7, 8].map(|p| new.place(p)), [Some(0), None, Some(2), Some(1), Some(3)]);
        assert_eq!([0, 1, 2, 3].map(|p| new.kept(&old, p)), [true, false, true, false]);
        assert_eq!(new.numbers(new.reach(2)).collect::<Vec<_>>(), [10, 7, 8]);
    }

    #[test]
    fn isolated_ports_reach_only_those_that_are_not() {
        let p = Ports::default().with(&[0, 1, 2, 3], &[1, 3]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|i| p.reach(i)), [0b1110, 0b0101, 0b1011, 0b0101]);
        assert_eq!(p.reach(4), 0b1111, "no frame comes from a place that is not taken");
        let all = Ports::default().with(&(0..64).collect::<Vec<_>>(), &[]).unwrap();
        assert_eq!(all.reach(63), u64::MAX >> 1);
    }

    #[test]
    fn ports_that_cannot_be_are_refused() {
        let refuse = |ports: &[u16], isolated: &[u16]| {
            Ports::default().with(ports, isolated).err().unwrap().to_string()
        };
        assert_eq!(refuse(&[1, 2, 1], &[]), "port 1 is named twice: name each port once");
        assert!(
            refuse(&[1, 2], &[3]).starts_with("port 3 is to be isolated and is not a port of the bridge")
        );
        assert_eq!(refuse(&(0..65).collect::<Vec<_>>(), &[]), "a bridge of 65 ports: use at most 64");
    }
}
