//! What a daemon gives up before it meets its first packet.

use caps::{CapSet, Capability, CapsHashSet};
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};
use rustix::thread::set_no_new_privs;
use std::path::{Path, PathBuf};
use tracing::{debug, warn};

/// What it needs as long as it lives: queues, raw sockets, other hosts' addresses; ports below 1024.
const KEPT: [Capability; 3] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_NET_BIND_SERVICE];

/// Where it may write beside its own folder: /dev for TUN, /run for the lock of iptables.
const WRITTEN: [&str; 2] = ["/dev", "/run"];

/// Gives up every capability that is not needed, the right to gain others, and writing outside of `folders`, /dev and /run where the
/// kernel has Landlock. Threads and programs that are started later have no more. What cannot be given up is told.
pub(crate) fn enter(folders: &[PathBuf]) {
    if let Err(error) = drop_capabilities() {
        warn!(%error, "capabilities that are not needed could not be given up");
    }
    if let Err(error) = set_no_new_privs(true) {
        warn!(%error, "the right to gain privileges could not be given up");
    }
    match confine(folders) {
        Ok(RulesetStatus::NotEnforced) => debug!("this kernel has no Landlock"),
        Ok(_) => {}
        Err(error) => warn!(%error, "writing to other folders could not be given up"),
    }
}

fn drop_capabilities() -> Result<(), caps::errors::CapsError> {
    let kept: CapsHashSet = KEPT.into_iter().collect();
    for capability in caps::all() {
        let may_go = !kept.contains(&capability) && caps::has_cap(None, CapSet::Bounding, capability)?;
        // Dropping it from the bounding set takes CAP_SETPCAP, which goes last.
        if may_go && caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            caps::drop(None, CapSet::Bounding, capability)?;
        }
    }
    let permitted = caps::read(None, CapSet::Permitted)?;
    let left: CapsHashSet = permitted.intersection(&kept).copied().collect();
    caps::set(None, CapSet::Effective, &left)?;
    caps::set(None, CapSet::Permitted, &left)
}

fn confine(folders: &[PathBuf]) -> Result<RulesetStatus, Box<dyn std::error::Error>> {
    let abi = ABI::V1;
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(abi))?.create()?;
    rules = rules.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::from_read(abi)))?;
    for place in WRITTEN.iter().map(Path::new).chain(folders.iter().map(PathBuf::as_path)) {
        // In a folder that is not there nobody writes: whoever wants to will say so.
        let Ok(place) = PathFd::new(place) else { continue };
        rules = rules.add_rule(PathBeneath::new(place, AccessFs::from_all(abi)))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
