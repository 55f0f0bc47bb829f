//! Two endpoints over a bad link: every byte arrives once and in order, both ways, and both sides come to rest.

use crate::tcp::{AckPolicy, Config, Endpoint, Event, InitialWindow, Nagle, Offer, Ports, SendError, State};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Machine, Seq32};
use hopline_testkit::oracle::InOrder;
use hopline_testkit::{Emulation, Pair, Recording, Side};
use proptest::prelude::*;

type End = Endpoint<Bytes>;

/// One direction of a transfer: what is still to be handed over, what has arrived.
struct Flow {
    total: u64,
    handed: u64,
    oracle: InOrder,
}

struct Transfer {
    pair: Pair<End>,
    flows: [Flow; 2],
}

impl Transfer {
    fn new(config: [Config; 2], iss: [u32; 2], totals: [u64; 2], link: &Emulation, seed: u64) -> Self {
        let ports = |local, remote| Ports { local, remote };
        let mut a = End::new(config[0], ports(1, 2), Seq32(iss[0])).unwrap();
        let mut b = End::new(config[1], ports(2, 1), Seq32(iss[1])).unwrap();
        b.listen().unwrap();
        a.connect(Instant::ZERO).unwrap();
        let flow = |total| Flow { total, handed: 0, oracle: InOrder::default() };
        Self { pair: Pair::new(a, b, link, seed), flows: totals.map(flow) }
    }

    /// What the two users do after each step: write, read, close at the end.
    fn act(&mut self) {
        let now = self.pair.now();
        for (i, side) in [Side::A, Side::B].into_iter().enumerate() {
            let end = self.pair.side(side);
            let flow = &mut self.flows[i];
            while flow.handed < flow.total && end.state().may_send() && end.state() != State::Listen {
                let n = (flow.total - flow.handed).min(1777);
                match end.send(now, InOrder::bytes(flow.handed, n as usize)) {
                    Ok(()) => flow.handed += n,
                    Err(SendError::Full { .. }) => break,
                    Err(SendError::NotOpen) => panic!("closed too early"),
                }
            }
            if flow.handed == flow.total && matches!(end.state(), State::Established | State::CloseWait) {
                end.close(now).unwrap();
            }
            while let Some(data) = end.recv() {
                self.flows[1 - i].oracle.take(&data);
            }
            invariants(self.pair.side(side));
        }
    }

    fn run(&mut self, limit: Instant) {
        self.act();
        while self.pair.step(limit) {
            self.act();
        }
    }

    fn check(&mut self) {
        for flow in &self.flows {
            assert_eq!(flow.oracle.received(), flow.total, "everything arrives");
        }
        assert_eq!((self.pair.a.state(), self.pair.b.state()), (State::Closed, State::Closed), "both end");
        assert_eq!((self.pair.a.poll_timeout(), self.pair.b.poll_timeout()), (None, None), "and rest");
        let events = self.pair.take_events();
        for side in [Side::A, Side::B] {
            let of = |e: Event| events.iter().filter(|(_, s, x)| *s == side && *x == e).count();
            assert_eq!(of(Event::Connected), 1);
            assert_eq!(of(Event::PeerClosed), 1);
        }
    }
}

fn invariants(end: &End) {
    if end.flight_size() > 0 && end.state() != State::Closed {
        assert!(end.poll_timeout().is_some(), "data in flight and no timer in {:?}", end.state());
    }
    assert!(end.received_unread() <= u64::from(end.config().receive_buffer) + (1 << 14));
}

fn any_config() -> impl Strategy<Value = Config> {
    let preset = prop_oneof![
        Just(Config::modern()),
        Just(Config::modern().with_newreno()),
        Just(Config::modern().with_reno()),
        Just(Config::ns2_235()),
        Just(Config::ns2_235().with_reno()),
        Just(Config::ns2_235().with_sack()),
        Just(Config::ns2_2001()),
    ];
    (preset, 60u32..1461, prop_oneof![Just(3000u32), Just(20_000), Just(200_000)], any::<[bool; 4]>())
        .prop_map(|(mut c, mss, buffer, [delay, nagle, small, scale])| {
            c.mss = mss;
            c.receive_buffer = buffer;
            c.send_buffer = Some(30_000);
            c.ack_policy = if delay {
                AckPolicy::Delayed { timer: Duration::from_millis(100) }
            } else {
                AckPolicy::EverySegment
            };
            c.nagle = if nagle { Nagle::On } else { Nagle::Off };
            c.window_scale = if scale { Offer::Yes } else { Offer::No };
            if small {
                c.initial_window = InitialWindow::Segments(1);
            }
            (c.syn_retries, c.data_retries) = (None, None);
            c.time_wait = Duration::from_secs(240);
            c.rto.max = Duration::from_secs(10);
            c
        })
}

fn any_link() -> impl Strategy<Value = Emulation> {
    let rate = prop_oneof![Just(None), (50_000u64..10_000_000).prop_map(Some)];
    (0u64..200, rate, 0.0..0.25f64, 0.0..0.3f64, 0.0..0.1f64, 0.0..0.1f64, 0u64..300).prop_map(
        |(latency, rate, loss, reorder, duplicate, corrupt, extra)| Emulation {
            latency: Duration::from_millis(latency),
            rate,
            loss,
            reorder,
            duplicate,
            corrupt,
            extra_delay: Duration::from_millis(extra),
            ..Emulation::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_byte_once_and_in_order(
        a in any_config(), b in any_config(), link in any_link(), seed in any::<u64>(),
        iss in any::<[u32; 2]>(), there in 0u64..40_000, back in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        let mut t = Transfer::new([a, b], iss, [there, back], &link, seed);
        t.run(Instant::from_secs(100_000));
        t.check();
    }
}

#[test]
fn sequence_numbers_wrap_around_in_the_middle() {
    for before in [1u32, 2, 1000, 30_000] {
        let link = Emulation { loss: 0.05, ..Emulation::delay(Duration::from_millis(20)) };
        let iss = [0u32.wrapping_sub(before), 0u32.wrapping_sub(before + 7)];
        let mut t = Transfer::new([Config::modern(); 2], iss, [60_000, 60_000], &link, 5);
        t.run(Instant::from_secs(10_000));
        t.check();
    }
}

#[test]
fn a_blackout_is_survived() {
    let link = Emulation {
        rate: Some(1_000_000),
        blackouts: vec![(Instant::from_millis(200), Instant::from_secs(40))],
        ..Emulation::delay(Duration::from_millis(20))
    };
    let mut t = Transfer::new([Config::modern(); 2], [1, 2], [200_000, 0], &link, 5);
    t.run(Instant::from_secs(1000));
    t.check();
    assert!(t.pair.a.stats().timeouts >= 5);
}

#[test]
fn same_seed_same_dialogue() {
    let run = |seed| {
        let link = Emulation { loss: 0.1, reorder: 0.1, ..Emulation::delay(Duration::from_millis(20)) };
        let mut t = Transfer::new([Config::modern(); 2], [1, 2], [50_000, 0], &link, seed);
        t.pair.record(Recording::On);
        t.run(Instant::from_secs(1000));
        t.pair.dialogue()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!(run(1).lines().next().unwrap().contains("A ->   S 1 win 65535 mss 1460"));
}

#[test]
fn both_may_open_at_once() {
    let ports = |local, remote| Ports { local, remote };
    let config = Config { time_wait: Duration::from_secs(1), ..Config::modern() };
    let mut a = End::new(config, ports(1, 2), Seq32(5)).unwrap();
    let mut b = End::new(config, ports(2, 1), Seq32(9)).unwrap();
    a.connect(Instant::ZERO).unwrap();
    b.connect(Instant::ZERO).unwrap();
    let mut pair = Pair::new(a, b, &Emulation::delay(Duration::from_millis(30)), 1);
    pair.run_until(Instant::from_millis(200));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    pair.a.close(pair.now()).unwrap();
    pair.b.close(pair.now()).unwrap();
    pair.run_until(Instant::from_secs(3));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
}
