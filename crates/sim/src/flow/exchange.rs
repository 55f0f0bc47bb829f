//! Requests and responses: one after the other, with a pause between them.

use super::datagrams::duration;
use crate::outcome::Delays;
use crate::spec::Exchange as ExchangeSpec;
use hopline_core::{Duration, Instant, Stream};

/// "As many bytes as the time allows": more than any run can carry.
pub(super) const UNLIMITED: u64 = 1 << 50;

/// The client and the server of a flow of requests, without the connection between them.
#[derive(Debug)]
pub(super) struct Exchange {
    spec: ExchangeSpec,
    stream: Stream,
    phase: Phase,
    /// Requests sent.
    pub(super) requests: u64,
    /// Bytes of the present message.
    message: u64,
    /// Number of those bytes that have not arrived.
    missing: u64,
    /// Segments of messages that have arrived whole.
    segments: u64,
    /// From the request's hand-over to TCP to the last byte of the response.
    pub(super) responses: Delays,
}

/// Phase of the present transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no transaction: the client thinks, or has not begun.
    Thinking,
    /// The request is in flight.
    Asking { since: Instant, response_bytes: u64 },
    /// The response is.
    Answering { since: Instant },
    /// There will be no more transactions.
    Done,
}

/// Action of the client after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Asks again after this time.
    Think(Duration),
    /// Closes the connection.
    Close,
}

impl Exchange {
    pub(super) fn new(spec: ExchangeSpec, stream: Stream) -> Self {
        let responses = Delays::default();
        Self {
            spec,
            stream,
            phase: Phase::Thinking,
            requests: 0,
            message: 0,
            missing: 0,
            segments: 0,
            responses,
        }
    }

    /// Begins a transaction of the client. Returns the bytes of the request.
    pub(super) fn ask(&mut self, now: Instant) -> u64 {
        // Both sizes at once: what is drawn next does not depend on what becomes of the request.
        let request_bytes = bytes(self.spec.request_bytes.sample(&mut self.stream));
        let response_bytes = bytes(self.spec.response_bytes.sample(&mut self.stream));
        self.phase = Phase::Asking { since: now, response_bytes };
        self.expect(request_bytes);
        self.requests += 1;
        request_bytes
    }

    /// Hands `len` bytes of the request to the server, in segments of up to `mss`. Returns the bytes of the
    /// response once all have arrived.
    pub(super) fn server_takes(&mut self, len: u64, mss: u32) -> Option<u64> {
        let Phase::Asking { since, response_bytes } = self.phase else { return None };
        self.take(len, mss).then(|| {
            self.phase = Phase::Answering { since };
            self.expect(response_bytes);
            response_bytes
        })
    }

    /// Hands `len` bytes of the response to the client, in segments of up to `mss`. Returns the next action
    /// once all have arrived.
    pub(super) fn client_takes(&mut self, now: Instant, len: u64, mss: u32) -> Option<Next> {
        let Phase::Answering { since } = self.phase else { return None };
        self.take(len, mss).then(|| {
            self.responses.record(now.since(since));
            if self.spec.transactions.is_some_and(|n| self.requests >= n.get()) {
                self.phase = Phase::Done;
                Next::Close
            } else {
                self.phase = Phase::Thinking;
                Next::Think(duration(&self.spec.think_s, &mut self.stream))
            }
        })
    }

    /// Returns the number of distinct segments that have arrived, of requests and responses.
    pub(super) fn segments_received(&self, mss: u32) -> u64 {
        self.segments + (self.message - self.missing).div_ceil(mss.into())
    }

    /// Forgets the response times.
    pub(super) fn restart(&mut self) {
        self.responses = Delays::default();
    }

    fn expect(&mut self, message: u64) {
        (self.message, self.missing) = (message, message);
    }

    /// Returns whether the present message is complete with `len` more bytes.
    fn take(&mut self, len: u64, mss: u32) -> bool {
        self.missing = self.missing.saturating_sub(len);
        if self.missing == 0 {
            self.segments += self.message.div_ceil(mss.into());
            self.message = 0;
        }
        self.missing == 0
    }

    /// Returns whether there will be no more transactions.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }
}

/// Returns a drawn size as whole bytes: at least one, and no more than any run can carry.
fn bytes(drawn: f64) -> u64 {
    drawn.clamp(1.0, UNLIMITED as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use core::num::NonZeroU64;
    use hopline_core::Purpose;

    const MSS: u32 = 1460;

    fn exchange(transactions: Option<u64>) -> Exchange {
        let spec = ExchangeSpec {
            request_bytes: Draw::Constant(300.0),
            response_bytes: Draw::Constant(2000.4),
            think_s: Draw::Constant(1.5),
            transactions: transactions.and_then(NonZeroU64::new),
        };
        Exchange::new(spec, Stream::keyed(1, 1, 0, Purpose::Traffic))
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_server_answers_when_it_has_the_whole_request_and_the_client_thinks_when_it_has_the_whole_response()
    {
        let mut x = exchange(None);
        assert_eq!(x.ask(at(100)), 300);
        assert_eq!((x.server_takes(299, MSS), x.server_takes(1, MSS)), (None, Some(2000)));
        assert_eq!(x.client_takes(at(150), 1460, MSS), None);
        assert_eq!(x.segments_received(MSS), 2, "one of the request, one of the response");
        assert_eq!(x.client_takes(at(400), 540, MSS), Some(Next::Think(Duration::from_millis(1500))));
        assert_eq!(x.segments_received(MSS), 3);
        assert_eq!((x.responses.count(), x.responses.max()), (1, Some(Duration::from_millis(300))));
        assert!(!x.is_done());
    }

    #[test]
    fn after_the_last_transaction_the_client_closes() {
        let mut x = exchange(Some(2));
        for last in [false, true] {
            let request = x.ask(at(0));
            let response = x.server_takes(request, MSS).expect("the whole request");
            assert_eq!(x.client_takes(at(10), response, MSS) == Some(Next::Close), last);
        }
        assert!(x.is_done());
        assert_eq!((x.requests, x.responses.count()), (2, 2));
    }

    #[test]
    fn bytes_at_the_wrong_time_mean_nothing() {
        let mut x = exchange(None);
        assert_eq!((x.server_takes(300, MSS), x.client_takes(at(0), 300, MSS)), (None, None));
        x.ask(at(0));
        assert_eq!(x.client_takes(at(1), 5000, MSS), None);
    }

    #[test]
    fn a_message_has_a_byte_at_least_and_an_end() {
        assert_eq!([bytes(-5.0), bytes(0.2), bytes(1.6), bytes(f64::INFINITY)], [1, 1, 2, UNLIMITED]);
    }
}
