//! Limit of file descriptors of the process.

use crate::error::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for other parts of the process.
const RESERVED: u64 = 256;

/// Raises the limit of descriptors (`RLIMIT_NOFILE`) to the hard limit, if the process may not yet have `each`
/// descriptors for `connections`. Unauthenticated peers take descriptors too, so that all that the hard limit permits is
/// useful.
pub fn reserve(connections: usize, each: u64) -> Result<(), Error> {
    let wanted = each * connections as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    let maximum = if enough(limit.maximum) { limit.maximum } else { Some(wanted) };
    // If there is no limit, the kernel's own applies, which is not reported here.
    let current = maximum.unwrap_or(wanted);
    if limit.current.is_none_or(|soft| soft >= current) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum })
        .map_err(|source| Error::system(limit_error((connections, each), wanted, limit.maximum), source))
}

/// Returns the error for a limit that is too low, with its remedy.
fn limit_error((connections, each): (usize, u64), wanted: u64, maximum: Option<u64>) -> String {
    let task = format!("{connections} connections take {wanted} open files ({each} each, {RESERVED} beside)");
    let Some(maximum) = maximum else {
        return format!("{task}, more than the kernel gives a process (fs.nr_open)");
    };
    format!(
        "{task}, and this process may have {maximum} (hard limit of RLIMIT_NOFILE), which do for {} connections: raise it before the \
         start (LimitNOFILE= of systemd, ulimit -Hn), or have fewer connections",
        maximum.saturating_sub(RESERVED) / each
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_reported_with_the_connections_it_allows() {
        assert_eq!(
            limit_error((10_000, 2), 20_256, Some(20_000)),
            "10000 connections take 20256 open files (2 each, 256 beside), and this process may have 20000 (hard limit of \
             RLIMIT_NOFILE), which do for 9872 connections: raise it before the start (LimitNOFILE= of systemd, ulimit -Hn), or have \
             fewer connections"
        );
        assert!(limit_error((10_000, 2), 20_256, Some(100)).contains("which do for 0 connections"));
        assert!(
            limit_error((10_000, 2), 20_256, None)
                .ends_with("more than the kernel gives a process (fs.nr_open)")
        );
    }
}
