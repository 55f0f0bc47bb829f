//! Endpoints of QUIC, and user-defined congestion control algorithms for them.

use super::{AlgorithmKind, CustomAlgorithms, UsedAlgorithm, position, used_algorithm};
use hopline_core::{Length, RandomStream};
use hopline_transport::quic::{Config, CustomControllerId, Endpoint};
use hopline_transport::tcp::Ports;

impl CustomAlgorithms {
    /// Returns the same with a congestion control algorithm for QUIC, in the shape that quinn has for them, as
    /// [`with_congestion_control`](Self::with_congestion_control). `make` gets a seed.
    #[cfg(feature = "quic")]
    #[must_use]
    pub fn with_quic_controller<F>(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: hopline_quic::quinn_proto::congestion::ControllerFactory + Send + Sync + 'static,
    {
        let make =
            move |seed| -> Result<Box<super::quic_factory::Factory>, String> { Ok(Box::new(make(seed))) };
        let new = super::NamedConstructor::new(name, digest, std::sync::Arc::new(make));
        super::insert_named(&mut self.quic_controllers, new);
        self
    }

    /// Returns the number of the congestion control algorithm for QUIC of this name.
    #[must_use]
    pub fn quic_controller(&self, name: &str) -> Option<CustomControllerId> {
        position(&self.quic_controllers, name).map(CustomControllerId)
    }

    pub(super) fn used_quic_controller(&self, id: CustomControllerId) -> UsedAlgorithm {
        used_algorithm(AlgorithmKind::QuicCongestionControl, &self.quic_controllers, id.0)
    }

    /// Creates an endpoint of QUIC. `seeds`: of user-defined algorithms.
    ///
    /// # Panics
    /// If the configuration is not valid, or this program was built without QUIC.
    #[cfg(feature = "quic")]
    pub(crate) fn make_quic_endpoint(
        &self,
        config: &Config,
        ports: Ports,
        random: &mut RandomStream,
        seeds: &mut RandomStream,
    ) -> Box<dyn Endpoint<Length>> {
        let algorithm = config.congestion_control();
        let controller = hopline_quic::built_in_controller(algorithm).unwrap_or_else(|| {
            let hopline_transport::quic::CongestionControl::Custom(id) = algorithm else {
                unreachable!("all others are built in")
            };
            super::construct(&self.quic_controllers, id.0, seeds)
                .expect("the specification has its algorithms, and making one cannot fail")
                .into()
        });
        let endpoint = hopline_quic::Endpoint::with_controller(*config, ports, controller, random);
        Box::new(endpoint.expect("the configuration was checked"))
    }

    #[cfg(not(feature = "quic"))]
    pub(crate) fn make_quic_endpoint(
        &self,
        _config: &Config,
        _ports: Ports,
        _random: &mut RandomStream,
        _seeds: &mut RandomStream,
    ) -> Box<dyn Endpoint<Length>> {
        panic!("this program was built without QUIC: the feature `quic` adds it")
    }
}
