//! Addresses of the interface of a tunnel. They go with the interface.

use crate::rules::{Program, RuleError};
use ipnet::IpNet;

/// Gives an interface its addresses.
pub(super) fn give(interface: &str, addresses: &[IpNet]) -> Result<(), RuleError> {
    for address in addresses {
        Program::new("ip", &format!("address add {address} dev {interface}")).run()?;
    }
    Ok(())
}
