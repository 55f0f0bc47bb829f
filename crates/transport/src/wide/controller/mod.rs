//! Congestion control of an endpoint: the interface, and implementations by other protocols' algorithms.
//!
//! | controller | algorithm |
//! |---|---|
//! | [`RateController`](super::RateController) | TPA-wide's own |
//! | [`CubicController`] | CUBIC of TCP (RFC 9438) |
//! | [`BbrController`] | BBR of TCP, version 1 or 3 |
//!
//! An [`Endpoint`](super::Endpoint) has its controller as a type parameter. `Box<dyn Controller>` is a controller, too,
//! for a choice at run time.

mod bbr;
pub(super) mod cubic;

pub use bbr::BbrController;
pub use cubic::CubicController;

use core::fmt::Debug;
use hopline_core::{Duration, Instant};

/// Initial window of the controllers that are not TPA-wide's own, packets (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// Congestion control of an [`Endpoint`](super::Endpoint).
///
/// The endpoint detects losses, retransmits, and paces by the rate within the window. Rates are bytes per second, headers
/// included. Equal calls must give equal results: no clock, no randomness without a seed.
///
/// # Example
///
/// ```
/// use hopline_core::Length;
/// use hopline_transport::tcp::CubicConfig;
/// use hopline_transport::wide::{Config, Controller, CubicController, Endpoint};
///
/// // The type of the controller is that of the endpoint.
/// let cubic = |packet| CubicController::new(CubicConfig::RFC9438, packet);
/// let endpoint = Endpoint::<Length, _>::with_controller(Config::DEFAULT, cubic);
/// assert!(endpoint.is_ok());
/// // It is chosen at run time.
/// let boxed = |packet| -> Box<dyn Controller> { Box::new(cubic(packet)) };
/// assert!(Endpoint::<Length, _>::with_controller(Config::DEFAULT, boxed).is_ok());
/// ```
pub trait Controller: Debug + Send {
    /// Returns the pacing rate, bytes per second; `None`: no pacing.
    fn pacing_rate(&self) -> Option<f64>;

    /// Returns the bytes that may be in flight. `least_rtt`: minimum round-trip time; `reordering`: time by which the
    /// detection of a loss lags; `together`: packets that are acknowledged at once.
    fn window(&self, least_rtt: Duration, reordering: Duration, together: u32) -> u64;

    /// Returns the sending time of `packets` full packets; `None`: no estimate of the path yet.
    fn sending_time(&self, packets: u32) -> Option<Duration>;

    /// Returns whether the path is known and its baseline loss rate is below `share`, so that acknowledgments are not
    /// urgent.
    fn is_loss_below(&self, share: f64) -> bool;

    /// Returns whether a packet of the last round trip had no queueing delay, jitter aside.
    fn saw_empty_queue(&self) -> bool;

    /// Returns the number of reductions of the rate or of the window.
    fn reductions(&self) -> u64;

    /// Starts on an open connection.
    fn on_established(&mut self);

    /// Processes the transmission of a packet. The default does nothing.
    fn on_sent(&mut self, packet: &SentPacket) {
        let _ = packet;
    }

    /// Processes the loss of a packet, before the acknowledgment that shows it. The default does nothing.
    fn on_packet_lost(&mut self, now: Instant, number: u64, bytes: u32) {
        let _ = (now, number, bytes);
    }

    /// Processes an acknowledgment, after loss detection.
    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome;

    /// Processes the loss of `packets` packets that a timer has shown.
    fn on_loss(&mut self, packets: u64);

    /// Discards the samples after an outage, since they do not show the rate.
    fn discard_samples(&mut self);

    /// Discards what queueing delays have shown: the least delay is measured anew, and a standing queue may count as none. The default
    /// does nothing.
    fn on_base_delay_reset(&mut self) {}

    /// Restarts on another path, or after a long outage. `next_number`: number of the next packet.
    fn restart(&mut self, now: Instant, next_number: u64);
}

impl<C: Controller + ?Sized> Controller for Box<C> {
    fn pacing_rate(&self) -> Option<f64> {
        (**self).pacing_rate()
    }

    fn window(&self, least_rtt: Duration, reordering: Duration, together: u32) -> u64 {
        (**self).window(least_rtt, reordering, together)
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        (**self).sending_time(packets)
    }

    fn is_loss_below(&self, share: f64) -> bool {
        (**self).is_loss_below(share)
    }

    fn saw_empty_queue(&self) -> bool {
        (**self).saw_empty_queue()
    }

    fn reductions(&self) -> u64 {
        (**self).reductions()
    }

    fn on_established(&mut self) {
        (**self).on_established();
    }

    fn on_sent(&mut self, packet: &SentPacket) {
        (**self).on_sent(packet);
    }

    fn on_packet_lost(&mut self, now: Instant, number: u64, bytes: u32) {
        (**self).on_packet_lost(now, number, bytes);
    }

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        (**self).on_ack(ack)
    }

    fn on_loss(&mut self, packets: u64) {
        (**self).on_loss(packets);
    }

    fn discard_samples(&mut self) {
        (**self).discard_samples();
    }

    fn on_base_delay_reset(&mut self) {
        (**self).on_base_delay_reset();
    }

    fn restart(&mut self, now: Instant, next_number: u64) {
        (**self).restart(now, next_number);
    }
}

/// Transmission of a packet that requests an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Time of sending.
    pub now: Instant,
    /// Its number.
    pub number: u64,
    /// Its length, bytes, headers included.
    pub bytes: u32,
    /// Bytes in flight before it.
    pub in_flight: u64,
}

/// Arrival reported by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// Time of sending.
    pub sent: Instant,
    /// Time of arrival, microseconds of the peer's clock.
    pub at_us: i64,
    /// Bytes sent by then, its own included.
    pub sent_bytes: u64,
}

/// Acknowledgment, as the controller sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckSample {
    /// Time of arrival of the acknowledgment.
    pub now: Instant,
    /// Largest newly acknowledged number, its arrival, and its delay above the least one-way delay; `None` without a new
    /// full packet.
    pub newest: Option<(u64, Arrival, Duration)>,
    /// Delivered bytes, headers included.
    pub delivered: u64,
    /// Delivered packets.
    pub packets: u64,
    /// Lost packets.
    pub lost: u64,
    /// Packets among the delivered ones that were declared lost before.
    pub spurious_losses: u64,
    /// Packets with an ECN mark.
    pub marks: u32,
    /// Limit of the sender when the newest packet was sent.
    pub limit: SendLimit,
    /// Number of the next packet to send.
    pub next_number: u64,
    /// Bytes in flight after the acknowledgment.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Least duration of a round trip that counts.
    pub min_round: Duration,
    /// Time since the last packet without queueing delay.
    pub base_age: Duration,
}

/// Limit of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendLimit {
    /// The rate or the window.
    Path,
    /// The user, or the peer's receive window.
    Application,
}

/// Outcome of an acknowledgment for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoundOutcome {
    /// The round trip is not over.
    NotOver,
    /// A round trip is over.
    Over,
    /// A round trip is over, and the base delay has to be measured again.
    ProbeRtt,
    /// A round trip is over, and the delay of the path has changed: delays measured before say nothing about it.
    PathChanged,
}
