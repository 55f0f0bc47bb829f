//! Setting: network address translation at the link.

/// Translation of addresses between the ends of a link and their middleboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Both ends know every connection by the same addresses.
    Absent,
    /// One end may know a connection by other addresses.
    Possible,
}
