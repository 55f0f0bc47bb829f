//! Proxy files: parses TOML and returns checked values. Every error has a position in the file.

mod conflicts;
pub mod keys;
mod proxy;
mod requirements;
mod station;
mod task;
mod unknown;
mod values;

pub use crate::rules::DiversionMark;
pub use crate::subnet::Subnet;
pub use keys::LogFormat;
pub use proxy::Proxy;
pub use requirements::Requirement;
pub(crate) use task::Scheduling;
pub(crate) use task::host_key;
pub use task::{
    ConnectionMoves, DProxyTask, EntranceTask, ExitTask, PacketSelection, SplitTask, StationTask, Task,
    TunnelTask,
};

use crate::rules::Owner;
use conflicts::Conflicts;
use hopline_config::document::{self, Node};
use hopline_config::schema::Section;
use hopline_config::source::{Problem, Problems, Source};
use hopline_linux::accounts::{self, Account};
use keys::file;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Configuration of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name of the daemon, part of the names of its rules, sockets and files.
    pub name: String,
    /// Folder of its lock, its control socket and the list of its rules.
    pub state_dir: PathBuf,
    /// User to which the daemon changes after root has started it; `None`: it stays root.
    pub user: Option<User>,
    /// Group that may query its status; `None`: all users may.
    pub status_group: Option<StatusGroup>,
    /// Format of log messages.
    pub log: LogFormat,
    /// Address and port of its metrics for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Packet mark and routing table that divert packets to its sockets.
    pub diversion: DiversionMark,
    /// Proxies, in the order of the file; at least one, with distinct names.
    pub proxies: Vec<Proxy>,
    /// Interfaces and addresses of this machine that the proxies name.
    pub requirements: Vec<Requirement>,
}

/// User of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// User ID and group ID.
    pub account: Account,
}

/// Group of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusGroup {
    /// Name.
    pub name: String,
    /// Group ID.
    pub id: u32,
}

/// Name of a daemon and folder of its socket, which is all that a status query needs. To load it, no secret is read, so
/// users without access to the secrets can query the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonId {
    /// Name of the daemon.
    pub name: String,
    /// Folder of its socket.
    pub state_dir: PathBuf,
}

impl DaemonId {
    /// Reads a proxy file, but none of the files that it names.
    ///
    /// # Errors
    /// All errors of the file, except errors in the values of its proxies.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        let document = document::parse(&source(path)?)?;
        unknown::check(&document)?;
        Ok(Self::resolve(&Section::new(&document, keys::FILE_KEYS))?)
    }

    fn resolve(section: &Section<'_>) -> Result<Self, Problem> {
        let state_dir = PathBuf::from(section.get(file::STATE_DIR));
        Ok(Self { name: daemon_name(section)?, state_dir })
    }
}

/// Maximum length of the name of a daemon, bytes. With a prefix it must fit into names of iptables chains.
const MAX_NAME: usize = 16;

/// Maximum length of a file, bytes; far more than [`MAX_PROXIES`] proxies need.
const MAX_FILE: u64 = 1 << 20;

fn source(path: &Path) -> Result<Arc<Source>, Problem> {
    Source::read_up_to(path, MAX_FILE)
}

/// Maximum number of proxies of a daemon. Each has a thread.
const MAX_PROXIES: usize = 256;

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        Self::parse(&source(path)?)
    }

    /// Parses a text.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn parse(source: &Arc<Source>) -> Result<Self, Problems> {
        let document = document::parse(source)?;
        unknown::check(&document)?;
        Ok(Self::resolve(&document)?)
    }

    /// Returns the folders in which its proxies create sockets.
    pub(crate) fn writable_folders(&self) -> Vec<PathBuf> {
        self.proxies.iter().filter_map(|proxy| proxy.task.writable_folder()).collect()
    }

    /// Returns the settings that cannot change while the daemon runs.
    pub(crate) fn fixed_settings(&self) -> impl PartialEq + '_ {
        (&self.name, &self.state_dir, &self.user, &self.status_group, self.log, self.metrics, self.diversion)
    }

    fn resolve(document: &Node) -> Result<Self, Problem> {
        let section = Section::new(document, keys::FILE_KEYS);
        let capture = DiversionMark {
            mark: section.integer_as(file::MARK.key.name).expect("it has a default"),
            table: section.integer_u32(file::ROUTE_TABLE.key.name).expect("it has a default"),
        };
        let DaemonId { name, state_dir } = DaemonId::resolve(&section)?;
        let (proxies, needs) = proxies(&section)?;
        let mut config = Self {
            name,
            state_dir,
            user: user(&section)?,
            status_group: status_group(&section)?,
            log: section.get(file::LOG),
            metrics: values::parsed(&section, file::METRICS.name, "address with a port", "127.0.0.1:9464")?,
            diversion: capture,
            proxies,
            requirements: needs,
        };
        config.set_owner();
        Ok(config)
    }

    /// Makes this daemon the owner of interfaces that remain after their proxies, and sets its packet mark in the tasks.
    pub(crate) fn set_owner(&mut self) {
        let owner = Owner { name: self.name.clone(), folder: self.state_dir.clone() };
        for proxy in &mut self.proxies {
            proxy.task.set_owner(&owner);
            proxy.task.set_mark(self.diversion.mark);
        }
    }
}

fn daemon_name(section: &Section<'_>) -> Result<String, Problem> {
    let name = section.get(file::NAME);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_good = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain);
    if is_good {
        return Ok(name.to_owned());
    }
    Err(Problem::new(format!("\"{name}\" is no name of a daemon"))
        .at(section.origin_of(file::NAME.key.name))
        .help(format!("1 to {MAX_NAME} letters, digits, - and _: rules are called by it")))
}

fn user(section: &Section<'_>) -> Result<Option<User>, Problem> {
    let Some(name) = section.word(file::USER.name) else { return Ok(None) };
    let Some(account) = accounts::user(name) else {
        return Err(Problem::new(format!("this machine has no user \"{name}\""))
            .at(section.origin_of(file::USER.name))
            .help(format!("useradd --system --user-group {name}, or leave out user")));
    };
    Ok(Some(User { name: name.to_owned(), account }))
}

fn status_group(section: &Section<'_>) -> Result<Option<StatusGroup>, Problem> {
    let Some(name) = section.word(file::STATUS_GROUP.name) else { return Ok(None) };
    let Some(id) = accounts::group(name) else {
        return Err(Problem::new(format!("this machine has no group \"{name}\""))
            .at(section.origin_of(file::STATUS_GROUP.name))
            .help(format!("groupadd --system {name}, or leave out status_group: all users may ask")));
    };
    Ok(Some(StatusGroup { name: name.to_owned(), id }))
}

fn proxies(section: &Section<'_>) -> Result<(Vec<Proxy>, Vec<Requirement>), Problem> {
    let sections = section.sections("proxy");
    if sections.is_empty() {
        return Err(Problem::new("no proxy").at(section.origin).help("add a table [[proxy]]"));
    }
    if sections.len() > MAX_PROXIES {
        return Err(Problem::new(format!("{} proxies", sections.len()))
            .at(section.origin_of("proxy"))
            .help(format!("a daemon has at most {MAX_PROXIES}")));
    }
    let (mut found, mut needs, mut taken) = (Vec::new(), Vec::new(), Conflicts::default());
    for (number, section) in (0..).zip(&sections) {
        let kind = section.get(keys::proxy::KIND);
        check_keys_of_kind(section, kind)?;
        let name = section.word(keys::proxy::NAME.name).unwrap_or(kind.word()).to_owned();
        let task = Task::resolve(kind, section, number)?;
        let proxy = Proxy { name, task };
        taken.check(&proxy, section)?;
        needs.extend(Requirement::of(section, &proxy.name));
        found.push(proxy);
    }
    station::join(&mut found, &sections)?;
    Ok((found, needs))
}

/// Rejects keys of other kinds. In scenarios such a key may be needed by another value of a varied key; proxies are not
/// varied, so here it is an error.
fn check_keys_of_kind(section: &Section<'_>, kind: keys::KindKey) -> Result<(), Problem> {
    match section.keys().find(|key| section.has(key.name) && !kind.takes(key.name)) {
        None => Ok(()),
        Some(key) => {
            let takers = keys::KindKey::ALL.iter().filter(|kind| kind.takes(key.name));
            let takers: Vec<_> = takers.map(|kind| format!("\"{}\"", kind.word())).collect();
            Err(Problem::new(format!("`{}` in a proxy of kind \"{}\"", key.name, kind.word()))
                .at(section.origin_of(key.name))
                .help(format!("it belongs to {}", takers.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests;
