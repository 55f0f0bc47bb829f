//! Running proxies: each is a process of its own, so that its cost can be separated from all other load.

use crate::condition::Condition;
use crate::middle::{Daemon, Middle};
use crate::world::{Place, World, ip, succeed};
use hopline_daemon::Config;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use versus::{Failure, cpu};

/// Maximum number of checks, 10 ms apart, whether a daemon is up.
const LOOKS: u32 = 2000;
/// Port on which PEPsal accepts connections.
const PEPSAL_PORT: u16 = 5000;

/// Proxies in the middle of a world.
pub(crate) struct Standing {
    processes: Vec<(Place, Child)>,
    // Dropped after the processes have ended.
    _folder: TempDir,
}

/// Processor time and memory of the processes at a place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) time: Duration,
    /// Resident memory, bytes.
    pub(crate) memory: u64,
}

impl Standing {
    /// Starts the daemons of `middle` and waits until they receive packets. `pepsal` is that program.
    pub(crate) fn start(
        world: &World,
        middle: Middle,
        condition: &Condition,
        pepsal: Option<&Path>,
    ) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("versus-proxies-")?;
        let key = folder.path().join("key");
        fs::write(&key, "5a".repeat(32))?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        let mut standing = Self { processes: Vec::new(), _folder: folder };
        let folder = standing._folder.path().to_owned();
        let daemons = middle.daemons(condition, &key);
        // Far ends are started before the near ends that connect to them.
        for daemon in daemons.iter().rev() {
            let child = start(world, daemon, &folder)?;
            standing.processes.push((daemon.place, child));
            wait(daemon, &folder, &mut standing.processes)?;
        }
        if middle == Middle::PepSal {
            let program = pepsal.ok_or("there is no PEPsal")?;
            standing.processes.push((Place::Router, start_pepsal(world, program)?));
        }
        Ok(standing)
    }

    /// Returns the processor time and memory of the processes at `place` until now.
    pub(crate) fn used(&self, place: Place) -> Result<Used, Failure> {
        let mut sum = Used::default();
        for (_, child) in self.processes.iter().filter(|(at, _)| *at == place) {
            sum.time += cpu::time_of_process(child.id())?;
            sum.memory += cpu::resident(child.id())?;
        }
        Ok(sum)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        for (_, child) in &self.processes {
            // A process that has ended already is only waited for.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        for (_, child) in &mut self.processes {
            let _ = child.wait();
        }
    }
}

/// Returns the command by which this program becomes a daemon's keeper.
pub(crate) fn keeper(config: &Config) -> Vec<OsString> {
    vec!["keep".into(), config.name.clone().into(), config.state_dir.clone().into()]
}

/// Starts this program as `hopline proxy run` would run the daemon.
fn start(world: &World, daemon: &Daemon, folder: &Path) -> Result<Child, Failure> {
    let path = folder.join(daemon.name).with_extension("toml");
    let of_a_life = format!("name = \"{}\"\nstate_dir = \"{}\"\n", daemon.name, folder.display());
    fs::write(&path, of_a_life + &daemon.file)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("proxy").arg(path).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(log(daemon, folder))?);
    Ok(world.host(daemon.place).spawn(command)?)
}

fn log(daemon: &Daemon, folder: &Path) -> std::path::PathBuf {
    folder.join(daemon.name).with_extension("log")
}

/// Waits until a daemon answers a status request: its rules are installed then.
fn wait(daemon: &Daemon, folder: &Path, processes: &mut [(Place, Child)]) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        if hopline_daemon::query(folder, daemon.name).is_ok() {
            return Ok(());
        }
        for (_, child) in processes.iter_mut() {
            if let Some(ended) = child.try_wait()? {
                let said = fs::read_to_string(log(daemon, folder)).unwrap_or_default();
                return Err(format!("the daemon ended ({ended}): {}", said.trim()).into());
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err("the daemon does not say how it is".into())
}

/// Starts PEPsal, with the rules of its README, before all other rules as for the daemons.
fn start_pepsal(world: &World, program: &Path) -> Result<Child, Failure> {
    let router = world.host(Place::Router);
    ip(router, "rule add fwmark 1 lookup 100")?;
    ip(router, "route add local 0.0.0.0/0 dev lo table 100")?;
    let rule = format!("-m addrtype ! --dst-type LOCAL -j TPROXY --on-port {PEPSAL_PORT} --tproxy-mark 1");
    succeed(router, "iptables", &format!("-w -t mangle -A PREROUTING -p tcp {rule}"))?;
    let mut command = Command::new("chrt");
    command.args(["-f", "1"]).arg(program).args(["-p", &PEPSAL_PORT.to_string(), "-c", "512"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = router.spawn(command).map_err(|e| format!("{}: {e}", program.display()))?;
    // It does not report that it listens.
    thread::sleep(Duration::from_millis(500));
    Ok(child)
}
