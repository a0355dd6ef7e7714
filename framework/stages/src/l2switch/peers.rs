//! How bridges of several workers hear of each other's stations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;

use super::word::Key;

/// News that an inbox holds.
const ROOM: usize = 1024;

/// What one worker tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A station was heard at a port, at a time in ticks.
    Heard { key: Key, port: u16, time: u64 },
    /// A port left the bridge: who was heard there before is no longer there.
    Gone { port: u16, time: u64 },
}

/// What the others have to tell one worker.
#[derive(Debug)]
struct Inbox {
    news: ArrayQueue<News>,
    /// There are some. Written rarely, so that looking costs a load of a line that stays where it is.
    some: AtomicBool,
    /// Nobody reads them any more.
    closed: AtomicBool,
}

impl Inbox {
    fn new(room: usize) -> Arc<Self> {
        let news = ArrayQueue::new(room.max(1));
        Arc::new(Self { news, some: AtomicBool::new(false), closed: AtomicBool::new(false) })
    }
    fn put(&self, news: News) -> bool {
        let done = self.news.push(news).is_ok();
        self.some.store(true, Ordering::Release);
        done
    }
}

/// Another worker, as this one sees it.
#[derive(Debug)]
struct Other {
    inbox: Arc<Inbox>,
    /// Its inbox was full once: it is told of all stations that are heard here, from line `next` of the table on, `left` lines.
    next: usize,
    left: usize,
    /// What it must hear of all the same.
    late: Vec<News>,
}

/// One worker's part of a bridge that several workers share: handed to [`super::L2Switch::shared`].
///
/// Each worker has a table of its own. They tell each other, through bounded queues, of stations that are new or moved, and of those that are heard
/// still, a few times within the ageing time; of two moves of a station the newer counts, by the cycle counter, which is taken to be the same on
/// all cores to within the time between two such moves. A worker whose queue was full is told all again, bit by bit; a station that moved and came
/// back meanwhile may be looked for in the wrong place until its next frame.
#[derive(Debug)]
pub struct Peer {
    inbox: Arc<Inbox>,
    others: Vec<Other>,
    lost: u64,
}

impl Peer {
    /// `n` parts, one for each worker.
    pub fn family(n: usize) -> Vec<Self> {
        Self::family_with_room(n, ROOM)
    }
    /// The same, with `room` for news in each queue: 1024 by [`Peer::family`].
    pub fn family_with_room(n: usize, room: usize) -> Vec<Self> {
        let inboxes: Vec<_> = (0..n).map(|_| Inbox::new(room)).collect();
        let others = |i: usize| inboxes.iter().enumerate().filter(move |(j, _)| i != *j);
        let other =
            |inbox: &Arc<Inbox>| Other { inbox: Arc::clone(inbox), next: 0, left: 0, late: Vec::new() };
        let peer = |i: usize| Self {
            inbox: Arc::clone(&inboxes[i]),
            others: others(i).map(|(_, inbox)| other(inbox)).collect(),
            lost: 0,
        };
        (0..n).map(peer).collect()
    }

    /// Nobody else is there.
    pub(super) const fn is_alone(&self) -> bool {
        self.others.is_empty()
    }
    /// News that others had no room for.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Tells all others. `lines` are those of the table, for those who cannot hear it now.
    pub(super) fn tell(&mut self, news: News, lines: usize) {
        for other in self.others.iter_mut().filter(|o| !o.inbox.closed.load(Ordering::Relaxed)) {
            if other.inbox.put(news) {
                continue;
            }
            self.lost += 1;
            other.left = lines;
            if let News::Gone { port, .. } = news {
                // At most one for each port.
                other.late.retain(|n| !matches!(n, News::Gone { port: p, .. } if *p == port));
                other.late.push(news);
            }
        }
    }

    /// Makes up for what was lost, one slice of `lines` lines of the table at a time. `entries` are the news of a line.
    pub(super) fn catch_up<I: Iterator<Item = News>>(
        &mut self,
        lines: usize,
        all: usize,
        entries: impl Fn(usize) -> I,
    ) {
        for other in &mut self.others {
            let Other { inbox, next, left, late } = other;
            if inbox.closed.load(Ordering::Relaxed) {
                (*left, *late) = (0, Vec::new());
            }
            late.retain(|&news| !inbox.put(news));
            for _ in 0..lines.min(*left) {
                if !entries(*next).all(|news| inbox.put(news)) {
                    break;
                }
                *next = (*next + 1) % all;
                *left -= 1;
            }
        }
    }

    /// There may be something to hear.
    #[inline(always)]
    pub(super) fn has_news(&self) -> bool {
        self.inbox.some.load(Ordering::Relaxed)
    }
    /// The next `most` news.
    pub(super) fn hear(&self, most: usize) -> impl Iterator<Item = News> + use<> {
        self.inbox.some.swap(false, Ordering::AcqRel);
        let inbox = Arc::clone(&self.inbox);
        // Whoever puts one in after the last was taken says so after it.
        (0..most).map_while(move |i| {
            let news = inbox.news.pop();
            if i + 1 == most {
                inbox.some.store(true, Ordering::Relaxed);
            }
            news
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.inbox.closed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(n: u64) -> News {
        News::Heard { key: Key::of(n << 16), port: 0, time: n }
    }

    #[test]
    fn everybody_else_hears_it_once_and_in_order() {
        let mut family = Peer::family(3);
        (1..=5).for_each(|n| family[1].tell(heard(n), 4));
        assert_eq!([0, 1, 2].map(|i| family[i].has_news()), [true, false, true]);
        assert_eq!(family[0].hear(2).collect::<Vec<_>>(), [heard(1), heard(2)]);
        assert!(family[0].has_news(), "there are more");
        assert_eq!(family[0].hear(9).collect::<Vec<_>>(), [heard(3), heard(4), heard(5)]);
        assert!(!family[0].has_news());
        assert_eq!(family[2].hear(9).count(), 5);
        assert!(Peer::family(1)[0].is_alone() && !family[0].is_alone());
    }

    #[test]
    fn who_had_no_room_is_told_all_again_and_who_is_gone_nothing() {
        let mut family = Peer::family_with_room(3, 2);
        drop(family.pop());
        let [mut a, b] = <[Peer; 2]>::try_from(family).unwrap();
        let gone = News::Gone { port: 7, time: 4 };
        let all = [heard(1), heard(2), heard(3), News::Gone { port: 7, time: 1 }, gone];
        all.iter().for_each(|&n| a.tell(n, 4));
        assert_eq!((a.lost(), b.hear(9).count()), (3, 2));
        // Of a table of four lines, each with one station.
        let line = |n: usize| core::iter::once(heard(10 + n as u64));
        let mut all = Vec::new();
        for _ in 0..6 {
            a.catch_up(3, 4, line);
            all.extend(b.hear(9));
        }
        assert_eq!(all, [gone, heard(10), heard(11), heard(12), heard(13)]);
        assert_eq!(a.lost(), 3);
    }
}
