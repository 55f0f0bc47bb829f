//! Maker of congestion controllers of QUIC, with and without the feature.

/// Maker of congestion controllers, as quinn takes them.
#[cfg(feature = "quic")]
pub(super) type Factory = hopline_quic::ControllerFactory;
/// Without QUIC there is none.
#[cfg(not(feature = "quic"))]
pub(super) type Factory = dyn std::any::Any;
