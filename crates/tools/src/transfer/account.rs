//! Accounting of the processor time that senders cause by hashing, and scheduling of the hashing.
//!
//! An offer of 78 bytes makes the receiver hash a file of any size. Each party therefore has an account in bytes: hashing
//! is deducted from it, and received data are added to it. A party without a positive balance waits. One block of one
//! file is hashed at a time, for the party with the highest balance, so that other conversations have the remaining
//! processors.

use super::error::Error;
use super::file_failure::FileFailure;
use super::hashing::hash_into;
use blake3::Hasher;
use hopline_core::Prefix;
use hopline_streams::wide::PublicKey;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Refusal text for a sender that has to wait.
pub(super) const BUSY_TEXT: &str =
    "the receiver has compared much for this sender already, and compares more a little later";

/// Maximum balance, in bytes, which is also the initial one.
const MAX_BALANCE: i64 = 1 << 30;
/// Refill rate in bytes per second: 2 to 5 % of a processor.
const REFILL_RATE: i64 = 32 << 20;
/// Bytes hashed in a turn.
const BLOCK: u64 = 4 << 20;
/// Maximum number of accounts.
const MAX_ACCOUNTS: usize = 4096;
/// Interval at which a waiting conversation checks whether to continue.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Owner of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A known peer.
    Key(PublicKey),
    /// Peers without a known key. An attacker can create any number of keys, so unknown ones do not count.
    Host(Prefix),
    /// The only peer.
    SinglePeer,
}

/// Access of a conversation to the account of its party.
#[derive(Clone, Debug)]
pub(super) struct Account {
    accounts: Arc<Accounts>,
    owner: Owner,
}

/// Accounts of all parties of a receiver.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    balances: Mutex<Balances>,
    /// Signals the end of a turn.
    turn_ended: Condvar,
}

#[derive(Debug, Default)]
struct Balances {
    by_owner: BTreeMap<Owner, Balance>,
    /// `true` while a conversation hashes a block.
    is_hashing: bool,
    /// Waiting conversations, by time of arrival.
    waiting: BTreeMap<u64, Owner>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Balance {
    bytes: i64,
    at: Instant,
}

/// Right to hash a block.
struct HashPermit<'b>(&'b Accounts);

impl Default for Account {
    fn default() -> Self {
        Self { accounts: Arc::default(), owner: Owner::SinglePeer }
    }
}

impl Account {
    pub(super) const fn new(bank: Arc<Accounts>, payer: Owner) -> Self {
        Self { accounts: bank, owner: payer }
    }

    /// Returns whether a file of any length may be hashed: a negative balance recovers with time.
    pub(super) fn may_hash(&self) -> bool {
        self.accounts.lock().balance(self.owner, now()) > 0
    }

    /// Hashes the rest of `file`, and charges it. Calls `meanwhile` before each block and several times a second.
    pub(super) fn hash(
        &self,
        file: &mut File,
        doing: &str,
        meanwhile: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(u64, Hasher), FileFailure> {
        let (mut hasher, mut total) = (Hasher::new(), 0);
        loop {
            meanwhile().map_err(FileFailure::Fail)?;
            let turn = self.acquire_permit(meanwhile).map_err(FileFailure::Fail)?;
            let read = hash_into(&mut hasher, file, BLOCK).map_err(|e| FileFailure::of_io(doing, e))?;
            drop(turn);
            self.add(-i64::try_from(read).unwrap_or(i64::MAX));
            total += read;
            if read < BLOCK {
                return Ok((total, hasher));
            }
        }
    }

    /// Adds received bytes, or those of justified hashing.
    pub(super) fn credit(&self, bytes: u64) {
        self.add(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Uses up the whole balance, and more.
    #[cfg(test)]
    pub(super) fn exhaust(&self) {
        self.add(-2 * MAX_BALANCE);
    }

    fn add(&self, bytes: i64) {
        self.accounts.lock().add(self.owner, bytes, now());
    }

    /// Waits for the right to hash a block. Calls `meanwhile` several times a second.
    ///
    /// # Errors
    /// That of `meanwhile`.
    fn acquire_permit(
        &self,
        meanwhile: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<HashPermit<'_>, Error> {
        let mut books = self.accounts.lock();
        let ticket = books.next;
        books.next += 1;
        books.waiting.insert(ticket, self.owner);
        while !books.is_next(ticket, now()) {
            books = self.accounts.turn_ended.wait_timeout(books, POLL_INTERVAL).expect(UNPOISONED).0;
            if books.is_next(ticket, now()) {
                break;
            }
            drop(books);
            let gone_on = meanwhile();
            books = self.accounts.lock();
            if let Err(error) = gone_on {
                books.waiting.remove(&ticket);
                return Err(error);
            }
        }
        books.waiting.remove(&ticket);
        books.is_hashing = true;
        Ok(HashPermit(&self.accounts))
    }
}

impl Drop for HashPermit<'_> {
    fn drop(&mut self) {
        self.0.lock().is_hashing = false;
        self.0.turn_ended.notify_all();
    }
}

const UNPOISONED: &str = "no thread panics while it holds the accounts";

impl Accounts {
    fn lock(&self) -> MutexGuard<'_, Balances> {
        self.balances.lock().expect(UNPOISONED)
    }
}

impl Balances {
    fn balance(&self, payer: Owner, now: Instant) -> i64 {
        self.by_owner.get(&payer).map_or(MAX_BALANCE, |balance| balance.at(now))
    }

    fn add(&mut self, payer: Owner, bytes: i64, now: Instant) {
        let sum = self.balance(payer, now).saturating_add(bytes).min(MAX_BALANCE);
        self.by_owner.insert(payer, Balance { bytes: sum, at: now });
        if self.by_owner.len() > MAX_ACCOUNTS {
            self.by_owner.retain(|_, balance| balance.at(now) < MAX_BALANCE);
        }
        // The account of an expensive party must not be dropped for many cheap ones.
        if self.by_owner.len() > MAX_ACCOUNTS
            && let Some(payer) =
                self.by_owner.iter().max_by_key(|(_, balance)| balance.at(now)).map(|(payer, _)| *payer)
        {
            self.by_owner.remove(&payer);
        }
    }

    fn is_next(&self, ticket: u64, now: Instant) -> bool {
        let first = |(ticket, payer): (&u64, &Owner)| (self.balance(*payer, now), std::cmp::Reverse(*ticket));
        let next = self.waiting.iter().max_by_key(|entry| first(*entry));
        !self.is_hashing && next.is_some_and(|(next, _)| *next == ticket)
    }
}

impl Balance {
    fn at(self, now: Instant) -> i64 {
        let back =
            now.saturating_duration_since(self.at).as_millis().min(1 << 32) as i64 * (REFILL_RATE / 1000);
        self.bytes.saturating_add(back).min(MAX_BALANCE)
    }
}

#[expect(clippy::disallowed_methods, reason = "processors work in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(last: u8) -> Owner {
        Owner::Host(Prefix::of_host(std::net::Ipv4Addr::new(192, 0, 2, last).into()))
    }

    #[test]
    fn a_party_in_debt_waits_until_its_balance_recovers() {
        let (mut books, begin) = (Balances::default(), now());
        books.add(host(1), -(MAX_BALANCE + 10 * REFILL_RATE), begin);
        assert!(books.balance(host(1), begin + Duration::from_secs(9)) < 0);
        assert!(books.balance(host(1), begin + Duration::from_secs(11)) > 0);
        assert_eq!(books.balance(host(1), begin + Duration::from_secs(3600)), MAX_BALANCE);
        assert_eq!(books.balance(host(2), begin), MAX_BALANCE);
    }

    #[test]
    fn received_bytes_pay_for_hashed_ones() {
        let (mut books, begin) = (Balances::default(), now());
        books.add(host(1), -2 * MAX_BALANCE, begin);
        books.add(host(1), 3 * MAX_BALANCE / 2, begin);
        assert_eq!(books.balance(host(1), begin), MAX_BALANCE / 2);
        books.add(host(1), MAX_BALANCE, begin);
        assert_eq!(books.balance(host(1), begin), MAX_BALANCE, "nothing is saved up");
    }

    #[test]
    fn the_party_with_the_highest_balance_is_next() {
        let (mut books, begin) = (Balances::default(), now());
        books.add(host(1), -5, begin);
        books.waiting.extend([(0, host(1)), (1, host(2)), (2, host(2))]);
        let next =
            |books: &Balances| (0..3).filter(|ticket| books.is_next(*ticket, begin)).collect::<Vec<_>>();
        assert_eq!(next(&books), [1]);
        books.is_hashing = true;
        assert_eq!(next(&books), [0; 0]);
    }

    #[test]
    fn an_account_in_debt_is_not_evicted_for_new_ones() {
        let (mut books, begin) = (Balances::default(), now());
        books.add(Owner::SinglePeer, -2 * MAX_BALANCE, begin);
        for number in 0..2 * MAX_ACCOUNTS as u32 {
            let address = std::net::Ipv4Addr::from(number);
            books.add(Owner::Host(Prefix::of_host(address.into())), -1, begin);
        }
        assert_eq!(books.by_owner.len(), MAX_ACCOUNTS);
        assert!(books.balance(Owner::SinglePeer, begin) < 0);
    }
}
