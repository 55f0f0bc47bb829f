//! Bytes that reach an emulation from its programs and from browsers.

use bytes::Bytes;
use hopline_emulate::{PageAnswer, answer_to_request, flow_in_frame};
use hopline_wire::checksum;
use hopline_wire::ethernet::{Frame, HEADER_LEN, IPV4};
use std::io::BufReader;

/// Port of the page.
const PORT: u16 = 8080;

/// Frames of programs, of which flows are told apart. A router and a congestion mark change neither flow nor identity.
pub fn flow_packet(data: &[u8]) {
    let Ok(frame) = Frame::parse(&Bytes::copy_from_slice(data)) else { return };
    let Some(flow) = flow_in_frame(&frame) else { return };
    let (_, _, [len, payload], _) = flow;
    assert!(payload < len && len as usize <= data.len() - HEADER_LEN);
    let marked = Frame::parse(&frame.with_congestion_mark()).expect("the addresses are unchanged");
    assert_eq!(flow_in_frame(&marked), Some(flow));
    let routed = Frame::parse(&routed(&frame)).expect("the addresses are unchanged");
    assert_eq!(flow_in_frame(&routed), Some(flow));
}

/// Returns the frame with the hop limit that a router leaves.
fn routed(frame: &Frame) -> Bytes {
    let mut bytes = frame.bytes().to_vec();
    let ip = &mut bytes[HEADER_LEN..];
    if frame.ethertype() == IPV4 {
        ip[8] = ip[8].wrapping_sub(1);
        ip[10..12].fill(0);
        let header = usize::from(ip[0] & 0xf) * 4;
        let sum = checksum::internet(&ip[..header]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        ip[7] = ip[7].wrapping_sub(1);
    }
    bytes.into()
}

/// Client of the page that shows an emulation. An answer is for a complete request with the address of the page, and does
/// not depend on the size of the reads.
pub fn watch_request(data: &[u8]) {
    let answer = answer_to_request(data, PORT).expect("a slice can be read");
    let slowly = BufReader::with_capacity(1, data);
    assert_eq!(answer_to_request(slowly, PORT).expect("a slice can be read"), answer);
    if matches!(answer, PageAnswer::Page | PageAnswer::Events) {
        assert!(data.starts_with(b"GET /"));
        let text = String::from_utf8_lossy(data).to_ascii_lowercase();
        assert!(text.contains("127.0.0.1:8080") || text.contains("localhost:8080"));
    }
}
