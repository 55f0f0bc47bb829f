//! Declarations that rows are compared with.

use super::quantity;
use hopline_config::document::Setting;
use hopline_config::schema::{Default, Key, Literal, Takes};
use hopline_config::source::Source;
use hopline_config::unit;
use hopline_daemon::config::keys as daemon;
use hopline_lab::Scenario;
use hopline_scenario::keys::SCENARIO;
use std::path::Path;
use std::sync::Arc;

/// Scenario in which columns of presets are compared.
const SMALL: &str = "duration_s = 1\n[nodes]\nlayout = \"chain\"\ncount = 2\nspacing_m = 100\n[radio]\n\
    [[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n";

/// Rows of a table, by its mark.
pub(super) enum Rows {
    /// Keys of a table of scenarios.
    Keys {
        /// Path of the table.
        path: String,
        keys: &'static [Key],
        /// Kind or protocol of which the defaults are.
        of: Option<String>,
        /// Path of the key of which columns have words.
        by: Option<String>,
    },
    /// Fields of the configuration of a kind of proxy.
    Fields(Vec<ReferenceRow>),
}

/// Row of the reference of a kind of proxy.
pub(super) struct ReferenceRow {
    name: String,
    takes: String,
    default: String,
    meaning: String,
}

impl Rows {
    /// Returns the rows that `mark` announces; `None` for rows that are not keys.
    ///
    /// # Errors
    ///
    /// A mark that is wrong.
    pub(super) fn of_mark(mark: &str) -> Result<Option<Self>, String> {
        let Some((word, rest)) = mark.split_once(": ") else { return Ok(None) };
        match word {
            "keys" => {
                let (path, more) =
                    rest.split_once(", ").map_or((rest, None), |(path, more)| (path, Some(more)));
                let keys = table_at(path).ok_or_else(|| format!("scenarios have no table `{path}`"))?;
                let after = |word: &str| more.and_then(|more| more.strip_prefix(word)).map(str::to_owned);
                let (of, by) = (after("of "), after("by "));
                match more {
                    Some(more) if of.is_none() && by.is_none() => Err(format!("`{more}` is not understood")),
                    _ => Ok(Some(Self::Keys { path: path.to_owned(), keys, of, by })),
                }
            }
            "fields" => match reference_of(rest) {
                rows if rows.is_empty() => Err(format!("there is no kind `{rest}`")),
                rows => Ok(Some(Self::Fields(rows))),
            },
            _ => Ok(None),
        }
    }

    /// Returns what is wrong with a row.
    pub(super) fn problems(&self, header: &[String], cells: &[String]) -> Vec<String> {
        let Some(names) = cells.first().and_then(|cell| names(cell)) else {
            return vec![format!("`{}` is not a list of keys in backticks", cells.join(" | "))];
        };
        if let Self::Keys { path, keys, .. } = self
            && let Some(name) = names.iter().find(|name| keys.iter().all(|key| key.name != **name))
        {
            return vec![format!("`{path}` has no key `{name}`")];
        }
        let columns = header.iter().zip(cells).skip(1);
        columns.flat_map(|(title, cell)| self.column_problems(&names, title, &plain(cell))).collect()
    }

    fn column_problems(&self, names: &[String], title: &str, cell: &str) -> Vec<String> {
        let stated = match (title, values(cell, names.len())) {
            ("range" | "takes" | "unit", _) => vec![cell; names.len()],
            (_, Some(values)) => values,
            (title, None) if is_property(title) => {
                return vec![format!("{} keys, and other defaults: {cell}", names.len())];
            }
            (_, None) => return Vec::new(),
        };
        let check = |(name, stated): (&String, &str)| match self {
            Self::Keys { path, keys, of, by } => {
                let key = keys.iter().find(|key| key.name == name).expect("checked for the row");
                match (title, by) {
                    ("default", _) => check_default(key, stated, of.as_deref(), by.is_some()),
                    ("range" | "takes", _) => check_range(key, stated),
                    ("unit", _) => check_unit(key, stated),
                    (word, Some(by)) if is_preset(word) => {
                        check_preset([by.as_str(), &plain(word)], [&format!("{path}.{name}"), stated])
                    }
                    _ => Ok(()),
                }
            }
            Self::Fields(rows) => {
                rows.iter().find(|row| is_of_field(&row.name, name)).map_or(Ok(()), |row| match title {
                    "default" => row.check_default(stated),
                    "range" => row.check_range(stated),
                    _ => Ok(()),
                })
            }
        };
        names.iter().zip(stated).filter_map(|pair| check(pair).err()).collect()
    }
}

impl ReferenceRow {
    fn range(&self) -> Option<(f64, f64)> {
        let (least, greatest) = quantity::range(&self.takes, &self.name)?;
        let limit = self.meaning.rsplit_once("; at most ").and_then(|(_, limit)| limit.parse().ok());
        Some((least, limit.unwrap_or(greatest)))
    }

    fn check_default(&self, stated: &str) -> Result<(), String> {
        // Words are Rust's there.
        let Ok(default) = self.default.parse::<f64>() else { return Ok(()) };
        match quantity::read(stated, &self.name) {
            Some(stated) if quantity::are_equal(stated, default) => Ok(()),
            _ => Err(format!("`{}` has the default {default}, not {stated}", self.name)),
        }
    }

    fn check_range(&self, stated: &str) -> Result<(), String> {
        let Some(range) = self.range() else { return Ok(()) };
        match quantity::range(stated, &self.name) {
            Some(stated) if are_same(stated, range) => Ok(()),
            _ => Err(format!("`{}` takes {} to {}, not {stated}", self.name, range.0, range.1)),
        }
    }
}

/// Returns whether a column of this title states a property of keys.
pub(super) fn is_property(title: &str) -> bool {
    ["default", "range", "takes", "unit"].contains(&title)
}

/// Returns whether a column is one of a preset.
pub(super) fn is_preset(title: &str) -> bool {
    let names = names(title).unwrap_or_default();
    let [word] = names.as_slice() else { return false };
    any_key(
        SCENARIO,
        &|key| matches!(key.takes, Takes::Word(words) if key.name == "preset" && words.contains(&word.as_str())),
    )
}

/// Returns whether a cell begins with a key of a scenario or of a proxy.
pub(super) fn begins_with_key(cell: &str) -> bool {
    let Some(name) = cell.strip_prefix('`').and_then(|rest| rest.split('`').next()) else { return false };
    let name = name.rsplit('.').next().unwrap_or(name);
    [SCENARIO, daemon::FILE_KEYS].into_iter().any(|keys| any_key(keys, &|key| key.name == name))
}

/// Returns whether one of `keys`, or of the tables below, is as `is` says.
fn any_key(keys: &[Key], is: &dyn Fn(&Key) -> bool) -> bool {
    keys.iter().any(|key| is(key) || below(key).is_some_and(|keys| any_key(keys, is)))
}

/// Returns the table that `key` takes.
const fn below(key: &Key) -> Option<&'static [Key]> {
    match key.takes {
        Takes::Table(keys)
        | Takes::Tables(keys)
        | Takes::NumberOrTable(_, _, keys)
        | Takes::TextOrTable(keys) => Some(keys),
        _ => None,
    }
}

fn table_at(path: &str) -> Option<&'static [Key]> {
    path.split('.').try_fold(SCENARIO, |keys, part| below(keys.iter().find(|key| key.name == part)?))
}

/// Returns the rows of a kind of proxy in the reference.
fn reference_of(kind: &str) -> Vec<ReferenceRow> {
    let reference = daemon::reference();
    let Some((_, section)) = reference.split_once(&format!("\n### `{kind}`\n")) else { return Vec::new() };
    let section = section.split("\n### ").next().unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ").map(plain);
        let [name, takes, default] = [cells.next()?, cells.next()?, cells.next()?];
        let meaning = cells.nth(1)?.trim_end_matches('|').trim().to_owned();
        Some(ReferenceRow { name, takes, default, meaning })
    };
    section.lines().filter_map(row).collect()
}

/// Returns whether the key called `name` sets the field called `field`, which has its unit in its type.
fn is_of_field(name: &str, field: &str) -> bool {
    name == field
        || (unit::of(name).is_some() && name.rsplit_once('_').is_some_and(|(stem, _)| stem == field))
}

/// Returns the names of a cell such as "`t1`, `t2`".
fn names(cell: &str) -> Option<Vec<String>> {
    let name = |part: &str| Some(part.strip_prefix('`')?.strip_suffix('`')?.to_owned());
    let names: Option<Vec<String>> = cell.split(", ").map(name).collect();
    names.filter(|names| names.iter().all(|name| !name.contains('`')))
}

/// Returns the text of a cell without its marks of code and emphasis.
fn plain(cell: &str) -> String {
    cell.replace(['`', '*'], "")
}

/// Returns the values of a cell for `count` keys.
fn values(cell: &str, count: usize) -> Option<Vec<&str>> {
    if count == 1 {
        return Some(vec![cell]);
    }
    let values: Vec<&str> = cell.split(", ").collect();
    match values.len() {
        1 => Some(vec![cell; count]),
        number => (number == count).then_some(values),
    }
}

fn check_default(key: &Key, stated: &str, of: Option<&str>, has_columns: bool) -> Result<(), String> {
    let declared = plain(&key.default.to_string());
    let wrong = |expected: &str| Err(format!("the default of `{}` is {expected}, not {stated}", key.name));
    let (value, exceptions) = match key.default {
        Default::Required if stated == "required" => return Ok(()),
        Default::Required => return wrong("required"),
        _ if stated == declared => return Ok(()),
        Default::Unset | Default::Derived(_) => return wrong(&declared),
        Default::Of(value, exceptions) => (value, exceptions),
        Default::Number(x) => (Literal::Number(x), &[][..]),
        Default::Integer(i) => (Literal::Integer(i), &[][..]),
        Default::Word(word) => (Literal::Word(word), &[][..]),
    };
    let names_it = |when: &str| {
        let words = when.strip_prefix("of ").unwrap_or(when);
        words.split(", ").flat_map(|words| words.split(" and ")).any(|word| Some(word) == of)
    };
    let exception = exceptions.iter().find(|exception| names_it(exception.when));
    let is_stated = match exception.map_or(value, |exception| exception.value) {
        _ if exception.is_none() && of.is_none() && !has_columns && !exceptions.is_empty() => false,
        Literal::Number(x) => {
            quantity::read(stated, key.name).is_some_and(|stated| quantity::are_equal(stated, x))
        }
        Literal::Integer(i) => {
            quantity::read(stated, key.name).is_some_and(|stated| quantity::are_equal(stated, i as f64))
        }
        other => plain(&other.to_string()) == stated,
    };
    if is_stated { Ok(()) } else { wrong(&declared) }
}

fn check_range(key: &Key, stated: &str) -> Result<(), String> {
    let declared = plain(&key.takes.in_markdown());
    let range = match key.takes {
        Takes::Number(min, max) => Some((min, max)),
        Takes::Integer(min, max) => Some((min as f64, max as f64)),
        _ => None,
    };
    let is_same =
        range.zip(quantity::range(stated, key.name)).is_some_and(|(is, stated)| are_same(is, stated));
    if is_same || stated == declared {
        Ok(())
    } else {
        Err(format!("`{}` takes {declared}, not {stated}", key.name))
    }
}

fn check_unit(key: &Key, stated: &str) -> Result<(), String> {
    let unit = unit::of(key.name).unwrap_or_default();
    if stated == unit { Ok(()) } else { Err(format!("the unit of `{}` is {unit}, not {stated}", key.name)) }
}

/// Checks that a scenario with the preset is the same with the value that its column states.
fn check_preset([by, preset]: [&str; 2], [path, stated]: [&str; 2]) -> Result<(), String> {
    let resolved = |settings: &[String]| {
        let source = Arc::new(Source { name: "small.toml".into(), text: SMALL.into() });
        let settings: Result<Vec<Setting>, _> =
            settings.iter().map(|text| Setting::parse("--set", text)).collect();
        let settings = settings.map_err(|problem| problem.to_string())?;
        let scenario = Scenario::parse(source, Path::new(""), &settings);
        let spec = scenario.and_then(|scenario| scenario.spec(1));
        spec.map(|spec| format!("{spec:?}")).map_err(|problems| problems.to_string())
    };
    let chosen = format!("{by}={preset}");
    let is_same =
        resolved(std::slice::from_ref(&chosen))? == resolved(&[chosen, format!("{path}={stated}")])?;
    if is_same { Ok(()) } else { Err(format!("{path} of {preset} is not {stated}")) }
}

fn are_same(a: (f64, f64), b: (f64, f64)) -> bool {
    quantity::are_equal(a.0, b.0) && quantity::are_equal(a.1, b.1)
}
