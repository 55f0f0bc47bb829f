//! Services on threads of their own.

use hopline_linux::sched;
use hopline_middlebox::service::{Metric, Service, ServiceStatus};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Number of checks, at intervals of 10 ms, before a test fails: one minute.
const MAX_CHECKS: u32 = 6000;

/// [`Service`] on a thread of its own, in the network namespace of the caller. Dropping it ends the service.
#[derive(Debug)]
pub struct RunningService {
    status: Arc<ServiceStatus>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl RunningService {
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
    /// As [`RunningService::new`].
    #[must_use]
    pub fn in_real_time(service: impl Service + 'static) -> Self {
        Self::on_thread(service, || {
            let _ = sched::request_real_time();
        })
    }

    fn on_thread(service: impl Service + 'static, prepare: impl FnOnce() + Send + 'static) -> Self {
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let ledger = Arc::new(ServiceStatus::default());
        let written = Arc::clone(&ledger);
        let run = move || {
            prepare();
            Box::new(service).run(stopped.as_fd(), &written)
        };
        let thread = thread::Builder::new().name("service".into()).spawn(run).expect("a thread");
        Self { status: ledger, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the last written value of a counter; 0 before the first are written, because a thread may begin late.
    ///
    /// # Panics
    /// If there are counters, and none has this name.
    #[must_use]
    pub fn metric(&self, name: &str) -> u64 {
        let figures = self.status.metrics();
        let found = figures.iter().find(|figure| figure.name == name);
        assert!(figures.is_empty() || found.is_some(), "there is no figure {name} in {figures:?}");
        found.map_or(0, |figure| figure.value)
    }

    /// Returns the last written values of all counters.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        self.status.metrics()
    }

    /// Returns the counters that are not 0, in one line.
    #[must_use]
    pub fn show(&self) -> String {
        let figures = self.status.metrics();
        figures.iter().filter(|f| f.value > 0).map(|f| format!("{}={} ", f.name, f.value)).collect()
    }

    /// Waits until a counter has the right value, and returns it.
    ///
    /// # Panics
    /// If it does not within a minute.
    pub fn await_metric(&self, name: &str, is_right: impl Fn(u64) -> bool) -> u64 {
        for _ in 0..MAX_CHECKS {
            let value = self.metric(name);
            if is_right(value) {
                return value;
            }
            thread::sleep(CHECK_INTERVAL);
        }
        panic!("{name} is {}: {}", self.metric(name), self.show())
    }

    /// Returns whether a notice contains these words.
    #[must_use]
    pub fn has_notice(&self, words: &str) -> bool {
        self.status.notices().iter().any(|notice| notice.text.contains(words))
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

impl Drop for RunningService {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RunningService;
    use hopline_middlebox::service::{Metric, MetricKind, Service, ServiceStatus};
    use std::io::{self, Read};
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixStream;

    /// Service that writes its counters only when it ends.
    struct Late;

    impl Service for Late {
        fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
            let _ = UnixStream::from(stop.try_clone_to_owned()?).read(&mut [0])?;
            ledger.set_metrics(vec![Metric {
                name: "packets",
                doc: "Packets",
                kind: MetricKind::Counter,
                value: 3,
            }]);
            Ok(())
        }
    }

    #[test]
    fn a_metric_is_zero_before_the_first_update() {
        let mut running = RunningService::new(Late);
        assert_eq!(running.metric("packets"), 0);
        running.end();
        assert_eq!(running.metric("packets"), 3);
    }

    #[test]
    #[should_panic(expected = "there is no figure frames")]
    fn an_unknown_metric_is_rejected() {
        let mut running = RunningService::new(Late);
        running.end();
        let _ = running.metric("frames");
    }
}
