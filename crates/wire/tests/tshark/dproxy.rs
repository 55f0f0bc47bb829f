//! Tests that the Wireshark dissector of D-Proxy shows the emitted fields, and reports exactly the errors of the parsers.

use super::{ip_packet, raw_capture};
use bytes::Bytes;
use hopline_core::{Purpose, RandomStream, Seq16, Seq32};
use hopline_harness::tshark::Capture;
use hopline_wire::arq;
use hopline_wire::dproxy::frame::{Body, Frame, MAGIC, PacketNumbers, Parity, TransmissionKind};
use hopline_wire::dproxy::tunnel::{self, Datagram, Handshake, MessageFormat, ResponseRequest};
use hopline_wire::dproxy::{self, Flow, Message, MessageKind, Range, Sealed};
use hopline_wire::{ipv4, udp};
use std::net::{Ipv4Addr, Ipv6Addr};

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/dproxy.lua");

fn emit(sealed: &Sealed) -> Vec<u8> {
    let mut out = Vec::new();
    sealed.emit(&mut out);
    out
}

fn emit_frame(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.emit(&mut out);
    out
}

/// Returns the result of `read` on a capture of `payloads` to the port of messages.
fn read<T>(payloads: &[Vec<u8>], read: impl FnOnce(Capture<'_>) -> T) -> T {
    let packet = |bytes: &Vec<u8>| {
        let payload = Bytes::copy_from_slice(bytes);
        let datagram = udp::Datagram { src_port: dproxy::PORT, dst_port: dproxy::PORT, payload };
        ip_packet(ipv4::Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out))
    };
    let packets: Vec<_> = payloads.iter().map(packet).collect();
    raw_capture(&packets, |path| read(Capture::of(path).with_script(DISSECTOR.as_ref())))
}

fn any_message(stream: &mut RandomStream) -> Sealed {
    let is_v6 = stream.below(2) == 0;
    let mut end = || {
        let mut bits = || u128::from(stream.bits());
        let v6 = Ipv6Addr::from_bits(bits() << 64 | bits());
        let v4 = Ipv4Addr::from_bits(bits() as u32);
        (if is_v6 { v6.into() } else { v4.into() }, stream.bits() as u16)
    };
    let flow = Flow { src: end(), dst: end() };
    let range = Range { seq: Seq32(stream.bits() as u32), len: (stream.bits() as u16).max(1) };
    let says = [MessageKind::Request, MessageKind::NotCached, MessageKind::Tail][stream.below(3) as usize];
    let tag = core::array::from_fn(|_| stream.bits() as u8);
    Sealed { message: Message { number: stream.bits(), flow, range, kind: says }, tag }
}

/// Packets in frames are no IP packets here: other tests cover those.
fn any_frame(stream: &mut RandomStream) -> Frame {
    let number = stream.bits() as u32;
    let mut numbers = || {
        let count = 1 + stream.below(64);
        PacketNumbers::new((0..count).map(|_| stream.bits() as u32).collect()).unwrap()
    };
    let (some, others) = (numbers(), numbers());
    let packet = Bytes::from(vec![0xaa; stream.below(60) as usize]);
    let body = match stream.below(7) {
        0 => Body::Data { number, transmission: TransmissionKind::Original, packet },
        1 => Body::Data { number, transmission: TransmissionKind::Retransmission, packet },
        2 => Body::Request(some),
        3 => Body::NotCached(others),
        4 => Body::Tail(number),
        5 => Body::Report(number),
        _ => Body::Parity(Parity::over(number, [&packet[..], &[1, 2, 3]].into_iter()).unwrap()),
    };
    Frame { epoch: stream.bits() as u16, body }
}

fn messages() -> Vec<Sealed> {
    let mut stream = RandomStream::keyed(1, 0, 0, Purpose::Emulation);
    (0..200).map(|_| any_message(&mut stream)).collect()
}

fn frames() -> Vec<Frame> {
    let mut stream = RandomStream::keyed(1, 0, 2, Purpose::Emulation);
    (0..200).map(|_| any_frame(&mut stream)).collect()
}

/// Datagrams of tunnels, with frames of both kinds.
fn datagrams() -> Vec<Datagram> {
    let mut stream = RandomStream::keyed(1, 0, 3, Purpose::Emulation);
    (0..200).map(|_| any_datagram(&mut stream)).collect()
}

fn any_datagram(stream: &mut RandomStream) -> Datagram {
    let mut frame = Vec::new();
    match stream.below(3) {
        0 => {
            let wants = [ResponseRequest::None, ResponseRequest::Requested][stream.below(2) as usize];
            let speaks = [MessageFormat::DProxy, MessageFormat::NackFrames, MessageFormat::ArqFrames]
                [stream.below(3) as usize];
            let [life, challenge, met, knows] = core::array::from_fn(|_| stream.bits());
            let tag = core::array::from_fn(|_| stream.bits() as u8);
            return Datagram::Handshake(
                Handshake {
                    epoch: life,
                    challenge,
                    challenge_response: met,
                    peer_epoch: knows,
                    response: wants,
                    format: speaks,
                },
                tag,
            );
        }
        1 => any_frame(stream).emit(&mut frame),
        _ => any_arq(stream).emit(&mut frame),
    }
    let tag = core::array::from_fn(|_| stream.bits() as u8);
    let number = stream.bits() % tunnel::NUMBER_LIMIT;
    Datagram::Frame(tunnel::Sealed { number, tag, frame: frame.into() })
}

fn any_arq(stream: &mut RandomStream) -> arq::Frame {
    let (first, number) = (Seq16(stream.bits() as u16), Seq16(stream.bits() as u16));
    let content = Some(Bytes::from(vec![0xaa; stream.below(60) as usize])).filter(|_| stream.below(2) == 0);
    let mut beyond = [0; arq::BITMAP_WORDS];
    (0..stream.below(5) as usize).for_each(|at| beyond[at] = stream.bits());
    let body = match stream.below(2) {
        0 => arq::Body::Data { oldest: first, number, packet: content },
        _ => arq::Body::Ack { next: first, bitmap: beyond },
    };
    arq::Frame { epoch: stream.bits() as u16, body }
}

fn emit_datagram(datagram: &Datagram) -> Vec<u8> {
    let mut out = Vec::new();
    datagram.emit(&mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn every_field_of_messages_is_shown() {
    let messages = messages();
    let payloads: Vec<_> = messages.iter().map(emit).collect();
    let addresses = ["src", "dst", "src_v6", "dst_v6"];
    let shown = ["type", "len", "src_port", "dst_port", "seq", "number", "tag", "ip_version"]
        .iter()
        .chain(&addresses);
    let shown: Vec<_> = shown.map(|name| format!("hopline_dproxy.{name}")).collect();
    let mut names = vec!["frame.protocols", "_ws.expert.message", "_ws.lua.error"];
    names.extend(shown.iter().map(String::as_str));
    let rows = read(&payloads, |reading| reading.fields(&names));
    assert_eq!(rows.len(), messages.len());
    for (Sealed { message, tag }, row) in messages.iter().zip(rows) {
        let code = match message.kind {
            MessageKind::Request => "1",
            MessageKind::NotCached => "2",
            MessageKind::Tail => "3",
        };
        let [src, dst] = [message.flow.src.0, message.flow.dst.0].map(|address| address.to_string());
        let is_v6 = message.flow.src.0.is_ipv6();
        let none = [String::new(), String::new()];
        let (v4, v6) = if is_v6 { (none, [src, dst]) } else { ([src, dst], none) };
        let expected = [
            "raw:ip:udp:hopline_dproxy".to_owned(),
            String::new(),
            String::new(),
            code.to_owned(),
            message.range.len.to_string(),
            message.flow.src.1.to_string(),
            message.flow.dst.1.to_string(),
            message.range.seq.to_string(),
            message.number.to_string(),
            hex(tag),
            if is_v6 { "6" } else { "4" }.to_owned(),
        ];
        assert_eq!(row[..expected.len()], expected, "{message:?}");
        assert_eq!(row[expected.len()..], [v4, v6].concat(), "{message:?}");
    }
}

pub(crate) fn every_field_of_frames_is_shown() {
    let frames = frames();
    let payloads: Vec<_> = frames.iter().map(emit_frame).collect();
    let shown = ["kind", "epoch", "packet", "count", "lengths", "bytes"];
    let shown: Vec<_> = shown.iter().map(|name| format!("hopline_dproxy.{name}")).collect();
    let mut names = vec!["_ws.expert.message", "_ws.lua.error"];
    names.extend(shown.iter().map(String::as_str));
    let rows = read(&payloads, |reading| reading.fields(&names));
    assert_eq!(rows.len(), frames.len());
    for (frame, row) in frames.iter().zip(rows) {
        let list = |numbers: &PacketNumbers| {
            numbers.as_slice().iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        let none = || [String::new(), String::new(), String::new()];
        let (kind, numbers, parity) = match &frame.body {
            Body::Data { number, transmission: TransmissionKind::Original, .. } => {
                ("0", number.to_string(), none())
            }
            Body::Data { number, transmission: TransmissionKind::Retransmission, .. } => {
                ("1", number.to_string(), none())
            }
            Body::Request(numbers) => ("2", list(numbers), none()),
            Body::NotCached(numbers) => ("3", list(numbers), none()),
            Body::Tail(number) => ("4", number.to_string(), none()),
            Body::Report(number) => ("5", number.to_string(), none()),
            Body::Parity(Parity { first, count, lengths, bytes }) => {
                ("6", first.to_string(), [count.to_string(), format!("0x{lengths:04x}"), hex(bytes)])
            }
        };
        let expected = [String::new(), String::new(), kind.to_owned(), frame.epoch.to_string(), numbers];
        assert_eq!(row[..5], expected, "{frame:?}");
        assert_eq!(row[5..], parity, "{frame:?}");
    }
}

pub(crate) fn every_field_of_datagrams_is_shown() {
    let datagrams = datagrams();
    let payloads: Vec<_> = datagrams.iter().map(emit_datagram).collect();
    let shown = ["tunnel_kind", "datagram", "wants", "speaks", "life", "challenge", "met", "knows", "tag"];
    let of_arq = ["arq_kind", "arq_first", "arq_number", "beyond"];
    let shown = shown.iter().chain(&of_arq).map(|name| format!("hopline_dproxy.{name}")).collect::<Vec<_>>();
    let mut names = vec!["_ws.expert.message", "_ws.lua.error"];
    names.extend(shown.iter().map(String::as_str));
    let rows = read(&payloads, |reading| reading.fields(&names));
    assert_eq!(rows.len(), datagrams.len());
    let none = String::new;
    for (datagram, row) in datagrams.iter().zip(rows) {
        let long = |value: &u64| format!("0x{value:016x}");
        let (head, frame) = match datagram {
            Datagram::Handshake(
                Handshake {
                    epoch: life,
                    challenge,
                    challenge_response: met,
                    peer_epoch: knows,
                    response: wants,
                    format: speaks,
                },
                tag,
            ) => {
                let wants = if *wants == ResponseRequest::Requested { "1" } else { "0" };
                let speaks = match speaks {
                    MessageFormat::DProxy => "1",
                    MessageFormat::NackFrames => "2",
                    MessageFormat::ArqFrames => "3",
                };
                let [life, challenge, met, knows] = [life, challenge, met, knows].map(long);
                let [wants, speaks] = [wants, speaks].map(str::to_owned);
                let head = ["1".to_owned(), none(), wants, speaks, life, challenge, met, knows, hex(tag)];
                (head, Bytes::new())
            }
            Datagram::Frame(tunnel::Sealed { number, tag, frame }) => {
                let [wants, speaks, life, challenge, met, knows] = core::array::from_fn(|_| none());
                let number = number.to_string();
                (
                    ["0".to_owned(), number, wants, speaks, life, challenge, met, knows, hex(tag)],
                    frame.clone(),
                )
            }
        };
        let of_arq = match arq::Frame::parse(&frame).map(|frame| frame.body) {
            Err(_) => [none(), none(), none(), none()],
            Ok(arq::Body::Data { oldest: first, number, packet: content }) => {
                let kind = if content.is_some() { "0" } else { "1" };
                [kind.to_owned(), first.0.to_string(), number.0.to_string(), none()]
            }
            Ok(arq::Body::Ack { next, bitmap: beyond }) => {
                let used = (frame.len() - arq::HEADER_LEN) / 8;
                let words = beyond[..used].iter().map(long).collect::<Vec<_>>().join(",");
                ["2".to_owned(), next.0.to_string(), "0".to_owned(), words]
            }
        };
        assert_eq!(row[..2], [none(), none()], "{datagram:?}");
        assert_eq!(row[2..11], head, "{datagram:?}");
        assert_eq!(row[11..], of_arq, "{datagram:?}");
    }
}

pub(crate) fn the_info_column_describes_packets_and_errors() {
    let flow =
        |src: &str, dst: &str| Flow { src: (src.parse().unwrap(), 80), dst: (dst.parse().unwrap(), 9000) };
    let (v4, v6) = (flow("10.0.0.1", "10.0.0.2"), flow("2001:db8::1", "2001:db8::2"));
    let range = Range { seq: Seq32(5792), len: 1448 };
    let of =
        |flow, says| emit(&Sealed { message: Message { number: 1, flow, range, kind: says }, tag: [0; 16] });
    let message = |says| of(v4, says);
    let frame = |body| emit_frame(&Frame { epoch: 3, body });
    let request = message(MessageKind::Request);
    let longer = [&request[..], &[0]].concat();
    let payloads = [
        request.clone(),
        message(MessageKind::NotCached),
        of(v6, MessageKind::Tail),
        [&request[..1], &[0x51], &request[2..]].concat(),
        request[..43].to_vec(),
        longer,
        [&[1], &request[1..]].concat(),
        frame(Body::Request(PacketNumbers::new(vec![4, 6]).unwrap())),
        frame(Body::Tail(9)),
        frame(Body::Data {
            number: 9,
            transmission: TransmissionKind::Retransmission,
            packet: Bytes::from_static(&[1, 2]),
        }),
        vec![MAGIC, 0x1f, 0, 3, 0, 0, 0, 9],
    ];
    let rows = read(&payloads, |reading| reading.fields(&["_ws.col.Protocol", "_ws.col.Info"]));
    let expected = [
        "request 10.0.0.1:80 > 10.0.0.2:9000, 1448 from 5792",
        "not cached 10.0.0.1:80 > 10.0.0.2:9000, 1448 from 5792",
        "tail [2001:db8::1]:80 > [2001:db8::2]:9000, 1448 from 5792",
        "D-PROXY [malformed: IP version 5]",
        "D-PROXY [malformed: truncated: 44 bytes needed, 43 present]",
        "D-PROXY [malformed: 45 bytes]",
        "D-PROXY [malformed: version 1]",
        "request 4 6, epoch 3",
        "tail 9, epoch 3",
        "replay 9, 2 bytes, epoch 3",
        "D-PROXY [malformed: kind 15]",
    ];
    for (row, info) in rows.iter().zip(expected) {
        assert_eq!(row[..], ["D-PROXY", info]);
    }
    assert_eq!(rows.len(), expected.len());
}

pub(crate) fn a_packet_within_a_frame_is_decoded() {
    let datagram = udp::Datagram { src_port: 4000, dst_port: 4000, payload: Bytes::from_static(b"inside") };
    let packet = ip_packet(ipv4::Protocol::Udp, datagram.wire_len(), |ip, out| datagram.emit(ip, out));
    let body = Body::Data { number: 1, transmission: TransmissionKind::Original, packet: packet.into() };
    let payload = emit_frame(&Frame { epoch: 3, body });
    let rows = read(&[payload], |reading| reading.fields(&["frame.protocols", "_ws.lua.error"]));
    assert_eq!(rows, [["raw:ip:udp:hopline_dproxy:ip:udp:data", ""]]);
}

pub(crate) fn the_dissector_reports_errors_exactly_where_the_parsers_do() {
    let mut stream = RandomStream::keyed(1, 1, 1, Purpose::Emulation);
    let mut damaged = |mut bytes: Vec<u8>| {
        let at = stream.below(bytes.len() as u32) as usize;
        match stream.below(6) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[1] = stream.bits() as u8,
            2 => bytes[1] = stream.below(8) as u8 | bytes[1] & 0xf0,
            3 => bytes.push(7),
            4 => bytes.extend([0; 4]),
            _ => bytes[at] ^= 1 << stream.below(8),
        }
        bytes
    };
    let (messages, frames, datagrams) = (messages(), frames(), datagrams());
    let both = messages.iter().map(emit).chain(frames.iter().map(emit_frame));
    let all: Vec<_> = both.chain(datagrams.iter().map(emit_datagram)).map(&mut damaged).collect();
    let is_refused = |bytes: &Vec<u8>| match bytes[0] {
        MAGIC => Frame::parse(&Bytes::copy_from_slice(bytes)).is_err(),
        tunnel::MAGIC => is_refused_datagram(&Bytes::copy_from_slice(bytes)),
        _ => Sealed::parse(bytes).is_err(),
    };
    // Findings about the packets within frames are ignored.
    let ours = ["truncated", "version", "type", "longer", "range", "numbers", "parity"];
    let ours = ours.map(|name| format!("hopline_dproxy.malformed.{name}"));
    let mut names = vec!["_ws.lua.error"];
    names.extend(ours.iter().map(String::as_str));
    let rows = read(&all, |reading| reading.fields(&names));
    let refused = all.iter().filter(|bytes| is_refused(bytes)).count();
    assert!(refused > 80 && all.len() - refused > 80, "{refused} of {} refused", all.len());
    assert_eq!(rows.len(), all.len());
    for (bytes, row) in all.iter().zip(rows) {
        let is_error = row[1..].iter().any(|entry| !entry.is_empty());
        assert_eq!((is_error, row[0].as_str()), (is_refused(bytes), ""), "{bytes:02x?}");
    }
}

/// Returns whether a datagram is invalid or contains no frame.
fn is_refused_datagram(bytes: &Bytes) -> bool {
    match Datagram::parse(bytes) {
        Err(_) => true,
        Ok(Datagram::Handshake(..)) => false,
        Ok(Datagram::Frame(sealed)) if sealed.frame.first() == Some(&MAGIC) => {
            Frame::parse(&sealed.frame).is_err()
        }
        Ok(Datagram::Frame(sealed)) => arq::Frame::parse(&sealed.frame).is_err(),
    }
}
