//! Scheduler's side of the time-travel protocol with one host, without I/O.
//!
//! | state | the host | left by |
//! |---|---|---|
//! | [`HostState::Starting`] | has not connected | START |
//! | [`HostState::Running`] | runs, at most up to the time that it was granted | WAIT |
//! | [`HostState::Waiting`] | has nothing to do before the time that it requested, or an interrupt | RUN |
//!
//! A message of either side is answered by an ACK before its sender sends another. RUN and FREE_UNTIL go together; both are
//! acknowledged before the host does anything else. A host that [shares memory](HostClock::share) with the scheduler has its
//! times there: only START, WAIT, RUN and GET_TOD are messages, and neither WAIT nor RUN gets an ACK.

use crate::time_travel::{Message, Operation};
use hopline_core::Instant;
use std::collections::VecDeque;

/// Time of day at virtual time zero, in nanoseconds since 1970: 2025-01-01. A constant, so that runs repeat.
const TIME_OF_DAY: u64 = 1_735_689_600_000_000_000;
/// Requested times from here on mean "never".
const NEVER: u64 = i64::MAX as u64 - 1;

/// State of a host in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// It has not connected.
    Starting,
    /// It runs.
    Running,
    /// It waits for RUN.
    Waiting,
}

/// A violation of the protocol by a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A message that no host sends, or not in this state.
    #[error("{operation:?} from a host that is {state:?}")]
    Unexpected {
        /// Operation of the message.
        operation: Operation,
        /// State of the host.
        state: HostState,
    },
    /// An ACK of a message that was not sent.
    #[error("an ACK of message {0}, which was not sent")]
    StrayAck(u32),
    /// A time before one that the host has reached, or beyond what it was granted.
    #[error("time {time} ns, where {granted} was allowed, in ns")]
    Time {
        /// Time in the message.
        time: u64,
        /// Earliest and latest time that were allowed.
        granted: GrantedSpan,
    },
}

/// A span of times in an error message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedSpan(u64, u64);

impl core::fmt::Display for GrantedSpan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} to {}", self.0, self.1)
    }
}

/// Protocol state of one host.
#[derive(Debug)]
pub struct HostClock {
    state: HostState,
    /// `true` if times are in shared memory.
    is_shared: bool,
    /// Time that the host has reached, as far as it is known.
    reached: u64,
    /// Time up to which the host may run without a request; at least `reached`.
    free_until: u64,
    /// Time at which the host wants to run.
    request: Option<u64>,
    /// Sequence number of the last message to the host.
    sequence: u32,
    /// Messages to the host without an ACK so far.
    unacknowledged: VecDeque<u32>,
}

impl Default for HostClock {
    fn default() -> Self {
        Self {
            state: HostState::Starting,
            is_shared: false,
            reached: 0,
            free_until: 0,
            request: None,
            sequence: 0,
            unacknowledged: VecDeque::new(),
        }
    }
}

impl HostClock {
    /// Returns the state of the host.
    #[must_use]
    pub const fn state(&self) -> HostState {
        self.state
    }

    /// Returns the time that a waiting host has requested; `None` if it waits for an interrupt alone.
    #[must_use]
    pub fn request(&self) -> Option<Instant> {
        self.request.filter(|&time| time < NEVER).map(Instant::from_nanos)
    }

    /// Returns the last time that the host is known to have reached.
    #[must_use]
    pub const fn reached(&self) -> Instant {
        Instant::from_nanos(self.reached)
    }

    /// Returns the time up to which the host may run.
    #[must_use]
    pub const fn free_until(&self) -> Instant {
        Instant::from_nanos(self.free_until)
    }

    /// Returns whether the host owes an ACK.
    #[must_use]
    pub fn owes_ack(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// Notes that the host has its times in memory that it shares with the scheduler.
    pub const fn share(&mut self) {
        self.is_shared = true;
    }

    /// Returns whether the host has its times in shared memory.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Sets the time, in nanoseconds, at which the host requests to run, as it is in shared memory.
    pub const fn set_request(&mut self, time: Option<u64>) {
        self.request = time;
    }

    /// Handles a message of the host at the scheduler's time `now`, and returns the ACK to send, if it gets one.
    ///
    /// # Errors
    /// A violation of the protocol, after which the host cannot go on.
    pub fn handle(&mut self, now: Instant, message: Message) -> Result<Option<Message>, ProtocolError> {
        let Message { operation, sequence, time } = message;
        let unexpected = ProtocolError::Unexpected { operation, state: self.state };
        let mut answer = Message { operation: Operation::Ack, sequence, time: 0 };
        match (operation, self.state) {
            (Operation::Ack, _) => {
                return match self.unacknowledged.pop_front() {
                    Some(sent) if sent == sequence => Ok(None),
                    _ => Err(ProtocolError::StrayAck(sequence)),
                };
            }
            (Operation::Start, HostState::Starting) => self.state = HostState::Running,
            (_, HostState::Starting) => return Err(unexpected),
            (Operation::Request, _) => self.request = Some(time),
            (Operation::Wait, HostState::Running) => {
                self.state = HostState::Waiting;
                if self.is_shared {
                    return Ok(None);
                }
            }
            (Operation::Get, HostState::Waiting) => answer.time = now.as_nanos(),
            (Operation::Get, HostState::Running) => answer.time = self.reached,
            (Operation::Update, HostState::Running) => self.reach(time)?,
            (Operation::GetTimeOfDay, _) => answer.time = TIME_OF_DAY + self.reached,
            _ => return Err(unexpected),
        }
        Ok(Some(answer))
    }

    /// Notes the time, in nanoseconds, that a running host has reached.
    ///
    /// # Errors
    /// If it went back, or beyond what it was granted.
    pub fn reach(&mut self, time: u64) -> Result<(), ProtocolError> {
        if !(self.reached..=self.free_until).contains(&time) {
            let granted = GrantedSpan(self.reached, self.free_until);
            return Err(ProtocolError::Time { time, granted });
        }
        self.reached = time;
        Ok(())
    }

    /// Lets a waiting host run from `now` on, freely up to `free_until`. Returns the messages to send, in order.
    ///
    /// # Panics
    /// If the host does not wait, or owes an ACK.
    pub fn run(&mut self, now: Instant, free_until: Instant) -> impl Iterator<Item = Message> + use<> {
        assert!(self.state == HostState::Waiting && !self.owes_ack(), "only a waiting host can be run");
        let has_free_until = free_until > now && !self.is_shared;
        let free = has_free_until.then(|| self.message(Operation::FreeUntil, free_until));
        let run = self.message(Operation::Run, now);
        if self.is_shared {
            self.unacknowledged.clear();
        }
        self.state = HostState::Running;
        self.request = None;
        self.reached = now.as_nanos();
        self.free_until = free_until.max(now).as_nanos();
        free.into_iter().chain([run])
    }

    /// Takes back a part of what a running host was granted. Returns the message to send, unless it was granted no more
    /// than that, or finds it in shared memory. The host must acknowledge it before it gets an answer to anything else that it waits for.
    pub fn shorten(&mut self, free_until: Instant) -> Option<Message> {
        let free_until = free_until.as_nanos().max(self.reached);
        if self.state != HostState::Running || free_until >= self.free_until {
            return None;
        }
        self.free_until = free_until;
        if self.is_shared {
            return None;
        }
        Some(self.message(Operation::FreeUntil, Instant::from_nanos(free_until)))
    }

    fn message(&mut self, operation: Operation, time: Instant) -> Message {
        self.sequence = self.sequence.wrapping_add(1);
        self.unacknowledged.push_back(self.sequence);
        Message { operation, sequence: self.sequence, time: time.as_nanos() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Ack, FreeUntil, Get, GetTimeOfDay, Request, Run, Start, Update, Wait};

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Lets the host send messages, each of which must get an ACK; returns the times of the ACKs.
    fn say(clock: &mut HostClock, now: u64, messages: &[(Operation, u64)]) -> Vec<u64> {
        let answer = |&(operation, time)| {
            let message = Message { operation, sequence: 99, time };
            let ack = clock.handle(at(now), message).expect("allowed").expect("acknowledged");
            assert_eq!((ack.operation, ack.sequence), (Ack, 99));
            ack.time
        };
        messages.iter().map(answer).collect()
    }

    fn ack(clock: &mut HostClock, sequence: u32) -> Result<Option<Message>, ProtocolError> {
        clock.handle(at(0), Message { operation: Ack, sequence, time: 0 })
    }

    /// A host that waits for time 100.
    fn waiting() -> HostClock {
        let mut clock = HostClock::default();
        say(&mut clock, 0, &[(Start, 0), (Request, 100), (Wait, u64::MAX)]);
        clock
    }

    /// A host that runs from 100 on, and may run until 500.
    fn running() -> HostClock {
        let mut clock = waiting();
        let sent: Vec<_> = clock.run(at(100), at(500)).map(|m| (m.operation, m.time)).collect();
        assert_eq!(sent, [(FreeUntil, 500), (Run, 100)]);
        assert_eq!((ack(&mut clock, 1), ack(&mut clock, 2)), (Ok(None), Ok(None)));
        clock
    }

    #[test]
    fn a_host_starts_requests_and_waits() {
        let clock = waiting();
        assert_eq!((clock.state(), clock.request()), (HostState::Waiting, Some(at(100))));
    }

    #[test]
    fn a_later_request_replaces_an_earlier_one() {
        let mut clock = waiting();
        say(&mut clock, 50, &[(Get, 0), (Request, 50)]);
        assert_eq!(clock.request(), Some(at(50)));
        say(&mut clock, 50, &[(Request, 70)]);
        assert_eq!(clock.request(), Some(at(70)));
    }

    #[test]
    fn a_host_that_sleeps_forever_has_no_request() {
        let mut clock = waiting();
        say(&mut clock, 0, &[(Request, i64::MAX as u64)]);
        assert_eq!(clock.request(), None);
    }

    #[test]
    fn an_interrupted_host_learns_the_time_of_the_scheduler() {
        let mut clock = waiting();
        assert_eq!(say(&mut clock, 60, &[(Get, 0)]), [60]);
    }

    #[test]
    fn the_time_of_day_follows_virtual_time() {
        let mut clock = running();
        say(&mut clock, 100, &[(Update, 300)]);
        assert_eq!(say(&mut clock, 300, &[(GetTimeOfDay, 0)]), [TIME_OF_DAY + 300]);
    }

    #[test]
    fn a_host_without_lookahead_gets_run_alone() {
        let mut clock = waiting();
        let sent: Vec<_> = clock.run(at(100), at(100)).map(|m| m.operation).collect();
        assert_eq!(sent, [Run]);
    }

    #[test]
    fn a_host_with_shared_memory_gets_run_alone_and_neither_side_acknowledges() {
        let mut clock = HostClock::default();
        say(&mut clock, 0, &[(Start, 0)]);
        clock.share();
        let wait = Message { operation: Wait, sequence: 2, time: u64::MAX };
        assert_eq!(clock.handle(at(0), wait), Ok(None));
        clock.set_request(Some(100));
        assert_eq!((clock.state(), clock.request()), (HostState::Waiting, Some(at(100))));
        let sent: Vec<_> = clock.run(at(100), at(500)).map(|m| (m.operation, m.time)).collect();
        assert_eq!((sent, clock.owes_ack(), clock.request()), (vec![(Run, 100)], false, None));
        assert_eq!(clock.reach(300), Ok(()));
        assert_eq!((clock.shorten(at(400)), clock.free_until(), clock.owes_ack()), (None, at(400), false));
        assert!(matches!(clock.reach(401), Err(ProtocolError::Time { .. })));
    }

    #[test]
    fn a_grant_is_shortened_but_not_below_the_time_reached() {
        let mut clock = running();
        say(&mut clock, 100, &[(Update, 200)]);
        assert_eq!(clock.shorten(at(600)), None);
        let message = clock.shorten(at(150)).expect("shorter");
        assert_eq!((message.operation, message.time, clock.owes_ack()), (FreeUntil, 200, true));
        assert_eq!(ack(&mut clock, message.sequence), Ok(None));
        assert!(!clock.owes_ack());
    }

    #[test]
    fn a_host_cannot_pass_its_grant_nor_go_back() {
        for time in [99, 501] {
            let message = Message { operation: Update, sequence: 1, time };
            assert!(matches!(running().handle(at(100), message), Err(ProtocolError::Time { .. })));
        }
    }

    #[test]
    fn messages_out_of_place_are_errors() {
        let early = Message { operation: Wait, sequence: 1, time: 0 };
        let unexpected = |operation, state| ProtocolError::Unexpected { operation, state };
        assert_eq!(HostClock::default().handle(at(0), early), Err(unexpected(Wait, HostState::Starting)));
        assert_eq!(waiting().handle(at(0), early), Err(unexpected(Wait, HostState::Waiting)));
        assert_eq!(ack(&mut running(), 3), Err(ProtocolError::StrayAck(3)));
    }
}
