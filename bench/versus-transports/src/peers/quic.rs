//! QUIC by quinn: one connection, one stream, windows of 8 MB.

use super::block_on::block_on;
use crate::peer::{Failure, LOOK, Peer, Session, Steadiness};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Name in the certificate, which the client checks.
const SERVER: &str = "versus";
const WINDOW: u32 = 8 << 20;
/// MTU − IP and UDP headers − short header (flags, 8 bytes of connection identifier, packet number of 2) − tag − stream
/// frame header (type, identifier, offset of 4, length of 2), once the path's MTU is discovered.
const PAYLOAD: f64 = 1452.0 - 11.0 - 16.0 - 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Cubic,
    Bbr,
}

pub(crate) struct Quinn {
    control: Control,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Quinn {
    pub(crate) fn new(control: Control) -> Self {
        let signed =
            rcgen::generate_simple_self_signed([SERVER.to_owned()]).expect("the name is a host name");
        Self { control, certificate: signed.cert.der().clone(), key: signed.signing_key.serialize_der() }
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        let window = VarInt::from_u32(WINDOW);
        config.send_window(WINDOW.into()).receive_window(window).stream_receive_window(window);
        match self.control {
            Control::Cubic => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
            Control::Bbr => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        };
        Arc::new(config)
    }

    async fn take(&self, session: &Session) -> Result<(), Failure> {
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        let mut config = ServerConfig::with_single_cert(vec![self.certificate.clone()], key)?;
        config.transport_config(self.transport());
        let endpoint = Endpoint::server(config, session.address)?;
        session.listening();
        let connection = loop {
            match timeout(LOOK, endpoint.accept()).await {
                Ok(incoming) => break incoming.ok_or("the endpoint was closed")?.await?,
                Err(_) if session.is_closed() => return Ok(()),
                Err(_) => {}
            }
        };
        let mut stream = loop {
            match timeout(LOOK, connection.accept_uni()).await {
                Ok(stream) => break stream?,
                Err(_) if session.is_closed() => return Ok(()),
                Err(_) => {}
            }
        };
        while !session.is_closed() {
            match timeout(LOOK, stream.read_chunk(1 << 16, true)).await {
                Ok(Ok(Some(chunk))) => session.received(chunk.bytes.len()),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn push(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(self.transport());
        let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        let connection = endpoint.connect_with(config, session.address, SERVER)?.await?;
        let mut stream = connection.open_uni().await?;
        let data = vec![0x5a; 1 << 14];
        while !session.is_over() {
            // A write that timed out has written nothing.
            if let Ok(written) = timeout(LOOK, stream.write(&data)).await {
                written?;
            }
        }
        Ok(Some(connection.rtt()))
    }
}

impl Peer for Quinn {
    fn name(&self) -> &str {
        match self.control {
            Control::Cubic => "quinn-cubic",
            Control::Bbr => "quinn-bbr",
        }
    }

    fn steadiness(&self) -> Steadiness {
        match self.control {
            Control::Cubic => Steadiness::Steady,
            Control::Bbr => Steadiness::Erratic,
        }
    }

    fn payload(&self) -> f64 {
        PAYLOAD
    }

    fn receive(&self, session: &Session) -> Result<(), Failure> {
        block_on(self.take(session))
    }

    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        block_on(self.push(session))
    }
}
