//! TCP endpoint: its parts, calls of the application, and getters.

use super::activity::ActivityLog;
use super::config::{Config, LossDetection, OptionOffer};
use super::congestion::undo::ReductionHistory;
use super::congestion::{
    BbrModel, CongestionControl, CongestionState, CustomCongestionControl, RecoveryPhase, Variant,
};
use super::door::DoorState;
use super::ecn::EcnState;
use super::feedback::RouteState;
use super::frto::FrtoState;
use super::keep_alive::KeepAliveState;
use super::rack::Rack;
use super::receive::ReceiveHalf;
use super::rto::RtoEstimator;
use super::scoreboard::Scoreboard;
use super::socket_options::SocketOptions;
use super::spurious::SuspectReduction;
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use super::window_usage::WindowUsage;
use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
use crate::lifecycle::{Close, Lifecycle, Role};
use crate::pacing::{AdaptivePacing, Pacer};
use crate::send_queue::SendQueue;
use crate::{ConfigError, Signal};
use hopline_core::{Duration, Instant, LinkId, Payload, Seq32, StateMachine, TimerKind, TimerTable};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::{Flags, Options, Segment};

/// Position of the first data byte in the stream: the SYN takes position 0.
pub(super) const FIRST_DATA: u64 = 1;

/// Ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Our port.
    pub local: u16,
    /// The peer's port; 0: to be learnt from the first SYN, for [`Endpoint::listen`] only.
    pub remote: u16,
}

/// One end of one TCP connection.
///
/// An endpoint lives for one connection: make it, [`connect`](Self::connect) or [`listen`](Self::listen), transfer,
/// [`close`](Self::close). It knows no addresses; the caller routes segments by address and port.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_core::{Instant, StateMachine, Seq32};
/// use hopline_transport::tcp::{Config, Endpoint, Event, Ports, State};
/// use hopline_wire::tcp::Flags;
///
/// let now = Instant::ZERO;
/// let ports = Ports { local: 40_000, remote: 80 };
/// let mut client = Endpoint::<Bytes>::new(Config::modern(), ports, Seq32(1)).expect("valid");
/// client.connect(now).expect("a new endpoint");
/// let syn = client.poll_transmit(now).expect("the SYN");
/// assert_eq!((syn.flags, client.state()), (Flags::SYN, State::SynSent));
/// // Without an answer, the SYN is sent again when this timer expires.
/// let (at, _) = client.poll_timeout().expect("the retransmission timer");
/// client.handle_timeout(at);
/// assert!(client.poll_transmit(at).is_some());
/// assert_eq!(client.poll_event(), None::<Event>);
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload> {
    pub(super) config: Config,
    pub(super) ports: Ports,
    /// Remote port of a passive open, 0 for any.
    pub(super) listens_for: u16,
    pub(super) lifecycle: Lifecycle,
    pub(super) snd: SendHalf<P>,
    pub(super) rcv: ReceiveHalf<P>,
    pub(super) control: CongestionState,
    pub(super) reductions: ReductionHistory,
    pub(super) scoreboard: Scoreboard,
    /// `None`: no time-based loss detection.
    pub(super) rack: Option<Box<Rack>>,
    /// Last reduction, if it may be spurious.
    pub(super) suspect: Option<SuspectReduction>,
    pub(super) frto: FrtoState,
    pub(super) rto: RtoEstimator,
    pub(super) timers: TimerTable<Timer, { <Timer as TimerKind>::ALL.len() }>,
    /// `None`: no pacing.
    pub(super) pacing: Option<Box<Pacer>>,
    /// `None`: no TCP-DOOR.
    pub(super) door: Option<Box<DoorState>>,
    /// `None`: no keep-alive.
    pub(super) keep_alive: Option<Box<KeepAliveState>>,
    /// State of the route, as known from notifications.
    pub(super) route: RouteState,
    pub(super) options: Negotiated,
    /// Boxed, since few connections use much of it.
    pub(super) ecn: Box<EcnState>,
    /// Reset to send at once, outside the stream.
    pub(super) reply: Option<Segment<P>>,
    /// Time of the last challenge ACK.
    pub(super) last_challenge_ack: Option<Instant>,
    /// Corking, records, user timeout; `None`: not in use.
    pub(super) sockopts: Option<Box<SocketOptions>>,
    pub(super) activity: ActivityLog,
    pub(super) stats: Stats,
}

/// Options in use on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub(super) timestamps: bool,
    pub(super) sack: bool,
}

/// Sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct SendHalf<P> {
    pub(super) iss: Seq32,
    /// First unacknowledged position ("SND.UNA").
    pub(super) una: u64,
    /// Next position to send ("SND.NXT"); goes back after a time-out.
    pub(super) nxt: u64,
    /// Position after the highest ever sent.
    pub(super) max: u64,
    pub(super) queue: SendQueue<P>,
    /// Position of our FIN, once the user closed.
    pub(super) fin: Option<u64>,
    /// Peer's window, bytes, unscaled ("SND.WND").
    pub(super) window: u64,
    /// Largest window that the peer has announced, bytes.
    pub(super) max_window: u64,
    /// Peer's position and our position at the last window update ("SND.WL1", "SND.WL2").
    pub(super) window_from: (u64, u64),
    pub(super) scale: u8,
    /// Data bytes of a full segment without SACK blocks.
    pub(super) mss: u32,
    /// `true` if a SYN or SYN-ACK has to be sent.
    pub(super) syn_pending: bool,
    /// Number of retransmissions of the SYN or SYN-ACK.
    pub(super) syn_retransmissions: u8,
    /// Use of the congestion window in this round trip.
    pub(super) usage: WindowUsage,
    /// Position after the last segment with data that was not full-sized.
    pub(super) small_end: u64,
    /// Position after the highest that was retransmitted, without tail loss probes.
    pub(super) retransmitted_end: u64,
    /// `true` if the first unacknowledged segment has to be retransmitted now.
    pub(super) retransmit_first: bool,
    /// `true` if a window probe has to be sent.
    pub(super) probe_pending: bool,
    /// Segment for a round-trip sample: the position after it and its time of sending.
    pub(super) rtt_probe: Option<(u64, Instant)>,
    /// Time of the last transmission of data.
    pub(super) last_sent: Option<Instant>,
    /// Number of consecutive time-outs or probes without an answer.
    pub(super) retries: u32,
    /// Number of consecutive probes, for their back-off.
    pub(super) probes: u32,
}

impl<P: Payload> SendHalf<P> {
    pub(super) fn seq(&self, position: u64) -> Seq32 {
        self.iss + position as u32
    }

    /// Returns whether any sent data are unacknowledged.
    pub(super) fn outstanding(&self) -> bool {
        self.max > self.una
    }

    /// Returns whether the SYN or SYN-ACK was sent more than once.
    pub(super) fn syn_was_retransmitted(&self) -> bool {
        self.syn_retransmissions > 0
    }

    /// Returns the position after everything that the user wants sent.
    pub(super) fn end(&self) -> u64 {
        self.queue.end() + u64::from(self.fin.is_some())
    }
}

impl<P: Payload> Endpoint<P> {
    /// Creates a closed endpoint with the initial sequence number `iss`. Real connections need an unpredictable one
    /// (RFC 6528); the simulator draws it from a named stream.
    ///
    /// # Errors
    /// A parameter is out of its range, or [`Config::congestion_control`] is a user-defined algorithm, which needs
    /// [`Self::with_custom_congestion_control`].
    pub fn new(config: Config, ports: Ports, iss: Seq32) -> Result<Self, ConfigError> {
        if let CongestionControl::Custom(_) = config.congestion_control {
            let must = "one of ours: an own law is handed over, with Endpoint::with_own_law";
            return Err(ConfigError { field: "law", requirement: must });
        }
        Self::new_with_algorithm(config, ports, iss, None)
    }

    /// Creates an endpoint with the user-defined algorithm `law`, if there is one.
    pub(super) fn new_with_algorithm(
        config: Config,
        ports: Ports,
        iss: Seq32,
        law: Option<Box<dyn CustomCongestionControl>>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            ports,
            listens_for: ports.remote,
            lifecycle: Lifecycle::new(),
            snd: SendHalf {
                iss,
                una: 0,
                nxt: 0,
                max: 0,
                queue: SendQueue::new(FIRST_DATA, config.send_buffer),
                fin: None,
                window: 0,
                max_window: 0,
                window_from: (0, 0),
                scale: 0,
                mss: config.mss,
                syn_pending: false,
                syn_retransmissions: 0,
                usage: WindowUsage::default(),
                small_end: 0,
                retransmitted_end: 0,
                retransmit_first: false,
                probe_pending: false,
                rtt_probe: None,
                last_sent: None,
                retries: 0,
                probes: 0,
            },
            rcv: ReceiveHalf::new(&config),
            control: CongestionState::new(&config, law, iss),
            reductions: ReductionHistory::default(),
            scoreboard: Scoreboard::default(),
            rack: match config.loss_detection {
                LossDetection::DupAcks => None,
                LossDetection::Rack(rack)
                    if matches!(config.congestion_control, CongestionControl::Bbr(_)) =>
                {
                    Some(Box::new(Rack::with_rate_samples(rack, FIRST_DATA)))
                }
                LossDetection::Rack(rack) => Some(Box::new(Rack::new(rack, FIRST_DATA))),
            },
            suspect: None,
            frto: FrtoState::Idle,
            rto: RtoEstimator::new(config.rto),
            timers: TimerTable::new(),
            pacing: config.pacing.new_state().map(|pacing| Box::new(Pacer::Adaptive(*pacing))),
            door: config.door.map(|door| Box::new(DoorState::new(door))),
            keep_alive: None,
            route: RouteState::NEW,
            options: Negotiated { timestamps: false, sack: false },
            ecn: Box::default(),
            reply: None,
            last_challenge_ack: None,
            sockopts: None,
            activity: ActivityLog::default(),
            stats: Stats::default(),
        })
    }

    /// Opens the connection: sends a SYN.
    ///
    /// # Errors
    /// The connection is already open, or the remote port is 0.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        if self.ports.remote == 0 {
            return Err(OpenError::NoRemotePort);
        }
        self.lifecycle.open(Role::Active, State::SynSent)?;
        self.send_syn(now);
        Ok(())
    }

    /// Waits for the peer's SYN.
    ///
    /// # Errors
    /// The connection is already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.lifecycle.open(Role::Passive, State::Listen)
    }

    /// Accepts data to send, all or none. The handshake need not be complete.
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room.
    pub fn send(&mut self, _now: Instant, data: P) -> Result<(), SendError> {
        self.lifecycle.check_send()?;
        self.end_hold();
        self.check_if_application_limited();
        self.snd.queue.push(data)
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.ready.pop_front()?;
        self.rcv.ready_bytes -= data.len();
        if self.state().may_receive() {
            self.rcv.request_window_update(&self.config);
        }
        Some(data)
    }

    /// Closes the sending direction after all accepted data are sent; data of the peer are still received. A connection
    /// that is not open yet and has nothing to send ends at once.
    ///
    /// # Errors
    /// The connection is not open, or was closed by the user before.
    pub fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        match self.lifecycle.close(self.snd.queue.len())? {
            Close::Abrupt => self.terminate(CloseReason::Finished),
            Close::Graceful => self.snd.fin = Some(self.snd.queue.end()),
        }
        Ok(())
    }

    /// Ends the connection at once, with a reset to a peer that knows it. Does nothing when closed.
    pub fn abort(&mut self, now: Instant) {
        if self.state() == State::Closed {
            return;
        }
        // RFC 9293 §3.10.5
        let tells_peer = self.state().is_known_to_peer() && self.state() != State::TimeWait;
        let reset = tells_peer.then(|| self.reset_of_abort(now));
        self.end_freeze(now);
        self.terminate(CloseReason::Aborted);
        self.reply = reset;
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

    /// Returns the ports; the remote one is known after the first SYN.
    #[must_use]
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Returns the congestion window, with the inflation in recovery, bytes.
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.control.cwnd()
    }

    /// Returns the slow start threshold, bytes; 2³⁰ before the first loss if unlimited.
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.control.ssthresh()
    }

    /// Returns the state of loss recovery.
    #[must_use]
    pub fn phase(&self) -> RecoveryPhase {
        self.control.phase()
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
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

    /// Returns the state of adaptive pacing; `None` if it is not in use.
    #[must_use]
    pub fn pacing(&self) -> Option<&AdaptivePacing> {
        match self.pacing.as_deref()? {
            Pacer::Adaptive(pacing) => Some(pacing),
            Pacer::Rate(_) => None,
        }
    }

    /// Returns BBR's model of the path; `None` if BBR is not in use.
    #[must_use]
    pub fn bbr(&self) -> Option<BbrModel> {
        self.control.bbr_model()
    }

    /// Returns Prague's moving average of the marked fraction (`alpha`); `None` without Prague or without accurate ECN.
    #[must_use]
    pub fn prague_alpha(&self) -> Option<f64> {
        self.control.prague_alpha()
    }

    /// Returns the bytes of sequence space sent and not acknowledged, up to the next position to send. After a time-out,
    /// data to be resent do not count.
    #[must_use]
    pub fn flight_size(&self) -> u64 {
        self.snd.nxt - self.snd.una
    }

    /// Returns the last window announced by the peer, bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.snd.window
    }

    /// Returns the data bytes of a full segment, without the negotiated options.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        self.snd.mss
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

    /// Returns the bytes that [`recv`](Self::recv) would return until it returns nothing.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.rcv.ready_bytes
    }

    /// Returns whether the peer's sequence number `seq` comes after everything received. In TIME-WAIT, a SYN with such a
    /// number may open a new connection (RFC 9293 §3.10.7.4, "the TIME-WAIT state").
    #[must_use]
    pub fn is_after_stream(&self, seq: Seq32) -> bool {
        !seq.before(self.rcv.irs + self.rcv.nxt as u32)
    }

    /// Returns the bytes in the receive buffer, in order or not.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.rcv.ready_bytes + self.rcv.reassembly.len()
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
        self.snd.syn_pending = false;
        self.snd.retransmit_first = false;
        self.snd.probe_pending = false;
        self.rcv.discard_unordered();
        self.scoreboard.clear();
        self.rack = None;
        self.route = RouteState::NEW;
    }

    pub(super) fn send_syn(&mut self, now: Instant) {
        self.snd.syn_pending = true;
        self.timers.set(Timer::Retransmit, now + self.rto.timeout());
    }

    pub(super) fn offers_sack(&self) -> bool {
        matches!(self.config.variant, Variant::Sack(_))
    }

    pub(super) fn offers_timestamps(&self) -> bool {
        self.config.timestamps == OptionOffer::Offered
    }

    /// Returns the timestamp clock: milliseconds, with an offset that hides the uptime (RFC 7323 §5.4, §7.1).
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.snd.iss.0)
    }

    pub(super) fn bare_segment(&self, seq: Seq32, ack: Seq32, flags: Flags) -> Segment<P> {
        Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq,
            ack,
            flags,
            window: 0,
            urgent: 0,
            options: Options::default(),
            ecn: Ecn::NotCapable,
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

    /// Processes a notification of the network layer. Route notifications have an effect only with a feedback scheme,
    /// since TCP treats every silence as congestion (RFC 6298). The path length is for pacing.
    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        match signal {
            Signal::PathLength { hops } => self.set_path_length(hops),
            Signal::RouteLost => self.on_route_lost(now),
            Signal::RouteFound => self.on_route_found(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment<P>> {
        let segment = self.next_segment(now);
        self.record_activity(now);
        segment
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.lifecycle.poll_event()
    }
}
