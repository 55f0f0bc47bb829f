use super::*;
use crate::entropy::Seed;
use core::fmt;

fn hex(digit: &str) -> String {
    digit.repeat(64)
}

/// Returns the line, the column and the message of an error.
#[track_caller]
fn error_at<T: fmt::Debug>(text: &str, result: Result<T, KeyFileError>) -> (usize, usize, String) {
    let mistake = result.unwrap_err();
    let (line, column) = mistake.line_column(text);
    (line, column, mistake.message)
}

#[test]
fn a_private_key_round_trips() {
    let key = PrivateKey::generate(&Seed::new([3; 32]));
    let text = private_key_file(&key);
    assert_eq!(private_key(&text).unwrap().bytes(), key.bytes());
    assert_eq!(FileKind::of(&text), FileKind::Private);
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(private_key(&windows).unwrap().public(), key.public());
}

/// RFC 7748 §5.2, the first step of the iteration: the base point times itself, clamped.
#[test]
fn public_keys_are_those_of_x25519() {
    let mut nine = [0; 32];
    nine[0] = 9;
    let expected = "public:422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079";
    assert_eq!(PrivateKey::new(nine).public().to_string(), expected);
}

#[test]
fn secrets_are_not_printed() {
    let private = PrivateKey::new([0xab; 32]);
    let shared = PreSharedKey::new([0xab; 32]);
    assert_eq!(format!("{private:?} {shared:?}"), "PrivateKey(…) PreSharedKey(…)");
    for text in ["private:abcx", "abcx", "private:ab private:cd", "private:zz", "zz"] {
        assert_eq!(private_key(text).unwrap_err().visibility, Visibility::Hidden, "{text}");
        assert_eq!(shared_key(text).unwrap_err().visibility, Visibility::Hidden, "{text}");
    }
    let pasted = format!("name private:{}", hex("a"));
    assert_eq!(KnownPeers::parse(&pasted).unwrap_err()[0].visibility, Visibility::Hidden);
    assert_eq!(KnownPeers::parse(&hex("a")).unwrap_err()[0].visibility, Visibility::Hidden);
}

#[test]
fn a_malformed_key_file_is_reported_with_place_and_reason() {
    let of = |text: &str| error_at(text, private_key(text));
    assert_eq!(of(""), (1, 1, "there is no private key".into()));
    assert_eq!(of("# only this\n"), (2, 1, "there is no private key".into()));
    let long = format!("private:{}0", hex("a"));
    assert_eq!(of(&long), (1, 73, "65 digits are not 64".into()));
    assert_eq!(of("\nprivate:abc"), (2, 12, "3 digits are not 64".into()));
    assert_eq!(of(&format!("private:{}g", hex("a"))), (1, 73, "this is no hexadecimal digit".into()));
    assert_eq!(of("  private:aé"), (1, 12, "this is no hexadecimal digit".into()));
    let public = format!("public:{}", hex("a"));
    assert_eq!(of(&public), (1, 1, "this is a public key, and here belongs the private one".into()));
    let two = format!("private:{0}\nprivate:{0}\n", hex("a"));
    assert_eq!(of(&two), (2, 1, "there is more than a private key".into()));
}

#[test]
fn a_shared_key_is_64_hexadecimal_digits() {
    let text = format!("# of drone-3\n{}\n", hex("a"));
    assert_eq!(shared_key(&text).unwrap().bytes(), &[0xaa; 32]);
    assert_eq!(FileKind::of(&text), FileKind::Shared);
    let of = |text: &str| error_at(text, shared_key(text));
    assert_eq!(of(&hex("0")), (1, 1, "zeros are no secret".into()));
    assert_eq!(of("correct horse"), (1, 9, "there is more than a shared key".into()));
    assert_eq!(of("secret"), (1, 1, "this is no hexadecimal digit".into()));
    let private = format!("private:{}", hex("a"));
    assert_eq!(
        of(&private).2,
        "this is half of a pair of keys, and here belongs a secret that both ends have"
    );
}

#[test]
fn fingerprints_are_short_and_differ_between_keys() {
    let key = PublicKey::new([1; 32]);
    let fingerprint = key.fingerprint().to_string();
    assert_eq!(fingerprint.len(), 39);
    assert!(
        fingerprint.split('-').all(|group| group.len() == 4 && group.chars().all(|c| c.is_ascii_hexdigit()))
    );
    assert_ne!(key.fingerprint(), PublicKey::new([2; 32]).fingerprint());
    assert_ne!(key.fingerprint(), PreSharedKey::new([1; 32]).fingerprint());
}

#[test]
fn peers_are_known_unknown_or_changed() {
    let [a, b] = [[1; 32], [2; 32]].map(PublicKey::new);
    let names = ["drone-3", "10.0.0.2:4433", "base"].map(|name| name.parse::<Name>().unwrap());
    let text =
        format!("# who is who\n\n{}  10.0.0.2:4433\t{b} # the other\r\n", KnownPeers::line(&names[0], &a));
    let known = KnownPeers::parse(&text).unwrap();
    assert_eq!(known.check(&names[0], &a), Check::Known);
    assert_eq!(known.check(&names[1], &b), Check::Known);
    assert_eq!(known.check(&names[2], &a), Check::Unknown);
    let Check::Changed(peer) = known.check(&names[0], &b) else { panic!("the key is another") };
    assert_eq!((peer.key, peer.line), (a, 3));
    assert_eq!(known.peers().len(), 2);
}

#[test]
fn every_error_in_a_file_of_peers_is_reported() {
    let key = PublicKey::new([0x1b; 32]);
    let text = format!(
        "a {key}\nb\n{key}\na {key}\nc public:12\nd public:1g\n# fine\ne {key} f\n{} {key}\nh {}\n",
        "x".repeat(65),
        hex("a"),
    );
    let mistakes = KnownPeers::parse(&text).unwrap_err();
    let said: Vec<(usize, usize, &str)> = mistakes
        .iter()
        .map(|mistake| {
            let (line, column) = mistake.line_column(&text);
            (line, column, &*mistake.message)
        })
        .collect();
    assert_eq!(
        said,
        [
            (2, 1, "there is no key behind this name"),
            (3, 1, "there is no name before this"),
            (4, 1, "`a` is known already, from line 1"),
            (5, 12, "2 digits are not 64"),
            (6, 11, "this is no hexadecimal digit"),
            (8, 75, "there is more than a name and a key"),
            (9, 1, "this is no name"),
            (10, 3, "this is no public key"),
        ]
    );
    assert!(mistakes.iter().all(|mistake| !mistake.help.is_empty()));
}

#[test]
fn the_number_of_reported_errors_is_limited() {
    assert_eq!(KnownPeers::parse(&"?\n".repeat(1000)).unwrap_err().len(), 20);
}

#[test]
fn a_fingerprint_round_trips() {
    let fingerprint = PrivateKey::new([7; 32]).public().fingerprint();
    let text = fingerprint.to_string();
    assert_eq!(text.parse(), Ok(fingerprint));
    assert_eq!(text.to_ascii_uppercase().parse(), Ok(fingerprint));
    for wrong in
        ["", "0000", &text[1..], &text.replace('-', ""), &format!("{text}-0000"), &text.replacen('-', "+", 1)]
    {
        assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
    }
}
