//! The time that a connection takes over a link of 100 ms, by what the peer and the path know: `make drills`.

#![allow(clippy::print_stdout, reason = "figures for the user of the drill")]

use super::*;
use std::net::TcpStream;

/// Connections one after the other; those from the third on are "later".
const CONNECTIONS: usize = 9;
/// Connections over each path that loses.
const OVER_LOSSES: usize = 60;

/// Prints two tables, and checks what of them is certain.
pub(crate) fn drill() {
    println!("Time until a connection is there, ms, round trip 100 ms:");
    println!(
        "| server | path | transport | first | second | later, median | connections that the server saw |"
    );
    println!("|---|---|---|--:|--:|--:|---|");
    plain();
    for (serves, dropped, limits) in [
        (ServerTransports::Both, DroppedPackets::Nothing, [1.0, 1.0, 1.0]),
        (ServerTransports::Tpa, DroppedPackets::Nothing, [1.0, 1.0, 1.0]),
        (ServerTransports::Tcp, DroppedPackets::Nothing, [1.0, 1.0, 1.0]),
        (ServerTransports::Tcp, DroppedPackets::Udp, [2.0, 2.0, 1.0]),
        (ServerTransports::Both, DroppedPackets::Udp, [2.0, 2.0, 1.0]),
        (ServerTransports::Both, DroppedPackets::Tcp, [1.0, 1.0, 1.0]),
    ] {
        let took = row(serves, dropped);
        for (took, limit) in took.into_iter().zip(limits) {
            assert!(took <= limit * 100.0 + 30.0, "{serves:?}, {dropped:?}: {took:.0} ms");
        }
    }
    println!();
    println!("{OVER_LOSSES} connections of new clients to a server with both, losses in each direction:");
    println!(
        "| loss | over TPA | over TCP | median, ms | slowest, ms | TCP alone: median, ms | slowest, ms |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    for percent in [1, 5, 10, 20] {
        losses(percent);
    }
}

/// TCP without any of this.
fn plain() {
    let world = World::new(ServerTransports::Tcp, DroppedPackets::Nothing, 0.0);
    let took: Vec<f64> = (0..CONNECTIONS).map(|_| tcp_alone(&world)).collect();
    println!(
        "| TCP | all passes | TCP without a call of TPA | {:.0} | {:.0} | {:.0} | {CONNECTIONS} over TCP |",
        took[0],
        took[1],
        median(&took[2..])
    );
}

fn tcp_alone(world: &World) -> f64 {
    world.link.run_in_a(|| {
        let began = now();
        let stream = TcpStream::connect(world.to).unwrap();
        let took = millis(began.elapsed());
        through_echo(&Stream::Tcp(stream), 100);
        took
    })
}

/// The times of the first, the second and the later connections.
fn row(serves: ServerTransports, dropped: DroppedPackets) -> [f64; 3] {
    let world = World::new(serves, dropped, 0.0);
    let connector = Connector::default();
    let mut over_tpa = 0;
    let took: Vec<f64> = (0..CONNECTIONS)
        .map(|_| {
            let (stream, took) = world.connect(&connector, &config()).unwrap();
            through_echo(&stream, 100);
            over_tpa += usize::from(matches!(stream, Stream::Tpa(_)));
            millis(took)
        })
        .collect();
    assert!([0, CONNECTIONS].contains(&over_tpa), "{over_tpa} over TPA");
    let served = match serves {
        ServerTransports::Both => "TPA and TCP",
        ServerTransports::Tpa => "TPA",
        ServerTransports::Tcp => "TCP",
    };
    let path = match dropped {
        DroppedPackets::Nothing => "all passes",
        DroppedPackets::Udp => "UDP is dropped",
        DroppedPackets::Tcp => "TCP is dropped",
    };
    let [tpa, tcp, empty] = world.server.counts.read();
    let saw = format!("{tpa} over TPA, {tcp} over TCP, {empty} without data");
    let used = if over_tpa > 0 { "TPA" } else { "TCP" };
    let [first, second, later] = [took[0], took[1], median(&took[2..])];
    println!("| {served} | {path} | {used} | {first:.0} | {second:.0} | {later:.0} | {saw} |");
    assert_eq!((tpa + tcp, empty), (CONNECTIONS as u64, 0));
    [first, second, later]
}

fn losses(percent: u32) {
    let loss = f64::from(percent) / 100.0;
    let world = World::new(ServerTransports::Both, DroppedPackets::Nothing, loss);
    let mut over_tpa = 0;
    let took: Vec<f64> = (0..OVER_LOSSES)
        .map(|_| {
            // Each is new: none remembers the losses of another.
            let (stream, took) = world.connect(&Connector::default(), &config()).unwrap();
            through_echo(&stream, 100);
            over_tpa += usize::from(matches!(stream, Stream::Tpa(_)));
            millis(took)
        })
        .collect();
    let [_, _, empty] = world.server.counts.read();
    assert_eq!(empty, 0);
    let tcp: Vec<f64> = (0..OVER_LOSSES).map(|_| tcp_alone(&world)).collect();
    println!(
        "| {percent} % | {over_tpa} | {} | {:.0} | {:.0} | {:.0} | {:.0} |",
        OVER_LOSSES - over_tpa,
        median(&took),
        most(&took),
        median(&tcp),
        most(&tcp)
    );
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
