//! Verdicts, held back until they are worth a system call: those that pass in a row are one message.

use super::message::{put_pass_up_to, put_verdict};
use crate::netlink::LONGEST_VALUE;
use std::collections::BTreeSet;

/// Verdicts on packets of a queue, which come in the order of the packets, one for each; but for those that are postponed.
#[derive(Debug)]
pub(super) struct Verdicts {
    queue: u16,
    /// Packets whose verdict is to come. While there is one, others pass one by one.
    postponed: BTreeSet<u32>,
    /// The last one of a row that passes, not written yet.
    passing: Option<u32>,
    messages: Vec<u8>,
}

/// Whether a packet can go on in place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Replaced {
    /// It does.
    Yes,
    /// It is too long for a message: the other goes on.
    TooLong,
}

impl Verdicts {
    pub(super) const fn new(queue: u16) -> Self {
        Self { queue, postponed: BTreeSet::new(), passing: None, messages: Vec::new() }
    }

    /// It passes. So does what the kernel has queued before it and nobody has answered.
    pub(super) fn pass(&mut self, id: u32) {
        if self.postponed.is_empty() {
            self.passing = Some(id);
            return;
        }
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_ACCEPT, None);
    }

    /// What becomes of it is said later.
    pub(super) fn postpone(&mut self, id: u32) {
        self.write_passing();
        self.postponed.insert(id);
    }

    pub(super) fn drop(&mut self, id: u32) {
        self.write_passing();
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_DROP, None);
    }

    /// `packet` goes on in its place.
    pub(super) fn replace(&mut self, id: u32, packet: &[u8]) -> Replaced {
        if packet.len() > LONGEST_VALUE {
            self.pass(id);
            return Replaced::TooLong;
        }
        self.write_passing();
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_ACCEPT, Some(packet));
        Replaced::Yes
    }

    /// Bytes held back.
    pub(super) const fn held(&self) -> usize {
        self.messages.len()
    }

    /// The messages since the last time, in order; there may be none.
    pub(super) fn take(&mut self, send: impl FnOnce(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
        self.write_passing();
        if self.messages.is_empty() {
            return Ok(());
        }
        let sent = send(&self.messages);
        self.messages.clear();
        sent
    }

    fn write_passing(&mut self) {
        if let Some(id) = self.passing.take() {
            put_pass_up_to(&mut self.messages, self.queue, id);
        }
    }
}
