//! Behaviour that TPA and TPA-wide share, over UDP on the loopback interface: each test runs for both.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

pub(crate) mod failures;
mod transfers;

use hopline_core::Duration as Span;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PreSharedKey, Wide};
use hopline_streams::{Host, Listener, Protocol, Stream};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Defines each of these functions, which take the transport as a parameter, as a test of `tpa` and of `wide`.
macro_rules! over_both {
    ($($name:ident),+ $(,)?) => {
        mod tpa {
            $(#[test]
            fn $name() {
                super::$name::<hopline_streams::tpa::Tpa>();
            })+
        }
        mod wide {
            $(#[test]
            fn $name() {
                super::$name::<hopline_streams::wide::Wide>();
            })+
        }
    };
}
use over_both;

/// A transport under test: its parameters and counters, which have other names in each.
trait Transport: Protocol {
    /// Length of a transfer that takes about a second without optimisation.
    const LARGE: usize;

    /// Returns the usual parameters, with this time in TIME-WAIT.
    fn lingering(time_wait: Span) -> Self::Config;

    /// Returns parameters with an idle timeout, and with the interval of keep-alive probes, if any.
    fn given_up_after(silence: Span, keep_alive: Option<Span>) -> Self::Config;

    /// Returns parameters that are out of range, with the name of the wrong one.
    fn out_of_range() -> (Self::Config, &'static str);

    /// Connects with a handshake timeout of less than a second.
    fn connect_impatiently(peer: SocketAddr) -> io::Result<Stream<Self>>;

    /// Returns the bytes that the peer has acknowledged, and those received from it.
    fn bytes(info: &Self::Info) -> (u64, u64);

    /// Returns whether there are measurements of the path.
    fn is_measured(info: &Self::Info) -> bool;

    /// Returns the current connections of a host, accepted or not, and the number that peers opened.
    fn connections(stats: &Self::HostStats) -> (usize, u64);

    /// Returns the usual parameters, with next to no TIME-WAIT.
    fn quick() -> Self::Config {
        Self::lingering(Span::from_millis(20))
    }
}

impl Transport for Tpa {
    const LARGE: usize = 1_000_000;

    fn lingering(time_wait: Span) -> tpa::Config {
        tpa::config(12).with_time_wait(time_wait).with_block_fill(Span::from_millis(5))
    }

    fn given_up_after(silence: Span, keep_alive: Option<Span>) -> tpa::Config {
        Self::quick().with_silence_limit(Some(silence)).with_keep_alive(keep_alive)
    }

    fn out_of_range() -> (tpa::Config, &'static str) {
        (Self::quick().with_cwnd_max(0), "cwnd_max")
    }

    fn connect_impatiently(peer: SocketAddr) -> io::Result<Stream<Self>> {
        let rto = Self::quick().rto().with_initial(Span::from_millis(20)).with_min(Span::from_millis(20));
        let config = Self::quick().with_syn_retries(Some(2)).with_rto(rto);
        Stream::connect(peer, &config)
    }

    fn bytes(info: &tpa::Info) -> (u64, u64) {
        (info.stats.bytes_acked, info.stats.bytes_received)
    }

    fn is_measured(info: &tpa::Info) -> bool {
        info.srtt.is_some()
    }

    fn connections(stats: &tpa::HostStats) -> (usize, u64) {
        (stats.connections, stats.accepted)
    }
}

impl Transport for Wide {
    const LARGE: usize = 10_000_000;

    fn lingering(time_wait: Span) -> wide::Config {
        let config = wide::config(Credentials::Shared(PreSharedKey::new([7; 32])));
        let transport = config.transport().with_time_wait(time_wait);
        config.with_transport(transport)
    }

    fn given_up_after(silence: Span, keep_alive: Option<Span>) -> wide::Config {
        let config = Self::quick();
        let transport = config.transport().with_silence_limit(Some(silence)).with_keep_alive(keep_alive);
        config.with_transport(transport)
    }

    fn out_of_range() -> (wide::Config, &'static str) {
        let config = Self::quick();
        let transport = config.transport().with_mss(1);
        let config = config.with_transport(transport);
        (config, "mss")
    }

    fn connect_impatiently(peer: SocketAddr) -> io::Result<Stream<Self>> {
        let config = Self::host_config()?;
        let initiator = config.initiator().with_initial_wait(Span::from_millis(20)).with_max_tries(4);
        let config = config.with_initiator(initiator);
        Host::bind_with(ANY, Self::with(config)?)?.connect(peer, &Self::quick(), None)
    }

    fn bytes(info: &wide::Info) -> (u64, u64) {
        (info.stats.bytes_acked, info.stats.bytes_received)
    }

    fn is_measured(info: &wide::Info) -> bool {
        info.srtt.is_some() && info.rate.is_some()
    }

    fn connections(stats: &wide::HostStats) -> (usize, u64) {
        (stats.connections.max(stats.sealed.backlog), stats.accepted)
    }
}

fn listener<T: Transport>() -> (Listener<T>, SocketAddr) {
    let listener = Listener::bind(ANY, &T::quick()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns both ends of a connection.
fn pair<T: Transport>() -> (Stream<T>, Stream<T>) {
    let (listener, address) = listener();
    let client = Stream::<T>::connect(address, &T::quick()).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), client.host().local_addr().unwrap().port());
    (client, server)
}

/// Returns the current connections of a host.
fn connections<T: Transport>(host: &Host<T>) -> usize {
    T::connections(&host.stats()).0
}
