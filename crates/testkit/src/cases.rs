//! What must hold for a reliable transport, written once and run on several grounds: in virtual time on two machines
//! ([`InVirtualTime`]), and in real time on real sockets (`namespace::OverSockets`).

use crate::oracle::InOrder;
use crate::packet::Packet;
use crate::pair::Pair;
use bytes::Bytes;
use hopline_core::{Duration, Instant, Machine};
use hopline_link::{Counts, Emulation, Extra, OldPorts, Side};
use hopline_transport::connection::{CloseError, Connection, SendError, State};

/// A transfer from A to B over a bad link.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What is special about it.
    pub name: &'static str,
    /// What happens to A's data.
    pub forth: Emulation,
    /// What happens to B's acknowledgments.
    pub back: Emulation,
    /// A change of ports. Only sockets have some.
    pub rebind: Option<Rebind>,
    /// Bytes of the reference stream ([`InOrder`]) to carry.
    pub bytes: u64,
    /// Of the link.
    pub seed: u64,
    /// By when B must have everything, counted from the making of the link.
    pub deadline: Instant,
}

/// The address translator of a host gives it other ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebind {
    /// When.
    pub at: Instant,
    /// Whose: A sends the data, B the acknowledgments.
    pub side: Side,
    /// What becomes of those that it had.
    pub old: OldPorts,
}

/// 10 MB over 2 Mb/s, 25 ms each way, a queue of 50 packets, with one thing wrong at a time, and that on the way of
/// the data, as in measurements of kernels. The deadline is 4 hours.
#[must_use]
pub fn must_hold() -> Vec<Case> {
    let lossy = |name, loss, burst| case(name, Emulation { loss, burst, ..base() });
    let outage = (Instant::from_secs(5), Instant::from_secs(15));
    let rebound = |name, side, old| {
        let rebind = Some(Rebind { at: Instant::from_secs(5), side, old });
        Case { rebind, ..case(name, base()) }
    };
    vec![
        lossy("nothing lost", 0.0, None),
        lossy("1 % lost", 0.01, None),
        lossy("5 % lost", 0.05, None),
        lossy("10 % lost", 0.1, None),
        lossy("20 % lost", 0.2, None),
        lossy("5 % lost", 0.05, None).both_ways("5 % lost, both ways"),
        lossy("20 % lost", 0.2, None).both_ways("20 % lost, both ways"),
        lossy("1 % lost in bursts of 4", 0.01, Some(4.0)),
        lossy("5 % lost in bursts of 4", 0.05, Some(4.0)),
        lossy("10 % lost in bursts of 4", 0.1, Some(4.0)),
        lossy("20 % lost in bursts of 4", 0.2, Some(4.0)),
        case("5 % reordered by 30 ms", Emulation { reorder: 0.05, ..base() }),
        case("1 % duplicated", Emulation { duplicate: 0.01, ..base() }),
        case("0.1 % corrupted", Emulation { corrupt: 0.001, ..base() }),
        case("", Emulation { blackouts: vec![outage], ..base() }).both_ways("an outage of 10 s, both ways"),
        rebound("rebound, the old port kept", Side::B, OldPorts::Kept),
        rebound("rebound, the old port forgotten", Side::B, OldPorts::Forgotten),
        rebound("the sender rebound, the old port kept", Side::A, OldPorts::Kept),
        rebound("the sender rebound, the old port forgotten", Side::A, OldPorts::Forgotten),
    ]
}

impl Case {
    /// The same with less, or more, to carry.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// The same for the acknowledgments as for the data, under another name.
    #[must_use]
    pub fn both_ways(self, name: &'static str) -> Self {
        Self { name, back: self.forth.clone(), ..self }
    }

    /// Whether only sockets can do it.
    #[must_use]
    pub const fn needs_sockets(&self) -> bool {
        self.rebind.is_some()
    }
}

fn base() -> Emulation {
    Emulation {
        rate: Some(2_000_000),
        queue: Some(50),
        extra_delay: Duration::from_millis(30),
        extra: Extra::Exactly,
        ..Emulation::delay(Duration::from_millis(25))
    }
}

fn case(name: &'static str, forth: Emulation) -> Case {
    let deadline = Instant::from_secs(4 * 3600);
    Case { name, forth, back: base(), rebind: None, bytes: 10_000_000, seed: 1, deadline }
}

/// How a transfer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes that B got, each of them right and in its place.
    pub received: u64,
    /// Whether B was told that this is all.
    pub ended: bool,
    /// When B had it, or gave up.
    pub at: Instant,
    /// What the link did, from A to B and back.
    pub counts: [Counts; 2],
}

/// Something a case can be run on.
pub trait Ground {
    /// Carries `case.bytes` of the reference stream from A to B, and ends the stream. Panics at the first byte that is
    /// wrong; gives up at the deadline.
    fn transfer(&self, case: &Case) -> Outcome;
}

/// The body of tests: everything arrives, byte-exact and once, and ends, in time.
///
/// # Panics
/// If it does not.
pub fn arrives_byte_exact(ground: &dyn Ground, case: &Case) -> Outcome {
    let outcome = ground.transfer(case);
    let said = format!("{} (seed {}): {outcome:?}", case.name, case.seed);
    assert_eq!(outcome.received, case.bytes, "{said}");
    assert!(outcome.ended, "the end never came: {said}");
    assert!(outcome.at <= case.deadline, "too late: {said}");
    outcome
}

/// The endpoint of a connection that carries bytes, in order, as an application sees it.
pub trait StreamEndpoint: Machine {
    /// Takes all of `data`, or refuses.
    ///
    /// # Errors
    /// If there is no room, or no connection.
    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError>;

    /// The next bytes, if some have arrived.
    fn recv(&mut self) -> Option<Bytes>;

    /// No more data will be sent.
    ///
    /// # Errors
    /// If there is no connection.
    fn close(&mut self, now: Instant) -> Result<(), CloseError>;

    /// The state.
    fn state(&self) -> State;
}

impl<M: Connection<Bytes>> StreamEndpoint for M {
    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        Connection::send(self, now, data)
    }

    fn recv(&mut self) -> Option<Bytes> {
        Connection::recv(self)
    }

    fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        Connection::close(self, now)
    }

    fn state(&self) -> State {
        Connection::state(self)
    }
}

/// Two machines in virtual time. The function makes them: A connecting, B listening.
#[derive(Clone, Copy, Debug)]
pub struct InVirtualTime<F>(pub F);

/// What the application hands over at once.
const CHUNK: u64 = 1 << 14;

impl<M, F> Ground for InVirtualTime<F>
where
    F: Fn(&Case) -> (M, M),
    M: StreamEndpoint + Machine<Transmit = <M as Machine>::Packet>,
    M::Packet: Packet,
{
    fn transfer(&self, case: &Case) -> Outcome {
        assert!(!case.needs_sockets(), "{}: machines have no ports that could change", case.name);
        let (a, b) = (self.0)(case);
        let mut pair = Pair::asymmetric(a, b, [case.forth.clone(), case.back.clone()], case.seed);
        let (mut handed, mut oracle) = (0, InOrder::default());
        let ended = pair.run_while(case.deadline, |pair| {
            let now = pair.now();
            hand_over(&mut pair.a, now, case.bytes, &mut handed);
            while let Some(data) = pair.b.recv() {
                oracle.take(&data);
            }
            !has_ended(pair.b.state())
        });
        let counts = [pair.counts(Side::A), pair.counts(Side::B)];
        Outcome { received: oracle.received(), ended, at: pair.now(), counts }
    }
}

fn hand_over<M: StreamEndpoint>(end: &mut M, now: Instant, total: u64, handed: &mut u64) {
    while *handed < total {
        let len = CHUNK.min(total - *handed);
        match end.send(now, InOrder::bytes(*handed, len as usize)) {
            Ok(()) => *handed += len,
            Err(SendError::Full { .. } | SendError::NotOpen) => return,
        }
    }
    if matches!(end.state(), State::Established | State::CloseWait) {
        end.close(now).expect("an open connection can be closed");
    }
}

/// Whether the peer has said that there is no more.
fn has_ended(state: State) -> bool {
    matches!(state, State::Closed | State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
}
