use super::*;

fn id(first: u8) -> ConnectionId {
    ConnectionId::new([first, 1, 2, 3, 4, 5, 6, 7]).unwrap()
}

fn messages() -> Vec<Message> {
    let versions = Versions { newest: 3, oldest: 2 };
    let noise = Bytes::from_static(b"Noise");
    let first = |method, cipher, cookie, noise: &Bytes| Message::First {
        suite: Suite { method, cipher },
        versions,
        opener: id(9),
        cookie,
        noise: noise.clone(),
    };
    vec![
        first(Method::SharedKey, Cipher::ChaCha20Poly1305, None, &noise),
        first(Method::PublicKeys, Cipher::Aes256Gcm, Some([7; 16]), &Bytes::from(vec![5; 400])),
        Message::Retry { opener: id(9), cookie: [8; 16] },
        Message::Second { opener: id(9), noise: noise.clone() },
        Message::Third { answerer: id(8), noise },
        Message::Refusal { opener: id(9), reason: Reason::Version, versions },
        Message::Refusal { opener: id(9), reason: Reason::Method, versions },
        Message::Gone { id: id(8), token: [6; 16] },
    ]
}

#[test]
fn what_is_written_is_read() {
    for message in messages() {
        let bytes = message.to_bytes();
        assert_eq!(Kind::of(&bytes), Some(Kind::Handshake));
        let addressee = match &message {
            Message::First { .. } | Message::Third { .. } => Addressee::Answerer,
            Message::Gone { id, .. } => Addressee::Sender(*id),
            Message::Retry { opener, .. }
            | Message::Second { opener, .. }
            | Message::Refusal { opener, .. } => Addressee::Opener(*opener),
        };
        assert_eq!(Addressee::of(&bytes), Some(addressee));
        assert_eq!(Message::parse(&bytes), Ok(message));
    }
    let header = Header { id: id(9), number: 0xfeed_beef };
    let datagram = [&header.bytes()[..], &[0; TAG_LEN]].concat();
    assert_eq!(Header::parse(&datagram), Ok(header));
    assert_eq!(Kind::of(&datagram), Some(Kind::Sealed(id(9))));
    for control in [Control::Challenge([3; 8]), Control::Response([4; 8])] {
        assert_eq!(Control::parse(&control.bytes()), Ok(control));
    }
}

#[test]
fn a_first_message_is_as_long_as_a_third_of_its_answer_at_least() {
    let [first, .., _] = &messages()[..] else { unreachable!("there are several") };
    assert_eq!(first.to_bytes().len(), FIRST_LEN);
    let short = first.to_bytes().slice(..FIRST_LEN - 1);
    assert_eq!(Message::parse(&short), Err(ParseError::Truncated { needed: FIRST_LEN, got: FIRST_LEN - 1 }));
}

#[test]
fn a_message_of_known_length_has_no_prefix_and_no_tail() {
    for message in messages() {
        let open_end = matches!(message, Message::Second { .. } | Message::Third { .. });
        let least = if open_end { MESSAGE_LEN } else { message.to_bytes().len() };
        let bytes = message.to_bytes();
        assert!((0..least).all(|len| Message::parse(&bytes.slice(..len)).is_err()), "{message:?}");
        if matches!(message, Message::Retry { .. } | Message::Refusal { .. } | Message::Gone { .. }) {
            let longer = Bytes::from([&bytes[..], &[0]].concat());
            assert!(matches!(Message::parse(&longer), Err(ParseError::BadLength { .. })), "{message:?}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let with = |message: usize, at: usize, value: u8| {
        let mut bytes = messages()[message].to_bytes().to_vec();
        bytes[at] = value;
        Message::parse(&bytes.into()).is_err()
    };
    assert!(with(0, 0, b'X') && with(0, 4, 0) && with(0, 4, 7), "magic, kind");
    assert!(with(0, 5, 0x00) && with(0, 5, 0x13) && with(0, 5, 0x31), "suite");
    assert!(with(0, 7, 0) && with(0, 7, 4), "versions");
    assert!(with(0, 32, 1), "a Noise message longer than the datagram");
    assert!(with(5, 13, 0) && with(5, 13, 3) && with(5, 15, 0), "reason, versions");
    let mut bytes = messages()[2].to_bytes().to_vec();
    bytes[5..9].copy_from_slice(&MAGIC);
    assert!(Message::parse(&bytes.into()).is_err(), "no connection id begins like a handshake");
    assert_eq!(ConnectionId::new(*b"TPAWxxxx"), None);
    assert!(Control::parse(&[3; 9]).is_err() && Control::parse(&[1; 8]).is_err());
    assert!(Header::parse(&[1; HEADER_LEN + TAG_LEN - 1]).is_err());
    assert_eq!(Kind::of(&[1; 7]), None);
}

#[test]
fn the_newest_version_that_both_speak_is_taken() {
    let versions = |oldest, newest| Versions { newest, oldest };
    assert_eq!(versions(1, 3).common(versions(2, 5)), Some(3));
    assert_eq!(versions(2, 5).common(versions(1, 3)), Some(3));
    assert_eq!(versions(1, 1).common(versions(1, 9)), Some(1));
    assert_eq!(versions(1, 2).common(versions(3, 4)), None);
}
