//! Who converses with a receiver right now.

use super::identity::SenderId;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long who takes over waits for the conversation that it takes over to end.
const HAND_OVER: Duration = Duration::from_secs(1);

/// How long nothing may happen in a conversation before somebody else may have its seat. An honest sender that had to hash
/// so long, or to wait for its input, tries again.
const IDLE: Duration = Duration::from_secs(30);

/// All conversations of a receiver.
#[derive(Clone, Debug, Default)]
pub struct Conversations(Arc<Shared>);

/// How many there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In all; default 64.
    pub in_all: usize,
    /// With one address; default 32.
    pub per_address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_all: 64, per_address: 32 }
    }
}

/// One conversation's; given back when dropped.
#[derive(Debug)]
pub struct Seat {
    shared: Arc<Shared>,
    number: u64,
    fate: Arc<Fate>,
}

/// What others have to say to a conversation, and it to them.
#[derive(Debug, Default)]
struct Fate {
    taken_over: AtomicBool,
    evicted: AtomicBool,
    /// Whether something happened since it was looked at.
    busy: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    /// Somebody has left.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    limits: Limits,
    taken: Vec<Taken>,
    next: u64,
}

#[derive(Debug)]
struct Taken {
    number: u64,
    address: Option<IpAddr>,
    /// Once it has said hello.
    sender: Option<SenderId>,
    fate: Arc<Fate>,
    /// When something happened last, as far as was looked.
    active: Instant,
}

impl Taken {
    /// Nothing has happened for too long.
    fn is_idle(&mut self, now: Instant) -> bool {
        if self.fate.busy.swap(false, Relaxed) {
            self.active = now;
        }
        now.duration_since(self.active) >= IDLE
    }
}

impl Conversations {
    /// None yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let table = Mutex::new(Table { limits, ..Table::default() });
        Self(Arc::new(Shared { table, left: Condvar::new() }))
    }

    /// A seat for whoever is at `address`, if there is one. Where there is none, conversations in which nothing has happened for
    /// half a minute are ended, so that there is one soon.
    #[must_use]
    pub fn enter(&self, address: IpAddr) -> Option<Seat> {
        self.enter_at(now(), address)
    }

    fn enter_at(&self, now: Instant, address: IpAddr) -> Option<Seat> {
        let mut table = self.0.table();
        let from_there = table.taken.iter().filter(|taken| taken.address == Some(address)).count();
        let crowded = from_there >= table.limits.per_address;
        if !crowded && table.taken.len() < table.limits.in_all {
            return Some(table.seat(&self.0, now, Some(address)));
        }
        for taken in table.taken.iter_mut().filter(|taken| !crowded || taken.address == Some(address)) {
            if taken.is_idle(now) {
                taken.fate.evicted.store(true, Relaxed);
            }
        }
        None
    }

    /// Looks whether something happens in them; now and then, so that it is known for how long nothing has.
    pub fn look(&self) {
        let now = now();
        for taken in &mut self.0.table().taken {
            taken.is_idle(now);
        }
    }
}

impl Seat {
    /// Of a conversation that has nothing to do with others.
    #[must_use]
    pub fn alone() -> Self {
        let shared = Arc::<Shared>::default();
        let mut table = shared.table();
        table.seat(&shared, now(), None)
    }

    /// Something happens.
    pub(super) fn touch(&self) {
        self.fate.busy.store(true, Relaxed);
    }

    /// Whether somebody else needs its seat.
    pub(super) fn is_evicted(&self) -> bool {
        self.fate.evicted.load(Relaxed)
    }

    /// It is `sender` that converses. An earlier conversation of the same ends, whatever became of it; this waits for its end,
    /// but no longer than a second.
    pub(super) fn take_over(&self, sender: SenderId) {
        let mut table = self.shared.table();
        let is_earlier = |taken: &Taken| taken.sender == Some(sender) && taken.number != self.number;
        table
            .taken
            .iter()
            .filter(|taken| is_earlier(taken))
            .for_each(|taken| taken.fate.taken_over.store(true, Relaxed));
        let still_there = |table: &mut Table| table.taken.iter().any(is_earlier);
        let waited = self.shared.left.wait_timeout_while(table, HAND_OVER, still_there);
        table = waited.expect(UNPOISONED).0;
        if let Some(own) = table.taken.iter_mut().find(|taken| taken.number == self.number) {
            own.sender = Some(sender);
        }
    }

    /// Whether its sender has begun anew elsewhere.
    pub(super) fn is_taken_over(&self) -> bool {
        self.fate.taken_over.load(Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.table().taken.retain(|taken| taken.number != self.number);
        self.shared.left.notify_all();
    }
}

const UNPOISONED: &str = "nobody panics while holding the table";

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect(UNPOISONED)
    }
}

impl Table {
    fn seat(&mut self, shared: &Arc<Shared>, now: Instant, address: Option<IpAddr>) -> Seat {
        self.next += 1;
        let (number, fate) = (self.next, Arc::<Fate>::default());
        self.taken.push(Taken { number, address, sender: None, fate: fate.clone(), active: now });
        Seat { shared: shared.clone(), number, fate }
    }
}

#[expect(clippy::disallowed_methods, reason = "conversations are in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn there_are_so_many_seats_in_all_and_so_many_for_one_address() {
        let conversations = Conversations::new(Limits { in_all: 3, per_address: 2 });
        let first = conversations.enter(HERE).unwrap();
        let _second = conversations.enter(HERE).unwrap();
        assert!(conversations.enter(HERE).is_none(), "its address has two");
        let _third = conversations.enter(THERE).unwrap();
        assert!(conversations.enter(THERE).is_none(), "there are three");
        drop(first);
        assert!(conversations.enter(THERE).is_some());
    }

    #[test]
    fn who_says_nothing_keeps_no_seat_that_somebody_needs() {
        let conversations = Conversations::new(Limits { in_all: 2, per_address: 2 });
        let began = now();
        let [idle, busy] = [(); 2].map(|()| conversations.enter_at(began, HERE).unwrap());
        busy.touch();
        assert!(conversations.enter_at(began + IDLE / 2, THERE).is_none());
        assert!(!idle.is_evicted(), "not yet");
        assert!(conversations.enter_at(began + IDLE, THERE).is_none());
        assert!(idle.is_evicted() && !busy.is_evicted());
        drop(idle);
        assert!(conversations.enter_at(began + IDLE, THERE).is_some());
    }

    #[test]
    fn the_later_conversation_of_a_sender_ends_the_earlier_and_waits_for_its_end() {
        let conversations = Conversations::default();
        let [earlier, later, other] = [(); 3].map(|()| conversations.enter(HERE).unwrap());
        let (id, another) = (SenderId([1; 16]), SenderId([2; 16]));
        earlier.take_over(id);
        other.take_over(another);
        thread::scope(|scope| {
            let ending = scope.spawn(move || {
                while !earlier.is_taken_over() {
                    thread::yield_now();
                }
            });
            later.take_over(id);
            assert!(ending.is_finished() || ending.join().is_ok());
        });
        assert!(!later.is_taken_over() && !other.is_taken_over());
        let table = conversations.0.table();
        assert_eq!(table.taken.iter().filter(|taken| taken.sender == Some(id)).count(), 1);
    }
}
