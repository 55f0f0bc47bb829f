//! Duplicate detection (802.11-2020 §10.3.2.14).

use hopline_core::Seq16;
use hopline_wire::dot11::MacAddr;

/// Most senders in the cache; a new one replaces the oldest entry.
const CAPACITY: usize = 64;

/// The last sequence number of each sender, in the order in which they were first heard.
#[derive(Clone, Debug, Default)]
pub(super) struct DuplicateCache {
    last: Vec<(MacAddr, Seq16)>,
}

impl DuplicateCache {
    /// Returns whether a frame repeats the sender's last one: same sequence number and the retry bit. Records it either way.
    pub(super) fn is_duplicate(&mut self, from: MacAddr, sequence: Seq16, retry: bool) -> bool {
        match self.last.iter_mut().find(|(sender, _)| *sender == from) {
            Some((_, last)) => {
                let repeated = retry && *last == sequence;
                *last = sequence;
                repeated
            }
            None => {
                if self.last.len() == CAPACITY {
                    self.last.remove(0);
                }
                self.last.push((from, sequence));
                false
            }
        }
    }
}
