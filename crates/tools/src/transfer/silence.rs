//! Detection of an unresponsive receiver with a transport that still acknowledges.

use super::error::Error;
use std::time::{Duration, Instant};

/// Time since a receiver that owes an answer last took data or answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseTimer {
    limit: Option<Duration>,
    since: Instant,
}

impl ResponseTimer {
    pub(super) const fn new(limit: Option<Duration>, now: Instant) -> Self {
        Self { limit, since: now }
    }

    /// Restarts the timer: the receiver has taken data or answered, or owes no answer.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Excludes the time since `begin`, in which this side was busy.
    pub(super) fn exclude(&mut self, begin: Instant, now: Instant) {
        self.since += now.saturating_duration_since(begin);
    }

    /// Checks the timer.
    ///
    /// # Errors
    /// [`Error::Unresponsive`] if the limit is exceeded.
    pub(super) fn check(&self, now: Instant) -> Result<(), Error> {
        match self.limit {
            Some(limit) if now.saturating_duration_since(self.since) >= limit => {
                Err(Error::Unresponsive(limit))
            }
            _ => Ok(()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "streams are in real time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_silent_receiver_is_given_up_at_the_limit() {
        let begin = now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut silence = ResponseTimer::new(Some(LIMIT), begin);
        assert!(silence.check(at(9)).is_ok());
        assert!(matches!(silence.check(at(10)), Err(Error::Unresponsive(LIMIT))));
        silence.restart(at(10));
        assert!(silence.check(at(19)).is_ok());
        silence.exclude(at(12), at(17));
        assert!(silence.check(at(24)).is_ok());
        assert!(silence.check(at(25)).is_err());
        assert!(ResponseTimer::new(None, begin).check(at(1 << 20)).is_ok());
    }
}
