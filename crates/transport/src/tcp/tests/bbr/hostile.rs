//! Peers that lie, and those that lack what BBR needs.

use super::super::script::{Script, mss_1000, mss_1000_sack, plain, segment};
use super::{BbrConfig, linux};
use crate::tcp::{Config, CongestionControl, EcnMode, Endpoint, LossDetection, Ports, RecoveryPhase};
use hopline_core::{Duration, Instant, Length, LinkId, Seq32, StateMachine};
use hopline_wire::tcp::{Flags, SackBlock, Segment};
use proptest::prelude::*;

const BOTH: [BbrConfig; 2] = [BbrConfig::V1, BbrConfig::V3];

fn bbr(bbr: BbrConfig) -> Config {
    plain().with_bbr(bbr)
}

/// Sending without end since 100 ms, with a round trip of 100 ms.
fn sending(config: BbrConfig) -> Script {
    let mut s = Script::connected_with(bbr(config), mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s
}

#[test]
fn optimistic_acks_do_not_raise_the_bandwidth_above_the_sending_rate() {
    for config in BOTH {
        let mut s = sending(config);
        s.transmits();
        // Each segment is acknowledged a millisecond after it left.
        for ms in 101..2000 {
            s.run_until(ms);
            let position = s.endpoint.stats().bytes_sent as i64 + 1;
            s.receive(segment(1).ack(position));
            s.transmits();
        }
        let model = s.endpoint.bbr().unwrap();
        assert!(model.bandwidth <= model.pacing_rate * 1.4 || model.bandwidth < 1e7, "{model:?}");
        assert!(s.endpoint.cwnd() < 1 << 22, "{}", s.endpoint.cwnd());
    }
}

#[test]
fn a_segment_acknowledged_byte_by_byte_counts_once() {
    for config in BOTH {
        let mut s = sending(config);
        s.transmits();
        s.run_until(200);
        for byte in 2..=1001 {
            s.receive(segment(1).ack(byte));
        }
        let model = s.endpoint.bbr().unwrap();
        assert!((model.bandwidth - 10_000.0).abs() < 1.0, "1000 bytes in 100 ms: {model:?}");
        assert!(s.endpoint.cwnd() <= 11_000, "{}", s.endpoint.cwnd());
    }
}

#[test]
fn duplicate_acks_and_repeated_blocks_count_no_delivery() {
    for config in BOTH {
        let mut s = sending(config);
        s.transmits();
        s.run_until(200);
        for _ in 0..1000 {
            s.receive(segment(1).ack(1).sack(1001, 2001));
        }
        let model = s.endpoint.bbr().unwrap();
        assert!((model.bandwidth - 10_000.0).abs() < 1.0, "{model:?}");
    }
}

#[test]
fn reneged_blocks_give_no_rate_sample() {
    for config in BOTH {
        let mut s = sending(config);
        s.transmits();
        s.run_until(200);
        s.receive(segment(1).ack(1).sack(1001, 5001));
        s.transmits();
        let before = s.endpoint.bbr().unwrap().bandwidth;
        s.receive(segment(1).ack(2001));
        s.transmits();
        assert_eq!(s.endpoint.stats().reneged, 1);
        assert!((s.endpoint.bbr().unwrap().bandwidth - before).abs() < 1e-6);
    }
}

#[test]
fn without_sack_the_sender_uses_rfc_5681() {
    for config in BOTH {
        let mut s = Script::connected_with(bbr(config), mss_1000());
        s.endpoint.send(s.now, Length(1 << 40)).unwrap();
        assert_eq!(s.endpoint.bbr(), None);
        s.transmits();
        for _ in 0..3 {
            s.receive(segment(1).ack(1));
        }
        assert_eq!((s.endpoint.phase(), s.endpoint.ssthresh()), (RecoveryPhase::Recovery, 5000));
    }
}

#[test]
fn a_timeout_sets_the_window_to_the_flight_plus_one_segment() {
    for config in BOTH {
        let mut s = sending(config);
        s.transmits();
        s.run_until(2000);
        assert!(s.endpoint.stats().timeouts > 0);
        assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Loss, 1000));
    }
}

#[test]
fn incompatible_options_are_refused_by_name() {
    let refused = |config: Config| {
        let made = Endpoint::<Length>::new(config, Ports { local: 1, remote: 2 }, Seq32(0));
        made.err().map(|error| error.field)
    };
    let good = linux(BbrConfig::V1);
    assert_eq!(refused(good), None);
    assert_eq!(refused(Config { loss_detection: LossDetection::DupAcks, ..good }), Some("loss_detection"));
    assert_eq!(refused(good.with_ecn(EcnMode::Request)), Some("ecn"));
    let law = CongestionControl::Bbr(BbrConfig { cwnd_gain: 0.5, ..BbrConfig::V1 });
    assert_eq!(refused(Config { congestion_control: law, ..good }), Some("law.cwnd_gain"));
    let law = CongestionControl::Bbr(BbrConfig { probe_rtt_interval: Duration::ZERO, ..BbrConfig::V3 });
    assert_eq!(refused(Config { congestion_control: law, ..good }), Some("law.probe_rtt_interval"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn arbitrary_acks_do_not_panic(
        v3 in any::<bool>(),
        steps in prop::collection::vec((0u64..400, 0u64..40, 0u64..40, 0u64..40, any::<u16>()), 1..60),
    ) {
        let mut s = sending(BOTH[usize::from(v3)]);
        s.transmits();
        for (wait, ack, left, right, window) in steps {
            let until = s.now.as_nanos() / 1_000_000 + wait;
            s.run_until(until);
            let at = |n: u64| s.peer.iss + 1 + (n * 777) as u32;
            let mut segment = Segment {
                src_port: super::super::script::REMOTE,
                dst_port: super::super::script::LOCAL,
                seq: s.peer.irs + 1,
                ack: at(ack),
                flags: Flags::ACK,
                window,
                payload: Length(0),
                ..Segment::default()
            };
            segment.options.sack.push(SackBlock { left: at(left), right: at(right) });
            s.endpoint.handle_packet(s.now, LinkId::ONLY, segment);
            s.transmits();
            if let Some(model) = s.endpoint.bbr() {
                prop_assert!(model.bandwidth.is_finite() && model.pacing_rate >= 1.0);
            }
            prop_assert!(s.endpoint.cwnd() >= 1000);
        }
        prop_assert!(s.endpoint.poll_timeout().is_some_and(|(at, _)| at > Instant::ZERO) || s.endpoint.bbr().is_none());
    }
}
