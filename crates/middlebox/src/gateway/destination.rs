//! Destinations of connections, and the rules for those that a gateway permits.

use super::embedded::{self, Embedded};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Maximum bytes of a host name (RFC 1928 §5: the length is one byte).
pub const MAX_HOST_LEN: usize = 255;

/// Destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address with a port above zero.
    Address(SocketAddr),
    /// A host name that the exit resolves.
    Named {
        /// The name.
        host: HostName,
        /// The TCP port, above zero.
        port: u16,
    },
}

/// A host name: 1 to 255 ASCII letters, digits, hyphens, dots and underscores (RFC 1123 §2.1, and underscores as in
/// common use).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// Permitted destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Every destination except this host and its neighbours on the link: no loopback, link-local, multicast, broadcast
    /// or unspecified address, and no IPv6 address that embeds such an IPv4 address (6to4, NAT64 and the like).
    #[default]
    NonLocal,
    /// Only destinations that a rule lists; loopback and the like only if they are listed. An IPv6 address that embeds an
    /// IPv4 address needs a rule for the latter too, or a rule within the prefix of its form, such as 64:ff9b::/96.
    Listed(Vec<Rule>),
}

/// Rule that permits addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    subnet: Subnet,
    ports: RangeInclusive<u16>,
}

/// A range of addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    base: IpAddr,
    bits: u8,
}

/// Parse error of a destination, a subnet or a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Malformed destination.
    #[error("a destination is ADDRESS:PORT, [IPv6]:PORT or NAME:PORT, the port 1 to 65535")]
    Destination,
    /// Malformed subnet.
    #[error("a subnet is ADDRESS or ADDRESS/BITS, all bits behind the first BITS zero")]
    Subnet,
    /// Malformed port range.
    #[error("ports are PORT or FIRST-LAST, 1 to 65535")]
    Ports,
}

impl Destination {
    /// Returns the destination at `address`; `None` if its port is zero. An IPv4-mapped IPv6 address becomes an IPv4
    /// address.
    #[must_use]
    pub fn at(address: SocketAddr) -> Option<Self> {
        let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
        (address.port() > 0).then_some(Self::Address(plain))
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Named { port, .. } => *port,
        }
    }

    /// Returns the destination for a host name, or for an address in text form; `None` if `host` is neither or the port
    /// is zero.
    #[must_use]
    pub fn named(host: &[u8], port: u16) -> Option<Self> {
        match std::str::from_utf8(host).ok()?.parse::<IpAddr>() {
            Ok(ip) => Self::at((ip, port).into()),
            Err(_) => HostName::from_bytes(host).filter(|_| port > 0).map(|host| Self::Named { host, port }),
        }
    }
}

impl From<SocketAddr> for Destination {
    /// Converts an address. Port 0 is kept; no connection succeeds there.
    fn from(address: SocketAddr) -> Self {
        Self::Address(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

impl FromStr for Destination {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parsed = match (text.parse::<SocketAddr>(), text.rsplit_once(':')) {
            (Ok(address), _) => Self::at(address),
            (Err(_), Some((host, port))) if !host.contains(':') => {
                port.parse().ok().and_then(|port| Self::named(host.as_bytes(), port))
            }
            _ => None,
        };
        parsed.ok_or(ParseError::Destination)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Named { host, port } => write!(f, "{}:{port}", host.0),
        }
    }
}

impl HostName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let fits = (1..=MAX_HOST_LEN).contains(&bytes.len()) && bytes.iter().all(is_of_name);
        let text = std::str::from_utf8(bytes).ok().filter(|_| fits)?;
        Some(Self(text.into()))
    }
}

impl Allowed {
    /// Returns whether a connection may go to `address`.
    #[must_use]
    pub fn permits(&self, address: SocketAddr) -> bool {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        match self {
            Self::NonLocal => port > 0 && embedded::all_of(ip).all(is_non_local),
            Self::Listed(rules) => Self::permitted_by(rules, address),
        }
    }

    /// Returns whether `rules` list `address` and the IPv4 addresses that are embedded in it.
    #[must_use]
    pub(super) fn permitted_by(rules: &[Rule], address: SocketAddr) -> bool {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let listing =
            |ip| rules.iter().filter(move |rule| rule.subnet.contains(ip) && rule.ports.contains(&port));
        let Some(embedded) = Embedded::of(ip) else { return listing(ip).next().is_some() };
        let is_of_form = |rule: &Rule| rule.subnet.bits >= embedded.prefix_len();
        let has_embedded = || embedded.addresses().all(|ip| listing(ip.into()).next().is_some());
        listing(ip).any(is_of_form) || (listing(ip).next().is_some() && has_embedded())
    }
}

/// Returns whether `ip`, or an IPv4 address that is embedded in it, belongs to a private network: RFC 1918, RFC 6598, RFC
/// 4193, site-local addresses (RFC 3879).
#[cfg(feature = "gateway")]
pub(super) fn is_private(ip: IpAddr) -> bool {
    embedded::all_of(ip).any(|ip| match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            ip.is_private() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(ip) => {
            let [first, ..] = ip.segments();
            first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0
        }
    })
}

/// Returns whether `ip` is neither an address of this host nor one that is valid on one of its links only.
fn is_non_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let of_this_network = ip.octets()[0] == 0; // RFC 1122 §3.2.1.3: the unspecified address leads to this host
            !(of_this_network
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_multicast()
                || ip == Ipv4Addr::BROADCAST)
        }
        IpAddr::V6(ip) => {
            !(ip == Ipv6Addr::UNSPECIFIED
                || ip.is_loopback()
                || ip.is_unicast_link_local()
                || ip.is_multicast())
        }
    }
}

impl Rule {
    /// Returns the rule for connections to `ports` of `subnet`.
    #[must_use]
    pub const fn new(subnet: Subnet, ports: RangeInclusive<u16>) -> Self {
        Self { subnet, ports }
    }
}

impl FromStr for Rule {
    type Err = ParseError;

    /// Parses `SUBNET`, for all ports, or `SUBNET PORTS`: `10.0.0.0/8 80-443`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut words = text.split_ascii_whitespace();
        let subnet = words.next().ok_or(ParseError::Subnet)?.parse()?;
        let ports = match (words.next(), words.next()) {
            (None, _) => 1..=u16::MAX,
            (Some(ports), None) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                let port = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0);
                match (port(first), port(last)) {
                    (Some(first), Some(last)) if first <= last => first..=last,
                    _ => return Err(ParseError::Ports),
                }
            }
            _ => return Err(ParseError::Ports),
        };
        Ok(Self { subnet, ports })
    }
}

impl Subnet {
    /// Returns whether the subnet contains `ip`.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let alike = |a: u128, b: u128, width: u32| {
            (a ^ b).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
        };
        match (self.base, ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => alike(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => alike(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Subnet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| ParseError::Subnet)?;
        let (width, value) = match base {
            IpAddr::V4(ip) => (32, u128::from(ip.to_bits())),
            IpAddr::V6(ip) => (128, ip.to_bits()),
        };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| ParseError::Subnet)?;
        let behind = |bits: u8| value & !(u128::MAX.checked_shl((width - bits).into()).unwrap_or(0));
        if bits > width || behind(bits) != 0 {
            return Err(ParseError::Subnet);
        }
        Ok(Self { base, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(allowed: &Allowed, address: &str) -> bool {
        allowed.permits(address.parse().unwrap())
    }

    #[test]
    fn destinations_round_trip() {
        for text in ["10.0.0.1:80", "[2001:db8::1]:443", "example.org:22"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        assert_eq!("[::ffff:10.0.0.1]:80".parse(), "10.0.0.1:80".parse::<Destination>());
        assert_eq!(Destination::named(b"10.0.0.1", 80), "10.0.0.1:80".parse().ok());
        assert_eq!(Destination::named(b"::1", 80), "[::1]:80".parse().ok());
        for wrong in [
            "",
            "10.0.0.1",
            "10.0.0.1:0",
            "a b:1",
            ":80",
            "host:",
            "host:65536",
            "ho/st:1",
            "2001:db8::1:80",
            "host:0",
        ] {
            assert_eq!(wrong.parse::<Destination>(), Err(ParseError::Destination), "{wrong}");
        }
    }

    #[test]
    fn an_exit_permits_no_connection_to_itself_unless_listed() {
        let beyond = Allowed::NonLocal;
        for itself in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::]:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[ff02::1]:80",
            "10.0.0.1:0",
        ] {
            assert!(!permits(&beyond, itself), "{itself}");
        }
        for embedding in [
            "[2002:7f00:1::1]:80",
            "[2002:a9fe:a9fe::1]:80",
            "[::127.0.0.1]:80",
            "[64:ff9b::127.0.0.1]:80",
            "[64:ff9b:1::127.0.0.1]:80",
            "[64:ff9b:1:7f00:0:100::]:80",
            "[64:ff9b:1:ff7f:0:1::]:80",
            "[64:ff9b:1:ffff:7f:0:100:0]:80",
            "[2001:0:7f00:1::34ff:8efe]:80",
            "[2001:0:cb00:7101::80ff:fffe]:80",
            "[::ffff:0:127.0.0.1]:80",
            "[2001:db8::5efe:127.0.0.1]:80",
        ] {
            assert!(!permits(&beyond, embedding), "{embedding}");
        }
        assert!(permits(&beyond, "10.0.0.1:80") && permits(&beyond, "[2001:db8::1]:80"));
        assert!(permits(&beyond, "[64:ff9b::203.0.113.1]:80") && permits(&beyond, "[2002:cb00:7101::1]:80"));
        let listed = Allowed::Listed(vec!["127.0.0.1 80".parse().unwrap()]);
        assert!(permits(&listed, "127.0.0.1:80") && permits(&listed, "[::ffff:127.0.0.1]:80"));
        assert!(!permits(&listed, "127.0.0.1:81") && !permits(&listed, "10.0.0.1:80"));
    }

    #[test]
    fn private_networks_follow_the_rfcs_also_when_embedded_in_ipv6() {
        let plain = ["10.0.0.1", "172.31.0.1", "192.168.9.9", "100.64.0.1", "fd00::1", "fec0::1"];
        let embedding = [
            "64:ff9b::a00:1",
            "64:ff9b:1::a00:1",
            "64:ff9b:1:c0a8:9:900::",
            "2002:a00:1::1",
            "::10.0.0.1",
            "2001:0:a00:1::34ff:8efe",
            "2001:0:cb00:7101::f5ff:fffe",
        ];
        for ip in plain.into_iter().chain(embedding) {
            assert!(is_private(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["172.32.0.1", "100.128.0.1", "8.8.8.8", "2001:db8::1", "64:ff9b::808:808"] {
            assert!(!is_private(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn rules_apply_to_their_subnet_and_ports_only() {
        let listed = Allowed::Listed(vec![
            "10.1.0.0/16 80-443".parse().unwrap(),
            "2001:db8::/32".parse().unwrap(),
            "0.0.0.0/0 22".parse().unwrap(),
        ]);
        for yes in ["10.1.255.255:80", "10.1.0.0:443", "[2001:db8:ffff::1]:9", "8.8.8.8:22"] {
            assert!(permits(&listed, yes), "{yes}");
        }
        for no in ["10.2.0.0:80", "10.1.0.1:79", "10.1.0.1:444", "[2001:db9::1]:9", "[::1]:22"] {
            assert!(!permits(&listed, no), "{no}");
        }
    }

    #[test]
    fn an_embedded_address_needs_its_own_rule_or_one_for_its_form() {
        let listed =
            |rules: &[&str]| Allowed::Listed(rules.iter().map(|rule| rule.parse().unwrap()).collect());
        for ip in ["2002:a00:1::1", "64:ff9b::10.0.0.1", "2001:0:a00:1::f5ff:fffe", "64:ff9b:1::10.0.0.1"] {
            let address = format!("[{ip}]:80");
            assert!(!permits(&listed(&["::/0", "203.0.113.0/24"]), &address), "{ip}");
            assert!(!permits(&listed(&["::/0", "10.0.0.0/8 81"]), &address), "{ip}");
            assert!(!permits(&listed(&["10.0.0.0/8"]), &address), "{ip}");
            assert!(permits(&listed(&["::/0", "10.0.0.0/8 80"]), &address), "{ip}");
            for form in ["2002::/16", "64:ff9b::/96", "2001::/32", "64:ff9b:1::/48"] {
                let is_of_form = form.parse::<Subnet>().unwrap().contains(ip.parse().unwrap());
                assert_eq!(permits(&listed(&[form]), &address), is_of_form, "{ip} by {form}");
            }
        }
    }

    #[test]
    fn malformed_rules_are_rejected() {
        for subnet in
            ["", "10.0.0.0/33", "10.0.0.1/8", "::/129", "::1/64", "host", "10.0.0.0/", "10.0.0.0/-1"]
        {
            assert_eq!(subnet.parse::<Rule>(), Err(ParseError::Subnet), "{subnet}");
        }
        for ports in ["0", "443-80", "80-", "-80", "65536", "80 81", "http"] {
            assert_eq!(format!("10.0.0.0/8 {ports}").parse::<Rule>(), Err(ParseError::Ports), "{ports}");
        }
        assert!("::/0".parse::<Subnet>().unwrap().contains("::1".parse().unwrap()));
    }
}
