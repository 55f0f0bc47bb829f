//! What TCP makes of being told about routes: the schemes that TCP-DOOR was proposed against.
//!
//! On an ad hoc network a sender takes the silence of a lost route for congestion, slows down, and waits ever longer before
//! it tries again. Each scheme has its own way to tell the two apart, and all take the same inputs:
//! [`Signal::RouteLost`](crate::Signal::RouteLost), [`Signal::RouteFound`](crate::Signal::RouteFound), acknowledgments,
//! timers and congestion marks. Most of them freeze the sender: what that is stands in `freeze`, and what differs is a
//! [`Plan`]. The messages themselves are the network layer's.
//!
//! | file | scheme |
//! |---|---|
//! | `tcp_f` | TCP-F: snooze until told of the return |
//! | `elfn` | ELFN: stand-by, with probes |
//! | `atcp` | ATCP: persist, loss, congested |
//! | `bus` | TCP-BuS: frozen, resumed selectively |
//! | `fixed_rto` | fixed RTO: no notification at all |

mod atcp;
mod bus;
mod elfn;
mod fixed_rto;
mod freeze;
mod tcp_f;

pub use atcp::AtcpConfig;
pub use bus::BusConfig;
pub use elfn::ElfnConfig;
pub use fixed_rto::FixedRtoConfig;
pub use tcp_f::TcpFConfig;

use super::config::LossDetection;
use super::congestion::Phase;
use super::congestion::hold::Hold;
use super::endpoint::Endpoint;
use super::stance::{Patience, Stance, Timeout};
use crate::ConfigError;
pub(super) use freeze::Route;
use freeze::{Plan, Wait};
use hopline_core::{Duration, Payload};

/// How the sender tells a lost route from congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Not at all: every silence is congestion (RFC 6298).
    None,
    /// By time-outs in a row (Dyer, Boppana 2001).
    FixedRto(FixedRtoConfig),
    /// By notifications of the failure and of the return (Chandran and others 1998, 2001).
    TcpF(TcpFConfig),
    /// By a notification of the failure; probes find out about the return (Holland, Vaidya 1999).
    Elfn(ElfnConfig),
    /// By ICMP and congestion marks (Liu, Singh 2001). It takes [`Config::with_ecn`](super::Config::with_ecn): without marks
    /// every loss passes for a bit error.
    Atcp(AtcpConfig),
    /// By notifications of the failure and of the return, with probes in case they are lost (Kim, Toh, Choi 2001).
    Bus(BusConfig),
}

/// Where a scheme stands, by the names of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedbackState {
    /// Nothing is known to be wrong (TCP-F: "active"; ATCP: "normal").
    Active,
    /// TCP-F: frozen until told of the return, or until the route failure timer ends.
    Snooze,
    /// ELFN: frozen, and probing.
    StandBy,
    /// ATCP ("disconnected"; TCP is in persist mode): frozen, and probing.
    Persist,
    /// ATCP: a loss without a mark is being repaired.
    Loss,
    /// ATCP: a mark arrived, and TCP does as TCP always does, until what was in flight is acknowledged.
    Congested,
    /// TCP-BuS: frozen until told of the return, and probing.
    Frozen,
    /// Fixed RTO: the route is taken for lost, and the timeout no longer doubles.
    RtoFixed,
}

impl FeedbackState {
    /// Whether nothing but probes is sent, and the retransmission timer is off.
    #[must_use]
    pub const fn is_frozen(self) -> bool {
        match self {
            Self::Snooze | Self::StandBy | Self::Persist | Self::Frozen => true,
            Self::Active | Self::Loss | Self::Congested | Self::RtoFixed => false,
        }
    }
}

/// When a frozen sender probes. The probe is the first unacknowledged segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// So often. Above zero.
    Every(Duration),
    /// After one RTO, then after twice as long each time up to the largest RTO, as a closed window is probed
    /// (RFC 9293 §3.8.6.1).
    PersistTimer,
}

/// How a frozen sender learns that there is a route again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// By the answer to a probe alone.
    ByProbe,
    /// By being told, too.
    Told,
}

/// The congestion window once there is a route again. `ssthresh` stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowAfter {
    /// As it was when the route was lost.
    Restored,
    /// The initial window, if it was larger: the path may be another one.
    Initial,
    /// One segment.
    OneSegment,
}

/// The RTO once there is a route again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoAfter {
    /// As it was when the route was lost.
    Restored,
    /// As at the start of a connection, with the estimate behind it forgotten.
    Initial,
}

/// What becomes of what was in flight, once there is a route again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// It is taken for lost: what the peer has not reported is resent, as far as the window allows.
    Resent,
    /// The first unacknowledged segment is resent, so that the peer tells what it has.
    Inquired,
    /// It may still arrive: loss recovery finds out.
    Awaited,
}

impl<P: Payload> Endpoint<P> {
    /// How far the scheme of [`Config::feedback`](super::Config::feedback) takes the route for lost.
    #[must_use]
    pub fn feedback_state(&self) -> FeedbackState {
        let repairing = self.control.phase() != Phase::Open && self.stance_for_route().hold != Hold::Free;
        match (self.config.feedback, self.route.state) {
            (Feedback::Atcp(_), FeedbackState::Active) if repairing => FeedbackState::Loss,
            (_, state) => state,
        }
    }

    /// How the sender stands for what it knows of its route.
    pub(super) fn stance_for_route(&self) -> Stance {
        let hold = match self.config.feedback {
            Feedback::Atcp(_) => self.hold_of_atcp(),
            Feedback::Bus(_) if self.route.may_have_lost(self.snd.una) => Hold::Reductions,
            _ => Hold::Free,
        };
        let timeout = match self.config.feedback {
            Feedback::FixedRto(config) if self.fixes_rto(config) => Timeout::Stays,
            _ => Timeout::Doubles,
        };
        let patience = match self.route.state {
            FeedbackState::RtoFixed => Patience::Time,
            _ => Patience::Timeouts,
        };
        Stance { hold, timeout, patience, ..Stance::PLAIN }
    }
}

impl Feedback {
    /// Whether it does nothing for who is not told of routes.
    #[must_use]
    pub const fn needs_notification(self) -> bool {
        match self {
            Self::None | Self::FixedRto(_) => false,
            Self::TcpF(_) | Self::Elfn(_) | Self::Atcp(_) | Self::Bus(_) => true,
        }
    }

    /// How it freezes the sender, if it does.
    const fn plan(self) -> Option<Plan> {
        match self {
            Self::None | Self::FixedRto(_) => None,
            Self::TcpF(config) => Some(config.plan()),
            Self::Elfn(config) => Some(config.plan()),
            Self::Atcp(config) => Some(config.plan()),
            Self::Bus(config) => Some(config.plan()),
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The first that is out of range.
    pub(super) fn validate(self, detection: LossDetection) -> Result<(), ConfigError> {
        if detection != LossDetection::DupAcks && self.plan().is_some() {
            let must = "none or fixed RTO where losses are told by time: the others know duplicates alone";
            return Err(ConfigError { field: "feedback", must });
        }
        let (ok, field, must) = match (self, self.plan().map(|plan| plan.wait)) {
            (Self::FixedRto(config), _) => {
                ((1..=255).contains(&config.timeouts), "feedback.timeouts", "1 to 255 time-outs")
            }
            (_, Some(Wait::AtMost(limit))) => (!limit.is_zero(), "feedback.failure_timer", "above 0"),
            (_, Some(Wait::Probing(Probing::Every(interval)))) => {
                (!interval.is_zero(), "feedback.probing", "above 0")
            }
            (_, Some(Wait::Probing(Probing::PersistTimer)) | None) => return Ok(()),
        };
        if ok { Ok(()) } else { Err(ConfigError { field, must }) }
    }
}
