//! Settings of a [`Host`](crate::Host), and what is wrong with them.

use hopline_core::Duration;
use hopline_secure::{InitiatorConfig, PathConfig, ResetKey, ResponderConfig, SessionConfig};
use thiserror::Error;

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Most connections, those that are being opened and those that are closing included. 1 to 1,048,576;
    /// default 4096. What one may take is said by its transport's buffers.
    pub connections: usize,
    /// Configuration of every session, whatever [`initiator`](Self::initiator) and [`responder`](Self::responder) say
    /// of it. Peers must have the same `rekey_after`.
    pub session: SessionConfig,
    /// Configuration of the handshakes that this host initiates.
    pub initiator: InitiatorConfig,
    /// Configuration of the handshakes that peers initiate, with the limit of those in progress.
    pub responder: ResponderConfig,
    /// Validation of a new address of a peer.
    pub paths: PathConfig,
    /// Time that the initiator of a connection waits for the first sealed datagram: only that shows that the
    /// responder has accepted it. 1 s to 300 s; default 25 s.
    pub confirmation_timeout: Duration,
    /// Time that a connection may take to close after its user has released it. 1 s to an hour; default 60 s.
    /// Then the peer is notified that it is over.
    pub linger: Duration,
    /// Largest number of datagrams of one connection in a row, while other connections wait: the number that
    /// can leave with one system call. 1 to 1024; default 16.
    pub burst: u32,
    /// Memory that received data of all connections take before each is kept to its share, bytes. Data that
    /// users have not read, and data behind a hole, count with the overhead of their pieces. The shares of
    /// all are half of this, each at least 16 KiB. 64 KiB to 1 TiB; default 64 MiB.
    pub receive_memory: u64,
    /// Key of the stateless reset, which notifies peers after a restart that their connections are lost: see
    /// [`ResetKey`]. Default none: peers then find out by silence.
    pub reset_key: Option<ResetKey>,
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
    /// What is not.
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

    pub(crate) const fn initiator_config(&self) -> InitiatorConfig {
        InitiatorConfig { session: self.session, ..self.initiator }
    }

    pub(crate) const fn responder_config(&self) -> ResponderConfig {
        ResponderConfig { session: self.session, ..self.responder }
    }
}

/// A setting of a host that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// [`HostConfig::connections`].
    #[error("a host has 1 to 1048576 connections at most, not {0}")]
    Connections(usize),
    /// [`HostConfig::confirmation_timeout`].
    #[error("a responder may take 1 s to 300 s to show that it has accepted, not {0}")]
    ConfirmationTimeout(Duration),
    /// [`HostConfig::linger`].
    #[error("a connection may take 1 s to 3600 s to close, not {0}")]
    Linger(Duration),
    /// [`HostConfig::burst`].
    #[error("1 to 1024 datagrams of a connection leave in a row, not {0}")]
    Burst(u32),
    /// [`HostConfig::receive_memory`].
    #[error("received data of a host take 65536 bytes to 1 TiB, not {0}")]
    ReceiveMemory(u64),
    /// Invalid configuration of the encryption.
    #[error(transparent)]
    Secure(#[from] hopline_secure::ConfigError),
}

/// Reason that a host does not listen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListenError {
    /// It does already.
    #[error("the host listens already")]
    AlreadyListening,
    /// No connection could wait.
    #[error("a backlog of no connection accepts none; 1 is the least")]
    Backlog,
    /// Invalid configuration of the encryption.
    #[error(transparent)]
    Secure(#[from] hopline_secure::ConfigError),
    /// Invalid configuration of the transport.
    #[error(transparent)]
    Transport(#[from] hopline_transport::ConfigError),
}

/// Reason that a connection is not even being opened.
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
