use super::*;
use crate::Service;
use crate::red::{Idle, RedConfig};
use core::num::NonZeroU16;
use hopline_core::{Purpose, Stream};

/// Number, length, mark.
type Packet = (u32, u32, bool);

/// A queue whose average is its length: with one packet in it every second one is chosen, with two all are dropped.
fn queue(action: Action, service: Service) -> InterfaceQueue<Packet> {
    let config = RedConfig {
        min_threshold: 0.5,
        max_threshold: 1.5,
        weight: 1.0,
        max_probability: 1.0,
        idle: Idle::Kept,
        action,
        ..RedConfig::PAPER
    };
    let packets = DropTail::new(NonZeroU16::new(4).unwrap(), service);
    InterfaceQueue::red(packets, Red::new(config, Stream::keyed(1, 0, 0, Purpose::Queue)))
}

fn offer(q: &mut InterfaceQueue<Packet>, n: u32, class: Class, capability: Capability) -> Enqueued<Packet> {
    let arriving = Arriving { now: Instant::ZERO, class, len_bytes: 100 + n, capability };
    q.enqueue((n, 100 + n, false), arriving, |packet| packet.2 = true, |packet| packet.1)
}

#[test]
fn capable_packets_are_marked_and_the_others_dropped() {
    let mut q = queue(Action::Mark, Service::Fifo);
    assert_eq!(offer(&mut q, 0, Class::Data, Capability::NotCapable), Enqueued::Accepted);
    let fates: Vec<_> = (1..40)
        .map(|n| {
            let fate = offer(&mut q, n, Class::Data, Capability::NotCapable);
            if fate == Enqueued::Accepted {
                let _ = q.dequeue(Instant::ZERO, |packet| packet.1);
            }
            fate
        })
        .collect();
    assert!(fates.iter().any(|fate| matches!(fate, Enqueued::Early(_))));
    assert!(fates.contains(&Enqueued::Accepted));
    let mut q = queue(Action::Mark, Service::Fifo);
    assert_eq!(offer(&mut q, 0, Class::Data, Capability::Capable), Enqueued::Accepted);
    let mut marked = 0;
    for n in 1..40 {
        assert_eq!(offer(&mut q, n, Class::Data, Capability::Capable), Enqueued::Accepted);
        marked += u32::from(q.dequeue(Instant::ZERO, |packet| packet.1).unwrap().2);
    }
    assert!((15..39).contains(&marked), "{marked}");
}

#[test]
fn to_drop_means_to_drop_whatever_a_packet_can_stand() {
    let mut q = queue(Action::Drop, Service::Fifo);
    let _ = offer(&mut q, 0, Class::Data, Capability::Capable);
    let dropped = (1..40).any(|n| {
        let fate = offer(&mut q, n, Class::Data, Capability::Capable);
        if fate == Enqueued::Accepted {
            let _ = q.dequeue(Instant::ZERO, |packet| packet.1);
        }
        matches!(fate, Enqueued::Early(_))
    });
    assert!(dropped);
    assert!(q.iter().all(|packet| !packet.2));
}

#[test]
fn routing_messages_are_none_of_its_business_and_a_full_queue_is_full() {
    let mut q = queue(Action::Mark, Service::RoutingFirst);
    for n in 0..4 {
        assert_eq!(offer(&mut q, n, Class::Routing, Capability::NotCapable), Enqueued::Accepted);
    }
    assert!(matches!(offer(&mut q, 4, Class::Routing, Capability::NotCapable), Enqueued::Displaced((0, ..))));
    assert!(matches!(offer(&mut q, 5, Class::Data, Capability::Capable), Enqueued::Early((5, ..))));
    assert_eq!((q.len(), q.packets().capacity().get()), (4, 4));
}

#[test]
fn bytes_are_counted_through_everything_that_moves_packets() {
    let mut q = queue(Action::Mark, Service::RoutingFirst);
    for n in 0..5 {
        let _ = offer(&mut q, n, Class::Routing, Capability::NotCapable);
    }
    q.remove_matching(Instant::ZERO, |packet| packet.0 == 2, |_| (), |packet| packet.1);
    let bytes = |q: &InterfaceQueue<Packet>| match q {
        InterfaceQueue::Red(red) => red.bytes,
        InterfaceQueue::DropTail(_) => 0,
    };
    assert_eq!(bytes(&q), q.iter().map(|packet| u64::from(packet.1)).sum::<u64>());
    while q.dequeue(Instant::ZERO, |packet| packet.1).is_some() {}
    assert_eq!((bytes(&q), q.is_empty()), (0, true));
}

#[test]
fn drop_tail_stays_what_it_is() {
    let mut q = InterfaceQueue::DropTail(DropTail::new(NonZeroU16::MIN, Service::Fifo));
    assert_eq!(offer(&mut q, 0, Class::Data, Capability::Capable), Enqueued::Accepted);
    assert!(matches!(offer(&mut q, 1, Class::Data, Capability::Capable), Enqueued::Refused((1, ..))));
    assert_eq!(q.dequeue(Instant::ZERO, |packet| packet.1), Some((0, 100, false)));
}
