//! Any sequence of what users, network layers and links do to two TPA endpoints, against a model that knows only what
//! was handed over, and in which order it must come out.

use crate::any_link;
use bytes::Bytes;
use hopline_core::{Duration, Instant, StateMachine};
use hopline_testkit::reference_stream::InOrder;
use hopline_testkit::{Emulation, Pair, Side};
use hopline_transport::Signal;
use hopline_transport::tpa::{Config, Endpoint, Notification, State};
use proptest::prelude::*;

type End = Endpoint<Bytes>;

/// Once the link is perfect and the users read, everything is delivered and acknowledged within this time: the longest
/// timeout (10 s), and what is left at one segment in a delayed ACK (100 ms) and a round trip (20 ms).
const QUIESCENCE_TIME: Duration = Duration::from_secs(120);

/// Time after which an end has detected the loss of its peer by the silence limit of 120 s.
const QUIESCENCE_TIME_AFTER_ABORT: Duration = Duration::from_secs(260);

#[derive(Clone, Debug)]
enum Op {
    Send(Side, u16),
    Flush(Side),
    Read(Side),
    Close(Side),
    Abort(Side),
    Signal(Side, Signal),
    Wait(u16),
    Link(Box<[Emulation; 2]>),
}

fn any_op() -> impl Strategy<Value = Op> {
    let side = || prop_oneof![Just(Side::A), Just(Side::B)];
    let signal = prop_oneof![Just(Signal::RouteLost), Just(Signal::RouteFound)];
    let dead = Emulation::default().with_loss(1.0);
    let link = prop_oneof![3 => any_link(), 1 => Just(dead)];
    prop_oneof![
        6 => (side(), 0u16..3000).prop_map(|(side, n)| Op::Send(side, n)),
        2 => side().prop_map(Op::Flush),
        5 => side().prop_map(Op::Read),
        1 => side().prop_map(Op::Close),
        1 => (side(), 0..6u8).prop_map(|(side, n)| if n == 0 { Op::Abort(side) } else { Op::Flush(side) }),
        3 => (side(), signal).prop_map(|(side, signal)| Op::Signal(side, signal)),
        8 => (0u16..2000).prop_map(Op::Wait),
        2 => (link.clone(), link).prop_map(|(forth, back)| Op::Link(Box::new([forth, back]))),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    (200u16..1461, 1u8..=12, 1u8..=4, 0..3u8, any::<bool>(), 1u32..4).prop_map(
        |(mss, k, cwnd, told, star, room)| {
            let c = if star { Config::tpa_star(cwnd) } else { Config::tpa(cwnd) };
            let notification =
                [Notification::None, Notification::Elfn, Notification::ElfnAndRecovery][usize::from(told)];
            let failures = c.failures().with_notification(notification);
            c.with_mss(mss)
                .with_block_segments(k)
                .with_receive_buffer(u32::from(mss) * u32::from(k) * room)
                .with_failures(failures.with_th_route((told == 2).then_some(3)))
                .with_syn_retries(None)
                .with_time_wait(Duration::from_secs(30))
                .with_rto(c.rto().with_max(Duration::from_secs(10)))
        },
    )
}

/// Actions and received data of one user.
#[derive(Default)]
struct User {
    sent: u64,
    received: InOrder,
    closed: bool,
    aborted: bool,
}

struct Model {
    pair: Pair<End>,
    users: [User; 2],
}

impl Model {
    fn new([a, b]: [Config; 2], seed: u64) -> Self {
        let (mut a, mut b) = (End::new(a).unwrap(), End::new(b).unwrap());
        b.listen().unwrap();
        a.connect(Instant::ZERO).unwrap();
        let link = Emulation::delay(Duration::from_millis(10));
        Self { pair: Pair::new(a, b, &link, seed), users: Default::default() }
    }

    fn apply(&mut self, op: Op) {
        let now = self.pair.now();
        match op {
            Op::Send(side, n) => {
                let user = &mut self.users[side as usize];
                if self.pair.side(side).send(now, InOrder::bytes(user.sent, n.into())).is_ok() {
                    user.sent += u64::from(n);
                }
            }
            Op::Flush(side) => self.pair.side(side).flush(now),
            Op::Read(side) => self.read(side),
            // A close before the peer has answered ends the connection at once, which is another test.
            Op::Close(side) if matches!(self.pair.side(side).state(), State::Listen | State::SynSent) => {}
            Op::Close(side) => {
                self.users[side as usize].closed |= self.pair.side(side).close(now).is_ok();
            }
            Op::Abort(side) => {
                self.users[side as usize].aborted = true;
                self.pair.side(side).abort(now);
            }
            Op::Signal(side, signal) => self.pair.side(side).handle_signal(now, signal),
            Op::Wait(ms) => self.run(Duration::from_millis(ms.into()), |_| ()),
            Op::Link(emulation) => self.pair.change_link(*emulation),
        }
        self.pair.settle();
        self.check();
    }

    fn read(&mut self, side: Side) {
        while let Some(data) = self.pair.side(side).recv() {
            self.users[side as usize].received.check(&data);
        }
    }

    fn run(&mut self, time: Duration, mut each: impl FnMut(&mut Self)) {
        let until = self.pair.now() + time;
        while self.pair.step(until) {
            each(self);
            self.check();
        }
    }

    fn check(&mut self) {
        for side in [Side::A, Side::B] {
            let end = self.pair.side(side);
            assert!(end.in_flight() <= end.config().cwnd_max());
            assert!(end.received_unread() <= u64::from(end.config().receive_buffer()));
            let quiet = matches!(end.state(), State::Closed | State::Listen) || end.cwnd() == 0;
            assert!(quiet || end.unacknowledged() == 0 || end.poll_timeout().is_some(), "{end:?}");
        }
    }

    /// The link becomes perfect, there are routes, both users read.
    fn run_to_quiescence(&mut self) {
        let perfect = || Emulation::delay(Duration::from_millis(10));
        self.pair.change_link([perfect(), perfect()]);
        let now = self.pair.now();
        for side in [Side::A, Side::B] {
            self.pair.side(side).handle_signal(now, Signal::RouteFound);
        }
        let aborted = self.users.iter().any(|user| user.aborted);
        let both = |model: &mut Self| [Side::A, Side::B].map(|side| model.read(side));
        both(self);
        self.run(if aborted { QUIESCENCE_TIME_AFTER_ABORT } else { QUIESCENCE_TIME }, |model| {
            both(model);
        });
        if aborted { self.assert_over_or_idle() } else { self.assert_delivered() }
    }

    fn assert_delivered(&mut self) {
        for (side, other) in [(0, 1), (1, 0)] {
            assert_eq!(
                self.users[other].received.received(),
                self.users[side].sent,
                "all of it, once, in order"
            );
        }
        let (a, b) = (&self.pair.a, &self.pair.b);
        let states = (a.state(), b.state());
        assert_eq!((a.unacknowledged(), b.unacknowledged()), (0, 0));
        let expected = match [self.users[0].closed, self.users[1].closed] {
            [true, true] => (State::Closed, State::Closed),
            [true, false] => (State::FinWait2, State::CloseWait),
            [false, true] => (State::CloseWait, State::FinWait2),
            [false, false] => (State::Established, State::Established),
        };
        assert_eq!(states, expected);
    }

    /// Checks the state after an abort: the other end was notified, has detected the silence, or waits for nothing.
    fn assert_over_or_idle(&mut self) {
        for (end, user) in [(&self.pair.a, &self.users[0]), (&self.pair.b, &self.users[1])] {
            // Here one may call, and be called, for ever.
            let open = end.state().is_synchronized();
            assert!(!open || end.unacknowledged() == 0, "nobody waits for one who is gone");
            assert!(!user.aborted || end.state() == State::Closed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_operations_end_with_every_byte_delivered_once_and_in_order(
        a in any_config(), b in any_config(), seed in any::<u64>(),
        ops in proptest::collection::vec(any_op(), 0..40),
    ) {
        let mut model = Model::new([a, b], seed);
        ops.into_iter().for_each(|op| model.apply(op));
        model.run_to_quiescence();
    }
}
