//! What a proxy does, by its kind.

mod gateway;
mod handoff;
mod in_path;
mod neighborhood;
mod pair;
mod secret;
mod split;

pub use gateway::{EntranceTask, ExitTask};
pub use handoff::StationTask;
pub(crate) use handoff::host_key;
pub use in_path::InPath;
pub use pair::{DProxyTask, TunnelTask};
pub use split::SplitTask;

use super::keys::KindKey;
use crate::rules::{Announced, Captured, Offered, Owner, Queued, Shaped};
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_net::handoff::{HomeConfig, MobileConfig};
use hopline_net::neighborhood as nred;
use hopline_proxy::{mtcp, nack, snoop};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What a proxy does.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Sends again what the last hop loses.
    Snoop(InPath, snoop::Config),
    /// Makes senders wait while a mobile host cannot be reached.
    Mtcp(InPath, mtcp::Config),
    /// Asks mobile hosts for what they have sent and what has not come.
    Nack(InPath, nack::Config),
    /// Keeps what this host sends, and sends again what is asked for.
    NackHost(InPath, snoop::Config),
    /// Ends connections, and leads others on.
    Split(SplitTask),
    /// Takes part in its neighbourhood's queue.
    NeighborhoodRed(Box<nred::Config>),
    /// Repairs, with a peer, what a link loses of TCP.
    DProxy(Box<DProxyTask>),
    /// Repairs, with a peer, what a link loses of whatever crosses it.
    Tunnel(Box<TunnelTask>),
    /// Takes connections over to TPA.
    Gateway(Box<EntranceTask>),
    /// Takes them back to TCP.
    GatewayExit(Box<ExitTask>),
    /// Sends what is for mobile hosts to where they are.
    HomeAgent(Box<HomeConfig>),
    /// Serves mobile hosts.
    BaseStation(Box<StationTask>),
    /// Changes its station.
    MobileHost(Box<MobileConfig>),
}

/// When the threads of a proxy must run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// As soon as there is something to do: packets wait for them.
    OnTime,
    /// When it is their turn.
    Fair,
}

impl Task {
    /// That of the proxy that stands at place `number` of its file, from 0.
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let path = || InPath::resolve(kind, section, number);
        Ok(match kind {
            KindKey::Snoop => {
                let path = path()?;
                let config = in_path::snoop(section, &path)?;
                Self::Snoop(path, config)
            }
            KindKey::Mtcp => Self::Mtcp(path()?, middlebox::mtcp(section)),
            KindKey::Nack => {
                // Most hosts keep nothing of what they send.
                let asks = nack::Asks::Announced;
                Self::Nack(path()?, nack::Config { asks, ..middlebox::nack(section) })
            }
            KindKey::NackHost => Self::NackHost(path()?.of_host(), middlebox::nack_host(section)),
            KindKey::Split => Self::Split(SplitTask::resolve(section, number)?),
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

    /// Its kind, as it is written.
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

    /// The packets that wait for what it says, if it is a machine in the path.
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

    /// The interface all of whose packets wait for what it says, if there is one.
    pub(crate) fn offered(&self) -> Option<Offered> {
        match self {
            Self::NeighborhoodRed(config) => {
                Some(Offered { queue: config.queue, interface: config.interface.clone() })
            }
            _ => None,
        }
    }

    /// The handshakes that wait for what it says, if there are some.
    pub(crate) fn announced(&self) -> Option<Announced> {
        match self {
            Self::Gateway(task) => task.announced(),
            Self::GatewayExit(task) => task.announced(),
            _ => None,
        }
    }

    /// The interface whose rate it is told, if it is.
    pub(crate) fn shaped(&self) -> Option<Shaped> {
        match self {
            Self::Snoop(path, _) | Self::Mtcp(path, _) | Self::Nack(path, _) => path.shaped(),
            Self::DProxy(task) => task.shaped(),
            _ => None,
        }
    }

    /// Its own address and port of UDP, if it has one end of a link.
    pub(crate) fn udp(&self) -> Option<(IpAddr, u16)> {
        match self {
            Self::DProxy(task) => Some((task.config.machine.local, task.config.port)),
            Self::Tunnel(task) => Some((task.config.local, task.config.port)),
            _ => None,
        }
    }

    /// The name of its TUN interface, if it is a tunnel.
    pub(crate) fn tun(&self) -> Option<String> {
        match self {
            Self::Tunnel(task) => Some(task.config.tun.clone()),
            _ => None,
        }
    }

    /// Says in whose name it makes what outlives it.
    pub(crate) fn set_owner(&mut self, owner: &Owner) {
        if let Self::Tunnel(task) = self {
            task.owner = owner.clone();
        }
    }

    /// The folder in which it makes a socket, if it does.
    pub(crate) fn folder_written(&self) -> Option<PathBuf> {
        let Self::NeighborhoodRed(config) = self else { return None };
        let nred::Source::Socket(path) = &config.source else { return None };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).to_owned())
    }

    /// When its threads must run.
    pub(crate) const fn timing(&self) -> Timing {
        match self {
            // Whose bytes wait in sockets of the kernel.
            Self::Split(_) | Self::Gateway(_) | Self::GatewayExit(_) => Timing::Fair,
            _ => Timing::OnTime,
        }
    }

    /// The connections that end at it.
    pub(crate) fn captured(&self) -> Vec<Captured> {
        match self {
            Self::Split(task) => task.captured(),
            Self::Gateway(task) => task.captured(),
            _ => Vec::new(),
        }
    }

    /// Sets the mark by which calls that end at it are led to this machine.
    pub(crate) const fn set_mark(&mut self, mark: u16) {
        match self {
            Self::Split(task) => task.set_mark(mark),
            Self::Gateway(task) => task.set_mark(mark),
            _ => {}
        }
    }

    /// The queues of the kernel that it has.
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
