//! What a proxy does, by its kind.

mod in_path;
mod neighborhood;
mod split;

pub use in_path::InPath;
pub use split::SplitTask;

use super::keys::KindKey;
use crate::rules::{Captured, Offered, Queued};
use hopline_net::neighborhood as nred;
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
    /// Ends connections, and leads others on.
    Split(SplitTask),
    /// Takes part in its neighbourhood's queue.
    NeighborhoodRed(Box<nred::Config>),
}

impl Task {
    /// That of the proxy that stands at place `number` of its file, from 0.
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let path = || InPath::resolve(kind, section, number);
        Ok(match kind {
            KindKey::Snoop => Self::Snoop(path()?, machines::snoop(section)?),
            KindKey::Mtcp => Self::Mtcp(path()?, machines::mtcp(section)),
            KindKey::Nack => Self::Nack(path()?, machines::nack(section)),
            KindKey::Split => Self::Split(SplitTask::resolve(section, number)?),
            KindKey::NeighborhoodRed => {
                Self::NeighborhoodRed(Box::new(neighborhood::resolve(section, number)?))
            }
        })
    }

    /// Its kind, as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let kind = match self {
            Self::Snoop(..) => KindKey::Snoop,
            Self::Mtcp(..) => KindKey::Mtcp,
            Self::Nack(..) => KindKey::Nack,
            Self::Split(_) => KindKey::Split,
            Self::NeighborhoodRed(_) => KindKey::NeighborhoodRed,
        };
        kind.word()
    }

    /// The packets that wait for what it says, if it is a machine in the path.
    pub(crate) fn queued(&self) -> Option<Queued> {
        match self {
            Self::Snoop(path, _) | Self::Mtcp(path, _) | Self::Nack(path, _) => Some(path.queued()),
            Self::Split(_) | Self::NeighborhoodRed(_) => None,
        }
    }

    /// The interface all of whose packets wait for what it says, if there is one.
    pub(crate) fn offered(&self) -> Option<Offered> {
        match self {
            Self::NeighborhoodRed(config) => {
                Some(Offered { queue: config.queue, interface: config.interface.clone() })
            }
            Self::Snoop(..) | Self::Mtcp(..) | Self::Nack(..) | Self::Split(_) => None,
        }
    }

    /// The connections that end at it.
    pub(crate) fn captured(&self) -> Vec<Captured> {
        match self {
            Self::Split(task) => task.captured(),
            Self::Snoop(..) | Self::Mtcp(..) | Self::Nack(..) | Self::NeighborhoodRed(_) => Vec::new(),
        }
    }

    /// The queue of the kernel that it has, if it has one.
    #[must_use]
    pub fn queue(&self) -> Option<u16> {
        self.queued().map(|queued| queued.queue).or(self.offered().map(|offered| offered.queue))
    }
}
