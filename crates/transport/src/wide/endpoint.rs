//! TPA-wide endpoint: calls of the application and getters.

use super::config::Config;
use super::control::{MaxFilter, RateController};
use super::controller::Controller;
use super::loss_detection::OutOfOrderDetection;
use super::outstanding::{Chunk, OutstandingPackets};
use super::ranges::RangeSet;
use super::receive::ReceiveHalf;
use super::rtt::DelayEstimator;
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use crate::ConfigError;
use crate::Signal;
use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
use crate::lifecycle::{Close, Lifecycle, Role};
use crate::send_queue::SendQueue;
use hopline_core::{Duration, Instant, LinkId, Payload, StateMachine, TimerTable};
use hopline_wire::wide::{DATA_OVERHEAD, Opening, Packet, StreamEnd};
use std::collections::BTreeMap;

/// Length of the IPv4 and UDP headers, bytes.
pub(super) const NETWORK_OVERHEAD: u32 = 28;
/// Least lifetime of the minimum round-trip time.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// Bytes of receive buffer per out-of-order piece that may be kept, so that a peer cannot fill memory with tiny pieces.
const BYTES_PER_PIECE: u64 = 512;

/// One end of one TPA-wide connection.
///
/// An endpoint lives for one connection: make it, [`connect`](Self::connect) or [`listen`](Self::listen), transfer,
/// [`close`](Self::close). It knows neither addresses, keys nor connection IDs. `C` is its congestion control.
///
/// # Example
///
/// ```
/// use hopline_core::{Instant, Length, LinkId, StateMachine};
/// use hopline_transport::wide::{Config, Endpoint, State};
///
/// let now = Instant::ZERO;
/// let [mut a, mut b] = [(); 2].map(|()| Endpoint::<Length>::new(Config::DEFAULT).expect("valid"));
/// b.listen().expect("a new endpoint");
/// a.connect(now).expect("a new endpoint");
/// a.send(now, Length(5000)).expect("no limit");
/// // The opening and the first data, over a path without delay.
/// for _ in 0..3 {
///     while let Some(packet) = a.poll_transmit(now) {
///         b.handle_packet(now, LinkId::ONLY, packet);
///     }
///     while let Some(packet) = b.poll_transmit(now) {
///         a.handle_packet(now, LinkId::ONLY, packet);
///     }
/// }
/// assert_eq!(a.state(), State::Established);
/// assert!(b.recv().is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload, C = RateController> {
    pub(super) config: Config,
    pub(super) lifecycle: Lifecycle,
    pub(super) snd: SendHalf<P>,
    pub(super) rcv: ReceiveHalf<P>,
    pub(super) delays: DelayEstimator,
    pub(super) control: C,
    pub(super) path: PathState,
    pub(super) timers: TimerTable<Timer, 8>,
    pub(super) pending: PendingPackets,
    /// Number of openings sent.
    pub(super) openings_sent: u32,
    /// Time of the last packet from the peer.
    pub(super) last_heard: Instant,
    /// Start of the current wait for the peer, if it has to answer.
    pub(super) waiting_since: Instant,
    pub(super) stats: Stats,
}

/// State of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    Alive,
    /// Silent for a time-out, or gone according to the network layer. `since`: start; `probes`: number of probes sent.
    Silent {
        since: Instant,
        probes: u32,
    },
}

/// Packets to send apart from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct PendingPackets {
    pub(super) opening: bool,
    pub(super) ack: bool,
    /// A packet that requests an answer, regardless of rate and window.
    pub(super) probe: bool,
    pub(super) reset: bool,
}

/// Sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct SendHalf<P> {
    pub(super) queue: SendQueue<P>,
    /// First position that was never sent.
    pub(super) next: u64,
    /// Positions that the peer has received.
    pub(super) acked: RangeSet,
    /// First position that the peer has not received.
    pub(super) una: u64,
    /// Data declared lost, by offset.
    pub(super) lost: BTreeMap<u64, Chunk>,
    pub(super) closing: CloseState,
    pub(super) outstanding: OutstandingPackets,
    pub(super) detection: OutOfOrderDetection,
    /// Total of sent bytes, with the network layer's headers.
    pub(super) sent_bytes: u64,
    /// Position up to which the peer accepts data.
    pub(super) limit: u64,
    pub(super) mss: u16,
    /// Release time of the next packet.
    pub(super) next_release: Instant,
    /// Number of consecutive data packets that were not urgent.
    pub(super) consecutive_not_urgent: u32,
    /// Most packets that an acknowledgment brought news of in the last rounds.
    pub(super) acked_at_once: MaxFilter<8>,
    /// ECN marks that the peer has reported.
    pub(super) marks: u32,
    /// First packet after those sent while there was nothing more to send.
    pub(super) app_limited_until: u64,
    /// Position after the highest sent, and whether the end of the stream was sent.
    pub(super) highest_sent: u64,
    pub(super) end_sent: bool,
}

impl<P> SendHalf<P> {
    /// Returns the part of `chunk` that the peer has not received, if any.
    pub(super) fn missing(&self, chunk: Chunk) -> Option<Chunk> {
        let range = chunk.range();
        if range.end > self.una && !(chunk.len > 0 && self.acked.covers(range.clone())) {
            return Some(chunk);
        }
        let end_missing = chunk.end == StreamEnd::Yes && self.closing != CloseState::FinAcked;
        end_missing.then_some(Chunk { offset: range.end, len: 0, end: StreamEnd::Yes })
    }
}

/// State of the user's close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseState {
    /// The user has not closed.
    Open,
    /// The end of the stream has to be sent.
    FinDue,
    /// The end of the stream is sent.
    FinSent,
    /// The end of the stream is acknowledged.
    FinAcked,
}

impl<P: Payload> Endpoint<P> {
    /// Creates a closed endpoint with TPA-wide's own congestion control.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_controller(config, |packet| RateController::new(config.control, packet))
    }
}

impl<P: Payload, C: Controller> Endpoint<P, C> {
    /// Creates a closed endpoint with the congestion control that `controller` makes for a length of a full packet in
    /// bytes, headers included. [`Config::control`] has no effect but on [`RateController`].
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn with_controller(config: Config, controller: impl FnOnce(u32) -> C) -> Result<Self, ConfigError> {
        config.validate()?;
        let packet = u32::from(config.mss) + DATA_OVERHEAD as u32 + NETWORK_OVERHEAD;
        Ok(Self {
            config,
            lifecycle: Lifecycle::new(),
            snd: SendHalf {
                queue: SendQueue::new(0, config.send_buffer),
                next: 0,
                acked: RangeSet::default(),
                una: 0,
                lost: BTreeMap::new(),
                closing: CloseState::Open,
                outstanding: OutstandingPackets::default(),
                detection: OutOfOrderDetection::new(config.loss_detection),
                sent_bytes: 0,
                limit: 0,
                mss: config.mss,
                next_release: Instant::ZERO,
                consecutive_not_urgent: 0,
                acked_at_once: MaxFilter::new(),
                marks: 0,
                app_limited_until: 0,
                highest_sent: 0,
                end_sent: false,
            },
            rcv: ReceiveHalf::new(
                config.ack,
                (config.initial_receive_window, config.receive_buffer),
                (config.receive_buffer / BYTES_PER_PIECE).max(16) as usize,
            ),
            delays: DelayEstimator::new(MIN_RTT_LIFETIME),
            control: controller(packet),
            path: PathState::Alive,
            timers: TimerTable::new(),
            pending: PendingPackets::default(),
            openings_sent: 0,
            last_heard: Instant::ZERO,
            waiting_since: Instant::ZERO,
            stats: Stats::default(),
        })
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Active, State::SynSent)?;
        self.send_opening(now);
        Ok(())
    }

    /// Waits for the peer to open the connection.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Passive, State::Listen)
    }

    /// Waits for the end of a handshake of a lower layer, such as encryption. That handshake carries what
    /// [`connect`](Self::connect) and [`listen`](Self::listen) would send in packets. Data to send are accepted.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn start_lower_handshake(&mut self) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Active, State::SynSent)
    }

    /// Opens the connection at once, after a handshake of a lower layer that gave each end the other's
    /// [`opening_parameters`](Self::opening_parameters). An end that has [waited](Self::start_lower_handshake) for it sends a packet at once, with or
    /// without data, to show that the handshake is complete. `round_trip`: that of the handshake, if measured.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn on_lower_handshake_done(
        &mut self,
        now: Instant,
        peer: Opening,
        round_trip: Option<Duration>,
    ) -> Result<(), OpenError> {
        match (self.lifecycle.role(), self.state()) {
            (Role::Unopened, State::Closed) => self.lifecycle.open(Role::Passive, State::Closed)?,
            (Role::Active, State::SynSent) if self.openings_sent == 0 => self.pending.probe = true,
            _ => return Err(OpenError::AlreadyOpened),
        }
        self.last_heard = now;
        self.apply_opening(peer);
        if let Some(round_trip) = round_trip {
            self.delays.sample(now, round_trip, Duration::ZERO);
        }
        self.establish(now);
        Ok(())
    }

    /// Processes a change of the path. Estimates are discarded as after a long outage, and the new path is probed at once
    /// if the old one was silent.
    pub fn handle_path_change(&mut self, now: Instant) {
        if !self.state().is_synchronized() || self.state() == State::TimeWait {
            return;
        }
        self.delays.clear();
        self.snd.next_release = now;
        self.control.restart(now, self.snd.outstanding.peek_number());
        if let PathState::Silent { since, .. } = &mut self.path {
            *since = now;
            self.pending.probe = true;
        }
    }

    /// Skips the number of the next packet, which another layer uses, and returns it. The peer's endpoint has to receive
    /// an empty packet with that number.
    pub fn skip_number(&mut self) -> u64 {
        self.snd.outstanding.take_number()
    }

    /// Skips the numbers of packets below `number`, which a lower layer will never carry.
    pub fn skip_numbers_to(&mut self, number: u64) {
        self.snd.outstanding.skip_to(number);
    }

    /// Returns the highest acknowledged number of the packets that request an answer.
    #[must_use]
    pub fn highest_acknowledged(&self) -> Option<u64> {
        self.snd.detection.newest().map(|newest| newest.packet_number)
    }

    /// Requests an answer of the peer with the next packet, with or without data. Does nothing while the connection is
    /// not open.
    pub fn request_answer(&mut self) {
        self.pending.probe |= self.may_request_answer();
    }

    /// Accepts data to send, all or none. The connection need not be open yet.
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room.
    pub fn send(&mut self, _now: Instant, data: P) -> Result<(), SendError> {
        self.lifecycle.check_send()?;
        self.snd.queue.push(data)
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.read()?;
        if self.state().may_receive() && self.rcv.needs_limit_update() {
            self.pending.ack = true;
        }
        Some(data)
    }

    /// Closes the sending direction after all accepted data are sent; data of the peer are still received.
    ///
    /// # Errors
    /// The connection is not open, or was closed by the user before.
    pub fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        match self.lifecycle.close(self.snd.queue.len())? {
            Close::Abrupt => self.terminate(CloseReason::Finished),
            Close::Graceful => self.snd.closing = CloseState::FinDue,
        }
        Ok(())
    }

    /// Ends the connection at once, with a reset to a peer that knows it. Does nothing when closed.
    pub fn abort(&mut self, _now: Instant) {
        let tells_peer = self.state().is_known_to_peer();
        if self.state() != State::Closed {
            self.terminate(CloseReason::Aborted);
            self.pending.reset = tells_peer;
        }
    }

    /// Returns the connection state.
    #[must_use]
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { reductions: self.control.reductions(), ..self.stats }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the bytes that may be in flight.
    #[must_use]
    pub fn window(&self) -> u64 {
        // Packets sent early, or late by as much, are in flight beyond the window.
        let bursts = self.config.pace_ahead.saturating_mul(2);
        let window = |together| {
            self.control.window(self.delays.min_rtt(), self.reordering_window() + bursts, together)
        };
        let (planned, covered) = (self.packets_per_ack(), self.snd.acked_at_once.get() as u32);
        let usual = window(planned);
        // Where acknowledgments are lost, each covers more packets.
        if covered > planned { window(covered).min(2 * usual) } else { usual }
    }

    /// Returns the pacing rate, bits per second with headers; `None` without an estimate of the path.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.control.pacing_rate().map(|bytes| bytes * 8.0)
    }

    /// Returns our opening parameters, which the peer needs before it sends.
    #[must_use]
    pub fn opening_parameters(&self) -> Opening {
        Opening { mss: self.config.mss, max_data: self.rcv.initial_limit() as u32 }
    }

    /// Returns the smoothed round-trip time, if there is a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.delays.srtt()
    }

    /// Returns the mean deviation of the round-trip time, if there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Duration> {
        self.srtt().map(|_| self.delays.deviation())
    }

    /// Returns the bytes that the peer accepts beyond those acknowledged, by its last report.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        let acknowledged = self.snd.queue.end() - self.snd.queue.len();
        self.snd.limit.saturating_sub(acknowledged)
    }

    /// Returns the bytes in flight, headers included.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.snd.outstanding.bytes()
    }

    /// Returns the data bytes of a full packet.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        self.snd.mss.into()
    }

    /// Returns the bytes that [`send`](Self::send) would accept now.
    #[must_use]
    pub fn send_capacity(&self) -> u64 {
        self.snd.queue.free()
    }

    /// Returns the bytes accepted from the user and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.snd.queue.len()
    }

    /// Returns the bytes received and kept, in order or not.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.rcv.unread()
    }

    /// Returns the memory of received data, bytes, with the overhead of their pieces.
    #[must_use]
    pub fn receive_memory(&self) -> u64 {
        self.rcv.memory()
    }

    /// Limits the memory of received data from now on, in bytes as counted by [`receive_memory`](Self::receive_memory). Stored data stay, and
    /// an announced window is not withdrawn: data within it that exceed the limit are dropped, as if the network had lost
    /// them. Data that the user waits for are always accepted.
    pub fn set_receive_memory_limit(&mut self, bytes: u64) {
        self.rcv.set_memory_limit(bytes);
    }

    // ---- shared by the other files ----

    /// Returns the reordering window: the time for which a packet may be overtaken before it counts as lost.
    pub(super) fn reordering_window(&self) -> Duration {
        self.snd
            .detection
            .reordering_window(self.delays.min_rtt(), self.delays.srtt().unwrap_or(Duration::ZERO))
    }

    /// Enters a state at the end of a stream.
    pub(super) fn enter_state(&mut self, now: Instant, state: State) {
        match state {
            _ if state == self.state() => {}
            // The end that closed last stays as well: the peer may not know yet that its own end has arrived.
            State::TimeWait | State::Closed => {
                self.lifecycle.enter(State::TimeWait);
                self.timers.stop_all();
                self.timers.set(Timer::TimeWait, now + self.config.time_wait);
                self.set_keep_alive_timer(now);
            }
            _ => self.lifecycle.enter(state),
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.lifecycle.push(event);
    }

    pub(super) fn drop_packet(&mut self, reason: DropReason) {
        self.stats.drops.add(reason);
    }

    /// Ends the connection and discards everything that waits.
    pub(super) fn terminate(&mut self, reason: CloseReason) {
        self.lifecycle.finish(reason);
        self.timers.stop_all();
        self.snd.queue.clear();
        self.snd.lost.clear();
        self.snd.outstanding.clear();
        self.pending = PendingPackets::default();
        self.rcv.discard_unordered();
    }

    pub(super) fn send_opening(&mut self, now: Instant) {
        self.pending.opening = true;
        self.openings_sent += 1;
        let patience = self.config.opening_rto.saturating_mul(1 << (self.openings_sent - 1).min(8));
        self.timers.set(Timer::Open, now + patience);
    }
}

crate::connection::connection_of!(Endpoint<P, C>, C: Controller);

impl<P: Payload, C: Controller> StateMachine for Endpoint<P, C> {
    type Packet = Packet<P>;
    type Transmit = Packet<P>;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, packet: Packet<P>) {
        self.handle_packet_inner(now, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timers(now);
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        self.on_signal(now, signal);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet<P>> {
        self.next_packet(now)
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.lifecycle.poll_event()
    }
}
