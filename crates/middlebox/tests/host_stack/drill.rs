//! Drill: hopline's TCP and the kernel's over a link that reorders packets, and one with a changing route. Prints a
//! table. With `STACKS=DOOR`, only senders with that text in their names run.
//!
//! ```text
//! host A: sender ── our stack or the kernel ══ link ══ our stack or the kernel ── receiver: host B
//! ```

#![allow(clippy::print_stdout, reason = "it tells what it measures")]

use super::world::*;
use crate::gateway::helpers::{accept, server};
use hopline_core::{Duration as Span, Instant as Moment};
use hopline_harness::Test;
use hopline_link::Condition;
use hopline_linux::tcp::set_congestion_control;
use hopline_middlebox::host_stack::{AcceptPort, HostStack, HostStackConfig};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, RunningService};
use hopline_tools::link::{EndConfig, EndRole, NamespaceLink, Setup};
use hopline_transport::tcp::{
    AckOrder, BbrConfig, Config, CongestionControl, Detection, DoorConfig, EcnMode, HeldVariables,
    SpuriousDetector,
};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Address of the stack at host B.
const FAR_STACK: Ipv4Addr = Ipv4Addr::new(10, 89, 0, 2);
/// Runs of each pair of sender and link, interleaved.
const RUNS: u64 = 3;
/// Warm-up, which is not measured; the next constant is the measured time.
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(6);
const RATE: u64 = 20_000_000;

pub(crate) fn tests() -> Vec<Test> {
    vec![Test::new("stacks_over_links_that_reorder", [LINK], drill).long().alone()]
}

/// TCP implementations of the sender and of the receiver.
#[derive(Clone, Copy)]
enum EndpointPair {
    /// Hopline's stack at both ends.
    Hopline(Config),
    /// Hopline's stack at the sender, the kernel at the receiver.
    HoplineToKernel(Config),
    /// The kernel at both ends, with this congestion control algorithm.
    Kernel(&'static str),
}

fn pairs() -> Vec<(&'static str, EndpointPair)> {
    let bbr3 = Config::linux()
        .with_congestion_control(CongestionControl::Bbr(BbrConfig::V3))
        .with_ecn(EcnMode::Never);
    let sack = Config::modern().with_sack();
    let eifel = sack.with_spurious(sack.spurious().with_eifel(SpuriousDetector::On));
    let door = sack.with_door(Some(DoorConfig::all(2.0, 2.0)));
    // The paper leaves open (A7) whether the window may grow while congestion control is disabled.
    let growing = DoorConfig::all(2.0, 2.0).with_held(HeldVariables::Reductions);
    let growing = sack.with_door(Some(growing));
    vec![
        ("kernel, CUBIC", EndpointPair::Kernel("cubic")),
        ("kernel, BBR", EndpointPair::Kernel("bbr")),
        ("ours, NewReno", EndpointPair::Hopline(Config::modern().with_newreno())),
        ("ours, SACK", EndpointPair::Hopline(sack)),
        ("ours, SACK and Eifel", EndpointPair::Hopline(eifel)),
        ("ours, DOOR", EndpointPair::Hopline(door)),
        ("ours, DOOR, only reductions held", EndpointPair::Hopline(growing)),
        ("ours, DOOR, to the kernel", EndpointPair::HoplineToKernel(door)),
        ("ours, CUBIC", EndpointPair::Hopline(Config::linux())),
        ("ours, BBRv3", EndpointPair::Hopline(bbr3)),
    ]
}

/// Returns the links by name: single packets that are overtaken, and a route that changes every second.
fn links() -> [(&'static str, Emulation); 3] {
    let base = Emulation::delay(Span::from_millis(20)).with_rate(Some(RATE)).with_queue(Some(100));
    let jitter = base.clone().with_jitter(Span::from_millis(10)).with_allow_reordering(true);
    let route = |n: u64| {
        Condition::starting_at(Moment::from_secs(n))
            .with_latency(Some(Span::from_millis(if n.is_multiple_of(2) { 60 } else { 15 })))
    };
    let changes =
        base.clone().with_conditions(Some((0..60).map(route).collect())).with_allow_reordering(true);
    [
        ("in order, 20 ms", base),
        ("20 to 30 ms, overtaking", jitter),
        ("60 and 15 ms by turns of 1 s", changes),
    ]
}

fn drill() {
    println!(
        "goodput in Mb/s, median of {RUNS} runs of {MEASURED:?} after {WARM_UP:?}, least and most in brackets; {} Mb/s",
        RATE / 1_000_000
    );
    let names: Vec<_> = links().iter().map(|(name, _)| *name).collect();
    println!("| sender | {} |", names.join(" | "));
    println!("|---|{}", "--:|".repeat(names.len()));
    let wanted = std::env::var("STACKS").unwrap_or_default();
    for (name, pair) in pairs().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let cells = links().map(|(_, way)| {
            let mut runs: Vec<f64> = (0..RUNS).filter_map(|run| goodput(&way, pair, run)).collect();
            runs.sort_by(f64::total_cmp);
            match runs[..] {
                [] => "not here".to_owned(),
                _ => format!("{:.1} ({:.1}–{:.1})", runs[runs.len() / 2], runs[0], runs[runs.len() - 1]),
            }
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// Returns the goodput in Mb/s of a sender with unlimited data; `None` if this kernel lacks the congestion control
/// algorithm.
fn goodput(way: &Emulation, pair: EndpointPair, seed: u64) -> Option<f64> {
    if let EndpointPair::Kernel(name) = pair {
        set_congestion_control(&socket(), name).ok()?;
    }
    let net = |network: &str| EndConfig { role: EndRole::Host, networks: vec![network.parse().unwrap()] };
    let ends = [net("10.88.0.0/24"), net("10.89.0.0/24")];
    // The return path reorders too, so that acknowledgements overtake each other.
    let link = NamespaceLink::with(Setup { ends, ..Setup::new(way.clone(), way.clone(), seed) }).unwrap();
    let far = link.address_b();
    let (ready, is_ready) = channel::<SocketAddr>();
    let ((), bytes) = link.run_both(
        move || send(pair, is_ready.recv().unwrap()),
        move || {
            let (_stack, listener, address) = receiver(pair, far);
            ready.send(address).unwrap();
            let sink = accept(&listener);
            drain(&sink, WARM_UP);
            drain(&sink, MEASURED)
        },
    );
    Some(bytes as f64 * 8.0 / 1e6 / MEASURED.as_secs_f64())
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
}

/// Returns the listener of a receiver, and the address at which senders reach it.
fn receiver(
    pair: EndpointPair,
    far: Ipv4Addr,
) -> (Option<RunningService>, std::net::TcpListener, SocketAddr) {
    let EndpointPair::Hopline(tcp) = pair else {
        let (listener, address) = server(far.into());
        return (None, listener, address);
    };
    let (listener, address) = server(Ipv4Addr::LOCALHOST.into());
    let accept = vec![AcceptPort { port: PORT, to: address.to_string().parse().unwrap() }];
    let config = HostStackConfig { accept, ..HostStackConfig::new(tcp, vec![FAR_STACK.into()]).unwrap() };
    (Some(RunningService::new(HostStack::open(config).unwrap())), listener, (FAR_STACK, PORT).into())
}

/// Sends until the receiver closes the connection.
fn send(pair: EndpointPair, to: SocketAddr) {
    let (_stack, mut sender) = match pair {
        EndpointPair::Kernel(name) => {
            let sender = socket();
            set_congestion_control(&sender, name).unwrap();
            sender.connect(&to.into()).unwrap();
            (None, sender.into())
        }
        EndpointPair::Hopline(mut tcp) | EndpointPair::HoplineToKernel(mut tcp) => {
            if let (EndpointPair::HoplineToKernel(_), Some(door)) = (pair, tcp.door()) {
                // The kernel sends neither feedback nor numbers; only the order of acknowledgements remains.
                tcp = tcp.with_door(Some(door.with_detection(Detection::Sender(AckOrder::Numbers))));
            }
            let (running, entry) = forwarding(config(tcp), to);
            (Some(running), TcpStream::connect(entry).unwrap())
        }
    };
    let block = vec![7; 1 << 16];
    while sender.write_all(&block).is_ok() {}
}

/// Reads for `time`. Returns the number of bytes.
fn drain(mut sink: &TcpStream, time: Duration) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    let end = Instant::now() + time;
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return bytes;
        }
        sink.set_read_timeout(Some(left)).unwrap();
        bytes += sink.read(&mut buffer).unwrap_or(0) as u64;
    }
}
