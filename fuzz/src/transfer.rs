//! Receiver of files, and its frames.

use hopline_tools::transfer::{Directory, Existing, Frame, HEADER, Permissions, Receiver};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Most bytes that a transfer may write: few, so that an excess is noticed.
const MAY_WRITE: u64 = 4096;
/// Most files and directories that a transfer may create.
const MAY_MAKE: u64 = 16;

/// Bytes of a stream of frames. A decoded frame survives encoding and decoding again.
pub fn transfer_frame(data: &[u8]) {
    let Ok(Some((frame, len))) = Frame::decode(data) else { return };
    assert!((HEADER..=data.len()).contains(&len));
    let again = frame.encode();
    assert_eq!(Frame::decode(&again), Ok(Some((frame, again.len()))));
}

/// Script for a receiver of files: kind, length and body of frames; checksums are added here. Nothing is written, created or
/// removed outside of its directory, through links in it or otherwise, and no more than is permitted.
pub fn transfer_receiver(data: &[u8]) {
    let place = folder();
    let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
    fs::create_dir_all(&inside).expect("a fresh directory takes another");
    fs::create_dir(&outside).expect("a fresh directory takes another");
    fs::write(outside.join("f"), "untouched").expect("a fresh directory takes a file");
    for (link, to) in
        [("directory", outside.clone()), ("file", outside.join("f")), ("new", outside.join("new"))]
    {
        std::os::unix::fs::symlink(to, inside.join(link)).expect("a fresh directory takes links");
    }
    let existing = if data.len().is_multiple_of(2) { Existing::Replace } else { Existing::Refuse };
    let permitted = Permissions { existing, bytes: MAY_WRITE, entries: MAY_MAKE, ..Permissions::default() };
    let directory = Directory::open(&inside).expect("it is there");
    let mut receiver = Receiver::new(&directory, permitted);
    for frame in frames(data) {
        if receiver.handle_frame(frame, &mut ()).is_err() || receiver.is_over() {
            break;
        }
        // Sometimes all pending work is done at once.
        if data.len().is_multiple_of(3) && receiver.settle(&mut ()).is_err() {
            break;
        }
        while receiver.poll_frame().is_some() {}
    }
    // Complete files are stored, or were rejected.
    let _ = receiver.settle(&mut ());
    let summary = receiver.summary();
    drop(receiver);
    assert!(summary.bytes <= MAY_WRITE && summary.stored + summary.present + summary.refused <= MAY_MAKE);
    assert_eq!(names(place.path()), ["inside", "outside"]);
    assert_eq!(names(&outside), ["f"]);
    assert_eq!(fs::read(outside.join("f")).expect("it is there"), b"untouched");
    assert!(written(&inside) <= MAY_WRITE);
}

/// Returns the frames of a script; invalid ones are skipped.
fn frames(mut data: &[u8]) -> impl Iterator<Item = Frame> {
    std::iter::from_fn(move || {
        let (&[kind, len], rest) = data.split_first_chunk()?;
        let (body, rest) = rest.split_at(usize::from(len).min(rest.len()));
        data = rest;
        let start = [kind, 0, 0, body.len() as u8];
        let check = blake3::Hasher::new().update(&start).update(body).finalize();
        Some([&start, &check.as_bytes()[..8], body].concat())
    })
    .filter_map(|bytes| Frame::decode(&bytes).ok().flatten().map(|(frame, _)| frame))
}

/// Creates a temporary directory, in memory if possible.
fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("there is a directory for temporary files")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns the bytes of all files below `folder`, without links.
fn written(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is there");
    entries
        .map(|entry| {
            let entry = entry.expect("it is there");
            let found = entry.metadata().expect("it is there");
            match found.file_type() {
                kind if kind.is_dir() => written(&entry.path()),
                kind if kind.is_file() => found.len(),
                _ => 0,
            }
        })
        .sum()
}
