//! An exit with a host name that changes its address.

use crate::gateway::helpers::*;
use hopline_harness::{Need, Test};
use hopline_middlebox::gateway::{EntranceConfig, ExitConfig, Fallback};
use hopline_testkit::namespace::LINK;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

/// Mounts disappear with the process that made them.
const OWN_MOUNTS: &[&str] = &["unshare", "--mount", "--propagation", "private"];

pub(crate) fn tests() -> Vec<Test> {
    let needs = [LINK, Need::Program("unshare"), Need::Program("mount")];
    let name = "an_exit_that_has_moved_is_found_by_its_name";
    vec![Test::new(name, needs, an_exit_with_a_new_address_is_found_by_its_name).in_own_process(OWN_MOUNTS)]
}

fn an_exit_with_a_new_address_is_found_by_its_name() {
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let is_at = |ip: IpAddr| std::fs::write(hosts.path(), format!("{ip} exit.test\n")).unwrap();
    let moved = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    is_at(V4);
    let mut mount = Command::new("mount");
    assert!(mount.arg("--bind").arg(hosts.path()).arg("/etc/hosts").status().unwrap().success());
    let (listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let config = EntranceConfig {
        exit: format!("exit.test:{}", exit_address.port()).parse().unwrap(),
        fallback: Some(Fallback::Refuse),
        retry_after: Duration::from_millis(200),
        ..entrance_config(forward(address), exit_address)
    };
    let (entrance, entry) = start_entrance(&config);
    exchange(&connect(entry), &accept(&listener), 1000);
    drop(exit);
    entrance.await_metric("exit_present", |figure| figure == 0);
    let _exit = start_exit(&ExitConfig { listen: (moved, exit_address.port()).into(), ..exit_config(V4) });
    is_at(moved);
    entrance.await_metric("exit_present", |figure| figure == 1);
    exchange(&connect(entry), &accept(&listener), 1000);
}
