//! Fast retransmission after a handoff, seated in a mobile host.

use super::border::ipv4_of;
use crate::middlebox::{Action, Middlebox, MiddleboxPacket, PacketDirection, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, PacketAccount, header};
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
pub(crate) struct FastRetransmitMiddlebox {
    machine: FastRetransmit,
    local: Ipv4Addr,
    /// Accounts of the packets of each connection.
    accounts: BTreeMap<Connection, PacketAccount>,
}

impl FastRetransmitMiddlebox {
    pub(super) const fn new(machine: FastRetransmit, own: Ipv4Addr) -> Self {
        Self { machine, local: own, accounts: BTreeMap::new() }
    }
}

impl Middlebox for FastRetransmitMiddlebox {
    fn handle_egress(
        &mut self,
        now: Instant,
        passing: PassingPacket<'_>,
        _next_hop: Ipv4Addr,
    ) -> PathVerdict {
        let packet = passing.packet();
        if let (PacketDirection::Out { .. }, Body::Segment(Segment::Tcp(segment))) =
            (passing.onward, &packet.body)
            && packet.ip.src == self.local
        {
            let seen = Packet::new(&packet.ip, segment);
            self.accounts.insert(Connection::from_mobile(seen), packet.account);
            self.machine.pass_out(now, seen);
        }
        PathVerdict::Pass
    }

    fn handle_handoff(&mut self) {
        self.machine.handle_handoff();
    }

    fn counts(&self) -> MiddleboxCounts {
        self.machine.stats().into()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll_action(&mut self, _now: Instant) -> Option<Action> {
        let ack = self.machine.poll_transmit()?;
        let account = self.accounts.get(&ack.connection).copied().unwrap_or(PacketAccount::External);
        let (segment, next_hop) = (ack.segment::<Length>(), ipv4_of(ack.connection.fixed.0));
        let ip = header(self.local, next_hop, Protocol::Tcp);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let body = Body::Segment(Segment::Tcp(segment));
        Some(Action::Route(MiddleboxPacket {
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
