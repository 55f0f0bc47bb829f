//! Presets in which each rate has its own range.

use super::*;
use hopline_radio::phy;
use hopline_radio::phy::sensitivity::Sensitivity;

/// Two nodes so far from each other, and ten packets a second for five seconds.
fn pair(distance_m: f64, settings: &[&str]) -> Spec {
    let text = format!(
        "duration_s = 5\n[nodes]\nlayout = \"chain\"\ncount = 2\nspacing_m = {distance_m}\n[radio]\n\
         [[flow]]\nsrc = \"n0\"\ndst = \"n1\"\nkind = \"cbr\"\nrate_kbps = 8\npacket_bytes = 100\n"
    );
    spec(&text, settings)
}

/// Returns whether the packets arrive.
fn reaches(distance_m: f64, preset: &str, mbps: &str, more: &[&str]) -> bool {
    let settings =
        [&[preset, mbps].map(str::to_owned)[..], &more.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()]
            .concat();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let outcome = hopline_sim::simulate(&pair(distance_m, &settings), 1);
    match outcome.flows[0].segments_received {
        0 => false,
        50 => true,
        some => panic!("{some} of 50 over {distance_m} m"),
    }
}

#[test]
fn a_faster_rate_has_a_shorter_range() {
    // 802.11b: 15 dBm, two rays: 1.5 m · 10^((15 dBm − sensitivity) / 40 dB). 802.11a: 16 dBm on 5180 MHz,
    // within the crossover of 488 m: 57.875 mm / 4π · 10^((16 dBm − sensitivity) / 20 dB).
    for (preset, mbps, reach_m) in [
        ("dot11b-ranges", "1", 670.0),
        ("dot11b-ranges", "2", 563.8),
        ("dot11b-ranges", "5.5", 474.3),
        ("dot11b-ranges", "11", 399.1),
        ("dot11a-ranges", "6", 365.8),
        ("dot11a-ranges", "18", 205.7),
        ("dot11a-ranges", "54", 51.67),
    ] {
        let [preset, mbps] = [format!("radio.preset={preset}"), format!("mac.data_rate_mbps={mbps}")];
        assert!(reaches(reach_m * 0.998, &preset, &mbps, &[]), "{preset} {mbps}");
        assert!(!reaches(reach_m * 1.002, &preset, &mbps, &[]), "{preset} {mbps}");
        let phy = pair(1.0, &[&preset, &mbps]).radio.unwrap().phy;
        let told_m = phy.propagation.range_for(&phy.radio, phy.radio.rx_threshold_w);
        assert!((told_m / reach_m - 1.0).abs() < 1e-3, "what maps and static routes take: {told_m}");
    }
}

#[test]
fn a_configured_range_is_that_of_data_and_scales_the_other_rates() {
    let settings = ["radio.preset=dot11b-ranges", "radio.range_m=250", "radio.carrier_sense_range_m=600"];
    let phy = pair(1.0, &settings).radio.unwrap().phy;
    let of_rate = |rate| phy.propagation.range_for(&phy.radio, phy.sensitivity.threshold_w(&phy.radio, rate));
    assert!((of_rate(Rate::Cck11) - 250.0).abs() < 1e-6);
    // 9 dB more, two rays: 10^(9/40).
    assert!((of_rate(Rate::Dsss1) - 250.0 * 1.678_804).abs() < 1e-3, "{}", of_rate(Rate::Dsss1));
    let preset = "radio.preset=dot11b-ranges";
    assert!(reaches(249.0, preset, "mac.data_rate_mbps=11", &settings[1..]));
    assert!(!reaches(251.0, preset, "mac.data_rate_mbps=11", &settings[1..]));
}

#[test]
fn circles_and_other_presets_have_one_range_for_all_rates() {
    let phy = |settings: &[&str]| pair(1.0, settings).radio.unwrap().phy;
    for preset in ["ns2-wavelan", "ns3-wavelan", "dot11b", "dot11a", "madwifi", "qualnet-367"] {
        assert_eq!(phy(&[&format!("radio.preset={preset}")]).sensitivity, Sensitivity::Alike);
    }
    assert_eq!(phy(&["radio.preset=dot11b"]), phy::Config::wavelan());
    let circles = ["radio.preset=dot11a-ranges", "radio.propagation=range-disk", "radio.range_m=300"];
    assert_eq!(phy(&circles).sensitivity, Sensitivity::Alike);
}

#[test]
fn static_routes_use_the_range_of_data() {
    let text = CHAIN.replace("spacing_m = 200", "spacing_m = 45");
    let far = ["radio.preset=dot11a-ranges", "duration_s=2"];
    let outcome = hopline_sim::simulate(&spec(&text, &far), 1);
    assert!(outcome.flows[0].bytes_received > 100_000 && outcome.nodes[1].frames.data > 100);
    let near = [&far[..], &["mac.data_rate_mbps=6"]].concat();
    let outcome = hopline_sim::simulate(&spec(&text, &near), 1);
    assert!(outcome.flows[0].bytes_received > 100_000 && outcome.nodes[1].frames.data == 0);
}
