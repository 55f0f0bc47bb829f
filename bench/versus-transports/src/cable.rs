//! The second part: goodput and cost without loss or rate limit, over a pair of veth interfaces.

use crate::cpu;
use crate::peer::{Failure, Peer};
use crate::talk::{Hosts, Nature, Talk, talk};
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Interface, Namespace};
use serde::Serialize;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

const INTERFACE: &str = "cable0";
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 81, 0, 1), Ipv4Addr::new(10, 81, 0, 2)];
/// Link parameters for transports that need them; none of those measured here does.
const NATURE: Nature = Nature { rate: 10_000_000_000, round_trip: Duration::from_micros(100) };

/// Number of attempts, 10 ms apart.
const CARRIER_TRIES: u32 = 500;

/// Transports measured over the cable: of each kind the one with the largest window.
const PEERS: [&str; 5] = ["tcp-cubic", "quinn-cubic", "quinn-bbr", "tpa-12", "tpa-wide"];

/// Result of one run over the cable.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fast {
    pub(crate) peer: String,
    /// Unit that crosses the cable.
    pub(crate) crossing: &'static str,
    pub(crate) round: u32,
    /// Goodput of B's application, from the first attempt to connect, Mb/s.
    pub(crate) goodput_mbps: f64,
    /// Processor seconds of A's threads for each 10⁹ bytes that B's application got.
    pub(crate) sender_s_per_gb: f64,
    /// As `sender_s_per_gb`, for B's threads.
    pub(crate) receiver_s_per_gb: f64,
    /// Processor seconds of the kernel's packet threads for 10⁹ bytes, for all load of the machine.
    pub(crate) kernel_s_per_gb: f64,
    /// Load average of the machine at the end.
    pub(crate) load: f64,
}

/// Does `rounds` runs of each, one after the other, in the same order each round.
pub(crate) fn all(peers: &[Box<dyn Peer>], seconds: f64, rounds: u32) -> Result<Vec<Fast>, Failure> {
    let peers: Vec<_> = peers.iter().filter(|peer| PEERS.contains(&peer.name())).collect();
    let mut runs = Vec::new();
    for round in 1..=rounds {
        for trains in [Offload::Gso, Offload::SinglePackets] {
            for peer in &peers {
                eprint!("\rcable: round {round} of {rounds} ");
                let talk = Cable::new(trains)
                    .and_then(|cable| talk(&cable, peer.as_ref(), NATURE, Duration::from_secs_f64(seconds)))
                    .map_err(|e| format!("{} over the cable: {e}", peer.name()))?;
                runs.push(fast(peer.name(), trains, round, seconds, talk)?);
            }
        }
    }
    eprintln!();
    Ok(runs)
}

/// Returns its name in tables.
const fn name(trains: Offload) -> &'static str {
    match trains {
        Offload::Gso => "trains of packets",
        Offload::SinglePackets => "single packets",
    }
}

fn fast(
    peer: &str,
    trains: Offload,
    round: u32,
    seconds: f64,
    talk: Talk<Result<Used, Failure>>,
) -> Result<Fast, Failure> {
    let [before, after] = talk.readings;
    let (before, after) = (before?, after?);
    let gigabytes = talk.bytes.max(1) as f64 / 1e9;
    let cost = |of: fn(&Used) -> Duration| (of(&after).saturating_sub(of(&before))).as_secs_f64() / gigabytes;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    Ok(Fast {
        peer: peer.to_owned(),
        crossing: name(trains),
        round,
        goodput_mbps: talk.bytes as f64 * 8.0 / seconds / 1e6,
        sender_s_per_gb: cost(|used| used.a),
        receiver_s_per_gb: cost(|used| used.b),
        kernel_s_per_gb: cost(|used| used.kernel),
        load: load.split_whitespace().next().unwrap_or_default().parse()?,
    })
}

/// Processor time until now.
struct Used {
    a: Duration,
    b: Duration,
    kernel: Duration,
}

/// Two hosts joined by a pair of veth interfaces.
struct Cable {
    hosts: [Namespace; 2],
    names: [cpu::Name; 2],
    kernel: cpu::SoftInterrupts,
}

impl Cable {
    fn new(trains: Offload) -> Result<Self, Failure> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        veth::join([&hosts[0], &hosts[1]], INTERFACE, trains)?;
        for (host, address) in hosts.iter().zip(ADDRESSES) {
            host.run(|| {
                let interface = Interface::named(INTERFACE)?;
                interface.set_address(address, 24)?;
                interface.up()
            })??;
        }
        await_carrier(&hosts)?;
        let names = [hosts[0].run(cpu::here)??, hosts[1].run(cpu::here)??];
        Ok(Self { hosts, names, kernel: cpu::SoftInterrupts::find()? })
    }

    fn run<T: Send>(&self, host: usize, what: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].run(what).expect("what could be entered when it was made can be entered again")
    }
}

/// Waits for the carrier: the kernel takes up to a second to notice that both ends of a cable are up, and
/// drops earlier packets.
fn await_carrier(hosts: &[Namespace; 2]) -> Result<(), Failure> {
    let [a, b] = hosts;
    let there = b.run(|| UdpSocket::bind((ADDRESSES[1], 0)))??;
    let here = a.run(|| UdpSocket::bind((ADDRESSES[0], 0)))??;
    there.set_read_timeout(Some(Duration::from_millis(10)))?;
    for _ in 0..CARRIER_TRIES {
        here.send_to(b"?", there.local_addr()?)?;
        if there.recv(&mut [0]).is_ok() {
            return Ok(());
        }
    }
    Err("the cable carries nothing".into())
}

impl Hosts for Cable {
    type Reading = Result<Used, Failure>;

    fn address_called(&self) -> Ipv4Addr {
        ADDRESSES[1]
    }

    fn in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run(0, what)
    }

    fn in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run(1, what)
    }

    fn read(&self) -> Self::Reading {
        let [a, b] = &self.names;
        Ok(Used { a: cpu::time_of(a)?, b: cpu::time_of(b)?, kernel: self.kernel.time()? })
    }
}
