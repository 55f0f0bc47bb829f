//! How much of what is sent is usually lost, and when it is more.
//!
//! A radio loses a share of the packets whatever the rate; a queue or a policer loses what is too much. So losses say something only
//! beyond what is usual. What is usual is learnt while the rate grows without losing a larger share; and by a test: a share that stays
//! as it is when less is sent is not the rate's. Among many senders that test is blind, so much is believed only with a proof: a queue has
//! drained, and losses stayed.

use super::super::config::TrustConfig;
use super::compete::Lost;
use hopline_core::{Duration, Instant};

/// Packets that a verdict takes at least.
const LEAST: f64 = 48.0;
/// Packets that tell whether the share grows with the rate.
const LEAST_GROWING: f64 = 16.0;
/// Packets that are settled while a queue has drained, before they prove something.
const LEAST_DRAINED: f64 = 24.0;
/// A share that has grown by this is the rate's.
const GROWN: f64 = 0.1;
/// What is usual is learnt over about so many packets.
const MEMORY: f64 = 500.0;
/// No path loses more than this by itself: whatever is beyond is taken for the rate's.
pub(super) const MOST: f64 = 0.4;
/// So many round trips a proof holds at least, and a credit lasts.
const PROOF_ROUNDS: u64 = 256;
const CREDIT_ROUNDS: u64 = 64;
/// A credit lasts for as long as so many packets take, too, up to so many seconds: where few leave, a verdict takes long.
const CREDIT_PACKETS: f64 = 300.0;
const CREDIT_MOST: Duration = Duration::from_secs(10);
/// After a credit so many times as long nothing is believed without a proof: were all of a crowd on credit for half of the time, they would
/// find each other's losses.
const WITHOUT: u64 = 3;
/// Packets that are settled while a queue is clearly below its longest, before they tell what the path loses; and of the last so many.
const LEAST_BELOW: f64 = 24.0;
const MOST_BELOW: f64 = 200.0;
/// Losses beyond the path's are a queue's where they are more than chance has of so many packets.
const CHANCE_OF: f64 = 15.0;
/// Losses that a rate below the limit still has: share of those before, and of all packets.
const SOME: f64 = 0.1;
const FEW: f64 = 0.002;
/// A test has so many packets at most.
const MOST_TESTED: f64 = 300.0;
/// Variance of the losses at the start, against that of independent ones: bursts are nothing special on a radio.
const BURSTY: f64 = 4.0;

/// What became of the last packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Too few to say.
    Open,
    /// As usual: this share.
    Usual(f64),
    /// More than usual: this share.
    Excess(f64),
}

/// The ledger of losses.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    excess: f64,
    config: TrustConfig,
    /// The usual share.
    usual: f64,
    /// How much more than independent losses they vary: 1 for these.
    spread: f64,
    trust: Trust,
    /// Packets that were settled and lost just after queues had drained.
    drained: [f64; 2],
    settled: f64,
    lost: f64,
    /// The same while the rate grew.
    growing: [f64; 2],
    /// The same while queues were clearly shorter than they become.
    below: [f64; 2],
    /// Packets lost beyond what the path loses, beside others that keep the queue full.
    beyond: f64,
}

impl Losses {
    pub(super) const fn new(excess: f64, config: TrustConfig) -> Self {
        Self {
            excess,
            config,
            usual: 0.0,
            spread: BURSTY,
            trust: Trust::Begin,
            drained: [0.0; 2],
            settled: 0.0,
            lost: 0.0,
            growing: [0.0; 2],
            below: [0.0; 2],
            beyond: 0.0,
        }
    }

    /// The usual share, as far as it is believed.
    pub(super) fn usual(&self) -> f64 {
        self.usual.min(if self.is_trusted() { MOST } else { self.config.unproven })
    }

    /// Whether more than a little is believed to be lost by nature.
    pub(super) fn is_trusted(&self) -> bool {
        !matches!(self.trust, Trust::None { .. })
    }

    /// Time goes by. `packet`: from one packet to the next.
    pub(super) fn age(&mut self, now: Instant, srtt: Duration, packet: Duration) {
        let lasts = |rounds, least: Duration| srtt.saturating_mul(rounds).max(least);
        let for_verdicts = Duration::from_secs_f64(packet.as_secs_f64() * CREDIT_PACKETS).min(CREDIT_MOST);
        let of_credit = lasts(CREDIT_ROUNDS, self.config.credit).max(for_verdicts);
        let credit = Trust::Credit { until: now + of_credit };
        self.trust = match self.trust {
            Trust::Begin => credit,
            Trust::Proven => Trust::Held { until: now + lasts(PROOF_ROUNDS, self.config.proof) },
            Trust::Credit { until } | Trust::Held { until } if until <= now => {
                Trust::None { until: now + of_credit.saturating_mul(WITHOUT) }
            }
            Trust::None { until } if until <= now => credit,
            same => same,
        };
    }

    /// So many packets arrived, or were lost; of those that arrived, some had been taken for lost.
    pub(super) fn take(&mut self, delivered: u64, lost: u64, late: u64) {
        self.settled = (self.settled + (delivered + lost) as f64 - late as f64).max(0.0);
        self.lost = (self.lost + lost as f64 - late as f64).max(0.0);
    }

    /// The same, while the queue is clearly shorter than it becomes.
    pub(super) fn take_below(&mut self, delivered: u64, lost: u64, late: u64) {
        let [settled, lost] = [(delivered + lost) as f64 - late as f64, lost as f64 - late as f64];
        self.below = [(self.below[0] + settled).max(0.0), (self.below[1] + lost).max(0.0)];
        if self.below[0] > MOST_BELOW {
            self.below = self.below.map(|count| count / 2.0);
        }
    }

    /// What the path loses, whatever room there is in the queue; nothing, as long as that is not known.
    fn of_the_path(&self) -> f64 {
        let [n, lost] = self.below;
        if n < LEAST_BELOW { 0.0 } else { self.usual().min(lost / n) }
    }

    /// A round trip is over in which the rate was higher than in those before.
    pub(super) fn growing(&mut self, learns: Learns) -> Verdict {
        if self.settled < LEAST_GROWING {
            return Verdict::Open;
        }
        let (n, lost) = (self.settled, self.lost);
        let [before, lost_before] = self.growing;
        let share = lost / n;
        if before >= LEAST_GROWING {
            let base = lost_before / before;
            // None lost of few does not mean that none are.
            let likely = (lost_before + 1.0) / (before + 2.0);
            let deviation = (self.spread * likely * (1.0 - likely) * (1.0 / n + 1.0 / before)).sqrt();
            if share > base + GROWN + self.excess * deviation {
                return Verdict::Excess(share);
            }
        }
        if learns == Learns::Yes {
            self.growing = [before + n, lost_before + lost];
            self.usual = (self.growing[1] / self.growing[0]).min(MOST);
        }
        self.begin_anew();
        Verdict::Usual(share)
    }

    /// A round trip is over. What is usual is learnt from it only where the rate has not grown: it must not drift along with the rate.
    pub(super) fn round(&mut self, learns: Learns) -> Verdict {
        if self.settled < LEAST {
            return Verdict::Open;
        }
        let (n, lost) = (self.settled, self.lost);
        let (share, expected) = (lost / n, self.usual() * n);
        let beyond = lost - expected;
        self.begin_anew();
        let spread = if self.is_trusted() { self.spread } else { 1.0 };
        if beyond > 1.0 + self.excess * (spread * expected.max(0.5)).sqrt() {
            return Verdict::Excess(share);
        }
        if learns == Learns::Yes {
            let weight = n / (n + MEMORY);
            if expected > 1.0 {
                self.spread += weight * ((beyond * beyond / expected).max(1.0) - self.spread);
            }
            self.learn(share, n);
        }
        Verdict::Usual(share)
    }

    /// A round trip is over beside others that keep the queue full: whether more was lost than the path loses. Few packets are settled in one, so
    /// what is beyond adds up until it is more than chance.
    pub(super) fn queue_lost(&mut self) -> Lost {
        let path = self.of_the_path();
        self.beyond = (self.beyond + self.lost - path * self.settled).max(0.0);
        self.begin_anew();
        if self.beyond <= 0.5 + (self.spread * path * CHANCE_OF).sqrt() {
            return Lost::Nothing;
        }
        self.beyond = 0.0;
        Lost::InTheQueue
    }

    /// A share that was lost is the path's.
    pub(super) fn believe(&mut self, share: f64) {
        self.usual = share.min(MOST);
    }

    /// Losses were seen that no queue can have caused.
    pub(super) fn prove(&mut self) {
        self.trust = Trust::Proven;
    }

    fn learn(&mut self, share: f64, n: f64) {
        self.usual = (self.usual + n / (n + MEMORY) * (share - self.usual)).min(MOST);
    }

    /// Less than usual was sent, by `factor`, and at most half of a queue is left. It proves something if there was one before: a queue that was always
    /// full looks like none.
    pub(super) fn drained(&mut self, factor: f64, proof: Proof) {
        self.drained[0] += self.settled;
        self.drained[1] += self.lost;
        self.begin_anew();
        let [n, lost] = self.drained;
        if n >= LEAST_DRAINED {
            let share = lost / n;
            match self.cause(self.usual, [n, lost], factor) {
                Cause::Rate => self.usual = share.min(self.usual),
                Cause::Path => self.learn(share, n),
            }
            if proof == Proof::Yes {
                self.prove();
            }
            self.drained = [0.0; 2];
        }
    }

    /// Less was sent, by `factor`, than when a share of `before` was lost: whose losses they were, and the share that is lost now. `None`: too
    /// little was seen to say.
    pub(super) fn test(&mut self, before: f64, factor: f64) -> Option<(Cause, f64)> {
        let [n, lost] = [self.settled, self.lost];
        let likelier = self.likelier_ours(before, [n, lost], factor);
        if n < LEAST || (likelier.abs() < self.config.decided && n < MOST_TESTED) {
            return None;
        }
        let share = lost / n;
        let cause = if likelier > 0.0 { Cause::Rate } else { Cause::Path };
        self.usual = if cause == Cause::Path { share.min(MOST) } else { share.min(self.usual) };
        self.begin_anew();
        Some((cause, share))
    }

    /// Whose losses they are if a share of `before` was lost, and `lost` of `n` packets when less was sent, by `factor`.
    fn cause(&self, before: f64, seen: [f64; 2], factor: f64) -> Cause {
        if self.likelier_ours(before, seen, factor) > 0.0 { Cause::Rate } else { Cause::Path }
    }

    /// Of Poisson's law: the logarithm of how much likelier it is that they are the rate's than that they are the path's. Bursts count once.
    fn likelier_ours(&self, before: f64, [n, lost]: [f64; 2], factor: f64) -> f64 {
        // If what goes through stays the same.
        let ours = 1.0 - (1.0 - before) / factor;
        let if_ours = n * ours.max(before * SOME).max(FEW);
        let if_theirs = n * before.max(FEW);
        (if_theirs - if_ours + lost * libm::log(if_ours / if_theirs)) / self.spread.clamp(1.0, BURSTY)
    }

    /// What is under way belongs to another rate: it says nothing of this one.
    pub(super) fn begin_anew(&mut self) {
        (self.settled, self.lost) = (0.0, 0.0);
    }
}

/// Whether losses were seen that no queue can have caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Begin,
    /// Not yet.
    Credit {
        until: Instant,
    },
    /// Just now.
    Proven,
    /// Of late.
    Held {
        until: Instant,
    },
    /// Not for long.
    None {
        until: Instant,
    },
}

/// Whether what is usual may be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learns {
    Yes,
    No,
}

/// Whether losses that stay without a queue prove something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Yes,
    No,
}

/// Whose losses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Of the path, whatever is sent.
    Path,
    /// Of a rate that is too high.
    Rate,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUST: TrustConfig = super::super::super::config::Config::DEFAULT.control.trust;
    const SRTT: Duration = Duration::from_millis(50);
    const PACKET: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// A ledger that believes a share of 30 % to be usual.
    fn lossy() -> Losses {
        let mut losses = Losses::new(2.5, TRUST);
        losses.age(at(0), SRTT, PACKET);
        for _ in 0..4 {
            losses.take(70, 30, 0);
            losses.growing(Learns::Yes);
        }
        losses
    }

    #[test]
    fn much_is_believed_for_a_while_and_then_only_once_a_queue_has_drained() {
        let mut losses = lossy();
        assert!((losses.usual() - 0.3).abs() < 1e-9);
        losses.age(at(3), SRTT, PACKET);
        assert!((losses.usual() - 0.3).abs() < 1e-9, "64 round trips are 3.2 s");
        losses.age(at(4), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.take(70, 30, 0);
        losses.drained(0.7, Proof::No);
        losses.age(at(4), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9, "nothing has drained");
        losses.take(70, 30, 0);
        losses.drained(0.7, Proof::Yes);
        losses.age(at(4), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "{}", losses.usual());
        losses.age(at(16), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "a proof holds for 15 s");
        losses.age(at(20), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.age(at(29), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.age(at(30), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "from time to time a proof may be looked for");
    }

    #[test]
    fn a_test_finds_a_policer_and_goes_on_while_both_causes_are_as_likely() {
        // A fifth was too much, and a fifth less is sent.
        let mut policed = lossy();
        policed.take(100, 0, 0);
        assert_eq!(policed.test(0.2, 0.8), Some((Cause::Rate, 0.0)));
        let mut radio = lossy();
        radio.take(80, 20, 0);
        assert_eq!(radio.test(0.2, 0.8), Some((Cause::Path, 0.2)));
        // A thirtieth was lost: one of 60 says little.
        let mut open = lossy();
        open.take(59, 1, 0);
        assert_eq!(open.test(0.033, 0.8), None);
        open.take(250, 9, 0);
        assert!(matches!(open.test(0.033, 0.8), Some((Cause::Path, _))), "it comes to a verdict");
    }

    #[test]
    fn of_few_packets_a_round_trip_what_is_lost_beyond_the_paths_losses_adds_up() {
        let mut losses = lossy();
        losses.take(4, 1, 0);
        assert_eq!(losses.queue_lost(), Lost::InTheQueue, "nothing is known of the path's losses");
        losses.take_below(70, 30, 0);
        let mut cuts = |lost_of_ten: u64| {
            let of_a_hundred = (0..100).filter(|_| {
                losses.take(10 - lost_of_ten, lost_of_ten, 0);
                losses.queue_lost() == Lost::InTheQueue
            });
            of_a_hundred.count()
        };
        assert_eq!((cuts(3), cuts(2)), (0, 0));
        assert!((15..30).contains(&cuts(4)), "each loss beyond them counts");
    }

    #[test]
    fn what_is_lost_below_the_longest_queue_is_forgotten_for_what_is_lost_now() {
        let mut losses = lossy();
        (0..10).for_each(|_| losses.take_below(70, 30, 0));
        assert!((losses.of_the_path() - 0.3).abs() < 1e-9);
        (0..10).for_each(|_| losses.take_below(100, 0, 0));
        assert!(losses.of_the_path() < 0.01);
        losses.take_below(10, 0, 300);
        assert_eq!(losses.of_the_path(), 0.0, "late ones were not lost, however many");
    }
}
