//! The machine: application calls and getters.

use super::config::Config;
use super::control::Control;
use super::detect::Detection;
use super::ranges::Ranges;
use super::receive::Receiver;
use super::rtt::Times;
use super::sent::{Chunk, Outstanding};
use super::stats::{DropReason, Stats};
use super::timer::Timer;
use crate::ConfigError;
use crate::Signal;
use crate::connection::{CloseError, CloseReason, Event, Events, OpenError, SendError, State};
use crate::send_queue::SendQueue;
use hopline_core::{Duration, Instant, LinkId, Machine, Payload, TimerTable};
use hopline_wire::wide::{DATA_OVERHEAD, End, Opening, Packet};
use std::collections::BTreeMap;

/// Bytes of IPv4 and UDP headers.
pub(super) const NETWORK_OVERHEAD: u32 = 28;
/// What is known of a path is forgotten after this, at least.
const PATH_MEMORY: Duration = Duration::from_secs(10);
/// Bytes of the receive buffer for each piece of data that may be kept out of order: a peer cannot fill memory with crumbs.
const BYTES_A_PART: u64 = 512;

/// One end of one TPA-wide connection.
///
/// An endpoint lives for one connection: make it, [`connect`](Self::connect) or [`listen`](Self::listen), transfer,
/// [`close`](Self::close). Addresses, keys and connection ids are not its business.
#[derive(Clone, Debug)]
pub struct Endpoint<P: Payload> {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) role: Role,
    pub(super) snd: Sender<P>,
    pub(super) rcv: Receiver<P>,
    pub(super) times: Times,
    pub(super) control: Control,
    pub(super) path: Path,
    pub(super) timers: TimerTable<Timer, 8>,
    pub(super) owed: Owed,
    /// Openings that were sent.
    pub(super) openings: u32,
    /// When the peer was last heard.
    pub(super) heard: Instant,
    /// Since when the peer has owed us something, if it does.
    pub(super) owing_since: Instant,
    pub(super) stats: Stats,
    events: Events,
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    NotYet,
    Active,
    Passive,
}

/// Whether the path answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Answers,
    /// Silent for a time-out, or not there as the network layer says, since then; so many probes were sent.
    Silent {
        since: Instant,
        probes: u32,
    },
}

/// What is owed to the peer apart from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Owed {
    pub(super) opening: bool,
    pub(super) ack: bool,
    /// A packet that asks for an answer, whatever rate and window say.
    pub(super) probe: bool,
    pub(super) reset: bool,
}

/// The sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    pub(super) queue: SendQueue<P>,
    /// First position that was never sent.
    pub(super) next: u64,
    /// What the peer has.
    pub(super) arrived: Ranges,
    /// First position that the peer does not have.
    pub(super) una: u64,
    /// Data that were taken for lost, by offset.
    pub(super) lost: BTreeMap<u64, Chunk>,
    pub(super) closing: Closing,
    pub(super) outstanding: Outstanding,
    pub(super) detection: Detection,
    /// Bytes that have left, from the network layer's header on.
    pub(super) left: u64,
    /// The peer takes data up to here.
    pub(super) limit: u64,
    pub(super) mss: u16,
    /// When the next packet may leave.
    pub(super) release: Instant,
    /// Packets with data in a row that were not urgent.
    pub(super) not_urgent: u32,
    /// Marks that the peer has told of.
    pub(super) marks: u32,
    /// The first packet behind those that left while there was nothing more to send.
    pub(super) starved: u64,
    /// Position after the highest that has left, and whether the end of the stream has.
    pub(super) furthest: u64,
    pub(super) end_sent: bool,
}

impl<P> Sender<P> {
    /// What the peer misses of `chunk`, if anything.
    pub(super) fn missing(&self, chunk: Chunk) -> Option<Chunk> {
        let range = chunk.range();
        if range.end > self.una && !(chunk.len > 0 && self.arrived.covers(range.clone())) {
            return Some(chunk);
        }
        let end_missing = chunk.end == End::Yes && self.closing != Closing::Arrived;
        end_missing.then_some(Chunk { offset: range.end, len: 0, end: End::Yes })
    }
}

/// What became of the user's close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The user has not closed.
    Open,
    /// The end of the stream is to be told.
    Due,
    /// It is under way.
    Sent,
    /// The peer has it.
    Arrived,
}

impl<P: Payload> Endpoint<P> {
    /// A closed endpoint.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let packet = u32::from(config.mss) + DATA_OVERHEAD as u32 + NETWORK_OVERHEAD;
        Ok(Self {
            config,
            state: State::Closed,
            role: Role::NotYet,
            snd: Sender {
                queue: SendQueue::new(0, config.send_buffer),
                next: 0,
                arrived: Ranges::default(),
                una: 0,
                lost: BTreeMap::new(),
                closing: Closing::Open,
                outstanding: Outstanding::default(),
                detection: Detection::new(config.detect),
                left: 0,
                limit: 0,
                mss: config.mss,
                release: Instant::ZERO,
                not_urgent: 0,
                marks: 0,
                starved: 0,
                furthest: 0,
                end_sent: false,
            },
            rcv: Receiver::new(
                config.ack,
                (config.receive_start, config.receive_buffer),
                (config.receive_buffer / BYTES_A_PART).max(16) as usize,
            ),
            times: Times::new(PATH_MEMORY),
            control: Control::new(config.control, packet),
            path: Path::Answers,
            timers: TimerTable::new(),
            owed: Owed::default(),
            openings: 0,
            heard: Instant::ZERO,
            owing_since: Instant::ZERO,
            stats: Stats::default(),
            events: Events::default(),
        })
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// Already open.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.open(Role::Active, State::SynSent)?;
        self.send_opening(now);
        Ok(())
    }

    /// Waits for the peer to open the connection.
    ///
    /// # Errors
    /// Already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        self.open(Role::Passive, State::Listen)
    }

    /// Waits for a handshake beneath to be over, that of the encryption: it carries what [`connect`](Self::connect) and
    /// [`listen`](Self::listen) would say in packets. Data may be handed over.
    ///
    /// # Errors
    /// Already open.
    pub fn await_handshake(&mut self) -> Result<(), OpenError> {
        self.open(Role::Active, State::SynSent)
    }

    /// The connection is open at once: a handshake beneath has told each end the other's [`opening`](Self::opening). Whoever has
    /// [waited](Self::await_handshake) for it shows with the first packet that it is over, be it with data or without any. `round_trip`:
    /// that of the handshake, if it was measured.
    ///
    /// # Errors
    /// Already open.
    pub fn handshake_done(
        &mut self,
        now: Instant,
        peer: Opening,
        round_trip: Option<Duration>,
    ) -> Result<(), OpenError> {
        match (self.role, self.state) {
            (Role::NotYet, State::Closed) => self.role = Role::Passive,
            (Role::Active, State::SynSent) if self.openings == 0 => self.owed.probe = true,
            _ => return Err(OpenError::AlreadyOpen),
        }
        self.heard = now;
        self.take_opening(peer);
        if let Some(round_trip) = round_trip {
            self.times.sample(now, round_trip, Duration::ZERO);
        }
        self.establish(now);
        Ok(())
    }

    /// Packets go another way from now on: what was learnt of the old one is as after a long outage, and it is found out at once whether the new
    /// one answers.
    pub fn path_changed(&mut self, now: Instant) {
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        self.times.forget();
        self.snd.release = now;
        self.control.begin_anew(now, self.snd.outstanding.upcoming());
        if let Path::Silent { since, .. } = &mut self.path {
            *since = now;
            self.owed.probe = true;
        }
    }

    /// Leaves out the number of the next packet, since something else has it; returns it. The peer's endpoint is to be told of an empty packet with it.
    pub fn skip_number(&mut self) -> u64 {
        self.snd.outstanding.next_number()
    }

    /// Leaves out the numbers of packets below `number`, which something beneath will never carry.
    pub fn skip_numbers_to(&mut self, number: u64) {
        self.snd.outstanding.skip_to(number);
    }

    /// Returns the highest number of a packet that the peer has acknowledged, of those that ask for it.
    #[must_use]
    pub fn highest_acknowledged(&self) -> Option<u64> {
        self.snd.detection.newest().map(|newest| newest.number)
    }

    /// Asks the peer for a sign of life with the next packet, be there data or not. Nothing while the connection is not open.
    pub fn ask(&mut self) {
        self.owed.probe |= self.may_ask();
    }

    fn open(&mut self, role: Role, state: State) -> Result<(), OpenError> {
        if self.role != Role::NotYet {
            return Err(OpenError::AlreadyOpen);
        }
        (self.role, self.state) = (role, state);
        Ok(())
    }

    /// Takes data to send, all of it or none. It may be handed over before the connection is open.
    ///
    /// # Errors
    /// Not open for sending, or no room.
    pub fn send(&mut self, _now: Instant, data: P) -> Result<(), SendError> {
        if !self.state.may_send() || self.snd.closing != Closing::Open {
            return Err(SendError::NotOpen);
        }
        self.snd.queue.push(data)
    }

    /// The next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        let data = self.rcv.read()?;
        if self.state.may_receive() && self.rcv.has_news_of_limit() {
            self.owed.ack = true;
        }
        Some(data)
    }

    /// Closes our direction once all data handed over is sent; data of the peer is still received.
    ///
    /// # Errors
    /// Not open, or already closed by the user.
    pub fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        if !self.state.may_send() || self.snd.closing != Closing::Open {
            return Err(CloseError::NotOpen);
        }
        if matches!(self.state, State::Listen | State::SynSent) && self.snd.queue.len() == 0 {
            self.finish(CloseReason::Finished);
            return Ok(());
        }
        self.snd.closing = Closing::Due;
        self.enter_closing();
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
    pub fn stats(&self) -> Stats {
        Stats { reductions: self.control.reductions(), ..self.stats }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes that may be in flight.
    #[must_use]
    pub fn window(&self) -> u64 {
        // What leaves before its time, or late by as much, is under way beside what the path holds.
        let bursts = self.config.pace_ahead.saturating_mul(2);
        self.control.window(self.times.least(), self.reordering() + bursts, self.together())
    }

    /// The rate at which packets leave, bits per second with headers; `None` before anything is known of the path.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.control.pace().map(|bytes| bytes * 8.0)
    }

    /// What the peer has to know of us before it sends.
    #[must_use]
    pub fn opening(&self) -> Opening {
        Opening { mss: self.config.mss, limit: self.rcv.first_limit() as u32 }
    }

    /// Smoothed round-trip time, once there is a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.times.srtt()
    }

    /// Mean deviation of the round-trip time, once there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Duration> {
        self.srtt().map(|_| self.times.deviation())
    }

    /// Bytes that the peer takes beyond what it has acknowledged, as far as it has told.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        let acknowledged = self.snd.queue.end() - self.snd.queue.len();
        self.snd.limit.saturating_sub(acknowledged)
    }

    /// Bytes in flight, headers included.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.snd.outstanding.bytes()
    }

    /// Data bytes of a full packet.
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

    /// Bytes received and kept, read or not in order.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.rcv.unread()
    }

    /// Bytes of memory that received data take, the overhead of their pieces included.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.rcv.held()
    }

    /// From now on received data may take so many bytes of memory, as [`held`](Self::held) counts them. What is there already stays, and
    /// room that the peer was told of is not taken back: what comes for it and is too much is dropped, as if the network had lost it. Data
    /// that the user waits for are always taken.
    pub fn allow(&mut self, bytes: u64) {
        self.rcv.allow(bytes);
    }

    // ---- shared by the other files ----

    /// How long a packet may be overtaken before it is lost.
    pub(super) fn reordering(&self) -> Duration {
        self.snd.detection.window(self.times.least(), self.times.srtt().unwrap_or(Duration::ZERO))
    }

    /// Moves on to a state that the end of a stream leads to.
    pub(super) fn move_to(&mut self, now: Instant, state: State) {
        match state {
            _ if state == self.state => {}
            // The end that closed last stays as well: the peer may not know yet that its own end has arrived.
            State::TimeWait | State::Closed => {
                self.state = State::TimeWait;
                self.timers.stop_all();
                self.timers.set(Timer::TimeWait, now + self.config.time_wait);
                self.set_keep_alive(now);
            }
            _ => self.state = state,
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) fn drop_packet(&mut self, reason: DropReason) {
        self.stats.drops.add(reason);
    }

    /// Ends the connection and forgets everything that waits.
    pub(super) fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.timers.stop_all();
        self.snd.queue.clear();
        self.snd.lost.clear();
        self.snd.outstanding.clear();
        self.owed = Owed::default();
        self.rcv.forget_unordered();
        self.event(Event::Closed(reason));
    }

    pub(super) fn send_opening(&mut self, now: Instant) {
        self.owed.opening = true;
        self.openings += 1;
        let patience = self.config.open_again.saturating_mul(1 << (self.openings - 1).min(8));
        self.timers.set(Timer::Open, now + patience);
    }
}

crate::connection::connection_of!(Endpoint<P>);

impl<P: Payload> Machine for Endpoint<P> {
    type Packet = Packet<P>;
    type Transmit = Packet<P>;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, packet: Packet<P>) {
        self.on_packet(now, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.on_time(now);
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
        self.events.pop()
    }
}
