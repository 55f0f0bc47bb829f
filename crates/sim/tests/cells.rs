//! Hosts that move between base stations: what gets to them, and how.

use crate::support::cells::{
    HOME, HOST, SERVER, STATIONS, between_stations, cbr_every, cells, cells_of, walking,
};
use crate::support::{SpecBuilder, link, walk};
use hopline_core::{Duration, NodeId};
use hopline_radio::mobility::{Position, Trajectory};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::spec::{
    AcceptedStations, Channel, MobileSide, NodeSpec, ProxyKind, ProxySpec, Scheme, StartState,
    fast_retransmit, mtcp, snoop, split,
};
use hopline_sim::trace::PcapTracer;
use hopline_sim::{Outcome, Spec, World, simulate};
use hopline_transport::tcp;
use proptest::prelude::*;

/// A second server.
const OTHER: NodeId = NodeId(6);
const TOTAL: u64 = 2_000_000;

/// Each packet is received, absorbed, in flight or lost, and the same seed gives the same again.
fn run(spec: &Spec) -> Outcome {
    let outcome = simulate(spec, 1);
    for packets in [&outcome.flows[0].data, &outcome.flows[0].reverse] {
        let kept = packets.sent + packets.middlebox_made - packets.received - packets.absorbed - packets.lost;
        // What a station keeps may be lost elsewhere, and is not lost until then.
        assert!(kept <= 24, "{kept}");
    }
    assert_eq!(simulate(spec, 1).fingerprint, outcome.fingerprint, "the same seed twice");
    outcome
}

/// 250 datagrams a second while the host walks.
fn stream(spec: Spec) -> Outcome {
    run(&spec.seconds(70).cbr(SERVER.0, HOST.0, 100, Duration::from_millis(4)).from(2.0).until(68.0))
}

#[test]
fn handoffs_between_three_stations_lose_no_packet() {
    for listens in [AcceptedStations::All, AcceptedStations::Current] {
        let outcome = stream(walking().change(|spec| cells_of(spec).mobiles[0].accepts = listens));
        let (data, handoffs) = (&outcome.flows[0].data, &outcome.nodes[HOST.index()].handoffs);
        assert_eq!((handoffs.completed.count(), handoffs.pauses.count()), (2, 2), "{listens:?}");
        assert_eq!(data.lost, 0, "{listens:?}");
        assert!(handoffs.completed.max() < Some(Duration::from_millis(15)), "{handoffs:?}");
        assert!(handoffs.pauses.max() < Some(Duration::from_millis(40)), "{handoffs:?}");
    }
}

#[test]
fn without_buffering_packets_in_flight_are_lost() {
    let registration = |spec: &mut Spec| {
        cells_of(spec).scheme = Scheme::Registration;
        cells_of(spec).mobiles[0].accepts = AcceptedStations::Current;
    };
    let outcome = stream(walking().change(registration));
    assert_eq!(outcome.nodes[HOST.index()].handoffs.completed.count(), 2);
    assert!((1..20).contains(&outcome.flows[0].data.lost), "{:?}", outcome.flows[0].data);
    assert!(outcome.nodes[HOST.index()].drops.no_route >= outcome.flows[0].data.lost, "of another cell");
}

#[test]
fn cells_on_channels_of_their_own_lose_nothing_either() {
    let channels = |spec: &mut Spec| {
        for (station, channel) in STATIONS.into_iter().zip(1..) {
            spec.nodes[station.index()].radio_channels = vec![Channel(channel)];
        }
        spec.nodes[HOST.index()].radio_channels = (1..=3).map(Channel).collect();
    };
    let outcome = stream(walking().change(channels));
    assert_eq!(outcome.nodes[HOST.index()].handoffs.completed.count(), 2);
    assert_eq!(outcome.flows[0].data.lost, 0);
}

#[test]
fn equal_identifications_of_two_servers_cause_no_loss() {
    let spec = cbr_every(between_stations(), 300).change(|spec| {
        cells_of(spec).mobiles[0].accepts = AcceptedStations::Current;
        let other = NodeSpec::new("other", Trajectory::fixed(Position::new(300.0, 450.0)), []);
        spec.nodes.push(other);
        spec.links.push(link(OTHER.0, HOME.0, 10_000_000, Duration::from_millis(5), 100));
    });
    let mut spec = spec.seconds(22);
    for server in [SERVER, OTHER] {
        spec = spec.cbr(server.0, HOST.0, 200, Duration::from_millis(8)).from(2.0).until(20.0);
    }
    let outcome = run(&spec);
    assert!(outcome.nodes[HOST.index()].handoffs.completed.count() > 50);
    let lost: Vec<_> = outcome.flows.iter().map(|flow| flow.data.lost).collect();
    assert_eq!(lost, [0, 0]);
}

#[test]
fn the_home_agent_may_be_a_station() {
    let outcome = stream(walking().change(|spec| {
        cells_of(spec).home_agent = STATIONS[0];
        spec.links[0] = link(SERVER.0, STATIONS[0].0, 10_000_000, Duration::from_millis(5), 100);
    }));
    assert_eq!(outcome.flows[0].data.lost, 0);
    assert_eq!(outcome.nodes[HOST.index()].handoffs.completed.count(), 2);
}

#[test]
fn a_transfer_gets_through_five_handoffs_a_second() {
    for (scheme, cold) in [
        (Scheme::Multicast, StartState::Cold),
        (Scheme::Multicast, StartState::Warm),
        (Scheme::Registration, StartState::Cold),
    ] {
        let spec = cbr_every(between_stations(), 200)
            .change(|spec| (cells_of(spec).scheme, cells_of(spec).cold) = (scheme, cold));
        let outcome = run(&spec.seconds(60).transfer(SERVER.0, HOST.0, linux(), TOTAL));
        assert_eq!(outcome.flows[0].bytes_received, TOTAL, "{scheme:?}");
        let handoffs = &outcome.nodes[HOST.index()].handoffs;
        assert!(handoffs.completed.count() > 250, "{handoffs:?}");
    }
}

/// Returns a strategy for the middlebox at a node.
fn machines() -> impl Strategy<Value = Option<ProxyKind>> {
    let unknown = split::UnknownConnections::Hold(Duration::from_secs(600));
    let split = split::Config { unknown, ..split::Config::new(linux().into(), linux().into(), 100_000) };
    prop_oneof![
        Just(None),
        Just(Some(ProxyKind::Snoop(snoop::Config::published()))),
        Just(Some(ProxyKind::Snoop(snoop::Config::modern()))),
        Just(Some(ProxyKind::Mtcp(mtcp::Config::default()))),
        Just(Some(ProxyKind::Split(Box::new(split)))),
    ]
}

/// A machine that no host leaves.
fn without_handoff(mut kind: ProxyKind) -> ProxyKind {
    if let ProxyKind::Split(config) = &mut kind {
        config.unknown = split::UnknownConnections::Reset;
    }
    kind
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_despite_handoff_losses(
        every_ms in 150u64..1500,
        loss in 0.0f64..0.15,
        (registers, tuned, warm, repeats) in any::<(bool, bool, bool, bool)>(),
        buffer_packets in 0u16..20,
        at_home in machines(),
        at_stations in machines(),
        sender in prop_oneof![Just(linux()), Just(tcp::Config::bsd()), Just(tcp::Config::modern())],
        run in 0u64..1_000_000,
    ) {
        // Connections are at no station for a tenth of a second each time: with four handoffs a second they hardly get on.
        let splits = matches!(at_stations, Some(ProxyKind::Split(_)));
        let every_ms = if splits { every_ms.max(500) } else { every_ms };
        let spec = cbr_every(between_stations(), every_ms).change(|spec| {
            let radio = spec.radio.as_mut().expect("there are radios");
            radio.errors = ErrorModel::PacketLoss(Probability::new(loss).expect("a probability"));
            let cells = cells_of(spec);
            cells.scheme = if registers { Scheme::Registration } else { Scheme::Multicast };
            cells.cold = if warm { StartState::Warm } else { StartState::Cold };
            cells.buffer_packets = buffer_packets;
            cells.mobiles[0].accepts = if tuned { AcceptedStations::Current } else { AcceptedStations::All };
            cells.mobiles[0].fast_retransmit = repeats.then(fast_retransmit::Config::default);
            let at = |node: NodeId, mobile: &MobileSide, kind: &Option<ProxyKind>| {
                kind.clone().map(|kind| ProxySpec { node, mobile: mobile.clone(), kind })
            };
            let at_home = at_home.map(without_handoff);
            spec.proxies = at(HOME, &MobileSide::Nodes([HOST].into()), &at_home).into_iter().collect();
            spec.proxies.extend(STATIONS.iter().filter_map(|node| at(*node, &MobileSide::Radios, &at_stations)));
        });
        let spec = spec.seconds(600).transfer(SERVER.0, HOST.0, sender, 300_000);
        prop_assert_eq!(simulate(&spec, run).flows[0].bytes_received, 300_000);
    }
}

#[test]
fn fast_retransmission_after_a_handoff_avoids_timeouts() {
    let with = |repeats: Option<fast_retransmit::Config>| {
        let spec = cbr_every(between_stations(), 2_000).change(|spec| {
            cells_of(spec).scheme = Scheme::Registration;
            cells_of(spec).mobiles[0].accepts = AcceptedStations::Current;
            cells_of(spec).mobiles[0].fast_retransmit = repeats;
        });
        let outcome = run(&spec.seconds(600).transfer(SERVER.0, HOST.0, tcp::Config::bsd(), TOTAL));
        let repeated = outcome.nodes[HOST.index()].proxies.acks_made;
        (outcome.flows[0].timeouts, outcome.flows[0].completion.expect("all arrives"), repeated)
    };
    let (waits, late, none) = with(None);
    let (fewer, sooner, repeated) = with(Some(fast_retransmit::Config::default()));
    assert!(none == 0 && repeated > 0 && repeated % 3 == 0, "{repeated}");
    assert!(fewer < waits && sooner < late, "{waits} time-outs and {late:?}; {fewer} and {sooner:?}");
}

#[test]
fn proxies_at_the_stations_serve_a_host_that_comes_and_goes() {
    let snoop = |config| ProxyKind::Snoop(config);
    for (kind, cold) in [
        (snoop(snoop::Config::published()), StartState::Cold),
        (snoop(snoop::Config::modern()), StartState::Cold),
        (snoop(snoop::Config::modern()), StartState::Warm),
    ] {
        let outcome = run(&cbr_every(between_stations(), 700)
            .change(|spec| {
                let radio = spec.radio.as_mut().expect("there are radios");
                radio.errors = ErrorModel::PacketLoss(Probability::new(0.1).expect("a probability"));
                (radio.mac.short_retry_limit, radio.mac.long_retry_limit) = (1, 1);
                cells_of(spec).cold = cold;
                let at = |node| ProxySpec { node, mobile: MobileSide::Radios, kind: kind.clone() };
                spec.proxies = STATIONS.map(at).into();
            })
            .seconds(120)
            .transfer(SERVER.0, HOST.0, linux(), TOTAL));
        assert_eq!(outcome.flows[0].bytes_received, TOTAL, "{kind:?}");
        let again = |node: NodeId| outcome.nodes[node.index()].proxies.retransmitted;
        assert!(again(STATIONS[0]) > 5 && again(STATIONS[1]) > 5, "{kind:?}");
    }
}

#[test]
fn connections_split_at_the_home_agent_follow_the_host() {
    let mobile = MobileSide::Nodes([HOST].into());
    let kind = ProxyKind::Split(Box::new(split::Config::new(linux().into(), linux().into(), 100_000)));
    let outcome = run(&cbr_every(between_stations(), 500)
        .change(|spec| {
            spec.proxies = vec![ProxySpec { node: HOME, mobile: mobile.clone(), kind: kind.clone() }]
        })
        .seconds(60)
        .transfer(SERVER.0, HOST.0, linux(), TOTAL));
    assert_eq!(outcome.flows[0].bytes_received, TOTAL);
}

#[test]
fn connections_split_at_stations_follow_the_host_with_all_that_they_hold() {
    let unknown = split::UnknownConnections::Hold(Duration::from_secs(2));
    let config = split::Config { unknown, ..split::Config::new(linux().into(), linux().into(), 100_000) };
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let outcome = run(&cbr_every(between_stations(), 700)
            .change(|spec| {
                cells_of(spec).scheme = scheme;
                let kind = ProxyKind::Split(Box::new(config));
                let at = |node| ProxySpec { node, mobile: MobileSide::Radios, kind: kind.clone() };
                spec.proxies = STATIONS.map(at).into();
            })
            .seconds(60)
            .transfer(SERVER.0, HOST.0, linux(), TOTAL));
        assert_eq!(outcome.flows[0].bytes_received, TOTAL, "{scheme:?}");
        let moved: u64 = STATIONS.iter().map(|node| outcome.nodes[node.index()].proxies.state_bytes).sum();
        assert!(moved > 50_000, "{moved} bytes, {scheme:?}");
    }
}

#[test]
fn a_host_that_returns_resumes_its_connections() {
    let away = walk(&[
        (0.0, 10.0, 10.0),
        (10.0, 10.0, 10.0),
        (15.0, 10.0, 900.0),
        (30.0, 10.0, 900.0),
        (35.0, 10.0, 10.0),
    ]);
    let outcome = run(&cells(away).seconds(90).transfer(SERVER.0, HOST.0, linux(), 2 * TOTAL));
    let flow = &outcome.flows[0];
    assert_eq!(flow.bytes_received, 2 * TOTAL);
    assert!(flow.longest_silence > Duration::from_secs(15), "it was away for {:?}", flow.longest_silence);
}

#[test]
fn what_a_mobile_host_sends_goes_by_its_station() {
    let outcome = run(&walking()
        .seconds(70)
        .cbr(HOST.0, SERVER.0, 500, Duration::from_millis(20))
        .from(2.0)
        .until(68.0));
    assert_eq!(outcome.flows[0].data.lost, 0);
}

#[test]
fn a_capture_shows_tunnels_and_messages_as_they_are() {
    let spec = cbr_every(between_stations(), 300)
        .seconds(2)
        .cbr(SERVER.0, HOST.0, 100, Duration::from_millis(50))
        .from(1.0)
        .until(2.0);
    let capture = PcapTracer::new(Vec::new(), &spec).expect("memory takes everything");
    let mut world = World::new(&spec, 1, capture);
    world.run_until(hopline_core::Instant::from_secs(2));
    let bytes = world.finish().1.finish().expect("memory takes everything");
    let count = |pattern: &[u8]| bytes.windows(pattern.len()).filter(|window| *window == pattern).count();
    // Protocol 4 from the home agent to the group; within, the datagram from the server to the host.
    let (home, group) = (HOME.ipv4().octets(), [239, 0, 0, 6]);
    assert!(count(&[&home[..], &group].concat()) > 20);
    assert!(count(&[&SERVER.ipv4().octets()[..], &HOST.ipv4().octets()].concat()) > 60);
    // A forward-request with three packets: ports 1021, length 60, type 2, count 3.
    assert!(count(&[3, 253, 3, 253, 0, 60]) > 3);
}

fn linux() -> tcp::Config {
    tcp::Config::linux().with_sack()
}
