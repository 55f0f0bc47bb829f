//! Link protocol within a tunnel, and the wire format of its frames.

use super::Repair;
use crate::arq::{self, Arq};
use crate::dproxy::RecoveryStats;
use crate::dproxy::opaque::{self, Opaque};
use crate::filter::Turn;
use bytes::Bytes;
use hopline_core::{Instant, Seq16};
use hopline_wire::ParseError;
use hopline_wire::arq as arq_wire;
use hopline_wire::dproxy::frame as opaque_wire;

/// Number of recent packets kept to restore others from parity: more than one parity frame covers.
const ARRIVED: usize = 256;

/// One end of a link.
#[derive(Debug)]
pub(super) enum Link {
    /// It requests missing packets.
    Asking(Box<Opaque<Bytes>>, Arrived),
    /// It acknowledges every frame.
    Acknowledging(Box<Arq<Bytes>>),
}

/// Action of a link.
#[derive(Debug)]
pub(super) enum Wish {
    /// Send a frame.
    Send {
        turn: Turn,
        frame: Frame,
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
pub(super) enum Frame {
    Asking(opaque_wire::Frame),
    Acknowledging(arq_wire::Frame),
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent_again: u64,
    pub(super) restored: u64,
}

/// Recently received packets, by number.
#[derive(Debug)]
pub(super) struct Arrived(Vec<Option<(u32, Bytes)>>);

impl Link {
    /// Creates a link that has sent and received nothing.
    pub(super) fn new(repair: Repair, life: u64) -> Self {
        let epoch = life as u16;
        match repair {
            Repair::Asking(config) => {
                Self::Asking(Box::new(Opaque::new(config, epoch)), Arrived(vec![None; ARRIVED]))
            }
            Repair::Acknowledging(config) => {
                let config = arq::Config { parity_every: None, ..config };
                Self::Acknowledging(Box::new(Arq::new(config, epoch)))
            }
        }
    }

    pub(super) fn send(&mut self, now: Instant, packet: Bytes) {
        match self {
            Self::Asking(machine, _) => machine.send(now, packet),
            Self::Acknowledging(machine) => machine.send(now, packet),
        }
    }

    /// Handles a frame. Parity that restores nothing is no error.
    pub(super) fn handle_frame(&mut self, now: Instant, bytes: &Bytes) -> Result<(), ParseError> {
        match self {
            Self::Asking(machine, arrived) => {
                let frame = opaque_wire::Frame::parse(bytes)?;
                if let opaque_wire::Body::Data { number, packet, .. } = &frame.body {
                    arrived.note(*number, packet.clone());
                }
                if let Some(frame) = opaque::Frame::from_wire(frame, |number| arrived.get(number)) {
                    machine.handle_frame(now, frame);
                }
            }
            Self::Acknowledging(machine) => {
                let frame = arq_wire::Frame::parse(bytes)?;
                machine.handle_frame(now, arq::Frame::from_wire(frame));
            }
        }
        Ok(())
    }

    pub(super) fn refused(&mut self, packet: u32) {
        match self {
            Self::Asking(machine, _) => machine.refused(packet),
            Self::Acknowledging(machine) => machine.refused(Seq16(packet as u16)),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Asking(machine, _) => machine.handle_timeout(now),
            Self::Acknowledging(machine) => machine.handle_timeout(now),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Asking(machine, _) => machine.poll_timeout(),
            Self::Acknowledging(machine) => machine.poll_timeout(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<Wish> {
        match self {
            Self::Asking(machine, _) => core::iter::from_fn(|| machine.poll()).find_map(asking),
            Self::Acknowledging(machine) => core::iter::from_fn(|| machine.poll()).find_map(acknowledging),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        match self {
            Self::Asking(machine, _) => {
                let stats = machine.stats();
                Counts { sent_again: stats.replayed, restored: stats.restored }
            }
            Self::Acknowledging(machine) => {
                let stats = machine.stats();
                Counts { sent_again: stats.sent_again, restored: stats.restored }
            }
        }
    }

    pub(super) fn recovery(&self) -> Option<&RecoveryStats> {
        match self {
            Self::Asking(machine, _) => Some(machine.recovery()),
            Self::Acknowledging(_) => None,
        }
    }
}

/// Converts an action. Released packets need no action.
fn asking(does: opaque::Does<Bytes>) -> Option<Wish> {
    match does {
        opaque::Does::Sends(turn, frame) => {
            let packet = if let opaque::Frame::Data { number, .. } = frame { Some(number) } else { None };
            Some(Wish::Send { turn, frame: Frame::Asking(frame.to_wire()?), packet })
        }
        opaque::Does::Delivers(packet) => Some(Wish::Deliver(packet)),
        opaque::Does::Loses(_) => Some(Wish::Drop),
        opaque::Does::Discards(_) => None,
    }
}

fn acknowledging(does: arq::Does<Bytes>) -> Option<Wish> {
    match does {
        arq::Does::Sends(turn, frame) => {
            let packet =
                if let arq::Frame::Data { number, .. } = frame { Some(number.0.into()) } else { None };
            Some(Wish::Send { turn, frame: Frame::Acknowledging(frame.to_wire()?), packet })
        }
        arq::Does::Delivers(packet) => Some(Wish::Deliver(packet)),
        arq::Does::Loses(_) | arq::Does::Refuses(_) => Some(Wish::Drop),
        arq::Does::Discards(_) => None,
    }
}

impl Frame {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Asking(frame) => frame.emit(out),
            Self::Acknowledging(frame) => frame.emit(out),
        }
    }
}

impl Arrived {
    fn note(&mut self, number: u32, packet: Bytes) {
        self.0[number as usize % ARRIVED] = Some((number, packet));
    }

    fn get(&self, number: u32) -> Option<Bytes> {
        let noted = self.0[number as usize % ARRIVED].as_ref();
        noted.filter(|(noted, _)| *noted == number).map(|(_, packet)| packet.clone())
    }
}
