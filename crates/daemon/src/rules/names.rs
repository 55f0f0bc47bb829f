//! Names of rules.

/// Returns whether a name has letters, digits, - and _ alone, as those of daemons.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns whether a name is that of a daemon, or that and a suffix behind a dot, which no name of a daemon has.
pub(super) fn is_owner_name(name: &str) -> bool {
    let (owner, suffix) = name.split_once('.').unwrap_or((name, "nat"));
    is_plain(owner) && ["in", "out", "calls", "nat"].contains(&suffix)
}
