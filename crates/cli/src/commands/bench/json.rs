//! A test as JSON, with iperf3's keys. `docs/bench.md` says which are there.

use crate::console;
use hopline_net::bench::{
    Connected, Cpu, Direction, Ending, Error, Interval, Limit, Phase, Plan, Report, SideReport, StreamReport,
    Telemetry, Transport,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a client set out to do.
pub(super) struct Session<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) plan: &'a Plan,
    /// Empty if it did not come to them.
    pub(super) streams: &'a [Connected],
}

/// All of it, as far as it went.
pub(super) fn document(
    session: &Session<'_>,
    intervals: &[Interval],
    result: &Result<Report, Error>,
) -> Value {
    let sends = session.plan.direction == Direction::Forward;
    let mut document = json!({
        "start": start(session),
        "intervals": intervals.iter().map(|i| interval(i, sends)).collect::<Vec<_>>(),
        "end": result.as_ref().map_or_else(|_| json!({}), |report| end(report, sends)),
    });
    let error = match result {
        Ok(Report { ending: Ending::Complete, .. }) => None,
        Ok(Report { ending: Ending::Stopped, .. }) => Some(Error::Interrupted.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(error) = error {
        document["error"] = error.into();
    }
    document
}

fn start(session: &Session<'_>) -> Value {
    let connected = session.streams.iter().zip(1..).map(|(stream, id)| {
        json!({
            "socket": id,
            "local_host": stream.local.ip().to_string(),
            "local_port": stream.local.port(),
            "remote_host": stream.remote.ip().to_string(),
            "remote_port": stream.remote.port(),
        })
    });
    let now = console::time_of_day().as_secs();
    let mut start = json!({
        "connected": connected.collect::<Vec<_>>(),
        "version": concat!("hopline ", env!("CARGO_PKG_VERSION")),
        "system_info": system_info(),
        "timestamp": { "time": date(now), "timesecs": now },
        "connecting_to": { "host": session.host, "port": session.port },
        "target_bitrate": 0,
        "sock_bufsize": 0,
        "test_start": test_start(session.plan),
    });
    if let Some(stream) = session.streams.first() {
        start["tcp_mss_default"] = stream.mss.into();
    }
    start
}

fn test_start(plan: &Plan) -> Value {
    let (duration, bytes) = match plan.limit {
        Limit::Time(time) => (time.as_secs(), 0),
        Limit::Bytes(bytes) => (0, bytes),
    };
    let mut start = json!({
        "protocol": plan.transport.protocol(),
        "num_streams": plan.streams,
        "blksize": plan.length,
        "omit": plan.omit.as_secs(),
        "duration": duration,
        "bytes": bytes,
        "blocks": 0,
        "reverse": u8::from(plan.direction == Direction::Reverse),
        "tos": 0,
        "target_bitrate": 0,
    });
    if let Transport::Tpa { cwnd_max } = plan.transport {
        start["tpa_cwnd_max"] = cwnd_max.into();
    }
    start
}

fn interval(interval: &Interval, sends: bool) -> Value {
    let common = |bytes, retransmits: Option<u64>| {
        let mut object = span(interval.start, interval.end, bytes, sends);
        object.insert("omitted".into(), (interval.phase == Phase::Omitted).into());
        object.extend(retransmits.map(|n| ("retransmits".into(), n.into())));
        object
    };
    let streams = interval.streams.iter().zip(1..).map(|(stream, id)| {
        let mut object = common(stream.bytes, stream.sending.map(|t| t.retransmits));
        object.insert("socket".into(), id.into());
        object.extend(stream.sending.iter().flat_map(standing));
        Value::Object(object)
    });
    json!({ "streams": streams.collect::<Vec<_>>(), "sum": common(interval.bytes(), interval.retransmits()) })
}

fn standing(telemetry: &Telemetry) -> Vec<(String, Value)> {
    let mut values = vec![
        ("snd_cwnd".to_owned(), telemetry.cwnd.into()),
        ("snd_wnd".to_owned(), telemetry.peer_window.into()),
        ("rtt".to_owned(), telemetry.rtt.map(micros).into()),
        ("rttvar".to_owned(), telemetry.rtt_var.map(micros).into()),
    ];
    values.extend(telemetry.path_mtu.map(|mtu| ("pmtu".to_owned(), mtu.into())));
    values
}

fn end(report: &Report, sends: bool) -> Value {
    let local = Some(&report.local);
    let remote = report.remote.as_ref();
    let (sent, received) = if sends { (local, remote) } else { (remote, local) };
    let streams = (0..report.local.streams.len()).map(|index| {
        let of = |side: Option<&SideReport>| {
            let side = side?;
            Some(stream(index + 1, side.elapsed, side.streams.get(index)?, sends))
        };
        object([("sender", of(sent)), ("receiver", of(received))])
    });
    let sum = |side: Option<&SideReport>| {
        let side = side?;
        let mut sum = span(Duration::ZERO, side.elapsed, side.bytes(), sends);
        sum.extend(side.retransmits().map(|n| ("retransmits".into(), n.into())));
        Some(Value::Object(sum))
    };
    let congestion = |side: Option<&SideReport>| Some(side?.congestion_control.as_ref()?.name().into());
    object([
        ("streams", Some(Value::Array(streams.collect()))),
        ("sum_sent", sum(sent)),
        ("sum_received", sum(received)),
        ("cpu_utilization_percent", Some(cpu(report))),
        ("sender_tcp_congestion", congestion(sent)),
        ("receiver_tcp_congestion", congestion(received)),
    ])
}

fn stream(id: usize, elapsed: Duration, stream: &StreamReport, sends: bool) -> Value {
    let mut values = span(Duration::ZERO, elapsed, stream.bytes, sends);
    values.insert("socket".into(), id.into());
    if let Some(sending) = stream.sending {
        let rtt =
            |pick: fn(hopline_net::bench::RttSummary) -> Duration| sending.rtt.map(|rtt| micros(pick(rtt)));
        values.extend([
            ("retransmits".into(), sending.retransmits.into()),
            ("max_snd_cwnd".into(), sending.max_cwnd.into()),
            ("max_snd_wnd".into(), sending.max_peer_window.into()),
            ("max_rtt".into(), rtt(|rtt| rtt.max).into()),
            ("min_rtt".into(), rtt(|rtt| rtt.min).into()),
            ("mean_rtt".into(), rtt(|rtt| rtt.mean).into()),
        ]);
    }
    Value::Object(values)
}

fn cpu(report: &Report) -> Value {
    let mut values = Map::new();
    let sides =
        [("host", Some(report.local.cpu)), ("remote", report.remote.as_ref().map(|remote| remote.cpu))];
    for (side, cpu) in sides {
        let Some(Cpu { user, system }) = cpu else { continue };
        for (what, share) in [("total", user + system), ("user", user), ("system", system)] {
            values.insert(format!("{side}_{what}"), (share * 100.0).into());
        }
    }
    Value::Object(values)
}

/// What all parts of a test have. iperf3's `sender` says whether this side sends.
fn span(start: Duration, end: Duration, bytes: u64, sends: bool) -> Map<String, Value> {
    let seconds = end.saturating_sub(start).as_secs_f64();
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let values = [
        ("start", start.as_secs_f64().into()),
        ("end", end.as_secs_f64().into()),
        ("seconds", seconds.into()),
        ("bytes", bytes.into()),
        ("bits_per_second", rate.into()),
        ("sender", sends.into()),
    ];
    values.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect()
}

/// What is known of it.
fn object<const N: usize>(values: [(&str, Option<Value>); N]) -> Value {
    values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}

/// As `uname -a` has it.
fn system_info() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}

/// `Sun, 22 Nov 2026 05:50:30 GMT` of so many seconds since 1970.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their odd day at the end; counted from 1 March of year 0, in periods of 400 years.
    let since_march = days + 719_468;
    let (period, day) = (since_march / 146_097, since_march % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let calendar_year = period * 400 + year + u64::from(month >= 10);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize]);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{weekday}, {day_of_month:02} {month} {calendar_year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_326_630, "Sun, 22 Nov 2026 05:50:30 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
