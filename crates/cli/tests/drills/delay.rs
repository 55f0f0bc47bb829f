//! Path with a delay towards a router, without `netem`, which this kernel may lack.

use crate::drills::world::now;
use crate::proxy::world::shell;
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{Config, Queue};
use hopline_proxy::{PacketIo, PacketVerdict, Postpone};
use hopline_testkit::namespace::host::open_with_retries;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const QUEUE: u16 = 99;

/// Delays segments until it is dropped. They wait in a queue of the router's kernel. In a queue of the sender's kernel they
/// would count as not sent, and TCP would hold back all but two (`tcp_limit_output_bytes`).
pub(crate) struct Delay {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Delay {
    /// Delays packets that arrive at `router` on `interface`.
    pub(crate) fn of(router: &Namespace, interface: &str, delay: Duration) -> Self {
        for program in ["iptables", "ip6tables"] {
            shell(
                router,
                &format!(
                    "{program} -w -t raw -A PREROUTING -i {interface} -p tcp -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
                ),
            );
        }
        let queue = open_with_retries(router, || Queue::open(&Config::new(QUEUE, interface)));
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let stopped = Arc::clone(&stop);
        let run = move || carry(queue, &stopped, delay);
        Self { stop, thread: Some(thread::Builder::new().name("delay".into()).spawn(run).unwrap()) }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        // Its panic message is on stderr already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry(mut queue: Queue, stop: &OwnedFd, delay: Duration) {
    let mut waiting = VecDeque::new();
    loop {
        while let Some(arrival) = queue.receive().unwrap() {
            queue.postpone(&arrival).unwrap();
            waiting.push_back((now() + delay, arrival));
        }
        while waiting.front().is_some_and(|(due, _)| *due <= now()) {
            let (_, arrival) = waiting.pop_front().expect("there is a first one");
            queue.set_verdict(arrival, PacketVerdict::Forward).unwrap();
        }
        queue.flush().unwrap();
        let wait = waiting.front().map(|(due, _)| due.saturating_duration_since(now()));
        let wait = Timespec::try_from(wait.unwrap_or(Duration::from_secs(1))).unwrap();
        let mut fds = [stop.as_fd(), queue.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        poll(&mut fds, Some(&wait)).unwrap();
        if !fds[0].revents().is_empty() {
            return;
        }
    }
}
