//! A router: a namespace that forwards, and has what it forwards wait in a queue.

use hopline_net::nfqueue::{self, Queue};
use hopline_net::{Error, Namespace};
use std::fs;
use std::process::{Command, Stdio};

/// The queue that the rules name.
pub(crate) const QUEUE: u16 = 7;

/// Has a namespace forward.
pub(crate) fn forward(router: &Namespace) {
    router.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
}

/// Has what is forwarded through `mobile` wait.
pub(crate) fn divert(router: &Namespace, mobile: &str) {
    for way in ["-o", "-i"] {
        rule(router, &format!("-A FORWARD {way} {mobile} -j NFQUEUE --queue-num {QUEUE} --queue-bypass"));
    }
}

fn rule(router: &Namespace, rule: &str) {
    succeed(router, "iptables", &format!("-w {rule}"));
}

/// Asks ip(8) for something on a host.
pub(crate) fn ip(host: &Namespace, what: &str) {
    succeed(host, "ip", what);
}

/// Asks tc(8) for something on a host.
pub(crate) fn tc(host: &Namespace, what: &str) {
    succeed(host, "tc", what);
}

fn succeed(host: &Namespace, program: &str, arguments: &str) {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).stdout(Stdio::null());
    let ended = host.spawn(command).unwrap().wait().unwrap();
    assert!(ended.success(), "{program} {arguments}: {ended}");
}

/// Takes the queue before `mobile`.
pub(crate) fn queue(router: &Namespace, mobile: &str) -> Result<Queue, Error> {
    router.run(|| Queue::open(&nfqueue::Config::new(QUEUE, mobile))).unwrap()
}
