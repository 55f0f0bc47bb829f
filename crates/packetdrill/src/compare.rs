//! Comparison of the host's segments with those that a script expects.

use crate::host::Sent;
use crate::mapping::{TimestampMap, flag_letters, options};
use crate::script::{EcnSpec, OptionSpec, SegmentSpec};
use hopline_core::{Duration, Instant, Length};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::{Flags, Options, Segment};

/// Returns the difference between the expected segment and the real one, with the script's numbers, if there is one. The
/// window may be smaller by `window_slack` units.
pub(crate) fn difference(spec: &SegmentSpec, segment: &Segment<Length>, window_slack: u16) -> Option<String> {
    let seq = segment.seq.0;
    // RFC 9293 §3.9.1.2 leaves the place of PSH to the sender.
    let compared = |flags: Flags| flags.0 & !Flags::PSH.0;
    if compared(spec.flags) != compared(segment.flags) {
        return Some(format!("flags {}, not {}", flag_letters(segment.flags), flag_letters(spec.flags)));
    }
    if seq != spec.seq {
        return Some(format!("sequence number {seq}, not {}", spec.seq));
    }
    if segment.payload.0 != u64::from(spec.len) {
        return Some(format!("{} bytes, not {}", segment.payload.0, spec.len));
    }
    if let Some(ack) = spec.ack
        && spec.flags.contains(Flags::ACK)
        && segment.ack.0 != ack
    {
        return Some(format!("acknowledgment {}, not {ack}", segment.ack.0));
    }
    if let Some(window) = spec.window
        && !(window.saturating_sub(window_slack)..=window).contains(&segment.window)
    {
        return Some(format!("window {}, not {window}", segment.window));
    }
    if let Some(ecn) = spec.ecn
        && !ecn_matches(ecn, segment.ecn)
    {
        return Some(format!("ECN field {}, not {}", ecn_name(segment.ecn), ecn_spec_name(ecn)));
    }
    option_difference(spec.options.as_deref()?, &segment.options)
}

fn option_difference(specs: &[OptionSpec], actual: &Options) -> Option<String> {
    let expected = options(specs, |echo| echo);
    // The value of a timestamp is the host's own, and is mapped; the echo is the peer's.
    let echo = |options: &Options| options.timestamps.map(|timestamps| timestamps.echo);
    let rest = |options: &Options| Options { timestamps: None, ..*options };
    if echo(&expected) == echo(actual) && rest(&expected) == rest(actual) {
        return None;
    }
    Some(format!("options <{}>, not <{}>", describe_options(actual), describe_options(&expected)))
}

fn ecn_matches(spec: EcnSpec, ecn: Ecn) -> bool {
    match spec {
        EcnSpec::Is(expected) => expected == ecn,
        EcnSpec::EitherEct => matches!(ecn, Ecn::Capable0 | Ecn::Capable1),
    }
}

fn ecn_spec_name(spec: EcnSpec) -> &'static str {
    match spec {
        EcnSpec::Is(ecn) => ecn_name(ecn),
        EcnSpec::EitherEct => "ect01",
    }
}

const fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotCapable => "noecn",
        Ecn::Capable0 => "ect0",
        Ecn::Capable1 => "ect1",
        Ecn::CongestionExperienced => "ce",
    }
}

/// Joins segments that one GSO packet of the kernel would hold: contiguous data with the same acknowledgment.
pub(crate) fn join(first: &mut Sent, next: &Sent) -> bool {
    let (a, b) = (&first.segment, &next.segment);
    let data = Flags(!(Flags::PSH.0 | Flags::FIN.0));
    let is_contiguous = a.seq + a.payload.0 as u32 == b.seq && a.src_port == b.src_port;
    let is_alike = a.flags.0 & data.0 == b.flags.0 & data.0 && a.ack == b.ack && a.ecn == b.ecn;
    let may_join = is_contiguous && is_alike && b.payload.0 > 0 && !a.flags.contains(Flags::FIN);
    if may_join {
        first.segment.payload = Length(a.payload.0 + b.payload.0);
        first.segment.flags |= b.flags;
    }
    may_join
}

/// Returns a segment as a script writes it.
pub(crate) fn describe(at: Instant, segment: &Segment<Length>) -> String {
    let seq = segment.seq.0;
    let len = segment.payload.0;
    let mut text = format!(
        "{:.6} > {} {seq}:{}({len})",
        at.as_secs_f64(),
        flag_letters(segment.flags),
        u64::from(seq) + len
    );
    if segment.flags.contains(Flags::ACK) {
        text += &format!(" ack {}", segment.ack.0);
    }
    text += &format!(" win {}", segment.window);
    if !segment.options.is_empty() {
        text += &format!(" <{}>", describe_options(&segment.options));
    }
    text
}

fn describe_options(options: &Options) -> String {
    let mut parts = Vec::new();
    if let Some(mss) = options.mss {
        parts.push(format!("mss {mss}"));
    }
    if options.sack_permitted {
        parts.push("sackOK".to_owned());
    }
    if let Some(timestamps) = options.timestamps {
        parts.push(format!("TS val {} ecr {}", timestamps.value, timestamps.echo));
    }
    if let Some(shift) = options.window_scale {
        parts.push(format!("wscale {shift}"));
    }
    if !options.sack.is_empty() {
        let blocks =
            options.sack.as_slice().iter().map(|block| format!("{}:{}", block.left.0, block.right.0));
        parts.push(format!("sack {}", blocks.collect::<Vec<_>>().join(" ")));
    }
    parts.join(",")
}

/// Records the timestamp of a segment that is as expected. Returns a difference in its clock, where the script states the
/// tick.
pub(crate) fn record_timestamp(
    map: &mut TimestampMap,
    spec: &SegmentSpec,
    segment: &Segment<Length>,
    tick: Duration,
    tolerance: Duration,
) -> Option<String> {
    let specs = spec.options.as_deref()?;
    let script = specs.iter().find_map(|option| match option {
        OptionSpec::Timestamps(value, _) => Some(*value),
        _ => None,
    })?;
    let actual = segment.options.timestamps?.value;
    let expected = map.real(script);
    map.record(script, actual);
    if tick.is_zero() || expected == script {
        return None;
    }
    let allowed = tolerance.as_millis() as u32 + 1;
    let distance = (actual.wrapping_sub(expected) as i32).unsigned_abs();
    (distance > allowed).then(|| format!("timestamp {distance} ms from the expected one"))
}
