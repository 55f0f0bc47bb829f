//! Congestion controllers in the shape of s2n-quic, behind the interface of quinn's.
//!
//! [`Controllers::of_s2n_quic`] takes an [`Endpoint`] of s2n-quic, which makes a
//! [`CongestionController`](s2n_quic_core::recovery::CongestionController) for each connection. quinn tells a controller less than
//! s2n-quic does. The [`Companion`] beside quinn adds the rest: it reads the datagrams, which are not encrypted here.
//!
//! | s2n-quic | here |
//! |---|---|
//! | `on_packet_sent` | each packet of a datagram that quinn has written |
//! | `on_rtt_update`, then `on_packet_lost`, `on_explicit_congestion`, `on_ack` | this order, although quinn reports acknowledgments first: `on_ack` is called when the datagram is processed |
//! | `on_packet_discarded` | bytes that quinn no longer counts as in flight after an ACK frame |
//! | window, pacing | `window` tells quinn for each datagram that it may be sent, or must wait |

mod convert;
mod outstanding;

use crate::controllers::{Backlog, Companion, Controllers};
use crate::frames::AckFrame;
use crate::packets::{Space, packets};
use convert::{Events, Random, instant, timestamp};
use hopline_core::{Purpose, RandomStream};
use outstanding::{Outstanding, SentPacket};
use quinn_proto::congestion::{Controller as QuinnController, ControllerFactory, ControllerMetrics};
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint};
use s2n_quic_core::recovery::{DEFAULT_INITIAL_RTT, RttEstimator};
use s2n_quic_core::transport::parameters::MaxAckDelay;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Window with which quinn sends one more datagram: it exceeds all bytes in flight, and quinn does not pace windows of this size.
const OPEN: u64 = 1 << 32;
/// Window with which quinn sends nothing but acknowledgments and probes.
const CLOSED: u64 = 1;

/// ACK Delay is in units of 2³ µs, the default of RFC 9000 §18.2, which quinn does not change.
const ACK_DELAY_EXPONENT: u32 = 3;

impl Controllers {
    /// Creates those of an endpoint in the shape of s2n-quic. `seed`: of the random numbers that its controllers get.
    #[must_use]
    pub fn of_s2n_quic<E: Endpoint>(endpoint: E, seed: u64) -> Self {
        let shared = Shared::default();
        let maker = Maker { endpoint: Mutex::new(endpoint), seed, shared: shared.clone() };
        Self::with_companion(Arc::new(maker), Arc::new(shared))
    }
}

/// Makes the controller of a connection.
struct Maker<E: Endpoint> {
    endpoint: Mutex<E>,
    seed: u64,
    shared: Shared<E::CongestionController>,
}

impl<E: Endpoint> ControllerFactory for Maker<E> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn QuinnController> {
        let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        let controller = convert::controller(&mut *endpoint, current_mtu);
        let random = RandomStream::global(self.seed, 0, Purpose::CustomCongestionControl);
        *self.shared.slot() = Some(Adapter::new(controller, Random(random), now, current_mtu));
        Box::new(self.shared.clone())
    }
}

/// Adapter that quinn and the endpoint share, from its making on.
struct Shared<C: CongestionController>(Arc<Mutex<Option<Adapter<C>>>>);

impl<C: CongestionController> Default for Shared<C> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<C: CongestionController> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: CongestionController> Shared<C> {
    fn slot(&self) -> MutexGuard<'_, Option<Adapter<C>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer of the adapter, or the default before there is a connection.
    fn with<T: Default>(&self, of: impl FnOnce(&mut Adapter<C>) -> T) -> T {
        self.slot().as_mut().map_or_else(T::default, of)
    }
}

impl<C: CongestionController> Companion for Shared<C> {
    fn before_transmit(&self, now: Instant) {
        self.with(|adapter| adapter.now = now);
    }

    fn on_transmit(&self, now: Instant, datagram: &[u8], backlog: Backlog) {
        self.with(|adapter| {
            adapter.now = now;
            for packet in packets(datagram) {
                adapter.handle_sent(packet.space, packet.bytes_in_flight(), backlog);
            }
        });
    }

    fn before_receive(&self, datagram: &[u8]) {
        self.with(|adapter| {
            for packet in packets(datagram) {
                adapter.ack_frames[packet.space as usize] = packet.ack();
            }
        });
    }

    fn after_receive(&self) {
        self.with(|adapter| {
            adapter.finish_ack();
            adapter.ack_frames = [None; 3];
        });
    }

    fn next_departure(&self, now: Instant) -> Option<Instant> {
        self.with(|adapter| adapter.next_departure(now))
    }
}

impl<C: CongestionController> QuinnController for Shared<C> {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &quinn_proto::RttEstimator,
    ) {
        self.with(|adapter| adapter.handle_acked(now, sent, bytes));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.with(|adapter| adapter.handle_end_of_acks(now, in_flight));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.with(|adapter| match lost_bytes {
            0 => adapter.handle_marks(now),
            _ => adapter.handle_losses(now, sent, persistent, lost_bytes),
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.with(|adapter| {
            adapter.max_datagram = new_mtu;
            adapter.controller.on_mtu_update(new_mtu, &mut adapter.events);
        });
    }

    fn window(&self) -> u64 {
        self.with(|adapter| adapter.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        self.with(|adapter| {
            let mut metrics = ControllerMetrics::default();
            metrics.congestion_window = adapter.controller.congestion_window().into();
            metrics.pacing_rate = adapter.events.pacing_rate;
            metrics
        })
    }

    /// Only for a new path, which no connection here has.
    fn clone_box(&self) -> Box<dyn QuinnController> {
        Box::new(Self(Arc::new(Mutex::new(self.slot().clone()))))
    }

    fn initial_window(&self) -> u64 {
        self.metrics().congestion_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Controller of s2n-quic with the state that s2n-quic keeps for it.
#[derive(Clone)]
struct Adapter<C: CongestionController> {
    controller: C,
    rtt: RttEstimator,
    random: Random,
    events: Events,
    outstanding: Outstanding<C::PacketInfo>,
    max_datagram: u16,
    /// Time at which quinn was last asked for a datagram.
    now: Instant,
    /// ACK frame in the datagram that is processed, of each packet number space.
    ack_frames: [Option<AckFrame>; 3],
    /// Packets with the mark CE that the controller knows of, of each space.
    ecn_ce: [u64; 3],
    /// Newest packet of which the acknowledgment gave a sample of the round-trip time, of each space.
    newest_sampled: [Option<u64>; 3],
    /// Packets of the ACK frame that is processed.
    acked: Option<Acked<C::PacketInfo>>,
}

/// Packets of an ACK frame, of which the controller is told after losses and marks.
#[derive(Clone, Copy)]
struct Acked<I> {
    at: Instant,
    newest: SentPacket<I>,
    bytes: u64,
    progress: AckProgress,
}

/// Progress of quinn in an ACK frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AckProgress {
    /// More packets may follow.
    Open,
    /// All packets are known.
    Complete,
}

impl<C: CongestionController> Adapter<C> {
    fn new(controller: C, random: Random, now: Instant, max_datagram: u16) -> Self {
        let mut rtt = RttEstimator::new(DEFAULT_INITIAL_RTT);
        rtt.on_max_ack_delay(MaxAckDelay::RECOMMENDED);
        Self {
            controller,
            rtt,
            random,
            events: Events::default(),
            outstanding: Outstanding::default(),
            max_datagram,
            now,
            ack_frames: [None; 3],
            ecn_ce: [0; 3],
            newest_sampled: [None; 3],
            acked: None,
        }
    }

    /// Handles a packet that was sent; 0 bytes: it is not in flight.
    fn handle_sent(&mut self, space: Space, bytes: u32, backlog: Backlog) {
        let in_flight = self.controller.bytes_in_flight().saturating_add(bytes);
        let room = self.controller.congestion_window().saturating_sub(in_flight);
        let is_app_limited = backlog == Backlog::Empty && room >= u32::from(self.max_datagram);
        let info = self.controller.on_packet_sent(
            timestamp(self.now),
            bytes as usize,
            (space == Space::Data).then_some(is_app_limited),
            &self.rtt,
            &mut self.events,
        );
        self.outstanding.insert(space, self.now, bytes, info);
    }

    /// Handles one packet of an ACK frame.
    fn handle_acked(&mut self, now: Instant, sent: Instant, bytes: u64) {
        if self.acked.as_ref().is_some_and(|acked| acked.progress == AckProgress::Complete) {
            // A second frame in a datagram.
            self.finish_ack();
        }
        let Some(packet) = self.outstanding.take_acked(sent, bytes) else { return };
        let before = self.acked.take();
        let newest = before.map_or(packet, |acked| match acked.newest.number > packet.number {
            true => acked.newest,
            false => packet,
        });
        let bytes = before.map_or(0, |acked| acked.bytes) + u64::from(packet.bytes);
        self.acked = Some(Acked { at: now, newest, bytes, progress: AckProgress::Open });
    }

    /// Handles the end of an ACK frame, after which quinn counts `in_flight` bytes.
    fn handle_end_of_acks(&mut self, now: Instant, in_flight: u64) {
        let excess = self.outstanding.bytes().saturating_sub(in_flight);
        if excess > 0 {
            let discarded = self.outstanding.take_discarded(excess);
            let bytes = discarded.iter().map(|packet| packet.bytes as usize).sum();
            self.controller.on_packet_discarded(bytes, &mut self.events);
        }
        let Some(acked) = &mut self.acked else { return };
        acked.progress = AckProgress::Complete;
        let SentPacket { number, space, sent, .. } = acked.newest;
        let newest_sampled = &mut self.newest_sampled[space as usize];
        // RFC 9002 §5.1: the largest acknowledged packet is newly acknowledged.
        if newest_sampled.is_none_or(|newest| number > newest) {
            *newest_sampled = Some(number);
            self.sample_rtt(now, space, sent);
        }
    }

    fn sample_rtt(&mut self, now: Instant, space: Space, sent: Instant) {
        let delay = self.ack_frames[space as usize].map_or(0, |ack| ack.delay);
        let number_space = match space {
            Space::Initial => PacketNumberSpace::Initial,
            Space::Handshake => PacketNumberSpace::Handshake,
            Space::Data => PacketNumberSpace::ApplicationData,
        };
        self.rtt.update_rtt(
            Duration::from_micros(delay.saturating_mul(1 << ACK_DELAY_EXPONENT)),
            now.saturating_duration_since(sent),
            timestamp(now),
            space == Space::Data,
            number_space,
        );
        self.controller.on_rtt_update(timestamp(sent), timestamp(now), &self.rtt, &mut self.events);
    }

    fn handle_losses(&mut self, now: Instant, newest: Instant, persistent: bool, bytes: u64) {
        let mut before = None;
        for packet in self.outstanding.take_lost(newest, bytes) {
            let starts_burst = before.is_none_or(|before| packet.number != before + 1);
            before = Some(packet.number);
            self.controller.on_packet_lost(
                packet.bytes,
                packet.info,
                persistent,
                starts_burst,
                &mut self.random,
                timestamp(now),
                &mut self.events,
            );
        }
        if persistent {
            // RFC 9002 §5.2.
            self.rtt.on_persistent_congestion();
        }
    }

    /// Handles that quinn has found the count of CE increased.
    fn handle_marks(&mut self, now: Instant) {
        let space = self.acked.as_ref().map_or(Space::Data, |acked| acked.newest.space) as usize;
        let seen = self.ack_frames[space].map_or(0, |ack| ack.ecn_ce).max(self.ecn_ce[space] + 1);
        let marks = seen - self.ecn_ce[space];
        self.ecn_ce[space] = seen;
        self.controller.on_explicit_congestion(marks, timestamp(now), &mut self.events);
    }

    /// Tells the controller of the packets of an ACK frame.
    fn finish_ack(&mut self) {
        let Some(acked) = self.acked.take() else { return };
        self.controller.on_ack(
            timestamp(acked.newest.sent),
            usize::try_from(acked.bytes).unwrap_or(usize::MAX),
            acked.newest.info,
            &self.rtt,
            &mut self.random,
            timestamp(acked.at),
            &mut self.events,
        );
    }

    fn next_departure(&self, now: Instant) -> Option<Instant> {
        let departure = self.controller.earliest_departure_time()?;
        (departure > timestamp(now)).then(|| instant(departure))
    }

    /// Returns the window with which quinn does what the controller says.
    fn window(&self) -> u64 {
        if self.next_departure(self.now).is_some() {
            return CLOSED;
        }
        if !self.controller.is_congestion_limited() || self.controller.requires_fast_retransmission() {
            return OPEN;
        }
        // No more than is in flight, so that quinn waits. If quinn has discarded packets since the last ACK frame, it counts less
        // than this, and the window decides.
        self.outstanding.bytes().min(u64::from(self.controller.congestion_window()) + 1).max(CLOSED)
    }
}
