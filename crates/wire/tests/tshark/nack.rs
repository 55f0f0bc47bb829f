//! Tests that the Wireshark dissector of NACK options shows the emitted fields, and takes no other option for a NACK.

use super::{ip_packet, raw_capture};
use bytes::Bytes;
use hopline_core::{Purpose, RandomStream, Seq32};
use hopline_harness::tshark::Capture;
use hopline_wire::ipv4;
use hopline_wire::tcp::{DoorOption, DoorReport, Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/nack.lua");

fn any_segment(stream: &mut RandomStream) -> Segment<Bytes> {
    let mut options = Options { nack: stream.below(2) == 1, ..Options::default() };
    if stream.below(2) == 1 {
        options.timestamps = Some(Timestamps { value: stream.bits() as u32, echo: stream.bits() as u32 });
    }
    if stream.below(3) == 0 {
        let tpsn = Some(stream.bits() as u16);
        options.door = Some(DoorOption::Report(DoorReport { adsn: None, tpsn, out_of_order: false }));
    }
    for _ in 0..1 + stream.below(3) {
        let number = |stream: &mut RandomStream| Seq32(stream.bits() as u32);
        options.sack.push(SackBlock { left: number(stream), right: number(stream) });
    }
    Segment { src_port: 80, dst_port: 9, flags: Flags::ACK, options, ..Segment::default() }
}

/// Returns the options as the parser reads them from the emitted segment; not everything fits.
fn parsed_options(segment: &Segment<Bytes>) -> Options {
    let mut bytes = Vec::new();
    let ip = ipv4::Header {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        ttl: 64,
        protocol: ipv4::Protocol::Tcp,
        ecn: ipv4::Ecn::NotCapable,
        id: 0,
    };
    segment.emit(&ip, &mut bytes);
    Segment::parse(&ip, &bytes.into()).expect("we wrote it").options
}

pub(crate) fn every_nack_range_is_shown() {
    let mut stream = RandomStream::keyed(1, 0, 0, Purpose::Emulation);
    let segments: Vec<_> = (0..200).map(|_| any_segment(&mut stream)).collect();
    let packet = |segment: &Segment<Bytes>| {
        ip_packet(ipv4::Protocol::Tcp, segment.wire_len(), |ip, out| segment.emit(ip, out))
    };
    let packets: Vec<_> = segments.iter().map(packet).collect();
    let names = ["hopline_nack.left", "hopline_nack.right", "_ws.lua.error"];
    let rows = raw_capture(&packets, |path| Capture::of(path).with_script(DISSECTOR.as_ref()).fields(&names));
    assert_eq!(rows.len(), segments.len());
    for (segment, row) in segments.iter().zip(rows) {
        let options = parsed_options(segment);
        let asked = if options.nack { options.sack } else { SackBlocks::default() };
        let list = |of: fn(&SackBlock) -> u32| {
            asked.as_slice().iter().map(|range| of(range).to_string()).collect::<Vec<_>>().join(",")
        };
        let expected = [list(|range| range.left.0), list(|range| range.right.0), String::new()];
        assert_eq!(row[..], expected, "{segment:?}");
    }
    assert!(segments.iter().filter(|segment| segment.options.nack).count() > 50);
}
