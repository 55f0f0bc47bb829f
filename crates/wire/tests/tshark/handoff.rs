//! Tests that the Wireshark dissector of handoff messages shows the emitted fields, and reports exactly the errors of the
//! parser.

use super::{ip_packet, raw_capture};
use bytes::Bytes;
use hopline_core::{Duration, Purpose, RandomStream};
use hopline_harness::tshark::Capture;
use hopline_wire::handoff::{
    self, Message, MessageBody, PacketId, PriorReception, RecentPackets, RequestAction, RequestKind,
    TaggedMessage,
};
use hopline_wire::{ipv4, udp};
use std::net::Ipv4Addr;

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/handoff.lua");
/// Severity "error" of expert information, as tshark prints it.
const ERROR: &str = "8388608";
const KINDS: [RequestKind; 4] =
    [RequestKind::Forward, RequestKind::Buffer, RequestKind::Stop, RequestKind::Register];

fn emit(tagged: &TaggedMessage) -> Vec<u8> {
    let mut out = Vec::new();
    tagged.emit(&mut out);
    out
}

/// Returns the result of `read` on a capture of `payloads` to the port of messages.
fn read<T>(payloads: &[Vec<u8>], read: impl FnOnce(Capture<'_>) -> T) -> T {
    let packet = |bytes: &Vec<u8>| {
        let payload = Bytes::copy_from_slice(bytes);
        let datagram = udp::Datagram { src_port: handoff::PORT, dst_port: handoff::PORT, payload };
        ip_packet(ipv4::Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out))
    };
    let packets: Vec<_> = payloads.iter().map(packet).collect();
    raw_capture(&packets, |path| read(Capture::of(path).with_script(DISSECTOR.as_ref())))
}

fn any_message(stream: &mut RandomStream) -> TaggedMessage {
    let lifetime = Duration::from_millis(stream.below(65_536).into());
    let mobile = Ipv4Addr::from_bits(stream.bits() as u32);
    let mut latest = RecentPackets::default();
    for _ in 0..stream.below(4) {
        let source = Ipv4Addr::from_bits(stream.bits() as u32);
        latest.push(PacketId { source, id: stream.bits() as u16 });
    }
    let asks = match stream.below(4) {
        0 => RequestAction::Forward(latest),
        1 => RequestAction::Buffer,
        2 => RequestAction::Stop,
        _ => RequestAction::Register {
            care_of: Ipv4Addr::from_bits(stream.bits() as u32),
            prior_reception: if stream.bits() & 1 == 0 {
                PriorReception::None
            } else {
                PriorReception::Received
            },
        },
    };
    let says = match stream.below(5) {
        0 => MessageBody::Beacon { station: mobile },
        1 => MessageBody::Reply { mobile, lifetime, kind: KINDS[stream.below(4) as usize] },
        2 => MessageBody::Stale { mobile, requested: stream.bits() },
        _ => MessageBody::Request { mobile, lifetime, action: asks },
    };
    let tag = core::array::from_fn(|_| stream.bits() as u8);
    TaggedMessage { message: Message { number: stream.bits(), body: says }, tag }
}

fn messages() -> Vec<TaggedMessage> {
    let mut stream = RandomStream::keyed(1, 0, 0, Purpose::Emulation);
    (0..200).map(|_| any_message(&mut stream)).collect()
}

fn number(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Forward => "2",
        RequestKind::Buffer => "3",
        RequestKind::Stop => "4",
        RequestKind::Register => "5",
    }
}

pub(crate) fn every_field_is_shown() {
    let messages = messages();
    let payloads: Vec<_> = messages.iter().map(emit).collect();
    let names = [
        "frame.protocols",
        "hopline_handoff.type",
        "hopline_handoff.about",
        "hopline_handoff.lifetime",
        "hopline_handoff.number",
        "hopline_handoff.address",
        "hopline_handoff.source",
        "hopline_handoff.id",
        "hopline_handoff.care_of",
        "hopline_handoff.asked",
        "hopline_handoff.tag",
        "_ws.expert.message",
        "_ws.lua.error",
    ];
    let rows = read(&payloads, |reading| reading.fields(&names));
    assert_eq!(rows.len(), messages.len());
    for (tagged, row) in messages.iter().zip(rows) {
        let (kind, about, lifetime, address, ids, care_of) = match tagged.message.body {
            MessageBody::Beacon { station } => ("1", "0".to_owned(), Duration::ZERO, station, vec![], None),
            MessageBody::Reply { mobile, lifetime, kind: to } => {
                ("6", number(to).to_owned(), lifetime, mobile, vec![], None)
            }
            MessageBody::Request { mobile, lifetime, action: asks } => {
                let (about, ids, care_of) = match asks {
                    RequestAction::Forward(latest) => {
                        (latest.as_slice().len(), latest.as_slice().to_vec(), None)
                    }
                    RequestAction::Register { care_of, prior_reception: past } => {
                        (usize::from(past == PriorReception::Received), vec![], Some(care_of))
                    }
                    RequestAction::Buffer | RequestAction::Stop => (0, vec![], None),
                };
                (number(asks.kind()), about.to_string(), lifetime, mobile, ids, care_of)
            }
            MessageBody::Stale { mobile, .. } => ("7", "0".to_owned(), Duration::ZERO, mobile, vec![], None),
        };
        let asked = match tagged.message.body {
            MessageBody::Stale { requested: asked, .. } => asked.to_string(),
            _ => String::new(),
        };
        let sources: Vec<_> = ids.iter().map(|packet| packet.source.to_string()).collect();
        let ids: Vec<_> = ids.iter().map(|packet| packet.id.to_string()).collect();
        let tag: String = tagged.tag.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = [
            "raw:ip:udp:hopline_handoff".to_owned(),
            kind.to_owned(),
            about,
            lifetime.as_millis().to_string(),
            tagged.message.number.to_string(),
            address.to_string(),
            sources.join(","),
            ids.join(","),
            care_of.map(|address| address.to_string()).unwrap_or_default(),
            asked,
            tag,
            String::new(),
            String::new(),
        ];
        assert_eq!(row[..], expected, "{tagged:?}");
    }
}

pub(crate) fn the_info_column_describes_packets_and_errors() {
    let mobile = Ipv4Addr::new(10, 0, 0, 5);
    let tagged = |says| emit(&TaggedMessage { message: Message { number: 1, body: says }, tag: [0; 16] });
    let request =
        |asks| tagged(MessageBody::Request { mobile, lifetime: Duration::from_secs(3), action: asks });
    let mut latest = RecentPackets::default();
    [7, 8].into_iter().for_each(|id| latest.push(PacketId { source: Ipv4Addr::new(10, 0, 0, 9), id }));
    let forward = request(RequestAction::Forward(latest));
    let many = [&[2, 9], &forward[2..]].concat();
    let payloads = [
        tagged(MessageBody::Beacon { station: mobile }),
        forward.clone(),
        request(RequestAction::Register {
            care_of: Ipv4Addr::new(10, 0, 0, 2),
            prior_reception: PriorReception::Received,
        }),
        tagged(MessageBody::Reply { mobile, lifetime: Duration::from_secs(3), kind: RequestKind::Buffer }),
        tagged(MessageBody::Stale { mobile, requested: 9 }),
        forward[..40].to_vec(),
        many,
    ];
    let rows = read(&payloads, |reading| reading.fields(&["_ws.col.Protocol", "_ws.col.Info"]));
    let expected = [
        "beacon of 10.0.0.5",
        "forward for 10.0.0.5, 3000 ms, has 10.0.0.9/7 10.0.0.9/8",
        "register for 10.0.0.5, 3000 ms at 10.0.0.2",
        "answer to buffer for 10.0.0.5, 3000 ms",
        "request of 10.0.0.5 is behind 1, has number 9",
        "HANDOFF [malformed: truncated: 52 bytes needed, 40 present]",
        "HANDOFF [malformed: 9 identifications]",
    ];
    for (row, info) in rows.iter().zip(expected) {
        assert_eq!(row[..], ["HANDOFF", info]);
    }
    assert_eq!(rows.len(), expected.len());
}

pub(crate) fn the_dissector_reports_errors_exactly_where_the_parser_does() {
    let mut stream = RandomStream::keyed(1, 1, 1, Purpose::Emulation);
    let damaged = |tagged: &TaggedMessage, stream: &mut RandomStream| {
        let mut bytes = emit(tagged);
        let at = stream.below(bytes.len() as u32) as usize;
        match stream.below(5) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[0] = stream.below(9) as u8,
            2 => bytes[1] = stream.below(9) as u8,
            3 => bytes.push(7),
            _ => bytes[at] ^= 1 << stream.below(8),
        }
        bytes
    };
    let all: Vec<_> = messages().iter().map(|tagged| damaged(tagged, &mut stream)).collect();
    let rows = read(&all, |reading| reading.fields(&["_ws.expert.severity", "_ws.lua.error"]));
    let refused = all.iter().filter(|bytes| TaggedMessage::parse(bytes).is_err()).count();
    assert!(refused > 40 && all.len() - refused > 40, "{refused} of {} refused", all.len());
    assert_eq!(rows.len(), all.len());
    for (bytes, row) in all.iter().zip(rows) {
        let error = TaggedMessage::parse(bytes).is_err();
        assert_eq!((row[0].contains(ERROR), row[1].as_str()), (error, ""), "{bytes:02x?}");
    }
}
