//! Whatever the network and the hosts do, the received data equal the sent data, and no end waits for ever.

use super::net::{A, App, B, Net, transport};
use super::{keys, shared};
use crate::{
    CloseReason, Credentials, Event, HostConfig, HostEvent, InitiatorConfig, ResetKey, ResponderConfig,
    TransportConfig,
};
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_link::{Emulation, NatPortPolicy};

/// Longest silence of a peer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// After the last accident everything is over within this: a handshake's tries, or silence, and TIME-WAIT.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Rebind { node: usize, old: NatPortPolicy },
    Outage(Duration),
    Restart { node: usize },
}

#[derive(Debug)]
struct Schedule {
    seed: u64,
    credentials: [Credentials; 2],
    emulation: Emulation,
    bytes: [u64; 2],
    /// Accidents, by time from the beginning of the connection.
    faults: Vec<(Duration, Fault)>,
    resets: bool,
}

impl Schedule {
    fn draw(seed: u64) -> Self {
        let mut random = RandomStream::keyed(seed, 0, 7, Purpose::Emulation);
        let mut share = |most: f64| if random.bernoulli(0.6) { random.uniform(0.0, most) } else { 0.0 };
        let emulation = Emulation::default()
            .with_loss(share(0.3))
            .with_reorder(share(0.3))
            .with_duplicate(share(0.2))
            .with_corrupt(share(0.2))
            .with_mark(0.0);
        let ms =
            |random: &mut RandomStream, most: u32| Duration::from_millis(u64::from(1 + random.below(most)));
        let emulation = emulation
            .with_latency(ms(&mut random, 60))
            .with_extra_delay(ms(&mut random, 80))
            .with_rate(random.bernoulli(0.8).then(|| 200_000 + 100_000 * u64::from(random.below(40))))
            .with_queue(Some(20));
        let bytes = [0, 1].map(|_| u64::from(random.below(250_000)) * u64::from(random.below(8) > 0));
        let credentials = if random.bernoulli(0.5) { shared() } else { keys() };
        // If both forget where they were, they never find each other again.
        let forgetful = random.below(2) as usize;
        let mut accidents: Vec<(Duration, Fault)> = (0..random.below(4))
            .map(|_| {
                let node = random.below(2) as usize;
                let old = if node == forgetful && random.bernoulli(0.7) {
                    NatPortPolicy::Forgotten
                } else {
                    NatPortPolicy::Kept
                };
                let accident = match random.below(10) {
                    0..5 => Fault::Rebind { node, old },
                    5..9 => Fault::Outage(ms(&mut random, 5000)),
                    _ => Fault::Restart { node },
                };
                (ms(&mut random, 2500), accident)
            })
            .collect();
        accidents.sort_by_key(|(at, _)| *at);
        Self { seed, credentials, emulation, bytes, faults: accidents, resets: random.bernoulli(0.5) }
    }

    fn config(&self) -> HostConfig {
        HostConfig {
            initiator: InitiatorConfig::default().with_max_tries(30),
            responder: ResponderConfig::default().with_handshake_timeout(Duration::from_secs(60)),
            confirmation_timeout: Duration::from_secs(60),
            reset_key: self.resets.then(|| ResetKey::new([3; 32])),
            ..HostConfig::default()
        }
    }

    fn transport() -> TransportConfig {
        transport().with_keep_alive(Some(KEEP_ALIVE)).with_silence_limit(Some(IDLE_TIMEOUT))
    }

    fn restarts(&self) -> bool {
        self.faults.iter().any(|(_, accident)| matches!(accident, Fault::Restart { .. }))
    }

    fn run(&self) -> Run<'_> {
        let mut net = Net::new(2, &self.config(), &self.emulation, self.seed);
        net.nodes[B].host.listen(self.credentials[B].clone(), Self::transport(), 16).unwrap();
        let key = net.connect(&self.credentials, Self::transport());
        let mut run =
            Run { schedule: self, apps: vec![App::new(A, key, self.bytes[A])], net, seen_events: 0 };
        let start = run.net.now;
        for (at, accident) in &self.faults {
            // Where a responder is must be known before it can move away.
            if matches!(accident, Fault::Rebind { node: B, .. }) {
                let accepted = |run: &Run| run.net.accepted(B).is_some();
                run.until(run.net.now + LIMIT, accepted);
            }
            run.until((start + *at).max(run.net.now), |_| false);
            run.apply(*accident);
        }
        // Datagrams in flight may still open a connection with an initiator that is gone.
        run.until(run.net.now + Duration::from_secs(1), |_| false);
        run.until(run.net.now + LIMIT, Run::is_over);
        run
    }
}

struct Run<'s> {
    schedule: &'s Schedule,
    net: Net,
    apps: Vec<App>,
    /// Events that have been reported to applications.
    seen_events: usize,
}

impl Run<'_> {
    fn until(&mut self, limit: Instant, done: impl Fn(&Self) -> bool) {
        self.step();
        while !done(self) && self.net.step(limit) {
            self.step();
        }
    }

    fn step(&mut self) {
        while let Some((node, event)) = self.net.events.get(self.seen_events) {
            if let HostEvent::Accepted(key) = event {
                self.apps.push(App::new(*node, *key, self.schedule.bytes[*node]));
            }
            self.seen_events += 1;
        }
        self.apps.iter_mut().for_each(|app| app.step(&mut self.net));
        self.net.settle();
    }

    fn apply(&mut self, accident: Fault) {
        self.step();
        match accident {
            Fault::Rebind { node, old } => self.net.rebind(node, old),
            Fault::Outage(time) => {
                let blackouts = vec![(self.net.now, self.net.now + time)];
                let emulation = self.schedule.emulation.clone().with_blackouts(blackouts);
                self.net.change_link(A, emulation.clone());
                self.net.change_link(B, emulation);
            }
            Fault::Restart { node } => {
                self.net.restart(node);
                self.apps.retain(|app| app.node != node);
                self.net.events.retain(|(of, _)| *of != node);
                self.seen_events = self.net.events.len();
                if node == B {
                    let credentials = self.schedule.credentials[B].clone();
                    self.net.nodes[B].host.listen(credentials, Schedule::transport(), 16).unwrap();
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.apps.iter().all(|app| self.net.end_of(app.node, app.key).is_some())
    }

    /// Counts, in `tally`, what happened in this run.
    fn tally(&self, tally: &mut Tally) {
        let moved: u64 = self.net.nodes.iter().map(|node| node.host.stats().moved).sum();
        let ends = |reason| {
            let is = |event: &HostEvent| matches!(event, HostEvent::Connection(_, Event::Closed(why)) if *why == reason);
            self.net.events.iter().any(|(_, event)| is(event))
        };
        tally.moved += u64::from(moved > 0);
        tally.reset += u64::from(ends(CloseReason::Reset));
        tally.timed_out += u64::from(ends(CloseReason::TimedOut));
    }

    fn check(&mut self) {
        let said = format!("{:?}\n{:?}\n{:?}", self.schedule, self.apps, self.net.events);
        assert!(self.is_over(), "somebody waits still at {}: {said}", self.net.now);
        if !self.schedule.restarts() {
            assert_eq!(self.apps.len(), 2, "{said}");
            for app in &self.apps {
                let finished = HostEvent::Connection(app.key, Event::Closed(CloseReason::Finished));
                assert_eq!(self.net.end_of(app.node, app.key), Some(finished), "{said}");
                assert_eq!(app.got.received(), self.schedule.bytes[1 - app.node], "{said}");
            }
        }
        for app in &self.apps {
            self.net.nodes[app.node].host.remove(app.key);
        }
        self.net.run_for(Duration::from_secs(120));
        for node in [A, B] {
            let stats = self.net.nodes[node].host.stats();
            assert_eq!((stats.connections, stats.half_open, stats.backlog), (0, 0, 0), "left over: {said}");
        }
        assert_eq!(self.net.next_time(), None, "something goes on: {said}");
    }
}

/// Numbers of schedules in which the tested events happened.
#[derive(Debug, Default)]
struct Tally {
    moved: u64,
    reset: u64,
    timed_out: u64,
}

fn run_all(seeds: core::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let schedule = Schedule::draw(seed);
        let mut run = schedule.run();
        run.check();
        run.tally(&mut tally);
    }
    println!("{tally:?}");
    tally
}

/// Checks that the schedules are hard enough: the tested events must happen in them.
fn assert_hard(tally: &Tally) {
    assert!(tally.moved > 100 && tally.reset > 10 && tally.timed_out > 10, "{tally:?}");
}

#[test]
fn a_thousand_schedules_of_faults_corrupt_nothing_and_end_1() {
    assert_hard(&run_all(0..500));
}

#[test]
fn a_thousand_schedules_of_faults_corrupt_nothing_and_end_2() {
    assert_hard(&run_all(500..1000));
}

/// Runs as many schedules as `HOPLINE_SCHEDULES` says, or 20,000.
#[test]
#[ignore = "20,000 schedules take minutes; 1,000 of them are tests of their own"]
fn many_schedules_of_faults_corrupt_nothing_and_end() {
    let count = std::env::var("HOPLINE_SCHEDULES").ok().and_then(|count| count.parse().ok());
    run_all(1000..1000 + count.unwrap_or(20_000));
}
