//! Records of a qlog file, as the drafts name their fields.

use hopline_core::Instant;
use serde::Serialize;
use std::net::Ipv4Addr;

/// Version of the main schema: the last one that qvis reads.
const QLOG_VERSION: &str = "0.3";
/// Text sequences of RFC 7464.
const QLOG_FORMAT: &str = "JSON-SEQ";
/// Start of the run as milliseconds of Unix time. It has no date, but qvis takes 0 for a file without a reference time.
const REFERENCE_TIME_MS: f64 = 1.0;
/// Offset of the clock, milliseconds. Both ends have the same clock, but qvis estimates an offset if the file has 0: hence a
/// nanosecond.
const TIME_OFFSET_MS: f64 = 1e-6;
/// Byte before a text (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// First record of a file.
#[derive(Serialize)]
pub(super) struct FileHeader<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    vantage_point: VantagePoint<'a>,
    title: &'a str,
    description: &'a str,
    configuration: Configuration,
    common_fields: CommonFields<'a>,
}

#[derive(Serialize)]
struct Configuration {
    time_offset: f64,
}

#[derive(Serialize)]
struct VantagePoint<'a> {
    name: &'a str,
    r#type: &'static str,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    protocol_type: [&'a str; 1],
    time_format: &'static str,
    reference_time: f64,
}

/// Role of an end when the connection opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// It opens the connection.
    Client,
    /// It waits for the client.
    Server,
}

impl<'a> FileHeader<'a> {
    /// Returns the header of the file of one end. `name`: of the end; `flow`: description of the flow.
    pub(super) fn new(
        title: &'a str,
        (name, role): (&'a str, ConnectionRole),
        flow: &'a str,
        protocol: &'a str,
    ) -> Self {
        let r#type = match role {
            ConnectionRole::Client => "client",
            ConnectionRole::Server => "server",
        };
        let common_fields = CommonFields {
            protocol_type: [protocol],
            time_format: "relative",
            reference_time: REFERENCE_TIME_MS,
        };
        let trace = Trace {
            vantage_point: VantagePoint { name, r#type },
            title: name,
            description: flow,
            configuration: Configuration { time_offset: TIME_OFFSET_MS },
            common_fields,
        };
        Self { qlog_version: QLOG_VERSION, qlog_format: QLOG_FORMAT, title, trace }
    }
}

/// Appends a record as a text of the sequence.
pub(super) fn append(record: &impl Serialize, out: &mut Vec<u8>) {
    out.push(RECORD_SEPARATOR);
    serde_json::to_writer(&mut *out, record).expect("a record has string keys, and memory accepts bytes");
    out.push(b'\n');
}

/// Event.
#[derive(Serialize)]
pub(super) struct Event<'a> {
    /// Milliseconds since the start of the run.
    time: f64,
    name: &'static str,
    data: Data<'a>,
}

impl<'a> Event<'a> {
    pub(super) fn new(now: Instant, data: Data<'a>) -> Self {
        // Whole microseconds.
        let time = (now.as_nanos() / 1000) as f64 / 1000.0;
        Self { time, name: data.name(), data }
    }
}

/// Data of an event.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Data<'a> {
    Started {
        ip_version: &'static str,
        src_ip: Ipv4Addr,
        dst_ip: Ipv4Addr,
        protocol: &'a str,
        src_port: u16,
        dst_port: u16,
    },
    State {
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'static str>,
        new: &'static str,
    },
    Closed {
        trigger: &'static str,
    },
    Parameters {
        owner: &'static str,
        /// The field has to be there.
        unknown_parameters: [(); 0],
        hopline: TransportName<'a>,
    },
    RecoveryParameters {
        max_datagram_size: u32,
    },
    Sent(PacketData<'a>),
    Received(PacketData<'a>),
    Lost {
        header: PacketHeader,
        frames: &'a [Frame],
        trigger: &'static str,
    },
    Metrics(Metrics),
    Congestion {
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'static str>,
        new: &'static str,
    },
    TimerExpired {
        timer_type: &'static str,
        event_type: &'static str,
    },
}

impl Data<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "connectivity:connection_started",
            Self::State { .. } => "connectivity:connection_state_updated",
            Self::Closed { .. } => "connectivity:connection_closed",
            Self::Parameters { .. } => "transport:parameters_set",
            Self::RecoveryParameters { .. } => "recovery:parameters_set",
            Self::Sent(_) => "transport:packet_sent",
            Self::Received(_) => "transport:packet_received",
            Self::Lost { .. } => "recovery:packet_lost",
            Self::Metrics(_) => "recovery:metrics_updated",
            Self::Congestion { .. } => "recovery:congestion_state_updated",
            Self::TimerExpired { .. } => "recovery:loss_timer_updated",
        }
    }
}

/// Names of the transport: an extension of `transport:parameters_set`.
#[derive(Serialize)]
pub(super) struct TransportName<'a> {
    pub(super) transport: &'a str,
    pub(super) flow: &'a str,
}

/// Packet that is sent or received.
#[derive(Serialize)]
pub(super) struct PacketData<'a> {
    pub(super) header: PacketHeader,
    pub(super) raw: RawInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trigger: Option<&'static str>,
    pub(super) frames: &'a [Frame],
    #[serde(flatten)]
    pub(super) extension: &'a Extension,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

impl PacketHeader {
    /// Returns the header of a packet of the only number space.
    pub(super) const fn new(packet_number: u64) -> Self {
        Self { packet_type: "1RTT", packet_number }
    }
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct RawInfo {
    /// Bytes after the IP header.
    pub(super) length: u64,
    /// Bytes of data.
    pub(super) payload_length: u64,
}

/// Part of a packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
pub(super) enum Frame {
    Stream {
        stream_id: u64,
        offset: u64,
        length: u64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        fin: bool,
    },
    Ack {
        #[serde(skip_serializing_if = "Option::is_none")]
        ack_delay: Option<f64>,
        acked_ranges: Vec<[u64; 2]>,
    },
    MaxData {
        maximum: u64,
    },
    Ping,
    ConnectionClose {
        error_space: &'static str,
        reason: &'static str,
    },
}

/// Fields of the transport's own header: an extension of packet events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Extension {
    Tcp(TcpFields),
    Tpa(TpaFields),
    TpaWide(WideFields),
    Quic(QuicFields),
}

/// Summary of a datagram of QUIC, with packets and acknowledgments in one piece.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct QuicFields {
    pub(super) is_initial: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ecn: Option<&'static str>,
}

/// Header of a TCP segment. Sequence numbers are relative to the SYN, which is 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TcpFields {
    pub(super) flags: String,
    pub(super) seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ack: Option<u64>,
    /// As in the header, before scaling.
    pub(super) window: u16,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sack: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ecn: Option<&'static str>,
}

/// Header of a TPA segment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TpaFields {
    pub(super) block: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<u8>,
    pub(super) tx: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ack_block: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ack_bitmap: Option<u16>,
}

/// Header of a TPA-wide packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct WideFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cumulative: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ecn: Option<&'static str>,
}

/// Metrics of recovery; a field that has not changed is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rtt_variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pto_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pacing_rate: Option<u64>,
}

impl Metrics {
    /// Returns the fields that differ from those `before`, if any.
    pub(super) fn changes(&self, before: &Self) -> Option<Self> {
        fn changed<T: PartialEq + Copy>(now: Option<T>, before: Option<T>) -> Option<T> {
            now.filter(|_| now != before)
        }
        let changes = Self {
            min_rtt: changed(self.min_rtt, before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, before.smoothed_rtt),
            latest_rtt: changed(self.latest_rtt, before.latest_rtt),
            rtt_variance: changed(self.rtt_variance, before.rtt_variance),
            pto_count: changed(self.pto_count, before.pto_count),
            congestion_window: changed(self.congestion_window, before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, before.ssthresh),
            pacing_rate: changed(self.pacing_rate, before.pacing_rate),
        };
        (changes != Self::default()).then_some(changes)
    }
}
