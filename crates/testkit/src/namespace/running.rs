//! Services on threads of their own.

use hopline_linux::sched;
use hopline_middlebox::service::{Figure, Ledger, Service};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(10);
/// Number of checks, at intervals of 10 ms, before a test fails: one minute.
const LOOKS: u32 = 6000;

/// [`Service`] on a thread of its own, in the network namespace of the caller. Dropping it ends the service.
#[derive(Debug)]
pub struct Running {
    ledger: Arc<Ledger>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts a service with normal priority.
    ///
    /// # Panics
    /// If the system has no thread or socket left.
    #[must_use]
    pub fn new(service: impl Service + 'static) -> Self {
        Self::on_thread(service, || {})
    }

    /// Starts a service that has priority over other threads, as a daemon does, so that a busy machine does not delay it.
    ///
    /// # Panics
    /// As [`Running::new`].
    #[must_use]
    pub fn on_time(service: impl Service + 'static) -> Self {
        Self::on_thread(service, || {
            let _ = sched::be_on_time();
        })
    }

    fn on_thread(service: impl Service + 'static, prepare: impl FnOnce() + Send + 'static) -> Self {
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let ledger = Arc::new(Ledger::default());
        let written = Arc::clone(&ledger);
        let run = move || {
            prepare();
            Box::new(service).run(stopped.as_fd(), &written)
        };
        let thread = thread::Builder::new().name("service".into()).spawn(run).expect("a thread");
        Self { ledger, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the last written value of a counter; 0 before the first are written, because a thread may begin late.
    ///
    /// # Panics
    /// If there are counters, and none has this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        let figures = self.ledger.read();
        let found = figures.iter().find(|figure| figure.name == name);
        assert!(figures.is_empty() || found.is_some(), "there is no figure {name} in {figures:?}");
        found.map_or(0, |figure| figure.value)
    }

    /// Returns the last written values of all counters.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        self.ledger.read()
    }

    /// Returns the counters that are not 0, in one line.
    #[must_use]
    pub fn show(&self) -> String {
        let figures = self.ledger.read();
        figures.iter().filter(|f| f.value > 0).map(|f| format!("{}={} ", f.name, f.value)).collect()
    }

    /// Waits until a counter has the right value, and returns it.
    ///
    /// # Panics
    /// If it does not within a minute.
    pub fn await_figure(&self, name: &str, is_right: impl Fn(u64) -> bool) -> u64 {
        for _ in 0..LOOKS {
            let value = self.figure(name);
            if is_right(value) {
                return value;
            }
            thread::sleep(STEP);
        }
        panic!("{name} is {}: {}", self.figure(name), self.show())
    }

    /// Returns whether a notice contains these words.
    #[must_use]
    pub fn says(&self, words: &str) -> bool {
        self.ledger.notices().iter().any(|notice| notice.text.contains(words))
    }

    /// Ends the service, which brings its counters up to date. Has no effect on a service that has ended.
    ///
    /// # Panics
    /// If the service failed.
    pub fn end(&mut self) {
        self.try_end().expect("the service runs until it is ended");
    }

    /// Ends the service, and returns its result.
    ///
    /// # Errors
    /// Error of the service.
    ///
    /// # Panics
    /// If the service panicked.
    pub fn try_end(&mut self) -> io::Result<()> {
        self.stop = None;
        self.wait()
    }

    /// Waits until the service has ended by itself.
    ///
    /// # Errors
    /// Error of the service.
    ///
    /// # Panics
    /// If the service panicked.
    pub fn wait(&mut self) -> io::Result<()> {
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("the service does not panic"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Running;
    use hopline_middlebox::service::{Figure, FigureKind, Ledger, Service};
    use std::io::{self, Read};
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixStream;

    /// Service that writes its counters only when it ends.
    struct Late;

    impl Service for Late {
        fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
            let _ = UnixStream::from(stop.try_clone_to_owned()?).read(&mut [0])?;
            ledger.write(vec![Figure {
                name: "packets",
                doc: "Packets",
                kind: FigureKind::Counter,
                value: 3,
            }]);
            Ok(())
        }
    }

    #[test]
    fn a_figure_is_zero_until_the_first_are_written() {
        let mut running = Running::new(Late);
        assert_eq!(running.figure("packets"), 0);
        running.end();
        assert_eq!(running.figure("packets"), 3);
    }

    #[test]
    #[should_panic(expected = "there is no figure frames")]
    fn a_name_that_no_figure_has_is_refused() {
        let mut running = Running::new(Late);
        running.end();
        let _ = running.figure("frames");
    }
}
