//! The originator's state of its agreements, and the pending action frames of both sides (802.11-2020 §10.25.2, §10.25.4,
//! §10.25.5).

use super::super::duplicates::DuplicateCache;
use super::WINDOW;
use core::mem::discriminant;
use hopline_core::{Duration, Instant, Seq16};
use hopline_wire::dot11::{BlockAckAction, MacAddr};
use std::collections::VecDeque;

/// Timeout of the response, from the end of the request: 100 TU. The standard leaves it to the station
/// (ADDBAFailureTimeout); a response contends for the medium like data.
const RESPONSE_TIMEOUT: Duration = Duration::from_micros(100 * TU_US);
/// Successive requests, each of them retransmitted like data, before the originator pauses.
const MAX_REQUESTS: u8 = 3;
/// Duration of the pause.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Most waiting action frames; further ones are not sent.
const MAX_ACTION_FRAMES: usize = 64;
/// A time unit in µs (802.11-2020 §3.1).
const TU_US: u64 = 1024;

/// Agreements as originator, and action frames to send.
#[derive(Clone, Debug, Default)]
pub(super) struct AgreementSetup {
    agreements: Vec<(MacAddr, AgreementState)>,
    action_frames: VecDeque<ActionFrame>,
    last_token: u8,
    /// Duplicate cache of action frames. They share sequence numbers with data, but may overtake retransmissions.
    pub(super) duplicates: DuplicateCache,
}

/// State of the originator's agreement with a recipient.
#[derive(Clone, Copy, Debug)]
enum AgreementState {
    /// No agreement.
    None,
    /// A request was sent; the response is due by `until`.
    Requested {
        token: u8,
        requests: u8,
        until: Instant,
    },
    Established {
        window: u16,
        timeout: Option<Duration>,
        last_heard: Instant,
    },
    /// Refused or unanswered: no new request until then.
    Refused {
        until: Instant,
    },
}

/// Next step of an originator that has won the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Send a burst or a BlockAckReq.
    Burst,
    /// Request an agreement.
    RequestAgreement,
    /// Send one MSDU that is answered by an ACK.
    Single,
}

/// State of a burst under an agreement: whether the originator owes the recipient a BlockAckReq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    NotDue,
    Due,
}

/// An action frame to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActionFrame {
    pub(super) to: MacAddr,
    pub(super) action: BlockAckAction,
    /// Sequence number, once the frame has been sent.
    pub(super) sequence: Option<Seq16>,
    pub(super) failures: u8,
}

impl AgreementSetup {
    /// Returns the next step for MSDUs to `to`.
    pub(super) fn next_step(&mut self, now: Instant, to: MacAddr, account: RequestState) -> NextStep {
        let standing = self.state(to);
        match *standing {
            AgreementState::None => NextStep::RequestAgreement,
            AgreementState::Requested { until, .. } | AgreementState::Refused { until } if now < until => {
                NextStep::Single
            }
            AgreementState::Requested { requests: MAX_REQUESTS.., .. } => {
                *standing = AgreementState::Refused { until: now + RETRY_PAUSE };
                NextStep::Single
            }
            AgreementState::Requested { .. } | AgreementState::Refused { .. } => NextStep::RequestAgreement,
            // The originator has an inactivity timer as well (802.11-2020 §10.25.5). A block is settled first.
            AgreementState::Established { timeout: Some(timeout), last_heard: heard, .. }
                if account == RequestState::NotDue && heard + timeout <= now =>
            {
                NextStep::RequestAgreement
            }
            AgreementState::Established { .. } => NextStep::Burst,
        }
    }

    /// Returns whether there is an agreement with `to`.
    pub(super) fn is_established(&self, to: MacAddr) -> bool {
        self.agreements.iter().any(|(who, s)| *who == to && matches!(s, AgreementState::Established { .. }))
    }

    /// Returns the receiver's buffer size in MSDUs.
    pub(super) fn window(&self, to: MacAddr) -> u16 {
        self.agreements
            .iter()
            .find_map(|(who, standing)| match *standing {
                AgreementState::Established { window, .. } if *who == to => Some(window),
                _ => None,
            })
            .unwrap_or(WINDOW)
    }

    /// Starts another request to `to`. Returns its dialog token.
    pub(super) fn begin_request(&mut self, to: MacAddr) -> u8 {
        self.last_token = self.last_token.checked_add(1).unwrap_or(1);
        let token = self.last_token;
        let standing = self.state(to);
        let before = if let AgreementState::Requested { requests, .. } = *standing { requests } else { 0 };
        *standing = AgreementState::Requested { token, requests: before + 1, until: Instant::FAR_FUTURE };
        token
    }

    /// Handles a positive response. Returns whether a request with this token was outstanding.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        to: MacAddr,
        dialog_token: u8,
        (window, timeout_tu): (u16, u16),
    ) -> bool {
        let timeout = (timeout_tu > 0).then(|| Duration::from_micros(u64::from(timeout_tu) * TU_US));
        self.finish_request(
            to,
            dialog_token,
            AgreementState::Established { window: window.min(WINDOW), timeout, last_heard: now },
        )
    }

    /// Handles a refusal. Returns whether a request with this token was outstanding.
    pub(super) fn refuse(&mut self, now: Instant, to: MacAddr, dialog_token: u8) -> bool {
        self.finish_request(to, dialog_token, AgreementState::Refused { until: now + RETRY_PAUSE })
    }

    fn finish_request(&mut self, to: MacAddr, dialog_token: u8, outcome: AgreementState) -> bool {
        let standing = self.state(to);
        let is_awaited =
            matches!(*standing, AgreementState::Requested { token, .. } if token == dialog_token);
        if is_awaited {
            *standing = outcome;
            // The response arrived although the ACK of the request was lost.
            self.action_frames
                .retain(|o| o.to != to || !matches!(o.action, BlockAckAction::AddbaRequest { .. }));
        }
        is_awaited
    }

    /// Ends the agreement at the recipient's request. Returns whether there was one.
    pub(super) fn end(&mut self, to: MacAddr) -> bool {
        let stood = self.is_established(to);
        if stood {
            *self.state(to) = AgreementState::None;
        }
        stood
    }

    /// Records a BlockAck.
    pub(super) fn record_block_ack(&mut self, now: Instant, from: MacAddr) {
        if let AgreementState::Established { last_heard: heard, .. } = self.state(from) {
            *heard = now;
        }
    }

    /// Returns the next action frame.
    pub(super) fn front(&mut self) -> Option<&mut ActionFrame> {
        self.action_frames.front_mut()
    }

    pub(super) fn has_action_frames(&self) -> bool {
        !self.action_frames.is_empty()
    }

    /// Adds an action frame. It replaces an unsent one of the same kind to the same station.
    pub(super) fn push(&mut self, to: MacAddr, action: BlockAckAction) {
        let kind = discriminant(&action);
        let is_replaced =
            |o: &&mut ActionFrame| o.to == to && o.sequence.is_none() && discriminant(&o.action) == kind;
        if let Some(earlier) = self.action_frames.iter_mut().find(is_replaced) {
            earlier.action = action;
        } else if self.action_frames.len() < MAX_ACTION_FRAMES {
            self.action_frames.push_back(ActionFrame { to, action, sequence: None, failures: 0 });
        }
    }

    /// Removes the next action frame after its ACK, or after it was given up. Starts the timeout of the response to a
    /// request.
    pub(super) fn finish_front(&mut self, now: Instant) {
        let Some(ActionFrame { to, action: BlockAckAction::AddbaRequest { .. }, .. }) =
            self.action_frames.pop_front()
        else {
            return;
        };
        if let AgreementState::Requested { until, .. } = self.state(to) {
            *until = now + RESPONSE_TIMEOUT;
        }
    }

    fn state(&mut self, to: MacAddr) -> &mut AgreementState {
        let known = self.agreements.iter().position(|(who, _)| *who == to);
        let index = known.unwrap_or_else(|| {
            self.agreements.push((to, AgreementState::None));
            self.agreements.len() - 1
        });
        &mut self.agreements[index].1
    }
}

/// Returns the Block Ack Timeout Value in whole TU, rounded up; 0: never.
pub(super) fn timeout_tu(timeout: Option<Duration>) -> u16 {
    timeout.map_or(0, |t| t.as_nanos().div_ceil(1_000 * TU_US).min(u64::from(u16::MAX)) as u16)
}
