use super::*;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use crate::{DropTail, EcnCapability, InterfaceQueue, Service};
use core::num::NonZeroU16;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A queue under CoDel and what it said.
struct TestQueue {
    queue: InterfaceQueue<Packet>,
    owner: Owner,
}

impl TestQueue {
    fn new(config: CoDelConfig) -> Self {
        let packets = DropTail::new(NonZeroU16::new(2000).unwrap(), Service::Fifo);
        Self { queue: InterfaceQueue::codel(packets, CoDel::new(config)), owner: Owner::default() }
    }

    fn fill(&mut self, at: Instant, packets: impl IntoIterator<Item = Packet>) {
        for packet in packets {
            let _ = self.queue.enqueue(at, packet, &mut self.owner);
        }
    }

    fn serve(&mut self, at: Instant) -> Option<Packet> {
        self.queue.dequeue(at, &mut self.owner)
    }

    /// Serves a packet every millisecond; returns the times of drops and marks.
    fn signal_times(&mut self, from: u64, to: u64) -> Vec<u64> {
        let told = |owner: &Owner| owner.dropped.len() + owner.marked.len();
        let at = |now: &u64| {
            let before = told(&self.owner);
            self.serve(ms(*now));
            told(&self.owner) > before
        };
        (from..to).filter(at).collect()
    }
}

#[test]
fn drops_begin_after_an_interval_and_follow_the_control_law() {
    let mut bench = TestQueue::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..1000).map(data));
    // Above the target from 5 ms on, so first at 105; then after 100/√1, 100/√2, 100/√3, …, in whole milliseconds.
    assert_eq!(bench.signal_times(0, 420), [105, 205, 276, 334, 384]);
}

#[test]
fn a_backlog_of_one_packet_is_never_dropped() {
    let mut bench = TestQueue::new(CoDelConfig::RFC8289);
    for now in 0..1000 {
        bench.fill(ms(now), [data(now as u32)]);
        assert_eq!(bench.serve(ms(now + 4)).map(|p| p.number), Some(now as u32), "below the target");
    }
    let mut bench = TestQueue::new(CoDelConfig::RFC8289);
    for now in 0..20 {
        bench.fill(ms(100 * now), [data(0), data(1)]);
        bench.serve(ms(100 * now + 50));
        bench.serve(ms(100 * now + 90));
    }
    assert_eq!(bench.owner.dropped, [], "a packet behind it is no backlog");
}

#[test]
fn dropping_ends_below_the_target_and_resumes_near_the_last_rate() {
    let mut bench = TestQueue::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..500).map(data));
    assert_eq!(bench.signal_times(0, 420).len(), 5);
    while bench.serve(ms(420)).is_some() {}
    let served_all = bench.owner.dropped.len();
    bench.fill(ms(500), (0..1000).map(data));
    // Four drops more than at the start the last time: 100/√4 = 50 ms, then 100/√5, …
    let soon = bench.signal_times(500, 760);
    assert_eq!(soon[0], 605);
    assert!((45..=51).contains(&(soon[1] - soon[0])), "{soon:?} after {served_all}");
    let mut later = TestQueue::new(CoDelConfig::RFC8289);
    later.fill(ms(0), (0..500).map(data));
    later.signal_times(0, 420);
    while later.serve(ms(420)).is_some() {}
    later.fill(ms(5000), (0..1000).map(data));
    let anew = later.signal_times(5000, 5300);
    assert_eq!(anew, [5105, 5205, 5276], "sixteen intervals later it has forgotten");
}

#[test]
fn ecn_capable_packets_are_marked_and_served() {
    let mut bench = TestQueue::new(CoDelConfig { action: SignalAction::Mark, ..CoDelConfig::RFC8289 });
    let capable = |n| Packet { capability: EcnCapability::Capable, ..data(n) };
    bench.fill(ms(0), (0..1000).map(capable));
    assert_eq!(bench.signal_times(0, 420), [105, 205, 276, 334, 384]);
    assert_eq!((bench.owner.dropped.len(), bench.owner.marked.len()), (0, 5));
    let mut bench = TestQueue::new(CoDelConfig { action: SignalAction::Mark, ..CoDelConfig::RFC8289 });
    bench.fill(ms(0), (0..1000).map(data));
    bench.signal_times(0, 420);
    assert_eq!((bench.owner.dropped.len(), bench.owner.marked.len()), (5, 0), "the others are dropped");
}

#[test]
fn routing_messages_are_never_dropped() {
    let mut bench = TestQueue::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..1000).map(|n| if n % 3 == 0 { data(n) } else { routing(n) }));
    bench.signal_times(0, 600);
    assert!(!bench.owner.dropped.is_empty());
    assert!(bench.owner.dropped.iter().all(|n| n % 3 == 0), "{:?}", bench.owner.dropped);
}

#[test]
fn the_last_packet_is_served() {
    let mut bench = TestQueue::new(CoDelConfig { packet_bytes: 0, ..CoDelConfig::RFC8289 });
    bench.fill(ms(0), (0..3).map(data));
    for now in [50, 160, 400] {
        bench.serve(ms(now));
    }
    assert!(bench.queue.is_empty());
    assert_eq!(bench.serve(ms(500)), None);
}

#[test]
fn invalid_configurations_are_refused() {
    let valid = CoDelConfig::RFC8289;
    assert_eq!(valid.validate(), Ok(()));
    let zero = Duration::ZERO;
    assert_eq!(CoDelConfig { target: zero, ..valid }.validate(), Err("a target above 0"));
    assert_eq!(CoDelConfig { interval: zero, ..valid }.validate(), Err("an interval above 0"));
    let long = CoDelConfig { target: Duration::from_secs(1), ..valid };
    assert_eq!(long.validate(), Err("a target no longer than the interval"));
}
