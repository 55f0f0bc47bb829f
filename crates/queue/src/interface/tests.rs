use super::*;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use crate::red::{IdlePolicy, RedConfig};
use crate::{EcnCapability, Service, SignalAction};
use core::num::NonZeroU16;
use hopline_core::{Purpose, RandomStream};

const NOW: Instant = Instant::ZERO;

/// Returns a queue with an average equal to its length. With one packet in it every second packet is chosen, with two all
/// are dropped.
fn queue(action: SignalAction, service: Service) -> InterfaceQueue<Packet> {
    let config = RedConfig {
        min_threshold: 0.5,
        max_threshold: 1.5,
        weight: 1.0,
        max_probability: 1.0,
        idle: IdlePolicy::Keep,
        action,
        ..RedConfig::PAPER
    };
    let packets = DropTail::new(NonZeroU16::new(4).unwrap(), service);
    InterfaceQueue::red(packets, Red::new(config, stream()))
}

fn stream() -> RandomStream {
    RandomStream::keyed(1, 0, 0, Purpose::Queue)
}

fn offer(q: &mut InterfaceQueue<Packet>, packet: Packet) -> EnqueueResult<Packet> {
    q.enqueue(NOW, packet, &mut Owner::default())
}

fn serve(q: &mut InterfaceQueue<Packet>) -> Option<Packet> {
    q.dequeue(NOW, &mut Owner::default())
}

fn ecn_capable(number: u32) -> Packet {
    Packet { capability: EcnCapability::Capable, ..data(number) }
}

/// Returns the results of offering packets one by one to a queue that holds one packet.
fn enqueue_results(q: &mut InterfaceQueue<Packet>, packet: fn(u32) -> Packet) -> Vec<EnqueueResult<Packet>> {
    assert_eq!(offer(q, packet(0)), EnqueueResult::Accepted);
    let fate = |n| {
        let fate = offer(q, packet(n));
        if fate == EnqueueResult::Accepted {
            serve(q);
        }
        fate
    };
    (1..40).map(fate).collect()
}

#[test]
fn capable_packets_are_marked_and_the_others_dropped() {
    let fates = enqueue_results(&mut queue(SignalAction::Mark, Service::Fifo), data);
    assert!(fates.iter().any(|fate| matches!(fate, EnqueueResult::EarlyDrop(_))));
    assert!(fates.contains(&EnqueueResult::Accepted));
    let mut q = queue(SignalAction::Mark, Service::Fifo);
    assert_eq!(offer(&mut q, ecn_capable(0)), EnqueueResult::Accepted);
    let mut marked = 0;
    for n in 1..40 {
        assert_eq!(offer(&mut q, ecn_capable(n)), EnqueueResult::Accepted);
        marked += u32::from(serve(&mut q).unwrap().mark);
    }
    assert!((15..39).contains(&marked), "{marked}");
}

#[test]
fn action_drop_drops_ecn_capable_packets_too() {
    let mut q = queue(SignalAction::Drop, Service::Fifo);
    assert!(
        enqueue_results(&mut q, ecn_capable).iter().any(|fate| matches!(fate, EnqueueResult::EarlyDrop(_)))
    );
    assert!(core::iter::from_fn(|| serve(&mut q)).all(|packet| !packet.mark));
}

#[test]
fn routing_messages_are_exempt_from_red_but_not_from_a_full_queue() {
    let mut q = queue(SignalAction::Mark, Service::RoutingPriority);
    for n in 0..4 {
        assert_eq!(offer(&mut q, routing(n)), EnqueueResult::Accepted);
    }
    assert_eq!(offer(&mut q, routing(4)), EnqueueResult::Displaced(routing(0)));
    assert_eq!(offer(&mut q, ecn_capable(5)), EnqueueResult::EarlyDrop(ecn_capable(5)));
    assert_eq!(q.len(), 4);
}

/// Returns the bytes that the queue counts.
fn bytes(q: &InterfaceQueue<Packet>) -> u64 {
    match q {
        InterfaceQueue::Red(red) => red.bytes,
        InterfaceQueue::CoDel(codel) => codel.backlog.bytes,
        InterfaceQueue::Pie(pie) => pie.bytes(),
        InterfaceQueue::DropTail(_)
        | InterfaceQueue::FqCoDel(_)
        | InterfaceQueue::DualPi2(_)
        | InterfaceQueue::Custom(_) => 0,
    }
}

#[test]
fn byte_counts_match_the_packets_after_every_operation() {
    let codel = || {
        let packets = DropTail::new(NonZeroU16::new(4).unwrap(), Service::RoutingPriority);
        InterfaceQueue::codel(packets, CoDel::new(crate::CoDelConfig::RFC8289))
    };
    let pie = || {
        let packets = DropTail::new(NonZeroU16::new(4).unwrap(), Service::RoutingPriority);
        InterfaceQueue::pie(packets, Pie::new(crate::PieConfig::RFC8033, stream()))
    };
    for mut q in [queue(SignalAction::Mark, Service::RoutingPriority), codel(), pie()] {
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
fn drop_tail_never_drops_early() {
    let mut q = InterfaceQueue::DropTail(DropTail::new(NonZeroU16::MIN, Service::Fifo));
    assert_eq!(offer(&mut q, data(0)), EnqueueResult::Accepted);
    assert_eq!(offer(&mut q, data(1)), EnqueueResult::Refused(data(1)));
    assert_eq!(serve(&mut q), Some(data(0)));
}

#[test]
fn every_discipline_iterates_over_its_packets() {
    let drop_tail = || DropTail::new(NonZeroU16::new(9).unwrap(), Service::Fifo);
    let codel = DropTail::new(NonZeroU16::new(9).unwrap(), Service::Fifo);
    let kinds = [
        InterfaceQueue::DropTail(drop_tail()),
        queue(SignalAction::Drop, Service::Fifo),
        InterfaceQueue::codel(codel, CoDel::new(crate::CoDelConfig::RFC8289)),
        InterfaceQueue::FqCoDel(Box::new(FqCoDel::new(
            crate::FqCoDelConfig::RFC8290,
            NonZeroU16::new(9).unwrap(),
        ))),
        InterfaceQueue::DualPi2(Box::new(crate::DualPi2::new(
            crate::DualPi2Config::RFC9332,
            NonZeroU16::new(9).unwrap(),
        ))),
        InterfaceQueue::pie(
            DropTail::new(NonZeroU16::new(9).unwrap(), Service::Fifo),
            Pie::new(crate::PieConfig::RFC8033, stream()),
        ),
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
