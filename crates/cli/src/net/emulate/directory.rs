//! Directory of the nodes of an emulation, for `hopline exec`.
//!
//! It is a file in memory, open in the process that emulates, so that nothing is left when that ends, in whatever way.

use super::search_path;
use hopline_config::source::Problem;
use hopline_emulate::Emulation;
use hopline_linux::{Namespace, netns};
use hopline_scenario::EMULATION_VARIABLE;
pub(super) use hopline_scenario::address_variable as variable;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, process};

/// Name of the file in memory, as `/proc/PID/fd` shows it.
const NAME: &str = "hopline-emulation";
/// Environment variable with the path of the file.
const VARIABLE: &str = EMULATION_VARIABLE;

/// Nodes of an emulation, by name.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    nodes: BTreeMap<String, Entry>,
    /// The file, in the process that emulates.
    _file: Option<File>,
}

/// A node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Path of its network namespace.
    pub(super) namespace: PathBuf,
    /// Its address.
    pub(super) address: Ipv4Addr,
}

impl Directory {
    /// Publishes the nodes of an emulation of this process.
    pub(super) fn publish(emulation: &Emulation) -> io::Result<Self> {
        let entry = |address, namespace: &Namespace| Entry { namespace: path_of(namespace), address };
        let nodes: BTreeMap<String, Entry> = emulation
            .hosts()
            .map(|(name, address, namespace)| (name.to_owned(), entry(address, namespace)))
            .collect();
        let mut file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&nodes)?)?;
        Ok(Self { path: path_of(&file), nodes, _file: Some(file) })
    }

    /// Finds the emulation of which this process is a part, or else the only one of this machine.
    pub(super) fn find() -> Result<Self, Problem> {
        let path = match env::var_os(VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => only_one()?,
        };
        let text = fs::read(&path).map_err(|e| {
            Problem::new(format!(
                "the emulation is gone, or belongs to another user: {}: {e}",
                path.display()
            ))
        })?;
        let nodes = serde_json::from_slice(&text)
            .map_err(|e| Problem::new(format!("{} is no emulation: {e}", path.display())))?;
        Ok(Self { path, nodes, _file: None })
    }

    /// Returns the directory of no nodes.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self { path: PathBuf::new(), nodes: BTreeMap::new(), _file: None }
    }

    pub(super) fn get(&self, node: &str) -> Option<&Entry> {
        self.nodes.get(node)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Returns the contents of `/etc/hosts` at a node: that of this machine, and the nodes.
    pub(super) fn hosts_file(&self) -> String {
        let mut text = fs::read_to_string("/etc/hosts").unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for (name, entry) in self.nodes.iter().filter(|(name, _)| netns::is_host_name(name)) {
            text.push_str(&format!("{} {name}\n", entry.address));
        }
        text
    }

    /// Lets a command find the nodes, their addresses, and this program.
    pub(super) fn set_environment(&self, command: &mut Command) {
        command.env(VARIABLE, &self.path);
        command.envs(self.nodes.iter().map(|(name, entry)| (variable(name), entry.address.to_string())));
        if let Some(path) = search_path() {
            command.env("PATH", path);
        }
    }
}

fn path_of(open: impl AsFd) -> PathBuf {
    format!("/proc/{}/fd/{}", process::id(), open.as_fd().as_raw_fd()).into()
}

/// Returns the file of the only emulation that this process may look into.
fn only_one() -> Result<PathBuf, Problem> {
    let shown = PathBuf::from(format!("/memfd:{NAME} (deleted)"));
    let is_directory = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target == shown);
    let processes = entries(Path::new("/proc"));
    let files = processes.flat_map(|process| entries(&process.join("fd"))).filter(is_directory);
    match files.collect::<Vec<_>>().as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Problem::new("no emulation is running that this user may enter")
            .help("start one: `hopline emulate SCENARIO`")),
        several => Err(Problem::new(format!("{} emulations are running", several.len())).help(format!(
            "run it in the command of one of them, or choose one: {VARIABLE}={}",
            several[0].display()
        ))),
    }
}

/// Returns the entries of a directory; none if it cannot be read.
fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_a_node_is_a_name_that_shells_take() {
        assert_eq!(
            ["n0", "base-station", "Büro 2"].map(variable),
            ["HOPLINE_N0", "HOPLINE_BASE_STATION", "HOPLINE_B_RO_2"]
        );
    }

    #[test]
    fn nodes_follow_the_hosts_of_this_machine() {
        let entry = |n| Entry { namespace: PathBuf::new(), address: Ipv4Addr::new(10, 0, 0, n) };
        let nodes = BTreeMap::from([
            ("n0".to_owned(), entry(1)),
            ("a node".to_owned(), entry(2)),
            ("n1".to_owned(), entry(3)),
        ]);
        let text = Directory { path: PathBuf::new(), nodes, _file: None }.hosts_file();
        assert!(text.ends_with("10.0.0.1 n0\n10.0.0.3 n1\n"), "{text}");
    }
}
