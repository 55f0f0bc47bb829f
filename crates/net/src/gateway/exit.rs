//! Serves entrances: connects onward by TCP what they ask for over TPA.

use super::carrier::{Carrier, End, Line, Opened, Ready};
use super::config::{ExitConfig, Sources};
use super::destination::Allowed;
use super::error::Error;
use super::figures::ExitFigures;
use super::greeting::{
    Challenge, Claim, Denial, Malformed, Nonce, REQUEST_HEADER_LEN, Request, Verdict, body_len,
};
use super::key::Key;
use super::leg::{Leg, TcpLeg, TrunkLeg};
use super::onward::{self, From};
use super::relay::relay;
use super::service;
use super::strangers::{Place, Strangers};
use crate::service::{Ledger, Service};
use crate::streams::{AsyncListener, AsyncStream, Listener};
use crate::tpa::Tpa;
use crate::wide::Wide;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// TPA connections that may wait to be accepted.
const BACKLOG: usize = 1024;

/// Takes requests of entrances over TPA and connects onward by TCP.
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
    /// Listens for entrances.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be had.
    pub fn open(config: &ExitConfig) -> Result<Self, Error> {
        config.validate()?;
        let listen = || match Opened::of_exit(&config.transport, config.listen, &config.peers)? {
            Opened::Tpa(ready) => listen(ready).map(|(listener, line)| Listening::Tpa(listener, line)),
            Opened::TpaWide(ready) => {
                listen(ready).map(|(listener, line)| Listening::TpaWide(listener, line))
            }
        };
        let listening = listen().map_err(|error| {
            crate::Error::new(format!("listening at the UDP address {}", config.listen), error)
        })?;
        Ok(Self { config: config.clone(), listening })
    }

    /// Where it listens.
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
    let Ready { host, line } = ready;
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
        seats: Arc::new(Semaphore::new(seats)),
        // As many may be strangers as may be connected: they hold little, and not for long.
        strangers: Strangers::new(seats),
        config,
        line,
    });
    let work = async {
        let listener = AsyncListener::from(listener);
        loop {
            let (stream, peer) = listener.accept().await?;
            shared.take(stream, peer.ip());
        }
    };
    service::run(work, stop, ledger, || shared.figures.figures())
}

/// What all connections share.
struct Shared<P: Carrier> {
    config: ExitConfig,
    line: Line<P>,
    figures: ExitFigures,
    /// Places of connections.
    seats: Arc<Semaphore>,
    /// Places of those that have not said what they want.
    strangers: Arc<Strangers>,
}

/// A request of who may make it.
struct Order {
    request: Request,
    /// Of this stream.
    key: Key,
    challenge: Challenge,
}

/// Why a stream is reset.
enum Unheard {
    /// It ended, or said nothing.
    Silent,
    /// What it said is nothing.
    Malformed,
    /// It has a name that nobody has.
    Unknown,
    /// It does not have the key.
    Unproven,
}

impl<P: Carrier> Shared<P> {
    /// Takes a stream, if there is a place for it; otherwise it is reset.
    fn take(self: &Arc<Self>, stream: AsyncStream<P>, peer: IpAddr) {
        self.figures.accepted_connections.add();
        let leg = TrunkLeg::new(stream);
        match self.strangers.enter(peer) {
            Some(waiting) => {
                let shared = Arc::clone(self);
                tokio::spawn(async move { shared.serve(leg, waiting).await });
            }
            None => self.figures.turned_away_connections.add(),
        }
    }

    async fn serve(&self, mut near: TrunkLeg<P>, waiting: Place) {
        let limit = self.config.request_timeout;
        let heard = timeout(limit, self.hear(near.stream())).await.unwrap_or(Err(Unheard::Silent));
        drop(waiting);
        let order = match heard {
            Ok(order) => order,
            Err(Unheard::Silent) => return self.figures.silent_connections.add(),
            Err(Unheard::Malformed) => return self.figures.malformed_requests.add(),
            Err(Unheard::Unknown) => return self.figures.unknown_peers.add(),
            Err(Unheard::Unproven) => return self.figures.wrong_proofs.add(),
        };
        let Ok(_seat) = self.seats.try_acquire() else {
            self.figures.too_many_requests.add();
            return answer_and_leave(near, &order, Denial::TooMany).await;
        };
        match self.connect(&order.request).await {
            Ok(far) => self.pass_on(near, far, &order).await,
            Err(denial) => {
                match denial {
                    Denial::NotAllowed => self.figures.not_allowed_requests.add(),
                    _ => self.figures.failed_requests.add(),
                }
                answer_and_leave(near, &order, denial).await;
            }
        }
    }

    /// Challenges, and reads the request of somebody who has a key.
    async fn hear(&self, stream: &mut AsyncStream<P>) -> Result<Order, Unheard> {
        let silent = |_| Unheard::Silent;
        let challenge = Challenge(Nonce::new().map_err(silent)?);
        stream.write_all(&challenge.encode()).await.map_err(silent)?;
        stream.flush().await.map_err(silent)?;
        let mut header = [0; REQUEST_HEADER_LEN];
        stream.read_exact(&mut header).await.map_err(silent)?;
        let len = body_len(&header).map_err(|_| Unheard::Malformed)?;
        let mut body = vec![0; len];
        stream.read_exact(&mut body).await.map_err(silent)?;
        let claim = Claim::decode(&body).map_err(|_| Unheard::Malformed)?;
        let peer =
            self.config.peers.iter().find(|peer| peer.name == *claim.name()).ok_or(Unheard::Unknown)?;
        let key = self.line.bound(&peer.key, stream.get_ref(), End::Exit).ok_or(Unheard::Silent)?;
        let request = claim.verify(&key, &challenge).map_err(|error| match error {
            Malformed::Proof => Unheard::Unproven,
            _ => Unheard::Malformed,
        })?;
        Ok(Order { request, key, challenge })
    }

    async fn connect(&self, request: &Request) -> Result<TcpLeg, Denial> {
        let from = match (self.config.sources, request.source) {
            // In the name of hosts beyond, and of nobody who is trusted for being near.
            (Sources::Client, Some(client)) if Allowed::Beyond.permits(client) => From::Client(client),
            _ => From::Gateway,
        };
        let permits = |address| self.config.allowed.permits(address);
        onward::connect(&request.destination, from, permits, (&self.config.tcp, self.config.connect_timeout))
            .await
    }

    async fn pass_on(&self, mut near: TrunkLeg<P>, far: TcpLeg, order: &Order) {
        if order.answer(near.stream(), Verdict::Connected).await.is_err() {
            return self.figures.broken_connections.add();
        }
        self.figures.tpa_connections.add();
        let _open = self.figures.open.enter();
        match relay(near, far, self.config.buffer as usize, &self.figures.moved).await {
            Ok(()) => self.figures.finished_connections.add(),
            Err(_) => self.figures.broken_connections.add(),
        }
    }
}

impl Order {
    async fn answer<P: Carrier>(&self, stream: &mut AsyncStream<P>, verdict: Verdict) -> io::Result<()> {
        stream.write_all(&verdict.encode(&self.key, &self.challenge, &self.request.nonce)).await?;
        stream.flush().await
    }
}

async fn answer_and_leave<P: Carrier>(mut near: TrunkLeg<P>, order: &Order, denial: Denial) {
    if order.answer(near.stream(), Verdict::Refused(denial)).await.is_ok() {
        near.leave();
    }
}
