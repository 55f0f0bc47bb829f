//! Server side of SOCKS version 5 (RFC 1928, RFC 1929), without I/O. CONNECT is the only command.

use super::destination::Destination;
use super::handshake::Denial;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 5;
/// Version of the user name and password negotiation (RFC 1929 §2).
const LOGIN_VERSION: u8 = 1;
/// Maximum bytes of a message: user name and password with their lengths.
const MAX_MESSAGE: usize = 1 + 1 + 255 + 1 + 255;

// Methods (RFC 1928 §3).
const METHOD_NO_AUTHENTICATION: u8 = 0;
const METHOD_PASSWORD: u8 = 2;
const METHOD_NONE_ACCEPTABLE: u8 = 0xff;

// Commands and address types (RFC 1928 §4, §5).
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// User name and password required of clients (RFC 1929): 1 to 255 bytes each. They travel unencrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    password: String,
}

/// State of the negotiation with a client.
#[derive(Clone, Debug)]
pub struct Negotiation {
    login: Option<Login>,
    stage: Stage,
    /// Bytes of the current message received so far.
    message: Vec<u8>,
}

/// Next message expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Methods,
    Login,
    Request,
    Finished,
}

/// Next step of the negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The message is incomplete.
    More,
    /// Send these bytes and continue.
    Answer([u8; 2]),
    /// Connect, and send the [reply].
    Connect(Destination),
}

/// Reason that a client gets no connection, and the answer to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason.
    pub reason: RefusalReason,
    /// Bytes to send before closing; empty for a client that speaks another protocol.
    pub answer: Vec<u8>,
}

/// Reason that a client gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// The client speaks another protocol or version.
    #[error("the client speaks something else than SOCKS version 5")]
    Version,
    /// The client offers no authentication method that is accepted here.
    #[error("the client offers no method that is accepted here")]
    Method,
    /// Wrong user name or password.
    #[error("wrong user name or password")]
    Login,
    /// BIND, UDP ASSOCIATE or an unknown command.
    #[error("the client wants something else than CONNECT")]
    Command,
    /// Unknown address type.
    #[error("the client names no address of a type that there is")]
    AddressType,
    /// Port zero, or an invalid host name.
    #[error("the client names a destination that cannot be")]
    Destination,
}

/// Reply codes (RFC 1928 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Code {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    Refused = 5,
    TimeToLiveExpired = 6,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Login {
    /// Creates credentials; `None` if user name or password is empty or longer than 255 bytes.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Option<Self> {
        let fits = |text: &str| (1..=255).contains(&text.len());
        (fits(user) && fits(password)).then(|| Self { user: user.into(), password: password.into() })
    }

    fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        // Hashes are compared in constant time.
        let same = |ours: &str, theirs: &[u8]| blake3::hash(ours.as_bytes()) == blake3::hash(theirs);
        same(&self.user, user) & same(&self.password, password)
    }
}

impl fmt::Debug for Login {
    /// Prints a placeholder, to keep passwords out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({:?}, …)", self.user)
    }
}

impl Negotiation {
    /// Starts a negotiation. The client must present `login`, if there is one.
    #[must_use]
    pub fn new(login: Option<Login>) -> Self {
        Self { login, stage: Stage::Methods, message: Vec::new() }
    }

    /// Returns the number of bytes missing from the current message, as far as known; at least one until the negotiation
    /// ends. The caller must not read more: bytes behind the last message belong to the connection.
    #[must_use]
    pub fn missing_bytes(&self) -> usize {
        self.message_len().saturating_sub(self.message.len())
    }

    /// Processes bytes of the client, at most as many as it [wants](Self::missing_bytes).
    ///
    /// # Errors
    /// The reason that the client gets no connection. The negotiation is over then.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        self.message.extend(&bytes[..bytes.len().min(self.missing_bytes())]);
        self.check_version()?;
        if self.missing_bytes() > 0 {
            return Ok(Step::More);
        }
        let message = std::mem::take(&mut self.message);
        match self.stage {
            Stage::Methods => self.choose_method(&message),
            Stage::Login => self.check_login(&message),
            Stage::Request => self.read_request(&message),
            Stage::Finished => Ok(Step::More),
        }
    }

    /// Returns the length of the current message, as far as the received bytes determine it.
    fn message_len(&self) -> usize {
        let at = |index: usize| self.message.get(index).map(|&byte| usize::from(byte));
        match self.stage {
            Stage::Methods => 2 + at(1).unwrap_or(0),
            Stage::Login => match at(1) {
                None => 2,
                Some(user) => 3 + user + at(2 + user).unwrap_or(0),
            },
            Stage::Request => match (at(3), at(4)) {
                // Up to the first byte of the address, which may be a length.
                (Some(_), None) | (None, _) => 5,
                (Some(kind), Some(first)) => 4 + address_len(kind as u8, first) + 2,
            },
            Stage::Finished => 0,
        }
        .min(MAX_MESSAGE)
    }

    fn check_version(&self) -> Result<(), Refusal> {
        let version = if self.stage == Stage::Login { LOGIN_VERSION } else { VERSION };
        match self.message.first() {
            Some(&other) if other != version => Err(refusal(RefusalReason::Version, [])),
            _ => Ok(()),
        }
    }

    fn choose_method(&mut self, message: &[u8]) -> Result<Step, Refusal> {
        let (method, next) = if self.login.is_some() {
            (METHOD_PASSWORD, Stage::Login)
        } else {
            (METHOD_NO_AUTHENTICATION, Stage::Request)
        };
        if !message[2..].contains(&method) {
            return Err(refusal(RefusalReason::Method, [VERSION, METHOD_NONE_ACCEPTABLE]));
        }
        self.stage = next;
        Ok(Step::Answer([VERSION, method]))
    }

    fn check_login(&mut self, message: &[u8]) -> Result<Step, Refusal> {
        let user_ends = 2 + usize::from(message[1]);
        let right = |login: &Login| login.matches(&message[2..user_ends], &message[user_ends + 1..]);
        if !self.login.as_ref().is_some_and(right) {
            return Err(refusal(RefusalReason::Login, [LOGIN_VERSION, 1]));
        }
        self.stage = Stage::Request;
        Ok(Step::Answer([LOGIN_VERSION, 0]))
    }

    fn read_request(&mut self, message: &[u8]) -> Result<Step, Refusal> {
        self.stage = Stage::Finished;
        let (address, port) = message[4..].split_at(message.len() - 6);
        let port = u16::from_be_bytes([port[0], port[1]]);
        // A message with an unknown address type ends before the address: RFC 1928 does not define its length.
        if message[1] != CONNECT {
            return Err(refusal(RefusalReason::Command, encode(Code::CommandNotSupported)));
        }
        let destination = match message[3] {
            IPV4 => <[u8; 4]>::try_from(address).ok().and_then(|ip| at(Ipv4Addr::from(ip), port)),
            IPV6 => <[u8; 16]>::try_from(address).ok().and_then(|ip| at(Ipv6Addr::from(ip), port)),
            NAME => Destination::named(&address[1..], port),
            _ => return Err(refusal(RefusalReason::AddressType, encode(Code::AddressTypeNotSupported))),
        };
        destination
            .map(Step::Connect)
            .ok_or_else(|| refusal(RefusalReason::Destination, encode(Code::Failure)))
    }
}

/// Returns the reply to a client's request.
#[must_use]
pub fn reply(outcome: Result<(), Denial>) -> [u8; 10] {
    encode(match outcome {
        Ok(()) => Code::Succeeded,
        Err(Denial::Refused) => Code::Refused,
        Err(Denial::TimedOut) => Code::TimeToLiveExpired,
        Err(Denial::HostUnreachable | Denial::NameUnknown) => Code::HostUnreachable,
        Err(Denial::NetworkUnreachable) => Code::NetworkUnreachable,
        Err(Denial::NotAllowed) => Code::NotAllowed,
        Err(Denial::TooMany | Denial::Failed) => Code::Failure,
    })
}

/// Encodes a reply. The bound address is all zeros, to hide the peer gateway's address.
const fn encode(code: Code) -> [u8; 10] {
    [VERSION, code as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

/// Returns the bytes of an address of type `kind` that begins with `first`.
const fn address_len(kind: u8, first: usize) -> usize {
    match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => 1 + first,
        _ => 1,
    }
}

fn at(ip: impl Into<std::net::IpAddr>, port: u16) -> Option<Destination> {
    Destination::at((ip.into(), port).into())
}

fn refusal<const N: usize>(why: RefusalReason, answer: [u8; N]) -> Refusal {
    Refusal { reason: why, answer: answer.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a negotiation byte by byte, as far as it wants bytes. Returns what the client receives, and the outcome.
    fn talk(login: Option<Login>, client: &[u8]) -> (Vec<u8>, Result<Option<Destination>, RefusalReason>) {
        let mut negotiation = Negotiation::new(login);
        let mut heard = Vec::new();
        for byte in client.chunks(1) {
            if negotiation.missing_bytes() == 0 {
                break;
            }
            match negotiation.handle_bytes(byte) {
                Ok(Step::More) => {}
                Ok(Step::Answer(answer)) => heard.extend(answer),
                Ok(Step::Connect(destination)) => {
                    assert_eq!(negotiation.missing_bytes(), 0);
                    return (heard, Ok(Some(destination)));
                }
                Err(refusal) => {
                    heard.extend(refusal.answer);
                    return (heard, Err(refusal.reason));
                }
            }
        }
        (heard, Ok(None))
    }

    fn request(command: u8, address: &[u8]) -> Vec<u8> {
        [&[5, 1, 0, 5, command, 0], address].concat()
    }

    #[test]
    fn a_client_may_name_an_address_or_a_name() {
        for (address, destination) in [
            (&[1, 10, 0, 0, 1, 0, 80][..], "10.0.0.1:80"),
            (&[4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0xbb], "[2001:db8::1]:443"),
            (&[3, 4, b'h', b'o', b's', b't', 0, 22], "host:22"),
            (&[3, 8, b'1', b'0', b'.', b'0', b'.', b'0', b'.', b'1', 0, 22], "10.0.0.1:22"),
        ] {
            let (heard, wanted) = talk(None, &request(1, address));
            assert_eq!((heard, wanted), (vec![5, 0], Ok(destination.parse().ok())), "{destination}");
        }
    }

    #[test]
    fn bytes_behind_the_request_are_left_to_the_connection() {
        let mut negotiation = Negotiation::new(None);
        let mut client = &[&request(1, &[3, 1, b'h', 0, 22])[..], b"early"].concat()[..];
        while negotiation.missing_bytes() > 0 {
            let (message, rest) = client.split_at(negotiation.missing_bytes());
            client = rest;
            negotiation.handle_bytes(message).unwrap();
        }
        assert_eq!(client, b"early");
    }

    #[test]
    fn bind_and_udp_associate_are_not_supported() {
        for command in [0, 2, 3, 255] {
            let (heard, wanted) = talk(None, &request(command, &[1, 10, 0, 0, 1, 0, 80]));
            assert_eq!((heard[2..4].to_vec(), wanted), (vec![5, 7], Err(RefusalReason::Command)));
        }
    }

    #[test]
    fn invalid_destinations_are_refused() {
        for (address, code, why) in [
            (&[2, 9, 9, 9][..], 8, RefusalReason::AddressType),
            (&[1, 10, 0, 0, 1, 0, 0], 1, RefusalReason::Destination),
            (&[3, 0, 0, 22], 1, RefusalReason::Destination),
            (&[3, 2, b'a', b' ', 0, 22], 1, RefusalReason::Destination),
        ] {
            let (heard, wanted) = talk(None, &request(1, address));
            assert_eq!((heard[2..4].to_vec(), wanted), (vec![5, code], Err(why)), "{address:?}");
        }
    }

    #[test]
    fn a_login_must_be_offered_and_right() {
        let login = || Login::new("user", "pass");
        let methods = [5, 2, 0, 2];
        let show = |user: &[u8], password: &[u8]| {
            let lengths = [user.len() as u8, password.len() as u8];
            [&methods, &[1][..], &lengths[..1], user, &lengths[1..], password, &[5, 1, 0, 3, 1, b'h', 0, 22]]
                .concat()
        };
        assert_eq!(talk(login(), &show(b"user", b"pass")), (vec![5, 2, 1, 0], Ok("h:22".parse().ok())));
        for (user, password) in
            [(&b"user"[..], &b"Pass"[..]), (b"", b""), (b"use", b"rpass"), (&[0; 255], &[0; 255])]
        {
            assert_eq!(talk(login(), &show(user, password)), (vec![5, 2, 1, 1], Err(RefusalReason::Login)));
        }
        assert_eq!(talk(login(), &[5, 1, 0]), (vec![5, 0xff], Err(RefusalReason::Method)));
        assert_eq!(talk(None, &[5, 1, 2]), (vec![5, 0xff], Err(RefusalReason::Method)));
        assert_eq!(talk(None, &[5, 0]), (vec![5, 0xff], Err(RefusalReason::Method)));
        assert_eq!(format!("{:?}", login().unwrap()), "Login(\"user\", …)");
        assert_eq!(Login::new("", "x").or(Login::new("x", &"y".repeat(256))), None);
    }

    #[test]
    fn other_protocols_get_no_answer() {
        for client in [&b"GET / HTTP/1.0"[..], &[4, 1, 0, 80], &[0]] {
            assert_eq!(talk(None, client), (vec![], Err(RefusalReason::Version)));
        }
        assert_eq!(talk(Login::new("u", "p"), &[5, 1, 2, 5]), (vec![5, 2], Err(RefusalReason::Version)));
    }

    #[test]
    fn replies_state_the_outcome() {
        let code = |denial| reply(Err(denial))[1];
        assert_eq!(reply(Ok(())), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!([Denial::Refused, Denial::NotAllowed, Denial::NetworkUnreachable].map(code), [5, 2, 3]);
        assert_eq!([Denial::HostUnreachable, Denial::TimedOut, Denial::TooMany].map(code), [4, 6, 1]);
    }
}
