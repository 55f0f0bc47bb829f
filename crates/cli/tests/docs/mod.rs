//! Tests of the documentation: links have a target, parameters are those of the program, examples run, and their output is the
//! one on the page.
//!
//! CONTRIBUTING.md describes how a page marks its examples. `UPDATE_DOCS=1` writes the present output into the pages.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

pub(crate) mod folder;
mod links;
pub(crate) mod page;
mod parameters;
mod printed;
mod snippet;
mod tests;
mod walk;

use hopline_harness::Test;
use page::{Example, Page};
use std::path::{Path, PathBuf};
use walk::{Mode, Share};

pub(crate) fn tests() -> Vec<Test> {
    let pages = pages();
    assert!(pages.len() > 50, "only {} pages are found", pages.len());
    let of_pages = pages.iter().flat_map(|path| of_page(path));
    tests::all().into_iter().chain(of_pages).collect()
}

/// Returns whether tests write pages. Two tests of a page must not write it at the same time.
pub(crate) fn is_update() -> bool {
    Mode::from_environment() == Mode::Update
}

/// Returns the tests of the page at `path`.
fn of_page(path: &Path) -> Vec<Test> {
    let page = Page::load(path);
    let test = |what: &str, body: fn(&Path)| {
        let path = path.to_owned();
        Test::new(format!("{} {what}", page.name), [], move || body(&path))
    };
    let mut tests = vec![
        test("has links that lead somewhere", |path| {
            links::check(&Page::load(path)).unwrap_or_else(fail_with)
        }),
        test("states parameters as they are declared", |path| {
            parameters::check(&Page::load(path)).unwrap_or_else(fail_with)
        }),
        test("shows what happens", |path| {
            walk::walk(&Page::load(path), Share::Quick, Mode::from_environment()).unwrap_or_else(fail_with)
        }),
    ];
    if page.examples.iter().any(|example| example.is_slow) {
        let what = "shows what happens in longer runs";
        let body = |path: &Path| {
            walk::walk(&Page::load(path), Share::Slow, Mode::from_environment()).unwrap_or_else(fail_with)
        };
        tests.push(test(what, body).long());
    }
    let snippets = page.examples.iter().enumerate().filter_map(|(number, example)| match &example.kind {
        page::Kind::Snippet(language) => Some((number, example, *language)),
        _ => None,
    });
    for (number, Example { line, text, .. }, language) in snippets {
        let name = format!("{} has a snippet in line {line} that runs", page.name);
        let path = path.to_owned();
        tests.push(Test::new(name, language.needs(text, &page.text), move || {
            walk::walk(&Page::load(&path), Share::Snippet(number), Mode::from_environment())
                .unwrap_or_else(fail_with);
        }));
    }
    tests
}

fn fail_with(problems: Vec<String>) {
    panic!("{}", problems.join("\n"));
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns every page of the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let is_ours = !name.starts_with('.') && !name.starts_with("target");
            match entry.file_type().unwrap().is_dir() {
                true if is_ours => folders.push(path),
                false if name.ends_with(".md") => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}
