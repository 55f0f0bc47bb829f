//! Attacks by a peer.

use super::*;
use std::os::unix::fs::symlink;

fn offer(path: &[u8], content: Content) -> Offer {
    Offer { path: path.to_vec(), content, mode: 0o644, modified: Modified::default() }
}

fn file(path: &[u8], content: &[u8]) -> Offer {
    offer(path, Content::File { size: content.len() as u64, hash: blake3::hash(content) })
}

/// Passes a frame to `receiver` and returns its answer, if it has one.
fn answer(receiver: &mut Receiver<'_>, frame: Frame) -> Result<Option<Frame>, Error> {
    receiver.handle_frame(frame, &mut ())?;
    receiver.settle(&mut ())?;
    Ok(receiver.poll_frame())
}

/// A receiver with a malicious sender.
struct MaliciousSender<'a> {
    receiver: Receiver<'a>,
    next: Number,
}

impl<'a> MaliciousSender<'a> {
    /// Returns a pair that has exchanged hellos.
    fn after_hello(directory: &'a Directory, permitted: Permissions) -> Self {
        let mut rogue = Self { receiver: Receiver::new(directory, permitted), next: 0 };
        let hello = Frame::Hello { version: VERSION, sender: None };
        assert_eq!(rogue.send(hello.clone()).unwrap(), Some(hello));
        rogue
    }

    fn send(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
        answer(&mut self.receiver, frame)
    }

    fn offer(&mut self, offer: Offer) -> Result<Option<Frame>, Error> {
        let number = self.next;
        self.next += 1;
        self.send(Frame::Offer(number, offer))
    }

    /// Returns the refusal of `offer`.
    fn refusal_of(&mut self, offer: Offer) -> Refusal {
        match self.offer(offer).unwrap() {
            Some(Frame::Refuse(number, refusal)) if number + 1 == self.next => refusal,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn paths_that_lead_outside_are_refused_and_the_conversation_continues() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions::default());
    let long = vec![b'x'; MAX_NAME + 1];
    let paths: [&[u8]; 12] = [
        b"",
        b"/etc/x",
        b"..",
        b"../x",
        b"a/../../x",
        b"./x",
        b"a//x",
        b"..\\x",
        b"a\0b",
        b"x\x1b[2J",
        b".hopline-part-00",
        &long,
    ];
    for path in paths {
        for frame in [file(path, b"x"), offer(path, Content::Directory), offer(path, Content::Stream)] {
            let refusal = receiver.refusal_of(frame);
            assert_eq!(refusal.reason, Reason::Path, "{refusal}");
            assert!(!refusal.text.contains('\x1b'));
        }
    }
    assert_eq!(receiver.receiver.summary().refused, 36);
    assert!(place.names().is_empty());
    assert!(matches!(receiver.offer(file(b"x", b"x")).unwrap(), Some(Frame::Accept { .. })));
}

#[test]
fn an_unknown_sender_cannot_store_hidden_files_or_programs() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir_all(tree.join(".ssh")).unwrap();
    for name in [".profile", ".ssh/authorized_keys", "plain", "program"] {
        fs::write(tree.join(name), name).unwrap();
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (sent, received) = place.transfer();
    assert_eq!((sent.stored, sent.refused), (2, 3));
    assert_eq!(received, sent);
    let arrived = place.to.path().join("f");
    assert_eq!(names(&arrived), ["plain", "program"]);
    assert_eq!(fs::metadata(arrived.join("program")).unwrap().permissions().mode() & 0o777, 0o644);
    let directory = place.directory();
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions::default());
    for path in [b".a".as_slice(), b"a/.b/c", b"..."] {
        for content in [Content::Directory, Content::Stream] {
            assert_eq!(receiver.refusal_of(offer(path, content)).reason, Reason::Hidden);
        }
    }
    let odd: [&[u8]; 5] = [b"-rf", "photo\u{202e}gpj.exe".as_bytes(), b"tail. ", b"d/AUX.txt", b"\xff"];
    for path in odd {
        let refusal = receiver.refusal_of(file(path, b"x"));
        assert_eq!(refusal.reason, Reason::Path, "{refusal}");
        let mut known = MaliciousSender::after_hello(
            &directory,
            Permissions { origin: Origin::Known, ..Permissions::default() },
        );
        assert!(matches!(known.offer(file(path, b"x")), Ok(Some(Frame::Accept { .. }))));
    }
    let known = Permissions { origin: Origin::Known, ..Permissions::default() };
    let (sent, _) = transfer_in_memory(place.source(), &directory, known).unwrap();
    assert_eq!((sent.stored, sent.present, sent.refused), (2, 2, 0));
    assert_eq!(fs::read(arrived.join(".ssh/authorized_keys")).unwrap(), b".ssh/authorized_keys");
    assert_eq!(fs::metadata(arrived.join(".profile")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn links_inside_the_directory_are_not_followed() {
    let place = TestFolders::new();
    let outside = place.from.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.to.path().join("link")).unwrap();
    symlink(outside.join("dangling"), place.to.path().join("dangling")).unwrap();
    let directory = place.directory();
    let replace = Permissions { existing: Existing::Replace, ..Permissions::default() };
    let mut receiver = MaliciousSender::after_hello(&directory, replace);
    for path in [b"link/x".as_slice(), b"link/a/b", b"dangling/x"] {
        assert_eq!(receiver.refusal_of(file(path, b"x")).reason, Reason::Path);
        assert_eq!(receiver.refusal_of(offer(path, Content::Directory)).reason, Reason::Path);
    }
    assert_eq!(receiver.refusal_of(offer(b"link", Content::Directory)).reason, Reason::Path);
    assert!(names(&outside).is_empty());
}

#[test]
fn a_link_in_place_of_a_partial_file_is_not_followed() {
    let place = TestFolders::with(&bytes(CHUNK));
    let outside = place.from.path().join("outside");
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 4, |frame| frame).unwrap();
    drop(receiver);
    let part = place.to.path().join(&place.names()[0]);
    fs::remove_file(&part).unwrap();
    for hard in [false, true] {
        if hard {
            fs::remove_file(&part).unwrap();
            fs::write(&outside, b"untouched").unwrap();
            fs::hard_link(&outside, &part).unwrap();
        } else {
            symlink(&outside, &part).unwrap();
        }
        let (sent, _) = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
        assert_eq!((sent.stored, sent.refused), (0, 1));
        assert_eq!(outside.exists(), hard);
    }
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
}

#[test]
fn no_more_is_written_than_was_offered() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions::default());
    receiver.offer(file(b"f", b"12345")).unwrap();
    receiver.send(Frame::Start { number: 0, offset: 0 }).unwrap();
    receiver.send(Frame::Data(b"1234".to_vec())).unwrap();
    let error = receiver.send(Frame::Data(b"56".to_vec())).unwrap_err();
    assert_eq!(error.to_string(), "f: more bytes came than were offered");
    // Every further frame fails.
    assert!(receiver.send(Frame::Data(b"5".to_vec())).is_err());
    let part = place.to.path().join(&place.names()[0]);
    assert_eq!(fs::read(part).unwrap(), b"1234");
}

#[test]
fn no_more_is_accepted_than_permitted() {
    let place = TestFolders::new();
    let directory = place.directory();
    let permitted = Permissions { bytes: 10, entries: 4, ..Permissions::default() };
    let mut receiver = MaliciousSender::after_hello(&directory, permitted);
    assert_eq!(receiver.refusal_of(file(b"f", &[0; 11])).reason, Reason::TooMuch);
    assert_eq!(receiver.refusal_of(offer(b"..", Content::Directory)).reason, Reason::Path);
    receiver.offer(offer(b"d", Content::Directory)).unwrap();
    receiver.offer(offer(b"s", Content::Stream)).unwrap();
    receiver.send(Frame::Start { number: 3, offset: 0 }).unwrap();
    receiver.send(Frame::Data(vec![0; 10])).unwrap();
    let error = receiver.send(Frame::Data(vec![0])).unwrap_err();
    assert_eq!(error.to_string(), "s: more bytes came than are permitted here");
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions { entries: 0, ..permitted });
    let error = receiver.offer(offer(b"e", Content::Directory)).unwrap_err();
    assert_eq!(error.to_string(), "more files than are permitted here");
    assert_eq!(place.names(), ["d"]);
}

#[test]
fn a_file_that_exceeds_the_disk_is_refused_at_the_start() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions::default());
    let huge = offer(b"f", Content::File { size: u64::MAX, hash: blake3::hash(b"") });
    let refusal = receiver.refusal_of(huge);
    assert_eq!(refusal.reason, Reason::NoSpace);
    assert!(refusal.text.starts_with("f: needs 18446744073709551615 bytes, and only "), "{refusal}");
    assert!(place.names().is_empty());
}

#[test]
fn frames_out_of_order_end_the_conversation() {
    let place = TestFolders::new();
    let directory = place.directory();
    let hash = blake3::hash(b"");
    let frames = [
        Frame::Data(vec![0]),
        Frame::End { hash },
        Frame::Start { number: 0, offset: 0 },
        Frame::Accept { number: 0, offset: 0, prefix: hash },
        Frame::Have(0),
        Frame::Done(0),
        Frame::Abandon { number: 0, why: String::new() },
        Frame::Hello { version: VERSION, sender: None },
    ];
    for frame in frames {
        let error =
            MaliciousSender::after_hello(&directory, Permissions::default()).send(frame.clone()).unwrap_err();
        assert!(error.to_string().ends_with(" came out of turn"), "{error}");
        let mut sender = Sender::new(Source::default());
        sender.poll_frame(&mut ()).unwrap();
        assert!(sender.handle_frame(frame.clone(), &mut ()).is_err() != matches!(frame, Frame::Hello { .. }));
    }
    let mut receiver = MaliciousSender::after_hello(&directory, Permissions::default());
    receiver.offer(file(b"f", b"12345")).unwrap();
    let error = receiver.send(Frame::Start { number: 0, offset: 3 }).unwrap_err();
    assert_eq!(error.to_string(), "the peer broke the protocol: it starts where nothing was accepted");
}

#[test]
fn another_version_is_named() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = Receiver::new(&directory, Permissions::default());
    let error = answer(&mut receiver, Frame::Hello { version: 9, sender: None }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer broke the protocol: it speaks version 9 of the file transfer, and this is version 3: update the older one"
    );
}

#[test]
fn a_malicious_receiver_gets_only_offered_data() {
    let place = TestFolders::with(b"12345");
    let hash = blake3::hash(b"");
    let mut sender = Sender::new(place.source());
    sender.poll_frame(&mut ()).unwrap();
    sender.handle_frame(Frame::Hello { version: VERSION, sender: None }, &mut ()).unwrap();
    assert!(matches!(sender.poll_frame(&mut ()).unwrap(), Some(Frame::Offer(..))));
    assert!(sender.poll_frame(&mut ()).unwrap().is_none());
    let error =
        sender.handle_frame(Frame::Accept { number: 0, offset: 6, prefix: hash }, &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "the peer broke the protocol: it accepted more than was offered");
}
