//! The ports of a bridge, and who may reach whom.

use crate::StageError;

/// Most ports of a bridge: a set of them is one word.
pub(super) const MOST_PORTS: usize = 64;
/// Who is connected to whom. Inside the bridge a port is its place here.
#[derive(Clone, Default)]
pub(super) struct Ports {
    /// By place.
    number: Vec<Option<u16>>,
    /// By number: the place.
    place: Vec<Option<u8>>,
    /// By place: the ports that it reaches, a bit each.
    reach: Vec<u64>,
}

impl Ports {
    /// The place of port `number`.
    #[inline(always)]
    pub fn place(&self, number: u16) -> Option<u8> {
        *self.place.get(usize::from(number))?
    }

    /// The number of the port at `place`.
    #[inline(always)]
    pub fn number(&self, place: u8) -> Option<u16> {
        *self.number.get(usize::from(place))?
    }
    /// The ports that the one at place `from` reaches, a bit each.
    #[inline(always)]
    pub fn reach(&self, from: u8) -> u64 {
        self.reach.get(usize::from(from)).copied().unwrap_or_default()
    }
    /// The numbers of a set of ports.
    pub fn numbers(&self, set: u64) -> impl Iterator<Item = u16> {
        self.number.iter().enumerate().filter_map(move |(i, &p)| p.filter(|_| set >> i & 1 == 1))
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
        let mut new = Self { number: vec![None; MOST_PORTS], ..Self::default() };
        new.place = vec![None; sorted.last().map_or(0, |&p| usize::from(p) + 1)];
        let stay = |p: &u16| self.place(*p).is_some();
        let (old, fresh): (Vec<u16>, Vec<u16>) = ports.iter().partition(|&p| stay(p));
        for port in old.into_iter().chain(fresh) {
            let free = new.number.iter().position(Option::is_none).unwrap_or_default();
            let place = self.place(port).map_or(free, usize::from);
            new.number[place] = Some(port);
            new.place[usize::from(port)] = Some(place as u8);
        }
        let set = |f: &dyn Fn(u16) -> bool| {
            new.number.iter().enumerate().fold(0u64, |s, (i, p)| s | u64::from(p.is_some_and(f)) << i)
        };
        let (all, alone) = (set(&|_| true), set(&|p| isolated.contains(&p)));
        let reach = |i: usize| all & !(1 << i) & if alone >> i & 1 == 1 { !alone } else { u64::MAX };
        new.reach = (0..MOST_PORTS).map(reach).collect();
        Ok(new)
    }
}
