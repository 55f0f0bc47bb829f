//! Entrance: accepts connections of applications.

use super::carrier::{Carrier, Opened, Ready};
use super::config::{EntranceConfig, Fallback, Sources, Way};
use super::destination::Destination;
use super::doors::{Call, Door};
use super::early::Early;
use super::error::Error;
use super::figures::EntranceFigures;
use super::greeting::Denial;
use super::leg::TcpLeg;
use super::onward::{self, From};
use super::presence::Absence;
use super::relay::{relay, until};
use super::service::{self, Notices};
use super::trunk::{Carried, Opens, Trunk, Unwilling};
use crate::announce::{Known, Speaks};
use crate::diversion::Unaccepted;
use crate::service::{Ledger, Service};
use hopline_linux::descriptors;
use hopline_linux::routes::{Route, Routes};
use hopline_streams::admission::{Admission, Place};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Accepts TCP connections and has an exit connect them onward, over TPA or TPA-wide.
#[derive(Debug)]
pub struct Entrance {
    config: EntranceConfig,
    doors: Vec<Door>,
    opened: Opened,
    known: Option<Known>,
    routes: Routes,
    unaccepted: Unaccepted,
}

impl Entrance {
    /// Opens the listeners and the UDP socket towards the exit.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be bound; [`Way::Transparent`] without `CAP_NET_ADMIN`.
    pub fn open(config: &EntranceConfig) -> Result<Self, Error> {
        config.validate()?;
        // Descriptors of a connection: the client, and a stream of the trunk or a TCP connection onward. A third one for
        // waiting clients.
        descriptors::allow(config.max_connections as usize, 3)?;
        let doors: Vec<_> = config.ways.iter().map(Door::open).collect::<Result<_, _>>()?;
        let unaccepted = Unaccepted::of(doors.iter().filter_map(Door::transparent))?;
        let (v4, v6) = ((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::UNSPECIFIED, 0).into());
        let locals = match (config.local, &config.exit) {
            (Some(local), _) => vec![local],
            (None, Destination::Address(SocketAddr::V4(_))) => vec![v4],
            (None, Destination::Address(SocketAddr::V6(_))) => vec![v6],
            // The addresses of a host name are not known yet.
            (None, Destination::Named { .. }) => vec![v4, v6],
        };
        let opened = Opened::of_entrance(&config.transport, &locals, &config.key).map_err(|error| {
            hopline_linux::Error::new(format!("taking the UDP address {}", locals[0]), error)
        })?;
        Ok(Self { config: config.clone(), doors, opened, known: None, routes: Routes::open()?, unaccepted })
    }

    /// Returns the connections that [`Way::Transparent`] has not accepted yet, for the code that diverts them.
    #[must_use]
    pub fn unaccepted(&self) -> Unaccepted {
        self.unaccepted.clone()
    }

    /// Restricts the exit to hosts that are known to speak TPA. Connections to other hosts, and to those that the exit
    /// does not permit, go by TCP, regardless of [`EntranceConfig::fallback`]. From their handshakes the announcer
    /// learns, so that the next connection may go over TPA (TPA §6). The connections of this entrance must therefore pass
    /// the announcer behind `known`. Host names are not resolved here; they go to the exit.
    #[must_use]
    pub fn asking(self, known: Known) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Returns the listening addresses, in the order of [`EntranceConfig::ways`].
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.doors.iter().map(Door::local_addr).collect()
    }
}

impl Service for Entrance {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let Self { config, doors, opened, known, routes, unaccepted } = *self;
        let doors = (doors, unaccepted);
        match opened {
            Opened::Tpa(ready) => run(config, doors, ready, (known, routes), stop, ledger),
            Opened::TpaWide(ready) => run(config, doors, ready, (known, routes), stop, ledger),
        }
    }
}

fn run<P: Carrier>(
    config: EntranceConfig,
    (doors, unaccepted): (Vec<Door>, Unaccepted),
    ready: Ready<P>,
    (known, routes): (Option<Known>, Routes),
    stop: BorrowedFd<'_>,
    ledger: &Ledger,
) -> io::Result<()> {
    let (figures, notices) = (Arc::<EntranceFigures>::default(), Arc::<Notices>::default());
    let seats = config.max_connections as usize;
    let shared = Arc::new(Shared {
        trunk: Trunk::new(ready, config.clone(), (Arc::clone(&figures), Arc::clone(&notices))),
        figures: Arc::clone(&figures),
        seats: Arc::new(Semaphore::new(seats)),
        unsettled: Admission::new(seats),
        routes: Mutex::new(routes),
        known,
        config,
    });
    let work = async {
        let mut serving = JoinSet::new();
        for door in doors {
            let shared = Arc::clone(&shared);
            serving.spawn(door.serve(unaccepted.clone(), move |call, way| shared.take(call, way)));
        }
        let opens = if shared.known.is_some() { Opens::OnDemand } else { Opens::AtOnce };
        tokio::spawn(Arc::clone(&shared.trunk).keep(opens));
        // A listener ends only with an error.
        while let Some(ended) = serving.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    };
    service::run(work, stop, ledger, (|| figures.figures(), &notices))
}

/// State that all connections share.
struct Shared<P: Carrier> {
    config: EntranceConfig,
    trunk: Arc<Trunk<P>>,
    figures: Arc<EntranceFigures>,
    /// Permits for connections.
    seats: Arc<Semaphore>,
    /// Places of connections that wait for a permit or are in negotiation.
    unsettled: Arc<Admission>,
    /// Source of the addresses of this host.
    routes: Mutex<Routes>,
    /// Protocols of hosts. `None`: all destinations go to the exit.
    known: Option<Known>,
}

/// The far side of a connection.
enum Far<P: Carrier> {
    Trunk(Carried<P>),
    Tcp(TcpLeg),
}

/// Reason that a connection is not made.
enum Unmade {
    Denied(Denial),
    /// The client has closed the connection.
    Deserted,
}

impl std::convert::From<Denial> for Unmade {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// A connection with a destination.
struct Wants<'a> {
    destination: &'a Destination,
    client: SocketAddr,
    way: &'a Way,
}

impl<P: Carrier> Shared<P> {
    /// Accepts a connection. If too many wait, one of them is closed.
    fn take(self: &Arc<Self>, call: Call, way: &Way) {
        self.figures.accepted_connections.add();
        let waiting = self.unsettled.enter(call.client.ip());
        let (shared, way) = (Arc::clone(self), way.clone());
        tokio::spawn(async move { shared.carry(call, &way, waiting).await });
    }

    async fn carry(self: &Arc<Self>, call: Call, way: &Way, waiting: Place) {
        let Ok(mut client) = TcpLeg::new(call.stream, &self.config.tcp) else { return };
        let limit = self.config.negotiation_timeout;
        let destination = until(way.destination(&mut client, call.called, limit), waiting.lost()).await;
        let Some(destination) = destination else { return self.figures.turned_away_connections.add() };
        let Some(destination) = destination else {
            return self.figures.unintelligible_connections.add();
        };
        let seat = until(timeout(self.config.max_wait, self.seats.acquire()), waiting.lost()).await;
        let Some(Ok(Ok(_seat))) = seat else {
            self.figures.turned_away_connections.add();
            return way.told().refused(client, Denial::TooMany).await;
        };
        drop(waiting);
        let _open = self.figures.open.enter();
        let mut early = Early::new(self.config.buffer as usize);
        let wants = Wants { destination: &destination, client: call.client, way };
        match self.reach(&wants, &mut client, &mut early).await {
            Err(Unmade::Denied(denial)) => {
                self.figures.refused_connections.add();
                way.told().refused(client, denial).await;
            }
            Err(Unmade::Deserted) => self.figures.broken_connections.add(),
            Ok(far) => {
                if way.told().connected(&mut client).await.is_ok() {
                    self.pass_on(client, far, early).await;
                }
            }
        }
    }

    /// Connects onward: by the exit, or by TCP without it.
    async fn reach(
        self: &Arc<Self>,
        wants: &Wants<'_>,
        client: &mut TcpLeg,
        early: &mut Early,
    ) -> Result<Far<P>, Unmade> {
        if !self.is_for_exit(wants.destination) {
            return Ok(self.go_unannounced(wants).await?);
        }
        let source = (self.config.sources == Sources::Client).then_some(wants.client);
        match self.trunk.connect((wants.destination, source), client, early).await {
            Ok(carried) => {
                self.figures.tpa_connections.add();
                Ok(Far::Trunk(carried))
            }
            Err(Unwilling::Absent(Absence::Rejected) | Unwilling::Rejected) => {
                self.figures.rejected_connections.add();
                Err(Unmade::Denied(Denial::Failed))
            }
            Err(Unwilling::Absent(_) | Unwilling::Denied(Denial::TooMany)) => {
                Ok(self.fall_back(wants).await?)
            }
            // The host speaks TPA, but not at this port.
            Err(Unwilling::Denied(Denial::NotAllowed)) if self.known.is_some() => {
                Ok(self.go_unannounced(wants).await?)
            }
            Err(Unwilling::Denied(denial)) => Err(Unmade::Denied(denial)),
            Err(Unwilling::Deserted) => Err(Unmade::Deserted),
            Err(Unwilling::TimedOut) => Err(Unmade::Denied(Denial::TimedOut)),
        }
    }

    /// Returns whether connections to `destination` go to the exit.
    fn is_for_exit(&self, destination: &Destination) -> bool {
        match (&self.known, destination) {
            (Some(known), Destination::Address(address)) => {
                known.speaks(address.ip().to_canonical()) == Some(Speaks::Tpa)
            }
            (None, _) | (_, Destination::Named { .. }) => true,
        }
    }

    /// Connects by TCP to a host that does not speak TPA.
    async fn go_unannounced(&self, wants: &Wants<'_>) -> Result<Far<P>, Denial> {
        // The fallback does not matter here, unless the user expects encryption.
        if self.config.transport.encrypts() && !self.config.falls_back_in_clear() {
            return Err(Denial::NetworkUnreachable);
        }
        let leg = self.go_by_tcp(wants).await?;
        self.figures.unannounced_connections.add();
        Ok(Far::Tcp(leg))
    }

    /// Connects by TCP while there is no exit.
    async fn fall_back(&self, wants: &Wants<'_>) -> Result<Far<P>, Denial> {
        if self.config.fallback() == Fallback::Refuse {
            return Err(Denial::NetworkUnreachable);
        }
        let leg = self.go_by_tcp(wants).await?;
        self.figures.tcp_connections.add();
        Ok(Far::Tcp(leg))
    }

    async fn go_by_tcp(&self, wants: &Wants<'_>) -> Result<TcpLeg, Denial> {
        let from = match self.config.sources {
            Sources::Client => From::Client(wants.client),
            Sources::Gateway => From::Gateway,
        };
        let how = (&self.config.tcp, self.config.connect_timeout);
        let permits = |address| self.config.permits(wants.way, address, |ip| self.is_own(ip));
        let connected = onward::connect(wants.destination, from, permits, how).await;
        match &connected {
            Ok(_) if self.config.falls_back_in_clear() => self.figures.clear_connections.add(),
            Err(Denial::NotAllowed) => self.figures.not_allowed_connections.add(),
            _ => {}
        }
        connected
    }

    /// Returns whether an address belongs to this host. Returns `true` too if the system does not tell.
    fn is_own(&self, ip: IpAddr) -> bool {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(routes.towards(ip), Ok(Some(Route::Beyond(_)) | None))
    }

    async fn pass_on(&self, client: TcpLeg, far: Far<P>, early: Early) {
        let (buffer, moved) = (self.config.buffer as usize, &self.figures.moved);
        let ended = match far {
            Far::Tcp(far) => relay(client, far, early.all(), buffer, moved).await.is_ok(),
            Far::Trunk(Carried { leg, trunk }) => {
                // When the trunk ends, both legs are dropped, which resets them.
                let carried = relay(client, leg, early.rest(), buffer, moved);
                until(carried, trunk.ended()).await.is_some_and(|ended| ended.is_ok())
            }
        };
        if ended {
            self.figures.finished_connections.add();
        } else {
            self.figures.broken_connections.add();
        }
    }
}
