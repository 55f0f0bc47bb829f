use std::io::{self, ErrorKind};
use std::net::IpAddr;

/// Why the system did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process may not, or this kernel cannot: another user, or another machine, could.
    #[error("needs CAP_NET_ADMIN and /dev/net/tun, and CAP_SYS_ADMIN for namespaces: {doing}: {source}")]
    Unavailable {
        /// Operation that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// This process may make neither network namespaces nor a user namespace in which it could.
    #[error(
        "an emulated link needs root, or user namespaces, and this process has neither: {doing}: {source}; run it as root (sudo), or \
         allow user namespaces: `sysctl -w user.max_user_namespaces=15000`, on Debian also kernel.unprivileged_userns_clone=1, on Ubuntu \
         also kernel.apparmor_restrict_unprivileged_userns=0; a container needs --cap-add SYS_ADMIN --cap-add NET_ADMIN --device \
         /dev/net/tun"
    )]
    NoEmulation {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// This kernel has no such congestion control.
    #[error("there is no congestion control `{name}` here; this kernel has: {offered}")]
    NoSuchCongestionControl {
        /// What was asked for.
        name: String,
        /// What there is, separated by spaces.
        offered: String,
    },
    /// This kernel keeps it for who has `CAP_NET_ADMIN` (`net.ipv4.tcp_allowed_congestion_control`).
    #[error(
        "this process may not use the congestion control `{name}`: it needs CAP_NET_ADMIN, or `{name}` in \
         net.ipv4.tcp_allowed_congestion_control, which has: {allowed}"
    )]
    ForbiddenCongestionControl {
        /// What was asked for.
        name: String,
        /// What everybody may use, separated by spaces.
        allowed: String,
    },
    /// This namespace has no interface of this name, now.
    #[error("there is no interface `{name}` here")]
    NoSuchInterface {
        /// What was looked for.
        name: String,
    },
    /// This machine has the address itself, and would answer what is for the stack.
    #[error("{address} is an address of this machine; a stack needs one of its own, such as 10.88.0.2")]
    OwnAddress {
        /// Address that the stack was to have.
        address: IpAddr,
    },
    /// No interface of this namespace has this address, now.
    #[error(
        "{doing}: no interface here has the address {address} now; `ip address` lists those that are there"
    )]
    NoSuchAddress {
        /// Operation that failed.
        doing: String,
        /// Address that is not there.
        address: IpAddr,
    },
    /// Anything else.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// What stands in the way of someone who tried `doing` and got `source`.
    pub(crate) fn new(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (doing, source) = (doing.into(), source.into());
        if lacks_privilege_or_support(&source) {
            Self::Unavailable { doing, source }
        } else {
            Self::System { doing, source }
        }
    }

    /// What stands in the way of someone who looked for the interface `name` and got `source`.
    pub(crate) fn of_interface(name: &str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Self::NoSuchInterface { name: name.into() },
            _ => Self::new(format!("looking for the interface {name}"), source),
        }
    }

    /// Error of `doing` with an address of this machine that gave `source`.
    pub(crate) fn of_address(doing: impl Into<String>, address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::AddrNotAvailable => Self::NoSuchAddress { doing: doing.into(), address },
            _ => Self::new(doing, source),
        }
    }

    /// Returns whether an interface or address is not there, and may come.
    #[must_use]
    pub const fn is_of_absence(&self) -> bool {
        matches!(self, Self::NoSuchInterface { .. } | Self::NoSuchAddress { .. })
    }

    /// What stands in the way where no privilege can be missing.
    pub(crate) fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { doing: doing.into(), source: source.into() }
    }

    /// Whether a test that needs the system's help should be skipped rather than fail.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NoEmulation { .. })
    }
}

fn lacks_privilege_or_support(error: &io::Error) -> bool {
    // ENODEV, ENXIO: there is a node, and no driver behind it. EINVAL is unshare's word for a kernel without namespaces,
    // but also everybody's word for a mistake: not counted.
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound)
        || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_privilege_is_told_which() {
        let error = Error::new("opening /dev/net/tun", io::Error::from_raw_os_error(libc::EACCES));
        assert!(error.is_unavailable());
        assert_eq!(
            error.to_string(),
            "needs CAP_NET_ADMIN and /dev/net/tun, and CAP_SYS_ADMIN for namespaces: opening /dev/net/tun: Permission \
             denied (os error 13)"
        );
        for lacking in [libc::EPERM, libc::ENOENT, libc::ENODEV] {
            assert!(Error::new("", io::Error::from_raw_os_error(lacking)).is_unavailable());
        }
    }

    #[test]
    fn a_mistake_is_no_lack_of_privilege() {
        let error = Error::new("setting the MTU of tun0", io::Error::from_raw_os_error(libc::EINVAL));
        assert!(!error.is_unavailable());
        assert_eq!(error.to_string(), "setting the MTU of tun0: Invalid argument (os error 22)");
    }
}
