//! Daemon of proxies, gateways and agents: its configuration file, the rules of the machine, and its life cycle.
//!
//! | file | content |
//! |---|---|
//! | [`config`] | configuration file |
//! | [`router`] | inspection of packet processing that hides packets from proxies |
//! | [`rules`] | rules of the machine, and their removal; `subnet`: subnets that they match |
//! | `daemon` | life cycle of a daemon; `proxy_runner`: that of a proxy; `open`: services of proxies |
//! | `keeper` | process that cleans up after a killed daemon |
//! | `state` | lock; `folder`: folder of its files |
//! | `sandbox` | dropped privileges; `thread_starter`: real-time threads without them |
//! | `control`, [`status`], `metrics`, `log` | output; `server`: slow or hostile clients; `allowance`: rate limit |

#![cfg(target_os = "linux")]

mod allowance;
pub mod config;
mod control;
mod daemon;
mod folder;
mod keeper;
mod log;
#[doc(hidden)]
pub mod metrics;
mod open;
mod proxy_runner;
pub mod router;
pub mod rules;
mod sandbox;
mod server;
mod state;
pub mod status;
mod subnet;
mod thread_starter;

pub use config::{Config, DaemonId};
pub use control::{QueryError, names, query};
pub use daemon::run;
pub use keeper::keep;
pub use open::OpenError;
pub use sandbox::landlock;
pub use state::StateError;

use hopline_config::source::{Problem, Problems};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Reason why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration file is invalid.
    #[error(transparent)]
    Config(#[from] Problems),
    /// Another daemon of the name is running, or the folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The router hides packets from its proxies ([`router::inspect`]).
    #[error("{0}")]
    Hidden(String),
    /// The rules cannot be made.
    #[error(transparent)]
    Rules(#[from] rules::RuleError),
    /// The rules could not be removed after the proxies had ended.
    #[error("taking the rules back: {0}; `hopline proxy undo` tries again")]
    Undo(rules::RuleError),
    /// A proxy cannot be opened.
    #[error("the proxy \"{0}\": {1}")]
    Open(String, OpenError),
    /// The socket of its status cannot be opened.
    #[error("listening at {}: {}", .0.display(), .1)]
    Socket(PathBuf, io::Error),
    /// The group of `status_group` cannot have its socket.
    #[error(
        "status_group: user {0} is not in the group \"{1}\": in a unit of systemd: SupplementaryGroups={1} ({2})"
    )]
    Group(u32, String, io::Error),
    /// The port of its metrics cannot be opened.
    #[error("listening for metrics at {0}: {1}; is the port in use?")]
    Metrics(SocketAddr, io::Error),
    /// The keeper, which cleans up after it, could not be started.
    #[error("starting what cleans up: {0}")]
    Keeper(io::Error),
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(io::Error),
    /// No thread can be started.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

/// Makes the rules that `config` needs, without a daemon.
///
/// # Errors
/// The reason why they cannot be made, or that a daemon of this name is running, which has its own.
pub fn make_rules(config: &Config) -> Result<(), RunError> {
    let state = state::State::acquire(&config.state_dir, &config.name)?;
    Ok(rules::set_up(config, state.folder()).map(drop)?)
}

/// Returns the line for the key file of a mobile host, from the file of the network's key and the host's home address.
///
/// # Errors
/// A [`Problem`] that describes the fault of the file.
pub fn host_key(network: &str, home: Ipv4Addr) -> Result<String, Problem> {
    config::host_key(network, home)
}

/// Removes everything that the daemon `name` made, except for `leave`, if it is not running.
///
/// # Errors
/// Rules that could not be removed, or that the daemon is running: it removes its rules when it ends.
pub fn remove_rules(name: &str, folder: &Path, leave: rules::Keep) -> Result<rules::Removed, RunError> {
    let state = state::State::acquire(folder, name)?;
    Ok(rules::undo(name, state.folder(), leave)?)
}
