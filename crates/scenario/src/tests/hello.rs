//! HELLO messages of AODV: presets, and keys over them.

use super::*;
use hopline_routing::aodv::config::{Hello, HelloLiveness, HelloSchedule, HelloSenders};

fn sensing(settings: &[&str]) -> LinkSensing {
    match spec(CHAIN, &[&["routing.protocol=aodv"], settings].concat()).routing {
        RoutingSpec::Aodv(config) => config.link_sensing,
        other => panic!("{other:?}"),
    }
}

#[test]
fn presets_send_hello_as_the_rfc_and_aodv_uu_do() {
    assert_eq!(sensing(&["routing.aodv.preset=rfc3561-hello"]), LinkSensing::Hello(Hello::RFC3561));
    assert_eq!(sensing(&["routing.aodv.preset=aodv-uu"]), LinkSensing::Hello(Hello::AODV_UU));
}

#[test]
fn a_preset_without_hello_gets_one_that_tolerates_one_loss() {
    let every = |ms: u64| Hello::every(Duration::from_millis(ms));
    assert_eq!(sensing(&["routing.aodv.link_sensing=hello"]), LinkSensing::Hello(every(1_000)));
    let both = sensing(&["routing.aodv.link_sensing=both", "routing.aodv.hello_interval_s=0.4"]);
    assert_eq!(both, LinkSensing::Both(every(400)));
    assert_eq!(both.hello().unwrap().allowed_silence(), Duration::from_millis(1_000));
}

#[test]
fn keys_override_the_preset() {
    let changed = sensing(&[
        "routing.aodv.preset=aodv-uu",
        "routing.aodv.hello_slack_s=0.3",
        "routing.aodv.hello_when=on-active-route",
        "routing.aodv.hello_jitter_s=0.02",
        "routing.aodv.neighbour_liveness=any-packet",
    ]);
    let jitter = Duration::from_millis(20);
    let expected = Hello {
        slack: Duration::from_millis(300),
        senders: HelloSenders::OnActiveRoute,
        schedule: HelloSchedule::AfterBroadcast { jitter },
        liveness: HelloLiveness::AnyPacket,
        ..Hello::AODV_UU
    };
    assert_eq!(changed, LinkSensing::Hello(expected));
    let periodic = sensing(&["routing.aodv.preset=aodv-uu", "routing.aodv.hello_schedule=periodic"]);
    assert_eq!(periodic.hello().unwrap().schedule, HelloSchedule::Periodic);
    let after = sensing(&["routing.aodv.preset=aodv-uu", "routing.aodv.hello_schedule=after-broadcast"]);
    assert_eq!(after, LinkSensing::Hello(Hello::AODV_UU));
}

#[test]
fn jitter_of_a_periodic_hello_is_rejected() {
    let settings =
        ["routing.protocol=aodv", "routing.aodv.preset=rfc3561-hello", "routing.aodv.hello_jitter_s=0.1"];
    let problems = parse(CHAIN, &settings).and_then(|scenario| scenario.spec(1)).unwrap_err().to_string();
    assert!(
        problems.contains("hello_jitter_s has no effect with hello_schedule = \"periodic\""),
        "{problems}"
    );
}
