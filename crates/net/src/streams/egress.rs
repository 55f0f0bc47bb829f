//! Sending, and what happens while the socket has no room.

use super::protocol::{Fragments, Protocol, Transmit};
use super::socket::Sent;
use super::table::Io;
use super::traffic::Traffic;
use super::train::Train;
use std::collections::VecDeque;
use std::io;

/// What leaves, and what waits for room.
#[derive(Debug)]
pub(super) struct Egress<K> {
    /// What the socket had no room for.
    stuck: VecDeque<Train<K>>,
    /// Empty; their memory is used again.
    spare: [Train<K>; 2],
}

/// Whose datagram could not be sent first, and why.
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
    /// Sends all that the connections want to send, as long as there is room. What fails to be sent counts as lost on the way;
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

    /// Whether to wait for room in the socket.
    pub(super) fn is_stuck(&self) -> bool {
        !self.stuck.is_empty()
    }

    /// Tries again. With room everywhere, [`drain`](Self::drain) may go on.
    pub(super) fn resume(&mut self, io: Io<'_>, traffic: &mut Traffic) {
        for mut train in std::mem::take(&mut self.stuck) {
            if self.is_stuck() {
                self.stuck.push_back(train);
            } else {
                self.send(io, &mut train, traffic, &mut None);
            }
        }
    }

    /// Sends a train, or keeps what there is no room for. Leaves an empty one.
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
                // Perhaps the path is not made for trains.
                Sent::Failed(_) if datagrams > 1 => train.uncouple(),
                Sent::Failed(error) => {
                    traffic.send_failures += 1;
                    failure.get_or_insert(Failure { key: train.key(), error });
                    train.depart();
                }
            }
        }
    }

    /// Sends a datagram, which is all of the train, that must not be cut into fragments on its way; or does not, if there is no
    /// room.
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
            // As good as lost.
            Some(Sent::Blocked | Sent::Failed(_)) | None => {}
        }
        train.depart();
    }
}
