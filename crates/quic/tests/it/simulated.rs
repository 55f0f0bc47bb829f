//! Flows over QUIC in simulated networks.

use crate::support::{OUTAGE, WIRED, scenario, spec};
use hopline_core::Duration;
use hopline_scenario::CustomAlgorithms;
use hopline_sim::{Outcome, Spec, simulate};

fn run(settings: &[&str]) -> Outcome {
    simulate(&spec(settings), 1)
}

fn goodput_mbps(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput_bps() * 1e-6
}

#[test]
fn a_bulk_flow_fills_the_link_with_every_controller() {
    for algorithm in ["cubic", "newreno", "bbr"] {
        let outcome = run(&[&format!("quic.congestion_control={algorithm}"), "warmup_s=1"]);
        let mbps = goodput_mbps(&outcome);
        assert!((8.5..=10.0).contains(&mbps), "{algorithm}: {mbps} Mb/s");
    }
}

#[test]
fn a_transfer_completes_over_a_lossy_link() {
    let outcome = run(&[
        "flow.0.bytes=500000",
        "link.0.errors.model=packet",
        "link.0.errors.packet_loss=0.05",
        "duration_s=30",
    ]);
    let flow = &outcome.flows[0];
    assert_eq!(flow.bytes_received, 500_000);
    assert!(flow.completion.is_some() && flow.retransmissions > 10, "{flow:?}");
}

/// Two seconds with losses.
fn lossy(algorithm: &str) -> Spec {
    let errors = ["link.0.errors.model=packet", "link.0.errors.packet_loss=0.01"];
    spec(&[&format!("quic.congestion_control={algorithm}"), errors[0], errors[1], "duration_s=2"])
}

#[test]
fn fingerprints_repeat_and_depend_on_seed_and_run() {
    for algorithm in ["cubic", "newreno", "bbr"] {
        let spec = lossy(algorithm);
        let fingerprint = |spec: &Spec, run| simulate(spec, run).fingerprint;
        let first = fingerprint(&spec, 1);
        // In another thread, where a controller of BBR draws other random numbers.
        let again = std::thread::scope(|scope| {
            scope.spawn(|| fingerprint(&spec, 1)).join().expect("it does not panic")
        });
        assert_eq!(first, again, "{algorithm}");
        assert_ne!(first, fingerprint(&spec, 2));
    }
}

/// The fingerprints of an earlier process, which had other clocks and another seed of the operating system.
#[test]
fn fingerprints_are_those_of_earlier_processes() {
    let fingerprints =
        ["cubic", "newreno", "bbr"].map(|algorithm| simulate(&lossy(algorithm), 1).fingerprint);
    assert_eq!(fingerprints.map(|fingerprint| format!("{fingerprint:016x}")), PINNED);
}

/// They hold for the versions of quinn-proto and rand in Cargo.lock.
const PINNED: [&str; 3] = ["b0efcc8924b43ac5", "e9cab7f26ac8e774", "988b5685ef0f43f7"];

#[test]
fn requests_are_answered() {
    let outcome = run(&[
        "flow.0.kind=request-response",
        "flow.0.request_bytes=200",
        "flow.0.response_bytes=20000",
        "flow.0.transactions=5",
    ]);
    let flow = &outcome.flows[0];
    assert_eq!((flow.bytes_received, flow.requests), (100_000, 5));
    assert!(flow.completion.is_some(), "{flow:?}");
    let outcome = run(&["flow.0.kind=http", "flow.0.think_s=0.2"]);
    assert!(outcome.flows[0].requests > 3, "{:?}", outcome.flows[0]);
}

#[test]
fn a_flow_that_stops_delivers_nothing_more() {
    let outcome = run(&["flow.0.stop_s=2"]);
    let flow = &outcome.flows[0];
    assert_eq!(flow.active_time, Duration::from_secs(2));
    assert!((1_500_000..2_500_000).contains(&flow.bytes_received), "{flow:?}");
    let later = run(&["flow.0.stop_s=2", "duration_s=10"]);
    assert_eq!(later.flows[0].data.sent, flow.data.sent, "nothing is sent after the abort");
}

#[test]
fn an_outage_is_survived() {
    let spec = scenario(OUTAGE, &[], CustomAlgorithms::default()).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let outcome = simulate(&spec, 1);
    let flow = &outcome.flows[0];
    let silence = flow.longest_silence.as_secs_f64();
    assert!((5.0..11.0).contains(&silence), "{silence} s without a delivery");
    assert!(flow.bytes_received > 3_000_000, "{} bytes", flow.bytes_received);
}

#[test]
fn marks_of_a_queue_replace_losses() {
    let codel = ["link.0.queue.discipline=codel", "link.0.queue.capacity_packets=1000"];
    let of = |action: &str| run(&[&codel[..], &[&format!("link.0.queue.action={action}")]].concat());
    let [mark, drop] = [of("mark"), of("drop")].map(|outcome| outcome.flows[0].clone());
    assert!(drop.retransmissions > 5, "{drop:?}");
    assert!(mark.retransmissions * 4 < drop.retransmissions, "{mark:?}");
}

#[test]
fn packets_have_the_size_of_the_key() {
    let outcome = run(&["quic.max_datagram_bytes=1200", "flow.0.bytes=1000000"]);
    let flow = &outcome.flows[0];
    // 20 bytes of IPv4, 8 of UDP; the last packets are smaller.
    let mean = flow.data.sent_bytes as f64 / flow.data.sent as f64;
    assert!((1180.0..=1228.0).contains(&mean), "{mean} bytes");
}

#[test]
fn a_chain_of_radios_carries_quic() {
    let text = WIRED.split("[[node]]").next().expect("a beginning").to_owned()
        + "[radio]\npreset = \"dot11b\"\n[nodes]\nlayout = \"chain\"\ncount = 4\nspacing_m = 100\n[routing]\nprotocol = \"aodv\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n3\"\n";
    let spec = scenario(&text, &[], CustomAlgorithms::default()).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let outcome = simulate(&spec, 1);
    assert!(outcome.flows[0].bytes_received > 200_000, "{:?}", outcome.flows[0]);
}
