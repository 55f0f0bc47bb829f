//! The machine: samples, notices, and DNPD, the drops (§5.3).

use super::channel::ChannelEstimator;
use super::config::{Config, Delivery, IncomingPolicy, NoticeLimits, StarvationTest};
use super::limiter::{NoticeEffect, NoticeLimiter};
use super::neighbours::NeighbourTable;
use super::notices::{ActiveNotice, ActiveNotices};
use super::types::{
    Arrival, Destination, Event, IgnoredReason, OutgoingNotice, ReceivedNotice, Signal, Stats, Timer,
};
use crate::red::{DropSpacing, RedDecision};
use hopline_core::{Instant, LinkId, RandomStream, StateMachine, TimerTable};
use hopline_wire::ncn::{NormalizedPb, Notice, StarvedNode};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Neighborhood RED at one node; see the [module](super).
#[derive(Clone, Debug)]
pub struct NeighborhoodRed {
    config: Arc<Config>,
    address: Ipv4Addr,
    random: RandomStream,
    estimator: ChannelEstimator,
    neighbours: NeighbourTable,
    notices: ActiveNotices,
    limiter: NoticeLimiter,
    /// Largest drop share in a notice since this node last checked whether to send one.
    max_received_pb: NormalizedPb,
    /// Arrival time of the latest packet of a flow.
    last_flow_packet: Option<Instant>,
    outgoing_spacing: DropSpacing,
    incoming_spacing: DropSpacing,
    timers: TimerTable<Timer, 3>,
    /// `true` if the check whether to send a notice is due, but waits for a sample that was due before it.
    check_after_sample: bool,
    transmits: VecDeque<OutgoingNotice>,
    /// Relayed notices that wait for their jitter to pass, in order of departure.
    pending_relays: VecDeque<(Instant, OutgoingNotice)>,
    events: VecDeque<Event>,
    stats: Stats,
}

impl NeighborhoodRed {
    /// Creates a node that starts at `now`. It first checks whether to send a notice at a random moment of the first TNCN,
    /// so that neighbours do not all check at once.
    #[must_use]
    pub fn new(
        config: impl Into<Arc<Config>>,
        address: Ipv4Addr,
        now: Instant,
        mut stream: RandomStream,
    ) -> Self {
        let config = config.into();
        let mut timers = TimerTable::new();
        timers.set(Timer::Sample, now + config.sampling);
        timers.set(Timer::Notice, now + stream.duration_below(config.notice_interval));
        Self {
            neighbours: NeighbourTable::new(config.neighbours.get().into(), config.neighbour_memory),
            config,
            address,
            random: stream,
            estimator: ChannelEstimator::default(),
            notices: ActiveNotices::default(),
            limiter: NoticeLimiter::default(),
            max_received_pb: NormalizedPb::ZERO,
            last_flow_packet: None,
            outgoing_spacing: DropSpacing::default(),
            incoming_spacing: DropSpacing::default(),
            timers,
            check_after_sample: false,
            transmits: VecDeque::new(),
            pending_relays: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Decides on an arriving packet of a flow. [`RedDecision::Signal`] means to drop it, or to mark it with that
    /// [action](Config::action). Routing messages and notices are not offered.
    pub fn admit(&mut self, now: Instant, coming: Arrival) -> RedDecision {
        self.last_flow_packet = Some(now);
        self.stats.packets += 1;
        let verdict = match coming {
            Arrival::Outgoing { next_hop } => {
                let share = self.notices.normalized_pb_to(now, next_hop);
                decide(share, self.estimator.average_outgoing, &mut self.outgoing_spacing, &mut self.random)
            }
            Arrival::Incoming if self.config.incoming == IncomingPolicy::Relayed => RedDecision::Enqueue,
            Arrival::Incoming => {
                let share = self.notices.normalized_pb(now);
                decide(share, self.estimator.average_incoming, &mut self.incoming_spacing, &mut self.random)
            }
        };
        let chosen = u64::from(verdict != RedDecision::Enqueue);
        match coming {
            Arrival::Outgoing { .. } => self.stats.selected_outgoing += chosen,
            Arrival::Incoming => self.stats.selected_incoming += chosen,
        }
        verdict
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// `avg`, the estimate of the neighbourhood's queue, packets.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.estimator.average
    }

    /// Returns `q`, the latest input of that average: the estimate from the latest interval alone, in packets.
    #[must_use]
    pub fn latest(&self) -> f64 {
        self.estimator.latest
    }

    /// `avgtx` and `avgrx`, the estimates of this node's outgoing and incoming queues, packets.
    #[must_use]
    pub fn node_averages(&self) -> [f64; 2] {
        [self.estimator.average_outgoing, self.estimator.average_incoming]
    }

    /// Returns the numbers of known neighbours and of notices that they relayed: at most [`neighbours`](Config::neighbours)
    /// each.
    #[must_use]
    pub fn table_sizes(&self) -> [usize; 2] {
        [self.neighbours.len(), self.notices.relayed_len()]
    }

    /// Returns the `normalizedPb` in force at `now`.
    #[must_use]
    pub fn normalized_pb(&self, now: Instant) -> NormalizedPb {
        self.notices.normalized_pb(now)
    }

    /// Algorithm 5.1: sends a notice if all four conditions hold.
    fn check_congestion(&mut self, now: Instant) {
        let normalized_pb = NormalizedPb::of(self.estimator.normalized_pb(&self.config));
        let told = core::mem::take(&mut self.max_received_pb);
        let on_a_path = self.last_flow_packet.is_some_and(|at| now.since(at) <= self.config.flow_memory);
        if normalized_pb == NormalizedPb::ZERO || !on_a_path || !self.is_starved(now) {
            self.limiter.end_deferral();
        } else if told <= normalized_pb || !self.limiter.must_defer(now, &self.config) {
            self.limiter.end_deferral();
            let notice =
                Notice { normalized_pb, lifetime: self.config.lifetime, starved_node: StarvedNode::Sender };
            self.stats.notices_sent += self.send_notice(now, notice);
        }
    }

    fn is_starved(&self, now: Instant) -> bool {
        let own = self.estimator.average_outgoing + self.estimator.average_incoming;
        let share = match self.config.starvation {
            StarvationTest::BelowShare(share) => share,
            StarvationTest::BelowFairShare => 1.0 / (self.neighbours.active(now).count() as f64 + 1.0),
        };
        own < share * self.estimator.average
    }

    /// Sends a notice, if the configuration sends notices. Returns the number sent.
    fn send_notice(&mut self, now: Instant, notice: Notice) -> u64 {
        let neighbour = match self.config.delivery {
            Delivery::Unicast => self.neighbours.draw(now, &mut self.random),
            Delivery::Broadcast => None,
            Delivery::None => return 0,
        };
        self.transmits.push_back(OutgoingNotice {
            to: neighbour.map_or(Destination::AllNeighbours, Destination::Neighbour),
            notice,
        });
        1
    }

    /// Handles a frame of `neighbour`. An address that cannot belong to another host is no neighbour.
    fn record_frame(&mut self, now: Instant, neighbour: Ipv4Addr) {
        let group = neighbour.is_broadcast() || neighbour.is_multicast() || neighbour.is_unspecified();
        if !group && neighbour != self.address {
            self.neighbours.record_frame(now, neighbour);
        }
    }

    /// Handles a notice, and relays it if required.
    fn handle_notice(
        &mut self,
        now: Instant,
        ReceivedNotice { from, notice }: ReceivedNotice,
    ) -> Result<(), IgnoredReason> {
        if from == self.address || notice.starved_node == StarvedNode::Neighbour(self.address) {
            return Err(IgnoredReason::AboutUs);
        }
        if let StarvedNode::Neighbour(sufferer) = notice.starved_node
            && (self.config.incoming == IncomingPolicy::Dropped || self.neighbours.is_active(now, sufferer))
        {
            return Err(IgnoredReason::NotRelevant);
        }
        match self.config.notice_limits {
            NoticeLimits::Off => self.record_frame(now, from),
            NoticeLimits::On(_) if !self.neighbours.contains(from) => {
                return Err(IgnoredReason::UnknownNeighbour);
            }
            NoticeLimits::On(limits) if !self.neighbours.admit_notice(now, from, limits.min_spacing) => {
                return Err(IgnoredReason::TooSoon);
            }
            NoticeLimits::On(_) => {}
        }
        let said = NoticeEffect { normalized_pb: notice.normalized_pb, lifetime: notice.lifetime };
        let believed = self.limiter.limit(now, said, &self.config);
        self.stats.capped += u64::from(believed != said);
        let NoticeEffect { normalized_pb, lifetime } = believed;
        let held = |from| ActiveNotice { starved_node: from, normalized_pb, expires: now + lifetime };
        match notice.starved_node {
            StarvedNode::Neighbour(sufferer) => {
                let limit = self.config.neighbours.get().into();
                self.notices.insert_relayed(now, from, held(sufferer), limit)
            }
            StarvedNode::Sender => {
                // A notice too short to cause drops is no claim to be more starved: honest notices hold for two intervals.
                if lifetime >= self.config.notice_interval {
                    self.max_received_pb = self.max_received_pb.max(normalized_pb);
                }
                self.notices.insert(now, held(from))?;
                self.relay_notice(now, from, believed);
                Ok(())
            }
        }
    }

    /// Relays a notice of `sufferer` to the nodes that send to this node.
    fn relay_notice(&mut self, now: Instant, sufferer: Ipv4Addr, believed: NoticeEffect) {
        // Half the renewal interval of notices: an early renewal is relayed, a flood is not.
        let spacing = self.config.notice_interval / 2;
        if self.config.incoming == IncomingPolicy::Relayed
            && self.neighbours.admit_relay(now, sufferer, spacing)
            && self.limiter.may_relay(now, &self.config)
        {
            let NoticeEffect { normalized_pb, lifetime } = believed;
            let notice = Notice { normalized_pb, lifetime, starved_node: StarvedNode::Neighbour(sufferer) };
            self.stats.notices_relayed += match self.config.delivery {
                Delivery::Broadcast => self.send_notice_with_jitter(now, notice),
                Delivery::Unicast | Delivery::None => self.send_notice(now, notice),
            };
        }
    }

    /// Broadcasts a notice after a random delay. Returns the number queued. At most as many notices wait as there are
    /// neighbours.
    fn send_notice_with_jitter(&mut self, now: Instant, notice: Notice) -> u64 {
        if self.config.relay_jitter.is_zero() {
            return self.send_notice(now, notice);
        }
        if self.pending_relays.len() >= usize::from(self.config.neighbours.get()) {
            return 0;
        }
        let due = now + self.random.duration_below(self.config.relay_jitter);
        let at = self.pending_relays.partition_point(|(other, _)| *other <= due);
        self.pending_relays.insert(at, (due, OutgoingNotice { to: Destination::AllNeighbours, notice }));
        self.set_relay_timer();
        1
    }

    /// Sends the relayed notices with an expired jitter.
    fn send_due_relays(&mut self, now: Instant) {
        while let Some((_, outgoing)) = self.pending_relays.pop_front_if(|(due, _)| *due <= now) {
            self.transmits.push_back(outgoing);
        }
        self.set_relay_timer();
    }

    fn set_relay_timer(&mut self) {
        self.timers
            .set(Timer::Relay, self.pending_relays.front().map_or(Instant::FAR_FUTURE, |(due, _)| *due));
    }
}

/// Returns the verdict on a packet for a given drop share and average queue (algorithm 5.2).
fn decide(
    share: NormalizedPb,
    average: f64,
    spacing: &mut DropSpacing,
    random: &mut RandomStream,
) -> RedDecision {
    if share == NormalizedPb::ZERO {
        spacing.reset();
        RedDecision::Enqueue
    } else if share == NormalizedPb::ONE {
        spacing.record_chosen();
        RedDecision::Drop
    } else {
        spacing.choose((share.get() * average).min(1.0), random)
    }
}

impl StateMachine for NeighborhoodRed {
    type Packet = ReceivedNotice;
    type Transmit = OutgoingNotice;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: ReceivedNotice) {
        self.stats.notices_received += 1;
        if let Err(why) = self.handle_notice(now, received) {
            self.stats.ignore(why);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Sample => {
                    self.timers.set(Timer::Sample, now + self.config.sampling);
                    self.events.push_back(Event::Sample);
                }
                Timer::Notice => {
                    self.timers.set(Timer::Notice, now + self.config.notice_interval);
                    // The current average includes the interval that ends now (§5.1), which must be sampled first.
                    if self.events.contains(&Event::Sample) {
                        self.check_after_sample = true;
                    } else {
                        self.check_congestion(now);
                    }
                }
                Timer::Relay => self.send_due_relays(now),
            }
        }
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        match signal {
            Signal::Channel(total) => {
                self.estimator.sample(total, &self.config);
                if core::mem::take(&mut self.check_after_sample) {
                    self.check_congestion(now);
                }
            }
            Signal::FrameReceived(neighbour) => self.record_frame(now, neighbour),
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<OutgoingNotice> {
        self.transmits.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
