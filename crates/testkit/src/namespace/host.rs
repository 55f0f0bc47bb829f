//! What tests ask of a host.

use hopline_net::{Interface, Namespace};
use std::fmt::Display;
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Runs a program with these words on a host.
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

/// Asks ip(8) for something on a host.
///
/// # Panics
/// If it does not do it.
pub fn ip(host: &Namespace, what: &str) {
    succeed(host, "ip", what);
}

/// Asks tc(8) for something on a host.
///
/// # Panics
/// If it does not do it.
pub fn tc(host: &Namespace, what: &str) {
    succeed(host, "tc", what);
}

/// Has a host forward packets of IPv4.
///
/// # Panics
/// If it may not.
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

/// How often something is opened, and the time between.
const TRIES: u32 = 200;
const BETWEEN: Duration = Duration::from_millis(10);

/// Opens what may have been open a moment ago. A program that another test starts holds all that this process has open, ports and queues
/// too, until it has become that program.
///
/// # Panics
/// If it does not open within two seconds.
pub fn opened<T: Send, E: Display + Send>(host: &Namespace, open: impl Fn() -> Result<T, E> + Sync) -> T {
    let again = || {
        thread::sleep(BETWEEN);
        host.run(&open).expect("a thread for the host")
    };
    let mut last = host.run(&open).expect("a thread for the host");
    for _ in 0..TRIES {
        match last {
            Ok(opened) => return opened,
            Err(_) => last = again(),
        }
    }
    last.unwrap_or_else(|error| panic!("{error}"))
}
