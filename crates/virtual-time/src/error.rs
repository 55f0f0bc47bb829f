//! Errors of an emulation in virtual time.

use crate::clock::ProtocolError;
use crate::vhost::device::DeviceError;
use std::io;
use std::time::Duration;

/// Reason that an emulation ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of this machine failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A program at a node keeps virtual time from advancing.
    #[error(
        "virtual time stands still: for {} s a program at node {node} has made no system call; \
         a program that computes needs --patience, one that spins in a loop must wait in it",
        patience.as_secs()
    )]
    Stuck {
        /// Name of the node.
        node: String,
        /// Real time that it was given.
        patience: Duration,
    },
    /// The kernel of a node ended by itself.
    #[error("the kernel of node {node} has ended before its time; the last it said: {last}")]
    KernelEnded {
        /// Name of the node.
        node: String,
        /// Last line of its console.
        last: String,
    },
    /// The kernel of a node does not keep the time-travel protocol.
    #[error("the kernel of node {node} does not keep the time-travel protocol: {source}")]
    Protocol {
        /// Name of the node.
        node: String,
        /// The violation.
        source: ProtocolError,
    },
    /// The kernel of a node sent something else than a message.
    #[error("the kernel of node {node} sent a message that no kernel sends")]
    Garbled {
        /// Name of the node.
        node: String,
    },
    /// A kernel sent a frame before its interface was configured.
    #[error("the kernel of node {node} sent a frame while it booted")]
    EarlyFrame {
        /// Name of the node.
        node: String,
    },
    /// The network device of a node failed.
    #[error("the network of node {node} has failed: {source}")]
    Device {
        /// Name of the node.
        node: String,
        /// The failure.
        source: DeviceError,
    },
    /// A user-defined algorithm of the simulated network failed.
    #[error("the simulated network has failed: {0}")]
    Network(String),
    /// The caller asked for the end.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns a function that makes an error of the failure of an operation.
    pub(crate) fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::System { doing: doing.into(), source: source.into() }
    }
}
