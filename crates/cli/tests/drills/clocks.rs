//! Pairs of daemons. The clock of one is set while it runs; then it is restarted with that clock.

use crate::drills::world::now;
use crate::proxy::transfer::{Pace, Transfer};
use crate::proxy::world::{Daemon, Ground, MOBILE, ROUTER, secret};
use serde_json::Value as Json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

const DAY: i64 = 24 * 3600;
/// Settings of clocks, seconds from the true time. The last is a host without a battery-backed clock after switching on:
/// 1970.
const SETTINGS: [(&str, i64); 7] = [
    ("a second ahead", 1),
    ("a second back", -1),
    ("a day ahead", DAY),
    ("a day back", -DAY),
    ("ten years ahead", 3652 * DAY),
    ("ten years back", -3652 * DAY),
    ("1970", i64::MIN),
];
/// Seconds since the beginning of 1970.
const JUST_SWITCHED_ON: i64 = 5;
/// Time after which a daemon considers a silent peer absent.
const ABSENT_AFTER: Duration = Duration::from_secs(3);
/// Library that replaces the wall clock of a program by preloading.
const PRELOADED: &str = include_str!("clock.c");
/// Time limit within which all proxies must carry bytes again.
const GOES_ON_WITHIN: Duration = Duration::from_secs(5);
const BYTES: usize = 50_000;

const TUNNEL: [&str; 2] = ["10.82.0.1", "10.82.0.2"];
/// Address at which the gateway accepts connections for port 80 of the mobile host.
const ENTRY: (&str, u16) = ("127.0.0.1", 8080);

pub(crate) fn drill() {
    println!("D-Proxy, a tunnel and gateways over TPA-wide, with keys: time until all carry 50 kB again");
    let mut pair = Pair::new();
    for end in [End::Near, End::Far] {
        for (name, seconds) in SETTINGS {
            pair.set(end, seconds);
            thread::sleep(ABSENT_AFTER);
            let running = pair.time_to_resume(&format!("{end:?}, {name}"));
            pair.restart(end);
            let restarted = pair.time_to_resume(&format!("{end:?}, {name}, started again"));
            let [running, restarted] = [running, restarted].map(|took| took.as_secs_f64());
            println!("  {end:?}, {name}: {running:.2} s running, {restarted:.2} s after kill -9 and a start");
            pair.set(end, 0);
        }
        assert!(pair.daemons[end as usize].log_text().contains("1970-01-01T00:00:"), "its clock was not set");
    }
}

#[expect(clippy::disallowed_methods, reason = "it is this clock that is set")]
fn wall_clock() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// Router.
    Near,
    /// Mobile host.
    Far,
}

/// Two daemons, each with its own clock.
struct Pair {
    ground: Ground,
    daemons: [Daemon; 2],
}

impl Pair {
    fn new() -> Self {
        let ground = Ground::new();
        secret(&ground.folder.path().join("key"), &"07".repeat(32));
        compile(&ground);
        for end in [End::Near, End::Far] {
            set(&clock(&ground, end), 0);
            fs::write(file(&ground, end), text(&ground, end)).unwrap();
        }
        let daemons = [End::Near, End::Far].map(|end| start(&ground, end));
        let mut pair = Self { ground, daemons };
        pair.await_peers();
        pair
    }

    fn set(&self, end: End, seconds: i64) {
        set(&clock(&self.ground, end), seconds.max(JUST_SWITCHED_ON - wall_clock()));
    }

    fn restart(&mut self, end: End) {
        let daemon = &mut self.daemons[end as usize];
        daemon.process.kill().unwrap();
        daemon.process.wait().unwrap();
        *daemon = start(&self.ground, end);
    }

    fn await_peers(&mut self) {
        for daemon in &mut self.daemons {
            daemon.wait_until("the other end is there", have_peers);
        }
    }

    /// Returns the time until bytes have crossed all three proxies.
    fn time_to_resume(&mut self, what: &str) -> Duration {
        let began = now();
        self.await_peers();
        let Ground { mobile, router, server, .. } = &self.ground;
        let transfers = [
            Transfer::start([server, mobile], (MOBILE, 5005), BYTES, Pace::AtOnce),
            Transfer::start([router, mobile], (TUNNEL[1], 5006), BYTES, Pace::AtOnce),
            Transfer::start_by([router, mobile], ENTRY, (MOBILE, 80), BYTES, Pace::AtOnce),
        ];
        for transfer in transfers {
            transfer.unwrap().arrives(what);
        }
        let took = began.elapsed();
        assert!(took <= GOES_ON_WITHIN, "{what}: {took:.1?}");
        took
    }
}

/// Returns whether each proxy of a daemon has its peer.
fn have_peers(status: &Json) -> bool {
    let is_there = |proxy: &Json| {
        let figures = proxy["figures"].as_array().unwrap();
        let known = ["peer_ready", "exit_present", "open_trunks"];
        figures.iter().any(|figure| known.iter().any(|name| figure["name"] == *name) && figure["value"] == 1)
    };
    status["proxies"].as_array().is_some_and(|proxies| proxies.len() == 3 && proxies.iter().all(is_there))
}

fn clock(ground: &Ground, end: End) -> PathBuf {
    ground.folder.path().join(format!("{end:?}.clock"))
}

fn file(ground: &Ground, end: End) -> PathBuf {
    ground.folder.path().join(format!("{end:?}.toml"))
}

fn start(ground: &Ground, end: End) -> Daemon {
    let host = match end {
        End::Near => &ground.router,
        End::Far => &ground.mobile,
    };
    let preload = format!("LD_PRELOAD={}", library(ground).display());
    let clock = format!("CLOCK={}", clock(ground, end).display());
    Daemon::begin_by(host, &["env", &preload, &clock], &file(ground, end), &state(ground, end))
}

fn state(ground: &Ground, end: End) -> PathBuf {
    ground.folder.path().join(format!("{end:?}"))
}

fn library(ground: &Ground) -> PathBuf {
    ground.folder.path().join("clock.so")
}

fn compile(ground: &Ground) {
    let source = ground.folder.path().join("clock.c");
    fs::write(&source, PRELOADED).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library(ground)).arg(source);
    assert!(cc.status().unwrap().success());
}

/// Writes to the mapped file; a new file in its place would not be mapped.
fn set(clock: &Path, seconds: i64) {
    let mut file = File::options().create(true).truncate(false).write(true).open(clock).unwrap();
    file.write_all(&seconds.to_ne_bytes()).unwrap();
}

fn text(ground: &Ground, end: End) -> String {
    let key = ground.folder.path().join("key");
    let key = format!("key_file = \"{}\"", key.display());
    let state = state(ground, end);
    let (local, peer, stands, tunnel) = match end {
        End::Near => (ROUTER[0], MOBILE, "router", TUNNEL[0]),
        End::Far => (MOBILE, ROUTER[0], "host", TUNNEL[1]),
    };
    let gateway = match end {
        End::Near => format!(
            "kind = \"gateway\"\nexit = \"{MOBILE}:7172\"\nidentity = \"router\"\n{key}\n\
             forward = [\"{}:{} = {MOBILE}:80\"]\nfallback = \"refuse\"\n",
            ENTRY.0, ENTRY.1
        ),
        End::Far => format!(
            "kind = \"gateway-exit\"\nlisten = \"{MOBILE}:7172\"\nallowed = [\"{MOBILE} 80\"]\npeers = [\"router = {}\"]\n",
            ground.folder.path().join("key").display()
        ),
    };
    let ends = format!("local = \"{local}\"\npeer = \"{peer}\"\n{key}\n");
    format!(
        "state_dir = \"{}\"\n\
         [[proxy]]\nkind = \"d-proxy\"\ninterface = \"mobile\"\nstands = \"{stands}\"\nport = 1023\n{ends}\
         [[proxy]]\nkind = \"opaque\"\nport = 1024\ntun_addresses = [\"{tunnel}/30\"]\n{ends}\
         [[proxy]]\n{gateway}transport = \"tpa-wide\"\n",
        state.display()
    )
}
