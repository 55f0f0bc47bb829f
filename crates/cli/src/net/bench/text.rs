//! Test as lines of text.

use crate::net::args::Unit;
use hopline_tools::bench::{
    Cpu, DatagramStats, Direction, Interval, Latency, Limit, Phase, Plan, Report, Role, RoundTrips,
    SendingReport, ServerOutput, SideReport, StreamReport, Telemetry, TestSettings, Transport,
};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

const HEADER: &str = "[ ID]  Interval (s)        Transfer       Bitrate   Retr       Cwnd        RTT\n";
const UDP_HEADER: &str = "[ ID]  Interval (s)        Transfer       Bitrate     Jitter   Lost/Total\n";
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// Describes the start of a client's test, at the server.
pub(super) fn accepted(client: SocketAddr, plan: &Plan) -> String {
    let sender = match plan.direction {
        Direction::Forward => "the client sends",
        Direction::Reverse => "the client receives",
        Direction::Both => "both send",
    };
    let limit = match plan.limit {
        Limit::Time(time) => format!("{} s", time.as_secs_f64()),
        Limit::Bytes(bytes) => amount(bytes),
    };
    let title = plan.title.as_ref().map(|title| format!(" \"{title}\"")).unwrap_or_default();
    format!(
        "test{title} of {client}: {}, {limit}, streams: {}, {sender}\n",
        transport(&plan.transport),
        plan.streams
    )
}

/// Lists the streams, and the header of the following lines.
pub(super) fn connected(plan: &Plan, settled: &TestSettings) -> String {
    let mut text = String::new();
    for (stream, id) in settled.streams.iter().zip(1..) {
        let (local, remote) = (stream.local, stream.remote);
        let way = direction(plan, stream.role);
        line(
            &mut text,
            format_args!("[{id:>3}]{way}  {local} to {remote} over {}", transport(&plan.transport)),
        );
    }
    text + header(plan)
}

fn header(plan: &Plan) -> &'static str {
    if plan.transport == Transport::Udp { UDP_HEADER } else { HEADER }
}

/// Returns the direction of a stream, if there are two directions.
fn direction(plan: &Plan, role: Role) -> &'static str {
    match (plan.direction, role) {
        (Direction::Both, Role::Sends) => " TX",
        (Direction::Both, Role::Receives) => " RX",
        _ => "",
    }
}

/// Returns a line for each stream, and one for all of a direction if there are several.
pub(super) fn interval(plan: &Plan, unit: Option<Unit>, interval: &Interval) -> String {
    let mut text = String::new();
    let omitted = if interval.phase == Phase::Omitted { "  omitted" } else { "" };
    let mut row = |id: &str, role: Role, bytes: u64, end: &str| {
        let moved = transferred(id, interval.start, interval.end, bytes, unit);
        line(
            &mut text,
            format_args!("{}{}{omitted}", format!("{moved}{end}").trim_end(), direction(plan, role)),
        );
    };
    for (stream, id) in interval.streams.iter().zip(1..) {
        let end = stream.datagrams.map(|seen| datagrams(seen, stream.role));
        let end = end.or_else(|| stream.sending.as_ref().map(interval_stats)).unwrap_or_default();
        row(&id.to_string(), stream.role, stream.bytes, &end);
    }
    for role in multiple_roles(&interval.streams.iter().map(|s| s.role).collect::<Vec<_>>()) {
        let retransmits = interval.retransmits().filter(|_| role == Role::Sends).map(|n| format!("{n:>7}"));
        let end = interval.datagrams(role).map(|seen| datagrams(seen, role)).or(retransmits);
        row("SUM", role, interval.bytes(role), &end.unwrap_or_default());
    }
    text
}

/// Returns the roles of more than one stream.
fn multiple_roles(roles: &[Role]) -> Vec<Role> {
    let count = |wanted| roles.iter().filter(|&&role| role == wanted).count();
    [Role::Sends, Role::Receives].into_iter().filter(|&role| count(role) > 1).collect()
}

/// Describes the counters of both sides.
pub(super) fn summary(plan: &Plan, unit: Option<Unit>, report: &Report) -> String {
    let mut text = String::from(RULE);
    text.push_str(header(plan));
    let sides = |role| {
        let (local, remote) = (Some(&report.local), report.remote.as_ref());
        if role == Role::Sends { (local, remote) } else { (remote, local) }
    };
    let mut total = |id: &str, elapsed: Duration, bytes: u64, end: &str, word: &str| {
        let moved = transferred(id, Duration::ZERO, elapsed, bytes, unit);
        line(&mut text, format_args!("{moved}{end:<29}  {word}"));
    };
    for (index, stream) in report.local.streams.iter().enumerate() {
        let (sent, received) = sides(stream.role);
        for (side, word) in [(sent, "sender"), (received, "receiver")] {
            let Some(side) = side else { continue };
            let Some(counted) = side.streams.get(index) else { continue };
            let word = format!("{word}{}", direction(plan, stream.role));
            total(&(index + 1).to_string(), side.elapsed, counted.bytes, &test_stats(counted), &word);
        }
    }
    for role in multiple_roles(&report.local.streams.iter().map(|s| s.role).collect::<Vec<_>>()) {
        let (sent, received) = sides(role);
        for (side, does, word) in [(sent, Role::Sends, "sender"), (received, Role::Receives, "receiver")] {
            let Some(side) = side else { continue };
            let retransmits = side.retransmits().filter(|_| does == Role::Sends).map(|n| format!("{n:>7}"));
            let end = side.datagrams(does).map(|seen| datagrams(seen, does)).or(retransmits);
            let word = format!("{word}{}", direction(plan, role));
            total("SUM", side.elapsed, side.bytes(does), &end.unwrap_or_default(), &word);
        }
    }
    text
}

/// Describes the processor time of both sides, at the client.
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
        Direction::Forward | Direction::Both => Some(&report.local),
        Direction::Reverse => report.remote.as_ref(),
    };
    if let (Some(SideReport { congestion_control: Some(control), .. }), Transport::Tcp { .. }) =
        (sender, &plan.transport)
    {
        write!(text, "; congestion control: {control}").expect("strings take everything");
    }
    text + "\n"
}

/// Describes the round-trip times beside the test, at the client that measured them.
pub(super) fn latency(plan: &Plan, latency: Option<&Latency>) -> String {
    let Some(latency) = latency else {
        let text = match plan.probes {
            None => "",
            Some(_) => "latency: not looked at; nobody sent datagrams back, as iperf3 does not\n",
        };
        return text.into();
    };
    let mut text = String::from("latency (ms)     50 %      95 %      99 %   longest   answered\n");
    for (name, trips) in [("before", &latency.before), ("during", &latency.during), ("after", &latency.after)]
    {
        let RoundTrips { sent, answered, .. } = *trips;
        let [p50, p95, p99, max] = [trips.p50, trips.p95, trips.p99, trips.max]
            .map(|trip| format!("{:.3}", trip.as_secs_f64() * 1e3));
        line(
            &mut text,
            format_args!("  {name:<10}{p50:>9} {p95:>9} {p99:>9} {max:>9}   {answered} of {sent}"),
        );
    }
    text
}

/// Returns the output of the server, at the client that requested it.
pub(super) fn output(report: &Report) -> String {
    match report.remote.as_ref().and_then(|remote| remote.output.as_ref()) {
        None => String::new(),
        Some(ServerOutput::Text(text)) => format!("\nThe server says:\n{text}"),
        Some(ServerOutput::Json(json)) => format!("\nThe server says:\n{json:#}\n"),
    }
}

fn transferred(id: &str, start: Duration, end: Duration, bytes: u64, unit: Option<Unit>) -> String {
    let span = format!("{:.2}-{:.2}", start.as_secs_f64(), end.as_secs_f64());
    let rate = rate(bytes, end.saturating_sub(start), unit);
    format!("[{id:>3}]  {span:<15}  {:>10}  {rate:>12}", amount(bytes))
}

/// Returns jitter and losses at the receiver, and the number of datagrams.
fn datagrams(seen: DatagramStats, role: Role) -> String {
    let jitter = format!("{:.3} ms", seen.jitter.as_secs_f64() * 1e3);
    match role {
        Role::Sends => format!("{:>11}  {}", "", seen.packets),
        Role::Receives => {
            format!("{jitter:>11}  {}/{} ({:.2} %)", seen.lost, seen.packets, seen.lost_percent())
        }
    }
}

/// Returns retransmissions, window and round-trip time at the end of an interval.
fn interval_stats(telemetry: &Telemetry) -> String {
    format!("{:>7}  {:>9}  {:>9}", telemetry.retransmits, amount(telemetry.cwnd), rtt(telemetry.rtt))
}

/// Returns retransmissions, largest window and mean round-trip time of a test; for datagrams, their counters.
fn test_stats(stream: &StreamReport) -> String {
    if let Some(seen) = stream.datagrams {
        return datagrams(seen, stream.role);
    }
    let told = |SendingReport { retransmits, max_cwnd, rtt: trips, .. }: SendingReport| match max_cwnd {
        // iperf3 reports no more than that of its side.
        0 => format!("{retransmits:>7}"),
        cwnd => format!("{retransmits:>7}  {:>9}  {:>9}", amount(cwnd), rtt(trips.map(|rtt| rtt.mean))),
    };
    stream.sending.map(told).unwrap_or_default()
}

fn rtt(rtt: Option<Duration>) -> String {
    rtt.map_or_else(|| "-".into(), |rtt| format!("{:.3} ms", rtt.as_secs_f64() * 1e3))
}

fn transport(transport: &Transport) -> String {
    match transport {
        Transport::Tpa { cwnd_max } => format!("TPA with a window of {cwnd_max}"),
        Transport::TpaWide => "TPA-wide".into(),
        Transport::Udp => "UDP".into(),
        Transport::Tcp { congestion_control: None } => "TCP".into(),
        Transport::Tcp { congestion_control: Some(control) } => format!("TCP with {control}"),
    }
}

/// Formats a size with a binary prefix and three digits.
fn amount(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// Formats a rate in `unit`, else with a decimal prefix and three digits.
fn rate(bytes: u64, span: Duration, unit: Option<Unit>) -> String {
    let seconds = span.as_secs_f64();
    let bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    if let Some(unit) = unit {
        return format!("{:.2} {}", bps / unit.bits as f64, unit.name);
    }
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
    fn amounts_have_three_digits_and_a_prefix() {
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
            assert_eq!(rate(bytes, second, None), expected, "{bytes}");
        }
        assert_eq!(rate(7, Duration::ZERO, None), "0 b/s");
        assert_eq!(rate(250_000, second, "k".parse().ok()), "2000.00 kb/s");
        assert_eq!(rate(1 << 20, second, "M".parse().ok()), "1.00 MiB/s");
    }
}
