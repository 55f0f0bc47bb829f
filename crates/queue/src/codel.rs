//! CoDel (RFC 8289): drops packets at the head of the queue if the queueing delay stays above the target for too long.
//!
//! [`CoDel`] decides and holds no packets; queues call it for each packet that they serve.

use crate::drop_tail::Class;
use crate::packet_access::{PacketAccess, SignalAction};
use hopline_core::{Duration, Instant};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// TARGET: acceptable standing queueing delay. Above 0; default 5 ms (RFC 8289 §4.4). A network of a few Mb/s needs a
    /// target above the airtime of a packet.
    pub target: Duration,
    /// INTERVAL: time for which the delay must stay above the target before the first drop, some round-trip times. Above 0;
    /// default 100 ms (§4.3).
    pub interval: Duration,
    /// Backlog in bytes up to which there is no congestion (§5.6): a full packet. Default 1514.
    pub packet_bytes: u32,
    /// Action on a packet that is chosen. Default drop.
    pub action: SignalAction,
}

impl CoDelConfig {
    /// Parameters of RFC 8289.
    pub const RFC8289: Self = Self {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        packet_bytes: 1514,
        action: SignalAction::Drop,
    };

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        let rules = [
            (!self.target.is_zero(), "a target above 0"),
            (!self.interval.is_zero(), "an interval above 0"),
            (self.target <= self.interval, "a target no longer than the interval"),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }
}

/// Packet in a queue, with its enqueue time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<T> {
    /// The packet.
    pub packet: T,
    /// Enqueue time.
    pub enqueued_at: Instant,
}

/// Packets in the order in which they are served.
pub(crate) trait Backlog<T> {
    /// Removes and returns the head; `len_bytes` returns the length of a packet.
    fn pop(&mut self, len_bytes: impl Fn(&T) -> u32) -> Option<Queued<T>>;

    /// Bytes that are left.
    fn bytes(&self) -> u64;
}

/// CoDel of one queue.
#[derive(Clone, Debug)]
pub struct CoDel {
    config: CoDelConfig,
    /// Time at which the delay will have been above the target for an interval; `None`: it is not above.
    first_above_time: Option<Instant>,
    state: State,
    /// Drops since the dropping state was entered, and that count at the latest entry (`count_` and `lastcount_` of RFC
    /// 8289).
    count: u32,
    last_count: u32,
    /// Time of the next drop, or of the one that would have followed.
    next_drop: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Dropping,
}

/// Judgement of the packet at the head: whether it may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SojournTest {
    BelowTarget,
    AboveTarget,
}

impl CoDel {
    /// Creates a controller of an empty queue.
    #[must_use]
    pub fn new(config: CoDelConfig) -> Self {
        Self {
            config,
            first_above_time: None,
            state: State::Idle,
            count: 0,
            last_count: 0,
            next_drop: Instant::ZERO,
        }
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &CoDelConfig {
        &self.config
    }

    /// Serves the next packet of `backlog` (§5.5). Reports drops to `contents`.
    pub(crate) fn dequeue<T: Copy>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl PacketAccess<T>,
    ) -> Option<T> {
        let (packet, judgement) = self.pop_and_test(now, backlog, contents)?;
        match (self.state, judgement) {
            (State::Idle, SojournTest::BelowTarget) => Some(packet),
            (State::Dropping, SojournTest::BelowTarget) => {
                self.state = State::Idle;
                Some(packet)
            }
            (State::Idle, SojournTest::AboveTarget) => self.enter_dropping(now, packet, backlog, contents),
            (State::Dropping, SojournTest::AboveTarget) => {
                self.continue_dropping(now, packet, backlog, contents)
            }
        }
    }

    /// Enters the dropping state with `packet`. The drop rate starts near the last one that controlled the queue, if that is
    /// recent (§5.4).
    fn enter_dropping<T: Copy>(
        &mut self,
        now: Instant,
        mut packet: T,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl PacketAccess<T>,
    ) -> Option<T> {
        self.state = State::Dropping;
        let since_last = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.next_drop) < self.config.interval.saturating_mul(16);
        self.count = if since_last > 1 && recent { since_last } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.control_law(now);
        if self.try_mark(&mut packet, contents) {
            return Some(packet);
        }
        contents.dropped(packet);
        Some(self.pop_and_test_after_drop(now, backlog, contents)?.0)
    }

    /// Drops all packets that are due.
    fn continue_dropping<T: Copy>(
        &mut self,
        now: Instant,
        mut packet: T,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl PacketAccess<T>,
    ) -> Option<T> {
        while now >= self.next_drop {
            self.count = self.count.saturating_add(1);
            if self.try_mark(&mut packet, contents) {
                self.next_drop = self.control_law(self.next_drop);
                break;
            }
            contents.dropped(packet);
            let (next, judgement) = self.pop_and_test_after_drop(now, backlog, contents)?;
            packet = next;
            if judgement == SojournTest::BelowTarget {
                self.state = State::Idle;
                break;
            }
            self.next_drop = self.control_law(self.next_drop);
        }
        Some(packet)
    }

    /// Takes the head of the queue after a drop. An empty queue ends the dropping state.
    fn pop_and_test_after_drop<T>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &impl PacketAccess<T>,
    ) -> Option<(T, SojournTest)> {
        let head = self.pop_and_test(now, backlog, contents);
        if head.is_none() {
            self.state = State::Idle;
        }
        head
    }

    /// Removes the head and judges it (§5.6).
    fn pop_and_test<T>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &impl PacketAccess<T>,
    ) -> Option<(T, SojournTest)> {
        let Some(head) = backlog.pop(|packet| contents.len_bytes(packet)) else {
            self.first_above_time = None;
            return None;
        };
        let judgement = match contents.class(&head.packet) {
            Class::Routing | Class::Urgent => SojournTest::BelowTarget,
            Class::Data => self.test_sojourn(now, now.since(head.enqueued_at), backlog.bytes()),
        };
        Some((head.packet, judgement))
    }

    fn test_sojourn(&mut self, now: Instant, sojourn: Duration, left_bytes: u64) -> SojournTest {
        if sojourn < self.config.target || left_bytes <= u64::from(self.config.packet_bytes) {
            self.first_above_time = None;
            return SojournTest::BelowTarget;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.config.interval);
                SojournTest::BelowTarget
            }
            Some(at) if now >= at => SojournTest::AboveTarget,
            Some(_) => SojournTest::BelowTarget,
        }
    }

    /// Returns interval / √count after `from` (§5.3).
    fn control_law(&self, from: Instant) -> Instant {
        let wait = self.config.interval.as_secs_f64() / libm::sqrt(f64::from(self.count.max(1)));
        from + Duration::from_secs_f64(wait)
    }

    fn try_mark<T>(&self, packet: &mut T, contents: &mut impl PacketAccess<T>) -> bool {
        let marks = self.config.action.marks(contents.capability(packet));
        if marks {
            contents.mark(packet);
        }
        marks
    }
}

#[cfg(test)]
mod tests;
