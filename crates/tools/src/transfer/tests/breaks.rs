//! Interruptions, changes and full disks.

use super::*;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;

/// Returns the only partial file of a place.
fn part(place: &TestFolders) -> std::path::PathBuf {
    let names = place.names();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with(".hopline-part-"), "{names:?}");
    place.to.path().join(&names[0])
}

/// Sends `f` in memory until `frames` frames have arrived.
fn stop_after(place: &TestFolders, frames: usize) {
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    assert!(!exchange(&mut sender, &mut receiver, frames, |frame| frame).unwrap());
}

#[test]
fn an_interruption_after_any_frame_is_resumed() {
    let content = bytes(4 * CHUNK + 100);
    // HELLO, OFFER, START, five DATA, END, BYE.
    for frames in 0..10 {
        let place = TestFolders::with(&content);
        stop_after(&place, frames);
        let (sent, received) = place.transfer();
        assert_eq!(place.received(), content);
        assert_eq!(place.names(), ["f"]);
        let arrived = (frames.saturating_sub(3) * CHUNK).min(content.len()) as u64;
        if frames < 9 {
            assert_eq!(sent.bytes, content.len() as u64 - arrived, "after {frames} frames");
        } else {
            assert_eq!((sent.bytes, sent.present), (0, 1));
        }
        assert_eq!(received, sent);
    }
}

/// Writer that fails with a connection reset after `left` bytes.
struct BreakingWriter<W> {
    writer: W,
    left: usize,
}

impl<W: Write> Write for BreakingWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let written = self.writer.write(&data[..data.len().min(self.left)])?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Sends over sockets until `left` bytes have gone.
fn break_after(place: &TestFolders, left: usize) -> (Result<Summary, Error>, Result<Summary, Error>) {
    let (here, there) = UnixStream::pair().unwrap();
    let directory = place.directory();
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            receive(&there, &there, &directory, Permissions::default(), &Slot::independent(), &mut ())
        });
        let writer = BreakingWriter { writer: here.try_clone().unwrap(), left };
        let sent = send(here.try_clone().unwrap(), writer, place.source(), None, &mut ());
        here.shutdown(Shutdown::Both).unwrap();
        (sent, receiving.join().unwrap())
    })
}

#[test]
fn interruptions_after_any_byte_are_resumed_repeatedly() {
    let content = bytes(5 * CHUNK);
    let place = TestFolders::with(&content);
    let mut lengths = lengths();
    let mut attempts = 0;
    while place.names() != ["f"] {
        let (sent, received) = break_after(&place, lengths.next().unwrap());
        if let Err(error) = sent {
            assert!(error.is_retryable(), "{error}");
            assert!(received.is_err_and(|error| error.is_retryable()));
        }
        attempts += 1;
        assert!(attempts < 200);
    }
    assert!(attempts > 3, "it took {attempts} attempts");
    assert_eq!(place.received(), content);
}

/// Returns lengths below two and a half chunks, always the same.
fn lengths() -> impl Iterator<Item = usize> {
    (0_u32..).map(|n| {
        let hash = blake3::hash(&n.to_be_bytes());
        usize::from(u16::from_be_bytes([hash.as_bytes()[0], hash.as_bytes()[1]])) % (5 * CHUNK / 2)
    })
}

#[test]
fn a_directory_is_resumed() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), [bytes(2 * CHUNK), name.into()].concat()).unwrap();
    }
    // HELLO, OFFER f, a, b, c; START a, 3 DATA, END; START b, DATA.
    stop_after(&place, 12);
    let (sent, _) = place.transfer();
    assert_eq!(sent, Summary { stored: 2, present: 1, bytes: (3 * CHUNK + 2) as u64, ..Summary::default() });
    for name in ["a", "b", "c"] {
        let arrived = fs::read(place.to.path().join("f").join(name)).unwrap();
        assert_eq!(arrived, fs::read(tree.join(name)).unwrap());
    }
}

#[test]
fn a_source_that_changed_between_attempts_is_sent_again() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    stop_after(&place, 5);
    let mut changed = bytes(4 * CHUNK);
    changed[0] ^= 1;
    fs::write(place.from.path().join("f"), &changed).unwrap();
    let (sent, _) = place.transfer();
    assert_eq!(sent.bytes, changed.len() as u64);
    assert_eq!(place.received(), changed);
}

#[test]
fn a_partial_file_with_another_beginning_is_not_resumed() {
    let content = bytes(4 * CHUNK);
    let damage: [fn(&mut Vec<u8>); 3] =
        [|part| part[5] ^= 1, |part| part.resize(5 * CHUNK, 0), |part| part.push(0xff)];
    for damage in damage {
        let place = TestFolders::with(&content);
        stop_after(&place, 5);
        let part = part(&place);
        let mut kept = fs::read(&part).unwrap();
        assert_eq!(kept, content[..2 * CHUNK]);
        damage(&mut kept);
        fs::write(&part, &kept).unwrap();
        let (sent, _) = place.transfer();
        assert_eq!(sent.bytes, content.len() as u64);
        assert_eq!(place.received(), content);
        assert_eq!(place.names(), ["f"]);
    }
}

#[test]
fn a_source_that_changes_during_the_transfer_is_skipped_and_leaves_nothing() {
    use std::os::unix::fs::FileExt;
    let open = |path: &Path| fs::OpenOptions::new().write(true).open(path).unwrap();
    let changes: [&dyn Fn(&Path); 4] = [
        &|path| fs::write(path, bytes(CHUNK)).unwrap(),
        &|path| fs::write(path, vec![1; 4 * CHUNK]).unwrap(),
        // Behind its end, and in a range that has been sent already.
        &|path| open(path).write_all_at(b"more", 4 * CHUNK as u64).unwrap(),
        &|path| open(path).write_all_at(b"x", 10).unwrap(),
    ];
    for change in changes {
        let place = TestFolders::with(&bytes(4 * CHUNK));
        let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        open(&place.from.path().join("f")).set_modified(before).unwrap();
        let directory = place.directory();
        let (mut sender, mut receiver) =
            (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
        exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
        change(&place.from.path().join("f"));
        assert!(exchange(&mut sender, &mut receiver, 100, |frame| frame).unwrap());
        assert_eq!((sender.summary().refused, receiver.summary().refused), (1, 1));
        assert!(place.names().is_empty());
    }
}

#[test]
fn a_vanished_file_does_not_delay_the_others() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), b"a").unwrap();
    fs::write(tree.join("b"), b"b").unwrap();
    let source = place.source();
    fs::remove_file(tree.join("a")).unwrap();
    let (sent, _) = transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (1, 1));
    assert_eq!(names(&place.to.path().join("f")), ["b"]);
}

/// Reader of a damaged stream: one bit of the byte at `at` is flipped.
struct DamagedReader<R> {
    reader: R,
    at: usize,
}

impl<R: Read> Read for DamagedReader<R> {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(data)?;
        if let Some(byte) = data[..read].get_mut(self.at) {
            *byte ^= 0x10;
        }
        self.at = self.at.checked_sub(read).unwrap_or(usize::MAX);
        Ok(read)
    }
}

#[test]
fn a_damaged_stream_is_detected_at_once_and_earlier_data_are_kept() {
    let content = bytes(4 * CHUNK);
    let place = TestFolders::with(&content);
    let (here, there) = UnixStream::pair().unwrap();
    let directory = place.directory();
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let reader = DamagedReader { reader: there.try_clone().unwrap(), at: 2 * CHUNK };
            let received =
                receive(reader, &there, &directory, Permissions::default(), &Slot::independent(), &mut ());
            there.shutdown(Shutdown::Both).unwrap();
            received
        });
        let sent = send(here.try_clone().unwrap(), &here, place.source(), None, &mut ());
        here.shutdown(Shutdown::Both).unwrap();
        (sent.unwrap_err(), receiving.join().unwrap().unwrap_err())
    });
    assert!(matches!(received, Error::Frame(FrameError::Damaged)), "{received}");
    assert!(sent.is_retryable() && received.is_retryable(), "{sent}");
    assert_eq!(fs::metadata(part(&place)).unwrap().len(), CHUNK as u64);
    assert_eq!(place.transfer().0.bytes, 3 * CHUNK as u64);
    assert_eq!(place.received(), content);
}

#[test]
fn a_file_with_a_wrong_hash_is_discarded() {
    let place = TestFolders::with(&bytes(2 * CHUNK));
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    let lie = |frame| match frame {
        Frame::Data(data) => Frame::Data(vec![7; data.len()]),
        frame => frame,
    };
    assert!(exchange(&mut sender, &mut receiver, 100, lie).unwrap());
    assert_eq!((sender.summary().refused, receiver.summary().stored), (1, 0));
    assert!(place.names().is_empty());
}

#[test]
fn a_broken_stream_leaves_nothing() {
    let place = TestFolders::new();
    let directory = place.directory();
    let source = Source::of_stream(io::Cursor::new(bytes(4 * CHUNK)), "f").unwrap();
    let (mut sender, mut receiver) = (Sender::new(source), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    assert_eq!(fs::metadata(part(&place)).unwrap().len(), 2 * CHUNK as u64);
    drop(receiver);
    assert!(place.names().is_empty());
}

#[test]
fn a_second_sender_of_the_same_file_is_told_to_wait() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let directory = place.directory();
    let (mut first, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut first, &mut receiver, 5, |frame| frame).unwrap();
    let (second, _) = place.transfer();
    assert_eq!((second.stored, second.refused), (0, 1));
    assert!(exchange(&mut first, &mut receiver, 100, |frame| frame).unwrap());
    assert_eq!(first.summary().stored, 1);
    assert_eq!(place.received(), bytes(4 * CHUNK));
}

#[test]
fn the_first_complete_file_of_a_name_wins() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let directory = place.directory();
    let (mut first, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut first, &mut receiver, 5, |frame| frame).unwrap();
    fs::rename(place.from.path().join("f"), place.from.path().join("still open")).unwrap();
    fs::write(place.from.path().join("f"), b"another").unwrap();
    assert_eq!(place.transfer().0.stored, 1);
    assert!(exchange(&mut first, &mut receiver, 100, |frame| frame).unwrap());
    assert_eq!((first.summary().stored, first.summary().refused), (0, 1));
    assert_eq!(place.received(), b"another");
}

#[test]
fn an_interruption_is_reported_to_the_peer() {
    struct Stop;
    impl Observer for Stop {
        fn interrupted(&self) -> bool {
            true
        }
    }
    let place = TestFolders::with(b"x");
    let (here, there) = UnixStream::pair().unwrap();
    let directory = place.directory();
    let sent = send(here.try_clone().unwrap(), &here, place.source(), None, &mut Stop).unwrap_err();
    assert!(matches!(sent, Error::Interrupted));
    let told = receive(&there, &there, &directory, Permissions::default(), &Slot::independent(), &mut ())
        .unwrap_err();
    assert_eq!(told.to_string(), "the peer gave up: interrupted");
    assert!(told.is_retryable(), "it may be started again");
}

#[test]
fn a_timed_out_connection_is_over() {
    struct TimedOutStream;
    impl Read for TimedOutStream {
        fn read(&mut self, _data: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
    impl Write for TimedOutStream {
        fn write(&mut self, _data: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
    let place = TestFolders::with(b"x");
    let directory = place.directory();
    let received = receive(
        TimedOutStream,
        TimedOutStream,
        &directory,
        Permissions::default(),
        &Slot::independent(),
        &mut (),
    );
    let sent = send(TimedOutStream, TimedOutStream, place.source(), None, &mut ());
    for ended in [received, sent] {
        let error = ended.unwrap_err();
        assert!(matches!(&error, Error::Connection(e) if e.kind() == io::ErrorKind::TimedOut), "{error:?}");
        assert!(error.is_retryable());
    }
}

/// Runs the sender's side of a conversation up to its first data, and is silent from then on.
fn fall_silent(place: &TestFolders, stream: &UnixStream) {
    let mut sender = Sender::new(place.source());
    let mut replies = PendingPeer::new(stream).frames;
    // HELLO, OFFER, START, DATA.
    for replies_to_read in [1, 1, 0, 0] {
        let frame = sender.poll_frame(&mut ()).unwrap().unwrap();
        { stream }.write_all(&frame.encode()).unwrap();
        for _ in 0..replies_to_read {
            sender.handle_frame(replies.next(&|| Ok(())).unwrap(), &mut ()).unwrap();
        }
    }
}

#[test]
fn the_later_conversation_of_a_sender_takes_over_and_the_earlier_is_notified() {
    let place = TestFolders::with(&bytes(8 * CHUNK));
    let directory = place.directory();
    let conversations = Conversations::default();
    let enter =
        || conversations.enter(ConversationPeer::unknown(std::net::Ipv4Addr::LOCALHOST.into())).unwrap();
    let (first, there) = UnixStream::pair().unwrap();
    there.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    let (second, here) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let seat = enter();
        let earlier = scope.spawn(|| {
            let seat = seat;
            receive(&there, &there, &directory, Permissions::default(), &seat, &mut ())
        });
        fall_silent(&place, &first);
        let seat = enter();
        let later = scope.spawn(|| {
            let seat = seat;
            receive(&here, &here, &directory, Permissions::default(), &seat, &mut ())
        });
        let sent = send(second.try_clone().unwrap(), &second, place.source(), None, &mut ()).unwrap();
        assert_eq!((sent.stored, sent.refused), (1, 0), "nothing was in its way");
        assert!(matches!(earlier.join().unwrap(), Err(Error::TakenOver)));
        assert_eq!(later.join().unwrap().unwrap().stored, 1);
    });
    let told = PendingPeer::new(&first).frames.next(&|| Ok(())).unwrap();
    let Frame::Fail(refusal) = told else { panic!("{told:?}") };
    assert_eq!(refusal.reason, Reason::TakenOver);
    assert!(!Error::Peer(refusal).is_retryable(), "or the two would take turns for ever");
    assert_eq!(place.received(), bytes(8 * CHUNK));
}

#[test]
fn a_peer_that_sends_no_hello_has_no_conversation() {
    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let mut caller = PendingPeer::new(&there);
    assert!(!caller.read_hello().unwrap());
    let hello = Frame::Hello { version: VERSION, sender: None }.encode();
    here.write_all(&hello[..5]).unwrap();
    assert!(!caller.read_hello().unwrap());
    here.write_all(&hello[5..]).unwrap();
    assert!(caller.read_hello().unwrap() && caller.read_hello().unwrap());
    let mut caller = PendingPeer::new(&there);
    here.write_all(&Frame::Have(0).encode()).unwrap();
    assert_eq!(
        caller.read_hello().unwrap_err().to_string(),
        "the peer broke the protocol: HAVE came out of turn"
    );
}

#[test]
fn a_partial_file_is_not_readable_by_other_users() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    stop_after(&place, 5);
    assert_eq!(fs::metadata(part(&place)).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_partial_file_that_ends_in_a_hole_is_resumed() {
    let content = [bytes(CHUNK), vec![0; 2 * CHUNK], bytes(CHUNK)].concat();
    // HELLO, OFFER, START, two or three DATA: the part ends with zeros.
    for frames in [5, 6] {
        let place = TestFolders::with(&content);
        stop_after(&place, frames);
        let (sent, _) = place.transfer();
        assert_eq!(sent.bytes, (content.len() - (frames - 3) * CHUNK) as u64);
        assert!(place.received() == content);
    }
}

#[test]
fn changes_by_other_programs_to_a_partial_file_are_never_stored() {
    use std::os::unix::fs::FileExt;
    let content = bytes(8 * CHUNK);
    type Meddle = fn(&fs::File);
    let meddlers: [(&str, Meddle); 3] = [
        ("cut", |part| part.set_len(100).unwrap()),
        ("written to", |part| part.write_all_at(b"x", 10).unwrap()),
        ("made longer", |part| part.set_len(1 << 20).unwrap()),
    ];
    for (what, meddle) in meddlers {
        for when in [5, 11] {
            let place = TestFolders::with(&content);
            let directory = place.directory();
            let (mut sender, mut receiver) =
                (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
            exchange(&mut sender, &mut receiver, when, |frame| frame).unwrap();
            meddle(&fs::OpenOptions::new().write(true).open(part(&place)).unwrap());
            exchange(&mut sender, &mut receiver, 100, |frame| frame).unwrap();
            assert_eq!((sender.summary().stored, sender.summary().refused), (0, 1), "{what} after {when}");
            assert!(place.names().is_empty(), "{what}: {:?}", place.names());
        }
    }
}

#[test]
fn a_partial_file_that_was_only_read_is_stored() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    // Only its change time is new: it is read again, and found to be right.
    fs::set_permissions(part(&place), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    exchange(&mut sender, &mut receiver, 100, |frame| frame).unwrap();
    assert_eq!(sender.summary().stored, 1);
    assert!(place.received() == bytes(4 * CHUNK));
}

#[test]
fn a_refused_transfer_leaves_no_directories() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let source = || Source::of_path(&place.from.path().join("f"), Some("a/b/c")).unwrap();
    let mut directory = place.directory();
    directory.set_quota(10).unwrap();
    let (sent, _) = transfer_in_memory(source(), &directory, Permissions::default()).unwrap();
    assert_eq!(sent.refused, 1);
    assert!(place.names().is_empty(), "{:?}", place.names());
    // A kept partial file still counts.
    directory.set_quota(u64::MAX).unwrap();
    let (mut sender, mut receiver) =
        (Sender::new(source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    drop(receiver);
    assert_eq!(names(&place.to.path().join("a/b")).len(), 1);
}

#[test]
fn the_quota_applies_to_all_senders_together() {
    let content = bytes(4 * CHUNK);
    let place = TestFolders::with(&content);
    stop_after(&place, 5);
    let mut directory = place.directory();
    // The existing partial file counts.
    directory.set_quota(content.len() as u64 + 99).unwrap();
    let (sent, _) = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
    assert_eq!(sent.stored, 1, "what it lacks is within the quota");
    fs::write(place.from.path().join("g"), bytes(100)).unwrap();
    let source = || Source::of_path(&place.from.path().join("g"), None).unwrap();
    let (sent, _) = transfer_in_memory(source(), &directory, Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    let stream = Source::of_stream(io::Cursor::new(bytes(100)), "s").unwrap();
    let (sent, _) = transfer_in_memory(stream, &directory, Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn old_unused_partial_files_are_removed() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let directory = place.directory();
    stop_after(&place, 5);
    let day = std::time::Duration::from_secs(86_400);
    assert_eq!(directory.remove_parts(day).unwrap(), [], "it is not that old");
    let found = directory.parts().unwrap();
    assert_eq!((found.len(), found[0].bytes), (1, 2 * CHUNK as u64));
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 3, |frame| frame).unwrap();
    assert_eq!(directory.remove_parts(std::time::Duration::ZERO).unwrap(), [], "somebody receives it");
    drop(receiver);
    assert_eq!(directory.remove_parts(std::time::Duration::ZERO).unwrap().len(), 1);
    assert!(place.names().is_empty());
}

/// Reader of an idle pipe.
struct Idle;

impl Read for Idle {
    fn read(&mut self, _data: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn a_stream_that_pauses_continues_later() {
    let place = TestFolders::new();
    let directory = place.directory();
    let source = Source::of_stream(Idle.chain(io::empty()), "f").unwrap();
    let (mut sender, mut receiver) = (Sender::new(source), Receiver::new(&directory, Permissions::default()));
    // HELLO, OFFER, START.
    exchange(&mut sender, &mut receiver, 3, |frame| frame).unwrap();
    for _ in 0..3 {
        assert_eq!(sender.poll_frame(&mut ()).unwrap(), None);
    }
    assert!(!sender.is_over());
}

#[test]
fn a_receiver_that_stops_is_noticed_while_a_stream_pauses() {
    let (here, there) = UnixStream::pair().unwrap();
    let said = [
        Frame::Hello { version: VERSION, sender: None },
        Frame::Accept { number: 0, offset: 0, prefix: blake3::hash(b"") },
        Frame::Fail(Refusal::new(Reason::Interrupted, "interrupted")),
    ];
    thread::scope(|scope| {
        scope.spawn(|| {
            // After HELLO, OFFER and START.
            let mut frames = PendingPeer::new(&there).frames;
            for frame in said {
                frames.next(&|| Ok(())).unwrap();
                (&there).write_all(&frame.encode()).unwrap();
            }
        });
        let source = Source::of_stream(Idle, "f").unwrap();
        let ended = send(here.try_clone().unwrap(), &here, source, None, &mut ()).unwrap_err();
        assert_eq!(ended.to_string(), "the peer gave up: interrupted");
    });
}

/// Writer that blocks for ever after `left` bytes, as after the loss of the path.
struct BlockedWriter<W> {
    writer: W,
    left: usize,
}

impl<W: Write> Write for BlockedWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            thread::sleep(std::time::Duration::from_millis(5));
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.writer.write(&data[..data.len().min(self.left)])?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_blocked_sender_still_receives_the_reason() {
    let place = TestFolders::with(&bytes(8 * CHUNK));
    let directory = place.directory();
    let conversations = Conversations::default();
    let enter =
        || conversations.enter(ConversationPeer::unknown(std::net::Ipv4Addr::LOCALHOST.into())).unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    there.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    let identity = place.source().identity.unwrap();
    thread::scope(|scope| {
        let seat = enter();
        let receiving = scope.spawn(|| {
            let seat = seat;
            receive(&there, &there, &directory, Permissions::default(), &seat, &mut ())
        });
        let sending = scope.spawn(|| {
            let writer = BlockedWriter { writer: &here, left: 2 * CHUNK };
            send(here.try_clone().unwrap(), writer, place.source(), None, &mut ())
        });
        while !directory.parts().unwrap().iter().any(|part| part.bytes > 0) {
            thread::yield_now();
        }
        enter().take_over(identity);
        let sent = sending.join().unwrap().unwrap_err();
        assert!(matches!(&sent, Error::Peer(refusal) if refusal.reason == Reason::TakenOver), "{sent}");
        assert!(matches!(receiving.join().unwrap(), Err(Error::TakenOver)));
    });
}

#[test]
fn data_and_stored_files_are_progress_and_refused_offers_are_not() {
    let place = TestFolders::with(&bytes(CHUNK));
    let directory = place.directory();
    let run = |write: &dyn Fn(&UnixStream)| {
        let (here, there) = UnixStream::pair().unwrap();
        let seat = Slot::independent();
        thread::scope(|scope| {
            let receiving =
                scope.spawn(|| receive(&there, &there, &directory, Permissions::default(), &seat, &mut ()));
            write(&here);
            receiving.join().unwrap().unwrap();
        });
        seat.progress()
    };
    let refused = run(&|mut stream| {
        let offer = Offer {
            path: b"../planted".to_vec(),
            content: Content::Stream,
            mode: 0,
            modified: Modified { seconds: 0, nanoseconds: 0 },
        };
        let hello = Frame::Hello { version: VERSION, sender: None };
        let offers = (0..20).map(|number| Frame::Offer(number, offer.clone()));
        for frame in [hello].into_iter().chain(offers).chain([Frame::Bye]) {
            stream.write_all(&frame.encode()).unwrap();
        }
    });
    assert_eq!(refused, 0);
    let send = |stream: &UnixStream| {
        send(stream.try_clone().unwrap(), stream, place.source(), None, &mut ()).unwrap();
    };
    let stored = run(&send);
    assert!(stored > CHUNK as u64, "{stored}");
    assert!(run(&send) > 0, "found to be there");
}
