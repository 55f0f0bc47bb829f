//! Timestamps of sent data (`SO_TIMESTAMPING` of Linux): reports on the error queue of a socket.

use crate::script::Expression;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Timestamps of the data of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxTimestamps {
    is_on: [bool; 3],
    /// Bytes of the stream before the first one that counts.
    base: u64,
    waiting: VecDeque<Waiting>,
    reports: VecDeque<Report>,
}

/// Last byte of a write, until it is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Bytes of the stream up to and with it.
    end: u64,
    sent: bool,
}

/// Report on the error queue.
#[derive(Clone, Copy, Debug)]
struct Report {
    at: Instant,
    kind: Kind,
    key: u64,
}

/// Event that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Passed to the queue of the interface.
    Scheduled,
    /// Sent.
    Sent,
    /// Acknowledged.
    Acknowledged,
}

impl TxTimestamps {
    /// Turns on the reports that `flags` name. `acknowledged`: bytes of the stream so far.
    pub(crate) fn set(&mut self, flags: &Expression, acknowledged: u64) {
        self.is_on = ["SOF_TIMESTAMPING_TX_SCHED", "SOF_TIMESTAMPING_TX_SOFTWARE", "SOF_TIMESTAMPING_TX_ACK"]
            .map(|flag| flags.has(flag));
        self.base = acknowledged;
    }

    /// Records a write that ends after `end` bytes of the stream.
    pub(crate) fn on_write(&mut self, end: u64) {
        if self.is_on.contains(&true) {
            self.waiting.push_back(Waiting { end, sent: false });
        }
    }

    /// Records that the bytes up to `end` were sent.
    pub(crate) fn on_sent(&mut self, now: Instant, end: u64) {
        for i in 0..self.waiting.len() {
            if !self.waiting[i].sent && self.waiting[i].end <= end {
                self.waiting[i].sent = true;
                self.report(now, Kind::Scheduled, self.waiting[i].end);
                self.report(now, Kind::Sent, self.waiting[i].end);
            }
        }
    }

    /// Records that the bytes up to `end` were acknowledged.
    pub(crate) fn on_ack(&mut self, now: Instant, end: u64) {
        while let Some(first) = self.waiting.front().copied()
            && first.sent
            && first.end <= end
        {
            self.waiting.pop_front();
            self.report(now, Kind::Acknowledged, first.end);
        }
    }

    fn report(&mut self, at: Instant, kind: Kind, end: u64) {
        if self.is_on[kind as usize] {
            self.reports.push_back(Report { at, kind, key: end.saturating_sub(self.base + 1) });
        }
    }

    /// Takes the next report, and compares it with the control messages that a script expects.
    ///
    /// # Errors
    /// There is no report, it differs, or the expectation has another form.
    pub(crate) fn receive(
        &mut self,
        control: Option<&Expression>,
        tolerance: Duration,
    ) -> Result<(), ReceiveError> {
        let Some(Expression::Array(items)) = control else { return Err(ReceiveError::Unsupported) };
        let report = self.reports.pop_front().ok_or(ReceiveError::Empty)?;
        let data = items.iter().filter_map(|item| item.member("cmsg_data"));
        let is_expected = data.clone().all(|data| report.matches(data, tolerance));
        if is_expected && data.count() > 0 { Ok(()) } else { Err(ReceiveError::Differs) }
    }
}

/// Reason for which a report is not as a script expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    /// There is none.
    Empty,
    /// Another event, time or byte.
    Differs,
    /// The script has no list of control messages.
    Unsupported,
}

impl Report {
    fn matches(&self, data: &Expression, tolerance: Duration) -> bool {
        let number = |name| data.member(name).and_then(Expression::integer);
        if let (Some(seconds), Some(nanos)) = (number("scm_sec"), number("scm_nsec")) {
            let expected = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            let distance = (i128::from(self.at.as_nanos()) - expected).unsigned_abs();
            return distance <= u128::from(tolerance.as_nanos());
        }
        let kind = match self.kind {
            Kind::Scheduled => "SCM_TSTAMP_SCHED",
            Kind::Sent => "SCM_TSTAMP_SND",
            Kind::Acknowledged => "SCM_TSTAMP_ACK",
        };
        data.member("ee_info").is_some_and(|info| info.has(kind))
            && number("ee_data") == Some(self.key as i64)
    }
}
