//! Groups of keys, and the concatenation of groups.

use hopline_config::schema::Key;

/// Group of keys that some kinds of proxies have in common.
pub(super) type Group = &'static [Key];

/// Returns the number of keys in all groups.
pub(super) const fn length(groups: &[Group]) -> usize {
    let (mut length, mut group) = (0, 0);
    while group < groups.len() {
        length += groups[group].len();
        group += 1;
    }
    length
}

/// Returns the keys of all groups in order. It uses loops, because constants cannot use iterators.
pub(super) const fn joined<const N: usize>(groups: &[Group]) -> [Key; N] {
    let mut all = [groups[0][0]; N];
    let (mut place, mut group) = (0, 0);
    while group < groups.len() {
        let mut key = 0;
        while key < groups[group].len() {
            all[place] = groups[group][key];
            (place, key) = (place + 1, key + 1);
        }
        group += 1;
    }
    all
}
