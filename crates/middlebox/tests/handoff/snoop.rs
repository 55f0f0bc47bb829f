//! Snoop beside stations: what comes out of the tunnel passes the rules of `FORWARD`, and waits in a queue there.

use crate::handoff::transfer::transfer;
use crate::handoff::world::{Deployment, Reception, World, print_uncaptured};
use bytes::Bytes;
use hopline_core::Duration as Span;
use hopline_linux::Namespace;
use hopline_middlebox::handoff::{HandoffRule, NotifiedMiddlebox, Scheme, StartState};
use hopline_middlebox::middlebox_loop;
use hopline_middlebox::nfqueue::{Config, Queue};
use hopline_proxy::Pep;
use hopline_proxy::driver::Driver;
use hopline_proxy::snoop::{self, Snoop};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::streams::until;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

const QUEUE: u16 = 7;
/// One packet of so many is lost on the last hop.
const LOSS: u32 = 30;

/// Snoop on a thread of its own.
struct RunningSnoop {
    stop: Arc<OwnedFd>,
    thread: JoinHandle<Driver<NotifiedMiddlebox<Snoop<Bytes>>>>,
}

impl RunningSnoop {
    fn new(host: &Namespace, snoop: NotifiedMiddlebox<Snoop<Bytes>>) -> Self {
        for way in ["-o", "-i"] {
            let mut command = Command::new("iptables");
            let rule =
                format!("-w -A FORWARD {way} radio -p tcp -j NFQUEUE --queue-num {QUEUE} --queue-bypass");
            command.args(rule.split(' ')).stdout(Stdio::null());
            assert!(host.spawn(command).unwrap().wait().unwrap().success());
        }
        let mut queue = host.run(|| Queue::open(&Config::new(QUEUE, "radio"))).unwrap().unwrap();
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let stopped = Arc::clone(&stop);
        let run = move || {
            let mut driver = Driver::new(snoop);
            middlebox_loop::run(&mut driver, &mut queue, stopped.as_fd()).unwrap();
            driver
        };
        Self { stop, thread: thread::spawn(run) }
    }

    fn end(self) -> Driver<NotifiedMiddlebox<Snoop<Bytes>>> {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        self.thread.join().unwrap()
    }
}

/// A transfer over a lossy last hop, with handoffs.
fn lossy_transfer(with_snoop: Option<StartState>, bytes: usize) -> Vec<snoop::Stats> {
    let world = World::new(Reception::CurrentStation);
    let mut standing = Vec::new();
    let stations = [0, 1].map(|number| {
        let mut station =
            world.open_station(number, |config| config.cold = with_snoop.unwrap_or(StartState::Cold));
        if with_snoop.is_some() {
            let snoop = station.notify_middlebox(Snoop::new(snoop::Config::modern()));
            standing.push(RunningSnoop::new(&world.stations[number], snoop));
        }
        RunningService::in_real_time(station)
    });
    let home = world.home_agent(Scheme::Multicast);
    let mobile = world.mobile_host(|config| config.decide = HandoffRule::Periodic(Span::from_secs(1)));
    let mut all = Deployment { home, stations, mobile };
    until("a first station", || world.air.station().is_some());
    world.air.loss_interval.store(LOSS, Ordering::Relaxed);
    let transfer = transfer(&world, bytes);
    all.end();
    assert_eq!(all.sum_of_stations("untold"), 0);
    let stats: Vec<_> = standing.into_iter().map(|standing| standing.end().middlebox().stats()).collect();
    let (goodput, again) = (transfer.goodput_mbps, transfer.retransmitted);
    print_uncaptured(&format!(
        "one of {LOSS} packets lost, Snoop {with_snoop:?}: {goodput:.2} Mb/s, {again} segments again by the sender"
    ));
    stats
}

pub(crate) fn snoop_repairs_losses_beside_stations() {
    thread::scope(|scope| {
        let runs = [StartState::Cold, StartState::Warm]
            .map(|cold| scope.spawn(move || lossy_transfer(Some(cold), 1_500_000)));
        for run in runs {
            let stats = run.join().unwrap();
            let again: u64 = stats.iter().map(|stats| stats.local_retransmissions).sum();
            assert!(again > 10, "{stats:?}");
        }
    });
}

/// Measures the figures of Snoop on Linux in docs/protocols/handoff.md.
pub(crate) fn figures() {
    for with_snoop in [None, Some(StartState::Cold), Some(StartState::Warm)] {
        lossy_transfer(with_snoop, 5_000_000);
    }
}
