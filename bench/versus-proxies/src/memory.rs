//! The second part: memory of proxies for each connection, measured with many at once.

use crate::condition::{Addresses, Bottleneck, Condition};
use crate::middle::Middle;
use crate::ping::Ping;
use crate::standing::Standing;
use crate::world::{Place, World};
use hopline_linux::tcp;
use serde::Serialize;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use versus::table::aligned;
use versus::{Failure, pool};

/// Number of concurrent connections.
const FLOWS: u16 = 50;
/// Time for which all of them send.
const LASTS: Duration = Duration::from_secs(5);
/// Interval at which sender and receiver check for the end.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time to connect.
const PATIENCE: Duration = Duration::from_secs(20);
const PORT: u16 = 5201;
/// Last hop.
const HOP: Condition = Condition {
    bottleneck: Bottleneck::Router,
    mbps: 20,
    loss: 0.01,
    burst: None,
    addresses: Addresses::Routed,
};

/// Resident memory of one proxy, bytes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Kept {
    proxy: String,
    /// Before the first connection.
    idle: u64,
    /// While the first one sends.
    with_one: u64,
    /// While all send.
    with_all: u64,
}

/// Measures each of `middles`, `parallel` at once.
pub(crate) fn all(middles: &[Middle], parallel: usize, pepsal: Option<&Path>) -> Result<Vec<Kept>, Failure> {
    let there: Vec<Middle> = middles.iter().copied().filter(|middle| *middle != Middle::Plain).collect();
    eprintln!("memory of {} proxies", there.len());
    pool::all(&there, parallel, |middle| {
        one(*middle, pepsal).map_err(|e| format!("memory of {}: {e}", middle.name()).into())
    })
}

fn one(middle: Middle, pepsal: Option<&Path>) -> Result<Kept, Failure> {
    let world = World::new(&HOP, 1)?;
    let standing = Standing::start(&world, middle, &HOP, pepsal)?;
    Ping::new(&world, middle.target(), HOP.addresses)?.await_path()?;
    let target = middle.target();
    let listener = world.air.run_in_b(|| TcpListener::bind(SocketAddr::from((target, PORT))))?;
    let memory = || Ok::<u64, Failure>(standing.used(Place::Router)?.memory);
    let idle = memory()?;
    let with_one = while_sending(&world, target, &listener, 1, &memory)?;
    let with_all = while_sending(&world, target, &listener, FLOWS, &memory)?;
    Ok(Kept { proxy: middle.name(), idle, with_one, with_all })
}

/// Returns the result of `memory` after this number of connections have sent for a while.
fn while_sending(
    world: &World,
    target: Ipv4Addr,
    listener: &TcpListener,
    flows: u16,
    memory: &dyn Fn() -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    let mut ends = Vec::new();
    for _ in 0..flows {
        let ours = world.wired.run_in_a(|| call(target))?;
        ends.push((ours, listener.accept()?.0));
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (ours, theirs) in &ends {
            scope.spawn(|| send(ours, &over));
            scope.spawn(|| receive(theirs, &over));
        }
        thread::sleep(LASTS);
        let read = memory();
        over.store(true, Ordering::Relaxed);
        read
    })
}

fn call(target: Ipv4Addr) -> Result<TcpStream, Failure> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    tcp::set_congestion_control(&socket, "cubic")?;
    socket.connect_timeout(&SocketAddr::from((target, PORT)).into(), PATIENCE)?;
    Ok(socket.into())
}

fn send(mut stream: &TcpStream, over: &AtomicBool) {
    let _ = SockRef::from(stream).set_write_timeout(Some(LOOK));
    while !over.load(Ordering::Relaxed) {
        // Data that were not written are offered again.
        let _ = stream.write(&[0x5a; 1 << 14]);
    }
}

fn receive(mut stream: &TcpStream, over: &AtomicBool) {
    let _ = SockRef::from(stream).set_read_timeout(Some(LOOK));
    let mut buffer = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        let _ = stream.read(&mut buffer);
    }
}

/// Returns the table.
pub(crate) fn table(kept: &[Kept]) -> String {
    let heading =
        ["", "before the first, MB", "with one, MB", "with all, MB", "a flow, kB"].map(String::from).to_vec();
    let row = |kept: &Kept| {
        let Kept { proxy, idle, with_one, with_all } = kept;
        let megabytes = |bytes: &u64| format!("{:.1}", *bytes as f64 / 1e6);
        // The first connection is left out, as it includes one-time costs.
        let each = (*with_all as f64 - *with_one as f64) / f64::from(FLOWS) / 1e3;
        vec![proxy.clone(), megabytes(idle), megabytes(with_one), megabytes(with_all), format!("{each:.0}")]
    };
    let rows: Vec<_> = std::iter::once(heading).chain(kept.iter().map(row)).collect();
    format!(
        "## Memory: {FLOWS} flows of CUBIC at once\n\nResident memory of the proxy's process at the router, 20 Mb/s, 1 % lost, after {} s. \
         \"A flow\" is what {FLOWS} take beyond what one had taken before them. What the kernel keeps in its sockets for split \
         connections is not in it.\n\n{}",
        LASTS.as_secs(),
        aligned(&rows)
    )
}
