//! Goodput of the kernel's TCP through Snoop: a measurement, not a test.

use crate::nfqueue::router::{self, divert};
use crate::nfqueue::world::{Bottleneck, World};
use hopline_middlebox::nfqueue::queue_stats;
use hopline_proxy::{Pep, hop_window};
use hopline_testkit::Side;
use hopline_testkit::namespace::last_hop::{LINK, received_until};
use std::io::{self, Write};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Middlebox in the router.
#[derive(Clone, Copy, Debug)]
enum Middlebox {
    /// None.
    Plain,
    /// Snoop `modern`.
    Snoop,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Cell {
    congestion_control: &'static str,
    loss: f64,
    middlebox: Middlebox,
    bottleneck: Bottleneck,
    seed: u64,
}

/// Duration of a measurement.
const LASTS: Duration = Duration::from_secs(10);
/// Concurrent measurements: the links are slow.
const AT_ONCE: usize = 4;
const LOSSES: [f64; 6] = [0.0, 0.01, 0.03, 0.05, 0.10, 0.20];
const SEEDS: [u64; 2] = [11, 23];

/// Result of a measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bytes: usize,
    /// Packets sent on the wireless link to the mobile host.
    sent: u64,
    /// Of those, packets dropped because its queue was full.
    queue_drops: u64,
    /// Packets dropped by the router's own queue, as Snoop has detected.
    router_drops: u64,
    /// Packets dropped by the window on the last hop.
    window_drops: u64,
    local_retransmissions: u64,
    /// Of those, retransmissions by timeout.
    timeouts: u64,
    left_to_sender: u64,
    /// Packets that the kernel could not deliver to the reader.
    missed: u32,
}

/// Returns a test for each congestion control algorithm, queue and loss rate. It prints the goodput over ten seconds from
/// the connection on, and its cost.
pub(crate) fn tests() -> impl Iterator<Item = (String, impl Fn() + Send + 'static)> {
    let queues = [20, 100, 400].into_iter().flat_map(|packets| {
        [Bottleneck::InLink(packets), Bottleneck::InRouter(packets), Bottleneck::WithPriorities(packets)]
    });
    let of_queue = move |congestion_control: &'static str| {
        queues.clone().flat_map(move |bottleneck| {
            LOSSES.into_iter().map(move |loss| (congestion_control, bottleneck, loss))
        })
    };
    ["cubic", "bbr"].into_iter().flat_map(of_queue).map(|(congestion_control, bottleneck, loss)| {
        let name = format!("goodput::{congestion_control}::{bottleneck:?}::{}%", (loss * 100.0).round());
        (name.clone(), move || goodput(&name, congestion_control, bottleneck, loss))
    })
}

fn goodput(name: &str, congestion_control: &'static str, bottleneck: Bottleneck, loss: f64) {
    let middles = [Middlebox::Plain, Middlebox::Snoop];
    let cell = |middle, seed| Cell { congestion_control, loss, middlebox: middle, bottleneck, seed };
    let cells: Vec<Cell> = middles.iter().flat_map(|&middle| SEEDS.map(|seed| cell(middle, seed))).collect();
    let measured = all(&cells);
    let lines = middles.iter().zip(measured.chunks(SEEDS.len()));
    let report: String =
        lines.map(|(middle, measured)| format!("{name} {middle:?}: {}", line(loss, measured))).collect();
    io::stderr().write_all(report.as_bytes()).unwrap();
}

fn line(loss: f64, measured: &[Measured]) -> String {
    let mean = |of: fn(&Measured) -> f64| measured.iter().map(of).sum::<f64>() / measured.len() as f64;
    let goodput = mean(|m| m.bytes as f64) * 8.0 / LASTS.as_secs_f64() / 1e6;
    let cost = mean(|m| m.sent as f64 * 1448.0 / m.bytes as f64) * (1.0 - loss);
    let missed = match mean(|m| m.missed.into()) {
        0.0 => String::new(),
        missed => format!(", {missed} missed by the reader"),
    };
    format!(
        "{goodput:.2} of {:.1} Mb/s, sent for each delivered / 1/(1-p) {cost:.3}, dropped by the link's queue {:.0}, by the router's {:.0}, by the \
         window's {:.0}, again {:.0}, of these by timer {:.0}, left {:.0}{missed}\n",
        20.0 * (1.0 - loss) * 1448.0 / 1500.0,
        mean(|m| m.queue_drops as f64),
        mean(|m| m.router_drops as f64),
        mean(|m| m.window_drops as f64),
        mean(|m| m.local_retransmissions as f64),
        mean(|m| m.timeouts as f64),
        mean(|m| m.left_to_sender as f64),
    )
}

/// Runs several measurements at a time.
fn all(cells: &[Cell]) -> Vec<Measured> {
    let (next, done) = (Mutex::new(0), Mutex::new(vec![Measured::default(); cells.len()]));
    let work = || loop {
        let mut taken = next.lock().unwrap();
        let index = *taken;
        *taken += 1;
        drop(taken);
        let Some(cell) = cells.get(index) else { return };
        let measured = measure(cell);
        done.lock().unwrap()[index] = measured;
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().unwrap()
}

fn measure(cell: &Cell) -> Measured {
    let world = World::new(cell.loss, cell.seed, cell.bottleneck);
    let router = world.wireless.host(Side::A);
    let standing = match cell.middlebox {
        Middlebox::Plain => None,
        Middlebox::Snoop => {
            divert(router, LINK);
            Some(world.snoop())
        }
    };
    let bytes = received_meanwhile(&world, cell.congestion_control);
    let link = world.wireless.stats().forward;
    let mut measured =
        Measured { bytes, sent: link.sent, queue_drops: link.queue_drops, ..Measured::default() };
    if let Some(standing) = standing {
        let kernel = router.run(|| queue_stats(router::QUEUE)).unwrap().unwrap();
        measured.missed = kernel.queue_dropped + kernel.user_dropped;
        let (driver, queue) = standing.end();
        measured.router_drops = queue.queue_drops;
        let hop_window::Stats { middlebox: machine, window } = driver.middlebox().stats();
        measured.timeouts = machine.timeouts;
        measured.local_retransmissions = machine.local_retransmissions;
        measured.left_to_sender = machine.left_to_sender;
        measured.window_drops = window.dropped;
    }
    measured
}

#[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
fn received_meanwhile(world: &World, congestion_control: &str) -> usize {
    let until = std::time::Instant::now() + LASTS;
    let ends = world.connection(congestion_control);
    ends[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    received_until(ends, until)
}
