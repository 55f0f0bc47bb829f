//! HELLO messages: RFC 3561 §6.9.

use super::harness::*;
use super::network::Network;
use crate::aodv::config::{Hello, HelloSenders, LinkSensing};
use crate::aodv::*;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream, Seq32, StateMachine};
use hopline_wire::aodv::{Message, Rrep};

fn always() -> Config {
    let hello = Hello { senders: HelloSenders::Always, ..Hello::RFC3561 };
    Config { link_sensing: LinkSensing::Hello(hello), ..Config::rfc3561() }
}

/// Returns a node that always sends `hello`.
fn with_hello(hello: Hello) -> TestNode {
    let hello = Hello { senders: HelloSenders::Always, ..hello };
    TestNode::new(Config { link_sensing: LinkSensing::Hello(hello), ..Config::rfc3561() })
}

/// Returns HELLO parameters that survive the loss of one HELLO and the delay of the next.
fn tolerant_hellos() -> [Hello; 2] {
    [Hello::every(ms(1_000)), Hello::AODV_UU]
}

fn hello(from: u32, seq: u32) -> Rrep {
    Rrep { lifetime: ms(2_000), ..rrep(from, from, seq, 0) }
}

fn hellos(sent: &[(Instant, Transmit)]) -> Vec<Instant> {
    let is_hello = |(_, t): &&(Instant, Transmit)| matches!(&t.message, Message::Rrep(r) if r.destination == ME && t.next_hop.is_broadcast() && t.ttl == 1);
    sent.iter().filter(is_hello).map(|(at, _)| *at).collect()
}

#[test]
fn s6_9_a_silent_node_sends_hello_every_interval() {
    let mut node = TestNode::new(always());
    node.advance(ms(0));
    let times = hellos(&node.advance(ms(10_000)));
    assert_eq!(times.len(), 10);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == ms(1_000)));
}

#[test]
fn s6_9_a_broadcast_in_the_last_interval_replaces_a_hello() {
    let mut node = TestNode::new(always());
    node.advance(ms(0));
    let mut said = 0;
    for id in 0..40 {
        node.receive_broadcast(1, 5, rreq(8, id, 9, 2));
        said += hellos(&node.advance(ms(250))).len();
    }
    assert_eq!(said, 0);
}

#[test]
fn s6_9_only_nodes_on_an_active_route_send_hello_if_configured() {
    let mut node = TestNode::new(Config::rfc3561_hello());
    node.receive_broadcast(1, 1, hello(1, 4));
    assert_eq!(hellos(&node.advance(ms(1_500))), [], "knowing a neighbour is no route");
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    assert!(!hellos(&node.advance(ms(3_000))).is_empty());
}

#[test]
fn s6_9_a_hello_creates_a_route_with_its_sequence_number() {
    let mut node = TestNode::new(always());
    node.receive_broadcast(1, 1, hello(1, 4));
    assert_eq!(node.valid_route(1), Some((node_address(1), 1, Some(Seq32(4)))));
    node.receive_broadcast(2, 1, hello(1, 9));
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::BadAddress), 1, "nobody says HELLO for another");
    assert_eq!(node.valid_route(1).unwrap().2, Some(Seq32(4)));
}

#[test]
fn s6_9_a_neighbour_unheard_for_two_intervals_is_lost() {
    let mut node = TestNode::new(always());
    node.receive_broadcast(1, 1, hello(1, 4));
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    node.skip(ms(2_000));
    assert!(node.valid_route(9).is_some());
    node.advance(ms(1));
    assert_eq!(node.valid_route(9), None);
    assert!(node.events().contains(&Event::RouteLost { destination: node_address(9) }));
    assert_eq!(node.aodv.stats().links_broken, 1);
}

#[test]
fn one_lost_hello_and_a_late_one_break_no_link_and_two_lost_ones_do() {
    for sensing in tolerant_hellos() {
        let mut node = with_hello(sensing);
        node.receive_broadcast(1, 1, hello(1, 4));
        node.receive_unicast(1, rrep(0, 9, 7, 2));
        // The HELLO after 1 s is lost, and the next is 20 ms late.
        node.skip(ms(2_020));
        node.receive_broadcast(1, 1, hello(1, 4));
        assert!(node.valid_route(9).is_some() && node.valid_route(1).is_some(), "{sensing:?}");
        assert_eq!(node.aodv.stats().links_broken, 0);
        // Two are lost. The third would arrive now.
        node.skip(sensing.allowed_silence());
        assert_eq!(node.aodv.stats().links_broken, 0);
        node.advance(ms(3_000) - sensing.allowed_silence());
        assert_eq!((node.valid_route(9), node.aodv.stats().links_broken), (None, 1), "{sensing:?}");
    }
}

#[test]
fn s6_9_to_the_letter_a_late_hello_after_a_lost_one_comes_too_late() {
    let mut node = with_hello(Hello::RFC3561);
    node.receive_broadcast(1, 1, hello(1, 4));
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    node.skip(ms(2_020));
    assert_eq!((node.valid_route(9), node.aodv.stats().links_broken), (None, 1));
}

#[test]
fn no_delay_below_half_an_interval_counts_as_a_loss_and_two_losses_always_do() {
    let mut stream = RandomStream::new(7, 1, NodeId(3), Purpose::Placement);
    let mut node = with_hello(Hello::every(ms(1_000)));
    let start = node.now;
    let mut lost = false;
    for n in 0..1_000 {
        lost = n > 0 && !lost && stream.duration_below(ms(2)) >= ms(1);
        let delay = stream.duration_below(ms(499));
        if !lost {
            node.skip((start + ms(1_000 * n) + delay).since(node.now));
            node.receive_broadcast(1, 1, hello(1, 4));
        }
    }
    assert_eq!(node.aodv.stats().links_broken, 0);
    // Two are lost, and the third has no delay.
    node.skip(ms(2_502));
    assert_eq!(node.aodv.stats().links_broken, 1);
}

#[test]
fn the_interval_counts_from_the_latest_broadcast_unless_it_is_checked_periodically() {
    for (sensing, gap) in [(Hello::RFC3561, 1_800), (Hello::every(ms(1_000)), 1_000)] {
        let mut node = with_hello(sensing);
        let first = hellos(&node.advance(ms(0)))[0];
        node.skip((first + ms(200)).since(node.now));
        node.receive_broadcast(1, 5, rreq(8, 1, 9, 2)); // which it relays
        let next = hellos(&node.advance(ms(3_000)))[0];
        assert_eq!(next - first, ms(200 + gap), "{sensing:?}");
    }
}

#[test]
fn aodv_uu_sends_hello_an_interval_plus_jitter_after_the_last_one() {
    let mut node = TestNode::with_jitter(Config::aodv_uu(), 3);
    let times = hellos(&node.advance(ms(400_000)));
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    assert!(gaps.iter().all(|gap| (ms(1_000)..=ms(1_050)).contains(gap)), "{gaps:?}");
    let mean = gaps.iter().fold(Duration::ZERO, |sum, gap| sum + *gap).as_millis() / gaps.len() as u64;
    assert!((1_020..1_030).contains(&mean), "{mean}");
    // Two intervals are therefore longer than 2.05 s in about half of all cases.
    let late = gaps.windows(2).filter(|pair| pair[0] + pair[1] > Hello::AODV_UU.allowed_silence()).count();
    assert!((150..240).contains(&late), "{late} of {}", gaps.len() - 1);
}

#[test]
fn s6_9_any_packet_of_a_neighbour_is_liveness() {
    let mut node = TestNode::new(always());
    node.receive_broadcast(1, 1, hello(1, 4));
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    for _ in 0..3 {
        node.skip(ms(1_500));
        node.aodv.handle_signal(node.now, Signal::NeighbourHeard { neighbour: node_address(1) });
    }
    assert!(node.valid_route(9).is_some());
    node.skip(ms(1_400));
    node.receive_broadcast(1, 5, rreq(8, 1, 7, 2));
    node.skip(ms(900));
    assert_eq!(node.aodv.stats().links_broken, 0);
}

#[test]
fn in_aodv_uu_data_packets_are_no_liveness() {
    let mut node = with_hello(Hello::AODV_UU);
    node.receive_broadcast(1, 1, hello(1, 4));
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    node.skip(ms(1_500));
    node.aodv.handle_signal(node.now, Signal::NeighbourHeard { neighbour: node_address(1) });
    node.skip(ms(551));
    assert_eq!((node.valid_route(9), node.aodv.stats().links_broken), (None, 1));
}

#[test]
fn s6_9_a_neighbour_that_never_sent_hello_is_not_monitored() {
    let mut node = TestNode::new(always());
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    node.skip(ms(5_000));
    assert!(node.valid_route(9).is_some());
}

#[test]
fn in_hello_mode_link_layer_reports_are_ignored_and_the_packet_dropped() {
    let mut node = TestNode::new(always());
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    let carried = FailedContent::Data { packet: 5, destination: node_address(9), source: ME, travelled: 0 };
    node.fail_link(1, carried);
    assert!(node.valid_route(9).is_some());
    assert_eq!(node.events(), [Event::Drop { packet: 5, reason: DropReason::LinkFailure }]);
}

#[test]
fn with_both_methods_the_first_detection_counts() {
    let both = Config { link_sensing: LinkSensing::Both(Hello::RFC3561), ..Config::rfc3561() };
    let mut by_link_layer = TestNode::new(both);
    by_link_layer.receive_broadcast(1, 1, hello(1, 4));
    by_link_layer.receive_unicast(1, rrep(0, 9, 7, 2));
    by_link_layer.fail_link(1, FailedContent::Other);
    assert_eq!(by_link_layer.valid_route(9), None);
    let mut by_silence = TestNode::new(both);
    by_silence.receive_broadcast(1, 1, hello(1, 4));
    by_silence.receive_unicast(1, rrep(0, 9, 7, 2));
    by_silence.skip(ms(2_001));
    assert_eq!(by_silence.valid_route(9), None);
}

#[test]
fn s6_9_without_link_layer_reports_a_break_is_detected_by_missing_hellos() {
    let mut network = Network::chain(4, Config::rfc3561_hello());
    network.send(0, 3, 1);
    for id in 2..10 {
        network.run(ms(500));
        network.send(0, 3, id);
    }
    network.cut(2, 3);
    let cut = network.now;
    for id in 10..20 {
        network.run(ms(500));
        network.send(0, 3, id);
    }
    let error = |(at, node, t): &&(Instant, u32, Transmit)| {
        *at > cut && *node == 2 && matches!(t.message, Message::Rerr(_))
    };
    let noticed = network.sent.iter().find(error).expect("node 2 tells of the break").0;
    assert!(noticed - cut > ms(1_000) && noticed - cut <= ms(2_002), "after {}", noticed - cut);
    assert_eq!(network.delivered.len(), 8, "all but the one in flight and those that came after the cut");
}
