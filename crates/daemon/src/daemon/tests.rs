use super::*;
use crate::open::Tuner;
use crate::status::Condition;
use hopline_middlebox::service::{Service, ServiceStatus};
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Service that ends after it is told to and the test permits it.
struct Slow(Receiver<()>);

impl Service for Slow {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, _: &ServiceStatus) -> io::Result<()> {
        poll(&mut [PollFd::from_borrowed_fd(stop, PollFlags::IN)], None)?;
        self.0.recv().map_err(io::Error::other)
    }
}

fn proxies(text: &str) -> Vec<Proxy> {
    let source = hopline_config::source::Source { name: "p.toml".into(), text: text.into() };
    Config::parse(&Arc::new(source)).unwrap().proxies
}

fn proxy_runner(proxy: &Proxy, events: &Sender<Event>) -> (ProxyRunner, Sender<()>) {
    let (may_end, ends) = channel();
    let opened = Opened { service: Box::new(Slow(ends)), tuner: Tuner::unchangeable() };
    (ProxyRunner::start(proxy.clone(), opened, events).unwrap(), may_end)
}

#[test]
fn status_queries_are_answered_while_a_proxy_is_slow_to_end() {
    let two = |port: u16| {
        let text = format!(
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n[[proxy]]\nkind = \"split\"\ninterface = \"w\"\nports = [{port}]\n"
        );
        proxies(&text)
    };
    let (before, after) = (two(80), two(443));
    let (events, incoming) = channel();
    let (seats, may_end): (Vec<ProxyRunner>, Vec<Sender<()>>) =
        before.iter().map(|proxy| proxy_runner(proxy, &events)).unzip();
    let sandbox = Sandbox { user: 0, capabilities: Vec::new(), landlock: None, unrestricted: Vec::new() };
    let inner = Mutex::new(Inner { reloads: 0, connection_tracking: None, proxies: seats });
    let shared = Arc::new(Shared { name: "x".into(), sandbox, since: now(), inner });
    let (changed, begun) = (shared.clone(), events.clone());
    let change = thread::Builder::new()
        .spawn(move || changed.change(&after, |proxy| proxy_runner(&proxy, &begun).0))
        .unwrap();
    let (answers, answer) = channel();
    let asked = shared.clone();
    let ask = move || {
        // Until the end is in progress.
        while asked.status().proxies.iter().all(|proxy| proxy.state == Condition::Running) {
            thread::yield_now();
        }
        answers.send(asked.status()).unwrap();
    };
    thread::Builder::new().spawn(ask).unwrap();
    let status = answer.recv_timeout(Duration::from_secs(20)).expect("an answer before it has ended");
    let states: Vec<_> = status.proxies.iter().map(|proxy| (proxy.name.as_str(), proxy.state)).collect();
    assert_eq!(states, [("snoop", Condition::Running), ("split", Condition::Waiting)]);
    for may in &may_end {
        may.send(()).unwrap();
    }
    change.join().unwrap();
    let states: Vec<_> = shared.status().proxies.into_iter().map(|proxy| (proxy.name, proxy.state)).collect();
    assert_eq!(states, [("snoop".into(), Condition::Running), ("split".into(), Condition::Running)]);
    assert!(incoming.try_recv().is_err(), "what was told to end has not ended against its will");
}
