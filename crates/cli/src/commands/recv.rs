//! `hopline recv`.

use crate::args::Recv as Args;
use crate::console;
use crate::follow::Follow;
use crate::problems::{Failure, say};
use hopline_net::tpa::{self, TpaListener, TpaStream};
use hopline_net::transfer::{self, Directory, Error, Existing, Permitted};
use indicatif::MultiProgress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// How often a blocked read looks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(200);
/// How long the last acknowledgment of a sender that may have left is awaited.
const FAREWELL: Duration = Duration::from_secs(3);
const LOOK_UP_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Takes what senders send, until Ctrl-C, or one conversation with `--once`.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let directory = Directory::open(&args.output).map_err(|e| Failure::Other(e.to_string()))?;
    let place = SocketAddr::new(args.bind, args.port);
    let listener = TpaListener::bind(place, &tpa::config(args.window))
        .map_err(|e| Failure::Other(format!("cannot listen on {place}: {e}")))?;
    console::catch_interrupts()?;
    let here = listener.local_addr().unwrap_or(place);
    if !args.show.quiet {
        say(&format!(
            "waiting on UDP port {} for `hopline send`; files go to {}",
            here.port(),
            args.output.display()
        ));
    }
    let bars = MultiProgress::new();
    if args.once {
        let (stream, peer) = accept(&listener)?;
        return converse(args, &directory, &bars, stream, peer);
    }
    thread::scope(|scope| {
        loop {
            let (stream, peer) = accept(&listener)?;
            let (directory, bars) = (&directory, &bars);
            scope.spawn(move || {
                if let Err(failure) = converse(args, directory, bars, stream, peer) {
                    failure.report();
                }
            });
        }
    })
}

/// One conversation, to its end.
fn converse(
    args: &Args,
    directory: &Directory,
    bars: &MultiProgress,
    stream: TpaStream,
    peer: SocketAddr,
) -> Result<(), Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let permitted = Permitted { existing, ..Permitted::default() };
    stream.set_read_timeout(Some(LOOK_UP));
    stream.set_write_timeout(Some(LOOK_UP));
    let mut follow = Follow::new(args.show, None, bars);
    let summary =
        transfer::receive(&stream, &stream, directory, permitted, &mut follow).map_err(|e| match e {
            Error::Interrupted => Failure::TransferSuspended,
            e => Failure::Other(format!("{peer}: {e}")),
        })?;
    // The sender has our last word, or has gone without it.
    let _ = stream.close_within(FAREWELL);
    follow.summarise(summary)
}

/// The next connection.
fn accept(listener: &TpaListener) -> Result<(TpaStream, SocketAddr), Failure> {
    listener.set_nonblocking(true);
    loop {
        if console::interrupted() {
            return Err(Failure::TransferSuspended);
        }
        match listener.accept() {
            Ok((stream, peer)) => return Ok((stream, peer)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                // Woken early or late, the loop looks again.
                let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&LOOK_UP_WAIT));
            }
            Err(e) => return Err(Failure::Other(format!("cannot accept connections: {e}"))),
        }
    }
}
