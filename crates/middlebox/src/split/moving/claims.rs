//! Claims that follow the visitor list of a base station.
//!
//! When a host comes, each of the other stations is asked for its connections: no message of [`handoff`](crate::handoff) names the station
//! where the host was. A station that has none says so at once. Stations are asked again for a few seconds, as a connection may still be on
//! its way from an earlier station to the last one, and as a station may have been out of reach. A station that does not answer, or from
//! which a connection could not move, is asked as long as the host is here.

use super::ClaimReport;
use super::claimant::{ClaimResult, claim};
use crate::handoff::{Arrival, MovePolicy, VisitorList};
use crate::service::{Notice, ServiceStatus, Severity};
use crate::split::Shared;
use crate::split::worker::now;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Times after an arrival at which a station is asked.
const CLAIM_TIMES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];
/// Time to the next question where a connection stayed, which doubles, and how often. Packets are on their way to the station where the host was
/// until that one has heard that the host has gone.
const REFUSED_RETRY: Duration = Duration::from_millis(10);
const MAX_REFUSED_RETRIES: u32 = 7;
/// Time to the next question to a station that gave no answer, which doubles.
const RETRY: Duration = Duration::from_secs(2);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Longest wait for an arrival before one looks again.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Thread that claims connections from one other station. One that does not answer keeps no other station waiting.
#[derive(Debug)]
pub(in crate::split) struct Claimant<'a> {
    pub(in crate::split) shared: &'a Shared,
    pub(in crate::split) visitors: &'a VisitorList,
    pub(in crate::split) station: SocketAddr,
    pub(in crate::split) ledger: &'a ServiceStatus,
}

/// A host for which the station is to be asked.
#[derive(Debug)]
struct PendingClaim {
    arrival: Arrival,
    arrived_at: Instant,
    next_claim: Instant,
    /// Times that the station was asked.
    claims: usize,
    /// Questions in a row that brought not everything, up to the last one.
    failures: u32,
    /// Times that a connection was offered and did not move.
    refusals: u32,
}

/// Outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimOutcome {
    Complete,
    /// A connection was offered and stayed, as when packets came for it meanwhile.
    Refused,
    Failed,
}

impl PendingClaim {
    const fn new(arrival: Arrival, came: Instant) -> Self {
        Self { arrival, arrived_at: came, next_claim: came, claims: 0, failures: 0, refusals: 0 }
    }

    /// Takes notice of an answer. Returns whether the station is to be asked again.
    fn handle_outcome(&mut self, answer: ClaimOutcome, now: Instant) -> bool {
        if answer == ClaimOutcome::Refused && self.refusals < MAX_REFUSED_RETRIES {
            self.next_claim = now + REFUSED_RETRY.saturating_mul(1 << self.refusals);
            self.refusals += 1;
            return true;
        }
        self.claims += 1;
        self.failures = if answer == ClaimOutcome::Complete { 0 } else { self.failures + 1 };
        let again = RETRY.saturating_mul(1 << self.failures.min(16)).min(MAX_RETRY);
        let next = match CLAIM_TIMES.get(self.claims) {
            Some(round) => Some(self.arrived_at + *round),
            // A connection that stayed is wanted as long as the host is here: its packets are dropped meanwhile.
            None => (answer != ClaimOutcome::Complete).then(|| now + again),
        };
        self.next_claim = next.unwrap_or(now);
        next.is_some()
    }
}

impl Claimant<'_> {
    /// Runs until it is over, and [`VisitorList::wake`] was called.
    pub(in crate::split) fn run(&self, is_over: &AtomicBool) {
        let (mut hosts, mut seen) = (BTreeMap::<Ipv4Addr, PendingClaim>::new(), 0);
        let over = || is_over.load(Ordering::SeqCst);
        while !over() {
            let (new, all) = self.visitors.arrivals(seen);
            seen = all;
            hosts.extend(new.into_iter().map(|arrival| (arrival.host, PendingClaim::new(arrival, now()))));
            hosts.retain(|_, due| self.visitors.request_number(due.arrival).is_some());
            let Some(due) = hosts.values_mut().min_by_key(|due| due.next_claim) else {
                self.visitors.wait(seen, MAX_WAIT, over);
                continue;
            };
            let left = due.next_claim.saturating_duration_since(now());
            if !left.is_zero() {
                self.visitors.wait(seen, left, over);
                continue;
            }
            let (host, answer) = (due.arrival.host, self.claim(due.arrival));
            if !due.handle_outcome(answer, now()) {
                hosts.remove(&host);
            }
        }
    }

    fn claim(&self, arrival: Arrival) -> ClaimOutcome {
        let Some(number) = self.visitors.request_number(arrival) else { return ClaimOutcome::Complete };
        if self.visitors.move_policy() == MovePolicy::Suspended {
            return ClaimOutcome::Complete;
        }
        let counts = &self.shared.counts;
        counts.claims.add(1);
        match claim(self.shared, IpAddr::V4(arrival.host), Some(number), self.station) {
            Ok(ClaimResult::Arrived(ClaimReport { refused, .. })) => {
                self.report(Severity::Normal, "answers claims of connections".into());
                if refused > 0 { ClaimOutcome::Refused } else { ClaimOutcome::Complete }
            }
            Ok(ClaimResult::Returned) => {
                self.visitors.record_departure(arrival, number);
                ClaimOutcome::Complete
            }
            Err(error) => {
                counts.failed_claims.add(1);
                let why = error_text(&error);
                self.report(
                    Severity::Warning,
                    format!("does not give connections away: {why}. Those of hosts that come from there do not go on"),
                );
                ClaimOutcome::Failed
            }
        }
    }

    fn report(&self, tone: Severity, what: String) {
        let about = format!("station {}", self.station).into();
        self.ledger.report(Notice {
            subject: about,
            severity: tone,
            text: format!("the station {} {what}", self.station),
        });
    }
}

/// Returns the likely reason in words.
fn error_text(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            "it ended the conversation, as with another key, or where its `stations` lack this one".into()
        }
        ErrorKind::TimedOut => {
            "it does not answer; its firewall must let the port of `moves` in from here".into()
        }
        ErrorKind::ConnectionRefused => {
            "nothing listens at its port; it needs a proxy of kind \"split\" with `moves` and the same `port`"
                .into()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responsive_station_is_claimed_from_four_times_and_a_silent_one_while_the_host_is_present() {
        let arrival = Arrival { host: Ipv4Addr::new(10, 9, 0, 7), arrival: 1 };
        let came = now();
        let after = |due: &PendingClaim| (due.next_claim - came).as_millis();
        let mut due = PendingClaim::new(arrival, came);
        let mut asked = vec![after(&due)];
        while due.handle_outcome(ClaimOutcome::Complete, due.next_claim) {
            asked.push(after(&due));
        }
        assert_eq!(asked, [0, 250, 1000, 3000]);
        let mut due = PendingClaim::new(arrival, came);
        let again: Vec<_> = (0..9)
            .map(|_| due.handle_outcome(ClaimOutcome::Refused, due.next_claim).then(|| after(&due)))
            .collect();
        assert_eq!(again[..3], [Some(10), Some(30), Some(70)]);
        assert_eq!(again[6..], [Some(1270), Some(250), Some(1000)], "and then as all others");
        assert!(
            (0..12).all(|_| due.handle_outcome(ClaimOutcome::Refused, due.next_claim)),
            "as long as the host is here"
        );
        let mut due = PendingClaim::new(arrival, came);
        let all = (0..12).all(|_| due.handle_outcome(ClaimOutcome::Failed, due.next_claim));
        let last = due.next_claim;
        assert!(all && due.handle_outcome(ClaimOutcome::Failed, due.next_claim));
        assert_eq!((due.next_claim - last).as_secs(), 60);
        assert!(!due.handle_outcome(ClaimOutcome::Complete, due.next_claim), "it was late, and has answered");
    }
}
