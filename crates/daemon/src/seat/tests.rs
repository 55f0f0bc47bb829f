use super::*;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::channel;

struct Panics;

impl Service for Panics {
    fn run(self: Box<Self>, _: BorrowedFd<'_>, _: &Ledger) -> io::Result<()> {
        panic!("it cannot go on")
    }
}

/// Service that ends at once.
struct Returns;

impl Service for Returns {
    fn run(self: Box<Self>, _: BorrowedFd<'_>, _: &Ledger) -> io::Result<()> {
        Ok(())
    }
}

/// Service that fails when it is told to end.
struct Stumbles;

impl Service for Stumbles {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, _: &Ledger) -> io::Result<()> {
        poll(&mut [PollFd::from_borrowed_fd(stop, PollFlags::IN)], None)?;
        Err(io::ErrorKind::NotConnected.into())
    }
}

fn start(service: impl Service + 'static, events: &Sender<Event>) -> Seat {
    let text = "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n";
    let source = hopline_config::source::Source { name: "p.toml".into(), text: text.into() };
    let proxy = crate::config::Config::parse(&Arc::new(source)).unwrap().proxies.remove(0);
    Seat::start(proxy, Opened { service: Box::new(service), tuner: Tuner::never() }, events).unwrap()
}

#[test]
fn a_service_that_ends_untold_has_ended_as_one_that_says_why() {
    let (events, incoming) = channel();
    ends(&mut start(Panics, &events), &incoming, "panic");
    ends(&mut start(Returns, &events), &incoming, "nobody told it to");
}

/// Checks that the seat waits for another attempt, with this reason.
fn ends(seat: &mut Seat, incoming: &std::sync::mpsc::Receiver<Event>, says: &str) {
    assert_eq!(seat.status().state, Condition::Running);
    let Event::Ended(ended) = incoming.recv().unwrap() else { unreachable!("nobody sends signals") };
    assert_eq!(ended.proxy, "snoop");
    let earlier = Ended { life: ended.life.wrapping_sub(1), proxy: ended.proxy.clone(), why: String::new() };
    seat.has_ended(&earlier);
    assert_eq!(seat.status().state, Condition::Running, "another service has ended");
    seat.has_ended(&ended);
    let status = seat.status();
    assert_eq!(status.state, Condition::Waiting);
    assert!(status.why.as_ref().is_some_and(|why| why.contains(says)), "{status:?}");
    assert!(seat.due().is_some());
}

#[test]
fn what_a_service_says_that_was_told_to_end_is_no_failure() {
    let (events, incoming) = channel();
    let mut seat = start(Stumbles, &events);
    drop(seat.tell_to_end());
    assert!(incoming.try_recv().is_err());
    assert_eq!(seat.status().state, Condition::Waiting);
}
