//! `hopline key`: key files that only their owner can read, and error messages about others.

use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

fn key(arguments: &[&str], folder: &Path) -> Output {
    command().current_dir(folder).env("XDG_CONFIG_HOME", folder).arg("key").args(arguments).output().unwrap()
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Checks the error message about invalid input.
#[track_caller]
fn refused(arguments: &[&str], folder: &Path, parts: &[&str]) {
    let output = key(arguments, folder);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{}", stderr(&output));
    for part in parts {
        assert!(stderr(&output).contains(part), "`{part}` is not in\n{}", stderr(&output));
    }
}

#[test]
fn a_new_key_is_readable_by_its_owner_only_and_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let made = key(&["new"], folder.path());
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let file = folder.path().join("hopline/key");
    assert_eq!((mode(&file), mode(&folder.path().join("hopline"))), (0o600, 0o700));
    let text = stdout(&made);
    let (public, fingerprint) = text.trim_end().split_once('\n').unwrap();
    assert_eq!((public.len(), &public[..7]), (71, "public:"));
    assert_eq!((fingerprint.len(), &fingerprint[..12]), (51, "fingerprint "));
    assert_eq!(stdout(&key(&["show"], folder.path())), text);
    let private = fs::read_to_string(&file).unwrap();
    assert!(private.contains("\nprivate:") && !private.contains(public));
    let other = key(&["new", "other"], folder.path());
    assert_ne!(stdout(&other), text);
}

#[test]
fn an_existing_key_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    fs::write(&file, "something else").unwrap();
    refused(&["new", "mine"], folder.path(), &["mine: there is a file already", "name another one"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "something else");
}

#[test]
fn a_secret_readable_by_other_users_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    key(&["new", "k"], folder.path());
    let file = folder.path().join("k");
    chmod(&file, 0o640);
    refused(
        &["show", "k"],
        folder.path(),
        &["k: other users may read or write it (mode 0640)", "chmod 600 k"],
    );
    chmod(&file, 0o600);
    chmod(folder.path(), 0o777);
    refused(&["show", "k"], folder.path(), &["all users may write to this folder", "chmod go-w"]);
    refused(&["new", "l"], folder.path(), &["all users may write to this folder"]);
    assert!(!folder.path().join("l").exists());
    chmod(folder.path(), 0o700);
    assert_eq!(key(&["show", "k"], folder.path()).status.code(), Some(0));
}

#[test]
fn a_malformed_key_is_reported_with_its_position_and_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k");
    let secret = "5ec4e75ec4e7";
    fs::write(&file, format!("# mine\nprivate:{secret}x\n")).unwrap();
    chmod(&file, 0o600);
    let parts = ["k:2:21: this is no hexadecimal digit", "a key is 64 hexadecimal digits"];
    refused(&["show", "k"], folder.path(), &parts);
    assert!(!stderr(&key(&["show", "k"], folder.path())).contains(secret));
    refused(&["show", "nothing"], folder.path(), &["nothing: there is no such file", "hopline key new"]);
    refused(&["show", "."], folder.path(), &[".: a directory"]);
    fs::write(&file, [0xff, 0xfe]).unwrap();
    refused(&["show", "k"], folder.path(), &["k: not UTF-8 text"]);
}

#[test]
fn only_the_fingerprint_of_a_shared_key_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared");
    fs::write(&file, "ab".repeat(32)).unwrap();
    chmod(&file, 0o600);
    let shown = stdout(&key(&["show", "shared"], folder.path()));
    assert!(shown.starts_with("a shared key\nfingerprint ") && !shown.contains("abab"), "{shown}");
}

#[test]
fn known_peers_are_listed_and_every_error_has_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let public = stdout(&key(&["new", "k"], folder.path()));
    let (public, fingerprint) = public.trim_end().split_once("\nfingerprint ").unwrap();
    let file = folder.path().join("hopline/known_peers");
    fs::create_dir(folder.path().join("hopline")).unwrap();
    fs::write(&file, format!("# ours\ndrone-3 {public}\nb {public} # the same\n")).unwrap();
    assert_eq!(
        stdout(&key(&["peers"], folder.path())),
        format!("drone-3  {fingerprint}\nb        {fingerprint}\n")
    );

    fs::write(&file, format!("a {public}\na {public}\n")).unwrap();
    let shown = ["`a` is known already, from line 1", "known_peers:2:1]", public, "one line for each name"];
    refused(&["peers"], folder.path(), &shown);

    let private = format!("private:{}", "5ec4e75e".repeat(8));
    fs::write(&file, format!("a {public}\nb public:12\nc {private}\n")).unwrap();
    let parts = ["known_peers:2:12: 2 digits are not 64", "known_peers:3:3: this is a private key"];
    refused(&["peers"], folder.path(), &parts);
    assert!(!stderr(&key(&["peers"], folder.path())).contains("5ec4e75e"), "nor with the lines around it");

    fs::write(&file, format!("# {private}\nb public:12\n")).unwrap();
    assert!(!stderr(&key(&["peers"], folder.path())).contains("5ec4e75e"), "nor in a comment");

    fs::write(&file, format!("a {public}\n")).unwrap();
    chmod(&file, 0o646);
    refused(&["peers"], folder.path(), &["all users may write to it (mode 0646)", "chmod go-w"]);
    chmod(&file, 0o664);
    refused(&["peers"], folder.path(), &["users of its group may write to it (mode 0664)", "chmod g-w"]);
    chmod(&file, 0o600);
    chmod(file.parent().unwrap(), 0o770);
    refused(&["peers"], folder.path(), &["users of its group may write to this folder", "chmod g-w"]);
}
