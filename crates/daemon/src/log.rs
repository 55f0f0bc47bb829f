//! Format of log messages.

use crate::config::LogFormat;
use std::io;
use tracing::Level;

/// Writes messages to stderr from now on, unless a subscriber is set already.
pub(crate) fn start(format: LogFormat) {
    let base =
        tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(Level::INFO).with_target(false);
    let _ = match format {
        LogFormat::Text => base.with_ansi(false).try_init(),
        LogFormat::Json => base.json().try_init(),
    };
}
