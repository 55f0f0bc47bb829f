//! The page on metrics matches the catalogue.

use std::path::Path;

/// To bring the page up to date: `UPDATE_REFERENCE=1 cargo test -p hopline-lab --test it metrics::`.
#[test]
fn the_tables_on_the_page_match_the_catalogue() {
    const FIRST: &str = "\n## Of the run\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(&path).expect("the page exists");
    let before = text.split(FIRST).next().unwrap_or_default();
    let expected = format!("{before}{}", hopline_lab::metrics::reference());
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, expected).expect("the page can be written");
    } else {
        assert!(text == expected, "docs/metrics.md is out of date; see the comment above this test");
    }
}
