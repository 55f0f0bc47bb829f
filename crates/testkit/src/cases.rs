//! Acceptance tests of reliable transports. Each is written once and runs on several grounds: in virtual time on two
//! machines ([`VirtualTime`]), and in real time on real sockets (`namespace::OverSockets`).

use crate::packet::Packet;
use crate::pair::Pair;
use crate::reference_stream::InOrder;
use bytes::Bytes;
use hopline_core::{Duration, Instant, StateMachine};
use hopline_link::{DelayDistribution, DirectionStats, Emulation, NatPortPolicy, Side};
use hopline_transport::connection::{CloseError, Connection, SendError, State};

/// Transfer from A to B over an impaired link.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the impairment.
    pub name: &'static str,
    /// Emulation from A to B, for the data.
    pub forward: Emulation,
    /// Emulation from B to A, for the acknowledgments.
    pub reverse: Emulation,
    /// Change of ports. Only sockets have ports.
    pub rebind: Option<Rebind>,
    /// Bytes of the reference stream ([`InOrder`]) to carry.
    pub bytes: u64,
    /// Random seed of the link.
    pub seed: u64,
    /// Time limit of the transfer, since the creation of the link.
    pub deadline: Instant,
}

/// Change of the external ports of a host by its NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebind {
    /// Time of the change.
    pub at: Instant,
    /// Host behind the NAT: A sends the data, B the acknowledgments.
    pub side: Side,
    /// Fate of the old ports.
    pub old: NatPortPolicy,
}

/// Returns the acceptance tests: 10 MB over 2 Mb/s, 25 ms each way, a queue of 50 packets, with one impairment at a time in
/// the direction of the data, as in measurements of kernels. The deadline is 4 hours.
#[must_use]
pub fn acceptance_cases() -> Vec<Case> {
    let lossy = |name, loss, burst| case(name, base().with_loss(loss).with_burst(burst));
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
        lossy("5 % lost", 0.05, None).in_both_directions("5 % lost, both ways"),
        lossy("20 % lost", 0.2, None).in_both_directions("20 % lost, both ways"),
        lossy("1 % lost in bursts of 4", 0.01, Some(4.0)),
        lossy("5 % lost in bursts of 4", 0.05, Some(4.0)),
        lossy("10 % lost in bursts of 4", 0.1, Some(4.0)),
        lossy("20 % lost in bursts of 4", 0.2, Some(4.0)),
        case("5 % reordered by 30 ms", base().with_reorder(0.05)),
        case("1 % duplicated", base().with_duplicate(0.01)),
        case("0.1 % corrupted", base().with_corrupt(0.001)),
        case("", base().with_blackouts(vec![outage])).in_both_directions("an outage of 10 s, both ways"),
        rebound("rebound, the old port kept", Side::B, NatPortPolicy::Kept),
        rebound("rebound, the old port forgotten", Side::B, NatPortPolicy::Forgotten),
        rebound("the sender rebound, the old port kept", Side::A, NatPortPolicy::Kept),
        rebound("the sender rebound, the old port forgotten", Side::A, NatPortPolicy::Forgotten),
    ]
}

impl Case {
    /// Sets the number of bytes to carry.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Applies the impairment of the data to the acknowledgments too, under another name.
    #[must_use]
    pub fn in_both_directions(self, name: &'static str) -> Self {
        Self { name, reverse: self.forward.clone(), ..self }
    }

    /// Returns whether the case needs sockets.
    #[must_use]
    pub const fn needs_sockets(&self) -> bool {
        self.rebind.is_some()
    }
}

fn base() -> Emulation {
    Emulation::delay(Duration::from_millis(25))
        .with_rate(Some(2_000_000))
        .with_queue(Some(50))
        .with_extra_delay(Duration::from_millis(30))
        .with_extra_distribution(DelayDistribution::Fixed)
}

fn case(name: &'static str, forth: Emulation) -> Case {
    let deadline = Instant::from_secs(4 * 3600);
    Case { name, forward: forth, reverse: base(), rebind: None, bytes: 10_000_000, seed: 1, deadline }
}

/// Result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes that B received, each of them correct and in its place.
    pub received: u64,
    /// `true` if B received the end of the stream.
    pub ended: bool,
    /// Time at which B had received everything, or gave up.
    pub at: Instant,
    /// Counters of the link, from A to B and from B to A.
    pub counts: [DirectionStats; 2],
}

/// Environment in which a case runs.
pub trait Environment {
    /// Carries `case.bytes` of the reference stream from A to B, and ends the stream. Panics at the first wrong byte; gives
    /// up at the deadline.
    fn transfer(&self, case: &Case) -> Outcome;
}

/// Checks that all bytes arrive in time, exactly once, and that the stream ends.
///
/// # Panics
/// If the check fails.
pub fn arrives_byte_exact(ground: &dyn Environment, case: &Case) -> Outcome {
    let outcome = ground.transfer(case);
    let said = format!("{} (seed {}): {outcome:?}", case.name, case.seed);
    assert_eq!(outcome.received, case.bytes, "{said}");
    assert!(outcome.ended, "the end never came: {said}");
    assert!(outcome.at <= case.deadline, "too late: {said}");
    outcome
}

/// Endpoint of a connection that carries bytes in order, as an application uses it.
pub trait StreamEndpoint: StateMachine {
    /// Accepts all of `data`, or none.
    ///
    /// # Errors
    /// If there is no room, or no connection.
    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError>;

    /// Returns the next bytes, if some have arrived.
    fn recv(&mut self) -> Option<Bytes>;

    /// Ends the sending direction.
    ///
    /// # Errors
    /// If there is no connection.
    fn close(&mut self, now: Instant) -> Result<(), CloseError>;

    /// Returns the state of the connection.
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

/// Two machines in virtual time. The function creates them: A connects, B listens.
#[derive(Clone, Copy, Debug)]
pub struct VirtualTime<F>(pub F);

/// Bytes that the application passes at once.
const CHUNK: u64 = 1 << 14;

impl<M, F> Environment for VirtualTime<F>
where
    F: Fn(&Case) -> (M, M),
    M: StreamEndpoint + StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
{
    fn transfer(&self, case: &Case) -> Outcome {
        assert!(!case.needs_sockets(), "{}: machines have no ports that could change", case.name);
        let (a, b) = (self.0)(case);
        let mut pair = Pair::asymmetric(a, b, [case.forward.clone(), case.reverse.clone()], case.seed);
        let (mut handed, mut oracle) = (0, InOrder::default());
        let ended = pair.run_while(case.deadline, |pair| {
            let now = pair.now();
            send_remaining(&mut pair.a, now, case.bytes, &mut handed);
            while let Some(data) = pair.b.recv() {
                oracle.check(&data);
            }
            !has_ended(pair.b.state())
        });
        let counts = [pair.counts(Side::A), pair.counts(Side::B)];
        Outcome { received: oracle.received(), ended, at: pair.now(), counts }
    }
}

fn send_remaining<M: StreamEndpoint>(end: &mut M, now: Instant, total: u64, handed: &mut u64) {
    while *handed < total {
        let len = CHUNK.min(total - *handed);
        match end.send(now, InOrder::bytes(*handed, len as usize)) {
            Ok(()) => *handed += len,
            Err(_) => return,
        }
    }
    if matches!(end.state(), State::Established | State::CloseWait) {
        end.close(now).expect("an open connection can be closed");
    }
}

/// Returns whether the peer has ended its direction.
fn has_ended(state: State) -> bool {
    matches!(state, State::Closed | State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
}
