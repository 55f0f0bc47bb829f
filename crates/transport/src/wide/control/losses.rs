//! How much of what is sent is usually lost, and when it is more.
//!
//! A radio loses a share of the packets whatever the rate; a queue or a policer loses what is too much. So losses say something only
//! beyond what is usual. What is usual is learnt while the rate grows without losing a larger share; and by a test: a share that stays
//! as it is when less is sent is not the rate's.

/// Packets that a verdict takes at least.
const LEAST: f64 = 48.0;
/// Packets that tell whether the share grows with the rate.
const LEAST_GROWING: f64 = 16.0;
/// A share that has grown by this is the rate's.
const GROWN: f64 = 0.1;
/// What is usual is learnt over about so many packets.
const MEMORY: f64 = 500.0;
/// No path loses more than this by itself: whatever is beyond is taken for the rate's.
const MOST: f64 = 0.4;
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
    /// The usual share.
    usual: f64,
    /// How much more than independent losses they vary: 1 for these.
    spread: f64,
    settled: f64,
    lost: f64,
    /// The same while the rate grew.
    growing: [f64; 2],
}

impl Losses {
    pub(super) const fn new(excess: f64) -> Self {
        Self { excess, usual: 0.0, spread: BURSTY, settled: 0.0, lost: 0.0, growing: [0.0; 2] }
    }

    /// The usual share.
    pub(super) fn usual(&self) -> f64 {
        self.usual
    }

    /// So many packets arrived, or were lost; of those that arrived, some had been taken for lost.
    pub(super) fn take(&mut self, delivered: u64, lost: u64, late: u64) {
        self.settled = (self.settled + (delivered + lost) as f64 - late as f64).max(0.0);
        self.lost = (self.lost + lost as f64 - late as f64).max(0.0);
    }

    /// A round trip is over in which the rate was higher than in those before.
    pub(super) fn growing(&mut self) -> Verdict {
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
        self.growing = [before + n, lost_before + lost];
        self.usual = (self.growing[1] / self.growing[0]).min(MOST);
        self.begin_anew();
        Verdict::Usual(share)
    }

    /// A round trip is over. What is usual is learnt from it only where the rate has not grown: it must not drift along with the rate.
    pub(super) fn round(&mut self, learns: Learns) -> Verdict {
        if self.settled < LEAST {
            return Verdict::Open;
        }
        let (n, lost) = (self.settled, self.lost);
        let (share, expected) = (lost / n, self.usual * n);
        let beyond = lost - expected;
        self.begin_anew();
        if beyond > 1.0 + self.excess * (self.spread * expected.max(0.5)).sqrt() {
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

    /// A round trip is over beside others that keep the queue full: whether more than usual was lost.
    pub(super) fn queue_lost(&mut self) -> bool {
        let expected = self.usual * self.settled;
        let more = self.lost > expected + self.excess * (self.spread * expected).sqrt();
        self.begin_anew();
        more
    }

    fn learn(&mut self, share: f64, n: f64) {
        self.usual = (self.usual + n / (n + MEMORY) * (share - self.usual)).min(MOST);
    }

    /// Less than usual was sent, by `factor`.
    pub(super) fn drained(&mut self, factor: f64) {
        if self.settled >= LEAST {
            let (share, n) = (self.lost / self.settled, self.settled);
            match self.cause(self.usual, share, factor) {
                Cause::Rate => self.usual = share.min(self.usual),
                Cause::Path => self.learn(share, n),
            }
        }
        self.begin_anew();
    }

    /// A test is over: less was sent, by `factor`, than when `before` was lost. Whether it was the rate's; `None`: too few packets
    /// to say; with the share that is lost now.
    pub(super) fn test(&mut self, before: f64, factor: f64) -> Option<(Cause, f64)> {
        if self.settled < LEAST * (self.spread / BURSTY).max(1.0) {
            return None;
        }
        let share = self.lost / self.settled;
        let cause = self.cause(before, share, factor);
        self.usual = if cause == Cause::Path { share.min(MOST) } else { share.min(self.usual) };
        self.begin_anew();
        Some((cause, share))
    }

    /// Whose losses they are if a share of `before` became `after` when less was sent, by `factor`.
    fn cause(&self, before: f64, after: f64, factor: f64) -> Cause {
        // If what goes through stays the same.
        let ours = (1.0 - (1.0 - before) / factor).max(0.0);
        if before > 0.0 && after < (before + ours) / 2.0 { Cause::Rate } else { Cause::Path }
    }

    /// What is under way belongs to another rate: it says nothing of this one.
    pub(super) fn begin_anew(&mut self) {
        (self.settled, self.lost) = (0.0, 0.0);
    }
}

/// Whether what is usual may be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learns {
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
