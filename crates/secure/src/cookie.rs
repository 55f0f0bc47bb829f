//! Cookies: what an initiator shows when it comes again, so that nothing need be remembered of it before.
//!
//! A cookie is a keyed hash over the address, the first message and the time, as the tags of TPA's listener
//! (the idea is that of SYN cookies, RFC 4987 §3.6, and of QUIC's Retry, RFC 9000 §8.1.2).

use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{COOKIE_LEN, Cookie};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Lifetime of a cookie: at least this, at most twice this.
const LIFETIME: Duration = Duration::from_secs(30);

/// The key of cookies, and of what names a first message.
#[derive(Clone)]
pub(crate) struct CookieKey {
    key: [u8; 16],
}

/// Digest that identifies a first message from an address.
pub(crate) type Digest = u128;

impl CookieKey {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Returns the name of what came from `address`: everything of a first message that is not its cookie.
    pub(crate) fn message_digest(&self, address: SocketAddr, bound: &[u8], noise: &[u8]) -> Digest {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(0);
        write_address(&mut hasher, address);
        hasher.write_usize(bound.len());
        hasher.write(bound);
        hasher.write(noise);
        hasher.finish128().as_u128()
    }

    /// Returns a number for the same, wherever it came from.
    pub(crate) fn content_digest(&self, bound: &[u8], noise: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(2);
        hasher.write_usize(bound.len());
        hasher.write(bound);
        hasher.write(noise);
        hasher.finish()
    }

    /// Returns the cookie for a first message.
    pub(crate) fn cookie(&self, now: Instant, digest: Digest) -> Cookie {
        self.of_epoch(epoch(now), digest)
    }

    /// Returns whether `cookie` was given for this first message recently.
    pub(crate) fn is_valid(&self, now: Instant, digest: Digest, cookie: &Cookie) -> bool {
        let this = epoch(now);
        [Some(this), this.checked_sub(1)].into_iter().flatten().any(|epoch| {
            let right = self.of_epoch(epoch, digest);
            // Not cut short at the first difference, so that the time reveals nothing.
            (0..COOKIE_LEN).fold(0, |differs, at| differs | (right[at] ^ cookie[at])) == 0
        })
    }

    fn of_epoch(&self, epoch: u64, digest: Digest) -> Cookie {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(1);
        hasher.write_u64(epoch);
        hasher.write_u128(digest);
        let cookie = hasher.finish128().as_bytes();
        // Zeros stand for "none"; one value more or less in 2¹²⁸ does not matter.
        if cookie == [0; COOKIE_LEN] { [1; COOKIE_LEN] } else { cookie }
    }
}

fn write_address(hasher: &mut SipHasher24, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.write_u16(address.port());
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / LIFETIME.as_nanos()
}

impl core::fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Baker(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_valid_for_one_message_from_one_address_for_a_limited_time() {
        let baker = CookieKey::new([7; 16]);
        let [here, there] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        let at = Instant::from_secs(100);
        let digest = baker.message_digest(here, b"bound", b"noise");
        let cookie = baker.cookie(at, digest);
        assert!(baker.is_valid(at, digest, &cookie));
        assert!(baker.is_valid(at + LIFETIME, digest, &cookie));
        assert!(!baker.is_valid(at + LIFETIME + LIFETIME, digest, &cookie));
        for other in [
            baker.message_digest(there, b"bound", b"noise"),
            baker.message_digest(here, b"boun", b"dnoise"),
            baker.message_digest(here, b"bound", b"Noise"),
        ] {
            assert!(!baker.is_valid(at, other, &cookie));
        }
        assert!(!CookieKey::new([8; 16]).is_valid(at, digest, &cookie));
    }
}
