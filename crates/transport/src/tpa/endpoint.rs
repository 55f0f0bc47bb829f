//! The machine: application calls and getters.

use super::block::Block;
use super::config::{Config, LEAST_MSS};
use super::parts::{Closing, Confirmed, Flush, Hurry, Identity, Opening, Owed, Role, Sender, Tags};
use super::receive::Receiver;
use super::rto::Rto;
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use super::window::{Path, Window};
use crate::ConfigError;
use crate::Signal;
use crate::connection::{CloseError, CloseReason, Event, Events, OpenError, SendError, State};
use crate::pacing::AdaptivePacing;
use crate::send_queue::SendQueue;
use hopline_core::{Duration, Instant, LinkId, Machine, Payload, TimerTable};
use hopline_wire::tpa::{Control, Receipt, Segment, Tag, TxStat};

/// One end of one TPA connection.
///
/// An endpoint lives for one connection: make it, [`connect`](Self::connect) or [`listen`](Self::listen), transfer,
/// [`close`](Self::close). Addresses and ports are not its business.
///
/// Segments that were read at once may be handed over one after the other before the outputs are drained: they are then
/// answered together, by one acknowledgment.
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload> {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) opening: Opening,
    pub(super) tags: Tags,
    pub(super) snd: Sender<P>,
    pub(super) rcv: Receiver<P>,
    pub(super) window: Window,
    pub(super) rto: Rto,
    /// When segments may leave, if they are spaced.
    pub(super) pacing: Option<Box<AdaptivePacing>>,
    pub(super) timers: TimerTable<Timer, 9>,
    /// What is owed to the peer apart from data.
    pub(super) owed: Owed,
    /// When the peer was last heard.
    pub(super) heard: Instant,
    /// The peer was asked for a sign of life since then.
    pub(super) asked: bool,
    /// Since when the peer has owed us something, if it does.
    pub(super) owing_since: Instant,
    pub(super) stats: Stats,
    events: Events,
}

impl<P: Payload> Endpoint<P> {
    /// A closed endpoint without connection tag, as in the paper: anyone who knows addresses and ports can write to the
    /// connection. For the simulator, and for networks where nobody forges packets.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_tag(config, None)
    }

    /// A closed endpoint that accepts only segments with the connection tag of `identity`, and only acknowledgments of
    /// what the peer can prove to have received.
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
            state: State::Closed,
            opening: Opening {
                role: Role::NotYet,
                syn_sent: None,
                retries: 0,
                confirmed: Confirmed::Yes,
                hurry: Hurry::No,
            },
            tags: Tags {
                local: identity.map(|identity| identity.tag),
                peer: None,
                secret: identity.map(|identity| identity.secret),
            },
            snd: Sender {
                queue: SendQueue::new(0, config.send_buffer),
                block: None,
                number: 0,
                unblocked: 0,
                waiting: None,
                flush: Flush::No,
                closing: Closing::Open,
                peer_window: 0,
                mss: config.mss,
                peer_mss: u16::MAX,
                path_mss: u16::MAX,
                block_segments: config.block_segments,
                questions: 0,
            },
            rcv: Receiver::new(&config, config.longest_taken(identity.map(|identity| identity.tag))),
            window: Window::new(config.failures, config.cwnd_max),
            rto: Rto::new(config.rto),
            pacing: config.pacing.machine(),
            timers: TimerTable::new(),
            owed: Owed::default(),
            heard: Instant::ZERO,
            asked: false,
            owing_since: Instant::ZERO,
            stats: Stats::default(),
            events: Events::default(),
        })
    }

    /// Opens the connection: sends a SYN.
    ///
    /// # Errors
    /// Already open.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.open(Role::Active, State::SynSent)?;
        self.opening.syn_sent = Some(now);
        self.send_syn(now);
        if let Some(soon) = self.config.call_again {
            self.timers.set(Timer::Open, now + soon);
            self.opening.hurry = Hurry::Yes;
        }
        Ok(())
    }

    /// Waits for the peer's SYN.
    ///
    /// # Errors
    /// Already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.open(Role::Passive, State::Listen)
    }

    /// The endpoint of a peer that has proved to have received our `local` tag, which it was told in answer to its SYN.
    pub(super) fn accepted(
        now: Instant,
        config: Config,
        identity: Identity,
        opening: hopline_wire::tpa::Opening,
        window: u16,
    ) -> Self {
        let mut endpoint = Self::tagged(config, identity).expect("the listener's configuration is valid");
        endpoint.opening.role = Role::Passive;
        endpoint.take_opening(opening, window);
        endpoint.establish(now);
        endpoint.owed.ack = true; // the peer repeats its parameters until it hears of us
        endpoint
    }

    fn open(&mut self, role: Role, state: State) -> Result<(), OpenError> {
        if self.opening.role != Role::NotYet {
            return Err(OpenError::AlreadyOpen);
        }
        self.opening.role = role;
        self.state = state;
        Ok(())
    }

    /// Takes data to send, all of it or none. It may be handed over before the handshake is complete. It leaves as soon
    /// as it fills a block, after [`Config::block_fill`], or on [`flush`](Self::flush).
    ///
    /// # Errors
    /// Not open for sending, or no room.
    pub fn send(&mut self, now: Instant, data: P) -> Result<(), SendError> {
        if !self.state.may_send() || self.snd.closing != Closing::Open {
            return Err(SendError::NotOpen);
        }
        self.snd.queue.push(data)?;
        self.form_block(now);
        Ok(())
    }

    /// Lets what was handed over go without waiting for a full block.
    pub fn flush(&mut self, now: Instant) {
        self.snd.flush = Flush::UpTo(self.snd.queue.end());
        self.form_block(now);
    }

    /// The next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.read()?;
        if self.state.may_receive() && self.rcv.has_news_of_window() {
            self.owed.ack = true;
        }
        Some(data)
    }

    /// Closes our direction once all data handed over is sent; data of the peer is still received. Before the
    /// connection is open, and with nothing to send, it simply ends.
    ///
    /// # Errors
    /// Not open, or already closed by the user.
    pub fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        if !self.state.may_send() || self.snd.closing != Closing::Open {
            return Err(CloseError::NotOpen);
        }
        if matches!(self.state, State::Listen | State::SynSent) && self.snd.queue.len() == 0 {
            self.finish(CloseReason::Finished);
            return Ok(());
        }
        self.snd.closing = Closing::FinDue;
        self.enter_closing();
        self.form_block(now);
        Ok(())
    }

    /// Moves on from an open state once the user closed.
    pub(super) fn enter_closing(&mut self) {
        if self.snd.closing != Closing::Open {
            self.state = self.state.after_close();
        }
    }

    /// Ends the connection at once, with a reset to the peer if it knows of us. Does nothing when closed.
    pub fn abort(&mut self, _now: Instant) {
        let tells_peer = self.state.is_synchronized() || self.state == State::SynReceived;
        if self.state != State::Closed {
            self.finish(CloseReason::Aborted);
            self.owed.reset = tells_peer;
        }
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

    /// Our connection tag.
    #[must_use]
    pub fn tag(&self) -> Option<Tag> {
        self.tags.local
    }

    /// The peer's connection tag, once known.
    #[must_use]
    pub fn peer_tag(&self) -> Option<Tag> {
        self.tags.peer
    }

    /// Congestion window, segments.
    #[must_use]
    pub fn cwnd(&self) -> u8 {
        self.window.cwnd()
    }

    /// From here on at most this many segments are in flight while all is well. What is in flight stays.
    ///
    /// The peer was told the configured number when the connection was opened, and keeps to that where it acknowledges
    /// once a window (TPA*).
    ///
    /// # Errors
    /// Not 1 to 12.
    pub fn set_cwnd_max(&mut self, cwnd_max: u8) -> Result<(), ConfigError> {
        let config = Config { cwnd_max, ..self.config };
        config.validate()?;
        self.config = config;
        self.window.set_cwnd_max(cwnd_max);
        Ok(())
    }

    /// From the next block on, segments have at most this many bytes of data, as the path has no room for more; at least
    /// 508. What the peer takes and [`Config::mss`] bound it, too.
    pub fn set_path_mss(&mut self, mss: u16) {
        self.snd.path_mss = mss.max(LEAST_MSS);
        self.choose_mss();
    }

    pub(super) fn choose_mss(&mut self) {
        self.snd.mss = self.config.mss.min(self.snd.peer_mss).min(self.snd.path_mss);
    }

    /// What the sender believes of the path.
    #[must_use]
    pub fn path(&self) -> Path {
        self.window.path()
    }

    /// Mean round-trip time (ERTT); `None` before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.ertt()
    }

    /// Mean deviation of the round-trip time (DEV); `None` before the first sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Duration> {
        self.rto.dev()
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

    /// The pacing machine, if segments are paced.
    #[must_use]
    pub fn pacing(&self) -> Option<&AdaptivePacing> {
        self.pacing.as_deref()
    }

    /// Segments in flight.
    #[must_use]
    pub fn in_flight(&self) -> u8 {
        self.snd.block.as_ref().map_or(0, Block::in_flight)
    }

    /// Room for data at the peer, as it announced last, bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.snd.peer_window
    }

    /// When the peer was last heard; zero before it was.
    #[must_use]
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Data bytes of a full segment.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        self.snd.mss.into()
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
        self.rcv.unread()
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
        self.snd.block = None;
        self.owed = Owed::default();
        self.rcv.forget_unordered();
        self.event(Event::Closed(reason));
    }

    pub(super) fn send_syn(&mut self, now: Instant) {
        self.owed.syn = true;
        self.timers.set(Timer::Open, now + self.rto.timeout());
    }

    /// A segment that says where we stand and nothing more.
    pub(super) fn bare_segment(&mut self, control: Control) -> Segment<P> {
        let repeats_opening = control == Control::Syn || self.opening.confirmed == Confirmed::NotYet;
        Segment {
            block: self.snd.number,
            place: None,
            tx: 0,
            ack: None,
            control,
            tx_stat: if self.window.path() == Path::Normal { TxStat::Normal } else { TxStat::Congested },
            window: self.rcv.announce(),
            tag: self.tags.peer,
            receipt: Receipt::default(),
            opening: repeats_opening.then(|| self.config.opening(self.tags.local)),
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
        self.events.pop()
    }
}
