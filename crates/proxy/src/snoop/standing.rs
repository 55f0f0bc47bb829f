//! Whether packets wait on the last hop for so long that a queue there may be full.

use super::config::{Standing, Untold};
use hopline_core::{Duration, Instant, Seq32};

/// Round trip of a path that has shown none yet, as a sender would guess who has never met one: long enough that a loss is not taken for
/// congestion too early.
const GUESSED: Duration = Duration::from_millis(100);

/// What is known of the waits of a connection.
#[derive(Debug)]
pub(super) struct Waits {
    untold: Untold,
    /// The least and the greatest of this round trip of the path, and of the one before.
    current: Option<Range>,
    before: Option<Range>,
    /// When this one began.
    began: Instant,
    /// The shortest round trip from here to the sender and back.
    wired: Option<Duration>,
    /// An ACK that has passed, by the mobile host's clock, and when.
    probe: Option<(u32, Instant)>,
    /// The latest of the mobile host's clock that has passed.
    passed: Option<u32>,
    /// When a loss was left to the sender last.
    left: Option<Instant>,
}

impl Waits {
    pub(super) const fn new(untold: Untold) -> Self {
        Self {
            untold,
            current: None,
            before: None,
            began: Instant::ZERO,
            wired: None,
            probe: None,
            passed: None,
            left: None,
        }
    }

    /// A first transmission took so long beyond the shortest, which is this.
    pub(super) fn sample(&mut self, now: Instant, wait: Duration, shortest: Duration) {
        if now.since(self.began) >= self.path(shortest) {
            self.before = self.current.take();
            self.began = now;
        }
        self.current = Some(Range { least: wait, greatest: wait }.with(self.current));
    }

    /// How long packets have waited for a round trip of the path, and for as much of the next as has passed; `None` if that is not known.
    /// What stands is the least: a burst comes and goes, and an ACK may be delayed (RFC 1122 §4.2.3.2).
    fn recent(&self) -> Option<Range> {
        self.before.map(|before| before.with(self.current))
    }

    /// The shortest round trip of the path.
    fn path(&self, shortest: Duration) -> Duration {
        self.wired.map_or(GUESSED, |wired| wired + shortest)
    }

    /// Congestion has been shown otherwise.
    pub(super) const fn note_shown(&mut self, now: Instant) {
        self.left = Some(now);
    }

    /// An ACK goes to the sender, with this clock of the mobile host's.
    pub(super) fn ack_passes(&mut self, now: Instant, clock: Option<u32>) {
        let Some(clock) = clock else { return };
        // A clock that was seen before may be echoed in answer to the ACK before.
        let is_new = self.passed.is_none_or(|passed| Seq32(clock).after(Seq32(passed)));
        if is_new {
            self.passed = Some(clock);
            self.probe = self.probe.or(Some((clock, now)));
        }
    }

    /// The sender echoes this.
    pub(super) fn data_comes(&mut self, now: Instant, echo: Option<u32>) {
        if let (Some(echo), Some((clock, passed))) = (echo, self.probe)
            && !Seq32(echo).before(Seq32(clock))
        {
            let took = now.since(passed);
            self.wired = Some(self.wired.map_or(took, |shortest| shortest.min(took)));
            self.probe = None;
        }
    }

    /// Whether a loss that is found now is to be left to the sender: one in two round trips is, while packets wait. `shortest`: the round
    /// trip of the last hop.
    pub(super) fn leave(&mut self, now: Instant, shortest: Duration) -> bool {
        let Untold::Possible(standing) = self.untold else { return false };
        let (path, Some(waits)) = (self.path(shortest), self.recent()) else { return false };
        // It takes him a round trip to hear of it, and as long until it is seen here.
        let heard = |left| now.since(left) >= (path + waits.least) * 2;
        let leaves = waits.are_long(standing, path) && self.left.is_none_or(heard);
        if leaves {
            self.left = Some(now);
        }
        leaves
    }
}

/// Waits of a time.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: Duration,
    greatest: Duration,
}

impl Range {
    fn with(self, other: Option<Self>) -> Self {
        other.map_or(self, |other| Self {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        })
    }

    fn are_long(self, standing: Standing, path: Duration) -> bool {
        let Standing { of_path, of_peak, at_least } = standing;
        let reaches = |of: Duration, share: f64| self.least.as_nanos() as f64 >= of.as_nanos() as f64 * share;
        reaches(path, of_path) || reaches(path, at_least) && reaches(self.greatest, of_peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Of a path of 50 ms, 4 of which are the last hop's, whose packets wait in turn for so long, one each 5 ms up to 200 ms.
    fn after(untold: Untold, waits: &[u64]) -> Waits {
        let mut all = Waits::new(untold);
        all.ack_passes(at(0), Some(7));
        all.data_comes(at(46), Some(7));
        for (n, wait) in (0..=40).zip(waits.iter().cycle()) {
            all.sample(at(n * 5), ms(*wait), ms(4));
        }
        all
    }

    fn possible(waits: &[u64]) -> Waits {
        after(Untold::Possible(Standing::DEFAULT), waits)
    }

    #[test]
    fn while_packets_wait_one_loss_in_two_round_trips_is_left() {
        let mut waits = possible(&[50, 80]);
        assert!(waits.leave(at(200), ms(4)));
        // Twice 50 ms and what stands.
        assert!(!waits.leave(at(399), ms(4)));
        assert!(waits.leave(at(400), ms(4)));
    }

    #[test]
    fn a_burst_and_a_delayed_ack_are_no_queue() {
        assert!(!possible(&[60, 60, 0]).leave(at(200), ms(4)));
        assert!(!possible(&[49, 80]).leave(at(200), ms(4)), "less than the path takes");
    }

    #[test]
    fn a_short_queue_that_stands_at_its_end_is_one() {
        assert!(possible(&[11, 12]).leave(at(200), ms(4)));
        assert!(!possible(&[4]).leave(at(200), ms(4)), "too short to matter");
    }

    #[test]
    fn where_every_queue_tells_nothing_is_left() {
        assert!(!after(Untold::None, &[60]).leave(at(200), ms(4)));
    }

    #[test]
    fn congestion_that_was_shown_is_not_shown_again_at_once() {
        let mut waits = possible(&[60]);
        waits.note_shown(at(190));
        assert!(!waits.leave(at(200), ms(4)));
    }

    #[test]
    fn the_path_is_as_long_as_its_quickest_echo() {
        let mut waits = Waits::new(Untold::None);
        assert_eq!(waits.path(ms(4)), GUESSED);
        waits.ack_passes(at(0), Some(u32::MAX));
        waits.ack_passes(at(1), Some(u32::MAX));
        waits.data_comes(at(10), Some(u32::MAX - 1));
        assert_eq!(waits.path(ms(4)), GUESSED, "that was an echo of something earlier");
        waits.data_comes(at(30), Some(0));
        assert_eq!(waits.path(ms(4)), ms(34));
        waits.ack_passes(at(40), Some(3));
        waits.data_comes(at(60), Some(3));
        waits.ack_passes(at(60), Some(4));
        waits.data_comes(at(160), Some(4));
        assert_eq!(waits.path(ms(4)), ms(24));
    }
}
