//! Lifecycle of a connection: state, role, the user's close and pending events, which the endpoints of all transports
//! have in common.

use crate::connection::{CloseError, CloseReason, Event, Events, OpenError, SendError, State};

/// Lifecycle of one connection. Every change of its [`State`] goes through this type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifecycle {
    state: State,
    role: Role,
    closed_by_user: bool,
    events: Events,
}

/// Role in the opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not opened yet.
    Unopened,
    /// Initiator.
    Active,
    /// Responder.
    Passive,
}

/// Effect of the user's close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The peer knows of no connection and nothing is left to send: the connection ends.
    Abrupt,
    /// The end of the stream has to be sent behind the data.
    Graceful,
}

impl Lifecycle {
    /// Creates the lifecycle of a closed endpoint.
    pub(crate) fn new() -> Self {
        Self { state: State::Closed, role: Role::Unopened, closed_by_user: false, events: Events::default() }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// Opens the connection in `role`, in `state`. An endpoint is opened once.
    pub(crate) fn open(&mut self, role: Role, state: State) -> Result<(), OpenError> {
        if self.role != Role::Unopened {
            return Err(OpenError::AlreadyOpened);
        }
        self.role = role;
        self.enter(state);
        Ok(())
    }

    /// Enters `state`, or the state behind it if the user has closed (RFC 9293 §3.10.4: an early CLOSE is queued).
    pub(crate) fn enter(&mut self, state: State) {
        self.state = if self.closed_by_user { state.after_close() } else { state };
    }

    /// Checks that the user may send.
    pub(crate) fn check_send(&self) -> Result<(), SendError> {
        if self.is_open_for_sending() { Ok(()) } else { Err(SendError::NotOpen) }
    }

    /// Closes the sending direction, with `unsent` bytes left to send.
    pub(crate) fn close(&mut self, unsent: u64) -> Result<Close, CloseError> {
        if !self.is_open_for_sending() {
            return Err(CloseError::NotOpen);
        }
        if matches!(self.state, State::Listen | State::SynSent) && unsent == 0 {
            return Ok(Close::Abrupt);
        }
        self.closed_by_user = true;
        self.enter(self.state);
        Ok(Close::Graceful)
    }

    /// Ends the connection. No event follows.
    pub(crate) fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.push(Event::Closed(reason));
    }

    /// Returns the reason for the end of the connection by a reset in the current state.
    pub(crate) const fn reset_reason(&self) -> CloseReason {
        match (self.state, self.role) {
            (State::SynReceived, Role::Active) => CloseReason::Refused,
            (State::TimeWait, _) => CloseReason::Finished, // RFC 9293 §3.10.7.4
            _ => CloseReason::Reset,
        }
    }

    /// Reports an event to the user.
    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns the next event for the user, if there is one.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    const fn is_open_for_sending(&self) -> bool {
        self.state.may_send() && !self.closed_by_user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_opened_once() {
        let mut lifecycle = Lifecycle::new();
        assert_eq!(lifecycle.open(Role::Passive, State::Listen), Ok(()));
        assert_eq!(lifecycle.open(Role::Active, State::SynSent), Err(OpenError::AlreadyOpened));
        assert_eq!((lifecycle.role(), lifecycle.state()), (Role::Passive, State::Listen));
    }

    #[test]
    fn a_close_before_the_handshake_takes_effect_with_it() {
        let mut lifecycle = Lifecycle::new();
        lifecycle.open(Role::Active, State::SynSent).expect("the first opening");
        assert_eq!(lifecycle.close(1), Ok(Close::Graceful));
        assert_eq!(lifecycle.state(), State::SynSent);
        lifecycle.enter(State::Established);
        assert_eq!(lifecycle.state(), State::FinWait1);
    }

    #[test]
    fn a_close_without_data_before_the_peer_answers_is_abrupt() {
        let mut lifecycle = Lifecycle::new();
        lifecycle.open(Role::Active, State::SynSent).expect("the first opening");
        assert_eq!(lifecycle.close(0), Ok(Close::Abrupt));
    }

    #[test]
    fn nothing_is_sent_and_closed_after_a_close() {
        let mut lifecycle = Lifecycle::new();
        assert_eq!(lifecycle.close(0), Err(CloseError::NotOpen));
        lifecycle.open(Role::Active, State::Established).expect("the first opening");
        assert_eq!(lifecycle.check_send(), Ok(()));
        assert_eq!(lifecycle.close(0), Ok(Close::Graceful));
        assert_eq!(lifecycle.check_send(), Err(SendError::NotOpen));
        assert_eq!(lifecycle.close(0), Err(CloseError::NotOpen));
    }

    #[test]
    fn a_reset_refuses_an_initiator_and_ends_time_wait_in_order() {
        for (role, state, reason) in [
            (Role::Active, State::SynReceived, CloseReason::Refused),
            (Role::Passive, State::SynReceived, CloseReason::Reset),
            (Role::Active, State::Established, CloseReason::Reset),
            (Role::Passive, State::TimeWait, CloseReason::Finished),
        ] {
            let mut lifecycle = Lifecycle::new();
            lifecycle.open(role, state).expect("the first opening");
            assert_eq!(lifecycle.reset_reason(), reason, "{role:?} in {state:?}");
        }
    }
}
