//! Traffic that reaches a third party when an attacker redirects a connection to it.

use bytes::Bytes;
use hopline_streams::tpa::{TpaListener, config};
use hopline_wire::tpa::{Ack, Bitmap, Control, Opening, Receipt, Segment, Tag};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

/// Segments that the attacker sends in the victim's name.
const FORGED: u32 = 3000;
/// Most bytes that may reach the victim for each byte of the attacker.
const BOUND: f64 = 3.0;

pub(crate) fn drill() {
    for (who, tag) in [("a blind forger", None), ("a cheating peer", Some(()))] {
        let (spent, reached) = attack(tag.is_some());
        let ratio = reached as f64 / spent as f64;
        println!("{who} sends {spent} bytes, and {reached} reach the victim: {ratio:.3} for one");
        assert!(ratio <= BOUND);
    }
}

fn emit(segment: &Segment<Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit_udp(&mut out);
    out
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

fn next(socket: &UdpSocket) -> Option<Segment<Bytes>> {
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).ok()?;
    Segment::parse_udp(&Bytes::copy_from_slice(&buffer[..len])).ok()
}

/// Returns the bytes sent in the victim's name, and the bytes that reached it. IP and UDP headers count, 28 bytes for each
/// datagram.
fn attack(knows_the_tag: bool) -> (usize, usize) {
    let listener = TpaListener::bind((Ipv4Addr::LOCALHOST, 0), &config(12)).unwrap();
    let server = listener.local_addr().unwrap();
    let own = NonZeroU64::new(77).map(Tag);
    let opening = Some(Opening { tag: own, mss: 1448, block_segments: 12, cwnd_max: 12 });
    let peer = socket();
    let syn = Segment { control: Control::Syn, opening, ..Segment::default() };
    peer.send_to(&emit(&syn), server).unwrap();
    let tag = next(&peer).unwrap().opening.unwrap().tag;
    let first = Segment {
        ack: Some(Ack { block: u16::MAX, ..Ack::default() }),
        window: u16::MAX,
        tag,
        opening,
        ..Segment::default()
    };
    peer.send_to(&emit(&first), server).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(50)));
    // As much as there is room for: 256 KiB in the send buffer.
    while { &stream }.write(&[7; 65_536]).is_ok() {}
    let block = std::iter::from_fn(|| next(&peer)).find(|segment| segment.position.is_some()).unwrap().block;

    let victim = socket();
    let victims = victim.try_clone().unwrap();
    thread::scope(|scope| {
        let counting = thread::Builder::new().spawn_scoped(scope, move || {
            let mut buffer = [0; 2048];
            std::iter::from_fn(|| victims.recv(&mut buffer).ok()).map(|len| len + 28).sum::<usize>()
        });
        let mut spent = 0;
        for number in 0..FORGED {
            let guessed = NonZeroU64::new(u64::from(number) * 0x9e37_79b9 + 1).map(Tag);
            // All of this block, and of those that would follow.
            let all =
                Ack { block: block.wrapping_add((number / 500) as u16), bitmap: Bitmap::first(12), tx: 11 };
            let forged = Segment {
                ack: Some(all),
                window: u16::MAX,
                tag: if knows_the_tag { tag } else { guessed },
                receipt: Receipt { nonce: 0, proof: number as u16 },
                ..Segment::default()
            };
            spent += victim.send_to(&emit(&forged), server).unwrap() + 28;
            if number % 20 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
        }
        (spent, counting.unwrap().join().unwrap())
    })
}
