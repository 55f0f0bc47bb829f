//! Links: each leads to a file or folder of the repository, and to a heading that it has.

use crate::page::Page;
use std::path::Path;

/// Whether every relative link of `page` leads somewhere.
///
/// # Errors
///
/// Those that do not.
pub(crate) fn check(page: &Page) -> Result<(), Vec<String>> {
    let root = crate::root();
    let broken = page.links.iter().filter_map(|(line, target)| {
        let why = why_broken(page, target, &root)?;
        Some(format!("{}:{line}: {target}: {why}", page.name))
    });
    let broken: Vec<String> = broken.collect();
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
