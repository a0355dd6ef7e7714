//! Which port sends to which.

use mem::Batch;

use crate::StageError;

/// A partner for each port that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortMap(Vec<Option<u16>>);

impl PortMap {
    /// What comes in by the first port of each route goes out by the second. A port may be its own partner.
    ///
    /// # Errors
    /// [`StageError::TwoPartners`].
    pub fn new(routes: impl IntoIterator<Item = (u16, u16)>) -> Result<Self, StageError> {
        let mut map = Vec::new();
        for (port, second) in routes {
            let i = usize::from(port);
            if map.len() <= i {
                map.resize(i + 1, None);
            }
            if let Some(first) = map[i].replace(second)
                && first != second
            {
                return Err(StageError::TwoPartners { port, first, second });
            }
        }
        Ok(Self(map))
    }

    /// Pairs that send to each other.
    ///
    /// # Errors
    /// [`StageError::TwoPartners`].
    pub fn pairs(pairs: &[(u16, u16)]) -> Result<Self, StageError> {
        Self::new(pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]))
    }

    /// The partner of `port`.
    #[inline]
    pub fn partner(&self, port: u16) -> Option<u16> {
        *self.0.get(usize::from(port))?
    }

    /// Marks each packet for the partner of its port; `alone` gets the places of those whose port has none.
    #[inline]
    pub(crate) fn mark(&self, batch: &mut Batch, mut alone: impl FnMut(usize)) {
        // A burst comes from one queue, so nearly always from one port.
        if let Some(to) = batch.one_port().and_then(|p| self.partner(p)) {
            return batch.mark(to);
        }
        for (i, mut p) in batch.iter_mut().enumerate() {
            match self.partner(p.port()) {
                Some(to) => p.set_port(to),
                None => alone(i),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_one_partner_at_most() {
        let map = PortMap::pairs(&[(0, 1), (5, 5)]).unwrap();
        assert_eq!(
            [0, 1, 2, 5, 6, u16::MAX].map(|p| map.partner(p)),
            [Some(1), Some(0), None, Some(5), None, None]
        );
        let ring = PortMap::new([(0, 1), (1, 2), (2, 0)]).unwrap();
        assert_eq!([0, 1, 2].map(|p| ring.partner(p)), [Some(1), Some(2), Some(0)]);
        let wrong = PortMap::pairs(&[(0, 1), (1, 2)]).unwrap_err();
        assert_eq!(wrong.to_string(), "port 1 is to send to port 0 and to port 2: name each port once");
    }
}
