//! Tests that the Wireshark dissector of Neighborhood RED's notices shows the emitted fields, and reports exactly the errors
//! of the parser.

use super::{ip_packet, raw_capture};
use bytes::Bytes;
use hopline_core::{Duration, Purpose, RandomStream};
use hopline_harness::tshark::Capture;
use hopline_wire::ncn::{self, NormalizedPb, Notice, StarvedNode};
use hopline_wire::{ipv4, udp};
use std::net::Ipv4Addr;

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/ncn.lua");
/// Severity "error" of expert information, as tshark prints it.
const ERROR: &str = "8388608";

fn emit(notice: &Notice) -> Vec<u8> {
    let mut out = Vec::new();
    notice.emit(&mut out);
    out
}

fn packet(port: u16, bytes: &[u8]) -> Vec<u8> {
    let payload = Bytes::copy_from_slice(bytes);
    let datagram = udp::Datagram { src_port: port, dst_port: port, payload };
    ip_packet(ipv4::Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out))
}

fn notices() -> Vec<Notice> {
    let mut stream = RandomStream::keyed(1, 0, 0, Purpose::Emulation);
    let any = |stream: &mut RandomStream| Notice {
        normalized_pb: NormalizedPb::of(stream.bits() as u32 as f64 / f64::from(u32::MAX)),
        lifetime: Duration::from_millis(stream.below(65_536).into()),
        starved_node: if stream.below(2) == 0 {
            StarvedNode::Sender
        } else {
            StarvedNode::Neighbour(Ipv4Addr::from_bits(stream.bits() as u32))
        },
    };
    let whole = Notice {
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_millis(65_535),
        starved_node: StarvedNode::Sender,
    };
    let nothing = Notice { normalized_pb: NormalizedPb::ZERO, lifetime: Duration::ZERO, ..whole };
    [whole, nothing].into_iter().chain((0..200).map(|_| any(&mut stream))).collect()
}

/// Returns the result of `read` on a capture of `payloads` to the port of notices.
fn read<T>(payloads: &[Vec<u8>], read: impl FnOnce(Capture<'_>) -> T) -> T {
    let packets: Vec<_> = payloads.iter().map(|bytes| packet(ncn::PORT, bytes)).collect();
    raw_capture(&packets, |path| read(Capture::of(path).with_script(DISSECTOR.as_ref())))
}

pub(crate) fn every_field_is_shown() {
    let notices = notices();
    let payloads: Vec<_> = notices.iter().map(emit).collect();
    let names = [
        "frame.protocols",
        "ncn.type",
        "ncn.reserved",
        "ncn.lifetime",
        "ncn.normalized_pb",
        "ncn.sufferer",
        "_ws.expert.message",
        "_ws.lua.error",
    ];
    let rows = read(&payloads, |reading| reading.fields(&names));
    assert_eq!(rows.len(), notices.len());
    for ((notice, bytes), row) in notices.iter().zip(&payloads).zip(rows) {
        let (kind, sufferer) = match notice.starved_node {
            StarvedNode::Sender => ("1", String::new()),
            StarvedNode::Neighbour(address) => ("2", address.to_string()),
        };
        let pb = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let lifetime = notice.lifetime.as_millis().to_string();
        let expected = ["raw:ip:udp:ncn", kind, "0x00", &lifetime, &pb.to_string(), &sufferer, "", ""]
            .map(str::to_owned);
        assert_eq!(row[..], expected, "{notice:?}");
    }
}

pub(crate) fn the_info_column_describes_packets_and_errors() {
    let notice = Notice {
        normalized_pb: NormalizedPb::of(0.25),
        lifetime: Duration::from_secs(2),
        starved_node: StarvedNode::Neighbour(Ipv4Addr::new(10, 0, 0, 3)),
    };
    let relayed = emit(&notice);
    let plain = emit(&Notice { starved_node: StarvedNode::Sender, ..notice });
    let unknown = [&[9], &plain[1..]].concat();
    let payloads = [plain.clone(), relayed.clone(), plain[..7].to_vec(), relayed[..11].to_vec(), unknown];
    let info = |reading: Capture<'_>| reading.fields(&["_ws.col.Protocol", "_ws.col.Info"]);
    let rows = read(&payloads, info);
    let expected = [
        "drop 0.250000 for 2000 ms",
        "drop 0.250000 for 2000 ms of 10.0.0.3",
        "NCN [malformed: truncated: 8 bytes needed, 7 present]",
        "NCN [malformed: truncated: 12 bytes needed, 11 present]",
        "NCN [malformed: packetType 9]",
    ];
    for (row, info) in rows.iter().zip(expected) {
        assert_eq!(row[..], ["NCN", info]);
    }
    assert_eq!(rows.len(), expected.len());
}

pub(crate) fn the_dissector_reports_errors_exactly_where_the_parser_does() {
    let mut stream = RandomStream::keyed(1, 1, 1, Purpose::Emulation);
    let damaged = |notice: &Notice, stream: &mut RandomStream| {
        let mut bytes = emit(notice);
        let at = stream.below(bytes.len() as u32) as usize;
        match stream.below(4) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[0] = stream.below(4) as u8,
            2 => bytes.push(7),
            _ => bytes[at] ^= 1 << stream.below(8),
        }
        bytes
    };
    let all: Vec<_> = notices().iter().map(|notice| damaged(notice, &mut stream)).collect();
    let names = ["_ws.expert.severity", "_ws.lua.error", "ncn.malformed.truncated", "ncn.malformed.type"];
    let rows = read(&all, |reading| reading.fields(&names));
    let refused = all.iter().filter(|bytes| Notice::parse(bytes).is_err()).count();
    assert!(refused > 40 && all.len() - refused > 40, "{refused} of {} refused", all.len());
    assert_eq!(rows.len(), all.len());
    for (bytes, row) in all.iter().zip(rows) {
        let error = Notice::parse(bytes).is_err();
        assert_eq!((row[0].contains(ERROR), row[1].as_str()), (error, ""), "{bytes:02x?}");
        assert_eq!(error, !row[2].is_empty() || !row[3].is_empty(), "{bytes:02x?}");
    }
}

pub(crate) fn other_ports_can_be_configured() {
    let bytes = emit(&notices()[0]);
    let protocols = |rule: fn(Capture<'_>) -> Capture<'_>| {
        raw_capture(&[packet(9000, &bytes)], |path| {
            rule(Capture::of(path).with_script(DISSECTOR.as_ref())).fields(&["_ws.col.Protocol"])
        })
    };
    let stock = protocols(|reading| reading);
    assert_eq!(stock, [["UDP"]]);
    let by_preference = protocols(|reading| reading.with_preference("ncn.udp_port:9000"));
    let by_hand = protocols(|reading| reading.decoding_as("udp.port==9000,ncn"));
    assert_eq!((by_preference, by_hand), (vec![vec!["NCN".to_owned()]], vec![vec!["NCN".to_owned()]]));
}
