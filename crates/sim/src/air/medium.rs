//! Radio medium between the nodes: which stations receive each other, their power and delay, and the
//! transmissions in the air.

use crate::ids::StationId;
use crate::outage::OutageSchedule;
use crate::packet::Handle;
use crate::spec::{Channel, NodeSpec, RadioInterface, RadioSpec};
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_radio::Rate;
use hopline_radio::mobility::{Cursor, Position, Trajectory};
use hopline_radio::phy;
use hopline_radio::phy::grid::CellGrid;
use hopline_radio::phy::obstacles::Obstacles;
use hopline_radio::phy::propagation::{Propagation, ShadowingDraw, propagation_delay};
use hopline_wire::dot11::Frame;

/// Distance beyond reach, in metres, within which candidates are collected where nodes move. A larger one
/// keeps the list valid for longer.
const GRID_SLACK_M: f64 = 50.0;

/// One receiver of a transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    pub(crate) station: StationId,
    pub(crate) link: LinkState,
    pub(crate) delay: Duration,
    pub(crate) power_w: f64,
}

/// State of the link from sender to receiver at the time at which a transmission arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// Received as the propagation model says.
    Up,
    /// In an outage: what arrives is sensed and cannot be decoded.
    Down,
}

/// A transmission in the air.
#[derive(Clone, Debug)]
pub(crate) struct AirTransmission {
    /// Node of the radio that sent it.
    pub(crate) from: NodeId,
    pub(crate) frame: Frame<Handle>,
    pub(crate) rate: Rate,
    pub(crate) bits: u32,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Insertion order for events at equal times. It is set at the start of the transmission for its begin events, and
    /// replaced at its end for its end events, so that the order does not depend on the listening stations.
    pub(crate) insertion_order: u64,
    /// Receivers, ordered by delay, then by station.
    pub(crate) receivers: Vec<Receiver>,
}

/// The medium that all wireless nodes share.
#[derive(Debug)]
pub(crate) struct Medium {
    config: phy::Config,
    antennas: Vec<Antenna>,
    /// Positions of the stations. Its node ids are station numbers.
    grid: CellGrid,
    /// Time at which the grid was refreshed.
    grid_at: Instant,
    obstacles: Obstacles,
    reach_m: f64,
    max_speed_mps: f64,
    candidates: Vec<CandidateReceivers>,
    transmissions: Vec<AirTransmission>,
    free: Vec<u32>,
    per_frame_shadowing: Option<ShadowingDraw>,
    /// Deviations of shadowing drawn per frame, by receiver.
    shadowing: Vec<RandomStream>,
    outages: OutageSchedule,
    /// Seed and run number of the draws.
    key: (u64, u64),
}

/// Position and channel of a station.
#[derive(Clone, Debug)]
struct Antenna {
    node: NodeId,
    trajectory: Trajectory,
    cursor: Cursor,
    channel: Channel,
}

impl Antenna {
    fn position(&mut self, now: Instant) -> Position {
        self.trajectory.position(now, &mut self.cursor)
    }
}

/// Stations that may hear a station.
#[derive(Clone, Debug)]
struct CandidateReceivers {
    valid_until: Instant,
    /// Final receivers if no node moves. Otherwise powers and delays are computed for each transmission. The order of the
    /// last one is kept, since the next sort then has little to do.
    receivers: Vec<Receiver>,
}

impl Medium {
    /// Creates the medium between the radios of `nodes`.
    pub(crate) fn new(
        radio: &RadioSpec,
        nodes: &[NodeSpec],
        radios: &[RadioInterface],
        outages: OutageSchedule,
        (seed, run): (u64, u64),
    ) -> Self {
        let config = radio.phy;
        let reach_m = config.propagation.reach_m(&config.radio, config.radio.cs_threshold_w);
        let max_speed_mps = nodes.iter().map(|node| node.trajectory.max_speed()).fold(0.0, f64::max);
        let antenna = |radio: &RadioInterface| Antenna {
            node: radio.node,
            trajectory: nodes[radio.node.index()].trajectory.clone(),
            cursor: Cursor::default(),
            channel: radio.channel,
        };
        let antennas: Vec<Antenna> = radios.iter().map(antenna).collect();
        let mut grid = CellGrid::new(reach_m + GRID_SLACK_M);
        for (station, antenna) in (0..).map(NodeId).zip(&antennas) {
            grid.place(station, antenna.trajectory.position_at(Instant::ZERO));
        }
        let stale = CandidateReceivers { valid_until: Instant::ZERO, receivers: Vec::new() };
        Self {
            config,
            antennas,
            grid,
            grid_at: Instant::ZERO,
            obstacles: Obstacles::new(&radio.obstacles),
            reach_m,
            max_speed_mps,
            candidates: vec![stale; radios.len()],
            transmissions: Vec::new(),
            free: Vec::new(),
            per_frame_shadowing: match config.propagation {
                Propagation::Shadowing(model) => Some(model.draw),
                _ => None,
            },
            shadowing: radios
                .iter()
                .map(|radio| RandomStream::keyed(seed, run, radio.key(), Purpose::Shadowing))
                .collect(),
            outages,
            key: (seed, run),
        }
    }

    /// Puts a frame of `from` into the air at `now`.
    pub(crate) fn start_transmission(
        &mut self,
        now: Instant,
        from: StationId,
        frame: Frame<Handle>,
        (rate, bits): (Rate, u32),
        airtime: Duration,
        order: u64,
    ) -> u32 {
        let sender = self.antennas[from.index()].node;
        let id = self.free.pop().unwrap_or_else(|| {
            let heard = Vec::with_capacity(32);
            self.transmissions.push(AirTransmission {
                from: sender,
                frame,
                rate,
                bits,
                start: now,
                end: now,
                insertion_order: order,
                receivers: heard,
            });
            (self.transmissions.len() - 1) as u32
        });
        let mut heard = core::mem::take(&mut self.transmissions[id as usize].receivers);
        self.find_receivers(now, from, &mut heard);
        if !self.outages.is_empty() {
            for h in &mut heard {
                let receiver = self.antennas[h.station.index()].node;
                if self.outages.covers(now + airtime + h.delay, sender, receiver) {
                    h.link = LinkState::Down;
                }
            }
        }
        self.transmissions[id as usize] = AirTransmission {
            from: sender,
            frame,
            rate,
            bits,
            start: now,
            end: now + airtime,
            insertion_order: order,
            receivers: heard,
        };
        id
    }

    /// Returns the stations that would decode a data frame of `from` at `now`, were nothing else on the air
    /// and nothing drawn per frame. No random number is drawn, and what is in the air remains as it is.
    pub(crate) fn in_range(&mut self, now: Instant, from: StationId) -> Vec<StationId> {
        let mut heard = Vec::new();
        self.find_candidates(now, from, &mut heard);
        let decodes = |h: &&Receiver| {
            let [from, to] = [from, h.station].map(|station| self.antennas[station.index()].node);
            h.power_w >= self.config.radio.rx_threshold_w && !self.outages.covers(now, from, to)
        };
        heard.iter().filter(decodes).map(|h| h.station).collect()
    }

    /// Returns the power, in watts, at which a station would hear another one at `now`, before anything is
    /// drawn for a frame.
    pub(crate) fn power_w(&mut self, now: Instant, from: StationId, to: StationId) -> Option<f64> {
        let mut heard = Vec::new();
        self.find_candidates(now, from, &mut heard);
        heard.iter().find(|h| h.station == to).map(|h| h.power_w)
    }

    /// Sets the place of the end of a transmission among the events of its instant.
    pub(crate) fn set_end_order(&mut self, id: u32, order: u64) {
        self.transmissions[id as usize].insertion_order = order;
    }

    pub(crate) fn transmission(&self, id: u32) -> &AirTransmission {
        &self.transmissions[id as usize]
    }

    /// Returns the number of packets in the air.
    pub(crate) fn packets_in_air(&self) -> usize {
        let carries = |flight: &AirTransmission| flight.frame.body().is_some();
        let over = self.free.iter().filter(|&&id| carries(self.transmission(id))).count();
        self.transmissions.iter().filter(|flight| carries(flight)).count() - over
    }

    /// Records that the transmission has ended at every receiver.
    pub(crate) fn finish_transmission(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Fills `heard` with the stations that receive a transmission of `from` at `now` at or above the carrier-sense
    /// threshold.
    fn find_receivers(&mut self, now: Instant, from: StationId, heard: &mut Vec<Receiver>) {
        self.find_candidates(now, from, heard);
        if self.per_frame_shadowing == Some(ShadowingDraw::PerFrame) {
            self.draw_shadowing(heard);
        }
    }

    /// Fills `heard` as [`find_receivers`](Self::find_receivers) does, without per-frame shadowing: it includes stations
    /// that a draw could lift over the threshold.
    fn find_candidates(&mut self, now: Instant, from: StationId, heard: &mut Vec<Receiver>) {
        if self.candidates[from.index()].valid_until <= now {
            self.collect_candidates(now, from);
        }
        heard.clear();
        if self.max_speed_mps > 0.0 {
            let mut candidates = core::mem::take(&mut self.candidates[from.index()].receivers);
            self.measure(now, from, &mut candidates);
            heard.extend_from_slice(&candidates);
            heard.retain(|h| self.is_received(h));
            self.candidates[from.index()].receivers = candidates;
        } else {
            heard.extend_from_slice(&self.candidates[from.index()].receivers);
        }
    }

    /// Computes power and delay of each candidate at `now`, and sorts by delay, then station. Power is zero beyond reach.
    fn measure(&mut self, now: Instant, from: StationId, candidates: &mut [Receiver]) {
        let origin = self.antennas[from.index()].position(now);
        let sender = self.antennas[from.index()].node;
        let (config, reach_squared) = (self.config, self.reach_m * self.reach_m);
        for h in candidates.iter_mut() {
            let antenna = &mut self.antennas[h.station.index()];
            let position = antenna.position(now);
            let squared = origin.distance_squared_m2(position);
            let distance_m = squared.sqrt();
            h.delay = propagation_delay(distance_m);
            if squared > reach_squared {
                h.power_w = 0.0;
                continue;
            }
            h.power_w = config.propagation.received_w(&config.radio, distance_m);
            if !self.obstacles.is_empty() {
                h.power_w *= self.obstacles.gain(origin, position);
            }
            if self.per_frame_shadowing == Some(ShadowingDraw::PerLink) {
                h.power_w *= config.propagation.link_gain(self.key.0, self.key.1, sender, antenna.node);
            }
        }
        candidates.sort_unstable_by_key(|h| (h.delay, h.station));
    }

    /// Returns whether a candidate hears the transmission that was measured.
    fn is_received(&self, candidate: &Receiver) -> bool {
        // A deviation drawn per frame may still lift the power over the threshold.
        candidate.power_w >= self.config.radio.cs_threshold_w
            || (self.per_frame_shadowing == Some(ShadowingDraw::PerFrame) && candidate.power_w > 0.0)
    }

    /// Draws a fresh deviation for each receiver of this frame.
    fn draw_shadowing(&mut self, heard: &mut Vec<Receiver>) {
        let config = self.config;
        heard.retain_mut(|h| {
            h.power_w *= config.propagation.frame_gain(&mut self.shadowing[h.station.index()]);
            h.power_w >= config.radio.cs_threshold_w
        });
    }

    /// Looks for the candidates of `from` in the grid.
    fn collect_candidates(&mut self, now: Instant, from: StationId) {
        self.refresh_grid(now);
        let origin = self.antennas[from.index()].position(now);
        let channel = self.antennas[from.index()].channel;
        let moving = self.max_speed_mps > 0.0;
        let radius_m = if moving { self.reach_m + GRID_SLACK_M } else { self.reach_m };
        let mut near = Vec::new();
        self.grid.within(origin, radius_m + self.grid_error_m(now), &mut near);
        let mut heard: Vec<Receiver> = near
            .into_iter()
            .map(|station| StationId(station.0))
            .filter(|&station| station != from && self.antennas[station.index()].channel == channel)
            .map(|station| Receiver { station, link: LinkState::Up, delay: Duration::ZERO, power_w: 0.0 })
            .collect();
        let valid_until = if moving {
            // Two nodes can approach each other at twice the highest speed.
            now + Duration::from_secs_f64(GRID_SLACK_M / (2.0 * self.max_speed_mps))
        } else {
            self.measure(now, from, &mut heard);
            heard.retain(|h| self.is_received(h));
            Instant::FAR_FUTURE
        };
        self.candidates[from.index()] = CandidateReceivers { valid_until, receivers: heard };
    }

    /// Keeps the grid's error below the slack.
    fn refresh_grid(&mut self, now: Instant) {
        if self.grid_error_m(now) > GRID_SLACK_M / 2.0 {
            for (station, antenna) in (0..).map(NodeId).zip(&mut self.antennas) {
                self.grid.place(station, antenna.position(now));
            }
            self.grid_at = now;
        }
    }

    /// Returns the distance, in metres, that a station can have moved since the grid was refreshed.
    fn grid_error_m(&self, now: Instant) -> f64 {
        now.since(self.grid_at).as_secs_f64() * self.max_speed_mps
    }
}
