//! Rate-based congestion control.
//!
//! The rate follows the link. It grows while there is no queue, in small steps at first and then in larger ones. It is
//! reduced if the queueing delay is above [`queue_high`](super::ControlConfig::queue_high) for half a round trip, on ECN
//! marks, or on losses above the baseline. It then returns to the measured rate of the link, and below it until the queue
//! has drained. Losses at the baseline have no effect.
//!
//! ```text
//!                 first burst             link rate
//!                 has arrived             is found
//! InitialWindow ─────────────▶ Startup ─────────────▶ Cruise ◀────────────────────┐
//!                                 │                    │ │ │                      │
//!                           queue │   queue, marks or  │ │ │                      │
//!                        or marks │   losses in a      │ │ │ base delay expired   │
//!                                 ▼   queue; probe     │ │ └──────▶ ProbeRtt ─────┤
//!                               Drain ◀────────────────┘ │ excess losses,         │
//!                                 │   for competing      │ scheduled test         │
//!                       time over │   traffic            └────────▶ ProbeLoss ────┤
//!                                 ▼                                               │
//!                           EvaluateDrain ────────────────────────────────────────┤
//!                                 │                                               │
//!                                 │ queue does not drain,                         │
//!                                 │ or stands for long         queue is gone,     │
//!                                 ▼                            or stay too long   │
//!                            Competitive ─────────────────────────────────────────┘
//!
//! Every state but InitialWindow ──▶ Startup: long outage, or another path
//! Cruise, Drain, EvaluateDrain  ──▶ Startup: a faster link
//! ```
//!
//! | state | sends at | until |
//! |---|---|---|
//! | InitialWindow | no rate; ten packets in flight | the first burst has arrived |
//! | Startup | a rate that doubles up to the first estimate, then grows by a rising gain | the link carries less than the rate, the loss rate is too high, or a queue or a mark starts a drain |
//! | Cruise | the current rate, which grows while there is no queue | congestion, or a measurement is due |
//! | Drain | 75 % of the reduced rate | the queue is empty, or would be if only this flow had filled it |
//! | EvaluateDrain | the reduced rate | a round trip shows the effect of the drain |
//! | ProbeRtt | 20 % of the rate for a round trip, then the full rate | the packets sent at the low rate have arrived |
//! | ProbeLoss | 75 % of the rate | 24 packets show the cause of the losses |
//! | Competitive | 1.2 · CUBIC window / round-trip time | the queue is gone, or 192 round trips have passed |
//!
//! [`StateMachine::enter`] is the only place that assigns the state. [`state`] lists all transitions.

mod busy_period;
mod competing;
mod competitive;
mod jitter;
mod link_rate;
mod loss_estimator;
mod marks;
mod path_change;
mod queue_maximum;
mod rate_growth;
mod reaction;
mod samples;
mod state;
#[cfg(test)]
mod tests;

use super::config::ControlConfig;
use super::controller::cubic::PACING_GAIN;
use super::controller::{AckSample, Arrival, Controller, RoundOutcome, SendLimit};
use super::rtt::DELAY_TOLERANCE;
use busy_period::{BusyPeriod, Departure};
use competing::CompetingTraffic;
use competitive::CompetitiveWindow;
use hopline_core::{Duration, Instant};
use jitter::JitterEstimator;
use link_rate::LinkRateSampler;
pub(super) use link_rate::MaxFilter;
use loss_estimator::{LossEstimator, Verdict};
use marks::Marks;
use path_change::PathChange;
use queue_maximum::QueueMaximum;
use samples::{
    ExcessLosses, HalfRound, LossEvidence, MIN_ROUND_PACKETS, OldPacketsDrained, Round, RoundSample,
};
pub(super) use state::StateName;
use state::{State, StateMachine};

/// Factor of the rate while the base delay is measured. The queue drains at 80 % of the rate in a round trip. Own choice,
/// not swept.
const PROBE_RTT_GAIN: f64 = 0.2;
/// Age of the base delay after which it is measured again. ProbeRTTInterval of draft-ietf-ccwg-bbr.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Least rate, packets per round trip. With one, and as many flows as the path holds packets, 1.8 to 2.2 packets are sent per delivered
/// packet on the worst of 200 random networks, in place of 1.4 to 1.8.
const MIN_PACKETS_PER_ROUND: f64 = 0.125;

/// Rate controller of one connection: TPA-wide's own congestion control. Rates are bytes per second, headers included.
#[derive(Clone, Debug)]
pub struct RateController {
    config: ControlConfig,
    /// Length of a full packet, bytes.
    packet_bytes: f64,
    state: StateMachine,
    rate: f64,
    /// Rate a round trip ago, of the packets that arrive now.
    rate_before: f64,
    sampler: LinkRateSampler,
    /// Measured rate of the link, maximum of the last rounds.
    link_rates: MaxFilter<8>,
    /// Rate of the link by the last sample in which it was saturated, or by a higher one.
    latest_link_rate: f64,
    /// Age of the base delay after which it is measured again.
    probe_rtt_after: Duration,
    /// Delivery rate, maximum of the last rounds; total of delivered bytes.
    delivery_rates: MaxFilter<8>,
    delivered_bytes: u64,
    losses: LossEstimator,
    round: Round,
    half_round: HalfRound,
    /// Round trips until the next test of the losses, and interval between tests.
    rounds_to_loss_test: u32,
    loss_test_interval: u32,
    /// Rate that losses or marks without a visible queue showed to be too high, as at a policer. Growth is slow near it.
    policer_rate: f64,
    excess_losses: ExcessLosses,
    /// `true` if losses of the last round trip were above the baseline.
    is_lossy: bool,
    jitter: JitterEstimator,
    /// Longest recent queue.
    queue_maximum: QueueMaximum,
    /// `true` if a packet of the last round trip had no queueing delay, jitter aside.
    no_queue: bool,
    /// Detection of competing traffic.
    competing: CompetingTraffic,
    path_change: PathChange,
    /// Rate before the first of the drains without relief.
    rate_before_drains: f64,
    /// CUBIC window of competitive mode.
    competitive_window: Option<CompetitiveWindow>,
    marks: Marks,
    /// Rate at which the queue empties.
    busy_period: BusyPeriod,
    /// Limit to the sending of the packets that arrived last.
    last_limit: SendLimit,
    reductions: u64,
}

impl RateController {
    /// Creates the controller. `packet`: bytes of a full packet, headers included.
    #[must_use]
    pub fn new(config: ControlConfig, packet: u32) -> Self {
        Self {
            config,
            packet_bytes: packet.into(),
            state: StateMachine::new(),
            rate: 0.0,
            rate_before: 0.0,
            sampler: LinkRateSampler::default(),
            link_rates: MaxFilter::new(),
            latest_link_rate: 0.0,
            probe_rtt_after: PROBE_RTT_INTERVAL,
            delivery_rates: MaxFilter::new(),
            delivered_bytes: 0,
            losses: LossEstimator::new(config.loss_threshold, config.max_unobserved_loss),
            round: Round::new(Instant::ZERO, 0),
            half_round: HalfRound::new(Instant::ZERO),
            rounds_to_loss_test: config.competing.probe_rounds,
            loss_test_interval: config.competing.probe_rounds,
            policer_rate: f64::INFINITY,
            excess_losses: ExcessLosses::No,
            is_lossy: false,
            jitter: JitterEstimator::default(),
            queue_maximum: QueueMaximum::default(),
            no_queue: false,
            competing: CompetingTraffic::new(config.competing, config.growth_interval),
            path_change: PathChange::default(),
            rate_before_drains: 0.0,
            competitive_window: None,
            marks: Marks::new(),
            busy_period: BusyPeriod::new(),
            last_limit: SendLimit::Path,
            reductions: 0,
        }
    }
}

impl Controller for RateController {
    fn pacing_rate(&self) -> Option<f64> {
        match self.state.current() {
            State::InitialWindow => None,
            State::Drain { .. } => Some(self.rate * self.config.drain_gain),
            State::ProbeRtt { settled: OldPacketsDrained::NotYet } => Some(self.rate * PROBE_RTT_GAIN),
            State::Competitive(_) => Some(self.rate * PACING_GAIN),
            State::ProbeRtt { settled: OldPacketsDrained::Yes }
            | State::Startup { .. }
            | State::Cruise { .. }
            | State::EvaluateDrain { .. }
            | State::ProbeLoss { .. } => Some(self.rate),
        }
    }

    fn window(&self, least_rtt: Duration, reordering: Duration, together: u32) -> u64 {
        match self.state.current() {
            State::InitialWindow => {
                return (f64::from(self.config.initial_window) * self.packet_bytes) as u64;
            }
            State::Competitive(cubic) => return (cubic.window() * self.packet_bytes) as u64,
            _ => {}
        }
        let seconds = least_rtt.as_secs_f64() * self.config.headroom + reordering.as_secs_f64();
        (self.rate * seconds + f64::from(together) * self.packet_bytes) as u64
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        (self.rate > 0.0)
            .then(|| Duration::from_secs_f64((f64::from(packets) * self.packet_bytes / self.rate).min(10.0)))
    }

    fn is_loss_below(&self, share: f64) -> bool {
        !matches!(self.state.current(), State::InitialWindow | State::Startup { .. })
            && self.losses.baseline() < share
    }

    fn saw_empty_queue(&self) -> bool {
        self.no_queue
    }

    fn reductions(&self) -> u64 {
        self.reductions
    }

    fn on_established(&mut self) {
        self.sampler.clear();
        self.link_rates.clear();
    }

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        let outcome = self.process(ack);
        if self.is_beyond_first_burst() {
            self.rate = self.rate.max(self.min_rate(ack.srtt));
        }
        outcome
    }

    fn on_loss(&mut self, packets: u64) {
        self.losses.record(0, packets, 0);
        self.round.packets += packets;
    }

    fn discard_samples(&mut self) {
        self.sampler.clear();
        self.rate_before = 0.0;
    }

    fn on_base_delay_reset(&mut self) {
        self.queue_maximum = QueueMaximum::default();
        self.losses.forget_path();
    }

    fn restart(&mut self, now: Instant, next_number: u64) {
        self.rate /= 2.0;
        self.loss_test_interval = self.config.competing.probe_rounds;
        self.rounds_to_loss_test = self.loss_test_interval;
        self.discard_samples();
        self.link_rates.clear();
        self.delivery_rates.clear();
        self.losses.reset_counts();
        self.jitter = JitterEstimator::default();
        self.on_base_delay_reset();
        if self.is_beyond_first_burst() {
            self.enter_startup(self.rate, next_number);
        }
        self.start_round(now, next_number);
    }
}

impl RateController {
    /// Returns the name of the current state.
    pub(super) const fn state_name(&self) -> StateName {
        self.state.current().name()
    }

    /// Returns the transitions since the last call.
    #[cfg(test)]
    pub(super) fn take_history(&mut self) -> Vec<state::Transition> {
        self.state.take_history()
    }

    /// Returns whether there is an estimate of the path.
    fn is_beyond_first_burst(&self) -> bool {
        !matches!(self.state.current(), State::InitialWindow)
    }

    /// Returns the least rate. Below two packets in flight a flow paces slower, so that flows share a path that holds less than a packet
    /// of each.
    fn min_rate(&self, srtt: Duration) -> f64 {
        MIN_PACKETS_PER_ROUND * self.packet_bytes / srtt.as_secs_f64().max(1e-3)
    }

    fn process(&mut self, ack: &AckSample) -> RoundOutcome {
        let newest = ack.newest.map(|(number, arrival, delay)| (number, arrival, self.queueing_delay(delay)));
        if let Some((_, _, queue)) = newest {
            self.losses.set_level(self.queue_maximum.record(ack.now, queue, ack.srtt));
        }
        self.losses.record(ack.packets, ack.lost, ack.spurious_losses);
        self.round.delivered += ack.delivered;
        self.delivered_bytes += ack.delivered;
        self.round.packets += ack.lost;
        // The spacing of the first burst shows the rate of the link. Short packets, as of a handshake, are no part of it.
        if newest.is_some() || self.is_beyond_first_burst() {
            self.round.packets += ack.packets;
        }
        if ack.limit == SendLimit::Application {
            self.round.limit = SendLimit::Application;
        }
        self.marks.record(ack.marks);
        let Some((number, arrival, queue)) = newest else { return RoundOutcome::NotOver };
        self.sample_link_rate(arrival, ack);
        self.round.record_queue(queue);
        self.half_round.record(queue);
        match *self.state.current() {
            State::InitialWindow => self.first_estimate(ack),
            State::Startup { .. } if ack.limit == SendLimit::Path => {
                self.measure_startup((number, arrival), ack);
            }
            State::Drain { until, was } if ack.now >= until => {
                self.state.enter(State::EvaluateDrain { was });
                self.start_round(ack.now, ack.next_number);
            }
            _ => {}
        }
        if ack.marks > 0 {
            self.on_mark(number, queue, ack);
        }
        if queue >= self.queue_low() {
            let departure = Departure { at_us: arrival.at_us, delivered: self.delivered_bytes };
            self.busy_period.record(departure, self.jitter.curvature());
        } else if let Some(rate) = self.busy_period.end() {
            self.on_empty_queue(rate, ack);
        }
        if self.half_round.is_over(ack.now, ack.srtt) {
            self.on_half_round(ack);
        }
        let over = number >= self.round.end
            && self.round.packets >= MIN_ROUND_PACKETS
            && ack.now.since(self.round.since) >= ack.min_round
            && self.is_beyond_first_burst();
        if !over {
            return RoundOutcome::NotOver;
        }
        let outcome = self.on_round(ack);
        if outcome == RoundOutcome::ProbeRtt {
            self.state.enter(State::ProbeRtt { settled: OldPacketsDrained::NotYet });
            self.probe_rtt_after = ack.base_age + PROBE_RTT_INTERVAL;
            self.losses.reset_counts();
        }
        outcome
    }

    /// Measures the rate of the link by an arrival. A sample over a pause of the application has the rate of the application, even if a
    /// queue of others has grown in the pause and made it look saturated.
    fn sample_link_rate(&mut self, arrival: Arrival, ack: &AckSample) {
        let before = core::mem::replace(&mut self.last_limit, ack.limit);
        if (before, ack.limit) == (SendLimit::Application, SendLimit::Path) {
            self.sampler.clear();
        }
        let Some(rate) = self.sampler.sample(arrival, ack.srtt / 2) else { return };
        self.link_rates.sample(rate);
        // Packets that arrive as fast as they were sent show what the link carries at least, not at most.
        let is_at_most = ack.limit == SendLimit::Path && self.sampler.is_saturated();
        let least = if is_at_most { 0.0 } else { self.latest_link_rate };
        self.latest_link_rate = rate.max(least);
    }

    /// Returns the queueing delay of a packet with this delay.
    fn queueing_delay(&mut self, delay: Duration) -> Duration {
        self.jitter.record(delay);
        // The delivery rate counts, not the sending rate: a flow that sends more would have more attributed to jitter.
        let gap = self.packet_bytes / self.delivery_rates.get().max(1.0);
        delay.saturating_sub(self.jitter.attributed_to_jitter(self.config.jitter, gap))
    }

    /// Ends a half-round: half a round trip, or more with few acknowledgments.
    fn on_half_round(&mut self, ack: &AckSample) {
        let queue = core::mem::replace(&mut self.half_round, HalfRound::new(ack.now)).queue;
        match *self.state.current() {
            State::Startup { .. } | State::Cruise { .. } if queue > self.queue_high() => {
                self.on_congestion(ack, queue);
            }
            // Nothing is left to drain: the link may have become faster.
            State::Drain { was, .. } if queue < self.queue_low() => self.end_drain_early(was, queue, ack),
            _ => {}
        }
    }

    fn on_round(&mut self, ack: &AckSample) -> RoundOutcome {
        let round = self.round;
        let seconds = ack.now.since(round.since).as_secs_f64().max(1e-6);
        let sample = RoundSample {
            link_rate: self.link_rates.latest(),
            delivered: round.delivered as f64 / seconds,
            sent: core::mem::replace(&mut self.rate_before, self.rate),
            queue: round.shortest_queue(),
        };
        if ack.base_age < PROBE_RTT_INTERVAL {
            self.probe_rtt_after = PROBE_RTT_INTERVAL;
        }
        self.delivery_rates.sample(sample.delivered);
        // A round trip in which the application had no data shows a lower bound only.
        if round.limit == SendLimit::Path {
            self.link_rates.on_round();
            self.delivery_rates.on_round();
        }
        self.queue_maximum.on_round();
        self.no_queue = sample.queue <= DELAY_TOLERANCE;
        self.competing.on_round(ack.now, self.queue_state(sample));
        self.round = Round::new(ack.now, ack.next_number);
        // Where few acknowledgments come in a round trip, it goes on.
        if self.half_round.has_samples() {
            self.half_round = HalfRound::new(ack.now);
        }
        self.is_lossy = self.losses.is_above_baseline();
        let is_marked = self.marks.on_round();
        let mut has_path_changed = false;
        match *self.state.current() {
            State::InitialWindow | State::Drain { .. } => {}
            State::Startup { .. } | State::Cruise { .. } if round.limit == SendLimit::Application => {
                self.losses.reset_counts()
            }
            State::Startup { .. } => {}
            State::EvaluateDrain { was } => {
                has_path_changed = self.evaluate_drain(was, [sample.queue, round.longest_queue()], ack);
            }
            State::ProbeRtt { settled: OldPacketsDrained::NotYet } => self.state.set_settled(),
            State::ProbeRtt { settled: OldPacketsDrained::Yes } => self.resume_cruise(),
            State::Cruise { .. } if ack.base_age > self.probe_rtt_after => return RoundOutcome::ProbeRtt,
            State::Competitive(cubic) => self.on_competitive_round(cubic, is_marked, ack),
            State::ProbeLoss { settled: OldPacketsDrained::NotYet, .. } => {
                self.losses.reset_counts();
                self.state.set_settled();
            }
            State::ProbeLoss { settled: OldPacketsDrained::Yes, rate, of } => self.finish_loss_test(rate, of),
            State::Cruise { step } => match self.losses.on_round(self.baseline_updates(step, sample)) {
                Verdict::Excess(_) if sample.queue >= self.queue_low() => {
                    self.on_congestion(ack, sample.queue)
                }
                // A test among many flows shows nothing.
                Verdict::Excess(share) if !self.losses.is_path_observed() => {
                    self.rate = self.rate.min(self.sufficient_rate(share, sample.sent));
                    self.policer_rate = self.rate;
                    self.reductions += 1;
                    self.reset_losses();
                    self.state.continue_cruise(1.0);
                }
                Verdict::Excess(_) if self.excess_losses == ExcessLosses::No => {
                    self.excess_losses = ExcessLosses::Once
                }
                Verdict::Excess(share) => {
                    self.start_loss_test(LossEvidence { loss_rate: share, sent: sample.sent }, ack.srtt)
                }
                Verdict::Undecided if self.excess_losses == ExcessLosses::Once => {}
                Verdict::Baseline(share) if self.is_loss_test_due() => {
                    self.start_loss_test(LossEvidence { loss_rate: share, sent: sample.sent }, ack.srtt);
                }
                Verdict::Undecided | Verdict::Baseline(_) => {
                    self.excess_losses = ExcessLosses::No;
                    self.grow(step, sample, ack);
                }
            },
        }
        if round.limit == SendLimit::Path
            && !matches!(self.state.current(), State::InitialWindow | State::Startup { .. })
        {
            self.rate = self.rate.min(self.highest_supported_rate());
        }
        if has_path_changed { RoundOutcome::PathChanged } else { RoundOutcome::Over }
    }

    /// Returns the highest rate that the recent delivery rate supports. The sum of the rates of all flows is then not
    /// much above the rate of the link, even if flows misclassify congestive losses. While losses persist, a flow has no room to grow.
    fn highest_supported_rate(&self) -> f64 {
        let headroom = if self.is_lossy { 1.0 } else { self.config.headroom };
        headroom * self.delivery_rates.get() / (1.0 - self.losses.baseline())
    }

    fn start_round(&mut self, now: Instant, next_number: u64) {
        self.round = Round::new(now, next_number);
        self.half_round = HalfRound::new(now);
    }

    fn queue_high(&self) -> Duration {
        self.config.queue_high + self.own_queue_time()
    }

    /// Returns the part of the queue bound for the packets of the flow.
    fn own_queue_time(&self) -> Duration {
        let of_own = self.config.queue_packets * self.packet_bytes / self.rate.max(1.0);
        Duration::from_secs_f64(of_own.min(10.0))
    }

    fn queue_low(&self) -> Duration {
        Duration::from_secs_f64(self.queue_high().as_secs_f64() * self.config.queue_low)
    }
}
