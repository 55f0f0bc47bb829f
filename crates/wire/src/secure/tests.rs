use super::*;

fn id(first: u8) -> ConnectionId {
    ConnectionId::new([first, 1, 2, 3, 4, 5, 6, 7]).unwrap()
}

fn messages() -> Vec<HandshakeMessage> {
    let versions = Versions { newest: 3, oldest: 2 };
    let noise = Bytes::from_static(b"Noise");
    let first = |method, cipher, cookie, noise: &Bytes| HandshakeMessage::Handshake1 {
        suite: Suite { method, cipher },
        versions,
        initiator_id: id(9),
        cookie,
        noise: noise.clone(),
    };
    vec![
        first(Method::SharedKey, Cipher::ChaCha20Poly1305, None, &noise),
        first(Method::PublicKeys, Cipher::Aes256Gcm, Some([7; 16]), &Bytes::from(vec![5; 400])),
        HandshakeMessage::Retry { initiator: id(9), cookie: [8; 16] },
        HandshakeMessage::Handshake2 { initiator_id: id(9), noise: noise.clone() },
        HandshakeMessage::Handshake3 { responder_id: id(8), noise },
        HandshakeMessage::Refusal { initiator: id(9), reason: RefusalReason::Version, versions },
        HandshakeMessage::Refusal { initiator: id(9), reason: RefusalReason::Method, versions },
        HandshakeMessage::StatelessReset { id: id(8), token: [6; 16] },
    ]
}

#[test]
fn emitted_messages_parse_back() {
    for message in messages() {
        let bytes = message.to_bytes();
        assert_eq!(DatagramKind::of(&bytes), Some(DatagramKind::Handshake));
        let addressee = match &message {
            HandshakeMessage::Handshake1 { .. } | HandshakeMessage::Handshake3 { .. } => Recipient::Responder,
            HandshakeMessage::StatelessReset { id, .. } => Recipient::Connection(*id),
            HandshakeMessage::Retry { initiator, .. }
            | HandshakeMessage::Handshake2 { initiator_id: initiator, .. }
            | HandshakeMessage::Refusal { initiator, .. } => Recipient::Initiator(*initiator),
        };
        assert_eq!(Recipient::of(&bytes), Some(addressee));
        assert_eq!(HandshakeMessage::parse(&bytes), Ok(message));
    }
    let header = SealedHeader { id: id(9), number: 0xfeed_beef };
    let datagram = [&header.bytes()[..], &[0; TAG_LEN]].concat();
    assert_eq!(SealedHeader::parse(&datagram), Ok(header));
    assert_eq!(DatagramKind::of(&datagram), Some(DatagramKind::Sealed(id(9))));
    for control in [Control::Challenge([3; 8]), Control::Response([4; 8])] {
        assert_eq!(Control::parse(&control.bytes()), Ok(control));
    }
}

#[test]
fn message_1_limits_amplification_to_three() {
    let [first, .., _] = &messages()[..] else { unreachable!("there are several") };
    assert_eq!(first.to_bytes().len(), HANDSHAKE_1_LEN);
    let short = first.to_bytes().slice(..HANDSHAKE_1_LEN - 1);
    assert_eq!(
        HandshakeMessage::parse(&short),
        Err(ParseError::Truncated { needed: HANDSHAKE_1_LEN, got: HANDSHAKE_1_LEN - 1 })
    );
}

#[test]
fn truncated_or_overlong_messages_are_refused() {
    for message in messages() {
        let open_end =
            matches!(message, HandshakeMessage::Handshake2 { .. } | HandshakeMessage::Handshake3 { .. });
        let least = if open_end { MESSAGE_LEN } else { message.to_bytes().len() };
        let bytes = message.to_bytes();
        assert!((0..least).all(|len| HandshakeMessage::parse(&bytes.slice(..len)).is_err()), "{message:?}");
        if matches!(
            message,
            HandshakeMessage::Retry { .. }
                | HandshakeMessage::Refusal { .. }
                | HandshakeMessage::StatelessReset { .. }
        ) {
            let longer = Bytes::from([&bytes[..], &[0]].concat());
            assert!(
                matches!(HandshakeMessage::parse(&longer), Err(ParseError::BadLength { .. })),
                "{message:?}"
            );
        }
    }
}

#[test]
fn invalid_messages_are_refused() {
    let with = |message: usize, at: usize, value: u8| {
        let mut bytes = messages()[message].to_bytes().to_vec();
        bytes[at] = value;
        HandshakeMessage::parse(&bytes.into()).is_err()
    };
    assert!(with(0, 0, b'X') && with(0, 4, 0) && with(0, 4, 7), "magic, kind");
    assert!(with(0, 5, 0x00) && with(0, 5, 0x13) && with(0, 5, 0x31), "suite");
    assert!(with(0, 7, 0) && with(0, 7, 4), "versions");
    assert!(with(0, 32, 1), "a Noise message longer than the datagram");
    assert!(with(5, 13, 0) && with(5, 13, 3) && with(5, 15, 0), "reason, versions");
    let mut bytes = messages()[2].to_bytes().to_vec();
    bytes[5..9].copy_from_slice(&MAGIC);
    assert!(HandshakeMessage::parse(&bytes.into()).is_err(), "no connection id begins like a handshake");
    assert_eq!(ConnectionId::new(*b"TPAWxxxx"), None);
    assert!(Control::parse(&[3; 9]).is_err() && Control::parse(&[1; 8]).is_err());
    assert!(SealedHeader::parse(&[1; HEADER_LEN + TAG_LEN - 1]).is_err());
    assert_eq!(DatagramKind::of(&[1; 7]), None);
}

#[test]
fn the_newest_common_version_is_chosen() {
    let versions = |oldest, newest| Versions { newest, oldest };
    assert_eq!(versions(1, 3).common(versions(2, 5)), Some(3));
    assert_eq!(versions(2, 5).common(versions(1, 3)), Some(3));
    assert_eq!(versions(1, 1).common(versions(1, 9)), Some(1));
    assert_eq!(versions(1, 2).common(versions(3, 4)), None);
}
