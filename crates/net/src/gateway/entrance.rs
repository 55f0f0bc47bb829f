//! Takes connections of applications.

use super::carrier::{Carrier, Opened, Ready};
use super::config::{EntranceConfig, Fallback, Sources, Way};
use super::destination::Destination;
use super::doors::{Call, Door};
use super::error::Error;
use super::figures::EntranceFigures;
use super::greeting::Denial;
use super::leg::{TcpLeg, TrunkLeg};
use super::onward::{self, From};
use super::relay::{Side, relay};
use super::service;
use super::trunk::{Trunk, Unwilling};
use crate::announce::{Known, Speaks};
use crate::service::{Ledger, Service};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// Takes TCP connections and has an exit connect them onward, over TPA or TPA-wide.
#[derive(Debug)]
pub struct Entrance {
    config: EntranceConfig,
    doors: Vec<Door>,
    opened: Opened,
    known: Option<Known>,
}

impl Entrance {
    /// Listens, and takes a UDP socket for the way to the exit.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be had; [`Way::Transparent`] without `CAP_NET_ADMIN`.
    pub fn open(config: &EntranceConfig) -> Result<Self, Error> {
        config.validate()?;
        let doors = config.ways.iter().map(Door::open).collect::<Result<_, _>>()?;
        let local = config.local.unwrap_or_else(|| match config.exit {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        });
        let opened = Opened::of_entrance(&config.transport, local, &config.key)
            .map_err(|error| crate::Error::new(format!("taking the UDP address {local}"), error))?;
        Ok(Self { config: config.clone(), doors, opened, known: None })
    }

    /// Has it ask the exit only for hosts that are known to speak TPA. Others, and what the exit does not allow, are connected to by TCP,
    /// whatever [`EntranceConfig::fallback`] says: their answers teach, and the next connection to them may be TPA's (TPA §6). So `known`
    /// must be of announcements through which the connections of this entrance pass. Names are not looked up here: they go to the exit.
    #[must_use]
    pub fn asking(self, known: Known) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Where it listens, in the order of [`EntranceConfig::ways`].
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.doors.iter().map(Door::local_addr).collect()
    }
}

impl Service for Entrance {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let Self { config, doors, opened, known } = *self;
        match opened {
            Opened::Tpa(ready) => run(config, doors, ready, known, stop, ledger),
            Opened::TpaWide(ready) => run(config, doors, ready, known, stop, ledger),
        }
    }
}

fn run<P: Carrier>(
    config: EntranceConfig,
    doors: Vec<Door>,
    ready: Ready<P>,
    known: Option<Known>,
    stop: BorrowedFd<'_>,
    ledger: &Ledger,
) -> io::Result<()> {
    let figures = Arc::<EntranceFigures>::default();
    let seats = config.max_connections as usize;
    let shared = Arc::new(Shared {
        trunk: Trunk::new(ready, config.clone(), Arc::clone(&figures)),
        figures: Arc::clone(&figures),
        seats: Arc::new(Semaphore::new(seats)),
        anteroom: Arc::new(Semaphore::new(seats.div_ceil(2))),
        known,
        config,
    });
    let work = async {
        let mut serving = JoinSet::new();
        for door in doors {
            let shared = Arc::clone(&shared);
            serving.spawn(door.serve(move |call, way| shared.take(call, way)));
        }
        // None ends but by an error.
        while let Some(ended) = serving.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    };
    service::run(work, stop, ledger, || figures.figures())
}

/// What all connections share.
struct Shared<P: Carrier> {
    config: EntranceConfig,
    trunk: Arc<Trunk<P>>,
    figures: Arc<EntranceFigures>,
    /// Places of connections.
    seats: Arc<Semaphore>,
    /// Places of those that have not said where they want to go.
    anteroom: Arc<Semaphore>,
    /// What hosts speak; `None`: all are the exit's.
    known: Option<Known>,
}

/// How a connection goes on.
enum Far<P: Carrier> {
    Trunk(TrunkLeg<P>),
    Tcp(TcpLeg),
}

impl<P: Carrier> Shared<P> {
    /// Takes a connection, if there is a place for it; otherwise it is reset.
    fn take(self: &Arc<Self>, call: Call, way: &Way) {
        self.figures.accepted_connections.add();
        let places = [&self.seats, &self.anteroom].map(|places| Arc::clone(places).try_acquire_owned());
        match places {
            [Ok(seat), Ok(waiting)] => {
                let (shared, way) = (Arc::clone(self), way.clone());
                tokio::spawn(async move {
                    let _seat = seat;
                    let _open = shared.figures.open.enter();
                    shared.carry(call, &way, waiting).await;
                });
            }
            _ => self.figures.turned_away_connections.add(),
        }
    }

    async fn carry(self: &Arc<Self>, call: Call, way: &Way, waiting: OwnedSemaphorePermit) {
        let Ok(mut client) = TcpLeg::new(call.stream, &self.config.tcp) else { return };
        let limit = self.config.negotiation_timeout;
        let Some(destination) = way.destination(&mut client, call.called, limit).await else {
            return self.figures.unintelligible_connections.add();
        };
        drop(waiting);
        match self.reach(&destination, call.client).await {
            Err(denial) => {
                self.figures.refused_connections.add();
                way.told().refused(client, denial).await;
            }
            Ok(far) => {
                if way.told().connected(&mut client).await.is_ok() {
                    self.pass_on(client, far).await;
                }
            }
        }
    }

    /// A leg to `destination`: by the exit, or without one.
    async fn reach(
        self: &Arc<Self>,
        destination: &Destination,
        client: SocketAddr,
    ) -> Result<Far<P>, Denial> {
        if !self.is_for_exit(destination) {
            return self.go_unannounced(destination, client).await;
        }
        let Some(greeted) = self.trunk.open().await else {
            return self.fall_back(destination, client).await;
        };
        let source = (self.config.sources == Sources::Client).then_some(client);
        match self.trunk.ask(greeted, destination, source).await {
            Ok(leg) => {
                self.figures.tpa_connections.add();
                Ok(Far::Trunk(leg))
            }
            Err(Unwilling::Denied(Denial::TooMany)) => self.fall_back(destination, client).await,
            // The host speaks TPA, and this port of it does not.
            Err(Unwilling::Denied(Denial::NotAllowed)) if self.known.is_some() => {
                self.go_unannounced(destination, client).await
            }
            Err(Unwilling::Denied(denial)) => Err(denial),
            Err(Unwilling::Rejected) => {
                self.figures.rejected_connections.add();
                Err(Denial::Failed)
            }
            Err(Unwilling::Silent) => Err(Denial::TimedOut),
        }
    }

    /// Whether the exit is to be asked for `destination`.
    fn is_for_exit(&self, destination: &Destination) -> bool {
        match (&self.known, destination) {
            (Some(known), Destination::Address(address)) => {
                known.speaks(address.ip().to_canonical()) == Some(Speaks::Tpa)
            }
            (None, _) | (_, Destination::Named { .. }) => true,
        }
    }

    /// To who does not speak TPA.
    async fn go_unannounced(&self, destination: &Destination, client: SocketAddr) -> Result<Far<P>, Denial> {
        let leg = self.go_by_tcp(destination, client).await?;
        self.figures.unannounced_connections.add();
        Ok(Far::Tcp(leg))
    }

    /// For want of an exit.
    async fn fall_back(&self, destination: &Destination, client: SocketAddr) -> Result<Far<P>, Denial> {
        if self.config.fallback == Fallback::Refuse {
            return Err(Denial::NetworkUnreachable);
        }
        let leg = self.go_by_tcp(destination, client).await?;
        self.figures.tcp_connections.add();
        Ok(Far::Tcp(leg))
    }

    async fn go_by_tcp(&self, destination: &Destination, client: SocketAddr) -> Result<TcpLeg, Denial> {
        let from = match self.config.sources {
            Sources::Client => From::Client(client),
            Sources::Gateway => From::Gateway,
        };
        let how = (&self.config.tcp, self.config.connect_timeout);
        onward::connect(destination, from, |_| true, how).await
    }

    async fn pass_on(self: &Arc<Self>, client: TcpLeg, far: Far<P>) {
        let (buffer, moved) = (self.config.buffer as usize, &self.figures.moved);
        let ended = match far {
            Far::Trunk(far) => relay(client, far, buffer, moved).await,
            Far::Tcp(far) => return self.note(relay(client, far, buffer, moved).await.is_ok()),
        };
        self.note(ended.is_ok());
        let is_silent = |kind| kind == ErrorKind::TimedOut;
        if ended.is_err_and(|broken| broken.side == Side::Far && is_silent(broken.error.kind())) {
            self.trunk.is_lost();
        }
    }

    fn note(&self, finished: bool) {
        if finished {
            self.figures.finished_connections.add();
        } else {
            self.figures.broken_connections.add();
        }
    }
}
