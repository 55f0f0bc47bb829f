//! Two hosts joined by a cable.

use hopline_linux::veth::{self, Offload};
use hopline_linux::{Interface, Namespace};
use std::net::Ipv4Addr;

pub(crate) const NAME: &str = "cable";
const HERE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

pub(crate) fn join(trains: Offload) -> [Namespace; 2] {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    veth::join([&hosts[0], &hosts[1]], NAME, trains).unwrap();
    for (host, address) in hosts.iter().zip([HERE, THERE]) {
        host.run(|| {
            let interface = Interface::named(NAME).unwrap();
            interface.set_address(address, 24).unwrap();
            interface.up().unwrap();
        })
        .unwrap();
    }
    hosts
}
