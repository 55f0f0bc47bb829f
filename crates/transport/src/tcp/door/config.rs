//! Parameters of TCP-DOOR: what is looked at, what is done about it, and what the paper leaves open.

use crate::ConfigError;
use crate::tcp::config::{LossDetection, Offer};

/// Parameters of TCP-DOOR (Wang and Zhang, MobiHoc 2002). Start from one of the study's five schemes and change fields.
///
/// Both ends of a connection may have their own; what needs both is in use if both have it. "Default" is what the schemes
/// have; A1 to A10 are the points that the paper leaves open, by number in `docs/protocols/tcp-door.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoorConfig {
    /// Where out-of-order delivery is noticed. Default of the schemes that have them: ADSN, TPSN.
    pub detection: Detection,
    /// What the sender does about it.
    pub response: DoorResponse,
    /// Which late packets are events (A1). Default once for each switch.
    pub late: Late,
    /// Acknowledgments that carry the feedback of one event (A6). With more than one, those in a row tell of one event only,
    /// and both ends must have it so. Range 1–255, default 1.
    pub feedback_acks: u8,
    /// What is held during T1 (A7). Default everything.
    pub held: Held,
    /// What is resent during T1 (A7). Default what is resent at other times.
    pub resends: Resends,
    /// What a time-out during T1 does to the timer (A8). Default nothing.
    pub held_timer: HeldTimer,
    /// What an event during T1 does (A9). Default begin T1 anew.
    pub again: Again,
    /// How much is undone if the sender slowed down more than once within T2 (A10). Default all of it.
    pub reach: Reach,
}

/// Where out-of-order delivery is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// By the sender of data, in the order of acknowledgments (D1).
    Sender(AckOrder),
    /// By the receiver of data, in their order, which its acknowledgments tell (D2).
    Receiver(DataOrder),
    /// By both.
    Both(AckOrder, DataOrder),
}

/// What tells the order of acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOrder {
    /// Acknowledgment numbers: nothing is seen of those that are equal. Any TCP will do as the peer.
    Numbers,
    /// Among equal numbers the ADSN; only the numbers if the peer has no ADSN.
    Adsn,
}

/// What tells the order of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOrder {
    /// The TPSN option. Where the peer has feedback but no TPSN, timestamps if they are in use.
    Tpsn,
    /// Timestamps (RFC 7323); packets of the same millisecond have no order.
    Timestamps,
}

/// What the sender does about out-of-order delivery. T1 and T2 are multiples of the retransmission timeout at that time,
/// its back-off not counted. Above 0, at most 1000; the study tried 1, 2, 4 and 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DoorResponse {
    /// Temporary disabling (R1).
    Disable {
        /// How long congestion control is disabled, RTOs.
        t1: f64,
    },
    /// Instant recovery (R2).
    Recover {
        /// How old the slowing down that is undone may be, RTOs.
        t2: f64,
    },
    /// Both: recovery first, and what was recovered is held.
    Both {
        /// As in [`Self::Disable`].
        t1: f64,
        /// As in [`Self::Recover`].
        t2: f64,
    },
}

/// Which late packets are events (A1). Late is a packet that was sent before one that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Those sent after everything that had arrived when the last event was noticed: however many packets one change of the
    /// route overtakes, it is one event.
    OncePerSwitch,
    /// Each one.
    Each,
    /// Those sent before the packet that arrived last: the paper taken by its words. Packets that are late together are one
    /// event if nothing arrives between them.
    AfterPrevious,
}

/// What is held during T1 (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// `cwnd`, `ssthresh` and the retransmission timeout stay what they are.
    Everything,
    /// Nothing slows the sender down; `cwnd` may grow, and round trips are measured.
    Reductions,
}

/// What is resent during T1 (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resends {
    /// What recovery, or a time-out, resends at other times, with the window that is held: a third duplicate begins a
    /// recovery, which resends every hole; a time-out goes back to the first unacknowledged segment and resends what follows.
    AsUsual,
    /// The first unacknowledged segment alone, by the third duplicate and by the timer. What else is in flight may be late, as
    /// the event has shown. Not with losses told by time.
    First,
}

/// What a time-out during T1 does to the timer (A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldTimer {
    /// It is set again for as long.
    Constant,
    /// It is doubled as always (RFC 6298 §5.5).
    BacksOff,
}

/// What an event during T1 does (A9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// T1 begins anew.
    Restart,
    /// T1 goes on as it was.
    Continue,
}

/// How much is undone if the sender slowed down more than once within T2 (A10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of it.
    First,
    /// The last time.
    Latest,
}

impl Detection {
    /// D1, if it is used.
    #[must_use]
    pub const fn acks(self) -> Option<AckOrder> {
        match self {
            Self::Sender(order) | Self::Both(order, _) => Some(order),
            Self::Receiver(_) => None,
        }
    }

    /// D2, if it is used.
    #[must_use]
    pub const fn data(self) -> Option<DataOrder> {
        match self {
            Self::Receiver(order) | Self::Both(_, order) => Some(order),
            Self::Sender(_) => None,
        }
    }
}

impl DoorResponse {
    /// How long congestion control is disabled, RTOs.
    #[must_use]
    pub const fn t1(self) -> Option<f64> {
        match self {
            Self::Disable { t1 } | Self::Both { t1, .. } => Some(t1),
            Self::Recover { .. } => None,
        }
    }

    /// How old the slowing down that is undone may be, RTOs.
    #[must_use]
    pub const fn t2(self) -> Option<f64> {
        match self {
            Self::Recover { t2 } | Self::Both { t2, .. } => Some(t2),
            Self::Disable { .. } => None,
        }
    }
}

impl DoorConfig {
    /// Multiples of the RTO that the study tried, for T1 and for T2.
    pub const STUDIED: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

    /// "All": both detect, both responses.
    #[must_use]
    pub const fn all(t1: f64, t2: f64) -> Self {
        Self::of(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Both { t1, t2 })
    }

    /// "SD": the sender detects, both responses.
    #[must_use]
    pub const fn sender_detection(t1: f64, t2: f64) -> Self {
        Self::of(Detection::Sender(AckOrder::Adsn), DoorResponse::Both { t1, t2 })
    }

    /// "RD": the receiver detects, both responses.
    #[must_use]
    pub const fn receiver_detection(t1: f64, t2: f64) -> Self {
        Self::of(Detection::Receiver(DataOrder::Tpsn), DoorResponse::Both { t1, t2 })
    }

    /// "TD": both detect, temporary disabling.
    #[must_use]
    pub const fn temporary_disabling(t1: f64) -> Self {
        Self::of(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Disable { t1 })
    }

    /// "IR": both detect, instant recovery.
    #[must_use]
    pub const fn instant_recovery(t2: f64) -> Self {
        Self::of(Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), DoorResponse::Recover { t2 })
    }

    /// The 56 settings of the study: All, SD and RD with each T1 and T2, TD with each T1, IR with each T2.
    pub fn studied() -> impl Iterator<Item = Self> {
        let pairs = || Self::STUDIED.into_iter().flat_map(|t1| Self::STUDIED.map(|t2| (t1, t2)));
        let with_both = [Self::all, Self::sender_detection, Self::receiver_detection];
        let with_one = [Self::temporary_disabling, Self::instant_recovery];
        let both = with_both.into_iter().flat_map(move |make| pairs().map(move |(t1, t2)| make(t1, t2)));
        both.chain(with_one.into_iter().flat_map(|make| Self::STUDIED.map(make)))
    }

    const fn of(detection: Detection, response: DoorResponse) -> Self {
        Self {
            detection,
            response,
            late: Late::OncePerSwitch,
            feedback_acks: 1,
            held: Held::Everything,
            resends: Resends::AsUsual,
            held_timer: HeldTimer::Constant,
            again: Again::Restart,
            reach: Reach::First,
        }
    }

    /// Checks every field against its range; `timestamps`: whether the endpoint offers them; `losses`: how it finds them.
    ///
    /// # Errors
    /// The first field that is out of range, or needs what the endpoint does not have.
    pub(in crate::tcp) fn validate(
        &self,
        timestamps: Offer,
        losses: LossDetection,
    ) -> Result<(), ConfigError> {
        let multiple = |t: Option<f64>| t.is_none_or(|t| t > 0.0 && t <= 1000.0);
        let rules: [(bool, &'static str, &'static str); 5] = [
            (multiple(self.response.t1()), "door.t1", "above 0 and at most 1000 RTOs"),
            (multiple(self.response.t2()), "door.t2", "above 0 and at most 1000 RTOs"),
            (self.feedback_acks > 0, "door.feedback_acks", "1 to 255 acknowledgments"),
            (
                self.detection.data() != Some(DataOrder::Timestamps) || timestamps == Offer::Yes,
                "timestamps",
                "offered where TCP-DOOR takes the order of data from them",
            ),
            (
                self.resends == Resends::AsUsual || losses == LossDetection::DupAcks,
                "door.resends",
                "as usual where losses are told by time",
            ),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, must }),
            None => Ok(()),
        }
    }
}
