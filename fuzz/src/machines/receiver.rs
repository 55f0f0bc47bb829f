//! Receiver of a radio with arbitrary signals that begin and end, and own transmissions in between.
//!
//! Invariants:
//!
//! - No panic.
//! - Probabilities are between 0 and 1.
//! - A decoded frame was strong enough, began and ended while the station listened, and had no interference that capture
//!   forbids.
//! - A frame without interference is decoded.
//! - After the last signal the medium is idle.

use super::{Choices, Life};
use hopline_core::{Duration, Instant};
use hopline_radio::mac::RadioState;
use hopline_radio::phy::propagation::RadioParams;
use hopline_radio::phy::reception::{Arrival, Receiver, ReceptionModel, ReceptionResult, Thresholds};
use hopline_radio::rate::Rate;

/// Most simultaneous signals of an input.
const MOST_SIGNALS: usize = 32;

/// Receiver of one radio.
pub fn receiver(data: &[u8]) {
    let mut choices = Choices(data);
    let models =
        [ReceptionModel::LockOnSensed, ReceptionModel::LockOnDecodable, ReceptionModel::CumulativeSinr];
    let mut radio = Radio::new(choices.pick(&models));
    while !choices.is_over() {
        radio.step(&mut choices);
        radio.check();
    }
    radio.receiver.transmit_end();
    radio.listening = true;
    radio.pass(Duration::from_secs(1));
    radio.check();
    assert_eq!(radio.receiver.activity(), RadioState::Idle);
}

/// Signal on the medium.
#[derive(Clone, Copy, Debug)]
struct Signal {
    id: u32,
    power_w: f64,
    end: Instant,
    /// `true` if the signal is strong enough, and nothing since its begin forbids decoding it.
    clean: bool,
    /// `true` if no other signal was on the medium since its begin.
    alone: bool,
}

struct Radio {
    model: ReceptionModel,
    params: RadioParams,
    thresholds: Thresholds,
    receiver: Receiver,
    now: Instant,
    listening: bool,
    air: Vec<Signal>,
}

impl Radio {
    fn new(model: ReceptionModel) -> Self {
        let params = RadioParams::ns2_wavelan();
        Self {
            model,
            params,
            thresholds: Thresholds::new(model, &params),
            receiver: Receiver::default(),
            now: Instant::ZERO,
            listening: true,
            air: Vec::new(),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0..=2 if self.air.len() < MOST_SIGNALS => self.begin(choices),
            3 => self.pass(Duration::from_micros(u64::from(choices.u16()))),
            4 => {
                let next = self.due().unwrap_or(self.now);
                self.pass(next.since(self.now));
            }
            5 => {
                self.receiver.transmit_begin();
                self.listening = false;
                self.air.iter_mut().for_each(|signal| signal.clean = false);
            }
            6 => {
                self.receiver.transmit_end();
                self.listening = true;
            }
            _ => {
                let never_begun = 1000 + u32::from(choices.byte());
                assert_eq!(
                    self.receiver.signal_end(&self.thresholds, self.now, never_begun),
                    ReceptionResult::NotLocked
                );
            }
        }
    }

    fn begin(&mut self, choices: &mut Choices<'_>) {
        // From the carrier-sense threshold up, in steps of 0.5 dB: over 100 dB.
        let power_w = (0..choices.byte()).fold(self.params.cs_threshold_w, |power_w, _| power_w * 1.122);
        let id = (0..).find(|id| self.air.iter().all(|s| s.id != *id)).expect("few are in the air");
        let end = self.now + Duration::from_micros(u64::from(choices.u16()));
        let (rate, bits) = (choices.pick(&Rate::ALL), u32::from(choices.u16()) << (choices.byte() % 17));
        let ratio = self.params.capture_ratio();
        let drowned = self.model == ReceptionModel::LockOnDecodable
            && self.air.iter().any(|other| power_w < ratio * other.power_w);
        for other in &mut self.air {
            other.alone = false;
            // With cumulative interference the error rate decides.
            other.clean &= self.model == ReceptionModel::CumulativeSinr || other.power_w >= ratio * power_w;
        }
        let clean = power_w >= self.params.rx_threshold_w && self.listening && !drowned;
        let alone = self.air.is_empty();
        self.air.push(Signal { id, power_w, end, clean, alone });
        let arrival = Arrival { id, power_w, end, rate, bits };
        let masked = self.receiver.signal_begin(&self.thresholds, self.now, arrival);
        if let Some(until) = masked {
            assert_eq!((self.model, until), (ReceptionModel::LockOnSensed, end));
        }
    }

    fn first_end(&self) -> Option<usize> {
        (0..self.air.len()).min_by_key(|&at| self.air[at].end)
    }

    fn judge(&self, signal: Signal, verdict: ReceptionResult) {
        let pairwise = self.model != ReceptionModel::CumulativeSinr;
        match verdict {
            ReceptionResult::Decodable { probability } => {
                assert!(signal.clean && self.listening, "{signal:?} cannot be decoded");
                assert!((0.0..=1.0).contains(&probability), "{probability}");
                assert!(probability == 1.0 || !pairwise);
            }
            ReceptionResult::NotLocked | ReceptionResult::Damaged => {
                let perfect = signal.clean && signal.alone && self.listening;
                assert!(!perfect, "{signal:?} was alone and is {verdict:?}");
            }
        }
    }

    fn check(&self) {
        let activity = self.receiver.activity();
        match activity {
            RadioState::Idle => {
                // ns-2 forgets a masked frame: the MAC learns only its end.
                assert!(self.air.is_empty() || self.model == ReceptionModel::LockOnSensed);
            }
            RadioState::Sensing => assert!(!self.air.is_empty()),
            RadioState::Receiving => assert!(!self.air.is_empty() && self.listening),
            RadioState::Transmitting => panic!("own transmissions are none of its business"),
        }
    }
}

/// Timers are the ends of signals.
impl Life for Radio {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.first_end().map(|at| self.air[at].end)
    }

    fn wake(&mut self) {
        let at = self.first_end().expect("woken when a signal ends");
        let signal = self.air.remove(at);
        let verdict = self.receiver.signal_end(&self.thresholds, self.now, signal.id);
        self.judge(signal, verdict);
    }
}
