//! Anchors of sections of the page.

/// Returns the anchor of the section of experiment `index`.
pub(super) fn section_id(index: usize) -> String {
    format!("experiment-{}", index + 1)
}
