use super::*;
use proptest::prelude::*;

fn queue(capacity: u16, service: Service) -> DropTail<u32> {
    DropTail::new(NonZeroU16::new(capacity).unwrap(), service)
}

fn drain(q: &mut DropTail<u32>) -> Vec<u32> {
    core::iter::from_fn(|| q.dequeue()).collect()
}

#[test]
fn packets_leave_in_order_of_arrival() {
    let mut q = queue(3, Service::Fifo);
    for p in [1, 2, 3] {
        assert_eq!(q.enqueue(p, Class::Data), EnqueueResult::Accepted);
    }
    assert_eq!(drain(&mut q), [1, 2, 3]);
    assert_eq!(q.dequeue(), None);
    assert_eq!(q.stats().served, 3);
}

#[test]
fn a_full_queue_refuses_the_newcomer_whatever_its_class_when_service_is_fifo() {
    let mut q = queue(2, Service::Fifo);
    let _ = q.enqueue(1, Class::Data);
    let _ = q.enqueue(2, Class::Routing);
    assert_eq!(q.enqueue(3, Class::Data), EnqueueResult::Refused(3));
    assert_eq!(q.enqueue(4, Class::Routing), EnqueueResult::Refused(4));
    assert_eq!(drain(&mut q), [1, 2]);
    assert_eq!(
        q.stats(),
        DropTailStats { accepted: 2, refused: 2, served: 2, peak: 2, ..DropTailStats::default() }
    );
}

#[test]
fn a_routing_packet_overtakes_everything_even_earlier_routing_packets() {
    let mut q = queue(9, Service::RoutingPriority);
    let _ = q.enqueue(1, Class::Data);
    let _ = q.enqueue(2, Class::Routing);
    let _ = q.enqueue(3, Class::Data);
    let _ = q.enqueue(4, Class::Routing);
    assert_eq!(drain(&mut q), [4, 2, 1, 3]);
}

#[test]
fn in_a_full_queue_a_routing_packet_displaces_the_last_packet() {
    let mut q = queue(2, Service::RoutingPriority);
    let _ = q.enqueue(1, Class::Data);
    let _ = q.enqueue(2, Class::Data);
    assert_eq!(q.enqueue(3, Class::Routing), EnqueueResult::Displaced(2));
    assert_eq!(q.enqueue(4, Class::Routing), EnqueueResult::Displaced(1));
    assert_eq!(
        q.enqueue(5, Class::Routing),
        EnqueueResult::Displaced(3),
        "even if it is a routing packet itself"
    );
    assert_eq!(q.enqueue(6, Class::Data), EnqueueResult::Refused(6));
    assert_eq!(drain(&mut q), [5, 4]);
    assert_eq!(q.stats().displaced, 3);
}

#[test]
fn matching_packets_are_removed_head_first_and_the_order_is_kept() {
    let mut q = queue(9, Service::Fifo);
    for p in 1..=6 {
        let _ = q.enqueue(p, Class::Data);
    }
    let mut out = Vec::new();
    q.remove_matching(|p| p % 2 == 0, |p| out.push(p));
    assert_eq!(out, [2, 4, 6]);
    assert_eq!(q.iter().copied().collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(q.stats().removed, 3);
    assert_eq!(q.stats().peak, 6);
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(Class),
    Dequeue,
    Remove(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Enqueue(Class::Data)),
        2 => Just(Op::Enqueue(Class::Routing)),
        3 => Just(Op::Dequeue),
        1 => (2u32..5).prop_map(Op::Remove),
    ]
}

proptest! {
    /// Every packet offered is exactly once served, refused, displaced, removed or still there; the queue never
    /// grows past its capacity nor its first allocation.
    #[test]
    fn every_packet_is_accounted_for_exactly_once(
        capacity in 1u16..12,
        service in prop_oneof![Just(Service::Fifo), Just(Service::RoutingPriority)],
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut q = queue(capacity, service);
        let allocated = q.packets.capacity();
        let (mut offered, mut out) = (0u32, Vec::new());
        for op in ops {
            match op {
                Op::Enqueue(class) => {
                    match q.enqueue(offered, class) {
                        EnqueueResult::Accepted => {}
                        EnqueueResult::Displaced(p) | EnqueueResult::Refused(p) | EnqueueResult::EarlyDrop(p) => out.push(p),
                    }
                    offered += 1;
                }
                Op::Dequeue => out.extend(q.dequeue()),
                Op::Remove(n) => q.remove_matching(|p| p % n == 0, |p| out.push(p)),
            }
            prop_assert!(q.len() <= usize::from(capacity));
            prop_assert_eq!(q.packets.capacity(), allocated);
        }
        let c = q.stats();
        prop_assert_eq!(c.accepted + c.refused, u64::from(offered));
        prop_assert_eq!(c.accepted, c.served + c.displaced + c.removed + q.len() as u64);
        out.extend(drain(&mut q));
        out.sort_unstable();
        prop_assert_eq!(out, (0..offered).collect::<Vec<_>>());
    }
}

#[test]
fn urgent_packets_are_served_first_in_order_and_displace_the_last() {
    let mut q = queue(4, Service::Fifo);
    let _ = q.enqueue(1, Class::Data);
    let _ = q.enqueue(2, Class::Routing);
    let _ = q.enqueue(3, Class::Urgent);
    let _ = q.enqueue(4, Class::Urgent);
    assert_eq!(q.iter().copied().collect::<Vec<_>>(), [3, 4, 1, 2]);
    assert_eq!(q.enqueue(5, Class::Data), EnqueueResult::Refused(5));
    assert_eq!(q.enqueue(6, Class::Urgent), EnqueueResult::Displaced(2));
    assert_eq!(q.enqueue(7, Class::Urgent), EnqueueResult::Displaced(1));
    assert_eq!(
        q.enqueue(8, Class::Urgent),
        EnqueueResult::Refused(8),
        "urgent ones make no room for each other"
    );
    q.remove_matching(|p| *p == 4, |_| {});
    assert_eq!((q.len(), drain(&mut q)), (3, vec![3, 6, 7]));
}
