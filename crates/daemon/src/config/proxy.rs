//! Proxy of a daemon.

use super::task::Task;

/// Proxy of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy {
    /// Name of the proxy.
    pub name: String,
    /// Task of the proxy.
    pub task: Task,
}
