//! What a proxy does, by its kind.

use super::keys::{KindKey, proxy};
use super::values::{self, Subnet};
use crate::rules::Captured;
use hopline_proxy::{mtcp, nack, snoop};
use hopline_scenario::machines;
use hopline_scenario::schema::Section;
use hopline_scenario::source::Problem;

/// What a proxy does.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Sends again what the last hop loses.
    Snoop(InPath, snoop::Config),
    /// Makes senders wait while a mobile host cannot be reached.
    Mtcp(InPath, mtcp::Config),
    /// Asks mobile hosts for what they have sent and what has not come.
    Nack(InPath, nack::Config),
}

/// Which packets pass a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The queue in which they wait.
    pub queue: u16,
    /// The interface that leads to the mobile hosts.
    pub interface: String,
    /// The mobile hosts that are served; empty: all.
    pub subnets: Vec<Subnet>,
    /// The ports of fixed hosts that are served; empty: all.
    pub ports: Vec<u16>,
}

/// Queue of the first proxy of a file.
const FIRST_QUEUE: u16 = 26_735;

impl Task {
    /// That of the proxy that stands at place `number` of its file, from 0.
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        Ok(match kind {
            KindKey::Snoop => Self::Snoop(in_path(kind, section, number)?, machines::snoop(section)?),
            KindKey::Mtcp => Self::Mtcp(in_path(kind, section, number)?, machines::mtcp(section)),
            KindKey::Nack => Self::Nack(in_path(kind, section, number)?, machines::nack(section)),
        })
    }

    /// Its kind, as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Snoop(..) => KindKey::Snoop.word(),
            Self::Mtcp(..) => KindKey::Mtcp.word(),
            Self::Nack(..) => KindKey::Nack.word(),
        }
    }

    /// The packets that pass it, if packets pass it.
    #[must_use]
    pub const fn in_path(&self) -> Option<&InPath> {
        match self {
            Self::Snoop(path, _) | Self::Mtcp(path, _) | Self::Nack(path, _) => Some(path),
        }
    }

    /// The connections that end at it, if any do.
    #[must_use]
    pub(crate) fn captured(&self) -> Vec<Captured> {
        Vec::new()
    }

    /// The queue of the kernel that it has, if it has one.
    #[must_use]
    pub fn queue(&self) -> Option<u16> {
        self.in_path().map(|path| path.queue)
    }
}

fn in_path(kind: KindKey, section: &Section<'_>, number: u16) -> Result<InPath, Problem> {
    let interface = section
        .word(proxy::INTERFACE.name)
        .ok_or_else(|| values::missing(section, proxy::INTERFACE.name, kind.word(), "\"wlan0\""))?;
    let ports = section.integers(proxy::PORTS.name).unwrap_or_default();
    Ok(InPath {
        queue: section.narrow(proxy::QUEUE.name).unwrap_or(FIRST_QUEUE + number),
        interface: values::interface(section, proxy::INTERFACE.name, interface)?,
        subnets: values::parsed_list(section, proxy::SUBNETS.name, "subnet", "10.1.0.0/16")?,
        ports: ports.into_iter().map(|(port, _)| port).collect(),
    })
}
