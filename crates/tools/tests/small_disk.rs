//! Transfers to small and read-only disks, in a mount namespace of their own.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

#[path = "../src/transfer/tests/place.rs"]
mod place;

use hopline_harness::{Need, Test};
use hopline_tools::transfer::*;
use place::*;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Mount point of a file system of 256 kB, for the copy of this program that runs in the namespace.
const SMALL: &str = "HOPLINE_TEST_SMALL_DISK";

type Body = fn(&Path);

const TESTS: [(&str, Body); 4] = [
    (
        "a_full_disk_is_about_one_file_and_what_arrived_is_kept",
        a_full_disk_affects_one_file_and_received_data_are_kept,
    ),
    ("what_fits_is_stored_beside_what_does_not", files_that_fit_are_stored_beside_files_that_do_not),
    ("a_full_disk_is_told_to_the_sender_of_a_stream", a_full_disk_is_reported_to_the_sender_of_a_stream),
    ("a_read_only_disk_gives_one_error", a_read_only_disk_is_a_single_error),
];

pub(crate) fn tests() -> Vec<Test> {
    let mut tests: Vec<_> =
        TESTS.map(|(name, _)| Test::new(name, [Need::Mounts], move || on_a_small_disk(name))).into();
    let name = "a_partial_file_of_another_user_is_refused";
    tests.push(Test::new(name, [Need::Of(why_no_owners)], a_partial_file_of_another_user_is_rejected));
    tests
}

fn why_no_owners() -> Option<String> {
    (!rustix::process::geteuid().is_root())
        .then(|| "files cannot be given to other users without root".into())
}

fn a_partial_file_of_another_user_is_rejected() {
    let place = TestFolders::with(&bytes(4 * CHUNK));
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    drop(receiver);
    let part = place.to.path().join(&place.names()[0]);
    std::os::unix::fs::chown(&part, Some(12_345), None).unwrap();
    let mut outcomes = Refusals::default();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    while !sender.is_over() {
        receiver.handle_frame(sender.poll_frame(&mut outcomes).unwrap().unwrap(), &mut ()).unwrap();
        receiver.settle(&mut ()).unwrap();
        while let Some(reply) = receiver.poll_frame() {
            sender.handle_frame(reply, &mut outcomes).unwrap();
        }
    }
    let [(path, refusal)] = &outcomes.0[..] else { panic!("{:?}", outcomes.0) };
    assert_eq!((&path[..], refusal.reason), ("f", Reason::Permission));
    assert!(refusal.text.contains("belongs to user 12345"), "{refusal}");
    assert_eq!(place.names().len(), 1, "it is left alone");
}

/// Runs one body and returns `true` if this process is the copy that [`on_a_small_disk`] starts.
pub(crate) fn is_the_copy() -> bool {
    let Some(small) = env::var_os(SMALL) else { return false };
    let asked = env::args().nth(1);
    let found = TESTS.into_iter().find(|(name, _)| Some(*name) == asked.as_deref());
    let (_, body) = found.expect("the copy is given the name of a test");
    body(Path::new(&small));
    true
}

/// Runs the test `name` in a copy of this program that has a small file system.
fn on_a_small_disk(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir small && mount -t tmpfs -o size=256k none small && exec \"$TEST\" \"$NAME\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder.path());
    unshare.env(SMALL, folder.path().join("small"));
    let output = unshare.env("TEST", env::current_exe().unwrap()).env("NAME", name).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn a_full_disk_affects_one_file_and_received_data_are_kept(small: &Path) {
    let content = bytes(8 * CHUNK);
    let from = TestFolders::with(&content);
    let place = TestFolders { to: TempDir::new_in(small).unwrap(), ..from };
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
    let ballast = small.join("ballast");
    // Fill the file system.
    fs::write(&ballast, bytes(1 << 20)).unwrap_err();
    assert!(exchange(&mut sender, &mut receiver, 100, |frame| frame).unwrap());
    assert_eq!((sender.summary().refused, receiver.summary().refused), (1, 1));
    drop(receiver);
    let refused = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
    assert_eq!(refused.0.refused, 1, "there is too little room to begin");
    fs::remove_file(ballast).unwrap();
    let (sent, _) = place.transfer();
    assert!(sent.bytes <= 6 * CHUNK as u64, "{sent:?}");
    assert_eq!(place.received(), content);
}

/// Refusal of each path.
#[derive(Default)]
struct Refusals(Vec<(String, Refusal)>);

impl Observer for Refusals {
    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        if let Outcome::Refused(refusal) = outcome {
            self.0.push((path.to_string(), refusal.clone()));
        }
    }
}

fn files_that_fit_are_stored_beside_files_that_do_not(small: &Path) {
    let place = TestFolders { to: TempDir::new_in(small).unwrap(), ..TestFolders::new() };
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    // The second is too large from the start. The third has room until the fourth, which is offered with it, has taken
    // it.
    for (name, len) in [("a", 10), ("b", 1 << 20), ("c", 9 * CHUNK), ("d", 9 * CHUNK), ("e", 10)] {
        fs::write(tree.join(name), bytes(len)).unwrap();
    }
    let (mut here, mut there) = (Refusals::default(), Refusals::default());
    let directory = place.directory();
    let (mut sender, mut receiver) =
        (Sender::new(place.source()), Receiver::new(&directory, Permissions::default()));
    while !sender.is_over() {
        let frame = sender.poll_frame(&mut here).unwrap().expect("the receiver has answered");
        receiver.handle_frame(frame, &mut there).unwrap();
        receiver.settle(&mut there).unwrap();
        while let Some(reply) = receiver.poll_frame() {
            sender.handle_frame(reply, &mut here).unwrap();
        }
    }
    assert_eq!((sender.summary().stored, sender.summary().refused), (3, 2), "{here:?}", here = here.0);
    assert_eq!(here.0, there.0);
    let [(first, too_large), (second, full)] = &here.0[..] else { panic!("{:?}", here.0) };
    assert_eq!((&first[..], &second[..]), ("f/b", "f/d"));
    for refusal in [too_large, full] {
        assert!(refusal.reason == Reason::NoSpace && refusal.reason.is_temporary(), "{refusal}");
    }
    assert_eq!(
        full.text,
        "writing f/d; what has arrived is kept, and sending it again goes on from there: No space left on device \
         (os error 28)"
    );
    assert_eq!(fs::read(place.to.path().join("f/e")).unwrap(), bytes(10));
    // Once there is room, the transfer resumes.
    fs::remove_file(place.to.path().join("f/c")).unwrap();
    fs::remove_file(tree.join("b")).unwrap();
    fs::remove_file(tree.join("c")).unwrap();
    let (sent, _) = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.present), (1, 2));
    assert!(sent.bytes < 9 * CHUNK as u64, "{sent:?}");
}

fn a_full_disk_is_reported_to_the_sender_of_a_stream(small: &Path) {
    let place = TestFolders { to: TempDir::new_in(small).unwrap(), ..TestFolders::new() };
    let source = Source::of_stream(std::io::Cursor::new(bytes(4 << 20)), "f").unwrap();
    let (sent, received) = transfer_over_sockets(source, &place.directory(), Permissions::default());
    assert_eq!((sent.unwrap().refused, received.unwrap().refused), (1, 1));
    assert!(place.names().is_empty());
}

fn a_read_only_disk_is_a_single_error(small: &Path) {
    let place = TestFolders { to: TempDir::new_in(small).unwrap(), ..TestFolders::with(b"x") };
    let directory = place.directory();
    let remount = |how| Command::new("mount").args(["-o", how]).arg(small).status().unwrap().success();
    assert!(remount("remount,ro"));
    let error = transfer_in_memory(place.source(), &directory, Permissions::default()).unwrap_err();
    assert_eq!(error.to_string(), "making a partial file for f: Read-only file system (os error 30)");
    assert!(remount("remount,rw"));
}
