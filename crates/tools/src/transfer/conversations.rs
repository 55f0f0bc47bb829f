//! Concurrent conversations of a receiver, and the choice of those to end when there are too many.

use super::account::{Account, Accounts, Owner};
use super::identity::SenderId;
use super::permissions::Origin;
use hopline_core::{Prefix, PrefixCounter};
use hopline_streams::wide::PublicKey;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum wait of a restarted sender for the end of its earlier conversation.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(1);

/// Time without progress after which a conversation may lose its seat to another sender. An honest sender that had to
/// hash or to wait for its input for so long retries.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes that count as progress. Less within [`IDLE_TIMEOUT`] does not: a byte now and then keeps no seat.
const MIN_PROGRESS: u64 = 16 << 10;

/// Maximum number of conversations that have lost their seat and not ended yet, in addition to those with a seat.
const MAX_LEAVING: usize = 8;

/// Conversations of a receiver.
#[derive(Clone, Debug, Default)]
pub struct Conversations(Arc<Shared>);

/// Limits of concurrent conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Total; default 64.
    pub in_all: usize,
    /// For one host or IPv6 /64 network, and for one key; default 32.
    pub per_party: usize,
    /// Number of the total that is reserved for known peers; default 0.
    pub for_known: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_all: 64, per_party: 32, for_known: 0 }
    }
}

/// Peer of a conversation, as far as the connection has proved its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationPeer {
    /// Address of the peer.
    pub address: IpAddr,
    /// Public key of the peer, if it has one of its own.
    pub key: Option<PublicKey>,
    /// Relation to the receiver: known or not.
    pub origin: Origin,
}

impl ConversationPeer {
    /// Returns a peer that has proved nothing but its address.
    #[must_use]
    pub const fn unknown(address: IpAddr) -> Self {
        Self { address, key: None, origin: Origin::Unknown }
    }
}

/// Seat of a conversation, released when dropped.
#[derive(Debug)]
pub struct Slot {
    shared: Arc<Shared>,
    number: u64,
    key: Option<PublicKey>,
    state: Arc<ConversationState>,
    account: Account,
}

/// State of a conversation that other conversations read or change.
#[derive(Debug, Default)]
struct ConversationState {
    taken_over: AtomicBool,
    evicted: AtomicBool,
    /// Bytes of progress since the start.
    progress: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    /// Signals the end of a conversation.
    slot_released: Condvar,
    /// Accounts of hashed bytes.
    accounts: Arc<Accounts>,
}

#[derive(Debug, Default)]
struct Table {
    limits: Limits,
    conversations: Vec<Conversation>,
    next: u64,
}

/// Identity of a sender: the identifier that it states, and the key that it has proved. The same identifier with another
/// key is another sender.
type Identity = (Option<PublicKey>, SenderId);

#[derive(Debug)]
struct Conversation {
    number: u64,
    party: Option<ConversationPeer>,
    /// Identity, once the sender has said hello.
    sender: Option<Identity>,
    state: Arc<ConversationState>,
    /// Time of the last observed progress; `progress` is the value at that time.
    last_progress: Instant,
    progress: u64,
}

impl Conversation {
    /// Returns whether it has made no progress for too long.
    fn is_idle(&mut self, now: Instant) -> bool {
        let progress = self.state.progress.load(Relaxed);
        if progress >= self.progress + MIN_PROGRESS {
            (self.last_progress, self.progress) = (now, progress);
        }
        now.duration_since(self.last_progress) >= IDLE_TIMEOUT
    }

    fn is_leaving(&self) -> bool {
        self.state.evicted.load(Relaxed)
    }

    fn is_unknown(&self) -> bool {
        self.party.is_some_and(|party| party.origin == Origin::Unknown)
    }

    fn evict(&self) {
        self.state.evicted.store(true, Relaxed);
    }
}

impl Conversations {
    /// Creates an empty set of conversations.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let table = Mutex::new(Table { limits, ..Table::default() });
        Self(Arc::new(Shared { table, slot_released: Condvar::new(), accounts: Arc::default() }))
    }

    /// Returns a seat for `party`, if one is free. Otherwise conversations without progress are ended, so that one is
    /// free soon. A known peer replaces an unknown one at once. A peer of a prefix with few conversations replaces the
    /// slowest one of the prefix with the most.
    #[must_use]
    pub fn enter(&self, party: ConversationPeer) -> Option<Slot> {
        self.enter_at(now(), party)
    }

    fn enter_at(&self, now: Instant, party: ConversationPeer) -> Option<Slot> {
        let mut table = self.0.table();
        if table.is_at_limit(party) {
            table.evict_idle(now, |taken| taken.party.is_some_and(|other| other.is_same_party(party)));
            return None;
        }
        if table.conversations.len() >= table.limits.in_all + MAX_LEAVING {
            return None;
        }
        let present = table.conversations.iter().filter(|taken| !taken.is_leaving()).count();
        let room = match party.origin {
            Origin::Known => table.limits.in_all,
            Origin::Unknown => table.limits.in_all.saturating_sub(table.limits.for_known),
        };
        if present >= room && !table.make_room(now, party) {
            table.evict_idle(now, |_| true);
            return None;
        }
        Some(table.add_slot(&self.0, now, Some(party)))
    }

    /// Updates the progress of all conversations. Call it regularly, so that the time without progress is known.
    pub fn update_progress(&self) {
        let now = now();
        for taken in &mut self.0.table().conversations {
            taken.is_idle(now);
        }
    }
}

impl Slot {
    /// Returns the seat of a conversation that is independent of any others.
    #[must_use]
    pub fn independent() -> Self {
        let shared = Arc::<Shared>::default();
        let mut table = shared.table();
        table.add_slot(&shared, now(), None)
    }

    pub(super) const fn account(&self) -> &Account {
        &self.account
    }

    /// Records that `bytes` have arrived.
    pub(super) fn advance(&self, bytes: u64) {
        self.state.progress.fetch_add(bytes, Relaxed);
    }

    /// Records a complete file as progress, whatever its length.
    pub(super) fn record_file(&self) {
        self.advance(MIN_PROGRESS);
    }

    /// Returns the bytes of progress so far.
    #[cfg(test)]
    pub(super) fn progress(&self) -> u64 {
        self.state.progress.load(Relaxed)
    }

    /// Returns whether another conversation needs the seat.
    pub(super) fn is_evicted(&self) -> bool {
        self.state.evicted.load(Relaxed)
    }

    /// Assigns the conversation to `sender`. An earlier conversation with the same identity and key is ended; this call
    /// waits for its end, but no longer than a second.
    pub(super) fn take_over(&self, sender: SenderId) {
        let sender = (self.key, sender);
        let mut table = self.shared.table();
        let is_earlier = |taken: &Conversation| taken.sender == Some(sender) && taken.number != self.number;
        table
            .conversations
            .iter()
            .filter(|taken| is_earlier(taken))
            .for_each(|taken| taken.state.taken_over.store(true, Relaxed));
        let still_there = |table: &mut Table| table.conversations.iter().any(is_earlier);
        let waited = self.shared.slot_released.wait_timeout_while(table, TAKEOVER_TIMEOUT, still_there);
        table = waited.expect(UNPOISONED).0;
        if let Some(own) = table.conversations.iter_mut().find(|taken| taken.number == self.number) {
            own.sender = Some(sender);
        }
    }

    /// Returns whether its sender has started a new conversation.
    pub(super) fn is_taken_over(&self) -> bool {
        self.state.taken_over.load(Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.table().conversations.retain(|taken| taken.number != self.number);
        self.shared.slot_released.notify_all();
    }
}

const UNPOISONED: &str = "nobody panics while holding the table";

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect(UNPOISONED)
    }
}

impl ConversationPeer {
    /// Returns the party that is charged for hashed bytes.
    fn account_owner(self) -> Owner {
        match self.key {
            Some(key) if self.origin == Origin::Known => Owner::Key(key),
            _ => Owner::Host(Prefix::of_host(self.address)),
        }
    }

    fn shares_key(self, other: Self) -> bool {
        self.key.is_some() && self.key == other.key
    }

    /// Returns whether both may be one host. Unknown peers do not count for a known peer at the same host.
    fn shares_host(self, other: Self) -> bool {
        self.origin == other.origin && Prefix::of_host(self.address) == Prefix::of_host(other.address)
    }

    /// Returns whether both may be one party.
    fn is_same_party(self, other: Self) -> bool {
        self.shares_key(other) || self.shares_host(other)
    }
}

impl Table {
    fn add_slot(&mut self, shared: &Arc<Shared>, now: Instant, party: Option<ConversationPeer>) -> Slot {
        self.next += 1;
        let (number, fate) = (self.next, Arc::<ConversationState>::default());
        let taken = Conversation {
            number,
            party,
            sender: None,
            state: fate.clone(),
            last_progress: now,
            progress: 0,
        };
        self.conversations.push(taken);
        let account = Account::new(
            shared.accounts.clone(),
            party.map_or(Owner::SinglePeer, ConversationPeer::account_owner),
        );
        Slot { shared: shared.clone(), number, key: party.and_then(|party| party.key), state: fate, account }
    }

    fn parties(&self) -> impl Iterator<Item = ConversationPeer> {
        self.conversations.iter().filter_map(|taken| taken.party)
    }

    /// Returns whether `party` has reached its limit.
    fn is_at_limit(&self, party: ConversationPeer) -> bool {
        let of_host = self.parties().filter(|other| other.shares_host(party)).count();
        let of_key = self.parties().filter(|other| other.shares_key(party)).count();
        of_host.max(of_key) >= self.limits.per_party
    }

    fn evict_idle(&mut self, now: Instant, which: impl Fn(&Conversation) -> bool) {
        self.conversations.iter_mut().filter(|taken| which(taken)).for_each(|taken| {
            if taken.is_idle(now) {
                taken.evict();
            }
        });
    }

    /// Takes the seat of the slowest conversation of the prefix with the most. For a known peer, an unknown one loses its
    /// seat; otherwise that prefix must still have more than the one of `party` afterwards. Returns whether a seat was
    /// freed.
    fn make_room(&mut self, now: Instant, party: ConversationPeer) -> bool {
        self.conversations.iter_mut().for_each(|taken| {
            taken.is_idle(now);
        });
        let may_go = |taken: &&Conversation| taken.party.is_some() && !taken.is_leaving();
        let strangers = || self.conversations.iter().filter(may_go).filter(|taken| taken.is_unknown());
        let for_known = party.origin == Origin::Known;
        let slowest = match (for_known, strangers().next()) {
            (true, None) => {
                slowest_of_largest_prefix(self.conversations.iter().filter(may_go), Some(party.address))
            }
            (true, Some(_)) => slowest_of_largest_prefix(strangers(), None),
            (false, _) => slowest_of_largest_prefix(strangers(), Some(party.address)),
        };
        slowest.inspect(|taken| taken.evict()).is_some()
    }
}

/// Returns the conversation with the longest time without progress, of the prefix with the most conversations. `None` if
/// that prefix has no more than those of `beside`.
fn slowest_of_largest_prefix<'t>(
    all: impl Iterator<Item = &'t Conversation> + Clone,
    beside: Option<IpAddr>,
) -> Option<&'t Conversation> {
    let address = |taken: &Conversation| taken.party.map(|party| party.address);
    let mut by_prefix = PrefixCounter::default();
    for taken in all.clone() {
        by_prefix.insert(address(taken)?, taken.number);
    }
    let heaviest: Vec<u64> = by_prefix.heaviest().collect();
    let slowest =
        all.filter(|taken| heaviest.contains(&taken.number)).min_by_key(|taken| taken.last_progress)?;
    let outweighs = |light| address(slowest).is_some_and(|heavy| by_prefix.outweighs(heavy, light));
    beside.is_none_or(outweighs).then_some(slowest)
}

#[expect(clippy::disallowed_methods, reason = "conversations are in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
