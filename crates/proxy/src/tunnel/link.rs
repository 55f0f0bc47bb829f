//! Link protocol within a tunnel, and the wire format of its frames.

use super::RecoveryScheme;
use crate::arq::{self, Arq};
use crate::dproxy::RecoveryStats;
use crate::dproxy::opaque::{self, Opaque};
use crate::pep::QueuePosition;
use bytes::Bytes;
use hopline_core::{Instant, Seq16};
use hopline_wire::ParseError;
use hopline_wire::arq as arq_wire;
use hopline_wire::dproxy::frame as opaque_wire;

/// Number of recent packets kept to restore others from parity: more than one parity frame covers.
const MAX_ARRIVED: usize = 256;

/// One end of a link.
#[derive(Debug)]
pub(super) enum Link {
    /// It requests missing packets.
    Nack(Box<Opaque<Bytes>>, RecentPackets),
    /// It acknowledges every frame.
    Arq(Box<Arq<Bytes>>),
}

/// Action of a link.
#[derive(Debug)]
pub(super) enum LinkAction {
    /// Send a frame.
    Send {
        queue_position: QueuePosition,
        frame: LinkFrame,
        /// Number of the packet in it.
        packet: Option<u32>,
    },
    /// Deliver a packet.
    Deliver(Bytes),
    /// Report that there is no room for a packet.
    Drop,
}

/// A frame to emit.
#[derive(Debug)]
pub(super) enum LinkFrame {
    Nack(opaque_wire::Frame),
    Arq(arq_wire::Frame),
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecoveryCounts {
    pub(super) retransmitted: u64,
    pub(super) restored: u64,
}

/// Recently received packets, by number.
#[derive(Debug)]
pub(super) struct RecentPackets(Vec<Option<(u32, Bytes)>>);

impl Link {
    /// Creates a link that has sent and received nothing.
    pub(super) fn new(repair: RecoveryScheme, life: u64) -> Self {
        let epoch = life as u16;
        match repair {
            RecoveryScheme::Nack(config) => {
                Self::Nack(Box::new(Opaque::new(config, epoch)), RecentPackets(vec![None; MAX_ARRIVED]))
            }
            RecoveryScheme::Arq(config) => {
                let config = arq::Config { parity_interval: None, ..config };
                Self::Arq(Box::new(Arq::new(config, epoch)))
            }
        }
    }

    pub(super) fn send(&mut self, now: Instant, packet: Bytes) {
        match self {
            Self::Nack(machine, _) => machine.send(now, packet),
            Self::Arq(machine) => machine.send(now, packet),
        }
    }

    /// Handles a frame. Parity that restores nothing is no error.
    pub(super) fn handle_frame(&mut self, now: Instant, bytes: &Bytes) -> Result<(), ParseError> {
        match self {
            Self::Nack(machine, arrived) => {
                let frame = opaque_wire::Frame::parse(bytes)?;
                if let opaque_wire::Body::Data { number, packet, .. } = &frame.body {
                    arrived.record(*number, packet.clone());
                }
                if let Some(frame) = opaque::Frame::from_wire(frame, |number| arrived.get(number)) {
                    machine.handle_frame(now, frame);
                }
            }
            Self::Arq(machine) => {
                let frame = arq_wire::Frame::parse(bytes)?;
                machine.handle_frame(now, arq::Frame::from_wire(frame));
            }
        }
        Ok(())
    }

    pub(super) fn on_queue_drop(&mut self, packet: u32) {
        match self {
            Self::Nack(machine, _) => machine.on_queue_drop(packet),
            Self::Arq(machine) => machine.on_queue_drop(Seq16(packet as u16)),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Nack(machine, _) => machine.handle_timeout(now),
            Self::Arq(machine) => machine.handle_timeout(now),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Nack(machine, _) => machine.poll_timeout(),
            Self::Arq(machine) => machine.poll_timeout(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<LinkAction> {
        match self {
            Self::Nack(machine, _) => {
                core::iter::from_fn(|| machine.poll_action()).find_map(from_nack_action)
            }
            Self::Arq(machine) => core::iter::from_fn(|| machine.poll_action()).find_map(from_arq_action),
        }
    }

    pub(super) fn counts(&self) -> RecoveryCounts {
        match self {
            Self::Nack(machine, _) => {
                let stats = machine.stats();
                RecoveryCounts { retransmitted: stats.replayed, restored: stats.restored }
            }
            Self::Arq(machine) => {
                let stats = machine.stats();
                RecoveryCounts { retransmitted: stats.retransmitted, restored: stats.restored }
            }
        }
    }

    pub(super) fn recovery(&self) -> Option<&RecoveryStats> {
        match self {
            Self::Nack(machine, _) => Some(machine.recovery()),
            Self::Arq(_) => None,
        }
    }
}

/// Converts an action. Released packets need no action.
fn from_nack_action(does: opaque::OpaqueAction<Bytes>) -> Option<LinkAction> {
    match does {
        opaque::OpaqueAction::Send(turn, frame) => {
            let packet = if let opaque::Frame::Data { number, .. } = frame { Some(number) } else { None };
            Some(LinkAction::Send { queue_position: turn, frame: LinkFrame::Nack(frame.to_wire()?), packet })
        }
        opaque::OpaqueAction::Deliver(packet) => Some(LinkAction::Deliver(packet)),
        opaque::OpaqueAction::ReportDrop(_) => Some(LinkAction::Drop),
        opaque::OpaqueAction::Release(_) => None,
    }
}

fn from_arq_action(does: arq::ArqAction<Bytes>) -> Option<LinkAction> {
    match does {
        arq::ArqAction::Send(turn, frame) => {
            let packet =
                if let arq::Frame::Data { number, .. } = frame { Some(number.0.into()) } else { None };
            Some(LinkAction::Send { queue_position: turn, frame: LinkFrame::Arq(frame.to_wire()?), packet })
        }
        arq::ArqAction::Deliver(packet) => Some(LinkAction::Deliver(packet)),
        arq::ArqAction::ReportDrop(_) | arq::ArqAction::Refuse(_) => Some(LinkAction::Drop),
        arq::ArqAction::Release(_) => None,
    }
}

impl LinkFrame {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nack(frame) => frame.emit(out),
            Self::Arq(frame) => frame.emit(out),
        }
    }
}

impl RecentPackets {
    fn record(&mut self, number: u32, packet: Bytes) {
        self.0[number as usize % MAX_ARRIVED] = Some((number, packet));
    }

    fn get(&self, number: u32) -> Option<Bytes> {
        let noted = self.0[number as usize % MAX_ARRIVED].as_ref();
        noted.filter(|(noted, _)| *noted == number).map(|(_, packet)| packet.clone())
    }
}
