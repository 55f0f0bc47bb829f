//! ACK pacing: it changes nothing but times. Packets are forwarded once and in order, and wait no longer than
//! the limit.

use crate::end_to_end::support::{emulations, endpoints, header, transports, wire};
use bytes::Bytes;
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant};
use hopline_proxy::Packet;
use hopline_proxy::ack_pacing::{AckPacing, Config, Verdict};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Side, Station, TwoLinks};
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A stored packet: its index, its arrival time, and the segment.
type StoredPacket = (u64, Instant, Segment<Bytes>);

/// A station that asserts the invariants of pacing.
struct PacingStation {
    config: Config,
    pacing: AckPacing<StoredPacket>,
    out: VecDeque<(Side, Segment<Bytes>)>,
    received: u64,
    forwarded: u64,
    /// Interval at which it loses all state, and the waiting ACKs.
    restart_interval: Option<Duration>,
    last_restart: Instant,
}

impl PacingStation {
    fn new(config: Config, restarts: Option<Duration>) -> Self {
        let (machine, out) = (AckPacing::new(config), VecDeque::new());
        Self {
            config,
            pacing: machine,
            out,
            received: 0,
            forwarded: 0,
            restart_interval: restarts,
            last_restart: Instant::ZERO,
        }
    }

    fn forward(&mut self, now: Instant, (number, came, segment): StoredPacket) {
        assert_eq!(number, self.forwarded, "in order, and none is lost");
        assert!(now.since(came) <= self.config.max_delay, "{} is too long", now.since(came));
        self.forwarded += 1;
        self.out.push_back((Side::B, segment));
    }

    fn drain(&mut self, now: Instant) {
        while let Some(kept) = self.pacing.poll_transmit() {
            self.forward(now, kept);
        }
        assert_eq!(self.received - self.forwarded, u64::from(self.pacing.delayed()));
    }
}

impl Station<Segment<Bytes>> for PacingStation {
    fn handle_packet(&mut self, now: Instant, from: Side, segment: Segment<Bytes>) {
        if self.restart_interval.is_some_and(|every| now.since(self.last_restart) >= every) {
            (self.pacing, self.last_restart, self.forwarded) =
                (AckPacing::new(self.config), now, self.received);
        }
        let ip = header(from);
        let packet = Packet::new(&ip, &segment);
        if from == Side::A {
            self.pacing.pass_to_mobile(packet);
            self.out.push_back((Side::A, segment));
        } else {
            let kept = (self.received, now, segment.clone());
            self.received += 1;
            match self.pacing.pass_from_mobile(now, packet, || kept.clone()) {
                Verdict::Forward => self.forward(now, kept),
                Verdict::Kept => {}
            }
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.pacing.handle_timeout(now);
        self.drain(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Segment<Bytes>)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.pacing.poll_timeout()
    }
}

fn configs() -> impl Strategy<Value = Config> {
    (0u64..60, 0u64..5000, 1u16..40, 0u32..40).prop_map(|(max_hold_ms, gap_us, held, in_all)| Config {
        max_delay: Duration::from_millis(max_hold_ms),
        burst_gap: Duration::from_micros(gap_us),
        max_delayed_acks: NonZeroU16::new(held).expect("from 1 on"),
        max_total_delayed_acks: in_all,
        ..Config::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_and_acks_are_forwarded_in_time(
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
        let station = PacingStation::new(config, restarts.map(Duration::from_millis));
        let mut transfer = Transfer::of(TwoLinks::new(a, station, b, [wire(), wire()], wireless, seed), totals, |_| {});
        transfer.run(Instant::from_secs(4000));
        transfer.assert_complete();
    }
}
