//! `hopline recv`.

mod admission;
mod parts;
mod pending;

pub(super) use admission::Sender;

use super::identity;
use crate::console;
use crate::net::RESUMABLE_MESSAGE;
use crate::net::args::{Recv as Args, Transport};
use crate::net::clock;
use crate::net::transfer_printer::{TransferKind, TransferPrinter};
use crate::problems::{Failure, print_error_line};
use admission::{Admission, AuthenticatesPeer};
use hopline_core::Duration as Span;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, Fingerprint, Wide};
use hopline_streams::{Listener, Protocol, Stream};
use hopline_tools::transfer::{
    self, Conversations, Directory, Error, Existing, Limits, PendingPeer, Permissions, Shared, Slot,
};
use indicatif::MultiProgress;
use parts::Expiry;
use pending::PendingConnections;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGTERM;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

/// File descriptors of a conversation: its own, and those of its complete and incomplete files.
const DESCRIPTORS_PER_CONVERSATION: u64 = 128;
/// File descriptors of the rest of the process.
const RESERVED_DESCRIPTORS: u64 = 256;
/// Error of a kernel without IPv6.
const EAFNOSUPPORT: i32 = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
/// Interval at which a blocked read checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time to wait for the last acknowledgment of a sender that may be gone.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Sender that has sent its hello.
struct AdmittedSender<P: Protocol> {
    caller: PendingPeer<Shared<Stream<P>>>,
    peer: SocketAddr,
    slot: Slot,
}

/// Receives files, until Ctrl-C, or of one conversation with `--once`.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    hopline_lab::output::check_directory(&args.output)?;
    let open = || Directory::open(&args.output).map_err(|e| Failure::Other(e.to_string()));
    if args.clean {
        return parts::clean(args, &open()?);
    }
    identity::check(&args.identity)?;
    let admission = Admission::of(args)?;
    let mut directory = open()?;
    if let Some(bytes) = args.quota {
        directory.set_quota(bytes).map_err(|e| Failure::Other(e.to_string()))?;
    }
    let silence = Some(Span::from_secs(args.silence.into()));
    match args.identity.transport {
        Transport::Tpa => {
            let config = tpa::config(args.window).with_silence_limit(silence);
            serve::<Tpa>(args, &admission, &directory, &config, None)
        }
        Transport::TpaWide => {
            let credentials = admission.credentials(args)?;
            let fingerprint = match &credentials {
                Credentials::Shared(_) => None,
                Credentials::Keys { private, .. } => Some(private.public().fingerprint()),
            };
            let config = wide::config(credentials);
            let transport = config.transport().with_silence_limit(silence);
            let config = config.with_transport(transport);
            serve::<Wide>(args, &admission, &directory, &config, fingerprint)
        }
    }
}

/// Prints the address and the fingerprint, and serves.
fn serve<P: AuthenticatesPeer>(
    args: &Args,
    admission: &Admission,
    directory: &Directory,
    config: &P::Config,
    fingerprint: Option<Fingerprint>,
) -> Result<(), Failure> {
    let mut expiry = Expiry::new(args);
    let in_all = usize::from(args.conversations.get());
    let listener = listen::<P>(args, config)?;
    raise_descriptor_limit(in_all);
    console::catch_interrupts()?;
    let terminated = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, terminated.clone())
        .map_err(|e| Failure::Other(format!("cannot catch SIGTERM: {e}")))?;
    let here =
        listener.local_addr().map_err(|e| Failure::Other(format!("the listener has no address: {e}")))?;
    if !args.show.quiet {
        print_error_line(&format!(
            "waiting on UDP port {} for `hopline send`; files go to {}",
            here.port(),
            args.output.display()
        ));
        if let Some(fingerprint) = fingerprint {
            print_error_line(&format!("fingerprint {fingerprint}"));
        }
        print_error_line(&admission.to_string());
    }
    let bars = MultiProgress::new();
    let for_known = admission.reserved_for_known(in_all);
    let limits = Limits { in_all, per_party: in_all.div_ceil(2), for_known };
    let mut reception = PendingConnections::new(listener, Conversations::new(limits), admission);
    if args.once {
        let Some(guest) = reception.next(|| expiry.remove_expired(directory))? else { return Ok(()) };
        return match converse(args, admission, directory, &bars, guest) {
            Err(Failure::Interrupted(_)) if terminated.load(Ordering::Relaxed) => Ok(()),
            done => done,
        };
    }
    thread::scope(|scope| {
        let mut running = Vec::new();
        while let Some(guest) = reception.next(|| expiry.remove_expired(directory))? {
            let work = |guest| converse(args, admission, directory, &bars, guest);
            running.retain(|thread: &thread::ScopedJoinHandle<'_, _>| !thread.is_finished());
            running.extend(spawn_conversation(scope, guest, work));
        }
        // Each thread tells its sender. Unfinished transfers are resumed another time.
        let suspended = running.into_iter().any(|thread| thread.join().is_ok_and(|cut_short| cut_short));
        // SIGTERM is the regular end of a service.
        if suspended && !terminated.load(Ordering::Relaxed) {
            Err(Failure::Interrupted(RESUMABLE_MESSAGE))
        } else {
            Ok(())
        }
    })
}

/// Raises the limit of file descriptors to the need of all conversations, as far as it is permitted. A sender without a
/// descriptor tries again.
fn raise_descriptor_limit(conversations: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = DESCRIPTORS_PER_CONVERSATION * conversations as u64 + RESERVED_DESCRIPTORS;
    let wanted = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < wanted) {
        // If it fails, the service continues with fewer descriptors.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

/// Listens on the given address, or on all of IPv4 and IPv6.
fn listen<P: AuthenticatesPeer>(args: &Args, config: &P::Config) -> Result<Listener<P>, Failure> {
    let at = |address: IpAddr| {
        let place = SocketAddr::new(address, args.port);
        Listener::bind(place, config).map_err(|error| (place, error))
    };
    let has_no_ipv6 = |error: &std::io::Error| {
        error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == ErrorKind::AddrNotAvailable
    };
    let listening = match args.bind {
        Some(address) => at(address),
        None => at(Ipv6Addr::UNSPECIFIED.into()).or_else(|(place, error)| {
            if has_no_ipv6(&error) { at(Ipv4Addr::UNSPECIFIED.into()) } else { Err((place, error)) }
        }),
    };
    listening.map_err(|(place, error)| Failure::Other(format!("cannot listen on {place}: {error}")))
}

/// Starts a thread for the conversation with a sender. If no thread can be started, the sender may try again. The thread
/// returns whether it was interrupted.
fn spawn_conversation<'scope, 'env, P: Protocol>(
    scope: &'scope Scope<'scope, 'env>,
    guest: AdmittedSender<P>,
    converse: impl FnOnce(AdmittedSender<P>) -> Result<(), Failure> + Send + 'scope,
) -> Option<thread::ScopedJoinHandle<'scope, bool>> {
    let stream = guest.caller.reader().clone();
    let work = move || match converse(guest) {
        Ok(()) => false,
        Err(Failure::Interrupted(_)) => true,
        Err(failure) => {
            failure.report();
            false
        }
    };
    let thread = thread::Builder::new().name("conversation".into()).spawn_scoped(scope, work);
    if thread.is_err() {
        pending::reject(&stream);
    }
    thread.ok()
}

/// Handles one conversation, to its end.
fn converse<P: AuthenticatesPeer>(
    args: &Args,
    admission: &Admission,
    directory: &Directory,
    bars: &MultiProgress,
    guest: AdmittedSender<P>,
) -> Result<(), Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let AdmittedSender { caller, peer, slot: seat } = guest;
    let stream = caller.reader().clone();
    let sender = admission.sender(peer, P::key(&stream.get().info()));
    let permitted = Permissions { existing, origin: sender.origin, ..Permissions::default() };
    stream.get().set_nonblocking(false);
    stream.get().set_read_timeout(Some(POLL_INTERVAL));
    stream.get().set_write_timeout(Some(POLL_INTERVAL));
    let mut follow = TransferPrinter::new(args.show, TransferKind::Incoming(sender.clone()), bars);
    follow.preface(format!("{sender} sends"));
    let received = transfer::receive(caller, stream.clone(), directory, permitted, &seat, &mut follow);
    // From here on the same sender finds nothing locked.
    drop(seat);
    close_gracefully(stream.get());
    received.map_err(|e| match e {
        Error::Interrupted => {
            follow.report_failure(e.code(), RESUMABLE_MESSAGE);
            Failure::Interrupted(RESUMABLE_MESSAGE)
        }
        e => {
            let why = format!("{sender}: {e}");
            follow.report_failure(e.code(), &why);
            Failure::Other(why)
        }
    })?;
    let deferred = follow.deferred();
    follow.summarise()?;
    match deferred {
        1.. if args.once => Err(Failure::Other(format!("{deferred} deferred, and nothing waits for them"))),
        _ => Ok(()),
    }
}

/// Waits until the sender has received the last message, or is gone, and acknowledges the end of its stream, which it waits
/// for.
fn close_gracefully<P: Protocol>(mut stream: &Stream<P>) {
    let until = clock::now() + CLOSE_TIMEOUT;
    let _ = stream.shutdown(Shutdown::Write);
    let mut rest = [0; 1 << 12];
    loop {
        match stream.read(&mut rest) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && clock::now() < until => {}
            Ok(1..) if clock::now() < until => {}
            Ok(_) | Err(_) => break,
        }
    }
    let _ = stream.close_within(CLOSE_TIMEOUT);
}
