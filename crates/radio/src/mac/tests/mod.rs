//! Timed dialogues with one station, and cells of several. Times are in µs, and every instant is asserted exactly.

mod access;
mod airtime;
mod bianchi;
mod block_ack;
mod burst;
mod cell;
mod exchange;
mod hostile;
mod lifetime;
mod nav;
mod retry;
mod saturation;
mod setup;

use super::config::{BackoffRange, Config};
use super::{Event, Mac, Msdu, RadioState, Reception, Signal, Transmission};
use crate::rate::Rate;
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq16, StateMachine};
use hopline_wire::dot11::{Frame, MacAddr};
use std::collections::VecDeque;

const ME: MacAddr = MacAddr::of_node(NodeId(0));
const PEER: MacAddr = MacAddr::of_node(NodeId(1));
const OTHER: MacAddr = MacAddr::of_node(NodeId(2));

/// The airtime of RTS, and of CTS and ACK, at 1 Mb/s with the long preamble.
const RTS_US: u64 = 352;
const CTS_US: u64 = 304;
/// The airtime of [`packet`]'s frame at 2 Mb/s.
const DATA_US: u64 = 2192;

/// 802.11b with data at 2 Mb/s, so that frames take whole microseconds.
fn dot11b() -> Config {
    Config { data_rate: Rate::Dsss2, ..Config::dot11b() }
}

fn dot11b_with_rts() -> Config {
    Config { rts_threshold_bytes: 0, ..dot11b() }
}

/// Returns a packet that makes a frame of 500 bytes under [`dot11b`].
fn packet(body: u32) -> Msdu<u32> {
    Msdu { body, len_bytes: 464, to: PEER }
}

fn us(micros: u64) -> Instant {
    Instant::from_nanos(1_000 * micros)
}

fn rts(ta: MacAddr, ra: MacAddr, duration_us: u16) -> Frame<u32> {
    Frame::Rts { duration_us, ra, ta }
}

fn cts(ra: MacAddr, duration_us: u16) -> Frame<u32> {
    Frame::Cts { duration_us, ra }
}

fn ack(ra: MacAddr) -> Frame<u32> {
    Frame::Ack { duration_us: 0, ra }
}

/// A first transmission, numbered as its body, that reserves the ACK at 1 Mb/s.
fn data(ta: MacAddr, ra: MacAddr, body: u32) -> Frame<u32> {
    let sequence = Seq16(body as u16);
    Frame::Data { duration_us: 314, ra, ta, sequence, retry: false, body }
}

fn as_retry(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Data { duration_us, ra, ta, sequence, body, .. } => {
            Frame::Data { duration_us, ra, ta, sequence, retry: true, body }
        }
        other => other,
    }
}

/// Returns a stream that draws these first backoffs: pairs of contention window and slots.
fn stream_drawing(range: BackoffRange, draws: &[(u16, u32)]) -> RandomStream {
    let extra = u32::from(range == BackoffRange::Inclusive);
    (0..)
        .map(|run| RandomStream::new(802, run, NodeId(0), Purpose::Backoff))
        .find(|stream| {
            let mut dice = stream.clone();
            draws.iter().all(|&(cw, slots)| dice.below(u32::from(cw) + extra) == slots)
        })
        .expect("some run draws them")
}

/// A station, and the test as everything around it.
struct Station {
    mac: Mac<u32>,
    now: Instant,
    transmit_end: Option<Instant>,
    sent: VecDeque<(Instant, Transmission<u32>)>,
    events: VecDeque<Event<u32>>,
}

impl Station {
    /// Creates a station with arbitrary backoffs.
    fn new(config: Config) -> Self {
        Self::with_backoffs(config, &[])
    }

    /// Creates a station that draws these first backoffs: pairs of contention window and slots.
    fn with_backoffs(config: Config, draws: &[(u16, u32)]) -> Self {
        let stream = stream_drawing(config.backoff_range, draws);
        Self {
            mac: Mac::new(config, ME, stream),
            now: Instant::ZERO,
            transmit_end: None,
            sent: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn next_own(&self) -> Option<Instant> {
        let timer = self.mac.poll_timeout().map(|(at, _)| at);
        [timer, self.transmit_end].into_iter().flatten().min()
    }

    fn step(&mut self, at: Instant) {
        self.now = self.now.max(at);
        if self.transmit_end.is_some_and(|end| end <= at) {
            self.transmit_end = None;
            self.mac.handle_signal(self.now, Signal::TransmitEnd);
        } else {
            self.mac.handle_timeout(self.now);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(transmission) = self.mac.poll_transmit(self.now) {
            assert_eq!(self.transmit_end, None, "one frame at a time");
            self.transmit_end = Some(self.now + transmission.airtime);
            self.sent.push_back((self.now, transmission));
        }
        while let Some(event) = self.mac.poll_event() {
            self.events.push_back(event);
        }
    }

    /// Runs the station on its own up to and including `at`.
    fn run(&mut self, at: Instant) -> &mut Self {
        while let Some(next) = self.next_own().filter(|&next| next <= at) {
            self.step(next);
        }
        self.now = self.now.max(at);
        self
    }

    /// Runs the station on its own up to but excluding `at`, which becomes the present.
    fn run_before(&mut self, at: Instant) -> &mut Self {
        while let Some(next) = self.next_own().filter(|&next| next < at) {
            self.step(next);
        }
        self.now = at;
        self
    }

    fn send(&mut self, at_us: u64, msdu: Msdu<u32>) -> &mut Self {
        self.run(us(at_us));
        self.mac.send(self.now, msdu);
        self.drain();
        self
    }

    /// The carrier changes; what the station itself had planned for this instant comes after.
    fn carrier(&mut self, at_us: u64, carrier: RadioState) -> &mut Self {
        self.run_before(us(at_us));
        self.signal(Signal::Carrier(carrier))
    }

    fn signal(&mut self, signal: Signal) -> &mut Self {
        self.mac.handle_signal(self.now, signal);
        self.drain();
        self
    }

    fn receive(&mut self, at_us: u64, reception: Reception<u32>) -> &mut Self {
        self.run_before(us(at_us));
        self.mac.handle_packet(self.now, LinkId::ONLY, reception);
        self.drain();
        self
    }

    /// A frame arrives intact; it is in the air from one instant to the other.
    fn receive_frame(&mut self, from_us: u64, until_us: u64, frame: Frame<u32>) -> &mut Self {
        self.carrier(from_us, RadioState::Receiving);
        self.receive(until_us, Reception::Frame(frame));
        self.carrier(until_us, RadioState::Idle)
    }

    /// A frame arrives that cannot be decoded.
    fn receive_damaged(&mut self, from_us: u64, until_us: u64) -> &mut Self {
        self.carrier(from_us, RadioState::Receiving);
        self.receive(until_us, Reception::Errored);
        self.carrier(until_us, RadioState::Idle)
    }

    /// Energy that is no frame.
    fn sense_energy(&mut self, from_us: u64, until_us: u64) -> &mut Self {
        self.carrier(from_us, RadioState::Sensing);
        self.carrier(until_us, RadioState::Idle)
    }

    /// The next frame that the station sends, and when.
    fn next_sent(&mut self) -> (Instant, Transmission<u32>) {
        while self.sent.is_empty() {
            let next = self.next_own().expect("the station means to send something");
            self.step(next);
        }
        self.sent.pop_front().expect("not empty")
    }

    /// The next frame that the station sends is this one, at this instant.
    #[track_caller]
    fn expect_frame(&mut self, at_us: u64, frame: Frame<u32>) -> &mut Self {
        let (at, transmission) = self.next_sent();
        assert_eq!((at, transmission.frame), (us(at_us), frame));
        self
    }

    /// The station has sent nothing unexpected and sends nothing up to `until_us`.
    #[track_caller]
    fn expect_silence_until(&mut self, until_us: u64) -> &mut Self {
        self.run(us(until_us));
        assert_eq!(self.sent.front(), None);
        self
    }

    #[track_caller]
    fn expect_event(&mut self, event: Event<u32>) -> &mut Self {
        assert_eq!(self.events.pop_front(), Some(event));
        self
    }

    #[track_caller]
    fn expect_no_event(&mut self) -> &mut Self {
        assert_eq!(self.events.front(), None);
        self
    }
}

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}
