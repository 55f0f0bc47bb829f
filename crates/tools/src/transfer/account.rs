//! Accounting of the processor time that senders cause by hashing, and scheduling of the hashing.
//!
//! An offer of 78 bytes makes the receiver hash a file of any size. Each party therefore has an account in bytes: hashing
//! is deducted from it, and received data are added to it. A party without a positive balance waits. One block of one
//! file is hashed at a time, for the party with the highest balance, so that other conversations have the remaining
//! processors.

use super::error::Error;
use super::hashing::hash_into;
use super::trouble::Trouble;
use blake3::Hasher;
use hopline_core::Prefix;
use hopline_streams::wide::PublicKey;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Refusal text for a sender that has to wait.
pub(super) const BUSY: &str =
    "the receiver has compared much for this sender already, and compares more a little later";

/// Maximum balance, in bytes, which is also the initial one.
const ALLOWANCE: i64 = 1 << 30;
/// Refill rate in bytes per second: 2 to 5 % of a processor.
const REFILL: i64 = 32 << 20;
/// Bytes hashed in a turn.
const BLOCK: u64 = 4 << 20;
/// Maximum number of accounts.
const MOST: usize = 4096;
/// Interval at which a waiting conversation checks whether to continue.
const LOOK_UP: Duration = Duration::from_millis(200);

/// Owner of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Payer {
    /// A known peer.
    Key(PublicKey),
    /// Peers without a known key. An attacker can create any number of keys, so unknown ones do not count.
    Host(Prefix),
    /// The only peer.
    Only,
}

/// Access of a conversation to the account of its party.
#[derive(Clone, Debug)]
pub(super) struct Account {
    bank: Arc<Bank>,
    payer: Payer,
}

/// Accounts of all parties of a receiver.
#[derive(Debug, Default)]
pub(super) struct Bank {
    books: Mutex<Books>,
    /// Signals the end of a turn.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Books {
    balances: BTreeMap<Payer, Balance>,
    /// `true` while a conversation hashes a block.
    is_taken: bool,
    /// Waiting conversations, by time of arrival.
    waiting: BTreeMap<u64, Payer>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Balance {
    bytes: i64,
    at: Instant,
}

/// Right to hash a block.
struct Turn<'b>(&'b Bank);

impl Default for Account {
    fn default() -> Self {
        Self { bank: Arc::default(), payer: Payer::Only }
    }
}

impl Account {
    pub(super) const fn new(bank: Arc<Bank>, payer: Payer) -> Self {
        Self { bank, payer }
    }

    /// Returns whether a file of any length may be hashed: a negative balance recovers with time.
    pub(super) fn may_hash(&self) -> bool {
        self.bank.books().balance(self.payer, now()) > 0
    }

    /// Hashes the rest of `file`, and charges it. Calls `meanwhile` before each block and several times a second.
    pub(super) fn hash(
        &self,
        file: &mut File,
        doing: &str,
        meanwhile: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(u64, Hasher), Trouble> {
        let (mut hasher, mut total) = (Hasher::new(), 0);
        loop {
            meanwhile().map_err(Trouble::Fail)?;
            let turn = self.turn(meanwhile).map_err(Trouble::Fail)?;
            let read = hash_into(&mut hasher, file, BLOCK).map_err(|e| Trouble::of_io(doing, e))?;
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
        self.add(-2 * ALLOWANCE);
    }

    fn add(&self, bytes: i64) {
        self.bank.books().add(self.payer, bytes, now());
    }

    /// Waits for the right to hash a block. Calls `meanwhile` several times a second.
    ///
    /// # Errors
    /// That of `meanwhile`.
    fn turn(&self, meanwhile: &mut dyn FnMut() -> Result<(), Error>) -> Result<Turn<'_>, Error> {
        let mut books = self.bank.books();
        let ticket = books.next;
        books.next += 1;
        books.waiting.insert(ticket, self.payer);
        while !books.is_next(ticket, now()) {
            books = self.bank.ended.wait_timeout(books, LOOK_UP).expect(UNPOISONED).0;
            if books.is_next(ticket, now()) {
                break;
            }
            drop(books);
            let gone_on = meanwhile();
            books = self.bank.books();
            if let Err(error) = gone_on {
                books.waiting.remove(&ticket);
                return Err(error);
            }
        }
        books.waiting.remove(&ticket);
        books.is_taken = true;
        Ok(Turn(&self.bank))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.books().is_taken = false;
        self.0.ended.notify_all();
    }
}

const UNPOISONED: &str = "no thread panics while it holds the accounts";

impl Bank {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect(UNPOISONED)
    }
}

impl Books {
    fn balance(&self, payer: Payer, now: Instant) -> i64 {
        self.balances.get(&payer).map_or(ALLOWANCE, |balance| balance.at(now))
    }

    fn add(&mut self, payer: Payer, bytes: i64, now: Instant) {
        let sum = self.balance(payer, now).saturating_add(bytes).min(ALLOWANCE);
        self.balances.insert(payer, Balance { bytes: sum, at: now });
        if self.balances.len() > MOST {
            self.balances.retain(|_, balance| balance.at(now) < ALLOWANCE);
        }
        // The account of an expensive party must not be dropped for many cheap ones.
        if self.balances.len() > MOST
            && let Some(payer) =
                self.balances.iter().max_by_key(|(_, balance)| balance.at(now)).map(|(payer, _)| *payer)
        {
            self.balances.remove(&payer);
        }
    }

    fn is_next(&self, ticket: u64, now: Instant) -> bool {
        let first = |(ticket, payer): (&u64, &Payer)| (self.balance(*payer, now), std::cmp::Reverse(*ticket));
        let next = self.waiting.iter().max_by_key(|entry| first(*entry));
        !self.is_taken && next.is_some_and(|(next, _)| *next == ticket)
    }
}

impl Balance {
    fn at(self, now: Instant) -> i64 {
        let back = now.saturating_duration_since(self.at).as_millis().min(1 << 32) as i64 * (REFILL / 1000);
        self.bytes.saturating_add(back).min(ALLOWANCE)
    }
}

#[expect(clippy::disallowed_methods, reason = "processors work in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(last: u8) -> Payer {
        Payer::Host(Prefix::of_host(std::net::Ipv4Addr::new(192, 0, 2, last).into()))
    }

    #[test]
    fn a_party_without_a_balance_waits_until_it_has_one_again() {
        let (mut books, begin) = (Books::default(), now());
        books.add(host(1), -(ALLOWANCE + 10 * REFILL), begin);
        assert!(books.balance(host(1), begin + Duration::from_secs(9)) < 0);
        assert!(books.balance(host(1), begin + Duration::from_secs(11)) > 0);
        assert_eq!(books.balance(host(1), begin + Duration::from_secs(3600)), ALLOWANCE);
        assert_eq!(books.balance(host(2), begin), ALLOWANCE);
    }

    #[test]
    fn bytes_that_arrive_pay_for_those_that_were_hashed() {
        let (mut books, begin) = (Books::default(), now());
        books.add(host(1), -2 * ALLOWANCE, begin);
        books.add(host(1), 3 * ALLOWANCE / 2, begin);
        assert_eq!(books.balance(host(1), begin), ALLOWANCE / 2);
        books.add(host(1), ALLOWANCE, begin);
        assert_eq!(books.balance(host(1), begin), ALLOWANCE, "nothing is saved up");
    }

    #[test]
    fn the_party_that_has_cost_least_is_next() {
        let (mut books, begin) = (Books::default(), now());
        books.add(host(1), -5, begin);
        books.waiting.extend([(0, host(1)), (1, host(2)), (2, host(2))]);
        let next = |books: &Books| (0..3).filter(|ticket| books.is_next(*ticket, begin)).collect::<Vec<_>>();
        assert_eq!(next(&books), [1]);
        books.is_taken = true;
        assert_eq!(next(&books), [0; 0]);
    }

    #[test]
    fn an_account_in_debt_is_not_forgotten_for_new_ones() {
        let (mut books, begin) = (Books::default(), now());
        books.add(Payer::Only, -2 * ALLOWANCE, begin);
        for number in 0..2 * MOST as u32 {
            let address = std::net::Ipv4Addr::from(number);
            books.add(Payer::Host(Prefix::of_host(address.into())), -1, begin);
        }
        assert_eq!(books.balances.len(), MOST);
        assert!(books.balance(Payer::Only, begin) < 0);
    }
}
