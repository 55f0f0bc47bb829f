//! Programs in other languages on pages.

use crate::docs::folder::{CommandResult, Folder};
use hopline_harness::Need;
use hopline_testkit::namespace::LINK;
use std::process::Command;

/// Language of a program.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    Python,
    /// SQL of DuckDB.
    Sql,
    /// Shell commands between two hosts in namespaces of their own.
    ShellOverLink,
}

/// Libraries that a program may use.
const MODULES: [&str; 7] = ["duckdb", "hopline", "matplotlib", "numpy", "pandas", "polars", "pyarrow"];

/// Programs that proxies on hosts of a link need, and that configure these hosts.
const PROGRAMS: [&str; 3] = ["ip", "iptables", "nft"];

/// Other programs that scripts of a page run at nodes of an emulation.
const AT_NODES: [&str; 6] = ["babeld", "curl", "iperf3", "mosquitto", "mosquitto_pub", "ping"];

impl Language {
    /// Returns the requirements of `program` on the machine. It may run scripts of its page.
    pub(crate) fn needs(self, program: &str, page: &str) -> Vec<Need> {
        if let Self::ShellOverLink = self {
            let has_proxy = program.contains("hopline proxy run");
            let of_hosts = PROGRAMS.into_iter().filter(|name| has_proxy || has_word(program, name));
            let at_nodes = AT_NODES
                .into_iter()
                .filter(|name| has_word(program, name) || page.contains(&format!("-- {name} ")));
            return std::iter::once(LINK).chain(of_hosts.chain(at_nodes).map(Need::Program)).collect();
        }
        let used = MODULES.iter().filter(|module| match self {
            Self::Python => {
                ["import", "from"].iter().any(|word| program.contains(&format!("{word} {module}")))
            }
            Self::Sql => **module == "duckdb",
            Self::ShellOverLink => false,
        });
        std::iter::once(Need::Program("python3"))
            .chain(used.map(|module| Need::PythonModule(module)))
            .collect()
    }

    /// Runs `program` in `folder`.
    pub(crate) fn run(self, program: &str, folder: &Folder) -> CommandResult {
        let file = folder.path().join("snippet");
        std::fs::write(&file, program).unwrap();
        let mut python = Command::new("python3");
        match self {
            Self::Python => python.arg(file),
            Self::Sql => python.args(["-c", "import duckdb; print(duckdb.sql(open('snippet').read()))"]),
            Self::ShellOverLink => return folder.sh(program),
        };
        folder.run(&mut python)
    }
}

/// Returns whether `word` is a word of `script`.
fn has_word(script: &str, word: &str) -> bool {
    script.split(|c: char| !(c.is_alphanumeric() || "-_./".contains(c))).any(|other| other == word)
}
