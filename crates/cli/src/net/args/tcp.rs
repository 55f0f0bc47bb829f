//! `tcp`.

use super::link::Time;
use crate::args::number::whole;
use clap::Args as Arguments;
use clap::builder::PossibleValuesParser;
use hopline_middlebox::gateway::Destination;
use hopline_scenario::endpoint::tcp_transports;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo hopline tcp --address 10.88.0.2 -L 8080:192.0.2.7:80 --transport tcp-door
  sudo hopline tcp --address 10.88.0.2 --socks 1080 --set tcp.eifel=true
  sudo hopline tcp --address 10.88.0.2 --accept 2222:127.0.0.1:22

Connections come from the address, which this machine has to forward, and to which the peer needs a route, or \
this machine a rule that translates it: docs/tcp.md. Keys of --set are those of scenarios.
Exit codes: 0 told to end, 1 failed while it ran, 2 wrong usage or wrong input: nothing was set up.";

#[derive(Debug, Arguments)]
pub(crate) struct Tcp {
    /// Address of the stack, which no other host may have; may be repeated, for IPv6
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) address: Vec<IpAddr>,
    /// Forward connections of programs to this port to HOST:PORT, by the stack; may be repeated
    #[arg(short = 'L', long = "forward", value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) forward: Vec<Forward>,
    /// Let programs name the destination by SOCKS version 5 [default address: 127.0.0.1]
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) socks: Vec<Listen>,
    /// Forward connections of peers to this port of the stack to HOST:PORT, by the kernel; may be repeated
    #[arg(long, value_name = "PORT:HOST:PORT")]
    pub(crate) accept: Vec<AcceptForward>,
    /// TCP of the stack
    #[arg(long, value_name = "TRANSPORT", default_value = "tcp-cubic")]
    #[arg(value_parser = PossibleValuesParser::new(tcp_transports()))]
    pub(crate) transport: String,
    /// Set a key of tcp, door, pacing or feedback, as in a scenario: tcp.mss_bytes=1200; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Name of the TUN interface; %d becomes the first free number
    #[arg(long, value_name = "NAME", default_value = "hopline%d")]
    pub(crate) tun: String,
    /// Longest IP packet
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    #[arg(value_parser = whole::<u16>(576..=65_535), allow_negative_numbers = true)]
    pub(crate) mtu: u16,
    /// Most simultaneous connections
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = whole::<u32>(1..=1 << 20), allow_negative_numbers = true)]
    pub(crate) max_connections: u32,
    /// Most memory of all connections together, MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    #[arg(value_parser = whole::<u32>(1..=1 << 20), allow_negative_numbers = true)]
    pub(crate) max_memory: u32,
    /// Probe a peer that was silent for this time, and end the connection without an answer; 0s: never [default: 120min]
    #[arg(long, value_name = "TIME")]
    pub(crate) keep_alive: Option<Time>,
    /// End after this time: 30s [default: SIGTERM or Ctrl-C ends it]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<Time>,
    /// Print the counters of the stack, as one JSON object, at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// Local address at which programs connect; on the loopback interface unless given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

/// Local address, and the destination of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward(pub(crate) SocketAddr, pub(crate) Destination);

/// Port of the stack, and the destination of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcceptForward(pub(crate) u16, pub(crate) Destination);

/// Splits at the colons outside of brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(|character| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ':' && depth == 0
    })
    .collect()
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port > 0)
}

fn listen(parts: &[&str]) -> Option<SocketAddr> {
    match parts {
        [of] => port(of).map(|port| (Ipv4Addr::LOCALHOST, port).into()),
        [ip, of] => {
            let ip = ip.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
            port(of).map(|port| SocketAddr::new(ip, port))
        }
        _ => None,
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        listen(&parts(text))
            .map(Self)
            .ok_or_else(|| "a port, or address and port: 1080, 127.0.0.1:1080".into())
    }
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = parts(text);
        let (here, to) = all.split_at(all.len().saturating_sub(2));
        listen(here).zip(to.join(":").parse().ok()).map(|(here, to)| Self(here, to)).ok_or_else(|| {
            "a port here and a host with its port: 8080:192.0.2.7:80, [::1]:8080:host:80".into()
        })
    }
}

impl FromStr for AcceptForward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a port of the stack and a host with its port: 2222:127.0.0.1:22".to_owned();
        let (of, to) = text.split_once(':').ok_or_else(wrong)?;
        port(of).zip(to.parse().ok()).map(|(port, to)| Self(port, to)).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_parsed_as_by_ssh() {
        for (text, here, to) in [
            ("8080:192.0.2.7:80", "127.0.0.1:8080", "192.0.2.7:80"),
            ("10.0.0.1:8080:host:80", "10.0.0.1:8080", "host:80"),
            ("[::1]:8080:[2001:db8::7]:80", "[::1]:8080", "[2001:db8::7]:80"),
        ] {
            let expected = Forward(here.parse().unwrap(), to.parse().unwrap());
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert_eq!("1080".parse(), Ok(Listen("127.0.0.1:1080".parse().unwrap())));
        assert_eq!("2222:[::1]:22".parse(), Ok(AcceptForward(2222, "[::1]:22".parse().unwrap())));
    }

    #[test]
    fn invalid_forwards_are_rejected_with_a_valid_example() {
        for wrong in ["", "80", "80:host", "0:host:80", "x:80:host:80", "80:host:0", "1:2:3:4:5"] {
            assert!(wrong.parse::<Forward>().unwrap_err().contains("8080:192.0.2.7:80"), "{wrong}");
        }
        assert!("host:1".parse::<Listen>().is_err() && "22".parse::<AcceptForward>().is_err());
    }
}
