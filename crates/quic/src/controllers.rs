//! Congestion controllers of an endpoint.

use hopline_transport::quic::CongestionControl;
use quinn_proto::congestion::{self, BbrConfig, CubicConfig, NewRenoConfig};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Maker of congestion controllers, one for each connection.
pub type ControllerFactory = dyn congestion::ControllerFactory + Send + Sync;

/// Congestion controllers of one endpoint: their maker, and what else they ask the endpoint for.
#[derive(Clone)]
pub struct Controllers {
    factory: Arc<ControllerFactory>,
    companion: Option<Arc<dyn Companion>>,
}

impl Controllers {
    /// Creates those of a maker that quinn alone serves.
    #[must_use]
    pub const fn of_quinn(factory: Arc<ControllerFactory>) -> Self {
        Self { factory, companion: None }
    }

    /// Creates those of a maker that learns from `companion` what quinn does not tell.
    #[cfg(feature = "s2n-quic")]
    pub(crate) const fn with_companion(
        factory: Arc<ControllerFactory>,
        companion: Arc<dyn Companion>,
    ) -> Self {
        Self { factory, companion: Some(companion) }
    }

    /// Returns the same with another maker: `wrap` gets the present one, for example to watch its controllers.
    #[must_use]
    pub fn map_factory(self, wrap: impl FnOnce(Arc<ControllerFactory>) -> Arc<ControllerFactory>) -> Self {
        Self { factory: wrap(self.factory), companion: self.companion }
    }

    pub(crate) fn factory(&self) -> Arc<ControllerFactory> {
        self.factory.clone()
    }

    pub(crate) fn companion(&self) -> Option<&dyn Companion> {
        self.companion.as_deref()
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let companion = self.companion.as_ref().map(|_| "companion");
        f.debug_struct("Controllers").field("companion", &companion).finish_non_exhaustive()
    }
}

/// Returns the controllers of a built-in algorithm with the parameters of its library; `None` of a user-defined algorithm, or of
/// one that this program was built without. `seed`: of the random numbers of algorithms that take them from their caller.
///
/// A controller of quinn's BBR draws random numbers from the operating system. They choose the phase of its gain cycle, which has
/// an effect on the pacing rate that it reports and none on its window; quinn paces by window and round-trip time, so that no
/// packet depends on them.
#[must_use]
#[cfg_attr(not(feature = "s2n-quic"), expect(unused_variables, reason = "quinn's algorithms take no seed"))]
pub fn built_in_controllers(algorithm: CongestionControl, seed: impl FnOnce() -> u64) -> Option<Controllers> {
    let factory: Arc<ControllerFactory> = match algorithm {
        CongestionControl::Cubic => Arc::new(CubicConfig::default()),
        CongestionControl::NewReno => Arc::new(NewRenoConfig::default()),
        CongestionControl::Bbr => Arc::new(BbrConfig::default()),
        #[cfg(feature = "s2n-quic")]
        CongestionControl::S2nCubic => {
            return Some(Controllers::of_s2n_quic(
                s2n_quic_core::recovery::cubic::Endpoint::default(),
                seed(),
            ));
        }
        #[cfg(feature = "s2n-quic")]
        CongestionControl::S2nBbr => {
            return Some(Controllers::of_s2n_quic(s2n_quic_core::recovery::bbr::Endpoint::default(), seed()));
        }
        #[cfg(not(feature = "s2n-quic"))]
        CongestionControl::S2nCubic | CongestionControl::S2nBbr => return None,
        CongestionControl::Custom(_) => return None,
    };
    Some(Controllers::of_quinn(factory))
}

/// Part of a controller that stands beside quinn. An endpoint reports its datagrams to it.
pub(crate) trait Companion: Send + Sync {
    /// Handles that quinn is about to be asked for a datagram.
    fn before_transmit(&self, now: Instant);

    /// Handles a datagram that was sent. `backlog`: data of the user that remain.
    fn on_transmit(&self, now: Instant, datagram: &[u8], backlog: Backlog);

    /// Handles that quinn is about to get a datagram of the peer.
    fn before_receive(&self, datagram: &[u8]);

    /// Handles that quinn has processed it.
    fn after_receive(&self);

    /// Returns the earliest time of the next packet, if it is later than `now`.
    fn next_departure(&self, now: Instant) -> Option<Instant>;
}

/// State of the data that a user has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// All were sent at least once.
    Empty,
    /// Some were never sent.
    Waiting,
}
