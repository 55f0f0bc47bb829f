//! The proxy as a process of its own, which can be killed and has its own memory. It is this program, started once more with
//! settings in its environment.

use hopline_linux::Namespace;
use hopline_linux::sched::{Priority, request_real_time};
use hopline_linux::transparent::LegOptions;
use hopline_middlebox::handoff::Key;
use hopline_middlebox::service::{Service, ServiceStatus};
use hopline_middlebox::split::{Config, Control, LegPolicy, MobileHosts, MoveConfig, MoveKey, Split};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

/// Port on which the proxy listens.
pub(crate) const PORT: u16 = 7070;
/// The variable that makes this program a proxy, and says of which kind.
const KIND: &str = "HOPLINE_SPLIT";

/// A proxy that runs on a router. It is stopped when dropped.
pub(crate) struct Daemon {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Daemon {
    /// Starts one, with settings such as `[("mobile", "bbr")]`.
    pub(crate) fn start(router: &Namespace, settings: &[(&str, &str)]) -> Self {
        Self::start_kind(router, "split", settings)
    }

    /// Starts one of another kind: see [`run`].
    pub(crate) fn start_kind(router: &Namespace, kind: &str, settings: &[(&str, &str)]) -> Self {
        let capabilities = settings.iter().find(|(name, _)| *name == "capabilities");
        let mut command = capabilities.map_or_else(this_program, |(_, names)| confined(names));
        command.env(KIND, kind).envs(settings.iter().map(|(name, value)| (format!("SPLIT_{name}"), value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = router.spawn(command).unwrap();
        let asks = process.stdin.take();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        answers.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n", "it tells above why not");
        Self { process, requests: asks, answers }
    }

    /// Its figures now.
    pub(crate) fn figures(&mut self) -> BTreeMap<String, u64> {
        self.send_request("figures");
        self.read()
    }

    /// Waits until a figure is as wanted.
    pub(crate) fn wait_for(&mut self, name: &str, wanted: u64) {
        let mut figures = BTreeMap::new();
        for _ in 0..500 {
            figures = self.figures();
            if figures[name] == wanted {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{name} is not {wanted}: {figures:?}");
    }

    /// Asks it for something, and returns the line that it answers.
    pub(crate) fn request(&mut self, what: &str) -> String {
        self.send_request(what);
        self.line()
    }

    pub(crate) fn send_request(&mut self, what: &str) {
        writeln!(self.requests.as_mut().unwrap(), "{what}").unwrap();
    }

    /// Tells it to stop.
    pub(crate) fn stop(&mut self) {
        self.requests = None;
    }

    /// Waits for its end, with its last figures.
    pub(crate) fn ended(mut self) -> BTreeMap<String, u64> {
        self.stop();
        let figures = self.read();
        assert!(self.process.wait().unwrap().success());
        figures
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }

    /// Memory that it has, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.status("VmRSS:").trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Capabilities that it has: bits of the numbers of capabilities(7).
    pub(crate) fn capabilities(&self) -> u64 {
        u64::from_str_radix(&self.status("CapEff:"), 16).unwrap()
    }

    fn status(&self, name: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().into()
    }

    /// Processor time that it has used, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        ticks(&self.process)
    }

    fn read(&mut self) -> BTreeMap<String, u64> {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().into()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.process.wait();
    }
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// The same, by root, with these capabilities alone: what it may not inherit nor be bound to, exec takes away (capabilities(7)).
fn confined(capabilities: &str) -> Command {
    let all = capabilities.split(',').fold("-all".to_owned(), |all, name| format!("{all},+{name}"));
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps=-all", &format!("--bounding-set={all}"), "--"]);
    command.arg(std::env::current_exe().unwrap());
    command
}

/// Processor time that a process has used, in hundredths of a second (proc(5)).
pub(crate) fn ticks(process: &Child) -> u64 {
    ticks_of(&process.id().to_string())
}

/// The same of this process, in which the hosts are.
pub(crate) fn own_ticks() -> u64 {
    ticks_of("self")
}

fn ticks_of(process: &str) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Runs a proxy instead of the tests if the environment says so. Returns `None` if it does not.
pub(crate) fn run_as_proxy() -> Option<ExitCode> {
    let kind = std::env::var(KIND).ok()?;
    if setting("on_time").is_some() {
        assert_eq!(request_real_time(), Priority::RealTime);
    }
    match kind.as_str() {
        "split" => run(),
        kind => crate::split::peers::run(kind, ready),
    }
    Some(ExitCode::SUCCESS)
}

fn ready() {
    say("ready");
}

fn run() {
    let split = Split::open(&config()).unwrap();
    limit_descriptors();
    let handle = split.control();
    let (stop, ledger) = (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), ServiceStatus::default());
    thread::scope(|scope| {
        let service = scope.spawn(|| Box::new(split).run(stop.as_fd(), &ledger));
        // Until it serves there are no figures.
        while ledger.metrics().is_empty() && !service.is_finished() {
            sleep(Duration::from_millis(1));
        }
        ready();
        for line in stdin().lines() {
            match line.unwrap().as_str() {
                "figures" => say(&json(&ledger)),
                // Only its answer to what was asked before is waited for.
                "" => {}
                claim if claim.starts_with("claim ") => say(&claimed(&handle, claim)),
                congestion => handle.set_legs(legs(Some(congestion.into()))).unwrap(),
            }
        }
        rustix::io::write(&stop, &1u64.to_ne_bytes()).unwrap();
        service.join().unwrap().unwrap();
    });
    say(&json(&ledger));
}

/// Has the connections of a host come from another station.
fn claimed(handle: &Control, claim: &str) -> String {
    let words: Vec<&str> = claim.split(' ').collect();
    let claimed = handle.claim(words[1].parse().unwrap(), words[2].parse().unwrap());
    claimed.map_or_else(|e| format!("error: {e}"), |came| format!("{} {}", came.connections, came.refused))
}

fn config() -> Config {
    let mut config = Config { legs: legs(setting("mobile")), ..Config::default() };
    if let Some(address) = setting("moves") {
        let key = setting("key").map_or([7; 16], |key| [key.parse().unwrap(); 16]);
        let key = MoveKey::of(&Key::new(key)).unwrap();
        let listen = address.parse().unwrap();
        config.moves = Some(MoveConfig { listen, key, stations: Vec::new(), base_station: None });
    }
    if let Some(most) = setting("most") {
        config.max_connections = most.parse().unwrap();
    }
    if let Some(address) = setting("listen") {
        config.listen = vec![address.parse().unwrap()];
    }
    if let Some(bytes) = setting("buffer") {
        config.buffer_bytes = bytes.parse().unwrap();
    }
    if let Some(workers) = setting("workers") {
        config.workers = workers.parse().unwrap();
    }
    if let Some(connect) = milliseconds("connect_ms") {
        config.connect_timeout = connect;
    }
    config.drain = milliseconds("drain_ms").unwrap_or_default();
    config
}

/// Returns the options of the halves: those of mobile hosts have the congestion control `mobile`, all other halves that of
/// the setting `fixed`. The default of both is CUBIC.
fn legs(mobile: Option<String>) -> LegPolicy {
    let base = LegOptions::default().with_user_timeout(milliseconds("user_timeout_ms"));
    let cubic = || Some("cubic".into());
    let fixed = base.clone().with_congestion(setting("fixed").or_else(cubic));
    let mobile = base.with_congestion(mobile.or_else(cubic));
    LegPolicy { mobile_hosts: mobile_hosts(), mobile, fixed }
}

/// Those in the networks of the setting, or else beyond an interface.
fn mobile_hosts() -> MobileHosts {
    if let Some(networks) = setting("networks") {
        return MobileHosts::InNetworks(
            networks.split(',').map(|network| network.parse().unwrap()).collect(),
        );
    }
    MobileHosts::ThroughInterface(setting("interface").unwrap_or_else(|| "mobile".into()))
}

/// As if the system gave no more than the setting says, beside what is open.
fn limit_descriptors() {
    let Some(more) = setting("descriptors") else { return };
    let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let current = Some(open + more.parse::<u64>().unwrap());
    setrlimit(Resource::Nofile, Rlimit { current, ..getrlimit(Resource::Nofile) }).unwrap();
}

/// Returns a setting that the proxy was started with.
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(format!("SPLIT_{name}")).ok()
}

fn milliseconds(name: &str) -> Option<Duration> {
    setting(name).map(|value| Duration::from_millis(value.parse().unwrap()))
}

fn json(ledger: &ServiceStatus) -> String {
    let figures: BTreeMap<_, _> = ledger.metrics().into_iter().map(|f| (f.name, f.value)).collect();
    serde_json::to_string(&figures).unwrap()
}

fn say(line: &str) {
    let mut stdout = stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
