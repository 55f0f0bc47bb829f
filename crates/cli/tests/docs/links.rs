//! Links and paths: each leads to a file or folder of the repository, links also to a heading that it has.

use crate::docs::page::Page;
use std::path::Path;

/// Checks that every relative link of `page`, and every path from the root in its sentences, exists.
///
/// # Errors
///
/// Those that do not exist.
pub(crate) fn check(page: &Page) -> Result<(), Vec<String>> {
    let root = crate::docs::root();
    let broken = page.links.iter().filter_map(|(line, target)| {
        let why = why_broken(page, target, &root)?;
        Some(format!("{}:{line}: {target}: {why}", page.name))
    });
    let lost = page.code.iter().flat_map(|(line, code)| {
        let lost = paths(code).into_iter().filter(|path| !root.join(path).exists());
        lost.map(move |path| format!("{}:{line}: {path}: there is no such file", page.name))
    });
    let broken: Vec<String> = broken.chain(lost).collect();
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

fn why_broken(page: &Page, target: &str, root: &Path) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let has = |anchors: &[String]| match anchor {
        Some(anchor) if !anchors.iter().any(|a| a == anchor) => {
            Some(format!("there is no heading #{anchor}"))
        }
        _ => None,
    };
    if file.is_empty() {
        return has(&page.anchors);
    }
    let Ok(path) = page.path.parent().unwrap().join(file).canonicalize() else {
        return Some("there is no such file".into());
    };
    if !path.starts_with(root) {
        return Some("it leads out of the repository".into());
    }
    match path.extension().is_some_and(|e| e == "md") {
        true => has(&Page::load(&path).anchors),
        false => anchor.map(|_| "only pages have headings".into()),
    }
}

/// Returns the paths from the root that `code` contains: two for `crates/x/{a,b}.rs`.
fn paths(code: &str) -> Vec<String> {
    const FOLDERS: [&str; 8] =
        ["bench/", "crates/", "docs/", "fuzz/", "packaging/", "papers/", "scenarios/", "tools/"];
    let is_of_paths = |c: char| c.is_ascii_alphanumeric() || "_./{},-".contains(c);
    if !FOLDERS.iter().any(|folder| code.starts_with(folder)) || !code.chars().all(is_of_paths) {
        return Vec::new();
    }
    expanded(code)
}

fn expanded(path: &str) -> Vec<String> {
    let Some((before, (choices, after))) =
        path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![path.to_owned()];
    };
    choices.split(',').flat_map(|choice| expanded(&format!("{before}{choice}{after}"))).collect()
}
