//! The 802.11 distributed coordination function (IEEE 802.11-2020 §10.3) as a state machine.
//!
//! One [`Mac`] serves one station. It holds one MSDU at a time, or a block of them. Its driver keeps the interface queue,
//! passes the next MSDU when [`Mac::is_ready`], and gets each MSDU's fate in an [`Event`]. The physical layer reports
//! carrier, frames and the end of the station's own transmissions; the MAC responds with frames to send. If a frame and the
//! carrier end together, the frame is reported first: its reservation counts before the medium counts as idle.

pub mod airtime;
mod block_ack;
mod burst;
pub mod config;
mod contention;
mod duplicates;
mod exchange;
#[cfg(test)]
mod tests;
mod types;

pub use airtime::{Airtime, RadioState};
pub use config::Config;
pub use types::{Event, Msdu, Reception, Signal, State, Stats, Timer, Transmission};

use airtime::AirtimeClock;
use block_ack::BlockAck;
use config::{AckPolicy, EifsRule, FirstAccess, NavReset, Reservation, ResponseTimeout};
use contention::Backoff;
use core::fmt::Debug;
use duplicates::DuplicateCache;
use hopline_core::{Duration, Instant, LinkId, RandomStream, Seq16, StateMachine, TimerTable};
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;

/// Largest Duration field in µs; larger values have other meanings (802.11-2020 §9.2.4.2).
const MAX_DURATION_US: u16 = 32_767;

/// The MSDU in service.
#[derive(Clone, Copy, Debug)]
struct CurrentMsdu<M> {
    msdu: Msdu<M>,
    sequence: Seq16,
    /// Time at which the MAC took it.
    accepted_at: Instant,
    /// Attempts of RTS or short data (802.11 SSRC).
    short_retries: u8,
    /// Attempts of long data (802.11 SLRC).
    long_retries: u8,
    retry: bool,
}

/// Service for which the station contends.
#[derive(Clone, Copy, Debug)]
enum Service<M> {
    None,
    /// One MSDU: any, or a group-addressed one under block acknowledgment.
    Single(CurrentMsdu<M>),
    /// The MSDUs, or the BlockAckReq, of [`block_ack`].
    Block,
}

/// Response that a received frame calls for.
#[derive(Clone, Copy, Debug)]
struct PendingResponse {
    to: MacAddr,
    duration_us: u16,
}

/// Constant airtimes.
#[derive(Clone, Copy, Debug)]
struct ControlAirtimes {
    cts: Duration,
    ack: Duration,
    difs: Duration,
    eifs: Duration,
}

/// MAC of one station; see the [module](self).
///
/// Laid out as written: what every overheard frame touches comes first, and stands in few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Mac<M> {
    state: State,
    /// State of other stations' signals, as the physical layer reports it.
    carrier: RadioState,
    address: MacAddr,
    /// Start of the idle period as the physical layer sees it, while the medium is idle.
    idle_since: Instant,
    /// End of the EIFS after an undecodable frame. Far in the future until the medium becomes idle after that frame; in the
    /// past without such a frame.
    eifs_until: Instant,
    nav_until: Instant,
    times: ControlAirtimes,
    timers: TimerTable<Timer, 5>,
    clock: AirtimeClock,
    contention: Backoff,
    service: Service<M>,
    events: VecDeque<Event<M>>,
    outgoing: Option<Transmission<M>>,
    config: Config,
    response: Option<PendingResponse>,
    /// End of the current burst.
    burst_until: Instant,
    next_sequence: Seq16,
    duplicates: DuplicateCache,
    stats: Stats,
    /// Block acknowledgment state, only with [`AckPolicy::BlockAck`]; boxed, because most stations do without.
    block_ack: Option<Box<BlockAck<M>>>,
}

impl<M: Copy + Debug> Mac<M> {
    /// Creates a station with an idle medium. Backoff is drawn from `stream`.
    #[must_use]
    pub fn new(config: Config, address: MacAddr, stream: RandomStream) -> Self {
        let times = ControlAirtimes {
            cts: config.control_airtime(hopline_wire::dot11::CTS_LEN),
            ack: config.control_airtime(hopline_wire::dot11::ACK_LEN),
            difs: config.difs(),
            eifs: config.eifs(),
        };
        Self {
            contention: Backoff::new(&config, stream),
            block_ack: BlockAck::from_config(&config),
            config,
            times,
            address,
            state: State::Idle,
            service: Service::None,
            response: None,
            burst_until: Instant::ZERO,
            outgoing: None,
            timers: TimerTable::new(),
            carrier: RadioState::Idle,
            idle_since: Instant::ZERO,
            eifs_until: Instant::ZERO,
            nav_until: Instant::ZERO,
            next_sequence: Seq16(0),
            duplicates: DuplicateCache::default(),
            events: VecDeque::with_capacity(4),
            clock: AirtimeClock::default(),
            stats: Stats::default(),
        }
    }

    /// Returns whether the MAC can take an MSDU. With [`AckPolicy::BlockAck`] it can take several before the fate of the
    /// first is known, for any receivers; one for another receiver waits until the block is over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self.service {
            Service::None => true,
            Service::Single(_) => false,
            Service::Block => self.has_room_in_block(),
        }
    }

    /// Returns whether there are no outputs; a driver may then skip `poll_transmit` and `poll_event`.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.outgoing.is_none() && self.events.is_empty()
    }

    /// Returns the MSDUs that were [sent](Mac::send) with a fate that is not known yet.
    pub fn pending_msdus(&self) -> impl Iterator<Item = &Msdu<M>> {
        let single = match &self.service {
            Service::Single(current) => Some(&current.msdu),
            Service::None | Service::Block => None,
        };
        single.into_iter().chain(self.block_ack.iter().flat_map(|block| block.pending_msdus()))
    }

    /// Returns the number of bodies that the MAC holds: MSDUs to send, and received ones that wait for earlier ones.
    #[must_use]
    pub fn stored_bodies(&self) -> usize {
        self.pending_msdus().count() + self.block_ack.as_ref().map_or(0, |block| block.reorder_buffer_len())
    }

    /// Takes an MSDU for transmission. The MAC must be [ready](Mac::is_ready).
    pub fn send(&mut self, now: Instant, msdu: Msdu<M>) {
        debug_assert!(self.is_ready(), "the MAC holds as much as it can");
        let contends = self.has_action_due();
        match self.config.ack_policy {
            AckPolicy::Normal | AckPolicy::NoAck => {
                self.start_service(now, msdu);
                if self.state == State::BetweenFrames {
                    return; // It joins the burst, if it fits.
                }
            }
            AckPolicy::BlockAck { .. } => {
                if self.add_to_block(now, msdu) == block_ack::AddResult::Queued {
                    return;
                }
            }
        }
        if !contends {
            self.request_access(now);
        }
    }

    /// Puts a single MSDU into service.
    fn start_service(&mut self, since: Instant, msdu: Msdu<M>) {
        let sequence = self.next_sequence_number();
        let current = CurrentMsdu {
            msdu,
            sequence,
            accepted_at: since,
            short_retries: 0,
            long_retries: 0,
            retry: false,
        };
        self.service = Service::Single(current);
    }

    /// Returns the next number of the sequence shared by all receivers.
    fn next_sequence_number(&mut self) -> Seq16 {
        let sequence = self.next_sequence;
        self.next_sequence = Seq16((sequence.0 + 1) & 0x0fff);
        sequence
    }

    /// Returns whether there is a frame to send.
    fn wants_medium(&self) -> bool {
        !matches!(self.service, Service::None) || self.has_action_due()
    }

    /// Returns whether the lifetime of an MSDU that the MAC took at `since` is over.
    fn is_expired(&self, now: Instant, since: Instant) -> bool {
        self.config.msdu_lifetime.is_some_and(|lifetime| since + lifetime <= now)
    }

    /// Returns the station's state in the frame exchange.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the end of the NAV, until which the medium is reserved.
    #[must_use]
    pub const fn nav_until(&self) -> Instant {
        self.nav_until
    }

    /// The contention window.
    #[must_use]
    pub const fn cw(&self) -> u16 {
        self.contention.cw()
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Radio time by state, up to `now`, since the start or the last [`restart_airtime`](Self::restart_airtime).
    #[must_use]
    pub fn airtime(&self, now: Instant) -> Airtime {
        self.clock.totals(now, self.nav_until)
    }

    /// Resets the counters of radio time at `now`.
    pub fn restart_airtime(&mut self, now: Instant) {
        self.clock.restart(now);
    }

    fn is_transmitting(&self) -> bool {
        matches!(
            self.state,
            State::SendRts
                | State::SendData
                | State::SendCts
                | State::SendAck
                | State::SendBlockAckReq
                | State::SendBlockAck
                | State::SendAction
        )
    }

    fn is_carrier_idle(&self) -> bool {
        self.carrier == RadioState::Idle
    }

    /// Requests access to the medium for a new frame.
    fn request_access(&mut self, now: Instant) {
        if !self.contention.is_pending(now) {
            self.contention.finish();
            let medium_idle = self.state == State::Idle && self.is_carrier_idle() && self.nav_until <= now;
            match self.config.first_access {
                FirstAccess::Immediate if medium_idle => {}
                FirstAccess::IdleOnArrival if self.is_medium_idle_on_arrival(now) => {
                    self.contention.set_zero_backoff()
                }
                FirstAccess::Immediate | FirstAccess::IdleOnArrival => self.contention.draw_backoff(),
                FirstAccess::AlwaysBackoff => {
                    self.contention.draw_backoff();
                    self.resume_from(now, now + self.times.difs);
                    return;
                }
            }
        }
        self.resume(now);
    }

    /// Returns whether the medium is free under [`FirstAccess::IdleOnArrival`]: carrier and NAV count, and an outstanding
    /// response does not.
    fn is_medium_idle_on_arrival(&self, now: Instant) -> bool {
        !self.is_transmitting() && self.is_carrier_idle() && self.nav_until <= now
    }

    /// Resumes counting slots if the medium is idle and the station's own exchange is over; the NAV may still be set.
    fn resume(&mut self, now: Instant) {
        self.resume_from(now, Instant::ZERO);
    }

    /// Resumes as [`Mac::resume`] does, and counts slots from `earliest` at the soonest.
    fn resume_from(&mut self, now: Instant, earliest: Instant) {
        if self.state != State::Idle || !self.is_carrier_idle() {
            return;
        }
        let difs_over = self.idle_since.max(self.nav_until) + self.times.difs;
        let ifs_over = difs_over.max(self.eifs_until);
        let access = self.contention.resume(ifs_over.max(earliest).max(now));
        if self.wants_medium() {
            // Without pending backoff the frame is sent at the end of the interframe space.
            self.timers.set(Timer::Access, access.unwrap_or(ifs_over).max(now));
        }
    }

    /// Handles the start of a signal. A frame that is due at this very instant is sent all the same. A station cannot sense
    /// a signal that begins in the slot of its own transmission (802.11-2020 §10.3.7, aSlotTime), in whichever order the two
    /// are reported.
    fn sense_busy(&mut self, now: Instant) {
        let is_due = self.timers.get(Timer::Access).is_some_and(|at| at <= now);
        if self.state == State::Idle && !is_due {
            self.freeze(now);
        }
    }

    /// Freezes the backoff, because the medium is busy or the station enters an exchange.
    fn freeze(&mut self, now: Instant) {
        self.contention.freeze(now);
        if self.timers.is_set(Timer::Access) {
            self.timers.stop(Timer::Access);
            if !self.contention.is_pending(now) {
                // The medium became busy within the interframe space of a frame that had no backoff.
                self.contention.draw_backoff();
            }
        }
    }

    /// Enters an exchange, or continues one.
    fn enter_exchange(&mut self, now: Instant, state: State) {
        if self.state == State::Idle {
            self.freeze(now);
        }
        self.state = state;
    }

    /// Leaves the exchange. Slots count again once the medium is idle.
    fn leave_exchange(&mut self, now: Instant) {
        self.state = State::Idle;
        self.timers.stop(Timer::Response);
        self.resume(now);
    }

    /// Records the state of the carrier, and whether the medium just became idle or busy.
    fn handle_carrier(&mut self, now: Instant, carrier: RadioState) {
        let was_idle = self.is_carrier_idle();
        self.carrier = carrier;
        if !self.is_transmitting() {
            self.clock.enter(now, carrier, self.nav_until);
        }
        if carrier != RadioState::Idle {
            self.timers.stop(Timer::NavReset);
        }
        match (was_idle, self.is_carrier_idle()) {
            (true, false) => self.sense_busy(now),
            (false, true) => {
                self.idle_since = now;
                if self.eifs_until == Instant::FAR_FUTURE {
                    self.eifs_until = now + self.times.eifs;
                }
                if !self.timers.is_set(Timer::Response) {
                    // The frame that prolonged the wait was not the response.
                    self.fail_if_awaiting(now);
                }
                self.resume(now);
            }
            _ => {}
        }
    }

    fn handle_undecodable(&mut self, now: Instant) {
        self.stats.undecodable += 1;
        match self.config.eifs {
            // EIFS begins when the medium becomes idle after the frame (802.11-2020 §10.3.2.3.7).
            EifsRule::Standard if !self.is_carrier_idle() => self.eifs_until = Instant::FAR_FUTURE,
            EifsRule::Standard => self.eifs_until = now + self.times.eifs,
            EifsRule::AsNav => self.nav_until = self.nav_until.max(now + self.times.eifs),
        }
        if self.config.response_timeout == ResponseTimeout::Standard {
            self.fail_if_awaiting(now);
        }
    }

    fn start_transmission(&mut self, now: Instant, state: State, transmission: Transmission<M>) {
        self.enter_exchange(now, state);
        self.clock.enter(now, RadioState::Transmitting, self.nav_until);
        self.outgoing = Some(transmission);
    }

    fn handle_transmit_end(&mut self, now: Instant) {
        if !self.is_transmitting() {
            return;
        }
        self.clock.enter(now, self.carrier, self.nav_until);
        self.idle_since = now;
        self.after_transmission(now);
    }

    /// Sets the NAV, unless it runs longer already. Returns whether it was set.
    fn set_nav(&mut self, now: Instant, duration_us: u16) -> bool {
        let until = now + Duration::from_micros(u64::from(duration_us));
        if duration_us > MAX_DURATION_US || until <= self.nav_until {
            return false;
        }
        self.nav_until = until;
        true
    }

    fn arm_nav_reset(&mut self, now: Instant) {
        if self.config.nav_reset == NavReset::AfterSilentRts {
            let wait =
                self.config.sifs * 2 + self.times.cts + self.config.rx_start_delay() + self.config.slot * 2;
            self.timers.set(Timer::NavReset, now + wait);
        }
    }

    fn reset_nav(&mut self, now: Instant) {
        self.contention.freeze(now);
        self.nav_until = now;
        self.resume(now);
    }
}

impl<M: Copy + Debug> StateMachine for Mac<M> {
    type Packet = Reception<M>;
    type Transmit = Transmission<M>;
    type Signal = Signal;
    type Event = Event<M>;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, packet: Reception<M>) {
        match packet {
            Reception::Frame(frame) => self.handle_frame(now, frame),
            Reception::Errored => self.handle_undecodable(now),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Sifs => self.after_sifs(now),
                Timer::Response => self.on_response_timeout(now),
                Timer::Access => self.transmit_current(now),
                Timer::NavReset => self.reset_nav(now),
                Timer::Inactivity => self.expire_agreements(now),
            }
        }
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        match signal {
            Signal::Carrier(carrier) => self.handle_carrier(now, carrier),
            Signal::TransmitEnd => self.handle_transmit_end(now),
            Signal::Captured { until } => {
                if self.config.eifs == EifsRule::AsNav {
                    self.nav_until = self.nav_until.max(until + self.times.eifs);
                }
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmission<M>> {
        self.outgoing.take()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event<M>> {
        self.events.pop_front()
    }
}

/// Returns whether a frame in a reservation may be sent now. ns-2 checks this, the standard does not.
fn may_transmit(rule: Reservation, carrier_idle: bool, nav_until: Instant, now: Instant) -> bool {
    match rule {
        Reservation::Standard => true,
        Reservation::MediumIdle => carrier_idle && nav_until <= now,
    }
}
