//! Timers: an enum of kinds and a table of deadlines.

use crate::time::Instant;

/// The timers of one machine: a field-less enum, numbered from 0.
pub trait TimerKind: Copy + Eq + core::fmt::Debug + 'static {
    /// Every kind, in the order in which kinds due at the same instant fire.
    const ALL: &'static [Self];

    /// Position in [`Self::ALL`].
    fn index(self) -> usize;
}

/// Deadlines of the `N` timers of a machine, where `N` is `K::ALL.len()`.
///
/// # Example
///
/// ```
/// use hopline_core::{Instant, TimerKind, TimerTable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// enum Timer {
///     Retransmit,
///     KeepAlive,
/// }
///
/// impl TimerKind for Timer {
///     const ALL: &'static [Self] = &[Self::Retransmit, Self::KeepAlive];
///     fn index(self) -> usize {
///         self as usize
///     }
/// }
///
/// let mut timers = TimerTable::<Timer, 2>::new();
/// timers.set(Timer::KeepAlive, Instant::from_secs(60));
/// timers.set(Timer::Retransmit, Instant::from_secs(1));
/// assert_eq!(timers.next(), Some((Instant::from_secs(1), Timer::Retransmit)));
/// assert_eq!(timers.take_expired(Instant::from_secs(2)), Some(Timer::Retransmit));
/// assert_eq!(timers.take_expired(Instant::from_secs(2)), None);
/// ```
#[derive(Clone, Debug)]
pub struct TimerTable<K: TimerKind, const N: usize> {
    deadlines: [Instant; N],
    kind: core::marker::PhantomData<K>,
}

impl<K: TimerKind, const N: usize> Default for TimerTable<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: TimerKind, const N: usize> TimerTable<K, N> {
    /// A table in which no timer is set.
    #[must_use]
    pub fn new() -> Self {
        const { assert!(K::ALL.len() == N, "one slot for each timer kind") };
        Self { deadlines: [Instant::FAR_FUTURE; N], kind: core::marker::PhantomData }
    }

    /// Sets `kind` to fire at `at`, whatever it was set to before.
    pub fn set(&mut self, kind: K, at: Instant) {
        self.deadlines[kind.index()] = at;
    }

    /// Stops `kind`. Stopping a timer that is not set does nothing.
    pub fn stop(&mut self, kind: K) {
        self.deadlines[kind.index()] = Instant::FAR_FUTURE;
    }

    /// Stops every timer.
    pub fn stop_all(&mut self) {
        self.deadlines = [Instant::FAR_FUTURE; N];
    }

    /// Returns the expiry time of `kind`, if it is set.
    #[must_use]
    pub fn get(&self, kind: K) -> Option<Instant> {
        let at = self.deadlines[kind.index()];
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// Returns whether `kind` is set.
    #[must_use]
    pub fn is_set(&self, kind: K) -> bool {
        self.deadlines[kind.index()] != Instant::FAR_FUTURE
    }

    /// The next timer to fire.
    #[must_use]
    pub fn next(&self) -> Option<(Instant, K)> {
        let mut best: Option<(Instant, K)> = None;
        for &kind in K::ALL {
            let at = self.deadlines[kind.index()];
            if at != Instant::FAR_FUTURE && best.is_none_or(|(t, _)| at < t) {
                best = Some((at, kind));
            }
        }
        best
    }

    /// Stops and returns the earliest timer that is due at `now`. Call until `None`.
    pub fn take_expired(&mut self, now: Instant) -> Option<K> {
        let (at, kind) = self.next()?;
        (at <= now).then(|| {
            self.stop(kind);
            kind
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Kind {
        A,
        B,
    }

    impl TimerKind for Kind {
        const ALL: &'static [Self] = &[Self::A, Self::B];
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn the_earliest_fires_first_and_only_once() {
        let mut t = TimerTable::<Kind, 2>::new();
        assert_eq!(t.next(), None);
        t.set(Kind::A, Instant::from_secs(2));
        t.set(Kind::B, Instant::from_secs(1));
        assert_eq!(t.next(), Some((Instant::from_secs(1), Kind::B)));
        assert_eq!(t.take_expired(Instant::ZERO), None);
        assert_eq!(t.take_expired(Instant::from_secs(3)), Some(Kind::B));
        assert_eq!(t.take_expired(Instant::from_secs(3)), Some(Kind::A));
        assert_eq!(t.take_expired(Instant::from_secs(3)), None);
    }

    #[test]
    fn ties_fire_in_declared_order() {
        let mut t = TimerTable::<Kind, 2>::new();
        t.set(Kind::B, Instant::from_secs(1));
        t.set(Kind::A, Instant::from_secs(1));
        assert_eq!(t.take_expired(Instant::from_secs(1)), Some(Kind::A));
    }

    #[test]
    fn a_stopped_timer_does_not_fire() {
        let mut t = TimerTable::<Kind, 2>::new();
        t.set(Kind::A, Instant::from_secs(1));
        t.stop(Kind::A);
        assert!(!t.is_set(Kind::A));
        assert_eq!(t.take_expired(Instant::from_secs(9)), None);
    }
}
