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
    parts: Mutex<Vec<Arc<Self>>>,
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

    /// Replaces the ledgers of the service's parts by `N` empty ones with the same listener. Metrics and notices of this
    /// ledger include those of its parts at once, without a copy that ages.
    fn split<const N: usize>(&self) -> [Arc<Self>; N] {
        let parts = [(); N].map(|()| Arc::new(Self { listener: self.listener.clone(), ..Self::default() }));
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts.to_vec();
        parts
    }

    fn parts(&self) -> Vec<Arc<Self>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let own = self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone();
        own.into_iter().chain(self.parts().iter().flat_map(|part| part.notices())).collect()
    }

    /// Clears all notices, without a call of the listener: those of a service that has ended.
    pub fn clear_notices(&self) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.parts().iter().for_each(|part| part.clear_notices());
    }

    /// Replaces all metrics.
    pub fn set_metrics(&self, figures: Vec<Metric>) {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// Returns the metrics as last written; empty before the first time.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let own = self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        own.into_iter().chain(self.parts().iter().flat_map(|part| part.metrics())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(value: u64) -> Vec<Metric> {
        vec![Metric::counter("sent", "", value)]
    }

    #[test]
    fn what_a_part_writes_is_read_at_once_until_the_parts_are_replaced() {
        let whole = ServiceStatus::default();
        let [first, second] = whole.split();
        first.set_metrics(count(1));
        second.set_metrics(count(2));
        assert_eq!(whole.metrics(), [count(1), count(2)].concat());
        first.set_metrics(count(3));
        assert_eq!(whole.metrics(), [count(3), count(2)].concat());
        let [again] = whole.split();
        again.set_metrics(count(4));
        assert_eq!(whole.metrics(), count(4));
    }

    #[test]
    fn notices_of_parts_are_cleared_with_those_of_the_whole() {
        let whole = ServiceStatus::default();
        let [part] = whole.split();
        let notice = |subject: &'static str| Notice {
            subject: subject.into(),
            severity: Severity::Normal,
            text: String::new(),
        };
        whole.report(notice("own"));
        part.report(notice("of the part"));
        assert_eq!(whole.notices(), [notice("own"), notice("of the part")]);
        whole.clear_notices();
        assert_eq!(whole.notices(), []);
    }
}
