use super::*;
use crate::contents::testing::{Owner, Packet, data, routing};
use crate::{Capability, DropTail, InterfaceQueue, Service};
use core::num::NonZeroU16;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A queue under CoDel and what it said.
struct Bench {
    queue: InterfaceQueue<Packet>,
    owner: Owner,
}

impl Bench {
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
    fn notices(&mut self, from: u64, to: u64) -> Vec<u64> {
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
    let mut bench = Bench::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..1000).map(data));
    // Above the target from 5 ms on, so first at 105; then after 100/√1, 100/√2, 100/√3, …, in whole milliseconds.
    assert_eq!(bench.notices(0, 420), [105, 205, 276, 334, 384]);
}

#[test]
fn what_cannot_be_late_is_never_dropped() {
    let mut bench = Bench::new(CoDelConfig::RFC8289);
    for now in 0..1000 {
        bench.fill(ms(now), [data(now as u32)]);
        assert_eq!(bench.serve(ms(now + 4)).map(|p| p.number), Some(now as u32), "below the target");
    }
    let mut bench = Bench::new(CoDelConfig::RFC8289);
    for now in 0..20 {
        bench.fill(ms(100 * now), [data(0), data(1)]);
        bench.serve(ms(100 * now + 50));
        bench.serve(ms(100 * now + 90));
    }
    assert_eq!(bench.owner.dropped, [], "a packet behind it is no backlog");
}

#[test]
fn a_delay_that_falls_below_the_target_ends_it_and_the_next_time_it_begins_near_the_rate_it_had() {
    let mut bench = Bench::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..500).map(data));
    assert_eq!(bench.notices(0, 420).len(), 5);
    while bench.serve(ms(420)).is_some() {}
    let served_all = bench.owner.dropped.len();
    bench.fill(ms(500), (0..1000).map(data));
    // Four drops more than at the start the last time: 100/√4 = 50 ms, then 100/√5, …
    let soon = bench.notices(500, 760);
    assert_eq!(soon[0], 605);
    assert!((45..=51).contains(&(soon[1] - soon[0])), "{soon:?} after {served_all}");
    let mut later = Bench::new(CoDelConfig::RFC8289);
    later.fill(ms(0), (0..500).map(data));
    later.notices(0, 420);
    while later.serve(ms(420)).is_some() {}
    later.fill(ms(5000), (0..1000).map(data));
    let anew = later.notices(5000, 5300);
    assert_eq!(anew, [5105, 5205, 5276], "sixteen intervals later it has forgotten");
}

#[test]
fn what_can_be_marked_is_marked_and_served() {
    let mut bench = Bench::new(CoDelConfig { action: Action::Mark, ..CoDelConfig::RFC8289 });
    let capable = |n| Packet { capability: Capability::Capable, ..data(n) };
    bench.fill(ms(0), (0..1000).map(capable));
    assert_eq!(bench.notices(0, 420), [105, 205, 276, 334, 384]);
    assert_eq!((bench.owner.dropped.len(), bench.owner.marked.len()), (0, 5));
    let mut bench = Bench::new(CoDelConfig { action: Action::Mark, ..CoDelConfig::RFC8289 });
    bench.fill(ms(0), (0..1000).map(data));
    bench.notices(0, 420);
    assert_eq!((bench.owner.dropped.len(), bench.owner.marked.len()), (5, 0), "the others are dropped");
}

#[test]
fn routing_messages_are_never_dropped() {
    let mut bench = Bench::new(CoDelConfig::RFC8289);
    bench.fill(ms(0), (0..1000).map(|n| if n % 3 == 0 { data(n) } else { routing(n) }));
    bench.notices(0, 600);
    assert!(!bench.owner.dropped.is_empty());
    assert!(bench.owner.dropped.iter().all(|n| n % 3 == 0), "{:?}", bench.owner.dropped);
}

#[test]
fn the_last_packet_is_served() {
    let mut bench = Bench::new(CoDelConfig { packet_bytes: 0, ..CoDelConfig::RFC8289 });
    bench.fill(ms(0), (0..3).map(data));
    for now in [50, 160, 400] {
        bench.serve(ms(now));
    }
    assert!(bench.queue.is_empty());
    assert_eq!(bench.serve(ms(500)), None);
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let valid = CoDelConfig::RFC8289;
    assert_eq!(valid.validate(), Ok(()));
    let zero = Duration::ZERO;
    assert_eq!(CoDelConfig { target: zero, ..valid }.validate(), Err("a target above 0"));
    assert_eq!(CoDelConfig { interval: zero, ..valid }.validate(), Err("an interval above 0"));
    let long = CoDelConfig { target: Duration::from_secs(1), ..valid };
    assert_eq!(long.validate(), Err("a target no longer than the interval"));
}
