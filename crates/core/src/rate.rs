//! Rate limits: a maximum number of messages in any one second (RFC 3561 §6.3, §6.11; RFC 1812 §4.3.2.8).

use crate::time::{Duration, Instant};
use core::num::NonZeroU16;
use std::collections::VecDeque;

const SECOND: Duration = Duration::from_secs(1);

/// Limit on the number of messages in any one second.
///
/// # Example
///
/// ```
/// use core::num::NonZeroU16;
/// use hopline_core::{Instant, RateLimit};
///
/// let mut limit = RateLimit::new(NonZeroU16::new(1));
/// assert_eq!(limit.take(Instant::ZERO), Ok(()));
/// // Not before the second is over.
/// assert_eq!(limit.take(Instant::from_millis(300)), Err(Instant::from_secs(1)));
/// assert_eq!(limit.take(Instant::from_secs(1)), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit {
    per_second: Option<NonZeroU16>,
    /// Times of the last `per_second` messages.
    sent: VecDeque<Instant>,
}

impl RateLimit {
    /// Limits messages to `per_second`; `None`: no limit.
    #[must_use]
    pub fn new(per_second: Option<NonZeroU16>) -> Self {
        Self { per_second, sent: VecDeque::new() }
    }

    /// Takes permission to send at `now`.
    ///
    /// # Errors
    /// The earliest instant at which sending is permitted.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let Some(limit) = self.per_second else { return Ok(()) };
        if self.sent.len() >= usize::from(limit.get()) {
            let oldest = *self.sent.front().expect("a limit is at least one");
            if oldest + SECOND > now {
                return Err(oldest + SECOND);
            }
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_exceeds_the_limit() {
        let mut rate = RateLimit::new(NonZeroU16::new(2));
        assert_eq!(rate.take(Instant::from_millis(0)), Ok(()));
        assert_eq!(rate.take(Instant::from_millis(600)), Ok(()));
        assert_eq!(rate.take(Instant::from_millis(999)), Err(Instant::from_millis(1_000)));
        assert_eq!(rate.take(Instant::from_millis(1_000)), Ok(()));
        assert_eq!(rate.take(Instant::from_millis(1_001)), Err(Instant::from_millis(1_600)));
    }

    #[test]
    fn without_limit_everything_passes() {
        let mut rate = RateLimit::new(None);
        assert!((0..1_000).all(|_| rate.take(Instant::ZERO).is_ok()));
        assert!(rate.sent.is_empty());
    }
}
