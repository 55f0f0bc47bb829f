//! Cost of D-Proxy while the other end of its link is missing, and the time until it repairs again. The kernel's TCP runs
//! over 20 Mb/s with 1 % loss and a short round trip. These are measurements: no other test may run at the same time.

use crate::proxy::life::{TIED, each_kind};
use crate::proxy::world::{Daemon, Ground, MOBILE, ROUTER, now, secret, shell, until_or};
use hopline_linux::tcp::set_congestion_control;
use hopline_linux::veth::{self, Offload};
use hopline_testkit::namespace::last_hop::received_until;
use serde_json::Value as Json;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Duration of a measurement, from the connection on.
const LASTS: Duration = Duration::from_secs(6);
/// Number of measurements of each kind, in turn.
const ROUNDS: usize = 5;
/// Least share of the goodput without a proxy.
const LEAST: f64 = 0.99;
/// Time limit after its return within which all proxies must use an interface again.
const RETURN: Duration = Duration::from_secs(5);

/// Ends of the link that have a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    None,
    NearAlone,
    FarAlone,
    /// Both ends, with different keys.
    OtherKeys,
    /// Both ends; the far one is killed three seconds before.
    FarDied,
    Both,
}

const ALL: [Ends; 6] =
    [Ends::None, Ends::NearAlone, Ends::FarAlone, Ends::OtherKeys, Ends::FarDied, Ends::Both];

/// Starts a daemon with D-Proxy at an end of the link.
fn end(ground: &Ground, is_near: bool, key: &str) -> Daemon {
    let (host, local, peer, stands) = if is_near {
        (&ground.router, ROUTER[0], MOBILE, "router")
    } else {
        (&ground.mobile, MOBILE, ROUTER[0], "host")
    };
    let folder = ground.folder.path();
    let key_file = folder.join(format!("{key}.key"));
    secret(&key_file, &key.repeat(32));
    let state = folder.join(stands);
    let file: PathBuf = folder.join(format!("{stands}.toml"));
    let text = format!(
        "state_dir = \"{}\"\n[[proxy]]\nkind = \"d-proxy\"\ninterface = \"mobile\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nstands = \"{stands}\"\nkey_file = \"{}\"\n",
        state.display(),
        key_file.display(),
    );
    fs::write(&file, text).unwrap();
    let mut daemon = Daemon::begin(host, &file, &state);
    daemon.wait_until("it runs", |status| status["proxies"][0]["state"] == "running");
    daemon
}

/// Creates a link of 20 Mb/s with 1 % loss towards the mobile host.
fn lossy() -> Ground {
    let ground = Ground::new();
    shell(&ground.router, "tc qdisc add dev mobile root tbf rate 20mbit burst 3000 limit 150000");
    shell(
        &ground.mobile,
        "iptables -w -A INPUT -i mobile -p tcp -m statistic --mode random --probability 0.01 -j DROP",
    );
    ground
}

fn start_ends(ground: &Ground, ends: Ends) -> Vec<Daemon> {
    let is_present = |daemon: &mut Daemon, is: u64| {
        daemon.wait_until("it knows of the other end", |status| figure(status, "peer_ready") == Some(is));
    };
    match ends {
        Ends::None => Vec::new(),
        Ends::NearAlone => vec![end(ground, true, "07")],
        Ends::FarAlone => vec![end(ground, false, "07")],
        Ends::OtherKeys => vec![end(ground, true, "07"), end(ground, false, "08")],
        Ends::FarDied | Ends::Both => {
            let mut daemons = vec![end(ground, true, "07"), end(ground, false, "07")];
            daemons.iter_mut().for_each(|daemon| is_present(daemon, 1));
            if ends == Ends::FarDied {
                drop(daemons.pop());
            }
            daemons
        }
    }
}

fn figure(status: &Json, name: &str) -> Option<u64> {
    let figures = status["proxies"][0]["figures"].as_array()?;
    figures.iter().find(|figure| figure["name"] == name)?["value"].as_u64()
}

/// Opens a connection from the server to the mobile host.
fn connection(ground: &Ground, law: &str) -> [TcpStream; 2] {
    let to: SocketAddr = format!("{MOBILE}:5005").parse().unwrap();
    let listener = ground.mobile.run(|| TcpListener::bind(to).unwrap()).unwrap();
    let sender = ground.server.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        set_congestion_control(&socket, law).unwrap();
        socket.connect(&to.into()).unwrap();
        TcpStream::from(socket)
    });
    [sender.unwrap(), listener.accept().unwrap().0]
}

/// Returns the goodput, Mb/s.
fn goodput(ground: &Ground, law: &str) -> f64 {
    let ends = connection(ground, law);
    ends[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let received = received_until(ends, now() + LASTS);
    received as f64 * 8.0 / LASTS.as_secs_f64() / 1e6
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Prints the goodput with each set of ends. With one end missing it must equal that without ends.
pub(crate) fn a_missing_end_costs_at_most_one_percent() {
    let mut failed = Vec::new();
    for law in ["cubic", "bbr"] {
        let mut of = ALL.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (at, ends) in ALL.into_iter().enumerate() {
                let ground = lossy();
                let _daemons = start_ends(&ground, ends);
                if ends == Ends::FarDied {
                    thread::sleep(Duration::from_secs(3));
                }
                of[at].push(goodput(&ground, law));
            }
        }
        let plain = median(of[0].clone());
        for (ends, runs) in ALL.into_iter().zip(of) {
            let goodput = median(runs.clone());
            println!(
                "{law:6} {ends:?}: {goodput:.2} Mb/s, {:.3} of that without; {runs:.2?}",
                goodput / plain
            );
            // With both ends none is missing; it is printed for comparison.
            if ends != Ends::Both && goodput < LEAST * plain {
                failed.push((law, ends, goodput, plain));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Restarts an end, several times within a second of the clock: packet numbers of an earlier incarnation must not matter.
pub(crate) fn a_repeatedly_restarted_end_repairs_each_time() {
    let ground = lossy();
    let _near = end(&ground, true, "07");
    let mut longest = Duration::ZERO;
    for _ in 0..10 {
        let began = now();
        let mut far = end(&ground, false, "07");
        far.wait_until("it knows the near end", |status| figure(status, "peer_ready") == Some(1));
        longest = longest.max(began.elapsed());
        let ends = connection(&ground, "cubic");
        ends[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let received = received_until(ends, now() + Duration::from_secs(1));
        assert!(received > 0);
        until_or(
            || panic!("nothing is repaired: {}", far.status()),
            || figure(&far.status(), "holes_recovered").is_some_and(|recovered| recovered > 0),
        );
    }
    println!("ten restarts: {longest:?} at most from the start of the process to the session");
}

/// Prints the time that each kind takes until it works again after its interface has returned.
pub(crate) fn a_returning_interface_is_used_within_five_seconds() {
    let ground = Ground::new();
    let mut daemon = ground.start(&each_kind(&ground));
    let waiting = |status: &Json| {
        let proxies = status["proxies"].as_array().unwrap();
        proxies.iter().filter(|proxy| proxy["state"] == "waiting").count()
    };
    for away in [0, 2, 10, 30] {
        shell(&ground.router, "ip link del mobile");
        daemon.wait_until("those that need it wait", |status| waiting(status) == TIED.len());
        thread::sleep(Duration::from_secs(away));
        veth::join([&ground.mobile, &ground.router], "mobile", Offload::SinglePackets).unwrap();
        ground.address_mobile();
        let returned = now();
        daemon.wait_until("all run again", |status| waiting(status) == 0);
        let took = returned.elapsed();
        println!("away for {away} s and more: all run again after {took:.1?}");
        assert!(took < RETURN, "{took:?}");
    }
    assert!(daemon.ended_by("TERM").success());
}
