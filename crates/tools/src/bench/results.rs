//! Results of one side, as it sends them to the peer in JSON.

use super::datagram::DatagramStats;
use super::parameters::Dialect;
use super::plan::{CongestionControl, Plan, Transport};
use super::report::{Cpu, Role, RttSummary, SendingReport, ServerOutput, SideReport, StreamReport};
use crate::printable::printable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Results of one side on the wire: iperf3's keys in its order, and hopline's last.
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
    /// Lost datagrams in total, including the omission, which iperf3 subtracts.
    errors: f64,
    /// Absent before iperf3 3.14, as is the next key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    omitted_errors: Option<f64>,
    packets: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    omitted_packets: Option<f64>,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hopline: Option<SenderExtras>,
}

/// Additional statistics of a hopline sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct SenderExtras {
    max_snd_cwnd: u64,
    max_snd_wnd: u64,
    /// Minimum round-trip time in µs. Absent without a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<[u32; 3]>,
    out_of_order: u64,
}

/// This side's data about the test, needed to interpret the peer's results.
pub(super) struct LocalContext<'a> {
    /// Roles of the peer.
    pub(super) roles: &'a [Role],
    pub(super) plan: &'a Plan,
    /// Bytes of one write.
    pub(super) length: u32,
    /// Datagrams of each stream that this side omitted.
    pub(super) omitted: &'a [DatagramStats],
}

/// Returns the number that iperf3 gives to a stream: 1, 3, 4, 5, …
fn iperf3_stream_id(index: usize) -> f64 {
    if index == 0 { 1.0 } else { index as f64 + 2.0 }
}

impl Results {
    /// Returns the results for the wire. `omitted`: datagrams of each stream that are not in the report.
    pub(super) fn of(report: &SideReport, omitted: &[DatagramStats], speaks: Dialect) -> Self {
        let retransmits = report.streams.iter().filter_map(|s| s.sending).map(|s| s.retransmits);
        let stream = |(index, stream): (usize, &StreamReport)| {
            let datagrams = stream.datagrams.unwrap_or_default();
            let omitted = omitted.get(index).copied().unwrap_or_default();
            let sending = stream.sending.unwrap_or_default();
            let seen = SenderExtras {
                max_snd_cwnd: sending.max_cwnd,
                max_snd_wnd: sending.max_peer_window,
                rtt: sending.rtt.map(|rtt| [rtt.min, rtt.mean, rtt.max].map(microseconds)),
                out_of_order: datagrams.out_of_order,
            };
            StreamResult {
                id: iperf3_stream_id(index),
                bytes: stream.bytes as f64,
                retransmits: stream.sending.map_or(-1.0, |s| s.retransmits as f64),
                jitter: datagrams.jitter.as_secs_f64(),
                errors: datagrams.lost.saturating_add(omitted.lost) as f64,
                omitted_errors: Some(omitted.lost as f64),
                packets: datagrams.packets.saturating_add(omitted.packets) as f64,
                omitted_packets: Some(omitted.packets as f64),
                start_time: 0.0,
                end_time: report.elapsed.as_secs_f64(),
                hopline: (speaks == Dialect::Hopline).then_some(seen),
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

    /// Returns the report on the streams of the test. `Err`: the reason that the results do not belong to the test.
    pub(super) fn into_report(self, here: &LocalContext<'_>) -> Result<SideReport, String> {
        let mut elapsed = Duration::ZERO;
        let mut streams = Vec::new();
        for (index, &role) in here.roles.iter().enumerate() {
            let found = self.streams.iter().find(|stream| stream.id == iperf3_stream_id(index));
            let stream = found.ok_or("results of another test")?;
            let span = Duration::try_from_secs_f64(stream.end_time - stream.start_time.max(0.0));
            elapsed = elapsed.max(span.unwrap_or_default());
            let omitted = here.omitted.get(index).copied().unwrap_or_default();
            let udp = here.plan.transport == Transport::Udp;
            let datagrams = udp.then(|| stream.datagrams(omitted, here.length));
            streams.push(stream.to_report(role, datagrams));
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
    /// Returns the datagrams that count. `here`: those that this side omitted.
    fn datagrams(&self, here: DatagramStats, length: u32) -> DatagramStats {
        let (all, errors) = (self.packets as u64, self.errors as u64);
        let (packets, lost) = match (self.omitted_packets, self.omitted_errors) {
            (Some(packets), Some(errors_before)) => {
                (all.saturating_sub(packets as u64), errors.saturating_sub(errors_before as u64))
            }
            // As iperf3 does with older peers: the peer is assumed to have omitted about as many.
            _ if here.packets > 0 => {
                let packets = all.saturating_sub(here.packets);
                // The bytes exclude the omission. All datagrams have the same length.
                let arrived = self.bytes as u64 / u64::from(length.max(1));
                (packets, packets.saturating_sub(arrived).min(errors))
            }
            _ => (all, errors),
        };
        DatagramStats {
            packets,
            lost,
            out_of_order: self.hopline.as_ref().map_or(0, |seen| seen.out_of_order),
            jitter: Duration::try_from_secs_f64(self.jitter).unwrap_or_default(),
        }
    }

    fn to_report(&self, role: Role, datagrams: Option<DatagramStats>) -> StreamReport {
        let seen = self.hopline.clone().unwrap_or_default();
        let rtt = seen.rtt.map(|rtt| {
            let [min, mean, max] = rtt.map(|us| Duration::from_micros(us.into()));
            RttSummary { min, mean, max }
        });
        // If the system reports no count, iperf3 sends −1, possibly as an unsigned number.
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
            sending: (role == Role::Sends && datagrams.is_none()).then_some(sending),
            datagrams,
        }
    }
}

fn microseconds(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Returns several lines of a peer's output in printable form, without control sequences.
fn lines(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + &printable(line.as_bytes()) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = serde_json::to_string(&Results::of(&report, &[], Dialect::Hopline)).unwrap();
        assert!(text.contains(r#""id":1.0"#) && text.contains(r#""id":3.0"#) && text.contains(r#""id":4.0"#));
        let plan = Plan::new(Transport::Tcp { congestion_control: None });
        let read: Results = serde_json::from_str(&text).unwrap();
        let here = |roles| LocalContext { roles, plan: &plan, length: 1000, omitted: &[] };
        assert_eq!(read.clone().into_report(&here(&[Role::Sends; 3])), Ok(report));
        assert!(read.into_report(&here(&[Role::Sends; 4])).is_err(), "a stream is missing");
    }

    /// Returns the datagrams of the only stream of a test of which this side omitted 39.
    fn counted(text: &str, role: Role) -> DatagramStats {
        let read: Results = serde_json::from_str(text).unwrap();
        let omitted = [DatagramStats { packets: 39, ..DatagramStats::default() }];
        let plan = Plan::new(Transport::Udp);
        let here = LocalContext { roles: &[role], plan: &plan, length: 1000, omitted: &omitted };
        read.into_report(&here).unwrap().streams[0].datagrams.unwrap()
    }

    #[test]
    fn omitted_datagrams_are_reported_beside_the_totals_and_subtracted() {
        let seen = DatagramStats { packets: 76, lost: 3, ..DatagramStats::default() };
        let stream =
            StreamReport { role: Role::Receives, bytes: 73_000, sending: None, datagrams: Some(seen) };
        let report = SideReport {
            elapsed: Duration::from_secs(2),
            cpu: Cpu::default(),
            congestion_control: None,
            streams: vec![stream],
            output: None,
        };
        let omitted = DatagramStats { packets: 38, lost: 2, ..DatagramStats::default() };
        let text = serde_json::to_string(&Results::of(&report, &[omitted], Dialect::Iperf3)).unwrap();
        let keys = r#""errors":5.0,"omitted_errors":2.0,"packets":114.0,"omitted_packets":38.0"#;
        assert!(text.contains(keys), "{text}");
        assert_eq!(counted(&text, Role::Receives), seen);
    }

    #[test]
    fn omissions_of_iperf3_before_3_14_are_those_of_this_side() {
        let of = |bytes, errors| {
            format!(
                r#"{{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[
                {{"id":1,"bytes":{bytes},"retransmits":-1,"jitter":0,"errors":{errors},"packets":115}}]}}"#
            )
        };
        let told = |bytes, errors| {
            let DatagramStats { packets, lost, .. } = counted(&of(bytes, errors), Role::Receives);
            (packets, lost)
        };
        assert_eq!(told(76_000, 0), (76, 0));
        assert_eq!(told(76_000, 9), (76, 0), "all were lost before");
        assert_eq!(told(70_000, 9), (76, 6), "three were lost before");
        assert_eq!(told(0, 2), (76, 2), "no more than were lost at all");
        assert_eq!(counted(&of(76_000, 0), Role::Sends).packets, 76);
    }

    #[test]
    fn hostile_results_are_bounded() {
        let text = r#"{"cpu_util_total":1,"cpu_util_user":-1e300,"cpu_util_system":1e308,"sender_has_retransmits":-1,
            "server_output_text":"a\u001b[2J","streams":[{"id":1,"bytes":1e300,"retransmits":1.8446744073709552e+19,
            "jitter":-1,"errors":-3,"packets":1e30,"start_time":-1e300,"end_time":1e300}]}"#;
        let read: Results = serde_json::from_str(text).unwrap();
        let plan = Plan::new(Transport::Udp);
        let here = LocalContext { roles: &[Role::Receives], plan: &plan, length: 0, omitted: &[] };
        let report = read.into_report(&here).unwrap();
        assert_eq!((report.streams[0].bytes, report.elapsed), (u64::MAX, Duration::ZERO));
        assert_eq!(report.output, Some(ServerOutput::Text("a\\u{1b}[2J\n".into())));
    }
}
