//! The last ACKs of a mobile host, repeated when a handoff is over ([`hopline_proxy::fast_retransmit`]).

use crate::nfqueue::{Injector, MARK};
use hopline_core::{Instant, Length};
use hopline_linux::Error;
use hopline_proxy::fast_retransmit::{Config, FastRetransmit};
use hopline_proxy::{BareAck, InjectResult, Packet, QueuePosition};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::Segment;
use std::num::NonZeroU8;

/// Repeats what this host has acknowledged last, of each connection.
#[derive(Debug)]
pub(super) struct AckRepeater {
    machine: FastRetransmit,
    injector: Injector,
    send_failures: u64,
}

impl AckRepeater {
    /// Returns a repeater that sends each ACK `duplicates` times more.
    pub(super) fn open(duplicates: NonZeroU8) -> Result<Self, Error> {
        let machine = FastRetransmit::new(Config { duplicates, ..Config::default() });
        // With the mark no queue of this host sees the repeated ACKs.
        Ok(Self { machine, injector: Injector::new(MARK)?, send_failures: 0 })
    }

    /// Takes the headers of a packet that this host has sent.
    pub(super) fn handle_sent(&mut self, now: Instant, packet: &[u8]) {
        if let Ok((ip, segment)) = Segment::parse_headers(packet) {
            self.machine.pass_out(now, Packet::<Length>::new(&ip, &segment));
        }
    }

    /// The host is at another station, and its packets go by that: repeats its ACKs.
    pub(super) fn handle_handoff(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.machine.handle_handoff();
        while let Some(ack) = self.machine.poll_transmit() {
            self.send_failures += u64::from(
                self.injector.send(QueuePosition::Front, &build_packet(&ack)) != InjectResult::Sent,
            );
        }
    }

    /// ACKs that were repeated, and of those the ones that the system did not take.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.machine.stats().acks_made, self.send_failures]
    }
}

/// Returns the IP packet of an ACK.
fn build_packet(ack: &BareAck) -> Vec<u8> {
    let ip = Header::new(ack.connection.mobile.0, ack.connection.fixed.0, Protocol::Tcp);
    let segment = ack.segment::<bytes::Bytes>();
    let mut packet = Vec::with_capacity(ip.min_len() + segment.wire_len());
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet
}
