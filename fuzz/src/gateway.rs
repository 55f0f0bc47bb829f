//! Gateways between TCP and TPA: what strangers say to them.

use hopline_net::gateway::Key;
use hopline_net::gateway::greeting::{Challenge, Claim, Malformed, Nonce, Verdict, body_len};
use hopline_net::gateway::socks::{Login, Negotiation, Step};

/// Bytes of a message of either gateway: what is understood survives encoding and decoding again, and nothing is believed of who does
/// not have the key.
pub fn gateway_messages(data: &[u8]) {
    let (key, challenge, nonce) = (Key::new(&[1; 32]), Challenge(Nonce([2; 32])), Nonce([3; 32]));
    if let Some(bytes) = data.first_chunk()
        && let Ok(understood) = Challenge::decode(bytes)
    {
        assert_eq!(&understood.encode(), bytes);
    }
    if let Some(bytes) = data.first_chunk() {
        assert!(Verdict::decode(bytes, &key, &challenge, &nonce).is_err());
    }
    let Some((header, body)) = data.split_first_chunk() else { return };
    let Some(body) = body_len(header).ok().and_then(|len| body.get(..len)) else { return };
    let Ok(claim) = Claim::decode(body) else { return };
    let again = claim.unproven().encode(&key, &challenge);
    let (header, body) = again.split_first_chunk().expect("a request has a header");
    assert_eq!(body_len(header), Ok(body.len()));
    let proven = Claim::decode(body).and_then(|claim| claim.verify(&key, &challenge));
    assert_eq!(proven.as_ref(), Ok(claim.unproven()));
    assert_eq!(claim.verify(&key, &challenge), Err(Malformed::Proof));
}

/// Whether a login is asked for (first byte, even: no), and bytes of a client of SOCKS: a message is never longer than the longest
/// there is, and three of them are the end.
pub fn socks(data: &[u8]) {
    let Some((login, mut rest)) = data.split_first() else { return };
    let login = if login.is_multiple_of(2) { None } else { Login::new("user", "secret") };
    let mut negotiation = Negotiation::new(login);
    let mut taken = 0;
    while negotiation.wants() > 0 && !rest.is_empty() {
        // In pieces of one byte and of all that is wanted, by turns.
        let piece = if taken % 2 == 0 { negotiation.wants().min(rest.len()) } else { 1 };
        let (bytes, behind) = rest.split_at(piece);
        rest = behind;
        taken += piece;
        match negotiation.take(bytes) {
            Ok(Step::More) => assert!(negotiation.wants() > 0),
            Ok(Step::Answer(_)) => assert!(negotiation.wants() > 0),
            Ok(Step::Connect(destination)) => {
                assert_eq!(negotiation.wants(), 0);
                assert_eq!(destination.to_string().parse().as_ref(), Ok(&destination));
            }
            Err(refusal) => return assert!(refusal.answer.len() <= 10),
        }
        assert!(taken <= 257 + 513 + 262);
    }
}
