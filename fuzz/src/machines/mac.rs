//! 802.11 MAC of one station among stations that follow no rules, on an arbitrary medium.
//!
//! Invariants:
//!
//! - No panic.
//! - Each MSDU has one fate, in the order in which they were given.
//! - As long as there is an MSDU, the station waits for an event.
//! - One frame at a time is transmitted.
//! - The radio clocks lose no time.
//! - Once the medium is silent, the station comes to rest.

use super::{Choices, Life};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq16, StateMachine};
use hopline_radio::mac::config::{
    AckPolicy, BackoffRange, EifsRule, FirstAccess, NavReset, Reservation, ResponseTimeout, Tap,
};
use hopline_radio::mac::{Config, Event, Mac, Msdu, RadioState, Reception, Signal};
use hopline_radio::rate::{Preamble, Rate};
use hopline_wire::dot11::{BlockAckAction, BlockAckPolicy, BlockAckSide, Frame, MacAddr};

const ME: MacAddr = MacAddr::of_node(NodeId(0));
const PEER: MacAddr = MacAddr::of_node(NodeId(1));
const OTHER: MacAddr = MacAddr::of_node(NodeId(2));

/// Longer than the longest lifetime of an MSDU on a silent medium: an NAV of 65 ms, then seven attempts, each of 3000 bytes
/// at 1 Mb/s after 1023 slots.
const LONGEST_LIFE: Duration = Duration::from_secs(1);

/// MAC of one station.
pub fn mac(data: &[u8]) {
    let mut choices = Choices(data);
    let mut station = Station::new(config(&mut choices), u64::from(choices.byte()));
    while !choices.is_over() {
        station.step(&mut choices);
        station.check();
    }
    station.signal(Signal::Carrier(RadioState::Idle));
    station.pass(LONGEST_LIFE);
    station.check();
    assert!(station.mac.is_ready(), "stuck in {:?}", station.mac.state());
    assert_eq!(station.due(), None);
}

struct Station {
    mac: Mac<u32>,
    now: Instant,
    transmit_end: Option<Instant>,
    carrier: RadioState,
    /// MSDUs given to the MAC so far, and those of them that are finished.
    taken: u32,
    finished: u32,
    /// Data frames that arrived and were not passed on yet.
    heard: u32,
}

impl Station {
    fn new(config: Config, run: u64) -> Self {
        let stream = RandomStream::new(1, run, NodeId(0), Purpose::Backoff);
        Self {
            mac: Mac::new(config, ME, stream),
            now: Instant::ZERO,
            transmit_end: None,
            carrier: RadioState::Idle,
            taken: 0,
            finished: 0,
            heard: 0,
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 16 {
            0 | 1 => self.send(choices),
            2..=5 => self.hear(Reception::Frame(frame(choices))),
            6 => self.hear(Reception::Errored),
            7..=9 => {
                let carriers = [RadioState::Idle, RadioState::Sensing, RadioState::Receiving];
                self.signal(Signal::Carrier(choices.pick(&carriers)));
            }
            10 => self.end_transmission(),
            11 => {
                let until = self.now + micros(choices.u16());
                self.signal(Signal::Captured { until });
            }
            12 | 13 => self.pass(micros(u16::from(choices.byte()) * 3)),
            14 => self.pass(micros(choices.u16())),
            _ => self.oversleep(micros(choices.u16())),
        }
    }

    fn send(&mut self, choices: &mut Choices<'_>) {
        let (len_bytes, to) = (u32::from(choices.u16()) % 3000, address(choices));
        if self.mac.is_ready() {
            self.mac.send(self.now, Msdu { body: self.taken, len_bytes, to });
            self.taken += 1;
            self.drain();
        }
    }

    fn hear(&mut self, reception: Reception<u32>) {
        self.heard += u32::from(matches!(reception, Reception::Frame(Frame::Data { .. })));
        self.mac.handle_packet(self.now, LinkId::ONLY, reception);
        self.drain();
    }

    fn signal(&mut self, signal: Signal) {
        if let Signal::Carrier(carrier) = signal {
            self.carrier = carrier;
        }
        self.mac.handle_signal(self.now, signal);
        self.drain();
    }

    fn end_transmission(&mut self) {
        self.transmit_end = None;
        self.signal(Signal::TransmitEnd);
    }

    /// Lets time pass without timers; calls the station once, at the end.
    fn oversleep(&mut self, time: Duration) {
        self.now += time;
        if self.transmit_end.is_some_and(|end| end <= self.now) {
            self.end_transmission();
        }
        self.mac.handle_timeout(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(transmission) = self.mac.poll_transmit(self.now) {
            assert_eq!(self.transmit_end, None, "one frame at a time");
            assert!(transmission.airtime > Duration::ZERO);
            self.transmit_end = Some(self.now + transmission.airtime);
        }
        while let Some(event) = self.mac.poll_event() {
            match event {
                Event::Sent(msdu) | Event::Failed(msdu) => {
                    assert_eq!(msdu.body, self.finished, "each MSDU has one fate, in order");
                    self.finished += 1;
                }
                Event::Deliver { to, .. } => {
                    assert!(to == ME || to.is_group());
                    self.heard = self.heard.checked_sub(1).expect("delivered once what arrived once");
                }
                Event::Overheard { to, .. } => {
                    assert!(to != ME && !to.is_group());
                    self.heard = self.heard.checked_sub(1).expect("overheard once what arrived once");
                }
                Event::Buffered { .. } | Event::DeliverBuffered { .. } => {
                    unreachable!("no policy here acknowledges blocks, so nothing is held back")
                }
            }
        }
        assert!(self.mac.is_drained());
    }

    fn check(&mut self) {
        self.heard = 0; // What the MAC keeps to itself now it never passes on.
        let in_service = u32::from(!self.mac.is_ready());
        assert_eq!(self.finished + in_service, self.taken, "an MSDU has no fate");
        let waits = self.due().is_some() || self.carrier != RadioState::Idle;
        assert!(in_service == 0 || waits, "stuck in {:?}", self.mac.state());
        let time = self.mac.airtime(self.now);
        let sum = time.transmitting + time.receiving + time.sensing + time.nav + time.idle;
        assert_eq!(sum, self.now.since(Instant::ZERO));
    }
}

impl Life for Station {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        let timer = self.mac.poll_timeout().map(|(at, _)| at);
        [timer, self.transmit_end].into_iter().flatten().min()
    }

    fn wake(&mut self) {
        if self.transmit_end.is_some_and(|end| end <= self.now) {
            self.end_transmission();
        } else {
            self.mac.handle_timeout(self.now);
            self.drain();
        }
    }
}

fn config(choices: &mut Choices<'_>) -> Config {
    let dot11b = Config { data_rate: Rate::Dsss2, ..Config::dot11b() };
    let presets = [dot11b, Config::dot11b(), Config::dot11a(), Config::ns2_wavelan(), Config::ns3_wavelan()];
    let mut config = presets[usize::from(choices.byte()) % presets.len()].clone();
    let choice = choices.u16();
    let changed = |bit: u16| choice >> bit & 1 != 0;
    if changed(0) {
        config.nav_reset = NavReset::AfterSilentRts;
    }
    if changed(1) {
        config.eifs = EifsRule::AsNav;
    }
    if changed(2) {
        config.response_timeout = ResponseTimeout::WholeResponse;
    }
    if changed(3) {
        config.reservation = Reservation::MediumIdle;
    }
    if changed(4) {
        config.rts_threshold_bytes = 500;
    }
    if changed(5) {
        config.ack_policy = AckPolicy::NoAck;
    }
    if changed(6) {
        config.tap = Tap::Promiscuous;
    }
    if changed(7) {
        config.backoff_range = BackoffRange::Exclusive;
    }
    if changed(8) {
        config.preamble = Preamble::Short;
    }
    let accesses = [FirstAccess::Immediate, FirstAccess::IdleOnArrival, FirstAccess::AlwaysBackoff];
    if let Some(&access) = accesses.get(usize::from(choice >> 9 & 3)) {
        config.first_access = access;
    }
    if changed(11) {
        (config.cw_min, config.short_retry_limit, config.long_retry_limit) = (1, 1, 1);
    }
    assert_eq!(config.validate(), Ok(()));
    config
}

fn frame(choices: &mut Choices<'_>) -> Frame<u32> {
    let kind = choices.byte();
    // Mostly short reservations, sometimes any.
    let duration_us = if kind & 4 == 0 { u16::from(choices.byte()) * 8 } else { choices.u16() };
    let (ra, ta) = (address(choices), address(choices));
    if kind & 0xc0 == 0xc0 {
        let (sequence, retry) = (Seq16(u16::from(choices.byte()) % 3), kind & 8 != 0);
        return Frame::Action { duration_us, ra, ta, sequence, retry, action: action(choices) };
    }
    match kind % 4 {
        0 => Frame::Rts { duration_us, ra, ta },
        1 => Frame::Cts { duration_us, ra },
        2 => Frame::Ack { duration_us, ra },
        _ => Frame::Data {
            duration_us,
            ra,
            ta,
            sequence: Seq16(u16::from(choices.byte()) % 3),
            retry: kind & 8 != 0,
            body: u32::MAX,
        },
    }
}

fn action(choices: &mut Choices<'_>) -> BlockAckAction {
    let (dialog_token, kind, tid) = (choices.byte(), BlockAckPolicy::Immediate, choices.byte() % 16);
    let (buffer_size, timeout_tu, status) = (choices.u16() % 1024, choices.u16(), choices.u16());
    let start = Seq16(status % 4096);
    choices.pick(&[
        BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start },
        BlockAckAction::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu },
        BlockAckAction::Delba { side: BlockAckSide::Originator, tid, reason: status },
    ])
}

fn address(choices: &mut Choices<'_>) -> MacAddr {
    choices.pick(&[PEER, ME, OTHER, MacAddr::BROADCAST])
}

fn micros(n: u16) -> Duration {
    Duration::from_micros(u64::from(n))
}
