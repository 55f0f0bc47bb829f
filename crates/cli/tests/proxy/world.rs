//! A mobile host, a router and a server, joined by cables; and the daemon on the router.

use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use serde_json::Value as Json;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const MOBILE: &str = Version::V4.mobile();
pub(crate) const SERVER: &str = Version::V4.server();
/// Addresses of the router, towards the mobile host and towards the server.
pub(crate) const ROUTER: [&str; 2] = Version::V4.router();

/// IP version; the hosts have addresses of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) const fn mobile(self) -> &'static str {
        match self {
            Self::V4 => "10.9.0.1",
            Self::V6 => "fd09::1",
        }
    }

    pub(crate) const fn server(self) -> &'static str {
        match self {
            Self::V4 => "10.8.0.1",
            Self::V6 => "fd08::1",
        }
    }

    /// Returns the addresses of the router, towards the mobile host and towards the server.
    pub(crate) const fn router(self) -> [&'static str; 2] {
        match self {
            Self::V4 => ["10.9.0.254", "10.8.0.254"],
            Self::V6 => ["fd09::254", "fd08::254"],
        }
    }

    pub(crate) const fn iptables(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    /// Returns the option of ip(8).
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// Returns the length of the networks' prefix.
    const fn prefix(self) -> u8 {
        match self {
            Self::V4 => 24,
            Self::V6 => 64,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

/// Longer than any step here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between checks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Commands that list the configuration of the router's kernel for packets.
const LISTINGS: [&str; 10] = [
    "iptables -w -S -t security",
    "ip6tables -w -S -t security",
    "iptables -w -S -t mangle",
    "ip6tables -w -S -t mangle",
    // Without counters.
    "nft --stateless list ruleset",
    "ip -4 rule",
    "ip -6 rule",
    "ip -4 route show table all",
    "ip -6 route show table all",
    "ip -o link show type tun",
];

pub(crate) struct Ground {
    pub(crate) mobile: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
    pub(crate) folder: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let [mobile, router, server] = [(); 3].map(|()| Namespace::new().unwrap());
        for (other, name) in [(&mobile, "mobile"), (&server, "fixed")] {
            veth::join([other, &router], name, Offload::SinglePackets).unwrap();
        }
        let folder = TempDir::new().unwrap();
        let ground = Self { mobile, router, server, folder };
        ground.connect();
        ground
    }

    /// Gives the two ends of a new cable to the mobile host the addresses of the old one.
    pub(crate) fn address_mobile(&self) {
        shell(&self.router, "ip addr add 10.9.0.254/24 dev mobile; ip link set mobile up");
        shell(
            &self.mobile,
            "ip addr add 10.9.0.1/24 dev mobile; ip link set mobile up; ip route add default via 10.9.0.254",
        );
    }

    fn connect(&self) {
        // IPv4 addresses survive an outage too.
        const SETTINGS: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; \
                                echo 1 > /proc/sys/net/ipv6/conf/all/keep_addr_on_down";
        let routers = |at: usize| VERSIONS.map(|version| version.router()[at]);
        let [to_mobile, to_server] =
            [("mobile", 0), ("fixed", 1)].map(|(name, at)| interface(name, routers(at)));
        shell(&self.router, &format!("{SETTINGS}; {to_mobile}; {to_server}"));
        let (mobile, server) = (VERSIONS.map(Version::mobile), VERSIONS.map(Version::server));
        for (host, name, addresses, routers) in
            [(&self.mobile, "mobile", mobile, routers(0)), (&self.server, "fixed", server, routers(1))]
        {
            let ways = routers.map(|router| format!("ip route add default via {router}")).join("; ");
            shell(host, &format!("{}; {ways}", interface(name, addresses)));
        }
        shell(&self.router, &tables());
        // The kernel notices a moment later that the cables have two ends.
        let routes = || {
            VERSIONS
                .map(|version| shell(&self.router, &format!("ip {} route show table all", version.option())))
        };
        let is_up = || {
            let routes = routes().concat();
            // The routes of the link-local addresses come last.
            let has_local = |name| routes.contains(&format!("anycast fe80:: dev {name} "));
            !routes.contains("linkdown") && has_local("mobile") && has_local("fixed")
        };
        until_or(|| panic!("{:?}", routes()), is_up);
    }

    /// Interrupts the cable to the mobile host for `length`.
    pub(crate) fn outage(&self, length: Duration) {
        shell(&self.router, "ip link set mobile down");
        thread::sleep(length);
        // The kernel keeps all other addresses.
        shell(&self.router, "ip link set mobile up; ip addr add fe80::254/64 dev mobile nodad");
    }

    /// Writes a configuration file of proxies; its state is in the same folder.
    pub(crate) fn write(&self, text: &str) -> PathBuf {
        let (path, state) = (self.folder.path().join("proxy.toml"), self.state());
        fs::write(&path, format!("state_dir = \"{}\"\n{text}", state.display())).unwrap();
        path
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Runs `hopline proxy` on the router with a file, to its end.
    pub(crate) fn proxy(&self, what: &str, file: &Path) -> Output {
        self.ends(proxy(what, file))
    }

    /// Removes the remains of daemons: the interfaces of tunnels.
    pub(crate) fn undo_tunnels(&self, file: &Path) -> Output {
        let mut undo = proxy("undo", file);
        undo.arg("--tunnels");
        self.ends(undo)
    }

    /// Waits for the end of a command on the router.
    pub(crate) fn ends(&self, mut command: Command) -> Output {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.router.spawn(command).unwrap().wait_with_output().unwrap()
    }

    /// Starts the daemon of a file, and waits until it runs.
    pub(crate) fn start(&self, text: &str) -> Daemon {
        let file = self.write(text);
        self.start_file(&file)
    }

    pub(crate) fn start_file(&self, file: &Path) -> Daemon {
        let mut daemon = self.begin(file);
        daemon.wait_until("it runs", |status| status["proxies"][0]["state"] == "running");
        daemon
    }

    /// Starts the daemon and does not wait.
    pub(crate) fn begin(&self, file: &Path) -> Daemon {
        Daemon::begin(&self.router, file, &self.state())
    }

    /// Starts the daemon by another program, which executes it.
    pub(crate) fn begin_by(&self, words: &[&str], file: &Path) -> Daemon {
        Daemon::begin_by(&self.router, words, file, &self.state())
    }

    /// Drops matching packets to the mobile host, before any other rule sees them.
    pub(crate) fn lose(&self, matching: &str) {
        let rules = format!(
            "table inet air {{ chain to_mobile {{ type filter hook prerouting priority -400; iifname mobile {matching} drop; }}; }}"
        );
        // Created and deleted, so that there is a table to delete.
        shell(&self.mobile, &format!("nft 'table inet air {{}}; delete table inet air; {rules}'"));
    }

    /// Returns the whole packet configuration of the router's kernel.
    pub(crate) fn listing(&self) -> String {
        listing(&self.router)
    }

    /// Checks that the configuration is the same as before, within the time limit.
    pub(crate) fn is_as_before(&self, before: &str, what: &str) {
        let mut now = self.listing();
        until_or(
            || {
                panic!(
                    "{what}: left behind:\n{}\nmissing:\n{}",
                    added(before, &self.listing()),
                    added(&self.listing(), before)
                )
            },
            || {
                now = self.listing();
                sorted(&now) == sorted(before)
            },
        );
        assert_eq!(self.processes(), Vec::<u32>::new(), "{what}: processes are left");
        let state: Vec<_> =
            names(&self.state()).into_iter().filter(|name| !name.ends_with(".lock")).collect();
        assert_eq!(state, Vec::<String>::new(), "{what}: files are left");
    }

    /// Returns the processes that have the folder in their command line.
    fn processes(&self) -> Vec<u32> {
        let of_ours = self.folder.path().to_str().unwrap();
        let mut found = Vec::new();
        let looked = until(|| {
            found = processes_with(of_ours);
            found.is_empty()
        });
        if looked { Vec::new() } else { found }
    }
}

/// Returns the whole packet configuration of a host's kernel.
pub(crate) fn listing(host: &Namespace) -> String {
    let script: Vec<String> =
        LISTINGS.iter().map(|listing| format!("echo '# {listing}'; {listing}")).collect();
    shell(host, &script.join("; "))
}

/// Writes a file of a secret, which only its owner may read.
pub(crate) fn secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Returns the processes with `words` in their command line.
pub(crate) fn processes_with(words: &str) -> Vec<u32> {
    let of = |entry: io::Result<fs::DirEntry>| {
        let id = entry.ok()?.file_name().to_str()?.parse::<u32>().ok()?;
        let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(words).then_some(id)
    };
    fs::read_dir("/proc").unwrap().filter_map(of).collect()
}

fn interface(name: &str, addresses: [&str; 2]) -> String {
    let host = addresses[1].split_once("::").map_or("", |(_, host)| host);
    let [v4, v6] = [0, 1].map(|at| format!("{}/{}", addresses[at], VERSIONS[at].prefix()));
    // Autoconfigured IPv6 addresses would appear at any time. A router needs a link-local one to solicit neighbours.
    format!(
        "ip link set {name} addrgenmode none; ip addr add {v4} dev {name}; ip addr add {v6} dev {name} nodad; \
         ip addr add fe80::{host}/64 dev {name} nodad; ip link set {name} up"
    )
}

/// Returns a script that makes iptables create the tables that it creates at its first call, and keeps.
pub(crate) fn tables() -> String {
    let script = |version: Version| {
        let program = version.iptables();
        let touch = |(table, chain)| {
            format!("{program} -w -t {table} -A {chain} -j ACCEPT && {program} -w -t {table} -D {chain} 1")
        };
        [
            ("security", "FORWARD"),
            ("security", "INPUT"),
            ("security", "OUTPUT"),
            ("mangle", "PREROUTING"),
            ("mangle", "POSTROUTING"),
        ]
        .map(touch)
        .join(" && ")
    };
    VERSIONS.map(script).join(" && ")
}

/// Sorts the lines: routes change their order when an interface goes down and up.
pub(crate) fn sorted(listing: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = listing.lines().collect();
    lines.sort_unstable();
    lines
}

fn added(before: &str, after: &str) -> String {
    after.lines().filter(|line| !before.contains(line)).map(|line| format!("{line}\n")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the command `hopline proxy` with a file.
pub(crate) fn proxy(what: &str, file: &Path) -> Command {
    let mut command = hopline();
    command.arg("proxy").args(what.split(' ')).arg(file);
    command
}

pub(crate) fn hopline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Returns the output of a script on a host. It must succeed.
pub(crate) fn shell(host: &Namespace, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = host.spawn(command).unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Running daemon. It is killed when dropped, and its keeper cleans up.
pub(crate) struct Daemon {
    pub(crate) process: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn begin(host: &Namespace, file: &Path, state: &Path) -> Self {
        Self::begin_by(host, &[], file, state)
    }

    /// Starts a daemon with this name in its file.
    pub(crate) fn begin_called(name: &str, host: &Namespace, file: &Path, state: &Path) -> Self {
        let mut daemon = Self::begin(host, file, state);
        daemon.socket = state.join(name).with_extension("sock");
        daemon
    }

    /// Starts a daemon by another program, which executes it.
    pub(crate) fn begin_by(host: &Namespace, words: &[&str], file: &Path, state: &Path) -> Self {
        let log = file.with_extension("log");
        let mut command = Command::new(words.first().unwrap_or(&env!("CARGO_BIN_EXE_hopline")));
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        if let Some(rest) = words.get(1..) {
            command.args(rest).arg(env!("CARGO_BIN_EXE_hopline"));
        }
        command.args(["proxy", "run"]).arg(file);
        let said = File::options().create(true).append(true).open(&log).unwrap();
        command.stdout(Stdio::null()).stderr(said);
        Self { process: host.spawn(command).unwrap(), socket: state.join("hopline.sock"), log }
    }

    /// Returns its status, if it answers.
    pub(crate) fn asked(&self) -> Option<Json> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn status(&self) -> Json {
        self.asked().unwrap_or_else(|| panic!("it does not answer; it said: {}", self.log_text()))
    }

    /// Waits until its status is as wanted. Fails at the time limit, and if it has ended.
    pub(crate) fn wait_until(&mut self, what: &str, wanted: impl Fn(&Json) -> bool) {
        let since = now();
        while since.elapsed() < PATIENCE {
            let id = self.process.id();
            // A daemon that was killed just now may have left a socket.
            if self.asked().is_some_and(|status| status["process"] == id && wanted(&status)) {
                return;
            }
            assert_eq!(self.process.try_wait().unwrap(), None, "{what}: {}", self.log_text());
            thread::sleep(POLL_INTERVAL);
        }
        panic!("not: {what}: {:?}: {}", self.asked(), self.log_text());
    }

    /// Returns a counter of one of its proxies; 0 before there is one.
    pub(crate) fn metric(&self, proxy: &str, name: &str) -> u64 {
        let status = self.status();
        let of = |list: &Json, name: &str| {
            list.as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned()
        };
        let proxy = of(&status["proxies"], proxy).unwrap_or_else(|| panic!("no {proxy}: {status}"));
        of(&proxy["figures"], name).map_or(0, |figure| figure["value"].as_u64().unwrap())
    }

    /// Returns its log so far, and those of its predecessors.
    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.id(), name);
    }

    /// Ends it by a signal, and returns its exit status.
    pub(crate) fn ended_by(&mut self, name: &str) -> ExitStatus {
        self.signal(name);
        self.ended()
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until_or(
            || panic!("it does not end"),
            || {
                status = self.process.try_wait().unwrap();
                status.is_some()
            },
        );
        status.unwrap()
    }

    /// Returns its resident memory, bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let kill = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(kill.unwrap().success());
}

/// Checks repeatedly until `is_so` is true. Returns whether it was so at last.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let since = now();
    while since.elapsed() < PATIENCE {
        if is_so() {
            return true;
        }
        thread::sleep(POLL_INTERVAL);
    }
    false
}

/// Checks repeatedly until `is_so` is true, and calls `not` at the time limit.
pub(crate) fn until_or(not: impl FnOnce(), is_so: impl FnMut() -> bool) {
    if !until(is_so) {
        not();
    }
}

#[expect(clippy::disallowed_methods, reason = "drills are in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
