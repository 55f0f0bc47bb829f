//! Throughput and processor time of the proxy, compared with its peers. Run by hand (`--ignored`), as it takes minutes and a
//! quiet machine. If `HOPLINE_PEPSAL` names the program that `bench/pepsal/build.sh` has built, PEPsal is one of the peers.

use crate::split::daemon::{Daemon, PORT, own_ticks, ticks};
use crate::split::hosts::{echo, meanwhile, print_uncaptured};
use crate::split::router::{Ground, Ip, divert, served};
use hopline_linux::Namespace;
use hopline_linux::sched::{Priority, request_real_time};
use hopline_linux::veth::Offload;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Length of one measurement.
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 15;

/// Whatever splits connections, or nothing.
pub(crate) enum Proxy {
    None,
    Hopline(Daemon),
    PepSal(Child),
}

impl Proxy {
    /// Processor time that it has used, in hundredths of a second.
    fn ticks(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Hopline(daemon) => daemon.ticks(),
            Self::PepSal(child) => ticks(child),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Self::PepSal(child) = self {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Returns the names of the variants that are compared, the bare loop first.
pub(crate) fn splitters() -> Vec<&'static str> {
    let all = ["copy", "splice", "split", "pepsal", "none"];
    all.into_iter().filter(|name| *name != "pepsal" || pepsal().is_some()).collect()
}

fn pepsal() -> Option<String> {
    std::env::var("HOPLINE_PEPSAL").ok()
}

pub(crate) fn split(router: &Namespace, name: &str, settings: &[(&str, &str)]) -> Proxy {
    match name {
        "none" => Proxy::None,
        "pepsal" => {
            let mut command = Command::new("chrt");
            let priority = if settings.contains(&ON_TIME) { ["-f", "1"] } else { ["-o", "0"] };
            command.args(priority).args([&pepsal().unwrap(), "-p", &PORT.to_string(), "-c", "512"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = router.spawn(command).unwrap();
            thread::sleep(Duration::from_millis(500));
            Proxy::PepSal(child)
        }
        kind => Proxy::Hopline(Daemon::start_kind(router, kind, settings)),
    }
}

/// Setting that gives the threads of the proxy real-time priority.
const ON_TIME: (&str, &str) = ("on_time", "yes");

/// Returns a ground on which all hosts use Reno, which this kernel lets a namespace choose.
fn ground(trains: Offload, name: &str, more: &[(&str, &str)]) -> (Ground, Proxy) {
    let ground = Ground::new(trains);
    for host in [&ground.client, &ground.router, &ground.server] {
        let choice = "/proc/sys/net/ipv4/tcp_congestion_control";
        host.run(|| fs::write(choice, "reno")).unwrap().unwrap();
    }
    if name != "none" {
        divert(&ground.router, PORT);
    }
    let splitter = split(&ground.router, name, &[&[("mobile", "reno"), ("fixed", "reno")], more].concat());
    (ground, splitter)
}

pub(crate) fn throughput_of_gso() {
    throughput([(Offload::Gso, 1), (Offload::Gso, 8)]);
}

pub(crate) fn throughput_of_single_packets() {
    throughput([(Offload::SinglePackets, 1), (Offload::SinglePackets, 8)]);
}

fn throughput(cases: [(Offload, usize); 2]) {
    for (trains, flows) in cases {
        print_uncaptured(&format!(
            "{trains:?}, {flows} flows, {ROUNDS} rounds. Gb/s (median), share of the bare loop's in the same round (geometric mean), \
             processor seconds a GB, of the one in the middle and of all three (medians); shares"
        ));
        let names = splitters();
        let mut runs = vec![Vec::new(); names.len()];
        for _ in 0..ROUNDS {
            for (name, runs) in names.iter().zip(&mut runs) {
                runs.push(carried(trains, name, flows));
            }
        }
        let bare = runs[0].clone();
        for (name, runs) in names.iter().zip(runs) {
            let shares: Vec<f64> = runs.iter().zip(&bare).map(|(run, bare)| run.rate / bare.rate).collect();
            let text: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
            let [rate, cost, all] =
                [|run: &RoundResult| run.rate, |run: &RoundResult| run.cost, |run: &RoundResult| run.all]
                    .map(|of| median(runs.iter().map(of).collect()));
            let mean = geometric_mean(&shares);
            print_uncaptured(&format!(
                "{name:>8} {rate:>7.2} {mean:>6.3} {cost:>6.3} {all:>6.3}   {}",
                text.join(" ")
            ));
        }
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Result of one round.
#[derive(Clone, Copy)]
struct RoundResult {
    /// In Gb/s.
    rate: f64,
    /// In seconds of the processor for a GB, of the one in the middle alone.
    cost: f64,
    /// The same, of the hosts at both ends as well.
    all: f64,
}

fn carried(trains: Offload, name: &str, flows: usize) -> RoundResult {
    let (ground, splitter) = ground(trains, name, &[]);
    let listener = ground.listen(Ip::V4);
    let before = own_ticks();
    let pairs: Vec<_> = (0..flows).map(|_| ground.connect_through_proxy(&listener)).collect();
    let each = pairs.into_iter().map(|(ours, theirs)| flow(ours, theirs)).collect::<Vec<_>>();
    let bytes: usize = each.into_iter().map(|flow| flow.join().unwrap()).sum();
    let (gigabytes, ticks) = (bytes as f64 / 1e9, splitter.ticks());
    let [cost, all] = [ticks, ticks + own_ticks() - before].map(|ticks| ticks as f64 / 100.0 / gigabytes);
    RoundResult { rate: gigabytes * 8.0 / SPAN.as_secs_f64(), cost, all }
}

/// Bytes that arrive within the span.
fn flow(mut ours: TcpStream, mut theirs: TcpStream) -> thread::JoinHandle<usize> {
    meanwhile(move || {
        let _ = meanwhile(move || while ours.write_all(&[0; 1 << 17]).is_ok() {});
        let (began, mut buffer, mut bytes) = (now(), vec![0; 1 << 20], 0);
        while began.elapsed() < SPAN {
            bytes += theirs.read(&mut buffer).unwrap();
        }
        bytes
    })
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "it is measured")]
    Instant::now()
}

pub(crate) fn latency() {
    const QUESTIONS: usize = 10_000;
    print_uncaptured(&format!(
        "microseconds of a question and its answer, 64 bytes each, {QUESTIONS} in a row: median, p99, p99.9"
    ));
    for name in splitters() {
        let (ground, _splitter) = ground(Offload::Gso, name, &[ON_TIME]);
        let listener = ground.listen(Ip::V4);
        let (mut ours, theirs) = ground.connect_through_proxy(&listener);
        ours.set_nodelay(true).unwrap();
        theirs.set_nodelay(true).unwrap();
        answer(theirs);
        let ask = move || (0..QUESTIONS).map(|_| query(&mut ours)).collect::<Vec<f64>>();
        let mut times = meanwhile(|| on_time(ask)).join().unwrap();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[(QUESTIONS as f64 * share) as usize];
        print_uncaptured(&format!("{name:>8} {:>7.1} {:>7.1} {:>7.1}", at(0.5), at(0.99), at(0.999)));
    }
}

fn answer(mut stream: TcpStream) {
    let answer = move || {
        let mut word = [0; 64];
        while stream.read_exact(&mut word).is_ok() {
            stream.write_all(&word).unwrap();
        }
    };
    meanwhile(|| on_time(answer));
}

/// Runs `what` before what others on this machine do.
fn on_time<T>(what: impl FnOnce() -> T) -> T {
    assert_eq!(request_real_time(), Priority::RealTime);
    what()
}

fn query(stream: &mut TcpStream) -> f64 {
    let start = now();
    stream.write_all(&[7; 64]).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    start.elapsed().as_secs_f64() * 1e6
}

/// Memory of the proxy with as many connections as two limits of 20,000 descriptors allow.
pub(crate) fn connections() {
    const MANY: usize = 9_800;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("most", &MANY.to_string())]);
    let before = proxy.resident();
    let listener = ground.listen(Ip::V4);
    let start = now();
    let mut pairs: Vec<(TcpStream, TcpStream)> = ground
        .client
        .run(|| (0..MANY).map(|_| (TcpStream::connect(served(Ip::V4)).unwrap(), accept(&listener))).collect())
        .unwrap();
    let opened = start.elapsed();
    for (ours, theirs) in &mut pairs {
        echo([ours, theirs], &[7; 1000]).unwrap();
    }
    proxy.wait_for("connections_open", MANY as u64);
    let after = proxy.resident();
    print_uncaptured(&format!(
        "{MANY} connections, opened in {opened:?}, each has carried 1000 bytes: resident {before} bytes before, {after} after"
    ));
    let ticks = proxy.ticks();
    thread::sleep(SPAN);
    print_uncaptured(&format!(
        "processor time while nothing happens for {SPAN:?}: {} hundredths of a second",
        proxy.ticks() - ticks
    ));
    drop(pairs);
    proxy.wait_for("connections_open", 0);
}

fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().unwrap().0
}
