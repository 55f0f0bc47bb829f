//! Seeded schedules of kills, restarts, reloads, outages and losses, during transfers. `HOPLINE_PROXY_DRILL=17` runs
//! schedule 17 alone.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::{End, Pace, Transfer, in_a_thread};
use crate::proxy::world::{Daemon, Ground, MOBILE, SERVER, now, secret, shell, until};
use hopline_core::{Purpose, RandomStream};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Bytes of a transfer.
const BYTES: usize = 400_000;
/// Simultaneous worlds: they wait more than they work.
const WORLDS: u64 = 6;
/// Most memory beyond that of a daemon's first schedule, bytes.
const GROWTH: u64 = 16 << 20;
/// Address of the mobile host in the tunnel.
const TUNNELLED: &str = "10.82.0.2";
/// Address at which programs of the mobile host reach the server by the gateways.
const FORWARDED: (&str, u16) = ("127.0.0.1", 5006);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Kill,
    Restart,
    Reload,
    Outage(Duration),
}

#[derive(Debug)]
struct Schedule {
    /// Loss of packets to the mobile host, percent.
    loss_percent: u32,
    /// Events, each with the time since the one before.
    events: Vec<(Duration, Event)>,
}

impl Schedule {
    fn draw(number: u64) -> Self {
        let mut random = RandomStream::keyed(3, number, 0, Purpose::Emulation);
        let mut below = |most: u32| random.below(most);
        let events = (0..1 + below(3))
            .map(|_| {
                let event = match below(4) {
                    0 => Event::Kill,
                    1 => Event::Restart,
                    2 => Event::Reload,
                    _ => Event::Outage(Duration::from_millis(u64::from(50 + below(400)))),
                };
                (Duration::from_millis(u64::from(below(250))), event)
            })
            .collect();
        Self { loss_percent: below(4), events }
    }

    /// Returns a schedule that only kills the daemon, at a random moment.
    fn of_a_kill(number: u64) -> Self {
        let mut random = RandomStream::keyed(4, number, 0, Purpose::Emulation);
        let events = vec![(Duration::from_millis(u64::from(random.below(400))), Event::Kill)];
        Self { loss_percent: 0, events }
    }

    fn ends_daemons(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Kill | Event::Restart))
    }
}

/// Hosts with daemons that are ended and restarted.
struct TestNetwork {
    ground: Ground,
    before: String,
    near: Daemon,
    far: Daemon,
    /// Memory of the running daemon after its first schedule.
    warm: Option<u64>,
    /// `true` if the daemon of the last schedule has ended: the far end may not have noticed yet.
    is_other: bool,
    reloads: usize,
    /// Number of successful schedules.
    done: u32,
}

impl TestNetwork {
    fn new() -> Self {
        let ground = Ground::new();
        let before = ground.listing();
        let folder = ground.folder.path();
        secret(&folder.join("link.key"), &"5a".repeat(32));
        let far = folder.join("far.toml");
        let state = folder.join("far");
        let tunnel = tunnel(&ground, ["10.9.0.1", "10.9.0.254"], TUNNELLED);
        let (link, key) = (link(&ground, ["10.9.0.1", "10.9.0.254"], "host"), folder.join("link.key"));
        let gateway = format!(
            "[[proxy]]\nkind = \"gateway\"\nexit = \"10.9.0.254:7172\"\nidentity = \"mobile\"\nkey_file = \"{}\"\nforward = [\"{}:{} = {SERVER}:{}\"]\n",
            key.display(),
            FORWARDED.0,
            FORWARDED.1,
            FORWARDED.1,
        );
        fs::write(&far, format!("state_dir = \"{}\"\n{tunnel}{link}{gateway}", state.display())).unwrap();
        let mut far = Daemon::begin(&ground.mobile, &far, &state);
        far.wait_until("the far end runs", |status| status["proxies"][0]["state"] == "running");
        ground.write(&text(&ground, 0));
        let near = ground.start_file(&folder.join("proxy.toml"));
        Self { ground, before, near, far, warm: None, is_other: false, reloads: 0, done: 0 }
    }

    fn run(&mut self, schedule: &Schedule) {
        shell(&self.ground.mobile, "iptables -w -F INPUT");
        // A connection over the trunk of an ended daemon is reset: that would be a failure of the last schedule.
        if std::mem::take(&mut self.is_other) {
            self.crosses_by_tpa();
        }
        let ground = &self.ground;
        if schedule.loss_percent > 0 {
            let share = f64::from(schedule.loss_percent) / 100.0;
            shell(
                &ground.mobile,
                &format!("iptables -w -A INPUT -m statistic --mode random --probability {share} -j DROP"),
            );
        }
        let pace = Pace::Chunks(Duration::from_millis(15));
        let down = [&ground.server, &ground.mobile];
        let transfers = [
            ("snoop", Transfer::start([&ground.mobile, &ground.server], (SERVER, 5001), BYTES, pace)),
            ("m-tcp", Transfer::start(down, (MOBILE, 5003), BYTES, pace)),
            ("split", Transfer::start([&ground.mobile, &ground.server], (SERVER, 5002), BYTES, pace)),
            ("d-proxy", Transfer::start(down, (MOBILE, 5005), BYTES, pace)),
            (
                "gateway",
                Transfer::start_by(
                    [&ground.mobile, &ground.server],
                    FORWARDED,
                    (SERVER, FORWARDED.1),
                    BYTES,
                    pace,
                ),
            ),
            ("opaque", Transfer::start([&ground.router, &ground.mobile], (TUNNELLED, 5004), BYTES, pace)),
        ];
        for &(after, event) in &schedule.events {
            thread::sleep(after);
            self.apply(event);
        }
        for (what, transfer) in transfers {
            let (end, sent) = transfer.unwrap_or_else(|error| panic!("{what}: {error}")).ends();
            match (what, end) {
                (_, End::Whole) => {}
                ("split" | "gateway", End::Broken(_)) if schedule.ends_daemons() => {}
                _ => panic!("{what}: {end:?}, {sent:?}; the daemon: {}", self.near.log_text()),
            }
        }
        self.check_memory();
        self.done += 1;
    }

    fn apply(&mut self, event: Event) {
        let file = self.ground.folder.path().join("proxy.toml");
        match event {
            Event::Kill | Event::Restart => {
                if event == Event::Kill {
                    self.near.process.kill().unwrap();
                } else {
                    self.near.signal("TERM");
                }
                self.near.process.wait().unwrap();
                self.near = self.ground.start_file(&file);
                (self.warm, self.is_other) = (None, true);
            }
            Event::Reload => {
                self.reloads += 1;
                self.ground.write(&text(&self.ground, self.reloads));
                self.near.signal("HUP");
            }
            Event::Outage(length) => self.ground.outage(length),
        }
    }

    fn check_memory(&mut self) {
        let resident = self.near.resident();
        let warm = *self.warm.get_or_insert(resident);
        assert!(resident < warm + GROWTH, "{resident} bytes, {warm} at first");
    }

    /// Checks that connections use TPA. Schedules may have left the gateway without its exit all the time.
    fn crosses_by_tpa(&self) {
        let carried = || {
            let hosts = [&self.ground.mobile, &self.ground.server];
            let transfer = Transfer::start_by(hosts, FORWARDED, (SERVER, FORWARDED.1), 1000, Pace::AtOnce);
            transfer.is_ok_and(|transfer| transfer.ends().0 == End::Whole)
                && self.far.metric("gateway", "tpa_connections") > 0
        };
        assert!(until(carried), "nothing went by TPA: {}", self.far.status());
    }

    fn end(mut self) {
        if self.done > 0 {
            self.crosses_by_tpa();
        }
        assert!(self.near.ended_by("TERM").success());
        let Self { ground, before, far, done, .. } = self;
        // Another world may have run all schedules. Counters are written once a second.
        let went_by = || far.metric("d-proxy", "segments_in") > 0;
        assert!(done == 0 || until(went_by), "nothing went by d-proxy: {}", far.status());
        drop(far);
        let undone = ground.undo_tunnels(&ground.folder.path().join("proxy.toml"));
        assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
        ground.is_as_before(&before, "at the end");
    }
}

/// Returns the near configuration; its parameters differ each time.
fn text(ground: &Ground, reloads: usize) -> String {
    let law = ["cubic", "reno"][reloads % 2];
    let tunnel = tunnel(ground, ["10.9.0.254", "10.9.0.1"], "10.82.0.1");
    BOTH.replacen("ports = [5001]", &format!("ports = [5001]\nlocal_limit = {}", 4 + reloads % 8), 1)
        .replacen("ports = [5002]", &format!("ports = [5002]\nmobile_congestion = \"{law}\""), 1)
        + "[[proxy]]\nkind = \"mtcp\"\ninterface = \"mobile\"\nports = [5003]\nsubnets = [\"10.9.0.0/24\"]\n"
        + &tunnel
        // Last, because it handles only connections that the proxies before it leave.
        + &link(ground, ["10.9.0.254", "10.9.0.1"], "router")
        + &format!(
            "[[proxy]]\nkind = \"gateway-exit\"\npeers = [\"mobile = {}\"]\n",
            ground.folder.path().join("link.key").display()
        )
}

/// Returns the configuration of an end of D-Proxy.
fn link(ground: &Ground, [local, peer]: [&str; 2], stands: &str) -> String {
    let key = ground.folder.path().join("link.key");
    format!(
        "[[proxy]]\nkind = \"d-proxy\"\ninterface = \"mobile\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nport = 1023\nstands = \"{stands}\"\nkey_file = \"{}\"\n",
        key.display()
    )
}

fn tunnel(ground: &Ground, [local, peer]: [&str; 2], address: &str) -> String {
    let key = ground.folder.path().join("link.key");
    format!(
        "[[proxy]]\nkind = \"opaque\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nkey_file = \"{}\"\ntun_addresses = [\"{address}/30\"]\n",
        key.display()
    )
}

/// Runs schedules, several worlds at a time. A world that fails one is replaced.
fn all(count: u64, worlds: u64, draw: fn(u64) -> Schedule) {
    let only: Option<u64> = std::env::var("HOPLINE_PROXY_DRILL").ok().map(|number| number.parse().unwrap());
    let numbers: Vec<u64> = only.map_or_else(|| (0..count).collect(), |only| vec![only]);
    let (next, failed, began) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), now());
    let many = numbers.len();
    let workers: Vec<_> = (0..worlds.min(many as u64))
        .map(|_| {
            let (next, failed, numbers) = (Arc::clone(&next), Arc::clone(&failed), numbers.clone());
            in_a_thread(move || {
                let mut field = TestNetwork::new();
                while let Some(&number) = numbers.get(next.fetch_add(1, Relaxed) as usize) {
                    let schedule = draw(number);
                    if catch_unwind(AssertUnwindSafe(|| field.run(&schedule))).is_err() {
                        failed.fetch_add(1, Relaxed);
                        eprintln!("FAILED, again by HOPLINE_PROXY_DRILL={number} make drills: {schedule:?}");
                        field = TestNetwork::new();
                    }
                }
                field.end();
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    println!("{many} schedules in {:.0} s, {} failed", began.elapsed().as_secs_f64(), failed.load(Relaxed));
    assert_eq!(failed.load(Relaxed), 0);
}

pub(crate) fn some_schedules_lose_nothing() {
    all(4, 2, Schedule::draw);
}

pub(crate) fn two_hundred_schedules_lose_nothing() {
    all(200, WORLDS, Schedule::draw);
}

pub(crate) fn a_hundred_kills_lose_nothing() {
    all(100, WORLDS, Schedule::of_a_kill);
}
