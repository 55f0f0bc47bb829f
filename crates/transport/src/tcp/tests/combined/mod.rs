//! Schemes beside one another. What each does alone is told in its own file.

mod door;
mod invalid_combinations;
mod prr_ecn;
mod rack_cubic;
mod rack_ecn;
mod rack_prr;
mod undo;

use super::script::{Script, SegmentBuilder, mss_1000_sack, plain, segment};
use crate::tcp::congestion::SackConfig;
use crate::tcp::{
    Config, EcnMode, Growth, InitialSsthresh, InitialWindow, LimitedTransmit, OptionOffer, PrrBound,
    RecoveryReduction, SpuriousDetection, SpuriousDetector, Variant,
};
use hopline_core::{Instant, Length};
use hopline_wire::tcp::{DoorFeatures, DoorOption, DoorReport, Options, Timestamps};

/// SACK, with the window coming down as RFC 9937 has it; nothing leaves before recovery.
fn prr() -> Config {
    let window = RecoveryReduction::Prr(PrrBound::SafeAck);
    Config {
        variant: Variant::Sack(SackConfig { reduction: window, ..SackConfig::RFC6675 }),
        limited_transmit: LimitedTransmit::Off,
        ..plain()
    }
}

fn with_dsack_undo(config: Config) -> Config {
    Config {
        spurious: SpuriousDetection { dsack: SpuriousDetector::On, ..SpuriousDetection::NONE },
        ..config
    }
}

fn with_eifel(config: Config) -> Config {
    let spurious = SpuriousDetection { eifel: SpuriousDetector::On, ..SpuriousDetection::NONE };
    Config { spurious, timestamps: OptionOffer::Offered, ..config }
}

/// Connected at 100 ms after a round trip of 100 ms, to a peer that agrees to whatever it is asked. A full segment has 1000
/// bytes of data beside its options.
fn connected(config: Config, window: u32) -> Script {
    let stamps = config.timestamps == OptionOffer::Offered;
    let mss = 1000 + if stamps { 12 } else { 0 } + if config.door.is_some() { 8 } else { 0 };
    let config = Config { mss, initial_window: InitialWindow::Segments(window), ..config };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    let all = DoorFeatures { adsn: true, tpsn: true, feedback: true };
    let options = Options {
        mss: Some(mss as u16),
        door: config.door.map(|_| DoorOption::Offer(all)),
        timestamps: stamps.then_some(Timestamps { value: 5000, echo: s.peer.iss.0 }),
        ..mss_1000_sack()
    };
    let syn_ack = segment(0).syn().ack(1).options(options);
    s.receive(if config.ecn == EcnMode::Request { syn_ack.ece() } else { syn_ack });
    s.transmits();
    s
}

/// The same with `window` segments in flight, the first of them 1:1001, and more to send.
fn in_flight(config: Config, window: u32) -> Script {
    let mut s = connected(config, window);
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    assert_eq!(s.endpoint.flight_size(), 1000 * u64::from(window));
    s
}

/// An ACK that arrives at `ms`. Where there are timestamps it echoes what was sent at `sent`.
fn ack_of(s: &Script, ms: u64, ack: i64, sent: u64) -> SegmentBuilder {
    match s.endpoint.config().timestamps {
        OptionOffer::Offered => {
            segment(1).ack(ack).ts(5000 + ms as u32, s.peer.iss.0.wrapping_add(sent as u32))
        }
        OptionOffer::NotOffered => segment(1).ack(ack),
    }
}

/// The same after a round trip of 100 ms.
fn ack_at(s: &Script, ms: u64, ack: i64) -> SegmentBuilder {
    ack_of(s, ms, ack, ms - 100)
}

/// Everything in flight is acknowledged at `ms`.
fn acknowledge_flight(s: &mut Script, ms: u64, una: &mut i64) {
    *una += s.endpoint.flight_size() as i64;
    let ack = ack_at(s, ms, *una);
    s.receive_at(ms, ack);
    s.transmits();
}

/// CUBIC after a loss among fifty segments: `W_max` is 50, `cwnd` 35, and `K` = ∛(15 / 0.4) = 3.347 s. The flight is
/// acknowledged each 100 ms, `rounds` times after 400 ms, when avoidance began. Returns the first unacknowledged position.
fn congestion_avoidance_after_loss(config: Config, rounds: u64) -> (Script, i64) {
    let initial_ssthresh = InitialSsthresh::Segments(50);
    let growth = Growth::Bytes { limit: 2 };
    let mut s = in_flight(Config { initial_ssthresh, growth, ..config.with_cubic() }, 50);
    let ack = ack_at(&s, 200, 1);
    s.receive_at(200, ack.sack(1001, 50_001));
    assert!(s.transmits().starts_with(". 1:1001"));
    let ack = ack_at(&s, 300, 60_001);
    s.receive_at(300, ack);
    s.transmits();
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (35_000, 35_000));
    let mut una = 60_001;
    for round in 0..=rounds {
        acknowledge_flight(&mut s, 400 + 100 * round, &mut una);
    }
    (s, una)
}

/// Returns whether `cwnd` has this value, up to 50 bytes: an ACK of whole segments falls short of the target by part of a
/// segment.
fn cwnd_is_about(s: &Script, cwnd: u32) -> bool {
    s.endpoint.cwnd().abs_diff(cwnd) <= 50
}

/// Returns the feedback of TCP-DOOR without other reports.
fn out_of_order() -> DoorReport {
    DoorReport { out_of_order: true, ..DoorReport::default() }
}

/// `cwnd` and `ssthresh`.
fn window(s: &Script) -> (u32, u32) {
    (s.endpoint.cwnd(), s.endpoint.ssthresh())
}

const UNLIMITED: u32 = 1 << 30;
