//! `[[proxy]]`.

use super::errors::first_problem;
use super::*;
use core::num::NonZeroU8;
use hopline_core::NodeId;
use hopline_sim::spec::dproxy::opaque;
use hopline_sim::spec::{
    MobileSide, PairKind, PairSpec, ProxyKind, ack_pacing, arq, dproxy, mtcp, nack, snoop,
};

/// A server, a base station and a mobile host, all wired, with a proxy that says `rest`.
fn last_hop(rest: &str) -> String {
    format!(
        "duration_s = 10\n[[node]]\nname = \"s\"\n[[node]]\nname = \"bs\"\n[[node]]\nname = \"m\"\n\
         [[link]]\na = \"s\"\nb = \"bs\"\nrate_mbps = 10\ndelay_ms = 1\n\
         [[link]]\na = \"bs\"\nb = \"m\"\nrate_mbps = 2\ndelay_ms = 1\n\
         [[flow]]\nsrc = \"s\"\ndst = \"m\"\n[[proxy]]\nnode = \"bs\"\n{rest}"
    )
}

fn served(rest: &str) -> Spec {
    spec(&last_hop(&format!("mobile = [\"m\"]\n{rest}")), &[])
}

#[test]
fn presets_can_be_overridden() {
    let of = |rest: &str| match served(&format!("kind = \"snoop\"\n{rest}")).proxies.remove(0).kind {
        ProxyKind::Snoop(config) => config,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(""), snoop::Config::modern());
    assert_eq!(of("preset = \"published\""), snoop::Config::published());
    let ns2 =
        of("preset = \"ns2-2.35\"\nhigh_water_packets = 7\nlocal_limit = 3\nturn = \"first\"\nidle_s = 5\n");
    assert_eq!(
        (ns2.high_water.get(), ns2.max_local_retransmissions, ns2.limits.idle_timeout),
        (7, 3, Duration::from_secs(5))
    );
    let snoop::Rules::Classic(rules) = ns2.rules else { panic!("{ns2:?}") };
    assert_eq!(
        rules,
        snoop::ClassicRules { queue_position: snoop::QueuePosition::Front, ..snoop::ClassicRules::NS2 }
    );
}

#[test]
fn kind_none_adds_no_proxy_and_keys_of_other_kinds_are_ignored() {
    assert!(served("kind = \"none\"\npreset = \"published\"\n").proxies.is_empty());
    let split = served("kind = \"split\"\npreset = \"published\"\nbuffer_bytes = 5000\n");
    let ProxyKind::Split(config) = &split.proxies[0].kind else { panic!("{split:?}") };
    let hopline_sim::spec::Transport::Tcp(tcp) = config.mobile else { panic!("{config:?}") };
    assert_eq!(tcp.send_buffer(), Some(5000));
    assert_eq!(split.proxies[0].mobile, MobileSide::Nodes([NodeId(2)].into()));
}

#[test]
fn behind_a_split_over_tpa_the_mobile_host_uses_tpa() {
    let ends = |transport: &str| {
        served(&format!("kind = \"split\"\ntransport = \"{transport}\"\n")).flows.remove(0).end_transports
    };
    let [source, sink] = ends("tpa");
    assert!(source.is_none() && matches!(sink, Some(hopline_sim::spec::Transport::Tpa(_))));
    assert_eq!(ends("tcp-cubic"), [None, None]);
}

#[test]
fn the_wait_of_a_supervisor_host_is_configurable() {
    let of = |rest: &str| match served(&format!("kind = \"mtcp\"\n{rest}")).proxies.remove(0).kind {
        ProxyKind::Mtcp(config) => config,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(""), mtcp::Config::default());
    let of = of("silence_ms = 300\nprobe_ms = 1000\nconnections = 9\n");
    assert_eq!((of.silence_timeout, of.probe_interval), (Duration::from_millis(300), Duration::from_secs(1)));
    assert_eq!(of.limits.max_connections, 9);
}

#[test]
fn the_requests_of_a_station_are_configurable() {
    let of = |rest: &str| match served(&format!("kind = \"nack\"\n{rest}")).proxies.remove(0).kind {
        ProxyKind::Nack(config) => config,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(""), nack::Config::default());
    let of = of("local_limit = 3\nmin_timer_ms = 9\nidle_s = 5\n");
    assert_eq!((of.max_requests, of.min_timer), (3, Duration::from_millis(9)));
    assert_eq!(of.limits.idle_timeout, Duration::from_secs(5));
}

#[test]
fn the_delay_and_number_of_held_acks_are_configurable() {
    let of = |rest: &str| match served(&format!("kind = \"ack-pacing\"\n{rest}")).proxies.remove(0).kind {
        ProxyKind::AckPacing(config) => config,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(""), ack_pacing::Config::default());
    let of = of(
        "max_hold_ms = 5\nburst_gap_ms = 1\nheld_packets = 7\nhigh_water_packets = 9\nidle_s = 3\nconnections = 2\n",
    );
    assert_eq!((of.max_delay, of.burst_gap), (Duration::from_millis(5), Duration::from_millis(1)));
    assert_eq!((of.max_delayed_acks.get(), of.max_total_delayed_acks), (7, 9));
    assert_eq!((of.limits.idle_timeout, of.limits.max_connections), (Duration::from_secs(3), 2));
}

#[test]
fn link_retransmission_is_enabled_by_its_key() {
    let of = |rest: &str| served(&format!("kind = \"none\"\n[link.arq]\n{rest}")).links.remove(1).arq;
    // `[link.arq]` belongs to the last link.
    assert_eq!(of(""), None);
    assert_eq!(of("kind = \"none\"\nattempts = 3\n"), None, "keys of other kinds are no error");
    assert_eq!(of("kind = \"selective\"\n"), Some(arq::Config::default()));
    let of = of("kind = \"selective\"\nattempts = 3\norder = \"any\"\nparity_every = 8\nmin_timer_ms = 2\n");
    let of = of.expect("it repairs them");
    assert_eq!((of.max_transmissions.get(), of.order), (3, arq::DeliveryMode::Any));
    assert_eq!((of.parity_interval.map(NonZeroU8::get), of.min_timer), (Some(8), Duration::from_millis(2)));
}

/// The only pair of this scenario.
fn pair(rest: &str) -> PairSpec {
    let mut spec = served(rest);
    assert!(spec.proxies.is_empty());
    assert_eq!(spec.pairs.len(), 1);
    spec.pairs.remove(0)
}

#[test]
fn d_proxy_is_at_both_ends_of_a_link_and_each_mechanism_is_configurable() {
    let of = |rest: &str| match pair(&format!("kind = \"d-proxy\"\npeer = \"m\"\n{rest}")).kind {
        PairKind::DProxy(config) => config,
        other @ PairKind::Opaque(_) => panic!("{other:?}"),
    };
    let default = of("");
    assert_eq!((default.recovery, default.max_waiting_per_flow), (dproxy::RecoveryConfig::default(), 256));
    assert_eq!((default.tail_probe_delay, default.overflow), (None, dproxy::QueueDropHandling::LeftToSender));
    assert_eq!(
        (default.queue_position, of("turn = \"first\"").queue_position),
        (snoop::QueuePosition::Back, snoop::QueuePosition::Front)
    );
    let told = of(
        "order_rule = \"off\"\ntimeouts = \"cumulative\"\nexpansion = \"off\"\norder = \"any\"\nlocal_limit = 7\nhigh_water_packets = 9\nheld_packets = 5\nreordering_threshold_packets = 2\nreordering_timeout_ms = 30\nmin_timer_ms = 1\ntail_probe_ms = 8\noverflow = \"kept\"\nconnections = 3\n",
    );
    let recovery = dproxy::RecoveryConfig {
        max_timer_requests: NonZeroU8::new(7).expect("not zero"),
        timeout_rule: dproxy::TimeoutRule::Cumulative,
        order_rule: dproxy::OrderRule::Off,
        min_average: Duration::from_millis(1),
        max_wait: Duration::from_millis(30),
        reordering_threshold: 2,
        ..dproxy::RecoveryConfig::default()
    };
    assert_eq!((told.recovery, told.request_expansion), (recovery, dproxy::RequestExpansion::Off));
    assert_eq!((told.hole_delivery, told.max_waiting_per_flow), (dproxy::HoleDelivery::OutOfOrder, 5));
    assert_eq!((told.cache.packets_per_flow, told.limits.max_connections), (9, 3));
    assert_eq!(
        (told.tail_probe_delay, told.overflow),
        (Some(Duration::from_millis(8)), dproxy::QueueDropHandling::Replayed)
    );
}

#[test]
fn an_opaque_pair_keeps_order_by_default() {
    let of = |rest: &str| match pair(&format!("kind = \"opaque\"\npeer = \"m\"\n{rest}")).kind {
        PairKind::Opaque(config) => config,
        other @ PairKind::DProxy(_) => panic!("{other:?}"),
    };
    let tail_probe = Some(Duration::from_millis(48));
    assert_eq!(
        of(""),
        opaque::Config { tail_probe_delay: tail_probe, ..opaque::Config::default() },
        "at 2 Mb/s"
    );
    let told = of("order = \"any\"\nparity = \"adaptive\"\nhigh_water_packets = 50\ntail_probe_ms = 2\n");
    assert_eq!((told.order, told.max_cached_packets), (opaque::DeliveryMode::Any, 50));
    assert!(matches!(told.parity, opaque::Parity::Adaptive { .. }));
    assert_eq!(told.tail_probe_delay, Some(Duration::from_millis(2)));
}

#[test]
fn kind_none_needs_no_node() {
    let spec = served("kind = \"none\"\npeer = \"m\"\n");
    assert!(spec.proxies.is_empty() && spec.pairs.is_empty());
}

#[test]
fn errors_are_named() {
    let wrong = |rest: &str| first_problem(&last_hop(rest));
    for (rest, message) in [
        ("kind = \"snoop\"\n", "a proxy at `bs`, which has no radio"),
        ("kind = \"snoop\"\nmobile = [\"x\"]\n", "there is no node `x`"),
        ("kind = \"snoop\"\nmobile = [\"bs\"]\n", "`bs` is its own mobile host"),
        ("kind = \"snoop\"\nmobile = [\"m\"]\npersist_ms = 9\n", "`persist_ms` with preset = \"modern\""),
        ("kind = \"ack-pacing\"\nmobile = [\"m\"]\nmax_hold_ms = 0\n", "`proxy.0.max_hold_ms`"),
        ("kind = \"snop\"\n", "`proxy.0.kind` does not know \"snop\""),
        ("kind = \"none\"\nmobile = [\"m\"]\n[link.arq]\nattempts = 0\n", "`link.1.arq.attempts`"),
        ("kind = \"none\"\nmobile = [\"m\"]\n[link.arq]\norder = \"some\"\n", "does not know \"some\""),
        ("mobile = [\"m\"]\n", "`proxy.0` has no `kind`"),
        ("kind = \"d-proxy\"\n", "a pair of machines, and only one end of its link"),
        ("kind = \"opaque\"\npeer = \"x\"\n", "there is no node `x`"),
        ("kind = \"opaque\"\npeer = \"bs\"\n", "no link leads from `bs` to `bs`"),
    ] {
        assert!(wrong(rest).contains(message), "{rest}: {}", wrong(rest));
    }
}
