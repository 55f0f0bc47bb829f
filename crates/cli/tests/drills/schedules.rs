//! Seeded schedules of faults.

use crate::drills::world::{
    BOTH, POLL_INTERVAL, TransportProtocol, World, enlarge, mount, now, signal, unmount,
};
use hopline_core::{Duration as Span, Instant as Moment, Purpose, RandomStream};
use hopline_link::Emulation;
use hopline_tools::link::Setup;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Number of schedules, each with both transports; `HOPLINE_DRILL_SCHEDULE=17` runs that one alone.
const SCHEDULES: u64 = 200;
/// Simultaneous schedules: they wait more than they work.
const AT_ONCE: usize = 16;
/// Silence after which a new connection is made.
const SILENCE: Duration = Duration::from_secs(4);
/// Longest duration of a transfer after the last event: twice the silence limit, the timers' backoff, and the transfer
/// itself at the worst rate and losses.
const BOUND: Duration = Duration::from_secs(60);
/// Time after the last event at which a full disk is enlarged.
const FULL: Span = Span::from_secs(1);
/// Longest time until a user restarts an ended program, ms.
const REACTION_MS: u32 = 800;

/// Event of a schedule.
#[derive(Clone, Copy, Debug)]
enum Event {
    KillSender,
    InterruptSender,
    KillReceiver,
    StopReceiver,
    /// The NAT of the sender restarts. The receiver keeps its port, so that it can be reached.
    RebindSender,
    Outage(Span),
}

#[derive(Debug)]
struct Schedule {
    number: u64,
    bytes: usize,
    rate: u64,
    latency: Span,
    loss: f64,
    /// `true` if the disk is full at first, until the sender has been told.
    small_disk: bool,
    events: Vec<(Moment, Event)>,
}

impl Schedule {
    fn draw(number: u64) -> Self {
        let mut random = RandomStream::keyed(1, number, 0, Purpose::Emulation);
        let mut between = |least: u32, most: u32| least + random.below(most - least);
        let bytes = between(300_000, 1_500_000) as usize;
        let events = (0..between(1, 5))
            .map(|_| {
                let at = Moment::from_millis(between(50, 4000).into());
                let event = match between(0, 6) {
                    0 => Event::KillSender,
                    1 => Event::InterruptSender,
                    2 => Event::KillReceiver,
                    3 => Event::StopReceiver,
                    4 => Event::RebindSender,
                    _ => Event::Outage(Span::from_millis(between(500, 10_000).into())),
                };
                (at, event)
            })
            .collect();
        let mut schedule = Self {
            number,
            bytes,
            rate: u64::from(between(2, 20)) * 1_000_000,
            latency: Span::from_millis(between(1, 15).into()),
            loss: f64::from(between(0, 50)) / 1000.0,
            small_disk: between(0, 8) == 0,
            events,
        };
        schedule.events.sort_by_key(|&(at, _)| at);
        schedule
    }

    fn setup(&self) -> Setup {
        let outages = self.events.iter().filter_map(|&(at, event)| match event {
            Event::Outage(length) => Some((at, at + length)),
            _ => None,
        });
        let way = Emulation::delay(self.latency)
            .with_rate(Some(self.rate))
            .with_queue(Some(50))
            .with_loss(self.loss)
            .with_blackouts(outages.collect());
        Setup::new(way.clone(), way, self.number)
    }

    fn last_event(&self) -> Moment {
        let end = |&(at, event): &(Moment, Event)| match event {
            Event::Outage(length) => at + length,
            _ => at,
        };
        self.events.iter().map(end).max().unwrap_or(Moment::ZERO)
    }
}

pub(crate) fn drill() {
    let only: Option<u64> =
        std::env::var("HOPLINE_DRILL_SCHEDULE").ok().map(|number| number.parse().unwrap());
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    let slowest = AtomicU64::new(0);
    let began = now();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let work = || {
                loop {
                    let turn = next.fetch_add(1, Relaxed);
                    let (number, speaks) = (turn / 2, BOTH[(turn % 2) as usize]);
                    if number >= SCHEDULES {
                        return;
                    }
                    if only.is_some_and(|only| only != number) {
                        continue;
                    }
                    let schedule = Schedule::draw(number);
                    match catch_unwind(AssertUnwindSafe(|| run(speaks, &schedule))) {
                        Ok(after) => {
                            slowest.fetch_max(after.as_millis() as u64, Relaxed);
                        }
                        Err(_) => {
                            failed.fetch_add(1, Relaxed);
                            eprintln!(
                                "FAILED, again by HOPLINE_DRILL_SCHEDULE={number} make drills: {speaks:?}, {schedule:?}"
                            );
                        }
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work).unwrap();
        }
    });
    println!(
        "{SCHEDULES} schedules with both transports in {:.0} s, the slowest done {:.1} s after the last event, {} failed",
        began.elapsed().as_secs_f64(),
        slowest.load(Relaxed) as f64 / 1000.0,
        failed.load(Relaxed)
    );
    assert_eq!(failed.load(Relaxed), 0);
}

/// Runs a schedule. Returns the time from its last event to the end of the transfer.
fn run(speaks: TransportProtocol, schedule: &Schedule) -> Duration {
    let mut world = World::new(speaks, schedule.setup(), schedule.bytes, SILENCE);
    let place = world.place();
    let small = schedule.small_disk && mount(&place, schedule.bytes / 2);
    let taken_back = run_schedule(speaks, schedule, &mut world, small);
    if small {
        unmount_later(&place, &mut world);
    }
    taken_back
}

fn unmount_later(place: &std::path::Path, world: &mut World) {
    world.receiver = world.receiver.take().and_then(|mut child| {
        let _ = child.kill();
        let _ = child.wait();
        None
    });
    unmount(place);
}

fn run_schedule(
    speaks: TransportProtocol,
    schedule: &Schedule,
    world: &mut World,
    mut small: bool,
) -> Duration {
    let what = format!("schedule {} over {speaks:?}", schedule.number);
    let mut random = RandomStream::keyed(2, schedule.number, 0, Purpose::Emulation);
    let mut reaction = |now: Moment| now + Span::from_millis(random.below(REACTION_MS).into());
    let mut events = schedule.events.iter().copied().peekable();
    let (mut start_receiver, mut start_sender) = (None, None);
    let place = world.place();
    world.start_receiver();
    world.start_sender();
    let last = schedule.last_event();
    loop {
        let now = world.link.now();
        assert!(now < last + Span::from_millis(BOUND.as_millis() as u64), "{what}: it does not end");
        while let Some((_, event)) = events.next_if(|&(at, _)| at <= now) {
            match event {
                Event::KillSender => kill(&mut world.sender, "KILL"),
                Event::InterruptSender => kill(&mut world.sender, "INT"),
                Event::KillReceiver => kill(&mut world.receiver, "KILL"),
                Event::StopReceiver => kill(&mut world.receiver, "TERM"),
                Event::RebindSender => world.rebind_sender(),
                Event::Outage(_) => {}
            }
        }
        if world.receiver.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
            world.receiver = None;
            if *start_receiver.get_or_insert_with(|| reaction(now)) <= now {
                world.start_receiver();
                start_receiver = None;
            }
        }
        if small && now >= last + FULL {
            // The sender, which waits for this, continues by itself.
            enlarge(&place, 4 * schedule.bytes);
            small = false;
        }
        if let Some((status, said)) = world.sender_ended() {
            match status.code() {
                Some(0) if events.peek().is_none() && start_receiver.is_none() => break,
                // The remainder is left to another transfer: running the same again finds everything there.
                Some(0 | 130) | None => {}
                code => panic!("{what}: the sender ended with {code:?}: {said}"),
            }
        }
        if world.sender.is_none() && *start_sender.get_or_insert_with(|| reaction(now)) <= now {
            world.start_sender();
            start_sender = None;
        }
        thread::sleep(POLL_INTERVAL);
    }
    let after = world.link.now().as_nanos().saturating_sub(last.as_nanos());
    world.check(&what);
    world.check_receiver(&what);
    Duration::from_nanos(after)
}

fn kill(child: &mut Option<std::process::Child>, name: &str) {
    if let Some(child) = child
        && child.try_wait().unwrap().is_none()
    {
        signal(child, name);
        if name == "KILL" {
            // Without this, a zombie might count as alive.
            let _ = child.wait();
        }
    }
}
