//! Tables of the recipes for proxies: each with the files of its page, compared with the same link without a proxy.

use crate::docs::folder::Folder;
use crate::docs::page::{Kind, Page};
use crate::drills::world::now;
use crate::proxy::transfer::in_a_thread;
use crate::proxy::world::{Daemon, secret, shell};
use hopline_core::{Duration as Span, Instant};
use hopline_link::{Emulation, Side};
use hopline_tools::link::NamespaceLink;
use serde_json::Value as Json;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// Number of runs for a median, each with other losses.
const RUNS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// One test for each page.
pub(crate) const DRILLS: [(&str, fn()); 5] = [
    ("recipe_bad_wifi", bad_wifi),
    ("recipe_injected_wifi", injected_wifi),
    ("recipe_tunnels", tunnels),
    ("recipe_two_sites", two_sites),
    ("recipe_long_path", long_path),
];

/// Files of a page, prepared for several daemons on one machine.
struct Recipe(Folder);

impl Recipe {
    fn of(page: &str) -> Self {
        let page = Page::load(&crate::docs::root().join("docs/recipes").join(page));
        let folder = Folder::new();
        for example in &page.examples {
            if let Kind::File(_, name) = &example.kind {
                let daemon = name.trim_end_matches(".toml");
                let state = folder.path().join("state");
                let key = folder.path().join("link.key");
                let text = example
                    .text
                    .replace("\"wlan0\"", "\"link0\"")
                    .replace("\"eth1\"", "\"lan0\"")
                    .replace("link.key\"", &format!("{}\"", key.display()));
                let text = format!("name = \"{daemon}\"\nstate_dir = \"{}\"\n{text}", state.display());
                fs::write(folder.path().join(name), text).unwrap();
                secret(&key, &"07".repeat(32));
            }
        }
        Self(folder)
    }

    /// Returns the median goodput in Mb/s of `near`, a client of `hopline bench -J`.
    fn goodput(&self, link: &str, hosts: &str, near: &str) -> f64 {
        let mut rates: Vec<f64> = (1..=RUNS)
            .map(|seed| {
                // With priority over other work of the machine, which hosts of a link would not share.
                let said = self
                    .0
                    .sh(&format!("chrt -f 5 hopline link {link} --seed {seed} {hosts} -- sh -c '{near}'"));
                let json: Json = serde_json::from_str(said.text.trim())
                    .unwrap_or_else(|error| panic!("{hosts}: {error}: {}", said.text));
                json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[RUNS / 2]
    }

    /// Creates the link with the daemons of `ends` on its hosts, which have the addresses of the page.
    fn between(
        &self,
        way: &Emulation,
        ends: [&str; 2],
        addresses: [&str; 2],
    ) -> (NamespaceLink, [Daemon; 2]) {
        let link = NamespaceLink::new(way.clone(), way.clone(), 1).unwrap();
        let sides = [Side::A, Side::B];
        for (side, address) in sides.into_iter().zip(addresses) {
            shell(link.host(side), &format!("ip addr add {address} dev link0"));
        }
        let daemons = [0, 1].map(|end| {
            let file = self.0.path().join(ends[end]).with_extension("toml");
            Daemon::begin_called(ends[end], link.host(sides[end]), &file, &self.0.path().join("state"))
        });
        (link, daemons)
    }
}

/// Waits until both ends have found each other.
fn await_peers(daemons: &mut [Daemon; 2]) {
    for daemon in daemons {
        daemon.wait_until("the other end is there", |status| {
            let figures = status["proxies"][0]["figures"].as_array();
            let ready = figures.and_then(|all| all.iter().find(|figure| figure["name"] == "peer_ready"));
            ready.is_some_and(|figure| figure["value"] == 1)
        });
    }
}

const BENCH: &str = "hopline bench -i 0 -J --latency 0";

fn bad_wifi() {
    println!(
        "\nbad-wifi.md: Mb/s, 20 Mb/s, 2 ms, 5 % lost one way, masquerade, median of {RUNS} runs of 5 s"
    );
    let recipe = Recipe::of("bad-wifi.md");
    let nat = "iptables -w -t nat -A POSTROUTING -o lan0 -j MASQUERADE; exec \"$@\"";
    fs::write(recipe.0.path().join("nat.sh"), nat).unwrap();
    for (way, losses, direction) in
        [("download", "--loss 0 --loss-back 5%", "-R"), ("upload", "--loss 5% --loss-back 0", "")]
    {
        for (name, daemon) in [
            ("no proxy", "true"),
            ("snoop", "hopline proxy run snoop.toml"),
            ("split", "hopline proxy run split.toml"),
        ] {
            let [cubic, bbr] = ["cubic", "bbr"].map(|congestion| {
                recipe.goodput(
                    &format!("--rate 20mbit --delay 2ms {losses}"),
                    &format!("--far-router \"sh nat.sh {daemon}\" --far \"hopline bench -s\""),
                    &format!(
                        "sleep 1; {BENCH} -c $HOPLINE_FAR {direction} -t 5 --transport tcp:{congestion}"
                    ),
                )
            });
            println!("  {way}, {name}: CUBIC {cubic:.1}, BBR {bbr:.1}");
        }
    }
}

/// Result of a stream of datagrams in one direction.
#[derive(Default)]
struct Datagrams {
    sent: usize,
    arrived: usize,
    overtaken: usize,
    /// Delays in ms, ascending.
    delays: Vec<f64>,
}

impl Datagrams {
    fn lost(&self) -> f64 {
        100.0 * (self.sent - self.arrived) as f64 / self.sent as f64
    }

    fn delay(&self, share: f64) -> f64 {
        self.delays[((self.delays.len() - 1) as f64 * share) as usize]
    }
}

/// Sends `count` datagrams of `len` bytes from A to B, one in `every`.
fn stream(
    link: &NamespaceLink,
    from: Ipv4Addr,
    to: SocketAddr,
    len: usize,
    count: usize,
    every: Duration,
) -> Datagrams {
    let receiver = link.run_in_b(|| listener(to));
    let sender = link.run_in_a(|| UdpSocket::bind((from, 0)).unwrap());
    let began = now();
    let sent = in_a_thread(move || {
        let _ = hopline_linux::sched::request_real_time();
        for number in 0..count {
            thread::sleep((began + every * number as u32).saturating_duration_since(now()));
            let mut datagram = vec![0; len];
            datagram[..8].copy_from_slice(&(number as u64).to_be_bytes());
            datagram[8..24].copy_from_slice(&began.elapsed().as_nanos().to_be_bytes());
            // Nothing is sent while there is no route.
            let _ = sender.send_to(&datagram, to);
        }
    });
    let arrived = in_a_thread(move || {
        let _ = hopline_linux::sched::request_real_time();
        receive(&receiver, began, count)
    });
    sent.join().unwrap();
    arrived.join().unwrap()
}

/// Counts datagrams that arrive, until none arrives for a while.
fn receive(receiver: &UdpSocket, began: std::time::Instant, count: usize) -> Datagrams {
    let mut result = Datagrams { sent: count, ..Datagrams::default() };
    let mut datagram = vec![0; 1 << 16];
    let mut latest = 0;
    receiver.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    while result.arrived < count
        && let Ok(len) = receiver.recv(&mut datagram)
    {
        let arrived = began.elapsed().as_nanos();
        assert!(len >= 24);
        let number = u64::from_be_bytes(datagram[..8].try_into().unwrap());
        let sent = u128::from_be_bytes(datagram[8..24].try_into().unwrap());
        result.arrived += 1;
        result.overtaken += usize::from(number < latest);
        latest = latest.max(number);
        result.delays.push((arrived - sent) as f64 / 1e6);
    }
    result.delays.sort_by(f64::total_cmp);
    result
}

/// Creates a socket at `to`, which may be a group: then of the interface with the tunnel's or the link's address.
fn listener(to: SocketAddr) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_recv_buffer_size(4 << 20).unwrap();
    socket.bind(&to.into()).unwrap();
    socket.into()
}

fn way(rate_mbps: u64, delay_ms: u64, loss: f64) -> Emulation {
    Emulation::delay(Span::from_millis(delay_ms))
        .with_rate(Some(rate_mbps * 1_000_000))
        .with_loss(loss)
        .with_queue(Some(100))
}

fn injected_wifi() {
    println!("\nwfb-ng.md: 10 Mb/s, 3 ms, 5 % lost each way");
    let recipe = Recipe::of("wfb-ng.md");
    let every = Duration::from_micros(1600);
    for (name, order) in [("no proxy", None), ("kept", Some("kept")), ("any", Some("any"))] {
        set_order(&recipe, order.unwrap_or("kept"));
        let (link, mut daemons) =
            recipe.between(&way(10, 3, 0.05), ["drone", "ground"], ["10.5.0.2/24", "10.5.0.1/24"]);
        await_peers(&mut daemons);
        let [from, to]: [Ipv4Addr; 2] = match order {
            None => ["10.5.0.2", "10.5.0.1"],
            Some(_) => ["10.82.0.2", "10.82.0.1"],
        }
        .map(|address| address.parse().unwrap());
        let video = stream(&link, from, (to, 5600).into(), 1200, 5000, every);
        println!(
            "  video of 6 Mb/s, {name}: {:.2} % lost, {:.2} % overtaken, one way {:.1} ms median, {:.1} ms at 95 %, {:.1} ms at 99 %",
            video.lost(),
            100.0 * video.overtaken as f64 / video.arrived as f64,
            video.delay(0.5),
            video.delay(0.95),
            video.delay(0.99),
        );
    }
    for (name, order, far) in
        [("no proxy", "kept", "10.5.0.1"), ("kept", "kept", "10.82.0.1"), ("any", "any", "10.82.0.1")]
    {
        set_order(&recipe, order);
        let [cubic, bbr] = ["cubic", "bbr"].map(|congestion| {
            recipe.goodput(
                "--rate 10mbit --delay 3ms --loss 5%",
                "--far \"sh -c \\\"ip addr add 10.5.0.1/24 dev link0; hopline proxy run ground.toml & exec hopline bench -s\\\"\"",
                &format!(
                    "ip addr add 10.5.0.2/24 dev link0; hopline proxy run drone.toml & sleep 2; {BENCH} -c {far} -t 5 --transport tcp:{congestion}"
                ),
            )
        });
        println!("  TCP, {name}: CUBIC {cubic:.1} Mb/s, BBR {bbr:.1}");
    }
}

/// Writes this order into both files.
fn set_order(recipe: &Recipe, order: &str) {
    for name in ["drone", "ground"] {
        let path = recipe.0.path().join(name).with_extension("toml");
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("order = "));
        let rest: String = lines.map(|line| format!("{line}\n")).collect();
        fs::write(path, format!("{rest}order = \"{order}\"\n")).unwrap();
    }
}

fn tunnels() {
    println!("\ntunnels.md: 20 Mb/s, 20 ms, 5 % lost each way");
    let recipe = Recipe::of("tunnels.md");
    let ends = ["here", "there"];
    let addresses = ["192.0.2.1/24", "192.0.2.2/24"];
    for (name, tunnel) in [("no proxy", false), ("tunnel", true)] {
        let (link, mut daemons) = recipe.between(&way(20, 20, 0.05), ends, addresses);
        await_peers(&mut daemons);
        let [from, to]: [Ipv4Addr; 2] =
            if tunnel { ["10.82.0.1", "10.82.0.2"] } else { ["192.0.2.1", "192.0.2.2"] }
                .map(|address| address.parse().unwrap());
        let ms = Duration::from_millis;
        let wireguard = stream(&link, from, (to, 51820).into(), 1452, 4000, Duration::from_micros(1452));
        println!("  {name}: datagrams of 1452 bytes, 8 Mb/s: {:.2} % lost", wireguard.lost());
        let handshakes = answered_queries(&link, from, to, 300, ms(60));
        println!("  {name}: handshakes of 148 and 92 bytes: {handshakes} of 300 answered");
        let sample = stream(&link, from, (to, 7411).into(), 60_000, 60, ms(100));
        println!("  {name}: samples of 60,000 bytes: {} of 60 arrived", sample.arrived);
        let found = received_announcements(&link, from, to, 100);
        println!("  {name}: announcements to 239.255.0.1: {found} of 100 arrived");
        let (median, late, longest) = message_times(&link, from, to, 150, ms(100));
        println!(
            "  {name}: messages over TCP: {median:.0} ms median, {late:.0} ms at 95 %, {longest:.0} ms the longest"
        );
    }
    for (name, tunnel) in [("no proxy", false), ("tunnel", true)] {
        let outage = (Instant::ZERO + Span::from_secs(10), Instant::ZERO + Span::from_secs(25));
        let way = way(20, 20, 0.05).with_blackouts(vec![outage]);
        let (link, mut daemons) = recipe.between(&way, ends, addresses);
        await_peers(&mut daemons);
        let [from, to]: [Ipv4Addr; 2] =
            if tunnel { ["10.82.0.1", "10.82.0.2"] } else { ["192.0.2.1", "192.0.2.2"] }
                .map(|address| address.parse().unwrap());
        let (_, _, longest) = message_times(&link, from, to, 25, Duration::from_secs(1));
        println!(
            "  {name}: a connection that is silent for 15 s goes on: longest wait {:.1} s",
            longest / 1000.0
        );
    }
}

/// Counts answers of 92 bytes to queries of 148 bytes.
fn answered_queries(
    link: &NamespaceLink,
    from: Ipv4Addr,
    to: Ipv4Addr,
    count: usize,
    every: Duration,
) -> usize {
    let server = link.run_in_b(|| UdpSocket::bind((to, 51821)).unwrap());
    server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let answers = in_a_thread(move || {
        while let Ok((_, from)) = server.recv_from(&mut [0; 200]) {
            let _ = server.send_to(&[0; 92], from);
        }
    });
    let client = link.run_in_a(|| UdpSocket::bind((from, 0)).unwrap());
    let asking = client.try_clone().unwrap();
    let asked = in_a_thread(move || {
        for _ in 0..count {
            let _ = asking.send_to(&[0; 148], (to, 51821));
            thread::sleep(every);
        }
    });
    client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut arrived = 0;
    while arrived < count && client.recv(&mut [0; 200]).is_ok() {
        arrived += 1;
    }
    asked.join().unwrap();
    answers.join().unwrap();
    arrived
}

/// Counts announcements to the group of DDS that arrive. Both sockets name their interface by its address.
fn received_announcements(link: &NamespaceLink, from: Ipv4Addr, to: Ipv4Addr, count: usize) -> usize {
    let group = Ipv4Addr::new(239, 255, 0, 1);
    let receiver = link.run_in_b(|| {
        let socket = listener((group, 7400).into());
        socket.join_multicast_v4(&group, &to).unwrap();
        socket
    });
    let sender = link.run_in_a(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_multicast_if_v4(&from).unwrap();
        UdpSocket::from(socket)
    });
    let sent = in_a_thread(move || {
        for _ in 0..count {
            let _ = sender.send_to(&[0; 200], (group, 7400));
            thread::sleep(Duration::from_millis(30));
        }
    });
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut arrived = 0;
    while arrived < count && receiver.recv(&mut [0; 300]).is_ok() {
        arrived += 1;
    }
    sent.join().unwrap();
    arrived
}

/// Returns the median, 95th percentile and maximum of the times in ms from a message of 100 bytes to its answer, over one
/// connection.
fn message_times(
    link: &NamespaceLink,
    from: Ipv4Addr,
    to: Ipv4Addr,
    count: usize,
    every: Duration,
) -> (f64, f64, f64) {
    let listener = link.run_in_b(|| TcpListener::bind((to, 1883)).unwrap());
    let broker = in_a_thread(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut message = [0; 100];
        while stream.read_exact(&mut message).is_ok() && stream.write_all(&message).is_ok() {}
    });
    let mut stream = link.run_in_a(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&SocketAddr::from((to, 1883)).into()).unwrap();
        TcpStream::from(socket)
    });
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let began = now();
            stream.write_all(&[0; 100]).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
            let took = began.elapsed();
            thread::sleep(every.saturating_sub(took));
            took.as_secs_f64() * 1000.0
        })
        .collect();
    drop(stream);
    broker.join().unwrap();
    times.sort_by(f64::total_cmp);
    (times[count / 2], times[count * 95 / 100], times[count - 1])
}

fn two_sites() {
    println!("\ntwo-sites.md: Mb/s, 20 Mb/s, 25 ms, median of {RUNS} runs of 6 s");
    let recipe = Recipe::of("two-sites.md");
    for loss in ["2%", "10%"] {
        let rates = through_gateways(&recipe, &format!("--rate 20mbit --delay 25ms --loss {loss}"), 6);
        println!("  {loss} lost: {rates}");
    }
}

fn long_path() {
    println!("\nlong-path.md: Mb/s, 20 Mb/s, 150 ms and up to 10 ms more, median of {RUNS} runs of 15 s");
    let recipe = Recipe::of("long-path.md");
    let link = "--rate 20mbit --delay 150ms --jitter 10ms --queue 400 --loss 1%";
    println!("  1 % lost: {}", through_gateways(&recipe, link, 15));
}

/// Script that runs a daemon with real-time priority. The threads of the daemon reset theirs to ordinary priority first.
const IN_REAL_TIME: &str = "hopline proxy run $1 & daemon=$!; sleep 1
for thread in /proc/$daemon/task/*; do chrt -f -p 5 ${thread##*/}; done; wait";

fn through_gateways(recipe: &Recipe, link: &str, seconds: u64) -> String {
    fs::write(recipe.0.path().join("real-time.sh"), IN_REAL_TIME).unwrap();
    let gateways =
        "--near-router \"sh real-time.sh entrance.toml\" --far-router \"sh real-time.sh exit.toml\"";
    let plain = "--near-router true --far-router true";
    [("CUBIC", plain, "cubic"), ("BBR", plain, "bbr"), ("gateways, CUBIC", gateways, "cubic")]
        .map(|(name, routers, congestion)| {
            let rate = recipe.goodput(
                link,
                &format!("{routers} --far \"hopline bench -s\""),
                &format!("sleep 3; {BENCH} -c $HOPLINE_FAR -t {seconds} --transport tcp:{congestion}"),
            );
            format!("{name} {rate:.1}")
        })
        .join(", ")
}
