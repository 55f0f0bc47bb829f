//! Local users and groups: `/etc/passwd` and `/etc/group`. Service accounts are in these files, not in network
//! directories.

use std::fs;

/// The user, and the group, that packages create for the daemon (`tools/systemd/hopline.sysusers`).
pub const SERVICE: &str = "hopline";

/// A user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Number of the user.
    pub user: u32,
    /// Number of the user's own group.
    pub group: u32,
}

/// Returns the user called `name`.
#[must_use]
pub fn user(name: &str) -> Option<Account> {
    let [user, group] = numbers(&fs::read_to_string("/etc/passwd").ok()?, name)?;
    Some(Account { user, group })
}

/// Returns the number of the group called `name`.
#[must_use]
pub fn group(name: &str) -> Option<u32> {
    let [group] = numbers(&fs::read_to_string("/etc/group").ok()?, name)?;
    Some(group)
}

/// Returns the name of the group with the number `id`.
#[must_use]
pub fn group_name(id: u32) -> Option<String> {
    let text = fs::read_to_string("/etc/group").ok()?;
    let of = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    };
    text.lines().find_map(of)
}

/// The first `N` numbers in the line of `name`, behind its password.
fn numbers<const N: usize>(text: &str, name: &str) -> Option<[u32; N]> {
    let of = |line: &str| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let numbers: Vec<u32> = fields.skip(1).map_while(|field| field.parse().ok()).take(N).collect();
        numbers.try_into().ok()
    };
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nhoplines:x:7:8::/:/bin/false\nhopline:x:998:997::/:/bin/false\nbroken:x:\n";
        assert_eq!(numbers(passwd, "hopline"), Some([998, 997]));
        assert_eq!(numbers::<2>(passwd, "hop"), None);
        assert_eq!(numbers::<1>(passwd, "broken"), None);
        assert_eq!(numbers::<1>(passwd, ""), None);
        assert_eq!(numbers("hopline:x:997:alice,bob\n", "hopline"), Some([997]));
        assert_eq!(user("root"), Some(Account { user: 0, group: 0 }));
        assert_eq!((group("root"), group("no-such-group")), (Some(0), None));
        assert_eq!(group_name(0).as_deref(), Some("root"));
    }
}
