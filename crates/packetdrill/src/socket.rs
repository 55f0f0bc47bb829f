//! Sockets and their options.

use crate::settings::Settings;
use hopline_core::{Duration, Instant, Length};
use hopline_transport::tcp::{Config, Endpoint, KeepAlive, Nagle, ReceiveLimits};

/// Socket by its descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) options: SocketOptions,
    pub(crate) kind: SocketKind,
    /// Number of connections of the host when the socket began to listen.
    pub(crate) listens_since: usize,
}

/// Use of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// Neither connected nor listening.
    New,
    /// Listening.
    Listener,
    /// Connection by its number.
    Connection(usize),
}

/// Options that a script has set before or after the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketOptions {
    pub(crate) nonblocking: bool,
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) send_buffer: Option<u64>,
    pub(crate) mss: Option<u32>,
    pub(crate) algorithm: Option<String>,
    pub(crate) syn_count: Option<u32>,
    pub(crate) no_delay: bool,
    pub(crate) resets_on_close: bool,
    pub(crate) user_timeout: Option<Duration>,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) keep_alive_times: Option<KeepAlive>,
}

impl SocketOptions {
    /// Returns the parameters of a connection of this socket.
    pub(crate) fn apply_to(&self, settings: &Settings) -> Result<Config, String> {
        let mut settings = settings.clone();
        if let Some(name) = &self.algorithm {
            settings.apply_sysctl("net.ipv4.tcp_congestion_control", name)?;
        }
        let config = settings.config;
        let buffer = settings.window_scale.map_or(self.buffer_of(&settings), |shift| 0xffff << shift.min(14));
        Ok(config
            .with_mss(settings.mss().min(self.mss.unwrap_or(u32::MAX)))
            .with_receive_buffer(buffer)
            .with_send_buffer(self.send_buffer.or(config.send_buffer()))
            .with_syn_retries(self.syn_count.or(config.syn_retries()))
            .with_nagle(if self.no_delay { Nagle::Off } else { config.nagle() }))
    }

    /// Applies the options that an endpoint takes while it is open.
    pub(crate) fn apply_to_endpoint(
        &self,
        now: Instant,
        settings: &Settings,
        endpoint: &mut Endpoint<Length>,
    ) {
        endpoint.set_receive_limits(ReceiveLimits {
            buffer: self.buffer_of(settings).into(),
            unread_pieces: usize::MAX,
            unordered_pieces: usize::MAX,
        });
        if self.user_timeout.is_some() {
            endpoint.set_user_timeout(now, self.user_timeout);
        }
        if self.keep_alive.is_some() {
            endpoint.set_keep_alive(now, self.keep_alive);
        }
    }

    /// Returns the receive buffer of a connection, bytes.
    pub(crate) fn buffer_of(&self, settings: &Settings) -> u32 {
        let bytes = self.receive_buffer.unwrap_or(settings.config.receive_buffer());
        settings.receive_buffer(bytes, settings.mss().min(self.mss.unwrap_or(u32::MAX)))
    }

    /// Changes the times of keep-alive, which take effect with `SO_KEEPALIVE`.
    pub(crate) fn set_keep_alive(&mut self, change: impl FnOnce(KeepAlive) -> KeepAlive) {
        self.keep_alive_times = Some(change(self.keep_alive_times.unwrap_or(KeepAlive::DEFAULT)));
        self.keep_alive = self.keep_alive.and(self.keep_alive_times);
    }

    /// Turns keep-alive on or off.
    pub(crate) fn enable_keep_alive(&mut self, on: bool) {
        self.keep_alive = on.then(|| self.keep_alive_times.unwrap_or(KeepAlive::DEFAULT));
    }
}

/// Longest time of a socket option, seconds: eleven days.
const MOST_SECONDS: i64 = 1_000_000;

/// Returns whole seconds as a duration.
pub(crate) fn seconds(value: i64) -> Duration {
    Duration::from_secs(value.clamp(0, MOST_SECONDS).unsigned_abs())
}
