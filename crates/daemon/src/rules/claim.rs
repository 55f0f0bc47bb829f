//! TUN interfaces that stay when the daemon ends, and are taken over by the next one of its name.

use super::journal::Journal;
use super::program::{Program, RuleError};
use super::steps::{CreatedObject, unmake};
use super::tun::{Net, Owner, Tun};
use crate::folder::Folder;

/// Claim to an interface, recorded in the journal.
#[derive(Debug)]
pub(crate) struct Claim {
    tun: Tun,
    /// Addresses of an earlier daemon that this one does not give the interface.
    stale: Vec<Net>,
}

/// Objects that removal leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No objects.
    Nothing,
    /// TUN interfaces, with their addresses and everything that users attached to them.
    TunInterfaces,
}

impl Tun {
    /// Records in the journal that the interface belongs to the daemon, before it is made or taken over.
    ///
    /// # Errors
    /// [`RuleError::Conflict`] if it exists and this daemon did not make it.
    pub(crate) fn claim(self, owner: &Owner) -> Result<Claim, RuleError> {
        let folder = Folder::open(&owner.folder)
            .map_err(|why| RuleError::Journal(owner.folder.display().to_string(), why.into()))?;
        let journal = Journal::of(&owner.name, &folder);
        let earlier: Vec<Self> = of(&journal)?.filter(|tun| tun.name == self.name).collect();
        let made = CreatedObject::Tun(self.clone());
        if earlier.is_empty() && self.exists() {
            return Err(made.conflict(None));
        }
        let stale = earlier.iter().flat_map(|tun| &tun.addresses);
        let stale = stale.filter(|address| !self.addresses.contains(address)).copied().collect();
        if earlier.last() != Some(&self) {
            journal.add(&made)?;
        }
        Ok(Claim { tun: self, stale })
    }
}

impl Claim {
    /// Gives the existing interface its addresses, and removes those of an earlier daemon.
    pub(crate) fn apply_addresses(&self) -> Result<(), RuleError> {
        let Self { tun: Tun { name, addresses, .. }, stale } = self;
        for Net(address) in stale {
            // A user may have removed it.
            let _ = Program::new("ip", &format!("address del {address} dev {name}")).run();
        }
        for Net(address) in addresses {
            Program::new("ip", &format!("address replace {address} dev {name}")).run()?;
        }
        Ok(())
    }
}

/// Returns the part of an entry of the journal that stays when the daemon has ended.
pub(super) fn kept_part(made: &CreatedObject) -> Option<&CreatedObject> {
    match made {
        CreatedObject::Tun(tun) if tun.exists() => {
            tun.remove_routes();
            Some(made)
        }
        _ => None,
    }
}

/// Removes the interfaces that the daemon made, except for `names`.
pub(super) fn remove_others(names: &[String], owner: &str, folder: &Folder) -> Result<(), RuleError> {
    let journal = Journal::of(owner, folder);
    let (keep, go): (Vec<CreatedObject>, Vec<CreatedObject>) = journal
        .read()?
        .into_iter()
        .partition(|made| !matches!(made, CreatedObject::Tun(tun) if !names.contains(&tun.name)));
    if go.is_empty() {
        return Ok(());
    }
    go.iter().try_for_each(|made| unmake(made).map(drop))?;
    journal.rewrite(keep.into_iter())
}

fn of(journal: &Journal<'_>) -> Result<impl Iterator<Item = Tun>, RuleError> {
    Ok(journal.read()?.into_iter().filter_map(|made| match made {
        CreatedObject::Tun(tun) => Some(tun),
        _ => None,
    }))
}
