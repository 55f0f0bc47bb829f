//! A router: a namespace that forwards packets and queues them.

use hopline_linux::{Error, Namespace};
use hopline_middlebox::nfqueue::{self, Queue};
use hopline_testkit::namespace::host::{open_with_retries, succeed};

/// Number of the queue in the rules.
pub(crate) const QUEUE: u16 = 7;

/// Queues packets that are forwarded through `mobile`.
pub(crate) fn divert(router: &Namespace, mobile: &str) {
    for way in ["-o", "-i"] {
        rule(router, &format!("-A FORWARD {way} {mobile} -j NFQUEUE --queue-num {QUEUE} --queue-bypass"));
    }
}

/// Queues IPv6 packets that are forwarded through `mobile`.
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

/// Binds the queue before `mobile`.
pub(crate) fn queue(router: &Namespace, mobile: &str) -> Result<Queue, Error> {
    router.run(|| Queue::open(&nfqueue::Config::new(QUEUE, mobile))).unwrap()
}

/// Binds the queue before `mobile` again, right after its release.
pub(crate) fn queue_again(router: &Namespace, mobile: &str) -> Queue {
    open_with_retries(router, || Queue::open(&nfqueue::Config::new(QUEUE, mobile)))
}
