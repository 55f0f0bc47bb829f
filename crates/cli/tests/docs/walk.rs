//! Runs the examples of a page in order, as a reader would.

use crate::docs::folder::{CommandResult, Folder};
use crate::docs::page::{Example, FileKind, Kind, Page};
use crate::docs::printed;
use hopline_lab::plan::Effort;
use hopline_lab::{Plan, Scenario};
use std::ops::Range;
use std::path::Path;

/// Examples of a page to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All examples but slow ones.
    Quick,
    /// All examples.
    Slow,
    /// The program with this number, and its setup.
    Snippet(usize),
}

/// Treatment of output that differs from the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is reported.
    Compare,
    /// It is written into the page.
    Update,
}

impl Mode {
    /// Returns the mode that the environment selects.
    pub(crate) fn from_environment() -> Self {
        if std::env::var_os("UPDATE_DOCS").is_some() { Self::Update } else { Self::Compare }
    }
}

/// Runs the examples of `page`, in order, in one folder.
///
/// # Errors
///
/// Differences from the page.
pub(crate) fn walk(page: &Page, share: Share, mode: Mode) -> Result<(), Vec<String>> {
    let folder = Folder::new();
    let (mut problems, mut changes) = (Vec::new(), Vec::new());
    for (number, example) in page.examples.iter().enumerate() {
        let is_tried = match (&example.kind, share) {
            (Kind::Setup(_) | Kind::File(..), Share::Snippet(snippet)) => number < snippet,
            (_, Share::Snippet(snippet)) => number == snippet,
            (Kind::Snippet(_), _) => false,
            (_, Share::Quick) => !example.is_slow,
            (_, Share::Slow) => true,
        };
        if is_tried {
            let tried = attempt(example, &folder, &page.text, mode, &mut changes);
            problems.extend(tried.err().map(|why| format!("{}:{}: {why}", page.name, example.line)));
        }
    }
    if !changes.is_empty() {
        std::fs::write(&page.path, with(&page.text, changes)).unwrap();
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

type Change = (Range<usize>, String);

/// Returns the text with changes of distinct places, in order.
fn with(text: &str, changes: Vec<Change>) -> String {
    let mut changed = text.to_owned();
    for (at, new) in changes.into_iter().rev() {
        changed.replace_range(at, &new);
    }
    changed
}

fn attempt(
    example: &Example,
    folder: &Folder,
    page: &str,
    mode: Mode,
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    match &example.kind {
        Kind::Console => {
            consoles(&example.text, folder, mode, |new| changes.push(change(example, page, new)))
        }
        Kind::Output(command) => {
            let printed = folder.sh(command).text;
            let new = updated_output(command, &example.text, &printed, mode)?;
            changes.extend(new.map(|new| change(example, page, new)));
            Ok(())
        }
        Kind::Commands => {
            example.text.replace("\\\n", " ").lines().try_for_each(|line| try_briefly(line, folder))
        }
        Kind::Script => check_success(&folder.sh(&example.text), "the script"),
        Kind::File(kind, name) => {
            let path = folder.path().join(name);
            std::fs::write(&path, &example.text).unwrap();
            check(*kind, &path, folder)
        }
        Kind::Excerpt(path) => {
            let whole = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let is_there = unspaced(&whole).contains(&unspaced(&example.text));
            if is_there { Ok(()) } else { Err(format!("is not in {}", path.display())) }
        }
        Kind::Snippet(language) => check_success(&language.run(&example.text, folder), "the program"),
        Kind::Setup(command) => check_success(&folder.sh(command), command),
        Kind::NotRun => Ok(()),
        Kind::Unmarked => Err("is not run, and does not say why: CONTRIBUTING.md has the marks".into()),
    }
}

fn check_success(said: &CommandResult, what: &str) -> Result<(), String> {
    if said.succeeded { Ok(()) } else { Err(format!("{what}: fails\n{}", said.text)) }
}

fn unspaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares every command of `block` with the output below it. `anew` gets the updated block, if it should change.
fn consoles(block: &str, folder: &Folder, mode: Mode, anew: impl FnOnce(String)) -> Result<(), String> {
    let (mut whole, mut is_changed) = (String::new(), false);
    for (command, shown) in entries(block) {
        let printed = folder.sh(&command).text;
        let new = updated_output(&command, &shown, &printed, mode)?;
        is_changed |= new.is_some();
        whole.push_str(&format!("$ {command}\n{}", new.unwrap_or(shown)));
    }
    if is_changed {
        anew(whole);
    }
    Ok(())
}

/// Returns the new output for `command` in place of `shown`; `None` if that is right.
fn updated_output(command: &str, shown: &str, printed: &str, mode: Mode) -> Result<Option<String>, String> {
    match printed::compare(shown, printed) {
        Ok(()) => Ok(None),
        Err(_) if mode == Mode::Update && !printed::is_abridged(shown) => {
            let lines = printed.trim_matches('\n').lines().map(str::trim_end);
            let end = shown.strip_suffix("\n\n").map_or("", |_| "\n");
            Ok(Some(lines.collect::<Vec<_>>().join("\n") + "\n" + end))
        }
        Err(why) => Err(format!(
            "{command}\n{why}\nUPDATE_DOCS=1 writes what is printed now, where no line is `…`; all of it:\n{printed}"
        )),
    }
}

/// Returns the commands of a block, each with the output below it.
fn entries(block: &str) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut goes_on = false;
    for line in block.lines() {
        match (line.strip_prefix("$ "), entries.last_mut()) {
            (Some(command), _) => entries.push((command.to_owned(), String::new())),
            (None, Some((command, _))) if goes_on => command.push_str(&format!("\n{line}")),
            (None, Some((_, shown))) => shown.push_str(&format!("{line}\n")),
            (None, None) => unreachable!("a block of commands begins with one"),
        }
        goes_on = line.ends_with('\\') && entries.last().is_some_and(|(_, shown)| shown.is_empty());
    }
    entries
}

fn change(example: &Example, page: &str, new: String) -> Change {
    // Blocks in lists are indented, hence not contiguous in the page.
    assert_eq!(&page[example.at.clone()], example.text, "a block with outputs stands at the margin");
    (example.at.clone(), new)
}

/// Tests a command of hopline that does not change the machine. Short simulations are sufficient.
fn try_briefly(line: &str, folder: &Folder) -> Result<(), String> {
    let command = line.split("  #").next().unwrap_or_default().trim();
    let words: Vec<&str> = command.split_whitespace().collect();
    let short = "--set duration_s=0.05 --set warmup_s=0";
    let tried = match words[..] {
        [] => return Ok(()),
        ["hopline", word @ "run", ..] => with_options(command, word, short),
        ["hopline", word @ "compare", ..] => with_options(command, word, &format!("{short} --runs 2")),
        // Some take minutes even then.
        ["hopline", "sweep", plan, ..] => return check(FileKind::Plan, &folder.path().join(plan), folder),
        ["hopline", "movements" | "report" | "schema", ..] => command.to_owned(),
        ["hopline", word @ "evaluate", ..] => with_options(command, word, "--list"),
        ["hopline", "reproduce", "--list"] => command.to_owned(),
        ["hopline", "reproduce", paper, figure, ..] if !figure.starts_with('-') => {
            format!("test -f papers/{paper}/{figure}.toml")
        }
        ["hopline", "reproduce", paper, ..] => format!("test -d papers/{paper}"),
        _ => return Err(format!("{command}: is not run here; CONTRIBUTING.md has the marks that say why")),
    };
    check_success(&folder.sh(&tried), command)
}

/// Returns the command with options after its first `word`, before its own ones.
fn with_options(command: &str, word: &str, options: &str) -> String {
    command.replacen(word, &format!("{word} {options}"), 1)
}

fn check(kind: FileKind, path: &Path, folder: &Folder) -> Result<(), String> {
    match kind {
        FileKind::Any => Ok(()),
        FileKind::Scenario | FileKind::Network => {
            let load = if kind == FileKind::Network { Scenario::load_network } else { Scenario::load };
            let scenario = load(path, &[]).map_err(|e| e.to_string())?;
            scenario.spec(1).map(drop).map_err(|e| e.to_string())
        }
        FileKind::Plan => Plan::load(path, &[], Effort::Full).map(drop).map_err(|e| e.to_string()),
        FileKind::Proxy => {
            let command = format!("hopline proxy check {}", path.display());
            check_success(&folder.sh(&command), &command)
        }
    }
}
