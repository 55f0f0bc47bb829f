//! Parameters of a test, as the client sends them to the server in JSON.

use super::datagram::CounterWidth;
use super::plan::{
    CongestionControl, CopyMode, Direction, Limit, MAX_BURST, MAX_DATAGRAM, MAX_LENGTH, MAX_TIME, MAX_TITLE,
    Nagle, Output, Plan, Rate, SocketOptions, Transport,
};
use super::refusal::{Code, Refusal};
use crate::printable::printable;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Version of this side. iperf3 only displays it.
const VERSION_TEXT: &str = concat!("hopline ", env!("CARGO_PKG_VERSION"));
/// Default bytes of one write.
const DEFAULT_LENGTH: u32 = 128 << 10;
/// Default payload of a UDP datagram, in bytes, if the segment size of the path is unknown.
const DEFAULT_DATAGRAM: u32 = 1460;

/// Parameters of a test on the wire: iperf3's keys in its order, and hopline's last.
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
    /// Version of the client. iperf3 always sends it; a client without it is rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
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

/// Hopline's additions to iperf3's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Additions {
    #[serde(skip_serializing_if = "Option::is_none")]
    tpa_cwnd_max: Option<u8>,
    #[serde(skip_serializing_if = "is_false")]
    tpa_wide: bool,
    /// `true` if the client wants an echo of its datagrams.
    probes: bool,
}

/// Parameters of a test, after both sides have agreed on them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agreed {
    pub(super) plan: Plan,
    pub(super) length: u32,
    pub(super) counters: CounterWidth,
    pub(super) dialect: Dialect,
}

/// Dialect of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
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
            omit: wire_seconds(plan.omit.as_secs_f64()),
            time: Some(wire_seconds(time)),
            num,
            blockcount: 0.0,
            mss: plan.socket_options.mss.map(f64::from),
            nodelay: plan.socket_options.nagle == Nagle::Off,
            parallel: plan.streams.into(),
            reverse: plan.direction == Direction::Reverse,
            bidirectional: plan.direction == Direction::Both,
            window: plan.socket_options.buffer.map(f64::from),
            len: length.into(),
            bandwidth: number(plan.rate.bps),
            pacing_timer: 1000.0,
            burst: number(plan.rate.burst.into()),
            tos: number(plan.socket_options.tos.into()),
            title: plan.title.clone(),
            congestion: match &plan.transport {
                Transport::Tcp { congestion_control } => congestion_control.as_ref().map(|c| c.name().into()),
                _ => None,
            },
            get_server_output: (plan.output == Output::WithServer).then_some(1.0),
            udp_counters_64bit: (plan.transport == Transport::Udp).then_some(1.0),
            zerocopy: (plan.socket_options.copy == CopyMode::ZeroCopy).then_some(1.0),
            client_version: VERSION_TEXT.into(),
            hopline: Some(Additions {
                tpa_cwnd_max,
                tpa_wide: plan.transport == Transport::TpaWide,
                probes: plan.probes.is_some(),
            }),
        }
    }

    /// Returns the dialect of the client.
    pub(super) const fn dialect(&self) -> Dialect {
        if self.hopline.is_some() { Dialect::Hopline } else { Dialect::Iperf3 }
    }

    /// Returns the test that the parameters describe.
    pub(super) fn into_agreed(self) -> Result<Agreed, Refusal> {
        let speaks = self.dialect();
        let additions = self.hopline.unwrap_or_default();
        let no_name = || Refusal::new(Code::CongestionControl, "no name of a congestion control algorithm");
        let congestion_control = match self.congestion.filter(|_| self.tcp) {
            None => None,
            Some(name) => Some(CongestionControl::new(&name).ok_or_else(no_name)?),
        };
        let transport = match (self.tcp, self.udp, self.sctp, additions.tpa_cwnd_max, additions.tpa_wide) {
            (true, false, false, None, false) => Transport::Tcp { congestion_control },
            (false, true, false, None, false) => Transport::Udp,
            (false, false, false, Some(cwnd_max), false) => Transport::Tpa { cwnd_max },
            (false, false, false, None, true) => Transport::TpaWide,
            (false, false, true, None, false) => {
                return Err(Refusal::new(Code::Sctp, "there is no SCTP here"));
            }
            _ => return Err(Refusal::new(Code::Parameters, "one of TCP, UDP, TPA and TPA-wide")),
        };
        let (most, code) = match transport {
            Transport::Udp => (MAX_DATAGRAM, Code::DatagramSize),
            _ => (MAX_LENGTH, Code::BlockSize),
        };
        let length = match integer(self.len, most.into(), code, "bytes at once")? {
            0 if transport == Transport::Udp => DEFAULT_DATAGRAM,
            0 => DEFAULT_LENGTH,
            length => length as u32,
        };
        let bytes = match integer(self.blockcount, u64::MAX >> 21, Code::Parameters, "blocks")? {
            0 => integer(self.num, u64::MAX, Code::Parameters, "bytes")?,
            blocks => blocks * u64::from(length),
        };
        let no_end = || Refusal::new(Code::Parameters, "neither a time nor a number of bytes");
        let limit = match (bytes, self.time) {
            (1.., _) => Limit::Bytes(bytes),
            // `iperf3 -t 0`: no time limit; the client ends the test.
            (0, Some(0.0)) => Limit::Time(MAX_TIME),
            (0, time) => Limit::Time(seconds(time.ok_or_else(no_end)?, Code::Duration)?),
        };
        let optional = |value: Option<f64>, most: u64, code, what| match value {
            None => Ok(None),
            Some(value) => integer(value, most, code, what).map(|n| Some(n).filter(|&n| n > 0)),
        };
        let plan = Plan {
            transport,
            direction: match (self.reverse, self.bidirectional) {
                (_, true) => Direction::Both,
                (true, false) => Direction::Reverse,
                (false, false) => Direction::Forward,
            },
            limit,
            omit: seconds(self.omit, Code::Omission)?,
            streams: integer(self.parallel.max(1.0), u8::MAX.into(), Code::Streams, "streams")? as u8,
            length: Some(length),
            rate: Rate {
                bps: optional(self.bandwidth, u64::MAX, Code::TotalRate, "bits per second")?.unwrap_or(0),
                burst: optional(self.burst, MAX_BURST.into(), Code::Burst, "blocks")?.unwrap_or(0) as u32,
            },
            socket_options: SocketOptions {
                nagle: if self.nodelay { Nagle::Off } else { Nagle::On },
                copy: if self.zerocopy.is_some_and(|z| z != 0.0) {
                    CopyMode::ZeroCopy
                } else {
                    CopyMode::Copy
                },
                buffer: optional(self.window, i32::MAX as u64, Code::BufferSize, "bytes of buffer")?
                    .map(|n| n as u32),
                mss: optional(self.mss, u16::MAX.into(), Code::Mss, "bytes of a segment")?.map(|n| n as u16),
                tos: optional(self.tos, 255, Code::Tos, "type of service")?.unwrap_or(0) as u8,
            },
            probes: additions.probes.then_some(Duration::ZERO),
            output: if self.get_server_output.is_some_and(|o| o != 0.0) {
                Output::WithServer
            } else {
                Output::ClientOnly
            },
            title: self.title.map(|title| printable_title(&title)),
        };
        plan.validate().map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        let counters = match self.udp_counters_64bit {
            Some(wide) if wide != 0.0 => CounterWidth::Bits64,
            _ => CounterWidth::Bits32,
        };
        Ok(Agreed { plan, length, counters, dialect: speaks })
    }
}

/// Returns the seconds for the wire. iperf3 reads whole seconds only; hopline keeps fractions, for tests shorter than a
/// second.
fn wire_seconds(seconds: f64) -> f64 {
    if seconds >= 1.0 { seconds.round() } else { seconds }
}

fn integer(value: f64, most: u64, code: Code, what: &str) -> Result<u64, Refusal> {
    let fits = value >= 0.0 && value <= most as f64;
    if fits { Ok(value as u64) } else { Err(Refusal::new(code, format!("{value} {what}"))) }
}

fn seconds(value: f64, code: Code) -> Result<Duration, Refusal> {
    Duration::try_from_secs_f64(value).map_err(|_| Refusal::new(code, format!("{value} seconds")))
}

/// Returns a title in printable form. iperf3 limits neither its length nor its characters.
fn printable_title(title: &str) -> String {
    let mut title = printable(title.as_bytes());
    title.truncate(title.floor_char_boundary(MAX_TITLE));
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Agreed, Refusal> {
        let parameters = serde_json::from_str::<Parameters>(text);
        parameters.map_err(|e| Refusal::new(Code::Parameters, e.to_string()))?.into_agreed()
    }

    #[test]
    fn parameters_of_iperf3_3_12_are_accepted() {
        let agreed = read(
            r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,
            "len":32768,"bandwidth":5000000,"pacing_timer":1000,"title":"hi","get_server_output":1,
            "client_version":"3.12"}"#,
        );
        let agreed = agreed.unwrap();
        assert_eq!(
            (agreed.length, agreed.counters, agreed.dialect),
            (32768, CounterWidth::Bits32, Dialect::Iperf3)
        );
        let plan = agreed.plan;
        assert_eq!((plan.transport, plan.direction, plan.streams), (Transport::Udp, Direction::Both, 2));
        assert_eq!((plan.rate.bps, plan.output), (5_000_000, Output::WithServer));
        assert_eq!((plan.limit, plan.title.as_deref()), (Limit::Time(Duration::from_secs(1)), Some("hi")));
    }

    #[test]
    fn parameters_round_trip() {
        for transport in [
            Transport::Tpa { cwnd_max: 3 },
            Transport::TpaWide,
            Transport::Tcp { congestion_control: None },
            Transport::Udp,
        ] {
            let plan = Plan {
                length: Some(1000),
                streams: 3,
                direction: Direction::Reverse,
                limit: Limit::Bytes(1 << 40),
                rate: Rate { bps: 7, burst: 5 },
                socket_options: SocketOptions {
                    nagle: Nagle::Off,
                    copy: CopyMode::ZeroCopy,
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
    fn every_test_of_an_iperf3_server_is_accepted() {
        let omitted = read(r#"{"tcp":true,"omit":1,"time":0,"num":1048576}"#).unwrap().plan;
        assert_eq!((omitted.omit, omitted.limit), (Duration::from_secs(1), Limit::Bytes(1 << 20)));
        let endless = read(r#"{"tcp":true,"omit":0,"time":0,"num":0,"blockcount":0}"#).unwrap().plan;
        assert_eq!(endless.limit, Limit::Time(MAX_TIME));
        let title = "ä".repeat(1000);
        let titled = read(&format!(r#"{{"tcp":true,"time":1,"title":"{title}"}}"#)).unwrap().plan;
        assert!(titled.title.unwrap().len() <= MAX_TITLE);
    }

    #[test]
    fn refusals_have_the_error_numbers_of_iperf3() {
        for (wrong, number) in [
            (r#"{"sctp":true,"time":1}"#, 18),
            (r#"{"tcp":true,"time":1,"parallel":129}"#, 6),
            (r#"{"tcp":true,"time":1,"parallel":1e18}"#, 6),
            (r#"{"tcp":true,"time":1,"len":2097152}"#, 7),
            (r#"{"udp":true,"time":1,"len":8}"#, 20),
            (r#"{"udp":true,"time":1,"len":65508}"#, 20),
            (r#"{"tcp":true,"time":1,"window":-1}"#, 8),
            (r#"{"tcp":true,"time":1,"MSS":65536}"#, 10),
            (r#"{"tcp":true,"time":1,"omit":86401}"#, 12),
            (r#"{"tcp":true,"time":1,"burst":1001}"#, 15),
            (r#"{"tcp":true,"time":1,"TOS":256}"#, 21),
            (r#"{"tcp":true,"time":86401}"#, 5),
            (r#"{"udp":true,"time":1,"bandwidth":-1}"#, 27),
            (r#"{"tcp":true,"time":1,"congestion":"../x"}"#, 134),
            (r#"{"time":1}"#, 114),
            (r#"{"tcp":true}"#, 114),
        ] {
            assert_eq!(read(wrong).unwrap_err().code as u32, number, "{wrong}");
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
            r#"{"time":1,"tcp":true,"hopline":{"tpa_wide":true}}"#,
            r#"{"time":1,"hopline":{"tpa_cwnd_max":3,"tpa_wide":true}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
