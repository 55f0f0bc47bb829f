//! Sending of datagrams, and their queue while the socket has no room.

use super::protocol::{Fragments, Protocol, Transmit};
use super::socket::Sent;
use super::table::Io;
use super::traffic::Traffic;
use super::train::Train;
use std::collections::VecDeque;
use std::io;

/// Outgoing datagrams, and those that wait for room.
#[derive(Debug)]
pub(super) struct Egress<K> {
    /// GSO groups for which the socket had no room.
    stuck: VecDeque<Train<K>>,
    /// Empty groups, kept to reuse their memory.
    spare: [Train<K>; 2],
}

/// First datagram that could not be sent: its connection, and the error.
#[derive(Debug)]
pub(super) struct Failure<K> {
    pub(super) key: Option<K>,
    pub(super) error: io::Error,
}

impl<K> Default for Egress<K> {
    fn default() -> Self {
        Self { stuck: VecDeque::new(), spare: Default::default() }
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
        while !self.is_stuck() {
            if train.is_full(io.socket.longest_train()) {
                self.send(io, &mut train, traffic, &mut failure);
                continue;
            }
            let Some(datagram) = protocol.poll_transmit(io.now, train.buffer()) else {
                self.send(io, &mut train, traffic, &mut failure);
                break;
            };
            if !train.takes(&datagram) {
                train.shunt(datagram, &mut next);
                self.send(io, &mut train, traffic, &mut failure);
                std::mem::swap(&mut train, &mut next);
            } else {
                if let Some(key) = datagram.key.filter(|_| !train.is_empty()) {
                    protocol.train_leaves(key);
                }
                train.couple(datagram);
            }
            if datagram.fragments == Fragments::Forbidden {
                self.send_whole(io, &mut train, datagram, protocol, traffic);
            }
        }
        if self.is_stuck() {
            self.stuck.extend((!train.is_empty()).then(|| std::mem::take(&mut train)));
        }
        self.spare = [train, next];
        failure
    }

    /// Returns whether to wait for room in the socket.
    pub(super) fn is_stuck(&self) -> bool {
        !self.stuck.is_empty()
    }

    /// Retries the waiting datagrams. If all are sent, [`drain`](Self::drain) may continue.
    pub(super) fn resume(&mut self, io: Io<'_>, traffic: &mut Traffic) {
        for mut train in std::mem::take(&mut self.stuck) {
            if self.is_stuck() {
                self.stuck.push_back(train);
            } else {
                self.send(io, &mut train, traffic, &mut None);
            }
        }
    }

    /// Sends a group, or queues it if there is no room. Leaves an empty group.
    fn send(
        &mut self,
        io: Io<'_>,
        train: &mut Train<K>,
        traffic: &mut Traffic,
        failure: &mut Option<Failure<K>>,
    ) {
        while let Some(departure) = train.departure() {
            let datagrams = departure.datagrams();
            match io.socket.send(departure) {
                Sent::Yes => {
                    traffic.sent += datagrams as u64;
                    train.depart();
                }
                Sent::Blocked => self.stuck.push_back(std::mem::take(train)),
                // The path may not support GSO.
                Sent::Failed(_) if datagrams > 1 => train.uncouple(),
                Sent::Failed(error) => {
                    traffic.send_failures += 1;
                    failure.get_or_insert(Failure { key: train.key(), error });
                    train.depart();
                }
            }
        }
    }

    /// Sends the only datagram of the group with fragmentation forbidden. Without room it is dropped.
    fn send_whole<P: Protocol<Key = K>>(
        &self,
        io: Io<'_>,
        train: &mut Train<K>,
        datagram: Transmit<K>,
        protocol: &mut P,
        traffic: &mut Traffic,
    ) {
        let departure = train.departure().filter(|_| !self.is_stuck());
        match departure.map(|departure| io.socket.send_whole(departure)) {
            Some(Sent::Yes) => traffic.sent += 1,
            Some(Sent::Failed(error)) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                if let Some(key) = datagram.key {
                    protocol.cannot_leave(io.now, key, datagram.len);
                }
            }
            // The datagram counts as lost.
            Some(Sent::Blocked | Sent::Failed(_)) | None => {}
        }
        train.depart();
    }
}
