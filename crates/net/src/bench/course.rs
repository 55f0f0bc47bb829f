//! A test from its beginning to its end: the same on both sides.

use super::control::{Bell, Control, LOOK, Side, out_of_turn};
use super::cpu::CpuClock;
use super::error::Error;
use super::ledger::{Ledger, Standing};
use super::message::Message;
use super::plan::{Limit, Plan};
use super::pump::{End, Meter, Pump};
use super::report::{Ending, Report, SideReport};
use super::stream::Stream;
use super::{Watch, now};
use std::thread;
use std::time::{Duration, Instant};

/// How long the other side's results are awaited.
const RESULTS: Duration = Duration::from_secs(30);
/// The same, if somebody wants to go.
const RESULTS_IF_STOPPED: Duration = Duration::from_secs(2);
/// How long nothing may arrive where only bytes end the test.
const STALL: Duration = Duration::from_secs(120);

/// What this side does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sends,
    Receives,
}

/// A test, all set.
pub(super) struct Course<'a> {
    pub(super) plan: &'a Plan,
    pub(super) role: Role,
    pub(super) streams: &'a [Stream],
    pub(super) control: &'a mut Control,
    /// Of intervals; `None`: none.
    pub(super) period: Option<Duration>,
    pub(super) watch: &'a mut dyn Watch,
}

impl Course<'_> {
    /// Carries it out. The streams are as they were left.
    pub(super) fn run(mut self) -> Result<Report, Error> {
        let bell = Bell::new().map_err(Error::Control)?;
        let budget = match (self.role, self.plan.limit) {
            (Role::Sends, Limit::Bytes(bytes)) => Some(bytes),
            _ => None,
        };
        let pump = Pump::new(self.plan.length as usize, &bell, budget);
        let meters: Vec<Meter> = self.streams.iter().map(|_| Meter::default()).collect();
        let mut buffers = self.buffers()?;
        // What moves as soon as there are threads counts.
        let ledger = Ledger::new(now(), self.period, self.plan.omit, self.standing(&meters)?);
        thread::scope(|scope| {
            let (role, streams) = (self.role, self.streams);
            for ((stream, meter), buffer) in streams.iter().zip(&meters).zip(&mut buffers) {
                let pump = &pump;
                let work = move || match role {
                    Role::Sends => pump.send(stream, buffer, meter),
                    Role::Receives => pump.receive(stream, buffer, meter),
                };
                if let Err(error) = thread::Builder::new().name("bench".into()).spawn_scoped(scope, work) {
                    pump.stop();
                    return Err(crate::Error::system("starting a thread", error).into());
                }
            }
            let result = self.conduct(ledger, &pump, &meters);
            pump.stop();
            result
        })
    }

    /// Data that no link can compress, or room for what comes.
    fn buffers(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut buffer = vec![0; self.plan.length as usize];
        if self.role == Role::Sends {
            getrandom::fill(&mut buffer)
                .map_err(|e| crate::Error::system("asking for random bytes", std::io::Error::other(e)))?;
        }
        Ok(vec![buffer; self.streams.len()])
    }

    fn conduct(&mut self, mut ledger: Ledger, pump: &Pump<'_>, meters: &[Meter]) -> Result<Report, Error> {
        let (began, cpu) = (now(), CpuClock::start());
        let mut progress = Progress { bytes: 0, at: began };
        let mut remote = None;
        let (ended, ending) = loop {
            let at = now();
            if let Some(end) = self.end(&ledger, at, meters, remote.is_some())? {
                break end;
            }
            if ledger.due().is_some_and(|due| due <= at) {
                let interval = ledger.tick(at, &self.standing(meters)?);
                interval.iter().for_each(|interval| self.watch.interval(interval));
            }
            if self.role == Role::Receives && matches!(self.plan.limit, Limit::Bytes(_)) {
                progress.check(at, meters)?;
            }
            let next = [ledger.due(), self.time_up(&ledger)].into_iter().flatten().min();
            let wait = next.map_or(LOOK, |next| next.saturating_duration_since(now()).min(LOOK));
            match self.control.receive(wait, pump.bell)? {
                None => {}
                Some(Message::Results(results)) if remote.is_none() => remote = Some(self.checked(results)?),
                Some(Message::Stop) if self.control.side() == Side::Server => break (now(), Ending::Stopped),
                Some(message) => return Err(out_of_turn(&message)),
            }
        };
        let last = ledger.end(ended, &self.standing(meters)?);
        last.iter().for_each(|interval| self.watch.interval(interval));
        if self.role == Role::Sends {
            pump.stop();
        }
        let local = SideReport {
            elapsed: ledger.elapsed(),
            cpu: cpu.read(),
            congestion_control: self.streams.first().and_then(Stream::congestion_control),
            streams: ledger.streams(),
        };
        let remote = self.exchange(&local, remote, ending, pump.bell)?;
        let ending = if remote.is_none() { Ending::Stopped } else { ending };
        Ok(Report { local, remote, ending })
    }

    /// Whether it is over, since when, and how.
    fn end(
        &mut self,
        ledger: &Ledger,
        at: Instant,
        meters: &[Meter],
        peer_has_ended: bool,
    ) -> Result<Option<(Instant, Ending)>, Error> {
        if self.watch.interrupted() {
            return match self.control.side() {
                Side::Client => {
                    // A server that cannot be told will miss us.
                    let _ = self.control.send(&Message::Stop);
                    Ok(Some((at, Ending::Stopped)))
                }
                Side::Server => Err(Error::Interrupted),
            };
        }
        if self.time_up(ledger).is_some_and(|end| end <= at) {
            return Ok(Some((at, Ending::Complete)));
        }
        let mut last = ledger.counts_since();
        for (meter, number) in meters.iter().zip(1..) {
            let broken = |source| Error::Data { stream: number, source };
            match (meter.end(), self.plan.limit) {
                (Some(End::Broken(error)), _) => return Err(broken(same(error))),
                (Some(End::Done(_)), Limit::Time(_)) => {
                    return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
                }
                (Some(End::Done(at)), Limit::Bytes(_)) => last = last.map(|last| last.max(*at)),
                (None, _) => last = None,
            }
        }
        Ok(match (self.plan.limit, self.role) {
            (Limit::Time(_), _) => None,
            // Sent is what has arrived: the receiver knows when.
            (Limit::Bytes(_), Role::Sends) => peer_has_ended.then_some((at, Ending::Complete)),
            (Limit::Bytes(_), Role::Receives) => last.map(|last| (last, Ending::Complete)),
        })
    }

    fn time_up(&self, ledger: &Ledger) -> Option<Instant> {
        match self.plan.limit {
            Limit::Time(time) => ledger.counts_since().map(|began| began + time),
            Limit::Bytes(_) => None,
        }
    }

    fn standing(&self, meters: &[Meter]) -> Result<Vec<Standing>, Error> {
        let numbered = self.streams.iter().zip(meters).zip(1..);
        numbered
            .map(|((stream, meter), number)| {
                let telemetry = match self.role {
                    Role::Sends => {
                        Some(stream.telemetry().map_err(|source| Error::Data { stream: number, source })?)
                    }
                    Role::Receives => None,
                };
                Ok(Standing { bytes: meter.bytes(), telemetry })
            })
            .collect()
    }

    /// Gives the other side our results for theirs.
    fn exchange(
        &mut self,
        local: &SideReport,
        mut remote: Option<SideReport>,
        ending: Ending,
        bell: &Bell,
    ) -> Result<Option<SideReport>, Error> {
        let patience = match ending {
            Ending::Complete => RESULTS,
            Ending::Stopped => RESULTS_IF_STOPPED,
        };
        let until = now() + patience;
        let told = self.control.send(&Message::Results(local.clone()));
        let hear = || {
            told?;
            while remote.is_none() && now() < until {
                match self.control.receive(LOOK, bell)? {
                    Some(Message::Results(results)) => remote = Some(self.checked(results)?),
                    Some(Message::Stop) if self.control.side() == Side::Server => {}
                    Some(message) => return Err(out_of_turn(&message)),
                    None if ending == Ending::Complete && self.watch.interrupted() => break,
                    None => {}
                }
            }
            Ok(remote)
        };
        match (hear(), ending) {
            (Ok(None), Ending::Complete) if !self.watch.interrupted() => Err(Error::Late("tell its results")),
            (Err(_), Ending::Stopped) => Ok(None),
            (results, _) => results,
        }
    }

    fn checked(&self, results: SideReport) -> Result<SideReport, Error> {
        let told = results.streams.len() == self.streams.len();
        let sends = results.streams.iter().all(|s| s.sending.is_some() == (self.role == Role::Receives));
        if told && sends { Ok(results) } else { Err(Error::Protocol("results of another test".into())) }
    }
}

/// Whether data still move.
struct Progress {
    bytes: u64,
    at: Instant,
}

impl Progress {
    fn check(&mut self, now: Instant, meters: &[Meter]) -> Result<(), Error> {
        let bytes = meters.iter().map(Meter::bytes).sum();
        if bytes != self.bytes {
            *self = Self { bytes, at: now };
        }
        if now - self.at >= STALL { Err(Error::Late("move any data")) } else { Ok(()) }
    }
}

/// An error of the system has no copies.
fn same(error: &std::io::Error) -> std::io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), std::io::Error::from_raw_os_error)
}
