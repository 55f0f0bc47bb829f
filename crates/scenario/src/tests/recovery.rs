//! Loss detection of TCP, and detection of spurious losses: `tcp.loss_detection`, `dsack`, `frto`, `eifel`,
//! `dsack_undo`.

use super::*;
use hopline_transport::tcp::{
    ClosedWindow, DsackReports, Frto, LossDetection, RackConfig, RecoveryTimeout, RtoFloor,
    SpuriousDetection, TailProbe,
};

fn sack(settings: &[&str]) -> Config {
    tcp(&spec(CHAIN, &[&["transport=tcp-sack"], settings].concat()), 0)
}

#[test]
fn rack_follows_rfc_8985_with_or_without_probes() {
    assert_eq!(sack(&[]).loss_detection(), LossDetection::DupAcks);
    assert_eq!(sack(&["tcp.loss_detection=rack"]), Config::modern().with_rack());
    let LossDetection::Rack(rack) = sack(&["tcp.loss_detection=rack-without-tlp"]).loss_detection() else {
        panic!("not RACK")
    };
    assert_eq!(rack, RackConfig::RFC8985.with_tail_probe(TailProbe::Off));
}

#[test]
fn duplicates_are_reported_if_configured() {
    assert_eq!(sack(&[]).dsack(), DsackReports::Off);
    assert_eq!(sack(&["tcp.dsack=true"]).dsack(), DsackReports::On);
}

#[test]
fn detectors_of_spurious_reductions_are_enabled_individually() {
    assert_eq!(sack(&[]).spurious(), SpuriousDetection::NONE);
    let all = sack(&["tcp.frto=first-timeout", "tcp.eifel=true", "tcp.dsack_undo=true"]);
    assert_eq!(all.spurious(), SpuriousDetection::ALL);
    assert_eq!(sack(&["tcp.frto=every-timeout"]).spurious().frto(), Frto::EveryTimeout);
    let problem = parse(CHAIN, &["tcp.eifel=true", "tcp.timestamps=false"]).and_then(|s| s.spec(1));
    let problem = problem.expect_err("this is wrong").to_string();
    assert!(problem.contains("`eifel` must be off without timestamps"), "{problem}");
}

#[test]
fn a_closed_window_is_not_probed_instead_of_data_with_rack() {
    assert_eq!(sack(&[]).closed_window(), ClosedWindow::TimeOut);
    assert_eq!(sack(&["tcp.closed_window=persist"]).closed_window(), ClosedWindow::Persist);
    let rack = ["tcp.preset=linux", "tcp.closed_window=persist"];
    let problem = parse(CHAIN, &[&["transport=tcp-sack"], &rack[..]].concat()).and_then(|s| s.spec(1));
    let problem = problem.expect_err("this is wrong").to_string();
    assert!(problem.contains("closed_window"), "{problem}");
}

#[test]
fn rack_without_sack_is_rejected_with_the_reason() {
    for settings in
        [["transport=tcp-newreno", "tcp.preset=modern"], ["transport=tcp-sack", "tcp.preset=ns2-2.35"]]
    {
        let settings = [&settings[..], &["tcp.loss_detection=rack"]].concat();
        let problem = parse(CHAIN, &settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string();
        assert!(problem.contains("RACK goes by what the peer holds"), "{problem}");
    }
}

#[test]
fn the_minimum_rto_and_the_timeout_in_recovery_are_configurable() {
    let config = |settings: &[&str]| tcp(&spec(CHAIN, settings), 0);
    let settings = |config: Config| (config.rto().floor(), config.recovery_timeout());
    let modern = (RtoFloor::Rto, RecoveryTimeout::Reduce);
    let linux = (RtoFloor::Variance, RecoveryTimeout::Keep);
    assert_eq!(settings(config(&["tcp.preset=modern"])), modern);
    assert_eq!(settings(config(&["tcp.preset=linux"])), linux);
    assert_eq!(settings(config(&["tcp.rto_floor=variance", "tcp.recovery_timeout=keep"])), linux);
    let back = ["tcp.preset=linux", "tcp.rto_floor=rto", "tcp.recovery_timeout=reduce"];
    assert_eq!(settings(config(&back)), modern);
}
