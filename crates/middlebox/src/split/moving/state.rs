//! A split connection in bytes, as one station sends it to another.

use crate::split::pair::{CLIENT, SERVER};
use hopline_linux::repair::{State, Windows};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest state that is sent, in bytes: the kernel's buffers of both halves are a few megabytes each.
pub(super) const MAX_STATE: usize = 64 << 20;

/// A split connection on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionState {
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    /// Of the half to the client, and of the one to the server.
    pub(super) halves: [State; 2],
    /// Bytes that each half is still to send, and that its socket has not.
    pub(super) unsent: [Vec<u8>; 2],
}

impl ConnectionState {
    /// Local and remote address of a half.
    pub(super) const fn addresses(&self, half: usize) -> (SocketAddr, SocketAddr) {
        if half == CLIENT { (self.server, self.client) } else { (self.client, self.server) }
    }

    pub(super) fn is_of(&self, host: IpAddr) -> bool {
        [self.client, self.server].iter().any(|address| address.ip() == host)
    }

    pub(super) fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        [self.client, self.server].iter().for_each(|address| emit_address(&mut out, *address));
        for state in &self.halves {
            emit_half(&mut out, state);
        }
        for bytes in &self.unsent {
            emit_number(&mut out, bytes.len() as u32);
        }
        let queues = self.halves.iter().flat_map(|state| [&state.sent, &state.unread]);
        queues.chain(&self.unsent).for_each(|bytes| out.extend_from_slice(bytes));
        out
    }

    /// `None`: it is not of this form.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let (client, server) = (rest.address()?, rest.address()?);
        if client.is_ipv4() != server.is_ipv4() {
            return None;
        }
        let (mut halves, lengths): ([State; 2], [[u32; 2]; 2]) = {
            let ((first, of_first), (second, of_second)) = (rest.half()?, rest.half()?);
            ([first, second], [of_first, of_second])
        };
        let (to_client, to_server) = (rest.number()?, rest.number()?);
        for (half, [sent, unread]) in halves.iter_mut().zip(lengths) {
            half.sent = rest.take(sent)?.to_vec();
            half.unread = rest.take(unread)?.to_vec();
        }
        let waiting = [rest.take(to_client)?.to_vec(), rest.take(to_server)?.to_vec()];
        rest.0.is_empty().then_some(Self { client, server, halves, unsent: waiting })
    }
}

const _: () = assert!(CLIENT == 0 && SERVER == 1, "halves stand in this order");

/// Bits of the options that a half has.
const SCALES: u8 = 1;
const SACK: u8 = 2;
const TIMESTAMPS: u8 = 4;

fn emit_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&address.port().to_be_bytes());
}

fn emit_half(out: &mut Vec<u8>, state: &State) {
    let Windows { update, send, largest, receive, announced } = state.windows;
    let [send_buffer, receive_buffer] = state.buffer_sizes;
    let numbers = [
        state.unacknowledged,
        state.next,
        update,
        send,
        largest,
        receive,
        announced,
        state.mss,
        send_buffer,
        receive_buffer,
        state.timestamp.unwrap_or(0),
        state.sent.len() as u32,
        state.unread.len() as u32,
    ];
    numbers.iter().for_each(|number| emit_number(out, *number));
    let bit = |has: bool, bit: u8| if has { bit } else { 0 };
    let has = bit(state.scales.is_some(), SCALES)
        | bit(state.sack, SACK)
        | bit(state.timestamp.is_some(), TIMESTAMPS);
    let (peers, ours) = state.scales.unwrap_or((0, 0));
    out.extend_from_slice(&[has, peers, ours]);
}

fn emit_number(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Bytes that were not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len as usize)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.take(LEN as u32)?.first_chunk().copied()
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = match self.array()? {
            [4] => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)),
            [6] => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)),
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(self.array()?)))
    }

    /// A half without the bytes of its queues, and how many these are.
    fn half(&mut self) -> Option<(State, [u32; 2])> {
        let (unacknowledged, next) = (self.number()?, self.number()?);
        let windows = Windows {
            update: self.number()?,
            send: self.number()?,
            largest: self.number()?,
            receive: self.number()?,
            announced: self.number()?,
        };
        let mss = self.number()?;
        let buffers = [self.number()?, self.number()?];
        let timestamp = self.number()?;
        let lengths = [self.number()?, self.number()?];
        let [has, peers, ours] = self.array()?;
        let state = State {
            unacknowledged,
            sent: Vec::new(),
            next,
            unread: Vec::new(),
            windows,
            mss,
            scales: (has & SCALES != 0).then_some((peers, ours)),
            sack: has & SACK != 0,
            timestamp: (has & TIMESTAMPS != 0).then_some(timestamp),
            buffer_sizes: buffers,
        };
        Some((state, lengths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(client: &str, server: &str) -> ConnectionState {
        let half = |base: u32| State {
            unacknowledged: u32::MAX - base,
            sent: vec![base as u8; base as usize],
            next: base,
            unread: vec![b'u'; base as usize / 10],
            windows: Windows { update: 1, send: 2, largest: 3, receive: 4, announced: base },
            mss: 1460,
            scales: base.is_multiple_of(2).then_some((7, 9)),
            sack: base.is_multiple_of(2),
            timestamp: base.is_multiple_of(2).then_some(77),
            buffer_sizes: [5, 6],
        };
        ConnectionState {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
            halves: [half(10), half(5)],
            unsent: [b"to the client".to_vec(), Vec::new()],
        }
    }

    #[test]
    fn states_round_trip() {
        for (client, server) in [("10.9.0.1:4000", "10.8.0.1:80"), ("[fd09::1]:4000", "[fd08::1]:80")] {
            let moved = moved(client, server);
            assert_eq!(ConnectionState::parse(&moved.emit()), Some(moved));
        }
    }

    #[test]
    fn addresses_of_a_half_are_those_of_both_hosts_unchanged() {
        let moved = moved("10.9.0.1:4000", "10.8.0.1:80");
        assert_eq!(moved.addresses(CLIENT), (moved.server, moved.client));
        assert_eq!(moved.addresses(SERVER), (moved.client, moved.server));
        assert!(moved.is_of("10.9.0.1".parse().unwrap()) && !moved.is_of("10.9.0.2".parse().unwrap()));
    }

    #[test]
    fn truncated_or_oversized_states_are_rejected() {
        let bytes = moved("10.9.0.1:4000", "10.8.0.1:80").emit();
        for len in 0..bytes.len() {
            assert_eq!(ConnectionState::parse(&bytes[..len]), None);
        }
        assert_eq!(ConnectionState::parse(&[&bytes[..], &[0]].concat()), None);
        let mixed = moved("10.9.0.1:4000", "[fd08::1]:80").emit();
        assert_eq!(ConnectionState::parse(&mixed), None);
    }

    #[test]
    fn damaged_states_are_parsed_or_rejected_with_bounded_memory() {
        let bytes = moved("10.9.0.1:4000", "10.8.0.1:80").emit();
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Some(moved) = ConnectionState::parse(&damaged) {
                    assert_eq!(moved.emit().len(), damaged.len());
                }
            }
        }
    }
}
