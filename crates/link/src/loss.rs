//! Packet loss, independent or in bursts, from one two-state chain.

use hopline_core::RandomStream;

/// Two-state channel: it passes all packets in the good state and none in the bad state (Gilbert 1960; Elliott 1963 with
/// both error rates fixed). It changes state once per packet.
#[derive(Clone, Debug)]
pub(crate) struct GilbertElliott {
    /// Probability of a change to the bad state after a packet that passed.
    to_bad: f64,
    /// Probability of a change to the good state after a packet that was lost.
    to_good: f64,
    /// Packets lost since the last that passed.
    consecutive_losses: u64,
    is_bad: bool,
}

impl GilbertElliott {
    /// Creates a channel with the long-term loss rate `loss` and bursts of `burst` packets in the mean. `None`, and shorter
    /// bursts than those of independent losses, give independent losses.
    pub(crate) fn new(loss: f64, burst: Option<f64>, random: &mut RandomStream) -> Self {
        let loss = loss.clamp(0.0, 1.0);
        // Independent losses come in geometric bursts of mean 1 / (1 − loss).
        let to_good = burst.map_or(1.0 - loss, |burst| (1.0 / burst.max(1.0)).min(1.0 - loss));
        // The share of bad packets, to_bad / (to_bad + to_good), is `loss`.
        let to_bad = if loss < 1.0 { loss * to_good / (1.0 - loss) } else { 1.0 };
        // The first packet meets the channel in its steady state.
        Self { to_bad, to_good, consecutive_losses: 0, is_bad: random.bernoulli(loss) }
    }

    /// Returns the fate of the next packet: `None` if it passes, else the number of packets lost just before it.
    pub(crate) fn next(&mut self, random: &mut RandomStream) -> Option<u64> {
        let lost = self.is_bad;
        let leaves = random.bernoulli(if self.is_bad { self.to_good } else { self.to_bad });
        self.is_bad ^= leaves;
        let position = self.consecutive_losses;
        self.consecutive_losses = if lost { self.consecutive_losses + 1 } else { 0 };
        lost.then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Purpose;

    /// Returns the number of lost packets and of bursts among `n` packets.
    fn count(loss: f64, burst: Option<f64>, n: u64) -> (u64, u64) {
        let mut random = RandomStream::keyed(7, 0, 0, Purpose::Emulation);
        let mut losses = GilbertElliott::new(loss, burst, &mut random);
        let fates: Vec<_> = (0..n).filter_map(|_| losses.next(&mut random)).collect();
        (fates.len() as u64, fates.iter().filter(|&&position| position == 0).count() as u64)
    }

    #[test]
    fn independent_losses_have_their_rate_and_natural_bursts() {
        for loss in [0.01, 0.1, 0.2, 0.5] {
            let n = 400_000.0;
            let (lost, bursts) = count(loss, None, 400_000);
            let deviation = (n * loss * (1.0 - loss)).sqrt();
            assert!((lost as f64 - n * loss).abs() < 4.0 * deviation, "{loss}: {lost}");
            let mean = lost as f64 / bursts as f64;
            assert!((mean - 1.0 / (1.0 - loss)).abs() < 0.03, "{loss}: bursts of {mean}");
        }
    }

    #[test]
    fn bursts_have_their_mean_length_and_keep_the_loss_rate() {
        for (loss, burst) in [(0.01, 4.0), (0.05, 4.0), (0.1, 4.0), (0.2, 10.0)] {
            let n = 1_000_000.0;
            let (lost, bursts) = count(loss, Some(burst), 1_000_000);
            // Correlation makes the variance of the share larger by about 2 · burst.
            let deviation = (n * loss * (1.0 - loss) * 2.0 * burst).sqrt();
            assert!((lost as f64 - n * loss).abs() < 4.0 * deviation, "{loss}: {lost}");
            let mean = lost as f64 / bursts as f64;
            // Geometric lengths deviate by about their mean.
            let deviation = burst / (bursts as f64).sqrt();
            assert!((mean - burst).abs() < 4.0 * deviation, "{loss}: bursts of {mean}");
        }
    }

    #[test]
    fn loss_rates_of_zero_and_one_are_exact() {
        assert_eq!(count(0.0, None, 1000), (0, 0));
        assert_eq!(count(0.0, Some(4.0), 1000), (0, 0));
        assert_eq!(count(1.0, None, 1000), (1000, 1));
        assert_eq!(count(1.0, Some(4.0), 1000), (1000, 1));
    }

    #[test]
    fn a_burst_is_at_least_as_long_as_for_independent_losses() {
        assert_eq!(count(0.5, Some(1.0), 10_000), count(0.5, None, 10_000));
        assert_eq!(count(0.5, Some(-3.0), 10_000), count(0.5, None, 10_000));
    }
}
