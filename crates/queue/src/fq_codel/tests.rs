use super::*;
use crate::InterfaceQueue;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

fn packet_of(flow: u64, number: u32) -> Packet {
    Packet { flow, ..data(number) }
}

fn queue(capacity: u16) -> FqCoDel<Packet> {
    FqCoDel::new(FqCoDelConfig::RFC8290, NonZeroU16::new(capacity).unwrap())
}

fn fill(queue: &mut FqCoDel<Packet>, packets: impl IntoIterator<Item = Packet>) {
    for packet in packets {
        assert_eq!(queue.enqueue(NOW, packet, &Owner::default()), EnqueueResult::Accepted);
    }
}

/// Returns the numbers of packets served at once.
fn serve(queue: &mut FqCoDel<Packet>, most: usize) -> Vec<u32> {
    let mut owner = Owner::default();
    let served = core::iter::from_fn(|| queue.dequeue(NOW, &mut owner)).take(most);
    served.map(|packet| packet.number).collect()
}

#[test]
fn flows_are_served_round_robin_by_bytes() {
    let mut q = queue(1000);
    fill(&mut q, (0..6).map(|n| packet_of(1, n)));
    fill(&mut q, (100..112).map(|n| Packet { len_bytes: 500, ..packet_of(2, n) }));
    // 1514 bytes a turn; an excess is deducted from the next turn.
    assert_eq!(
        serve(&mut q, 18),
        [0, 1, 100, 101, 102, 103, 2, 3, 104, 105, 106, 4, 107, 108, 109, 5, 110, 111]
    );
    assert!(q.is_empty());
}

#[test]
fn new_flows_are_served_before_old_ones() {
    let mut q = queue(1000);
    fill(&mut q, (0..10).map(|n| packet_of(1, n)).chain((200..210).map(|n| packet_of(3, n))));
    assert_eq!(serve(&mut q, 5), [0, 1, 200, 201, 2]);
    fill(&mut q, [packet_of(2, 100)]);
    assert_eq!(serve(&mut q, 2), [100, 3]);
    fill(&mut q, [packet_of(2, 101)]);
    assert_eq!(serve(&mut q, 4), [202, 203, 101, 4], "it has had its start, and waits for its turn now");
}

#[test]
fn a_full_queue_drops_from_the_flow_with_most_bytes() {
    let mut q = queue(4);
    fill(&mut q, (0..3).map(|n| packet_of(1, n)));
    fill(&mut q, [packet_of(2, 100)]);
    assert_eq!(
        q.enqueue(NOW, packet_of(3, 200), &Owner::default()),
        EnqueueResult::Displaced(packet_of(1, 0))
    );
    let large = Packet { len_bytes: 9000, ..packet_of(4, 300) };
    assert_eq!(q.enqueue(NOW, large, &Owner::default()), EnqueueResult::Displaced(large), "it may be itself");
    assert_eq!(q.len(), 4);
}

#[test]
fn routing_messages_are_served_first_and_refused_last() {
    let mut q = queue(2);
    fill(&mut q, [packet_of(1, 0), routing(10)]);
    assert_eq!(q.enqueue(NOW, routing(11), &Owner::default()), EnqueueResult::Displaced(packet_of(1, 0)));
    assert_eq!(q.enqueue(NOW, routing(12), &Owner::default()), EnqueueResult::Refused(routing(12)));
    assert_eq!(serve(&mut q, 9), [10, 11]);
}

#[test]
fn each_flow_has_its_own_codel_state() {
    let mut q = InterfaceQueue::FqCoDel(Box::new(queue(5000)));
    let mut owner = Owner::default();
    for n in 0..2000 {
        let _ = q.enqueue(NOW, packet_of(1, n), &mut owner);
    }
    for now in 0..1000 {
        let at = Instant::from_millis(now);
        let _ = q.enqueue(at, packet_of(2, 10_000 + now as u32), &mut owner);
        q.dequeue(at, &mut owner);
        q.dequeue(at, &mut owner);
    }
    assert!(owner.dropped.len() > 10);
    assert!(owner.dropped.iter().all(|n| *n < 2000), "the flow without a backlog loses nothing");
}

#[test]
fn packets_for_a_lost_neighbour_are_removed() {
    let mut q = queue(100);
    fill(&mut q, (0..6).map(|n| packet_of(u64::from(n % 2), n)).chain([routing(9)]));
    let mut gone = Vec::new();
    q.remove_matching(|p| p.number % 3 == 0, |p| gone.push(p.number), |p| p.len_bytes);
    gone.sort_unstable();
    assert_eq!((gone.as_slice(), q.len()), (&[0, 3, 9][..], 4));
    let mut rest = serve(&mut q, 9);
    rest.sort_unstable();
    assert_eq!(rest, [1, 2, 4, 5]);
}

#[test]
fn flows_spread_over_all_queues() {
    let buckets = NonZeroU16::new(1024).unwrap();
    let used: std::collections::BTreeSet<u16> = (0..100).map(|flow| flow_index(flow, buckets)).collect();
    assert!(used.len() >= 90 && used.iter().all(|&n| n < 1024), "{}", used.len());
    assert_eq!(flow_index(u64::MAX, NonZeroU16::MIN), 0);
}

proptest! {
    #[test]
    fn every_packet_that_enters_leaves_once(steps in proptest::collection::vec((0..8_u64, 0..4_u8, 1..2000_u32), 1..300)) {
        let mut q = queue(10);
        let mut owner = Owner::default();
        let (mut entered, mut left) = (0_u32, 0_u32);
        for (number, (flow, what, len_bytes)) in steps.into_iter().enumerate() {
            let now = Instant::from_millis(40 * number as u64);
            let class = if flow == 7 { Class::Routing } else { Class::Data };
            if what > 0 {
                let packet = Packet { len_bytes, class, ..packet_of(flow, number as u32) };
                entered += 1;
                left += u32::from(q.enqueue(now, packet, &owner) != EnqueueResult::Accepted);
            } else {
                left += u32::from(q.dequeue(now, &mut owner).is_some());
            }
            prop_assert_eq!(q.len(), q.iter().count());
            prop_assert_eq!(entered, left + owner.dropped.len() as u32 + q.len() as u32);
        }
        let late = Instant::from_secs(10_000);
        while q.dequeue(late, &mut owner).is_some() {
            left += 1;
        }
        prop_assert_eq!(entered, left + owner.dropped.len() as u32);
        prop_assert!(q.is_empty() && q.flows.values().all(|flow| flow.queue.bytes == 0));
    }
}
