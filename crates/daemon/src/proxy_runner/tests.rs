use super::*;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::channel;

struct Panics;

impl Service for Panics {
    fn run(self: Box<Self>, _: BorrowedFd<'_>, _: &ServiceStatus) -> io::Result<()> {
        panic!("it cannot go on")
    }
}

/// Service that ends at once.
struct Returns;

impl Service for Returns {
    fn run(self: Box<Self>, _: BorrowedFd<'_>, _: &ServiceStatus) -> io::Result<()> {
        Ok(())
    }
}

/// Service that fails when it is told to end.
struct FailsOnStop;

impl Service for FailsOnStop {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, _: &ServiceStatus) -> io::Result<()> {
        poll(&mut [PollFd::from_borrowed_fd(stop, PollFlags::IN)], None)?;
        Err(io::ErrorKind::NotConnected.into())
    }
}

fn start(service: impl Service + 'static, events: &Sender<Event>) -> ProxyRunner {
    let text = "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n";
    let source = hopline_config::source::Source { name: "p.toml".into(), text: text.into() };
    let proxy = crate::config::Config::parse(&Arc::new(source)).unwrap().proxies.remove(0);
    ProxyRunner::start(proxy, Opened { service: Box::new(service), tuner: Tuner::unchangeable() }, events)
        .unwrap()
}

#[test]
fn a_service_that_ends_without_an_error_counts_as_failed() {
    let (events, incoming) = channel();
    assert_failed(&mut start(Panics, &events), &incoming, "panic");
    assert_failed(&mut start(Returns, &events), &incoming, "nobody told it to");
}

/// Checks that the seat waits for another attempt, with this reason.
fn assert_failed(seat: &mut ProxyRunner, incoming: &std::sync::mpsc::Receiver<Event>, says: &str) {
    assert_eq!(seat.status().state, Condition::Running);
    let Event::Ended(ended) = incoming.recv().unwrap() else { unreachable!("nobody sends signals") };
    assert_eq!(ended.proxy, "snoop");
    let earlier = ServiceEnd {
        generation: ended.generation.wrapping_sub(1),
        proxy: ended.proxy.clone(),
        reason: String::new(),
    };
    seat.handle_end(&earlier);
    assert_eq!(seat.status().state, Condition::Running, "another service has ended");
    seat.handle_end(&ended);
    let status = seat.status();
    assert_eq!(status.state, Condition::Waiting);
    assert!(status.why.as_ref().is_some_and(|why| why.contains(says)), "{status:?}");
    assert!(seat.retry_at().is_some());
}

#[test]
fn an_error_after_a_stop_request_is_no_failure() {
    let (events, incoming) = channel();
    let mut seat = start(FailsOnStop, &events);
    drop(seat.stop());
    assert!(incoming.try_recv().is_err());
    assert_eq!(seat.status().state, Condition::Waiting);
}
