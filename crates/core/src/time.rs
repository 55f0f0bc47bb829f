//! Time in whole nanoseconds: virtual in the simulator, monotonic on Linux. Machines need not distinguish them.
//!
//! All crates of hopline use this [`Duration`]. It is a single 64-bit number, saturates in place of panicking, and divides
//! alike on every platform. Callers that have a [`std::time::Duration`] convert it at the boundary by `From` and `into`.
//! Setters of configurations take `impl Into<Duration>`, so that either type can be passed.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

const NANOS_PER_SEC: f64 = 1e9;

/// A point in time: nanoseconds since the start of the run. Range: 584 years.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
///
/// let start = Instant::from_millis(5);
/// let end = start + Duration::from_micros(1500);
/// assert_eq!(end.since(start), Duration::from_micros(1500));
/// // No negative time.
/// assert_eq!(start.since(end), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens; adding to it stays there.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// The instant `secs` seconds after the start.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A span of time in nanoseconds, never negative.
///
/// # Example
///
/// ```
/// use hopline_core::Duration;
///
/// let frame = Duration::of_bits(12_000, 10_000_000);
/// assert_eq!(frame, Duration::from_micros(1200));
/// // Conversion from and to the type of the standard library.
/// assert_eq!(Duration::from(std::time::Duration::from_millis(3)), Duration::from_millis(3));
/// assert_eq!(std::time::Duration::from(frame).as_micros(), 1200);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// `secs` seconds, to the nearest nanosecond. Negative and NaN give zero, too large gives [`Duration::MAX`].
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(libm::round(secs * NANOS_PER_SEC) as u64)
    }

    /// The time that `bits` take at `bits_per_sec`, rounded up to a nanosecond. `bits_per_sec` must not be zero.
    #[must_use]
    pub const fn of_bits(bits: u64, bits_per_sec: u64) -> Self {
        Self((bits as u128 * 1_000_000_000).div_ceil(bits_per_sec as u128) as u64)
    }

    /// Whole nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC
    }

    /// Returns whether the duration is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, zero if that were negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self · factor`, [`Duration::MAX`] if that were too large.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The absolute difference.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// The smallest multiple of `step` that is not below `self`; `self` if `step` is zero.
    #[must_use]
    pub const fn round_up_to(self, step: Self) -> Self {
        if step.0 == 0 { self } else { Self(self.0.div_ceil(step.0) * step.0) }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Longer durations than [`Duration::MAX`], 584 years, become that.
impl From<core::time::Duration> for Duration {
    fn from(duration: core::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_nanos(duration.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        debug_assert!(self >= rhs, "time went backwards: {self} - {rhs}");
        self.since(rhs)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        debug_assert!(self >= rhs, "negative duration: {self} - {rhs}");
        self.saturating_sub(rhs)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        self.saturating_mul(rhs)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, rhs: u64) -> Self {
        Self(self.0 / rhs)
    }
}

impl Div for Duration {
    type Output = u64;
    fn div(self, rhs: Self) -> u64 {
        self.0 / rhs.0
    }
}

impl Rem for Duration {
    type Output = Self;
    fn rem(self, rhs: Self) -> Self {
        Self(self.0 % rhs.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_future_absorbs_additions() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(1.000_000_000_6), Duration::from_nanos(1_000_000_001));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(1e300), Duration::MAX);
    }

    #[test]
    fn a_duration_of_std_converts_exactly_or_saturates() {
        let std = core::time::Duration::new(3, 7);
        assert_eq!(Duration::from(std), Duration::from_nanos(3_000_000_007));
        assert_eq!(core::time::Duration::from(Duration::from_nanos(3_000_000_007)), std);
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::MAX);
    }

    #[test]
    fn bits_take_their_time_rounded_up() {
        assert_eq!(Duration::of_bits(1528 * 8, 2_000_000), Duration::from_micros(6112));
        assert_eq!(Duration::of_bits(8, 5_500_000), Duration::from_nanos(1455));
        assert_eq!(Duration::of_bits(u64::MAX, 1_000_000_000), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn rounding_up_keeps_multiples() {
        let tick = Duration::from_millis(10);
        assert_eq!(Duration::from_millis(200).round_up_to(tick), Duration::from_millis(200));
        assert_eq!(Duration::from_micros(200_001).round_up_to(tick), Duration::from_millis(210));
        assert_eq!(Duration::from_micros(7).round_up_to(Duration::ZERO), Duration::from_micros(7));
    }
}
