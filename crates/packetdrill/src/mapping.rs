//! Mapping between the numbers of a script and those of the connection under test.

use crate::script::{EcnSpec, OptionSpec, SegmentSpec};
use hopline_core::{Duration, Length, Seq32};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use std::collections::BTreeMap;

/// Timestamps of the host under test: the script's values, and the real ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimestampMap {
    by_script: BTreeMap<u32, u32>,
    first: Option<(u32, u32)>,
    /// Tick of the script's clock; zero: one millisecond, as that of the endpoint.
    tick: Duration,
}

impl TimestampMap {
    /// Creates a map for a script with clock ticks of `tick`.
    pub(crate) fn with_tick(tick: Duration) -> Self {
        Self { tick, ..Self::default() }
    }

    /// Records an outbound timestamp.
    pub(crate) fn record(&mut self, script: u32, real: u32) {
        self.first.get_or_insert((script, real));
        self.by_script.entry(script).or_insert(real);
    }

    /// Returns the real timestamp for an echo in the script: the recorded one, or one at the same distance from the first.
    pub(crate) fn real(&self, script: u32) -> u32 {
        if script == 0 {
            return 0;
        }
        match (self.by_script.get(&script), self.first) {
            (Some(real), _) => *real,
            (None, Some((first_script, first_real))) => {
                first_real.wrapping_add(self.in_millis(script.wrapping_sub(first_script) as i32) as u32)
            }
            (None, None) => script,
        }
    }

    /// Returns a number of the script's ticks in milliseconds.
    fn in_millis(&self, ticks: i32) -> i64 {
        let ticks = i64::from(ticks);
        match i64::try_from(self.tick.as_micros()) {
            Ok(micros @ 1..) => ticks.saturating_mul(micros).div_euclid(1_000),
            _ => ticks,
        }
    }
}

/// Shifts between sequence numbers: real minus script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shifts {
    /// Of the numbers that the host under test assigns.
    pub(crate) host: u32,
    /// Of the numbers that its peer assigns.
    pub(crate) peer: u32,
}

/// Returns a segment of the host with the script's numbers.
pub(crate) fn as_in_script(segment: &Segment<Length>, shifts: Shifts) -> Segment<Length> {
    let mut shown = *segment;
    shown.seq = Seq32(segment.seq.0.wrapping_sub(shifts.host));
    if segment.flags.contains(Flags::ACK) {
        shown.ack = Seq32(segment.ack.0.wrapping_sub(shifts.peer));
    }
    shown.options.sack = shifted(&segment.options.sack, shifts.peer.wrapping_neg());
    shown
}

/// Returns SACK blocks moved by `shift`.
pub(crate) fn shifted(blocks: &SackBlocks, shift: u32) -> SackBlocks {
    let mut moved = SackBlocks::default();
    for block in blocks.as_slice() {
        moved.push(SackBlock { left: block.left + shift, right: block.right + shift });
    }
    moved
}

/// Returns an inbound segment. Its acknowledgment and SACK blocks still count from the script's initial sequence number.
pub(crate) fn inbound(spec: &SegmentSpec, timestamps: &TimestampMap) -> Segment<Length> {
    let ecn = match spec.ecn {
        Some(EcnSpec::Is(ecn)) => ecn,
        Some(EcnSpec::EitherEct) => Ecn::Capable0,
        None => Ecn::NotCapable,
    };
    Segment {
        src_port: 0,
        dst_port: 0,
        seq: Seq32(spec.seq),
        ack: Seq32(spec.ack.unwrap_or(0)),
        flags: spec.flags,
        window: spec.window.unwrap_or(0),
        urgent: spec.urgent,
        options: options(spec.options.as_deref().unwrap_or_default(), |echo| timestamps.real(echo)),
        ecn,
        payload: Length(u64::from(spec.len)),
    }
}

/// Returns the options of a segment, with the echo of the timestamps mapped.
pub(crate) fn options(specs: &[OptionSpec], echo: impl Fn(u32) -> u32) -> Options {
    let mut options = Options::default();
    for spec in specs {
        match *spec {
            OptionSpec::Nop | OptionSpec::Eol => {}
            OptionSpec::Mss(mss) => options.mss = Some(mss),
            OptionSpec::WindowScale(shift) => options.window_scale = Some(shift),
            OptionSpec::SackPermitted => options.sack_permitted = true,
            OptionSpec::Sack(left, right) => {
                options.sack.push(SackBlock { left: Seq32(left), right: Seq32(right) });
            }
            OptionSpec::Timestamps(value, echoed) => {
                options.timestamps = Some(Timestamps { value, echo: echo(echoed) });
            }
        }
    }
    options
}

/// Returns control bits as a script writes them.
pub(crate) fn flag_letters(flags: Flags) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let text: String =
        letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| *letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}
