//! What the sides say to each other, as iperf3 3.12 does: state bytes and JSON. `docs/bench.md` has the order.

use super::datagram::{Arrivals, Counters};
use super::plan::{
    CongestionControl, Copying, Direction, Limit, MAX_DATAGRAM, MAX_LENGTH, Nagle, Output, Plan, Rate,
    Sockets, Transport,
};
use super::report::{Cpu, Role, RttSummary, SendingReport, ServerOutput, SideReport, StreamReport};
use crate::printable::printable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Bytes of a cookie: 36 characters of the alphabet and a zero.
pub(super) const COOKIE: usize = 37;
/// Most bytes of JSON from a client.
pub(super) const MAX_FROM_CLIENT: usize = 256 << 10;
/// Most bytes of JSON from a server, what it printed included.
pub(super) const MAX_FROM_SERVER: usize = 16 << 20;
/// Both sides write this at the beginning of a stream over UDP; before 3.11 they wrote others.
pub(super) const UDP_CONNECT: u32 = 0x3637_3839;
pub(super) const UDP_CONNECT_BEFORE: u32 = 123_456_789;
pub(super) const UDP_REPLY: u32 = 0x3938_3736;
pub(super) const UDP_REPLY_BEFORE: u32 = 987_654_321;
/// iperf3 compares versions for people only.
const VERSION: &str = concat!("hopline ", env!("CARGO_PKG_VERSION"));
/// Where nothing is said of the length.
const LENGTH: u32 = 128 << 10;
/// Payload of UDP where the path's segment is not known.
const DATAGRAM: u32 = 1460;

/// What makes data streams part of a test: nobody else can guess it.
pub(super) type Cookie = [u8; COOKIE];

/// Where a test stands: one byte on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(super) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfDone = 16,
    /// Between two ends of hopline, JSON follows: [`Extra`].
    Hopline = 100,
    AccessDenied = -1,
    /// Two numbers of four bytes follow: iperf3's of the error, and the system's.
    ServerError = -2,
}

impl State {
    pub(super) fn of(byte: u8) -> Option<Self> {
        use State::*;
        let all = [
            TestStart,
            TestRunning,
            TestEnd,
            ParamExchange,
            CreateStreams,
            ServerTerminate,
            ClientTerminate,
            ExchangeResults,
            DisplayResults,
            IperfDone,
            Hopline,
            AccessDenied,
            ServerError,
        ];
        all.into_iter().find(|&state| state as i8 == byte as i8)
    }
}

/// What a server tells a client that speaks hopline's additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extra {
    /// UDP port at which datagrams with the cookie come back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) echo_port: Option<u16>,
    /// Why it gives up, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) refused: Option<String>,
}

/// A test, as the client tells it: iperf3's keys in its order, and hopline's last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Parameters {
    #[serde(skip_serializing_if = "is_false")]
    tcp: bool,
    #[serde(skip_serializing_if = "is_false")]
    udp: bool,
    #[serde(skip_serializing_if = "is_false")]
    sctp: bool,
    omit: f64,
    time: f64,
    num: f64,
    blockcount: f64,
    #[serde(rename = "MSS", skip_serializing_if = "Option::is_none")]
    mss: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    nodelay: bool,
    parallel: f64,
    #[serde(skip_serializing_if = "is_false")]
    reverse: bool,
    #[serde(skip_serializing_if = "is_false")]
    bidirectional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<f64>,
    len: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<f64>,
    pacing_timer: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<f64>,
    #[serde(rename = "TOS", skip_serializing_if = "Option::is_none")]
    tos: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    get_server_output: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_counters_64bit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zerocopy: Option<f64>,
    client_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hopline: Option<Additions>,
}

/// What iperf3 has not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Additions {
    #[serde(skip_serializing_if = "Option::is_none")]
    tpa_cwnd_max: Option<u8>,
    /// Whether datagrams that come back are wanted.
    probes: bool,
}

/// A test, as both sides have understood it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agreed {
    pub(super) plan: Plan,
    pub(super) length: u32,
    pub(super) counters: Counters,
    pub(super) additions: Speaks,
}

/// What the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Iperf3,
    Hopline,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Parameters {
    pub(super) fn of(plan: &Plan, length: u32) -> Self {
        let number = |n: u64| (n > 0).then_some(n as f64);
        let tpa_cwnd_max = match plan.transport {
            Transport::Tpa { cwnd_max } => Some(cwnd_max),
            _ => None,
        };
        let (time, num) = match plan.limit {
            Limit::Time(time) => (time.as_secs_f64(), 0.0),
            Limit::Bytes(bytes) => (0.0, bytes as f64),
        };
        Self {
            tcp: matches!(plan.transport, Transport::Tcp { .. }),
            udp: plan.transport == Transport::Udp,
            sctp: false,
            omit: whole(plan.omit.as_secs_f64()),
            time: whole(time),
            num,
            blockcount: 0.0,
            mss: plan.sockets.mss.map(f64::from),
            nodelay: plan.sockets.nagle == Nagle::Off,
            parallel: plan.streams.into(),
            reverse: plan.direction == Direction::Reverse,
            bidirectional: plan.direction == Direction::Both,
            window: plan.sockets.buffer.map(f64::from),
            len: length.into(),
            bandwidth: number(plan.rate.bps),
            pacing_timer: 1000.0,
            burst: number(plan.rate.burst.into()),
            tos: number(plan.sockets.tos.into()),
            title: plan.title.clone(),
            congestion: match &plan.transport {
                Transport::Tcp { congestion_control } => congestion_control.as_ref().map(|c| c.name().into()),
                _ => None,
            },
            get_server_output: (plan.output == Output::Both).then_some(1.0),
            udp_counters_64bit: (plan.transport == Transport::Udp).then_some(1.0),
            zerocopy: (plan.sockets.copy == Copying::Zero).then_some(1.0),
            client_version: VERSION.into(),
            hopline: Some(Additions { tpa_cwnd_max, probes: plan.probes.is_some() }),
        }
    }

    /// What the client speaks.
    pub(super) const fn speaks(&self) -> Speaks {
        if self.hopline.is_some() { Speaks::Hopline } else { Speaks::Iperf3 }
    }

    /// The test that they mean; `Err`: what is wrong with them, for people.
    pub(super) fn understood(self) -> Result<Agreed, String> {
        let speaks = self.speaks();
        let additions = self.hopline.unwrap_or_default();
        let congestion_control = match self.congestion.filter(|_| self.tcp) {
            None => None,
            Some(name) => Some(CongestionControl::new(&name).ok_or("no name of a congestion control")?),
        };
        let transport = match (self.tcp, self.udp, self.sctp, additions.tpa_cwnd_max) {
            (true, false, false, None) => Transport::Tcp { congestion_control },
            (false, true, false, None) => Transport::Udp,
            (false, false, false, Some(cwnd_max)) => Transport::Tpa { cwnd_max },
            (false, false, true, None) => return Err("there is no SCTP here".into()),
            _ => return Err("one of TCP, UDP and TPA".into()),
        };
        let most = if transport == Transport::Udp { MAX_DATAGRAM } else { MAX_LENGTH };
        let length = match integer(self.len, most.into(), "bytes at once")? {
            0 if transport == Transport::Udp => DATAGRAM,
            0 => LENGTH,
            length => length as u32,
        };
        let bytes = match integer(self.blockcount, u64::MAX >> 21, "blocks")? {
            0 => integer(self.num, u64::MAX, "bytes")?,
            blocks => blocks * u64::from(length),
        };
        let limit = if bytes > 0 { Limit::Bytes(bytes) } else { Limit::Time(seconds(self.time)?) };
        let optional = |value: Option<f64>, most: u64, what| match value {
            None => Ok(None),
            Some(value) => integer(value, most, what).map(|n| Some(n).filter(|&n| n > 0)),
        };
        let plan = Plan {
            transport,
            direction: match (self.reverse, self.bidirectional) {
                (_, true) => Direction::Both,
                (true, false) => Direction::Reverse,
                (false, false) => Direction::Forward,
            },
            limit,
            omit: seconds(self.omit)?,
            streams: integer(self.parallel.max(1.0), u8::MAX.into(), "streams")? as u8,
            length: Some(length),
            rate: Rate {
                bps: optional(self.bandwidth, u64::MAX, "bits per second")?.unwrap_or(0),
                burst: optional(self.burst, 1000, "blocks")?.unwrap_or(0) as u32,
            },
            sockets: Sockets {
                nagle: if self.nodelay { Nagle::Off } else { Nagle::On },
                copy: if self.zerocopy.is_some_and(|z| z != 0.0) { Copying::Zero } else { Copying::Plain },
                buffer: optional(self.window, i32::MAX as u64, "bytes of buffer")?.map(|n| n as u32),
                mss: optional(self.mss, u16::MAX.into(), "bytes of a segment")?.map(|n| n as u16),
                tos: optional(self.tos, 255, "type of service")?.unwrap_or(0) as u8,
            },
            probes: additions.probes.then_some(Duration::ZERO),
            output: if self.get_server_output.is_some_and(|o| o != 0.0) { Output::Both } else { Output::Own },
            title: self.title.map(|title| printable(title.as_bytes())),
        };
        plan.validate().map_err(|error| error.to_string())?;
        let counters = match self.udp_counters_64bit {
            Some(wide) if wide != 0.0 => Counters::Bits64,
            _ => Counters::Bits32,
        };
        Ok(Agreed { plan, length, counters, additions: speaks })
    }
}

/// iperf3 reads whole seconds only; hopline keeps fractions, for tests of less.
fn whole(seconds: f64) -> f64 {
    if seconds >= 1.0 { seconds.round() } else { seconds }
}

fn integer(value: f64, most: u64, what: &str) -> Result<u64, String> {
    if value >= 0.0 && value <= most as f64 { Ok(value as u64) } else { Err(format!("{value} {what}")) }
}

fn seconds(value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|_| format!("{value} seconds"))
}

/// What a side counted: iperf3's keys in its order, and hopline's last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    cpu_util_total: f64,
    cpu_util_user: f64,
    cpu_util_system: f64,
    sender_has_retransmits: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    congestion_used: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    server_output_text: Option<String>,
    #[serde(skip_serializing, default)]
    server_output_json: Option<Value>,
    streams: Vec<StreamResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct StreamResult {
    id: f64,
    bytes: f64,
    retransmits: f64,
    jitter: f64,
    errors: f64,
    packets: f64,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hopline: Option<Seen>,
}

/// What a sender of hopline saw beside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Seen {
    max_snd_cwnd: u64,
    max_snd_wnd: u64,
    /// µs; absent if there was no sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<[u32; 3]>,
    out_of_order: u64,
}

/// What iperf3 calls the streams of a test: 1, 3, 4, 5, …
fn id(index: usize) -> f64 {
    if index == 0 { 1.0 } else { index as f64 + 2.0 }
}

impl Results {
    pub(super) fn of(report: &SideReport, speaks: Speaks) -> Self {
        let retransmits = report.streams.iter().filter_map(|s| s.sending).map(|s| s.retransmits);
        let stream = |(index, stream): (usize, &StreamReport)| {
            let datagrams = stream.datagrams.unwrap_or_default();
            let sending = stream.sending.unwrap_or_default();
            let seen = Seen {
                max_snd_cwnd: sending.max_cwnd,
                max_snd_wnd: sending.max_peer_window,
                rtt: sending.rtt.map(|rtt| [rtt.min, rtt.mean, rtt.max].map(microseconds)),
                out_of_order: datagrams.out_of_order,
            };
            StreamResult {
                id: id(index),
                bytes: stream.bytes as f64,
                retransmits: stream.sending.map_or(-1.0, |s| s.retransmits as f64),
                jitter: datagrams.jitter.as_secs_f64(),
                errors: datagrams.lost as f64,
                packets: datagrams.packets as f64,
                start_time: 0.0,
                end_time: report.elapsed.as_secs_f64(),
                hopline: (speaks == Speaks::Hopline).then_some(seen),
            }
        };
        Self {
            cpu_util_total: 100.0 * (report.cpu.user + report.cpu.system),
            cpu_util_user: 100.0 * report.cpu.user,
            cpu_util_system: 100.0 * report.cpu.system,
            sender_has_retransmits: if retransmits.count() > 0 { 1.0 } else { 0.0 },
            congestion_used: report.congestion_control.as_ref().map(|c| c.name().into()),
            server_output_text: match &report.output {
                Some(ServerOutput::Text(text)) => Some(text.clone()),
                _ => None,
            },
            server_output_json: None,
            streams: report.streams.iter().enumerate().map(stream).collect(),
        }
    }

    /// What they say of the streams that have `roles` at the other side; `Err`: why they are not of this test.
    pub(super) fn understood(self, roles: &[Role], plan: &Plan) -> Result<SideReport, String> {
        let mut elapsed = Duration::ZERO;
        let mut streams = Vec::new();
        for (index, &role) in roles.iter().enumerate() {
            let found = self.streams.iter().find(|stream| stream.id == id(index));
            let stream = found.ok_or("results of another test")?;
            let span = Duration::try_from_secs_f64(stream.end_time - stream.start_time.max(0.0));
            elapsed = elapsed.max(span.unwrap_or_default());
            streams.push(stream.understood(role, plan.transport == Transport::Udp));
        }
        let share = |percent: f64| if percent.is_finite() { percent.max(0.0) / 100.0 } else { 0.0 };
        let text = self.server_output_text.map(|text| ServerOutput::Text(lines(&text)));
        Ok(SideReport {
            elapsed,
            cpu: Cpu { user: share(self.cpu_util_user), system: share(self.cpu_util_system) },
            congestion_control: self.congestion_used.as_deref().and_then(CongestionControl::new),
            streams,
            output: self.server_output_json.map(ServerOutput::Json).or(text),
        })
    }
}

impl StreamResult {
    fn understood(&self, role: Role, udp: bool) -> StreamReport {
        let seen = self.hopline.clone().unwrap_or_default();
        let datagrams = Arrivals {
            packets: self.packets as u64,
            lost: self.errors as u64,
            out_of_order: seen.out_of_order,
            jitter: Duration::try_from_secs_f64(self.jitter).unwrap_or_default(),
        };
        let rtt = seen.rtt.map(|rtt| {
            let [min, mean, max] = rtt.map(|us| Duration::from_micros(us.into()));
            RttSummary { min, mean, max }
        });
        // Where the system does not say, iperf3 writes −1, and without a sign.
        let retransmits = self.retransmits.clamp(0.0, u32::MAX.into()) as u64;
        let sending = SendingReport {
            retransmits,
            max_cwnd: seen.max_snd_cwnd,
            max_peer_window: seen.max_snd_wnd,
            rtt,
        };
        StreamReport {
            role,
            bytes: self.bytes as u64,
            sending: (role == Role::Sends && !udp).then_some(sending),
            datagrams: udp.then_some(datagrams),
        }
    }
}

fn microseconds(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Several lines of a peer, without anything a terminal would obey.
fn lines(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + &printable(line.as_bytes()) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Agreed, String> {
        serde_json::from_str::<Parameters>(text).map_err(|e| e.to_string())?.understood()
    }

    #[test]
    fn what_iperf3_3_12_sends_is_understood() {
        let agreed = read(
            r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,
            "len":32768,"bandwidth":5000000,"pacing_timer":1000,"title":"hi","get_server_output":1,
            "client_version":"3.12"}"#,
        );
        let agreed = agreed.unwrap();
        assert_eq!(
            (agreed.length, agreed.counters, agreed.additions),
            (32768, Counters::Bits32, Speaks::Iperf3)
        );
        let plan = agreed.plan;
        assert_eq!((plan.transport, plan.direction, plan.streams), (Transport::Udp, Direction::Both, 2));
        assert_eq!((plan.rate.bps, plan.output), (5_000_000, Output::Both));
        assert_eq!((plan.limit, plan.title.as_deref()), (Limit::Time(Duration::from_secs(1)), Some("hi")));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for transport in
            [Transport::Tpa { cwnd_max: 3 }, Transport::Tcp { congestion_control: None }, Transport::Udp]
        {
            let plan = Plan {
                length: Some(1000),
                streams: 3,
                direction: Direction::Reverse,
                limit: Limit::Bytes(1 << 40),
                rate: Rate { bps: 7, burst: 5 },
                sockets: Sockets {
                    nagle: Nagle::Off,
                    copy: Copying::Zero,
                    buffer: Some(4096),
                    mss: Some(900),
                    tos: 16,
                },
                ..Plan::new(transport)
            };
            let text = serde_json::to_string(&Parameters::of(&plan, 1000)).unwrap();
            assert_eq!(read(&text).unwrap().plan, plan, "{text}");
        }
    }

    #[test]
    fn hostile_parameters_are_refused() {
        for wrong in [
            "{}",
            "[]",
            r#"{"tcp":true}"#,
            r#"{"tcp":true,"time":-1}"#,
            r#"{"tcp":true,"time":1e300}"#,
            r#"{"tcp":true,"udp":true,"time":1}"#,
            r#"{"sctp":true,"time":1}"#,
            r#"{"tcp":true,"time":1,"parallel":129}"#,
            r#"{"tcp":true,"time":1,"parallel":1e18}"#,
            r#"{"tcp":true,"time":1,"len":1e18}"#,
            r#"{"tcp":true,"time":1,"len":-5}"#,
            r#"{"udp":true,"time":1,"len":8}"#,
            r#"{"udp":true,"time":1,"bandwidth":-1}"#,
            r#"{"tcp":true,"blockcount":1e19,"len":1048576}"#,
            r#"{"tcp":true,"time":1,"congestion":"../x"}"#,
            r#"{"time":1,"hopline":{"tpa_cwnd_max":13}}"#,
            r#"{"time":1,"tcp":true,"hopline":{"tpa_cwnd_max":3}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn results_name_streams_as_iperf3_does_and_are_read_back() {
        let rtt = RttSummary {
            min: Duration::from_micros(1),
            mean: Duration::from_micros(2),
            max: Duration::from_micros(3),
        };
        let sending = SendingReport { retransmits: 7, max_cwnd: 8, max_peer_window: 9, rtt: Some(rtt) };
        let sent = StreamReport { role: Role::Sends, bytes: 10, sending: Some(sending), datagrams: None };
        let report = SideReport {
            elapsed: Duration::from_secs(2),
            cpu: Cpu { user: 0.25, system: 0.5 },
            congestion_control: CongestionControl::new("bbr"),
            streams: vec![sent; 3],
            output: Some(ServerOutput::Text("a\n".into())),
        };
        let text = serde_json::to_string(&Results::of(&report, Speaks::Hopline)).unwrap();
        assert!(text.contains(r#""id":1.0"#) && text.contains(r#""id":3.0"#) && text.contains(r#""id":4.0"#));
        let plan = Plan::new(Transport::Tcp { congestion_control: None });
        let read: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(read.clone().understood(&[Role::Sends; 3], &plan), Ok(report));
        assert!(read.understood(&[Role::Sends; 4], &plan).is_err(), "a stream is missing");
    }

    #[test]
    fn hostile_results_are_tamed() {
        let text = r#"{"cpu_util_total":1,"cpu_util_user":-1e300,"cpu_util_system":1e308,"sender_has_retransmits":-1,
            "server_output_text":"a\u001b[2J","streams":[{"id":1,"bytes":1e300,"retransmits":1.8446744073709552e+19,
            "jitter":-1,"errors":-3,"packets":1e30,"start_time":-1e300,"end_time":1e300}]}"#;
        let read: Results = serde_json::from_str(text).unwrap();
        let report = read.understood(&[Role::Receives], &Plan::new(Transport::Udp)).unwrap();
        assert_eq!((report.streams[0].bytes, report.elapsed), (u64::MAX, Duration::ZERO));
        assert_eq!(report.output, Some(ServerOutput::Text("a\\u{1b}[2J\n".into())));
    }
}
