//! Gateways between TCP and TPA: input from unauthenticated senders.

use hopline_middlebox::gateway::Key;
use hopline_middlebox::gateway::handshake::{
    Challenge, Hello, Kind, Malformed, Nonce, Request, Session, Unverified, Verdict, decode_header,
};
use hopline_middlebox::gateway::socks::{Login, Negotiation, Step};

/// Bytes of a message of either gateway. Decoded messages survive encoding and decoding again, and none is accepted from a
/// sender without the key.
pub fn gateway_messages(data: &[u8]) {
    let (key, challenge, nonce) = (Key::new(&[1; 32]), Challenge(Nonce([2; 32])), Nonce([3; 32]));
    let session = Session::new(&key, &challenge, &nonce);
    if let Some(bytes) = data.first_chunk()
        && let Ok(understood) = Challenge::decode(bytes)
    {
        assert_eq!(&understood.encode(), bytes);
    }
    if let Some(bytes) = data.first_chunk() {
        assert!(Verdict::decode(bytes, &session, 0).is_err());
    }
    let Some((start, body)) = data.split_first_chunk() else { return };
    let Ok((kind, len)) = decode_header(start) else { return };
    let Some(body) = body.get(..len) else { return };
    match kind {
        Kind::Hello => {
            let Ok(claim) = Unverified::<Hello>::decode(body) else { return };
            let again = claim.message().encode(&key, &challenge);
            let proven = Unverified::<Hello>::decode(body_of(&again, kind))
                .and_then(|claim| claim.verify(&key, &challenge));
            assert_eq!(proven.as_ref(), Ok(claim.message()));
            assert_eq!(claim.verify(&key, &challenge), Err(Malformed::Proof));
        }
        Kind::Request => {
            let Ok(claim) = Unverified::<Request>::decode(body) else { return };
            let again = claim.message().encode(&session);
            let proven =
                Unverified::<Request>::decode(body_of(&again, kind)).and_then(|claim| claim.verify(&session));
            assert_eq!(proven.as_ref(), Ok(claim.message()));
            assert_eq!(claim.verify(&session), Err(Malformed::Proof));
        }
    }
}

fn body_of(message: &[u8], kind: Kind) -> &[u8] {
    let (start, body) = message.split_first_chunk().expect("a message has a header");
    assert_eq!(decode_header(start), Ok((kind, body.len())));
    body
}

/// First byte: login required if odd. Then bytes of a SOCKS client. A message is never longer than the longest of the
/// protocol, and the negotiation ends after three.
pub fn socks(data: &[u8]) {
    let Some((login, mut rest)) = data.split_first() else { return };
    let login = if login.is_multiple_of(2) { None } else { Login::new("user", "secret") };
    let mut negotiation = Negotiation::new(login);
    let mut taken = 0;
    while negotiation.missing_bytes() > 0 && !rest.is_empty() {
        // Alternates between one byte and all bytes that are wanted.
        let piece = if taken % 2 == 0 { negotiation.missing_bytes().min(rest.len()) } else { 1 };
        let (bytes, behind) = rest.split_at(piece);
        rest = behind;
        taken += piece;
        match negotiation.handle_bytes(bytes) {
            Ok(Step::More) => assert!(negotiation.missing_bytes() > 0),
            Ok(Step::Answer(_)) => assert!(negotiation.missing_bytes() > 0),
            Ok(Step::Connect(destination)) => {
                assert_eq!(negotiation.missing_bytes(), 0);
                assert_eq!(destination.to_string().parse().as_ref(), Ok(&destination));
            }
            Err(refusal) => return assert!(refusal.answer.len() <= 10),
        }
        assert!(taken <= 257 + 513 + 262);
    }
}
