//! TPA-wide over links that it shares, and over a mesh.

use crate::support::{SpecBuilder, chain, exchange, link, wired};
use hopline_core::Duration;
use hopline_queue::CoDelConfig;
use hopline_radio::phy::errors::{ErrorModel, GilbertPackets, Probability};
use hopline_sim::spec::links::Policer;
use hopline_sim::spec::{Discipline, LinkSpec};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::any::Transport;
use hopline_transport::wide::Config;
use hopline_transport::{tcp, tpa};

const WIDE: Transport = Transport::Wide(Config::DEFAULT);

/// 20 Mb/s, 25 ms one way, a round trip's packets in the queue.
fn path() -> LinkSpec {
    path_with_queue(83)
}

/// The same with so many packets in the queue.
fn path_with_queue(packets: u16) -> LinkSpec {
    link(0, 1, 20_000_000, Duration::from_millis(25), packets)
}

fn goodput_bps(outcome: &Outcome, flow: usize) -> f64 {
    outcome.flows[flow].goodput_bps()
}

/// Packets sent for each that a transfer needed.
fn packets_sent_per_delivered(outcome: &Outcome) -> f64 {
    let sent: u64 = outcome.flows.iter().map(|flow| flow.segments_sent).sum();
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes_received).sum();
    sent as f64 / (bytes as f64 / f64::from(Config::DEFAULT.mss()))
}

/// Sixteen that begin so many seconds after each other: packets sent for one delivered, Jain's index of the
/// second half, and all that arrived of it.
fn sixteen_flows(queue: u16, apart: f64) -> [f64; 3] {
    let link = wired(2).link(path_with_queue(queue));
    let spec = (0..16).fold(link, |spec, n| spec.bulk(0, 1, WIDE).from(apart * f64::from(n)));
    let outcome = simulate(&spec.warmup(30.0).seconds(60), 1);
    let all = (0..16).map(|flow| goodput_bps(&outcome, flow)).sum();
    [packets_sent_per_delivered(&outcome), jain(&outcome), all]
}

/// Jain's index of all flows.
fn jain(outcome: &Outcome) -> f64 {
    let rates = (0..outcome.flows.len()).map(|flow| goodput_bps(outcome, flow));
    let [sum, squares] = rates.fold([0.0, 0.0], |[sum, squares], rate| [sum + rate, squares + rate * rate]);
    sum * sum / (outcome.flows.len() as f64 * squares)
}

#[test]
fn sixteen_flows_share_the_link_without_heavy_loss_at_every_queue_size() {
    for queue in [33, 83] {
        for apart in [0.1, 0.23, 0.3] {
            let [sent, jain, all] = sixteen_flows(queue, apart);
            assert!(all > 18e6, "{queue}, {apart} s: {all:.3e} bit/s of 19.2");
            assert!(sent < 1.2, "{queue}, {apart} s: {sent:.2} packets sent for one delivered");
            assert!(jain > 0.8, "{queue}, {apart} s: Jain {jain:.3}");
        }
    }
}

/// After half a minute the least delay is measured anew, in a queue that is never empty.
#[test]
fn thirty_two_flows_with_three_packets_of_the_path_each_do_not_flood_it() {
    let link = wired(2).link(link(0, 1, 10_000_000, Duration::from_millis(25), 42));
    let spec = (0..32).fold(link, |spec, n| spec.bulk(0, 1, WIDE).from(0.25 * f64::from(n)));
    let outcome = simulate(&spec.warmup(45.0).seconds(90), 1);
    let (sent, jain) = (packets_sent_per_delivered(&outcome), jain(&outcome));
    assert!(sent < 1.2, "{sent:.2} packets sent for one delivered");
    assert!(jain > 0.5, "Jain {jain:.3}");
}

#[test]
fn a_single_flow_detects_no_competing_traffic() {
    let slow = [(300, 25), (500, 5), (600, 5), (700, 5), (800, 25)];
    let fast = [(2, 1), (2, 5), (2, 50), (20, 1), (20, 5), (20, 100), (200, 1), (200, 20)];
    for (kbps, delay_ms) in slow.into_iter().chain(fast.map(|(mbps, ms)| (mbps * 1000, ms))) {
        let rate_bps = kbps * 1000;
        let alone =
            wired(2).link(link(0, 1, rate_bps, Duration::from_millis(delay_ms), 400)).bulk(0, 1, WIDE);
        let outcome = simulate(&alone.warmup(10.0).seconds(40), 1);
        let packet_s = 12_000.0 / rate_bps as f64;
        let delay_s = outcome.flows[0].data.delays.mean_s().expect("packets arrived");
        let queue_s = delay_s - delay_ms as f64 * 1e-3 - packet_s;
        // What a link carries too little shows a round trip later.
        let bound_s = 0.002 + 3.0 * packet_s + 0.06 * delay_ms as f64 * 1e-3;
        assert!(queue_s < bound_s, "{rate_bps} bit/s, {delay_ms} ms: {queue_s} s of queue");
        assert!(goodput_bps(&outcome, 0) > 0.9 * rate_bps as f64, "{rate_bps} bit/s, {delay_ms} ms");
    }
}

/// A flight is hardly longer than a burst there, so silence is often all that tells of one.
#[test]
fn loss_bursts_on_a_slow_link_do_not_stall_the_flow() {
    // 5 % are lost, four at a time in the mean.
    let [good_to_bad, bad_to_good, loss_good, loss_bad] =
        [0.01316, 0.25, 0.0, 1.0].map(|p| Probability::new(p).expect("a probability"));
    let bursts = GilbertPackets { good_to_bad, bad_to_good, loss_good, loss_bad };
    let mut bursty = link(0, 1, 2_000_000, Duration::from_millis(5), 50);
    bursty.errors[0] = ErrorModel::GilbertPackets(bursts);
    let spec = wired(2).link(bursty).bulk(0, 1, WIDE).seconds(30);
    let goodputs: Vec<f64> = (1..=16).map(|run| goodput_bps(&simulate(&spec, run), 0)).collect();
    let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
    assert!(mean > 1.2e6, "{mean:.3e} bit/s: {goodputs:.3?}");
}

#[test]
fn beside_cubic_in_a_drop_tail_queue_both_flows_get_their_share() {
    for queue in [33, 83] {
        let spec =
            wired(2).link(path_with_queue(queue)).bulk(0, 1, tcp::Config::linux()).bulk(0, 1, WIDE).from(1.5);
        let outcome = simulate(&spec.seconds(120), 1);
        let [cubic, wide] = [0, 1].map(|flow| goodput_bps(&outcome, flow));
        assert!(cubic > 0.7 * 9.6e6 && wide > 0.5 * 9.6e6, "{queue}: {cubic:.3e} and {wide:.3e} bit/s");
    }
}

/// The queue of CUBIC shortens by itself, and a flow of a few packets does not see why.
#[test]
fn beside_cubic_over_a_long_round_trip_neither_starves() {
    let path = link(0, 1, 10_000_000, Duration::from_millis(150), 250);
    let spec = wired(2).link(path).bulk(0, 1, tcp::Config::linux()).bulk(0, 1, WIDE).from(3.0);
    let outcome = simulate(&spec.warmup(40.0).seconds(100), 9);
    let [cubic, wide] = [0, 1].map(|flow| goodput_bps(&outcome, flow));
    assert!(cubic > 0.5 * 4.8e6 && wide > 0.5 * 4.8e6, "{cubic:.3e} and {wide:.3e} bit/s");
}

#[test]
fn a_response_over_a_satellite_comes_no_later_than_with_cubic() {
    let path = link(0, 1, 50_000_000, Duration::from_millis(300), 2500);
    let [wide, cubic] = [WIDE, tcp::Config::linux().into()].map(|over: Transport| {
        let spec = wired(2).link(path.clone()).exchange(0, 1, over, exchange(200.0, 300_000.0, 0.0, 1));
        simulate(&spec.seconds(20), 5).flows[0].responses.max().expect("it came")
    });
    assert!(wide < cubic, "{wide} in place of {cubic}");
}

#[test]
fn four_staggered_flows_become_fair() {
    let spec = (0..4).fold(wired(2).link(path()), |spec, n| spec.bulk(0, 1, WIDE).from(f64::from(n)));
    let jain = jain(&simulate(&spec.warmup(20.0).seconds(60), 1));
    assert!(jain > 0.97, "Jain {jain:.3}");
}

/// A mean, since one run depends on when the flow starts.
#[test]
fn cubic_beside_it_keeps_most_of_its_share_behind_codel() {
    let mut shared = path();
    shared.queue.discipline = Discipline::CoDel(CoDelConfig::RFC8289);
    let goodputs = [0.0, 0.1, 0.3, 1.0].map(|start| {
        let spec =
            wired(2).link(shared.clone()).bulk(0, 1, tcp::Config::linux()).bulk(0, 1, WIDE).from(start);
        let outcome = simulate(&spec.seconds(60), 1);
        [0, 1].map(|flow| goodput_bps(&outcome, flow))
    });
    let [cubic, wide] = [0, 1].map(|flow| goodputs.iter().map(|of| of[flow]).sum::<f64>() / 4.0);
    assert!(cubic > 0.8 * 9.6e6 && wide > 0.6 * 9.6e6, "{goodputs:.3?} bit/s");
}

/// Its losses begin late and grow slowly, so that the baseline follows them until it is tested.
#[test]
fn a_policer_with_a_deep_bucket_drops_little() {
    let policer = Policer { rate_bps: 10_000_000, burst_bytes: 300_000 };
    let mut policed = path();
    policed.impairments.policer = [Some(policer), None];
    let sent = packets_sent_per_delivered(&simulate(&wired(2).link(policed).bulk(0, 1, WIDE).seconds(20), 1));
    assert!(sent < 1.15, "{sent:.2} packets sent for one delivered");
}

/// After half a minute the base delay is measured anew, and no loss is observed in a short queue any longer.
#[test]
fn a_policer_drops_little_for_as_long_as_the_flow_lasts() {
    let mut policed = path_with_queue(100);
    policed.impairments.policer = [Some(Policer { rate_bps: 5_000_000, burst_bytes: 30_000 }), None];
    let outcome = simulate(&wired(2).link(policed).bulk(0, 1, WIDE).seconds(60), 1);
    let sent = packets_sent_per_delivered(&outcome);
    assert!(sent < 1.15, "{sent:.2} packets sent for one delivered");
}

#[test]
fn a_policer_drops_little_and_radio_losses_are_tolerated() {
    let policer = Policer { rate_bps: 10_000_000, burst_bytes: 30_000 };
    let mut policed = path();
    policed.impairments.policer = [Some(policer), None];
    let outcome = simulate(&wired(2).link(policed).bulk(0, 1, WIDE).seconds(20), 1);
    assert!(
        packets_sent_per_delivered(&outcome) < 1.1,
        "{:.2} packets sent for one delivered",
        packets_sent_per_delivered(&outcome)
    );
    assert!(goodput_bps(&outcome, 0) > 8.8e6, "{:.3e} bit/s", goodput_bps(&outcome, 0));

    let mut lossy = path();
    lossy.errors[0] = ErrorModel::PacketLoss(Probability::new(0.1).expect("a probability"));
    let outcome = simulate(&wired(2).link(lossy).bulk(0, 1, WIDE).seconds(20), 1);
    assert!(
        packets_sent_per_delivered(&outcome) < 1.14,
        "{:.2} packets sent for one delivered",
        packets_sent_per_delivered(&outcome)
    );
    assert!(goodput_bps(&outcome, 0) > 15.5e6, "{:.3e} bit/s", goodput_bps(&outcome, 0));
}

/// An acknowledgment covers four packets, and ten are in flight.
#[test]
fn lost_acknowledgments_do_not_stop_a_flow_over_a_short_path() {
    let mut path = link(0, 1, 20_000_000, Duration::from_millis(1), 73);
    path.errors[1] = ErrorModel::PacketLoss(Probability::new(0.3).expect("a probability"));
    let flow = simulate(&wired(2).link(path).bulk(0, 1, WIDE).warmup(2.0).seconds(12), 1).flows.remove(0);
    assert!(flow.goodput_bps() > 12e6, "{:.3e} bit/s of 19", flow.goodput_bps());
}

#[test]
fn thirty_percent_radio_loss_does_not_end_startup() {
    let mut lossy = path();
    lossy.errors[0] = ErrorModel::PacketLoss(Probability::new(0.3).expect("a probability"));
    let spec = wired(2).link(lossy).bulk(0, 1, WIDE).seconds(12);
    // The opening alone takes 1.5 s in one of them, and 13.4 Mb/s are left by the losses.
    let least = (1..=8).map(|run| goodput_bps(&simulate(&spec, run), 0)).fold(f64::MAX, f64::min);
    assert!(least > 9.5e6, "{least:.3e} bit/s in the poorest of eight runs");
}

#[test]
fn jitter_is_not_taken_for_a_queue() {
    for (rate_bps, delay_ms, jitter_ms) in [(2_000_000, 5, 10), (20_000_000, 5, 10), (20_000_000, 25, 10)] {
        let mut shaky = link(0, 1, rate_bps, Duration::from_millis(delay_ms), 100);
        shaky.impairments.jitter = [Duration::from_millis(jitter_ms), Duration::ZERO];
        let spec = wired(2).link(shaky).bulk(0, 1, WIDE).seconds(12);
        let least = (1..=8).map(|run| goodput_bps(&simulate(&spec, run), 0)).fold(f64::MAX, f64::min);
        assert!(
            least > 0.8 * rate_bps as f64,
            "{least:.3e} bit/s of {rate_bps} in the poorest of eight runs"
        );
    }
}

#[test]
fn a_flow_at_the_least_rate_tolerates_radio_losses() {
    let mut slow = link(0, 1, 2_000_000, Duration::from_millis(5), 50);
    slow.errors[0] = ErrorModel::PacketLoss(Probability::new(0.2).expect("a probability"));
    let spec = wired(2).link(slow).bulk(0, 1, WIDE).seconds(30);
    let goodputs: Vec<f64> = (1..=10).map(|run| goodput_bps(&simulate(&spec, run), 0)).collect();
    let mean = goodputs.iter().sum::<f64>() / 10.0;
    assert!(mean > 1.42e6, "{mean:.3e} bit/s of 1.54: {goodputs:.3?}");
    let least = goodputs.iter().fold(f64::MAX, |a, &b| a.min(b));
    assert!(least > 1.3e6, "{goodputs:.3?}");
}

/// Over four hops of a mesh.
fn mesh(config: Config) -> Spec {
    chain(4).bulk(0, 4, Transport::Wide(config)).seconds(60)
}

#[test]
fn sparse_acks_pay_off_on_a_mesh_with_little_loss() {
    let mut soon = Config::DEFAULT;
    soon = soon.with_ack(soon.ack().with_relaxed_delay(soon.ack().delay()));
    let [late, soon] = [Config::DEFAULT, soon].map(|config| simulate(&mesh(config), 1));
    let [with, without] = [&late, &soon].map(|outcome| goodput_bps(outcome, 0));
    assert!(with > 1.1 * without, "{with:.3e} and {without:.3e} bit/s");
}

/// No two packets take the same time there, so how long they take without waiting is not looked for every five seconds.
#[test]
fn a_short_chain_carries_as_much_as_with_an_optimal_window() {
    for hops in [1, 2, 3] {
        let [wide, star] = [WIDE, tpa::Config::tpa_star(3).into()].map(|transport| {
            let line = chain(hops).bulk(0, hops, transport).seconds(60);
            (1..=3).map(|run| goodput_bps(&simulate(&line, run), 0)).sum::<f64>()
        });
        assert!(wide > 0.975 * star, "{hops} hops: {wide:.4e} and {star:.4e} bit/s");
    }
}

#[test]
fn runs_are_deterministic() {
    let [once, again] = [1, 1].map(|run| simulate(&mesh(Config::DEFAULT), run).fingerprint);
    assert_eq!(once, again);
}
