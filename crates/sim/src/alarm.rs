//! The wake-up of a machine, scheduled at most once for any moment.
//!
//! A machine reports the earliest instant at which it wants to be woken (`poll_timeout`). An [`WakeUp`] remembers the
//! earliest wake-up in the event queue and adds an event only for an earlier one. No event is ever removed: a wake-up that
//! is not the current one is stale and ignored. A retransmission timer that each ACK defers costs one event per timeout
//! period, not one per ACK.

use crate::event::Event;
use crate::scheduler::Scheduler;
use hopline_core::Instant;

/// Wake-up time of a state machine. An event that was scheduled for a time that has been superseded counts
/// for nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeUp {
    at: Instant,
}

impl WakeUp {
    pub(crate) const OFF: Self = Self { at: Instant::FAR_FUTURE };

    /// Sets the wake-up of the state machine to `at`; `event` wakes it, unless one does so by then. An
    /// overdue wake-up is due `now`.
    pub(crate) fn set(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        scheduler: &mut Scheduler<Event>,
        event: Event,
    ) {
        if let Some(at) = at.filter(|at| *at < self.at) {
            self.at = at.max(now);
            scheduler.schedule(self.at, event);
        }
    }

    /// Handles an event of this alarm that is due `now`. Returns whether it is the one that counts.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let rings = self.at == now;
        if rings {
            *self = Self::OFF;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn superseded_wake_ups_have_no_effect() {
        let (mut alarm, mut scheduler) = (WakeUp::OFF, Scheduler::new());
        for wanted in [Some(at(9)), Some(at(12)), None, Some(at(5)), Some(at(5))] {
            alarm.set(at(1), wanted, &mut scheduler, Event::Routing { node: 0 });
        }
        let mut due = Vec::new();
        while let Some((now, _)) = scheduler.pop() {
            due.push((now, alarm.is_due(now)));
        }
        assert_eq!(due, [(at(5), true), (at(9), false)]);
    }

    #[test]
    fn an_overdue_wake_up_is_due_now() {
        let (mut alarm, mut scheduler) = (WakeUp::OFF, Scheduler::new());
        alarm.set(at(7), Some(at(3)), &mut scheduler, Event::Routing { node: 0 });
        assert_eq!(scheduler.next_at(), at(7));
        assert!(alarm.is_due(at(7)) && !alarm.is_due(at(7)));
    }
}
