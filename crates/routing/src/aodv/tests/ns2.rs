//! The preset of ns-2.35, where it differs from the RFC.

use super::harness::*;
use super::network::Network;
use crate::aodv::config::Encapsulation;
use crate::aodv::*;
use hopline_core::{Duration, Instant, Seq32, StateMachine};
use hopline_wire::aodv::{Message, Rrep, Rreq};
use std::net::Ipv4Addr;

/// The clock starts at 100 s, on a tick.
fn node() -> TestNode {
    TestNode::new(Config::ns2_235())
}

#[test]
fn an_unknown_destination_is_searched_network_wide_and_retried_on_ticks() {
    let mut node = node();
    let start = node.now;
    let _ = node.send(9, 1);
    assert_eq!(only_request(&node.sent()).1, 30);
    let sent: Vec<_> = node
        .advance(ms(19_999))
        .into_iter()
        .map(|(at, t)| ((at - start).as_millis(), only_request(&[t]).1))
        .collect();
    // Waits of 2 · 30 · 30 ms = 1.8 s times 1, 2, 3, 4, rounded up to ticks: 1.8 → 2; 2 + 3.6 → 6; 6 + 5.4 → 11.5.
    assert_eq!(sent, [(2_000, 30), (6_000, 30), (11_500, 30)]);
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::DiscoveryFailed }]);
}

#[test]
fn a_packet_repeats_an_overdue_request_before_the_tick() {
    let mut node = node();
    let _ = node.send(9, 1);
    node.sent();
    node.advance(ms(1_700));
    let _ = node.send(9, 2);
    assert_eq!(node.sent(), [], "not before the wait is over");
    node.advance(ms(150));
    let _ = node.send(9, 3);
    assert_eq!(only_request(&node.sent()).1, 30);
}

#[test]
fn after_the_last_attempt_discovery_pauses_for_ten_seconds() {
    let mut node = node();
    let _ = node.send(9, 1);
    node.skip(ms(11_500 + 7_500)); // the fourth wait is 7.2 s
    let gave_up = node.now;
    assert_eq!(node.send(9, 2), Decision::Accepted);
    assert_eq!(node.sent(), []);
    let sent = node.advance(ms(11_000));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].0 - gave_up, ms(10_000));
}

#[test]
fn a_lost_destination_is_searched_in_rings_around_its_last_distance() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 4, 2));
    node.fail_link(1, FailedContent::Other);
    let start = node.now;
    let _ = node.send(9, 1);
    let mut ttls = vec![(0, only_request(&node.sent()).1)];
    ttls.extend(
        node.advance(ms(3_000)).into_iter().map(|(at, t)| ((at - start).as_millis(), only_request(&[t]).1)),
    );
    // 3 + 2 hops wait 0.3 s, 7 hops are at the threshold already: network-wide.
    assert_eq!(ttls, [(0, 5), (500, 7), (1_000, 30), (3_000, 30)]);
}

#[test]
fn waits_follow_the_time_a_hop_took_in_earlier_discoveries() {
    let mut node = node();
    let _ = node.send(9, 1);
    node.sent();
    node.now += ms(400);
    node.receive_unicast(1, rrep(0, 9, 4, 3)); // four hops in 400 ms
    node.fail_link(1, FailedContent::Other);
    let _ = node.send(9, 2);
    assert_eq!(only_request(&node.sent()).1, 6);
    let deadline = node.aodv.discoveries.get(node_address(9)).unwrap().deadline;
    assert_eq!(deadline - node.now, ms(2 * 6 * 100));
}

#[test]
fn a_wait_is_never_longer_than_ten_seconds() {
    let mut node = node();
    let _ = node.send(9, 1);
    node.sent();
    node.now += ms(8_000);
    node.receive_unicast(1, rrep(0, 9, 4, 7));
    node.fail_link(1, FailedContent::Other);
    let _ = node.send(9, 2);
    let deadline = node.aodv.discoveries.get(node_address(9)).unwrap().deadline;
    assert_eq!(deadline - node.now, ms(10_000), "a second per hop, thirty hops and back");
}

#[test]
fn an_expired_route_is_used_until_the_tick_that_ends_it() {
    let mut node = node();
    node.advance(ms(100));
    node.receive_unicast(1, rrep(0, 9, 4, 2)); // 6 s
    node.advance(ms(6_200)); // expired 0.2 s ago, the tick is 0.2 s away
    assert!(node.valid_route(9).is_some());
    node.advance(ms(200));
    assert_eq!(node.valid_route(9), None);
    assert_eq!(node.route_view(9).unwrap().seq, Some(Seq32(5)));
}

#[test]
fn invalid_routes_are_never_deleted() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 4, 2));
    node.skip(Duration::from_secs(3_600));
    assert_eq!(node.route_view(9).unwrap().hops, 3);
}

#[test]
fn packets_released_by_a_reply_are_ten_milliseconds_apart() {
    let mut node = node();
    for packet in 1..=3 {
        let _ = node.send(9, packet);
    }
    node.sent();
    node.receive_unicast(1, rrep(0, 9, 4, 2));
    let release = |packet| Event::Release { packet, next_hop: node_address(1) };
    assert_eq!(node.events()[1..], [release(1)]);
    node.advance(ms(10));
    assert_eq!(node.events(), [release(2)]);
    node.advance(ms(10));
    assert_eq!(node.events(), [release(3)]);
}

#[test]
fn a_request_keeps_the_way_back_for_six_seconds_and_no_route_to_the_neighbour() {
    let mut node = node();
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.route_view(8).unwrap().expires - node.now, ms(6_000));
    assert_eq!(node.route_view(1), None);
}

#[test]
fn a_link_failure_is_broadcast_without_precursors() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 4, 2));
    let carried = FailedContent::Data { packet: 5, destination: node_address(9), source: ME, travelled: 0 };
    let sent = node.fail_link(1, carried);
    let (error, to) = only_error(&sent);
    assert_eq!((to, &error.unreachable[..]), (Ipv4Addr::BROADCAST, &[(node_address(9), Seq32(5))][..]));
}

#[test]
fn a_packet_past_half_way_is_repaired_and_one_before_it_is_not() {
    for (travelled, repaired) in [(3, false), (4, true)] {
        let mut node = node();
        node.receive_broadcast(1, 5, rreq(8, 1, 9, 1));
        node.skip(ms(20));
        node.receive_unicast(2, rrep(8, 9, 4, 2));
        let carried = FailedContent::Data {
            packet: 5,
            destination: node_address(9),
            source: node_address(8),
            travelled,
        };
        let sent = node.fail_link(2, carried);
        assert_eq!(matches!(sent[0].message, Message::Rreq(_)), repaired);
        assert_eq!(node.aodv.buffered() == 1, repaired);
    }
}

/// A recorded run of ns-2.35: four nodes in a chain, a packet every 250 ms from 41.3 s to 70 s, the first hop gone at
/// 50 s. These are the requests of the source.
#[test]
fn a_source_that_lost_its_neighbour_sends_requests_at_the_times_of_ns2() {
    let mut node = node();
    node.now = Instant::from_millis(41_300);
    let mut asked = Vec::new();
    let note = |asked: &mut Vec<(u64, u8)>, sent: Vec<(Instant, Transmit)>| {
        for (at, t) in sent.iter().filter(|(_, t)| matches!(t.message, Message::Rreq(_))) {
            asked.push((at.as_nanos() / 1_000_000, t.ttl));
        }
    };
    for packet in 0..115 {
        if packet == 36 {
            let carried =
                FailedContent::Data { packet: 35, destination: node_address(9), source: ME, travelled: 0 };
            node.fail_link(1, carried);
        }
        let _ = node.send(9, packet);
        let at_once = node.sent().into_iter().map(|t| (node.now, t)).collect();
        note(&mut asked, at_once);
        if packet == 0 {
            node.now += Duration::from_micros(26_631);
            node.receive_unicast(1, Rrep { lifetime: ms(10_000), ..rrep(0, 9, 4, 2) });
            node.now = Instant::from_millis(41_300);
        }
        let rest = node.advance(ms(250));
        note(&mut asked, rest);
    }
    let expected = [
        (41_300, 30),
        (50_300, 5),
        (50_500, 7),
        (50_800, 30),
        (51_500, 30),
        (52_800, 30),
        (54_500, 30),
        (66_800, 30),
        (67_500, 30),
        (68_800, 30),
    ];
    assert_eq!(asked, expected);
}

/// The same run with the last hop gone instead: the requests of the relay before it, which repairs, and when it gives
/// up its packets.
#[test]
fn a_repairing_relay_sends_requests_at_the_times_of_ns2_and_no_error() {
    let mut node = node();
    node.now = Instant::from_millis(41_320);
    node.receive_broadcast(1, 29, rreq(8, 1, 9, 1));
    node.skip(ms(5));
    node.receive_unicast(9, Rrep { lifetime: ms(10_000), ..rrep(8, 9, 4, 0) });
    let mut sent = Vec::new();
    let mut given_up = Vec::new();
    for packet in 0..116 {
        let arrives = Instant::from_millis(41_305 + 250 * packet);
        while let Some((due, _)) = node.aodv.poll_timeout().filter(|(due, _)| *due <= arrives) {
            node.now = due;
            node.aodv.handle_timeout(due);
            sent.extend(node.sent().into_iter().map(|t| (due.as_nanos() / 1_000_000, t.ttl)));
            let failed = |event: &Event<u32>| {
                matches!(
                    event,
                    Event::Drop { reason: DropReason::DiscoveryFailed | DropReason::RepairFailed, .. }
                )
            };
            given_up.extend(
                node.events().iter().filter(|event| failed(event)).map(|_| due.as_nanos() / 1_000_000),
            );
        }
        node.now = node.now.max(arrives);
        if packet == 35 {
            let carried = FailedContent::Data {
                packet: 35,
                destination: node_address(9),
                source: node_address(8),
                travelled: 2,
            };
            let at_once = node.fail_link(9, carried);
            sent.extend(at_once.into_iter().map(|t| (node.now.as_nanos() / 1_000_000, t.ttl)));
        } else {
            let _ = node.forward(8, 1, 9, packet as u32);
        }
        sent.extend(node.sent().into_iter().map(|t| (node.now.as_nanos() / 1_000_000, t.ttl)));
    }
    assert_eq!(sent, [(50_055, 30), (52_000, 30), (56_000, 30), (61_500, 30)]);
    assert_eq!((given_up.len(), given_up[0]), (64, 69_000), "a full buffer at once");
    assert_eq!(node.route_view(9).unwrap().state, RouteState::RepairingKept);
    // The timer: 51.855 s, when the first wait was to end, after 50.055 s.
    node.skip(ms(101_500 - 70_055));
    assert_eq!(node.route_view(9).unwrap().state, RouteState::RepairingKept);
    node.skip(ms(1_000));
    assert_eq!(node.route_view(9).unwrap().state, RouteState::Invalid);
    assert_eq!(node.forward(8, 1, 9, 200), Decision::Dropped { reason: DropReason::NoRoute });
    assert_eq!(only_error(&node.sent()).1, Ipv4Addr::BROADCAST);
}

/// Node 0 has a route over 2 to 9, three hops, number 4, and repairs it for a packet of 8 that came four hops over 1.
fn repairing() -> TestNode {
    let mut node = node();
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 3));
    node.skip(ms(20));
    node.receive_unicast(2, rrep(8, 9, 4, 2));
    node.events();
    let sent = node.fail_link(2, failed_packet(1));
    let (request, ttl) = only_request(&sent);
    assert_eq!((request.destination_seq, ttl), (Some(Seq32(4)), 30), "the number of the broken route");
    node
}

fn failed_packet(packet: u32) -> FailedContent<u32> {
    FailedContent::Data { packet, destination: node_address(9), source: node_address(8), travelled: 4 }
}

fn state(node: &TestNode) -> RouteState {
    node.route_view(9).unwrap().state
}

#[test]
fn a_repairing_node_refuses_routes_no_better_than_the_broken_one() {
    for (seq, hops, taken) in [(4, 3, false), (4, 2, false), (3, 0, false), (4, 1, true), (5, 6, true)] {
        let mut node = repairing();
        node.receive_unicast(2, rrep(0, 9, seq, hops));
        assert_eq!(state(&node) == RouteState::Valid, taken, "number {seq}, {hops} hops from the sender");
        assert_eq!(node.aodv.buffered() == 0, taken);
    }
}

#[test]
fn a_neighbour_answers_the_repair_of_its_own_next_hop() {
    for (config, answers) in [(Config::ns2_235(), true), (Config::rfc3561(), false)] {
        let mut node = TestNode::new(config);
        node.receive_unicast(1, rrep(0, 9, 4, 2));
        let repair = Rreq { destination_seq: Some(Seq32(4)), ..rreq(1, 1, 9, 0) };
        let sent = node.receive_broadcast(1, 29, repair);
        assert_eq!(sent.iter().any(|t| matches!(t.message, Message::Rrep(_))), answers);
    }
}

#[test]
fn a_route_under_repair_is_used_for_replies() {
    let mut node = repairing();
    let sent = node.receive_broadcast(3, 5, Rreq { destination_seq: Some(Seq32(4)), ..rreq(7, 1, 9, 1) });
    let (reply, to) = only_reply(&sent);
    assert_eq!((reply.destination_seq, reply.hop_count, to), (Seq32(4), 3, node_address(3)));
    assert!(reply.lifetime > Duration::from_secs(3_600), "it expires at no time");
    let sent = node.receive_unicast(1, rrep(9, 8, 20, 2));
    assert_eq!(only_reply(&sent).1, node_address(2), "a reply to 9 goes over the broken link");
}

#[test]
fn packets_that_fail_during_a_repair_join_it_unless_they_are_before_half_way() {
    let mut node = repairing();
    assert_eq!(node.fail_link(2, failed_packet(2)), [], "the request is still awaited");
    assert_eq!(node.aodv.buffered(), 2);
    let early = FailedContent::Data {
        packet: 3,
        destination: node_address(9),
        source: node_address(7),
        travelled: 1,
    };
    let sent = node.fail_link(2, early);
    let (error, to) = only_error(&sent);
    assert_eq!((to, &error.unreachable[..]), (Ipv4Addr::BROADCAST, &[(node_address(9), Seq32(5))][..]));
    assert_eq!(state(&node), RouteState::Invalid);
}

#[test]
fn a_route_that_leads_elsewhere_by_now_is_repaired_all_the_same() {
    let mut node = repairing();
    node.receive_unicast(3, rrep(0, 9, 5, 2));
    assert_eq!(node.valid_route(9), Some((node_address(3), 3, Some(Seq32(5)))));
    node.skip(ms(20));
    only_request(&node.fail_link(2, failed_packet(2)));
    assert_eq!(state(&node), RouteState::RepairingKept);
}

#[test]
fn an_error_of_the_next_hop_ends_a_repair_and_its_number_counts() {
    let mut node = repairing();
    node.receive_broadcast(2, 1, rerr(&[(9, 4)]));
    let entry = node.route_view(9).unwrap();
    assert_eq!((entry.state, entry.seq), (RouteState::Invalid, Some(Seq32(4))));
    node.receive_broadcast(2, 1, rerr(&[(9, 6)]));
    assert_eq!(node.route_view(9).unwrap().seq, Some(Seq32(4)), "of a route that is no more");
}

#[test]
fn the_timer_of_an_earlier_repair_ends_a_later_one_and_the_number_stays() {
    let mut node = repairing(); // at 100.02 s; the timer: when the wait is over, at 101.82 s, after 100.02 s
    node.receive_unicast(3, rrep(0, 9, 5, 2));
    node.skip(ms(80_000));
    node.receive_unicast(3, rrep(0, 9, 6, 2));
    only_request(&node.fail_link(3, failed_packet(2)));
    node.skip(ms(21_700));
    assert_eq!(state(&node), RouteState::RepairingKept);
    node.skip(ms(200));
    let entry = node.route_view(9).unwrap();
    assert_eq!((entry.state, entry.seq), (RouteState::Invalid, Some(Seq32(6))));
    assert_eq!(node.sent(), []);
    assert_eq!(node.forward(8, 1, 9, 3), Decision::Dropped { reason: DropReason::NoRoute });
    assert_eq!(only_error(&node.sent()).0.unreachable, [(node_address(9), Seq32(6))]);
}

#[test]
fn timers_of_repairs_are_bounded() {
    let mut config = Config::ns2_235();
    config.limits.repair_ends = 2;
    let mut node = TestNode::new(config);
    node.receive_unicast(2, rrep(8, 9, 4, 2));
    for packet in 0..50 {
        node.fail_link(2, failed_packet(packet));
    }
    node.skip(ms(102_000));
    assert_eq!(state(&node), RouteState::Invalid, "the first timer is the one that is kept");
}

#[test]
fn a_repair_searches_around_the_distance_at_which_the_route_was_last_given_up() {
    let mut node = node();
    node.receive_unicast(2, rrep(0, 9, 4, 2));
    node.fail_link(2, FailedContent::Other);
    node.receive_unicast(2, rrep(0, 9, 6, 1));
    assert_eq!(only_request(&node.fail_link(2, failed_packet(1))).1, 5);
}

#[test]
fn forwarded_packets_are_spaced_out_when_a_reply_passes() {
    let mut node = repairing();
    let _ = node.forward(8, 1, 9, 2);
    node.receive_unicast(3, rrep(8, 9, 5, 2));
    let released = |node: &mut TestNode| {
        let events = node.events();
        events.iter().filter(|event| matches!(event, Event::Release { .. })).count()
    };
    assert_eq!(released(&mut node), 1);
    node.advance(ms(10));
    assert_eq!(released(&mut node), 1);
}

/// A recorded run of ns-2.35: the middle of a chain of nine nodes repairs its route to the far end, three hops away.
/// These are its requests, and the replies it got.
#[test]
fn a_repair_in_the_middle_of_a_chain_ends_when_a_neighbours_route_expires() {
    let mut node = node();
    node.now = Instant::from_millis(25_583);
    node.receive_unicast(2, Rrep { lifetime: ms(10_000), ..rrep(8, 9, 30, 2) });
    node.now = Instant::from_millis(28_930);
    let mut asked = vec![(28_930, only_request(&node.fail_link(2, failed_packet(1))).0.destination_seq)];
    let answers = [(31_001, 30, 2), (31_001, 30, 4), (35_001, 30, 2), (35_001, 30, 4), (40_501, 30, 4)];
    node.now = Instant::from_millis(28_966);
    node.receive_unicast(2, rrep(0, 9, 30, 2));
    node.receive_unicast(4, rrep(0, 9, 30, 4));
    for (at, seq, hops) in answers.into_iter().chain([(40_514, 32, 2)]) {
        let wait = Instant::from_millis(at) - node.now;
        let sent = node.advance(wait);
        asked.extend(
            sent.into_iter().map(|(at, t)| (at.as_nanos() / 1_000_000, only_request(&[t]).0.destination_seq)),
        );
        assert_eq!(state(&node), RouteState::RepairingKept);
        node.receive_unicast(2, rrep(0, 9, seq, hops));
    }
    let expected = [28_930, 31_000, 35_000, 40_500].map(|at| (at, Some(Seq32(30))));
    assert_eq!(asked, expected);
    assert_eq!(node.valid_route(9), Some((node_address(2), 3, Some(Seq32(32)))));
    assert_eq!(node.aodv.buffered(), 0);
}

#[test]
fn destinations_advance_their_sequence_number_in_each_reply() {
    let mut node = node();
    let first = only_reply(&node.receive_broadcast(1, 5, rreq(8, 1, 0, 2))).0.destination_seq;
    let second = only_reply(&node.receive_broadcast(1, 5, rreq(8, 2, 0, 2))).0.destination_seq;
    assert!(second.after(first));
}

#[test]
fn message_sizes_are_those_of_ns2() {
    let ns2 = |message: &Message| Encapsulation::Ns2.packet_len(message);
    let udp = |message: &Message| Encapsulation::UdpIpv4.packet_len(message);
    let request: Message = Message::Rreq(Rreq { ..rreq(8, 1, 9, 2) });
    let reply = Message::Rrep(rrep(8, 9, 1, 1));
    assert_eq!((ns2(&request), ns2(&reply), ns2(&rerr(&[(1, 1), (2, 2)]))), (48, 44, 40));
    assert_eq!((udp(&request), udp(&reply), udp(&rerr(&[(1, 1), (2, 2)]))), (52, 48, 48));
}

#[test]
fn a_chain_is_discovered_at_once_and_kept_by_its_traffic() {
    let mut network = Network::chain(6, Config::ns2_235());
    network.send(0, 5, 0);
    network.run(ms(100));
    assert_eq!(network.delivered.len(), 1);
    assert_eq!(network.requests().iter().filter(|(_, node, _)| *node == 0).count(), 1);
    for id in 1..20 {
        network.run(ms(2_000));
        network.send(0, 5, id);
    }
    network.run(ms(100));
    assert_eq!(network.delivered.len(), 20);
    assert_eq!(network.requests().iter().filter(|(_, node, _)| *node == 0).count(), 1);
    assert!(network.now > Instant::from_secs(38));
}
