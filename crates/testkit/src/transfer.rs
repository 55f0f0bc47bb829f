//! Two users over two endpoints of any transport: both write, read, and close at the end.

use crate::{Emulation, Packet, Pair, Side};
use bytes::Bytes;
use hopline_core::{Instant, StateMachine};
use hopline_transport::connection::{Connection, Event, SendError, State};
use std::marker::PhantomData;

use crate::reference_stream::InOrder;

/// Most bytes that a user writes at once. Neither a divisor nor a multiple of usual segment sizes.
const PIECE: u64 = 1777;

/// Two endpoints with a path between them, in virtual time.
pub trait EndpointPair<C: StateMachine> {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns one of the endpoints.
    fn side(&mut self, side: Side) -> &mut C;

    /// As [`Pair::step`].
    fn step(&mut self, limit: Instant) -> bool;

    /// As [`Pair::take_events`].
    fn take_events(&mut self) -> Vec<(Instant, Side, C::Event)>;
}

impl<M> EndpointPair<M> for Pair<M>
where
    M: StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
{
    fn now(&self) -> Instant {
        self.now()
    }

    fn side(&mut self, side: Side) -> &mut M {
        self.side(side)
    }

    fn step(&mut self, limit: Instant) -> bool {
        self.step(limit)
    }

    fn take_events(&mut self) -> Vec<(Instant, Side, M::Event)> {
        self.take_events()
    }
}

/// Transfer in both directions.
pub struct Transfer<C: Connection<Bytes>, P = Pair<C>> {
    /// Endpoints, and the path between them.
    pub pair: P,
    flows: [Flow; 2],
    invariant: fn(&C),
    endpoints: PhantomData<C>,
}

/// One direction: data that are still to be written, and data that have arrived.
struct Flow {
    total: u64,
    handed: u64,
    oracle: InOrder,
}

impl<C> Transfer<C>
where
    C: Connection<Bytes> + StateMachine<Transmit = <C as StateMachine>::Packet>,
    C::Packet: Packet,
{
    /// Creates a transfer: `a` connects to `b`, which listens. `totals` bytes go from `a` to `b` and from `b` to `a`.
    /// `invariant` is checked of both after each step.
    pub fn new(mut a: C, mut b: C, totals: [u64; 2], link: &Emulation, seed: u64, invariant: fn(&C)) -> Self {
        b.listen().expect("a new endpoint can listen");
        a.connect(Instant::ZERO).expect("a new endpoint can connect");
        Self::of(Pair::new(a, b, link, seed), totals, invariant)
    }
}

impl<C, P> Transfer<C, P>
where
    C: Connection<Bytes> + StateMachine<Transmit = <C as StateMachine>::Packet>,
    P: EndpointPair<C>,
{
    /// Creates a transfer over endpoints that are open or opening.
    pub fn of(pair: P, totals: [u64; 2], invariant: fn(&C)) -> Self {
        let flow = |total| Flow { total, handed: 0, oracle: InOrder::default() };
        Self { pair, flows: totals.map(flow), invariant, endpoints: PhantomData }
    }

    /// Runs until no event is left, at most until `limit`.
    pub fn run(&mut self, limit: Instant) {
        self.run_users();
        while self.pair.step(limit) {
            self.run_users();
        }
    }

    /// Performs the actions of the two users after a step.
    pub fn run_users(&mut self) {
        for (i, side) in [Side::A, Side::B].into_iter().enumerate() {
            self.write(i, side);
            while let Some(data) = self.pair.side(side).recv() {
                self.flows[1 - i].oracle.check(&data);
            }
            (self.invariant)(self.pair.side(side));
        }
    }

    fn write(&mut self, i: usize, side: Side) {
        let now = self.pair.now();
        let (end, flow) = (self.pair.side(side), &mut self.flows[i]);
        while flow.handed < flow.total && end.state().may_send() && end.state() != State::Listen {
            let n = (flow.total - flow.handed).min(PIECE);
            match end.send(now, InOrder::bytes(flow.handed, n as usize)) {
                Ok(()) => flow.handed += n,
                Err(SendError::Full { .. }) => break,
                Err(error) => panic!("closed too early: {error}"),
            }
        }
        if flow.handed == flow.total && matches!(end.state(), State::Established | State::CloseWait) {
            end.close(now).expect("open");
        }
    }

    /// Returns the bytes that arrived, from A to B and from B to A.
    #[must_use]
    pub fn received(&self) -> [u64; 2] {
        [self.flows[0].oracle.received(), self.flows[1].oracle.received()]
    }

    /// Panics unless all data have arrived, both ends are closed and idle, and each received one event for the opening and
    /// one for the end of the peer's stream.
    pub fn assert_complete(&mut self) {
        for flow in &self.flows {
            assert_eq!(flow.oracle.received(), flow.total, "everything arrives");
        }
        for side in [Side::A, Side::B] {
            let end = self.pair.side(side);
            assert_eq!(end.state(), State::Closed, "both end");
            assert!(end.poll_timeout().is_none(), "and rest");
        }
        let events = self.pair.take_events();
        for side in [Side::A, Side::B] {
            let of = |e: Event| events.iter().filter(|(_, s, x)| *s == side && *x == e).count();
            assert_eq!((of(Event::Connected), of(Event::PeerClosed)), (1, 1));
        }
    }
}
