//! Parameters of TCP-DOOR: detection, response, and the choices that the paper leaves open.

use crate::ConfigError;
use crate::tcp::config::{LossDetection, OptionOffer};
use hopline_core::settings;

settings! {
    /// Parameters of TCP-DOOR (Wang and Zhang, MobiHoc 2002). Start from one of the study's five schemes and use the setters.
    ///
    /// Both ends of a connection may have different parameters. A feature that needs both ends is in use if both have it.
    /// "Default" is the value in the study's schemes. A1 to A10 are the points that the paper leaves open, numbered as in
    /// `docs/protocols/tcp-door.md`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DoorConfig {
        /// Detection of out-of-order delivery. Default of the schemes that have them: ADSN, TPSN.
        detection, with_detection: Detection,
        /// Response of the sender, with T1 and T2. Each scheme has its own.
        response, with_response: DoorResponse,
        /// Late packets that count as events (A1). Default once per route change.
        late, with_late: LateRule,
        /// Number of acknowledgments that carry the feedback of one event (A6). With more than one, consecutive ones report
        /// one event only, and both ends must have the same value. Range 1–255, default 1.
        feedback_acks, with_feedback_acks: u8,
        /// Variables held during T1 (A7). Default all.
        held, with_held: HeldVariables,
        /// Retransmissions during T1 (A7). Default as usual.
        retransmissions, with_retransmissions: DisabledRetransmissions,
        /// Effect of a time-out during T1 on the timer (A8). Default none.
        held_timer, with_held_timer: HeldTimerBackoff,
        /// Effect of an event during T1 (A9). Default restart T1.
        repeated_event, with_repeated_event: RepeatedEvent,
        /// Number of reductions to undo if there were several within T2 (A10). Default all.
        reach, with_reach: UndoReach,
    }
}

/// Detection of out-of-order delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Detection by the data sender, from the order of acknowledgments (D1).
    Sender(AckOrder),
    /// Detection by the data receiver, from the order of data, reported in its acknowledgments (D2).
    Receiver(DataOrder),
    /// Detection by both.
    Both(AckOrder, DataOrder),
}

/// Information about the order of acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOrder {
    /// Acknowledgment numbers. Equal numbers show no order. Works with any TCP peer.
    Numbers,
    /// The ADSN option for equal numbers; falls back to the numbers if the peer has no ADSN.
    Adsn,
}

/// Information about the order of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOrder {
    /// The TPSN option. If the peer has feedback but no TPSN, timestamps if they are in use.
    Tpsn,
    /// Timestamps (RFC 7323); packets of the same millisecond have no order.
    Timestamps,
}

/// Response of the sender to out-of-order delivery. T1 and T2 are multiples of the current retransmission timeout without
/// back-off. Above 0, at most 1000; the study tried 1, 2, 4 and 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DoorResponse {
    /// Temporary disabling (R1).
    Disable {
        /// Duration of the temporary disabling, RTOs.
        t1: f64,
    },
    /// Instant recovery (R2).
    Recover {
        /// Largest age of a reduction that is undone, RTOs.
        t2: f64,
    },
    /// Both: instant recovery first; then the restored state is held.
    Both {
        /// As in [`Self::Disable`].
        t1: f64,
        /// As in [`Self::Recover`].
        t2: f64,
    },
}

/// Late packets that count as events (A1). A packet is late if it was sent before one that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateRule {
    /// Packets sent after everything that had arrived at the last event. One route change is one event, however many
    /// packets it delays.
    OncePerRouteChange,
    /// Every late packet.
    Each,
    /// Packets sent before the one that arrived last: the literal reading of the paper. Late packets are one event if no
    /// other packet arrives between them.
    AfterPrevious,
}

/// Variables held during T1 (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldVariables {
    /// `cwnd`, `ssthresh` and the retransmission timeout are constant.
    Everything,
    /// Reductions have no effect; `cwnd` may grow, and round-trip times are measured.
    Reductions,
}

/// Retransmissions during T1 (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledRetransmissions {
    /// As usual, with the held window: a third duplicate starts a recovery, which resends every hole. A time-out goes
    /// back to the first unacknowledged segment and resends the following data.
    Normal,
    /// Only the first unacknowledged segment, on the third duplicate and on a time-out. Other data in flight may only be
    /// late, as the event has shown. Not with time-based loss detection.
    FirstSegment,
}

/// Effect of a time-out during T1 on the timer (A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldTimerBackoff {
    /// The timer restarts with the same timeout.
    Constant,
    /// The timeout doubles as usual (RFC 6298 §5.5).
    Exponential,
}

/// Effect of an event during T1 (A9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedEvent {
    /// T1 restarts.
    Restart,
    /// T1 continues.
    Continue,
}

/// Number of reductions to undo if there were several within T2 (A10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoReach {
    /// All of them.
    All,
    /// The last one.
    Latest,
}

impl Detection {
    /// Returns the order information of D1, if it is in use.
    #[must_use]
    pub const fn acks(self) -> Option<AckOrder> {
        match self {
            Self::Sender(order) | Self::Both(order, _) => Some(order),
            Self::Receiver(_) => None,
        }
    }

    /// Returns the order information of D2, if it is in use.
    #[must_use]
    pub const fn data(self) -> Option<DataOrder> {
        match self {
            Self::Receiver(order) | Self::Both(_, order) => Some(order),
            Self::Sender(_) => None,
        }
    }
}

impl DoorResponse {
    /// Returns the duration of the temporary disabling, RTOs.
    #[must_use]
    pub const fn t1(self) -> Option<f64> {
        match self {
            Self::Disable { t1 } | Self::Both { t1, .. } => Some(t1),
            Self::Recover { .. } => None,
        }
    }

    /// Returns the largest age of a reduction that is undone, RTOs.
    #[must_use]
    pub const fn t2(self) -> Option<f64> {
        match self {
            Self::Recover { t2 } | Self::Both { t2, .. } => Some(t2),
            Self::Disable { .. } => None,
        }
    }
}

impl DoorConfig {
    /// Multiples of the RTO in the study, for T1 and for T2.
    pub const STUDY_MULTIPLES: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

    /// Returns scheme "All": both ends detect, both responses.
    #[must_use]
    pub const fn all(t1: f64, t2: f64) -> Self {
        Self::scheme(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Both { t1, t2 })
    }

    /// Returns scheme "SD": the sender detects, both responses.
    #[must_use]
    pub const fn sender_detection(t1: f64, t2: f64) -> Self {
        Self::scheme(Detection::Sender(AckOrder::Adsn), DoorResponse::Both { t1, t2 })
    }

    /// Returns scheme "RD": the receiver detects, both responses.
    #[must_use]
    pub const fn receiver_detection(t1: f64, t2: f64) -> Self {
        Self::scheme(Detection::Receiver(DataOrder::Tpsn), DoorResponse::Both { t1, t2 })
    }

    /// Returns scheme "TD": both ends detect, temporary disabling.
    #[must_use]
    pub const fn temporary_disabling(t1: f64) -> Self {
        Self::scheme(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Disable { t1 })
    }

    /// Returns scheme "IR": both ends detect, instant recovery.
    #[must_use]
    pub const fn instant_recovery(t2: f64) -> Self {
        Self::scheme(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Recover { t2 })
    }

    /// Returns the 56 settings of the study: All, SD and RD with each T1 and T2, TD with each T1, IR with each T2.
    pub fn study_settings() -> impl Iterator<Item = Self> {
        let pairs =
            || Self::STUDY_MULTIPLES.into_iter().flat_map(|t1| Self::STUDY_MULTIPLES.map(|t2| (t1, t2)));
        let with_both = [Self::all, Self::sender_detection, Self::receiver_detection];
        let with_one = [Self::temporary_disabling, Self::instant_recovery];
        let both = with_both.into_iter().flat_map(move |make| pairs().map(move |(t1, t2)| make(t1, t2)));
        both.chain(with_one.into_iter().flat_map(|make| Self::STUDY_MULTIPLES.map(make)))
    }

    const fn scheme(detection: Detection, response: DoorResponse) -> Self {
        Self {
            detection,
            response,
            late: LateRule::OncePerRouteChange,
            feedback_acks: 1,
            held: HeldVariables::Everything,
            retransmissions: DisabledRetransmissions::Normal,
            held_timer: HeldTimerBackoff::Constant,
            repeated_event: RepeatedEvent::Restart,
            reach: UndoReach::All,
        }
    }

    /// Checks every field against its range. `timestamps`: use of timestamps by the endpoint; `losses`: its loss
    /// detection.
    ///
    /// # Errors
    /// The first field that is out of range, or needs what the endpoint does not have.
    pub(in crate::tcp) fn validate(
        &self,
        timestamps: OptionOffer,
        losses: LossDetection,
    ) -> Result<(), ConfigError> {
        let multiple = |t: Option<f64>| t.is_none_or(|t| t > 0.0 && t <= 1000.0);
        let rules: [(bool, &'static str, &'static str); 5] = [
            (multiple(self.response.t1()), "door.t1", "above 0 and at most 1000 RTOs"),
            (multiple(self.response.t2()), "door.t2", "above 0 and at most 1000 RTOs"),
            (self.feedback_acks > 0, "door.feedback_acks", "1 to 255 acknowledgments"),
            (
                self.detection.data() != Some(DataOrder::Timestamps) || timestamps == OptionOffer::Offered,
                "timestamps",
                "offered where TCP-DOOR takes the order of data from them",
            ),
            (
                self.retransmissions == DisabledRetransmissions::Normal || losses == LossDetection::DupAcks,
                "door.resends",
                "as usual where losses are told by time",
            ),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, requirement: must }),
            None => Ok(()),
        }
    }
}
