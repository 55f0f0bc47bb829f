//! Kinds of random networks.

/// Kind of a random network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One flow on a link of constant rate and delay, with a queue discipline, losses, jitter, reordering and a slow way back
    /// at random.
    Steady,
    /// The rate of the link changes tenfold, every 0.5 to 10 s.
    Steps,
    /// The rate of the link walks at random.
    Walk,
    /// The rate of the link changes every 50 ms, and stops at times, as of a cellular network; or it is that of a trace.
    Cellular,
    /// The link is silent for 0.1 to 10 s.
    Outages,
    /// The delay of the path changes tenfold.
    DelaySteps,
    /// Every 15 s another satellite: a short outage, another delay and another rate, or the rates of a trace.
    Satellite,
    /// 2 to 64 flows.
    Crowd,
    /// Flows beside CUBIC.
    BesideCubic,
    /// One flow beside datagrams that come and go.
    BesideDatagrams,
    /// One flow beside CUBIC that reacts to marks, in a queue that marks.
    BesideMarked,
    /// Responses of 10 kB to 1 MB, after idle times, alone or beside a transfer.
    Requests,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Steady,
        Self::Steps,
        Self::Walk,
        Self::Cellular,
        Self::Outages,
        Self::DelaySteps,
        Self::Satellite,
        Self::Crowd,
        Self::BesideCubic,
        Self::BesideDatagrams,
        Self::BesideMarked,
        Self::Requests,
    ];

    /// Kinds of twenty consecutive draws. Steady links have a quarter, as they vary in most parameters.
    pub(super) const CYCLE: [Self; 20] = [
        Self::Steady,
        Self::Steps,
        Self::Crowd,
        Self::BesideCubic,
        Self::Steady,
        Self::Cellular,
        Self::Requests,
        Self::Outages,
        Self::Steady,
        Self::Walk,
        Self::BesideDatagrams,
        Self::DelaySteps,
        Self::Steady,
        Self::Crowd,
        Self::BesideCubic,
        Self::Satellite,
        Self::Steady,
        Self::Steps,
        Self::Cellular,
        Self::BesideMarked,
    ];

    /// Returns the name in tables and of draws.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Steps => "steps",
            Self::Walk => "walk",
            Self::Cellular => "cellular",
            Self::Outages => "outages",
            Self::DelaySteps => "delay-steps",
            Self::Satellite => "satellite",
            Self::Crowd => "crowd",
            Self::BesideCubic => "beside-cubic",
            Self::BesideDatagrams => "beside-datagrams",
            Self::BesideMarked => "beside-marked",
            Self::Requests => "requests",
        }
    }

    /// Returns whether rate and delay of the path are constant, so that the queueing delay is known.
    #[must_use]
    pub const fn is_steady(self) -> bool {
        matches!(self, Self::Steady | Self::Crowd | Self::Requests)
    }

    /// Returns whether rate or delay of the path vary.
    #[must_use]
    pub const fn varies(self) -> bool {
        matches!(
            self,
            Self::Steps | Self::Walk | Self::Cellular | Self::Outages | Self::DelaySteps | Self::Satellite
        )
    }
}
