//! `hopline send`.

mod connect;
mod receiver;
mod retry_reason;

use super::identity::{self, KnownKey, OwnKey};
use crate::console;
use crate::net::RESUMABLE_MESSAGE;
use crate::net::args::{Send as Args, Transport};
use crate::net::clock;
use crate::net::state::{State, WaitCause};
use crate::net::transfer_printer::{TransferKind, TransferPrinter};
use crate::problems::{Failure, print_error_line};
use connect::connect;
use hopline_core::Duration as Span;
use hopline_lab::Problem;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, Trust, Wide};
use hopline_streams::{Protocol, Stream};
use hopline_tools::transfer::{self, Error, Shared, Source};
use indicatif::MultiProgress;
use retry_reason::RetryReason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Interval at which a blocked read or write checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const POLL_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Longest time of one attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Shortest time limit of an attempt.
const MIN_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest time to wait until the receiver has the last message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends a file, a directory or standard input, over as many connections as necessary.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    console::catch_interrupts()?;
    let input_is_silent = Arc::default();
    let source = source(args, &input_is_silent)?;
    for skipped in source.skipped() {
        print_error_line(&format!("left out: {skipped}"));
    }
    identity::check(&args.identity)?;
    let bytes = source.bytes();
    let transferred = TransferKind::Outgoing { bytes, input_is_silent };
    let mut follow = TransferPrinter::new(args.show, transferred, &MultiProgress::new());
    let sent =
        transport_config(args, &mut follow).and_then(|spoken| send(args, &spoken, source, &mut follow));
    match sent {
        Ok(()) => follow.summarise(),
        Err(failure) => {
            follow.report_failure_of(&failure);
            Err(failure)
        }
    }
}

/// Transport, with its configuration.
enum TransportConfig {
    Tpa(Box<tpa::Config>),
    Wide(Box<wide::Config>, Option<KnownKey>),
}

fn transport_config(args: &Args, follow: &mut TransferPrinter) -> Result<TransportConfig, Failure> {
    let silence = Some(Span::from_secs(idle_timeout(args).as_secs()));
    Ok(match args.identity.transport {
        Transport::Tpa => {
            if args.trust.is_some() || args.trust_on_first_use {
                let what = "--transport tpa knows no keys, so that no receiver can be trusted";
                return Err(Problem::new(what).help("leave out --trust or --transport").into());
            }
            let config = tpa::config(args.window).with_silence_limit(silence);
            TransportConfig::Tpa(Box::new(config))
        }
        Transport::TpaWide => {
            let (credentials, known) = credentials(args, follow)?;
            let config = wide::config(credentials);
            let transport = config.transport().with_silence_limit(silence);
            let config = config.with_transport(transport);
            TransportConfig::Wide(Box::new(config), known)
        }
    })
}

/// Returns the sender's credentials, and the trusted receiver.
fn credentials(
    args: &Args,
    follow: &mut TransferPrinter,
) -> Result<(Credentials, Option<KnownKey>), Failure> {
    Ok(match identity::own_key(&args.identity)? {
        OwnKey::Shared(key) => (Credentials::Shared(key), None),
        OwnKey::Private(private) => {
            let (key, known) = receiver::find(args, follow)?;
            (Credentials::Keys { private, trust: Trust::Only(vec![key]) }, known)
        }
    })
}

fn source(args: &Args, input_is_silent: &Arc<AtomicBool>) -> Result<Source, Failure> {
    let source = if args.source == Path::new("-") {
        let name = args.name.as_deref().expect("the arguments require it with `-`");
        let input = InterruptibleStdin::new(input_is_silent.clone())
            .map_err(|e| Failure::Other(format!("cannot read standard input: {e}")))?;
        Source::of_stream(input, name)
    } else {
        Source::of_path(&args.source, args.name.as_deref())
    };
    source.map_err(|e| match e {
        Error::Interrupted => Failure::Interrupted(RESUMABLE_MESSAGE),
        e => Failure::Input(Problem::new(e.to_string()).into()),
    })
}

/// Returns the longest silence of the receiver. Half of the patience is left for another connection.
fn idle_timeout(args: &Args) -> Duration {
    Duration::from_secs(args.silence.min(args.patience / 2).max(1).into())
}

/// Returns the time limit of a connection attempt if `left` is left for all of them. An attempt without answer ends after
/// the limit of `--silence`, so that the name is resolved again.
fn attempt_timeout(silence_s: u32, left: Duration) -> Duration {
    CONNECT_TIMEOUT.min(Duration::from_secs(silence_s.into())).min(left).max(MIN_ATTEMPT_TIMEOUT)
}

/// Returns the time that may pass without progress.
fn progress_timeout(args: &Args) -> Duration {
    Duration::from_secs(args.patience.into()).max(MIN_ATTEMPT_TIMEOUT)
}

/// Tries until the transfer is complete, an error other than one of the connection occurs, or the patience is over.
fn send(
    args: &Args,
    spoken: &TransportConfig,
    first: Source,
    follow: &mut TransferPrinter,
) -> Result<(), Failure> {
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
        follow.restart(source.remove_settled(follow.settled()));
        follow.set_state(connection.clone());
        let left = progress_timeout(args).saturating_sub(follow.progressed().elapsed());
        let mut source = Some(source);
        let setback = match attempt(args, spoken, &mut source, left, follow) {
            Ok(()) => match follow.deferral() {
                Some(refusal) => RetryReason::Deferred(refusal.clone()),
                None => return Ok(()),
            },
            Err(RetryReason::Error(Error::Interrupted)) => {
                return Err(Failure::Interrupted(RESUMABLE_MESSAGE));
            }
            Err(setback) => setback,
        };
        if source.is_none() {
            connection = State::Reconnecting;
        }
        // A stream that was not begun is not lost.
        let again = repeatable || source.is_some();
        next = source.filter(|_| !repeatable);
        let left = progress_timeout(args).saturating_sub(follow.progressed().elapsed());
        if !again || !setback.is_retryable() || left.is_zero() {
            return match setback {
                RetryReason::Deferred(_) => Ok(()),
                setback => Err(report_failure(args, spoken, &setback, follow)),
            };
        }
        pause(args, &setback, left, follow)?;
    }
}

/// Reports the failure of the last attempt.
fn report_failure(
    args: &Args,
    spoken: &TransportConfig,
    setback: &RetryReason,
    follow: &mut TransferPrinter,
) -> Failure {
    let known = match spoken {
        TransportConfig::Wide(_, known) => known.as_ref(),
        TransportConfig::Tpa(_) => None,
    };
    let mut why = format!("{}: {}", args.peer, setback_text(args, setback));
    if let (true, Some(known)) = (setback.is_wrong_key(), known) {
        why += &format!("; {known}");
    }
    follow.report_failure(setback.code(), &why);
    Failure::Other(why)
}

/// Describes a setback and its probable reason.
fn setback_text(args: &Args, setback: &RetryReason) -> String {
    if !setback.is_timeout() {
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
fn pause(
    args: &Args,
    setback: &RetryReason,
    left: Duration,
    follow: &mut TransferPrinter,
) -> Result<(), Failure> {
    let pause = setback.retry_delay(follow.progressed().elapsed()).min(left);
    let why = setback_text(args, setback);
    follow.report_retry(setback.code(), &format!("{}: {why}; trying again", args.peer));
    follow.set_state(State::Waiting(WaitCause { code: setback.code(), why, until: clock::now() + pause }));
    wait_or_interrupt(pause)
}

/// Makes one attempt over one connection. Takes `source` once it is open.
fn attempt(
    args: &Args,
    spoken: &TransportConfig,
    source: &mut Option<Source>,
    left: Duration,
    follow: &mut TransferPrinter,
) -> Result<(), RetryReason> {
    let (limit, silence) = (attempt_timeout(args.silence, left), idle_timeout(args));
    match spoken {
        TransportConfig::Tpa(config) => {
            converse(connect::<Tpa>(&args.peer, config, limit)?, source, silence, follow)
        }
        TransportConfig::Wide(config, _) => {
            converse(connect::<Wide>(&args.peer, config, limit)?, source, silence, follow)
        }
    }
    .map_err(RetryReason::Error)
}

fn converse<P: Protocol>(
    stream: Stream<P>,
    source: &mut Option<Source>,
    silence: Duration,
    follow: &mut TransferPrinter,
) -> Result<(), Error> {
    let Some(source) = source.take() else { return Ok(()) };
    follow.set_state(State::Sending);
    stream.set_read_timeout(Some(POLL_INTERVAL));
    stream.set_write_timeout(Some(POLL_INTERVAL));
    let stream = Shared::new(stream);
    let sent = transfer::send(stream.clone(), stream.clone(), source, Some(silence), follow);
    // All replies have arrived, or the last message has the reason: a failure here loses nothing. The thread that reads
    // replies may still have the stream; it ends with it.
    if stream.get().close_within(CLOSE_TIMEOUT).is_err() {
        stream.get().abort();
    }
    sent.map(drop)
}

/// Standard input that returns `WouldBlock` from time to time while no data arrive, so that Ctrl-C and the receiver are
/// handled.
struct InterruptibleStdin {
    input: File,
    is_silent: Arc<AtomicBool>,
}

impl InterruptibleStdin {
    fn new(is_silent: Arc<AtomicBool>) -> io::Result<Self> {
        // Not by `Stdin`: `poll` does not see data in its buffer.
        Ok(Self { input: io::stdin().as_fd().try_clone_to_owned()?.into(), is_silent })
    }
}

impl Read for InterruptibleStdin {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let is_silent = poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&POLL_TIMEOUT))? == 0;
        self.is_silent.store(is_silent, Relaxed);
        if is_silent { Err(io::ErrorKind::WouldBlock.into()) } else { self.input.read(data) }
    }
}

fn wait_or_interrupt(pause: Duration) -> Result<(), Failure> {
    let until = clock::now() + pause;
    while clock::now() < until {
        if console::interrupted() {
            return Err(Failure::Interrupted(RESUMABLE_MESSAGE));
        }
        thread::sleep(POLL_INTERVAL.min(pause));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_no_longer_than_the_idle_timeout() {
        let seconds = Duration::from_secs;
        for (silence, left, limit) in [(120, 600, 20), (4, 600, 4), (4, 3, 3)] {
            assert_eq!(attempt_timeout(silence, seconds(left)), seconds(limit));
        }
        assert_eq!(attempt_timeout(4, Duration::ZERO), MIN_ATTEMPT_TIMEOUT);
    }
}
