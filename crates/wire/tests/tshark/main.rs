//! Stock tshark decodes every kind of packet that hopline writes.
#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use bytes::Bytes;
use hopline_core::{Duration, Instant, Length, NodeId, Seq16, Seq32};
use hopline_harness::run;
use hopline_harness::tshark;
use hopline_wire::aodv::{self, Rerr, Rrep, Rreq};
use hopline_wire::dot11::{
    Bitmap, BlockAckAction, BlockAckPolicy, BlockAckSide, Frame, MacAddr, QosAckPolicy, REASON_TIMEOUT,
    STATUS_REQUEST_DECLINED,
};
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::olsr::{
    self, CodedTime, LinkCode, LinkMessage, LinkType as Link, NeighbourType, Willingness,
};
use hopline_wire::pcapng::{InterfaceId, LinkType, Writer};
use hopline_wire::tcp::{self, DoorOption, DoorReport, Flags, SackBlock, SackBlocks, Timestamps};
use hopline_wire::{Emit, icmp, udp};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

mod dproxy;
mod handoff;
mod nack;
mod ncn;
mod tpa;

fn main() -> ExitCode {
    let tests = hopline_harness::tests!([tshark::TSHARK];
        tshark_decodes_olsr,
        tshark_decodes_every_packet_kind_with_valid_checksums,
        tshark_decodes_block_acknowledgment,
        errors_of_tshark_fail_the_test,
        dproxy::every_field_of_messages_is_shown,
        dproxy::every_field_of_frames_is_shown,
        dproxy::every_field_of_datagrams_is_shown,
        dproxy::the_info_column_describes_packets_and_errors,
        dproxy::a_packet_within_a_frame_is_decoded,
        dproxy::the_dissector_reports_errors_exactly_where_the_parsers_do,
        handoff::every_field_is_shown,
        handoff::the_info_column_describes_packets_and_errors,
        handoff::the_dissector_reports_errors_exactly_where_the_parser_does,
        nack::every_nack_range_is_shown,
        ncn::every_field_is_shown,
        ncn::the_info_column_describes_packets_and_errors,
        ncn::the_dissector_reports_errors_exactly_where_the_parser_does,
        ncn::other_ports_can_be_configured,
        tpa::every_field_is_shown,
        tpa::every_violated_rule_is_named,
        tpa::the_dissector_reports_errors_exactly_where_the_parser_does,
        tpa::the_info_column_describes_packets,
        tpa::other_ports_are_known_from_the_syn_or_configuration,
        tpa::a_packet_truncated_by_the_capture_is_not_malformed,
    );
    run(tests, None)
}

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

/// Capture of a wireless node and a wired one, with the expected output of tshark for each packet.
struct Capture {
    writer: Writer<File>,
    wireless: InterfaceId,
    wired: InterfaceId,
    now: Instant,
    expected: Vec<&'static str>,
}

impl Capture {
    fn new(path: &Path) -> Self {
        let mut writer = Writer::new(File::create(path).unwrap()).unwrap();
        let wireless = writer.add_interface("n0", LinkType::Ieee80211).unwrap();
        let wired = writer.add_interface("gateway", LinkType::RawIp).unwrap();
        Self { writer, wireless, wired, now: Instant::ZERO, expected: Vec::new() }
    }

    fn frame(&mut self, frame: &Frame<Bytes>, comment: Option<&str>, expected: &'static str) {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        self.write(self.wireless, &bytes, comment, expected);
    }

    /// An IP packet, on the air and on the wire.
    fn packet(&mut self, packet: Vec<u8>, on_air: &'static str, on_wire: &'static str) {
        self.write(self.wired, &packet, None, on_wire);
        let (duration_us, sequence) = (213, Seq16(self.expected.len() as u16));
        let (ra, ta) = (MacAddr::of_node(B), MacAddr::of_node(A));
        let body = Bytes::from(packet);
        let frame = Frame::Data { duration_us, ra, ta, sequence, retry: false, body };
        self.frame(&frame, Some("dropped: queue full"), on_air);
    }

    fn tcp<P: Emit>(&mut self, segment: &tcp::Segment<P>) {
        let packet = ip_packet(Protocol::Tcp, segment.wire_len(), |ip, out| segment.emit(ip, out));
        let on_air = if segment.payload.is_empty() { "wlan:llc:ip:tcp" } else { "wlan:llc:ip:tcp:data" };
        self.packet(packet, on_air, &on_air.replace("wlan:llc", "raw").leak()[..]);
    }

    fn udp<P: Emit>(&mut self, port: u16, payload: P, on_air: &'static str, on_wire: &'static str) {
        let datagram = udp::Datagram { src_port: port, dst_port: port, payload };
        let packet = ip_packet(Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out));
        self.packet(packet, on_air, on_wire);
    }

    fn aodv(&mut self, message: &aodv::Message) {
        let mut payload = Vec::new();
        message.emit(&mut payload);
        self.udp(aodv::PORT, Bytes::from(payload), "wlan:llc:ip:udp:aodv", "raw:ip:udp:aodv");
    }

    fn olsr(&mut self, messages: Vec<olsr::Message>) {
        let mut payload = Vec::new();
        olsr::Packet { seq: Seq16(7), messages }.emit(&mut payload);
        self.udp(olsr::PORT, Bytes::from(payload), "wlan:llc:ip:udp:olsr", "raw:ip:udp:olsr");
    }

    fn write(&mut self, interface: InterfaceId, bytes: &[u8], comment: Option<&str>, expected: &'static str) {
        self.now += Duration::from_nanos(1_000_000_001);
        self.writer.packet(interface, self.now, bytes, comment).unwrap();
        self.expected.push(expected);
    }
}

fn ip_packet(protocol: Protocol, len: usize, payload: impl Fn(&Header, &mut Vec<u8>)) -> Vec<u8> {
    let ip = Header { src: A.ipv4(), dst: B.ipv4(), ttl: 64, protocol, ecn: Ecn::Capable0, id: 7 };
    let mut out = Vec::new();
    ip.emit(len, &mut out);
    payload(&ip, &mut out);
    out
}

/// Writes a capture of these IP packets; returns the result of `read` on it.
fn raw_capture<T>(packets: &[Vec<u8>], read: impl FnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("raw.pcapng");
    let mut capture = Capture::new(&path);
    for packet in packets {
        capture.write(capture.wired, packet, None, "");
    }
    capture.writer.finish().unwrap();
    read(&path)
}

fn control_frames(capture: &mut Capture) {
    let (ra, ta) = (MacAddr::of_node(B), MacAddr::of_node(A));
    capture.frame(&Frame::Rts { duration_us: 1000, ra, ta }, None, "wlan");
    capture.frame(&Frame::Cts { duration_us: 700, ra }, Some("collision with n2"), "wlan");
    capture.frame(&Frame::Ack { duration_us: 0, ra }, None, "wlan");
}

fn segments(capture: &mut Capture) {
    let mut segment = tcp::Segment {
        src_port: 49_152,
        dst_port: 5001,
        seq: Seq32(1000),
        flags: Flags::SYN,
        window: 0xffff,
        payload: Length(0),
        ..tcp::Segment::default()
    };
    segment.options.mss = Some(1460);
    segment.options.window_scale = Some(7);
    segment.options.sack_permitted = true;
    capture.tcp(&segment);
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    capture.tcp(&segment);

    segment.flags = Flags::ACK | Flags::PSH;
    segment.options.mss = None;
    segment.options.window_scale = None;
    segment.options.sack_permitted = false;
    segment.payload = Length(1460);
    capture.tcp(&segment);
    segment.options.timestamps = None;
    segment.payload = Length(1);
    capture.tcp(&segment);
    for block in 1..=4 {
        let left = Seq32(10_000 * block);
        segment.options.sack.push(SackBlock { left, right: left + 1460 });
        capture.tcp(&segment);
        segment.options.timestamps = Some(Timestamps { value: 9, echo: 8 });
        capture.tcp(&segment);
        segment.options.timestamps = None;
    }
    segment.options.sack = SackBlocks::default();
    let report = DoorReport { adsn: Some(3), tpsn: Some(700), out_of_order: true };
    segment.options.door = Some(DoorOption::Report(report));
    capture.tcp(&segment);
    segment.options.door = Some(DoorOption::Report(DoorReport { tpsn: None, ..report }));
    capture.tcp(&segment);
    segment.options.door = None;
    segment.flags = Flags::RST;
    segment.payload = Length(0);
    capture.tcp(&segment);
}

fn reports(capture: &mut Capture) {
    let about = ip_packet(Protocol::Tcp, 20, |ip, out| {
        let segment =
            tcp::Segment { src_port: 49_152, dst_port: 9, payload: Length(0), ..tcp::Segment::default() };
        segment.emit(ip, out);
    });
    for reason in [icmp::UnreachableCode::Network, icmp::UnreachableCode::Host] {
        let report = icmp::Unreachable::for_packet(reason, &about).unwrap();
        let packet = ip_packet(Protocol::Icmp, icmp::Unreachable::LEN, |_, out| report.emit(out));
        capture.packet(packet, "wlan:llc:ip:icmp:ip:tcp", "raw:ip:icmp:ip:tcp");
    }
}

fn datagrams(capture: &mut Capture) {
    capture.udp(4000, Length(512), "wlan:llc:ip:udp:data", "raw:ip:udp:data");
    let rreq = Rreq {
        join: false,
        repair: false,
        gratuitous: true,
        destination_only: true,
        hop_count: 2,
        id: 5,
        destination: B.ipv4(),
        destination_seq: None,
        originator: A.ipv4(),
        originator_seq: Seq32(3),
    };
    let rrep = Rrep {
        repair: false,
        ack_required: true,
        prefix_size: 0,
        hop_count: 1,
        destination: B.ipv4(),
        destination_seq: Seq32(4),
        originator: A.ipv4(),
        lifetime: Duration::from_secs(6),
    };
    let hello = Rrep {
        ack_required: false,
        hop_count: 0,
        destination: A.ipv4(),
        lifetime: Duration::from_secs(2),
        ..rrep.clone()
    };
    let known = Rreq { destination_seq: Some(Seq32(9)), ..rreq.clone() };
    let one = Rerr { no_delete: false, unreachable: vec![(B.ipv4(), Seq32(5))] };
    let many = Rerr { no_delete: true, unreachable: vec![(B.ipv4(), Seq32(5)); 50] };
    for message in [
        aodv::Message::Rreq(rreq),
        aodv::Message::Rreq(known),
        aodv::Message::Rrep(rrep),
        aodv::Message::Rrep(hello),
        aodv::Message::Rerr(one),
        aodv::Message::Rerr(many),
        aodv::Message::RrepAck,
    ] {
        capture.aodv(&message);
    }
}

/// HELLO of a neighbour, links of every kind.
fn hello() -> olsr::Message {
    let code = |link, neighbour| LinkCode::Valid { link, neighbour };
    let link = |code, node: u32| LinkMessage { code, neighbours: vec![NodeId(node).ipv4()] };
    let links = vec![
        link(code(Link::Symmetric, NeighbourType::Mpr), 1),
        link(code(Link::Symmetric, NeighbourType::Symmetric), 2),
        link(code(Link::Asymmetric, NeighbourType::NotNeighbour), 3),
        link(code(Link::Lost, NeighbourType::NotNeighbour), 4),
    ];
    let interval = CodedTime::at_least(Duration::from_secs(2));
    let hello = olsr::Hello { interval, willingness: Willingness::DEFAULT, links };
    let validity = CodedTime::at_least(Duration::from_secs(6));
    let body = olsr::Body::Hello(hello);
    olsr::Message { validity, originator: A.ipv4(), ttl: 1, hop_count: 0, seq: Seq16(8), body }
}

/// Every other message, in one packet.
fn forwarded_messages() -> Vec<olsr::Message> {
    let network =
        olsr::Network { address: "192.168.0.0".parse().unwrap(), mask: "255.255.0.0".parse().unwrap() };
    let tc = olsr::Tc { ansn: Seq16(9), neighbours: vec![A.ipv4(), B.ipv4()] };
    let bodies = [olsr::Body::Tc(tc), olsr::Body::Mid(vec![B.ipv4()]), olsr::Body::Hna(vec![network])];
    let validity = CodedTime::at_least(Duration::from_secs(15));
    let message = |(n, body)| olsr::Message {
        validity,
        originator: A.ipv4(),
        ttl: 255,
        hop_count: 3,
        seq: Seq16(n),
        body,
    };
    (10..).zip(bodies).map(message).collect()
}

fn tshark_decodes_olsr() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("olsr.pcapng");
    let mut capture = Capture::new(&path);
    capture.olsr(vec![hello()]);
    capture.olsr(forwarded_messages());
    let Capture { writer, expected, .. } = capture;
    writer.finish().unwrap();

    let decoded = tshark::assert_well_formed(&path);
    let protocols: Vec<_> = decoded.into_iter().map(|packet| packet.protocols).collect();
    assert_eq!(protocols, expected);
    let header =
        ["olsr.packet_len", "olsr.packet_seq_num", "olsr.message_type", "olsr.vtime", "olsr.message_seq_num"];
    let hello = ["olsr.htime", "olsr.willingness", "olsr.link_type", "olsr.neighbor_addr"];
    let others = ["olsr.ansn", "olsr.hop_count", "olsr.interface_addr", "olsr.network_addr", "olsr.netmask"];
    let rows = tshark::fields(&path, &[&header[..], &hello[..], &others[..]].concat());
    let neighbours = "10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5";
    assert_eq!(rows[0][..9], ["52", "7", "1", "6", "8", "2", "3", "10,6,1,3", neighbours]);
    assert_eq!(rows[2][..5], ["64", "7", "2,3,4", "15,15,15", "10,11,12"]);
    assert_eq!(rows[2][8..], ["10.0.0.1,10.0.0.2", "9", "3,3,3", "10.0.0.2", "192.168.0.0", "255.255.0.0"]);
}

fn tshark_decodes_every_packet_kind_with_valid_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.pcapng");
    let mut capture = Capture::new(&path);
    control_frames(&mut capture);
    segments(&mut capture);
    datagrams(&mut capture);
    reports(&mut capture);
    let Capture { writer, expected, .. } = capture;
    writer.finish().unwrap();

    let decoded = tshark::assert_well_formed(&path);
    let protocols: Vec<_> = decoded.into_iter().map(|packet| packet.protocols).collect();
    assert_eq!(protocols, expected);

    let rows = tshark::fields(&path, &["frame.interface_name", "frame.time_epoch", "frame.comment"]);
    assert_eq!(rows[0], ["n0", "1.000000001", ""]);
    assert_eq!(rows[1], ["n0", "2.000000002", "collision with n2"]);
    assert_eq!(rows[3], ["gateway", "4.000000004", ""]);
    assert_eq!(rows[4], ["n0", "5.000000005", "dropped: queue full"]);
}

fn tshark_decodes_block_acknowledgment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("block.pcapng");
    let mut capture = Capture::new(&path);
    let (ra, ta) = (MacAddr::of_node(B), MacAddr::of_node(A));
    let datagram = udp::Datagram { src_port: 4000, dst_port: 4000, payload: Length(100) };
    let packet = ip_packet(Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out));
    let (sequence, ack, body) = (Seq16(4095), QosAckPolicy::BlockAck, Bytes::from(packet));
    let frame = Frame::QosData { duration_us: 400, ra, ta, sequence, retry: true, tid: 6, ack, body };
    capture.frame(&frame, None, "wlan:llc:ip:udp:data");
    let start = Seq16(4095);
    capture.frame(&Frame::BlockAckReq { duration_us: 84, ra, ta, tid: 6, start }, None, "wlan");
    let bitmap = Bitmap::from_bits(0b101);
    let reply = Frame::BlockAck { duration_us: 0, ra: ta, ta: ra, tid: 6, start, bitmap };
    capture.frame(&reply, None, "wlan");
    block_ack_setup(&mut capture, ra, ta);
    let Capture { writer, expected, .. } = capture;
    writer.finish().unwrap();

    let decoded = tshark::assert_well_formed(&path);
    let protocols: Vec<_> = decoded.into_iter().map(|packet| packet.protocols).collect();
    assert_eq!(protocols, expected);
    let numbers = ["wlan.fc.type_subtype", "wlan.qos.ack", "wlan.seq", "wlan.fixed.ssc.sequence"];
    let rows = tshark::fields(&path, &[&numbers[..], &["wlan.ba.bm"]].concat());
    assert_eq!(rows[0], ["0x0028", "0x0003", "4095", "", ""]);
    assert_eq!(rows[1], ["0x0018", "", "", "4095", ""]);
    assert_eq!(rows[2], ["0x0019", "", "", "4095", "0500000000000000"]);
    let names = ["action_code", "dialog_token", "baparams.policy", "baparams.tid", "baparams.buffersize"];
    let names: Vec<_> = names.iter().map(|name| format!("wlan.fixed.{name}")).collect();
    let others = ["wlan.fixed.batimeout", "wlan.fixed.ssc.sequence", "wlan.fixed.status_code"];
    let reason = ["wlan.fixed.delba.param.tid", "wlan.fixed.delba.param.initiator", "wlan.fixed.reason_code"];
    let fields: Vec<_> = names.iter().map(String::as_str).chain(others).chain(reason).collect();
    let rows = tshark::fields(&path, &fields);
    let flag = |row: &[String], at: usize| matches!(row[at].as_str(), "1" | "True" | "0x0001");
    assert_eq!(rows[3][..2], ["0x00", "0x07"]);
    assert!(flag(&rows[3], 2));
    assert_eq!(rows[3][3..7], ["0x0006", "64", "0x0062", "4095"]);
    assert_eq!(rows[4][..2], ["0x01", "0x07"]);
    assert_eq!(rows[4][4..8], ["64", "0x0062", "", "0x0025"]);
    assert_eq!(
        (rows[5][0].as_str(), rows[5][8].as_str(), rows[5][10].as_str()),
        ("0x02", "0x0006", "0x0027")
    );
    assert!(!flag(&rows[5], 9));
}

/// The three frames that set up and end an agreement.
fn block_ack_setup(capture: &mut Capture, ra: MacAddr, ta: MacAddr) {
    let (dialog_token, kind, tid, buffer_size, timeout_tu) = (7, BlockAckPolicy::Immediate, 6, 64, 98);
    let start = Seq16(4095);
    let request =
        BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start };
    let status = STATUS_REQUEST_DECLINED;
    let response =
        BlockAckAction::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu };
    let end = BlockAckAction::Delba { side: BlockAckSide::Recipient, tid, reason: REASON_TIMEOUT };
    for (action, ra, ta) in [(request, ra, ta), (response, ta, ra), (end, ta, ra)] {
        let (sequence, duration_us) = (Seq16(9), 314);
        let frame = Frame::Action { duration_us, ra, ta, sequence, retry: false, action };
        capture.frame(&frame, None, "wlan");
    }
}

fn errors_of_tshark_fail_the_test() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.pcapng");
    let mut capture = Capture::new(&path);
    // A data frame with a wrong frame check sequence.
    let mut bytes = Vec::new();
    Frame::<Bytes>::Ack { duration_us: 0, ra: MacAddr::of_node(A) }.emit(&mut bytes);
    bytes[13] ^= 1;
    capture.write(capture.wireless, &bytes, None, "");
    capture.writer.finish().unwrap();
    let judged = std::panic::catch_unwind(|| tshark::assert_well_formed(&path));
    let message = *judged.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(message, "packet 1 (wlan): wlan.fcs.status is 0");
}
