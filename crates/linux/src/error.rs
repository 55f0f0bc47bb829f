//! Errors of Linux services, with the permission or setting that each one lacks.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

/// Failure of a system operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process lacks a privilege, or the kernel lacks support. The operation may succeed as another user or on
    /// another host.
    #[error("needs CAP_NET_ADMIN and /dev/net/tun, and CAP_SYS_ADMIN for namespaces: {doing}: {source}")]
    Unavailable {
        /// Operation that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The process may create neither network namespaces nor a user namespace that would let it.
    #[error(
        "emulation needs root, or user namespaces, and this process has neither: {doing}: {source}; run it as root (sudo), or \
         allow user namespaces: `sysctl -w user.max_user_namespaces=15000`, on Debian also kernel.unprivileged_userns_clone=1, on Ubuntu \
         also kernel.apparmor_restrict_unprivileged_userns=0; a container needs --cap-add SYS_ADMIN --cap-add NET_ADMIN --device \
         /dev/net/tun"
    )]
    NoEmulation {
        /// Operation that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The kernel does not have the congestion control algorithm.
    #[error("there is no congestion control `{name}` here; this kernel has: {offered}")]
    NoSuchCongestionControl {
        /// Name that was asked for.
        name: String,
        /// Available algorithms, separated by spaces.
        offered: String,
    },
    /// The kernel reserves the algorithm for processes with `CAP_NET_ADMIN` (`net.ipv4.tcp_allowed_congestion_control`).
    #[error(
        "this process may not use the congestion control `{name}`: it needs CAP_NET_ADMIN, or `{name}` in \
         net.ipv4.tcp_allowed_congestion_control, which has: {allowed}"
    )]
    ForbiddenCongestionControl {
        /// Name that was asked for.
        name: String,
        /// Algorithms that every process may use, separated by spaces.
        allowed: String,
    },
    /// The namespace has no interface of this name at present.
    #[error("there is no interface `{name}` here")]
    NoSuchInterface {
        /// Name of the interface.
        name: String,
    },
    /// The address belongs to this host, which would answer packets for the user-space stack.
    #[error("{address} is an address of this machine; a stack needs one of its own, such as 10.88.0.2")]
    OwnAddress {
        /// Address requested for the stack.
        address: IpAddr,
    },
    /// No interface of this namespace has this address at present.
    #[error(
        "{doing}: no interface here has the address {address} now; `ip address` lists those that are there"
    )]
    NoSuchAddress {
        /// Operation that failed.
        doing: String,
        /// Missing address.
        address: IpAddr,
    },
    /// Anything else.
    #[error("{doing}: {source}")]
    System {
        /// Operation that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Returns the error of the operation `doing` that failed with `source`.
    pub fn new(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (doing, source) = (doing.into(), source.into());
        if lacks_privilege_or_support(&source) {
            Self::Unavailable { doing, source }
        } else {
            Self::System { doing, source }
        }
    }

    /// Returns the error of a lookup of the interface `name` that failed with `source`.
    pub fn of_interface(name: &str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Self::NoSuchInterface { name: name.into() },
            _ => Self::new(format!("looking for the interface {name}"), source),
        }
    }

    /// Returns the error of the operation `doing` with a local address that failed with `source`.
    pub fn of_address(doing: impl Into<String>, address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::AddrNotAvailable => Self::NoSuchAddress { doing: doing.into(), address },
            _ => Self::new(doing, source),
        }
    }

    /// Returns whether the error is a missing interface or address, which may appear later.
    #[must_use]
    pub const fn is_absence(&self) -> bool {
        matches!(self, Self::NoSuchInterface { .. } | Self::NoSuchAddress { .. })
    }

    /// Returns the error of an operation that needs no privilege.
    pub fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { doing: doing.into(), source: source.into() }
    }

    /// Returns whether a test that needs privileges or kernel support should be skipped rather than fail.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NoEmulation { .. })
    }
}

fn lacks_privilege_or_support(error: &io::Error) -> bool {
    // ENODEV, ENXIO: a device node without a driver. EINVAL does not count: unshare(2) returns it on a kernel without
    // namespaces, but it is also the general error for wrong arguments.
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound)
        || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_privilege_is_named() {
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
    fn an_invalid_argument_is_not_a_missing_privilege() {
        let error = Error::new("setting the MTU of tun0", io::Error::from_raw_os_error(libc::EINVAL));
        assert!(!error.is_unavailable());
        assert_eq!(error.to_string(), "setting the MTU of tun0: Invalid argument (os error 22)");
    }
}
