//! Error messages for wrong configurations.

use crate::handoff::world::{HOME, HOST, KEY, STATIONS};
use hopline_linux::Namespace;
use hopline_middlebox::handoff::{
    BaseStation, HomeAgent, HomeConfig, MobileConfig, MobileHost, StationConfig,
};
use hopline_testkit::namespace::host::address;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 50, 0, 0), 24);

pub(crate) fn errors_are_named() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        address("lo", HOME, 32);
        agents();
        stations();
        mobiles();
    })
    .unwrap();
}

fn agents() {
    let said = |change: &dyn Fn(&mut HomeConfig)| {
        let mut config = HomeConfig { interfaces: vec!["lo".into()], ..HomeConfig::new(HOME, NETWORK, KEY) };
        change(&mut config);
        HomeAgent::open(&config).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(said(&|_| {}), Ok(()));
    // A process that another test starts keeps the interface of the agent above until it executes its program.
    let of = |change: &dyn Fn(&mut HomeConfig)| {
        let mut errors = (0..500).map(|_| {
            thread::sleep(Duration::from_millis(10));
            said(change).unwrap_err()
        });
        errors.find(|error| !error.contains("busy")).expect("no process keeps it for seconds")
    };
    assert!(
        of(&|config| config.interfaces.clear()).contains("no interface by which it could reach stations")
    );
    assert!(
        of(&|config| config.mobiles = vec![HOST, HOME])
            .contains("10.60.0.254 is not in its network 10.50.0.0/24")
    );
    assert!(of(&|config| config.address = STATIONS[0]).contains("(the host must have this address)"));
    assert!(of(&|config| config.interfaces = vec!["none".into()]).contains("opening a raw socket on none"));
    let invalid = of(&|config| config.network = (HOST, 24));
    assert!(invalid.contains("adding a route through home0: Invalid argument"), "{invalid}");
}

fn stations() {
    let said = |address, interfaces| {
        let config = StationConfig::new([address, HOME], NETWORK, interfaces, KEY);
        BaseStation::open(&config).unwrap_err().to_string()
    };
    assert!(said(HOME, ["none", "lo"]).contains("there is no interface `none` here"));
    assert!(said(HOME, ["lo", "none"]).contains("taking UDP port 1021 of 10.60.0.254 on none"));
    assert!(said(STATIONS[0], ["lo", "lo"]).contains("(the host must have this address)"));
}

fn mobiles() {
    let said = |interfaces: &[&str]| {
        let interfaces = interfaces.iter().map(|&name| name.into()).collect();
        let config = MobileConfig { interfaces, ..MobileConfig::new(HOST, KEY) };
        MobileHost::open(&config).unwrap_err().to_string()
    };
    assert!(said(&[]).contains("it has no interface with a radio"));
    assert!(
        said(&["lo"]).contains("taking UDP port 1021 of 10.50.0.9 on lo (the host must have this address)")
    );
    assert!(said(&["none"]).contains("there is no interface `none` here"));
}
