//! Whatever arrives, and whenever: no panic, no MSDU without a fate, no time lost by the clocks.

use super::airtime::sum;
use super::*;
use crate::mac::config::{
    AckPolicy, BlockAckSetup, EifsRule, FirstAccess, NavReset, Reservation, ResponseTimeout,
};
use hopline_wire::dot11::{Bitmap, BlockAckAction, BlockAckPolicy, BlockAckSide, QosAckPolicy};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        len_bytes: u32,
        to: MacAddr,
    },
    Receive(Reception<u32>),
    Signal(Signal),
    /// A frame masks another from now on, for this many µs.
    Capture(u64),
    /// Time passes; the station is woken on time, or once at the end.
    Pass(u64),
    Oversleep(u64),
}

fn address() -> impl Strategy<Value = MacAddr> {
    prop_oneof![3 => Just(ME), 2 => Just(PEER), 1 => Just(OTHER), 1 => Just(MacAddr::BROADCAST)]
}

/// Mostly what the station itself uses, and any other, wider than 12 bits too.
fn number() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0..3u16, 2 => 0..100u16, 1 => any::<u16>()]
}

fn frame() -> impl Strategy<Value = Frame<u32>> {
    (0..8, any::<u16>(), address(), address(), number(), any::<bool>(), any::<[u8; 8]>()).prop_map(
        |(kind, duration_us, ra, ta, sequence, retry, bits)| match kind {
            0 => Frame::Rts { duration_us, ra, ta },
            1 => Frame::Cts { duration_us, ra },
            2 => Frame::Ack { duration_us, ra },
            3 => {
                let ack = if bits[0] == 0 { QosAckPolicy::Normal } else { QosAckPolicy::BlockAck };
                let tid = bits[1] / 200;
                Frame::QosData { duration_us, ra, ta, sequence: Seq16(sequence), retry, tid, ack, body: 7 }
            }
            4 => Frame::BlockAckReq { duration_us, ra, ta, tid: bits[1] / 200, start: Seq16(sequence) },
            5 => {
                let (start, bitmap) = (Seq16(sequence), Bitmap(bits));
                Frame::BlockAck { duration_us, ra, ta, tid: 0, start, bitmap }
            }
            6 => {
                let action = action(bits, Seq16(sequence));
                Frame::Action { duration_us, ra, ta, sequence: Seq16(sequence), retry, action }
            }
            _ => Frame::Data { duration_us, ra, ta, sequence: Seq16(sequence), retry, body: 7 },
        },
    )
}

/// Mostly of the traffic identifier, the kind and the dialog tokens in use, and in agreement.
fn action([what, token, odd, buffer, timeout, ..]: [u8; 8], start: Seq16) -> BlockAckAction {
    let (dialog_token, tid) = (token % 4, odd / 200);
    let kind = if odd % 8 == 0 { BlockAckPolicy::Delayed } else { BlockAckPolicy::Immediate };
    let side = if odd % 2 == 0 { BlockAckSide::Recipient } else { BlockAckSide::Originator };
    let (buffer_size, timeout_tu) = (u16::from(buffer) * 2, u16::from(timeout));
    let status = u16::from(odd / 128);
    match what % 3 {
        0 => BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start },
        1 => {
            BlockAckAction::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu }
        }
        _ => BlockAckAction::Delba { side, tid, reason: start.0 },
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3000u32, address()).prop_map(|(len_bytes, to)| Step::Send { len_bytes, to }),
        6 => frame().prop_map(|f| Step::Receive(Reception::Frame(f))),
        1 => Just(Step::Receive(Reception::Errored)),
        2 => Just(Step::Signal(Signal::Carrier(RadioState::Idle))),
        2 => Just(Step::Signal(Signal::Carrier(RadioState::Sensing))),
        2 => Just(Step::Signal(Signal::Carrier(RadioState::Receiving))),
        1 => Just(Step::Signal(Signal::TransmitEnd)),
        1 => (0..10_000u64).prop_map(Step::Capture),
        9 => (0..700u64).prop_map(Step::Pass),
        3 => (0..20_000u64).prop_map(Step::Pass),
        1 => (0..5000u64).prop_map(Step::Oversleep),
    ]
}

fn policy() -> impl Strategy<Value = AckPolicy> {
    let limit = prop::option::of((0..40_000u64).prop_map(micros));
    let blocks =
        (1..=64u8, limit).prop_map(|(block_size, txop_limit)| AckPolicy::BlockAck { block_size, txop_limit });
    prop_oneof![2 => Just(AckPolicy::Normal), 1 => Just(AckPolicy::NoAck), 3 => blocks]
}

fn config() -> impl Strategy<Value = Config> {
    let presets = prop_oneof![Just(dot11b()), Just(Config::dot11a()), Just(Config::ns2_wavelan())];
    let timeout = prop::option::of((1..100_000u64).prop_map(micros));
    (presets, any::<[bool; 7]>(), policy(), timeout).prop_map(
        |(preset, [nav, eifs, wait, reserve, rts, ns3, addba], ack_policy, block_ack_timeout)| Config {
            first_access: if ns3 { FirstAccess::IdleOnArrival } else { preset.first_access },
            nav_reset: if nav { NavReset::AfterSilentRts } else { preset.nav_reset },
            eifs: if eifs { EifsRule::AsNav } else { EifsRule::Standard },
            response_timeout: if wait { ResponseTimeout::WholeResponse } else { ResponseTimeout::Standard },
            reservation: if reserve { Reservation::MediumIdle } else { Reservation::Standard },
            rts_threshold_bytes: if rts { 500 } else { preset.rts_threshold_bytes },
            ack_policy,
            block_ack_timeout,
            block_ack_setup: if addba { BlockAckSetup::Addba } else { BlockAckSetup::None },
            ..preset
        },
    )
}

struct Harness {
    station: Station,
    accepted: u32,
    outcomes: Vec<u32>,
    /// Packets that wait in the MAC for earlier ones.
    buffered: usize,
}

impl Harness {
    fn apply(&mut self, step: Step) {
        let station = &mut self.station;
        let now = station.now;
        match step {
            Step::Send { len_bytes, to } => {
                if station.mac.is_ready() {
                    station.mac.send(now, Msdu { body: self.accepted, len_bytes, to });
                    self.accepted += 1;
                }
            }
            Step::Receive(reception) => station.mac.handle_packet(now, LinkId::ONLY, reception),
            Step::Signal(signal) => {
                if signal == Signal::TransmitEnd {
                    station.transmit_end = None;
                }
                station.mac.handle_signal(now, signal);
            }
            Step::Capture(span) => {
                station.mac.handle_signal(now, Signal::Captured { until: now + micros(span) })
            }
            Step::Pass(span) => {
                station.run(now + micros(span));
            }
            Step::Oversleep(span) => {
                station.now = now + micros(span);
                if station.transmit_end.is_some_and(|end| end <= station.now) {
                    station.transmit_end = None;
                    station.mac.handle_signal(station.now, Signal::TransmitEnd);
                    station.drain();
                }
                station.mac.handle_timeout(station.now);
            }
        }
        station.drain();
        self.check();
    }

    /// A station that has something to send has something to wait for.
    fn check(&mut self) {
        let Self { station, outcomes: fates, accepted: taken, buffered: held } = self;
        for event in station.events.drain(..) {
            match event {
                Event::Sent(msdu) | Event::Failed(msdu) => fates.push(msdu.body),
                Event::Buffered { .. } => *held += 1,
                Event::DeliverBuffered { .. } => *held -= 1,
                Event::Deliver { .. } | Event::Overheard { .. } => {}
            }
        }
        assert!(*held <= 3 * 64, "three neighbours, a window each");
        station.sent.clear();
        let in_service = *taken as usize - fates.len();
        if station.mac.block_ack.is_none() {
            assert_eq!(in_service, usize::from(!station.mac.is_ready()));
            assert!(fates.is_sorted(), "MSDUs meet their fates in order");
        }
        let waits = station.next_own().is_some() || station.mac.carrier != RadioState::Idle;
        assert!(in_service == 0 || waits, "stuck in {:?}", station.mac.state());
        assert_eq!(sum(&station.mac.airtime(station.now)), station.now.since(Instant::ZERO));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_msdu_has_an_outcome_once_the_medium_is_idle(
        config in config(),
        run in any::<u64>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let stream = RandomStream::new(2, run, NodeId(0), Purpose::Backoff);
        let mac = Mac::new(config, ME, stream);
        let mut torment =
            Harness { station: Station { mac, ..Station::new(dot11b()) }, accepted: 0, outcomes: Vec::new(), buffered: 0 };
        for step in steps {
            torment.apply(step);
        }
        torment.apply(Step::Signal(Signal::Carrier(RadioState::Idle)));
        // The longest life: 7 RTS without an answer, each followed by 1023 slots, after an NAV of 65 ms.
        // A block of 64 and one MSDU more may each need that, if its frames go one at a time.
        // So may a request for an agreement and its refusals, and the answers to 64 others.
        torment.apply(Step::Pass(200_000_000));
        prop_assert!(torment.station.mac.is_ready());
        torment.outcomes.sort_unstable();
        prop_assert_eq!(&torment.outcomes, &(0..torment.accepted).collect::<Vec<_>>(), "each MSDU has one fate");
        prop_assert_eq!(torment.station.next_own(), None);
    }
}
