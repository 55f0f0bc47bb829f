//! The proxies, gateways and agents of a machine as one daemon: what its file says, what the machine must be told, how it lives.
//!
//! | file | idea |
//! |---|---|
//! | [`config`] | the file |
//! | [`router`] | what this machine does with packets that proxies must see |
//! | [`rules`] | what the machine must be told, and how it is taken back |
//! | `daemon` | the life of a daemon; `seat`: that of a proxy; `open`: what does its work |
//! | `keeper` | what cleans up behind a daemon that was killed |
//! | `state` | its lock; `folder`: the folder of its files |
//! | `sandbox` | what it gives up; `starter`: what it keeps of that |
//! | `control`, [`status`], `metrics`, `log` | what it says of itself; `server`: to clients that may be slow or hostile; `allowance`: how often |

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
pub mod router;
pub mod rules;
mod sandbox;
mod seat;
mod server;
mod starter;
mod state;
pub mod status;

pub use config::{Config, Place};
pub use control::{AskError, ask, names};
pub use daemon::run;
pub use keeper::keep;
pub use open::OpenError;
pub use sandbox::landlock;
pub use state::StateError;

use hopline_config::source::{Problem, Problems};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its file is wrong.
    #[error(transparent)]
    Config(#[from] Problems),
    /// Another one is there, or its folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The router hides packets from its proxies ([`router::inspect`]).
    #[error("{0}")]
    Hidden(String),
    /// The rules cannot be set up.
    #[error(transparent)]
    Rules(#[from] rules::RuleError),
    /// The rules stand although the proxies have ended.
    #[error("taking the rules back: {0}; `hopline proxy undo` tries again")]
    Undo(rules::RuleError),
    /// A proxy cannot be opened.
    #[error("the proxy \"{0}\": {1}")]
    Open(String, OpenError),
    /// Its status could not be asked for.
    #[error("listening at {}: {}", .0.display(), .1)]
    Socket(PathBuf, io::Error),
    /// The group of `status_group` cannot have its socket.
    #[error(
        "status_group: user {0} is not in the group \"{1}\": in a unit of systemd: SupplementaryGroups={1} ({2})"
    )]
    Group(u32, String, io::Error),
    /// Prometheus could not read its figures.
    #[error("listening for metrics at {0}: {1}; is the port in use?")]
    Metrics(SocketAddr, io::Error),
    /// What cleans up behind it could not be started.
    #[error("starting what cleans up: {0}")]
    Keeper(io::Error),
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(io::Error),
    /// There is no thread for it.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

/// Makes the rules that `config` needs, without a daemon.
///
/// # Errors
/// Why there are none; and if a daemon of this name is running, which has its own.
pub fn set_up(config: &Config) -> Result<(), RunError> {
    let state = state::State::take(&config.state_dir, &config.name)?;
    Ok(rules::set_up(config, state.folder()).map(drop)?)
}

/// The line that the key file of a mobile host has, from the file of the network's key and the host's home address.
///
/// # Errors
/// A [`Problem`] that describes the fault of the file.
pub fn host_key(network: &str, home: Ipv4Addr) -> Result<String, Problem> {
    config::host_key(network, home)
}

/// Unmakes what the daemon `name` made but for what is to be left, if it is not running.
///
/// # Errors
/// What could not be unmade; and if it is running: it takes its rules with it when it ends.
pub fn undo(name: &str, folder: &Path, leave: rules::Leave) -> Result<rules::Undone, RunError> {
    let state = state::State::take(folder, name)?;
    Ok(rules::undo(name, state.folder(), leave)?)
}
