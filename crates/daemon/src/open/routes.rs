//! Addresses and routes of the interface of a tunnel. They go with the interface.

use crate::config::Subnet;
use crate::rules::{Program, RuleError};
use ipnet::IpNet;

/// Gives an interface its addresses, and leads networks into it.
pub(super) fn lead_into(interface: &str, addresses: &[IpNet], networks: &[Subnet]) -> Result<(), RuleError> {
    for address in addresses {
        Program::new("ip", &format!("address add {address} dev {interface}")).run()?;
    }
    for Subnet(network) in networks {
        Program::new("ip", &format!("route add {network} dev {interface}")).run()?;
    }
    Ok(())
}
