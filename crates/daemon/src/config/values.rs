//! Values that are texts in the key tables, such as addresses, subnets and names of interfaces; and durations.

use crate::rules::Ipv6Support;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem, nearest};
use ipnet::IpNet;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// Parses the text of `key` as a `T`, if it is set. `example`: a valid value.
pub(super) fn parsed<T: FromStr>(
    section: &Section<'_>,
    key: &str,
    what: &str,
    example: &str,
) -> Result<Option<T>, Problem> {
    section.word(key).map(|text| parse(text, section.origin_of(key), what, example)).transpose()
}

/// Parses each text in the list of `key`; empty if it is not set.
pub(super) fn parsed_list<T: FromStr>(
    section: &Section<'_>,
    key: &str,
    what: &str,
    example: &str,
) -> Result<Vec<T>, Problem> {
    let origin = section.origin_of(key);
    section.texts(key).into_iter().map(|text| parse(text, origin, what, example)).collect()
}

/// Returns the problem of a missing mandatory key of this kind of proxy.
pub(super) fn missing(section: &Section<'_>, key: &str, kind: &str, example: &str) -> Problem {
    Problem::new(format!("a proxy of kind \"{kind}\" without `{key}`"))
        .at(section.origin_of("kind"))
        .help(format!("add {key} = {example}"))
}

/// Checks the name of an interface strictly, because the name becomes part of firewall rules.
pub(super) fn interface(section: &Section<'_>, key: &str, name: &str) -> Result<String, Problem> {
    // IFNAMSIZ, including the final NUL.
    let fits = (1..16).contains(&name.len());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    if fits && name.chars().all(is_plain) && !name.starts_with('-') {
        return Ok(name.to_owned());
    }
    Err(Problem::new(format!("\"{name}\" is no name of an interface"))
        .at(section.origin_of(key))
        .help("`ip link` lists those of this machine"))
}

/// Parses addresses with prefix lengths; bits of the host are kept.
pub(super) fn interface_addresses(section: &Section<'_>, key: &str) -> Result<Vec<IpNet>, Problem> {
    parsed_list(section, key, "address with the length of its network", "10.82.0.1/24")
}

/// Returns the listening addresses for diverted connections: this port on the loopback address of each version of IP that
/// this machine has.
pub(super) fn diverted_to(port: u16) -> Vec<SocketAddr> {
    Ipv6Support::detect().families().iter().map(|family| family.listener(port)).collect()
}

/// Congestion control algorithms of Linux. Some kernels have them as modules that are not loaded yet.
const CONGESTION_CONTROLS: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Checks the name of a congestion control algorithm: this kernel offers it, or a module of Linux may provide it.
pub(super) fn congestion_control(section: &Section<'_>, key: &str) -> Result<Option<String>, Problem> {
    let Some(name) = section.word(key) else { return Ok(None) };
    let offered = hopline_linux::tcp::offered_congestion_controls();
    let is_known = |known: &str| known == name;
    if offered.split_whitespace().any(is_known) || CONGESTION_CONTROLS.into_iter().any(is_known) {
        return Ok(Some(name.to_owned()));
    }
    let problem = Problem::new(format!("\"{name}\" is no congestion control of Linux"));
    let guess = nearest(name, CONGESTION_CONTROLS).map(|known| format!("did you mean \"{known}\"? "));
    let help = format!("{}this kernel has: {offered}", guess.unwrap_or_default());
    Err(problem.at(section.origin_of(key)).help(help))
}

/// Returns a time given in seconds.
pub(super) fn seconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(Duration::from_secs_f64)
}

fn parse<T: FromStr>(text: &str, origin: &Origin, what: &str, example: &str) -> Result<T, Problem> {
    let wrong = |_| {
        let help = match network_and_host(text) {
            Some([network, host]) => format!("{network} is meant? The host alone is {host}"),
            None => format!("for example: \"{example}\""),
        };
        Problem::new(format!("\"{text}\" is no {what}")).at(origin).help(help)
    };
    text.parse().map_err(wrong)
}

/// Returns the network and the host address in a text such as 10.1.0.7/16, where a network was expected. `None` if no bit
/// of the host is set.
fn network_and_host(text: &str) -> Option<[IpNet; 2]> {
    let net: IpNet = text.split_whitespace().next()?.parse().ok()?;
    (net.trunc() != net).then(|| [net.trunc(), IpNet::from(net.addr())])
}
