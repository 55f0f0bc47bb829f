//! Protocol of a socket, and its parameters.

use hopline_streams::{fallback, tpa, wide};

/// Protocol that a socket is set to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TPA-wide, encrypted.
    #[default]
    Wide,
    /// TPA as published.
    Tpa,
    /// TPA as published where the peer knows it, else TCP.
    TpaOrTcp,
}

/// Parameters of a connection or a listener.
#[derive(Clone, Debug)]
pub(crate) enum Parameters {
    Wide(Box<wide::Config>),
    Tpa(tpa::Config),
    TpaOrTcp(fallback::Config),
}
