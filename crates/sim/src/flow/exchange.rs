//! Requests and responses: one after the other, with a pause between them.

use super::datagrams::duration;
use crate::outcome::DelayStats;
use crate::spec::ExchangeSpec;
use hopline_core::{Duration, Instant, RandomStream};

/// "As many bytes as the time allows": more than any run can carry.
pub(super) const UNLIMITED: u64 = 1 << 50;

/// The client and the server of a flow of requests, without the connection between them.
#[derive(Debug)]
pub(super) struct ExchangeState {
    spec: ExchangeSpec,
    stream: RandomStream,
    phase: ExchangePhase,
    /// Requests sent.
    pub(super) requests: u64,
    /// Bytes of the present message.
    message: u64,
    /// Number of those bytes that have not arrived.
    missing: u64,
    /// Segments of messages that have arrived whole.
    segments: u64,
    /// From the request's hand-over to TCP to the last byte of the response.
    pub(super) responses: DelayStats,
}

/// Phase of the present transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangePhase {
    /// There is no transaction: the client thinks, or has not begun.
    Thinking,
    /// The request is in flight.
    Requesting { since: Instant, response_bytes: u64 },
    /// The response is.
    Responding { since: Instant },
    /// There will be no more transactions.
    Done,
}

/// Action of the client after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAction {
    /// Asks again after this time.
    Think(Duration),
    /// Closes the connection.
    Close,
}

impl ExchangeState {
    pub(super) fn new(spec: ExchangeSpec, stream: RandomStream) -> Self {
        let responses = DelayStats::default();
        Self {
            spec,
            stream,
            phase: ExchangePhase::Thinking,
            requests: 0,
            message: 0,
            missing: 0,
            segments: 0,
            responses,
        }
    }

    /// Begins a transaction of the client. Returns the bytes of the request.
    pub(super) fn start_request(&mut self, now: Instant) -> u64 {
        // Both sizes at once: what is drawn next does not depend on what becomes of the request.
        let request_bytes = whole_bytes(self.spec.request_bytes.sample(&mut self.stream));
        let response_bytes = whole_bytes(self.spec.response_bytes.sample(&mut self.stream));
        self.phase = ExchangePhase::Requesting { since: now, response_bytes };
        self.start_message(request_bytes);
        self.requests += 1;
        request_bytes
    }

    /// Hands `len` bytes of the request to the server, in segments of up to `mss`. Returns the bytes of the
    /// response once all have arrived.
    pub(super) fn on_request_data(&mut self, len: u64, mss: u32) -> Option<u64> {
        let ExchangePhase::Requesting { since, response_bytes } = self.phase else { return None };
        self.receive_message_data(len, mss).then(|| {
            self.phase = ExchangePhase::Responding { since };
            self.start_message(response_bytes);
            response_bytes
        })
    }

    /// Hands `len` bytes of the response to the client, in segments of up to `mss`. Returns the next action
    /// once all have arrived.
    pub(super) fn on_response_data(&mut self, now: Instant, len: u64, mss: u32) -> Option<ClientAction> {
        let ExchangePhase::Responding { since } = self.phase else { return None };
        self.receive_message_data(len, mss).then(|| {
            self.responses.record(now.since(since));
            if self.spec.transactions.is_some_and(|n| self.requests >= n.get()) {
                self.phase = ExchangePhase::Done;
                ClientAction::Close
            } else {
                self.phase = ExchangePhase::Thinking;
                ClientAction::Think(duration(&self.spec.think_s, &mut self.stream))
            }
        })
    }

    /// Returns the number of distinct segments that have arrived, of requests and responses.
    pub(super) fn segments_received(&self, mss: u32) -> u64 {
        self.segments + (self.message - self.missing).div_ceil(mss.into())
    }

    /// Forgets the response times.
    pub(super) fn restart(&mut self) {
        self.responses = DelayStats::default();
    }

    fn start_message(&mut self, message: u64) {
        (self.message, self.missing) = (message, message);
    }

    /// Returns whether the present message is complete with `len` more bytes.
    fn receive_message_data(&mut self, len: u64, mss: u32) -> bool {
        self.missing = self.missing.saturating_sub(len);
        if self.missing == 0 {
            self.segments += self.message.div_ceil(mss.into());
            self.message = 0;
        }
        self.missing == 0
    }

    /// Returns whether there will be no more transactions.
    pub(super) fn is_done(&self) -> bool {
        self.phase == ExchangePhase::Done
    }
}

/// Returns a drawn size as whole bytes: at least one, and no more than any run can carry.
fn whole_bytes(drawn: f64) -> u64 {
    drawn.clamp(1.0, UNLIMITED as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::RandomVariable;
    use core::num::NonZeroU64;
    use hopline_core::Purpose;

    const MSS: u32 = 1460;

    fn exchange(transactions: Option<u64>) -> ExchangeState {
        let spec = ExchangeSpec {
            request_bytes: RandomVariable::Constant(300.0),
            response_bytes: RandomVariable::Constant(2000.4),
            think_s: RandomVariable::Constant(1.5),
            transactions: transactions.and_then(NonZeroU64::new),
        };
        ExchangeState::new(spec, RandomStream::keyed(1, 1, 0, Purpose::Traffic))
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn messages_complete_with_their_last_byte() {
        let mut x = exchange(None);
        assert_eq!(x.start_request(at(100)), 300);
        assert_eq!((x.on_request_data(299, MSS), x.on_request_data(1, MSS)), (None, Some(2000)));
        assert_eq!(x.on_response_data(at(150), 1460, MSS), None);
        assert_eq!(x.segments_received(MSS), 2, "one of the request, one of the response");
        assert_eq!(
            x.on_response_data(at(400), 540, MSS),
            Some(ClientAction::Think(Duration::from_millis(1500)))
        );
        assert_eq!(x.segments_received(MSS), 3);
        assert_eq!((x.responses.count(), x.responses.max()), (1, Some(Duration::from_millis(300))));
        assert!(!x.is_done());
    }

    #[test]
    fn after_the_last_transaction_the_client_closes() {
        let mut x = exchange(Some(2));
        for last in [false, true] {
            let request = x.start_request(at(0));
            let response = x.on_request_data(request, MSS).expect("the whole request");
            assert_eq!(x.on_response_data(at(10), response, MSS) == Some(ClientAction::Close), last);
        }
        assert!(x.is_done());
        assert_eq!((x.requests, x.responses.count()), (2, 2));
    }

    #[test]
    fn unexpected_bytes_are_ignored() {
        let mut x = exchange(None);
        assert_eq!((x.on_request_data(300, MSS), x.on_response_data(at(0), 300, MSS)), (None, None));
        x.start_request(at(0));
        assert_eq!(x.on_response_data(at(1), 5000, MSS), None);
    }

    #[test]
    fn message_sizes_are_clamped() {
        assert_eq!(
            [whole_bytes(-5.0), whole_bytes(0.2), whole_bytes(1.6), whole_bytes(f64::INFINITY)],
            [1, 1, 2, UNLIMITED]
        );
    }
}
