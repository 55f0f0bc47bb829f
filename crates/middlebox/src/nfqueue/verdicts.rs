//! Buffer of verdicts: consecutive accepted packets share one message and system call.

use super::message::{put_pass_up_to, put_verdict};
use hopline_linux::netlink::MAX_VALUE;
use std::collections::BTreeSet;

/// Verdicts on packets of a queue, one for each in the order of the packets, apart from postponed ones.
#[derive(Debug)]
pub(super) struct Verdicts {
    queue: u16,
    /// Packets with a postponed verdict. While there is one, the rest are accepted one by one.
    postponed: BTreeSet<u32>,
    /// Last of the accepted packets that have no message yet.
    accepted_up_to: Option<u32>,
    messages: Vec<u8>,
}

/// Result of replacing a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum ReplaceResult {
    /// The packet is replaced.
    Replaced,
    /// The replacement is too long for a message; the original passes.
    TooLong,
}

impl Verdicts {
    pub(super) const fn new(queue: u16) -> Self {
        Self { queue, postponed: BTreeSet::new(), accepted_up_to: None, messages: Vec::new() }
    }

    /// Accepts a packet, and with it all earlier ones without a verdict.
    pub(super) fn pass(&mut self, id: u32) {
        if self.postponed.is_empty() {
            self.accepted_up_to = Some(id);
            return;
        }
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_ACCEPT, None);
    }

    /// Postpones the verdict on a packet.
    pub(super) fn postpone(&mut self, id: u32) {
        self.write_accepted();
        self.postponed.insert(id);
    }

    pub(super) fn drop(&mut self, id: u32) {
        self.write_accepted();
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_DROP, None);
    }

    /// Replaces a packet by `packet`.
    pub(super) fn replace(&mut self, id: u32, packet: &[u8]) -> ReplaceResult {
        if packet.len() > MAX_VALUE {
            self.pass(id);
            return ReplaceResult::TooLong;
        }
        self.write_accepted();
        self.postponed.remove(&id);
        put_verdict(&mut self.messages, self.queue, id, libc::NF_ACCEPT, Some(packet));
        ReplaceResult::Replaced
    }

    /// Returns the buffered bytes.
    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    /// Sends the buffered messages in order, if there are any.
    pub(super) fn flush(&mut self, send: impl FnOnce(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
        self.write_accepted();
        if self.messages.is_empty() {
            return Ok(());
        }
        let sent = send(&self.messages);
        self.messages.clear();
        sent
    }

    fn write_accepted(&mut self) {
        if let Some(id) = self.accepted_up_to.take() {
            put_pass_up_to(&mut self.messages, self.queue, id);
        }
    }
}
