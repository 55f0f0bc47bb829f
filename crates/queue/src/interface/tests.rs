use super::*;
use crate::contents::testing::{Owner, Packet, data, routing};
use crate::red::{Idle, RedConfig};
use crate::{Action, Capability, Service};
use core::num::NonZeroU16;
use hopline_core::{Purpose, Stream};

const NOW: Instant = Instant::ZERO;

/// Returns a queue with an average equal to its length. With one packet in it every second packet is chosen, with two all
/// are dropped.
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

fn offer(q: &mut InterfaceQueue<Packet>, packet: Packet) -> Enqueued<Packet> {
    q.enqueue(NOW, packet, &mut Owner::default())
}

fn serve(q: &mut InterfaceQueue<Packet>) -> Option<Packet> {
    q.dequeue(NOW, &mut Owner::default())
}

fn capable(number: u32) -> Packet {
    Packet { capability: Capability::Capable, ..data(number) }
}

/// Returns the results of offering packets one by one to a queue that holds one packet.
fn fates(q: &mut InterfaceQueue<Packet>, packet: fn(u32) -> Packet) -> Vec<Enqueued<Packet>> {
    assert_eq!(offer(q, packet(0)), Enqueued::Accepted);
    let fate = |n| {
        let fate = offer(q, packet(n));
        if fate == Enqueued::Accepted {
            serve(q);
        }
        fate
    };
    (1..40).map(fate).collect()
}

#[test]
fn capable_packets_are_marked_and_the_others_dropped() {
    let fates = fates(&mut queue(Action::Mark, Service::Fifo), data);
    assert!(fates.iter().any(|fate| matches!(fate, Enqueued::Early(_))));
    assert!(fates.contains(&Enqueued::Accepted));
    let mut q = queue(Action::Mark, Service::Fifo);
    assert_eq!(offer(&mut q, capable(0)), Enqueued::Accepted);
    let mut marked = 0;
    for n in 1..40 {
        assert_eq!(offer(&mut q, capable(n)), Enqueued::Accepted);
        marked += u32::from(serve(&mut q).unwrap().mark);
    }
    assert!((15..39).contains(&marked), "{marked}");
}

#[test]
fn to_drop_means_to_drop_whatever_a_packet_can_stand() {
    let mut q = queue(Action::Drop, Service::Fifo);
    assert!(fates(&mut q, capable).iter().any(|fate| matches!(fate, Enqueued::Early(_))));
    assert!(core::iter::from_fn(|| serve(&mut q)).all(|packet| !packet.mark));
}

#[test]
fn routing_messages_are_none_of_its_business_and_a_full_queue_is_full() {
    let mut q = queue(Action::Mark, Service::RoutingFirst);
    for n in 0..4 {
        assert_eq!(offer(&mut q, routing(n)), Enqueued::Accepted);
    }
    assert_eq!(offer(&mut q, routing(4)), Enqueued::Displaced(routing(0)));
    assert_eq!(offer(&mut q, capable(5)), Enqueued::Early(capable(5)));
    assert_eq!(q.len(), 4);
}

/// Returns the bytes that the queue counts.
fn bytes(q: &InterfaceQueue<Packet>) -> u64 {
    match q {
        InterfaceQueue::Red(red) => red.bytes,
        InterfaceQueue::CoDel(codel) => codel.waiting.bytes,
        InterfaceQueue::DropTail(_) | InterfaceQueue::FqCoDel(_) | InterfaceQueue::Own(_) => 0,
    }
}

#[test]
fn bytes_are_counted_through_everything_that_moves_packets() {
    let codel = || {
        let packets = DropTail::new(NonZeroU16::new(4).unwrap(), Service::RoutingFirst);
        InterfaceQueue::codel(packets, CoDel::new(crate::CoDelConfig::RFC8289))
    };
    for mut q in [queue(Action::Mark, Service::RoutingFirst), codel()] {
        let long = |n| Packet { len_bytes: 100 + n, ..routing(n) };
        for n in 0..5 {
            let _ = offer(&mut q, long(n));
        }
        assert_eq!(bytes(&q), 101 + 102 + 103 + 104, "the first gave way");
        q.remove_matching(NOW, |packet| packet.number == 2, |_| (), |packet| packet.len_bytes);
        assert_eq!(bytes(&q), 101 + 103 + 104);
        while serve(&mut q).is_some() {}
        assert_eq!((bytes(&q), q.is_empty()), (0, true));
    }
}

#[test]
fn drop_tail_stays_what_it_is() {
    let mut q = InterfaceQueue::DropTail(DropTail::new(NonZeroU16::MIN, Service::Fifo));
    assert_eq!(offer(&mut q, data(0)), Enqueued::Accepted);
    assert_eq!(offer(&mut q, data(1)), Enqueued::Refused(data(1)));
    assert_eq!(serve(&mut q), Some(data(0)));
}

#[test]
fn every_kind_shows_what_is_in_it() {
    let drop_tail = || DropTail::new(NonZeroU16::new(9).unwrap(), Service::Fifo);
    let codel = DropTail::new(NonZeroU16::new(9).unwrap(), Service::Fifo);
    let kinds = [
        InterfaceQueue::DropTail(drop_tail()),
        queue(Action::Drop, Service::Fifo),
        InterfaceQueue::codel(codel, CoDel::new(crate::CoDelConfig::RFC8289)),
        InterfaceQueue::FqCoDel(Box::new(FqCoDel::new(
            crate::FqCoDelConfig::RFC8290,
            NonZeroU16::new(9).unwrap(),
        ))),
    ];
    for mut q in kinds {
        assert_eq!(q.iter().count(), 0);
        for n in 0..3 {
            let _ = offer(&mut q, routing(n));
        }
        let mut numbers: Vec<_> = q.iter().map(|packet| packet.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2]);
    }
}
