use super::*;
use crate::contents::testing::{Owner, Packet, data, routing};
use crate::{DropTail, InterfaceQueue};

/// Discipline that applies functions, and records its calls.
struct Says<E, D> {
    enqueue: E,
    dequeue: D,
}

impl<E, D> Debug for Says<E, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Says")
    }
}

impl<E, D> OwnDiscipline for Says<E, D>
where
    E: FnMut(&PacketInfo, &QueueInfo) -> Result<Admission, String> + Send,
    D: FnMut(&HeadInfo, &QueueInfo) -> Result<Service, String> + Send,
{
    fn enqueue(&mut self, packet: &PacketInfo, queue: &QueueInfo) -> Result<Admission, String> {
        (self.enqueue)(packet, queue)
    }

    fn dequeue(&mut self, head: &HeadInfo, queue: &QueueInfo) -> Result<Service, String> {
        (self.dequeue)(head, queue)
    }
}

fn capacity(packets: u16) -> NonZeroU16 {
    NonZeroU16::new(packets).unwrap()
}

fn queue(
    packets: u16,
    enqueue: impl FnMut(&PacketInfo, &QueueInfo) -> Result<Admission, String> + Send + 'static,
    dequeue: impl FnMut(&HeadInfo, &QueueInfo) -> Result<Service, String> + Send + 'static,
) -> OwnQueue<Packet> {
    OwnQueue::new(ID, Box::new(Says { enqueue, dequeue }), capacity(packets))
}

fn serve(_head: &HeadInfo, _queue: &QueueInfo) -> Result<Service, String> {
    Ok(Service::Serve)
}

fn enter(_packet: &PacketInfo, _queue: &QueueInfo) -> Result<Admission, String> {
    Ok(Admission::Enter { rank: 0.0 })
}

const ID: OwnDisciplineId = OwnDisciplineId(0);
const NOW: Instant = Instant::ZERO;

fn numbers(queue: &OwnQueue<Packet>) -> Vec<u32> {
    queue.iter().map(|packet| packet.number).collect()
}

fn failure(queue: &mut OwnQueue<Packet>) -> Option<String> {
    queue.take_failure().map(|failure| failure.to_string())
}

fn urgent(number: u32) -> Packet {
    Packet { class: Class::Urgent, ..data(number) }
}

fn marked(number: u32) -> Packet {
    Packet { capability: Capability::Capable, ..data(number) }
}

#[test]
fn what_lets_everything_in_is_a_drop_tail_queue() {
    let mut own = InterfaceQueue::own(ID, Box::new(Says { enqueue: enter, dequeue: serve }), capacity(3));
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
fn lower_ranks_go_first_and_equal_ones_as_they_came() {
    let rank =
        |packet: &PacketInfo, _: &QueueInfo| Ok(Admission::Enter { rank: f64::from(packet.len_bytes) });
    let mut queue = queue(10, rank, serve);
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
fn a_full_queue_gives_way_to_lower_ranks_only() {
    let rank =
        |packet: &PacketInfo, _: &QueueInfo| Ok(Admission::Enter { rank: f64::from(packet.len_bytes) });
    let mut queue = queue(2, rank, serve);
    let mut owner = Owner::default();
    let long = |number| Packet { len_bytes: 500, ..data(number) };
    let short = |number| Packet { len_bytes: 100, ..data(number) };
    assert_eq!(queue.enqueue(NOW, long(0), &mut owner), Enqueued::Accepted);
    assert_eq!(queue.enqueue(NOW, long(1), &mut owner), Enqueued::Accepted);
    assert_eq!(queue.enqueue(NOW, long(2), &mut owner), Enqueued::Refused(long(2)));
    assert_eq!(queue.enqueue(NOW, short(3), &mut owner), Enqueued::Displaced(long(1)));
    assert_eq!((queue.len(), queue.bytes), (2, 600));
}

#[test]
fn the_head_is_judged_by_how_long_it_waited_and_the_next_in_its_place() {
    let late = |head: &HeadInfo, _: &QueueInfo| {
        Ok(if head.waited > Duration::from_millis(5) { Service::Drop } else { Service::Serve })
    };
    let mut queue = queue(10, enter, late);
    let mut owner = Owner::default();
    for (number, ms) in [(0, 0), (1, 1), (2, 8)] {
        let _ = queue.enqueue(Instant::from_millis(ms), data(number), &mut owner);
    }
    assert_eq!(queue.dequeue(Instant::from_millis(10), &mut owner).map(|packet| packet.number), Some(2));
    assert_eq!((owner.dropped, queue.bytes), (vec![0, 1], 0));
}

#[test]
fn what_cannot_be_marked_is_dropped_in_place_of_it() {
    let mut owner = Owner::default();
    let mark = |_: &PacketInfo, _: &QueueInfo| Ok(Admission::Mark { rank: 0.0 });
    let mut early = queue(10, mark, serve);
    assert_eq!(early.enqueue(NOW, data(0), &mut owner), Enqueued::Early(data(0)));
    assert_eq!(early.enqueue(NOW, marked(1), &mut owner), Enqueued::Accepted);
    let mut late = queue(10, enter, |_: &HeadInfo, _: &QueueInfo| Ok(Service::Mark));
    let _ = late.enqueue(NOW, data(2), &mut owner);
    let _ = late.enqueue(NOW, marked(3), &mut owner);
    assert_eq!(late.dequeue(NOW, &mut owner).map(|packet| (packet.number, packet.mark)), Some((3, true)));
    assert_eq!((owner.marked, owner.dropped), (vec![1, 3], vec![2]));
}

#[test]
fn one_that_fails_says_why_once_and_the_queue_goes_on_without_it() {
    let fails = |_: &PacketInfo, queue: &QueueInfo| match queue.packets {
        0 => Ok(Admission::Enter { rank: 0.0 }),
        _ => Err("no more\n  than one".to_owned()),
    };
    let mut queue = queue(10, fails, |_: &HeadInfo, _: &QueueInfo| Ok(Service::Drop));
    let mut owner = Owner::default();
    let _ = queue.enqueue(NOW, data(0), &mut owner);
    assert_eq!(queue.take_failure(), None);
    assert_eq!(queue.enqueue(NOW, data(1), &mut owner), Enqueued::Accepted);
    assert_eq!(failure(&mut queue), Some("enqueue: no more\n  than one".to_owned()));
    assert_eq!(queue.take_failure(), None, "once");
    assert_eq!(queue.dequeue(NOW, &mut owner).map(|packet| packet.number), Some(0), "it is not asked again");
}

#[test]
fn a_rank_that_is_no_number_is_a_failure() {
    let mut queue = queue(10, |_: &PacketInfo, _: &QueueInfo| Ok(Admission::Enter { rank: f64::NAN }), serve);
    let _ = queue.enqueue(NOW, data(0), &mut Owner::default());
    assert_eq!(failure(&mut queue), Some("enqueue: a rank that is not a number".to_owned()));
}

/// Discipline that records losses.
#[derive(Debug, Default)]
struct Mourns(std::sync::Arc<std::sync::Mutex<Vec<(u32, Loss, usize)>>>);

impl OwnDiscipline for Mourns {
    fn enqueue(&mut self, packet: &PacketInfo, _queue: &QueueInfo) -> Result<Admission, String> {
        Ok(Admission::Enter { rank: f64::from(packet.len_bytes) })
    }

    fn dequeue(&mut self, _head: &HeadInfo, _queue: &QueueInfo) -> Result<Service, String> {
        Ok(Service::Serve)
    }

    fn on_lost(&mut self, packet: &PacketInfo, loss: Loss, queue: &QueueInfo) -> Result<(), String> {
        self.0.lock().unwrap().push((packet.len_bytes, loss, queue.packets));
        Ok(())
    }
}

#[test]
fn a_discipline_is_told_of_what_is_lost_without_its_doing() {
    let mourns = Mourns::default();
    let told = mourns.0.clone();
    let mut queue = OwnQueue::new(ID, Box::new(mourns), capacity(2));
    let mut owner = Owner::default();
    for (number, len_bytes) in [(0, 300), (1, 200), (2, 400), (3, 100)] {
        let _ = queue.enqueue(NOW, Packet { len_bytes, ..data(number) }, &mut owner);
    }
    queue.remove_matching(NOW, |packet| packet.number == 1, drop);
    let expected = [(400, Loss::Full, 2), (300, Loss::Displaced, 2), (200, Loss::Removed, 1)];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!((numbers(&queue), queue.bytes), (vec![3], 100));
}
