//! IPv4 addresses embedded in IPv6 addresses.
//!
//! A tunnel or a translator delivers a packet for such an address to the embedded IPv4 address. The rules for
//! destinations therefore check both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Form in which an IPv6 address embeds an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `::a.b.c.d` (RFC 4291 §2.5.5.1).
    Compatible,
    /// `::ffff:0:a.b.c.d` (RFC 2765 §2.1).
    Translated,
    /// 6to4: behind 2002::/16 (RFC 3056 §2).
    SixToFour,
    /// Teredo: the server, and the client with all bits inverted (RFC 4380 §4).
    Teredo,
    /// NAT64: the last 32 bits behind 64:ff9b::/96 (RFC 6052 §2.1).
    Nat64,
    /// NAT64 with a prefix of 48, 56, 64 or 96 bits within 64:ff9b:1::/48 (RFC 8215, RFC 6052 §2.2). Only the network
    /// knows the length.
    LocalNat64,
    /// ISATAP: in the interface identifier behind any prefix (RFC 5214 §6.1).
    Isatap,
}

/// An IPv6 address with an embedded IPv4 address, and the form in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Embedded {
    ip: Ipv6Addr,
    form: Form,
}

impl Embedded {
    /// Returns the form in which `ip` embeds an IPv4 address, if it does.
    pub(super) fn of(ip: IpAddr) -> Option<Self> {
        let IpAddr::V6(ip) = ip.to_canonical() else { return None };
        let form = match ip.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
            [0, 0, 0, 0, 0, 0, ..] => Form::Compatible,
            [0, 0, 0, 0, 0xffff, 0, ..] => Form::Translated,
            [0x2002, ..] => Form::SixToFour,
            [0x2001, 0, ..] => Form::Teredo,
            [0x64, 0xff9b, 0, 0, 0, 0, ..] => Form::Nat64,
            [0x64, 0xff9b, 1, ..] => Form::LocalNat64,
            [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Form::Isatap,
            _ => return None,
        };
        Some(Self { ip, form })
    }

    /// Returns the length in bits of the form's prefix. A rule for a subnet of at least that length is specific to the
    /// form.
    pub(super) const fn prefix_len(self) -> u8 {
        match self.form {
            Form::Compatible | Form::Translated | Form::Nat64 | Form::Isatap => 96,
            Form::SixToFour => 16,
            Form::Teredo => 32,
            Form::LocalNat64 => 48,
        }
    }

    /// Returns the addresses to which a packet may be delivered.
    pub(super) fn addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        let at = |byte: usize| Ipv4Addr::from_bits((self.ip.to_bits() >> (96 - 8 * byte)) as u32);
        let [last, client] = [at(12), Ipv4Addr::from_bits(!at(12).to_bits())];
        let (certain, possible) = match self.form {
            Form::Compatible | Form::Translated | Form::Nat64 | Form::Isatap => (vec![last], vec![]),
            Form::SixToFour => (vec![at(2)], vec![]),
            Form::Teredo => (vec![at(4), client], vec![]),
            Form::LocalNat64 => (vec![], vec![self.around_octet_8(6), self.around_octet_8(7), at(9), last]),
        };
        // One of the possible readings is right. The others begin with a zero octet, and no packet is delivered to "this
        // network" (RFC 1122 §3.2.1.3).
        let possible = possible.into_iter().filter(|ip| ip.octets()[0] != 0);
        certain.into_iter().chain(possible)
    }

    /// Returns the IPv4 address that begins at octet `first`, above 4, and skips octet 8, which is zero (RFC 6052 §2.2).
    fn around_octet_8(self, first: usize) -> Ipv4Addr {
        let octets = self.ip.octets();
        let mut of_it = octets.into_iter().enumerate().skip(first).filter(|(at, _)| *at != 8);
        Ipv4Addr::from(std::array::from_fn(|_| of_it.next().map_or(0, |(_, octet)| octet)))
    }
}

/// Returns `ip` and all IPv4 addresses that are embedded in it.
pub(super) fn all_of(ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = Embedded::of(ip).into_iter().flat_map(Embedded::addresses);
    std::iter::once(ip.to_canonical()).chain(embedded.map(IpAddr::V4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(ip: &str) -> Vec<String> {
        let embedded = Embedded::of(ip.parse().unwrap());
        embedded.into_iter().flat_map(Embedded::addresses).map(|ip| ip.to_string()).collect()
    }

    #[test]
    fn each_form_has_its_address_where_the_rfc_defines_it() {
        for (ip, v4) in [
            ("::10.1.2.3", "10.1.2.3"),
            ("::ffff:0:10.1.2.3", "10.1.2.3"),
            ("2002:a01:203::1", "10.1.2.3"),
            ("64:ff9b::10.1.2.3", "10.1.2.3"),
            ("2001:db8::5efe:10.1.2.3", "10.1.2.3"),
            ("2001:db8::200:5efe:10.1.2.3", "10.1.2.3"),
            // RFC 6052 §2.4 has these three for longer and shorter prefixes.
            ("64:ff9b:1:a01:2:300::", "10.1.2.3"),
            ("64:ff9b:1:aa0a:1:203::", "10.1.2.3"),
            ("64:ff9b:1:aaaa:a:102:300:0", "10.1.2.3"),
            ("64:ff9b:1:aaaa::10.1.2.3", "10.1.2.3"),
        ] {
            assert!(embedded(ip).iter().any(|found| found == v4), "{ip}: {:?}", embedded(ip));
        }
        // The server and the client of RFC 4380 §4.
        assert_eq!(embedded("2001:0:cb00:7101::f5fe:fdfc"), ["203.0.113.1", "10.1.2.3"]);
    }

    #[test]
    fn a_local_prefix_of_96_bits_has_one_address() {
        assert_eq!(embedded("64:ff9b:1::203.0.113.1"), ["203.0.113.1"]);
    }

    #[test]
    fn other_addresses_embed_nothing() {
        for ip in ["::", "::1", "2001:db8::a01:203", "fd00::1", "10.1.2.3", "::ffff:10.1.2.3", "2001:4860::1"]
        {
            assert_eq!(embedded(ip), [""; 0], "{ip}");
        }
    }
}
