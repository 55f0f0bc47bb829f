//! Goodput of the kernel's TCP from a mobile host past a link that loses packets: measured, not tested.

use crate::nfqueue::router::{self, QUEUE, divert};
use crate::nfqueue::world::{RunningMiddlebox, World};
use bytes::Bytes;
use hopline_linux::Namespace;
use hopline_linux::tcp::set_congestion_control;
use hopline_proxy::Pep;
use hopline_proxy::nack::{self, NackStation};
use hopline_proxy::snoop::{self, Snoop};
use hopline_testkit::Side;
use hopline_testkit::namespace::host::succeed;
use hopline_testkit::namespace::last_hop::{LINK, received_until};
use socket2::SockRef;
use std::io::{self, Write};
use std::time::Duration;

/// Of a measurement, from the connection on.
const LASTS: Duration = Duration::from_secs(10);
const LOSSES: [f64; 5] = [0.0, 0.01, 0.03, 0.10, 0.20];
const SEEDS: [u64; 3] = [5, 17, 29];

/// Ends of the last hop that have their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    None,
    Station,
    Host,
    Both,
}

/// Has packets that begin and end at the mobile host wait, as the daemon's rules do.
pub(crate) fn divert_own(mobile: &Namespace, iptables: &str) {
    for rule in [format!("INPUT -i {LINK}"), format!("OUTPUT -o {LINK} -m mark ! --mark 0x686f")] {
        let rule = format!("-w -A {rule} -p tcp -j NFQUEUE --queue-num {QUEUE} --queue-bypass");
        succeed(mobile, iptables, &rule);
    }
}

/// Has the mobile host keep what it sends, as `nack-host` does.
pub(crate) fn buffering_host(mobile: &Namespace) -> RunningMiddlebox<Snoop<Bytes>> {
    RunningMiddlebox::with(router::queue_again(mobile, LINK), Snoop::new(snoop::Config::announcing_host()))
}

/// Has the station ask, as `nack` does.
pub(crate) fn requesting_station(station: &Namespace) -> RunningMiddlebox<NackStation<Bytes>> {
    let config = nack::Config { policy: nack::NackPolicy::Announced, ..nack::Config::default() };
    RunningMiddlebox::with(router::queue_again(station, LINK), NackStation::new(config))
}

pub(crate) fn goodput() {
    let mut report = format!(
        "Mb/s of an upload over a last hop of 20 Mb/s and 2 ms that loses packets of the mobile host, 25 ms behind it, CUBIC, {} s, seeds {SEEDS:?}:\n",
        LASTS.as_secs()
    );
    for loss in LOSSES {
        for ends in [Ends::None, Ends::Station, Ends::Host, Ends::Both] {
            let each = SEEDS.map(|seed| measure(loss, seed, ends));
            let mean = each.iter().map(|(mbps, ..)| mbps).sum::<f64>() / SEEDS.len() as f64;
            report.push_str(&format!(
                "  lost {loss:.2}, {ends:?}: mean {mean:.2}, {each:.2?} (Mb/s, asked, sent again)\n"
            ));
        }
    }
    io::stderr().write_all(report.as_bytes()).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
fn measure(loss: f64, seed: u64, ends: Ends) -> (f64, u64, u64) {
    let world = World::losing_uploads(loss, seed);
    let [station, mobile] = [Side::A, Side::B].map(|side| world.wireless.host(side));
    let asking = [Ends::Station, Ends::Both].contains(&ends).then(|| {
        divert(station, LINK);
        requesting_station(station)
    });
    let keeping = [Ends::Host, Ends::Both].contains(&ends).then(|| {
        divert_own(mobile, "iptables");
        buffering_host(mobile)
    });
    let until = std::time::Instant::now() + LASTS;
    let [fixed, uploads] = world.connection("cubic");
    set_congestion_control(&SockRef::from(&uploads), "cubic").unwrap();
    fixed.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    uploads.set_read_timeout(None).unwrap();
    let bytes = received_until([uploads, fixed], until);
    let asked = asking.map_or(0, |standing| standing.end().0.middlebox().stats().nacks);
    let again = keeping.map_or(0, |standing| standing.end().0.middlebox().stats().local_retransmissions);
    (bytes as f64 * 8e-6 / LASTS.as_secs_f64(), asked, again)
}
