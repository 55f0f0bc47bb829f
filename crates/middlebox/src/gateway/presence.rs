//! State of the exit as the entrance sees it, and log lines about it. Without I/O.

use super::config::Fallback;
use super::destination::Destination;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Reason that there is no exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
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
pub(super) enum Standing<T> {
    /// The trunk is being opened, for the first time or again.
    Opening,
    /// The exit answers on it.
    Present(T),
    /// There is no exit.
    Absent(Absence),
}

/// The last log line about the exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Said {
    #[default]
    Nothing,
    Present,
    /// It has lost its state, and with it all connections.
    Restarted,
    Absent(Absence),
}

/// Filter for log lines: only changes of the exit are logged.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    said: Said,
}

impl Reporter {
    /// Returns whether `now` is to be logged.
    pub(super) fn is_new(&mut self, now: Said) -> bool {
        let before = std::mem::replace(&mut self.said, now);
        before != now && !(before == Said::Restarted && now == Said::Absent(Absence::Silent))
    }
}

/// A log line about the exit.
pub(super) struct Line<'a> {
    pub(super) exit: &'a Destination,
    pub(super) said: Said,
    pub(super) fallback: Fallback,
    pub(super) encrypts: bool,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = self.exit;
        match self.said {
            Said::Nothing => Ok(()),
            Said::Present => write!(f, "the exit {exit} answers: connections go through the trunk"),
            Said::Restarted => {
                write!(f, "the exit {exit} has ended the trunk: connections through it are reset")
            }
            Said::Absent(absence) => {
                match absence {
                    Absence::Unresolved => write!(f, "the name of the exit {exit} has no address")?,
                    Absence::Silent => write!(f, "the exit {exit} does not answer")?,
                    Absence::Version(version) => {
                        write!(
                            f,
                            "the exit {exit} speaks version {version} of the protocol, not {}",
                            super::greeting::VERSION
                        )?;
                    }
                    Absence::Rejected => {
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
pub(super) struct Pulse {
    began: Instant,
    /// Milliseconds since `began`.
    heard: AtomicU64,
}

impl Pulse {
    #[expect(clippy::disallowed_methods, reason = "a gateway is in real time")]
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), heard: AtomicU64::new(0) }
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records a message from the exit.
    pub(super) fn beat(&self) {
        self.heard.fetch_max(self.now().as_millis() as u64, Relaxed);
    }

    pub(super) fn heard(&self) -> Duration {
        Duration::from_millis(self.heard.load(Relaxed))
    }
}

/// Monitor of an exit by keep-alive messages. Times count from the opening of the trunk.
#[derive(Debug)]
pub(super) struct Watch {
    limits: Limits,
    heard: Duration,
    asked: bool,
    /// Time of the next check.
    due: Duration,
}

/// Timeouts of the exit, as times of silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Time after which a keep-alive message is sent.
    pub(super) ask: Duration,
    /// Time after which new connections bypass the exit.
    pub(super) absent: Duration,
    /// Time after which connections through the exit are reset.
    pub(super) lost: Duration,
}

/// State of a watched exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Answers,
    Silent,
    Lost,
}

impl Limits {
    pub(super) fn new(absent: Duration, lost: Duration) -> Self {
        let ask = (absent.min(lost) / 4).min(Duration::from_secs(1));
        Self { ask, absent, lost }
    }
}

impl Watch {
    pub(super) const fn new(limits: Limits, now: Duration) -> Self {
        Self { limits, heard: now, asked: false, due: now }
    }

    /// Checks the time. If the check is late, this process was stopped, possibly with its host. The exit could not be
    /// heard meanwhile, so that time does not count as silence of the exit.
    pub(super) fn wake(&mut self, now: Duration) {
        let late = now.saturating_sub(self.due);
        if late > self.limits.ask {
            self.heard = (self.heard + late).min(now);
        }
    }

    /// Records a message that arrived at `at`.
    pub(super) fn hear(&mut self, at: Duration) {
        if at > self.heard {
            self.heard = at;
        }
    }

    /// Records the answer to a keep-alive message.
    pub(super) fn answered(&mut self, now: Duration) {
        self.asked = false;
        self.hear(now);
    }

    pub(super) fn life(&self, now: Duration) -> Life {
        match now.saturating_sub(self.heard) {
            silence if silence >= self.limits.lost => Life::Lost,
            silence if silence >= self.limits.absent => Life::Silent,
            _ => Life::Answers,
        }
    }

    /// Returns whether to send a keep-alive message now. One is enough: the transport retransmits it.
    pub(super) fn asks(&mut self, now: Duration) -> bool {
        let asks = !self.asked && now.saturating_sub(self.heard) >= self.limits.ask;
        self.asked |= asks;
        asks
    }

    /// Returns the time until the next check.
    pub(super) fn patience(&mut self, now: Duration) -> Duration {
        let silence = now.saturating_sub(self.heard);
        let Limits { ask, absent, lost } = self.limits;
        let next = [(!self.asked).then_some(ask), Some(absent), Some(lost)];
        let due = next.into_iter().flatten().filter(|&limit| limit > silence).min().unwrap_or(lost);
        // The pulse has a resolution of milliseconds.
        let patience = due.saturating_sub(silence) + Duration::from_millis(1);
        self.due = now + patience;
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
    fn an_exit_that_answers_is_asked_once_a_second_at_most() {
        let mut watch = Watch::new(Limits::new(ms(3000), ms(4500)), ms(0));
        assert!(!watch.asks(ms(700)));
        assert!(watch.asks(ms(750)) && !watch.asks(ms(900)), "one question at a time");
        watch.answered(ms(900));
        assert_eq!((watch.asks(ms(1600)), watch.asks(ms(1650))), (false, true));
        watch.answered(ms(1700));
        // Data of a connection are a sign of life, too.
        watch.hear(ms(2400));
        assert_eq!((watch.asks(ms(3100)), watch.asks(ms(3150))), (false, true));
    }

    #[test]
    fn a_silent_exit_is_absent_for_new_connections_and_then_lost() {
        let mut watch = Watch::new(Limits::new(ms(3000), ms(4500)), ms(1000));
        let lives = [3999, 4000, 5499, 5500].map(|at| watch.life(ms(at)));
        assert_eq!(lives, [Life::Answers, Life::Silent, Life::Silent, Life::Lost]);
        watch.answered(ms(4200));
        assert_eq!(watch.life(ms(7199)), Life::Answers);
    }

    #[test]
    fn an_exit_can_be_lost_before_it_is_absent() {
        let watch = Watch::new(Limits::new(ms(3000), ms(1000)), ms(0));
        assert_eq!([watch.life(ms(999)), watch.life(ms(1000))], [Life::Answers, Life::Lost]);
    }

    #[test]
    fn a_watch_waits_until_the_next_thing_that_it_does() {
        let mut watch = Watch::new(Limits::new(ms(400), ms(1000)), ms(0));
        assert_eq!(watch.patience(ms(0)), ms(101));
        assert!(watch.asks(ms(101)));
        assert_eq!([watch.patience(ms(101)), watch.patience(ms(400))], [ms(300), ms(601)]);
    }

    #[test]
    fn an_entrance_that_was_stopped_itself_goes_on_with_an_exit_that_answers() {
        let mut watch = Watch::new(Limits::new(ms(3000), ms(4500)), ms(0));
        assert!(watch.asks(ms(750)) && watch.patience(ms(750)) == ms(2251));
        // Stopped from 1 s to 21 s; the check was due at 3.001 s.
        watch.wake(ms(21_000));
        assert_eq!((watch.life(ms(21_000)), watch.patience(ms(21_000))), (Life::Silent, ms(1500)));
        watch.wake(ms(21_010));
        watch.answered(ms(21_010));
        assert_eq!(watch.life(ms(21_010)), Life::Answers);
    }

    #[test]
    fn an_exit_that_has_gone_while_the_entrance_was_stopped_is_lost_soon_after() {
        let mut watch = Watch::new(Limits::new(ms(3000), ms(4500)), ms(0));
        let mut now = ms(0);
        // Each wake-up is a little late, which is harmless, and one is late by an hour.
        for late in [0, 20, 3_600_000, 20, 20] {
            watch.wake(now);
            watch.asks(now);
            now += watch.patience(now) + ms(late);
        }
        watch.wake(now);
        assert_eq!(watch.life(now), Life::Lost);
        assert!(now < ms(3_600_000 + 6000), "{now:?}");
    }

    #[test]
    fn each_change_is_told_once() {
        let mut reporter = Reporter::default();
        let absent = |why| Said::Absent(why);
        let story = [
            (absent(Absence::Silent), true),
            (absent(Absence::Silent), false),
            (absent(Absence::Version(3)), true),
            (absent(Absence::Rejected), true),
            (absent(Absence::Rejected), false),
            (Said::Present, true),
            (Said::Present, false),
            (Said::Restarted, true),
            (absent(Absence::Silent), false),
            (absent(Absence::Silent), false),
            (Said::Present, true),
            (absent(Absence::Silent), true),
        ];
        for (at, (said, is_new)) in story.into_iter().enumerate() {
            assert_eq!(reporter.is_new(said), is_new, "{at}: {said:?}");
        }
    }

    #[test]
    fn a_line_says_what_becomes_of_connections() {
        let exit = "192.0.2.7:7172".parse().unwrap();
        let line = |said, fallback, encrypts| Line { exit: &exit, said, fallback, encrypts }.to_string();
        let silent = Said::Absent(Absence::Silent);
        assert!(
            line(silent, Fallback::Tcp, true).ends_with("does not answer: connections go by TCP, IN CLEAR")
        );
        assert!(line(silent, Fallback::Tcp, false).ends_with("connections go by TCP"));
        assert!(line(silent, Fallback::Refuse, true).ends_with("connections are accepted and reset"));
        let other = line(Said::Absent(Absence::Version(1)), Fallback::Refuse, true);
        assert!(other.contains("speaks version 1 of the protocol, not 2"), "{other}");
        // Regardless of the fallback.
        let rejected = line(Said::Absent(Absence::Rejected), Fallback::Tcp, true);
        assert!(rejected.ends_with("connections are accepted and reset"), "{rejected}");
    }
}
