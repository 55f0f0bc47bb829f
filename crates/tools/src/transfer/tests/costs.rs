//! Work that a peer has a receiver do for nothing.

use super::super::account::Account;
use super::*;

fn file(path: &[u8], size: u64, hash: blake3::Hash) -> Offer {
    let content = Content::File { size, hash };
    Offer { path: path.to_vec(), content, mode: 0o644, modified: Modified::default() }
}

/// A receiver that has said hello, and what is hashed for its sender is charged to `account`.
fn receiver_after_hello<'d>(directory: &'d Directory, account: &Account) -> Receiver<'d> {
    let mut receiver = Receiver::new(directory, Permissions::default()).with_account(account.clone());
    receiver.handle_frame(Frame::Hello { version: VERSION, sender: None }, &mut ()).unwrap();
    assert!(receiver.poll_frame().is_some());
    receiver
}

fn answer(receiver: &mut Receiver<'_>, number: Number, offer: Offer) -> Frame {
    receiver.handle_frame(Frame::Offer(number, offer), &mut ()).unwrap();
    receiver.poll_frame().unwrap()
}

#[test]
fn a_sender_with_much_wasted_hashing_has_to_wait() {
    let place = TestFolders::new();
    fs::write(place.to.path().join("there"), b"content").unwrap();
    let (directory, account) = (place.directory(), Account::default());
    let mut receiver = receiver_after_hello(&directory, &account);
    let offers = || file(b"there", 7, blake3::hash(b"another"));
    let Frame::Refuse(_, refusal) = answer(&mut receiver, 0, offers()) else { panic!() };
    assert_eq!(refusal.reason, Reason::Exists);
    account.exhaust();
    let Frame::Refuse(_, refusal) = answer(&mut receiver, 1, offers()) else { panic!() };
    assert_eq!(refusal.reason, Reason::Busy, "{refusal}");
    let new = answer(&mut receiver, 2, file(b"new", 7, blake3::hash(b"content")));
    assert!(matches!(new, Frame::Accept { offset: 0, .. }), "nothing is to be hashed for it: {new:?}");
    account.credit(4 << 30);
    let Frame::Refuse(_, refusal) = answer(&mut receiver, 3, offers()) else { panic!() };
    assert_eq!(refusal.reason, Reason::Exists, "what arrived has paid for it");
}

#[test]
fn the_length_of_an_interrupted_file_is_known_without_reading_it() {
    let (place, half) = (TestFolders::with(&bytes(100_000)), 3 + 50_000 / CHUNK);
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    assert!(!exchange(&mut sender, &mut receiver, half, |frame| frame).unwrap());
    drop(receiver);
    let account = Account::default();
    account.exhaust();
    let mut sender = Sender::new(place.source());
    let mut receiver = Receiver::new(&directory, Permissions::default()).with_account(account);
    assert!(exchange(&mut sender, &mut receiver, usize::MAX, |frame| frame).unwrap());
    assert!(receiver.summary().bytes < 100_000, "it went on");
    assert_eq!(place.received(), bytes(100_000));
}

#[test]
fn a_partial_file_changed_by_another_program_is_read_again() {
    let (place, half) = (TestFolders::with(&bytes(100_000)), 3 + 50_000 / CHUNK);
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, half, |frame| frame).unwrap();
    drop(receiver);
    let part = place.to.path().join(&place.names()[0]);
    let mut content = fs::read(&part).unwrap();
    content[7] ^= 1;
    content.push(0);
    fs::write(&part, content).unwrap();
    place.transfer();
    assert_eq!(place.received(), bytes(100_000));
}

#[test]
fn an_existing_file_is_progress_when_it_is_first_offered() {
    let place = TestFolders::new();
    for name in ["a", "b"] {
        fs::write(place.to.path().join(name), b"content").unwrap();
    }
    let directory = place.directory();
    let mut receiver = receiver_after_hello(&directory, &Account::default());
    for (number, path) in (0..).zip(["a", "a", "b", "a", "b"]) {
        let there = answer(&mut receiver, number, file(path.as_bytes(), 7, blake3::hash(b"content")));
        assert_eq!(there, Frame::Have(number));
    }
    assert_eq!((receiver.summary().present, receiver.finished()), (5, 2));
}

#[test]
fn hundreds_of_unacceptable_paths_end_the_conversation() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = receiver_after_hello(&directory, &Account::default());
    let ended = (0..1000).find_map(|number| {
        let offered =
            receiver.handle_frame(Frame::Offer(number, file(b"/x", 1, blake3::hash(b"x"))), &mut ());
        while receiver.poll_frame().is_some() {}
        offered.err().map(|error| (number, error))
    });
    let (number, error) = ended.unwrap();
    assert!((100..900).contains(&number) && matches!(error, Error::Protocol(_)), "{number}: {error}");
}

/// Refusals for their paths alone.
#[derive(Default)]
struct Words(Vec<String>);

impl Observer for Words {
    fn path_rejected(&mut self, refusal: &Refusal) {
        self.0.push(refusal.to_string());
    }
}

#[test]
fn a_refusal_shows_at_most_255_characters_of_a_path() {
    let place = TestFolders::new();
    let directory = place.directory();
    let mut receiver = receiver_after_hello(&directory, &Account::default());
    let (mut words, path) = (Words::default(), format!("/{}", "\u{e0001}".repeat(1000)));
    receiver.handle_frame(Frame::Offer(0, file(path.as_bytes(), 1, blake3::hash(b"x"))), &mut words).unwrap();
    let [text] = words.0.as_slice() else { panic!() };
    assert!(text.chars().count() < 320 && text.ends_with("it is absolute"), "{text}");
}
