//! CoDel (RFC 8289): drops packets at the head of the queue if the queueing delay stays above the target for too long.
//!
//! [`CoDel`] decides and holds no packets; queues call it for each packet that they serve.

use crate::contents::{Action, Contents};
use crate::drop_tail::Class;
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
    pub action: Action,
}

impl CoDelConfig {
    /// Parameters of RFC 8289.
    pub const RFC8289: Self = Self {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        packet_bytes: 1514,
        action: Action::Drop,
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
pub struct Held<T> {
    /// The packet.
    pub packet: T,
    /// Enqueue time.
    pub since: Instant,
}

/// Packets in the order in which they are served.
pub(crate) trait Backlog<T> {
    /// Removes and returns the head; `len_bytes` returns the length of a packet.
    fn pop(&mut self, len_bytes: impl Fn(&T) -> u32) -> Option<Held<T>>;

    /// Bytes that are left.
    fn bytes(&self) -> u64;
}

/// CoDel of one queue.
#[derive(Clone, Debug)]
pub struct CoDel {
    config: CoDelConfig,
    /// Time at which the delay will have been above the target for an interval; `None`: it is not above.
    first_above: Option<Instant>,
    phase: Phase,
    /// Drops since the dropping state was entered, and that count at the latest entry (`count_` and `lastcount_` of RFC
    /// 8289).
    count: u32,
    last_count: u32,
    /// Time of the next drop, or of the one that would have followed.
    drop_next: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Dropping,
}

/// Judgement of the packet at the head: whether it may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Fine,
    TooLate,
}

impl CoDel {
    /// Creates a controller of an empty queue.
    #[must_use]
    pub fn new(config: CoDelConfig) -> Self {
        Self {
            config,
            first_above: None,
            phase: Phase::Idle,
            count: 0,
            last_count: 0,
            drop_next: Instant::ZERO,
        }
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &CoDelConfig {
        &self.config
    }

    /// Serves the next packet of `backlog` (§5.5). Reports drops to `contents`.
    pub(crate) fn serve<T: Copy>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl Contents<T>,
    ) -> Option<T> {
        let (packet, judgement) = self.look(now, backlog, contents)?;
        match (self.phase, judgement) {
            (Phase::Idle, Judgement::Fine) => Some(packet),
            (Phase::Dropping, Judgement::Fine) => {
                self.phase = Phase::Idle;
                Some(packet)
            }
            (Phase::Idle, Judgement::TooLate) => self.begin(now, packet, backlog, contents),
            (Phase::Dropping, Judgement::TooLate) => self.go_on(now, packet, backlog, contents),
        }
    }

    /// Enters the dropping state with `packet`. The drop rate starts near the last one that controlled the queue, if that is
    /// recent (§5.4).
    fn begin<T: Copy>(
        &mut self,
        now: Instant,
        mut packet: T,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl Contents<T>,
    ) -> Option<T> {
        self.phase = Phase::Dropping;
        let since_last = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.config.interval.saturating_mul(16);
        self.count = if since_last > 1 && recent { since_last } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        if self.is_marked(&mut packet, contents) {
            return Some(packet);
        }
        contents.dropped(packet);
        Some(self.look_again(now, backlog, contents)?.0)
    }

    /// Drops all packets that are due.
    fn go_on<T: Copy>(
        &mut self,
        now: Instant,
        mut packet: T,
        backlog: &mut impl Backlog<T>,
        contents: &mut impl Contents<T>,
    ) -> Option<T> {
        while now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if self.is_marked(&mut packet, contents) {
                self.drop_next = self.control_law(self.drop_next);
                break;
            }
            contents.dropped(packet);
            let (next, judgement) = self.look_again(now, backlog, contents)?;
            packet = next;
            if judgement == Judgement::Fine {
                self.phase = Phase::Idle;
                break;
            }
            self.drop_next = self.control_law(self.drop_next);
        }
        Some(packet)
    }

    /// Takes the head of the queue after a drop. An empty queue ends the dropping state.
    fn look_again<T>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &impl Contents<T>,
    ) -> Option<(T, Judgement)> {
        let head = self.look(now, backlog, contents);
        if head.is_none() {
            self.phase = Phase::Idle;
        }
        head
    }

    /// Removes the head and judges it (§5.6).
    fn look<T>(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog<T>,
        contents: &impl Contents<T>,
    ) -> Option<(T, Judgement)> {
        let Some(head) = backlog.pop(|packet| contents.len_bytes(packet)) else {
            self.first_above = None;
            return None;
        };
        let judgement = match contents.class(&head.packet) {
            Class::Routing | Class::Urgent => Judgement::Fine,
            Class::Data => self.judge(now, now.since(head.since), backlog.bytes()),
        };
        Some((head.packet, judgement))
    }

    fn judge(&mut self, now: Instant, sojourn: Duration, left_bytes: u64) -> Judgement {
        if sojourn < self.config.target || left_bytes <= u64::from(self.config.packet_bytes) {
            self.first_above = None;
            return Judgement::Fine;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                Judgement::Fine
            }
            Some(at) if now >= at => Judgement::TooLate,
            Some(_) => Judgement::Fine,
        }
    }

    /// Returns interval / √count after `from` (§5.3).
    fn control_law(&self, from: Instant) -> Instant {
        let wait = self.config.interval.as_secs_f64() / libm::sqrt(f64::from(self.count.max(1)));
        from + Duration::from_secs_f64(wait)
    }

    fn is_marked<T>(&self, packet: &mut T, contents: &mut impl Contents<T>) -> bool {
        let marks = self.config.action.marks(contents.capability(packet));
        if marks {
            contents.mark(packet);
        }
        marks
    }
}

#[cfg(test)]
mod tests;
