//! Sending of datagrams, and their queue while the socket has no room.

use super::gso_burst::GsoBurst;
use super::protocol::{Fragments, Protocol, Transmit};
use super::socket::SendResult;
use super::table::Io;
use super::traffic::Traffic;
use std::collections::VecDeque;
use std::io;

/// Outgoing datagrams, and those that wait for room.
#[derive(Debug)]
pub(super) struct Egress<K> {
    /// GSO groups for which the socket had no room.
    blocked: VecDeque<GsoBurst<K>>,
    /// Empty groups, kept to reuse their memory.
    spare: [GsoBurst<K>; 2],
}

/// First datagram that could not be sent: its connection, and the error.
#[derive(Debug)]
pub(super) struct Failure<K> {
    pub(super) key: Option<K>,
    pub(super) error: io::Error,
}

impl<K> Default for Egress<K> {
    fn default() -> Self {
        Self { blocked: VecDeque::new(), spare: Default::default() }
    }
}

impl<K: Copy + PartialEq> Egress<K> {
    /// Sends all datagrams of the connections as long as there is room. A datagram that fails counts as lost on the path;
    /// the first failure is returned.
    pub(super) fn drain<P: Protocol<Key = K>>(
        &mut self,
        io: Io<'_>,
        protocol: &mut P,
        traffic: &mut Traffic,
    ) -> Option<Failure<K>> {
        let mut failure = None;
        let [mut train, mut next] = std::mem::take(&mut self.spare);
        while !self.is_blocked() {
            if train.is_full(io.socket.max_gso_segments()) {
                self.send(io, &mut train, traffic, &mut failure);
                continue;
            }
            let Some(datagram) = protocol.poll_transmit(io.now, train.buffer()) else {
                self.send(io, &mut train, traffic, &mut failure);
                break;
            };
            if !train.accepts(&datagram) {
                train.move_last_to(datagram, &mut next);
                self.send(io, &mut train, traffic, &mut failure);
                std::mem::swap(&mut train, &mut next);
            } else {
                if let Some(key) = datagram.key.filter(|_| !train.is_empty()) {
                    protocol.handle_gso_group(key);
                }
                train.push(datagram);
            }
            if datagram.fragments == Fragments::Forbidden {
                self.send_unfragmented(io, &mut train, datagram, protocol, traffic);
            }
        }
        if self.is_blocked() {
            self.blocked.extend((!train.is_empty()).then(|| std::mem::take(&mut train)));
        }
        self.spare = [train, next];
        failure
    }

    /// Returns whether to wait for room in the socket.
    pub(super) fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Retries the waiting datagrams. If all are sent, [`drain`](Self::drain) may continue.
    pub(super) fn resume(&mut self, io: Io<'_>, traffic: &mut Traffic) {
        for mut train in std::mem::take(&mut self.blocked) {
            if self.is_blocked() {
                self.blocked.push_back(train);
            } else {
                self.send(io, &mut train, traffic, &mut None);
            }
        }
    }

    /// Sends a group, or queues it if there is no room. Leaves an empty group.
    fn send(
        &mut self,
        io: Io<'_>,
        train: &mut GsoBurst<K>,
        traffic: &mut Traffic,
        failure: &mut Option<Failure<K>>,
    ) {
        while let Some(departure) = train.next_transmission() {
            let datagrams = departure.datagrams();
            match io.socket.send(departure) {
                SendResult::Sent => {
                    traffic.sent += datagrams as u64;
                    train.advance();
                }
                SendResult::Blocked => self.blocked.push_back(std::mem::take(train)),
                // The path may not support GSO.
                SendResult::Failed(_) if datagrams > 1 => train.disable_gso(),
                SendResult::Failed(error) => {
                    traffic.send_failures += 1;
                    failure.get_or_insert(Failure { key: train.key(), error });
                    train.advance();
                }
            }
        }
    }

    /// Sends the only datagram of the group with fragmentation forbidden. Without room it is dropped.
    fn send_unfragmented<P: Protocol<Key = K>>(
        &self,
        io: Io<'_>,
        train: &mut GsoBurst<K>,
        datagram: Transmit<K>,
        protocol: &mut P,
        traffic: &mut Traffic,
    ) {
        let departure = train.next_transmission().filter(|_| !self.is_blocked());
        match departure.map(|departure| io.socket.send_unfragmented(departure)) {
            Some(SendResult::Sent) => traffic.sent += 1,
            Some(SendResult::Failed(error)) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                if let Some(key) = datagram.key {
                    protocol.handle_mtu_exceeded(io.now, key, datagram.len);
                }
            }
            // The datagram counts as lost.
            Some(SendResult::Blocked | SendResult::Failed(_)) | None => {}
        }
        train.advance();
    }
}
