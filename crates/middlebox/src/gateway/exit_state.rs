//! State of the exit as the entrance sees it, and log lines about it. Without I/O.

use super::config::Fallback;
use super::destination::Destination;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Reason that there is no exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceReason {
    /// Its host name has no address.
    Unresolved,
    /// It does not answer.
    Silent,
    /// It has this version of the protocol.
    Version(u8),
    /// It does not have the key, or does not know the name of the entrance.
    Rejected,
}

/// State of the trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrunkState<T> {
    /// The trunk is being opened, for the first time or again.
    Opening,
    /// The exit answers on it.
    Present(T),
    /// There is no exit.
    Absent(AbsenceReason),
}

/// The last log line about the exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LoggedState {
    #[default]
    Nothing,
    Present,
    /// It has lost its state, and with it all connections.
    Restarted,
    Absent(AbsenceReason),
}

/// Filter for log lines: only changes of the exit are logged.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    last: LoggedState,
}

impl Reporter {
    /// Returns whether `now` is to be logged.
    pub(super) fn is_new(&mut self, now: LoggedState) -> bool {
        let before = std::mem::replace(&mut self.last, now);
        before != now
            && !(before == LoggedState::Restarted && now == LoggedState::Absent(AbsenceReason::Silent))
    }
}

/// A log line about the exit.
pub(super) struct LogLine<'a> {
    pub(super) exit: &'a Destination,
    pub(super) state: LoggedState,
    pub(super) fallback: Fallback,
    pub(super) encrypts: bool,
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = self.exit;
        match self.state {
            LoggedState::Nothing => Ok(()),
            LoggedState::Present => write!(f, "the exit {exit} answers: connections go through the trunk"),
            LoggedState::Restarted => {
                write!(f, "the exit {exit} has ended the trunk: connections through it are reset")
            }
            LoggedState::Absent(absence) => {
                match absence {
                    AbsenceReason::Unresolved => write!(f, "the name of the exit {exit} has no address")?,
                    AbsenceReason::Silent => write!(f, "the exit {exit} does not answer")?,
                    AbsenceReason::Version(version) => {
                        write!(
                            f,
                            "the exit {exit} speaks version {version} of the protocol, not {}",
                            super::handshake::VERSION
                        )?;
                    }
                    AbsenceReason::Rejected => {
                        return write!(
                            f,
                            "the exit {exit} has another key, or does not know this entrance by its name: connections are accepted and reset"
                        );
                    }
                }
                f.write_str(match (self.fallback, self.encrypts) {
                    (Fallback::Refuse, _) => ": connections are accepted and reset",
                    (Fallback::Tcp, false) => ": connections go by TCP",
                    (Fallback::Tcp, true) => ": connections go by TCP, IN CLEAR",
                })
            }
        }
    }
}

/// Time of the last message from the exit.
#[derive(Debug)]
pub(super) struct LastHeard {
    began: Instant,
    /// Milliseconds since `began`.
    heard: AtomicU64,
}

impl LastHeard {
    #[expect(clippy::disallowed_methods, reason = "a gateway is in real time")]
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), heard: AtomicU64::new(0) }
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records a message from the exit.
    pub(super) fn record(&self) {
        self.heard.fetch_max(self.now().as_millis() as u64, Relaxed);
    }

    pub(super) fn heard(&self) -> Duration {
        Duration::from_millis(self.heard.load(Relaxed))
    }
}

/// Monitor of an exit by keep-alive messages. Times count from the opening of the trunk.
#[derive(Debug)]
pub(super) struct ExitMonitor {
    limits: Limits,
    heard: Duration,
    is_awaiting_answer: bool,
    /// Time of the next check.
    next_check: Duration,
}

/// Timeouts of the exit, as times of silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Time after which a keep-alive message is sent.
    pub(super) keep_alive: Duration,
    /// Time after which new connections bypass the exit.
    pub(super) absent: Duration,
    /// Time after which connections through the exit are reset.
    pub(super) lost: Duration,
}

/// State of a watched exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    Responsive,
    Silent,
    Lost,
}

impl Limits {
    pub(super) fn new(absent: Duration, lost: Duration) -> Self {
        let ask = (absent.min(lost) / 4).min(Duration::from_secs(1));
        Self { keep_alive: ask, absent, lost }
    }
}

impl ExitMonitor {
    pub(super) const fn new(limits: Limits, now: Duration) -> Self {
        Self { limits, heard: now, is_awaiting_answer: false, next_check: now }
    }

    /// Checks the time. If the check is late, this process was stopped, possibly with its host. The exit could not be
    /// heard meanwhile, so that time does not count as silence of the exit.
    pub(super) fn handle_timeout(&mut self, now: Duration) {
        let late = now.saturating_sub(self.next_check);
        if late > self.limits.keep_alive {
            self.heard = (self.heard + late).min(now);
        }
    }

    /// Records a message that arrived at `at`.
    pub(super) fn handle_message(&mut self, at: Duration) {
        if at > self.heard {
            self.heard = at;
        }
    }

    /// Records the answer to a keep-alive message.
    pub(super) fn handle_keep_alive_answer(&mut self, now: Duration) {
        self.is_awaiting_answer = false;
        self.handle_message(now);
    }

    pub(super) fn liveness(&self, now: Duration) -> Liveness {
        match now.saturating_sub(self.heard) {
            silence if silence >= self.limits.lost => Liveness::Lost,
            silence if silence >= self.limits.absent => Liveness::Silent,
            _ => Liveness::Responsive,
        }
    }

    /// Returns whether to send a keep-alive message now. One is enough: the transport retransmits it.
    pub(super) fn should_send_keep_alive(&mut self, now: Duration) -> bool {
        let asks = !self.is_awaiting_answer && now.saturating_sub(self.heard) >= self.limits.keep_alive;
        self.is_awaiting_answer |= asks;
        asks
    }

    /// Returns the time until the next check.
    pub(super) fn until_next_check(&mut self, now: Duration) -> Duration {
        let silence = now.saturating_sub(self.heard);
        let Limits { keep_alive: ask, absent, lost } = self.limits;
        let next = [(!self.is_awaiting_answer).then_some(ask), Some(absent), Some(lost)];
        let due = next.into_iter().flatten().filter(|&limit| limit > silence).min().unwrap_or(lost);
        // The pulse has a resolution of milliseconds.
        let patience = due.saturating_sub(silence) + Duration::from_millis(1);
        self.next_check = now + patience;
        patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_responsive_exit_is_probed_at_most_once_a_second() {
        let mut watch = ExitMonitor::new(Limits::new(ms(3000), ms(4500)), ms(0));
        assert!(!watch.should_send_keep_alive(ms(700)));
        assert!(
            watch.should_send_keep_alive(ms(750)) && !watch.should_send_keep_alive(ms(900)),
            "one question at a time"
        );
        watch.handle_keep_alive_answer(ms(900));
        assert_eq!(
            (watch.should_send_keep_alive(ms(1600)), watch.should_send_keep_alive(ms(1650))),
            (false, true)
        );
        watch.handle_keep_alive_answer(ms(1700));
        // Data of a connection are a sign of life, too.
        watch.handle_message(ms(2400));
        assert_eq!(
            (watch.should_send_keep_alive(ms(3100)), watch.should_send_keep_alive(ms(3150))),
            (false, true)
        );
    }

    #[test]
    fn a_silent_exit_is_absent_for_new_connections_and_then_lost() {
        let mut watch = ExitMonitor::new(Limits::new(ms(3000), ms(4500)), ms(1000));
        let lives = [3999, 4000, 5499, 5500].map(|at| watch.liveness(ms(at)));
        assert_eq!(lives, [Liveness::Responsive, Liveness::Silent, Liveness::Silent, Liveness::Lost]);
        watch.handle_keep_alive_answer(ms(4200));
        assert_eq!(watch.liveness(ms(7199)), Liveness::Responsive);
    }

    #[test]
    fn an_exit_can_be_lost_before_it_is_absent() {
        let watch = ExitMonitor::new(Limits::new(ms(3000), ms(1000)), ms(0));
        assert_eq!(
            [watch.liveness(ms(999)), watch.liveness(ms(1000))],
            [Liveness::Responsive, Liveness::Lost]
        );
    }

    #[test]
    fn the_monitor_waits_until_its_next_action() {
        let mut watch = ExitMonitor::new(Limits::new(ms(400), ms(1000)), ms(0));
        assert_eq!(watch.until_next_check(ms(0)), ms(101));
        assert!(watch.should_send_keep_alive(ms(101)));
        assert_eq!([watch.until_next_check(ms(101)), watch.until_next_check(ms(400))], [ms(300), ms(601)]);
    }

    #[test]
    fn a_suspended_entrance_continues_with_a_responsive_exit() {
        let mut watch = ExitMonitor::new(Limits::new(ms(3000), ms(4500)), ms(0));
        assert!(watch.should_send_keep_alive(ms(750)) && watch.until_next_check(ms(750)) == ms(2251));
        // Stopped from 1 s to 21 s; the check was due at 3.001 s.
        watch.handle_timeout(ms(21_000));
        assert_eq!(
            (watch.liveness(ms(21_000)), watch.until_next_check(ms(21_000))),
            (Liveness::Silent, ms(1500))
        );
        watch.handle_timeout(ms(21_010));
        watch.handle_keep_alive_answer(ms(21_010));
        assert_eq!(watch.liveness(ms(21_010)), Liveness::Responsive);
    }

    #[test]
    fn an_exit_lost_while_the_entrance_was_suspended_is_detected_soon() {
        let mut watch = ExitMonitor::new(Limits::new(ms(3000), ms(4500)), ms(0));
        let mut now = ms(0);
        // Each wake-up is a little late, which is harmless, and one is late by an hour.
        for late in [0, 20, 3_600_000, 20, 20] {
            watch.handle_timeout(now);
            watch.should_send_keep_alive(now);
            now += watch.until_next_check(now) + ms(late);
        }
        watch.handle_timeout(now);
        assert_eq!(watch.liveness(now), Liveness::Lost);
        assert!(now < ms(3_600_000 + 6000), "{now:?}");
    }

    #[test]
    fn each_change_is_logged_once() {
        let mut reporter = Reporter::default();
        let absent = |why| LoggedState::Absent(why);
        let story = [
            (absent(AbsenceReason::Silent), true),
            (absent(AbsenceReason::Silent), false),
            (absent(AbsenceReason::Version(3)), true),
            (absent(AbsenceReason::Rejected), true),
            (absent(AbsenceReason::Rejected), false),
            (LoggedState::Present, true),
            (LoggedState::Present, false),
            (LoggedState::Restarted, true),
            (absent(AbsenceReason::Silent), false),
            (absent(AbsenceReason::Silent), false),
            (LoggedState::Present, true),
            (absent(AbsenceReason::Silent), true),
        ];
        for (at, (said, is_new)) in story.into_iter().enumerate() {
            assert_eq!(reporter.is_new(said), is_new, "{at}: {said:?}");
        }
    }

    #[test]
    fn a_log_line_states_the_effect_on_connections() {
        let exit = "192.0.2.7:7172".parse().unwrap();
        let line =
            |said, fallback, encrypts| LogLine { exit: &exit, state: said, fallback, encrypts }.to_string();
        let silent = LoggedState::Absent(AbsenceReason::Silent);
        assert!(
            line(silent, Fallback::Tcp, true).ends_with("does not answer: connections go by TCP, IN CLEAR")
        );
        assert!(line(silent, Fallback::Tcp, false).ends_with("connections go by TCP"));
        assert!(line(silent, Fallback::Refuse, true).ends_with("connections are accepted and reset"));
        let other = line(LoggedState::Absent(AbsenceReason::Version(1)), Fallback::Refuse, true);
        assert!(other.contains("speaks version 1 of the protocol, not 2"), "{other}");
        // Regardless of the fallback.
        let rejected = line(LoggedState::Absent(AbsenceReason::Rejected), Fallback::Tcp, true);
        assert!(rejected.ends_with("connections are accepted and reset"), "{rejected}");
    }
}
