//! A seat as in a daemon: replacement of the middlebox, loss of the interface, and packets without a reader.

use crate::nfqueue::path::{KernelPath, interface};
use crate::nfqueue::router::{self, QUEUE, divert};
use crate::nfqueue::world::{Bottleneck, World, transfer};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{self, MiddleboxMetrics, MiddleboxService, Replacer, WhenFull};
use hopline_proxy::driver::Driver;
use hopline_proxy::mtcp::{self, Mtcp};
use hopline_proxy::snoop::{self, Snoop};
use hopline_proxy::{PacketIo, Pep, Side as Of};
use hopline_testkit::middlebox::{IPV4, MiddleboxPath, data};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::last_hop::LINK;
use hopline_testkit::{Emulation, Side};
use std::thread::{self};

/// A seat on a thread of its own.
struct RunningMiddlebox<M> {
    running: RunningService,
    replacer: Replacer<M>,
}

impl<M> RunningMiddlebox<M>
where
    M: Pep<Bytes> + Send + 'static,
    M::Stats: MiddleboxMetrics,
{
    fn new(router: &Namespace, interface: &str, machine: M) -> Self {
        let config = nfqueue::Config::new(QUEUE, interface);
        let seat = router.run(|| MiddleboxService::open(&config, machine)).unwrap().unwrap();
        let replacer = seat.replacer();
        // In the router's namespace, which has the queues that it reads.
        let running = router.run(|| RunningService::new(seat)).unwrap();
        Self { running, replacer }
    }

    fn end(mut self) -> RunningService {
        self.running.end();
        self.running
    }
}

pub(crate) fn a_middlebox_is_replaced_and_connections_continue() {
    let world = World::new(0.02, 5, Bottleneck::InLink(100));
    let router = world.wireless.host(Side::A);
    divert(router, LINK);
    let seated = RunningMiddlebox::new(router, LINK, Snoop::new(snoop::Config::modern()));
    let (third, mut replaced) = (400_000, false);
    transfer(&world, 3 * third, |arrived| {
        if arrived > third && !replaced {
            seated.replacer.replace(Snoop::new(snoop::Config::published())).unwrap();
            replaced = true;
        }
    });
    let ended = seated.end();
    // Of 829 segments, only the first middlebox has seen the first third.
    let seen = ["kept_packets", "not_kept_packets"].map(|name| ended.metric(name)).iter().sum::<u64>();
    assert!(seen >= 829, "{}", ended.show());
    assert!(ended.metric("packets") > 829);
    assert_eq!(ended.metric("found_full_packets"), 0);
}

pub(crate) fn metric_names_are_unique() {
    let world = World::new(0.0, 5, Bottleneck::InLink(100));
    let router = world.wireless.host(Side::A);
    divert(router, LINK);
    let figures = RunningMiddlebox::new(router, LINK, Mtcp::new(mtcp::Config::default())).end().metrics();
    let mut names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

pub(crate) fn a_middlebox_ends_with_its_interface() {
    let router = Namespace::new().unwrap();
    let tun = router.run(|| interface("mobile", IPV4[1])).unwrap();
    let mut seated = RunningMiddlebox::new(&router, "mobile", Snoop::new(snoop::Config::modern()));
    drop(tun);
    let error = seated.running.wait().unwrap_err();
    assert_eq!(error.to_string(), "the interface mobile behind NFQUEUE 7 has gone");
}

/// The queue is removed with the process, and packets waiting in it are dropped.
pub(crate) fn a_connection_survives_the_death_of_the_reader() {
    let world = World::new(0.0, 7, Bottleneck::InLink(100));
    let router = world.wireless.host(Side::A);
    divert(router, LINK);
    let mut queue = router::queue(router, LINK).unwrap();
    let reader = move || {
        let mut driver = Driver::new(Snoop::new(snoop::Config::modern()));
        for ms in 0.. {
            if driver.counts().to_mobile >= 200 {
                break;
            }
            // Any clock will do, as long as no packet is lost.
            let _ = driver.pump(Instant::from_millis(ms), &mut queue).unwrap();
            thread::sleep(std::time::Duration::from_millis(1));
        }
        // It reads packets, and dies before any verdict.
        while queue.receive().unwrap().is_none() {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(queue);
        driver
    };
    let thread = thread::Builder::new().name("reader".into()).spawn(reader).unwrap();
    transfer(&world, 1_500_000, |_| {});
    let driver = thread.join().unwrap();
    assert!(driver.counts().to_mobile < 900, "it saw some of the 1,036 segments: {:?}", driver.counts());
}

/// Sends twenty packets to a queue for four.
fn overflow(when_full: WhenFull) -> [usize; 2] {
    let config = nfqueue::Config { length: 4, when_full, ..nfqueue::Config::new(QUEUE, "mobile") };
    let mut place = KernelPath::with(&config);
    let burst: Vec<Vec<u8>> = (0..20).map(data).collect();
    let unread = place.arrive_unread(&burst);
    let all = place.handle_packets(Instant::from_millis(1), Of::Fixed, &[], 4).mobile.len();
    [unread, all]
}

pub(crate) fn packets_of_a_full_queue_pass_or_are_dropped_as_configured() {
    assert_eq!(overflow(WhenFull::Pass), [16, 4]);
    assert_eq!(overflow(WhenFull::Drop), [0, 4]);
}

/// M-TCP closes the window of a sender when its mobile host falls silent, and reopens it when the host returns.
pub(crate) fn a_sender_survives_an_outage_behind_mtcp() {
    let blackouts = vec![(Instant::from_millis(1500), Instant::from_millis(4500))];
    let world = World::with(Emulation::default().with_blackouts(blackouts), 9, Bottleneck::InLink(100));
    let router = world.wireless.host(Side::A);
    divert(router, LINK);
    let seated = RunningMiddlebox::new(router, LINK, Mtcp::new(mtcp::Config::default()));
    transfer(&world, 5_000_000, |_| {});
    let ended = seated.end();
    assert!(ended.metric("closed_windows") >= 1, "{}", ended.show());
    assert!(ended.metric("reopened_windows") >= 1, "{}", ended.show());
}
