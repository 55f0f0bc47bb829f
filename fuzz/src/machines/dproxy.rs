//! D-Proxy in both modes.

use super::{Choices, Life};
use hopline_core::{Duration, Instant, Length, Seq32};
use hopline_proxy::dproxy::opaque::{
    self, DeliveryMode, Frame, Opaque, Parity, TransmissionKind, WINDOW_PACKETS,
};
use hopline_proxy::dproxy::{
    CacheConfig, Config, DProxy, DProxyAction, HoleDelivery, Key, OrderRule, QueueDropHandling,
    RecoveryConfig, RequestExpansion, TimeoutRule, Verdict,
};
use hopline_proxy::{Packet, TableLimits};
use hopline_wire::dproxy::{Flow, Message, MessageKind, Range, Sealed};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::{Flags, Segment};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2));
const KEY: Key = Key::new([3; 32]);
/// Hosts on the near and on the far side of the link, by the version of IP of a flow.
const HOSTS: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
    ],
];
const CONNECTIONS: u32 = 3;
const CACHED: u32 = 12;
const HELD: u32 = 8;
const REPLAYS: u8 = 2;
const PATIENCE: Duration = Duration::from_millis(100);

/// Direction of a packet over the link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

/// Drives an end of a link with any packets of several connections and any messages, with and without valid authentication,
/// while the other end restarts. Checks that it never panics, forwards each packet that it holds once and in time, respects
/// the limit of retransmissions, sends messages that parse, and is bounded.
pub fn dproxy_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let config = any_config(&mut choices);
    let mut end = End {
        machine: DProxy::new(config),
        now: Instant::ZERO,
        held: BTreeMap::new(),
        replays: BTreeMap::new(),
        number: 0,
    };
    let mut name = 0;
    while !choices.is_over() {
        name += 1;
        match choices.byte() {
            0..40 => {
                let time = Duration::from_millis(u64::from(choices.byte()));
                end.pass(time);
            }
            40..110 => {
                let (ip, segment) = any_packet(&mut choices, Way::Out);
                end.replays.insert(name, 0);
                end.machine.pass_out(end.now, Packet::new(&ip, &segment), || name);
            }
            110..180 => {
                let (ip, segment) = any_packet(&mut choices, Way::In);
                let packet = Packet::new(&ip, &segment);
                if end.machine.pass_in(end.now, packet, || name) == Verdict::Delayed {
                    end.held.insert(name, end.now);
                }
            }
            180..190 => {
                let (ip, segment) = any_packet(&mut choices, Way::Out);
                end.machine.on_queue_drop::<Length>(Packet::new(&ip, &segment));
            }
            190..193 => end.machine.handle_peer_absent(end.now),
            193..196 => end.machine.handle_peer_present(end.now, [KEY; 2]),
            196..200 => {
                let bytes: Vec<u8> = (0..choices.byte() % 60).map(|_| choices.byte()).collect();
                end.machine.handle_datagram(end.now, PEER, &bytes);
            }
            how => end.hear(&mut choices, how),
        }
        end.drain();
        assert!(end.machine.connections() <= CONNECTIONS as usize && end.machine.waiting_packets() <= HELD);
        assert!(
            end.machine.cached() <= CACHED as usize
                && end.held.len() == end.machine.waiting_packets() as usize
        );
    }
    end.pass(PATIENCE);
    assert!(end.held.is_empty(), "packets wait for ever");
}

/// Machine, and the packets that it must release.
struct End {
    machine: DProxy<u32>,
    now: Instant,
    /// Packets that the machine holds, with the time since when.
    held: BTreeMap<u32, Instant>,
    /// Number of retransmissions of each packet.
    replays: BTreeMap<u32, u8>,
    number: u64,
}

impl End {
    /// Passes a message, mostly with valid authentication.
    fn hear(&mut self, choices: &mut Choices<'_>, how: u8) {
        self.number += u64::from(choices.byte() % 4);
        let goes_out = choices.byte().is_multiple_of(2);
        let port = port(choices);
        let [near, far] = hosts(port);
        let flow = if goes_out { [near, far] } else { [far, near] };
        let message = Message {
            number: self.number,
            flow: Flow { src: (flow[0], port), dst: (flow[1], port) },
            range: Range { seq: number(choices), len: choices.u16().max(1) },
            kind: choices.pick(&[
                MessageKind::Request,
                MessageKind::Request,
                MessageKind::NotCached,
                MessageKind::Tail,
            ]),
        };
        let sealed = match how {
            200..210 => Sealed { message, tag: [choices.byte(); 16] },
            _ => KEY.seal(PEER, message),
        };
        let from = if how == 255 { LOCAL } else { PEER };
        self.machine.handle_message(self.now, from, &sealed);
    }

    fn drain(&mut self) {
        let mut steps = 0;
        while let Some(does) = self.machine.poll_action() {
            steps += 1;
            assert!(steps < 10_000, "it does not stop");
            match does {
                DProxyAction::Forward(name) => {
                    let since = self.held.remove(&name).expect("it is held");
                    assert!(self.now.since(since) <= PATIENCE, "{name} waits too long");
                }
                DProxyAction::Retransmit(_, name) => {
                    let times = self.replays.get_mut(&name).expect("it has gone out");
                    *times += 1;
                    assert!(*times <= REPLAYS, "{name} goes again too often");
                }
                DProxyAction::Send { to, sealed, .. } => {
                    let mut bytes = Vec::new();
                    sealed.emit(&mut bytes);
                    assert_eq!((to, Sealed::parse(&bytes)), (PEER, Ok(sealed)));
                }
            }
        }
    }
}

impl Life for End {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn wake(&mut self) {
        self.machine.handle_timeout(self.now);
        self.drain();
    }
}

fn any_config(choices: &mut Choices<'_>) -> Config {
    let which = choices.byte();
    let is = |bit: u8| which >> bit & 1 == 1;
    let recovery = RecoveryConfig {
        max_timer_requests: NonZeroU8::new(1 + choices.byte() % 5).expect("at least 1"),
        timeout_rule: choices.pick(&[TimeoutRule::Successive, TimeoutRule::Cumulative, TimeoutRule::Off]),
        order_rule: if is(0) { OrderRule::Off } else { OrderRule::On },
        max_wait: PATIENCE,
        reordering_threshold: choices.byte() % 3,
        ..RecoveryConfig::default()
    };
    let caching =
        CacheConfig { packets_per_flow: 5, packets: CACHED, max_replays: REPLAYS, ..CacheConfig::default() };
    Config {
        cache: caching,
        recovery,
        request_expansion: if is(1) { RequestExpansion::Off } else { RequestExpansion::On },
        hole_delivery: if is(2) { HoleDelivery::OutOfOrder } else { HoleDelivery::InOrder },
        max_waiting_per_flow: 4,
        max_waiting: HELD,
        tail_probe_delay: is(3).then_some(Duration::from_millis(20)),
        overflow: if is(4) { QueueDropHandling::Replayed } else { QueueDropHandling::LeftToSender },
        limits: TableLimits {
            max_connections: CONNECTIONS,
            idle_timeout: Duration::from_secs(2),
            ..TableLimits::default()
        },
        ..Config::new(LOCAL, PEER, KEY)
    }
}

fn port(choices: &mut Choices<'_>) -> u16 {
    u16::from(1 + choices.byte() % 4)
}

/// Returns a number, mostly near the beginning of the numbers, where they wrap around.
fn number(choices: &mut Choices<'_>) -> Seq32 {
    match choices.byte() {
        255 => Seq32(choices.u32()),
        near => Seq32(0xffff_f000) + 500 * u32::from(near),
    }
}

/// Returns the hosts of the connections on this port.
fn hosts(port: u16) -> [IpAddr; 2] {
    HOSTS[usize::from(port % 2)]
}

fn any_packet(choices: &mut Choices<'_>, way: Way) -> (Header, Segment<Length>) {
    let port = port(choices);
    let [near, far] = hosts(port);
    let (src, dst) = if way == Way::Out { (near, far) } else { (far, near) };
    let flags = Flags(match choices.byte() {
        0..220 => Flags::ACK.0,
        220..230 => Flags::SYN.0,
        230..245 => (Flags::FIN | Flags::ACK).0,
        _ => choices.u16(),
    });
    let (seq, ack) = (number(choices), number(choices));
    let payload = Length(choices.pick(&[500, 500, 500, 500, 0, 1, 1300, 70_000]));
    let segment = Segment { src_port: port, dst_port: port, seq, ack, flags, payload, ..Segment::default() };
    (Header::new(src, dst, Protocol::Tcp), segment)
}

/// Drives an end of a link that numbers packets with packets, its own frames, and any other frames. Checks that it never
/// panics, releases each packet that it holds exactly once, sends only packets that it holds, comes to rest, and is bounded.
pub fn dproxy_opaque(data: &[u8]) {
    let mut choices = Choices(data);
    let which = choices.byte();
    let parity = NonZeroU8::new(choices.byte() % 5);
    let config = opaque::Config {
        recovery: RecoveryConfig {
            max_timer_requests: NonZeroU8::new(1 + which % 5).expect("at least 1"),
            max_wait: PATIENCE,
            reordering_threshold: which >> 3 & 1,
            ..RecoveryConfig::default()
        },
        order: if which & 64 == 0 { DeliveryMode::InOrder } else { DeliveryMode::Any },
        max_cached_packets: CACHED,
        max_replays: REPLAYS,
        tail_probe_delay: (which & 32 == 0).then_some(Duration::from_millis(1)),
        parity: parity
            .map_or(Parity::Off, |least| Parity::Adaptive { min_group: least, max_group: NonZeroU8::MAX }),
        ..opaque::Config::default()
    };
    let mut end = Numbered {
        machine: Opaque::new(config, 1),
        now: Instant::ZERO,
        held: BTreeMap::new(),
        sent: Vec::new(),
    };
    let mut next = 0;
    while !choices.is_over() {
        match choices.byte() {
            0..40 => {
                let time = Duration::from_millis(u64::from(choices.byte()));
                end.pass(time);
            }
            40..110 => {
                next += 1;
                *end.held.entry(next).or_insert(0) += 1;
                end.machine.send(end.now, next);
            }
            110..150 => {
                let back = usize::from(choices.byte()) + 1;
                if let Some(frame) = end.sent.len().checked_sub(back).map(|at| end.sent[at].clone()) {
                    end.take(frame);
                }
            }
            150..160 => end.machine.on_queue_drop(u32::from(choices.byte())),
            _ => {
                let frame = any_frame(&mut choices, &mut next);
                end.take(frame);
            }
        }
        end.drain();
        assert!(end.held.len() <= WINDOW_PACKETS + CACHED as usize, "it keeps {} packets", end.held.len());
    }
    end.pass(Duration::from_secs(5));
    assert!(end.held.is_empty(), "it keeps {:?} for ever", end.held);
    assert_eq!(end.machine.poll_timeout(), None);
}

struct Numbered {
    machine: Opaque<u32>,
    now: Instant,
    /// Number of references to each packet that the machine holds.
    held: BTreeMap<u32, u32>,
    sent: Vec<Frame<u32>>,
}

impl Numbered {
    /// Passes a frame, and with it one reference to each packet in it.
    fn take(&mut self, frame: Frame<u32>) {
        frame.packets().for_each(|packet| *self.held.entry(*packet).or_insert(0) += 1);
        self.machine.handle_frame(self.now, frame);
    }

    fn drain(&mut self) {
        let mut steps = 0;
        while let Some(does) = self.machine.poll_action() {
            steps += 1;
            assert!(steps < 10_000, "it does not stop");
            match does {
                opaque::OpaqueAction::Send(_, frame) => {
                    assert!(
                        frame.packets().all(|packet| self.held.contains_key(packet)),
                        "{frame:?} is gone"
                    );
                    self.sent.push(frame);
                }
                opaque::OpaqueAction::Deliver(packet)
                | opaque::OpaqueAction::ReportDrop(packet)
                | opaque::OpaqueAction::Release(packet) => {
                    let times = self.held.get_mut(&packet).expect("it is held");
                    *times -= 1;
                    if *times == 0 {
                        self.held.remove(&packet);
                    }
                }
            }
        }
    }
}

impl Life for Numbered {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn wake(&mut self) {
        self.machine.handle_timeout(self.now);
        self.drain();
    }
}

/// Returns a frame with new packets, mostly near the beginning of its numbers.
fn any_frame(choices: &mut Choices<'_>, next: &mut u32) -> Frame<u32> {
    let epoch = u16::from(choices.byte() % 4);
    let number = |choices: &mut Choices<'_>| match choices.byte() {
        255 => choices.u32(),
        254 => u32::MAX - u32::from(choices.byte()),
        near => u32::from(near),
    };
    let mut packet = || {
        *next += 1;
        *next
    };
    match choices.byte() % 8 {
        0..3 => {
            let sending = choices.pick(&[TransmissionKind::Original, TransmissionKind::Retransmission]);
            Frame::Data { epoch, number: number(choices), sending, packet: packet() }
        }
        3 => {
            let count = choices.byte() % 6;
            Frame::Parity { epoch, first: number(choices), of: (0..count).map(|_| packet()).collect() }
        }
        4 => Frame::Tail { epoch, last: number(choices) },
        5 => Frame::Report { epoch, next: number(choices) },
        kind => {
            let numbers: Vec<_> = (0..choices.byte() % 5).map(|_| number(choices)).collect();
            if kind == 6 { Frame::Gone { epoch, numbers } } else { Frame::Request { epoch, numbers } }
        }
    }
}
