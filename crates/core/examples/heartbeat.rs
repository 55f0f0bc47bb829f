//! A state machine of one's own behind the trait `StateMachine`: each of two nodes sends heartbeats and reports when the
//! other one falls silent. The driver runs both in virtual time. `cargo run --example heartbeat`.

use hopline_core::{Duration, Instant, LinkId, StateMachine, TimerKind, TimerTable};
use std::collections::VecDeque;

/// Interval between two heartbeats.
const INTERVAL: Duration = Duration::from_secs(1);
/// Silence after which the peer counts as lost.
const PATIENCE: Duration = Duration::from_millis(3500);

/// Heartbeat with its number.
#[derive(Clone, Copy, Debug)]
struct Beat(u32);

/// Event for the user of a [`Heart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    PeerFound,
    PeerLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Send,
    Silence,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Send, Self::Silence];
    fn index(self) -> usize {
        self as usize
    }
}

/// One end. `due` and `events` hold outputs until the driver polls them.
struct Heart {
    timers: TimerTable<Timer, 2>,
    next: u32,
    due: Option<Beat>,
    peer: Option<Beat>,
    events: VecDeque<Event>,
}

impl Heart {
    fn new(now: Instant) -> Self {
        let mut timers = TimerTable::new();
        timers.set(Timer::Send, now);
        Self { timers, next: 0, due: None, peer: None, events: VecDeque::new() }
    }
}

impl StateMachine for Heart {
    type Packet = Beat;
    type Transmit = Beat;
    /// No neighbouring layer reports anything.
    type Signal = core::convert::Infallible;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, beat: Beat) {
        if self.peer.replace(beat).is_none() {
            self.events.push_back(Event::PeerFound);
        }
        self.timers.set(Timer::Silence, now + PATIENCE);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Send => {
                    self.due = Some(Beat(self.next));
                    self.next += 1;
                    self.timers.set(Timer::Send, now + INTERVAL);
                }
                Timer::Silence => {
                    self.peer = None;
                    self.events.push_back(Event::PeerLost);
                }
            }
        }
    }

    fn handle_signal(&mut self, _now: Instant, signal: Self::Signal) {
        match signal {}
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Beat> {
        self.due.take()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() {
    let mut nodes = [Heart::new(Instant::ZERO), Heart::new(Instant::from_millis(300))];
    // The path from node 0 to node 1 is down for this time.
    let outage = Instant::from_secs(5)..Instant::from_secs(10);
    let mut log = Vec::new();
    let mut now = Instant::ZERO;
    while now < Instant::from_secs(15) {
        for at in 0..2 {
            nodes[at].handle_timeout(now);
            while let Some(beat) = nodes[at].poll_transmit(now) {
                if at == 1 || !outage.contains(&now) {
                    nodes[1 - at].handle_packet(now, LinkId::ONLY, beat);
                }
            }
        }
        for (at, node) in nodes.iter_mut().enumerate() {
            while let Some(event) = node.poll_event() {
                let number = node.peer.map(|Beat(number)| number);
                println!("{now} node {at}: {event:?}, heartbeat {number:?}");
                log.push((at, event));
            }
        }
        let timers = nodes.iter().filter_map(StateMachine::poll_timeout).map(|(at, _)| at);
        now = timers.min().expect("a heartbeat is always due");
    }
    use Event::{PeerFound, PeerLost};
    assert_eq!(log, [(1, PeerFound), (0, PeerFound), (1, PeerLost), (1, PeerFound)]);
}
