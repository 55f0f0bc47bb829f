//! Run of a test from its start to its end, nearly the same on both sides.

use super::control::{Control, INTERRUPT_CHECK, Notifier, Side, unexpected_state};
use super::cpu::CpuClock;
use super::datagram::{CounterWidth, DatagramStats};
use super::error::Error;
use super::parameters::Dialect;
use super::plan::{CopyMode, Limit, Output, Plan, Transport};
use super::protocol::State;
use super::pump::{Meter, Pump, StreamEnd, memory_file};
use super::report::{Ending, Report, Role, ServerOutput, SideReport};
use super::results::{LocalContext, Results};
use super::statistics::{IntervalStats, StreamSnapshot};
use super::stream::Stream;
use super::{Observer, now};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of the exchange of results.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the exchange of results after the user has stopped the test.
const RESULTS_TIMEOUT_IF_STOPPED: Duration = Duration::from_secs(2);
/// Time that a server waits, after the end of the test, for the client to end it.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Time without progress after which a test without a rate limit fails. It is longer than an outage of 10 s plus the
/// back-off of the timers.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time without arrivals after which no sent data are expected any more.
const TAIL_TIMEOUT: Duration = Duration::from_secs(3);
/// `TAIL_TIMEOUT` after an omission. The omissions of the two sides end at different moments, so that fewer bytes may arrive than
/// the limit asks for.
const TAIL_AFTER_OMISSION: Duration = Duration::from_millis(500);
/// Margin before the planned end: a test that ends earlier than that was stopped.
const EARLY_END_MARGIN: Duration = Duration::from_millis(500);

/// A test with connected streams.
pub(super) struct TestRun<'a> {
    pub(super) plan: &'a Plan,
    pub(super) length: u32,
    pub(super) counters: CounterWidth,
    pub(super) streams: &'a [Stream],
    pub(super) roles: &'a [Role],
    pub(super) control: &'a mut Control,
    /// Length of an interval. `None`: no intervals.
    pub(super) period: Option<Duration>,
    pub(super) watch: &'a mut dyn Observer,
}

impl TestRun<'_> {
    /// Carries out the test. The streams are left open.
    pub(super) fn run(mut self) -> Result<Report, Error> {
        let bell = Notifier::new().map_err(Error::Control)?;
        let data = self.data()?;
        let pump = self.pump(&bell, &data)?;
        let meters: Vec<Meter> = self.roles.iter().map(|&role| Meter::new(role)).collect();
        // The threads may move data as soon as they exist, so the counters start before them.
        let ledger = IntervalStats::new(now(), self.period, self.plan.omit, self.snapshot(&meters)?);
        thread::scope(|scope| {
            let streams = self.streams;
            for (stream, meter) in streams.iter().zip(&meters) {
                let pump = &pump;
                let work = move || pump.run_stream(stream, meter);
                if let Err(error) = thread::Builder::new().name("bench".into()).spawn_scoped(scope, work) {
                    pump.stop();
                    return Err(hopline_linux::Error::system("starting a thread", error).into());
                }
            }
            let result = self.run_until_end(ledger, &pump, &meters);
            pump.stop();
            result
        })
    }

    fn pump<'b>(&self, bell: &'b Notifier, data: &'b [u8]) -> Result<Pump<'b>, Error> {
        let bytes = match self.plan.limit {
            Limit::Bytes(bytes) => Some(bytes),
            Limit::Time(_) => None,
        };
        let tcp = matches!(self.plan.transport, Transport::Tcp { .. });
        let file = match self.plan.socket_options.copy {
            CopyMode::ZeroCopy if tcp => Some(
                memory_file(data)
                    .map_err(|e| hopline_linux::Error::system("making a file of what is to be sent", e))?,
            ),
            CopyMode::ZeroCopy | CopyMode::Copy => None,
        };
        // A server that cannot know when enough has arrived sends until the client ends the test: datagrams are lost,
        // and the server's omission ends before the client's.
        let cannot_know = self.plan.transport == Transport::Udp || !self.plan.omit.is_zero();
        let endless = cannot_know && self.control.side() == Side::Server;
        Ok(Pump {
            length: self.length as usize,
            data,
            file,
            counters: self.counters,
            rate: self.plan.rate,
            notifier: bell,
            counting: AtomicBool::new(self.plan.omit.is_zero()),
            budget: bytes.filter(|_| !endless).map(AtomicU64::new),
            goal: bytes.filter(|_| self.roles.contains(&Role::Receives)),
            arrived: AtomicU64::new(0),
            reached: OnceLock::new(),
            sending_done: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// Returns random data, which no link can compress.
    fn data(&self) -> Result<Vec<u8>, Error> {
        let sends = self.roles.contains(&Role::Sends);
        let mut random = vec![0; if sends { self.length as usize } else { 0 }];
        getrandom::fill(&mut random)
            .map_err(|e| hopline_linux::Error::system("asking for random bytes", std::io::Error::other(e)))?;
        Ok(random)
    }

    fn run_until_end(
        &mut self,
        mut ledger: IntervalStats,
        pump: &Pump<'_>,
        meters: &[Meter],
    ) -> Result<Report, Error> {
        let cpu = CpuClock::start();
        let mut progress = Progress::of(&[Role::Sends, Role::Receives]);
        let mut told = None;
        let (ended, ending) = loop {
            let at = now();
            if let Some(end) = self.end(&ledger, at, pump, meters)? {
                break end;
            }
            let rested = progress.idle_time(at, meters);
            // Data may still arrive after the end.
            let tail = told
                .map(|_| self.tail_timeout())
                .or_else(|| self.may_fall_short(&ledger).then_some(TAIL_TIMEOUT));
            // The time after the last arrival belongs to no interval.
            let due = ledger.next_end().filter(|_| tail.is_none() || rested < 2 * INTERRUPT_CHECK);
            if due.is_some_and(|due| due <= at) {
                let interval = ledger.end_interval(at, &self.snapshot(meters)?);
                interval.iter().for_each(|interval| self.watch.interval(interval));
                if ledger.measured_since().is_some() {
                    pump.end_omission();
                }
            }
            if tail.is_some_and(|tail| rested >= tail) {
                break (progress.at, Ending::Complete);
            }
            if self.plan.rate.bps == 0 && rested >= STALL_TIMEOUT {
                return Err(Error::Silent(STALL_TIMEOUT.as_secs()));
            }
            let next = [due, self.deadline(&ledger)].into_iter().flatten().filter(|&next| next > at).min();
            let wait = next
                .map_or(INTERRUPT_CHECK, |next| next.saturating_duration_since(now()).min(INTERRUPT_CHECK));
            match self.control.receive_state(wait, pump.notifier)? {
                None => {}
                Some(State::TestEnd) if self.control.side() == Side::Server && told.is_none() => {
                    told = Some(now());
                    if let Some(end) = self.end_by_client(&ledger, pump) {
                        break end;
                    }
                    pump.stop_sending();
                    progress = Progress::of(&[Role::Receives]);
                }
                Some(state) => return Err(unexpected_state(state)),
            }
        };
        let last = ledger.end(ended, &self.snapshot(meters)?);
        last.iter().for_each(|interval| self.watch.interval(interval));
        let cpu = cpu.read();
        self.synchronize_end(told.is_some(), pump, ending)?;
        let omitted = ledger.omitted();
        let local = SideReport {
            elapsed: ledger.elapsed(),
            cpu,
            congestion_control: self.streams.first().and_then(Stream::congestion_control),
            streams: ledger.streams(),
            output: None,
        };
        let mut report = Report { local, remote: None, ending, latency: None };
        match (self.exchange_results(&mut report, &omitted), ending) {
            (Ok(()), _) | (Err(_), Ending::Stopped) => Ok(report),
            (Err(error), Ending::Complete) => Err(error),
        }
    }

    /// Returns the time without arrivals after which no more data are expected.
    fn tail_timeout(&self) -> Duration {
        if self.plan.omit.is_zero() { TAIL_TIMEOUT } else { TAIL_AFTER_OMISSION }
    }

    /// Returns whether fewer bytes may arrive than the limit asks for. An iperf3 server counts its bytes from the end of
    /// its own omission, which is before the end of the client's.
    fn may_fall_short(&self, ledger: &IntervalStats) -> bool {
        self.control.side() == Side::Client
            && self.control.dialect == Dialect::Iperf3
            && matches!(self.plan.limit, Limit::Bytes(_))
            && !self.plan.omit.is_zero()
            && self.plan.rate.bps == 0
            && self.roles.contains(&Role::Receives)
            && ledger.measured_since().is_some()
    }

    /// Returns the time and the kind of the end, if this side considers the test to be over.
    fn end(
        &self,
        ledger: &IntervalStats,
        at: Instant,
        pump: &Pump<'_>,
        meters: &[Meter],
    ) -> Result<Option<(Instant, Ending)>, Error> {
        if self.watch.interrupted() {
            return match self.control.side() {
                Side::Client => Ok(Some((at, Ending::Stopped))),
                Side::Server => Err(Error::Interrupted),
            };
        }
        if self.deadline(ledger).is_some_and(|end| end <= at) {
            return Ok(Some((at, Ending::Complete)));
        }
        let mut sent = ledger.measured_since();
        for (meter, number) in meters.iter().zip(1..) {
            let broken = |source| Error::Data { stream: number, source };
            match (meter.end(), meter.role) {
                (Some(StreamEnd::Broken(error)), _) => return Err(broken(copy_error(error))),
                // A sender closes its streams when the test is over; the state on the control connection follows.
                (Some(StreamEnd::Done(_)), Role::Receives) if self.control.side() == Side::Server => {}
                (Some(StreamEnd::Done(_)), Role::Receives) if pump.reached.get().is_some() => {}
                (Some(StreamEnd::Done(_)), Role::Receives) => {
                    return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
                }
                (Some(StreamEnd::Done(at)), Role::Sends) => sent = sent.map(|sent| sent.max(*at)),
                (None, Role::Sends) => sent = None,
                (None, Role::Receives) => {}
            }
        }
        let Limit::Bytes(_) = self.plan.limit else { return Ok(None) };
        let came = match (self.roles.contains(&Role::Receives), pump.reached.get()) {
            (false, _) => ledger.measured_since(),
            (true, reached) => reached.copied(),
        };
        // The end of the server's sending does not end the test: the client knows when everything has arrived.
        let may = self.control.side() == Side::Client || !self.roles.contains(&Role::Sends);
        Ok(sent.zip(came).filter(|_| may).map(|(sent, came)| (sent.max(came), Ending::Complete)))
    }

    /// Server: returns the end of the test after the client has ended it.
    fn end_by_client(&self, ledger: &IntervalStats, pump: &Pump<'_>) -> Option<(Instant, Ending)> {
        let at = now();
        match self.plan.limit {
            Limit::Time(time) => {
                let early = ledger.measured_since().is_none_or(|began| at - began + EARLY_END_MARGIN < time);
                Some((at, if early { Ending::Stopped } else { Ending::Complete }))
            }
            // Data that the client has sent are still to arrive.
            Limit::Bytes(_) if pump.reached.get().is_none() && self.roles.contains(&Role::Receives) => None,
            Limit::Bytes(_) => Some((at, Ending::Complete)),
        }
    }

    /// Returns the time of this side's end of the test. With UDP the client decides, so that no datagram in flight counts
    /// as lost.
    fn deadline(&self, ledger: &IntervalStats) -> Option<Instant> {
        let Limit::Time(time) = self.plan.limit else { return None };
        let end = ledger.measured_since().map(|began| began + time);
        match (self.control.side(), &self.plan.transport) {
            (Side::Server, Transport::Udp) => end.map(|end| end + END_TIMEOUT),
            _ => end,
        }
    }

    fn snapshot(&self, meters: &[Meter]) -> Result<Vec<StreamSnapshot>, Error> {
        let numbered = self.streams.iter().zip(meters).zip(1..);
        numbered
            .map(|((stream, meter), number)| {
                let telemetry = match meter.role {
                    Role::Sends => {
                        stream.telemetry().map_err(|source| Error::Data { stream: number, source })?
                    }
                    Role::Receives => None,
                };
                let datagrams = matches!(stream, Stream::Udp(_)).then(|| meter.datagrams());
                Ok(StreamSnapshot { role: meter.role, bytes: meter.bytes(), telemetry, datagrams })
            })
            .collect()
    }

    /// Brings both sides to the end of the test, after which neither sends. A server sends until the client ends the
    /// test, since the test time of the two sides ends at different moments.
    fn synchronize_end(&mut self, told: bool, pump: &Pump<'_>, ending: Ending) -> Result<(), Error> {
        let patience = match ending {
            Ending::Complete => RESULTS_TIMEOUT,
            Ending::Stopped => RESULTS_TIMEOUT_IF_STOPPED,
        };
        match self.control.side() {
            Side::Client => {
                if !self.roles.contains(&Role::Receives) {
                    pump.stop();
                }
                let agreed = self.control.send_state(State::TestEnd).and_then(|()| {
                    self.control.await_state(State::ExchangeResults, patience, "end the test", &|| false)
                });
                if ending == Ending::Complete { agreed } else { Ok(()) }
            }
            Side::Server => {
                if !told {
                    let watch = &self.watch;
                    self.control
                        .await_state(State::TestEnd, END_TIMEOUT, "end the test", &|| watch.interrupted())?;
                }
                pump.stop();
                self.end_sending_streams();
                self.control.send_state(State::ExchangeResults)
            }
        }
    }

    /// Server: ends its sending streams. iperf3 reads whole blocks and checks nothing else meanwhile: after part of a
    /// block it waits for more data or for the end of the stream.
    fn end_sending_streams(&self) {
        let sending = self.streams.iter().zip(self.roles).filter(|(_, role)| **role == Role::Sends);
        sending.for_each(|(stream, _)| stream.end_data());
    }

    /// Exchanges results with the peer; the client sends first. `omitted`: datagrams of this side that did not count.
    fn exchange_results(&mut self, report: &mut Report, omitted: &[DatagramStats]) -> Result<(), Error> {
        match self.control.side() {
            Side::Client => {
                self.control.send_json(&Results::of(&report.local, omitted, self.control.dialect))?;
                report.remote = Some(self.receive_results(omitted)?);
            }
            Side::Server => {
                report.remote = Some(self.receive_results(omitted)?);
                if self.plan.output == Output::WithServer {
                    report.local.output = self.watch.output(report).map(ServerOutput::Text);
                }
                self.control.send_json(&Results::of(&report.local, omitted, self.control.dialect))?;
                self.control.send_state(State::DisplayResults)?;
            }
        }
        Ok(())
    }

    fn receive_results(&mut self, omitted: &[DatagramStats]) -> Result<SideReport, Error> {
        let theirs: Results = self.control.receive_json().map_err(|error| match error {
            Error::Protocol(words) => Error::Results(words),
            error => error,
        })?;
        let roles: Vec<Role> = self.roles.iter().map(|role| role.other()).collect();
        let here = LocalContext { roles: &roles, plan: self.plan, length: self.length, omitted };
        theirs.into_report(&here).map_err(Error::Results)
    }
}

/// Detector of progress on the streams of certain roles.
struct Progress {
    roles: &'static [Role],
    bytes: u64,
    at: Instant,
}

impl Progress {
    fn of(roles: &'static [Role]) -> Self {
        Self { roles, bytes: 0, at: now() }
    }

    /// Returns the time since the last progress.
    fn idle_time(&mut self, now: Instant, meters: &[Meter]) -> Duration {
        let counted = meters.iter().filter(|meter| self.roles.contains(&meter.role));
        let bytes = counted.map(Meter::bytes).sum();
        if bytes != self.bytes {
            *self = Self { bytes, at: now, ..*self };
        }
        now.saturating_duration_since(self.at)
    }
}

/// Returns a copy of a system error, which does not implement `Clone`.
fn copy_error(error: &std::io::Error) -> std::io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), std::io::Error::from_raw_os_error)
}
