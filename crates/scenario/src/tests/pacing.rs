//! `tcp-ap`, `tcp.pacing` and `[pacing]`.

use super::*;
use hopline_transport::pacing::{self, DuplicateAcks, Pacing, ShortPaths, Variability};
use hopline_transport::tcp::{OptionOffer, TimestampEcho};

fn problem(settings: &[&str]) -> String {
    parse(CHAIN, settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string()
}

fn paced(settings: &[&str]) -> pacing::Config {
    match tcp(&spec(CHAIN, settings), 0).pacing() {
        Pacing::Adaptive(config) => config,
        Pacing::None => panic!("not paced: {settings:?}"),
    }
}

#[test]
fn tcp_ap_is_paced_newreno_without_clamp_and_back_off() {
    let config = tcp(&spec(CHAIN, &["transport=tcp-ap", "tcp.preset=ns2-2006"]), 0);
    assert_eq!(config, Config::ns2_2006().with_adaptive_pacing(pacing::Config::AUTHORS));
    assert_eq!((config.window_clamp(), config.rto().backoff_limit()), (None, Some(1)));
    assert_eq!(
        (config.timestamps(), config.timestamp_echo()),
        (OptionOffer::Offered, TimestampEcho::Earliest)
    );
}

#[test]
fn pacing_combines_with_any_recovery() {
    let config = tcp(&spec(CHAIN, &["transport=tcp-sack", "tcp.pacing=adaptive"]), 0);
    assert_eq!(config, Config::modern().with_adaptive_pacing(pacing::Config::AUTHORS));
    let newreno = tcp(&spec(CHAIN, &["transport=tcp-newreno", "tcp.pacing=adaptive"]), 0);
    assert_eq!(newreno, tcp(&spec(CHAIN, &["transport=tcp-ap"]), 0));
}

#[test]
fn settings_of_tcp_ap_can_be_overridden() {
    let config = tcp(&spec(CHAIN, &["transport=tcp-ap", "tcp.window=8", "tcp.backoff_limit=none"]), 0);
    assert_eq!((config.window_clamp(), config.rto().backoff_limit()), (Some(8), None));
    let config = tcp(&spec(CHAIN, &["transport=tcp-ap", "tcp.timestamp_echo=latest"]), 0);
    assert_eq!(config.timestamp_echo(), TimestampEcho::Latest);
}

#[test]
fn every_parameter_of_pacing_can_be_set() {
    let config = paced(&[
        "transport=tcp-ap",
        "pacing.spatial_factor=3",
        "pacing.overhead_bytes=0",
        "pacing.link_rate_mbps=5.5",
        "pacing.history_weight=0",
        "pacing.history_samples=10",
        "pacing.variability=cov-rtt",
        "pacing.contention_factor=2",
        "pacing.short_paths=fewer-hops",
        "pacing.duplicate_acks=ignored",
        "pacing.sample_limit_s=1",
        "pacing.queueing_limit_s=0.25",
        "pacing.queueing_gain=1",
        "pacing.initial_interval_s=0.1",
    ]);
    let expected = pacing::Config::AUTHORS
        .with_spatial_factor(3)
        .with_overhead_bytes(0)
        .with_link_rate_bps(5_500_000)
        .with_history_weight(0.0)
        .with_history(10)
        .with_variability(Variability::CovRtt)
        .with_contention_factor(2.0)
        .with_short_paths(ShortPaths::FewerHops)
        .with_duplicate_acks(DuplicateAcks::Ignored)
        .with_sample_limit(Duration::from_secs(1))
        .with_queueing_limit(Duration::from_millis(250))
        .with_queueing_gain(1.0)
        .with_initial_interval(Duration::from_millis(100));
    assert_eq!(config, expected);
}

#[test]
fn the_link_rate_defaults_to_that_of_the_radios() {
    for transport in ["tcp-ap", "tpa-ap"] {
        let transport = format!("transport={transport}");
        let rate_bps = |settings: &[&str]| {
            let settings: Vec<&str> = [&[transport.as_str()], settings].concat();
            let pacing = match &spec(CHAIN, &settings).flows[0].traffic.transport().unwrap() {
                Transport::Tcp(config) => config.pacing(),
                Transport::Tpa(config) => config.pacing(),
                Transport::Wide(_) | Transport::Quic(_) => Pacing::None,
            };
            match pacing {
                Pacing::Adaptive(config) => config.link_rate_bps(),
                Pacing::None => panic!("not paced: {settings:?}"),
            }
        };
        assert_eq!(rate_bps(&["radio.preset=ns2-wavelan"]), 2_000_000);
        assert_eq!(rate_bps(&["radio.preset=dot11b"]), 11_000_000);
        assert_eq!(rate_bps(&["radio.preset=dot11b", "mac.data_rate_mbps=2"]), 2_000_000);
        assert_eq!(rate_bps(&["radio.preset=dot11a"]), 54_000_000);
        assert_eq!(rate_bps(&["radio.preset=dot11b", "pacing.link_rate_mbps=2"]), 2_000_000);
    }
}

#[test]
fn without_radios_the_link_rate_is_that_of_the_paper() {
    let wired = "duration_s = 10\n[[node]]\nname = \"n0\"\n[[node]]\nname = \"n1\"\n[[link]]\na = \"n0\"\nb = \"n1\"\n\
                 rate_mbps = 50\ndelay_ms = 5\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n";
    match tcp(&spec(wired, &["transport=tcp-ap"]), 0).pacing() {
        Pacing::Adaptive(config) => assert_eq!(config, pacing::Config::AUTHORS),
        Pacing::None => panic!("not paced"),
    }
}

#[test]
fn pacing_of_a_flow_overrides_that_for_all() {
    let two = CHAIN.to_owned() + "[[flow]]\nsrc = \"n2\"\ndst = \"n0\"\n";
    let spec = spec(&two, &["tcp.pacing=adaptive", "flow.1.tcp.pacing=none", "pacing.contention_factor=2"]);
    assert!(matches!(tcp(&spec, 0).pacing(), Pacing::Adaptive(c) if c.contention_factor() == 2.0));
    assert_eq!(tcp(&spec, 1), Config::modern().with_newreno());
}

#[test]
fn contradictory_settings_are_rejected() {
    assert_eq!(
        problem(&["transport=tcp-ap", "tcp.pacing=none"]),
        "--set tcp.pacing=none: tcp-ap without pacing (transport = \"tcp-newreno\" is what is left of it; or remove `pacing`)"
    );
    let without = problem(&["transport=tcp-ap", "tcp.timestamps=false"]);
    assert!(without.contains("`timestamps` must be offered where pacing is adaptive"), "{without}");
    let odd = problem(&["tcp.backoff_limit=3"]);
    assert!(odd.contains("`backoff_limit` must be a power of two"), "{odd}");
    assert!(problem(&["pacing.history_weight=1"]).contains("out of range"));
}
