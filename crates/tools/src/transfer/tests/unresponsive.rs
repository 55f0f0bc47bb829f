//! Unresponsive receivers with a transport that still acknowledges.

use super::super::frames::Frames;
use super::*;
use std::io::{self, Read, Write};
use std::time::Duration;

const SILENCE: Duration = Duration::from_millis(300);

/// Sends `source` to a peer that runs `peer`. Returns the result.
fn send_to_peer(source: Source, peer: impl FnOnce(UnixStream) + Send) -> Result<Summary, Error> {
    let (here, there) = UnixStream::pair().unwrap();
    here.set_write_timeout(Some(SILENCE / 10)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| peer(there));
        let sent = send(here.try_clone().unwrap(), &here, source, Some(SILENCE), &mut ());
        here.shutdown(Shutdown::Both).unwrap();
        sent
    })
}

/// Reads until the sender has closed the connection.
fn read_all(mut stream: &UnixStream) {
    let _ = io::copy(&mut stream, &mut io::sink());
}

#[test]
fn a_receiver_that_reads_without_answering_is_given_up() {
    let sent = send_to_peer(TestFolders::with(b"x").source(), |there| read_all(&there));
    let error = sent.unwrap_err();
    assert!(matches!(error, Error::Unresponsive(SILENCE)), "{error}");
    assert!(error.is_retryable());
}

#[test]
fn a_receiver_that_stops_reading_is_given_up() {
    let place = TestFolders::with(&bytes(5_000_000));
    let sent = send_to_peer(place.source(), |there| {
        let say = |frame: Frame| (&there).write_all(&frame.encode()).unwrap();
        let mut frames = Frames::new(&there);
        say(Frame::Hello { version: VERSION, sender: None });
        while !matches!(frames.next(&|| Ok(())).unwrap(), Frame::Offer(..)) {}
        say(Frame::Accept { number: 0, offset: 0, prefix: blake3::hash(b"") });
        let taken = (&there).take(100_000).read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(taken, 100_000);
        // Keeps the connection until the sender has closed it.
        while (&there).write(&[]).is_ok() && !is_closed(&there) {
            thread::sleep(SILENCE / 10);
        }
    });
    assert!(matches!(sent, Err(Error::Unresponsive(_))), "{sent:?}");
}

/// Returns whether the sender has closed `stream`, without reading its data.
fn is_closed(stream: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut fds, Some(&rustix::event::Timespec::default())).unwrap();
    fds[0].revents().contains(PollFlags::HUP)
}

#[test]
fn a_receiver_that_sends_working_frames_is_waited_for() {
    let sent = send_to_peer(TestFolders::with(b"x").source(), |there| {
        for _ in 0..10 {
            (&there).write_all(&Frame::Working.encode()).unwrap();
            thread::sleep(SILENCE / 4);
        }
        let failure = Frame::Fail(Refusal::new(Reason::System, "that was all"));
        (&there).write_all(&failure.encode()).unwrap();
        read_all(&there);
    });
    assert!(matches!(sent, Err(Error::Peer(_))), "{sent:?}");
}

/// Reader that is silent for three times the limit, then returns one byte, and then ends.
struct Slow(u32);

impl Read for Slow {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        self.0 += 1;
        match self.0 {
            1..=9 => {
                thread::sleep(SILENCE / 3);
                Err(io::ErrorKind::WouldBlock.into())
            }
            10 => {
                data[0] = b'x';
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}

#[test]
fn a_silent_input_does_not_count_as_silence_of_the_receiver() {
    let place = TestFolders::new();
    let directory = place.directory();
    let sent = send_to_peer(Source::of_stream(Slow(0), "f").unwrap(), |there| {
        receive(&there, &there, &directory, Permissions::default(), &Slot::independent(), &mut ()).unwrap();
    });
    assert_eq!(sent.unwrap().stored, 1);
    assert_eq!(place.received(), b"x");
}
