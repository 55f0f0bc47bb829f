//! A test in lines of text.

use hopline_net::bench::{
    Connected, Cpu, Direction, Interval, Limit, Phase, Plan, Report, SendingReport, SideReport, Telemetry,
    Transport,
};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

const HEADER: &str = "[ ID]  Interval (s)        Transfer       Bitrate   Retr       Cwnd        RTT\n";
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// Server: a client's test begins.
pub(super) fn accepted(client: SocketAddr, plan: &Plan) -> String {
    let sender = match plan.direction {
        Direction::Forward => "the client sends",
        Direction::Reverse => "the client receives",
    };
    let limit = match plan.limit {
        Limit::Time(time) => format!("{} s", time.as_secs_f64()),
        Limit::Bytes(bytes) => amount(bytes),
    };
    format!(
        "test of {client}: {}, {limit}, streams: {}, {sender}\n",
        transport(&plan.transport),
        plan.streams
    )
}

/// The streams, and the header of what follows.
pub(super) fn connected(plan: &Plan, streams: &[Connected]) -> String {
    let mut text = String::new();
    for (stream, id) in streams.iter().zip(1..) {
        let Connected { local, remote, .. } = stream;
        line(&mut text, format_args!("[{id:>3}]  {local} to {remote} over {}", transport(&plan.transport)));
    }
    text + HEADER
}

/// A line for each stream, and one for all if there are several.
pub(super) fn interval(interval: &Interval) -> String {
    let mut text = String::new();
    let omitted = if interval.phase == Phase::Omitted { "  omitted" } else { "" };
    let mut row = |id: &str, bytes: u64, end: &str| {
        let moved = moved(id, interval.start, interval.end, bytes);
        line(&mut text, format_args!("{}{omitted}", format!("{moved}{end}").trim_end()));
    };
    for (stream, id) in interval.streams.iter().zip(1..) {
        row(&id.to_string(), stream.bytes, &stream.sending.as_ref().map(standing).unwrap_or_default());
    }
    if interval.streams.len() > 1 {
        let retransmits = interval.retransmits().map(|n| format!("{n:>7}")).unwrap_or_default();
        row("SUM", interval.bytes(), &retransmits);
    }
    text
}

/// What both sides counted.
pub(super) fn summary(plan: &Plan, report: &Report) -> String {
    let mut text = String::from(RULE);
    text.push_str(HEADER);
    let receives = report.local.streams.iter().all(|stream| stream.sending.is_none());
    let (sent, received) = match receives {
        false => (Some(&report.local), report.remote.as_ref()),
        true => (report.remote.as_ref(), Some(&report.local)),
    };
    for index in 0..usize::from(plan.streams) {
        let id = (index + 1).to_string();
        for (side, word) in [(sent, "sender"), (received, "receiver")] {
            let Some(stream) = side.and_then(|side| Some((side.elapsed, side.streams.get(index)?))) else {
                continue;
            };
            let (elapsed, stream) = stream;
            let end = stream.sending.as_ref().map(seen).unwrap_or_default();
            total(&mut text, &id, elapsed, stream.bytes, &end, word);
        }
    }
    if plan.streams > 1 {
        for (side, word) in [(sent, "sender"), (received, "receiver")] {
            if let Some(side) = side {
                let retransmits = side.retransmits().map(|n| format!("{n:>7}")).unwrap_or_default();
                total(&mut text, "SUM", side.elapsed, side.bytes(), &retransmits, word);
            }
        }
    }
    text
}

/// What it took, for the client.
pub(super) fn costs(plan: &Plan, report: &Report) -> String {
    let cpu = |Cpu { user, system }: Cpu| {
        let [all, user, system] = [user + system, user, system].map(|share| share * 100.0);
        format!("{all:.1} % ({user:.1} % user, {system:.1} % system)")
    };
    let mut text = format!("processor: here {}", cpu(report.local.cpu));
    if let Some(remote) = &report.remote {
        write!(text, ", there {}", cpu(remote.cpu)).expect("strings take everything");
    }
    let sender = match plan.direction {
        Direction::Forward => Some(&report.local),
        Direction::Reverse => report.remote.as_ref(),
    };
    if let (Some(SideReport { congestion_control: Some(control), .. }), Transport::Tcp { .. }) =
        (sender, &plan.transport)
    {
        write!(text, "; congestion control: {control}").expect("strings take everything");
    }
    text + "\n"
}

fn total(text: &mut String, id: &str, elapsed: Duration, bytes: u64, end: &str, word: &str) {
    let moved = moved(id, Duration::ZERO, elapsed, bytes);
    line(text, format_args!("{moved}{end:<29}  {word}"));
}

fn moved(id: &str, start: Duration, end: Duration, bytes: u64) -> String {
    let span = format!("{:.2}-{:.2}", start.as_secs_f64(), end.as_secs_f64());
    format!("[{id:>3}]  {span:<15}  {:>10}  {:>12}", amount(bytes), rate(bytes, end.saturating_sub(start)))
}

/// Retransmissions, window and round-trip time at the end of an interval.
fn standing(telemetry: &Telemetry) -> String {
    format!("{:>7}  {:>9}  {:>9}", telemetry.retransmits, amount(telemetry.cwnd), rtt(telemetry.rtt))
}

/// Retransmissions, largest window and mean round-trip time of a test.
fn seen(sending: &SendingReport) -> String {
    format!(
        "{:>7}  {:>9}  {:>9}",
        sending.retransmits,
        amount(sending.max_cwnd),
        rtt(sending.rtt.map(|rtt| rtt.mean))
    )
}

fn rtt(rtt: Option<Duration>) -> String {
    rtt.map_or_else(|| "-".into(), |rtt| format!("{:.3} ms", rtt.as_secs_f64() * 1e3))
}

fn transport(transport: &Transport) -> String {
    match transport {
        Transport::Tpa { cwnd_max } => format!("TPA with a window of {cwnd_max}"),
        Transport::Tcp { congestion_control: None } => "TCP".into(),
        Transport::Tcp { congestion_control: Some(control) } => format!("TCP with {control}"),
    }
}

/// With a binary prefix and three digits.
fn amount(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// With a decimal prefix and three digits.
fn rate(bytes: u64, span: Duration) -> String {
    let seconds = span.as_secs_f64();
    let bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    scaled(bps, 1000.0, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s", "Eb/s"])
}

fn scaled(mut value: f64, step: f64, units: [&str; 7]) -> String {
    let mut at = 0;
    while value >= 999.5 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let digits = match value {
        _ if at == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[at])
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("strings take everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_the_right_prefix() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1024, "1.00 KiB"),
            (10 << 10, "10.0 KiB"),
            (131_072, "128 KiB"),
            (10 << 20, "10.0 MiB"),
            (1023 << 20, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(amount(bytes), expected, "{bytes}");
        }
        let second = Duration::from_secs(1);
        for (bytes, expected) in
            [(0, "0 b/s"), (125, "1.00 kb/s"), (250_000, "2.00 Mb/s"), (3_869_114_368, "31.0 Gb/s")]
        {
            assert_eq!(rate(bytes, second), expected, "{bytes}");
        }
        assert_eq!(rate(7, Duration::ZERO), "0 b/s");
    }
}
