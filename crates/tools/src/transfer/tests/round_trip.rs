//! Transfers between a sender and a receiver, byte for byte.

use super::*;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

#[test]
fn files_of_any_length_arrive() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5_000_000] {
        let place = Place::with(&bytes(len));
        let (sent, received) = place.transfer();
        assert_eq!(place.received(), bytes(len), "{len} bytes");
        assert_eq!(sent, Summary { stored: 1, bytes: len as u64, ..Summary::default() });
        assert_eq!(received, sent);
        assert_eq!(place.names(), ["f"]);
    }
}

#[test]
fn the_same_over_sockets() {
    let place = Place::with(&bytes(5_000_000));
    let (sent, received) = over_sockets(place.source(), &place.directory(), Permitted::default());
    assert_eq!(sent.unwrap(), Summary { stored: 1, bytes: 5_000_000, ..Summary::default() });
    assert_eq!(received.unwrap().stored, 1);
    assert_eq!(place.received(), bytes(5_000_000));
}

#[test]
fn mode_and_time_go_along_but_no_right_to_write() {
    let place = Place::with(b"x");
    let from = place.from.path().join("f");
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 987_654_321);
    let file = fs::File::options().write(true).open(&from).unwrap();
    file.set_modified(time).unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o6777)).unwrap();
    let known = Permitted { origin: Origin::Known, ..Permitted::default() };
    converse(place.source(), &place.directory(), known).unwrap();
    let found = fs::metadata(place.to.path().join("f")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o755);
    assert_eq!(found.modified().unwrap(), time);
}

#[test]
fn a_directory_arrives_with_all_that_is_in_it() {
    let place = Place::new();
    let tree = place.from.path().join("tree");
    let deep = tree.join(vec!["d"; MAX_DEPTH - 2].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::write(deep.join("leaf"), bytes(100_000)).unwrap();
    fs::write(tree.join("d/ünïcödé name"), b"").unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    let source = Source::of_path(&tree, None).unwrap();
    assert_eq!(source.skipped(), [Skipped { place: tree.join("link"), what: "a symbolic link" }]);
    assert_eq!(source.bytes(), 100_000);
    let (sent, _) = converse(source, &place.directory(), Permitted::default()).unwrap();
    assert_eq!(sent, Summary { stored: 2, bytes: 100_000, ..Summary::default() });
    let to = place.to.path().join("tree");
    assert_eq!(names(&to), ["d", "empty"]);
    assert_eq!(names(&to.join("d")), ["d", "ünïcödé name"]);
    let leaf = to.join(vec!["d"; MAX_DEPTH - 2].join("/")).join("leaf");
    assert_eq!(fs::read(leaf).unwrap(), bytes(100_000));
}

#[test]
fn a_directory_is_sent_under_its_name_whatever_it_is_called_by() {
    let place = Place::new();
    let tree = place.from.path().join("tree/inner");
    fs::create_dir_all(&tree).unwrap();
    for (path, name, expected) in [(tree.join(".."), None, "tree"), (tree.clone(), Some("other"), "other")] {
        converse(Source::of_path(&path, name).unwrap(), &place.directory(), Permitted::default()).unwrap();
        assert!(place.to.path().join(expected).is_dir());
    }
}

#[test]
fn a_stream_arrives() {
    for len in [0, 1, CHUNK, 300_000] {
        let place = Place::new();
        let source = Source::of_stream(io::Cursor::new(bytes(len)), "f").unwrap();
        assert!(!source.is_repeatable());
        let (sent, received) = converse(source, &place.directory(), Permitted::default()).unwrap();
        assert_eq!((sent.stored, sent.bytes), (1, len as u64));
        assert_eq!(received, sent);
        assert_eq!(place.received(), bytes(len));
    }
}

#[test]
fn what_is_no_file_is_refused_before_anything_is_sent() {
    let place = Place::new();
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
fn what_is_no_file_in_a_directory_is_left_out_and_said() {
    let place = Place::new();
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
    let skipped: Vec<_> = place.source().skipped().iter().map(|skipped| skipped.what).collect();
    assert_eq!(skipped, ["a pipe: send what comes out of it with `-`", "a socket, and no file"]);
    assert_eq!(place.transfer().0.stored, 1);
    assert_eq!(names(&place.to.path().join("f")), ["file"]);
}

#[test]
fn names_that_cannot_be_sent_do_not_hold_up_the_others() {
    let place = Place::new();
    let tree = place.from.path().join("f");
    let deep = tree.join(vec!["d"; MAX_DEPTH].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(tree.join("new\nline")).unwrap();
    for name in ["a", "back\\slash", "tab\there", "new\nline/x", "z"] {
        fs::write(tree.join(name), b"x").unwrap();
    }
    let source = place.source();
    let refused: Vec<_> =
        source.refused().iter().map(|it| it.place.strip_prefix(&tree).unwrap().to_owned()).collect();
    let too_deep = vec!["d"; MAX_DEPTH].join("/");
    assert_eq!(refused, ["back\\slash", &too_deep, "new\nline", "tab\there"].map(std::path::PathBuf::from));
    assert!(source.refused().iter().all(|it| it.refusal.reason == Reason::Path), "{source:?}");
    assert!(!source.refused()[2].refusal.text.contains('\n'), "{source:?}");
    let (sent, _) = converse(source, &place.directory(), Permitted::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (2, 0));
    assert_eq!(names(&place.to.path().join("f")), ["a", "d", "z"]);
}

#[test]
fn what_is_settled_is_left_out_of_a_source() {
    let place = Place::new();
    let tree = place.from.path().join("f");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), name.repeat(100)).unwrap();
    }
    let settled = ["f", "f/a", "f/c"].map(|path| RelativePath::parse(path.as_bytes()).unwrap());
    let mut source = place.source();
    assert_eq!(source.leave_out(&settled.into()), 200);
    let (sent, _) = converse(source, &place.directory(), Permitted::default()).unwrap();
    assert_eq!(sent, Summary { stored: 1, bytes: 100, ..Summary::default() });
}

#[test]
fn a_file_that_says_it_is_empty_and_is_not_is_not_stored_empty() {
    let place = Place::new();
    let source = Source::of_path(Path::new("/proc/self/status"), None).unwrap();
    let (sent, _) = converse(source, &place.directory(), Permitted::default()).unwrap();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    assert!(place.names().is_empty());
}

#[test]
fn holes_stay_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let place = Place::new();
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
fn another_file_of_that_name_stays_unless_it_may_be_replaced() {
    let place = Place::with(b"new");
    fs::write(place.to.path().join("f"), b"old").unwrap();
    let (sent, _) = place.transfer();
    assert_eq!((sent.stored, sent.refused), (0, 1));
    assert_eq!(place.received(), b"old");
    let replace = Permitted { existing: Existing::Replace, ..Permitted::default() };
    let (sent, _) = converse(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(sent.stored, 1);
    assert_eq!(place.received(), b"new");
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn the_same_file_is_not_sent_again() {
    let place = Place::with(&bytes(50_000));
    place.transfer();
    let (sent, received) = place.transfer();
    assert_eq!(sent, Summary { present: 1, ..Summary::default() });
    assert_eq!(received, sent);
}

#[test]
fn a_link_in_the_way_is_replaced_and_not_followed() {
    let place = Place::with(b"new");
    let outside = place.from.path().join("outside");
    fs::write(&outside, b"untouched").unwrap();
    symlink(&outside, place.to.path().join("f")).unwrap();
    assert_eq!(place.transfer().0.refused, 1);
    let replace = Permitted { existing: Existing::Replace, ..Permitted::default() };
    converse(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
    assert!(!place.to.path().join("f").is_symlink());
    assert_eq!(place.received(), b"new");
}

#[test]
fn a_directory_in_the_way_stays_even_so() {
    let place = Place::with(b"new");
    fs::create_dir(place.to.path().join("f")).unwrap();
    let replace = Permitted { existing: Existing::Replace, ..Permitted::default() };
    let (sent, _) = converse(place.source(), &place.directory(), replace).unwrap();
    assert_eq!(sent.refused, 1);
    assert!(place.to.path().join("f").is_dir());
}

/// Notes what it is told.
#[derive(Default)]
struct Notes(Vec<String>);

impl Watch for Notes {
    fn begun(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.0.push(format!("{path} {size:?} from {offset}"));
    }

    fn advanced(&mut self, bytes: u64) {
        self.0.push(bytes.to_string());
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.0.push(format!("{path} {outcome:?}"));
    }
}

#[test]
fn both_sides_tell_how_it_goes() {
    let place = Place::with(&bytes(CHUNK + 1));
    let (here, there) = UnixStream::pair().unwrap();
    let directory = place.directory();
    let (mut sender, mut receiver) = (Notes::default(), Notes::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            receive(&there, &there, &directory, Permitted::default(), &Seat::alone(), &mut receiver).unwrap()
        });
        send(here.try_clone().unwrap(), &here, place.source(), None, &mut sender).unwrap();
    });
    assert_eq!(sender.0, ["f Some(16385) from 0", "16384", "1", "f Stored"]);
    assert_eq!(receiver.0, sender.0);
}
