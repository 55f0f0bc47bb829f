//! Transports of a trunk: TPA, or TPA-wide, which encrypts.
//!
//! Both gateways of a TPA-wide trunk derive a key pair from their pre-shared secrets, and accept any public key of the
//! peer. The proofs of hello and answer are bound to both public keys. A man in the middle, with its own key towards each
//! gateway, therefore cannot produce a valid proof.

use super::config::Transport;
use super::key::{Key, Peer};
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PrivateKey, PublicKey, ResetKey, Seed, Trust, Wide};
use hopline_streams::{Host, Protocol, Stream};
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

/// Maximum number of handshakes in progress. An entrance has as many as applications connect at a time.
const MAX_HALF_OPEN: u16 = 1024;
/// Maximum number of handshakes that begin in a second, half of them from one entrance.
const HANDSHAKES_PER_SECOND: u16 = 4000;

/// Memory for received data, in bytes, beyond which each connection is limited to its share: 32 connections with full
/// buffers.
const RECEIVE_MEMORY: u64 = 64 << 20;

/// A transport protocol that carries trunks.
pub(super) trait Carrier: Protocol<Config: Clone + Debug + Send + Sync> {
    /// State of a gateway that all its streams share.
    type SharedState: Copy + Debug + Send + Sync + 'static;

    /// Returns `key`, bound to the identities of both gateways of `stream` if the transport has them. `None` once the
    /// stream has ended.
    fn channel_bound_key(key: &Key, own: Self::SharedState, stream: &Stream<Self>, end: Role) -> Option<Key>;

    /// Returns the identity of the peer gateway of `stream`. `None` once the stream has ended.
    fn identity(stream: &Stream<Self>) -> Option<Identity>;
}

/// Identity of a gateway before it has sent its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Public key of the gateway, which it has proven to own.
    Key([u8; 32]),
    /// UDP address of the gateway, from which it has answered.
    Address(SocketAddr),
}

/// Role of a gateway on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Entrance,
    Exit,
}

/// Transport configuration and identity of a gateway.
#[derive(Clone, Debug)]
pub(super) struct TrunkTransport<P: Carrier> {
    pub(super) config: P::Config,
    shared: P::SharedState,
}

impl<P: Carrier> TrunkTransport<P> {
    /// Returns `key` as bound to `stream`. `None` once the stream has ended.
    pub(super) fn channel_bound_key(&self, key: &Key, stream: &Stream<P>, end: Role) -> Option<Key> {
        P::channel_bound_key(key, self.shared, stream, end)
    }
}

/// Sockets of a gateway, with its transport configuration.
#[derive(Debug)]
pub(super) struct BoundTransport<P: Carrier> {
    pub(super) hosts: Vec<Host<P>>,
    pub(super) transport: TrunkTransport<P>,
}

/// [`TrunkTransport`] and sockets of a gateway, for either transport.
#[derive(Debug)]
pub(super) enum AnyBoundTransport {
    Tpa(BoundTransport<Tpa>),
    TpaWide(BoundTransport<Wide>),
}

impl AnyBoundTransport {
    /// Opens the sockets of an entrance that shares `key`: one at each of `locals` if possible.
    pub(super) fn of_entrance(transport: &Transport, locals: &[SocketAddr], key: &Key) -> io::Result<Self> {
        Self::open(transport, locals, || key.derive_secret(b"entrance", []))
    }

    /// Opens the socket of an exit for `peers`.
    pub(super) fn of_exit(transport: &Transport, local: SocketAddr, peers: &[Peer]) -> io::Result<Self> {
        // The order of the peers must not matter: after a restart the same key lets entrances detect that their
        // connections are lost.
        let mut peers: Vec<&Peer> = peers.iter().collect();
        peers.sort_by_key(|peer| &peer.name);
        let (first, others) = peers.split_first().expect("a checked configuration has one at least");
        Self::open(transport, &[local], || {
            first.key.derive_secret(b"exit", others.iter().map(|peer| &peer.key))
        })
    }

    fn open(
        transport: &Transport,
        locals: &[SocketAddr],
        secret: impl FnOnce() -> [u8; 32],
    ) -> io::Result<Self> {
        Ok(match transport {
            Transport::Tpa(config) => Self::Tpa(BoundTransport {
                hosts: bind_any(locals, Host::bind)?,
                transport: TrunkTransport { config: *config, shared: () },
            }),
            Transport::TpaWide(transport) => {
                let private = PrivateKey::generate(&Seed::new(secret()));
                let own = private.public();
                let hosts = bind_any(locals, |local| {
                    let host = Wide::host_config()?;
                    let resets = reset_key(&private, local, host.reset_key().cloned());
                    let responder = host
                        .responder()
                        .with_max_half_open(MAX_HALF_OPEN)
                        .with_handshakes_per_second(HANDSHAKES_PER_SECOND);
                    Host::bind_with(
                        local,
                        Wide::with(
                            host.with_reset_key(resets)
                                .with_responder(responder)
                                .with_receive_memory(RECEIVE_MEMORY),
                        )?,
                    )
                })?;
                let credentials = Credentials::Keys { private, trust: Trust::Anyone };
                let config = wide::config(credentials).with_transport(*transport);
                Self::TpaWide(BoundTransport { hosts, transport: TrunkTransport { config, shared: own } })
            }
        })
    }
}

/// Returns the stateless reset key, by which peers detect that their connections are lost; `random` for a port that the
/// system chooses. Such a port changes with a restart, and two gateways of a host that share their secret must not have
/// the same key (RFC 9000 §21.11).
fn reset_key(private: &PrivateKey, local: SocketAddr, random: Option<ResetKey>) -> Option<ResetKey> {
    if local.port() == 0 { random } else { Some(wide::reset_key(private, local)) }
}

/// Returns those results that succeeded, since a host may lack IPv4 or IPv6. If all failed, returns the first error.
fn bind_any<T>(locals: &[SocketAddr], bind: impl FnMut(SocketAddr) -> io::Result<T>) -> io::Result<Vec<T>> {
    let (mut bound, mut first) = (Vec::new(), None);
    for one in locals.iter().copied().map(bind) {
        match one {
            Ok(one) => bound.push(one),
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first.filter(|_| bound.is_empty()) {
        Some(error) => Err(error),
        None => Ok(bound),
    }
}

impl Carrier for Tpa {
    type SharedState = ();

    fn channel_bound_key(key: &Key, (): (), _stream: &tpa::TpaStream, _end: Role) -> Option<Key> {
        Some(*key)
    }

    fn identity(stream: &tpa::TpaStream) -> Option<Identity> {
        Some(Identity::Address(stream.peer_addr()))
    }
}

impl Carrier for Wide {
    type SharedState = PublicKey;

    fn channel_bound_key(key: &Key, own: PublicKey, stream: &wide::WideStream, end: Role) -> Option<Key> {
        let other = stream.info().peer.key?;
        let [exit, entrance] = match end {
            Role::Exit => [own, other],
            Role::Entrance => [other, own],
        };
        Some(key.channel_bound(&[exit.bytes(), entrance.bytes()]))
    }

    fn identity(stream: &wide::WideStream) -> Option<Identity> {
        stream.info().peer.key.map(|key| Identity::Key(*key.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ExitConfig;
    use hopline_wire::secure::ConnectionId;

    fn peer(name: &str, secret: u8) -> Peer {
        Peer { name: name.parse().unwrap(), key: Key::new(&[secret; 32]) }
    }

    fn public(opened: &AnyBoundTransport) -> PublicKey {
        match opened {
            AnyBoundTransport::TpaWide(ready) => ready.transport.shared,
            AnyBoundTransport::Tpa(_) => panic!("TPA has none"),
        }
    }

    fn of_exit(peers: &[Peer]) -> PublicKey {
        public(
            &AnyBoundTransport::of_exit(&Transport::tpa_wide(), ([127, 0, 0, 1], 0).into(), peers).unwrap(),
        )
    }

    #[test]
    fn the_key_of_an_exit_depends_on_its_peers_and_not_on_their_order() {
        let [a, b, c] = [peer("a", 1), peer("b", 2), peer("c", 3)];
        let own = of_exit(&[a.clone(), b.clone()]);
        assert_eq!(own, of_exit(&[b.clone(), a.clone()]));
        assert_ne!(own, of_exit(&[a.clone(), c]));
        assert_ne!(own, of_exit(std::slice::from_ref(&a)));
        let entrance =
            AnyBoundTransport::of_entrance(&Transport::tpa_wide(), &[([127, 0, 0, 1], 0).into()], &a.key);
        assert_ne!(of_exit(&[a]), public(&entrance.unwrap()));
    }

    #[test]
    fn gateways_at_ephemeral_ports_share_no_reset_key() {
        let private = PrivateKey::generate(&Seed::new([1; 32]));
        let id = ConnectionId::new([5; 8]).unwrap();
        let token = |port: u16| {
            let random = Wide::host_config().unwrap().reset_key().cloned();
            reset_key(&private, ([127, 0, 0, 1], port).into(), random).unwrap().token(id)
        };
        assert!(ResetKey::constant_time_eq(&token(7172), &token(7172)), "after a restart, too");
        assert!(!ResetKey::constant_time_eq(&token(0), &token(0)));
    }

    #[test]
    fn a_third_party_cannot_reuse_a_channel_bound_proof() {
        let key = Key::new(&[1; 32]);
        let [a, b, c] = [2, 3, 4].map(|n| PrivateKey::generate(&Seed::new([n; 32])).public());
        let bound = |one: PublicKey, other: PublicKey| key.channel_bound(&[one.bytes(), other.bytes()]);
        assert_eq!(bound(a, b), bound(a, b));
        assert!(![bound(b, a), bound(a, c), bound(c, b), key].contains(&bound(a, b)));
        assert!(ExitConfig::new(vec![peer("a", 1)]).validate().is_ok());
    }
}
