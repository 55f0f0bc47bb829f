//! Open trunks of an exit, by the entrances that opened them.

use super::carrier::Identity;
use super::handshake::Session;
use super::key::{Key, Name};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Maximum number of streams of a trunk that wait for a request: more than an entrance keeps as spares and opens at once.
const MAX_PENDING_STREAMS: usize = 256;
/// Maximum reordering of requests.
const MAX_REORDERING: usize = 4096;

/// Trunks of an exit.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Maximum number of trunks of an entrance.
    max_per_entrance: usize,
    all: Mutex<Vec<Arc<OpenTrunk>>>,
}

/// An open trunk.
#[derive(Debug)]
pub(super) struct OpenTrunk {
    pub(super) name: Name,
    /// Pre-shared key of the entrance.
    pub(super) pre_shared_key: Key,
    /// Pre-shared key, bound to this trunk.
    pub(super) bound_key: Key,
    pub(super) session: Session,
    identity: Identity,
    numbers: Mutex<ReplayWindow>,
    pending_streams: AtomicUsize,
    ended: watch::Sender<bool>,
}

/// A stream of a trunk that waits for a request, counted until it is dropped.
#[derive(Debug)]
pub(super) struct PendingStream(Arc<OpenTrunk>);

/// Replay window of request numbers: each is accepted once.
#[derive(Debug, Default)]
struct ReplayWindow {
    /// Lowest acceptable number.
    floor: u64,
    seen: BTreeSet<u64>,
}

impl Sessions {
    /// Creates an empty set, with at most `most` trunks for each entrance.
    pub(super) const fn new(most: usize) -> Self {
        Self { max_per_entrance: most, all: Mutex::new(Vec::new()) }
    }

    /// Adds a trunk. If its entrance has reached the maximum, the oldest one ends. A restarted entrance is thus served
    /// although the exit has not detected the end of its previous trunk.
    pub(super) fn open(
        &self,
        name: Name,
        [shared, bound]: [Key; 2],
        session: Session,
        identity: Identity,
    ) -> Arc<OpenTrunk> {
        let held = Arc::new(OpenTrunk {
            name,
            pre_shared_key: shared,
            bound_key: bound,
            session,
            identity,
            numbers: Mutex::default(),
            pending_streams: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
        });
        let mut all = self.all();
        let own = || all.iter().filter(|one| one.name == held.name);
        let oldest = own().next().filter(|_| own().count() >= self.max_per_entrance).cloned();
        all.push(Arc::clone(&held));
        drop(all);
        if let Some(oldest) = oldest {
            self.close(&oldest);
        }
        held
    }

    /// Removes a trunk, which ends its connections. Returns whether its entrance has no other one: after an outage, an
    /// entrance opens a new trunk before the exit detects the end of the previous one.
    pub(super) fn close(&self, held: &Arc<OpenTrunk>) -> bool {
        let mut all = self.all();
        all.retain(|one| !Arc::ptr_eq(one, held));
        let was_last = all.iter().all(|one| one.name != held.name);
        drop(all);
        held.ended.send_replace(true);
        was_last
    }

    /// Returns the trunk with the identifier `id`.
    pub(super) fn get(&self, id: u64) -> Option<Arc<OpenTrunk>> {
        self.all().iter().find(|held| held.session.id() == id).cloned()
    }

    /// Returns a place for a new stream of `identity`, if it has an open trunk. The most recent trunk counts.
    pub(super) fn admit(&self, identity: Identity) -> Option<PendingStream> {
        let held = self.all().iter().rev().find(|held| held.identity == identity).cloned()?;
        let taken = held.pending_streams.fetch_add(1, Relaxed);
        let guest = PendingStream(held);
        (taken < MAX_PENDING_STREAMS).then_some(guest)
    }

    /// Returns the number of entrances with a trunk.
    pub(super) fn entrances(&self) -> usize {
        self.all().iter().map(|held| &held.name).collect::<BTreeSet<_>>().len()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<OpenTrunk>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTrunk {
    /// Returns whether `number` has not been used before, and marks it as used.
    pub(super) fn accept_number(&self, number: u64) -> bool {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).accept(number)
    }

    /// Waits until the trunk has ended.
    pub(super) async fn ended(&self) {
        // The sender lives as long as this trunk.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl PendingStream {
    /// Waits until its trunk has ended.
    pub(super) async fn ended(&self) {
        self.0.ended().await;
    }
}

impl Drop for PendingStream {
    fn drop(&mut self) {
        self.0.pending_streams.fetch_sub(1, Relaxed);
    }
}

impl ReplayWindow {
    fn accept(&mut self, number: u64) -> bool {
        let is_new = number > self.floor && self.seen.insert(number);
        if self.seen.len() > MAX_REORDERING {
            self.floor = self.seen.pop_first().unwrap_or(self.floor);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::{Challenge, Nonce};
    use super::*;

    #[test]
    fn a_number_is_accepted_once_in_any_order() {
        let mut numbers = ReplayWindow::default();
        assert!(!numbers.accept(0), "the number of the hello");
        assert!(numbers.accept(2) && numbers.accept(1) && !numbers.accept(2) && !numbers.accept(1));
        assert!((3..10_000).all(|number| numbers.accept(number)));
        assert!(!numbers.accept(1) && !numbers.accept(9_999), "also long afterwards");
        assert!(numbers.seen.len() <= MAX_REORDERING);
    }

    fn open(sessions: &Sessions, of: u8) -> Arc<OpenTrunk> {
        let key = Key::new(&[of; 32]);
        let session = Session::new(&key, &Challenge(Nonce([of; 32])), &Nonce([0; 32]));
        sessions.open("drone".parse().unwrap(), [key; 2], session, Identity::Key([7; 32]))
    }

    #[test]
    fn the_oldest_trunk_of_an_entrance_above_the_limit_ends() {
        let sessions = Sessions::new(2);
        let [first, second, third] = [1, 2, 3].map(|of| open(&sessions, of));
        let over = [&first, &second, &third].map(|held| *held.ended.borrow());
        assert_eq!(over, [true, false, false]);
        assert!(sessions.get(first.session.id()).is_none());
        assert!(!sessions.close(&first), "it is over already, and others are left");
    }

    #[test]
    fn pending_streams_belong_to_the_latest_trunk_and_are_limited() {
        let sessions = Sessions::new(2);
        assert!(sessions.admit(Identity::Key([7; 32])).is_none());
        let [old, new] = [1, 2].map(|of| open(&sessions, of));
        assert_eq!(sessions.entrances(), 1, "both are of one");
        let guests: Vec<_> =
            (0..MAX_PENDING_STREAMS).filter_map(|_| sessions.admit(Identity::Key([7; 32]))).collect();
        assert!(
            guests.len() == MAX_PENDING_STREAMS && guests.iter().all(|guest| Arc::ptr_eq(&guest.0, &new))
        );
        assert!(sessions.admit(Identity::Key([7; 32])).is_none());
        drop(guests);
        assert!(sessions.admit(Identity::Key([7; 32])).is_some());
        assert!(sessions.admit(Identity::Key([8; 32])).is_none(), "another entrance");
        assert!(sessions.get(old.session.id()).is_some());
        assert_eq!([&old, &new].map(|held| sessions.close(held)), [false, true], "one is left, and none");
        assert!(sessions.admit(Identity::Key([7; 32])).is_none() && sessions.entrances() == 0);
        assert!(sessions.get(old.session.id()).is_none() && *new.ended.borrow());
    }
}
