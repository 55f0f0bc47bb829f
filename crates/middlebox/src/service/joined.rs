//! Two services that run as one.

use super::{Service, ServiceStatus};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

/// Two services with a common end: when either ends, so does the other. The names of their metrics must differ.
pub struct JoinedServices(pub Box<dyn Service>, pub Box<dyn Service>);

impl Service for JoinedServices {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self(first, second) = *self;
        let ledgers = ledger.split::<2>();
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        thread::scope(|scope| {
            let run = |service: Box<dyn Service>, ledger: Arc<ServiceStatus>| {
                let end = &end;
                move || {
                    let ended = service.run(end.as_fd(), &ledger);
                    // Stop the other one, too.
                    signal(end);
                    ended
                }
            };
            let [of_first, of_second] = ledgers;
            let threads = [scope.spawn(run(first, of_first)), scope.spawn(run(second, of_second))];
            let ended = wait_for([stop, end.as_fd()]);
            signal(&end);
            let ends = threads.map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            ended.and(ends.into_iter().collect())
        })
    }
}

/// Makes the descriptor readable.
fn signal(end: &OwnedFd) {
    // A full counter is readable, too.
    let _ = rustix::io::write(end, &1u64.to_ne_bytes());
}

/// Waits until one of the descriptors is readable.
fn wait_for(either: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut waited = either.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    loop {
        match poll(&mut waited, None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metric;
    use super::*;

    /// Runs until it is stopped, or ends at once with an error.
    enum Stub {
        Patient(&'static str),
        Broken,
    }

    impl Service for Stub {
        fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
            match *self {
                Self::Broken => Err(io::ErrorKind::NotConnected.into()),
                Self::Patient(name) => {
                    ledger.set_metrics(vec![Metric::counter(name, "", 7)]);
                    wait_for([stop, stop])
                }
            }
        }
    }

    fn run(first: Stub, second: Stub, stop: &OwnedFd) -> (io::Result<()>, Vec<Metric>) {
        let ledger = ServiceStatus::default();
        let ended = Box::new(JoinedServices(Box::new(first), Box::new(second))).run(stop.as_fd(), &ledger);
        (ended, ledger.metrics())
    }

    #[test]
    fn both_services_end_when_stopped_and_both_have_metrics() {
        let stop = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let (ended, figures) = run(Stub::Patient("a"), Stub::Patient("b"), &stop);
        ended.unwrap();
        assert_eq!(figures.iter().map(|figure| figure.name).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn when_one_service_fails_the_other_ends_and_the_reason_is_reported() {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        for stubs in [[Stub::Patient("a"), Stub::Broken], [Stub::Broken, Stub::Patient("a")]] {
            let [first, second] = stubs;
            let (ended, _) = run(first, second, &stop);
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::NotConnected);
        }
    }
}
