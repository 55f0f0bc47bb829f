//! Preparation of a host inside its kernel.

use super::plan::{PLAN_FILE, Plan};
use super::programs;
use hopline_linux::{Error, Interface, Network};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::system::{RebootCommand, reboot, sethostname};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

/// Path by which a kernel starts its first process: a link in the working directory of the kernel's process.
pub const PATH: &str = "/proc/self/cwd/init";
/// Name of the interface of each host, as in real time.
pub const INTERFACE: &str = "air0";
/// Name that the kernel gives it.
const KERNEL_NAME: &str = "eth0";

/// Folder of the host outside the kernel, as it is seen inside.
const FOLDER: &str = "/run/hopline";
/// The same as the process of the kernel names it: its working directory.
const FOLDER_OUTSIDE: &str = "/proc/self/cwd";

/// Time at which the interface is configured, in nanoseconds: later than all that depends on names of folders has been done,
/// so that their lengths do not shift what follows.
const PREPARED_NS: u64 = 20_000_000;

/// Folders that programs may write to: the root is read only. Each is empty at the start, but for the working directory.
pub const TEMPORARY: [&str; 3] = ["/run", "/tmp", "/var/tmp"];

/// Settings of the host, as in real time: it forwards, and sends no redirects. An idle one sends as little as possible. The
/// interface has been there from boot on, so that defaults come too late for it.
const SETTINGS: [(&str, &str); 12] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv4/conf/eth0/send_redirects", "0"),
    ("ipv4/conf/eth0/accept_redirects", "0"),
    ("ipv6/conf/eth0/accept_dad", "0"),
    ("ipv6/conf/eth0/router_solicitations", "0"),
];

/// Runs the plan of this host, and switches it off. Must be the first process of a kernel.
///
/// # Errors
/// If the host could not be prepared. The caller prints the error on the console, and ends, whereupon the kernel panics.
pub fn run() -> io::Result<()> {
    mount_all()?;
    let plan: Plan = serde_json::from_slice(&fs::read(Path::new(FOLDER).join(PLAN_FILE))?)?;
    show_folder(&plan.folder)?;
    sethostname(plan.name.as_bytes())?;
    replace_hosts_file(&plan.hosts_file)?;
    programs::sleep_until(PREPARED_NS);
    configure(&plan).map_err(io::Error::other)?;
    programs::run(&plan, Path::new(FOLDER))?;
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff)?;
    Ok(())
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
fn show_folder(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let place = CString::new(folder.as_os_str().as_encoded_bytes())?;
    mount("hostfs", folder, "hostfs", MountFlags::RDONLY, Some(place.as_c_str()))?;
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
        let path = format!("/proc/sys/net/{name}");
        fs::write(&path, value).map_err(|e| Error::new(format!("writing {path}"), e))?;
    }
    Interface::named("lo")?.up()?;
    Interface::named(KERNEL_NAME)?.rename(INTERFACE)?;
    let interface = Interface::named(INTERFACE)?;
    interface.set_address(plan.address, plan.prefix)?;
    interface.up_with_multicast()?;
    for &(to, via) in &plan.routes {
        interface.route(Network { address: to.into(), prefix: 32 }, Some(via.into()))?;
    }
    Ok(())
}
