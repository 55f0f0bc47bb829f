//! One page over HTTP, for whoever asks. Who asks slowly, badly or not at all keeps nobody waiting.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long who asks may take, from the connection to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request that is read.
const LONGEST_REQUEST: usize = 4096;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Most who ask at once; of more, who has asked for longest goes.
const MOST: usize = 64;
/// After an error of `accept`, as when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until the listener breaks. `answer`: the whole answer to a request that has come to the end of its head.
pub(super) fn serve(listener: &TcpListener, answer: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut askers = VecDeque::new();
    loop {
        wait(listener, &askers)?;
        take(listener, &mut askers)?;
        askers.retain_mut(|asker| asker.go_on(&answer).is_ok_and(|step| step == Step::Waits));
    }
}

/// Who asks.
struct Asker {
    stream: TcpStream,
    until: Instant,
    stage: Stage,
}

enum Stage {
    /// So much of its request has come.
    Asks(Vec<u8>),
    /// So much of its answer is left.
    Reads(Vec<u8>),
}

#[derive(PartialEq)]
pub(super) enum Step {
    Waits,
    Done,
}

impl Asker {
    /// Reads or writes what can be without waiting.
    fn go_on(&mut self, answer: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<Step> {
        if now() > self.until {
            return Ok(Step::Done);
        }
        if let Stage::Asks(request) = &mut self.stage {
            if read(&mut self.stream, request)? == Step::Waits {
                return Ok(Step::Waits);
            }
            self.stage = Stage::Reads(answer(request));
        }
        match &mut self.stage {
            Stage::Reads(left) => write(&mut self.stream, left),
            Stage::Asks(_) => Ok(Step::Waits),
        }
    }

    const fn flags(&self) -> PollFlags {
        match self.stage {
            Stage::Asks(_) => PollFlags::IN,
            Stage::Reads(_) => PollFlags::OUT,
        }
    }
}

/// Reads on, to the end of the head. What was read before is not searched again: a client may send single bytes.
pub(super) fn read(stream: &mut impl Read, request: &mut Vec<u8>) -> io::Result<Step> {
    let mut buffer = [0; 512];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) if request.len() + len > LONGEST_REQUEST => return Err(ErrorKind::InvalidData.into()),
            Ok(len) => {
                let from = request.len().saturating_sub(END_OF_HEAD.len() - 1);
                request.extend_from_slice(&buffer[..len]);
                if request[from..].windows(END_OF_HEAD.len()).any(|end| end == END_OF_HEAD) {
                    return Ok(Step::Done);
                }
            }
            Err(error) => return waits(error),
        }
    }
}

fn write(stream: &mut TcpStream, left: &mut Vec<u8>) -> io::Result<Step> {
    while !left.is_empty() {
        match stream.write(left) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(len) => drop(left.drain(..len)),
            Err(error) => return waits(error),
        }
    }
    Ok(Step::Done)
}

fn waits(error: io::Error) -> io::Result<Step> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Step::Waits),
        _ => Err(error),
    }
}

/// Waits until somebody comes or can go on, or has taken too long.
fn wait(listener: &TcpListener, askers: &VecDeque<Asker>) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(askers.iter().map(|asker| PollFd::new(&asker.stream, asker.flags())));
    // Who came first has the least patience left.
    let left =
        askers.front().map(|asker| asker.until.saturating_duration_since(now()) + Duration::from_millis(1));
    let left = left.map(|left| Timespec::try_from(left).expect("seconds fit"));
    match poll(&mut fds, left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes all who have come.
fn take(listener: &TcpListener, askers: &mut VecDeque<Asker>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_ok() {
                    askers.push_back(Asker {
                        stream,
                        until: now() + PATIENCE,
                        stage: Stage::Asks(Vec::new()),
                    });
                }
                if askers.len() > MOST {
                    askers.pop_front();
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            Err(_) => {
                std::thread::sleep(PAUSE);
                return Ok(());
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
fn now() -> Instant {
    Instant::now()
}
