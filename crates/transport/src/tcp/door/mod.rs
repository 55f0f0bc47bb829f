//! TCP-DOOR: detection of out-of-order delivery, and response (Wang and Zhang, MobiHoc 2002).
//!
//! A packet that arrives after one that was sent later shows that the route changed. In a mobile ad hoc network, the
//! losses around that moment have the same cause. The sender should undo its reaction to them, and suspend congestion
//! control for a while.
//!
//! | file | idea |
//! |---|---|
//! | `config` | parameters, the 56 settings of the study |
//! | `order` | what is late, and what is an event |
//! | `correlation` | events in both orders that come together |
//! | `detect` | looking at every segment, before anything else does |
//! | `respond` | R1 and R2 |
//! | `options` | the option on what is sent |

mod config;
mod correlation;
mod detect;
mod options;
mod order;
mod respond;

pub use config::{
    AckOrder, DataOrder, Detection, DisabledRetransmissions, DoorConfig, DoorResponse, HeldTimerBackoff,
    HeldVariables, LateRule, RepeatedEvent, UndoReach,
};

pub(super) use options::{PayloadKind, SynKind};
pub(super) use respond::HeldReduction;

use correlation::EventLog;
use detect::FeedbackAck;
use hopline_core::Instant;
use hopline_wire::tcp::{DoorFeatures, DoorOption};
use order::OrderTracker;

/// State of TCP-DOOR at one end.
#[derive(Clone, Debug)]
pub(super) struct DoorState {
    config: DoorConfig,
    /// Features that both ends have agreed on.
    agreed: DoorFeatures,
    /// The acknowledgments that arrived: position, ADSN.
    acks: OrderTracker<(i64, i64)>,
    /// `true` if the newest of them reported late data.
    last_ack_had_feedback: bool,
    /// Last acknowledgment that reported late data, if each report is an event of its own.
    last_feedback_ack: Option<FeedbackAck>,
    /// Data packets that arrived.
    data: OrderTracker<i64>,
    /// Number of acknowledgments that still have to report late data.
    feedback_to_send: u8,
    /// Position and ADSN of the last acknowledgment sent.
    last_ack: Option<(u64, u8)>,
    /// TPSN of the next data packet.
    next_tpsn: u16,
    /// Events in the order of ACKs.
    ack_events: EventLog,
    /// Events in the order of data, as reported by the peer.
    reported_events: EventLog,
    /// End of T1.
    disabled_until: Instant,
}

impl DoorState {
    pub(super) fn new(config: DoorConfig) -> Self {
        Self {
            config,
            agreed: DoorFeatures::default(),
            acks: OrderTracker::new(),
            last_ack_had_feedback: false,
            last_feedback_ack: None,
            data: OrderTracker::new(),
            feedback_to_send: 0,
            last_ack: None,
            next_tpsn: 0,
            ack_events: EventLog::default(),
            reported_events: EventLog::default(),
            disabled_until: Instant::ZERO,
        }
    }

    /// Returns the initial state of this end, with the same parameters.
    pub(super) fn restarted(&self) -> Self {
        Self::new(self.config)
    }

    /// Returns the features of this end.
    fn features(&self) -> DoorFeatures {
        let data = self.config.detection.data();
        DoorFeatures {
            adsn: self.config.detection.acks() == Some(AckOrder::Adsn),
            tpsn: data == Some(DataOrder::Tpsn),
            feedback: data.is_some(),
        }
    }

    /// Processes the option of the peer's SYN: features that both ends have are in use.
    pub(super) fn negotiate(&mut self, offer: Option<DoorOption>) {
        let Some(DoorOption::Offer(theirs)) = offer else { return };
        let ours = self.features();
        let feedback = ours.feedback && theirs.feedback;
        self.agreed = DoorFeatures {
            adsn: ours.adsn && theirs.adsn,
            tpsn: ours.tpsn && theirs.tpsn && feedback,
            feedback,
        };
    }
}
