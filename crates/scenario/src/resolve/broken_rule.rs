//! Reports of values that do not fit together, by the keys of a scenario.

use super::super::schema::Section;
use hopline_config::source::Problem;
use hopline_transport::ConfigError;

/// Keys of the fields that a rule of a configuration can name: field, key.
pub(super) type FieldKeys = &'static [(&'static str, &'static str)];

/// Returns the problem at the key that breaks a rule, or at a key that the rule names. Keys are in the tables `general` and `own`, of
/// which `own` counts. A rule of fields without keys is reported in the words of `error`.
pub(super) fn broken_rule(error: &ConfigError, keys: FieldKeys, [general, own]: [Section<'_>; 2]) -> Problem {
    let section = if own.is_given() { own } else { general };
    let Some(&(_, broken)) = keys.iter().find(|(field, _)| *field == error.field) else {
        return Problem::new(format!("parameters do not fit together: {error}")).at(section.origin);
    };
    let message = format!("`{broken}` must be {}", with_keys(error.requirement, keys));
    let given = |key: &str| [own, general].into_iter().find(|section| section.has(key));
    if let Some(section) = given(broken) {
        let help = "set a value that fits, or leave the key out for its default";
        return Problem::new(message).at(section.origin_of(broken)).help(help);
    }
    let named = keys.iter().filter(|(field, _)| error.requirement.contains(field));
    let cause = named.filter_map(|(_, key)| given(key).map(|section| section.origin_of(key))).next();
    let help = format!("`{broken}` has its default: set it too");
    Problem::new(message).at(cause.unwrap_or(section.origin)).help(help)
}

/// Returns `rule` with keys in place of fields. Fields without a dot, such as `pacing`, are also ordinary words of a rule.
fn with_keys(rule: &str, keys: FieldKeys) -> String {
    let words = rule.split(' ').map(|word| {
        let key =
            keys.iter().find(|(field, _)| field.contains('.') && *field == word.trim_end_matches([',', ':']));
        key.map_or(word.to_owned(), |(field, key)| word.replace(field, &format!("`{key}`")))
    });
    words.collect::<Vec<_>>().join(" ")
}
