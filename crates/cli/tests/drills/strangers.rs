//! Unknown peers at addresses that receive: handshakes that are never finished or finished with garbage, and data beyond a
//! hole.

use crate::drills::attacker::{Attacker, Conversation, with_cookie};
use crate::drills::world::{Keys, StopOnDrop, TransportProtocol, ended, hopline, now, processor, usage};
use hopline_linux::Namespace;
use hopline_wire::tpa::PORT;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const BYTES: usize = 20_000_000;
/// Number of runs for a median.
const RUNS: usize = 5;

/// Third messages with garbage, per second.
const GARBAGE_PER_SECOND: u64 = 10_000;
/// Largest share of a processor for handling them.
const MAX_CPU_SHARE: f64 = 0.05;
/// Largest ratio of the durations of a transfer with and without them.
const MAX_SLOWDOWN: f64 = 1.3;

/// Handshakes that begin per second, and are never finished.
const HALF_OPEN: u64 = 1000;
/// Threads that begin handshakes: an unanswered one makes its thread wait.
const BEGINNERS: usize = 16;
/// Least share of the requested rate that a flood has to reach.
const MIN_FLOOD_SHARE: f64 = 0.8;
/// Longest time for a known peer to transfer a file during the flood.
const MAX_TRANSFER_TIME: Duration = Duration::from_secs(1);

/// Number of conversations with data beyond a hole.
const HOSTILE: usize = 64;
/// Most memory of the receiver then, bytes.
const MEMORY: u64 = 64 << 20;

/// Receiver that knows one sender.
struct ReceiverHost {
    folder: TempDir,
    keys: Keys,
    receiver: Child,
    at: IpAddr,
}

impl ReceiverHost {
    fn new(at: IpAddr) -> Self {
        let folder = TempDir::new().unwrap();
        let keys = Keys::make(folder.path(), at);
        fs::create_dir(folder.path().join("to")).unwrap();
        let mut recv = hopline(&["recv", "-q", "--bind", &at.to_string()]);
        keys.of_receiver(&mut recv);
        let receiver = recv.arg("-o").arg(folder.path().join("to")).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        Self { folder, keys, receiver, at }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::new(self.at, PORT)
    }

    /// Returns the seconds that the known sender takes to transfer so many bytes, as a file of that name.
    fn send(&self, name: &str, bytes: usize) -> f64 {
        let file = self.folder.path().join(name);
        fs::write(&file, (0..bytes).map(|i| (i % 251) as u8).collect::<Vec<_>>()).unwrap();
        let mut send = hopline(&["send", "-q"]);
        self.keys.of_sender(&mut send);
        timed(send.arg(&file).arg(self.at.to_string()))
    }
}

impl Drop for ReceiverHost {
    fn drop(&mut self) {
        let _ = self.receiver.kill();
        let _ = self.receiver.wait();
    }
}

fn timed(command: &mut Command) -> f64 {
    let began = now();
    let mut sender = command.spawn().unwrap();
    let status = ended(&mut sender, Duration::from_secs(60));
    let took = began.elapsed().as_secs_f64();
    if status.is_none() {
        let _ = sender.kill();
    }
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    took
}

/// Calls `floods` repeatedly while `work` runs, at a total rate of `a_second`. Returns the result of `work`, and the calls
/// per second. A flood of less than [`MIN_FLOOD_SHARE`] shows nothing.
fn run_during_flood<T, F: FnMut(u64) + Send>(
    a_second: u64,
    floods: Vec<F>,
    work: impl FnOnce() -> T,
) -> (T, f64) {
    let (stop, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = now();
    let (result, rate) = thread::scope(|scope| {
        let _stops = StopOnDrop(&stop);
        for mut flood in floods {
            let (stop, next) = (&stop, &next);
            let pour = move || {
                while !stop.load(Relaxed) {
                    let number = next.fetch_add(1, Relaxed);
                    flood(number);
                    if number.is_multiple_of(8) {
                        let due = Duration::from_nanos(number * 1_000_000_000 / a_second);
                        thread::sleep(due.saturating_sub(began.elapsed()));
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, pour).unwrap();
        }
        let result = work();
        (result, next.load(Relaxed) as f64 / began.elapsed().as_secs_f64())
    });
    assert!(rate >= MIN_FLOOD_SHARE * a_second as f64, "a flood of {rate:.0} a second, not of {a_second}");
    (result, rate)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Third messages of 105 bytes of garbage, for a handshake of the attacker's own, from its address.
pub(crate) fn garbage() {
    Namespace::new().unwrap().run(garbage_thirds).unwrap();
}

fn garbage_to(to: SocketAddr) -> impl FnMut(u64) + Send {
    let mut attacker = Attacker::new(to, 0);
    let mut third = attacker.third_message();
    move |number: u64| {
        // Before the handshake expires.
        if number > 0 && number.is_multiple_of(2 * GARBAGE_PER_SECOND) {
            attacker = Attacker::new(to, number);
            third = attacker.third_message();
        }
        let mut garbage = third.clone();
        garbage.resize(105, 0);
        garbage[13..].fill(number as u8);
        attacker.send(&garbage);
    }
}

fn garbage_thirds() {
    let place = ReceiverHost::new(Ipv4Addr::LOCALHOST.into());
    let idle = |receiver: u32| {
        let (began, before) = (now(), processor(receiver));
        thread::sleep(Duration::from_secs(4));
        (processor(receiver) - before) / began.elapsed().as_secs_f64()
    };
    let flood = || vec![garbage_to(place.address())];
    let (share, rate) = run_during_flood(GARBAGE_PER_SECOND, flood(), || idle(place.receiver.id()));
    println!("{rate:.0} garbage third messages a second take {:.1} % of a processor", 100.0 * share);
    let runs: Vec<_> = (0..RUNS)
        .map(|run| {
            let alone = place.send(&format!("alone{run}"), BYTES);
            (
                alone,
                run_during_flood(GARBAGE_PER_SECOND, flood(), || place.send(&format!("flooded{run}"), BYTES)),
            )
        })
        .collect();
    let alone = median(runs.iter().map(|(alone, _)| *alone).collect());
    let took = median(runs.iter().map(|(_, (took, _))| *took).collect());
    let ratio = took / alone;
    println!("20 MB: {took:.2} s beside them, {alone:.2} s alone, {ratio:.2} times as long");
    assert!(share < MAX_CPU_SHARE, "{share:.3} of a processor");
    assert!(ratio <= MAX_SLOWDOWN, "{ratio:.2} times as long");
}

/// Sources of handshakes that are never finished.
type Source = (&'static str, fn(u64) -> IpAddr);

const V4: [Source; 3] = [
    ("one host", |_| Ipv4Addr::new(127, 0, 1, 1).into()),
    ("20 hosts of a /24", |number| Ipv4Addr::new(127, 0, 1, (1 + number % 20) as u8).into()),
    ("20 hosts of a /24 each", |number| Ipv4Addr::new(127, 0, (1 + number % 20) as u8, 1).into()),
];
const V6: [Source; 3] = [
    ("20 /64s of a /56", |number| of_v6(7, (number % 20) as u16)),
    ("all /64s of a /56", |number| of_v6(7, (number % 256) as u16)),
    ("all /64s of a /48", |number| of_v6(7, number as u16)),
];

fn of_v6(site: u16, network: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, 1).into()
}

/// Handshakes from addresses that receive, never finished.
pub(crate) fn half_open() {
    Namespace::new().unwrap().run(half_open_floods).unwrap();
}

fn half_open_floods() {
    let mut route = Command::new("ip");
    route.args(["-6", "route", "add", "local", "2001:db8::/32", "dev", "lo"]);
    assert!(route.status().unwrap().success());
    // The addresses of a local route belong to no interface, and can be bound anyway.
    fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1").unwrap();
    let mut worst: f64 = 0.0;
    for (at, sources) in [(Ipv4Addr::LOCALHOST.into(), V4), (Ipv6Addr::LOCALHOST.into(), V6)] {
        let place = ReceiverHost::new(at);
        let send = |of: usize| (0..3).map(|run| place.send(&format!("f{of}-{run}"), 1)).collect::<Vec<_>>();
        let alone = median(send(9));
        println!("a known peer gets one byte through in {alone:.2} s alone");
        for (of, (what, address)) in sources.into_iter().enumerate() {
            let at = place.address();
            let flood = move |number| with_cookie(at, address(number), number);
            let work = || {
                thread::sleep(Duration::from_secs(3));
                send(of)
            };
            let (took, rate) = run_during_flood(HALF_OPEN, vec![flood; BEGINNERS], work);
            let longest = took.iter().copied().fold(0.0, f64::max);
            println!("  with {rate:.0} handshakes a second of {what}: {longest:.2} s, the longest of three");
            worst = worst.max(longest);
        }
    }
    assert!(worst < MAX_TRANSFER_TIME.as_secs_f64(), "{worst:.2} s");
}

/// Conversations of peers with the shared key, each with a megabyte that is read, and as much as it may send beyond a hole.
pub(crate) fn memory() {
    Namespace::new().unwrap().run(hostile_conversations).unwrap();
}

fn hostile_conversations() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("to")).unwrap();
    let speaks = TransportProtocol::TpaWide;
    let mut recv = speaks.hopline(folder.path(), &["recv", "-q", "--bind", "127.0.0.1"]);
    let mut receiver = recv.arg("-o").arg(folder.path().join("to")).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    let (idle, _) = usage(receiver.id());
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let mut hostile: Vec<_> = (0..HOSTILE)
        .map(|number| Conversation::begin(to, Ipv4Addr::new(127, 0, 2, (1 + number % 4) as u8), number))
        .collect();
    let read: u64 = hostile.iter_mut().map(Conversation::send_valid).sum();
    hostile.iter_mut().for_each(Conversation::fill_beyond_hole);
    thread::sleep(Duration::from_millis(500));
    let (resident, threads) = usage(receiver.id());
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{HOSTILE} hostile conversations: {:.1} MB resident with {threads} threads, {:.1} MB idle; {:.0} MB were read before",
        mb(resident),
        mb(idle),
        mb(read)
    );
    let took = through(speaks, folder.path());
    println!("  and 1 MB of an honest sender takes {took:.2} s");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert_eq!(read, HOSTILE as u64 * Conversation::VALID_BYTES, "what came in order was read");
    assert!(resident <= MEMORY, "{resident} bytes");
}

fn through(speaks: TransportProtocol, folder: &Path) -> f64 {
    let file = folder.join("honest");
    fs::write(&file, vec![5; 1_000_000]).unwrap();
    let took = timed(speaks.hopline(folder, &["send", "-q"]).arg(&file).arg("127.0.0.1"));
    assert!(fs::read(folder.join("to/honest")).unwrap() == vec![5; 1_000_000]);
    took
}
