//! Congestion controllers of QUIC, with and without the feature.

/// Congestion controllers of an endpoint.
#[cfg(feature = "quic")]
pub(super) type Controllers = hopline_quic::Controllers;
/// Without QUIC there is none.
#[cfg(not(feature = "quic"))]
pub(super) type Controllers = ();
