//! ACK pacing: it changes nothing but times. Packets are forwarded once and in order, and wait no longer than
//! the limit.

use crate::end_to_end::support::{emulations, endpoints, header, transports, wire};
use bytes::Bytes;
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant};
use hopline_proxy::Packet;
use hopline_proxy::ack_pacing::{AckPacing, Config, Verdict};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Middle, Side, Station};
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A stored packet: its index, its arrival time, and the segment.
type Kept = (u64, Instant, Segment<Bytes>);

/// A station that asserts the invariants of pacing.
struct Paced {
    config: Config,
    machine: AckPacing<Kept>,
    out: VecDeque<(Side, Segment<Bytes>)>,
    came: u64,
    gone: u64,
    /// Interval at which it loses all state, and the waiting ACKs.
    restarts: Option<Duration>,
    restarted: Instant,
}

impl Paced {
    fn new(config: Config, restarts: Option<Duration>) -> Self {
        let (machine, out) = (AckPacing::new(config), VecDeque::new());
        Self { config, machine, out, came: 0, gone: 0, restarts, restarted: Instant::ZERO }
    }

    fn go_on(&mut self, now: Instant, (number, came, segment): Kept) {
        assert_eq!(number, self.gone, "in order, and none is lost");
        assert!(now.since(came) <= self.config.max_hold, "{} is too long", now.since(came));
        self.gone += 1;
        self.out.push_back((Side::B, segment));
    }

    fn drain(&mut self, now: Instant) {
        while let Some(kept) = self.machine.poll() {
            self.go_on(now, kept);
        }
        assert_eq!(self.came - self.gone, u64::from(self.machine.held()));
    }
}

impl Station<Segment<Bytes>> for Paced {
    fn take(&mut self, now: Instant, from: Side, segment: Segment<Bytes>) {
        if self.restarts.is_some_and(|every| now.since(self.restarted) >= every) {
            (self.machine, self.restarted, self.gone) = (AckPacing::new(self.config), now, self.came);
        }
        let ip = header(from);
        let packet = Packet::new(&ip, &segment);
        if from == Side::A {
            self.machine.pass_to_mobile(packet);
            self.out.push_back((Side::A, segment));
        } else {
            let kept = (self.came, now, segment.clone());
            self.came += 1;
            match self.machine.pass_from_mobile(now, packet, || kept.clone()) {
                Verdict::Forward => self.go_on(now, kept),
                Verdict::Taken => {}
            }
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.drain(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Side, Segment<Bytes>)> {
        self.out.pop_front()
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }
}

fn configs() -> impl Strategy<Value = Config> {
    (0u64..60, 0u64..5000, 1u16..40, 0u32..40).prop_map(|(max_hold_ms, gap_us, held, in_all)| Config {
        max_hold: Duration::from_millis(max_hold_ms),
        burst_gap: Duration::from_micros(gap_us),
        held_packets: NonZeroU16::new(held).expect("from 1 on"),
        held_in_all: in_all,
        ..Config::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order_and_whatever_comes_goes_on_in_time(
        config in configs(),
        tcp in transports(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        // Numbers wrap around in the middle.
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let (a, b) = endpoints(tcp, isns);
        let station = Paced::new(config, restarts.map(Duration::from_millis));
        let mut transfer = Transfer::of(Middle::new(a, station, b, [wire(), wire()], wireless, seed), totals, |_| {});
        transfer.run(Instant::from_secs(4000));
        transfer.assert_complete();
    }
}
