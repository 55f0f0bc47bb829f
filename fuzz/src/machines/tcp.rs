//! TCP endpoint.

use super::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, Seq32, StateMachine};
use hopline_transport::Signal;
use hopline_transport::pacing;
use hopline_transport::tcp::{
    AtcpConfig, BusConfig, Config, DoorConfig, DsackReports, EcnMode, ElfnConfig, Endpoint, FixedRtoConfig,
    InFlightAfterFreeze, LateRule, LossDetection, Ports, RouteFeedback, RouteReturn, SpuriousDetection,
    State, TcpFConfig,
};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::{
    DoorFeatures, DoorOption, DoorReport, Flags, Options, SackBlock, Segment, Timestamps,
};

const PORTS: Ports = Ports { local: 7, remote: 9 };
const RECEIVE_BUFFER: u32 = 20_000;

/// Drives a TCP endpoint with any sequence of segments, timeouts and calls. Checks that it never panics, keeps its memory
/// within its buffers, and has a timer set while data are in flight.
pub fn tcp_endpoint(data: &[u8]) {
    let mut choices = Choices(data);
    let which = choices.byte();
    let mut config = match which % 16 {
        0 => Config::modern(),
        1 => Config::modern().with_newreno(),
        2 => Config::modern().with_reno(),
        3 => Config::ns2_235(),
        4 => Config::ns2_2001().with_reno(),
        5 => Config::ns2_235().with_sack(),
        6 => Config::modern().with_adaptive_pacing(pacing::Config::AUTHORS),
        7 => Config::ns2_235().with_adaptive_pacing(pacing::Config::AUTHORS),
        8 => Config::modern().with_rack().with_dsack(DsackReports::On).with_spurious(SpuriousDetection::ALL),
        9 => Config::linux(),
        10 => Config::linux().with_ecn(EcnMode::Request),
        11 => Config::linux().with_ecn(EcnMode::Request).with_rack().with_dsack(DsackReports::On),
        12 => Config::linux().with_newreno().with_ecn(EcnMode::Request),
        13 => Config::modern().with_reno().with_cubic(),
        14 => Config::modern().with_spurious(SpuriousDetection::ALL).with_newreno(),
        _ => Config::ns2_235().with_sack().with_cubic(),
    };
    if which & 8 != 0 && config.loss_detection() == LossDetection::DupAcks {
        config = config.with_feedback(any_feedback(which / 16));
    } else {
        config = config.with_door(any_door(which / 16));
    }
    config = config.with_receive_buffer(RECEIVE_BUFFER).with_send_buffer(Some(50_000));
    let iss = Seq32(choices.u32());
    let mut endpoint = Endpoint::<Bytes>::new(config, PORTS, iss).expect("presets are valid");
    let mut peer = Peer { endpoint_next: iss, own: Seq32(choices.u32()) };
    let mut now = Instant::ZERO;
    while !choices.is_over() {
        operate(&mut endpoint, &mut choices, &mut now, &mut peer);
        drain(&mut endpoint, now, &mut peer);
        check(&endpoint);
    }
}

/// Returns `None` for 0, as for inputs without TCP-DOOR; else each kind of detection and response.
fn any_door(which: u8) -> Option<DoorConfig> {
    let choices = which.checked_sub(1)?;
    let door = DoorConfig::study_settings()
        .nth(usize::from(choices) * 7 % 56)?
        .with_feedback_acks(1 + choices % 3)
        .with_late(
            [LateRule::OncePerRouteChange, LateRule::Each, LateRule::AfterPrevious][usize::from(choices) % 3],
        );
    Some(door)
}

/// Returns no feedback for 0; else feedback with signals of the network layer.
fn any_feedback(which: u8) -> RouteFeedback {
    let told_elfn = ElfnConfig::PAPER
        .with_route_return(RouteReturn::ByNotification)
        .with_in_flight(InFlightAfterFreeze::Retransmitted);
    match which {
        0 => RouteFeedback::None,
        1..3 => RouteFeedback::FixedRto(FixedRtoConfig::PAPER),
        3..6 => RouteFeedback::TcpF(TcpFConfig::PAPER),
        6..8 => RouteFeedback::Elfn(ElfnConfig::PAPER),
        8..10 => RouteFeedback::Elfn(told_elfn),
        10..13 => RouteFeedback::Atcp(AtcpConfig::PAPER),
        _ => RouteFeedback::Bus(BusConfig::PAPER),
    }
}

/// State that a plausible peer knows.
struct Peer {
    /// Sequence number after the highest that the endpoint sent.
    endpoint_next: Seq32,
    /// Next sequence number that the endpoint expects.
    own: Seq32,
}

fn operate(endpoint: &mut Endpoint<Bytes>, choices: &mut Choices<'_>, now: &mut Instant, peer: &mut Peer) {
    match choices.byte() % 16 {
        0 => {
            let _ = endpoint.connect(*now);
        }
        1 => {
            let _ = endpoint.listen();
        }
        2 => {
            let len = usize::from(choices.byte()) * 64;
            let _ = endpoint.send(*now, Bytes::from(vec![0; len]));
        }
        3 => {
            let _ = endpoint.recv();
        }
        4 if choices.byte() < 32 => {
            let _ = endpoint.close(*now);
        }
        5 if choices.byte() < 8 => endpoint.abort(*now),
        6 | 7 => {
            *now += Duration::from_millis(u64::from(choices.byte()) * u64::from(choices.byte()));
            endpoint.handle_timeout(*now);
        }
        9 if endpoint.config().feedback() != RouteFeedback::None => {
            let lost = choices.byte() < 160;
            endpoint.handle_signal(*now, if lost { Signal::RouteLost } else { Signal::RouteFound });
        }
        8 => {
            if let Some((at, _)) = endpoint.poll_timeout() {
                *now = at.max(*now);
                endpoint.handle_timeout(*now);
            }
        }
        _ => {
            let segment = any_segment(choices, peer);
            endpoint.handle_packet(*now, LinkId::ONLY, segment);
        }
    }
}

/// Returns a segment near the one that the endpoint expects, or anywhere.
fn any_segment(choices: &mut Choices<'_>, peer: &Peer) -> Segment<Bytes> {
    let near = |choices: &mut Choices<'_>, base: Seq32| match choices.byte() {
        0..160 => base,
        160..240 => base + u32::from(choices.byte()).wrapping_mul(100).wrapping_sub(6_000),
        _ => Seq32(choices.u32()),
    };
    let seq = near(choices, peer.own);
    let ack = near(choices, peer.endpoint_next);
    let flags = Flags(match choices.byte() {
        0..150 => Flags::ACK.0,
        150..180 => Flags::SYN.0,
        180..200 => (Flags::SYN | Flags::ACK).0,
        200..215 => (Flags::FIN | Flags::ACK).0,
        _ => choices.u16(),
    });
    let len = match choices.byte() {
        0..128 => 0,
        128..250 => usize::from(choices.byte()) * 6,
        _ => 40_000,
    };
    let window = choices.u32() as u16;
    let options = any_options(choices, ack);
    let ecn = if flags.0 & 0x40 == 0 { Ecn::NotCapable } else { Ecn::CongestionExperienced };
    Segment {
        src_port: PORTS.remote,
        dst_port: PORTS.local,
        seq,
        ack,
        flags,
        window,
        urgent: 0,
        options,
        ecn,
        payload: Bytes::from(vec![0; len]),
    }
}

fn any_options(choices: &mut Choices<'_>, ack: Seq32) -> Options {
    let mut options = Options::default();
    let which = choices.byte();
    if which & 1 != 0 {
        options.mss = Some(choices.u32() as u16);
    }
    if which & 2 != 0 {
        options.window_scale = Some(choices.byte());
    }
    options.sack_permitted = which & 4 != 0;
    if which & 8 != 0 {
        options.timestamps = Some(Timestamps { value: choices.u32(), echo: choices.u32() });
    }
    if which & 16 != 0 {
        options.door = Some(any_door_option(choices));
    }
    for _ in 0..which >> 5 {
        let left = ack + u32::from(choices.byte()) * 64;
        let block = SackBlock { left, right: left + u32::from(choices.byte()) * 16 };
        options.sack.push(block);
    }
    options
}

fn any_door_option(choices: &mut Choices<'_>) -> DoorOption {
    let which = choices.byte();
    let has = |bit: u8| which & bit != 0;
    match which >> 6 {
        0 => DoorOption::Offer(DoorFeatures { adsn: has(1), tpsn: has(2), feedback: has(4) }),
        1 if has(8) => DoorOption::Malformed,
        _ => DoorOption::Report(DoorReport {
            adsn: has(1).then(|| choices.byte()),
            tpsn: has(2).then(|| choices.u32() as u16),
            out_of_order: has(4),
        }),
    }
}

fn drain(endpoint: &mut Endpoint<Bytes>, now: Instant, peer: &mut Peer) {
    let mut sent = 0;
    while let Some(segment) = endpoint.poll_transmit(now) {
        peer.endpoint_next = peer.endpoint_next.max(segment.seq_end());
        if segment.flags.contains(Flags::ACK) {
            peer.own = segment.ack;
        }
        sent += 1;
        assert!(sent < 20_000, "the endpoint does not stop sending");
    }
    while endpoint.poll_event().is_some() {}
}

fn check(endpoint: &Endpoint<Bytes>) {
    // Rounding of a scaled window, and one byte for a FIN.
    let slack = 1 << 14;
    assert!(
        endpoint.received_unread() <= u64::from(RECEIVE_BUFFER) + slack,
        "more kept than the buffer holds"
    );
    let open = !matches!(endpoint.state(), State::Closed | State::Listen | State::TimeWait);
    if open && endpoint.flight_size() > 0 {
        assert!(endpoint.poll_timeout().is_some(), "data in flight and no timer set");
    }
}
