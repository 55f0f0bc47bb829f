//! Two stations that begin to send to a third at the same instant, and hear each other.

use super::*;
use hopline_sim::simulate;

const STATIONS: &str = r#"
duration_s = 3
nodes = { layout = "chain", count = 3, spacing_m = 50 }
radio = { preset = "dot11b" }
flow = [{ src = "n0", dst = "n1" }, { src = "n2", dst = "n1" }]
"#;

/// Ways in which both find their routes or the address of the third node, with the key of the jitter of their requests.
const DISCOVERIES: [(&str, &str); 3] = [
    ("routing.protocol=aodv", "routing.aodv.originated_jitter_s"),
    ("routing.protocol=dsr", "routing.dsr.originated_jitter_s"),
    ("radio.address_resolution=arp", "radio.arp_jitter_s"),
];

/// Returns the total goodput of both flows, in Mb/s, and the segments that the slower one delivers.
fn delivered(settings: &[&str]) -> (f64, u64) {
    let flows = simulate(&spec(STATIONS, settings), 1).flows;
    let together = flows.iter().map(|flow| flow.goodput_bps()).sum::<f64>() / 1e6;
    (together, flows.iter().map(|flow| flow.segments_received).min().unwrap())
}

#[test]
fn both_flows_get_a_route_and_share_the_medium() {
    for (ask, _) in DISCOVERIES {
        let (together, least) = delivered(&[ask]);
        // The goodput is that of flows that start a microsecond apart.
        let apart = delivered(&[ask, "flow.1.start_s=0.000001"]).0;
        assert!(together > 4.0 && (together / apart - 1.0).abs() < 0.1, "{ask}: {together}, {apart}");
        assert!(least > 100, "{ask}: {least}");
    }
}

#[test]
fn without_jitter_simultaneous_requests_collide_forever() {
    for (ask, jitter) in DISCOVERIES {
        let none = format!("{jitter}=0");
        assert_eq!(delivered(&[ask, &none, "duration_s=30"]), (0.0, 0), "{ask}");
    }
}

#[test]
fn the_result_holds_for_each_preset_and_any_common_start() {
    for preset in
        ["dot11a", "ns3-wavelan", "dot11b-ranges", "dot11a-ranges", "madwifi", "qualnet-367", "ns2-wavelan"]
    {
        let preset = format!("radio.preset={preset}");
        for (ask, _) in DISCOVERIES {
            let (_, least) = delivered(&[&preset, ask]);
            assert!(least > 10, "{preset} {ask}: {least}");
        }
    }
    let late = ["flow.0.start_s=1", "flow.1.start_s=1"];
    for (ask, _) in DISCOVERIES {
        let settings = [&late[..], &[ask, "flow.0.kind=cbr", "flow.1.kind=cbr"]].concat();
        let settings = [&settings[..], &["flow.0.rate_kbps=80", "flow.1.rate_kbps=80"]].concat();
        assert!(delivered(&settings).1 > 10, "{ask}");
    }
}

/// Presets of ns-2, which leave it to their MAC to separate what nodes send.
const NS2_PRESETS: [[&str; 2]; 3] = [
    ["routing.protocol=aodv", "routing.aodv.preset=ns2-2.35"],
    ["routing.protocol=dsr", "routing.dsr.preset=ns2-2.35"],
    ["radio.address_resolution=arp", "radio.preset=ns2-wavelan"],
];

#[test]
fn presets_of_ns2_find_routes_over_a_mac_without_initial_backoff() {
    for ask in NS2_PRESETS {
        for access in ["immediate", "idle-on-arrival", "always-backoff"] {
            let access = format!("mac.first_access={access}");
            let (_, least) = delivered(&[&ask[..], &[&access]].concat());
            assert!(least > 10, "{ask:?} {access}: {least}");
        }
    }
}

#[test]
fn jitter_follows_the_presets_and_keys() {
    let arp = |settings: &[&str]| {
        spec(STATIONS, &[&["radio.address_resolution=arp"], settings].concat()).radio.unwrap().arp_jitter
    };
    assert_eq!(arp(&[]), Duration::from_millis(10));
    assert_eq!(arp(&["radio.preset=ns2-wavelan"]), Duration::ZERO);
    let at_once = ["radio.preset=ns2-wavelan", "mac.first_access=immediate"];
    assert_eq!(arp(&at_once), Duration::from_millis(10));
    assert_eq!(arp(&["radio.preset=ns2-wavelan", "radio.arp_jitter_s=0.002"]), Duration::from_millis(2));
    let aodv =
        |settings: &[&str]| match spec(STATIONS, &[&["routing.protocol=aodv"], settings].concat()).routing {
            RoutingSpec::Aodv(config) => config.originated_jitter,
            other => panic!("{other:?}"),
        };
    assert_eq!(aodv(&[]), Duration::from_millis(10));
    let of_ns2 = ["routing.aodv.preset=ns2-2.35", "radio.preset=ns2-wavelan"];
    assert_eq!(aodv(&of_ns2), Duration::ZERO);
    assert_eq!(aodv(&of_ns2[..1]), Duration::from_millis(10));
    assert_eq!(aodv(&["routing.aodv.originated_jitter_s=0.02"]), Duration::from_millis(20));
}
