//! `tcp-f` and its like, `tcp.feedback` and `[feedback]`.

use super::*;
use hopline_transport::tcp::{
    AtcpConfig, BusConfig, CwndAfterFreeze, EcnMode, ElfnConfig, FixedRtoConfig, InFlightAfterFreeze,
    ProbeSchedule, RouteFeedback, RouteReturn, RtoAfterFreeze, TcpFConfig,
};

const WITH_ELFN: &str = "routing.failure_notification=elfn";

fn problem(settings: &[&str]) -> String {
    parse(CHAIN, settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string()
}

fn feedback(settings: &[&str]) -> RouteFeedback {
    tcp(&spec(CHAIN, settings), 0).feedback()
}

#[test]
fn transports_named_after_a_scheme_are_sack_with_it() {
    for (transport, scheme) in [
        ("tcp-f", RouteFeedback::TcpF(TcpFConfig::PAPER)),
        ("tcp-elfn", RouteFeedback::Elfn(ElfnConfig::PAPER)),
        ("tcp-bus", RouteFeedback::Bus(BusConfig::PAPER)),
        ("tcp-fixed-rto", RouteFeedback::FixedRto(FixedRtoConfig::PAPER)),
    ] {
        let config = tcp(&spec(CHAIN, &[WITH_ELFN, &format!("transport={transport}")]), 0);
        assert_eq!(config, Config::modern().with_sack().with_feedback(scheme), "{transport}");
    }
}

#[test]
fn atcp_enables_ecn_by_default() {
    let plain = Config::modern().with_sack().with_feedback(RouteFeedback::Atcp(AtcpConfig::PAPER));
    for named in ["transport=atcp", "tcp.feedback=atcp"] {
        let config = |settings: &[&str]| {
            tcp(&spec(CHAIN, &[&[WITH_ELFN, "transport=tcp-sack", named], settings].concat()), 0)
        };
        assert_eq!(config(&[]), plain.with_ecn(EcnMode::Request), "{named}");
        assert_eq!(config(&["tcp.preset=linux", "tcp.loss_detection=dup-acks"]).ecn(), EcnMode::Request);
        for (written, ecn) in
            [("off", EcnMode::Never), ("if-asked", EcnMode::Accept), ("ask", EcnMode::Request)]
        {
            assert_eq!(config(&[&format!("tcp.ecn={written}")]).ecn(), ecn);
            assert_eq!(config(&["tcp.ecn=ask", &format!("flow.0.tcp.ecn={written}")]).ecn(), ecn);
        }
    }
    for other in ["tcp-f", "tcp-elfn", "tcp-bus", "tcp-fixed-rto"] {
        let config = tcp(&spec(CHAIN, &[WITH_ELFN, &format!("transport={other}")]), 0);
        assert_eq!(config.ecn(), EcnMode::Never, "{other}");
    }
}

#[test]
fn a_scheme_combines_with_any_recovery() {
    let config = tcp(&spec(CHAIN, &[WITH_ELFN, "transport=tcp-reno", "tcp.feedback=elfn"]), 0);
    assert_eq!(config, Config::modern().with_reno().with_feedback(RouteFeedback::Elfn(ElfnConfig::PAPER)));
    assert_eq!(feedback(&[WITH_ELFN]), RouteFeedback::None);
}

#[test]
fn the_scheme_of_a_flow_overrides_that_for_all() {
    let two = CHAIN.to_owned() + "[[flow]]\nsrc = \"n2\"\ndst = \"n0\"\n";
    let spec = spec(&two, &[WITH_ELFN, "tcp.feedback=tcp-f", "flow.1.tcp.feedback=none"]);
    assert_eq!(tcp(&spec, 0).feedback(), RouteFeedback::TcpF(TcpFConfig::PAPER));
    assert_eq!(tcp(&spec, 1).feedback(), RouteFeedback::None);
}

#[test]
fn every_parameter_can_be_set() {
    let elfn = feedback(&[
        WITH_ELFN,
        "transport=tcp-elfn",
        "feedback.probe_interval_s=0.5",
        "feedback.returns=told",
        "feedback.cwnd_after=one-segment",
        "feedback.rto_after=initial",
        "feedback.in_flight=inquired",
    ]);
    let expected = ElfnConfig::PAPER
        .with_probing(ProbeSchedule::Every(Duration::from_millis(500)))
        .with_route_return(RouteReturn::ByNotification)
        .with_cwnd(CwndAfterFreeze::OneSegment)
        .with_rto(RtoAfterFreeze::Initial)
        .with_in_flight(InFlightAfterFreeze::Queried);
    assert_eq!(elfn, RouteFeedback::Elfn(expected));
    let failure_timer = Duration::from_secs(3);
    assert_eq!(
        feedback(&[WITH_ELFN, "transport=tcp-f", "feedback.failure_timer_s=3"]),
        RouteFeedback::TcpF(TcpFConfig::PAPER.with_failure_timer(failure_timer))
    );
    assert_eq!(
        feedback(&["transport=tcp-fixed-rto", "feedback.timeouts=3"]),
        RouteFeedback::FixedRto(FixedRtoConfig::PAPER.with_timeouts(3))
    );
}

#[test]
fn probes_have_a_constant_or_a_growing_interval() {
    let probing = |settings: &[&str]| match feedback(&[&[WITH_ELFN, "transport=atcp"], settings].concat()) {
        RouteFeedback::Atcp(config) => config.probing(),
        other => panic!("{other:?}"),
    };
    let every = |secs| ProbeSchedule::Every(Duration::from_secs(secs));
    assert_eq!(probing(&[]), ProbeSchedule::PersistTimer);
    assert_eq!(probing(&["feedback.probing=interval"]), every(2));
    assert_eq!(probing(&["feedback.probe_interval_s=3"]), every(3));
    assert_eq!(
        probing(&["feedback.probe_interval_s=3", "feedback.probing=persist-timer"]),
        ProbeSchedule::PersistTimer
    );
}

#[test]
fn schemes_without_route_failure_notification_are_rejected() {
    assert_eq!(
        problem(&["transport=tcp-elfn"]),
        "--set transport=tcp-elfn: elfn acts on being told of lost routes, and nobody tells \
         (set routing.failure_notification = \"elfn\")"
    );
    for transport in ["tcp-f", "atcp", "tcp-bus"] {
        assert!(problem(&[&format!("transport={transport}")]).contains("nobody tells"));
    }
    assert!(problem(&["tcp.feedback=atcp"]).starts_with("--set tcp.feedback=atcp: "));
    assert!(matches!(feedback(&["transport=tcp-fixed-rto"]), RouteFeedback::FixedRto(_)), "nobody has to");
}

#[test]
fn contradictory_settings_are_rejected() {
    assert_eq!(
        problem(&[WITH_ELFN, "transport=tcp-f", "tcp.feedback=elfn"]),
        "--set tcp.feedback=elfn: tcp-f with feedback = \"elfn\" \
         (transport = \"tcp-sack\" goes with any feedback; or remove `feedback`)"
    );
    assert!(
        problem(&[WITH_ELFN, "transport=tcp-bus", "tcp.feedback=none"]).contains("tcp-bus with feedback")
    );
    assert!(problem(&["feedback.timeouts=0"]).contains("out of range"));
}

#[test]
fn tpa_without_route_failure_notification_is_rejected() {
    for notification in ["elfn", "elfn-and-recovery"] {
        let setting = format!("tpa.notification={notification}");
        assert_eq!(
            problem(&["transport=tpa", "routing.protocol=olsr", &setting]),
            format!(
                "--set {setting}: notification = \"{notification}\" acts on being told of lost routes, and nothing \
                 tells (set routing.failure_notification = \"elfn\")"
            )
        );
    }
    spec(CHAIN, &["transport=tpa", "tpa.notification=none"]);
}

#[test]
fn tpa_freezes_without_probes_only_with_route_recovery_notification() {
    let silent = "tpa.notification=elfn-and-recovery";
    let resolved = |routing: &str, notification: &str| {
        let routing = format!("routing.protocol={routing}");
        parse(CHAIN, &["transport=tpa", WITH_ELFN, &routing, notification]).and_then(|s| s.spec(1))
    };
    for (routing, why) in [
        ("aodv", "aodv looks for a route only when there is a packet to send"),
        ("dsr", "dsr looks for a route only when there is a packet to send"),
        ("static", "static routes tell of no return"),
    ] {
        assert_eq!(
            resolved(routing, silent).expect_err("a sender that waits for ever").to_string(),
            format!(
                "--set {silent}: notification = \"elfn-and-recovery\" waits in silence, and {why} (set notification = \
                 \"elfn\", by which the sender probes, or routing.protocol = \"olsr\")"
            )
        );
        assert!(resolved(routing, "tpa.notification=elfn").is_ok());
    }
    assert!(resolved("olsr", silent).is_ok());
}
