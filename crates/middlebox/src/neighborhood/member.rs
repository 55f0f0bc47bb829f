//! Node with Neighborhood RED: passes channel times, frames and packets to the state machine, and executes its
//! actions.

use super::frame::{ALL, Frame, FrameContent, encode_notice};
use super::neighbours::NeighbourTable;
use super::packet;
use super::samples::{ChannelMeter, NoReading, Reading, Step};
use hopline_core::{Instant, LinkId, StateMachine};
use hopline_proxy::PacketVerdict;
use hopline_queue::neighborhood_red::{
    Arrival, ChannelTime, Destination, Event, NeighborhoodRed, OutgoingNotice, ReceivedNotice, Signal,
};
use hopline_queue::red::RedDecision;
use hopline_wire::dot11::MacAddr;
use std::net::Ipv4Addr;

/// State machine of a node, with counters.
#[derive(Debug)]
pub(super) struct Member {
    machine: NeighborhoodRed,
    meter: ChannelMeter,
    neighbours: NeighbourTable,
    own_address: (MacAddr, Ipv4Addr),
    port: u16,
    silent: bool,
    busy_permille: u64,
    counts: Counts,
}

/// Direction of a packet across the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// It is sent over the radio.
    Transmit,
    /// It was received over the radio.
    Receive,
}

/// Counters around the state machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) samples: u64,
    pub(super) started: u64,
    pub(super) missing: u64,
    pub(super) incomplete: u64,
    pub(super) malformed: u64,
    pub(super) silent: u64,
    pub(super) own: u64,
    pub(super) no_notices: u64,
    pub(super) packets: u64,
    pub(super) exempt: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
}

impl Member {
    pub(super) fn new(
        machine: NeighborhoodRed,
        meter: ChannelMeter,
        here: (MacAddr, Ipv4Addr),
        port: u16,
    ) -> Self {
        let config = machine.config();
        let hosts = NeighbourTable::new(config.neighbours.get().into(), config.neighbour_memory);
        Self {
            machine,
            meter,
            neighbours: hosts,
            own_address: here,
            port,
            silent: false,
            busy_permille: 0,
            counts: Counts::default(),
        }
    }

    pub(super) const fn machine(&self) -> &NeighborhoodRed {
        &self.machine
    }

    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns whether the source has been silent for so long that the channel counts as idle.
    pub(super) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Returns the busy share of the latest interval, in thousandths.
    pub(super) const fn busy_permille(&self) -> u64 {
        self.busy_permille
    }

    /// Processes the beginning of a received frame, with any destination.
    pub(super) fn handle_frame(&mut self, now: Instant, frame: &[u8]) {
        let Some(Frame { from, content: says }) = Frame::of(frame, self.port) else { return };
        if from == self.own_address.0 {
            // Another station repeats frames of this node.
            self.counts.own += 1;
            return;
        }
        match says {
            FrameContent::Address(ip) | FrameContent::Notice { from: ip, .. } => {
                self.neighbours.claim(now, from, ip)
            }
            FrameContent::Malformed => self.counts.no_notices += 1,
            FrameContent::Nothing => {}
        }
        if let Some(neighbour) = self.neighbours.record_frame(now, from) {
            self.machine.handle_signal(now, Signal::FrameReceived(neighbour));
        }
        if let FrameContent::Notice { from, notice } = says {
            self.machine.handle_packet(now, LinkId::ONLY, ReceivedNotice { from, notice });
        }
    }

    /// Returns the verdict on a packet that crosses the radio.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &[u8], way: Direction) -> PacketVerdict {
        self.counts.packets += 1;
        let Some(capability) = packet::capability(packet) else {
            self.counts.exempt += 1;
            return PacketVerdict::Forward;
        };
        let coming = match way {
            // The next hop only matters for relayed notices, which are not supported here.
            Direction::Transmit => Arrival::Outgoing { next_hop: Ipv4Addr::UNSPECIFIED },
            Direction::Receive => Arrival::Incoming,
        };
        match self.machine.admit(now, coming) {
            RedDecision::Enqueue => PacketVerdict::Forward,
            RedDecision::Signal if self.machine.config().action.marks(capability) => {
                self.counts.marked += 1;
                PacketVerdict::Replace(packet::mark_ce(packet))
            }
            RedDecision::Signal | RedDecision::Drop => {
                self.counts.dropped += 1;
                PacketVerdict::Drop
            }
        }
    }

    /// Returns the next wake-up time of the state machine.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout().map(|(at, _)| at)
    }

    /// Wakes the state machine, and reads the channel times if it asks for them.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        mut read: impl FnMut() -> Result<Reading, NoReading>,
    ) {
        self.machine.handle_timeout(now);
        while let Some(Event::Sample) = self.machine.poll_event() {
            let reading = read();
            if let Err(why) = reading {
                match why {
                    NoReading::Nothing => self.counts.missing += 1,
                    NoReading::Incomplete => self.counts.incomplete += 1,
                    NoReading::Malformed => self.counts.malformed += 1,
                }
            }
            let total = self.measure(now, reading.ok());
            self.machine.handle_signal(now, Signal::Channel(total));
        }
    }

    fn measure(&mut self, now: Instant, reading: Option<Reading>) -> ChannelTime {
        let before = self.meter.total();
        let step = self.meter.handle_reading(now, reading);
        let total = self.meter.total();
        match step {
            Step::Complete => self.counts.samples += 1,
            Step::Started => self.counts.started += 1,
            Step::NoProgress => {}
            Step::Silent => self.counts.silent += 1,
        }
        self.silent = step == Step::Silent || (self.silent && step != Step::Complete);
        let elapsed = total.elapsed.saturating_sub(before.elapsed).as_nanos();
        let busy = total.busy.saturating_sub(before.busy).as_nanos();
        self.busy_permille = busy.saturating_mul(1000).checked_div(elapsed).unwrap_or(self.busy_permille);
        total
    }

    /// Returns the next frame with a notice to send. If the MAC address of the neighbour is unknown, the frame is
    /// broadcast.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let OutgoingNotice { to, notice } = self.machine.poll_transmit(now)?;
        let to = match to {
            Destination::Neighbour(ip) => self.neighbours.mac_of(ip).map_or(ALL, |mac| (mac, to)),
            Destination::AllNeighbours => ALL,
        };
        Some(encode_notice(self.own_address, to, &notice, self.port))
    }
}
