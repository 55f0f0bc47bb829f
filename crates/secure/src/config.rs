//! Settings of the machines.

use hopline_core::{Duration, settings};
use hopline_wire::secure::{Cipher, Versions};
use thiserror::Error;

/// Most bytes of the parameters that an end hands to the other in the handshake.
pub const PARAMETERS_MAX: usize = 256;

settings! {
    /// Configuration of a session. Start from the default and use the setters. Both ends must have the same [`rekey_after`](Self::rekey_after): it is part of
    /// what the handshake proves.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SessionConfig {
        /// Replay window: largest distance of a datagram's number behind the highest one. A multiple of 64, 1024
        /// to 65,536; default 4096. It costs a bit for each number. A datagram reordered by more is lost.
        window, with_window: u32,
        /// Number of datagrams after which the key changes. [`window`](Self::window) to 2²³ (RFC 9001 §6.6,
        /// AES-GCM); default 2²⁰: 1.5 GB of full datagrams.
        rekey_after, with_rekey_after: u64,
        /// Time after which the sending key of this end changes, if it has not by number. 1 s to a day; default
        /// 120 s, as WireGuard's `REKEY_AFTER_TIME`. The peer may have another value.
        rekey_after_time, with_rekey_after_time: Duration as into,
    }
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { window: 4096, rekey_after: 1 << 20, rekey_after_time: Duration::from_secs(120) }
    }
}

impl SessionConfig {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// What is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1024..=65_536).contains(&self.window) || !self.window.is_multiple_of(64) {
            return Err(ConfigError::Window(self.window));
        }
        if !(u64::from(self.window)..=1 << 23).contains(&self.rekey_after) {
            return Err(ConfigError::RekeyAfter { after: self.rekey_after, window: self.window });
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&self.rekey_after_time) {
            return Err(ConfigError::RekeyAfterTime(self.rekey_after_time));
        }
        Ok(())
    }
}

settings! {
    /// Configuration of an initiator. Start from the default and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InitiatorConfig {
        /// Versions of TPA-wide that the transport speaks; default 1.
        versions, with_versions: Versions,
        /// Cipher of the datagrams; default AES-256-GCM. Where the processor has no instructions for AES,
        /// ChaCha20-Poly1305 is faster.
        cipher, with_cipher: Cipher,
        /// Configuration of the session.
        session, with_session: SessionConfig,
        /// Time to wait for the first answer. It doubles with each further one. 10 ms to 60 s; default 400 ms.
        initial_wait, with_initial_wait: Duration as into,
        /// The longest wait for an answer. At least [`initial_wait`](Self::initial_wait), up to 60 s; default 3 s.
        max_wait, with_max_wait: Duration as into,
        /// Number of times that a message is sent before its sender gives up. 1 to 100; default 10: 25 s.
        max_tries, with_max_tries: u8,
    }
}

impl Default for InitiatorConfig {
    fn default() -> Self {
        Self {
            versions: Versions { newest: 1, oldest: 1 },
            cipher: Cipher::Aes256Gcm,
            session: SessionConfig::default(),
            initial_wait: Duration::from_millis(400),
            max_wait: Duration::from_secs(3),
            max_tries: 10,
        }
    }
}

impl InitiatorConfig {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// What is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.session.validate()?;
        versions(self.versions)?;
        if self.initial_wait < Duration::from_millis(10)
            || self.max_wait < self.initial_wait
            || self.max_wait > Duration::from_secs(60)
        {
            return Err(ConfigError::Wait { first: self.initial_wait, longest: self.max_wait });
        }
        if !(1..=100).contains(&self.max_tries) {
            return Err(ConfigError::Tries(self.max_tries));
        }
        Ok(())
    }
}

settings! {
    /// Configuration of a responder. Start from the default and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ResponderConfig {
        /// Versions of TPA-wide that the transport speaks; default 1.
        versions, with_versions: Versions,
        /// Configuration of the sessions.
        session, with_session: SessionConfig,
        /// Largest number of handshakes in progress. 1 to 4096; default 256. One takes 8 KB with public keys, 5
        /// KB with a shared one.
        max_half_open, with_max_half_open: u16,
        /// Number of handshakes in progress from which an initiator must show that it receives at its address
        /// before anything is remembered or computed for it; it costs the initiator a round trip. 0 (always) to
        /// [`max_half_open`](Self::max_half_open); default 32. The same holds once half as many as
        /// [`handshakes_per_second`](Self::handshakes_per_second) lets begin have begun within an eighth of a second.
        cookie_threshold, with_cookie_threshold: u16,
        /// Most handshakes that begin in a second, once cookies are asked for: half of them in one prefix, if
        /// others call too. 1 to 10,000; default 500: an eighth of a processor.
        handshakes_per_second, with_handshakes_per_second: u16,
        /// Longest time of a handshake. 1 s to 300 s; default 10 s. It should be more than the longest wait of
        /// initiators. It is cut to a quarter, but a second at least, while more than half of
        /// [`max_half_open`](Self::max_half_open) are in progress.
        handshake_timeout, with_handshake_timeout: Duration as into,
    }
}

impl Default for ResponderConfig {
    fn default() -> Self {
        Self {
            versions: Versions { newest: 1, oldest: 1 },
            session: SessionConfig::default(),
            max_half_open: 256,
            cookie_threshold: 32,
            handshakes_per_second: 500,
            handshake_timeout: Duration::from_secs(10),
        }
    }
}

impl ResponderConfig {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// What is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.session.validate()?;
        versions(self.versions)?;
        if !(1..=4096).contains(&self.max_half_open)
            || self.cookie_threshold > self.max_half_open
            || !(1..=10_000).contains(&self.handshakes_per_second)
        {
            return Err(ConfigError::HalfOpen);
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&self.handshake_timeout) {
            return Err(ConfigError::HandshakeTimeout(self.handshake_timeout));
        }
        Ok(())
    }
}

settings! {
    /// Configuration of path validation. Start from the default and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PathConfig {
        /// Time to wait for the first response. It doubles with each further one. 10 ms to 60 s; default 300 ms.
        /// Three round trips are right.
        initial_wait, with_initial_wait: Duration as into,
        /// Number of challenges to an address. 1 to 20; default 5: 9 s.
        max_challenges, with_max_challenges: u8,
    }
}

impl Default for PathConfig {
    fn default() -> Self {
        Self { initial_wait: Duration::from_millis(300), max_challenges: 5 }
    }
}

impl PathConfig {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// What is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(Duration::from_millis(10)..=Duration::from_secs(60)).contains(&self.initial_wait) {
            return Err(ConfigError::Wait { first: self.initial_wait, longest: self.initial_wait });
        }
        if !(1..=20).contains(&self.max_challenges) {
            return Err(ConfigError::Tries(self.max_challenges));
        }
        Ok(())
    }
}

fn versions(versions: Versions) -> Result<(), ConfigError> {
    if versions.oldest == 0 || versions.oldest > versions.newest {
        return Err(ConfigError::Versions(versions));
    }
    Ok(())
}

/// A setting that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// [`SessionConfig::window`].
    #[error("a replay window is a multiple of 64 from 1024 to 65536, not {0}")]
    Window(u32),
    /// [`SessionConfig::rekey_after`].
    #[error(
        "keys change after as many numbers as the replay window has ({window}) up to 2^23, not after {after}"
    )]
    RekeyAfter {
        /// The configured value.
        after: u64,
        /// The window.
        window: u32,
    },
    /// [`SessionConfig::rekey_after_time`].
    #[error("keys change after 1 s to 86400 s, not after {0}")]
    RekeyAfterTime(Duration),
    /// `versions`.
    #[error("versions go from the oldest, at least 1, to the newest, not as {0:?}")]
    Versions(Versions),
    /// `initial_wait`, `max_wait`.
    #[error("waits are from 10 ms to 60 s, the first no longer than the longest; not {first} and {longest}")]
    Wait {
        /// The configured value.
        first: Duration,
        /// The configured value.
        longest: Duration,
    },
    /// `tries`.
    #[error("{0} tries are none, or too many")]
    Tries(u8),
    /// [`ResponderConfig::max_half_open`], [`cookie_threshold`](ResponderConfig::cookie_threshold),
    /// [`handshakes_per_second`](ResponderConfig::handshakes_per_second).
    #[error(
        "handshakes under way are 1 to 4096, and 1 to 10000 begin in a second; cookies are asked for from no more than are under way on"
    )]
    HalfOpen,
    /// [`ResponderConfig::handshake_timeout`].
    #[error("a handshake may take 1 s to 300 s, not {0}")]
    HandshakeTimeout(Duration),
    /// Parameters of the transport.
    #[error("{0} bytes of parameters are more than 256")]
    Parameters(usize),
}
