//! FQ-CoDel (RFC 8290): a CoDel queue for each flow, served round-robin with priority for sparse flows.

use crate::codel::{Backlog, CoDel, CoDelConfig, Queued};
use crate::drop_tail::{Class, EnqueueResult};
use crate::packet_access::PacketAccess;
use core::num::NonZeroU16;
use hopline_core::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel parameters of each flow's queue.
    pub codel: CoDelConfig,
    /// Queues that flows are hashed onto. Default 1024 (RFC 8290 §5.2.3).
    pub flows: NonZeroU16,
    /// Quantum in bytes: amount that a queue may send in its turn, at least 1. A full packet; default 1514 (§5.2.4).
    pub quantum_bytes: u32,
}

impl FqCoDelConfig {
    /// Parameters of RFC 8290.
    pub const RFC8290: Self = Self {
        codel: CoDelConfig::RFC8289,
        flows: NonZeroU16::new(1024).expect("not zero"),
        quantum_bytes: 1514,
    };

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        self.codel.validate()?;
        if self.quantum_bytes == 0 { Err("a quantum of at least 1 byte") } else { Ok(()) }
    }
}

/// Queues of flows, with a limit on all packets together. Routing messages are a flow of their own, which is served first
/// and never dropped early.
#[derive(Clone, Debug)]
pub struct FqCoDel<T> {
    config: FqCoDelConfig,
    capacity: NonZeroU16,
    routing: VecDeque<T>,
    /// Flows by hash value. An entry is created on first use, and kept for the state of its CoDel.
    flows: BTreeMap<u16, Flow<T>>,
    /// New flows, and old flows with packets: hash values in service order.
    new_flows: VecDeque<u16>,
    old_flows: VecDeque<u16>,
    packets: usize,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    queue: FlowQueue<T>,
    codel: CoDel,
    /// Deficit in bytes: amount that the flow may still send in this turn.
    deficit: i64,
    membership: Membership,
}

/// Membership of a flow in one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    None,
    Listed,
}

/// New flows, and old flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
}

#[derive(Clone, Debug)]
struct FlowQueue<T> {
    packets: VecDeque<Queued<T>>,
    bytes: u64,
}

impl<T> Backlog<T> for FlowQueue<T> {
    fn pop(&mut self, len_bytes: impl Fn(&T) -> u32) -> Option<Queued<T>> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(len_bytes(&head.packet));
        Some(head)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<T: Copy> FqCoDel<T> {
    /// Creates an empty queue for at most `capacity` packets of all flows.
    #[must_use]
    pub fn new(config: FqCoDelConfig, capacity: NonZeroU16) -> Self {
        Self {
            config,
            capacity,
            routing: VecDeque::new(),
            flows: BTreeMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
        }
    }

    /// Offers a packet (RFC 8290 §4.1). In a full queue the head of the flow with most bytes is dropped, which may be the
    /// packet itself.
    pub fn enqueue(&mut self, now: Instant, packet: T, contents: &impl PacketAccess<T>) -> EnqueueResult<T> {
        match contents.class(&packet) {
            Class::Urgent | Class::Routing => self.routing.push_back(packet),
            Class::Data => self.push(now, packet, contents),
        }
        self.packets += 1;
        if self.packets <= usize::from(self.capacity.get()) {
            return EnqueueResult::Accepted;
        }
        self.packets -= 1;
        match self.longest_flow() {
            Some(flow) => {
                let head = flow.queue.pop(|packet| contents.len_bytes(packet));
                EnqueueResult::Displaced(head.expect("a flow that holds bytes holds a packet").packet)
            }
            None => {
                EnqueueResult::Refused(self.routing.pop_back().expect("all packets are routing messages"))
            }
        }
    }

    /// Removes and returns the next packet to serve (§4.2).
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl PacketAccess<T>) -> Option<T> {
        if let Some(packet) = self.routing.pop_front() {
            self.packets -= 1;
            return Some(packet);
        }
        loop {
            let (number, list) = match self.new_flows.front() {
                Some(&number) => (number, List::New),
                None => (*self.old_flows.front()?, List::Old),
            };
            let flow = self.flows.get_mut(&number).expect("a listed flow exists");
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum_bytes);
                self.pop_flow(list);
                self.old_flows.push_back(number);
                continue;
            }
            let before = flow.queue.packets.len();
            let served = flow.codel.dequeue(now, &mut flow.queue, contents);
            self.packets -= before - flow.queue.packets.len();
            if let Some(packet) = served {
                flow.deficit -= i64::from(contents.len_bytes(&packet));
                return Some(packet);
            }
            // A new flow that is empty moves to the old flows, so that it does not return as new at once.
            if list == List::New && !self.old_flows.is_empty() {
                self.old_flows.push_back(number);
            } else {
                flow.membership = Membership::None;
            }
            self.pop_flow(list);
        }
    }

    /// Removes every packet for which `matches` holds and hands it to `sink`.
    pub fn remove_matching(
        &mut self,
        mut matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
        len_bytes: impl Fn(&T) -> u32,
    ) {
        let mut gone = 0;
        let mut takes = |packet: &T| {
            let take = matches(packet);
            if take {
                gone += 1;
                sink(*packet);
            }
            take
        };
        self.routing.retain(|packet| !takes(packet));
        for flow in self.flows.values_mut() {
            let FlowQueue { packets: held, bytes } = &mut flow.queue;
            held.retain(|held| {
                let take = takes(&held.packet);
                if take {
                    *bytes -= u64::from(len_bytes(&held.packet));
                }
                !take
            });
        }
        self.packets -= gone;
    }

    /// Returns the packets in the queue: routing messages, then flow by flow.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let of_flows =
            self.flows.values().flat_map(|flow| flow.queue.packets.iter().map(|held| &held.packet));
        self.routing.iter().chain(of_flows)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    fn push(&mut self, now: Instant, packet: T, contents: &impl PacketAccess<T>) {
        let number = flow_index(contents.flow(&packet), self.config.flows);
        let flow = self.flows.entry(number).or_insert_with(|| Flow::new(self.config.codel));
        flow.queue.packets.push_back(Queued { packet, enqueued_at: now });
        flow.queue.bytes += u64::from(contents.len_bytes(&packet));
        if flow.membership == Membership::None {
            flow.membership = Membership::Listed;
            flow.deficit = i64::from(self.config.quantum_bytes);
            self.new_flows.push_back(number);
        }
    }

    /// Takes the head flow off its list.
    fn pop_flow(&mut self, list: List) {
        match list {
            List::New => self.new_flows.pop_front(),
            List::Old => self.old_flows.pop_front(),
        };
    }

    /// Returns the flow with most bytes, if any has some.
    fn longest_flow(&mut self) -> Option<&mut Flow<T>> {
        self.flows.values_mut().filter(|flow| flow.queue.bytes > 0).max_by_key(|flow| flow.queue.bytes)
    }
}

impl<T> Flow<T> {
    fn new(codel: CoDelConfig) -> Self {
        Self {
            queue: FlowQueue { packets: VecDeque::new(), bytes: 0 },
            codel: CoDel::new(codel),
            deficit: 0,
            membership: Membership::None,
        }
    }
}

/// Returns the queue of a flow: a multiplicative hash of its number (Knuth).
fn flow_index(flow: u64, buckets: NonZeroU16) -> u16 {
    let mixed = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(mixed) * u128::from(buckets.get())) >> 64) as u16
}

#[cfg(test)]
mod tests;
