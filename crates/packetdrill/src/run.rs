//! Run of a script: its events in the order of their times.

use crate::assertion::{self, Facts};
use crate::calls::Outcome;
use crate::command;
use crate::compare::{describe, difference, join, record_timestamp};
use crate::host::{Host, Sent};
use crate::mapping::{Shifts, TimestampMap, as_in_script, inbound};
use crate::options::bsd_name;
use crate::script::{Action, Call, Event, EventTime, Expression, OptionSpec, Script, SegmentSpec};
use crate::settings::{Settings, System};
use crate::systems::own_choice;
use crate::verdict::{Failure, Verdict};
use hopline_core::{Duration, Instant, Length};
use hopline_transport::tcp::Config;
use hopline_wire::tcp::{Flags, Segment};

/// Longest wait for an event without a time.
const ANY_TIME: Duration = Duration::from_secs(600);

/// Longest run of a script.
const LONGEST_RUN: Duration = Duration::from_secs(1_000_000_000);

/// Runs a script in virtual time against an endpoint with the parameters `config`, which its commands change.
///
/// `include` returns the text of a shell script that the script calls by its path.
#[must_use]
pub fn run(script: &Script, text: &str, config: Config, include: &dyn Fn(&str) -> Option<String>) -> Verdict {
    let mut settings = Settings::new(config);
    for option in &script.options {
        if let Err(reason) = settings.apply_option(&option.name, &option.value) {
            return Verdict::NotApplicable { line: option.line, reason };
        }
    }
    if let Err(reason) = settings.check() {
        return Verdict::NotApplicable { line: 1, reason };
    }
    settings.window_scale = expected_window_scale(&script.events);
    let timestamps = TimestampMap::with_tick(settings.timestamp_tick);
    let mut runner = Runner {
        text,
        include,
        host: Host::new(settings),
        timestamps,
        base: Instant::ZERO,
        blocked: None,
        line: 1,
    };
    let verdict = runner.run(&script.events).err().unwrap_or(Verdict::Passed);
    if runner.host.steps_left == 0 {
        return runner.not_applicable("more than 100,000 timers".to_owned());
    }
    verdict
}

/// Returns the window scale of the first SYN that the host has to send.
fn expected_window_scale(events: &[Event]) -> Option<u8> {
    events.iter().find_map(|event| match &event.action {
        Action::Outbound(spec) => spec.options.as_ref()?.iter().find_map(|option| match option {
            OptionSpec::WindowScale(shift) => Some(*shift),
            _ => None,
        }),
        _ => None,
    })
}

struct Runner<'s> {
    text: &'s str,
    include: &'s dyn Fn(&str) -> Option<String>,
    host: Host,
    timestamps: TimestampMap,
    /// Time of the previous event, from which relative times count.
    base: Instant,
    blocked: Option<Blocked<'s>>,
    line: usize,
}

/// Call that has not returned yet.
struct Blocked<'s> {
    line: usize,
    call: &'s Call,
    returns_at: Instant,
}

/// Interval in which an event may take place, without the tolerance.
#[derive(Clone, Copy)]
struct Interval {
    from: Instant,
    to: Instant,
    is_exact: bool,
}

impl<'s> Runner<'s> {
    fn run(&mut self, events: &'s [Event]) -> Result<(), Verdict> {
        for event in events {
            self.line = event.line;
            let interval = self.interval(event.time);
            match &event.action {
                Action::Outbound(spec) => self.expect_segment(spec, interval)?,
                action => {
                    if interval.is_exact {
                        self.advance(interval.from)?;
                    }
                    self.perform(action, event.time)?;
                }
            }
            if self.host.now > Instant::ZERO + LONGEST_RUN {
                return Err(self.not_applicable("more than thirty years".to_owned()));
            }
            self.base = if interval.is_exact { interval.from } else { self.host.now };
        }
        if let Some(blocked) = &self.blocked {
            let until = blocked.returns_at + self.host.settings.tolerance;
            self.advance(until)?;
        }
        match self.blocked.take() {
            Some(blocked) => Err(self.fail_call(blocked.line, "the call still blocks")),
            None => Ok(()),
        }
    }

    fn interval(&self, time: EventTime) -> Interval {
        let (from, to, is_exact) = match time {
            EventTime::Absolute(at) => (Instant::ZERO + at, Instant::ZERO + at, true),
            EventTime::Relative(after) => (self.base + after, self.base + after, true),
            EventTime::AbsoluteRange(from, to) => (Instant::ZERO + from, Instant::ZERO + to, false),
            EventTime::RelativeRange(from, to) => (self.base + from, self.base + to, false),
            EventTime::Any => (self.base, self.base + ANY_TIME, false),
        };
        Interval { from, to, is_exact }
    }

    /// Advances the clock, with the timers and blocked calls on the way.
    fn advance(&mut self, to: Instant) -> Result<(), Verdict> {
        self.retry_blocked()?;
        while self.host.step(to) {
            self.retry_blocked()?;
        }
        Ok(())
    }

    fn perform(&mut self, action: &'s Action, time: EventTime) -> Result<(), Verdict> {
        match action {
            Action::Inbound(spec) => {
                let segment = inbound(spec, &self.timestamps);
                let delivered = self.host.deliver(segment, spec.ports);
                delivered.map_err(|reason| self.not_applicable(reason))?;
                self.retry_blocked()
            }
            Action::Icmp(spec) => {
                self.host.deliver_icmp(spec);
                self.retry_blocked()
            }
            Action::Call(call) => self.start_call(call, time),
            Action::Command(commands) => match command::asserted_state(commands) {
                Some((state, count)) => self.check_state(state, count),
                None => command::apply(&mut self.host.settings, commands, self.include)
                    .map_err(|reason| self.not_applicable(reason)),
            },
            Action::Code(code) => self.check_code(code),
            Action::Outbound(_) => Ok(()),
        }
    }

    fn start_call(&mut self, call: &'s Call, time: EventTime) -> Result<(), Verdict> {
        if let Some(blocked) = &self.blocked {
            let until = blocked.returns_at + self.host.settings.tolerance;
            self.advance(until)?;
        }
        match (self.host.call(call), call.returns_at) {
            (Outcome::Blocked, Some(returns_at)) => {
                let base = if matches!(time, EventTime::Relative(_)) { self.base } else { Instant::ZERO };
                self.blocked = Some(Blocked { line: self.line, call, returns_at: base + returns_at });
                Ok(())
            }
            (Outcome::Blocked, None) => Err(self.fail_call(self.line, "the call blocks")),
            (outcome, _) => self.check_result(self.line, call, &outcome),
        }
    }

    /// Tries a blocked call again.
    fn retry_blocked(&mut self) -> Result<(), Verdict> {
        let Some(blocked) = &self.blocked else { return Ok(()) };
        let outcome = self.host.call(blocked.call);
        if outcome == Outcome::Blocked {
            return Ok(());
        }
        let (line, call, returns_at) = (blocked.line, blocked.call, blocked.returns_at);
        self.blocked = None;
        if distance(self.host.now, returns_at) > self.host.settings.tolerance {
            let at = self.host.now.as_secs_f64();
            return Err(self.fail_call(line, &format!("the call returned at {at:.6}")));
        }
        self.check_result(line, call, &outcome)
    }

    fn check_result(&self, line: usize, call: &Call, outcome: &Outcome) -> Result<(), Verdict> {
        let is_expected = match (outcome, &call.result, &call.errno) {
            (Outcome::NotApplicable(reason), _, _) => {
                return Err(Verdict::NotApplicable { line, reason: reason.clone() });
            }
            (Outcome::Returned(_), Expression::Ellipsis, _) => true,
            (Outcome::Returned(taken), Expression::Integer(expected), _)
                if taken != expected && *expected > 0 && self.host.is_limited_by_memory(call) =>
            {
                let reason = "Linux's accounting of send memory".to_owned();
                return Err(Verdict::NotApplicable { line, reason });
            }
            (Outcome::Returned(value), result, _) => result.integer() == Some(*value),
            (Outcome::Failed(_), Expression::Integer(-1), None) => true,
            (Outcome::Failed(errno), Expression::Integer(-1), Some(expected)) => {
                // Two names of one error.
                *errno == expected.replace("EWOULDBLOCK", "EAGAIN")
            }
            _ => false,
        };
        if is_expected {
            return Ok(());
        }
        let result = match outcome {
            Outcome::Returned(value) => value.to_string(),
            Outcome::Failed(errno) => format!("-1 {errno}"),
            Outcome::Blocked | Outcome::NotApplicable(_) => String::new(),
        };
        Err(self.fail_call(line, &format!("the call returned {result}")))
    }

    fn check_state(&self, expected: &str, count: usize) -> Result<(), Verdict> {
        // `sockstat` shortens one name.
        let expected = if expected == "SYN_RCVD" { "SYN_RECEIVED" } else { expected };
        let names =
            self.host.connections.iter().map(|c| bsd_name(c.endpoint.state()).trim_start_matches("TCPS_"));
        let states: Vec<_> = names.collect();
        if states.iter().filter(|name| **name == expected).count() == count {
            return Ok(());
        }
        let states = states.join(", ");
        Err(self.fail(self.line, states.clone(), format!("states [{states}], not {count} {expected}")))
    }

    fn check_code(&self, code: &str) -> Result<(), Verdict> {
        let connection = self.host.current.map(|id| &self.host.connections[id]);
        let Some(connection) = connection else {
            return Err(self.not_applicable("an assertion without a connection".to_owned()));
        };
        match assertion::check(code, &Facts::of(connection, self.host.now)) {
            assertion::Outcome::True => Ok(()),
            assertion::Outcome::Unknown(reason) => Err(self.not_applicable(reason)),
            assertion::Outcome::False(expression, values) => {
                Err(self.fail(self.line, values.clone(), format!("`{expression}` does not hold: {values}")))
            }
        }
    }

    fn expect_segment(&mut self, spec: &SegmentSpec, interval: Interval) -> Result<(), Verdict> {
        let tolerance = self.host.settings.tolerance;
        let latest = interval.to + tolerance;
        let Some(mut sent) = self.next_sent(latest)? else {
            let nothing = format!("nothing until {:.6}", latest.as_secs_f64());
            self.check_own_choice(spec, None)?;
            return Err(self.fail(self.line, nothing.clone(), format!("{nothing} was sent")));
        };
        let first_at = sent.at;
        self.join_following(spec, &mut sent, latest)?;
        let segment = self.in_script_numbers(spec, &sent);
        let actual = describe(first_at, &segment);
        if let Some(difference) = difference(spec, &segment, self.window_slack(&sent)) {
            self.check_own_choice(spec, Some(&segment))?;
            return Err(self.fail(self.line, actual, difference));
        }
        if first_at + tolerance < interval.from || first_at > latest {
            let late =
                format!("sent at {:.6}, not at {:.6}", first_at.as_secs_f64(), interval.from.as_secs_f64());
            return Err(self.fail(self.line, actual, late));
        }
        let tick = self.host.settings.timestamp_tick;
        match record_timestamp(&mut self.timestamps, spec, &sent.segment, tick, tolerance) {
            Some(difference) => Err(self.fail(self.line, actual, difference)),
            None => Ok(()),
        }
    }

    /// Ends the run if the script demands a choice of another operating system.
    fn check_own_choice(&self, spec: &SegmentSpec, actual: Option<&Segment<Length>>) -> Result<(), Verdict> {
        let connection = self.host.current.map(|id| &self.host.connections[id]);
        let choice =
            connection.and_then(|connection| own_choice(&self.host.settings, connection, spec, actual));
        choice.map_or(Ok(()), |choice| Err(self.not_applicable(choice.to_owned())))
    }

    /// Returns the next segment that the host sends until `latest`.
    fn next_sent(&mut self, latest: Instant) -> Result<Option<Sent>, Verdict> {
        self.retry_blocked()?;
        self.host.skip_earlier_connections();
        while self.host.sent.is_empty() && self.host.step(latest) {
            self.retry_blocked()?;
            self.host.skip_earlier_connections();
        }
        Ok(self.host.sent.pop_front())
    }

    /// Joins the segments of a GSO packet.
    fn join_following(
        &mut self,
        spec: &SegmentSpec,
        sent: &mut Sent,
        latest: Instant,
    ) -> Result<(), Verdict> {
        while !self.host.settings.strict_segments && sent.segment.payload.0 < u64::from(spec.len) {
            while self.host.sent.is_empty() && self.host.step(latest) {
                self.retry_blocked()?;
            }
            match self.host.sent.front() {
                Some(next) if join(sent, next) => {
                    self.host.sent.pop_front();
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Returns a segment of the host with the script's numbers. A first SYN fixes them.
    fn in_script_numbers(&mut self, spec: &SegmentSpec, sent: &Sent) -> Segment<Length> {
        let shifts = match self.host.connection_of_mut(&sent.segment) {
            None => Shifts::default(),
            Some(connection) => {
                if sent.segment.flags.contains(Flags::SYN) {
                    connection.script_iss = spec.seq;
                }
                connection.shifts(sent.segment.flags)
            }
        };
        as_in_script(&sent.segment, shifts)
    }

    /// Returns the units by which a window may be smaller than expected. FreeBSD moves its right edge with every byte that
    /// is read; RFC 9293 §3.8.6.2.2 keeps the edge until it can move by a segment.
    fn window_slack(&self, sent: &Sent) -> u16 {
        let Some(connection) = self.host.connection_of(&sent.segment) else { return 0 };
        match self.host.settings.system {
            System::Linux => 0,
            System::FreeBsd => connection.endpoint.effective_mss().min(1_460) as u16,
        }
    }

    fn not_applicable(&self, reason: String) -> Verdict {
        Verdict::NotApplicable { line: self.line, reason }
    }

    fn fail_call(&self, line: usize, difference: &str) -> Verdict {
        self.fail(line, difference.to_owned(), difference.to_owned())
    }

    fn fail(&self, line: usize, actual: String, difference: String) -> Verdict {
        let expected = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
        Verdict::Failed(Failure { line, expected, actual, difference })
    }
}

fn distance(a: Instant, b: Instant) -> Duration {
    if a > b { a.since(b) } else { b.since(a) }
}
