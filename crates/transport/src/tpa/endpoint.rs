//! TPA endpoint: calls of the application and getters.

use super::block::Block;
use super::config::{Config, MIN_MSS};
use super::receive::ReceiveHalf;
use super::rto::RtoEstimator;
use super::state::{
    CloseState, EarlySyn, FlushState, Identity, OpeningState, PeerConfirmed, PendingSegments, SendHalf, Tags,
};
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use super::window::{CongestionWindow, PathState};
use crate::ConfigError;
use crate::Signal;
use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
use crate::lifecycle::{Close, Lifecycle, Role};
use crate::pacing::AdaptivePacing;
use crate::send_queue::SendQueue;
use hopline_core::{Duration, Instant, LinkId, Payload, StateMachine, TimerTable};
use hopline_wire::tpa::{Control, Receipt, Segment, Tag, TxStat};

/// One end of one TPA connection.
///
/// An endpoint lives for one connection: make it, [`connect`](Self::connect) or [`listen`](Self::listen), transfer,
/// [`close`](Self::close). It knows neither addresses nor ports.
///
/// Several segments may be passed before the outputs are drained. One acknowledgment then answers them together.
///
/// # Example
///
/// ```
/// use hopline_core::{Instant, Length, LinkId, StateMachine};
/// use hopline_transport::tpa::{Config, Endpoint, State};
///
/// let now = Instant::ZERO;
/// let [mut a, mut b] = [(); 2].map(|()| Endpoint::<Length>::new(Config::tpa(3)).expect("valid"));
/// b.listen().expect("a new endpoint");
/// a.connect(now).expect("a new endpoint");
/// // The opening, over a path without delay.
/// for _ in 0..2 {
///     while let Some(segment) = a.poll_transmit(now) {
///         b.handle_packet(now, LinkId::ONLY, segment);
///     }
///     while let Some(segment) = b.poll_transmit(now) {
///         a.handle_packet(now, LinkId::ONLY, segment);
///     }
/// }
/// assert_eq!((a.state(), b.state()), (State::Established, State::Established));
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload> {
    pub(super) config: Config,
    pub(super) lifecycle: Lifecycle,
    pub(super) opening: OpeningState,
    pub(super) tags: Tags,
    pub(super) snd: SendHalf<P>,
    pub(super) rcv: ReceiveHalf<P>,
    pub(super) window: CongestionWindow,
    pub(super) rto: RtoEstimator,
    /// State of pacing, if it is in use.
    pub(super) pacing: Option<Box<AdaptivePacing>>,
    pub(super) timers: TimerTable<Timer, 9>,
    /// Segments to send apart from data.
    pub(super) pending_segments: PendingSegments,
    /// Time of the last segment from the peer.
    pub(super) last_heard: Instant,
    /// `true` if the peer was probed since then.
    pub(super) is_probed: bool,
    /// Start of the current wait for the peer, if it has to answer.
    pub(super) waiting_since: Instant,
    pub(super) stats: Stats,
}

impl<P: Payload> Endpoint<P> {
    /// Creates a closed endpoint without connection tag, as in the paper. Anyone with knowledge of the addresses and
    /// ports can inject segments. For the simulator, and for networks without attackers.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_tag(config, None)
    }

    /// Creates a closed endpoint that accepts only segments with the connection tag of `identity`, and only
    /// acknowledgments with a proof of receipt.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn tagged(config: Config, identity: Identity) -> Result<Self, ConfigError> {
        Self::with_tag(config, Some(identity))
    }

    fn with_tag(config: Config, identity: Option<Identity>) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            lifecycle: Lifecycle::new(),
            opening: OpeningState {
                syn_sent: None,
                retries: 0,
                confirmed: PeerConfirmed::Yes,
                early_syn: EarlySyn::No,
            },
            tags: Tags {
                local: identity.map(|identity| identity.tag),
                peer: None,
                secret: identity.map(|identity| identity.secret),
            },
            snd: SendHalf {
                queue: SendQueue::new(0, config.send_buffer),
                block: None,
                number: 0,
                next_block_start: 0,
                waiting_since: None,
                flush: FlushState::No,
                closing: CloseState::Open,
                peer_window: 0,
                mss: config.mss,
                peer_mss: u16::MAX,
                path_mss: u16::MAX,
                block_segments: config.block_segments,
                probes: 0,
            },
            rcv: ReceiveHalf::new(&config, config.max_accepted_len(identity.map(|identity| identity.tag))),
            window: CongestionWindow::new(config.failures, config.cwnd_max),
            rto: RtoEstimator::new(config.rto),
            pacing: config.pacing.new_state(),
            timers: TimerTable::new(),
            pending_segments: PendingSegments::default(),
            last_heard: Instant::ZERO,
            is_probed: false,
            waiting_since: Instant::ZERO,
            stats: Stats::default(),
        })
    }

    /// Opens the connection: sends a SYN.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Active, State::SynSent)?;
        self.opening.syn_sent = Some(now);
        self.send_syn(now);
        if let Some(soon) = self.config.syn_rto {
            self.timers.set(Timer::Open, now + soon);
            self.opening.early_syn = EarlySyn::Yes;
        }
        Ok(())
    }

    /// Waits for the peer's SYN.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Passive, State::Listen)
    }

    /// Creates the endpoint for a peer that has proved the receipt of our `local` tag, which was sent in answer to its
    /// SYN.
    pub(super) fn from_cookie(
        now: Instant,
        config: Config,
        identity: Identity,
        opening: hopline_wire::tpa::Opening,
        window: u16,
    ) -> Self {
        let mut endpoint = Self::tagged(config, identity).expect("the listener's configuration is valid");
        endpoint.lifecycle.open(Role::Passive, State::Closed).expect("a new endpoint is not open");
        endpoint.apply_opening(opening, window);
        endpoint.establish(now);
        endpoint.pending_segments.ack = true; // the peer repeats its parameters until it hears of us
        endpoint
    }

    /// Accepts data to send, all or none. The handshake need not be complete. The data are sent when they fill a block,
    /// after [`Config::block_fill`], or on [`flush`](Self::flush).
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room.
    pub fn send(&mut self, now: Instant, data: P) -> Result<(), SendError> {
        self.lifecycle.check_send()?;
        self.snd.queue.push(data)?;
        self.form_block(now);
        Ok(())
    }

    /// Sends the accepted data without waiting for a full block.
    pub fn flush(&mut self, now: Instant) {
        self.snd.flush = FlushState::UpTo(self.snd.queue.end());
        self.form_block(now);
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.read()?;
        if self.state().may_receive() && self.rcv.needs_window_update() {
            self.pending_segments.ack = true;
        }
        Some(data)
    }

    /// Closes the sending direction after all accepted data are sent; data of the peer are still received. A connection
    /// that is not open yet and has nothing to send ends at once.
    ///
    /// # Errors
    /// The connection is not open, or was closed by the user before.
    pub fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        match self.lifecycle.close(self.snd.queue.len())? {
            Close::Abrupt => self.terminate(CloseReason::Finished),
            Close::Graceful => {
                self.snd.closing = CloseState::FinDue;
                self.form_block(now);
            }
        }
        Ok(())
    }

    /// Ends the connection at once, with a reset to a peer that knows it. Does nothing when closed.
    pub fn abort(&mut self, _now: Instant) {
        let tells_peer = self.state().is_known_to_peer();
        if self.state() != State::Closed {
            self.terminate(CloseReason::Aborted);
            self.pending_segments.reset = tells_peer;
        }
    }

    /// Returns the connection state.
    #[must_use]
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns our connection tag.
    #[must_use]
    pub fn tag(&self) -> Option<Tag> {
        self.tags.local
    }

    /// Returns the peer's connection tag, if known.
    #[must_use]
    pub fn peer_tag(&self) -> Option<Tag> {
        self.tags.peer
    }

    /// Returns the congestion window, segments.
    #[must_use]
    pub fn cwnd(&self) -> u8 {
        self.window.cwnd()
    }

    /// Sets the largest window, in segments, from now on. Segments in flight stay.
    ///
    /// The peer received the configured number at the opening, and still uses it to acknowledge once per window (TPA*).
    ///
    /// # Errors
    /// The value is not 1 to 12.
    pub fn set_cwnd_max(&mut self, cwnd_max: u8) -> Result<(), ConfigError> {
        let config = Config { cwnd_max, ..self.config };
        config.validate()?;
        self.config = config;
        self.window.set_cwnd_max(cwnd_max);
        Ok(())
    }

    /// Sets the largest number of data bytes that fit into a segment on the path, from the next block on; at least 508.
    /// The limits of the peer and of [`Config::mss`] apply as well.
    pub fn set_path_mss(&mut self, mss: u16) {
        self.snd.path_mss = mss.max(MIN_MSS);
        self.choose_mss();
    }

    pub(super) fn choose_mss(&mut self) {
        self.snd.mss = self.config.mss.min(self.snd.peer_mss).min(self.snd.path_mss);
    }

    /// Returns the state of the path, as estimated.
    #[must_use]
    pub fn path(&self) -> PathState {
        self.window.path()
    }

    /// Returns the mean round-trip time (ERTT); `None` before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.ertt()
    }

    /// Returns the mean deviation of the round-trip time (DEV); `None` before the first sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Duration> {
        self.rto.dev()
    }

    /// Returns the current retransmission timeout, with its back-off.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto.timeout()
    }

    /// Returns the back-off factor of the retransmission timer: 1, 2, 4, …
    #[must_use]
    pub fn backoff(&self) -> u32 {
        self.rto.backoff_factor()
    }

    /// Returns the state of pacing, if it is in use.
    #[must_use]
    pub fn pacing(&self) -> Option<&AdaptivePacing> {
        self.pacing.as_deref()
    }

    /// Returns the number of segments in flight.
    #[must_use]
    pub fn in_flight(&self) -> u8 {
        self.snd.block.as_ref().map_or(0, Block::in_flight)
    }

    /// Returns the last window announced by the peer, bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.snd.peer_window
    }

    /// Returns the time of the last segment from the peer; zero before the first.
    #[must_use]
    pub fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// Returns the data bytes of a full segment.
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

    /// Returns the bytes in the receive buffer, in order or not.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.rcv.unread()
    }

    // ---- shared by the other files ----

    /// Enters a state at the end of a stream.
    pub(super) fn enter_state(&mut self, now: Instant, state: State) {
        match state {
            _ if state == self.state() => {}
            State::TimeWait => self.enter_time_wait(now),
            State::Closed => self.terminate(CloseReason::Finished),
            _ => self.lifecycle.enter(state),
        }
    }

    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.lifecycle.enter(State::TimeWait);
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.lifecycle.push(event);
    }

    pub(super) fn drop_segment(&mut self, reason: DropReason) {
        self.stats.drops.add(reason);
    }

    /// Ends the connection and discards everything that waits.
    pub(super) fn terminate(&mut self, reason: CloseReason) {
        self.lifecycle.finish(reason);
        self.timers.stop_all();
        self.snd.queue.clear();
        self.snd.block = None;
        self.pending_segments = PendingSegments::default();
        self.rcv.discard_out_of_order();
    }

    pub(super) fn send_syn(&mut self, now: Instant) {
        self.pending_segments.syn = true;
        self.timers.set(Timer::Open, now + self.rto.timeout());
    }

    /// Builds a segment with the state of the connection and without data.
    pub(super) fn bare_segment(&mut self, control: Control) -> Segment<P> {
        let repeats_opening = control == Control::Syn || self.opening.confirmed == PeerConfirmed::No;
        Segment {
            block: self.snd.number,
            position: None,
            tx: 0,
            ack: None,
            control,
            tx_stat: if self.window.path() == PathState::Normal { TxStat::Normal } else { TxStat::Congested },
            window: self.rcv.announce_window(),
            tag: self.tags.peer,
            receipt: Receipt::default(),
            opening: repeats_opening.then(|| self.config.opening_parameters(self.tags.local)),
            payload: P::default(),
        }
    }
}

crate::connection::connection_of!(Endpoint<P>);

impl<P: Payload> StateMachine for Endpoint<P> {
    type Packet = Segment<P>;
    type Transmit = Segment<P>;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, segment: Segment<P>) {
        self.handle_segment(now, segment);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timers(now);
    }

    fn handle_signal(&mut self, _now: Instant, signal: Signal) {
        self.on_signal(signal);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment<P>> {
        self.next_segment(now)
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.lifecycle.poll_event()
    }
}
