//! Keys that only some choices of another key use.

use crate::schema::Section;
use crate::source::Problem;

/// Keys that only some choices use: (choices, keys).
pub type OwnedKeys = (&'static [&'static str], &'static [&'static str]);

/// Refuses keys that the choice `chosen` of `choice` does not use: they would silently do nothing.
///
/// # Errors
/// The first such key, with its place and the choices that use it.
pub fn reject_foreign_keys(
    section: &Section<'_>,
    choice: &str,
    chosen: &str,
    owned: &[OwnedKeys],
) -> Result<(), Problem> {
    for (owners, keys) in owned.iter().filter(|(owners, _)| !owners.contains(&chosen)) {
        if let Some(key) = keys.iter().find(|key| section.has(key)) {
            let owners = owners.iter().map(|o| format!("\"{o}\"")).collect::<Vec<_>>().join(" or ");
            return Err(Problem::new(format!("`{key}` is used with {choice} = {owners}, not \"{chosen}\""))
                .at(section.origin_of(key))
                .help(format!("set {choice} = {owners}, or remove it")));
        }
    }
    Ok(())
}
