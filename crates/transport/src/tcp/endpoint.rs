//! The machine: its parts, application calls and getters.

use super::config::{Config, LossDetection, Offer};
use super::congestion::undo::Reductions;
use super::congestion::{BbrModel, Control, OwnLaw, Phase, Variant, WindowLaw};
use super::door::Door;
use super::ecn::Ecn as EcnState;
use super::feedback::Route;
use super::frto::Steps;
use super::keep_alive::Keep;
use super::rack::Rack;
use super::receive::Receiver;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::spurious::Case;
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use crate::connection::{CloseError, CloseReason, Event, Events, OpenError, SendError, State};
use crate::pacing::{AdaptivePacing, Pacer};
use crate::send_queue::SendQueue;
use crate::{ConfigError, Signal};
use hopline_core::{Duration, Instant, LinkId, Machine, Payload, Seq32, TimerKind, TimerTable};
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
/// [`close`](Self::close). Addresses are not its business; whoever drives it routes segments by address and port.
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload> {
    pub(super) config: Config,
    pub(super) ports: Ports,
    pub(super) state: State,
    pub(super) opening: Opening,
    pub(super) snd: Sender<P>,
    pub(super) rcv: Receiver<P>,
    pub(super) control: Control,
    pub(super) reductions: Reductions,
    pub(super) board: Scoreboard,
    /// `None`: losses are not told by time.
    pub(super) rack: Option<Box<Rack>>,
    /// The last reduction, if it may be spurious.
    pub(super) case: Option<Case>,
    pub(super) frto: Steps,
    pub(super) rto: Rto,
    pub(super) timers: TimerTable<Timer, { <Timer as TimerKind>::ALL.len() }>,
    /// `None`: segments are not spaced.
    pub(super) pacing: Option<Box<Pacer>>,
    /// `None`: no TCP-DOOR.
    pub(super) door: Option<Box<Door>>,
    /// `None`: no keep-alive.
    pub(super) keep: Option<Box<Keep>>,
    /// What is known of the route.
    pub(super) route: Route,
    pub(super) options: Negotiated,
    pub(super) ecn: EcnState,
    /// A segment owed at once, outside the stream: a reset.
    pub(super) reply: Option<Segment<P>>,
    /// When the last challenge ACK left.
    pub(super) challenged: Option<Instant>,
    pub(super) stats: Stats,
    events: Events,
}

/// How the connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    NotYet,
    Active,
    /// With the peer's port that it listens to; 0: any.
    Passive {
        remote: u16,
    },
}

/// Options in use on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub(super) timestamps: bool,
    pub(super) sack: bool,
}

/// The sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    pub(super) iss: Seq32,
    /// First position not acknowledged ("SND.UNA").
    pub(super) una: u64,
    /// Next position to send ("SND.NXT"); goes back after a time-out.
    pub(super) nxt: u64,
    /// Position after the highest ever sent.
    pub(super) max: u64,
    pub(super) queue: SendQueue<P>,
    /// Position of our FIN, once the user closed.
    pub(super) fin: Option<u64>,
    /// The peer's window, bytes, unscaled ("SND.WND").
    pub(super) window: u64,
    /// Largest window the peer ever announced.
    pub(super) max_window: u64,
    /// Peer's position and our position at the last window update ("SND.WL1", "SND.WL2").
    pub(super) window_from: (u64, u64),
    pub(super) scale: u8,
    /// Data bytes of a full segment without SACK blocks.
    pub(super) mss: u32,
    /// A SYN or SYN-ACK is owed.
    pub(super) syn_pending: bool,
    /// The SYN or SYN-ACK was sent more than once.
    pub(super) syn_resent: bool,
    /// Position after the highest that was sent again, tail loss probes left out.
    pub(super) resent_end: u64,
    /// The first unacknowledged segment is to be sent again now.
    pub(super) resend_first: bool,
    /// A window probe is owed.
    pub(super) probe_pending: bool,
    /// The segment being timed: position after it, and when it left.
    pub(super) timed: Option<(u64, Instant)>,
    /// When data last left.
    pub(super) last_sent: Option<Instant>,
    /// Time-outs or probes in a row without an answer.
    pub(super) retries: u32,
    /// Probes in a row, for their back-off.
    pub(super) probes: u32,
}

impl<P: Payload> Sender<P> {
    pub(super) fn seq(&self, position: u64) -> Seq32 {
        self.iss + position as u32
    }

    /// Whether anything sent is not acknowledged.
    pub(super) fn outstanding(&self) -> bool {
        self.max > self.una
    }

    /// Position after everything the user wants sent.
    pub(super) fn end(&self) -> u64 {
        self.queue.end() + u64::from(self.fin.is_some())
    }
}

impl<P: Payload> Endpoint<P> {
    /// A closed endpoint whose first sequence number will be `iss`. Real connections need an unpredictable one
    /// (RFC 6528); the simulator draws it from a named stream.
    ///
    /// # Errors
    /// A parameter out of its range, or a law that is to be handed over.
    pub fn new(config: Config, ports: Ports, iss: Seq32) -> Result<Self, ConfigError> {
        if let WindowLaw::Own(_) = config.law {
            let must = "one of ours: an own law is handed over, with Endpoint::with_own_law";
            return Err(ConfigError { field: "law", must });
        }
        Self::governed(config, ports, iss, None)
    }

    /// An endpoint with `law`, where that is the law.
    pub(super) fn governed(
        config: Config,
        ports: Ports,
        iss: Seq32,
        law: Option<Box<dyn OwnLaw>>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            ports,
            state: State::Closed,
            opening: Opening::NotYet,
            snd: Sender {
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
                syn_resent: false,
                resent_end: 0,
                resend_first: false,
                probe_pending: false,
                timed: None,
                last_sent: None,
                retries: 0,
                probes: 0,
            },
            rcv: Receiver::new(&config),
            control: Control::new(&config, law, iss),
            reductions: Reductions::default(),
            board: Scoreboard::default(),
            rack: match config.loss_detection {
                LossDetection::DupAcks => None,
                LossDetection::Rack(rack) if matches!(config.law, WindowLaw::Bbr(_)) => {
                    Some(Box::new(Rack::sampling(rack, FIRST_DATA)))
                }
                LossDetection::Rack(rack) => Some(Box::new(Rack::new(rack, FIRST_DATA))),
            },
            case: None,
            frto: Steps::Idle,
            rto: Rto::new(config.rto),
            timers: TimerTable::new(),
            pacing: config.pacing.machine().map(|pacing| Box::new(Pacer::Adaptive(*pacing))),
            door: config.door.map(|door| Box::new(Door::new(door))),
            keep: None,
            route: Route::NEW,
            options: Negotiated { timestamps: false, sack: false },
            ecn: EcnState::default(),
            reply: None,
            challenged: None,
            stats: Stats::default(),
            events: Events::default(),
        })
    }

    /// Opens the connection: sends a SYN.
    ///
    /// # Errors
    /// Already open, or the remote port is 0.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        if self.ports.remote == 0 {
            return Err(OpenError::NoRemotePort);
        }
        self.open(Opening::Active, State::SynSent)?;
        self.send_syn(now);
        Ok(())
    }

    /// Waits for the peer's SYN.
    ///
    /// # Errors
    /// Already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.open(Opening::Passive { remote: self.ports.remote }, State::Listen)
    }

    fn open(&mut self, opening: Opening, state: State) -> Result<(), OpenError> {
        if self.opening != Opening::NotYet {
            return Err(OpenError::AlreadyOpen);
        }
        self.opening = opening;
        self.state = state;
        Ok(())
    }

    /// Takes data to send, all of it or none. It may be handed over before the handshake is complete.
    ///
    /// # Errors
    /// Not open for sending, or no room.
    pub fn send(&mut self, _now: Instant, data: P) -> Result<(), SendError> {
        if !self.state.may_send() || self.snd.fin.is_some() {
            return Err(SendError::NotOpen);
        }
        self.check_application_limit();
        self.snd.queue.push(data)
    }

    /// The next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.ready.pop_front()?;
        self.rcv.ready_bytes -= data.len();
        if self.state.may_receive() {
            self.rcv.note_window_update(&self.config);
        }
        Some(data)
    }

    /// Closes our direction once all data handed over is sent; data of the peer is still received. Before the
    /// connection is open, and with nothing to send, it simply ends.
    ///
    /// # Errors
    /// Not open, or already closed by the user.
    pub fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        if !self.state.may_send() || self.snd.fin.is_some() {
            return Err(CloseError::NotOpen);
        }
        if matches!(self.state, State::Listen | State::SynSent) && self.snd.queue.len() == 0 {
            self.finish(CloseReason::Finished);
            return Ok(());
        }
        self.snd.fin = Some(self.snd.queue.end());
        self.enter_closing();
        Ok(())
    }

    /// Moves on from an open state once the user closed.
    pub(super) fn enter_closing(&mut self) {
        if self.snd.fin.is_some() {
            self.state = self.state.after_close();
        }
    }

    /// Ends the connection at once, with a reset to the peer if it knows of us. Does nothing when closed.
    pub fn abort(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        // RFC 9293 §3.10.5
        let tells_peer = matches!(
            self.state,
            State::SynReceived
                | State::Established
                | State::FinWait1
                | State::FinWait2
                | State::CloseWait
                | State::Closing
                | State::LastAck
        );
        let seq = self.snd.seq(self.snd.max);
        self.end_freeze(now);
        self.finish(CloseReason::Aborted);
        self.reply = tells_peer.then(|| self.bare_segment(seq, Seq32(0), Flags::RST));
    }

    /// Connection state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Ports; the remote one is known after the first SYN.
    #[must_use]
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Congestion window, inflation in recovery included, bytes.
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.control.cwnd()
    }

    /// Slow start threshold, bytes; 2³⁰ before the first loss if unlimited.
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.control.ssthresh()
    }

    /// What the sender is doing about losses.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.control.phase()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// Retransmission timeout as it would be set now, back-off included.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto.timeout()
    }

    /// Back-off factor of the retransmission timer: 1, 2, 4, …
    #[must_use]
    pub fn backoff(&self) -> u32 {
        self.rto.factor()
    }

    /// The estimate that spaces segments; `None` if none does.
    #[must_use]
    pub fn pacing(&self) -> Option<&AdaptivePacing> {
        match self.pacing.as_deref()? {
            Pacer::Adaptive(pacing) => Some(pacing),
            Pacer::Rate(_) => None,
        }
    }

    /// What BBR thinks of the path, and what it does; `None` if it is not at work.
    #[must_use]
    pub fn bbr(&self) -> Option<BbrModel> {
        self.control.bbr_model()
    }

    /// Sequence space sent and not acknowledged, counted from the position that is sent next: after a time-out what is
    /// to be resent does not count.
    #[must_use]
    pub fn flight_size(&self) -> u64 {
        self.snd.nxt - self.snd.una
    }

    /// The window the peer announced last, bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.snd.window
    }

    /// Data bytes of a full segment, negotiated options taken off.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        self.snd.mss
    }

    /// Bytes that [`send`](Self::send) would take now.
    #[must_use]
    pub fn send_capacity(&self) -> u64 {
        self.snd.queue.free()
    }

    /// Bytes taken from the user and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.snd.queue.len()
    }

    /// Bytes received and kept, read or not in order: what the receive buffer holds.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.rcv.ready_bytes + self.rcv.store.len()
    }

    // ---- shared by the other files ----

    /// Moves on to a state that the end of a stream leads to.
    pub(super) fn move_to(&mut self, now: Instant, state: State) {
        match state {
            _ if state == self.state => {}
            State::TimeWait => self.enter_time_wait(now),
            State::Closed => self.finish(CloseReason::Finished),
            _ => self.state = state,
        }
    }

    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) fn drop_segment(&mut self, reason: DropReason) {
        self.stats.drops.add(reason);
    }

    /// Ends the connection and forgets everything that waits.
    pub(super) fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.timers.stop_all();
        self.snd.queue.clear();
        self.snd.syn_pending = false;
        self.snd.resend_first = false;
        self.snd.probe_pending = false;
        self.rcv.forget_unordered();
        self.board.clear();
        self.rack = None;
        self.route = Route::NEW;
        self.event(Event::Closed(reason));
    }

    pub(super) fn send_syn(&mut self, now: Instant) {
        self.snd.syn_pending = true;
        self.timers.set(Timer::Retransmit, now + self.rto.timeout());
    }

    pub(super) fn offers_sack(&self) -> bool {
        matches!(self.config.variant, Variant::Sack(_))
    }

    pub(super) fn offers_timestamps(&self) -> bool {
        self.config.timestamps == Offer::Yes
    }

    /// Our timestamp clock: milliseconds, with an offset that hides the uptime (RFC 7323 §5.4, §7.1).
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

impl<P: Payload> Machine for Endpoint<P> {
    type Packet = Segment<P>;
    type Transmit = Segment<P>;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, segment: Segment<P>) {
        self.on_segment(now, segment);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.on_time(now);
    }

    /// By itself TCP takes every silence for congestion, whatever the network layer knows (RFC 6298): that of routes is for the
    /// feedback schemes. Pacing wants the length of the path.
    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        match signal {
            Signal::PathLength { hops } => self.note_path_length(hops),
            Signal::RouteLost => self.on_route_lost(now),
            Signal::RouteFound => self.on_route_found(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment<P>> {
        self.next_segment(now)
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}
