//! Names of nodes that are hosts of programs: as words of a command line, in `/etc/hosts` and in the environment.

use super::placed::Placed;
use crate::program::{EMULATION_VARIABLE, address_variable};
use hopline_config::source::Problem;
use std::collections::BTreeMap;

/// Name that `/etc/hosts` gives to the host itself.
const LOCAL: &str = "localhost";

/// Checks that programs can refer to each node.
pub(super) fn check(placed: &[Placed<'_>]) -> Result<(), Problem> {
    let mut variables = BTreeMap::new();
    for node in placed {
        let variable = address_variable(&node.name);
        let fault = fault(&node.name, &variable).or_else(|| {
            let first = variables.get(&variable)?;
            let message = format!(
                "nodes named `{first}` and `{}`: the addresses of both would be in {variable}",
                node.name
            );
            Some((message, "names of emulated nodes differ in letters or digits"))
        });
        if let Some((message, help)) = fault {
            return Err(Problem::new(message).at(node.origin).help(help));
        }
        variables.insert(variable, &node.name);
    }
    Ok(())
}

/// Returns the fault of a name, the address of which is in `variable`, and the remedy.
fn fault(name: &str, variable: &str) -> Option<(String, &'static str)> {
    if name.contains('\0') {
        let message = format!("the name {name:?} of a node contains a NUL character");
        return Some((message, "no argument of a program can have it: leave it out"));
    }
    if name.starts_with('-') {
        let message = format!("a node named `{name}`, which `hopline exec` would take for an option");
        return Some((message, "names of emulated nodes do not begin with `-`"));
    }
    if name.eq_ignore_ascii_case(LOCAL) {
        let message = format!("a node named `{name}`, which is the name of each host for itself");
        return Some((message, "choose another name, such as `host`"));
    }
    let is_taken = variable == EMULATION_VARIABLE;
    let message =
        || format!("a node named `{name}`: its address would be in {variable}, which names the emulation");
    is_taken.then(|| (message(), "choose another name, such as `node`"))
}
