//! `hopline send`.

use super::identity::{self, Acquaintances, Ours};
use crate::console;
use crate::net::TRANSFER_KEPT;
use crate::net::args::{Send as Args, Transport};
use crate::net::clock;
use crate::net::follow::{Follow, Transferred};
use crate::problems::{Failure, say};
use hopline_core::Duration as Span;
use hopline_lab::Problem;
use hopline_net::streams::{Protocol, Stream};
use hopline_net::tpa::{self, Tpa};
use hopline_net::transfer::{self, Error, Shared, Source, Summary};
use hopline_net::wide::{self, Credentials, PrivateKey, PublicKey, Trust, Wide};
use hopline_secure::keys::{Name, UnusableName};
use indicatif::MultiProgress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often a blocked read or write looks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(200);
const LOOK_UP_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(20);
/// Less than this is no attempt.
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// The same where the receiver receives from somebody else.
const PAUSE_IF_BUSY: Duration = Duration::from_secs(5);
/// How long the receiver may take to hear the last word.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Sends a file, a directory or standard input, over as many connections as it takes.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let peer = address(&args.peer)?;
    console::catch_interrupts()?;
    let source = source(args)?;
    for skipped in source.skipped() {
        say(&format!("left out: {skipped}"));
    }
    identity::check(&args.identity)?;
    let spoken = spoken(args, peer)?;
    let mut follow = Follow::new(args.show, Transferred::Outwards(source.bytes()), &MultiProgress::new());
    let summary = send(args, peer, &spoken, source, &mut follow)?;
    follow.summarise(summary)
}

/// What is spoken, and how.
enum Spoken {
    Tpa(Box<tpa::Config>),
    Wide(Box<wide::Config>),
}

fn spoken(args: &Args, peer: SocketAddr) -> Result<Spoken, Failure> {
    // Half of the patience is left for another connection.
    let silence = Some(Span::from_secs(args.silence.min(args.patience / 2).max(1).into()));
    Ok(match args.identity.transport {
        Transport::Tpa => {
            if args.trust.is_some() || args.trust_on_first_use {
                let what = "--transport tpa knows no keys, so that nobody can be trusted";
                return Err(Problem::new(what).help("leave out --trust or --transport").into());
            }
            let mut config = tpa::config(args.window);
            config.silence_limit = silence;
            Spoken::Tpa(Box::new(config))
        }
        Transport::TpaWide => {
            let mut config = wide::config(credentials(args, peer)?);
            config.transport.silence.limit = silence;
            Spoken::Wide(Box::new(config))
        }
    })
}

/// Who we are, and who alone may receive.
fn credentials(args: &Args, peer: SocketAddr) -> Result<Credentials, Failure> {
    Ok(match identity::ours(&args.identity)? {
        Ours::Shared(key) => Credentials::Shared(key),
        Ours::Own(private) => {
            let trust = Trust::Only(vec![receiver(args, peer, &private)?]);
            Credentials::Keys { private, trust }
        }
    })
}

/// The key that the receiver must have. Who is not known is asked for it, and nothing is sent before it is trusted.
fn receiver(args: &Args, peer: SocketAddr, private: &PrivateKey) -> Result<PublicKey, Failure> {
    let name: Name = args.peer.parse().map_err(|error: UnusableName| {
        Problem::new(format!("{}: this cannot be the name of a peer", args.peer)).help(error.to_string())
    })?;
    let acquaintances = Acquaintances::load(&args.identity)?;
    let known = acquaintances.key_of(&name);
    let key = match known {
        Some(key) => key,
        None => ask(args, peer, private)?,
    };
    let fingerprint = key.fingerprint();
    match &args.trust {
        Some(wanted) if *wanted != fingerprint.to_string() => {
            Err(identity::impostor(&name, fingerprint, wanted))
        }
        Some(_) => Ok(key),
        None if known.is_some() => Ok(key),
        None if args.trust_on_first_use => acquaintances.add(&name, &key).map(|()| key),
        None => Err(acquaintances.stranger(&name, &key)),
    }
}

/// Which key the receiver shows that it has.
fn ask(args: &Args, peer: SocketAddr, private: &PrivateKey) -> Result<PublicKey, Failure> {
    let config = wide::config(Credentials::Keys { private: private.clone(), trust: Trust::Anyone });
    let patience = Duration::from_secs(args.patience.into()).max(LEAST_PATIENCE);
    let until = clock::now() + patience;
    loop {
        let left = until.saturating_duration_since(clock::now());
        let error = match connect::<Wide>(peer, config.clone(), CONNECT.min(left).max(LEAST_PATIENCE)) {
            Ok(stream) => {
                let key = stream.info().peer.key;
                stream.abort();
                let gone = || Failure::Other(format!("{peer}: gone before it said who it is"));
                return key.ok_or_else(gone);
            }
            Err(Error::Interrupted) => return Err(Failure::Interrupted(TRANSFER_KEPT)),
            Err(error) => error,
        };
        if until <= clock::now() {
            return Err(Failure::Other(format!("{peer}: {error}")));
        }
        say(&format!("{peer}: {error}; trying again"));
        wait_or_interrupt(PAUSE.min(left))?;
    }
}

fn source(args: &Args) -> Result<Source, Failure> {
    let source = if args.source == Path::new("-") {
        let name = args.name.as_deref().expect("the arguments require it with `-`");
        let input = piped().map_err(|e| Failure::Other(format!("cannot read standard input: {e}")))?;
        Source::of_stream(input, name)
    } else {
        Source::of_path(&args.source, args.name.as_deref())
    };
    source.map_err(|e| match e {
        Error::Interrupted => Failure::Interrupted(TRANSFER_KEPT),
        e => Failure::Input(hopline_lab::Problem::new(e.to_string()).into()),
    })
}

/// Tries until it is done, until something else than the connection goes wrong, or until patience is over.
fn send(
    args: &Args,
    peer: SocketAddr,
    spoken: &Spoken,
    first: Source,
    follow: &mut Follow,
) -> Result<Summary, Failure> {
    let patience = Duration::from_secs(args.patience.into()).max(LEAST_PATIENCE);
    let repeatable = first.is_repeatable();
    let mut next = Some(first);
    loop {
        let source = match next.take() {
            Some(source) => source,
            None => source(args)?,
        };
        follow.begin_anew();
        let left = patience.saturating_sub(follow.progressed().elapsed());
        let setback = match attempt(peer, spoken, source, left, follow) {
            Ok(summary) if summary.busy == 0 => return Ok(summary),
            Ok(summary) => Setback::Busy(summary),
            Err(Error::Interrupted) => return Err(Failure::Interrupted(TRANSFER_KEPT)),
            Err(error) => Setback::Error(error),
        };
        let left = patience.saturating_sub(follow.progressed().elapsed());
        if !repeatable || !setback.is_worth_another_try() || left.is_zero() {
            return setback.into_result(peer);
        }
        follow.say(&format!("{peer}: {setback}; trying again"));
        wait_or_interrupt(setback.pause().min(left))?;
    }
}

/// Why an attempt was not the last.
enum Setback {
    /// The receiver is at some of the files already: with a sender that was killed, as far as it knows.
    Busy(Summary),
    Error(Error),
}

impl Setback {
    fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Busy(_) => true,
            // Somebody else answers.
            Self::Error(Error::Connection(error)) if error.kind() == io::ErrorKind::PermissionDenied => false,
            Self::Error(error) => error.is_worth_another_try(),
        }
    }

    const fn pause(&self) -> Duration {
        match self {
            Self::Busy(_) => PAUSE_IF_BUSY,
            Self::Error(_) => PAUSE,
        }
    }

    fn into_result(self, peer: SocketAddr) -> Result<Summary, Failure> {
        match self {
            Self::Busy(summary) => Ok(summary),
            Self::Error(error) => Err(Failure::Other(format!("{peer}: {error}"))),
        }
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(summary) => write!(f, "{} being received from somebody else", summary.busy),
            Self::Error(error) => error.fmt(f),
        }
    }
}

fn attempt(
    peer: SocketAddr,
    spoken: &Spoken,
    source: Source,
    left: Duration,
    follow: &mut Follow,
) -> Result<Summary, Error> {
    let limit = CONNECT.min(left).max(LEAST_PATIENCE);
    match spoken {
        Spoken::Tpa(config) => converse(connect::<Tpa>(peer, **config, limit)?, source, follow),
        Spoken::Wide(config) => converse(connect::<Wide>(peer, (**config).clone(), limit)?, source, follow),
    }
}

fn converse<P: Protocol>(stream: Stream<P>, source: Source, follow: &mut Follow) -> Result<Summary, Error> {
    stream.set_read_timeout(Some(LOOK_UP));
    stream.set_write_timeout(Some(LOOK_UP));
    let stream = Shared::new(stream);
    let sent = transfer::send(stream.clone(), stream.clone(), source, follow);
    // All has been answered by now, or the last word says why not: what fails here is no loss. The thread that reads replies
    // may still have the stream; it ends with it.
    if stream.get().close_within(LAST_WORD).is_err() {
        stream.get().abort();
    }
    sent
}

/// Connects on a thread of its own, which nobody waits for after Ctrl-C.
fn connect<P: Protocol>(peer: SocketAddr, config: P::Config, limit: Duration) -> Result<Stream<P>, Error>
where
    P::Config: std::marker::Send + 'static,
{
    let (give, connected) = mpsc::channel();
    let work = move || give.send(Stream::<P>::connect_timeout(peer, &config, limit));
    thread::Builder::new().name("connect".into()).spawn(work).map_err(Error::Connection)?;
    loop {
        match connected.recv_timeout(LOOK_UP) {
            Ok(stream) => return stream.map_err(Error::Connection),
            Err(RecvTimeoutError::Timeout) if console::interrupted() => return Err(Error::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
        }
    }
}

/// Standard input that gives `WouldBlock` now and then while nothing comes, so that Ctrl-C and the receiver are heard.
struct Piped(File);

impl Read for Piped {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&LOOK_UP_WAIT))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => self.0.read(data),
        }
    }
}

fn piped() -> io::Result<Piped> {
    // Not by way of `Stdin`, whose buffer would hide what has come from `poll`.
    Ok(Piped(io::stdin().as_fd().try_clone_to_owned()?.into()))
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

/// The first address of `HOST[:PORT]`.
fn address(peer: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = host_and_port(peer);
    let mut found = (host, port).to_socket_addrs().map_err(|e| Failure::Other(format!("{host}: {e}")))?;
    found.next().ok_or_else(|| Failure::Other(format!("{host} has no address")))
}

/// `192.0.2.1`, `192.0.2.1:9`, `name:9`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:9`.
fn host_and_port(peer: &str) -> (&str, u16) {
    let in_brackets = peer.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let default = (in_brackets.unwrap_or(peer), hopline_wire::tpa::PORT);
    if in_brackets.is_some() {
        return default;
    }
    if peer.parse::<IpAddr>().is_ok() {
        return default;
    }
    match peer.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host.trim_start_matches('[').trim_end_matches(']'), port),
        _ => default,
    }
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn a_port_may_follow_any_kind_of_host() {
        for (peer, expected) in [
            ("192.0.2.1", ("192.0.2.1", 7172)),
            ("192.0.2.1:9", ("192.0.2.1", 9)),
            ("drone-3", ("drone-3", 7172)),
            ("drone-3:65535", ("drone-3", 65535)),
            ("2001:db8::1", ("2001:db8::1", 7172)),
            ("[2001:db8::1]:9", ("2001:db8::1", 9)),
            ("::1", ("::1", 7172)),
            ("[::1]", ("::1", 7172)),
        ] {
            assert_eq!(host_and_port(peer), expected, "{peer}");
        }
    }
}
