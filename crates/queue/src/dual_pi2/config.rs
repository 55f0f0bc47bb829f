//! Parameters of DualPI2.

use hopline_core::Duration;

/// Parameters of DualPI2. Defaults are those of RFC 9332 appendix A; [`Self::LINUX`] has those of Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Target of the queueing delay of Classic traffic. Above 0; default 15 ms.
    pub target: Duration,
    /// Tupdate: interval between updates of the base probability. Above 0; default 15 ms, the smaller of the target and a
    /// third of the greatest round-trip time, 100 ms (figure 2); 16 ms in Linux and in the text of appendix A.1.
    pub update_interval: Duration,
    /// alpha: change of the base probability per update and second of delay above the target. At least 0; default 0.15;
    /// 0.16 with an interval of 16 ms.
    pub alpha_hz: f64,
    /// beta: change of the base probability per update and second by which the delay has grown. At least 0; default 3;
    /// 3.2 in Linux and in the text of appendix A.1.
    pub beta_hz: f64,
    /// k: ratio of the coupled L4S probability to the base probability. At least 1; default 2.
    pub coupling: f64,
    /// minTh: queueing delay above which L4S packets are marked, whatever the coupled probability. Default 0.8 ms; Linux has
    /// 1 ms.
    pub l4s_threshold: Duration,
    /// Range of delay above [`Self::l4s_threshold`] over which the probability of these marks rises from 0 to 1. Default
    /// 0.4 ms. Zero makes a step, as in Linux.
    pub l4s_ramp: Duration,
    /// Th_len: packets that must be left in the L queue for these marks. Default 1; Linux has 0.
    pub l4s_min_backlog_packets: u16,
    /// Choice between the two queues. Default weighted round robin with a Classic weight of 1/16; Linux has 0.1.
    pub scheduler: Scheduler,
}

/// Choice of the queue that is served next (RFC 9332 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// L4S packets have priority until they have used their share of the bytes.
    WeightedRoundRobin {
        /// Share of the link that Classic traffic has at least. Above 0, below 1.
        classic_weight: f64,
    },
    /// The packet that has waited longest is served. L4S packets count as if they had arrived earlier by a time shift.
    TimeShiftedFifo {
        /// Time shift, some targets.
        shift: Duration,
    },
}

impl DualPi2Config {
    /// Parameters of RFC 9332 appendix A for a greatest round-trip time of 100 ms.
    pub const RFC9332: Self = Self {
        target: Duration::from_millis(15),
        update_interval: Duration::from_millis(15),
        alpha_hz: 0.15,
        beta_hz: 3.0,
        coupling: 2.0,
        l4s_threshold: Duration::from_micros(800),
        l4s_ramp: Duration::from_micros(400),
        l4s_min_backlog_packets: 1,
        scheduler: Scheduler::WeightedRoundRobin { classic_weight: Self::CLASSIC_WEIGHT },
    };

    /// Defaults of Linux (`net/sched/sch_dualpi2.c`, read for facts). Linux also leaves a backlog of less than two full
    /// packets alone and draws random numbers, which is not implemented.
    pub const LINUX: Self = Self {
        update_interval: Duration::from_millis(16),
        alpha_hz: 0.16,
        beta_hz: 3.2,
        l4s_threshold: Duration::from_millis(1),
        l4s_ramp: Duration::ZERO,
        l4s_min_backlog_packets: 0,
        scheduler: Scheduler::WeightedRoundRobin { classic_weight: 0.1 },
        ..Self::RFC9332
    };

    /// Classic weight of [`Scheduler::WeightedRoundRobin`]: 1/16, the example of the RFC.
    pub const CLASSIC_WEIGHT: f64 = 1.0 / 16.0;

    /// Time shift of [`Scheduler::TimeShiftedFifo`]: 50 ms, for the public Internet (appendix A.2).
    pub const TIME_SHIFT: Duration = Duration::from_millis(50);

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        let gain = |hz: f64| hz >= 0.0 && hz.is_finite();
        let weight = match self.scheduler {
            Scheduler::WeightedRoundRobin { classic_weight } => classic_weight,
            Scheduler::TimeShiftedFifo { .. } => 0.5,
        };
        let rules = [
            (!self.target.is_zero(), "a target above 0"),
            (!self.update_interval.is_zero(), "an update interval above 0"),
            (gain(self.alpha_hz), "alpha of at least 0"),
            (gain(self.beta_hz), "beta of at least 0"),
            (self.coupling >= 1.0 && self.coupling.is_finite(), "a coupling factor of at least 1"),
            (weight > 0.0 && weight < 1.0, "a Classic weight above 0 and below 1"),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }

    /// Returns `p'_L`: marking probability of an L4S packet by its own queueing delay (`laqm` of figure 5).
    pub(super) fn native_probability(&self, delay: Duration) -> f64 {
        if delay >= self.l4s_threshold + self.l4s_ramp {
            return 1.0;
        }
        let above = delay.saturating_sub(self.l4s_threshold);
        if above.is_zero() { 0.0 } else { above.as_secs_f64() / self.l4s_ramp.as_secs_f64() }
    }

    /// Returns `p_Cmax = min(1/k², 1)`: Classic probability from which on packets are dropped even if they could be marked.
    pub(super) fn max_classic_mark_probability(&self) -> f64 {
        (1.0 / (self.coupling * self.coupling)).min(1.0)
    }
}
