//! User-defined algorithms that do the same as the built-in ones, and some that fail.

use hopline_core::{Duration, Instant, RandomStream};
use hopline_queue::custom::{DequeueDecision, EnqueueDecision, HeadOfQueue, PacketInfo, QueueInfo};
use hopline_queue::{Class, CoDelConfig, CustomDiscipline};
use hopline_transport::tcp::{
    CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
};

/// Unit of window growth beyond slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    Acks,
    Bytes,
}

/// Additive increase, and half of it after a loss (RFC 5681).
#[derive(Debug)]
pub(crate) struct Reno {
    counts: Counts,
    counted: f64,
    /// Before the last reduction.
    counted_before: f64,
}

impl Reno {
    pub(crate) fn new(counts: Counts) -> Self {
        Self { counts, counted: 0.0, counted_before: 0.0 }
    }

    fn halve(&mut self, reduced_bytes: u32) -> f64 {
        (self.counted_before, self.counted) = (self.counted, 0.0);
        f64::from(reduced_bytes / 2)
    }
}

impl CustomCongestionControl for Reno {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        let CustomCcState { cwnd_bytes, ssthresh_bytes, mss_bytes, .. } = ack.state;
        let mss = f64::from(mss_bytes);
        if cwnd_bytes < f64::from(ssthresh_bytes) {
            return Ok(ack.slow_start_bytes);
        }
        match self.counts {
            Counts::Acks => Ok(cwnd_bytes + (mss * mss / cwnd_bytes).floor().max(1.0)),
            Counts::Bytes if !ack.window_was_full => Ok(cwnd_bytes),
            Counts::Bytes => {
                self.counted += ack.acked_bytes as f64;
                if self.counted < cwnd_bytes {
                    return Ok(cwnd_bytes);
                }
                self.counted -= cwnd_bytes;
                Ok(cwnd_bytes + mss)
            }
        }
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(self.halve(loss.reduction_base_bytes))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(self.halve(timeout.reduction_base_bytes))
    }

    fn on_undo(&mut self, _state: &CustomCcState) -> Result<(), String> {
        self.counted = self.counted_before;
        Ok(())
    }
}

/// Grows by a random number of bytes, of the seed alone.
#[derive(Debug)]
pub(crate) struct RandomGrowth(pub(crate) RandomStream);

impl CustomCongestionControl for RandomGrowth {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        Ok(ack.state.cwnd_bytes + f64::from(self.0.below(200)))
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduction_base_bytes) * self.0.unit())
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes / 2))
    }
}

/// Answers to an acknowledgment with whatever a function says of its number.
pub(crate) struct ScriptedWindow<F>(pub(crate) F, pub(crate) u32);

impl<F> std::fmt::Debug for ScriptedWindow<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answers({})", self.1)
    }
}

impl<F: FnMut(u32) -> Result<f64, String> + Send> CustomCongestionControl for ScriptedWindow<F> {
    fn on_ack(&mut self, _ack: &CustomCcAck) -> Result<f64, String> {
        self.1 += 1;
        (self.0)(self.1)
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduction_base_bytes / 2))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes / 2))
    }
}

/// Lets everything in.
#[derive(Debug)]
pub(crate) struct AdmitAll;

impl CustomDiscipline for AdmitAll {
    fn enqueue(&mut self, _packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        Ok(EnqueueDecision::Enqueue { rank: 0.0 })
    }

    fn dequeue(&mut self, _head: &HeadOfQueue, _queue: &QueueInfo) -> Result<DequeueDecision, String> {
        Ok(DequeueDecision::Serve)
    }
}

/// The newest routing message goes first, as in ns-2.
#[derive(Debug, Default)]
pub(crate) struct RoutingFirst {
    came: f64,
}

impl CustomDiscipline for RoutingFirst {
    fn enqueue(&mut self, packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        if packet.class != Class::Routing {
            return Ok(EnqueueDecision::Enqueue { rank: 0.0 });
        }
        self.came += 1.0;
        Ok(EnqueueDecision::Enqueue { rank: -self.came })
    }

    fn dequeue(&mut self, _head: &HeadOfQueue, _queue: &QueueInfo) -> Result<DequeueDecision, String> {
        Ok(DequeueDecision::Serve)
    }
}

/// CoDel as RFC 8289 has it in words (§4): what waits above the target for an interval is dropped, faster and faster.
#[derive(Debug)]
pub(crate) struct CustomCoDel {
    config: CoDelConfig,
    first_above: Option<Instant>,
    dropping: bool,
    count: u32,
    last_count: u32,
    drop_next: Instant,
    /// A drop began the dropping state, and what follows it is served.
    began: bool,
}

impl CustomCoDel {
    pub(crate) fn new(config: CoDelConfig) -> Self {
        let (first_above, drop_next) = (None, Instant::ZERO);
        Self { config, first_above, dropping: false, count: 0, last_count: 0, drop_next, began: false }
    }

    fn is_late(&mut self, head: &HeadOfQueue, queue: &QueueInfo) -> bool {
        if head.queueing_delay < self.config.target || queue.bytes <= u64::from(self.config.packet_bytes) {
            self.first_above = None;
            return false;
        }
        queue.now >= *self.first_above.get_or_insert(queue.now + self.config.interval)
    }

    fn after(&self, from: Instant) -> Instant {
        from + Duration::from_secs_f64(self.config.interval.as_secs_f64() / f64::from(self.count).sqrt())
    }
}

impl CustomDiscipline for CustomCoDel {
    fn enqueue(&mut self, _packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        Ok(EnqueueDecision::Enqueue { rank: 0.0 })
    }

    fn dequeue(&mut self, head: &HeadOfQueue, queue: &QueueInfo) -> Result<DequeueDecision, String> {
        let late = self.is_late(head, queue);
        if std::mem::take(&mut self.began) {
            return Ok(DequeueDecision::Serve);
        }
        if !late {
            self.dropping = false;
        } else if !self.dropping {
            let since_last = self.count.saturating_sub(self.last_count);
            let recent = queue.now.since(self.drop_next) < self.config.interval.saturating_mul(16);
            self.count = if since_last > 1 && recent { since_last } else { 1 };
            (self.last_count, self.dropping, self.began) = (self.count, true, true);
            self.drop_next = self.after(queue.now);
            return Ok(DequeueDecision::Drop);
        } else if queue.now >= self.drop_next {
            self.count += 1;
            self.drop_next = self.after(self.drop_next);
            return Ok(DequeueDecision::Drop);
        }
        Ok(DequeueDecision::Serve)
    }
}
