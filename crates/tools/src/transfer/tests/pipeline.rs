//! Several concurrent offers.

use super::*;

/// Returns a directory `f` with `files` files, each with its number as content.
fn tree(files: usize) -> TestFolders {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for number in 0..files {
        fs::write(tree.join(format!("{number:05}")), number.to_string()).unwrap();
    }
    place
}

fn assert_arrived(place: &TestFolders, files: usize) {
    let arrived = place.to.path().join("f");
    assert_eq!(names(&arrived).len(), files);
    for number in 0..files {
        assert_eq!(fs::read_to_string(arrived.join(format!("{number:05}"))).unwrap(), number.to_string());
    }
}

/// Returns all frames that the sender has at present.
fn frames(sender: &mut Sender) -> Vec<Frame> {
    std::iter::from_fn(|| sender.poll_frame(&mut ()).unwrap()).collect()
}

/// Runs a transfer in memory, in turns of all frames and all replies. Returns the number of turns.
fn round_trips(sender: &mut Sender, receiver: &mut Receiver<'_>) -> usize {
    (1..)
        .find(|_| {
            for frame in frames(sender) {
                receiver.handle_frame(frame, &mut ()).unwrap();
            }
            receiver.settle(&mut ()).unwrap();
            while let Some(reply) = receiver.poll_frame() {
                sender.handle_frame(reply, &mut ()).unwrap();
            }
            sender.is_over()
        })
        .unwrap()
}

#[test]
fn many_small_files_share_round_trips() {
    let place = tree(300);
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    let round_trips = round_trips(&mut sender, &mut receiver);
    // HELLO and BYE; two for each window.
    assert!(round_trips <= 2 + 2 * 301_usize.div_ceil(WINDOW), "{round_trips}");
    assert_eq!((sender.summary().stored, receiver.summary().stored), (300, 300));
    assert_arrived(&place, 300);
}

#[test]
fn the_number_of_unanswered_offers_is_limited_by_the_window() {
    let place = tree(2 * WINDOW);
    let mut sender = Sender::new(place.source());
    frames(&mut sender);
    sender.handle_frame(Frame::Hello { version: VERSION, sender: None }, &mut ()).unwrap();
    let offers = frames(&mut sender);
    assert_eq!(offers.len(), WINDOW);
    for (number, offer) in (0..).zip(offers) {
        assert!(matches!(offer, Frame::Offer(its, _) if its == number), "{offer:?}");
    }
    sender.handle_frame(Frame::Refuse(3, Refusal::new(Reason::Exists, "")), &mut ()).unwrap();
    assert!(matches!(frames(&mut sender)[..], [Frame::Offer(next, _)] if next as usize == WINDOW));
    let again = sender.handle_frame(Frame::Have(3), &mut ()).unwrap_err();
    assert_eq!(again.to_string(), "the peer broke the protocol: HAVE came out of turn");
}

#[test]
fn large_files_are_hashed_shortly_before_they_are_sent() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::File::create(tree.join(name)).unwrap().set_len(5 << 20).unwrap();
    }
    let mut sender = Sender::new(place.source());
    frames(&mut sender);
    sender.handle_frame(Frame::Hello { version: VERSION, sender: None }, &mut ()).unwrap();
    assert_eq!(frames(&mut sender).len(), 2, "the directory and `a`");
}

#[test]
fn offers_beyond_the_window_or_out_of_order_end_the_conversation() {
    let place = TestFolders::new();
    let directory = place.directory();
    let greeted = || {
        let mut receiver = Receiver::new(&directory, Permissions::default());
        receiver.handle_frame(Frame::Hello { version: VERSION, sender: None }, &mut ()).unwrap();
        receiver
    };
    let offer = |number: Number| {
        let content = Content::File { size: 1, hash: blake3::hash(b"x") };
        let path = number.to_string().into_bytes();
        Frame::Offer(number, Offer { path, content, mode: 0, modified: Modified::default() })
    };
    let mut receiver = greeted();
    for number in 0..WINDOW as Number {
        receiver.handle_frame(offer(number), &mut ()).unwrap();
    }
    let error = receiver.handle_frame(offer(WINDOW as Number), &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "the peer broke the protocol: OFFER came out of turn");
    assert!(greeted().handle_frame(offer(1), &mut ()).is_err());
    assert!(place.names().is_empty(), "nothing is made before data come");
}

#[test]
fn the_batch_of_complete_files_is_bounded() {
    let place = tree(60);
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    let mut done = 0;
    // The receiver never gets a chance to settle by itself.
    while done == 0 {
        for frame in frames(&mut sender) {
            receiver.handle_frame(frame, &mut ()).unwrap();
        }
        while let Some(reply) = receiver.poll_frame() {
            done += usize::from(matches!(reply, Frame::Done(_)));
            sender.handle_frame(reply, &mut ()).unwrap();
        }
    }
    assert!((20..60).contains(&done), "{done}");
}

/// Outcome of each path.
#[derive(Default)]
struct Outcomes(Vec<(String, Outcome)>);

impl Observer for Outcomes {
    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.0.push((path.to_string(), outcome.clone()));
    }
}

#[test]
fn a_file_refused_during_its_data_does_not_delay_the_others() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for (name, len) in [("a", 4 * CHUNK), ("b", 40 * CHUNK), ("c", 10)] {
        fs::write(tree.join(name), bytes(len)).unwrap();
    }
    let mut directory = place.directory();
    // Each would fit alone. While `b` is rejected, more of its data are in flight.
    directory.set_quota(41 * CHUNK as u64).unwrap();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    let mut outcomes = Outcomes::default();
    let mut under_way = std::collections::VecDeque::new();
    while !sender.is_over() {
        under_way.extend(sender.poll_frame(&mut outcomes).unwrap());
        if under_way.len() > 5
            || sender.poll_frame(&mut outcomes).unwrap().map(|frame| under_way.push_back(frame)).is_none()
        {
            if let Some(frame) = under_way.pop_front() {
                receiver.handle_frame(frame, &mut ()).unwrap();
            }
            receiver.settle(&mut ()).unwrap();
            while let Some(reply) = receiver.poll_frame() {
                sender.handle_frame(reply, &mut outcomes).unwrap();
            }
        }
    }
    assert!(receiver.is_over());
    assert_eq!((sender.summary().stored, sender.summary().refused), (2, 1));
    assert_eq!((receiver.summary().stored, receiver.summary().refused), (2, 1));
    let refused = outcomes.0.iter().find(|(path, _)| path == "f/b").unwrap();
    assert!(
        matches!(&refused.1, Outcome::Refused(refusal) if refusal.reason == Reason::TooMuch),
        "{refused:?}"
    );
    assert_eq!(fs::read(place.to.path().join("f/c")).unwrap(), bytes(10));
}

#[test]
fn more_partial_files_than_the_limit_are_resumed() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    let directory = place.directory();
    for name in ["a", "b", "c", "d", "e"] {
        fs::write(tree.join(name), [name.as_bytes(), &bytes(3 * CHUNK)].concat()).unwrap();
        let source = Source::of_path(&tree.join(name), Some(&format!("f/{name}"))).unwrap();
        let (mut sender, mut receiver) =
            (Sender::new(source), Receiver::new(&directory, Permissions::default()));
        // HELLO, OFFER, START, two DATA.
        exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    }
    assert_eq!(directory.parts().unwrap().len(), 5);
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    round_trips(&mut sender, &mut receiver);
    assert_eq!((sender.summary().stored, sender.summary().bytes), (5, 5 * (CHUNK as u64 + 1)));
    assert_eq!(names(&place.to.path().join("f")), ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_quota_counts_directories_and_empty_files() {
    let place = tree(0);
    let tree = place.from.path().join("f");
    for name in ["1", "2", "3", "4", "5"] {
        fs::create_dir(tree.join(name)).unwrap();
        fs::write(tree.join(name).join("empty"), b"").unwrap();
    }
    let mut directory = place.directory();
    // `f`, `1`, its file, `2`, its file, `3`.
    directory.set_quota(6 * 4096 + 4095).unwrap();
    let (sent, _) = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
    let arrived = place.to.path().join("f");
    let entries = names(&arrived).iter().map(|name| 1 + names(&arrived.join(name)).len()).sum::<usize>();
    assert_eq!(entries + 1, 6, "{:?}", names(&arrived));
    assert_eq!(sent.stored + sent.refused + 6 - sent.stored, 11, "{sent:?}");
    // A rejected file releases its part of the quota.
    let (sent, _) = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
    assert_eq!(sent.stored, 0);
    assert_eq!(names(&arrived).len() + 1, 6 - sent.present as usize);
}

#[test]
fn pipelining_works_over_sockets() {
    let place = tree(200);
    let (sent, received) = transfer_over_sockets(place.source(), &place.directory(), Permissions::default());
    assert_eq!((sent.unwrap().stored, received.unwrap().stored), (200, 200));
    assert_arrived(&place, 200);
}
