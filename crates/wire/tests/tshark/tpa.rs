//! Tests that the Wireshark dissector of TPA shows the emitted fields, and reports exactly the errors of the parser.

use super::{A, B, ip_packet, raw_capture};
use bytes::Bytes;
use hopline_core::{Purpose, RandomStream};
use hopline_harness::tshark::Capture;
use hopline_wire::checksum::ChecksumSum;
use hopline_wire::ipv4::{Ecn, Header};
use hopline_wire::tpa::{
    self, Ack, Bitmap, ChallengeToken, Control, NATIVE_HEADER_LEN, Opening, POSITIONS, Ports, Receipt,
    Segment, SegmentPosition, Tag, TxStat, UDP_HEADER_LEN,
};
use hopline_wire::{ipv4, udp};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use std::borrow::Cow;
use std::fs::File;
use std::num::NonZeroU64;
use std::path::Path;

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/tpa.lua");
const PORTS: Ports = Ports { src: 40_000, dst: tpa::PORT };
/// Severity "error" of expert information, as tshark prints it.
const ERROR: &str = "8388608";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Udp,
    Native,
}

const FORMS: [Form; 2] = [Form::Udp, Form::Native];

impl Form {
    fn emit(self, segment: &Segment<Bytes>) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Udp => segment.emit_udp(&mut out),
            Self::Native => segment.emit_native(&native_ip(), PORTS, &mut out),
        }
        out
    }

    fn refuses(self, bytes: &[u8]) -> bool {
        let bytes = Bytes::copy_from_slice(bytes);
        match self {
            Self::Udp => Segment::parse_udp(&bytes).is_err(),
            Self::Native => Segment::parse_native(&native_ip(), &bytes).is_err(),
        }
    }

    fn packet(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Udp => udp_packet(PORTS, bytes),
            Self::Native => ip_packet(tpa::PROTOCOL, bytes.len(), |_, out| out.extend(bytes)),
        }
    }

    /// Returns tshark's protocol names of such a packet.
    const fn protocols(self, has_data: bool) -> &'static str {
        match (self, has_data) {
            (Self::Udp, true) => "raw:ip:udp:tpa:data",
            (Self::Udp, false) => "raw:ip:udp:tpa",
            (Self::Native, true) => "raw:ip:tpa.native:data",
            (Self::Native, false) => "raw:ip:tpa.native",
        }
    }
}

fn udp_packet(ports: Ports, bytes: &[u8]) -> Vec<u8> {
    let payload = Bytes::copy_from_slice(bytes);
    let datagram = udp::Datagram { src_port: ports.src, dst_port: ports.dst, payload };
    ip_packet(ipv4::Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out))
}

/// Returns the header for the pseudo header of the native form, as `ip_packet` writes it.
fn native_ip() -> Header {
    let protocol = tpa::PROTOCOL;
    Header { src: A.ipv4(), dst: B.ipv4(), ttl: 64, protocol, ecn: Ecn::Capable0, id: 7 }
}

fn tag(n: u64) -> Option<Tag> {
    NonZeroU64::new(n).map(Tag)
}

fn data() -> Segment<Bytes> {
    Segment {
        block: 131,
        position: Some(SegmentPosition { position: 9, is_last: false }),
        tx: 12,
        ack: Some(Ack { block: 131, bitmap: Bitmap::first(9), tx: 11 }),
        window: 17_520,
        payload: Bytes::from_static(b"ad hoc"),
        ..Segment::default()
    }
}

fn syn() -> Segment<Bytes> {
    let opening = Opening { tag: tag(7), mss: 1452, block_segments: 12, cwnd_max: 3 };
    Segment {
        control: Control::Syn,
        window: 0xffff,
        tag: tag(1),
        opening: Some(opening),
        ..Segment::default()
    }
}

/// Returns a random valid segment.
fn random_segment(stream: &mut RandomStream) -> Segment<Bytes> {
    let ack = Ack {
        block: stream.bits() as u16,
        bitmap: Bitmap::from_bits(stream.bits() as u16),
        tx: stream.bits() as u8,
    };
    let opening = Opening {
        tag: tag(stream.bits() * u64::from(stream.below(2))),
        mss: stream.bits() as u16,
        block_segments: 1 + stream.below(POSITIONS.into()) as u8,
        cwnd_max: 1 + stream.below(255) as u8,
    };
    let token = ChallengeToken(stream.bits());
    let control = [
        Control::None,
        Control::None,
        Control::Syn,
        Control::Fin,
        Control::Rst,
        Control::Challenge(token),
        Control::Echo(token),
        Control::StatelessReset,
    ][stream.below(8) as usize];
    let of_path = matches!(control, Control::Challenge(_) | Control::Echo(_) | Control::StatelessReset);
    let may_have_data = matches!(control, Control::None | Control::Fin);
    let has_place = control == Control::Fin || may_have_data && stream.below(3) > 0;
    let place =
        SegmentPosition { position: stream.below(POSITIONS.into()) as u8, is_last: stream.below(2) == 1 };
    let may_be_long = has_place || matches!(control, Control::Challenge(_));
    let len = if may_be_long { stream.below(40) as usize } else { 0 };
    let tag_at_random = tag(stream.bits() * u64::from(stream.below(2)));
    let tag = if of_path { tag_at_random.or(tag(1)) } else { tag_at_random };
    let receipt = Receipt { nonce: stream.bits() as u16, proof: stream.bits() as u16 };
    Segment {
        block: stream.bits() as u16,
        position: has_place.then_some(place),
        tx: stream.bits() as u8,
        ack: (stream.below(2) == 1 && !of_path).then_some(ack),
        control,
        tx_stat: [TxStat::Normal, TxStat::Congested][stream.below(2) as usize],
        window: stream.bits() as u16,
        tag,
        receipt: if tag.is_some() { receipt } else { Receipt::default() },
        opening: (stream.below(3) == 0 && !of_path).then_some(opening),
        payload: (0..len).map(|_| stream.bits() as u8).collect(),
    }
}

fn random_segments(run: u64, count: usize) -> Vec<Segment<Bytes>> {
    let mut stream = RandomStream::keyed(1, run, 0, Purpose::Emulation);
    (0..count).map(|_| random_segment(&mut stream)).collect()
}

/// Returns the fields that the dissector must show for a segment: filter names, and values as tshark prints them.
fn expected_fields(form: Form, segment: &Segment<Bytes>) -> Vec<(&'static str, String)> {
    let bytes = form.emit(segment);
    let native = |value: String| if form == Form::Native { value } else { String::new() };
    let mut fields = vec![
        ("tpa.srcport", native(PORTS.src.to_string())),
        ("tpa.dstport", native(PORTS.dst.to_string())),
        ("tpa.port", native(format!("{},{}", PORTS.src, PORTS.dst))),
        (
            "tpa.checksum",
            native(format!("0x{:02x}{:02x}", bytes.get(14).unwrap_or(&0), bytes.get(15).unwrap_or(&0))),
        ),
        ("tpa.checksum.status", native("1".into())),
    ];
    fields.extend(expected_numbers(form, segment));
    fields.extend(expected_flags(segment));
    fields.extend(expected_extensions(segment));
    fields.extend([
        ("data.data", segment.payload.iter().map(|byte| format!("{byte:02x}")).collect()),
        ("_ws.expert.message", String::new()),
        ("_ws.lua.error", String::new()),
    ]);
    fields
}

fn expected_numbers(form: Form, segment: &Segment<Bytes>) -> Vec<(&'static str, String)> {
    // The native form has the lower eight bits only.
    let block = |number: u16| if form == Form::Udp { number } else { number & 0xff };
    let upper = |number: u16| if form == Form::Udp { (number >> 8).to_string() } else { String::new() };
    let ack = |show: &dyn Fn(Ack) -> String| segment.ack.map(show).unwrap_or_default();
    let bitmap_data = segment.position.map_or(0, |place| Bitmap::single(place.position).bits());
    let positions = |set: Bitmap| set.positions().map(|p| p.to_string()).collect::<Vec<_>>().join(",");
    vec![
        ("tpa.block", block(segment.block).to_string()),
        ("tpa.block.upper", upper(segment.block)),
        ("tpa.bitmap_data", format!("0x{bitmap_data:04x}")),
        ("tpa.position", segment.position.map(|place| place.position.to_string()).unwrap_or_default()),
        ("tpa.tx", segment.tx.to_string()),
        ("tpa.ack_block", ack(&|ack| block(ack.block).to_string())),
        ("tpa.ack_block.upper", ack(&|ack| upper(ack.block))),
        ("tpa.bitmap_ack", ack(&|ack| format!("0x{:04x}", ack.bitmap.bits()))),
        ("tpa.ack_position", ack(&|ack| positions(ack.bitmap))),
        ("tpa.ack_tx", ack(&|ack| ack.tx.to_string())),
        ("tpa.window", segment.window.to_string()),
        ("tpa.len", segment.payload.len().to_string()),
    ]
}

fn expected_flags(segment: &Segment<Bytes>) -> Vec<(&'static str, String)> {
    let flags = [
        ("tpa.flags.ack", segment.ack.is_some()),
        (
            "tpa.flags.rst",
            matches!(segment.control, Control::Rst | Control::Echo(_) | Control::StatelessReset),
        ),
        (
            "tpa.flags.syn",
            matches!(segment.control, Control::Syn | Control::Challenge(_) | Control::StatelessReset),
        ),
        ("tpa.flags.fin", matches!(segment.control, Control::Fin | Control::Challenge(_) | Control::Echo(_))),
        ("tpa.txstat", segment.tx_stat == TxStat::Congested),
        ("tpa.flags.last", segment.position.is_some_and(|place| place.is_last)),
        ("tpa.flags.opening", segment.opening.is_some()),
        ("tpa.flags.tag", segment.tag.is_some()),
    ];
    let byte = flags.iter().fold(0, |byte: u8, (_, set)| byte << 1 | u8::from(*set));
    let mut fields = vec![("tpa.flags", format!("0x{byte:02x}"))];
    fields.extend(flags.map(|(name, set)| (name, u8::from(set).to_string())));
    fields
}

fn expected_extensions(segment: &Segment<Bytes>) -> Vec<(&'static str, String)> {
    let tag = |tag: Option<Tag>| format!("0x{:016x}", tag.map_or(0, |tag| tag.0.get()));
    let receipt = |half: u16| segment.tag.map(|_| format!("0x{half:04x}")).unwrap_or_default();
    let hex = |ChallengeToken(token)| format!("0x{token:016x}");
    let (of_path, token) = match segment.control {
        Control::Challenge(token) => ("CHALLENGE", hex(token)),
        Control::Echo(token) => ("ECHO", hex(token)),
        Control::StatelessReset => ("STRAY", String::new()),
        _ => ("", String::new()),
    };
    let opening = |show: &dyn Fn(Opening) -> String| segment.opening.map(show).unwrap_or_default();
    vec![
        ("tpa.tag", segment.tag.map(|own| tag(Some(own))).unwrap_or_default()),
        ("tpa.nonce", receipt(segment.receipt.nonce)),
        ("tpa.proof", receipt(segment.receipt.proof)),
        ("tpa.of_path", of_path.into()),
        ("tpa.token", token),
        ("tpa.opening.tag", opening(&|opening| tag(opening.tag))),
        ("tpa.opening.mss", opening(&|opening| opening.mss.to_string())),
        ("tpa.opening.version", opening(&|_| "2".into())),
        ("tpa.opening.block_segments", opening(&|opening| opening.block_segments.to_string())),
        ("tpa.opening.cwnd_max", opening(&|opening| opening.cwnd_max.to_string())),
        ("tpa.opening.reserved", opening(&|_| "000000".into())),
    ]
}

/// Writes a capture of these packets; returns the result of `read` on it with the dissector.
fn with_capture<T>(packets: &[Vec<u8>], read: impl Fn(Capture<'_>) -> T) -> T {
    raw_capture(packets, |path| read(dissecting(path)))
}

fn dissecting(path: &Path) -> Capture<'_> {
    Capture::of(path).with_script(DISSECTOR.as_ref())
}

pub(crate) fn every_field_is_shown() {
    let segments = [vec![data(), syn(), Segment::default()], random_segments(0, 300)].concat();
    for form in FORMS {
        let packets: Vec<_> = segments.iter().map(|segment| form.packet(&form.emit(segment))).collect();
        let names: Vec<_> = expected_fields(form, &data()).iter().map(|(name, _)| *name).collect();
        let names = [&["frame.protocols"], &names[..]].concat();
        let rows = with_capture(&packets, |reading| reading.fields(&names));
        assert_eq!(rows.len(), segments.len());
        for (segment, row) in segments.iter().zip(rows) {
            assert_eq!(row[0], form.protocols(!segment.payload.is_empty()), "{segment:?}");
            // Since Wireshark 4.2 flags are words.
            let values = row[1..].iter().map(|value| value.replace("True", "1").replace("False", "0"));
            let read: Vec<_> = names[1..].iter().copied().zip(values).collect();
            assert_eq!(read, expected_fields(form, segment), "{form:?} {segment:?}");
        }
    }
}

/// Filter name of a rule, a segment, and the bytes that make it violate the rule, with their offsets.
type Broken<'a> = (&'static str, &'a Segment<Bytes>, &'a [(usize, u8)]);

pub(crate) fn every_violated_rule_is_named() {
    let (data, syn) = (data(), syn());
    let opening = UDP_HEADER_LEN + tpa::TAG_LEN + tpa::RECEIPT_LEN;
    let stray = Segment { control: Control::StatelessReset, tag: tag(1), ..Segment::default() };
    let broken: [Broken<'_>; 14] = [
        ("tpa.malformed.position", &data, &[(4, 0x30)]),
        ("tpa.malformed.position", &data, &[(4, 0), (7, 0x84)]),
        ("tpa.malformed.control", &data, &[(7, 0xf0)]),
        ("tpa.malformed.control_position", &data, &[(7, 0xa0)]),
        ("tpa.malformed.control_position", &data, &[(7, 0xc0)]),
        ("tpa.malformed.fin", &data, &[(4, 0), (7, 0x90)]),
        ("tpa.malformed.data", &data, &[(4, 0)]),
        ("tpa.malformed.of_path", &stray, &[(7, 0xe1)]),
        ("tpa.malformed.of_path", &stray, &[(5, 0x10)]),
        ("tpa.malformed.tag", &syn, &[(opening - tpa::RECEIPT_LEN - 1, 0)]),
        ("tpa.malformed.version", &syn, &[(opening + 10, 1)]),
        ("tpa.malformed.block_segments", &syn, &[(opening + 11, 0)]),
        ("tpa.malformed.block_segments", &syn, &[(opening + 11, 13)]),
        ("tpa.malformed.cwnd_max", &syn, &[(opening + 12, 0)]),
    ];
    let mut names: Vec<_> = broken.iter().map(|(name, ..)| *name).collect();
    let mut packets = Vec::new();
    for (name, segment, changes) in broken {
        let mut bytes = Form::Udp.emit(segment);
        changes.iter().for_each(|&(at, value)| bytes[at] = value);
        assert!(Form::Udp.refuses(&bytes), "{name}");
        packets.push(Form::Udp.packet(&bytes));
    }
    names.push("tpa.malformed.truncated");
    packets.push(Form::Udp.packet(&Form::Udp.emit(&syn)[..20]));
    names.push("tpa.checksum.bad");
    let mut bytes = Form::Native.emit(&data);
    bytes[NATIVE_HEADER_LEN] ^= 1;
    packets.push(Form::Native.packet(&bytes));

    let mut asked = names.clone();
    asked.dedup();
    let rows = with_capture(&packets, |reading| reading.fields(&asked));
    assert_eq!(rows.len(), names.len());
    for (row, broken) in rows.iter().zip(&names) {
        for (value, name) in row.iter().zip(&asked) {
            assert_eq!(!value.is_empty(), name == broken, "{name} of a segment that breaks {broken}");
        }
    }
}

pub(crate) fn the_dissector_reports_errors_exactly_where_the_parser_does() {
    for (run, form) in (1..).zip(FORMS) {
        let mut stream = RandomStream::keyed(1, run, 1, Purpose::Emulation);
        let segments = random_segments(run, 600);
        let mut all: Vec<_> = segments.iter().map(|segment| damaged(form, segment, &mut stream)).collect();
        let whole = form.emit(&syn());
        all.extend((0..=whole.len()).map(|len| whole[..len].to_vec()));
        // Wireshark does not pass an empty payload to a dissector.
        all.retain(|bytes| !bytes.is_empty());
        let packets: Vec<_> = all.iter().map(|bytes| form.packet(bytes)).collect();
        let names = ["_ws.expert.severity", "_ws.lua.error", "tpa.checksum.status"];
        let rows = with_capture(&packets, |reading| reading.fields(&names));
        assert_eq!(rows.len(), all.len());
        let refused = all.iter().filter(|bytes| form.refuses(bytes)).count();
        assert!(refused > 100 && all.len() - refused > 100, "{refused} of {} refused", all.len());
        for (bytes, row) in all.iter().zip(rows) {
            assert_eq!(row[0].contains(ERROR), form.refuses(bytes), "{form:?} {bytes:02x?}");
            assert_eq!(row[1], "", "{form:?} {bytes:02x?}");
            let has_checksum = form == Form::Native && bytes.len() >= NATIVE_HEADER_LEN;
            let status =
                if has_checksum { u8::from(checksum_sum(bytes) == 0).to_string() } else { String::new() };
            assert_eq!(row[2], status, "{form:?} {bytes:02x?}");
        }
    }
}

/// Returns the bytes of a segment after up to three errors; nine times in ten with a correct checksum.
fn damaged(form: Form, segment: &Segment<Bytes>, stream: &mut RandomStream) -> Vec<u8> {
    let mut bytes = form.emit(segment);
    for _ in 0..stream.below(4) {
        let at = stream.below(bytes.len() as u32) as usize;
        match stream.below(8) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] = stream.bits() as u8,
            _ => bytes[at] ^= 1 << stream.below(8),
        }
    }
    if form == Form::Native && bytes.len() >= NATIVE_HEADER_LEN && stream.below(10) > 0 {
        bytes[14..16].fill(0);
        let right = checksum_sum(&bytes);
        bytes[14..16].copy_from_slice(&right.to_be_bytes());
    }
    bytes
}

fn checksum_sum(bytes: &[u8]) -> u16 {
    let mut sum = ChecksumSum::pseudo_header(&native_ip(), bytes.len());
    sum.add(bytes);
    sum.finish()
}

pub(crate) fn the_info_column_describes_packets() {
    let only_ack = Segment {
        ack: Some(Ack { block: 2, bitmap: Bitmap::from_bits(0b1000_0011_0111), tx: 3 }),
        tx_stat: TxStat::Congested,
        ..Segment::default()
    };
    let last = SegmentPosition { position: 11, is_last: true };
    let fin =
        Segment { control: Control::Fin, position: Some(last), tx: 40, block: 999, ..Segment::default() };
    let rst = Segment { control: Control::Rst, tag: tag(3), ..Segment::default() };
    let challenge = Segment {
        control: Control::Challenge(ChallengeToken(1)),
        tag: tag(3),
        payload: Bytes::from_static(b"pad"),
        ..Segment::default()
    };
    let expected = [
        (data(), "DATA 131:9 tx 12 | ACK 131 [0-8] tx 11 | win 17520 | len 6"),
        (syn(), "SYN | mss 1452 block 12 cwndmax 3 | win 65535"),
        (only_ack, "ACK 2 [0-2,4-5,11] tx 3 | congested | win 0"),
        (fin, "FIN 999:11 last tx 40 | win 0"),
        (rst, "RST | win 0"),
        (challenge, "CHALLENGE | win 0 | len 3"),
    ];
    let mut packets: Vec<_> =
        expected.iter().map(|(segment, _)| Form::Udp.packet(&Form::Udp.emit(segment))).collect();
    packets.push(Form::Udp.packet(&Form::Udp.emit(&data())[..7]));
    let read = |reading: Capture<'_>| reading.fields(&["_ws.col.Protocol", "_ws.col.Info"]);
    let rows = with_capture(&packets, read);
    for (row, (_, info)) in rows.iter().zip(&expected) {
        assert_eq!(row[..], ["TPA", info]);
    }
    assert_eq!(rows[6], ["TPA", "[malformed: truncated: 12 bytes needed, 7 present]"]);
}

pub(crate) fn other_ports_are_known_from_the_syn_or_configuration() {
    let packet =
        |src, segment: &Segment<Bytes>| udp_packet(Ports { src, dst: 9000 }, &Form::Udp.emit(segment));
    let packets = [packet(1000, &syn()), packet(1000, &data()), answer(9000, 1000), packet(2000, &data())];
    let protocols = |reading: Capture<'_>| -> Vec<String> {
        reading.fields(&["_ws.col.Protocol"]).into_iter().flatten().collect()
    };
    let known = with_capture(&packets, protocols);
    assert_eq!(known, ["TPA", "TPA", "TPA", "UDP"]);
    let by_preference = |reading: Capture<'_>| protocols(reading.with_preference("tpa.udp_port:9000"));
    assert_eq!(with_capture(&packets, by_preference), ["TPA"; 4]);
    let by_hand = |reading: Capture<'_>| protocols(reading.decoding_as("udp.port==9000,tpa"));
    assert_eq!(with_capture(&packets, by_hand), ["TPA"; 4]);

    let native = [Form::Native.packet(&Form::Native.emit(&data()))];
    let off = |reading: Capture<'_>| protocols(reading.with_preference("tpa.native:FALSE"));
    assert_eq!(with_capture(&native, off), ["IPv4"]);
}

/// Returns data in the opposite direction.
fn answer(src_port: u16, dst_port: u16) -> Vec<u8> {
    let payload = Bytes::from(Form::Udp.emit(&data()));
    let datagram = udp::Datagram { src_port, dst_port, payload };
    let ip = Header { src: B.ipv4(), dst: A.ipv4(), protocol: ipv4::Protocol::Udp, ..native_ip() };
    let mut out = Vec::new();
    ip.emit(datagram.wire_len(), &mut out);
    datagram.emit(&ip, &mut out);
    out
}

pub(crate) fn a_packet_truncated_by_the_capture_is_not_malformed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcapng");
    let mut writer = PcapNgWriter::new(File::create(&path).unwrap()).unwrap();
    writer.write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::RAW, 0)).unwrap();
    for form in FORMS {
        for segment in [data(), syn()] {
            let packet = form.packet(&form.emit(&segment));
            for len in ipv4::HEADER_LEN..packet.len() {
                let block = EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: std::time::Duration::ZERO,
                    original_len: packet.len() as u32,
                    data: Cow::Borrowed(&packet[..len]),
                    options: Vec::new(),
                };
                writer.write_pcapng_block(block).unwrap();
            }
        }
    }
    drop(writer);
    let rows = dissecting(&path).fields(&[
        "_ws.expert.severity",
        "_ws.lua.error",
        "tpa.cut",
        "tpa.checksum.status",
        "tpa.len",
    ]);
    assert!(rows.iter().all(|row| !row[0].contains(ERROR) && row[1].is_empty() && row[3] != "0"));
    assert!(rows.iter().any(|row| row[2] == "1") && rows.iter().any(|row| row[3] == "2"));
    // The length on the wire counts, not the captured length.
    assert!(rows.iter().any(|row| row[4] == "6"));
}
