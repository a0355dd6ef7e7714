//! A bridge's part in a family of several: what it tells, and what it does when it is told.

use super::bridge::Bridge;
use super::peers::{News, Peer};
use super::stations::Told;
use super::word::{Key, Place, Word};

/// News that are listened to before a burst.
const AT_ONCE: usize = 64;
/// Lines of the table of which others are told again between two breaths.
const SLICE: usize = 64;

impl<W: Word, const V: bool> Bridge<W, V> {
    /// Hears what others have to tell; costs a load when that is nothing.
    #[inline(always)]
    pub fn listen(&mut self) {
        if W::SHARED && self.peer.as_ref().is_some_and(Peer::has_news) {
            self.hear_news();
        }
    }

    #[cold]
    fn hear_news(&mut self) {
        let Some(peer) = &self.peer else { return };
        for news in peer.hear(AT_ONCE) {
            match news {
                News::Heard { key, port, time } => self.told(key, port, time),
                News::Gone { port, time } => self.forget(port, time),
            }
        }
    }

    fn told(&mut self, key: Key, port: u16, time: u64) {
        // A port that has left, here or since, or left its VLAN; a time too long ago.
        let place = self.ports.place(port).filter(|&p| time > self.since[usize::from(p)]);
        let place = place.filter(|p| self.inside(key.vid()) >> p & 1 == 1);
        let (Some(port), Some(seen)) = (place, self.ageing.stamp_of(time)) else { return };
        let time = self.stations.clock.kept(time);
        match self.stations.told(key, Place { port, seen }, time, self.ageing.stamp()) {
            Told::Taken => self.notes.told += 1,
            Told::Old => {}
            Told::Full => self.notes.told_full += 1,
        }
    }

    /// Forgets who was heard at a port no later than `time`.
    fn forget(&mut self, port: u16, time: u64) {
        let Some(place) = self.ports.place(port) else { return };
        let since = &mut self.since[usize::from(place)];
        *since = (*since).max(time);
        let clock = self.stations.clock.clone();
        let stays = |e: W| e.place().port != place || clock.ticks_of(e.since().time) > time;
        self.notes.flushed += self.stations.sweep(0, self.stations.lines(), stays);
    }

    /// Tells the others of a station that was just heard here.
    #[cold]
    pub fn announce(&mut self, key: Key, place: u8) {
        let (port, time) = (self.ports.number(place), self.stations.clock.ticks());
        self.tell(News::Heard { key, port, time });
    }
    pub fn tell(&mut self, news: News) {
        let lines = self.stations.lines();
        if let Some(peer) = &mut self.peer {
            peer.tell(news, lines);
        }
    }

    /// Tells others again what they had no room for.
    pub fn catch_up(&mut self) {
        let Self { peer, stations, ports, ageing, .. } = self;
        let Some(peer) = peer else { return };
        let news = |e: W| News::Heard {
            key: e.key(),
            port: ports.number(e.place().port),
            time: stations.clock.ticks_of(e.since().time),
        };
        // What others told is for them to tell.
        let own = |e: &W| !e.since().told && ageing.fresh(e.place());
        peer.catch_up(SLICE, stations.lines(), |line| stations.entries(line).filter(own).map(news));
    }
}
