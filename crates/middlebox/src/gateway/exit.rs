//! Exit: connects onward by TCP for entrances.

use super::carrier::{Carrier, End, Line, Opened, Ready};
use super::config::{ExitConfig, Sources};
use super::destination::Allowed;
use super::error::Error;
use super::figures::ExitFigures;
use super::greeting::{
    self, Challenge, Claim, Denial, HEADER_LEN, Hello, Kind, Malformed, Nonce, Request, SIGN_OF_LIFE, START,
    Session, Verdict,
};
use super::key::Name;
use super::leg::{TcpLeg, TrunkLeg};
use super::onward::{self, From};
use super::relay::{relay, until};
use super::remarks::{Entrance, Remarks, Stranger};
use super::service;
use super::sessions::{Guest, Held, Sessions};
use crate::service::{Ledger, Service};
use hopline_linux::descriptors;
use hopline_streams::admission::{Admission, Place};
use hopline_streams::streams::{AsyncListener, AsyncStream, Listener};
use hopline_streams::tpa::Tpa;
use hopline_streams::wide::Wide;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Timeout for an entrance to close a stream on which it was rejected.
const PARTS_WITHIN: Duration = Duration::from_secs(10);
/// Backlog of TPA connections.
const BACKLOG: usize = 1024;

/// Receives requests of entrances over TPA or TPA-wide, and connects onward by TCP.
#[derive(Debug)]
pub struct Exit {
    config: ExitConfig,
    listening: Listening,
}

#[derive(Debug)]
enum Listening {
    Tpa(Listener<Tpa>, Line<Tpa>),
    TpaWide(Listener<Wide>, Line<Wide>),
}

impl Exit {
    /// Opens the listener for entrances.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be bound.
    pub fn open(config: &ExitConfig) -> Result<Self, Error> {
        config.validate()?;
        // Descriptors of a connection: a stream and a TCP connection onward. A third one for waiting streams.
        descriptors::allow(config.max_connections as usize, 3)?;
        let listen = || match Opened::of_exit(&config.transport, config.listen, &config.peers)? {
            Opened::Tpa(ready) => listen(ready).map(|(listener, line)| Listening::Tpa(listener, line)),
            Opened::TpaWide(ready) => {
                listen(ready).map(|(listener, line)| Listening::TpaWide(listener, line))
            }
        };
        let listening = listen().map_err(|error| {
            hopline_linux::Error::new(format!("listening at the UDP address {}", config.listen), error)
        })?;
        Ok(Self { config: config.clone(), listening })
    }

    /// Returns the listening address.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.listening {
            Listening::Tpa(listener, _) => listener.local_addr(),
            Listening::TpaWide(listener, _) => listener.local_addr(),
        }
    }
}

impl Service for Exit {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let Self { config, listening } = *self;
        match listening {
            Listening::Tpa(listener, line) => run(config, listener, line, stop, ledger),
            Listening::TpaWide(listener, line) => run(config, listener, line, stop, ledger),
        }
    }
}

fn listen<P: Carrier>(ready: Ready<P>) -> io::Result<(Listener<P>, Line<P>)> {
    let Ready { hosts, line } = ready;
    let host = hosts.first().ok_or(ErrorKind::AddrNotAvailable)?;
    Ok((host.listen(&line.config, BACKLOG)?, line))
}

fn run<P: Carrier>(
    config: ExitConfig,
    listener: Listener<P>,
    line: Line<P>,
    stop: BorrowedFd<'_>,
    ledger: &Ledger,
) -> io::Result<()> {
    let seats = config.max_connections as usize;
    let shared = Arc::new(Shared {
        figures: ExitFigures::default(),
        seats: Semaphore::new(seats),
        waiting: Semaphore::new(seats),
        // As many unauthenticated streams as connections: they take little memory, and not for long.
        strangers: Admission::new(seats),
        sessions: Sessions::new(config.max_trunks as usize),
        remarks: Remarks::default(),
        config,
        line,
    });
    let work = async {
        let listener = AsyncListener::from(listener);
        loop {
            let (stream, peer) = listener.accept().await?;
            shared.take(stream, peer);
        }
    };
    service::run(work, stop, ledger, (|| shared.figures.figures(), shared.remarks.notices()))
}

/// State that all streams share.
struct Shared<P: Carrier> {
    config: ExitConfig,
    line: Line<P>,
    figures: ExitFigures,
    /// Permits for connections.
    seats: Semaphore,
    /// Permits for requests that wait for a connection's permit.
    waiting: Semaphore,
    /// Places of streams that have sent no request and belong to no trunk. A quarter is reserved for hosts from which an
    /// entrance has authenticated before.
    strangers: Arc<Admission>,
    /// The open trunks.
    sessions: Sessions,
    remarks: Remarks,
}

/// Admission of a stream that has sent nothing yet.
enum Pass {
    /// It belongs to no trunk. Its place may be given to a newer stream.
    Stranger(Place),
    /// It belongs to an entrance that has a trunk.
    Guest(Guest),
}

/// Request of an entrance.
enum Order {
    /// Opens a trunk.
    Trunk(Arc<Held>),
    /// Opens a connection through a trunk.
    Connection(Request, Arc<Held>),
}

/// Reason that a stream is reset.
enum Unheard {
    /// It ended or timed out without a request.
    Silent,
    /// Its message is malformed.
    Malformed(Malformed),
    /// Its name is not that of a peer.
    Unknown,
    /// It does not prove to have the key of this name.
    Unproven(Option<Name>),
}

impl std::convert::From<Malformed> for Unheard {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Proof => Self::Unproven(None),
            other => Self::Malformed(other),
        }
    }
}

impl<P: Carrier> Shared<P> {
    /// Accepts a stream. If too many have not sent a request, one of them is closed.
    fn take(self: &Arc<Self>, stream: AsyncStream<P>, peer: SocketAddr) {
        self.figures.accepted_connections.add();
        let guest = P::identity(stream.get_ref()).and_then(|identity| self.sessions.guest(identity));
        let stranger = || Pass::Stranger(self.strangers.enter(peer.ip()));
        let pass = guest.map_or_else(stranger, Pass::Guest);
        let (shared, leg) = (Arc::clone(self), TrunkLeg::new(stream));
        tokio::spawn(async move { shared.serve(leg, peer, pass).await });
    }

    async fn serve(&self, mut near: TrunkLeg<P>, peer: SocketAddr, pass: Pass) {
        let limit = self.config.request_timeout;
        let hear = self.hear(near.stream());
        let heard = match &pass {
            Pass::Stranger(place) => match until(timeout(limit, hear), place.lost()).await {
                Some(heard) => heard.ok(),
                None => return self.figures.turned_away_connections.add(),
            },
            Pass::Guest(guest) => until(hear, guest.ended()).await,
        };
        drop(pass);
        match heard.unwrap_or(Err(Unheard::Silent)) {
            Ok(Order::Trunk(held)) => {
                self.strangers.remember(peer.ip());
                self.hold(near, &held, peer).await;
            }
            Ok(Order::Connection(request, held)) => {
                until(self.connect_onward(near, &request, &held), held.ended()).await;
            }
            Err(unheard) => self.refuse(unheard, peer),
        }
    }

    /// Counts a stream that is reset, and logs the reason if it is new.
    fn refuse(&self, unheard: Unheard, peer: SocketAddr) {
        match unheard {
            Unheard::Silent => self.figures.silent_connections.add(),
            Unheard::Malformed(malformed) => {
                self.figures.malformed_requests.add();
                self.remarks.stranger(malformed.into(), peer);
            }
            Unheard::Unknown => {
                self.figures.unknown_peers.add();
                self.remarks.stranger(Stranger::Unnamed, peer);
            }
            Unheard::Unproven(name) => {
                self.figures.wrong_proofs.add();
                if let Some(name) = name {
                    self.remarks.entrance(&name, Entrance::Unproven, peer);
                }
            }
        }
    }

    /// Sends the challenge, and reads the hello or the request of an authenticated sender.
    async fn hear(&self, stream: &mut AsyncStream<P>) -> Result<Order, Unheard> {
        let silent = |_| Unheard::Silent;
        let challenge = Challenge(Nonce::new().map_err(silent)?);
        stream.write_all(&challenge.encode()).await.map_err(silent)?;
        stream.flush().await.map_err(silent)?;
        let mut header = [0; HEADER_LEN];
        // Another version may have a shorter header.
        stream.read_exact(&mut header[..START]).await.map_err(silent)?;
        greeting::version(&header)?;
        stream.read_exact(&mut header[START..]).await.map_err(silent)?;
        let (kind, len) = greeting::header(&header)?;
        let mut body = vec![0; len];
        stream.read_exact(&mut body).await.map_err(silent)?;
        match kind {
            Kind::Hello => self.welcome(stream, &body, &challenge),
            Kind::Request => self.understand(stream, &body),
        }
    }

    /// Handles a hello.
    fn welcome(&self, stream: &AsyncStream<P>, body: &[u8], challenge: &Challenge) -> Result<Order, Unheard> {
        let claim = Claim::<Hello>::decode(body)?;
        let name = &claim.unproven().name;
        let peer = self.config.peers.iter().find(|peer| peer.name == *name).ok_or(Unheard::Unknown)?;
        let bound = self.line.bound(&peer.key, stream.get_ref(), End::Exit).ok_or(Unheard::Silent)?;
        let unproven = |_| Unheard::Unproven(Some(peer.name.clone()));
        let hello = claim.verify(&bound, challenge).map_err(unproven)?;
        let identity = P::identity(stream.get_ref()).ok_or(Unheard::Silent)?;
        let session = Session::new(&bound, challenge, &hello.nonce);
        Ok(Order::Trunk(self.sessions.open(hello.name, [peer.key, bound], session, identity)))
    }

    /// Handles a request.
    fn understand(&self, stream: &AsyncStream<P>, body: &[u8]) -> Result<Order, Unheard> {
        let claim = Claim::<Request>::decode(body)?;
        let held = self.sessions.named(claim.session()).ok_or(Unheard::Unproven(None))?;
        let bound = self.line.bound(&held.shared, stream.get_ref(), End::Exit);
        let request = claim.verify(&held.session)?;
        // The sender is the gateway that opened the trunk, and the request is not a replay.
        let is_good = bound == Some(held.bound) && held.takes(request.number);
        if is_good { Ok(Order::Connection(request, held)) } else { Err(Unheard::Unproven(None)) }
    }

    /// Answers keep-alive messages until the entrance closes the trunk or times out.
    async fn hold(&self, mut near: TrunkLeg<P>, held: &Arc<Held>, peer: SocketAddr) {
        self.figures.trunks.add();
        self.figures.open_trunks.set(self.sessions.entrances() as u64);
        self.remarks.entrance(&held.name, Entrance::Present, peer);
        let stream = near.stream();
        let mut answered = answer(stream, held, 0, Verdict::Connected).await;
        let mut signs = [0; 64];
        while answered.is_ok() && matches!(until(stream.read(&mut signs), held.ended()).await, Some(Ok(1..)))
        {
            answered = stream.write_all(&SIGN_OF_LIFE).await;
            let _ = stream.flush().await;
        }
        let is_gone = self.sessions.close(held);
        self.figures.open_trunks.set(self.sessions.entrances() as u64);
        if is_gone {
            self.remarks.entrance(&held.name, Entrance::Gone, peer);
        }
    }

    async fn connect_onward(&self, near: TrunkLeg<P>, request: &Request, held: &Held) {
        let Some(_seat) = self.seat().await else {
            self.figures.too_many_requests.add();
            return answer_and_leave(near, held, request.number, Denial::TooMany).await;
        };
        match self.connect(request).await {
            Ok(far) => self.pass_on(near, far, held, request.number).await,
            Err(denial) => {
                match denial {
                    Denial::NotAllowed => self.figures.not_allowed_requests.add(),
                    _ => self.figures.failed_requests.add(),
                }
                answer_and_leave(near, held, request.number, denial).await;
            }
        }
    }

    /// Returns a permit for a connection. Waits for one unless too many requests wait.
    async fn seat(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(seat) = self.seats.try_acquire() {
            return Some(seat);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        timeout(self.config.max_wait, self.seats.acquire()).await.ok()?.ok()
    }

    async fn connect(&self, request: &Request) -> Result<TcpLeg, Denial> {
        let from = match (self.config.sources, request.source) {
            // Connect under the client's address only if it is a remote one: hosts may trust nearby addresses.
            (Sources::Client, Some(client)) if Allowed::Beyond.permits(client) => From::Client(client),
            _ => From::Gateway,
        };
        let permits = |address| self.config.allowed.permits(address);
        onward::connect(&request.destination, from, permits, (&self.config.tcp, self.config.connect_timeout))
            .await
    }

    async fn pass_on(&self, mut near: TrunkLeg<P>, far: TcpLeg, held: &Held, number: u64) {
        if answer(near.stream(), held, number, Verdict::Connected).await.is_err() {
            return self.figures.broken_connections.add();
        }
        self.figures.tpa_connections.add();
        let _open = self.figures.open.enter();
        let carried = relay(near, far, Vec::new(), self.config.buffer as usize, &self.figures.moved);
        match until(carried, held.ended()).await {
            Some(Ok(())) => self.figures.finished_connections.add(),
            _ => self.figures.broken_connections.add(),
        }
    }
}

async fn answer<P: Carrier>(
    stream: &mut AsyncStream<P>,
    held: &Held,
    number: u64,
    verdict: Verdict,
) -> io::Result<()> {
    stream.write_all(&verdict.encode(&held.session, number)).await?;
    stream.flush().await
}

async fn answer_and_leave<P: Carrier>(mut near: TrunkLeg<P>, held: &Held, number: u64, denial: Denial) {
    if answer(near.stream(), held, number, Verdict::Refused(denial)).await.is_ok() {
        // Unread data behind the request must not cause a reset that destroys the answer.
        let _ = timeout(PARTS_WITHIN, near.part()).await;
    }
}
