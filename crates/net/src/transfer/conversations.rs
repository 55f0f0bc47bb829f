//! The conversations that a receiver has at once, and which of them goes when there are too many.

use super::account::{Account, Bank, Payer};
use super::identity::SenderId;
use super::permitted::Origin;
use crate::wide::PublicKey;
use hopline_core::{ByPrefix, Prefix};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long who takes over waits for the conversation that it takes over to end.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Longest time without progress of a conversation before another sender may have its seat. An honest sender that had to hash
/// so long, or to wait for its input, tries again.
const IDLE: Duration = Duration::from_secs(30);

/// Bytes that count as progress. Less within [`IDLE`] is none: a byte now and then keeps no seat.
const PROGRESS: u64 = 16 << 10;

/// Conversations that have lost their seat and have not ended yet, while others have theirs already.
const LEAVING: usize = 8;

/// All conversations of a receiver.
#[derive(Clone, Debug, Default)]
pub struct Conversations(Arc<Shared>);

/// How many there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In all; default 64.
    pub in_all: usize,
    /// With one host, be it a /64 network of IPv6, and with one key; default 32.
    pub per_party: usize,
    /// Of all, those that only known peers may have; default 0.
    pub for_known: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_all: 64, per_party: 32, for_known: 0 }
    }
}

/// The peer of a conversation, as far as its connection has proved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Its address.
    pub address: IpAddr,
    /// Its key, if it has one of its own.
    pub key: Option<PublicKey>,
    /// Origin: known to the receiver, or not.
    pub origin: Origin,
}

impl Party {
    /// A peer that has proved nothing.
    #[must_use]
    pub const fn stranger(address: IpAddr) -> Self {
        Self { address, key: None, origin: Origin::Stranger }
    }
}

/// One conversation's; given back when dropped.
#[derive(Debug)]
pub struct Seat {
    shared: Arc<Shared>,
    number: u64,
    key: Option<PublicKey>,
    fate: Arc<Fate>,
    account: Account,
}

/// What others have to say to a conversation, and it to them.
#[derive(Debug, Default)]
struct Fate {
    taken_over: AtomicBool,
    evicted: AtomicBool,
    /// Bytes of progress since it began.
    progress: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    /// A conversation has ended.
    left: Condvar,
    /// Accounts of what is hashed.
    bank: Arc<Bank>,
}

#[derive(Debug, Default)]
struct Table {
    limits: Limits,
    taken: Vec<Taken>,
    next: u64,
}

/// Identity of a sender: the id that it states, and the key that it has proved. Another peer that says the same is another sender.
type Identity = (Option<PublicKey>, SenderId);

#[derive(Debug)]
struct Taken {
    number: u64,
    party: Option<Party>,
    /// Once it has said hello.
    sender: Option<Identity>,
    fate: Arc<Fate>,
    /// When it made progress last, as far as was looked, and how much it had made then.
    active: Instant,
    progress: u64,
}

impl Taken {
    /// It has made no progress for too long.
    fn is_idle(&mut self, now: Instant) -> bool {
        let progress = self.fate.progress.load(Relaxed);
        if progress >= self.progress + PROGRESS {
            (self.active, self.progress) = (now, progress);
        }
        now.duration_since(self.active) >= IDLE
    }

    fn is_leaving(&self) -> bool {
        self.fate.evicted.load(Relaxed)
    }

    fn is_stranger(&self) -> bool {
        self.party.is_some_and(|party| party.origin == Origin::Stranger)
    }

    fn evict(&self) {
        self.fate.evicted.store(true, Relaxed);
    }
}

impl Conversations {
    /// None yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let table = Mutex::new(Table { limits, ..Table::default() });
        Self(Arc::new(Shared { table, left: Condvar::new(), bank: Arc::default() }))
    }

    /// A seat for `party`, if there is one. Where there is none, conversations without progress are ended, so that there is one soon. A
    /// known peer takes that of a stranger at once, and a peer of a light prefix that of the slowest one of the heaviest prefix.
    #[must_use]
    pub fn enter(&self, party: Party) -> Option<Seat> {
        self.enter_at(now(), party)
    }

    fn enter_at(&self, now: Instant, party: Party) -> Option<Seat> {
        let mut table = self.0.table();
        if table.is_crowded(party) {
            table.evict_idle(now, |taken| taken.party.is_some_and(|other| other.is_near(party)));
            return None;
        }
        if table.taken.len() >= table.limits.in_all + LEAVING {
            return None;
        }
        let present = table.taken.iter().filter(|taken| !taken.is_leaving()).count();
        let room = match party.origin {
            Origin::Known => table.limits.in_all,
            Origin::Stranger => table.limits.in_all.saturating_sub(table.limits.for_known),
        };
        if present >= room && !table.make_room(now, party) {
            table.evict_idle(now, |_| true);
            return None;
        }
        Some(table.seat(&self.0, now, Some(party)))
    }

    /// Looks whether they make progress; now and then, so that it is known for how long one has made none.
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

    pub(super) const fn account(&self) -> &Account {
        &self.account
    }

    /// Records that `bytes` have arrived.
    pub(super) fn advance(&self, bytes: u64) {
        self.fate.progress.fetch_add(bytes, Relaxed);
    }

    /// A file is done, however long it is.
    pub(super) fn finish_one(&self) {
        self.advance(PROGRESS);
    }

    /// Bytes of progress so far.
    #[cfg(test)]
    pub(super) fn progress(&self) -> u64 {
        self.fate.progress.load(Relaxed)
    }

    /// Whether somebody else needs its seat.
    pub(super) fn is_evicted(&self) -> bool {
        self.fate.evicted.load(Relaxed)
    }

    /// It is `sender` that converses. An earlier conversation of the same, with the same key, ends, whatever became of it; this waits for
    /// its end, but no longer than a second.
    pub(super) fn take_over(&self, sender: SenderId) {
        let sender = (self.key, sender);
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

impl Party {
    /// Returns the party that pays for what is hashed.
    fn payer(self) -> Payer {
        match self.key {
            Some(key) if self.origin == Origin::Known => Payer::Key(key),
            _ => Payer::Host(Prefix::of_host(self.address)),
        }
    }

    fn has_key_of(self, other: Self) -> bool {
        self.key.is_some() && self.key == other.key
    }

    /// Returns whether both may be one host. Strangers do not count for a known peer beside them.
    fn has_host_of(self, other: Self) -> bool {
        self.origin == other.origin && Prefix::of_host(self.address) == Prefix::of_host(other.address)
    }

    /// Returns whether both may be one party.
    fn is_near(self, other: Self) -> bool {
        self.has_key_of(other) || self.has_host_of(other)
    }
}

impl Table {
    fn seat(&mut self, shared: &Arc<Shared>, now: Instant, party: Option<Party>) -> Seat {
        self.next += 1;
        let (number, fate) = (self.next, Arc::<Fate>::default());
        let taken = Taken { number, party, sender: None, fate: fate.clone(), active: now, progress: 0 };
        self.taken.push(taken);
        let account = Account::new(shared.bank.clone(), party.map_or(Payer::Only, Party::payer));
        Seat { shared: shared.clone(), number, key: party.and_then(|party| party.key), fate, account }
    }

    fn parties(&self) -> impl Iterator<Item = Party> {
        self.taken.iter().filter_map(|taken| taken.party)
    }

    /// Returns whether `party` has as many as one may have.
    fn is_crowded(&self, party: Party) -> bool {
        let of_host = self.parties().filter(|other| other.has_host_of(party)).count();
        let of_key = self.parties().filter(|other| other.has_key_of(party)).count();
        of_host.max(of_key) >= self.limits.per_party
    }

    fn evict_idle(&mut self, now: Instant, which: impl Fn(&Taken) -> bool) {
        self.taken.iter_mut().filter(|taken| which(taken)).for_each(|taken| {
            if taken.is_idle(now) {
                taken.evict();
            }
        });
    }

    /// Takes away the seat of the slowest conversation of the heaviest prefix: of a stranger for a known peer, and otherwise if that prefix
    /// remains heavier than the one of `party`. Returns whether there was one.
    fn make_room(&mut self, now: Instant, party: Party) -> bool {
        self.taken.iter_mut().for_each(|taken| {
            taken.is_idle(now);
        });
        let may_go = |taken: &&Taken| taken.party.is_some() && !taken.is_leaving();
        let strangers = || self.taken.iter().filter(may_go).filter(|taken| taken.is_stranger());
        let for_known = party.origin == Origin::Known;
        let slowest = match (for_known, strangers().next()) {
            (true, None) => slowest_of_heaviest(self.taken.iter().filter(may_go), Some(party.address)),
            (true, Some(_)) => slowest_of_heaviest(strangers(), None),
            (false, _) => slowest_of_heaviest(strangers(), Some(party.address)),
        };
        slowest.inspect(|taken| taken.evict()).is_some()
    }
}

/// The conversation of the heaviest prefix that has made no progress for longest; none if that prefix does not outweigh those of `beside`.
fn slowest_of_heaviest<'t>(
    all: impl Iterator<Item = &'t Taken> + Clone,
    beside: Option<IpAddr>,
) -> Option<&'t Taken> {
    let address = |taken: &Taken| taken.party.map(|party| party.address);
    let mut by_prefix = ByPrefix::default();
    for taken in all.clone() {
        by_prefix.insert(address(taken)?, taken.number);
    }
    let heaviest: Vec<u64> = by_prefix.heaviest().collect();
    let slowest = all.filter(|taken| heaviest.contains(&taken.number)).min_by_key(|taken| taken.active)?;
    let outweighs = |light| address(slowest).is_some_and(|heavy| by_prefix.outweighs(heavy, light));
    beside.is_none_or(outweighs).then_some(slowest)
}

#[expect(clippy::disallowed_methods, reason = "conversations are in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
