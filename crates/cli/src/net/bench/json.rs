//! Test as JSON, with iperf3's keys in iperf3's order. `docs/bench.md` lists them.

use super::date::date;
use super::row::{CountedBy, Row, datagrams_sent};
use crate::net::clock;
use hopline_tools::bench::{
    DatagramStats, Ending, Error, Interval, Latency, Limit, Phase, Plan, Report, Role, RoundTrips,
    ServerOutput, SideReport, StreamReport, TestSettings, Transport,
};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// Test that a client requests.
pub(super) struct Session<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) plan: &'a Plan,
    /// `None` if the parameters were not agreed on.
    pub(super) settled: Option<&'a TestSettings>,
}

/// Whole result, as far as the test went.
#[derive(Serialize)]
pub(super) struct Document {
    start: Start,
    intervals: Vec<IntervalLine>,
    end: End,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Line of `--json-stream`.
#[derive(Serialize)]
pub(super) struct Event<T> {
    pub(super) event: &'static str,
    pub(super) data: T,
}

pub(super) fn document(
    session: &Session<'_>,
    intervals: &[Interval],
    result: &Result<Report, Error>,
) -> Document {
    let (text, json) = match result.as_ref().ok().and_then(output) {
        Some(ServerOutput::Text(text)) => (Some(text.clone()), None),
        Some(ServerOutput::Json(json)) => (None, Some(json.clone())),
        None => (None, None),
    };
    Document {
        start: start(session),
        intervals: intervals.iter().map(interval).collect(),
        end: end(session.plan, result),
        server_output_text: text,
        server_output_json: json,
        error: error(result),
    }
}

/// Returns the error of a test, if there is one.
pub(super) fn error(result: &Result<Report, Error>) -> Option<String> {
    match result {
        Ok(Report { ending: Ending::Complete, .. }) => None,
        Ok(Report { ending: Ending::Stopped, .. }) => Some(Error::Interrupted.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn output(report: &Report) -> Option<&ServerOutput> {
    report.remote.as_ref()?.output.as_ref()
}

#[derive(Serialize)]
pub(super) struct Start {
    connected: Vec<Ends>,
    version: &'static str,
    system_info: String,
    timestamp: Timestamp,
    connecting_to: Endpoint,
    #[serde(skip_serializing_if = "Option::is_none")]
    cookie: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u32>,
    target_bitrate: u64,
    sock_bufsize: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    sndbuf_actual: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rcvbuf_actual: Option<u32>,
    test_start: TestStart,
}

#[derive(Serialize)]
struct Ends {
    socket: usize,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Serialize)]
struct Timestamp {
    time: String,
    timesecs: u64,
}

#[derive(Serialize)]
struct Endpoint {
    host: String,
    port: u16,
}

#[derive(Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u8,
    blksize: u32,
    omit: u64,
    duration: u64,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
    bidir: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpa_cwnd_max: Option<u8>,
}

pub(super) fn start(session: &Session<'_>) -> Start {
    use hopline_tools::bench::Direction;
    let (plan, settled) = (session.plan, session.settled);
    let streams = settled.map_or(&[][..], |settled| &settled.streams);
    let now = clock::time_of_day().as_secs();
    let (duration, bytes) = match plan.limit {
        Limit::Time(time) => (time.as_secs(), 0),
        Limit::Bytes(bytes) => (0, bytes),
    };
    Start {
        connected: (streams.iter().zip(1..))
            .map(|(stream, socket)| Ends {
                socket,
                local_host: stream.local.ip().to_canonical().to_string(),
                local_port: stream.local.port(),
                remote_host: stream.remote.ip().to_canonical().to_string(),
                remote_port: stream.remote.port(),
            })
            .collect(),
        version: concat!("hopline ", env!("CARGO_PKG_VERSION")),
        system_info: system_info(),
        timestamp: Timestamp { time: date(now), timesecs: now },
        connecting_to: Endpoint { host: session.host.into(), port: session.port },
        cookie: settled.map(|settled| settled.cookie.clone()),
        tcp_mss_default: streams.first().and_then(|stream| stream.mss),
        target_bitrate: plan.rate.bps,
        sock_bufsize: plan.socket_options.buffer.unwrap_or(0),
        sndbuf_actual: settled.and_then(|settled| Some(settled.buffers?.0)),
        rcvbuf_actual: settled.and_then(|settled| Some(settled.buffers?.1)),
        test_start: TestStart {
            protocol: plan.transport.protocol(),
            num_streams: plan.streams,
            blksize: settled.map_or(plan.length.unwrap_or(0), |settled| settled.length),
            omit: plan.omit.as_secs(),
            duration,
            bytes,
            blocks: 0,
            reverse: u8::from(plan.direction == Direction::Reverse),
            tos: plan.socket_options.tos,
            target_bitrate: plan.rate.bps,
            bidir: u8::from(plan.direction == Direction::Both),
            tpa_cwnd_max: match plan.transport {
                Transport::Tpa { cwnd_max } => Some(cwnd_max),
                _ => None,
            },
        },
    }
}

#[derive(Serialize)]
pub(super) struct IntervalLine {
    streams: Vec<Row>,
    sum: Row,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Row>,
}

pub(super) fn interval(interval: &Interval) -> IntervalLine {
    let counted = |role| if role == Role::Sends { CountedBy::Sender } else { CountedBy::Receiver };
    let omitted = Some(interval.phase == Phase::Omitted);
    let row = |role, bytes, datagrams| {
        let row = Row::new(interval.start, interval.end, bytes, role == Role::Sends);
        Row { omitted, ..row.with_datagrams(datagrams, counted(role)) }
    };
    let streams = interval.streams.iter().zip(1..).map(|(stream, id)| Row {
        socket: Some(id),
        retransmits: stream.sending.map(|t| t.retransmits),
        snd_cwnd: stream.sending.map(|t| t.cwnd),
        snd_wnd: stream.sending.map(|t| t.peer_window),
        rtt: stream.sending.map(|t| t.rtt.map(micros)),
        rttvar: stream.sending.map(|t| t.rtt_var.map(micros)),
        pmtu: stream.sending.and_then(|t| t.path_mtu),
        ..row(stream.role, stream.bytes, stream.datagrams)
    });
    let sum = |role: Role| Row {
        retransmits: interval.retransmits().filter(|_| role == Role::Sends),
        ..row(role, interval.bytes(role), interval.datagrams(role))
    };
    let has = |role| interval.streams.iter().any(|stream| stream.role == role);
    IntervalLine {
        streams: streams.collect(),
        sum: sum(if has(Role::Sends) { Role::Sends } else { Role::Receives }),
        sum_bidir_reverse: (has(Role::Sends) && has(Role::Receives)).then(|| sum(Role::Receives)),
    }
}

#[derive(Default, Serialize)]
pub(super) struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<Vec<StreamEnds>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent_bidir_reverse: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received_bidir_reverse: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilization_percent: Option<CpuUtilization>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_tcp_congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_tcp_congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<Latencies>,
}

#[derive(Default, Serialize)]
struct StreamEnds {
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<Row>,
}

#[derive(Serialize)]
struct CpuUtilization {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_system: Option<f64>,
}

#[derive(Serialize)]
struct Latencies {
    before: ProbeStats,
    during: ProbeStats,
    after: ProbeStats,
}

#[derive(Serialize)]
struct ProbeStats {
    sent: u64,
    answered: u64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

pub(super) fn end(plan: &Plan, result: &Result<Report, Error>) -> End {
    let Ok(report) = result else { return End::default() };
    let udp = plan.transport == Transport::Udp;
    let sums = |role| Sums::of(report, role);
    let first = if has(report, Role::Sends) { Role::Sends } else { Role::Receives };
    let forth = sums(first);
    let back = (first == Role::Sends && has(report, Role::Receives)).then(|| sums(Role::Receives));
    let congestion = |side: Option<&SideReport>| Some(side?.congestion_control.as_ref()?.name().to_owned());
    let (local, remote) = (Some(&report.local), report.remote.as_ref());
    let (sender, receiver) = if first == Role::Sends { (local, remote) } else { (remote, local) };
    let (sum_bidir_reverse, sum_sent_bidir_reverse, sum_received_bidir_reverse) =
        back.map_or((None, None, None), |back| (back.all.filter(|_| udp), back.sent, back.received));
    End {
        streams: Some((0..report.local.streams.len()).map(|index| stream(report, index)).collect()),
        sum: forth.all.filter(|_| udp),
        sum_sent: forth.sent,
        sum_received: forth.received,
        sum_bidir_reverse,
        sum_sent_bidir_reverse,
        sum_received_bidir_reverse,
        cpu_utilization_percent: Some(costs(report)),
        sender_tcp_congestion: congestion(sender),
        receiver_tcp_congestion: congestion(receiver),
        latency_ms: report.latency.as_ref().map(latencies),
    }
}

fn has(report: &Report, role: Role) -> bool {
    report.local.streams.iter().any(|stream| stream.role == role)
}

/// Sums of one direction.
struct Sums {
    all: Option<Row>,
    sent: Option<Row>,
    received: Option<Row>,
}

impl Sums {
    /// Returns the sums of the streams with which this side does `role`. As in iperf3, `sender` is `true` if this side
    /// sends, except in two sums of UDP: there it is `true` for sent data and `false` for received data.
    fn of(report: &Report, role: Role) -> Self {
        let (local, remote) = (Some(&report.local), report.remote.as_ref());
        let (sent, received) = if role == Role::Sends { (local, remote) } else { (remote, local) };
        let sends = role == Role::Sends;
        let dispatched = sent.and_then(|side| side.datagrams(Role::Sends));
        let arrived = received.and_then(|side| side.datagrams(Role::Receives));
        let udp = arrived.or(dispatched).is_some();
        let all = datagrams_sent(dispatched, arrived);
        let row = |side: &SideReport, of| Row::new(Duration::ZERO, side.elapsed, side.bytes(of), sends);
        let none_lost =
            dispatched.map(|sent| DatagramStats { packets: sent.packets, ..DatagramStats::default() });
        Self {
            all: sent.map(|side| {
                // Time of the receiver, with the rate of the sender.
                let rate = row(side, Role::Sends);
                let end = received.unwrap_or(side).elapsed.as_secs_f64();
                let row = Row { end, seconds: end, ..rate };
                Row { packets: Some(all), ..row.with_losses(arrived, all) }
            }),
            sent: sent.map(|side| Row {
                retransmits: side.retransmits(),
                sender: udp || sends,
                ..row(side, Role::Sends).with_datagrams(none_lost, CountedBy::Receiver)
            }),
            received: received.map(|side| Row {
                sender: !udp && sends,
                ..row(side, Role::Receives).with_losses(arrived, all)
            }),
        }
    }
}

fn stream(report: &Report, index: usize) -> StreamEnds {
    let local = &report.local.streams[index];
    let remote = report.remote.as_ref().and_then(|side| Some((side, side.streams.get(index)?)));
    let local = (&report.local, local);
    let sends = local.1.role == Role::Sends;
    let (sent, received) = if sends { (Some(local), remote) } else { (remote, Some(local)) };
    let row = |(side, stream): (&SideReport, &StreamReport)| Row {
        socket: Some(index + 1),
        ..Row::new(Duration::ZERO, side.elapsed, stream.bytes, sends)
    };
    if local.1.datagrams.is_some() {
        let arrived = received.and_then(|(_, stream)| stream.datagrams);
        let all = datagrams_sent(sent.and_then(|(_, stream)| stream.datagrams), arrived);
        let udp = sent.or(received).map(|counted| Row {
            out_of_order: arrived.map(|arrived| arrived.out_of_order),
            packets: Some(all),
            ..row(counted).with_losses(arrived, all)
        });
        return StreamEnds { udp, ..StreamEnds::default() };
    }
    let sender = sent.map(|counted| {
        let seen = counted.1.sending;
        let rtt = seen.map(|seen| seen.rtt);
        Row {
            retransmits: seen.map(|s| s.retransmits),
            max_snd_cwnd: seen.map(|s| s.max_cwnd),
            max_snd_wnd: seen.map(|s| s.max_peer_window),
            max_rtt: rtt.map(|rtt| rtt.map(|rtt| micros(rtt.max))),
            min_rtt: rtt.map(|rtt| rtt.map(|rtt| micros(rtt.min))),
            mean_rtt: rtt.map(|rtt| rtt.map(|rtt| micros(rtt.mean))),
            ..row(counted)
        }
    });
    StreamEnds { udp: None, sender, receiver: received.map(row) }
}

fn costs(report: &Report) -> CpuUtilization {
    let (here, there) = (report.local.cpu, report.remote.as_ref().map(|remote| remote.cpu));
    CpuUtilization {
        host_total: (here.user + here.system) * 100.0,
        host_user: here.user * 100.0,
        host_system: here.system * 100.0,
        remote_total: there.map(|cpu| (cpu.user + cpu.system) * 100.0),
        remote_user: there.map(|cpu| cpu.user * 100.0),
        remote_system: there.map(|cpu| cpu.system * 100.0),
    }
}

fn latencies(latency: &Latency) -> Latencies {
    let trips = |trips: &RoundTrips| {
        let [p50, p95, p99, max] =
            [trips.p50, trips.p95, trips.p99, trips.max].map(|t| t.as_secs_f64() * 1e3);
        ProbeStats { sent: trips.sent, answered: trips.answered, p50, p95, p99, max }
    };
    Latencies { before: trips(&latency.before), during: trips(&latency.during), after: trips(&latency.after) }
}

fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}

/// Returns the output of `uname -a`.
fn system_info() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}
