//! A router: a namespace that forwards, and has what it forwards wait in a queue.

use hopline_net::nfqueue::{self, Queue};
use hopline_net::{Error, Namespace};
use hopline_testkit::namespace::host::{opened, succeed};

/// The queue that the rules name.
pub(crate) const QUEUE: u16 = 7;

/// Has what is forwarded through `mobile` wait.
pub(crate) fn divert(router: &Namespace, mobile: &str) {
    for way in ["-o", "-i"] {
        rule(router, &format!("-A FORWARD {way} {mobile} -j NFQUEUE --queue-num {QUEUE} --queue-bypass"));
    }
}

/// Queues packets that are forwarded over IPv6.
pub(crate) fn divert_ipv6(router: &Namespace, mobile: &str) {
    for way in ["-o", "-i"] {
        let rule =
            format!("-w -A FORWARD {way} {mobile} -p tcp -j NFQUEUE --queue-num {QUEUE} --queue-bypass");
        succeed(router, "ip6tables", &rule);
    }
}

fn rule(router: &Namespace, rule: &str) {
    succeed(router, "iptables", &format!("-w {rule}"));
}

/// Takes the queue before `mobile`.
pub(crate) fn queue(router: &Namespace, mobile: &str) -> Result<Queue, Error> {
    router.run(|| Queue::open(&nfqueue::Config::new(QUEUE, mobile))).unwrap()
}

/// Takes the queue before `mobile` that somebody has just given back.
pub(crate) fn queue_again(router: &Namespace, mobile: &str) -> Queue {
    opened(router, || Queue::open(&nfqueue::Config::new(QUEUE, mobile)))
}
