//! Configuration of a [`Host`](crate::Host), and its errors.

use hopline_core::{Duration, settings};
use hopline_secure::{InitiatorConfig, PathConfig, ResetKey, ResponderConfig, SessionConfig};
use thiserror::Error;

settings! {
    /// Configuration of a host. Start from the default and use the setters; a host checks the ranges when it is made.
    #[derive(Clone, Debug)]
    pub struct HostConfig {
        /// Maximum number of connections, including those being opened or closed. 1 to 1,048,576; default 4096. The memory of
        /// one connection is limited by the buffer sizes of its transport.
        connections, with_connections: usize,
        /// Configuration of every session. It replaces the field `session` of [`initiator`](Self::initiator) and
        /// [`responder`](Self::responder). Peers must have the same `rekey_after`.
        session, with_session: SessionConfig,
        /// Configuration of the handshakes that this host initiates.
        initiator, with_initiator: InitiatorConfig,
        /// Configuration of the handshakes that peers initiate, including the maximum number of handshakes in progress.
        responder, with_responder: ResponderConfig,
        /// Configuration of path validation, which checks a new address of a peer.
        paths, with_paths: PathConfig,
        /// Time that an initiator waits for the first encrypted datagram of the responder, which proves that the responder has
        /// accepted the connection. 1 s to 300 s; default 25 s.
        confirmation_timeout, with_confirmation_timeout: Duration as into,
        /// Time that a connection may take to close after its user has released it. After this time it is aborted, and the peer
        /// is notified. 1 s to 1 hour; default 60 s.
        linger, with_linger: Duration as into,
        /// Maximum number of datagrams that one connection sends in a row while other connections wait. Choose the number that
        /// one system call can send. 1 to 1024; default 16.
        burst, with_burst: u32,
        /// Limit in bytes of the memory for received data of all connections together. While it is reached, each connection is
        /// limited to its share: half of this limit divided by the number of connections, but at least 16 KiB. The memory counts
        /// data that users have not read and data received out of order, with the overhead of each piece. 64 KiB to 1 TiB;
        /// default 64 MiB.
        receive_memory, with_receive_memory: u64,
        /// Key of the stateless reset, which notifies peers after a restart of this host that their connections are lost: see
        /// [`ResetKey`]. Default none: the connections of peers then end by timeout.
        reset_key, with_reset_key: Option<ResetKey> as owned,
    }
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            connections: 4096,
            session: SessionConfig::default(),
            initiator: InitiatorConfig::default(),
            responder: ResponderConfig::default(),
            paths: PathConfig::default(),
            confirmation_timeout: Duration::from_secs(25),
            linger: Duration::from_secs(60),
            burst: 16,
            receive_memory: 64 << 20,
            reset_key: None,
        }
    }
}

impl HostConfig {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let second = Duration::from_secs(1);
        if !(1..=1 << 20).contains(&self.connections) {
            return Err(ConfigError::Connections(self.connections));
        }
        if !(second..=second.saturating_mul(300)).contains(&self.confirmation_timeout) {
            return Err(ConfigError::ConfirmationTimeout(self.confirmation_timeout));
        }
        if !(second..=second.saturating_mul(3600)).contains(&self.linger) {
            return Err(ConfigError::Linger(self.linger));
        }
        if !(1..=1024).contains(&self.burst) {
            return Err(ConfigError::Burst(self.burst));
        }
        if !(1 << 16..=1 << 40).contains(&self.receive_memory) {
            return Err(ConfigError::ReceiveMemory(self.receive_memory));
        }
        self.initiator_config().validate()?;
        self.responder_config().validate()?;
        self.paths.validate()?;
        Ok(())
    }

    /// Key of the stateless reset, which notifies peers after a restart that their connections are lost: see
    /// [`ResetKey`]. Default none: peers then find out by silence.
    #[must_use]
    pub const fn reset_key(&self) -> Option<&ResetKey> {
        self.reset_key.as_ref()
    }

    pub(crate) const fn initiator_config(&self) -> InitiatorConfig {
        self.initiator.with_session(self.session)
    }

    pub(crate) const fn responder_config(&self) -> ResponderConfig {
        self.responder.with_session(self.session)
    }
}

/// A setting of a host that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// [`HostConfig::connections`].
    #[error("the maximum number of connections must be 1 to 1048576, not {0}")]
    Connections(usize),
    /// [`HostConfig::confirmation_timeout`].
    #[error("the confirmation timeout must be 1 s to 300 s, not {0}")]
    ConfirmationTimeout(Duration),
    /// [`HostConfig::linger`].
    #[error("the linger time must be 1 s to 3600 s, not {0}")]
    Linger(Duration),
    /// [`HostConfig::burst`].
    #[error("a burst must be 1 to 1024 datagrams, not {0}")]
    Burst(u32),
    /// [`HostConfig::receive_memory`].
    #[error("the memory for received data must be 65536 bytes to 1 TiB, not {0}")]
    ReceiveMemory(u64),
    /// Invalid configuration of the encryption.
    #[error(transparent)]
    Secure(#[from] hopline_secure::ConfigError),
}

/// Reason that a host cannot listen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListenError {
    /// The host listens already.
    #[error("the host listens already")]
    AlreadyListening,
    /// The backlog is 0.
    #[error("the backlog must be at least 1, not 0")]
    Backlog,
    /// Invalid configuration of the encryption.
    #[error(transparent)]
    Secure(#[from] hopline_secure::ConfigError),
    /// Invalid configuration of the transport.
    #[error(transparent)]
    Transport(#[from] hopline_transport::ConfigError),
}

/// Reason that a host does not begin to open a connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The number of connections is at its limit.
    #[error("the host has {0} connections, and more are not allowed")]
    Full(usize),
    /// Invalid configuration of the encryption.
    #[error(transparent)]
    Secure(#[from] hopline_secure::ConfigError),
    /// Invalid configuration of the transport.
    #[error(transparent)]
    Transport(#[from] hopline_transport::ConfigError),
}
