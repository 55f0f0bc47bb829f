//! Entrance: accepts connections of applications.

use super::carrier::{AnyBoundTransport, BoundTransport, Carrier};
use super::config::{EntranceConfig, Fallback, ListenerConfig, SourceAddress};
use super::destination::Destination;
use super::early_data::EarlyData;
use super::error::Error;
use super::exit_state::AbsenceReason;
use super::handshake::Denial;
use super::leg::TcpLeg;
use super::listeners::{AcceptedConnection, GatewayListener};
use super::metrics::EntranceFigures;
use super::onward::{self, BindAddress};
use super::relay::{relay, run_until};
use super::service::{self, Notices};
use super::trunk::{CarryError, OpenPolicy, Trunk, TrunkConnection};
use crate::announce::{HostProtocols, TransportSupport};
use crate::diversion::Unaccepted;
use crate::service::{Service, ServiceStatus};
use hopline_linux::descriptors;
use hopline_linux::route_lookup::{Route, Routes};
use hopline_streams::admission::{Admission, AdmissionSlot};
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
    listeners: Vec<GatewayListener>,
    transport: AnyBoundTransport,
    host_protocols: Option<HostProtocols>,
    routes: Routes,
    unaccepted: Unaccepted,
}

impl Entrance {
    /// Opens the listeners and the UDP socket towards the exit.
    ///
    /// # Errors
    /// A parameter out of its range; an address that cannot be bound; [`ListenerConfig::Transparent`] without `CAP_NET_ADMIN`.
    pub fn open(config: &EntranceConfig) -> Result<Self, Error> {
        config.validate()?;
        // Descriptors of a connection: the client, and a stream of the trunk or a TCP connection onward. A third one for
        // waiting clients.
        descriptors::reserve(config.max_connections as usize, 3)?;
        let doors: Vec<_> = config.listeners.iter().map(GatewayListener::open).collect::<Result<_, _>>()?;
        let unaccepted = Unaccepted::of(doors.iter().filter_map(GatewayListener::transparent))?;
        let (v4, v6) = ((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::UNSPECIFIED, 0).into());
        let locals = match (config.local, &config.exit) {
            (Some(local), _) => vec![local],
            (None, Destination::Address(SocketAddr::V4(_))) => vec![v4],
            (None, Destination::Address(SocketAddr::V6(_))) => vec![v6],
            // The addresses of a host name are not known yet.
            (None, Destination::Named { .. }) => vec![v4, v6],
        };
        let opened =
            AnyBoundTransport::of_entrance(&config.transport, &locals, &config.key).map_err(|error| {
                hopline_linux::Error::new(format!("taking the UDP address {}", locals[0]), error)
            })?;
        Ok(Self {
            config: config.clone(),
            listeners: doors,
            transport: opened,
            host_protocols: None,
            routes: Routes::open()?,
            unaccepted,
        })
    }

    /// Returns the connections that [`ListenerConfig::Transparent`] has not accepted yet, for the code that diverts them.
    #[must_use]
    pub fn unaccepted(&self) -> Unaccepted {
        self.unaccepted.clone()
    }

    /// Restricts the exit to hosts that are known to speak TPA. Connections to other hosts, and to those that the exit
    /// does not permit, go by TCP, regardless of [`EntranceConfig::fallback`]. From their handshakes the announcer
    /// learns, so that the next connection may go over TPA (TPA §6). The connections of this entrance must therefore pass
    /// the announcer behind `known`. Host names are not resolved here; they go to the exit.
    #[must_use]
    pub fn restrict_to_tpa_hosts(self, known: HostProtocols) -> Self {
        Self { host_protocols: Some(known), ..self }
    }

    /// Returns the listening addresses, in the order of [`EntranceConfig::listeners`].
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(GatewayListener::local_addr).collect()
    }
}

impl Service for Entrance {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self { config, listeners: doors, transport: opened, host_protocols: known, routes, unaccepted } =
            *self;
        let doors = (doors, unaccepted);
        match opened {
            AnyBoundTransport::Tpa(ready) => run(config, doors, ready, (known, routes), stop, ledger),
            AnyBoundTransport::TpaWide(ready) => run(config, doors, ready, (known, routes), stop, ledger),
        }
    }
}

fn run<P: Carrier>(
    config: EntranceConfig,
    (doors, unaccepted): (Vec<GatewayListener>, Unaccepted),
    ready: BoundTransport<P>,
    (known, routes): (Option<HostProtocols>, Routes),
    stop: BorrowedFd<'_>,
    ledger: &ServiceStatus,
) -> io::Result<()> {
    let (figures, notices) = (Arc::<EntranceFigures>::default(), Arc::<Notices>::default());
    let seats = config.max_connections as usize;
    let shared = Arc::new(Shared {
        trunk: Trunk::new(ready, config.clone(), (Arc::clone(&figures), Arc::clone(&notices))),
        metrics: Arc::clone(&figures),
        permits: Arc::new(Semaphore::new(seats)),
        pending: Admission::new(seats),
        routes: Mutex::new(routes),
        host_protocols: known,
        config,
    });
    let work = async {
        let mut serving = JoinSet::new();
        for door in doors {
            let shared = Arc::clone(&shared);
            serving
                .spawn(door.serve(unaccepted.clone(), move |call, way| shared.handle_connection(call, way)));
        }
        let opens = if shared.host_protocols.is_some() { OpenPolicy::OnDemand } else { OpenPolicy::Eager };
        tokio::spawn(Arc::clone(&shared.trunk).run(opens));
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
    metrics: Arc<EntranceFigures>,
    /// Permits for connections.
    permits: Arc<Semaphore>,
    /// Places of connections that wait for a permit or are in negotiation.
    pending: Arc<Admission>,
    /// Source of the addresses of this host.
    routes: Mutex<Routes>,
    /// Protocols of hosts. `None`: all destinations go to the exit.
    host_protocols: Option<HostProtocols>,
}

/// The far side of a connection.
enum Upstream<P: Carrier> {
    Trunk(TrunkConnection<P>),
    Tcp(TcpLeg),
}

/// Reason that a connection is not made.
enum ConnectFailure {
    Denied(Denial),
    /// The client has closed the connection.
    ClientClosed,
}

impl std::convert::From<Denial> for ConnectFailure {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// A connection with a destination.
struct ConnectRequest<'a> {
    destination: &'a Destination,
    client: SocketAddr,
    listener: &'a ListenerConfig,
}

impl<P: Carrier> Shared<P> {
    /// Accepts a connection. If too many wait, one of them is closed.
    fn handle_connection(self: &Arc<Self>, call: AcceptedConnection, way: &ListenerConfig) {
        self.metrics.accepted_connections.add();
        let waiting = self.pending.enter(call.client.ip());
        let (shared, way) = (Arc::clone(self), way.clone());
        tokio::spawn(async move { shared.serve(call, &way, waiting).await });
    }

    async fn serve(self: &Arc<Self>, call: AcceptedConnection, way: &ListenerConfig, waiting: AdmissionSlot) {
        let Ok(mut client) = TcpLeg::new(call.stream, &self.config.tcp) else { return };
        let limit = self.config.negotiation_timeout;
        let destination =
            run_until(way.destination(&mut client, call.destination, limit), waiting.evicted()).await;
        let Some(destination) = destination else { return self.metrics.turned_away_connections.add() };
        let Some(destination) = destination else {
            return self.metrics.unintelligible_connections.add();
        };
        let seat = run_until(timeout(self.config.max_wait, self.permits.acquire()), waiting.evicted()).await;
        let Some(Ok(Ok(_seat))) = seat else {
            self.metrics.turned_away_connections.add();
            return way.outcome_report().report_refused(client, Denial::TooMany).await;
        };
        drop(waiting);
        let _open = self.metrics.open.enter();
        let mut early = EarlyData::new(self.config.buffer as usize);
        let wants = ConnectRequest { destination: &destination, client: call.client, listener: way };
        match self.connect(&wants, &mut client, &mut early).await {
            Err(ConnectFailure::Denied(denial)) => {
                self.metrics.refused_connections.add();
                way.outcome_report().report_refused(client, denial).await;
            }
            Err(ConnectFailure::ClientClosed) => self.metrics.broken_connections.add(),
            Ok(far) => {
                if way.outcome_report().report_connected(&mut client).await.is_ok() {
                    self.relay(client, far, early).await;
                }
            }
        }
    }

    /// Connects onward: by the exit, or by TCP without it.
    async fn connect(
        self: &Arc<Self>,
        wants: &ConnectRequest<'_>,
        client: &mut TcpLeg,
        early: &mut EarlyData,
    ) -> Result<Upstream<P>, ConnectFailure> {
        if !self.is_for_exit(wants.destination) {
            return Ok(self.connect_without_tpa(wants).await?);
        }
        let source = (self.config.source_address == SourceAddress::Client).then_some(wants.client);
        match self.trunk.connect((wants.destination, source), client, early).await {
            Ok(carried) => {
                self.metrics.tpa_connections.add();
                Ok(Upstream::Trunk(carried))
            }
            Err(CarryError::Absent(AbsenceReason::Rejected) | CarryError::Rejected) => {
                self.metrics.rejected_connections.add();
                Err(ConnectFailure::Denied(Denial::Failed))
            }
            Err(CarryError::Absent(_) | CarryError::Denied(Denial::TooMany)) => {
                Ok(self.fall_back(wants).await?)
            }
            // The host speaks TPA, but not at this port.
            Err(CarryError::Denied(Denial::NotAllowed)) if self.host_protocols.is_some() => {
                Ok(self.connect_without_tpa(wants).await?)
            }
            Err(CarryError::Denied(denial)) => Err(ConnectFailure::Denied(denial)),
            Err(CarryError::ClientClosed) => Err(ConnectFailure::ClientClosed),
            Err(CarryError::TimedOut) => Err(ConnectFailure::Denied(Denial::TimedOut)),
        }
    }

    /// Returns whether connections to `destination` go to the exit.
    fn is_for_exit(&self, destination: &Destination) -> bool {
        match (&self.host_protocols, destination) {
            (Some(known), Destination::Address(address)) => {
                known.protocols_of(address.ip().to_canonical()) == Some(TransportSupport::Tpa)
            }
            (None, _) | (_, Destination::Named { .. }) => true,
        }
    }

    /// Connects by TCP to a host that does not speak TPA.
    async fn connect_without_tpa(&self, wants: &ConnectRequest<'_>) -> Result<Upstream<P>, Denial> {
        // The fallback does not matter here, unless the user expects encryption.
        if self.config.transport.encrypts() && !self.config.may_fall_back_unencrypted() {
            return Err(Denial::NetworkUnreachable);
        }
        let leg = self.connect_tcp(wants).await?;
        self.metrics.unannounced_connections.add();
        Ok(Upstream::Tcp(leg))
    }

    /// Connects by TCP while there is no exit.
    async fn fall_back(&self, wants: &ConnectRequest<'_>) -> Result<Upstream<P>, Denial> {
        if self.config.fallback() == Fallback::Refuse {
            return Err(Denial::NetworkUnreachable);
        }
        let leg = self.connect_tcp(wants).await?;
        self.metrics.tcp_connections.add();
        Ok(Upstream::Tcp(leg))
    }

    async fn connect_tcp(&self, wants: &ConnectRequest<'_>) -> Result<TcpLeg, Denial> {
        let from = match self.config.source_address {
            SourceAddress::Client => BindAddress::Client(wants.client),
            SourceAddress::Gateway => BindAddress::Gateway,
        };
        let how = (&self.config.tcp, self.config.connect_timeout);
        let permits = |address| self.config.permits(wants.listener, address, |ip| self.is_own(ip));
        let connected = onward::connect(wants.destination, from, permits, how).await;
        match &connected {
            Ok(_) if self.config.may_fall_back_unencrypted() => self.metrics.clear_connections.add(),
            Err(Denial::NotAllowed) => self.metrics.not_allowed_connections.add(),
            _ => {}
        }
        connected
    }

    /// Returns whether an address belongs to this host. Returns `true` too if the system does not tell.
    fn is_own(&self, ip: IpAddr) -> bool {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(routes.lookup(ip), Ok(Some(Route::Remote(_)) | None))
    }

    async fn relay(&self, client: TcpLeg, far: Upstream<P>, early: EarlyData) {
        let (buffer, moved) = (self.config.buffer as usize, &self.metrics.moved);
        let ended = match far {
            Upstream::Tcp(far) => relay(client, far, early.into_all(), buffer, moved).await.is_ok(),
            Upstream::Trunk(TrunkConnection { leg, trunk }) => {
                // When the trunk ends, both legs are dropped, which resets them.
                let carried = relay(client, leg, early.into_unsent(), buffer, moved);
                run_until(carried, trunk.ended()).await.is_some_and(|ended| ended.is_ok())
            }
        };
        if ended {
            self.metrics.finished_connections.add();
        } else {
            self.metrics.broken_connections.add();
        }
    }
}
