//! User that reads a key file, and commands that make the file acceptable for that user.

use hopline_linux::accounts::{self, Account, SERVICE};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The reading user, and the account that packages create for services.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// Effective user of this process.
    pub(super) user: u32,
    /// User and group of the services, if packages have created them.
    pub(super) service: Option<Account>,
}

/// Owner and permissions of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) owner: u32,
    pub(super) group: u32,
    /// Permission bits, without the file type.
    pub(super) mode: u32,
}

impl Access {
    pub(super) fn of(found: &Metadata) -> Self {
        Self { owner: found.uid(), group: found.gid(), mode: found.mode() & 0o7777 }
    }
}

impl Reader {
    /// Returns the user of this process.
    pub(super) fn current() -> Self {
        let service = accounts::user(SERVICE).and_then(|account| {
            // The group may differ from the one in the user's entry.
            Some(Account { group: accounts::group(SERVICE)?, ..account })
        });
        Self { user: rustix::process::geteuid().as_raw(), service }
    }

    /// Returns whether the owner of a file is acceptable: this user, root or, for root, the user of the services.
    pub(super) fn trusts(&self, owner: u32) -> bool {
        owner == 0 || owner == self.user || self.user == 0 && self.is_service(owner)
    }

    /// Returns those permissions of a secret that users other than the owner have and must not have. The group of the
    /// services may read files of root that belong to it.
    pub(super) fn excess_permissions(&self, access: Access) -> u32 {
        let allowed = if self.is_for_service(access) { 0o040 } else { 0 };
        access.mode & 0o077 & !allowed
    }

    /// Returns the command that removes other users' access to a secret.
    pub(super) fn chmod_command(&self, path: &Path, access: Access) -> String {
        let name = shell_word(path);
        if self.is_for_service(access) {
            return format!("chmod 640 {name}");
        }
        let for_service = format!("chown root:{SERVICE} {name} && chmod 640 {name}");
        match self.service {
            Some(service) if service.user == self.user && access.owner == 0 => for_service,
            Some(_) if self.user == 0 => {
                format!("chmod 600 {name}; for services of the user {SERVICE}: {for_service}")
            }
            _ => format!("chmod 600 {name}"),
        }
    }

    /// Returns the command that makes this user the owner of a file.
    pub(super) fn chown_command(&self, path: &Path) -> String {
        let name = shell_word(path);
        if self.is_service(self.user) {
            return format!("chown root:{SERVICE} {name} && chmod 640 {name}");
        }
        let user = self.user;
        format!("chown {user} {name} && chmod 600 {name}")
    }

    /// Returns the remedy for this user if a file of `owner` is not readable: the daemon of root may read it.
    pub(super) fn access_remedy(&self, path: &Path, owner: u32) -> String {
        if owner == self.user || self.is_service(self.user) {
            return self.chown_command(path);
        }
        let as_owner = if owner == 0 {
            "run this as root (sudo)".to_owned()
        } else {
            format!("run this as user {owner}")
        };
        format!(
            "{as_owner}, as which the file may be right as it is; or, if no other user needs it: {}",
            self.chown_command(path)
        )
    }

    fn is_service(&self, user: u32) -> bool {
        self.service.is_some_and(|service| service.user == user)
    }

    fn is_for_service(&self, access: Access) -> bool {
        self.service.is_some_and(|service| service.group == access.group && self.trusts(access.owner))
    }
}

/// Returns a path as one shell word.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    // A name with a leading dash would be taken for an option.
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => text,
        false if text.starts_with('-') => format!("'./{}'", text.replace('\'', r"'\''")),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICES: Option<Account> = Some(Account { user: 998, group: 997 });

    fn access(owner: u32, group: u32, mode: u32) -> Access {
        Access { owner, group, mode }
    }

    #[test]
    fn the_service_group_may_read_files_of_root_and_no_other_group_may() {
        let [root, service, alice] = [0, 998, 1000].map(|user| Reader { user, service: SERVICES });
        for reader in [root, service, alice] {
            assert_eq!(reader.excess_permissions(access(0, 997, 0o640)), 0);
            assert_eq!(reader.excess_permissions(access(0, 997, 0o660)), 0o020, "the group may not write");
            assert_eq!(reader.excess_permissions(access(0, 997, 0o644)), 0o004);
            assert_eq!(reader.excess_permissions(access(0, 0, 0o640)), 0o040);
            assert_eq!(reader.excess_permissions(access(0, 1000, 0o640)), 0o040, "a group of users");
        }
        assert_eq!(alice.excess_permissions(access(998, 997, 0o640)), 0o040, "a file of another user");
        let without = Reader { user: 0, service: None };
        assert_eq!(without.excess_permissions(access(0, 997, 0o640)), 0o040, "no packages, no such group");
    }

    #[test]
    fn files_belong_to_root_or_the_user_and_root_trusts_the_service_user() {
        let [root, service, alice] = [0, 998, 1000].map(|user| Reader { user, service: SERVICES });
        assert!([0, 998].iter().all(|owner| root.trusts(*owner)) && !root.trusts(1000));
        assert!([0, 998].iter().all(|owner| service.trusts(*owner)) && !service.trusts(1000));
        assert!([0, 1000].iter().all(|owner| alice.trusts(*owner)) && !alice.trusts(998));
        assert!(!Reader { user: 0, service: None }.trusts(998));
    }

    #[test]
    fn the_suggested_command_fits_the_reading_user() {
        let path = Path::new("/etc/hopline/link.key");
        let given = "chown root:hopline /etc/hopline/link.key && chmod 640 /etc/hopline/link.key";
        let [root, service, alice] = [0, 998, 1000].map(|user| Reader { user, service: SERVICES });
        assert_eq!(service.chmod_command(path, access(0, 0, 0o644)), given);
        assert_eq!(service.chmod_command(path, access(998, 998, 0o644)), "chmod 600 /etc/hopline/link.key");
        assert_eq!(root.chmod_command(path, access(0, 997, 0o644)), "chmod 640 /etc/hopline/link.key");
        let both = format!("chmod 600 /etc/hopline/link.key; for services of the user hopline: {given}");
        assert_eq!(root.chmod_command(path, access(0, 0, 0o644)), both);
        assert_eq!(alice.chmod_command(path, access(1000, 1000, 0o644)), "chmod 600 /etc/hopline/link.key");
        assert_eq!(service.chown_command(path), given);
        let own = "chown 1000 /etc/hopline/link.key && chmod 600 /etc/hopline/link.key";
        assert_eq!(alice.chown_command(path), own);
        let of_root = alice.access_remedy(path, 0);
        assert!(
            of_root.starts_with("run this as root (sudo)") && of_root.contains("if no other user"),
            "{of_root}"
        );
        assert_eq!(service.access_remedy(path, 0), given);
    }

    #[test]
    fn a_path_is_quoted_as_one_shell_word() {
        for (path, says) in [
            ("/etc/hopline/link.key", "/etc/hopline/link.key"),
            ("my key", "'my key'"),
            ("it's", r"'it'\''s'"),
            ("a;reboot", "'a;reboot'"),
            ("-R", "'./-R'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), says);
        }
    }
}
