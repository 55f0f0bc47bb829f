//! What two gateways say to each other before the bytes of applications: three messages. `docs/protocols/gateway.md` has the
//! layout.

use super::destination::Destination;
use super::key::{Key, Name};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The version that is spoken here.
pub const VERSION: u8 = 1;
/// Bytes of a challenge.
pub const CHALLENGE_LEN: usize = START + NONCE;
/// Bytes of a request before its body.
pub const REQUEST_HEADER_LEN: usize = START + 2;
/// Most bytes of a request's body.
pub const LONGEST_BODY: usize = 512;
/// Bytes of an answer.
pub const ANSWER_LEN: usize = START + 1 + PROOF;

const MAGIC: &[u8; 3] = b"hgw";
/// Magic and version, before every message.
const START: usize = 4;
const NONCE: usize = 32;
const PROOF: usize = 32;

const NONE: u8 = 0;
const NAME: u8 = 3;
const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// What nobody can have seen before: 32 random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; NONCE]);

/// The exit, first: prove that you have the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge(pub Nonce);

/// The entrance: connect onward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// By what name the entrance is known.
    pub name: Name,
    /// What makes the answer an answer to this.
    pub nonce: Nonce,
    /// Where to.
    pub destination: Destination,
    /// Who connects, if the exit may do so in its name.
    pub source: Option<SocketAddr>,
}

/// A request that was read and is not yet believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    request: Request,
    proof: blake3::Hash,
    /// What was proven.
    proven: Vec<u8>,
}

/// The exit: what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Connected; bytes follow.
    Connected,
    /// Not connected, and no bytes follow.
    Refused(Denial),
}

/// Why the exit did not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Denial {
    /// The destination refused.
    #[error("the destination refused")]
    Refused = 1,
    /// The destination did not answer.
    #[error("the destination did not answer")]
    TimedOut = 2,
    /// No route to the host.
    #[error("the host is unreachable")]
    HostUnreachable = 3,
    /// No route to its network.
    #[error("the network is unreachable")]
    NetworkUnreachable = 4,
    /// The exit does not let connections go there.
    #[error("the exit lets no connections go there")]
    NotAllowed = 5,
    /// The name has no address.
    #[error("the name has no address")]
    NameUnknown = 6,
    /// The exit has as many connections as it may.
    #[error("the exit has too many connections")]
    TooMany = 7,
    /// The exit cannot.
    #[error("the exit failed")]
    Failed = 8,
}

/// What is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Another protocol.
    #[error("the peer speaks another protocol")]
    Magic,
    /// Another version.
    #[error("the peer speaks version {0} of the protocol, not {VERSION}")]
    Version(u8),
    /// A message of a length that none has.
    #[error("a message is longer than any may be, or too short for what it says")]
    Length,
    /// A field that says nothing that there is.
    #[error("a field has a value that means nothing")]
    Field,
    /// Whoever sent it does not have the key.
    #[error("the proof is wrong")]
    Proof,
}

impl Nonce {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; NONCE];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl Challenge {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; CHALLENGE_LEN] {
        let mut bytes = [0; CHALLENGE_LEN];
        bytes[..START].copy_from_slice(&start());
        bytes[START..].copy_from_slice(&self.0.0);
        bytes
    }

    /// The challenge in `bytes`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8; CHALLENGE_LEN]) -> Result<Self, Malformed> {
        let mut rest = after_start(bytes)?;
        Ok(Self(Nonce(rest.take_array()?)))
    }
}

impl Request {
    /// Its bytes, with the proof that who sends it has `key` and has seen `challenge`.
    #[must_use]
    pub fn encode(&self, key: &Key, challenge: &Challenge) -> Vec<u8> {
        let mut proven = self.nonce.0.to_vec();
        put_counted(&mut proven, self.name.as_str().as_bytes());
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
            None => proven.push(NONE),
        }
        let proof = key.proof(b"request", &[&challenge.0.0, &proven]);
        let mut bytes = start().to_vec();
        bytes.extend(((PROOF + proven.len()) as u16).to_be_bytes());
        bytes.extend(proof.as_bytes());
        bytes.extend(proven);
        bytes
    }
}

/// How long the body is that follows a request's header.
///
/// # Errors
/// What is wrong with the header.
pub fn body_len(header: &[u8; REQUEST_HEADER_LEN]) -> Result<usize, Malformed> {
    let mut rest = after_start(header)?;
    let len = usize::from(u16::from_be_bytes(rest.take_array()?));
    if (PROOF..=LONGEST_BODY).contains(&len) { Ok(len) } else { Err(Malformed::Length) }
}

impl Claim {
    /// The request in `body`, which says who made it; not yet believed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest(body);
        let proof = blake3::Hash::from_bytes(rest.take_array()?);
        let proven = rest.0.to_vec();
        let nonce = Nonce(rest.take_array()?);
        let name = Name::of(rest.take_counted()?).ok_or(Malformed::Field)?;
        let destination = match rest.take_byte()? {
            NAME => {
                let host = rest.take_counted()?;
                Destination::named(host, rest.take_u16()?)
            }
            kind => Destination::at(rest.take_address(kind)?),
        };
        let source = match rest.take_byte()? {
            NONE => None,
            kind => Some(rest.take_address(kind)?),
        };
        let destination = destination.ok_or(Malformed::Field)?;
        rest.is_over()?;
        Ok(Self { request: Request { name, nonce, destination, source }, proof, proven })
    }

    /// Who it says made it.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.request.name
    }

    /// What is claimed, by whomever.
    #[must_use]
    pub fn unproven(&self) -> &Request {
        &self.request
    }

    /// The request, made by who has `key` and has seen `challenge`.
    ///
    /// # Errors
    /// [`Malformed::Proof`] if it was not.
    pub fn verify(self, key: &Key, challenge: &Challenge) -> Result<Request, Malformed> {
        // Hashes are compared in constant time.
        let right = key.proof(b"request", &[&challenge.0.0, &self.proven]) == self.proof;
        if right { Ok(self.request) } else { Err(Malformed::Proof) }
    }
}

impl Verdict {
    /// The answer's bytes, with the proof that who sends it has `key` and has seen the request with `nonce`.
    #[must_use]
    pub fn encode(self, key: &Key, challenge: &Challenge, nonce: &Nonce) -> [u8; ANSWER_LEN] {
        let code = self.code();
        let mut bytes = [0; ANSWER_LEN];
        bytes[..START].copy_from_slice(&start());
        bytes[START] = code;
        bytes[START + 1..].copy_from_slice(answer_proof(key, challenge, nonce, code).as_bytes());
        bytes
    }

    /// The answer in `bytes`.
    ///
    /// # Errors
    /// What is wrong with it; [`Malformed::Proof`] if somebody else made it.
    pub fn decode(
        bytes: &[u8; ANSWER_LEN],
        key: &Key,
        challenge: &Challenge,
        nonce: &Nonce,
    ) -> Result<Self, Malformed> {
        let mut rest = after_start(bytes)?;
        let code = rest.take_byte()?;
        let proof = blake3::Hash::from_bytes(rest.take_array()?);
        if answer_proof(key, challenge, nonce, code) != proof {
            return Err(Malformed::Proof);
        }
        Self::of(code).ok_or(Malformed::Field)
    }

    const fn code(self) -> u8 {
        match self {
            Self::Connected => 0,
            Self::Refused(denial) => denial as u8,
        }
    }

    fn of(code: u8) -> Option<Self> {
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

fn answer_proof(key: &Key, challenge: &Challenge, nonce: &Nonce, code: u8) -> blake3::Hash {
    key.proof(b"answer", &[&challenge.0.0, &nonce.0, &[code]])
}

const fn start() -> [u8; START] {
    let [a, b, c] = *MAGIC;
    [a, b, c, VERSION]
}

fn after_start(bytes: &[u8]) -> Result<Rest<'_>, Malformed> {
    let mut rest = Rest(bytes);
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

/// What is not yet read of a message.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
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

    /// Bytes that one byte before them counts.
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

    fn is_over(&self) -> Result<(), Malformed> {
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
        Challenge(Nonce([of; NONCE]))
    }

    fn requests() -> Vec<Request> {
        let destinations = ["10.0.0.1:80", "[2001:db8::1]:443", "example.org:22"];
        let sources = [None, "10.9.9.9:1234".parse().ok(), "[2001:db8::9]:0".parse().ok()];
        destinations
            .iter()
            .zip(sources)
            .map(|(destination, source)| Request {
                name: "drone-3".parse().unwrap(),
                nonce: Nonce([9; NONCE]),
                destination: destination.parse().unwrap(),
                source,
            })
            .collect()
    }

    fn claim(bytes: &[u8]) -> Result<Claim, Malformed> {
        let (header, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(body_len(header), Ok(body.len()));
        Claim::decode(body)
    }

    #[test]
    fn messages_survive_the_way() {
        assert_eq!(Challenge::decode(&challenge(3).encode()), Ok(challenge(3)));
        for request in requests() {
            let claim = claim(&request.encode(&key(1), &challenge(2))).unwrap();
            assert_eq!(claim.name(), &request.name);
            assert_eq!(claim.verify(&key(1), &challenge(2)), Ok(request));
        }
        for code in 0..=8 {
            let verdict = Verdict::of(code).unwrap();
            let bytes = verdict.encode(&key(1), &challenge(2), &Nonce([9; NONCE]));
            assert_eq!(Verdict::decode(&bytes, &key(1), &challenge(2), &Nonce([9; NONCE])), Ok(verdict));
        }
    }

    #[test]
    fn a_request_of_another_connection_key_or_content_proves_nothing() {
        let bytes = requests()[0].encode(&key(1), &challenge(2));
        let good = claim(&bytes).unwrap();
        assert_eq!(good.clone().verify(&key(1), &challenge(3)), Err(Malformed::Proof));
        assert_eq!(good.verify(&key(2), &challenge(2)), Err(Malformed::Proof));
        for at in REQUEST_HEADER_LEN..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            let verified = claim(&altered).and_then(|claim| claim.verify(&key(1), &challenge(2)));
            assert!(verified.is_err(), "byte {at}");
        }
    }

    #[test]
    fn an_answer_to_another_request_or_of_another_key_or_code_proves_nothing() {
        let nonce = Nonce([9; NONCE]);
        let bytes = Verdict::Connected.encode(&key(1), &challenge(2), &nonce);
        let decode = |bytes: &_, k, c, n| Verdict::decode(bytes, &key(k), &challenge(c), &Nonce([n; NONCE]));
        assert_eq!(decode(&bytes, 2, 2, 9), Err(Malformed::Proof));
        assert_eq!(decode(&bytes, 1, 3, 9), Err(Malformed::Proof));
        assert_eq!(decode(&bytes, 1, 2, 8), Err(Malformed::Proof));
        let mut altered = bytes;
        altered[START] = 1;
        assert_eq!(decode(&altered, 1, 2, 9), Err(Malformed::Proof));
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        let mut bytes = challenge(1).encode();
        bytes[3] = 2;
        assert_eq!(Challenge::decode(&bytes), Err(Malformed::Version(2)));
        bytes[0] = b'H';
        assert_eq!(Challenge::decode(&bytes), Err(Malformed::Magic));
        let header = |len: u16| [b'h', b'g', b'w', VERSION, len.to_be_bytes()[0], len.to_be_bytes()[1]];
        for len in [0, 31, 513, u16::MAX] {
            assert_eq!(body_len(&header(len)), Err(Malformed::Length), "{len}");
        }
        let whole = requests()[2].encode(&key(1), &challenge(2));
        let body = &whole[REQUEST_HEADER_LEN..];
        for len in 0..body.len() {
            assert_eq!(Claim::decode(&body[..len]), Err(Malformed::Length), "{len} bytes");
        }
        assert_eq!(Claim::decode(&[body, &[0]].concat()), Err(Malformed::Length));
    }

    #[test]
    fn the_longest_request_fits_into_the_longest_body() {
        let request = Request {
            name: "n".repeat(super::super::key::LONGEST_NAME).parse().unwrap(),
            nonce: Nonce([1; NONCE]),
            destination: Destination::named(&[b'h'; 255], 65535).unwrap(),
            source: "[::1]:1".parse().ok(),
        };
        let bytes = request.encode(&key(1), &challenge(1));
        assert!(bytes.len() <= REQUEST_HEADER_LEN + LONGEST_BODY);
        assert!(claim(&bytes).is_ok());
    }
}
