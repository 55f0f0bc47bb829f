//! Reactions of TCP to route notifications: the schemes that TCP-DOOR was compared with.
//!
//! On an ad hoc network a sender without such a scheme treats the silence of a lost route as congestion. It slows down,
//! and waits longer and longer before it tries again. Each scheme tells the two apart in its own way. All have the same
//! inputs: [`Signal::RouteLost`](crate::Signal::RouteLost), [`Signal::RouteFound`](crate::Signal::RouteFound),
//! acknowledgments, timers and congestion marks. Most of them freeze the sender. `freeze` describes the frozen state; the
//! differences are in a [`FreezePlan`]. The network layer defines the messages.
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
use super::congestion::RecoveryPhase;
use super::congestion::window_hold::WindowHold;
use super::endpoint::Endpoint;
use super::recovery_policy::{BackoffPolicy, GiveUpRule, RecoveryPolicy};
use crate::ConfigError;
pub(super) use freeze::RouteState;
use freeze::{FreezePlan, FrozenBehaviour};
use hopline_core::{Duration, Payload};

/// Scheme that tells a lost route from congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFeedback {
    /// None: every silence is congestion (RFC 6298).
    None,
    /// Consecutive time-outs (Dyer, Boppana 2001).
    FixedRto(FixedRtoConfig),
    /// Notifications of the failure and of the return (Chandran and others 1998, 2001).
    TcpF(TcpFConfig),
    /// Notification of the failure, and probes to detect the return (Holland, Vaidya 1999).
    Elfn(ElfnConfig),
    /// ICMP and congestion marks (Liu, Singh 2001). Needs [`Config::with_ecn`](super::Config::with_ecn): without marks
    /// every loss counts as a bit error.
    Atcp(AtcpConfig),
    /// Notifications of the failure and of the return, with probes in case they are lost (Kim, Toh, Choi 2001).
    Bus(BusConfig),
}

/// State of a scheme, by the names of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedbackState {
    /// No failure is known (TCP-F: "active"; ATCP: "normal").
    Active,
    /// TCP-F: frozen until a notification of the return, or until the route failure timer expires.
    Snooze,
    /// ELFN: frozen, with probes.
    StandBy,
    /// ATCP: frozen, with probes ("disconnected"; TCP is in persist mode).
    Persist,
    /// ATCP: a loss without a mark is being repaired.
    Loss,
    /// ATCP: a mark arrived, and TCP reacts as usual until the data in flight are acknowledged.
    Congested,
    /// TCP-BuS: frozen until a notification of the return, with probes.
    Frozen,
    /// Fixed RTO: the route counts as lost, and the timeout no longer doubles.
    RtoFixed,
}

impl FeedbackState {
    /// Returns whether only probes are sent and the retransmission timer is off.
    #[must_use]
    pub const fn is_frozen(self) -> bool {
        match self {
            Self::Snooze | Self::StandBy | Self::Persist | Self::Frozen => true,
            Self::Active | Self::Loss | Self::Congested | Self::RtoFixed => false,
        }
    }
}

/// Times of the probes of a frozen sender. The probe is the first unacknowledged segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSchedule {
    /// Fixed interval, above zero.
    Every(Duration),
    /// One RTO at first, doubled each time up to the largest RTO, as a closed window is probed (RFC 9293 §3.8.6.1).
    PersistTimer,
}

/// Detection of the return of the route by a frozen sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteReturn {
    /// Answer to a probe alone.
    ByProbe,
    /// Notification, or answer to a probe.
    ByNotification,
}

/// Congestion window after the return of the route. `ssthresh` stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CwndAfterFreeze {
    /// Value at the failure.
    Restored,
    /// Initial window, if the value at the failure is larger, since the path may be another one.
    Initial,
    /// One segment.
    OneSegment,
}

/// RTO after the return of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoAfterFreeze {
    /// Value at the failure.
    Restored,
    /// Initial value, without a round-trip estimate.
    Initial,
}

/// Treatment of the data in flight at the failure, after the return of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightAfterFreeze {
    /// The data count as lost: data that the peer has not reported are resent within the window.
    Retransmitted,
    /// The first unacknowledged segment is resent, so that the peer reports the data that it has.
    Queried,
    /// The data may still arrive: loss recovery decides.
    Awaited,
}

impl<P: Payload> Endpoint<P> {
    /// Returns the state of the scheme of [`Config::feedback`](super::Config::feedback).
    #[must_use]
    pub fn feedback_state(&self) -> FeedbackState {
        let repairing = self.control.phase() != RecoveryPhase::Open
            && self.route_recovery_policy().hold != WindowHold::None;
        match (self.config.feedback, self.route.state) {
            (RouteFeedback::Atcp(_), FeedbackState::Active) if repairing => FeedbackState::Loss,
            (_, state) => state,
        }
    }

    /// Returns the recovery policy for the state of the route.
    pub(super) fn route_recovery_policy(&self) -> RecoveryPolicy {
        let hold = match self.config.feedback {
            RouteFeedback::Atcp(_) => self.atcp_hold(),
            RouteFeedback::Bus(_) if self.route.may_have_lost(self.snd.una) => WindowHold::Reductions,
            _ => WindowHold::None,
        };
        let timeout = match self.config.feedback {
            RouteFeedback::FixedRto(config) if self.keeps_rto_constant(config) => BackoffPolicy::Constant,
            _ => BackoffPolicy::Exponential,
        };
        let patience = match self.route.state {
            FeedbackState::RtoFixed => GiveUpRule::ByTime,
            _ => GiveUpRule::ByCount,
        };
        RecoveryPolicy { hold, backoff: timeout, give_up: patience, ..RecoveryPolicy::TCP }
    }
}

impl RouteFeedback {
    /// Returns whether the scheme has no effect without route notifications.
    #[must_use]
    pub const fn needs_notification(self) -> bool {
        match self {
            Self::None | Self::FixedRto(_) => false,
            Self::TcpF(_) | Self::Elfn(_) | Self::Atcp(_) | Self::Bus(_) => true,
        }
    }

    /// Returns the plan for freezing the sender; `None` if the scheme does not freeze it.
    const fn freeze_plan(self) -> Option<FreezePlan> {
        match self {
            Self::None | Self::FixedRto(_) => None,
            Self::TcpF(config) => Some(config.freeze_plan()),
            Self::Elfn(config) => Some(config.freeze_plan()),
            Self::Atcp(config) => Some(config.freeze_plan()),
            Self::Bus(config) => Some(config.freeze_plan()),
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub(super) fn validate(self, detection: LossDetection) -> Result<(), ConfigError> {
        if detection != LossDetection::DupAcks && self.freeze_plan().is_some() {
            let must = "none or fixed RTO where losses are told by time: the others know duplicates alone";
            return Err(ConfigError { field: "feedback", requirement: must });
        }
        let (ok, field, must) = match (self, self.freeze_plan().map(|plan| plan.wait)) {
            (Self::FixedRto(config), _) => {
                ((1..=255).contains(&config.timeouts), "feedback.timeouts", "1 to 255 time-outs")
            }
            (_, Some(FrozenBehaviour::AtMost(limit))) => {
                (!limit.is_zero(), "feedback.failure_timer", "above 0")
            }
            (_, Some(FrozenBehaviour::Probing(ProbeSchedule::Every(interval)))) => {
                (!interval.is_zero(), "feedback.probing", "above 0")
            }
            (_, Some(FrozenBehaviour::Probing(ProbeSchedule::PersistTimer)) | None) => return Ok(()),
        };
        if ok { Ok(()) } else { Err(ConfigError { field, requirement: must }) }
    }
}
