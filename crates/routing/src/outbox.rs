//! Outputs of a machine: immediate, or after a delay.

use hopline_core::Instant;
use std::collections::VecDeque;

/// Messages `T` to send and events `E` to report, now and later.
#[derive(Clone, Debug)]
pub(crate) struct Outbox<T, E> {
    pub(crate) transmits: VecDeque<T>,
    pub(crate) events: VecDeque<E>,
    /// Sorted by departure time; messages due at the same instant are in order of arrival. A handful at most.
    delayed: VecDeque<(Instant, Departure<T, E>)>,
    /// Most messages in `later`.
    limit: usize,
    delayed_messages: usize,
}

#[derive(Clone, Debug)]
enum Departure<T, E> {
    Transmit(T),
    Event(E),
}

impl<T, E> Outbox<T, E> {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            delayed: VecDeque::new(),
            limit: limit as usize,
            delayed_messages: 0,
        }
    }

    /// Sends `transmit` at `due`. Returns `false` if too many messages wait already.
    pub(crate) fn transmit_at(&mut self, due: Instant, transmit: T) -> bool {
        if self.delayed_messages >= self.limit {
            return false;
        }
        self.delayed_messages += 1;
        self.insert(due, Departure::Transmit(transmit));
        true
    }

    /// Reports `event` at `due`. Only used for packets from the bounded buffer.
    pub(crate) fn report_at(&mut self, due: Instant, event: E) {
        self.insert(due, Departure::Event(event));
    }

    /// Moves due messages and events into the queues.
    pub(crate) fn release_due(&mut self, now: Instant) {
        while self.delayed.front().is_some_and(|(due, _)| *due <= now) {
            match self.delayed.pop_front() {
                Some((_, Departure::Transmit(transmit))) => {
                    self.delayed_messages -= 1;
                    self.transmits.push_back(transmit);
                }
                Some((_, Departure::Event(event))) => self.events.push_back(event),
                None => {}
            }
        }
    }

    /// Returns the number of data packets in the messages that have not left.
    pub(crate) fn packets(&self, in_transmit: impl Fn(&T) -> bool, in_event: impl Fn(&E) -> bool) -> usize {
        let later = self.delayed.iter().filter(|(_, departure)| match departure {
            Departure::Transmit(transmit) => in_transmit(transmit),
            Departure::Event(event) => in_event(event),
        });
        let transmits = self.transmits.iter().filter(|transmit| in_transmit(transmit));
        let events = self.events.iter().filter(|event| in_event(event));
        later.count() + transmits.count() + events.count()
    }

    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.delayed.front().map(|(due, _)| *due)
    }

    fn insert(&mut self, due: Instant, departure: Departure<T, E>) {
        let at = self.delayed.partition_point(|(other, _)| *other <= due);
        self.delayed.insert(at, (due, departure));
    }
}
