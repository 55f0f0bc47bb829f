//! Identity of this machine.

use std::fs;

/// Returns what is the same whenever this machine is asked, and another on others: its id and host name. No secret. Where neither file can
/// be read it is empty.
pub(crate) fn identity() -> [Vec<u8>; 2] {
    ["/etc/machine-id", "/proc/sys/kernel/hostname"].map(|place| fs::read(place).unwrap_or_default())
}
