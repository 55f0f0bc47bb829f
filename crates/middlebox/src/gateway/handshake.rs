//! Messages between two gateways before the bytes of applications. `docs/protocols/gateway.md` has the layout.
//!
//! The first stream opens a trunk: the exit sends a challenge, the entrance a hello, the exit an answer. Both then have a
//! [`Session`]. Each further stream carries one connection. The session authenticates its request, so that no round trip
//! is spent on a challenge.

use super::destination::Destination;
use super::key::{Key, Name};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol version.
pub const VERSION: u8 = 2;
/// Bytes of a challenge.
pub const CHALLENGE_LEN: usize = PREFIX_LEN + NONCE_LEN;
/// Bytes of a hello or a request before its body.
pub const HEADER_LEN: usize = PREFIX_LEN + 3;
/// Maximum bytes of a body.
pub const MAX_BODY_LEN: usize = 512;
/// Bytes of an answer.
pub const ANSWER_LEN: usize = PREFIX_LEN + 1 + PROOF_LEN;
/// Keep-alive message of the entrance, and the exit's answer to it.
pub const KEEP_ALIVE: [u8; PREFIX_LEN] = prefix();

const MAGIC: &[u8; 3] = b"hgw";
/// Bytes of magic and version, at the start of every message.
pub(super) const PREFIX_LEN: usize = 4;
const NONCE_LEN: usize = 32;
const PROOF_LEN: usize = 32;

const SOURCE_NONE: u8 = 0;
const NAME: u8 = 3;
const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// 32 random bytes, used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; NONCE_LEN]);

/// First message of the exit on every stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge(pub Nonce);

/// First message of the entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A [`Hello`].
    Hello = 1,
    /// A [`Request`].
    Request = 2,
}

/// Asks the exit to open a trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Name of the entrance.
    pub name: Name,
    /// Random number that makes the session unique.
    pub nonce: Nonce,
}

/// Asks the exit to connect onward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the request in its session, from 1. The exit accepts each number once.
    pub number: u64,
    /// Destination of the connection.
    pub destination: Destination,
    /// Address of the client, if the exit may connect under it.
    pub source: Option<SocketAddr>,
}

/// Secret of an open trunk, which both gateways derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    id: u64,
    key: Key,
}

/// A parsed message with a proof that has not been verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unverified<T> {
    message: T,
    /// Session of a request; 0 for a hello.
    session: u64,
    proof: blake3::Hash,
    /// The bytes that the proof covers.
    authenticated: Vec<u8>,
}

/// Answer of the exit to a hello or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Connected; data follow.
    Connected,
    /// Not connected; no data follow.
    Refused(Denial),
}

/// Reason that the exit did not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Denial {
    /// The destination refused.
    #[error("the destination refused")]
    Refused = 1,
    /// The destination did not answer.
    #[error("the destination did not answer")]
    TimedOut = 2,
    /// There is no route to the host.
    #[error("the host is unreachable")]
    HostUnreachable = 3,
    /// There is no route to the network.
    #[error("the network is unreachable")]
    NetworkUnreachable = 4,
    /// The exit does not permit the destination.
    #[error("the exit lets no connections go there")]
    NotAllowed = 5,
    /// The name has no address.
    #[error("the name has no address")]
    NameUnknown = 6,
    /// The exit has reached its maximum number of connections.
    #[error("the exit has too many connections")]
    TooMany = 7,
    /// The exit failed.
    #[error("the exit failed")]
    Failed = 8,
}

/// Reason that a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Wrong magic: another protocol.
    #[error("the peer speaks another protocol")]
    Magic,
    /// Unsupported version.
    #[error("the peer speaks version {0} of the protocol, not {VERSION}")]
    Version(u8),
    /// Invalid length.
    #[error("a message is longer than any may be, or too short for what it says")]
    Length,
    /// Invalid value of a field.
    #[error("a field has a value that means nothing")]
    Field,
    /// The sender does not have the key.
    #[error("the proof is wrong")]
    Proof,
}

impl Nonce {
    /// Returns a new random nonce.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; NONCE_LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl Challenge {
    /// Returns the bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; CHALLENGE_LEN] {
        let mut bytes = [0; CHALLENGE_LEN];
        bytes[..PREFIX_LEN].copy_from_slice(&prefix());
        bytes[PREFIX_LEN..].copy_from_slice(&self.0.0);
        bytes
    }

    /// Decodes a challenge.
    ///
    /// # Errors
    /// A [`Malformed`] that names the fault.
    pub fn decode(bytes: &[u8; CHALLENGE_LEN]) -> Result<Self, Malformed> {
        let mut rest = strip_prefix(bytes)?;
        Ok(Self(Nonce(rest.take_array()?)))
    }
}

impl Session {
    /// Derives the session of two gateways that share `key` from the nonces of both.
    #[must_use]
    pub fn new(key: &Key, challenge: &Challenge, nonce: &Nonce) -> Self {
        let secret = key.proof(b"session", &[&challenge.0.0, &nonce.0]);
        let key = Key::new(secret.as_bytes());
        let [id, ..] = *key.proof(b"id", &[]).as_bytes().as_chunks().0 else {
            unreachable!("a hash has 32 bytes")
        };
        Self { id: u64::from_be_bytes(id), key }
    }

    /// Returns the session identifier that requests carry.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }
}

impl Hello {
    /// Encodes the hello, with the proof that the sender has `key` and has seen `challenge`.
    #[must_use]
    pub fn encode(&self, key: &Key, challenge: &Challenge) -> Vec<u8> {
        let mut proven = self.nonce.0.to_vec();
        put_counted(&mut proven, self.name.as_str().as_bytes());
        message(Kind::Hello, key.proof(b"hello", &[&challenge.0.0, &proven]), &proven)
    }
}

impl Request {
    /// Encodes the request, with the proof that the sender has `session`.
    #[must_use]
    pub fn encode(&self, session: &Session) -> Vec<u8> {
        let mut proven = session.id.to_be_bytes().to_vec();
        proven.extend(self.number.to_be_bytes());
        match &self.destination {
            Destination::Address(address) => put_address(&mut proven, *address),
            Destination::Named { host, port } => {
                proven.push(NAME);
                put_counted(&mut proven, host.as_str().as_bytes());
                proven.extend(port.to_be_bytes());
            }
        }
        match self.source {
            Some(source) => put_address(&mut proven, source),
            None => proven.push(SOURCE_NONE),
        }
        message(Kind::Request, session.key.proof(b"request", &[&proven]), &proven)
    }
}

fn message(kind: Kind, proof: blake3::Hash, proven: &[u8]) -> Vec<u8> {
    let mut bytes = prefix().to_vec();
    bytes.push(kind as u8);
    bytes.extend(((PROOF_LEN + proven.len()) as u16).to_be_bytes());
    bytes.extend(proof.as_bytes());
    bytes.extend(proven);
    bytes
}

/// Checks magic and version, with which every message begins.
///
/// # Errors
/// Another protocol, or another version of it.
#[cfg(feature = "gateway")]
pub(super) fn check_version(message: &[u8]) -> Result<(), Malformed> {
    strip_prefix(message).map(drop)
}

/// Returns the kind of the message and the length of the body that follows.
///
/// # Errors
/// A [`Malformed`] that names the fault.
pub fn decode_header(header: &[u8; HEADER_LEN]) -> Result<(Kind, usize), Malformed> {
    let mut rest = strip_prefix(header)?;
    let kind = match rest.take_byte()? {
        1 => Kind::Hello,
        2 => Kind::Request,
        _ => return Err(Malformed::Field),
    };
    let len = usize::from(rest.take_u16()?);
    if (PROOF_LEN..=MAX_BODY_LEN).contains(&len) { Ok((kind, len)) } else { Err(Malformed::Length) }
}

impl<T> Unverified<T> {
    /// Returns the message without verification; any host may have sent it.
    #[must_use]
    pub const fn message(&self) -> &T {
        &self.message
    }
}

impl Unverified<Hello> {
    /// Decodes the body of a hello.
    ///
    /// # Errors
    /// A [`Malformed`] that names the fault.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let (proof, mut rest) = split_proof(body)?;
        let proven = rest.0.to_vec();
        let nonce = Nonce(rest.take_array()?);
        let name = Name::from_bytes(rest.take_counted()?).ok_or(Malformed::Field)?;
        rest.finish()?;
        Ok(Self { message: Hello { name, nonce }, session: 0, proof, authenticated: proven })
    }

    /// Returns the hello if its sender has `key` and has seen `challenge`.
    ///
    /// # Errors
    /// [`Malformed::Proof`] otherwise.
    pub fn verify(self, key: &Key, challenge: &Challenge) -> Result<Hello, Malformed> {
        // Comparison of hashes takes constant time.
        let right = key.proof(b"hello", &[&challenge.0.0, &self.authenticated]) == self.proof;
        if right { Ok(self.message) } else { Err(Malformed::Proof) }
    }
}

impl Unverified<Request> {
    /// Decodes the body of a request.
    ///
    /// # Errors
    /// A [`Malformed`] that names the fault.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let (proof, mut rest) = split_proof(body)?;
        let proven = rest.0.to_vec();
        let [session, number] = [rest.take_array()?, rest.take_array()?].map(u64::from_be_bytes);
        let destination = match rest.take_byte()? {
            NAME => {
                let host = rest.take_counted()?;
                Destination::named(host, rest.take_u16()?)
            }
            kind => Destination::at(rest.take_address(kind)?),
        };
        let source = match rest.take_byte()? {
            SOURCE_NONE => None,
            kind => Some(rest.take_address(kind)?),
        };
        let destination = destination.ok_or(Malformed::Field)?;
        rest.finish()?;
        Ok(Self { message: Request { number, destination, source }, session, proof, authenticated: proven })
    }

    /// Returns the [`Session::id`] that the sender names.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the request if its sender has `session`.
    ///
    /// # Errors
    /// [`Malformed::Proof`] otherwise.
    pub fn verify(self, session: &Session) -> Result<Request, Malformed> {
        let right = session.key.proof(b"request", &[&self.authenticated]) == self.proof;
        if right { Ok(self.message) } else { Err(Malformed::Proof) }
    }
}

fn split_proof(body: &[u8]) -> Result<(blake3::Hash, Reader<'_>), Malformed> {
    let mut rest = Reader(body);
    let proof = blake3::Hash::from_bytes(rest.take_array()?);
    Ok((proof, rest))
}

impl Verdict {
    /// Encodes the answer, with the proof that the sender has `session`. `number`: that of the request; 0 for the hello.
    #[must_use]
    pub fn encode(self, session: &Session, number: u64) -> [u8; ANSWER_LEN] {
        let code = self.code();
        let mut bytes = [0; ANSWER_LEN];
        bytes[..PREFIX_LEN].copy_from_slice(&prefix());
        bytes[PREFIX_LEN] = code;
        bytes[PREFIX_LEN + 1..].copy_from_slice(answer_proof(session, number, code).as_bytes());
        bytes
    }

    /// Decodes the answer to request `number`, or to the hello (0).
    ///
    /// # Errors
    /// A [`Malformed`] that names the fault; [`Malformed::Proof`] if its sender does not have `session`.
    pub fn decode(bytes: &[u8; ANSWER_LEN], session: &Session, number: u64) -> Result<Self, Malformed> {
        let mut rest = strip_prefix(bytes)?;
        let code = rest.take_byte()?;
        let proof = blake3::Hash::from_bytes(rest.take_array()?);
        if answer_proof(session, number, code) != proof {
            return Err(Malformed::Proof);
        }
        Self::from_code(code).ok_or(Malformed::Field)
    }

    const fn code(self) -> u8 {
        match self {
            Self::Connected => 0,
            Self::Refused(denial) => denial as u8,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        use Denial::{
            Failed, HostUnreachable, NameUnknown, NetworkUnreachable, NotAllowed, Refused, TimedOut, TooMany,
        };
        let denials = [
            Refused,
            TimedOut,
            HostUnreachable,
            NetworkUnreachable,
            NotAllowed,
            NameUnknown,
            TooMany,
            Failed,
        ];
        match code {
            0 => Some(Self::Connected),
            code => denials.into_iter().find(|&denial| denial as u8 == code).map(Self::Refused),
        }
    }
}

impl From<&io::Error> for Denial {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::Refused,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::HostUnreachable => Self::HostUnreachable,
            ErrorKind::NetworkUnreachable => Self::NetworkUnreachable,
            ErrorKind::NotFound => Self::NameUnknown,
            _ => Self::Failed,
        }
    }
}

fn answer_proof(session: &Session, number: u64, code: u8) -> blake3::Hash {
    session.key.proof(b"answer", &[&number.to_be_bytes(), &[code]])
}

const fn prefix() -> [u8; PREFIX_LEN] {
    let [a, b, c] = *MAGIC;
    [a, b, c, VERSION]
}

fn strip_prefix(bytes: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut rest = Reader(bytes);
    if rest.take_array::<3>()? != *MAGIC {
        return Err(Malformed::Magic);
    }
    match rest.take_byte()? {
        VERSION => Ok(rest),
        other => Err(Malformed::Version(other)),
    }
}

fn put_counted(to: &mut Vec<u8>, bytes: &[u8]) {
    to.push(u8::try_from(bytes.len()).expect("names have at most 255 bytes"));
    to.extend(bytes);
}

fn put_address(to: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            to.push(IPV4);
            to.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            to.push(IPV6);
            to.extend(ip.octets());
        }
    }
    to.extend(address.port().to_be_bytes());
}

/// Unparsed rest of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take_byte(&mut self) -> Result<u8, Malformed> {
        self.take_array().map(|[byte]| byte)
    }

    fn take_u16(&mut self) -> Result<u16, Malformed> {
        self.take_array().map(u16::from_be_bytes)
    }

    /// Takes a field with its length in the byte before it.
    fn take_counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.take_byte()?;
        self.take(len.into())
    }

    fn take_address(&mut self, kind: u8) -> Result<SocketAddr, Malformed> {
        let ip: IpAddr = match kind {
            IPV4 => Ipv4Addr::from(self.take_array::<4>()?).into(),
            IPV6 => Ipv6Addr::from(self.take_array::<16>()?).into(),
            _ => return Err(Malformed::Field),
        };
        Ok((ip, self.take_u16()?).into())
    }

    fn finish(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: u8) -> Key {
        Key::new(&[of; 32])
    }

    fn challenge(of: u8) -> Challenge {
        Challenge(Nonce([of; NONCE_LEN]))
    }

    fn session(of: u8) -> Session {
        Session::new(&key(1), &challenge(2), &Nonce([of; NONCE_LEN]))
    }

    fn hello() -> Hello {
        Hello { name: "drone-3".parse().unwrap(), nonce: Nonce([9; NONCE_LEN]) }
    }

    fn requests() -> Vec<Request> {
        let destinations = ["10.0.0.1:80", "[2001:db8::1]:443", "example.org:22"];
        let sources = [None, "10.9.9.9:1234".parse().ok(), "[2001:db8::9]:0".parse().ok()];
        let of = |(destination, source): (&&str, _)| Request {
            number: 7,
            destination: destination.parse().unwrap(),
            source,
        };
        destinations.iter().zip(sources).map(of).collect()
    }

    fn body(bytes: &[u8], kind: Kind) -> &[u8] {
        let (first, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(decode_header(first), Ok((kind, body.len())));
        body
    }

    #[test]
    fn messages_round_trip() {
        assert_eq!(Challenge::decode(&challenge(3).encode()), Ok(challenge(3)));
        let bytes = hello().encode(&key(1), &challenge(2));
        let claim = Unverified::<Hello>::decode(body(&bytes, Kind::Hello)).unwrap();
        assert_eq!(claim.verify(&key(1), &challenge(2)), Ok(hello()));
        for request in requests() {
            let bytes = request.encode(&session(9));
            let claim = Unverified::<Request>::decode(body(&bytes, Kind::Request)).unwrap();
            assert_eq!(claim.session(), session(9).id());
            assert_eq!(claim.verify(&session(9)), Ok(request));
        }
        for code in 0..=8 {
            let verdict = Verdict::from_code(code).unwrap();
            assert_eq!(Verdict::decode(&verdict.encode(&session(9), 7), &session(9), 7), Ok(verdict));
        }
    }

    #[test]
    fn sessions_differ_by_key_and_by_the_nonce_of_either_gateway() {
        let all = [
            session(1),
            session(2),
            Session::new(&key(1), &challenge(3), &Nonce([1; NONCE_LEN])),
            Session::new(&key(2), &challenge(2), &Nonce([1; NONCE_LEN])),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other.id() != one.id() && other.key != one.key));
        }
    }

    #[test]
    fn a_hello_with_another_stream_key_or_content_fails_verification() {
        let bytes = hello().encode(&key(1), &challenge(2));
        let claim = |bytes: &[u8]| Unverified::<Hello>::decode(&bytes[HEADER_LEN..]);
        assert_eq!(claim(&bytes).unwrap().verify(&key(1), &challenge(3)), Err(Malformed::Proof));
        assert_eq!(claim(&bytes).unwrap().verify(&key(2), &challenge(2)), Err(Malformed::Proof));
        for at in HEADER_LEN..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert!(claim(&altered).and_then(|c| c.verify(&key(1), &challenge(2))).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_request_of_another_session_or_content_fails_verification() {
        let bytes = requests()[0].encode(&session(9));
        let claim = |bytes: &[u8]| Unverified::<Request>::decode(&bytes[HEADER_LEN..]);
        assert_eq!(claim(&bytes).unwrap().verify(&session(8)), Err(Malformed::Proof));
        for at in HEADER_LEN..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert!(claim(&altered).and_then(|c| c.verify(&session(9))).is_err(), "byte {at}");
        }
    }

    #[test]
    fn an_answer_to_another_request_session_or_code_fails_verification() {
        let bytes = Verdict::Connected.encode(&session(9), 7);
        assert_eq!(Verdict::decode(&bytes, &session(8), 7), Err(Malformed::Proof));
        assert_eq!(Verdict::decode(&bytes, &session(9), 6), Err(Malformed::Proof));
        let mut altered = bytes;
        altered[PREFIX_LEN] = 1;
        assert_eq!(Verdict::decode(&altered, &session(9), 7), Err(Malformed::Proof));
    }

    #[test]
    fn malformed_messages_are_rejected_with_the_reason() {
        let mut bytes = challenge(1).encode();
        bytes[3] = 1;
        assert_eq!(Challenge::decode(&bytes), Err(Malformed::Version(1)));
        bytes[0] = b'H';
        assert_eq!(Challenge::decode(&bytes), Err(Malformed::Magic));
        let bytes = |kind: u8, len: u16| {
            let [high, low] = len.to_be_bytes();
            [b'h', b'g', b'w', VERSION, kind, high, low]
        };
        for len in [0, 31, 513, u16::MAX] {
            assert_eq!(decode_header(&bytes(2, len)), Err(Malformed::Length), "{len}");
        }
        assert_eq!([decode_header(&bytes(0, 64)), decode_header(&bytes(3, 64))], [Err(Malformed::Field); 2]);
        let whole = requests()[2].encode(&session(9));
        let body = &whole[HEADER_LEN..];
        for len in 0..body.len() {
            assert_eq!(Unverified::<Request>::decode(&body[..len]), Err(Malformed::Length), "{len} bytes");
        }
        assert_eq!(Unverified::<Request>::decode(&[body, &[0]].concat()), Err(Malformed::Length));
        let whole = hello().encode(&key(1), &challenge(2));
        assert_eq!(
            Unverified::<Hello>::decode(&[&whole[HEADER_LEN..], &[0]].concat()),
            Err(Malformed::Length)
        );
    }

    #[test]
    fn the_longest_messages_fit_into_the_longest_body() {
        let request = Request {
            number: u64::MAX,
            destination: Destination::named(&[b'h'; 255], 65535).unwrap(),
            source: "[::1]:1".parse().ok(),
        };
        body(&request.encode(&session(1)), Kind::Request);
        let name = "n".repeat(super::super::key::MAX_NAME_LEN).parse().unwrap();
        body(&Hello { name, nonce: Nonce([1; NONCE_LEN]) }.encode(&key(1), &challenge(1)), Kind::Hello);
    }
}
