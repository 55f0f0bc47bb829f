//! `[[program]]`.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::{ScenarioUse, ScenarioWithMachines};
use super::{Names, instant, instant_of, node_named};
use crate::program::Program;
use hopline_config::source::Problem;
use hopline_core::NodeId;
use std::collections::BTreeSet;

/// Returns all of them, in the order of the file.
pub(crate) fn resolve(whole: ScenarioWithMachines<'_>, names: &Names) -> Result<Vec<Program>, Problem> {
    let sections = whole.sections("program");
    if let (ScenarioUse::Simulation, Some(first)) = (whole.used_for, sections.first()) {
        return Err(Problem::new("[[program]] has real programs, and a simulation runs none")
            .at(first.origin)
            .help("`hopline emulate` and `hopline sweep --virtual-time` run them; to simulate the network without them: --set program=[]"));
    }
    let mut taken = BTreeSet::new();
    let mut programs = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        for program in at_nodes(section, number, names)? {
            if !taken.insert(program.name.clone()) {
                return Err(Problem::new(format!("a second program named `{}`", program.name))
                    .at(section.origin_of("name"))
                    .help("names of programs are unique"));
            }
            programs.push(program);
        }
    }
    Ok(programs)
}

/// Returns the program of a table at its node, or that at each node.
fn at_nodes(section: &Section<'_>, number: usize, names: &Names) -> Result<Vec<Program>, Problem> {
    let name = section.word("name").map_or_else(|| format!("p{number}"), str::to_owned);
    if section.get(keys::program::NODE) != keys::program::EVERY_NODE {
        return Ok(vec![program(section, name, node_named(section, keys::program::NODE, names)?)?]);
    }
    let mut nodes: Vec<_> = names.iter().map(|(name, node)| (*node, name)).collect();
    nodes.sort_unstable();
    nodes.into_iter().map(|(node, of)| program(section, format!("{name}-{of}"), node)).collect()
}

fn program(section: &Section<'_>, name: String, node: NodeId) -> Result<Program, Problem> {
    let command: Vec<String> = section.texts("command").into_iter().map(str::to_owned).collect();
    if command.first().is_none_or(String::is_empty) {
        return Err(Problem::new("a program without a command")
            .at(section.origin_of("command"))
            .help("the first word is the program: command = [\"iperf3\", \"-s\"]"));
    }
    if let Some(word) = command.iter().find(|word| word.contains('\0')) {
        return Err(Problem::new(format!("the word {word:?} of a command contains a NUL character"))
            .at(section.origin_of("command"))
            .help("no argument of a program can have it: leave it out, or let the program read a file"));
    }
    let start = instant_of(section, keys::program::START_S);
    let stop = instant(section, "stop_s");
    if stop.is_some_and(|stop| stop <= start) {
        return Err(Problem::new("the program stops before it starts")
            .at(section.origin_of("stop_s"))
            .help(format!("stop_s must be above start_s = {}", start.as_secs_f64())));
    }
    if !is_file_name(&name) {
        return Err(Problem::new(format!("`{name}` cannot name the files of a program"))
            .at(section.origin_of("name"))
            .help("it takes 1 to 100 letters, digits, `-`, `_` and `.`, not `.` at the beginning"));
    }
    Ok(Program { name, node, command, start, stop, origin: section.origin_of("command").clone() })
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=100).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_plain)
}
