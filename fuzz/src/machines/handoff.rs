//! Handoff: a base station, a home agent and a mobile host.

use super::Choices;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_proxy::handoff::{
    HandoffRule, HomeAgent, Identity, Key, Mobile, MobileConfig, Scheme, Station, StationAction,
    StationConfig,
};
use hopline_wire::handoff::{
    Message, MessageBody, PacketId, PriorReception, RecentPackets, RequestAction, RequestKind, TaggedMessage,
};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Most mobile hosts of the station, and packets that it keeps for each.
const MOBILES: u32 = 3;
const BUFFER: u16 = 4;

/// Drives all three with any messages and packets. Checks that they never panic, come to rest, and that each packet leaves
/// the base station once, or is one of the few that it buffers.
pub fn handoff_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let which = choices.byte();
    let scheme = if which & 1 == 0 { Scheme::Multicast } else { Scheme::Registration };
    let key = (which & 2 != 0).then_some(Key::new([3; 16]));
    let named = |node: u32| Identity { key, ..Identity::new(NodeId(node).ipv4()) };
    let mut station = new_station(named(1));
    let mut home = HomeAgent::new(named(0), scheme, [NodeId(4).ipv4(), NodeId(5).ipv4()]);
    let decide = if which & 4 == 0 {
        HandoffRule::default()
    } else {
        HandoffRule::Periodic(Duration::from_millis(100))
    };
    let mut host = Mobile::new(MobileConfig { handoff_rule: decide, ..MobileConfig::new(named(4), scheme) });
    let (mut now, mut inside, mut next) = (Instant::ZERO, BTreeSet::new(), 0u32);
    while !choices.is_over() {
        match choices.byte() {
            0..50 => {
                now += Duration::from_millis(u64::from(choices.byte()) * 10);
                station.handle_timeout(now);
                host.handle_timeout(now);
            }
            50..120 => {
                inside.insert(next);
                let packet = any_packet(&mut choices);
                station.handle_packet(choices.address(8), packet, next);
                host.record_received(packet);
                next += 1;
            }
            _ => {
                let (from, tagged) = any_message(&mut choices);
                station.handle_message(now, from, &tagged);
                home.handle_message(now, &tagged);
                let signal = (choices.byte() < 200).then(|| -f64::from(choices.byte()));
                host.handle_message(now, from, &tagged, signal);
            }
        }
        drain(&mut station, &mut inside);
        assert!(station.mobiles() <= MOBILES as usize);
        assert!(inside.len() <= MOBILES as usize * usize::from(BUFFER), "{} packets kept", inside.len());
        comes_to_rest(core::iter::from_fn(|| home.poll_transmit()).count());
        comes_to_rest(core::iter::from_fn(|| host.poll_transmit()).count());
        comes_to_rest(core::iter::from_fn(|| host.poll_event()).count());
    }
}

fn new_station(identity: Identity) -> Station<u32> {
    let mut config = StationConfig::new(identity, NodeId(0).ipv4());
    (config.max_mobiles, config.buffer_packets) = (MOBILES, BUFFER);
    Station::new(config, Instant::ZERO, &mut RandomStream::keyed(1, 1, 1, Purpose::Handoff))
}

fn drain(station: &mut Station<u32>, inside: &mut BTreeSet<u32>) {
    while let Some(does) = station.poll_action() {
        if let StationAction::Deliver(packet)
        | StationAction::ShowToMiddleboxes(packet)
        | StationAction::Release(packet)
        | StationAction::Refuse(packet) = does
        {
            assert!(inside.remove(&packet), "packet {packet} leaves twice");
        }
    }
}

fn comes_to_rest(count: usize) {
    assert!(count < 100, "it does not stop sending");
}

/// Returns a message from any sender.
fn any_message(choices: &mut Choices<'_>) -> (Ipv4Addr, TaggedMessage) {
    let (from, mobile) = (choices.address(8), choices.address(8));
    let lifetime = Duration::from_millis(u64::from(choices.byte()) * 20);
    let kind =
        choices.pick(&[RequestKind::Forward, RequestKind::Buffer, RequestKind::Stop, RequestKind::Register]);
    let says = match choices.byte() % 4 {
        0 => MessageBody::Beacon { station: mobile },
        1 => MessageBody::Reply { mobile, lifetime, kind },
        _ => MessageBody::Request { mobile, lifetime, action: any_request(choices, kind) },
    };
    let number = u64::from(choices.u16());
    (from, TaggedMessage { message: Message { number, body: says }, tag: [0; 16] })
}

fn any_packet(choices: &mut Choices<'_>) -> PacketId {
    PacketId { source: choices.address(2), id: u16::from(choices.byte() % 8) }
}

fn any_request(choices: &mut Choices<'_>, kind: RequestKind) -> RequestAction {
    match kind {
        RequestKind::Forward => {
            let mut latest = RecentPackets::default();
            (0..choices.byte() % 5).for_each(|_| latest.push(any_packet(choices)));
            RequestAction::Forward(latest)
        }
        RequestKind::Buffer => RequestAction::Buffer,
        RequestKind::Stop => RequestAction::Stop,
        RequestKind::Register => RequestAction::Register {
            care_of: choices.address(8),
            prior_reception: if choices.byte().is_multiple_of(2) {
                PriorReception::None
            } else {
                PriorReception::Received
            },
        },
    }
}
