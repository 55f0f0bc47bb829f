//! Settings of `quinn-proto` that follow from a configuration and a seed.

use crate::controllers::ControllerFactory;
use crate::crypto::keys::mix;
use crate::crypto::{NoTokens, NullCrypto, ResetKey};
use crate::frames::CONNECTION_ID_BYTES;
use hopline_core::RandomStream;
use hopline_transport::quic::Config;
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, NoneTokenStore, ServerConfig,
    TimeSource, TransportConfig, VarInt,
};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Bytes of the first destination connection ID of a client, which it chooses itself; quinn's default.
const FIRST_CONNECTION_ID_BYTES: usize = 20;

/// Settings of one end.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) client: ClientConfig,
    pub(crate) server: Arc<ServerConfig>,
}

impl Settings {
    pub(crate) fn new(
        config: &Config,
        controller: Arc<ControllerFactory>,
        random: &mut RandomStream,
    ) -> Self {
        let transport = Arc::new(transport(config, controller));
        let mut seed = [0; 32];
        for word in seed.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let connection_ids = random.bits();
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey(random.bits())));
        endpoint
            .max_udp_payload_size(config.max_datagram())
            .expect("the configuration was checked: 1200 bytes at least")
            .cid_generator(move || Box::new(SeededConnectionIds(connection_ids)))
            .rng_seed(Some(seed));

        let first = connection_id(random.bits(), FIRST_CONNECTION_ID_BYTES);
        let mut client = ClientConfig::new(Arc::new(NullCrypto));
        client
            .transport_config(transport.clone())
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || first));

        let mut server = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NoTokens));
        server.transport_config(transport).migration(false).time_source(Arc::new(NoTime));
        Self { endpoint: Arc::new(endpoint), client, server: Arc::new(server) }
    }
}

fn transport(config: &Config, controller: Arc<ControllerFactory>) -> TransportConfig {
    let window =
        VarInt::try_from(config.receive_window()).expect("the configuration was checked: 1 GiB at most");
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(controller)
        // One stream in each direction.
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(window)
        .send_window(config.receive_window())
        .datagram_receive_buffer_size(None)
        // The size of datagrams is that of the configuration, whatever is lost.
        .initial_mtu(config.max_datagram())
        .min_mtu(config.max_datagram())
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        // There is no application that could be notified that a flow gave up, or start it again.
        .max_idle_timeout(None);
    transport
}

/// Generator of connection IDs from a seed.
#[derive(Debug)]
struct SeededConnectionIds(u64);

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 = mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        connection_id(self.0, CONNECTION_ID_BYTES)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

fn connection_id(seed: u64, length: usize) -> ConnectionId {
    let words = [seed, mix(seed ^ 1), mix(seed ^ 2)].map(u64::to_le_bytes);
    ConnectionId::new(&words.concat()[..length])
}

/// Wall clock for the age of address validation tokens, of which there are none.
#[derive(Debug)]
struct NoTime;

impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}
