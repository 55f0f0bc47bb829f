//! Preparation of a host inside its kernel.

use super::plan::{PLAN_FILE, Plan};
use super::programs;
use hopline_linux::{Error, Interface, Network};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::system::{RebootCommand, reboot, sethostname};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Path by which a kernel starts its first process: a link in the working directory of the kernel's process.
pub const PATH: &str = "/proc/self/cwd/init";
/// Folder of the host outside the kernel, as it is seen inside.
const FOLDER: &str = "/run/hopline";
/// The same as the process of the kernel names it: its working directory.
const FOLDER_OUTSIDE: &str = "/proc/self/cwd";
/// Name of a folder in it with the folders between a temporary folder and the working directory of programs.
const BETWEEN: &str = "between";
/// Place of the working directory of programs where no temporary folder hides it.
const SHOWN_AGAIN: &str = "/run/current";

/// Longest host name of Linux, bytes: `__NEW_UTS_LEN` of linux/utsname.h.
const MAX_HOST_NAME: usize = 64;

/// Time at which interfaces are configured, in nanoseconds: later than all that depends on names of folders has been done,
/// so that their lengths do not shift what follows.
pub(crate) const PREPARED_NS: u64 = 20_000_000;

/// Folders that programs may write to: the root is read only. Each is empty at the start, but for the working directory.
pub const TEMPORARY: [&str; 3] = ["/run", "/tmp", "/var/tmp"];

/// Settings of the host, as in real time: it forwards, and sends no redirects. An idle one sends as little as possible.
const SETTINGS: [(&str, &str); 8] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// The same for an interface: it has been there from boot on, so that defaults come too late for it.
const INTERFACE_SETTINGS: [(&str, &str); 4] = [
    ("ipv4", "send_redirects"),
    ("ipv4", "accept_redirects"),
    ("ipv6", "accept_dad"),
    ("ipv6", "router_solicitations"),
];

/// Runs the plan of this host, and switches it off. Must be the first process of a kernel.
///
/// # Errors
/// If the host could not be prepared. The caller prints the error on the console, and ends, whereupon the kernel panics.
pub fn run() -> io::Result<()> {
    mount_all()?;
    let plan: Plan = serde_json::from_slice(&fs::read(Path::new(FOLDER).join(PLAN_FILE))?)?;
    show_folder(&plan.folder)?;
    sethostname(host_name(&plan.name).as_bytes())?;
    replace_hosts_file(&plan.hosts_file)?;
    programs::sleep_until(PREPARED_NS);
    configure(&plan).map_err(io::Error::other)?;
    programs::run(&plan, Path::new(FOLDER))?;
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff)?;
    Ok(())
}

/// Returns as much of a node's name as a kernel takes.
fn host_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_HOST_NAME)]
}

fn mount_all() -> io::Result<()> {
    for place in TEMPORARY {
        // Not every system has all of them.
        let _ = mount_at("tmpfs", place, None);
    }
    fs::create_dir_all(FOLDER)?;
    mount_at("hostfs", FOLDER, Some(FOLDER_OUTSIDE))?;
    mount_at("proc", "/proc", None)?;
    mount_at("sysfs", "/sys", None)?;
    fs::create_dir_all("/dev/pts")?;
    mount_at("devpts", "/dev/pts", None)?;
    fs::create_dir_all("/dev/shm")?;
    mount_at("tmpfs", "/dev/shm", None)
}

/// Shows the working directory of programs, read only, if a temporary folder hides it.
///
/// Folders of tmpfs take random numbers of the kernel when they are made, and system calls take time, which enters such
/// numbers. So that the depth of the directory does not count, exactly one folder is made, and two file systems are
/// mounted, wherever the directory is. The folders between have been made outside of the kernel ([`folder_between`]).
fn show_folder(folder: &Path) -> io::Result<()> {
    let place = Shown::of(folder);
    match fs::create_dir(&place.top) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    mount_read_only(&place.top, &Path::new(FOLDER_OUTSIDE).join(BETWEEN))?;
    mount_read_only(&place.top.join(&place.below), folder)
}

/// Returns the folder that must exist in that of a host, so that it can show this working directory.
pub(crate) fn folder_between(folder: &Path) -> PathBuf {
    Path::new(BETWEEN).join(Shown::of(folder).below)
}

/// Place at which the working directory is shown.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// Folder in a temporary folder.
    top: PathBuf,
    /// Path of the directory below it, maybe empty.
    below: PathBuf,
}

impl Shown {
    fn of(folder: &Path) -> Self {
        let hidden = TEMPORARY.iter().find_map(|place| {
            let mut inside = folder.strip_prefix(place).ok()?.components();
            let top = Path::new(place).join(inside.next()?);
            Some(Self { top, below: inside.as_path().to_owned() })
        });
        // A directory that nothing hides is shown once more, since that costs as much as showing another.
        hidden.unwrap_or_else(|| Self { top: SHOWN_AGAIN.into(), below: PathBuf::new() })
    }
}

fn mount_read_only(place: &Path, outside: &Path) -> io::Result<()> {
    let outside = CString::new(outside.as_os_str().as_encoded_bytes())?;
    mount("hostfs", place, "hostfs", MountFlags::RDONLY, Some(outside.as_c_str()))?;
    Ok(())
}

fn mount_at(kind: &str, place: &str, data: Option<&str>) -> io::Result<()> {
    let data = data.map(CString::new).transpose()?;
    mount(kind, place, kind, MountFlags::empty(), data.as_deref())
        .map_err(|e| io::Error::new(io::Error::from(e).kind(), format!("mounting {kind} at {place}: {e}")))
}

fn replace_hosts_file(text: &str) -> io::Result<()> {
    fs::write("/run/hosts", text)?;
    // A machine without the file resolves no names at nodes.
    let _ = mount_bind("/run/hosts", "/etc/hosts");
    Ok(())
}

fn configure(plan: &Plan) -> Result<(), Error> {
    for (name, value) in SETTINGS {
        set(name, value)?;
    }
    for number in 0..plan.interfaces.len() {
        for (family, name) in INTERFACE_SETTINGS {
            set(&format!("{family}/conf/{}/{name}", kernel_name(number)), "0")?;
        }
    }
    Interface::named("lo")?.up()?;
    let mut interfaces = Vec::new();
    for (number, planned) in plan.interfaces.iter().enumerate() {
        Interface::named(kernel_name(number))?.rename(&planned.name)?;
        let interface = Interface::named(&planned.name)?;
        interface.set_address(plan.address, planned.prefix)?;
        interface.up_with_multicast()?;
        if let Some(neighbour) = planned.neighbour {
            interface.route(Network { address: neighbour.into(), prefix: 32 }, None)?;
        }
        interfaces.push(interface);
    }
    for &(to, via) in &plan.routes {
        let towards = plan.interfaces.iter().position(|interface| interface.neighbour == Some(via));
        let interface = &interfaces[towards.unwrap_or(0)];
        interface.route(Network { address: to.into(), prefix: 32 }, Some(via.into()))?;
    }
    Ok(())
}

fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).map_err(|e| Error::new(format!("writing {path}"), e))
}

/// Returns the name that the kernel gives to the interface of this number.
fn kernel_name(number: usize) -> String {
    format!("eth{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_of_a_node_is_cut_between_characters() {
        assert_eq!(host_name("relay"), "relay");
        let long = format!("{}ä", "x".repeat(63));
        assert_eq!(host_name(&long), "x".repeat(63));
    }

    #[test]
    fn one_folder_is_made_wherever_the_working_directory_is() {
        let shown = |folder: &str| {
            let Shown { top, below } = Shown::of(Path::new(folder));
            (top.display().to_string(), below.display().to_string())
        };
        let of = |top: &str, below: &str| (top.to_owned(), below.to_owned());
        assert_eq!(shown("/tmp/a"), of("/tmp/a", ""));
        assert_eq!(shown("/var/tmp/a/b/c"), of("/var/tmp/a", "b/c"));
        for folder in ["/", "/tmp", "/home/user", "/tmpfolder/a"] {
            assert_eq!(shown(folder), of("/run/current", ""));
        }
    }
}
