//! Small disks and read-only ones, in a mount namespace of their own.

use super::*;
use std::env;
use std::process::Command;

/// Where a file system of 256 kB is mounted, for the copy of this program that runs in the namespace.
const SMALL: &str = "HOPLINE_TEST_SMALL_DISK";

/// Runs `body` in the small file system `small`, in a copy of this program that runs the one test `name` only.
#[allow(clippy::print_stderr, reason = "a test that did not look must say so")]
fn on_a_small_disk(name: &str, body: impl Fn(&Path)) {
    if let Some(small) = env::var_os(SMALL) {
        return body(Path::new(&small));
    }
    let folder = tempfile::tempdir().unwrap();
    let unshare = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder.path());
        unshare.env(SMALL, folder.path().join("small")).env("TEST", env::current_exe().unwrap()).output()
    };
    let mount = "mkdir -p small && mount -t tmpfs -o size=256k none small";
    if !unshare(mount).is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: no file system can be mounted here; a full disk was not tried");
        return;
    }
    let script = format!("{mount} && exec $TEST --exact transfer::tests::disks::{name} --nocapture");
    let output = unshare(&script).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_full_disk_gives_one_error_and_what_arrived_is_kept() {
    on_a_small_disk("a_full_disk_gives_one_error_and_what_arrived_is_kept", |small| {
        let content = bytes(8 * CHUNK);
        let from = Place::with(&content);
        let place = Place { to: TempDir::new_in(small).unwrap(), ..from };
        let directory = place.directory();
        let (mut sender, mut receiver) =
            (Sender::new(place.source()), Receiver::new(&directory, Permitted::default()));
        exchange(&mut sender, &mut receiver, 5, |frame| frame).unwrap();
        let ballast = small.join("ballast");
        // As much as fits.
        fs::write(&ballast, bytes(1 << 20)).unwrap_err();
        let error = exchange(&mut sender, &mut receiver, 100, |frame| frame).unwrap_err();
        assert_eq!(
            error.to_string(),
            "writing f; what has arrived is kept, and sending it again goes on from there: No space left on device \
             (os error 28)"
        );
        assert_eq!(error.told().unwrap().reason, Reason::NoSpace);
        drop(receiver);
        let refused = converse(place.source(), &directory, Permitted::default()).unwrap();
        assert_eq!(refused.0.refused, 1, "there is too little room to begin");
        fs::remove_file(ballast).unwrap();
        let (sent, _) = place.transfer();
        assert!(sent.bytes <= 6 * CHUNK as u64, "{sent:?}");
        assert_eq!(place.received(), content);
    });
}

#[test]
fn a_full_disk_is_told_to_the_sender_of_a_stream() {
    on_a_small_disk("a_full_disk_is_told_to_the_sender_of_a_stream", |small| {
        let place = Place { to: TempDir::new_in(small).unwrap(), ..Place::new() };
        let source = Source::of_stream(std::io::Cursor::new(bytes(4 << 20)), "f").unwrap();
        let (sent, received) = over_sockets(source, &place.directory(), Permitted::default());
        let sent = sent.unwrap_err().to_string();
        assert_eq!(sent, "the peer gave up: writing f: No space left on device (os error 28)");
        assert!(received.unwrap_err().to_string().starts_with("writing f: "));
        assert!(place.names().is_empty());
    });
}

#[test]
fn a_read_only_disk_gives_one_error() {
    on_a_small_disk("a_read_only_disk_gives_one_error", |small| {
        let place = Place { to: TempDir::new_in(small).unwrap(), ..Place::with(b"x") };
        let directory = place.directory();
        let remount = |how| Command::new("mount").args(["-o", how]).arg(small).status().unwrap().success();
        assert!(remount("remount,ro"));
        let error = converse(place.source(), &directory, Permitted::default()).unwrap_err();
        assert_eq!(error.to_string(), "making a partial file for f: Read-only file system (os error 30)");
        assert_eq!(error.told().unwrap().reason, Reason::Permission);
        assert!(remount("remount,rw"));
    });
}
