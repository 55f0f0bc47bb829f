//! The kernel's TCP through a node that receives notices of a neighbour.

use crate::neighborhood::place::{ComplainingNeighbour, RunningNode, Switch, address};
use hopline_core::Duration;
use hopline_linux::tcp;
use hopline_queue::SignalAction;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Bytes of a transfer: some 350 segments.
const BYTES: usize = 500_000;
/// Timeout, longer than any regular silence.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// Requested drop share of a neighbour: one of twenty packets of a node with avgtx 98.
const SHARE: f64 = 0.000_262;

pub(crate) fn tcp_survives_dropped_packets() {
    let node = transfer(SignalAction::Drop, "0");
    assert!(node.metric("packets_dropped") > 5);
    assert_eq!(node.metric("packets_marked"), 0);
    node.end();
}

pub(crate) fn tcp_survives_marked_packets() {
    let node = transfer(SignalAction::Mark, "1");
    assert!(node.metric("packets_marked") > 5);
    // A few drops of SYNs, pure ACKs and retransmissions, which are not ECN-capable (RFC 3168 §6.1).
    assert!(node.metric("packets_dropped") <= 2);
    node.end();
}

/// Transfers from host 0 to host 2, with `ecn` as in tcp(7).
fn transfer(action: SignalAction, ecn: &str) -> RunningNode {
    let place = Switch::new(3);
    for number in [0, 2] {
        place.host(number).run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", ecn)).unwrap().unwrap();
    }
    let node = place.member(0, |config| {
        config.machine.action = action;
        config.machine.notice_interval = Duration::from_secs(1);
        config.machine.lifetime = Duration::from_secs(2);
    });
    node.set_load([60, 0, 40]);
    let _complaint = ComplainingNeighbour::new(&place, 1, SHARE);
    node.await_metric("drop_probability_out_ppm", |ppm| (25_000..26_000).contains(&ppm));
    let [mut sender, mut receiver] = connection(&place);
    let content: Vec<u8> = (0..BYTES).map(|i| (i * i / 251) as u8).collect();
    let sent = blake3::hash(&content);
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&content).unwrap());
        let mut received = Vec::new();
        receiver.read_to_end(&mut received).unwrap();
        assert_eq!((received.len(), blake3::hash(&received)), (BYTES, sent));
    });
    let carried = BYTES as u64 / 1460;
    node.await_metric("packets", |packets| packets > carried);
    node
}

fn connection(place: &Switch) -> [TcpStream; 2] {
    let to = SocketAddr::from((address(2), 5001));
    let listener = place.host(2).run(|| TcpListener::bind(to)).unwrap().unwrap();
    let sender = place.host(0).run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        tcp::set_congestion_control(&socket, "cubic").unwrap();
        socket.connect(&to.into()).unwrap();
        TcpStream::from(socket)
    });
    let (receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    [sender.unwrap(), receiver]
}
