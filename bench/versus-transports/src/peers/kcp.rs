//! KCP as its authors recommend it for speed: no delay, ticks of 10 ms, retransmission after two later ACKs,
//! no congestion control, and a window set by hand.

use super::block_on::block_on;
use crate::peer::{Failure, LOOK, Peer, Session};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

/// MTU of KCP's packets, without IP and UDP headers: its default.
const MTU: usize = 1400;
/// Length of its header, bytes.
const OVERHEAD: usize = 24;
/// Tick in which KCP answers and sends: it adds to the round-trip time.
const TICK: Duration = Duration::from_millis(10);

pub(crate) struct Fast;

impl Fast {
    fn config(session: &Session) -> KcpConfig {
        KcpConfig {
            mtu: MTU,
            nodelay: KcpNoDelayConfig::fastest(),
            wnd_size: (window(session.rate, session.round_trip), 256),
            stream: true,
            ..KcpConfig::default()
        }
    }

    async fn take(session: &Session) -> Result<(), Failure> {
        let mut listener = KcpListener::bind(Self::config(session), session.address).await?;
        session.listening();
        let mut stream = loop {
            match timeout(LOOK, listener.accept()).await {
                Ok(accepted) => break accepted?.0,
                Err(_) if session.is_closed() => return Ok(()),
                Err(_) => {}
            }
        };
        let mut buffer = vec![0; 1 << 16];
        while !session.is_closed() {
            match timeout(LOOK, stream.read(&mut buffer)).await {
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(n)) => session.received(n),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn push(session: &Session) -> Result<Option<Duration>, Failure> {
        let mut stream = KcpStream::connect(&Self::config(session), session.address).await?;
        let data = vec![0x5a; 1 << 14];
        while !session.is_over() {
            if let Ok(written) = timeout(LOOK, stream.write(&data)).await {
                written?;
            }
        }
        // KCP has a round-trip time, but does not expose it.
        Ok(None)
    }
}

/// Returns twice the bandwidth-delay product, of round trip and tick, packets.
fn window(rate: u64, round_trip: Duration) -> u16 {
    let bytes = rate as f64 / 8.0 * (round_trip + TICK).as_secs_f64();
    (2.0 * bytes / MTU as f64).ceil() as u16
}

impl Peer for Fast {
    fn name(&self) -> &str {
        "kcp-fast"
    }

    fn payload(&self) -> f64 {
        (MTU - OVERHEAD) as f64
    }

    fn receive(&self, session: &Session) -> Result<(), Failure> {
        block_on(Self::take(session))
    }

    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        block_on(Self::push(session))
    }
}
