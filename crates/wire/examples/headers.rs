//! Encoding and decoding of headers: a SYN in an IPv4 packet, and the dump of its bytes. `cargo run --example headers`.

use bytes::Bytes;
use hopline_core::Seq32;
use hopline_wire::ParseError;
use hopline_wire::ip::{Header, IpHeader, Protocol};
use hopline_wire::tcp::{Flags, Options, Segment, Timestamps};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), ParseError> {
    let ip = Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::Tcp);
    let options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..Options::default()
    };
    let syn = Segment::<Bytes> {
        src_port: 40_000,
        dst_port: 80,
        seq: Seq32(0x1234_5678),
        flags: Flags::SYN,
        window: 65_535,
        options,
        ..Segment::default()
    };

    // Headers are appended one after the other. The IP header needs the length of what follows it.
    let mut packet = Vec::new();
    ip.emit(syn.wire_len(), &mut packet);
    syn.emit(&ip, &mut packet);
    for row in packet.chunks(16) {
        println!("{}", row.iter().map(|byte| format!("{byte:02x} ")).collect::<String>());
    }

    // The payload of a layer is a range of the packet, so that nothing is copied.
    let packet = Bytes::from(packet);
    let (header, payload) = Header::parse(&packet)?;
    let segment = Segment::parse(&header, &packet.slice(payload))?;
    println!("{} > {}: {:?}", header.src(), header.dst(), segment);
    assert_eq!(segment, syn);

    // A damaged packet is an error with its reason.
    let mut damaged = packet.to_vec();
    damaged[30] ^= 1;
    let damaged = Bytes::from(damaged);
    let (header, payload) = Header::parse(&damaged)?;
    let error = Segment::parse(&header, &damaged.slice(payload)).expect_err("the checksum covers every bit");
    println!("damaged: {error}");
    assert_eq!(error, ParseError::BadChecksum);
    Ok(())
}
