use super::*;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::channel;

struct Panics;

impl Service for Panics {
    fn run(self: Box<Self>, _: BorrowedFd<'_>, _: &Ledger) -> io::Result<()> {
        panic!("it cannot go on")
    }
}

#[test]
fn a_service_that_panics_has_ended_as_one_that_says_why() {
    let (events, incoming) = channel();
    let opened = Opened { service: Box::new(Panics), tuner: Tuner::never() };
    let State::Running { thread, .. } = run("x", opened, 3, &Arc::default(), &events).unwrap() else {
        unreachable!("it has a thread")
    };
    let Event::Ended(ended) = incoming.recv().unwrap() else { unreachable!("nobody sends signals") };
    assert_eq!((ended.proxy.as_str(), ended.life), ("x", 3));
    assert!(ended.why.contains("panic"), "{}", ended.why);
    thread.join().unwrap();
}
