//! Tasks of proxies, by kind.

mod connection_moves;
mod gateway;
mod handoff;
mod in_path;
mod neighborhood;
mod pair;
mod secret;
mod split;

pub use connection_moves::ConnectionMoves;
pub(super) use connection_moves::StationInfo;
pub use gateway::{EntranceTask, ExitTask};
pub use handoff::StationTask;
pub(crate) use handoff::host_key;
pub use in_path::PacketSelection;
pub use pair::{DProxyTask, TunnelTask};
pub use split::SplitTask;

use super::keys::KindKey;
use crate::rules::{
    DivertedConnections, FullyQueuedInterface, HandshakeQueue, Owner, Queued, ShapedInterface,
    UnforwardedPackets,
};
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::handoff::{HomeConfig, MobileConfig};
use hopline_middlebox::neighborhood as nred;
use hopline_proxy::{mtcp, nack, snoop};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Task of a proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Retransmits packets lost on the last hop.
    Snoop(PacketSelection, snoop::Config),
    /// Makes senders wait while a mobile host is unreachable (M-TCP).
    Mtcp(PacketSelection, mtcp::Config),
    /// Requests lost data of mobile hosts.
    Nack(PacketSelection, nack::Config),
    /// Buffers packets that this host sends, and retransmits those that a station requests.
    NackHost(PacketSelection, snoop::Config),
    /// Terminates connections, and opens connections to their destinations.
    Split(Box<SplitTask>),
    /// Queues packets for a radio, and drops or marks them together with its neighbours (Neighborhood RED).
    NeighborhoodRed(Box<nred::Config>),
    /// Retransmits TCP packets lost on a link, together with a peer.
    DProxy(Box<DProxyTask>),
    /// Retransmits packets of any protocol lost on a link, together with a peer.
    Tunnel(Box<TunnelTask>),
    /// Transfers connections from TCP to TPA.
    Gateway(Box<EntranceTask>),
    /// Transfers connections from TPA to TCP.
    GatewayExit(Box<ExitTask>),
    /// Forwards packets for mobile hosts to their present station.
    HomeAgent(Box<HomeConfig>),
    /// Serves mobile hosts.
    BaseStation(Box<StationTask>),
    /// Hands off between stations.
    MobileHost(Box<MobileConfig>),
}

/// Scheduling of the threads of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// Real time, because packets in the kernel wait for these threads.
    RealTime,
    /// Normal priority.
    Normal,
}

impl Task {
    /// Returns the task of the proxy at position `number` of its file, from 0.
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let path = || PacketSelection::resolve(kind, section, number);
        Ok(match kind {
            KindKey::Snoop => {
                let path = path()?;
                let config = in_path::snoop(section, &path)?;
                Self::Snoop(path, config)
            }
            KindKey::Mtcp => Self::Mtcp(path()?, middlebox::mtcp(section)),
            KindKey::Nack => {
                // Only hosts that announce it are asked: most hosts do not buffer the packets that they send.
                let asks = nack::NackPolicy::Announced;
                Self::Nack(path()?, nack::Config { policy: asks, ..middlebox::nack(section) })
            }
            KindKey::NackHost => Self::NackHost(path()?.for_host(), middlebox::nack_host(section)),
            KindKey::Split => Self::Split(Box::new(SplitTask::resolve(section, number)?)),
            KindKey::NeighborhoodRed => {
                Self::NeighborhoodRed(Box::new(neighborhood::resolve(section, number)?))
            }
            KindKey::DProxy => Self::DProxy(Box::new(DProxyTask::resolve(section, number)?)),
            KindKey::Opaque | KindKey::Arq => Self::Tunnel(Box::new(TunnelTask::resolve(kind, section)?)),
            KindKey::Gateway => Self::Gateway(Box::new(EntranceTask::resolve(section, number)?)),
            KindKey::GatewayExit => Self::GatewayExit(Box::new(ExitTask::resolve(section, number)?)),
            KindKey::HomeAgent => Self::HomeAgent(Box::new(handoff::home_agent(section)?)),
            KindKey::BaseStation => Self::BaseStation(Box::new(handoff::base_station(section, number)?)),
            KindKey::MobileHost => Self::MobileHost(Box::new(handoff::mobile_host(section)?)),
        })
    }

    /// Returns the value of `kind` in the file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let kind = match self {
            Self::Snoop(..) => KindKey::Snoop,
            Self::Mtcp(..) => KindKey::Mtcp,
            Self::Nack(..) => KindKey::Nack,
            Self::NackHost(..) => KindKey::NackHost,
            Self::Split(_) => KindKey::Split,
            Self::NeighborhoodRed(_) => KindKey::NeighborhoodRed,
            Self::DProxy(_) => KindKey::DProxy,
            Self::Tunnel(task) => task.kind(),
            Self::Gateway(_) => KindKey::Gateway,
            Self::GatewayExit(_) => KindKey::GatewayExit,
            Self::HomeAgent(_) => KindKey::HomeAgent,
            Self::BaseStation(_) => KindKey::BaseStation,
            Self::MobileHost(_) => KindKey::MobileHost,
        };
        kind.word()
    }

    /// Returns the packets that wait for its verdict, if it is a middlebox.
    pub(crate) fn queued(&self) -> Option<Queued> {
        match self {
            Self::Snoop(path, _) | Self::Mtcp(path, _) | Self::Nack(path, _) | Self::NackHost(path, _) => {
                Some(path.queued())
            }
            Self::DProxy(task) => Some(task.queued()),
            Self::BaseStation(task) => task.queued(),
            _ => None,
        }
    }

    /// Returns the interface on which every outgoing packet waits for its verdict, if there is one.
    pub(crate) fn offered(&self) -> Option<FullyQueuedInterface> {
        match self {
            Self::NeighborhoodRed(config) => {
                Some(FullyQueuedInterface { queue: config.queue, interface: config.interface.clone() })
            }
            _ => None,
        }
    }

    /// Returns the queue of TCP handshakes that wait for its verdict, if there is one.
    pub(crate) fn announced(&self) -> Option<HandshakeQueue> {
        match self {
            Self::Gateway(task) => task.announced(),
            Self::GatewayExit(task) => task.announced(),
            _ => None,
        }
    }

    /// Returns the interface with a configured rate, if there is one.
    pub(crate) fn shaped(&self) -> Option<ShapedInterface> {
        match self {
            Self::Snoop(path, _) | Self::Mtcp(path, _) | Self::Nack(path, _) => path.shaped(),
            Self::DProxy(task) => task.shaped(),
            _ => None,
        }
    }

    /// Returns its own UDP address and port, if it is an end of a link.
    pub(crate) fn udp(&self) -> Option<(IpAddr, u16)> {
        match self {
            Self::DProxy(task) => Some((task.config.machine.local, task.config.port)),
            Self::Tunnel(task) => Some((task.config.local, task.config.port)),
            _ => None,
        }
    }

    /// Returns the name of its TUN interface, if it is a tunnel.
    pub(crate) fn tun(&self) -> Option<String> {
        match self {
            Self::Tunnel(task) => Some(task.config.tun.clone()),
            _ => None,
        }
    }

    /// Sets the daemon that owns the TUN interface, which may remain after the proxy.
    pub(crate) fn set_owner(&mut self, owner: &Owner) {
        if let Self::Tunnel(task) = self {
            task.owner = owner.clone();
        }
    }

    /// Returns the folder in which it creates a socket, if it creates one.
    pub(crate) fn writable_folder(&self) -> Option<PathBuf> {
        let Self::NeighborhoodRed(config) = self else { return None };
        let nred::Source::Socket(path) = &config.source else { return None };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).to_owned())
    }

    /// Returns the scheduling of its threads.
    pub(crate) const fn scheduling(&self) -> Scheduling {
        match self {
            // Here data wait in socket buffers, and the kernel acknowledges them meanwhile.
            Self::Split(_) | Self::Gateway(_) | Self::GatewayExit(_) => Scheduling::Normal,
            _ => Scheduling::RealTime,
        }
    }

    /// Returns the connections that are diverted to it and that it terminates.
    pub(crate) fn captured(&self) -> Vec<DivertedConnections> {
        match self {
            Self::Split(task) => task.captured(),
            Self::Gateway(task) => task.captured(),
            _ => Vec::new(),
        }
    }

    /// Returns the packets of mobile hosts' connections that are not forwarded if no socket takes them.
    pub(crate) fn guarded(&self) -> Option<UnforwardedPackets> {
        let Self::Split(task) = self else { return None };
        task.connection_moves.as_ref()?.guarded(&task.interface, &task.subnets, &task.ports)
    }

    /// Sets the mark that diverts connections to this machine.
    pub(crate) const fn set_mark(&mut self, mark: u16) {
        match self {
            Self::Split(task) => task.set_mark(mark),
            Self::Gateway(task) => task.set_mark(mark),
            _ => {}
        }
    }

    /// Returns the numbers of its NFQUEUEs.
    pub fn queues(&self) -> impl Iterator<Item = u16> {
        let queues = [
            self.queued().map(|queued| queued.queue),
            self.offered().map(|offered| offered.queue),
            self.announced().map(|announced| announced.queue),
            self.captured().first().map(|captured| captured.queue),
        ];
        queues.into_iter().flatten()
    }
}
