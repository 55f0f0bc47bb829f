//! Calls of a socket that act on data to send, and the times for which a sender was busy or limited.

use super::activity::{Activity, Limit};
use super::config::Nagle;
use super::endpoint::Endpoint;
use super::socket_options::{Cork, SocketOptions};
use super::timer::Timer;
use crate::connection::{CloseReason, SendError};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Sends the last data of a record (`MSG_EOR` of Linux): no segment holds data of this record and of the next.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_record(&mut self, now: Instant, data: P) -> Result<(), SendError> {
        self.send(now, data)?;
        let end = self.snd.queue.end();
        self.socket_options().records.push_back(end);
        Ok(())
    }

    /// Sends data that more will follow (`MSG_MORE` of Linux). A last segment that is not full waits for the next call, for an
    /// acknowledgment, or for one retransmission timeout.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_more(&mut self, now: Instant, data: P) -> Result<(), SendError> {
        self.send(now, data)?;
        let options = self.socket_options();
        if options.cork == Cork::Off {
            options.cork = Cork::UntilAck;
        }
        Ok(())
    }

    /// Holds a last segment that is not full until more data come, or releases it (`TCP_CORK` of Linux). It leaves after one
    /// retransmission timeout in any case.
    pub fn set_cork(&mut self, on: bool) {
        self.socket_options().cork = if on { Cork::On } else { Cork::Off };
    }

    /// Changes the treatment of small segments while data is in flight, as `TCP_NODELAY` does. [`Nagle::Off`] releases what
    /// [`Self::set_cork`] and [`Self::send_more`] hold back.
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.config.nagle = nagle;
        if let (Nagle::Off, Some(options)) = (nagle, &mut self.sockopts) {
            options.cork = Cork::Off;
        }
    }

    /// Returns these options, which exist from now on.
    fn socket_options(&mut self) -> &mut SocketOptions {
        self.sockopts.get_or_insert_default()
    }

    /// Returns whether a last segment that is not full has to wait for more data.
    pub(super) fn is_corked(&self) -> bool {
        self.sockopts.as_ref().is_some_and(|options| options.cork != Cork::Off)
    }

    /// Returns the bytes from `position` to the end of its record.
    pub(super) fn room_in_record(&self, position: u64) -> u64 {
        let end = self.sockopts.as_ref().and_then(|options| options.record_end(position));
        end.map_or(u64::MAX, |end| end - position)
    }

    /// Ends the hold of [`Self::send_more`], since the user sends more.
    pub(super) fn end_hold(&mut self) {
        if let Some(options) = &mut self.sockopts
            && options.cork == Cork::UntilAck
        {
            options.cork = Cork::Off;
        }
    }

    /// Sets the time that data may wait for an acknowledgment, or for the peer's window, before the connection ends as
    /// [timed out](CloseReason::TimedOut) (RFC 9293 §3.9.1.1, "user timeout"; `TCP_USER_TIMEOUT` of Linux). It counts from the
    /// last progress of the peer. `None`: the limit of [`Config::data_retries`](super::Config::data_retries) alone.
    pub fn set_user_timeout(&mut self, now: Instant, timeout: Option<Duration>) {
        let options = self.socket_options();
        (options.user_timeout, options.waits_since) = (timeout, None);
        self.timers.stop(Timer::User);
        if self.snd.una < self.snd.end() && self.state().is_synchronized() {
            self.start_user_timeout(now);
        }
    }

    /// Records that data wait for the peer.
    pub(super) fn start_user_timeout(&mut self, now: Instant) {
        if let Some(options) = &mut self.sockopts
            && let (Some(timeout), None) = (options.user_timeout, options.waits_since)
        {
            options.waits_since = Some(now);
            self.timers.set(Timer::User, now + timeout);
        }
    }

    /// Records that the peer has acknowledged new data. The timer follows when it expires.
    pub(super) fn restart_user_timeout(&mut self, now: Instant) {
        let waits = self.snd.una < self.snd.end();
        if let Some(options) = &mut self.sockopts
            && options.waits_since.is_some()
        {
            options.waits_since = waits.then_some(now);
        }
    }

    pub(super) fn on_user_timeout(&mut self, now: Instant) {
        let options = self.sockopts.as_ref();
        let times = options.and_then(|options| options.user_timeout.zip(options.waits_since));
        let Some((timeout, since)) = times else { return };
        if since + timeout <= now {
            self.terminate(CloseReason::TimedOut);
        } else {
            self.timers.set(Timer::User, since + timeout);
        }
    }

    /// Returns the times until `now` for which the sender was busy, and for which the peer's window limited it.
    #[must_use]
    pub fn activity(&self, now: Instant) -> Activity {
        self.activity.at(now)
    }

    /// Returns the time at which data of the peer last arrived, or the connection opened.
    #[must_use]
    pub fn last_data_received(&self) -> Option<Instant> {
        self.rcv.last_data
    }

    /// Records the limit of the sender, after it has chosen a segment or found none to send.
    pub(super) fn record_activity(&mut self, now: Instant) {
        let limit = self.current_limit();
        self.activity.record(now, limit);
    }

    fn current_limit(&self) -> Limit {
        let snd = &self.snd;
        if snd.queue.len() == 0 || !self.state().is_synchronized() {
            return Limit::Idle;
        }
        let unsent = snd.queue.end().saturating_sub(snd.nxt).min(snd.mss.into());
        let is_full = unsent > 0 && snd.nxt - snd.una + unsent > snd.window;
        if is_full { Limit::PeerWindow } else { Limit::Busy }
    }
}
