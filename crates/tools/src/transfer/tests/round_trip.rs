//! Transfers between a sender and a receiver, byte for byte.

use super::*;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

#[test]
fn files_of_any_length_arrive() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5_000_000] {
        let place = TestFolders::with(&bytes(len));
        let (sent, received) = place.transfer();
        assert_eq!(place.received(), bytes(len), "{len} bytes");
        assert_eq!(sent, Summary { stored: 1, bytes: len as u64, ..Summary::default() });
        assert_eq!(received, sent);
        assert_eq!(place.names(), ["f"]);
    }
}

#[test]
fn files_of_any_length_arrive_over_sockets() {
    let place = TestFolders::with(&bytes(5_000_000));
    let (sent, received) = transfer_over_sockets(place.source(), &place.directory(), Permissions::default());
    assert_eq!(sent.unwrap(), Summary { stored: 1, bytes: 5_000_000, ..Summary::default() });
    assert_eq!(received.unwrap().stored, 1);
    assert_eq!(place.received(), bytes(5_000_000));
}

#[test]
fn mode_and_time_are_preserved_without_write_permission_for_others() {
    let place = TestFolders::with(b"x");
    let from = place.from.path().join("f");
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 987_654_321);
    let file = fs::File::options().write(true).open(&from).unwrap();
    file.set_modified(time).unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o6777)).unwrap();
    let known = Permissions { origin: Origin::Known, ..Permissions::default() };
    transfer_in_memory(place.source(), &place.directory(), known).unwrap();
    let found = fs::metadata(place.to.path().join("f")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o755);
    assert_eq!(found.modified().unwrap(), time);
}

#[test]
fn a_directory_arrives_with_its_content() {
    let place = TestFolders::new();
    let tree = place.from.path().join("tree");
    let deep = tree.join(vec!["d"; MAX_DEPTH - 2].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::write(deep.join("leaf"), bytes(100_000)).unwrap();
    fs::write(tree.join("d/ünïcödé name"), b"").unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    let source = Source::of_path(&tree, None).unwrap();
    assert_eq!(source.skipped(), [Skipped { path: tree.join("link"), kind: "a symbolic link" }]);
    assert_eq!(source.bytes(), 100_000);
    let (sent, _) = transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
    assert_eq!(sent, Summary { stored: 2, bytes: 100_000, ..Summary::default() });
    let to = place.to.path().join("tree");
    assert_eq!(names(&to), ["d", "empty"]);
    assert_eq!(names(&to.join("d")), ["d", "ünïcödé name"]);
    let leaf = to.join(vec!["d"; MAX_DEPTH - 2].join("/")).join("leaf");
    assert_eq!(fs::read(leaf).unwrap(), bytes(100_000));
}

#[test]
fn a_directory_is_sent_under_its_own_name() {
    let place = TestFolders::new();
    let tree = place.from.path().join("tree/inner");
    fs::create_dir_all(&tree).unwrap();
    for (path, name, expected) in [(tree.join(".."), None, "tree"), (tree.clone(), Some("other"), "other")] {
        transfer_in_memory(Source::of_path(&path, name).unwrap(), &place.directory(), Permissions::default())
            .unwrap();
        assert!(place.to.path().join(expected).is_dir());
    }
}

#[test]
fn a_stream_arrives() {
    for len in [0, 1, CHUNK, 300_000] {
        let place = TestFolders::new();
        let source = Source::of_stream(io::Cursor::new(bytes(len)), "f").unwrap();
        assert!(!source.is_repeatable());
        let (sent, received) =
            transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
        assert_eq!((sent.stored, sent.bytes), (1, len as u64));
        assert_eq!(received, sent);
        assert_eq!(place.received(), bytes(len));
    }
}

#[test]
fn a_special_file_is_rejected_before_sending() {
    let place = TestFolders::new();
    let pipe = place.from.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let refused = Source::of_path(&pipe, None).unwrap_err().to_string();
    assert_eq!(refused, format!("{} is a pipe: send what comes out of it with `-`", pipe.display()));
    let refused = Source::of_path(Path::new("/dev/null"), None).unwrap_err().to_string();
    assert_eq!(refused, "/dev/null is a device, and no file");
    let refused = Source::of_stream(io::empty(), "../f").unwrap_err().to_string();
    assert_eq!(refused, "\"../f\" cannot be sent under that name: it has `.` or `..` in it");
    assert!(matches!(Source::of_path(&place.from.path().join("none"), None), Err(Error::Files { .. })));
}

#[test]
fn special_files_in_a_directory_are_skipped_and_reported() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"x").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let skipped: Vec<_> = place.source().skipped().iter().map(|skipped| skipped.kind).collect();
    assert_eq!(skipped, ["a pipe: send what comes out of it with `-`", "a socket, and no file"]);
    assert_eq!(place.transfer().0.stored, 1);
    assert_eq!(names(&place.to.path().join("f")), ["file"]);
}

#[test]
fn unacceptable_names_do_not_delay_the_others() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    let deep = tree.join(vec!["d"; MAX_DEPTH].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(tree.join("new\nline")).unwrap();
    for name in ["a", "back\\slash", "tab\there", "new\nline/x", "z"] {
        fs::write(tree.join(name), b"x").unwrap();
    }
    let source = place.source();
    let refused: Vec<_> =
        source.refused().iter().map(|it| it.path.strip_prefix(&tree).unwrap().to_owned()).collect();
    let too_deep = vec!["d"; MAX_DEPTH].join("/");
    assert_eq!(refused, ["back\\slash", &too_deep, "new\nline", "tab\there"].map(std::path::PathBuf::from));
    assert!(source.refused().iter().all(|it| it.refusal.reason == Reason::Path), "{source:?}");
    assert!(!source.refused()[2].refusal.text.contains('\n'), "{source:?}");
    let (sent, _) = transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (2, 0));
    assert_eq!(names(&place.to.path().join("f")), ["a", "d", "z"]);
}

#[test]
fn settled_files_are_removed_from_a_source() {
    let place = TestFolders::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), name.repeat(100)).unwrap();
    }
    let settled = ["f", "f/a", "f/c"].map(|path| RelativePath::parse(path.as_bytes()).unwrap());
    let mut source = place.source();
    assert_eq!(source.remove_settled(&settled.into()), 200);
    let (sent, _) = transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
    assert_eq!(sent, Summary { stored: 1, bytes: 100, ..Summary::default() });
}

#[test]
fn a_file_that_claims_to_be_empty_is_not_stored_empty() {
    let place = TestFolders::new();
    let source = Source::of_path(Path::new("/proc/self/status"), None).unwrap();
    let (sent, _) = transfer_in_memory(source, &place.directory(), Permissions::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    assert!(place.names().is_empty());
}

#[test]
fn holes_are_preserved() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let place = TestFolders::new();
    let file = fs::File::create(place.from.path().join("f")).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"middle", 5_000_001).unwrap();
    file.set_len(10_000_000).unwrap();
    assert_eq!(place.transfer().0.stored, 1);
    assert!(place.received() == fs::read(place.from.path().join("f")).unwrap());
    let blocks = fs::metadata(place.to.path().join("f")).unwrap().blocks() * 512;
    assert!(blocks < 100_000, "{blocks} bytes on the disk");
}

#[test]
fn an_existing_file_is_replaced_only_if_permitted() {
    let place = TestFolders::with(b"new");
    fs::write(place.to.path().join("f"), b"old").unwrap();
    let (sent, _) = place.transfer();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    assert_eq!(place.received(), b"old");
    let replace = Permissions { existing: Existing::Replace, ..Permissions::default() };
    let (sent, _) = transfer_in_memory(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(sent.stored, 1);
    assert_eq!(place.received(), b"new");
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn an_identical_file_is_not_sent_again() {
    let place = TestFolders::with(&bytes(50_000));
    place.transfer();
    let (sent, received) = place.transfer();
    assert_eq!(sent, Summary { present: 1, ..Summary::default() });
    assert_eq!(received, sent);
}

#[test]
fn a_link_at_the_destination_is_replaced_and_not_followed() {
    let place = TestFolders::with(b"new");
    let outside = place.from.path().join("outside");
    fs::write(&outside, b"untouched").unwrap();
    symlink(&outside, place.to.path().join("f")).unwrap();
    assert_eq!(place.transfer().0.refused, 1);
    let replace = Permissions { existing: Existing::Replace, ..Permissions::default() };
    transfer_in_memory(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
    assert!(!place.to.path().join("f").is_symlink());
    assert_eq!(place.received(), b"new");
}

#[test]
fn a_directory_at_the_destination_is_never_replaced() {
    let place = TestFolders::with(b"new");
    fs::create_dir(place.to.path().join("f")).unwrap();
    let replace = Permissions { existing: Existing::Replace, ..Permissions::default() };
    let (sent, _) = transfer_in_memory(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(sent.refused, 1);
    assert!(place.to.path().join("f").is_dir());
}

/// Notes what it is told.
#[derive(Default)]
struct RecordingObserver(Vec<String>);

impl Observer for RecordingObserver {
    fn file_started(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.0.push(format!("{path} {size:?} from {offset}"));
    }

    fn handle_progress(&mut self, bytes: u64) {
        self.0.push(bytes.to_string());
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.0.push(format!("{path} {outcome:?}"));
    }
}

#[test]
fn both_sides_report_progress() {
    let place = TestFolders::with(&bytes(CHUNK + 1));
    let (here, there) = UnixStream::pair().unwrap();
    let directory = place.directory();
    let (mut sender, mut receiver) = (RecordingObserver::default(), RecordingObserver::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            receive(&there, &there, &directory, Permissions::default(), &Slot::independent(), &mut receiver)
                .unwrap()
        });
        send(here.try_clone().unwrap(), &here, place.source(), None, &mut sender).unwrap();
    });
    assert_eq!(sender.0, ["f Some(16385) from 0", "16384", "1", "f Stored"]);
    assert_eq!(receiver.0, sender.0);
}
