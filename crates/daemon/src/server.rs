//! Server that tolerates clients which send or read slowly, or not at all: a slow, hostile or silent client delays neither
//! another one nor the daemon. A library would bring a runtime.

use crate::allowance::Allowance;
use hopline_core::PrefixCounter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Time limit of a client, from the connection to the last byte of the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest request, bytes.
const MAX_REQUEST: usize = 4096;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Most simultaneous clients. Beyond, the oldest one of the user or network prefix with most clients is closed.
const MAX_CLIENTS: usize = 64;
/// Interval at which the rate limit of waiting users is checked.
const RATE_LIMIT_POLL: Duration = Duration::from_millis(20);
/// Pause after an error of `accept`, such as a lack of descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Listener and its streams.
pub(crate) trait Acceptor: AsFd {
    /// Connection.
    type Stream: Read + Write + AsFd;

    /// Sets the listener to not wait in `accept`.
    fn set_nonblocking(&self) -> io::Result<()>;

    /// Accepts a connection, which does not wait either.
    fn accept(&self) -> io::Result<Self::Stream>;

    /// Returns the identity of the other end.
    fn peer_identity(stream: &Self::Stream) -> PeerIdentity;
}

/// Other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerIdentity {
    /// User of this machine.
    User(u32),
    /// Host.
    Host(IpAddr),
    /// Not known.
    Unknown,
}

impl PeerIdentity {
    const fn user(self) -> Option<u32> {
        match self {
            Self::User(user) => Some(user),
            Self::Host(_) | Self::Unknown => None,
        }
    }
}

impl Acceptor for TcpListener {
    type Stream = TcpStream;

    fn set_nonblocking(&self) -> io::Result<()> {
        Self::set_nonblocking(self, true)
    }

    fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self)?;
        stream.set_nonblocking(true).map(|()| stream)
    }

    fn peer_identity(stream: &TcpStream) -> PeerIdentity {
        stream.peer_addr().map_or(PeerIdentity::Unknown, |peer| PeerIdentity::Host(peer.ip()))
    }
}

impl Acceptor for UnixListener {
    type Stream = UnixStream;

    fn set_nonblocking(&self) -> io::Result<()> {
        Self::set_nonblocking(self, true)
    }

    fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = Self::accept(self)?;
        stream.set_nonblocking(true).map(|()| stream)
    }

    fn peer_identity(stream: &UnixStream) -> PeerIdentity {
        let peer = rustix::net::sockopt::socket_peercred(stream);
        peer.map_or(PeerIdentity::Unknown, |peer| PeerIdentity::User(peer.uid.as_raw()))
    }
}

/// Begin of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The client sends a request, up to the end of an HTTP head.
    Request,
    /// The connection is the request, and nothing is read.
    Nothing,
}

/// Answers clients until the listener fails. `answer`: returns the whole answer to a request.
pub(crate) fn serve<L: Acceptor>(
    listener: &L,
    opening: RequestKind,
    answer: impl Fn(&[u8]) -> Vec<u8>,
) -> io::Result<()> {
    listener.set_nonblocking()?;
    let (mut clients, mut allowance) = (VecDeque::new(), Allowance::default());
    loop {
        wait(listener, &clients)?;
        accept(listener, opening, &mut clients)?;
        clients.retain_mut(|client: &mut Client<L::Stream>| {
            client.advance(&answer, &mut allowance).is_ok_and(|step| step == Progress::Blocked)
        });
    }
}

struct Client<S> {
    stream: S,
    peer: PeerIdentity,
    deadline: Instant,
    stage: Stage,
}

enum Stage {
    /// The client sends its request; this part has arrived.
    Receiving(Vec<u8>),
    /// Nothing is read, and the answer waits for the rate limit of its user.
    RateLimited,
    /// The client reads its answer; this many bytes are written.
    Sending(Vec<u8>, usize),
}

#[derive(PartialEq)]
pub(super) enum Progress {
    Blocked,
    Done,
}

impl<S: Read + Write> Client<S> {
    /// Reads or writes as much as is possible without waiting.
    fn advance(
        &mut self,
        answer: impl Fn(&[u8]) -> Vec<u8>,
        allowance: &mut Allowance,
    ) -> io::Result<Progress> {
        if now() > self.deadline {
            return Ok(Progress::Done);
        }
        match &mut self.stage {
            Stage::Receiving(request) => {
                if read(&mut self.stream, request)? == Progress::Blocked {
                    return Ok(Progress::Blocked);
                }
                self.stage = Stage::Sending(answer(request), 0);
            }
            Stage::RateLimited if self.peer.user().is_some_and(|user| !allowance.take(user, now())) => {
                return Ok(Progress::Blocked);
            }
            Stage::RateLimited => self.stage = Stage::Sending(answer(&[]), 0),
            Stage::Sending(..) => {}
        }
        match &mut self.stage {
            Stage::Sending(text, written) => write(&mut self.stream, text, written),
            Stage::Receiving(_) | Stage::RateLimited => Ok(Progress::Blocked),
        }
    }
}

impl Stage {
    const fn flags(&self) -> PollFlags {
        match self {
            Self::Receiving(_) => PollFlags::IN,
            Self::RateLimited | Self::Sending(..) => PollFlags::OUT,
        }
    }
}

/// Reads on, to the end of the head. Earlier bytes are not searched again: a client may send single bytes.
pub(super) fn read(stream: &mut impl Read, request: &mut Vec<u8>) -> io::Result<Progress> {
    let mut buffer = [0; 512];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) if request.len() + len > MAX_REQUEST => return Err(ErrorKind::InvalidData.into()),
            Ok(len) => {
                let from = request.len().saturating_sub(END_OF_HEAD.len() - 1);
                request.extend_from_slice(&buffer[..len]);
                if request[from..].windows(END_OF_HEAD.len()).any(|end| end == END_OF_HEAD) {
                    return Ok(Progress::Done);
                }
            }
            Err(error) => return blocked_or_error(error),
        }
    }
}

fn write(stream: &mut impl Write, text: &[u8], written: &mut usize) -> io::Result<Progress> {
    while *written < text.len() {
        match stream.write(&text[*written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(len) => *written += len,
            Err(error) => return blocked_or_error(error),
        }
    }
    Ok(Progress::Done)
}

fn blocked_or_error(error: io::Error) -> io::Result<Progress> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Progress::Blocked),
        _ => Err(error),
    }
}

/// Waits until a client connects, can make progress, or has exceeded its time.
fn wait<L: Acceptor>(listener: &L, clients: &VecDeque<Client<L::Stream>>) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(listener, PollFlags::IN)];
    // Clients that wait for the rate limit are not polled: they may be writable, or closed.
    let (waiting, busy): (Vec<_>, Vec<_>) =
        clients.iter().partition(|client| matches!(client.stage, Stage::RateLimited));
    fds.extend(busy.into_iter().map(|client| PollFd::new(&client.stream, client.stage.flags())));
    // The first client has the least time left.
    let left = clients
        .front()
        .map(|client| client.deadline.saturating_duration_since(now()) + Duration::from_millis(1));
    let left = if waiting.is_empty() { left } else { left.map(|left| left.min(RATE_LIMIT_POLL)) };
    let left = left.map(|left| Timespec::try_from(left).expect("seconds fit"));
    match poll(&mut fds, left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Accepts all waiting clients, up to the first that replaces another.
fn accept<L: Acceptor>(
    listener: &L,
    opening: RequestKind,
    clients: &mut VecDeque<Client<L::Stream>>,
) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok(stream) => {
                let stage = match opening {
                    RequestKind::Request => Stage::Receiving(Vec::new()),
                    RequestKind::Nothing => Stage::RateLimited,
                };
                let party = L::peer_identity(&stream);
                clients.push_back(Client { peer: party, stream, deadline: now() + CLIENT_TIMEOUT, stage });
                if clients.len() > MAX_CLIENTS {
                    let place = client_to_evict(clients.iter().map(|client| client.peer));
                    clients.remove(place);
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            Err(_) => {
                std::thread::sleep(ACCEPT_BACKOFF);
                return Ok(());
            }
        }
    }
}

/// Returns the position of the oldest client of the user, or of the network prefix, with most clients.
fn client_to_evict(parties: impl Iterator<Item = PeerIdentity> + Clone) -> usize {
    let mut hosts = PrefixCounter::default();
    let mut counts: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    for (place, party) in (0..).zip(parties.clone()) {
        match party {
            PeerIdentity::Host(address) => hosts.insert(address, place),
            PeerIdentity::User(_) | PeerIdentity::Unknown => *counts.entry(party.user()).or_default() += 1,
        }
    }
    if let Some(place) = hosts.heaviest().next() {
        return place as usize;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    parties.into_iter().position(|party| counts[&party.user()] == most).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_client_of_the_user_with_most_clients_is_evicted() {
        let place = |users: &[u32]| client_to_evict(users.iter().copied().map(PeerIdentity::User));
        assert_eq!(place(&[0, 1000, 1000, 1001]), 1);
        assert_eq!(place(&[1000, 1000]), 0);
        assert_eq!(place(&[7, 8, 9]), 0);
        assert_eq!(client_to_evict([PeerIdentity::Unknown; 2].into_iter()), 0);
    }

    #[test]
    fn the_oldest_client_of_the_largest_prefix_is_evicted() {
        let host = |address: &str| PeerIdentity::Host(address.parse().unwrap());
        let flood = ["192.0.2.1", "127.0.0.2", "127.0.0.3", "127.0.0.2", "2001:db8::1"].map(host);
        assert_eq!(client_to_evict(flood.into_iter()), 1);
    }

    #[test]
    fn clients_that_never_read_delay_no_other_and_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        // More than a socket accepts at once.
        let answer = vec![b'x'; 4 << 20];
        let length = answer.len();
        let serve = move || serve(&listener, RequestKind::Nothing, |_| answer.clone());
        std::thread::Builder::new().spawn(serve).unwrap();
        let unread: Vec<UnixStream> = (0..MAX_CLIENTS / 2)
            .map(|_| {
                let mut stream = UnixStream::connect(&path).unwrap();
                let _ = stream.write_all(b"stop\n");
                stream
            })
            .collect();
        for _ in 0..3 {
            let mut text = Vec::new();
            UnixStream::connect(&path).unwrap().read_to_end(&mut text).unwrap();
            assert_eq!(text.len(), length);
        }
        drop(unread);
    }
}
