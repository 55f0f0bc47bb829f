//! Packet corruption by a link: independent bit errors, lost packets, and bursts (Gilbert–Elliott) in packets or in time.
//! For wired links, and for radio links on top of interference.

use core::num::NonZeroU32;
use hopline_core::{Duration, Instant, RandomStream};

#[cfg(test)]
mod tests;

/// A probability: a number in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Probability of an impossible event.
    pub const ZERO: Self = Self(0.0);
    /// Probability of a certain event.
    pub const ONE: Self = Self(1.0);

    /// `p`, if it is in [0, 1].
    #[must_use]
    pub const fn new(p: f64) -> Option<Self> {
        if p >= 0.0 && p <= 1.0 { Some(Self(p)) } else { None }
    }

    /// Returns the probability as a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The probability that the event happens in at least one of `n` independent trials: with a bit error ratio, that
    /// a packet of `n` bits is corrupted. Exact to rounding for probabilities as small as 10⁻³⁰⁰.
    #[must_use]
    pub fn any_of(self, n: u64) -> f64 {
        let log_none = self.log_none_of(n as f64);
        -libm::expm1(log_none)
    }

    /// The probability that the event happens in none of `n` independent trials: with a bit error ratio, that a packet
    /// of `n` bits arrives intact.
    #[must_use]
    pub fn none_of(self, n: u64) -> f64 {
        libm::exp(self.log_none_of(n as f64))
    }

    /// n·ln(1 − p); n need not be whole.
    fn log_none_of(self, n: f64) -> f64 {
        if n > 0.0 { n * libm::log1p(-self.0) } else { 0.0 }
    }
}

/// Model of packet corruption on a link.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum ErrorModel {
    /// No corruption.
    #[default]
    None,
    /// Loss of each packet with this probability, independently of its length and of other packets.
    PacketLoss(Probability),
    /// Each bit is wrong with this probability, the bit error ratio, independently of the others. ns-2 `ErrorModel`
    /// with `unit bit` does the same.
    BitErrors(Probability),
    /// Deterministic loss of every n-th packet; 1: all.
    EveryNth(NonZeroU32),
    /// Bursts counted in packets. One lasts while nothing is sent, as no radio's does: a sender that backs off meets it again.
    GilbertPackets(GilbertPackets),
    /// Bursts that last for a time, as those of radios.
    GilbertElliott(GilbertElliott),
}

/// A two-state Markov chain that takes one step after each packet (Gilbert 1960, Elliott 1963). Mean length of a burst:
/// 1/`bad_to_good` packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertPackets {
    /// Probability per packet to go from the good to the bad state.
    pub good_to_bad: Probability,
    /// Probability per packet to go from the bad to the good state.
    pub bad_to_good: Probability,
    /// Probability that a packet is lost in the good state. Gilbert's own model: 0.
    pub loss_good: Probability,
    /// Probability that a packet is lost in the bad state. Simple Gilbert model: 1.
    pub loss_bad: Probability,
}

/// A two-state Markov process in continuous time: exponential sojourns, and a bit error ratio for each state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Mean time spent in the good state per visit. Zero: the link is always bad.
    pub mean_good: Duration,
    /// Mean time spent in the bad state per visit. Zero: the link is always good, whatever `mean_good` is.
    pub mean_bad: Duration,
    /// Bit error ratio in the good state.
    pub ber_good: Probability,
    /// Bit error ratio in the bad state.
    pub ber_bad: Probability,
}

/// State of a two-state model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelState {
    Good,
    Bad,
}

impl ChannelState {
    const fn other(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
        }
    }
}

impl GilbertPackets {
    /// The share of packets that meet the bad state in the long run; 0 if no state is ever left.
    #[must_use]
    pub fn bad_share(&self) -> f64 {
        let sum = self.good_to_bad.0 + self.bad_to_good.0;
        if sum > 0.0 { self.good_to_bad.0 / sum } else { 0.0 }
    }

    const fn loss_probability(&self, state: ChannelState) -> f64 {
        match state {
            ChannelState::Good => self.loss_good.0,
            ChannelState::Bad => self.loss_bad.0,
        }
    }

    const fn transition_probability(&self, state: ChannelState) -> f64 {
        match state {
            ChannelState::Good => self.good_to_bad.0,
            ChannelState::Bad => self.bad_to_good.0,
        }
    }
}

/// Visits to a state within one frame beyond which a frame sees the long-run mix of both.
const MAX_VISITS: u64 = 1000;

impl GilbertElliott {
    /// The share of time spent in the bad state in the long run.
    #[must_use]
    pub fn bad_share(&self) -> f64 {
        let (good, bad) = (self.mean_good.as_secs_f64(), self.mean_bad.as_secs_f64());
        if bad > 0.0 { bad / (good + bad) } else { 0.0 }
    }

    /// Probability of the bad state `gap` after it was `state`: relaxes to the long-run share at the sum of both rates.
    fn bad_after(&self, state: ChannelState, gap: Duration) -> f64 {
        let share = self.bad_share();
        if self.mean_good.is_zero() || self.mean_bad.is_zero() {
            return share;
        }
        let rate = 1.0 / self.mean_good.as_secs_f64() + 1.0 / self.mean_bad.as_secs_f64();
        let memory = libm::exp(-rate * gap.as_secs_f64());
        match state {
            ChannelState::Good => share * (1.0 - memory),
            ChannelState::Bad => share + (1.0 - share) * memory,
        }
    }

    /// The share of the bad state in a frame of `duration` that begins in `state`, and the state at its end.
    fn bad_share_of_frame(
        &self,
        state: ChannelState,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> (f64, ChannelState) {
        let whole = duration.as_secs_f64();
        let cycle = self.mean_good + self.mean_bad;
        if duration.is_zero() || self.mean_good.is_zero() || self.mean_bad.is_zero() {
            return (if state == ChannelState::Bad { 1.0 } else { 0.0 }, state);
        }
        if duration / cycle > MAX_VISITS {
            return (self.bad_share(), draw_state(self.bad_share(), stream));
        }
        let (mut state, mut passed, mut bad) = (state, 0.0, 0.0);
        loop {
            let mean = if state == ChannelState::Bad { self.mean_bad } else { self.mean_good };
            // Exponential sojourns have no memory: what was spent in the state before the frame does not matter.
            let stay = stream.exponential(mean.as_secs_f64());
            let left = whole - passed;
            if state == ChannelState::Bad {
                bad += stay.min(left);
            }
            if stay >= left {
                return ((bad / whole).min(1.0), state);
            }
            passed += stay;
            state = state.other();
        }
    }
}

/// An error model at work on one link, in one direction.
#[derive(Clone, Debug)]
pub struct ErrorProcess {
    model: ErrorModel,
    /// The last known state and since when it is known. `None` before the first packet, which meets the long-run mix.
    last_state: Option<(Instant, ChannelState)>,
    /// Packets since one was lost, where they are counted.
    packets_since_loss: u32,
}

impl ErrorProcess {
    /// A link that corrupts by `model`, in the long-run mix of its states.
    #[must_use]
    pub const fn new(model: ErrorModel) -> Self {
        Self { model, last_state: None, packets_since_loss: 0 }
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &ErrorModel {
        &self.model
    }

    /// Returns whether a packet of `bits` bits that begins at `now` and lasts for `duration` is corrupted.
    ///
    /// Call once a packet, in order of time. Of a packet that begins before the previous one's end, the overlap is
    /// taken to see the state at that end. Draws nothing from `stream` under [`ErrorModel::None`] and [`ErrorModel::EveryNth`].
    pub fn corrupts(
        &mut self,
        now: Instant,
        bits: u64,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> bool {
        match self.model {
            ErrorModel::None => false,
            ErrorModel::PacketLoss(p) => stream.bernoulli(p.0),
            ErrorModel::BitErrors(ber) => stream.bernoulli(ber.any_of(bits)),
            ErrorModel::EveryNth(n) => {
                self.packets_since_loss = (self.packets_since_loss + 1) % n;
                self.packets_since_loss == 0
            }
            ErrorModel::GilbertPackets(model) => self.step_packet(&model, now, stream),
            ErrorModel::GilbertElliott(model) => self.pass_frame(&model, now, bits, duration, stream),
        }
    }

    fn step_packet(&mut self, model: &GilbertPackets, now: Instant, stream: &mut RandomStream) -> bool {
        let state = self.last_state.map_or_else(|| draw_state(model.bad_share(), stream), |(_, state)| state);
        let lost = stream.bernoulli(model.loss_probability(state));
        let next = if stream.bernoulli(model.transition_probability(state)) { state.other() } else { state };
        self.last_state = Some((now, next));
        lost
    }

    fn pass_frame(
        &mut self,
        model: &GilbertElliott,
        now: Instant,
        bits: u64,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> bool {
        let bad =
            self.last_state.map_or_else(|| model.bad_share(), |(at, s)| model.bad_after(s, now.since(at)));
        let (bad_part, end) = model.bad_share_of_frame(draw_state(bad, stream), duration, stream);
        self.last_state = Some((now + duration, end));
        // Bits are sent evenly over the frame; those of each part fail independently.
        let bad_bits = bits as f64 * bad_part;
        let good_bits = bits as f64 - bad_bits;
        let intact = model.ber_good.log_none_of(good_bits) + model.ber_bad.log_none_of(bad_bits);
        stream.bernoulli(-libm::expm1(intact))
    }
}

fn draw_state(bad: f64, stream: &mut RandomStream) -> ChannelState {
    if stream.bernoulli(bad) { ChannelState::Bad } else { ChannelState::Good }
}
