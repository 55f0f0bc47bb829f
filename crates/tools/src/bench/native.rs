//! Connections of hopline's own transports, over UDP.

use super::plan::Transport;
use super::stream::{Telemetry, unspecified_for};
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PrivateKey, PublicKey, Seed, Trust, Wide};
use hopline_streams::{Protocol, Stream};
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// A connection over one of hopline's own protocols.
pub(super) trait NativeStream: AsFd + Debug + Send + Sync {
    /// Returns the name of the protocol, as in [`Transport::protocol`].
    fn protocol(&self) -> &'static str;
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn write(&self, data: &[u8]) -> io::Result<usize>;
    fn flush(&self) -> io::Result<()>;
    /// Sets the timeout after which a call returns `WouldBlock`.
    fn set_timeout(&self, patience: Duration);
    /// Applies the parameters that the plan has for the sending side.
    fn prepare_to_send(&self, transport: &Transport) -> io::Result<()>;
    /// Returns the statistics of the connection, and the bytes that were written and not yet acknowledged.
    fn telemetry(&self) -> (Telemetry, u64);
    fn local_addr(&self) -> io::Result<SocketAddr>;
    fn peer_addr(&self) -> SocketAddr;
    fn abort(&self);
    /// Closes the connection, and waits at most `limit` until the peer has everything.
    fn close_within(&self, limit: Duration) -> io::Result<()>;
}

/// Protocol-specific part of [`NativeStream`].
pub(super) trait NativeProtocol: Protocol + Sized {
    const NAME: &'static str;

    fn telemetry(info: &Self::Info) -> (Telemetry, u64);

    fn prepare_to_send(_stream: &Stream<Self>, _transport: &Transport) -> io::Result<()> {
        Ok(())
    }
}

impl NativeProtocol for Tpa {
    const NAME: &'static str = "TPA";

    fn telemetry(info: &tpa::Info) -> (Telemetry, u64) {
        let telemetry = Telemetry {
            retransmits: info.stats.retransmissions,
            cwnd: u64::from(info.cwnd) * u64::from(info.mss),
            peer_window: info.peer_window,
            rtt: info.srtt.map(std),
            rtt_var: info.rtt_deviation.map(std),
            path_mtu: None,
            mss: info.mss,
        };
        (telemetry, info.unacknowledged)
    }

    fn prepare_to_send(stream: &Stream<Self>, transport: &Transport) -> io::Result<()> {
        match transport {
            Transport::Tpa { cwnd_max } => stream.set_cwnd_max(*cwnd_max),
            _ => Ok(()),
        }
    }
}

impl NativeProtocol for Wide {
    const NAME: &'static str = "TPA-wide";

    fn telemetry(info: &wide::Info) -> (Telemetry, u64) {
        let telemetry = Telemetry {
            retransmits: info.stats.retransmissions,
            cwnd: info.window,
            peer_window: info.peer_window,
            rtt: info.srtt.map(std),
            rtt_var: info.rtt_deviation.map(std),
            path_mtu: None,
            mss: info.mss,
        };
        (telemetry, info.unacknowledged)
    }
}

fn std(span: hopline_core::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

impl<P: NativeProtocol> NativeStream for Stream<P>
where
    Self: Debug + Send + Sync,
{
    fn protocol(&self) -> &'static str {
        <P as NativeProtocol>::NAME
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Read::read(&mut { self }, buffer)
    }

    fn write(&self, data: &[u8]) -> io::Result<usize> {
        Write::write(&mut { self }, data)
    }

    fn flush(&self) -> io::Result<()> {
        Write::flush(&mut { self })
    }

    fn set_timeout(&self, patience: Duration) {
        self.set_read_timeout(Some(patience));
        self.set_write_timeout(Some(patience));
    }

    fn prepare_to_send(&self, transport: &Transport) -> io::Result<()> {
        P::prepare_to_send(self, transport)
    }

    fn telemetry(&self) -> (Telemetry, u64) {
        P::telemetry(&self.info())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let mut here = self.host().local_addr()?;
        if here.ip().is_unspecified() {
            here.set_ip(source_address(self.peer_addr())?);
        }
        Ok(here)
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer_addr()
    }

    fn abort(&self) {
        self.abort();
    }

    fn close_within(&self, limit: Duration) -> io::Result<()> {
        self.close_within(limit)
    }
}

/// Returns the source address of packets to `peer`. Sends none.
fn source_address(peer: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(unspecified_for(peer))?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// Creates a key pair for one test and a TPA-wide configuration with it. A client may have any key, since every client
/// may run a test. A server has the key that it has sent over the control connection.
pub(super) fn wide(trust: Trust) -> io::Result<(PublicKey, wide::Config)> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let private = PrivateKey::generate(&Seed::new(seed));
    let public = private.public();
    Ok((public, wide::config(Credentials::Keys { private, trust })))
}
