//! Floods at the address of the stack: what it keeps is bounded, and an honest transfer goes on.

use super::world::*;
use crate::gateway::helpers::{accept, connect, hash, hash_of, pattern, send, server};
use hopline_harness::{Test, tests};
use hopline_testkit::namespace::LINK;
use hopline_transport::tcp::Config;
use hopline_wire::ip::{self, Ecn, Header};
use hopline_wire::tcp::{Flags, Options, Segment};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

pub(crate) fn tests() -> Vec<Test> {
    tests!([LINK]; a_flood_is_bounded_and_an_honest_transfer_continues).into()
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// SYNs from everywhere, resets, data for no connection, and bytes that are none of these, until `over`. Returns how many.
fn flood(over: &AtomicBool) -> u64 {
    // IPPROTO_RAW: packets with their headers.
    let attacker = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
    let mut sent = 0;
    while !over.load(Relaxed) {
        let number = sent as u32;
        let from = IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + number / 50_000));
        let flags = [Flags::SYN, Flags::ACK, Flags::RST, Flags(0xff)][number as usize % 4];
        let segment = Segment {
            src_port: 1024 + (number % 50_000) as u16,
            dst_port: PORT,
            seq: hopline_core::Seq32(number.wrapping_mul(2_654_435_761)),
            ack: hopline_core::Seq32(number),
            flags,
            window: 1000,
            urgent: 7,
            options: Options::default(),
            ecn: Ecn::NotCapable,
            payload: bytes::Bytes::from_static(b"garbage"),
        };
        let header = Header::new(from, STACK.into(), ip::Protocol::Tcp);
        let mut packet = Vec::new();
        header.emit(segment.wire_len(), &mut packet);
        segment.emit(&header, &mut packet);
        if number.is_multiple_of(5) {
            packet[33] ^= 0x55; // the checksum no longer fits
        }
        let to = SocketAddrV4::new(STACK, 0);
        // A full queue is as good as a loss.
        sent += u64::from(attacker.send_to(&packet, &to.into()).is_ok());
        if sent.is_multiple_of(64) {
            thread::yield_now();
        }
    }
    sent
}

fn a_flood_is_bounded_and_an_honest_transfer_continues() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let len = 2_000_000;
    let over = AtomicBool::new(false);
    let over = &over;
    link.run_both(
        move || {
            let (program, address) = server(Ipv4Addr::LOCALHOST.into());
            let running = accepting(config(Config::linux()), address);
            let before = resident();
            ready.send(()).unwrap();
            let served = accept(&program);
            assert_eq!(hash_of(&served).unwrap(), hash(&pattern(1, len)));
            send(&served, b"done");
            running.await_metric("finished_connections", |figure| figure == 1);
            assert!(running.metric("half_open_connections") <= 256);
            assert!(running.metric("received_packets") > 5000, "{}", running.metric("received_packets"));
            assert!(running.metric("malformed_packets") > 0 && running.metric("unknown_segments") > 0);
            // Other tests of this program run beside.
            assert!(resident().saturating_sub(before) < 512 << 20);
        },
        move || {
            is_ready.recv().unwrap();
            thread::scope(|scope| {
                let attack = scope.spawn(|| flood(over));
                let client = connect((STACK, PORT).into());
                send(&client, &pattern(1, len));
                assert_eq!(hash_of(&client).unwrap(), hash(b"done"));
                over.store(true, Relaxed);
                assert!(attack.join().unwrap() > 5000);
            });
        },
    );
}
