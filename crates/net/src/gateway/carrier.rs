//! What carries a trunk: TPA, or TPA-wide, which encrypts.
//!
//! Both ends of a trunk of TPA-wide have a key pair that is made of the secrets they share, and take any key of the other: the proofs of
//! hello and answer are bound to both public keys. So an attacker in between, with a key of its own towards each, has a proof that is wrong.

use super::config::Transport;
use super::key::{Key, Peer};
use crate::streams::{Host, Protocol, Stream};
use crate::tpa::{self, Tpa};
use crate::wide::{
    self, AnswererConfig, Credentials, HostConfig, PrivateKey, PublicKey, ResetKey, Seed, Trust, Wide,
};
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

/// Most handshakes under way: an entrance has as many as applications connect at a time.
const HALF_OPEN: u16 = 1024;
/// Most handshakes that begin in a second, half of them from one entrance.
const HANDSHAKES_A_SECOND: u16 = 4000;

/// Memory of received data before each connection is kept to its share: 32 of them with all the room that they have.
const RECEIVE_MEMORY: u64 = 64 << 20;

/// A protocol that carries trunks.
pub(super) trait Carrier: Protocol<Config: Clone + Debug + Send + Sync> {
    /// What a gateway has of its own, for all streams.
    type Own: Copy + Debug + Send + Sync + 'static;

    /// `key`, bound to the gateways at both ends of `stream` where it tells them; `None` once the stream is over.
    fn bound(key: &Key, own: Self::Own, stream: &Stream<Self>, end: End) -> Option<Key>;

    /// The gateway at the other end of `stream`; `None` once the stream is over.
    fn identity(stream: &Stream<Self>) -> Option<Identity>;
}

/// Identity of a gateway before it has sent its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Its public key, which it has proven.
    Key([u8; 32]),
    /// Its UDP address, at which it has answered.
    Address(SocketAddr),
}

/// Whose end of a stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Entrance,
    Exit,
}

/// How a gateway speaks over a trunk.
#[derive(Clone, Debug)]
pub(super) struct Line<P: Carrier> {
    pub(super) config: P::Config,
    own: P::Own,
}

impl<P: Carrier> Line<P> {
    /// `key`, as it is to be used on `stream`; `None` once that is over.
    pub(super) fn bound(&self, key: &Key, stream: &Stream<P>, end: End) -> Option<Key> {
        P::bound(key, self.own, stream, end)
    }
}

/// A gateway's sockets, and how it speaks.
#[derive(Debug)]
pub(super) struct Ready<P: Carrier> {
    pub(super) hosts: Vec<Host<P>>,
    pub(super) line: Line<P>,
}

/// The same for whichever protocol it is.
#[derive(Debug)]
pub(super) enum Opened {
    Tpa(Ready<Tpa>),
    TpaWide(Ready<Wide>),
}

impl Opened {
    /// An entrance's, which shares `key`: a socket at each of `locals` where there can be one.
    pub(super) fn of_entrance(transport: &Transport, locals: &[SocketAddr], key: &Key) -> io::Result<Self> {
        Self::open(transport, locals, || key.secret(b"entrance", []))
    }

    /// An exit's for `peers`.
    pub(super) fn of_exit(transport: &Transport, local: SocketAddr, peers: &[Peer]) -> io::Result<Self> {
        // The same after a restart, in whatever order they are named: entrances then hear that their connections are lost.
        let mut peers: Vec<&Peer> = peers.iter().collect();
        peers.sort_by_key(|peer| &peer.name);
        let (first, others) = peers.split_first().expect("a checked configuration has one at least");
        Self::open(transport, &[local], || first.key.secret(b"exit", others.iter().map(|peer| &peer.key)))
    }

    fn open(
        transport: &Transport,
        locals: &[SocketAddr],
        secret: impl FnOnce() -> [u8; 32],
    ) -> io::Result<Self> {
        Ok(match transport {
            Transport::Tpa(config) => Self::Tpa(Ready {
                hosts: all_that_work(locals, Host::bind)?,
                line: Line { config: *config, own: () },
            }),
            Transport::TpaWide(transport) => {
                let private = PrivateKey::generate(&Seed::new(secret()));
                let own = private.public();
                let hosts = all_that_work(locals, |local| {
                    let host = Wide::host_config()?;
                    let resets = resets(&private, local, host.resets);
                    let answerer = AnswererConfig {
                        half_open: HALF_OPEN,
                        a_second: HANDSHAKES_A_SECOND,
                        ..host.answerer
                    };
                    let receive_memory = RECEIVE_MEMORY;
                    Host::bind_with(
                        local,
                        Wide::with(HostConfig { resets, answerer, receive_memory, ..host })?,
                    )
                })?;
                let credentials = Credentials::Keys { private, trust: Trust::Anyone };
                let config = wide::Config { credentials, transport: *transport };
                Self::TpaWide(Ready { hosts, line: Line { config, own } })
            }
        })
    }
}

/// Returns the key of what tells peers that their connections are lost; `random` for a port that the system chooses. That port is another
/// after a restart, and two gateways on a machine that share their secret must not have the same key (RFC 9000 §21.11).
fn resets(private: &PrivateKey, local: SocketAddr, random: Option<ResetKey>) -> Option<ResetKey> {
    if local.port() == 0 { random } else { Some(wide::reset_key(private, local)) }
}

/// A host may lack a version of IP; the error is that of the first.
fn all_that_work<T>(
    locals: &[SocketAddr],
    bind: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<Vec<T>> {
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
    type Own = ();

    fn bound(key: &Key, (): (), _stream: &tpa::TpaStream, _end: End) -> Option<Key> {
        Some(*key)
    }

    fn identity(stream: &tpa::TpaStream) -> Option<Identity> {
        Some(Identity::Address(stream.peer_addr()))
    }
}

impl Carrier for Wide {
    type Own = PublicKey;

    fn bound(key: &Key, own: PublicKey, stream: &wide::WideStream, end: End) -> Option<Key> {
        let other = stream.info().peer.key?;
        let [exit, entrance] = match end {
            End::Exit => [own, other],
            End::Entrance => [other, own],
        };
        Some(key.bound(&[exit.bytes(), entrance.bytes()]))
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

    fn public(opened: &Opened) -> PublicKey {
        match opened {
            Opened::TpaWide(ready) => ready.line.own,
            Opened::Tpa(_) => panic!("TPA has none"),
        }
    }

    fn of_exit(peers: &[Peer]) -> PublicKey {
        public(&Opened::of_exit(&Transport::tpa_wide(), ([127, 0, 0, 1], 0).into(), peers).unwrap())
    }

    #[test]
    fn an_exit_has_the_same_key_whatever_the_order_of_its_peers_and_another_with_others() {
        let [a, b, c] = [peer("a", 1), peer("b", 2), peer("c", 3)];
        let own = of_exit(&[a.clone(), b.clone()]);
        assert_eq!(own, of_exit(&[b.clone(), a.clone()]));
        assert_ne!(own, of_exit(&[a.clone(), c]));
        assert_ne!(own, of_exit(std::slice::from_ref(&a)));
        let entrance = Opened::of_entrance(&Transport::tpa_wide(), &[([127, 0, 0, 1], 0).into()], &a.key);
        assert_ne!(of_exit(&[a]), public(&entrance.unwrap()));
    }

    #[test]
    fn gateways_at_ports_of_the_systems_choice_have_no_key_of_resets_in_common() {
        let private = PrivateKey::generate(&Seed::new([1; 32]));
        let id = ConnectionId::new([5; 8]).unwrap();
        let token = |port: u16| {
            let random = Wide::host_config().unwrap().resets;
            resets(&private, ([127, 0, 0, 1], port).into(), random).unwrap().token(id)
        };
        assert!(ResetKey::same(&token(7172), &token(7172)), "after a restart, too");
        assert!(!ResetKey::same(&token(0), &token(0)));
    }

    #[test]
    fn a_stranger_is_no_party_to_what_a_proof_is_bound_to() {
        let key = Key::new(&[1; 32]);
        let [a, b, c] = [2, 3, 4].map(|n| PrivateKey::generate(&Seed::new([n; 32])).public());
        let bound = |one: PublicKey, other: PublicKey| key.bound(&[one.bytes(), other.bytes()]);
        assert_eq!(bound(a, b), bound(a, b));
        assert!(![bound(b, a), bound(a, c), bound(c, b), key].contains(&bound(a, b)));
        assert!(ExitConfig::new(vec![peer("a", 1)]).validate().is_ok());
    }
}
