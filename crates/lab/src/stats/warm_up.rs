//! Detection of the end of a series' start-up.

use super::estimate::mean;
use super::refusal::{Refusal, finite};

/// Start-up part of a series, which is not averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// None: the whole series is used.
    None,
    /// A fixed number of samples at the start.
    Fixed(usize),
    /// The part found by MSER-5: means of five samples are dropped from the start until the standard error of
    /// the rest is smallest (White, Cobb and Spratt 2000).
    Mser5,
}

/// Number of samples of a batch of MSER-5.
const BATCH: usize = 5;
/// Minimum number of batches that MSER-5 keeps: a few may be equal by chance (Hoad, Robinson and Davies
/// 2010).
const MIN_BATCHES: usize = 5;

impl WarmUp {
    /// Returns the number of start-up samples of `series`.
    ///
    /// # Errors
    ///
    /// A series without samples after the start-up; for MSER-5 fewer than 30 samples, or a series that has
    /// not settled in its first half; values that are not finite.
    pub fn samples(self, series: &[f64]) -> Result<usize, Refusal> {
        finite(series)?;
        let too_few = |need| Err(Refusal::TooFew { have: series.len(), need });
        match self {
            Self::None => Ok(0),
            Self::Fixed(n) if n >= series.len() => too_few(n.saturating_add(1)),
            Self::Fixed(n) => Ok(n),
            Self::Mser5 if series.len() < BATCH * (MIN_BATCHES + 1) => too_few(BATCH * (MIN_BATCHES + 1)),
            Self::Mser5 => mser5(series),
        }
    }

    /// Returns the part of `series` after its start-up.
    ///
    /// # Errors
    ///
    /// As [`samples`](Self::samples).
    pub fn without_warm_up(self, series: &[f64]) -> Result<&[f64], Refusal> {
        self.samples(series).map(|n| &series[n..])
    }
}

fn mser5(series: &[f64]) -> Result<usize, Refusal> {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    // The offset is common to all sums below; subtracting it avoids cancellation.
    let offset = mean(&batches);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (dropped, batch) in batches.iter().map(|b| b - offset).enumerate().rev() {
        sum += batch;
        squares += batch * batch;
        let left = (batches.len() - dropped) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        // Of equals the one that drops least is used, which comes last.
        if batches.len() - dropped >= MIN_BATCHES && error <= best.0 {
            best = (error, dropped);
        }
    }
    if best.1 > batches.len() / 2 { Err(Refusal::NotSettled) } else { Ok(best.1 * BATCH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(value: impl Fn(f64) -> f64) -> Vec<f64> {
        let noise = |i: u32| (f64::from((i * 7919) % 101) - 50.0) / 50.0;
        (0..300).map(|i| value(f64::from(i)) + noise(i)).collect()
    }

    /// `pymser.equilibrate(x, LLM=False, batch_size=5)["t0"]`, pymser 1.0.22, on the same series.
    #[test]
    fn mser_5_agrees_with_pymser() {
        let cut = |series: &[f64]| WarmUp::Mser5.samples(series);
        assert_eq!(cut(&series(|i| 100.0 * libm::exp(-i / 20.0) + 50.0)), Ok(135));
        assert_eq!(cut(&series(|_| 50.0)), Ok(5));
        assert_eq!(cut(&series(|i| if i < 62.0 { 10.0 } else { 30.0 })), Ok(70));
        // pymser: 285, and a warning that this is too close to the end.
        assert_eq!(cut(&series(|i| i)), Err(Refusal::NotSettled));
    }

    #[test]
    fn a_large_offset_does_not_move_the_cut() {
        let step = series(|i| if i < 62.0 { 10.0 } else { 30.0 });
        let far: Vec<f64> = step.iter().map(|x| x + 1e9).collect();
        assert_eq!(WarmUp::Mser5.samples(&far), Ok(70));
    }

    #[test]
    fn an_even_series_has_no_warm_up() {
        assert_eq!(WarmUp::Mser5.samples(&[3.0; 40]), Ok(0));
        assert_eq!(WarmUp::Mser5.samples(&[0.1; 30]), Ok(0));
    }

    #[test]
    fn samples_after_the_last_whole_batch_are_kept() {
        let mut series = vec![9.0; 10];
        series.extend([1.0; 34]);
        assert_eq!(WarmUp::Mser5.without_warm_up(&series), Ok(&[1.0; 34][..]));
    }

    #[test]
    fn a_fixed_warm_up_is_used_as_given() {
        let series = [1.0, 2.0, 3.0];
        assert_eq!(WarmUp::None.without_warm_up(&series), Ok(&series[..]));
        assert_eq!(WarmUp::Fixed(0).without_warm_up(&series), Ok(&series[..]));
        assert_eq!(WarmUp::Fixed(2).without_warm_up(&series), Ok(&[3.0][..]));
        assert_eq!(WarmUp::Fixed(3).without_warm_up(&series), Err(Refusal::TooFew { have: 3, need: 4 }));
        assert!(WarmUp::Fixed(usize::MAX).without_warm_up(&series).is_err());
    }

    #[test]
    fn a_short_or_non_finite_series_is_rejected() {
        assert_eq!(WarmUp::None.without_warm_up(&[]), Ok(&[][..]));
        assert_eq!(WarmUp::Mser5.samples(&[1.0; 29]), Err(Refusal::TooFew { have: 29, need: 30 }));
        assert!(matches!(WarmUp::None.samples(&[f64::NAN]), Err(Refusal::NotFinite { .. })));
    }
}
