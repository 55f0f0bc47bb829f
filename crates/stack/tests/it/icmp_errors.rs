//! Reports of routers, and echo requests.

use crate::world::{ADDRESSES, World, modern, pattern};
use hopline_core::Duration;
use hopline_link::Emulation;
use hopline_stack::{EndReason, UnreachableReason};
use hopline_transport::tcp::{Config, ElfnConfig, FeedbackState, RouteFeedback};
use hopline_wire::checksum::internet;
use hopline_wire::ip::{Header, Protocol};

/// An ICMP message of a router to the first stack.
fn message(kind: u8, code: u8, rest: [u8; 4], quoted: &[u8]) -> Vec<u8> {
    let mut icmp = vec![kind, code, 0, 0];
    icmp.extend(rest);
    icmp.extend(&quoted[..quoted.len().min(28)]);
    let checksum = internet(&icmp);
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut packet = Vec::new();
    let [router, host] = ["10.0.0.9", ADDRESSES[0]].map(|ip| ip.parse().unwrap());
    Header::new(router, host, Protocol::Icmp).emit(icmp.len(), &mut packet);
    packet.extend(icmp);
    packet
}

fn world(tcp: Config) -> World {
    World::with_tcp(tcp, &Emulation::delay(Duration::from_millis(10)))
}

/// The next packet of the first stack, which does not get through.
fn intercept_packet(world: &mut World) -> Vec<u8> {
    let mut packet = Vec::new();
    assert!(world.stacks[0].poll_transmit(world.now, &mut packet));
    packet
}

#[test]
fn an_icmp_unreachable_error_aborts_connect() {
    for (code, obstacle) in [
        (0, UnreachableReason::Network),
        (1, UnreachableReason::Host),
        (3, UnreachableReason::Port),
        (13, UnreachableReason::Prohibited),
    ] {
        let mut world = world(modern());
        let remote = format!("{}:80", ADDRESSES[1]).parse().unwrap();
        let id = world.stacks[0].connect(world.now, remote).unwrap();
        let syn = intercept_packet(&mut world);
        world.stacks[0].handle_packet(world.now, &message(3, code, [0; 4], &syn));
        assert_eq!(world.end(0, id), Some(EndReason::Unreachable(obstacle)));
    }
}

#[test]
fn a_packet_too_big_error_shrinks_segments() {
    for tcp in [modern(), modern().with_rack()] {
        let mut world = world(tcp);
        let ids = world.open();
        let data = pattern(1, 50_000);
        assert_eq!(world.stacks[0].send(world.now, ids[0], &data), data.len());
        let mut lost = intercept_packet(&mut world);
        assert_eq!(lost.len(), 1500);
        world.stacks[0].handle_packet(
            world.now,
            &message(3, 4, [0, 0, 800_u16.to_be_bytes()[0], 800_u16.to_be_bytes()[1]], &lost),
        );
        // The rest of the flight is lost, too.
        while world.stacks[0].poll_transmit(world.now, &mut lost) {}
        assert_eq!(world.stacks[0].endpoint(ids[0]).unwrap().effective_mss(), 800 - 40 - 12);
        world.stacks[0].close(world.now, ids[0]);
        assert!(world.exchange(ids, [&[], b"x"])[1] == data);
    }
}

#[test]
fn an_icmp_error_that_quotes_no_outstanding_segment_is_ignored() {
    let mut world = world(modern());
    let ids = world.open();
    let data = pattern(1, 5000);
    world.stacks[0].send(world.now, ids[0], &data);
    let mut forged = intercept_packet(&mut world);
    forged[24] ^= 0x40; // the sequence number
    for (code, rest) in [(4, [0, 0, 2, 0]), (0, [0; 4]), (3, [0; 4])] {
        world.stacks[0].handle_packet(world.now, &message(3, code, rest, &forged));
    }
    assert_eq!(world.stacks[0].stats().stale_icmp_errors, 3);
    assert_eq!(world.stacks[0].endpoint(ids[0]).unwrap().effective_mss(), 1500 - 40 - 12);
    assert_eq!(world.end(0, ids[0]), None);
}

#[test]
fn elfn_freezes_while_a_router_has_no_route() {
    let elfn = Config::modern().with_feedback(RouteFeedback::Elfn(ElfnConfig::PAPER));
    let mut world = world(elfn);
    let ids = world.open();
    let data = pattern(1, 5000);
    world.stacks[0].send(world.now, ids[0], &data);
    let lost = intercept_packet(&mut world);
    world.stacks[0].handle_packet(world.now, &message(3, 0, [0; 4], &lost));
    assert_ne!(world.stacks[0].endpoint(ids[0]).unwrap().feedback_state(), FeedbackState::Active);
    world.stacks[0].close(world.now, ids[0]);
    assert!(world.exchange(ids, [&[], b"x"])[1] == data);
}

#[test]
fn an_echo_request_is_answered() {
    let mut world = world(modern());
    world.stacks[0].handle_packet(world.now, &message(8, 0, [0, 1, 0, 2], b"ping"));
    let mut packet = Vec::new();
    assert!(world.stacks[0].poll_transmit(world.now, &mut packet));
    assert_eq!(packet[20], 0);
    assert_eq!(&packet[24..], &[0, 1, 0, 2, b'p', b'i', b'n', b'g']);
    assert_eq!(internet(&packet[20..]), 0);
}
