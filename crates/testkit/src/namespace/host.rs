//! Commands of tests on a host.

use hopline_linux::{Interface, Namespace};
use std::fmt::Display;
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Runs a program with these arguments on a host.
///
/// # Panics
/// If it does not succeed.
pub fn succeed(host: &Namespace, program: &str, arguments: &str) {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).stdout(Stdio::null());
    let ended =
        host.spawn(command).and_then(|mut child| child.wait()).unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(ended.success(), "{program} {arguments}: {ended}");
}

/// Runs ip(8) on a host.
///
/// # Panics
/// If it fails.
pub fn ip(host: &Namespace, what: &str) {
    succeed(host, "ip", what);
}

/// Runs tc(8) on a host.
///
/// # Panics
/// If it fails.
pub fn tc(host: &Namespace, what: &str) {
    succeed(host, "tc", what);
}

/// Enables IPv4 forwarding on a host.
///
/// # Panics
/// If it is not permitted.
pub fn forward(router: &Namespace) {
    let written = router.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    written.expect("a thread for the host").expect("this process may set it");
}

/// Gives an interface of the calling thread's host an address in a network of `prefix` bits, and brings it up.
///
/// # Panics
/// If there is no such interface.
pub fn address(interface: &str, address: Ipv4Addr, prefix: u8) {
    let interface = Interface::named(interface).expect("a socket to ask by");
    interface.set_address(address, prefix).expect("the interface is there");
    interface.up().expect("the interface is there");
}

/// Number of attempts to open something, and the interval between them.
const ATTEMPTS: u32 = 200;
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Opens something that may still be open elsewhere. A program that another test starts inherits all descriptors of this
/// process, ports and queues too, until it has executed.
///
/// # Panics
/// If it does not open within two seconds.
pub fn open_with_retries<T: Send, E: Display + Send>(
    host: &Namespace,
    open: impl Fn() -> Result<T, E> + Sync,
) -> T {
    let again = || {
        thread::sleep(RETRY_INTERVAL);
        host.run(&open).expect("a thread for the host")
    };
    let mut last = host.run(&open).expect("a thread for the host");
    for _ in 0..ATTEMPTS {
        match last {
            Ok(opened) => return opened,
            Err(_) => last = again(),
        }
    }
    last.unwrap_or_else(|error| panic!("{error}"))
}
