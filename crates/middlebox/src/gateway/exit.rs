//! Exit: connects onward by TCP for entrances.

use super::carrier::{AnyBoundTransport, BoundTransport, Carrier, Role, TrunkTransport};
use super::config::{ExitConfig, SourceAddress};
use super::destination::Allowed;
use super::error::Error;
use super::exit_log::{EntranceState, ExitLog, UnknownPeer};
use super::handshake::{
    self, Challenge, Denial, HEADER_LEN, Hello, KEEP_ALIVE, Kind, Malformed, Nonce, PREFIX_LEN, Request,
    Session, Unverified, Verdict,
};
use super::key::Name;
use super::leg::{TcpLeg, TrunkLeg};
use super::metrics::ExitFigures;
use super::onward::{self, BindAddress};
use super::relay::{relay, run_until};
use super::service;
use super::sessions::{OpenTrunk, PendingStream, Sessions};
use crate::service::{Service, ServiceStatus};
use hopline_linux::descriptors;
use hopline_streams::admission::{Admission, AdmissionSlot};
use hopline_streams::tpa::Tpa;
use hopline_streams::wide::Wide;
use hopline_streams::{AsyncListener, AsyncStream, Listener};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Timeout for an entrance to close a stream on which it was rejected.
const REFUSED_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
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
    Tpa(Listener<Tpa>, TrunkTransport<Tpa>),
    TpaWide(Listener<Wide>, TrunkTransport<Wide>),
}

impl Exit {
    /// Opens the listener for entrances.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be bound.
    pub fn open(config: &ExitConfig) -> Result<Self, Error> {
        config.validate()?;
        // Descriptors of a connection: a stream and a TCP connection onward. A third one for waiting streams.
        descriptors::reserve(config.max_connections as usize, 3)?;
        let listen = || match AnyBoundTransport::of_exit(&config.transport, config.listen, &config.peers)? {
            AnyBoundTransport::Tpa(ready) => {
                listen(ready).map(|(listener, line)| Listening::Tpa(listener, line))
            }
            AnyBoundTransport::TpaWide(ready) => {
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
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self { config, listening } = *self;
        match listening {
            Listening::Tpa(listener, line) => run(config, listener, line, stop, ledger),
            Listening::TpaWide(listener, line) => run(config, listener, line, stop, ledger),
        }
    }
}

fn listen<P: Carrier>(ready: BoundTransport<P>) -> io::Result<(Listener<P>, TrunkTransport<P>)> {
    let BoundTransport { hosts, transport: line } = ready;
    let host = hosts.first().ok_or(ErrorKind::AddrNotAvailable)?;
    Ok((host.listen(&line.config, BACKLOG)?, line))
}

fn run<P: Carrier>(
    config: ExitConfig,
    listener: Listener<P>,
    line: TrunkTransport<P>,
    stop: BorrowedFd<'_>,
    ledger: &ServiceStatus,
) -> io::Result<()> {
    let seats = config.max_connections as usize;
    let shared = Arc::new(Shared {
        metrics: ExitFigures::default(),
        permits: Semaphore::new(seats),
        waiting: Semaphore::new(seats),
        // As many unauthenticated streams as connections: they take little memory, and not for long.
        pre_auth: Admission::new(seats),
        sessions: Sessions::new(config.max_trunks as usize),
        remarks: ExitLog::default(),
        config,
        transport: line,
    });
    let work = async {
        let listener = AsyncListener::from(listener);
        loop {
            let (stream, peer) = listener.accept().await?;
            shared.handle_stream(stream, peer);
        }
    };
    service::run(work, stop, ledger, (|| shared.metrics.figures(), shared.remarks.notices()))
}

/// State that all streams share.
struct Shared<P: Carrier> {
    config: ExitConfig,
    transport: TrunkTransport<P>,
    metrics: ExitFigures,
    /// Permits for connections.
    permits: Semaphore,
    /// Permits for requests that wait for a connection's permit.
    waiting: Semaphore,
    /// Places of streams that have sent no request and belong to no trunk. A quarter is reserved for hosts from which an
    /// entrance has authenticated before.
    pre_auth: Arc<Admission>,
    /// The open trunks.
    sessions: Sessions,
    remarks: ExitLog,
}

/// Admission of a stream that has sent nothing yet.
enum StreamAdmission {
    /// It belongs to no trunk. Its place may be given to a newer stream.
    PreAuth(AdmissionSlot),
    /// It belongs to an entrance that has a trunk.
    Authenticated(PendingStream),
}

/// Request of an entrance.
enum EntranceRequest {
    /// Opens a trunk.
    Trunk(Arc<OpenTrunk>),
    /// Opens a connection through a trunk.
    Connection(Request, Arc<OpenTrunk>),
}

/// Reason that a stream is reset.
enum RejectReason {
    /// It ended or timed out without a request.
    Silent,
    /// Its message is malformed.
    Malformed(Malformed),
    /// Its name is not that of a peer.
    Unknown,
    /// It does not prove to have the key of this name.
    Unproven(Option<Name>),
}

impl std::convert::From<Malformed> for RejectReason {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Proof => Self::Unproven(None),
            other => Self::Malformed(other),
        }
    }
}

impl<P: Carrier> Shared<P> {
    /// Accepts a stream. If too many have not sent a request, one of them is closed.
    fn handle_stream(self: &Arc<Self>, stream: AsyncStream<P>, peer: SocketAddr) {
        self.metrics.accepted_connections.add();
        let guest = P::identity(stream.get_ref()).and_then(|identity| self.sessions.admit(identity));
        let stranger = || StreamAdmission::PreAuth(self.pre_auth.enter(peer.ip()));
        let pass = guest.map_or_else(stranger, StreamAdmission::Authenticated);
        let (shared, leg) = (Arc::clone(self), TrunkLeg::new(stream));
        tokio::spawn(async move { shared.serve(leg, peer, pass).await });
    }

    async fn serve(&self, mut near: TrunkLeg<P>, peer: SocketAddr, pass: StreamAdmission) {
        let limit = self.config.request_timeout;
        let hear = self.read_request(near.stream());
        let heard = match &pass {
            StreamAdmission::PreAuth(place) => match run_until(timeout(limit, hear), place.evicted()).await {
                Some(heard) => heard.ok(),
                None => return self.metrics.turned_away_connections.add(),
            },
            StreamAdmission::Authenticated(guest) => run_until(hear, guest.ended()).await,
        };
        drop(pass);
        match heard.unwrap_or(Err(RejectReason::Silent)) {
            Ok(EntranceRequest::Trunk(held)) => {
                self.pre_auth.remember(peer.ip());
                self.serve_trunk(near, &held, peer).await;
            }
            Ok(EntranceRequest::Connection(request, held)) => {
                run_until(self.connect_onward(near, &request, &held), held.ended()).await;
            }
            Err(unheard) => self.refuse(unheard, peer),
        }
    }

    /// Counts a stream that is reset, and logs the reason if it is new.
    fn refuse(&self, unheard: RejectReason, peer: SocketAddr) {
        match unheard {
            RejectReason::Silent => self.metrics.silent_connections.add(),
            RejectReason::Malformed(malformed) => {
                self.metrics.malformed_requests.add();
                self.remarks.unknown_peer(malformed.into(), peer);
            }
            RejectReason::Unknown => {
                self.metrics.unknown_peers.add();
                self.remarks.unknown_peer(UnknownPeer::UnknownName, peer);
            }
            RejectReason::Unproven(name) => {
                self.metrics.wrong_proofs.add();
                if let Some(name) = name {
                    self.remarks.entrance(&name, EntranceState::WrongKey, peer);
                }
            }
        }
    }

    /// Sends the challenge, and reads the hello or the request of an authenticated sender.
    async fn read_request(&self, stream: &mut AsyncStream<P>) -> Result<EntranceRequest, RejectReason> {
        let silent = |_| RejectReason::Silent;
        let challenge = Challenge(Nonce::new().map_err(silent)?);
        stream.write_all(&challenge.encode()).await.map_err(silent)?;
        stream.flush().await.map_err(silent)?;
        let mut header = [0; HEADER_LEN];
        // Another version may have a shorter header.
        stream.read_exact(&mut header[..PREFIX_LEN]).await.map_err(silent)?;
        handshake::check_version(&header)?;
        stream.read_exact(&mut header[PREFIX_LEN..]).await.map_err(silent)?;
        let (kind, len) = handshake::decode_header(&header)?;
        let mut body = vec![0; len];
        stream.read_exact(&mut body).await.map_err(silent)?;
        match kind {
            Kind::Hello => self.handle_hello(stream, &body, &challenge),
            Kind::Request => self.handle_request(stream, &body),
        }
    }

    /// Handles a hello.
    fn handle_hello(
        &self,
        stream: &AsyncStream<P>,
        body: &[u8],
        challenge: &Challenge,
    ) -> Result<EntranceRequest, RejectReason> {
        let claim = Unverified::<Hello>::decode(body)?;
        let name = &claim.message().name;
        let peer = self.config.peers.iter().find(|peer| peer.name == *name).ok_or(RejectReason::Unknown)?;
        let bound = self
            .transport
            .channel_bound_key(&peer.key, stream.get_ref(), Role::Exit)
            .ok_or(RejectReason::Silent)?;
        let unproven = |_| RejectReason::Unproven(Some(peer.name.clone()));
        let hello = claim.verify(&bound, challenge).map_err(unproven)?;
        let identity = P::identity(stream.get_ref()).ok_or(RejectReason::Silent)?;
        let session = Session::new(&bound, challenge, &hello.nonce);
        Ok(EntranceRequest::Trunk(self.sessions.open(hello.name, [peer.key, bound], session, identity)))
    }

    /// Handles a request.
    fn handle_request(&self, stream: &AsyncStream<P>, body: &[u8]) -> Result<EntranceRequest, RejectReason> {
        let claim = Unverified::<Request>::decode(body)?;
        let held = self.sessions.get(claim.session()).ok_or(RejectReason::Unproven(None))?;
        let bound = self.transport.channel_bound_key(&held.pre_shared_key, stream.get_ref(), Role::Exit);
        let request = claim.verify(&held.session)?;
        // The sender is the gateway that opened the trunk, and the request is not a replay.
        let is_good = bound == Some(held.bound_key) && held.accept_number(request.number);
        if is_good {
            Ok(EntranceRequest::Connection(request, held))
        } else {
            Err(RejectReason::Unproven(None))
        }
    }

    /// Answers keep-alive messages until the entrance closes the trunk or times out.
    async fn serve_trunk(&self, mut near: TrunkLeg<P>, held: &Arc<OpenTrunk>, peer: SocketAddr) {
        self.metrics.trunks.add();
        self.metrics.open_trunks.set(self.sessions.entrances() as u64);
        self.remarks.entrance(&held.name, EntranceState::Present, peer);
        let stream = near.stream();
        let mut answered = send_answer(stream, held, 0, Verdict::Connected).await;
        let mut signs = [0; 64];
        while answered.is_ok()
            && matches!(run_until(stream.read(&mut signs), held.ended()).await, Some(Ok(1..)))
        {
            answered = stream.write_all(&KEEP_ALIVE).await;
            let _ = stream.flush().await;
        }
        let is_gone = self.sessions.close(held);
        self.metrics.open_trunks.set(self.sessions.entrances() as u64);
        if is_gone {
            self.remarks.entrance(&held.name, EntranceState::Gone, peer);
        }
    }

    async fn connect_onward(&self, near: TrunkLeg<P>, request: &Request, held: &OpenTrunk) {
        let Some(_seat) = self.acquire_permit().await else {
            self.metrics.too_many_requests.add();
            return refuse(near, held, request.number, Denial::TooMany).await;
        };
        match self.connect(request).await {
            Ok(far) => self.relay(near, far, held, request.number).await,
            Err(denial) => {
                match denial {
                    Denial::NotAllowed => self.metrics.not_allowed_requests.add(),
                    _ => self.metrics.failed_requests.add(),
                }
                refuse(near, held, request.number, denial).await;
            }
        }
    }

    /// Returns a permit for a connection. Waits for one unless too many requests wait.
    async fn acquire_permit(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(seat) = self.permits.try_acquire() {
            return Some(seat);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        timeout(self.config.max_wait, self.permits.acquire()).await.ok()?.ok()
    }

    async fn connect(&self, request: &Request) -> Result<TcpLeg, Denial> {
        let from = match (self.config.source_address, request.source) {
            // Connect under the client's address only if it is a remote one: hosts may trust nearby addresses.
            (SourceAddress::Client, Some(client)) if Allowed::NonLocal.permits(client) => {
                BindAddress::Client(client)
            }
            _ => BindAddress::Gateway,
        };
        let permits = |address| self.config.allowed.permits(address);
        onward::connect(&request.destination, from, permits, (&self.config.tcp, self.config.connect_timeout))
            .await
    }

    async fn relay(&self, mut near: TrunkLeg<P>, far: TcpLeg, held: &OpenTrunk, number: u64) {
        if send_answer(near.stream(), held, number, Verdict::Connected).await.is_err() {
            return self.metrics.broken_connections.add();
        }
        self.metrics.tpa_connections.add();
        let _open = self.metrics.open.enter();
        let carried = relay(near, far, Vec::new(), self.config.buffer as usize, &self.metrics.moved);
        match run_until(carried, held.ended()).await {
            Some(Ok(())) => self.metrics.finished_connections.add(),
            _ => self.metrics.broken_connections.add(),
        }
    }
}

async fn send_answer<P: Carrier>(
    stream: &mut AsyncStream<P>,
    held: &OpenTrunk,
    number: u64,
    verdict: Verdict,
) -> io::Result<()> {
    stream.write_all(&verdict.encode(&held.session, number)).await?;
    stream.flush().await
}

async fn refuse<P: Carrier>(mut near: TrunkLeg<P>, held: &OpenTrunk, number: u64, denial: Denial) {
    if send_answer(near.stream(), held, number, Verdict::Refused(denial)).await.is_ok() {
        // Unread data behind the request must not cause a reset that destroys the answer.
        let _ = timeout(REFUSED_CLOSE_TIMEOUT, near.close_and_drain()).await;
    }
}
