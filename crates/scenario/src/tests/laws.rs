//! `tcp-cubic`, `tcp-bbr`, `tcp-bbr3`, `tcp.congestion_control`, `tcp.recovery_window`, `tcp.ecn`, and queues that mark.

use super::*;
use hopline_queue::dual_pi2::Scheduler;
use hopline_queue::pie::{Activation, CapDropAdjustment, DelayEstimate, Derandomization};
use hopline_queue::red::{Gentle, IdlePolicy, Measure, RedConfig};
use hopline_queue::{CoDelConfig, DualPi2Config, FqCoDelConfig, PieConfig, SignalAction};
use hopline_sim::spec::Discipline;
use hopline_transport::tcp::{
    BbrConfig, BbrVersion, CongestionControl, CubicConfig, EcnMode, FastConvergence, HyStartConfig,
    HyStartPlusPlusConfig, LossDetection, PolicerDetection, PragueConfig, PrrBound, RackConfig,
    RecoveryReduction, SlowStart,
};
use std::num::NonZeroU16;

fn law(settings: &[&str]) -> CongestionControl {
    tcp(&spec(CHAIN, settings), 0).congestion_control()
}

#[test]
fn tcp_cubic_follows_linux_by_default() {
    assert_eq!(tcp(&spec(CHAIN, &["transport=tcp-cubic"]), 0), Config::linux());
    let config = tcp(&spec(CHAIN, &["transport=tcp-cubic", "tcp.preset=ns2-2.35"]), 0);
    assert_eq!(config, Config::ns2_235().with_sack().with_cubic());
}

#[test]
fn other_transport_names_use_additive_increase_with_any_preset() {
    for transport in ["tcp-reno", "tcp-newreno", "tcp-sack", "tcp-ap"] {
        assert_eq!(law(&[&format!("transport={transport}"), "tcp.preset=linux"]), CongestionControl::Reno);
    }
}

#[test]
fn a_congestion_control_combines_with_any_recovery() {
    let config = tcp(&spec(CHAIN, &["transport=tcp-reno", "tcp.congestion_control=cubic"]), 0);
    assert_eq!(config, Config::modern().with_reno().with_cubic());
    assert_eq!(law(&["transport=tcp-cubic", "tcp.congestion_control=aimd"]), CongestionControl::Reno);
}

#[test]
fn every_parameter_of_cubic_can_be_set() {
    let settings =
        ["transport=tcp-cubic", "tcp.cubic_c=4", "tcp.cubic_beta=0.5", "tcp.fast_convergence=false"];
    let expected = CubicConfig::LINUX.with_c(4.0).with_beta(0.5).with_fast_convergence(FastConvergence::Off);
    assert_eq!(law(&settings), CongestionControl::Cubic(expected));
}

#[test]
fn parameters_of_cubic_without_cubic_are_rejected() {
    let text = CHAIN.to_owned() + "tcp = { cubic_beta = 0.5 }\ntransport = \"tcp-sack\"\n";
    let problem = parse(&text, &[]).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
    assert!(
        problem.contains("`cubic_beta` is used with congestion_control = \"cubic\", not \"aimd\""),
        "{problem}"
    );
}

#[test]
fn tcp_bbr_follows_linux_by_default() {
    for (transport, bbr) in [("tcp-bbr", BbrConfig::V1), ("tcp-bbr3", BbrConfig::V3)] {
        let transport = format!("transport={transport}");
        assert_eq!(tcp(&spec(CHAIN, &[&transport]), 0), Config::linux().with_bbr(bbr));
        let old = tcp(&spec(CHAIN, &[&transport, "tcp.preset=ns2-2.35"]), 0);
        assert_eq!(old, Config::ns2_235().with_bbr(bbr), "with SACK and RACK, which it takes");
    }
}

#[test]
fn every_parameter_of_bbr_can_be_set() {
    let shared = [
        "tcp.bbr_cwnd_gain=3",
        "tcp.bbr_pacing_margin=0.05",
        "tcp.bbr_probe_rtt_interval_s=7",
        "tcp.bbr_probe_rtt_s=0.1",
    ];
    let over = |version| {
        CongestionControl::Bbr(
            BbrConfig::V1
                .with_version(version)
                .with_cwnd_gain(3.0)
                .with_pacing_margin(0.05)
                .with_probe_rtt_interval(Duration::from_secs(7))
                .with_probe_rtt_duration(Duration::from_millis(100)),
        )
    };
    let v1 = law(&[&shared[..], &["transport=tcp-bbr", "tcp.bbr_policer=false"]].concat());
    assert_eq!(v1, over(BbrVersion::V1 { policer: PolicerDetection::Off }));
    let own = ["transport=tcp-bbr3", "tcp.bbr_loss_threshold=0.1", "tcp.bbr_beta=0.9", "tcp.bbr_headroom=0"];
    let v3 = law(&[&shared[..], &own].concat());
    let version = BbrVersion::V3 { loss_threshold: 0.1, beta: 0.9, headroom: 0.0 };
    assert_eq!(v3, over(version));
}

#[test]
fn prague_has_accurate_ecn_and_its_parameters() {
    assert_eq!(
        tcp(&spec(CHAIN, &["transport=tcp-prague"]), 0),
        Config::linux().with_prague(PragueConfig::DRAFT)
    );
    let settings = ["transport=tcp-sack", "tcp.congestion_control=prague", "tcp.loss_detection=rack"];
    let config = tcp(&spec(CHAIN, &settings), 0);
    assert_eq!(
        (config.congestion_control(), config.ecn()),
        (law(&["transport=tcp-prague"]), EcnMode::AccEcn)
    );
    let parameters = [
        "transport=tcp-prague",
        "tcp.prague_gain=0.25",
        "tcp.prague_rtt_reference_ms=10",
        "tcp.prague_rtt_dependent_rounds=0",
        "tcp.prague_loss_beta=0.7",
        "tcp.prague_max_burst_ms=1",
    ];
    let prague = PragueConfig::DRAFT
        .with_gain(0.25)
        .with_rtt_reference(Duration::from_millis(10))
        .with_rtt_dependent_rounds(0)
        .with_loss_beta(0.7)
        .with_max_burst(Duration::from_millis(1));
    assert_eq!(law(&parameters), CongestionControl::Prague(prague));
    for (settings, said) in [
        (vec!["transport=tcp-newreno", "tcp.congestion_control=prague"], "RACK with Prague"),
        (vec!["transport=tcp-prague", "tcp.ecn=ask"], "`ecn` must be accurate ECN with Prague"),
        (vec!["transport=tcp-prague", "tcp.pacing=adaptive"], "`pacing` must be none with Prague"),
    ] {
        let problem = parse(CHAIN, &settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
        assert!(problem.contains(said), "{settings:?}: {problem}");
    }
}

#[test]
fn bbr_requires_sack_and_time_based_loss_detection() {
    let settings = ["transport=tcp-sack", "tcp.congestion_control=bbr", "tcp.loss_detection=rack"];
    let config = tcp(&spec(CHAIN, &settings), 0);
    assert_eq!(config.congestion_control(), CongestionControl::Bbr(BbrConfig::V1));
    assert_eq!(config.loss_detection(), LossDetection::Rack(RackConfig::RFC8985));
    for (settings, said) in [
        (vec!["transport=tcp-newreno", "tcp.congestion_control=bbr"], "RACK with BBR"),
        (vec!["transport=tcp-bbr", "tcp.ecn=ask"], "`ecn` must be off with BBR"),
        (vec!["transport=tcp-bbr", "tcp.pacing=adaptive"], "`pacing` must be none with BBR"),
        (vec!["transport=tcp-bbr", "tcp.feedback=fixed-rto"], "`feedback` must be none with BBR"),
    ] {
        let problem = parse(CHAIN, &settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
        assert!(problem.contains(said), "{settings:?}: {problem}");
    }
}

#[test]
fn parameters_of_another_bbr_version_are_rejected() {
    for (transport, key, said) in [
        ("tcp-bbr", "bbr_beta = 0.5", "`bbr_beta` is used with congestion_control = \"bbr3\", not \"bbr\""),
        (
            "tcp-bbr3",
            "bbr_policer = true",
            "`bbr_policer` is used with congestion_control = \"bbr\", not \"bbr3\"",
        ),
        (
            "tcp-cubic",
            "bbr_cwnd_gain = 2",
            "is used with congestion_control = \"bbr\" or \"bbr3\", not \"cubic\"",
        ),
    ] {
        let text = format!("{CHAIN}tcp = {{ {key} }}\ntransport = \"{transport}\"\n");
        let problem = parse(&text, &[]).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
        assert!(problem.contains(said), "{problem}");
    }
}

#[test]
fn slow_start_has_three_ends() {
    let end = |settings: &[&str]| tcp(&spec(CHAIN, settings), 0).slow_start();
    let linux = SlowStart::HyStart(HyStartConfig::LINUX);
    assert_eq!(end(&["transport=tcp-newreno"]), SlowStart::Rfc5681);
    assert_eq!(end(&["transport=tcp-cubic", "tcp.slow_start=rfc5681"]), SlowStart::Rfc5681);
    assert_eq!(end(&["transport=tcp-reno", "tcp.slow_start=hystart"]), linux);
    let plus = SlowStart::HyStartPlusPlus(HyStartPlusPlusConfig::RFC9406);
    assert_eq!(end(&["transport=tcp-cubic", "tcp.slow_start=hystart++"]), plus);
    let text = CHAIN.to_owned() + "tcp = { slow_start = \"hystart\" }\ntransport = \"tcp-bbr\"\n";
    let problem = parse(&text, &[]).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
    assert!(problem.contains("`slow_start` is used with congestion_control"), "{problem}");
}

#[test]
fn the_recovery_window_requires_sack() {
    let window = |settings: &[&str]| match tcp(&spec(CHAIN, settings), 0).variant() {
        Variant::Sack(sack) => sack.reduction(),
        other => panic!("not SACK: {other:?}"),
    };
    let prr = RecoveryReduction::Prr(PrrBound::SafeAck);
    assert_eq!(window(&["transport=tcp-sack"]), RecoveryReduction::AtOnce);
    assert_eq!(window(&["transport=tcp-sack", "tcp.preset=linux"]), prr);
    assert_eq!(window(&["transport=tcp-sack", "tcp.recovery_window=prr"]), prr);
    assert_eq!(window(&["transport=tcp-cubic", "tcp.recovery_window=at-once"]), RecoveryReduction::AtOnce);
    let slow_start = RecoveryReduction::Prr(PrrBound::SlowStart);
    assert_eq!(window(&["transport=tcp-sack", "tcp.recovery_window=prr-slow-start"]), slow_start);
    let text = CHAIN.to_owned() + "tcp = { recovery_window = \"prr\" }\ntransport = \"tcp-reno\"\n";
    let problem = parse(&text, &[]).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
    assert!(problem.contains("`recovery_window` is a matter of SACK"), "{problem}");
}

#[test]
fn ecn_is_used_if_configured() {
    let ecn = |settings: &[&str]| tcp(&spec(CHAIN, settings), 0).ecn();
    assert_eq!(ecn(&["transport=tcp-sack"]), EcnMode::Never);
    assert_eq!(ecn(&["transport=tcp-cubic"]), EcnMode::Accept);
    assert_eq!(ecn(&["transport=tcp-newreno", "tcp.ecn=ask"]), EcnMode::Request);
    assert_eq!(ecn(&["transport=tcp-cubic", "tcp.ecn=off"]), EcnMode::Never);
    assert_eq!(ecn(&["transport=tcp-cubic", "tcp.ecn=accurate"]), EcnMode::AccEcn);
}

#[test]
fn every_parameter_of_red_can_be_set() {
    let queue = |settings: &[&str]| spec(CHAIN, settings).radio.expect("has radios").queue;
    assert_eq!(queue(&[]).discipline, Discipline::DropTail);
    assert_eq!(queue(&["queue.discipline=red"]).discipline, Discipline::Red(RedConfig::PAPER));
    let red = queue(&[
        "queue.discipline=red",
        "queue.min_threshold_packets=2",
        "queue.max_threshold_packets=8.5",
        "queue.weight=0.1",
        "queue.max_probability=0.5",
        "queue.measure=bytes",
        "queue.mean_packet_bytes=1500",
        "queue.gentle=true",
        "queue.idle_packet_ms=0",
        "queue.action=mark",
    ]);
    let expected = RedConfig {
        min_threshold: 2.0,
        max_threshold: 8.5,
        weight: 0.1,
        max_probability: 0.5,
        measure: Measure::Bytes { packet_bytes: 1500 },
        gentle: Gentle::On,
        idle: IdlePolicy::Keep,
        action: SignalAction::Mark,
    };
    assert_eq!(red.discipline, Discipline::Red(expected));
}

#[test]
fn every_parameter_of_codel_and_fq_codel_can_be_set() {
    let queue = |settings: &[&str]| spec(CHAIN, settings).radio.expect("has radios").queue.discipline;
    assert_eq!(queue(&["queue.discipline=codel"]), Discipline::CoDel(CoDelConfig::RFC8289));
    assert_eq!(queue(&["queue.discipline=fq-codel"]), Discipline::FqCoDel(FqCoDelConfig::RFC8290));
    let of_codel =
        ["queue.target_ms=20", "queue.interval_ms=400", "queue.packet_bytes=552", "queue.action=mark"];
    let codel = CoDelConfig {
        target: Duration::from_millis(20),
        interval: Duration::from_millis(400),
        packet_bytes: 552,
        action: SignalAction::Mark,
    };
    let with = |more: &[&'static str]| queue(&[&of_codel, more].concat());
    assert_eq!(with(&["queue.discipline=codel"]), Discipline::CoDel(codel));
    let fq = FqCoDelConfig { codel, flows: NonZeroU16::new(64).unwrap(), quantum_bytes: 300 };
    let of_fq = ["queue.discipline=fq-codel", "queue.flows=64", "queue.quantum_bytes=300"];
    assert_eq!(with(&of_fq), Discipline::FqCoDel(fq));
}

#[test]
fn every_parameter_of_pie_can_be_set() {
    let queue = |settings: &[&str]| spec(CHAIN, settings).radio.expect("has radios").queue.discipline;
    assert_eq!(queue(&["queue.discipline=pie"]), Discipline::Pie(PieConfig::RFC8033));
    let settings = [
        "queue.discipline=pie",
        "queue.target_ms=20",
        "queue.update_interval_ms=16",
        "queue.alpha_hz=0.25",
        "queue.beta_hz=2.5",
        "queue.max_burst_ms=100",
        "queue.mean_packet_bytes=1514",
        "queue.action=mark",
        "queue.mark_threshold=0.2",
        "queue.delay_estimate=dequeue-rate",
        "queue.dequeue_threshold_bytes=10000",
        "queue.activation_share=0.5",
        "queue.derandomization=true",
        "queue.cap_drop_adjustment=true",
    ];
    let pie = PieConfig {
        target: Duration::from_millis(20),
        update_interval: Duration::from_millis(16),
        alpha_hz: 0.25,
        beta_hz: 2.5,
        max_burst: Duration::from_millis(100),
        mean_packet_bytes: 1514,
        action: SignalAction::Mark,
        mark_threshold: 0.2,
        delay_estimate: DelayEstimate::DequeueRate { threshold_bytes: 10_000 },
        activation: Activation::AboveOccupancy { share: 0.5 },
        derandomization: Derandomization::On,
        cap_drop_adjustment: CapDropAdjustment::On,
    };
    assert_eq!(queue(&settings), Discipline::Pie(pie));
    let linux = [
        "queue.discipline=pie",
        "queue.mean_packet_bytes=1514",
        "queue.derandomization=true",
        "queue.cap_drop_adjustment=true",
    ];
    assert_eq!(queue(&linux), Discipline::Pie(PieConfig::LINUX));
}

#[test]
fn every_parameter_of_dualpi2_can_be_set() {
    let queue = |settings: &[&str]| spec(CHAIN, settings).radio.expect("has radios").queue.discipline;
    assert_eq!(queue(&["queue.discipline=dualpi2"]), Discipline::DualPi2(DualPi2Config::RFC9332));
    let linux = [
        "queue.discipline=dualpi2",
        "queue.update_interval_ms=16",
        "queue.alpha_hz=0.16",
        "queue.beta_hz=3.2",
        "queue.l4s_threshold_ms=1",
        "queue.l4s_ramp_ms=0",
        "queue.l4s_min_backlog_packets=0",
        "queue.classic_weight=0.1",
    ];
    assert_eq!(queue(&linux), Discipline::DualPi2(DualPi2Config::LINUX));
    let settings = [
        "queue.discipline=dualpi2",
        "queue.target_ms=20",
        "queue.coupling_factor=3",
        "queue.scheduler=ts-fifo",
        "queue.time_shift_ms=40",
    ];
    let dual = DualPi2Config {
        target: Duration::from_millis(20),
        coupling: 3.0,
        scheduler: Scheduler::TimeShiftedFifo { shift: Duration::from_millis(40) },
        ..DualPi2Config::RFC9332
    };
    assert_eq!(queue(&settings), Discipline::DualPi2(dual));
}

#[test]
fn queues_reject_keys_of_other_queues() {
    let problem = |settings: &[&str]| {
        parse(CHAIN, settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string()
    };
    for (settings, expected) in [
        (
            &["queue.target_ms=9"][..],
            "`target_ms` is used with discipline = \"codel\" or \"fq-codel\" or \"pie\" or \"dualpi2\", not \"drop-tail\"",
        ),
        (
            &["queue.discipline=codel", "queue.flows=9"],
            "`flows` is used with discipline = \"fq-codel\", not \"codel\"",
        ),
        (
            &["queue.discipline=fq-codel", "queue.service=fifo"],
            "`service` is used with discipline = \"drop-tail\"",
        ),
        (
            &["queue.discipline=codel", "queue.alpha_hz=1"],
            "`alpha_hz` is used with discipline = \"pie\" or \"dualpi2\", not \"codel\"",
        ),
        (
            &["queue.discipline=dualpi2", "queue.time_shift_ms=9"],
            "`time_shift_ms` is used with scheduler = \"ts-fifo\", not \"wrr\"",
        ),
        (
            &["queue.discipline=dualpi2", "queue.service=fifo"],
            "`service` is used with discipline = \"drop-tail\"",
        ),
        (
            &["queue.discipline=pie", "queue.dequeue_threshold_bytes=9"],
            "`dequeue_threshold_bytes` is used with delay_estimate = \"dequeue-rate\", not \"timestamps\"",
        ),
        (&["queue.action=mark"], "`action` is used with discipline = \"red\""),
        (
            &["queue.discipline=codel", "queue.target_ms=200"],
            "CoDel wants a target no longer than the interval",
        ),
    ] {
        let problem = problem(settings);
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn contradictory_red_parameters_are_rejected() {
    let problem = |settings: &[&str]| {
        parse(CHAIN, settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string()
    };
    let lone = problem(&["queue.weight=0.1"]);
    assert!(lone.contains("`weight` is used with discipline = \"red\", not \"drop-tail\""), "{lone}");
    let unit = problem(&["queue.discipline=red", "queue.mean_packet_bytes=9"]);
    assert!(unit.contains("`mean_packet_bytes` is used with measure = \"bytes\""), "{unit}");
    let order = problem(&["queue.discipline=red", "queue.min_threshold_packets=20"]);
    assert!(order.contains("RED wants min_threshold < max_threshold"), "{order}");
}

#[test]
fn results_use_the_transport_name_of_the_scenario() {
    let called = |settings: &[&str]| spec(CHAIN, settings).flows[0].labels.transport.clone();
    for transport in crate::keys::TRANSPORTS {
        let settings: &[&str] = match *transport {
            "tcp-f" | "tcp-elfn" | "atcp" | "tcp-bus" => &["routing.failure_notification=elfn"],
            _ => &[],
        };
        let transport = format!("transport={transport}");
        assert_eq!(format!("transport={}", called(&[&[transport.as_str()], settings].concat())), transport);
    }
    let told = "routing.failure_notification=elfn";
    assert_eq!(called(&["transport=tcp-elfn", "tcp.congestion_control=cubic", told]), "tcp-elfn");
    assert_eq!(called(&["transport=tcp-newreno", "tcp.feedback=elfn", told]), "tcp-newreno");
}
