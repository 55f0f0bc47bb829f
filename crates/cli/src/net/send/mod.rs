//! `hopline send`.

mod connect;
mod receiver;
mod setback;

use super::identity::{self, Known, Ours};
use crate::console;
use crate::net::TRANSFER_KEPT;
use crate::net::args::{Send as Args, Transport};
use crate::net::clock;
use crate::net::follow::{Follow, Transferred};
use crate::net::state::{Cause, State};
use crate::problems::{Failure, say};
use connect::connect;
use hopline_core::Duration as Span;
use hopline_lab::Problem;
use hopline_streams::streams::{Protocol, Stream};
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, Trust, Wide};
use hopline_tools::transfer::{self, Error, Shared, Source};
use indicatif::MultiProgress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use setback::Setback;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Interval at which a blocked read or write checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(200);
const LOOK_UP_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Longest time of one attempt to connect.
const CONNECT: Duration = Duration::from_secs(20);
/// Shortest time limit of an attempt.
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
/// Longest time to wait until the receiver has the last message.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Sends a file, a directory or standard input, over as many connections as necessary.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    console::catch_interrupts()?;
    let input_is_silent = Arc::default();
    let source = source(args, &input_is_silent)?;
    for skipped in source.skipped() {
        say(&format!("left out: {skipped}"));
    }
    identity::check(&args.identity)?;
    let bytes = source.bytes();
    let transferred = Transferred::Outwards { bytes, input_is_silent };
    let mut follow = Follow::new(args.show, transferred, &MultiProgress::new());
    let sent = spoken(args, &mut follow).and_then(|spoken| send(args, &spoken, source, &mut follow));
    match sent {
        Ok(()) => follow.summarise(),
        Err(failure) => {
            follow.failed_by(&failure);
            Err(failure)
        }
    }
}

/// Transport, with its configuration.
enum Spoken {
    Tpa(Box<tpa::Config>),
    Wide(Box<wide::Config>, Option<Known>),
}

fn spoken(args: &Args, follow: &mut Follow) -> Result<Spoken, Failure> {
    let silence = Some(Span::from_secs(silence(args).as_secs()));
    Ok(match args.identity.transport {
        Transport::Tpa => {
            if args.trust.is_some() || args.trust_on_first_use {
                let what = "--transport tpa knows no keys, so that no receiver can be trusted";
                return Err(Problem::new(what).help("leave out --trust or --transport").into());
            }
            let mut config = tpa::config(args.window);
            config = config.with_silence_limit(silence);
            Spoken::Tpa(Box::new(config))
        }
        Transport::TpaWide => {
            let (credentials, known) = credentials(args, follow)?;
            let mut config = wide::config(credentials);
            config.transport = config.transport.with_silence_limit(silence);
            Spoken::Wide(Box::new(config), known)
        }
    })
}

/// Returns the sender's credentials, and the trusted receiver.
fn credentials(args: &Args, follow: &mut Follow) -> Result<(Credentials, Option<Known>), Failure> {
    Ok(match identity::ours(&args.identity)? {
        Ours::Shared(key) => (Credentials::Shared(key), None),
        Ours::Own(private) => {
            let (key, known) = receiver::find(args, follow)?;
            (Credentials::Keys { private, trust: Trust::Only(vec![key]) }, known)
        }
    })
}

fn source(args: &Args, input_is_silent: &Arc<AtomicBool>) -> Result<Source, Failure> {
    let source = if args.source == Path::new("-") {
        let name = args.name.as_deref().expect("the arguments require it with `-`");
        let input = Piped::new(input_is_silent.clone())
            .map_err(|e| Failure::Other(format!("cannot read standard input: {e}")))?;
        Source::of_stream(input, name)
    } else {
        Source::of_path(&args.source, args.name.as_deref())
    };
    source.map_err(|e| match e {
        Error::Interrupted => Failure::Interrupted(TRANSFER_KEPT),
        e => Failure::Input(Problem::new(e.to_string()).into()),
    })
}

/// Returns the longest silence of the receiver. Half of the patience is left for another connection.
fn silence(args: &Args) -> Duration {
    Duration::from_secs(args.silence.min(args.patience / 2).max(1).into())
}

/// Returns the time limit of a connection attempt if `left` is left for all of them. An attempt without answer ends after
/// the limit of `--silence`, so that the name is resolved again.
fn call_limit(silence_s: u32, left: Duration) -> Duration {
    CONNECT.min(Duration::from_secs(silence_s.into())).min(left).max(LEAST_PATIENCE)
}

/// Returns the time that may pass without progress.
fn patience(args: &Args) -> Duration {
    Duration::from_secs(args.patience.into()).max(LEAST_PATIENCE)
}

/// Tries until the transfer is complete, an error other than one of the connection occurs, or the patience is over.
fn send(args: &Args, spoken: &Spoken, first: Source, follow: &mut Follow) -> Result<(), Failure> {
    let repeatable = first.is_repeatable();
    let mut next = Some(first);
    let mut connection = State::Connecting;
    loop {
        let mut source = match next.take() {
            Some(source) => source,
            // Standard input can be read only once.
            None => source(args, &Arc::default())?,
        };
        for unsendable in source.refused() {
            follow.unsendable(unsendable);
        }
        follow.begin_anew(source.leave_out(follow.settled()));
        follow.turn(connection.clone());
        let left = patience(args).saturating_sub(follow.progressed().elapsed());
        let mut source = Some(source);
        let setback = match attempt(args, spoken, &mut source, left, follow) {
            Ok(()) => match follow.deferral() {
                Some(refusal) => Setback::Deferred(refusal.clone()),
                None => return Ok(()),
            },
            Err(Setback::Error(Error::Interrupted)) => return Err(Failure::Interrupted(TRANSFER_KEPT)),
            Err(setback) => setback,
        };
        if source.is_none() {
            connection = State::Reconnecting;
        }
        // A stream that was not begun is not lost.
        let again = repeatable || source.is_some();
        next = source.filter(|_| !repeatable);
        let left = patience(args).saturating_sub(follow.progressed().elapsed());
        if !again || !setback.is_worth_another_try() || left.is_zero() {
            return match setback {
                Setback::Deferred(_) => Ok(()),
                setback => Err(fail(args, spoken, &setback, follow)),
            };
        }
        pause(args, &setback, left, follow)?;
    }
}

/// Reports the failure of the last attempt.
fn fail(args: &Args, spoken: &Spoken, setback: &Setback, follow: &mut Follow) -> Failure {
    let known = match spoken {
        Spoken::Wide(_, known) => known.as_ref(),
        Spoken::Tpa(_) => None,
    };
    let mut why = format!("{}: {}", args.peer, told(args, setback));
    if let (true, Some(known)) = (setback.is_wrong_key(), known) {
        why += &format!("; {known}");
    }
    follow.failed(setback.code(), &why);
    Failure::Other(why)
}

/// Describes a setback and its probable reason.
fn told(args: &Args, setback: &Setback) -> String {
    if !setback.is_silence() {
        return setback.to_string();
    }
    let perhaps = if args.identity.psk.is_some() {
        "either no `hopline recv` is there, or its --psk is another key"
    } else {
        "perhaps no `hopline recv` is there, or UDP does not pass"
    };
    format!("no answer: {perhaps}")
}

/// Waits before the next attempt.
fn pause(args: &Args, setback: &Setback, left: Duration, follow: &mut Follow) -> Result<(), Failure> {
    let pause = setback.pause(follow.progressed().elapsed()).min(left);
    let why = told(args, setback);
    follow.retrying(setback.code(), &format!("{}: {why}; trying again", args.peer));
    follow.turn(State::Waiting(Cause { code: setback.code(), why, until: clock::now() + pause }));
    wait_or_interrupt(pause)
}

/// Makes one attempt over one connection. Takes `source` once it is open.
fn attempt(
    args: &Args,
    spoken: &Spoken,
    source: &mut Option<Source>,
    left: Duration,
    follow: &mut Follow,
) -> Result<(), Setback> {
    let (limit, silence) = (call_limit(args.silence, left), silence(args));
    match spoken {
        Spoken::Tpa(config) => converse(connect::<Tpa>(&args.peer, config, limit)?, source, silence, follow),
        Spoken::Wide(config, _) => {
            converse(connect::<Wide>(&args.peer, config, limit)?, source, silence, follow)
        }
    }
    .map_err(Setback::Error)
}

fn converse<P: Protocol>(
    stream: Stream<P>,
    source: &mut Option<Source>,
    silence: Duration,
    follow: &mut Follow,
) -> Result<(), Error> {
    let Some(source) = source.take() else { return Ok(()) };
    follow.turn(State::Sending);
    stream.set_read_timeout(Some(LOOK_UP));
    stream.set_write_timeout(Some(LOOK_UP));
    let stream = Shared::new(stream);
    let sent = transfer::send(stream.clone(), stream.clone(), source, Some(silence), follow);
    // All replies have arrived, or the last message has the reason: a failure here loses nothing. The thread that reads
    // replies may still have the stream; it ends with it.
    if stream.get().close_within(LAST_WORD).is_err() {
        stream.get().abort();
    }
    sent.map(drop)
}

/// Standard input that returns `WouldBlock` from time to time while no data arrive, so that Ctrl-C and the receiver are
/// handled.
struct Piped {
    input: File,
    is_silent: Arc<AtomicBool>,
}

impl Piped {
    fn new(is_silent: Arc<AtomicBool>) -> io::Result<Self> {
        // Not by `Stdin`: `poll` does not see data in its buffer.
        Ok(Self { input: io::stdin().as_fd().try_clone_to_owned()?.into(), is_silent })
    }
}

impl Read for Piped {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let is_silent = poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&LOOK_UP_WAIT))? == 0;
        self.is_silent.store(is_silent, Relaxed);
        if is_silent { Err(io::ErrorKind::WouldBlock.into()) } else { self.input.read(data) }
    }
}

fn wait_or_interrupt(pause: Duration) -> Result<(), Failure> {
    let until = clock::now() + pause;
    while clock::now() < until {
        if console::interrupted() {
            return Err(Failure::Interrupted(TRANSFER_KEPT));
        }
        thread::sleep(LOOK_UP.min(pause));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lasts_no_longer_than_a_silence() {
        let seconds = Duration::from_secs;
        for (silence, left, limit) in [(120, 600, 20), (4, 600, 4), (4, 3, 3)] {
            assert_eq!(call_limit(silence, seconds(left)), seconds(limit));
        }
        assert_eq!(call_limit(4, Duration::ZERO), LEAST_PATIENCE);
    }
}
