//! Node with Neighborhood RED: passes channel times, frames and packets to the state machine, and executes its
//! actions.

use super::frame::{ALL, Frame, Says, with_notice};
use super::hosts::Hosts;
use super::packet;
use super::samples::{Meter, NoReading, Reading, Step};
use hopline_core::{Instant, LinkId, Machine};
use hopline_proxy::Fate;
use hopline_queue::neighborhood_red::{
    ChannelTime, Coming, Event, NeighborhoodRed, Outgoing, Received, Signal, To,
};
use hopline_queue::red::Verdict;
use hopline_wire::dot11::MacAddr;
use std::net::Ipv4Addr;

/// State machine of a node, with counters.
#[derive(Debug)]
pub(super) struct Member {
    machine: NeighborhoodRed,
    meter: Meter,
    hosts: Hosts,
    here: (MacAddr, Ipv4Addr),
    port: u16,
    silent: bool,
    busy_permille: u64,
    counts: Counts,
}

/// Direction of a packet across the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is sent over the radio.
    Down,
    /// It was received over the radio.
    Up,
}

/// Counters around the state machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) samples: u64,
    pub(super) began: u64,
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
    pub(super) fn new(machine: NeighborhoodRed, meter: Meter, here: (MacAddr, Ipv4Addr), port: u16) -> Self {
        let config = machine.config();
        let hosts = Hosts::new(config.neighbours.get().into(), config.neighbour_memory);
        Self { machine, meter, hosts, here, port, silent: false, busy_permille: 0, counts: Counts::default() }
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
    pub(super) fn hear(&mut self, now: Instant, frame: &[u8]) {
        let Some(Frame { from, says }) = Frame::of(frame, self.port) else { return };
        if from == self.here.0 {
            // Another station repeats frames of this node.
            self.counts.own += 1;
            return;
        }
        match says {
            Says::Address(ip) | Says::Notice { from: ip, .. } => self.hosts.claim(now, from, ip),
            Says::NoNotice => self.counts.no_notices += 1,
            Says::Nothing => {}
        }
        if let Some(neighbour) = self.hosts.hear(now, from) {
            self.machine.handle_signal(now, Signal::Heard(neighbour));
        }
        if let Says::Notice { from, notice } = says {
            self.machine.handle_packet(now, LinkId::ONLY, Received { from, notice });
        }
    }

    /// Returns the verdict on a packet that crosses the radio.
    pub(super) fn judge(&mut self, now: Instant, packet: &[u8], way: Way) -> Fate {
        self.counts.packets += 1;
        let Some(capability) = packet::capability(packet) else {
            self.counts.exempt += 1;
            return Fate::Pass;
        };
        let coming = match way {
            // The next hop only matters for relayed notices, which are not supported here.
            Way::Down => Coming::Down { next_hop: Ipv4Addr::UNSPECIFIED },
            Way::Up => Coming::Up,
        };
        match self.machine.admit(now, coming) {
            Verdict::Enter => Fate::Pass,
            Verdict::Notify if self.machine.config().action.marks(capability) => {
                self.counts.marked += 1;
                Fate::Replace(packet::marked(packet))
            }
            Verdict::Notify | Verdict::Drop => {
                self.counts.dropped += 1;
                Fate::Drop
            }
        }
    }

    /// Returns the next wake-up time of the state machine.
    pub(super) fn due(&self) -> Option<Instant> {
        self.machine.poll_timeout().map(|(at, _)| at)
    }

    /// Wakes the state machine, and reads the channel times if it asks for them.
    pub(super) fn wake(&mut self, now: Instant, mut read: impl FnMut() -> Result<Reading, NoReading>) {
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
        let step = self.meter.take(now, reading);
        let total = self.meter.total();
        match step {
            Step::Told => self.counts.samples += 1,
            Step::Began => self.counts.began += 1,
            Step::Waiting => {}
            Step::Silent => self.counts.silent += 1,
        }
        self.silent = step == Step::Silent || (self.silent && step != Step::Told);
        let elapsed = total.elapsed.saturating_sub(before.elapsed).as_nanos();
        let busy = total.busy.saturating_sub(before.busy).as_nanos();
        self.busy_permille = busy.saturating_mul(1000).checked_div(elapsed).unwrap_or(self.busy_permille);
        total
    }

    /// Returns the next frame with a notice to send. If the MAC address of the neighbour is unknown, the frame is
    /// broadcast.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let Outgoing { to, notice } = self.machine.poll_transmit(now)?;
        let to = match to {
            To::Neighbour(ip) => self.hosts.mac_of(ip).map_or(ALL, |mac| (mac, to)),
            To::Everyone => ALL,
        };
        Some(with_notice(self.here, to, &notice, self.port))
    }
}
