//! Fast retransmission after a handoff, seated in a mobile host.

use super::border::ipv4_of;
use crate::in_path::{InPath, Onward, Passage, Passing, Sending, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::{Account, Body, header};
use hopline_core::{Instant, Length};
use hopline_proxy::fast_retransmit::FastRetransmit;
use hopline_proxy::{Connection, Packet};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Middlebox of the host with this address.
#[derive(Debug)]
pub(crate) struct FastRetransmitSeat {
    machine: FastRetransmit,
    own: Ipv4Addr,
    /// Accounts of the packets of each connection.
    accounts: BTreeMap<Connection, Account>,
}

impl FastRetransmitSeat {
    pub(super) const fn new(machine: FastRetransmit, own: Ipv4Addr) -> Self {
        Self { machine, own, accounts: BTreeMap::new() }
    }
}

impl InPath for FastRetransmitSeat {
    fn egress(&mut self, now: Instant, passing: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        let packet = passing.packet();
        if let (Onward::Out { .. }, Body::Segment(Segment::Tcp(segment))) = (passing.onward, &packet.body)
            && packet.ip.src == self.own
        {
            let seen = Packet::new(&packet.ip, segment);
            self.accounts.insert(Connection::from_mobile(seen), packet.account);
            self.machine.pass_out(now, seen);
        }
        Passage::Pass
    }

    fn moved(&mut self) {
        self.machine.moved();
    }

    fn counts(&self) -> ProxyCounts {
        self.machine.stats().into()
    }

    fn wake(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll(&mut self, _now: Instant) -> Option<Wish> {
        let ack = self.machine.poll_transmit()?;
        let account = self.accounts.get(&ack.connection).copied().unwrap_or(Account::Foreign);
        let (segment, next_hop) = (ack.segment::<Length>(), ipv4_of(ack.connection.fixed.0));
        let ip = header(self.own, next_hop, Protocol::Tcp);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let body = Body::Segment(Segment::Tcp(segment));
        Some(Wish::Route(Sending {
            account,
            ip,
            body,
            len_bytes,
            next_hop,
            class: Class::Data,
            copy_of: None,
        }))
    }
}
