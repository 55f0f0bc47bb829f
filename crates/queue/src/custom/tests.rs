use super::*;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use crate::{DropTail, InterfaceQueue};

/// Discipline that applies functions, and records its calls.
struct ClosureDiscipline<E, D> {
    enqueue: E,
    dequeue: D,
}

impl<E, D> Debug for ClosureDiscipline<E, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Says")
    }
}

impl<E, D> CustomDiscipline for ClosureDiscipline<E, D>
where
    E: FnMut(&PacketInfo, &QueueInfo) -> Result<EnqueueDecision, String> + Send,
    D: FnMut(&HeadOfQueue, &QueueInfo) -> Result<DequeueDecision, String> + Send,
{
    fn enqueue(&mut self, packet: &PacketInfo, queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        (self.enqueue)(packet, queue)
    }

    fn dequeue(&mut self, head: &HeadOfQueue, queue: &QueueInfo) -> Result<DequeueDecision, String> {
        (self.dequeue)(head, queue)
    }
}

fn capacity(packets: u16) -> NonZeroU16 {
    NonZeroU16::new(packets).unwrap()
}

fn queue(
    packets: u16,
    enqueue: impl FnMut(&PacketInfo, &QueueInfo) -> Result<EnqueueDecision, String> + Send + 'static,
    dequeue: impl FnMut(&HeadOfQueue, &QueueInfo) -> Result<DequeueDecision, String> + Send + 'static,
) -> CustomQueue<Packet> {
    CustomQueue::new(ID, Box::new(ClosureDiscipline { enqueue, dequeue }), capacity(packets))
}

fn serve_all(_head: &HeadOfQueue, _queue: &QueueInfo) -> Result<DequeueDecision, String> {
    Ok(DequeueDecision::Serve)
}

fn enqueue_all(_packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
    Ok(EnqueueDecision::Enqueue { rank: 0.0 })
}

const ID: CustomDisciplineId = CustomDisciplineId(0);
const NOW: Instant = Instant::ZERO;

fn numbers(queue: &CustomQueue<Packet>) -> Vec<u32> {
    queue.iter().map(|packet| packet.number).collect()
}

fn failure(queue: &mut CustomQueue<Packet>) -> Option<String> {
    queue.take_failure().map(|failure| failure.to_string())
}

fn urgent(number: u32) -> Packet {
    Packet { class: Class::Urgent, ..data(number) }
}

fn marked(number: u32) -> Packet {
    Packet { capability: EcnCapability::Capable, ..data(number) }
}

#[test]
fn a_discipline_that_admits_all_packets_is_drop_tail() {
    let mut own = InterfaceQueue::custom(
        ID,
        Box::new(ClosureDiscipline { enqueue: enqueue_all, dequeue: serve_all }),
        capacity(3),
    );
    let mut plain = InterfaceQueue::DropTail(DropTail::new(capacity(3), crate::Service::Fifo));
    let mut owner = Owner::default();
    for number in 0..40 {
        let packet = if number % 7 == 0 { routing(number) } else { data(number) };
        assert_eq!(own.enqueue(NOW, packet, &mut owner), plain.enqueue(NOW, packet, &mut owner), "{number}");
        if number % 3 == 0 {
            assert_eq!(own.dequeue(NOW, &mut owner), plain.dequeue(NOW, &mut owner), "{number}");
        }
        assert!(own.iter().eq(plain.iter()), "{number}");
    }
}

#[test]
fn lower_ranks_are_served_first_and_equal_ranks_in_order() {
    let rank = |packet: &PacketInfo, _: &QueueInfo| {
        Ok(EnqueueDecision::Enqueue { rank: f64::from(packet.len_bytes) })
    };
    let mut queue = queue(10, rank, serve_all);
    let mut owner = Owner::default();
    for (number, len_bytes) in [(0, 500), (1, 100), (2, 500), (3, 300), (4, 100)] {
        let _ = queue.enqueue(NOW, Packet { len_bytes, ..data(number) }, &mut owner);
    }
    assert_eq!(numbers(&queue), [1, 4, 3, 0, 2]);
    let _ = queue.enqueue(NOW, urgent(5), &mut owner);
    let _ = queue.enqueue(NOW, urgent(6), &mut owner);
    assert_eq!(numbers(&queue), [5, 6, 1, 4, 3, 0, 2], "what is urgent goes before all");
}

#[test]
fn a_full_queue_is_displaced_by_lower_ranks_only() {
    let rank = |packet: &PacketInfo, _: &QueueInfo| {
        Ok(EnqueueDecision::Enqueue { rank: f64::from(packet.len_bytes) })
    };
    let mut queue = queue(2, rank, serve_all);
    let mut owner = Owner::default();
    let long = |number| Packet { len_bytes: 500, ..data(number) };
    let short = |number| Packet { len_bytes: 100, ..data(number) };
    assert_eq!(queue.enqueue(NOW, long(0), &mut owner), EnqueueResult::Accepted);
    assert_eq!(queue.enqueue(NOW, long(1), &mut owner), EnqueueResult::Accepted);
    assert_eq!(queue.enqueue(NOW, long(2), &mut owner), EnqueueResult::Refused(long(2)));
    assert_eq!(queue.enqueue(NOW, short(3), &mut owner), EnqueueResult::Displaced(long(1)));
    assert_eq!((queue.len(), queue.bytes), (2, 600));
}

#[test]
fn a_dropped_head_is_followed_by_a_decision_about_the_next_packet() {
    let late = |head: &HeadOfQueue, _: &QueueInfo| {
        Ok(if head.queueing_delay > Duration::from_millis(5) {
            DequeueDecision::Drop
        } else {
            DequeueDecision::Serve
        })
    };
    let mut queue = queue(10, enqueue_all, late);
    let mut owner = Owner::default();
    for (number, ms) in [(0, 0), (1, 1), (2, 8)] {
        let _ = queue.enqueue(Instant::from_millis(ms), data(number), &mut owner);
    }
    assert_eq!(queue.dequeue(Instant::from_millis(10), &mut owner).map(|packet| packet.number), Some(2));
    assert_eq!((owner.dropped, queue.bytes), (vec![0, 1], 0));
}

#[test]
fn packets_without_ecn_are_dropped_instead_of_marked() {
    let mut owner = Owner::default();
    let mark = |_: &PacketInfo, _: &QueueInfo| Ok(EnqueueDecision::Mark { rank: 0.0 });
    let mut early = queue(10, mark, serve_all);
    assert_eq!(early.enqueue(NOW, data(0), &mut owner), EnqueueResult::EarlyDrop(data(0)));
    assert_eq!(early.enqueue(NOW, marked(1), &mut owner), EnqueueResult::Accepted);
    let mut late = queue(10, enqueue_all, |_: &HeadOfQueue, _: &QueueInfo| Ok(DequeueDecision::Mark));
    let _ = late.enqueue(NOW, data(2), &mut owner);
    let _ = late.enqueue(NOW, marked(3), &mut owner);
    assert_eq!(late.dequeue(NOW, &mut owner).map(|packet| (packet.number, packet.mark)), Some((3, true)));
    assert_eq!((owner.marked, owner.dropped), (vec![1, 3], vec![2]));
}

#[test]
fn a_failure_is_reported_once_and_the_queue_continues_without_the_discipline() {
    let fails = |_: &PacketInfo, queue: &QueueInfo| match queue.packets {
        0 => Ok(EnqueueDecision::Enqueue { rank: 0.0 }),
        _ => Err("no more\n  than one".to_owned()),
    };
    let mut queue = queue(10, fails, |_: &HeadOfQueue, _: &QueueInfo| Ok(DequeueDecision::Drop));
    let mut owner = Owner::default();
    let _ = queue.enqueue(NOW, data(0), &mut owner);
    assert_eq!(queue.take_failure(), None);
    assert_eq!(queue.enqueue(NOW, data(1), &mut owner), EnqueueResult::Accepted);
    assert_eq!(failure(&mut queue), Some("enqueue: no more\n  than one".to_owned()));
    assert_eq!(queue.take_failure(), None, "once");
    assert_eq!(queue.dequeue(NOW, &mut owner).map(|packet| packet.number), Some(0), "it is not asked again");
}

#[test]
fn a_rank_of_nan_is_a_failure() {
    let mut queue =
        queue(10, |_: &PacketInfo, _: &QueueInfo| Ok(EnqueueDecision::Enqueue { rank: f64::NAN }), serve_all);
    let _ = queue.enqueue(NOW, data(0), &mut Owner::default());
    assert_eq!(failure(&mut queue), Some("enqueue: a rank that is not a number".to_owned()));
}

/// Discipline that records losses.
#[derive(Debug, Default)]
struct DropRecorder(std::sync::Arc<std::sync::Mutex<Vec<(u32, DropCause, usize)>>>);

impl CustomDiscipline for DropRecorder {
    fn enqueue(&mut self, packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        Ok(EnqueueDecision::Enqueue { rank: f64::from(packet.len_bytes) })
    }

    fn dequeue(&mut self, _head: &HeadOfQueue, _queue: &QueueInfo) -> Result<DequeueDecision, String> {
        Ok(DequeueDecision::Serve)
    }

    fn on_drop(&mut self, packet: &PacketInfo, loss: DropCause, queue: &QueueInfo) -> Result<(), String> {
        self.0.lock().unwrap().push((packet.len_bytes, loss, queue.packets));
        Ok(())
    }
}

#[test]
fn a_discipline_is_notified_of_drops_that_it_did_not_cause() {
    let mourns = DropRecorder::default();
    let told = mourns.0.clone();
    let mut queue = CustomQueue::new(ID, Box::new(mourns), capacity(2));
    let mut owner = Owner::default();
    for (number, len_bytes) in [(0, 300), (1, 200), (2, 400), (3, 100)] {
        let _ = queue.enqueue(NOW, Packet { len_bytes, ..data(number) }, &mut owner);
    }
    queue.remove_matching(NOW, |packet| packet.number == 1, drop);
    let expected = [(400, DropCause::Full, 2), (300, DropCause::Displaced, 2), (200, DropCause::Removed, 1)];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!((numbers(&queue), queue.bytes), (vec![3], 100));
}
