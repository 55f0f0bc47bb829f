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
        self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: hopline_quic::quinn_proto::congestion::ControllerFactory + Send + Sync + 'static,
    {
        self.with_quic_controllers(name, digest, move |seed| {
            hopline_quic::Controllers::of_quinn(std::sync::Arc::new(make(seed)))
        })
    }

    /// Returns the same with a congestion control algorithm for QUIC, in the shape that s2n-quic has for them: `make` creates an
    /// endpoint, which makes a controller for each connection. It gets a seed; controllers get random numbers that depend on it.
    #[cfg(feature = "s2n-quic")]
    #[must_use]
    pub fn with_s2n_quic_controller<E>(
        self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> E + Send + Sync + 'static,
    ) -> Self
    where
        E: hopline_quic::s2n_quic_core::recovery::congestion_controller::Endpoint,
    {
        self.with_quic_controllers(name, digest, move |seed| {
            hopline_quic::Controllers::of_s2n_quic(make(seed), seed)
        })
    }

    /// Returns the same with controllers for QUIC of any shape.
    #[cfg(feature = "quic")]
    #[must_use]
    pub fn with_quic_controllers(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> hopline_quic::Controllers + Send + Sync + 'static,
    ) -> Self {
        let make =
            move |seed| -> Result<Box<super::quic_factory::Controllers>, String> { Ok(Box::new(make(seed))) };
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
    /// If the configuration is not valid, or this program was built without QUIC or the algorithm.
    #[cfg(feature = "quic")]
    pub(crate) fn make_quic_endpoint(
        &self,
        config: &Config,
        ports: Ports,
        random: &mut RandomStream,
        seeds: &mut RandomStream,
    ) -> Box<dyn Endpoint<Length>> {
        let algorithm = config.congestion_control();
        let built_in = hopline_quic::built_in_controllers(algorithm, || seeds.bits());
        let controllers = built_in.unwrap_or_else(|| {
            let hopline_transport::quic::CongestionControl::Custom(id) = algorithm else {
                panic!("this program was built without s2n-quic: the feature `s2n-quic` adds it")
            };
            *super::construct(&self.quic_controllers, id.0, seeds)
                .expect("the specification has its algorithms, and making one cannot fail")
        });
        let endpoint = hopline_quic::Endpoint::with_controllers(*config, ports, controllers, random);
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
