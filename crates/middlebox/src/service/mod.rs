//! Services: the parts of a daemon that run until they are stopped, and report metrics and notices meanwhile.

mod joined;
mod notice;

pub use joined::JoinedServices;
pub use notice::{Notice, NoticeListener, Severity};

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A running part of a daemon: a queue with a middlebox behind it, a listener and its connections, an agent.
///
/// Its constructor needs all privileges; `run` needs none. Its resources are released when it ends.
pub trait Service: Send {
    /// Runs until `stop` becomes readable. Blocks. Writes to `ledger` at least once a second while anything changes, and
    /// at its end.
    ///
    /// # Errors
    /// The reason that it cannot continue: its interface has disappeared, or a system call fails.
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()>;
}

/// Metrics and notices of a [`Service`], which other threads read meanwhile.
#[derive(Debug, Default)]
pub struct ServiceStatus {
    metrics: Mutex<Vec<Metric>>,
    notices: Mutex<Vec<Notice>>,
    listener: Option<Arc<dyn NoticeListener>>,
}

/// A metric of a [`ServiceStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name in Prometheus style, without prefix and `_total`: lower-case words joined by `_`, with the unit last.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Current value.
    pub value: u64,
}

/// Kind of a [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Grows only, from the start of the service.
    Counter,
    /// Grows and falls.
    Gauge,
}

impl ServiceStatus {
    /// Creates a ledger that passes each changed notice to the listener.
    #[must_use]
    pub fn with_listener(listener: Arc<dyn NoticeListener>) -> Self {
        Self { listener: Some(listener), ..Self::default() }
    }

    /// Records a notice. If it is new, the listener is called.
    pub fn report(&self, notice: Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this = notices.iter_mut().find(|other| other.subject == notice.subject);
        match of_this {
            Some(same) if *same == notice => return,
            Some(other) => other.clone_from(&notice),
            None => notices.push(notice.clone()),
        }
        drop(notices);
        self.listener.iter().for_each(|listener| listener.handle_notice(&notice));
    }

    /// Returns the latest notice about each subject.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all notices, without a call of the listener. An empty list clears those of a service that has ended.
    pub fn replace_notices(&self, notices: Vec<Notice>) {
        *self.notices.lock().unwrap_or_else(PoisonError::into_inner) = notices;
    }

    /// Replaces all metrics.
    pub fn set_metrics(&self, figures: Vec<Metric>) {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// Returns the metrics as last written; empty before the first time.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Metric {
    /// Creates a counter.
    #[must_use]
    pub const fn counter(name: &'static str, doc: &'static str, value: u64) -> Self {
        Self { name, doc, kind: MetricKind::Counter, value }
    }

    /// Creates a gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, doc: &'static str, value: u64) -> Self {
        Self { name, doc, kind: MetricKind::Gauge, value }
    }
}
