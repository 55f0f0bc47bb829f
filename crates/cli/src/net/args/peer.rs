//! `HOST[:PORT]`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Receiver of files: `192.0.2.1`, `192.0.2.1:9`, `name:9`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Address as written by the user, and as it stands in the file of known peers.
    pub(crate) written: String,
    /// Name or address, without brackets.
    pub(crate) host: String,
    /// UDP port; by default that of TPA.
    pub(crate) port: u16,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let (host, port) = split(written)?;
        if host.is_empty() {
            return Err("there is no host before the port".into());
        }
        let port = port.map_or(Ok(hopline_wire::tpa::PORT), parse_port)?;
        Ok(Self { written: written.to_owned(), host: host.to_owned(), port })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

fn split(written: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = written.strip_prefix('[') {
        let not_brackets = || "brackets hold an address of IPv6, as in [2001:db8::1]:7172".to_owned();
        let (host, rest) = rest.split_once(']').ok_or_else(not_brackets)?;
        without_scope(host).parse::<Ipv6Addr>().map_err(|_| not_brackets())?;
        return match rest {
            "" => Ok((host, None)),
            rest => Ok((host, Some(rest.strip_prefix(':').ok_or_else(not_brackets)?))),
        };
    }
    if without_scope(written).parse::<IpAddr>().is_ok() {
        return Ok((written, None));
    }
    match written.split_once(':') {
        None => Ok((written, None)),
        Some((_, rest)) if rest.contains(':') => {
            Err("it is no address of IPv6, and no name has two colons: HOST:PORT, or [2001:db8::1]:PORT"
                .into())
        }
        Some((host, port)) => Ok((host, Some(port))),
    }
}

/// Returns an address without its scope: `fe80::1` of `fe80::1%eth0`.
fn without_scope(address: &str) -> &str {
    address.split_once('%').map_or(address, |(address, _)| address)
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("{text:?} is no port: a whole number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_follow_any_kind_of_host() {
        for (written, host, port) in [
            ("192.0.2.1", "192.0.2.1", 7172),
            ("192.0.2.1:9", "192.0.2.1", 9),
            ("drone-3", "drone-3", 7172),
            ("drone-3:65535", "drone-3", 65535),
            ("2001:db8::1", "2001:db8::1", 7172),
            ("[2001:db8::1]:9", "2001:db8::1", 9),
            ("[fe80::1%eth0]:9", "fe80::1%eth0", 9),
            ("fe80::1%eth0", "fe80::1%eth0", 7172),
            ("::1", "::1", 7172),
            ("[::1]", "::1", 7172),
        ] {
            let peer: Peer = written.parse().unwrap();
            assert_eq!((peer.host.as_str(), peer.port), (host, port), "{written}");
            assert_eq!(peer.to_string(), written);
        }
    }

    #[test]
    fn invalid_receivers_are_rejected() {
        for (written, expected) in [
            ("10.0.0.1:99999", "\"99999\" is no port"),
            ("drone-3:", "\"\" is no port"),
            ("drone-3:0", "\"0\" is no port"),
            ("drone-3:-1", "\"-1\" is no port"),
            ("drone-3:http", "\"http\" is no port"),
            (":7172", "no host"),
            ("", "no host"),
            ("[::1", "brackets"),
            ("[::1]7172", "brackets"),
            ("[drone-3]:9", "brackets"),
            ("drone:3:9", "two colons"),
            ("2001:db8:::1", "two colons"),
        ] {
            let error = written.parse::<Peer>().unwrap_err();
            assert!(error.contains(expected), "{written}: {error}");
        }
    }
}
