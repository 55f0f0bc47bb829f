//! Beside senders that keep the queue full: a window as theirs, CUBIC's (RFC 9438), on the losses of the queue alone.

use hopline_core::Instant;

/// RFC 9438 §5: what a loss leaves of the window, and how fast it comes back, packets per second cubed.
const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// After so many round trips it is time to see whether others still fill the queue.
const REVIEW_AFTER: u32 = 128;
/// Least window, packets.
const LEAST: f64 = 2.0;

/// The window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cubic {
    window: f64,
    largest: f64,
    since: Instant,
    /// What Reno's window would be (RFC 9438 §4.3).
    reno: f64,
    rounds: u32,
}

impl Cubic {
    /// Begins with so many packets.
    pub(super) fn new(now: Instant, packets: f64) -> Self {
        let window = packets.max(LEAST);
        Self { window, largest: window, since: now, reno: window, rounds: 0 }
    }

    /// Packets that may be under way.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    /// Whether it is time to see if those who fill the queue are still there: it may be us.
    pub(super) fn is_review_due(&mut self) -> bool {
        self.rounds += 1;
        self.rounds.is_multiple_of(REVIEW_AFTER)
    }

    /// A round trip without loss is over, `seconds` long.
    pub(super) fn grow(&mut self, now: Instant, seconds: f64) {
        let k = libm::cbrt((self.largest - self.window_at_loss()).max(0.0) / C);
        let t = now.since(self.since).as_secs_f64() + seconds - k;
        let cubic = C * t * t * t + self.largest;
        self.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA);
        // RFC 9438 §4.4: by half in a round trip at most.
        self.window = cubic.max(self.reno).clamp(self.window, self.window * 1.5);
    }

    /// Something was lost in the queue.
    pub(super) fn lose(&mut self, now: Instant) {
        // RFC 9438 §4.7: room for others if the window did not come back to where it was.
        self.largest =
            if self.window < self.largest { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(LEAST);
        (self.since, self.reno) = (now, self.window);
    }

    fn window_at_loss(&self) -> f64 {
        self.largest * BETA
    }
}
