//! Privileges that a daemon drops before its first packet.

use crate::config::{StatusGroup, User};
use crate::folder::Folder;
use crate::status::Sandbox;
use caps::{CapSet, Capability, CapsHashSet};
use hopline_linux::accounts::Account;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::OFlags;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// Capabilities that it needs for ever: queues, raw sockets, addresses of other hosts; ports below 1024.
const KEPT_CAPABILITIES: [Capability; 3] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_NET_BIND_SERVICE];

/// Newest requested version of Landlock. An older kernel enforces the restrictions that it knows.
const NEWEST: ABI = ABI::V6;

/// Files that are written in addition to those of its folders. A daemon of root must not write to other devices, such as
/// disks, nor to folders of other services in /run.
const WRITABLE: [&str; 3] = ["/dev/net/tun", "/dev/null", LOCK];

/// Lock of legacy iptables, which keeps its rules in the kernel's older tables.
const LOCK: &str = "/run/xtables.lock";

/// Drops every capability that is not needed, and the right to gain others. If the kernel has Landlock, it also denies
/// writing to other places than `state`, `folders` and [`WRITABLE`], and signals and abstract sockets of other processes.
/// Threads and programs that are started later inherit the restrictions. Returns and logs the restrictions, and those that
/// were not possible.
pub(crate) fn enter(
    state: &Folder,
    folders: &[PathBuf],
    user: Option<&User>,
    group: Option<&StatusGroup>,
) -> Sandbox {
    let mut unrestricted = Vec::new();
    let mut fails = |what: &str, error: &dyn std::fmt::Display| {
        warn!(%error, "not given up: {what}");
        unrestricted.push(format!("{what}: {error}"));
    };
    make_lock();
    if let Err(error) = drop_bounding_set() {
        fails("capabilities that programs could gain", &error);
    }
    if let Some(Err(error)) = user.map(|user| become_account(user.account, group)) {
        fails("user root", &error);
    }
    if let Err(error) = drop_capabilities() {
        fails("capabilities that are not needed", &error);
    }
    if let Err(error) = set_no_new_privs(true) {
        fails("gaining privileges", &error);
    }
    let landlock = restrict(Some(state), folders, NEWEST, notification_scope()).unwrap_or_else(|error| {
        fails("writing to other folders", &error);
        None
    });
    unrestricted.extend(unsupported(landlock).map(str::to_owned));
    let user = geteuid().as_raw();
    if user == 0 {
        unrestricted.push(
            "files of root may be read: `user = \"hopline\"`, or hopline-proxy@.service, runs it as another user".to_owned(),
        );
    }
    let capabilities = caps::read(None, CapSet::Permitted).unwrap_or_default();
    let mut capabilities: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    capabilities.sort_unstable();
    let landlock = landlock.map(|abi| abi as i32 as u32);
    info!(user, landlock, unrestricted = unrestricted.join("; "), "privileges are given up");
    Sandbox { user, capabilities, landlock, unrestricted }
}

/// Changes to another user, and keeps the permitted capabilities. It affects this thread alone: it is the only one, and new
/// threads inherit from it. Of its groups `other` remains.
fn become_account(account: Account, other: Option<&StatusGroup>) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(account.user), Gid::from_raw(account.group));
    let other = other.map(|other| Gid::from_raw(other.id));
    set_keep_capabilities(true)?;
    set_thread_groups(&other.into_iter().chain([group]).collect::<Vec<_>>())?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(set_keep_capabilities(false)?)
}

fn drop_bounding_set() -> Result<(), caps::errors::CapsError> {
    let kept: CapsHashSet = KEPT_CAPABILITIES.into_iter().collect();
    for capability in caps::all() {
        let may_go = !kept.contains(&capability) && caps::has_cap(None, CapSet::Bounding, capability)?;
        // Dropping it from the bounding set needs CAP_SETPCAP, which is dropped last.
        if may_go && caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            caps::drop(None, CapSet::Bounding, capability)?;
        }
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), caps::errors::CapsError> {
    let kept: CapsHashSet = KEPT_CAPABILITIES.into_iter().collect();
    let permitted = caps::read(None, CapSet::Permitted)?;
    let left: CapsHashSet = permitted.intersection(&kept).copied().collect();
    caps::set(None, CapSet::Effective, &left)?;
    caps::set(None, CapSet::Permitted, &left)?;
    // Programs that a user other than root starts have no others (capabilities(7)).
    caps::set(None, CapSet::Inheritable, &left)?;
    caps::set(None, CapSet::Ambient, &left)
}

/// Creates the lock of iptables, which iptables could not create in the sandbox. If that fails, iptables reports it when it
/// needs the lock.
fn make_lock() {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let _ = options.create(true).truncate(false).write(true).mode(0o600).custom_flags(flags).open(LOCK);
}

/// Returns the scope in which the notification socket of the service manager stays reachable: it may be an abstract one.
fn notification_scope() -> ScopeRestriction {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) if socket.to_string_lossy().starts_with('@') => ScopeRestriction::Signals,
        _ => ScopeRestriction::SignalsAndSockets,
    }
}

/// Scope of Landlock: denied access to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeRestriction {
    Signals,
    SignalsAndSockets,
}

/// Restricts this thread, and those that it starts, by the part of `asked` that this kernel supports. Returns the enforced
/// version of Landlock.
fn restrict(
    state: Option<&Folder>,
    folders: &[PathBuf],
    asked: ABI,
    scoped: ScopeRestriction,
) -> Result<Option<ABI>, Box<dyn std::error::Error>> {
    let scopes: BitFlags<Scope> = match scoped {
        ScopeRestriction::Signals => Scope::Signal.into(),
        ScopeRestriction::SignalsAndSockets => Scope::Signal | Scope::AbstractUnixSocket,
    };
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(asked))?;
    if asked >= ABI::V6 {
        rules = rules.scope(scopes)?;
    }
    let mut rules = allow(rules.create()?, Path::new("/"), AccessFs::from_read(asked))?;
    for file in WRITABLE {
        rules = allow(rules, Path::new(file), AccessFs::from_file(asked))?;
    }
    for folder in folders {
        rules = allow(rules, folder, AccessFs::from_all(asked))?;
    }
    if let Some(state) = state {
        rules = rules.add_rule(PathBeneath::new(state.handle(), AccessFs::from_all(asked)))?;
    }
    let RestrictionStatus { ruleset, landlock, .. } = rules.restrict_self()?;
    Ok(match (ruleset, landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi.min(asked)),
        _ => None,
    })
}

/// Returns the version of Landlock that this kernel would enforce, and what it does not restrict.
#[must_use]
pub fn landlock() -> (Option<u32>, Vec<&'static str>) {
    let knows = |abi: &ABI| {
        let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let scopes = *abi < ABI::V6 || strict().scope(Scope::from_all(*abi)).is_ok();
        strict().handle_access(AccessFs::from_all(*abi)).is_ok() && scopes
    };
    // Version 4 adds nothing that is requested.
    let abi = [ABI::V6, ABI::V5, ABI::V3, ABI::V2, ABI::V1].into_iter().find(knows);
    (abi.map(|abi| abi as i32 as u32), unsupported(abi).collect())
}

fn allow(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    // A missing place is skipped: writing there fails with an error of its own.
    match PathFd::new(place) {
        Ok(place) => rules.add_rule(PathBeneath::new(place, access)),
        Err(_) => Ok(rules),
    }
}

/// Returns the gaps of this version of Landlock that a later one closes.
fn unsupported(landlock: Option<ABI>) -> impl Iterator<Item = &'static str> {
    let of = [
        (ABI::V1, "files are written anywhere that the user may: the kernel has no Landlock"),
        (ABI::V3, "files elsewhere may be truncated: Landlock 3 (Linux 6.2) restricts that"),
        (ABI::V5, "devices may be controlled by ioctl: Landlock 5 (Linux 6.10) restricts that"),
        (ABI::V6, "other processes may be signalled: Landlock 6 (Linux 6.12) restricts that"),
    ];
    let version = landlock.map_or(0, |abi| abi as i32);
    // Without Landlock one line is sufficient.
    let all = if landlock.is_none() { 1 } else { of.len() };
    of.into_iter().take(all).filter(move |(since, _)| (*since as i32) > version).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::process::{Command, Stdio};

    /// Checks the rights of a thread that has restricted itself.
    fn restricted<T: Send + 'static>(
        asked: ABI,
        folder: &Path,
        body: impl FnOnce(Option<ABI>) -> T + Send + 'static,
    ) -> T {
        let folders = [folder.to_owned()];
        let run = move || body(restrict(None, &folders, asked, ScopeRestriction::SignalsAndSockets).unwrap());
        std::thread::Builder::new().spawn(run).unwrap().join().unwrap()
    }

    fn denied<T>(result: std::io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    #[test]
    fn only_the_folders_of_the_daemon_and_required_files_are_writable() {
        let [ours, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [inside, outside] = [&ours, &other].map(|folder| folder.path().join("file"));
        fs::write(&outside, "text").unwrap();
        let elsewhere = other.path().join("new");
        restricted(NEWEST, ours.path(), move |landlock| {
            if landlock.is_none() {
                assert_eq!(unsupported(landlock).count(), 1, "what is not restricted is said");
                return;
            }
            fs::write(&inside, "text").unwrap();
            assert_eq!(fs::read_to_string(&outside).unwrap(), "text");
            File::options().write(true).open("/dev/null").unwrap();
            assert!(denied(File::options().append(true).open(&outside)));
            assert!(denied(fs::write(&elsewhere, "")));
            assert!(denied(fs::create_dir(&elsewhere)));
            assert!(denied(fs::remove_file(&outside)));
            assert!(fs::rename(&inside, &elsewhere).is_err());
            for place in ["/dev/hopline-test", "/run/hopline-test", "/tmp/hopline-test"] {
                assert!(denied(File::create(place)), "{place}");
            }
            assert!(
                landlock < Some(ABI::V3) || denied(File::options().write(true).truncate(true).open(&outside))
            );
        });
    }

    #[test]
    fn other_processes_cannot_be_signalled() {
        let folder = tempfile::tempdir().unwrap();
        let mut beside = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let id = Pid::from_child(&beside);
        let (landlock, signalled) =
            restricted(NEWEST, folder.path(), move |landlock| (landlock, kill_process(id, Signal::CONT)));
        let expected = if landlock >= Some(ABI::V6) { Err(rustix::io::Errno::PERM) } else { Ok(()) };
        assert_eq!(signalled, expected);
        beside.kill().unwrap();
        beside.wait().unwrap();
    }

    #[test]
    fn an_older_landlock_restricts_what_it_supports_and_the_rest_is_reported() {
        let [ours, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let outside = other.path().join("file");
        let landlock = restricted(ABI::V1, ours.path(), move |landlock| {
            assert!(landlock.is_none() || denied(fs::write(&outside, "text")));
            landlock
        });
        assert!(landlock <= Some(ABI::V1), "{landlock:?}");
        let beyond = |landlock| unsupported(landlock).collect::<Vec<_>>();
        assert_eq!(beyond(Some(NEWEST)), Vec::<&str>::new());
        assert!(beyond(None)[0].contains("no Landlock") && beyond(None).len() == 1);
        let of_v1 = beyond(Some(ABI::V1));
        assert_eq!(of_v1.len(), 3);
        assert!(of_v1[0].contains("truncated") && of_v1[2].contains("signalled"), "{of_v1:?}");
        assert_eq!(beyond(Some(ABI::V4)).len(), 2);
    }

    #[test]
    fn the_predicted_landlock_restrictions_are_enforced() {
        let folder = tempfile::tempdir().unwrap();
        let enforced = restricted(NEWEST, folder.path(), |landlock| landlock);
        let (foretold, beyond_it) = landlock();
        // Version 4 is the same as version 3 here.
        let number = |abi: ABI| if abi == ABI::V4 { 3 } else { abi as i32 as u32 };
        assert_eq!(foretold, enforced.map(number));
        assert_eq!(beyond_it, unsupported(enforced).collect::<Vec<_>>());
    }
}
