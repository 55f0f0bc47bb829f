//! Gateways that are killed (`kill -9`): each is a process of its own, this program in another role.

use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_middlebox::gateway::{Entrance, Exit};
use hopline_middlebox::service::{Service, ServiceStatus};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};

/// Environment variable with the role of a process: `exit`, or `entrance EXIT SERVER`.
const ROLE: &str = "HOPLINE_TEST_GATEWAY_ROLE";

/// Environment variable that selects TPA-wide.
const OVER: &str = "HOPLINE_TEST_GATEWAY_OVER_TPA_WIDE";

pub(crate) fn tests() -> Vec<Test> {
    over_both!([]; a_killed_exit_resets_connections_at_both_ends, a_killed_entrance_resets_connections_at_both_ends)
}

pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs the role and prints the address, until the process is killed.
pub(crate) fn run_role(role: &str) -> ExitCode {
    match std::env::var_os(OVER) {
        Some(_) => with_carrier(Carrier::TpaWide, || serve(role)),
        None => serve(role),
    }
    ExitCode::SUCCESS
}

fn serve(role: &str) {
    let words: Vec<_> = role.split(' ').collect();
    let (service, address): (Box<dyn Service>, SocketAddr) = match words[..] {
        ["exit"] => {
            let exit = Exit::open(&exit_config(V4)).unwrap();
            let address = exit.local_addr().unwrap();
            (Box::new(exit), address)
        }
        ["entrance", exit, server] => {
            let config = entrance_config(forward(server.parse().unwrap()), exit.parse().unwrap());
            let entrance = Entrance::open(&config).unwrap();
            let address = entrance.local_addrs().unwrap()[0];
            (Box::new(entrance), address)
        }
        _ => unreachable!("a role that nobody gives: {role}"),
    };
    let mut out = std::io::stdout();
    writeln!(out, "{address}").unwrap();
    let (_keep, stop) = UnixStream::pair().unwrap();
    service.run(stop.as_fd(), &ServiceStatus::default()).unwrap();
}

/// A process that is killed when the value is dropped.
struct Process(Child);

impl Process {
    fn start(role: &str) -> (Self, SocketAddr) {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        if carrier() == Carrier::TpaWide {
            command.env(OVER, "");
        }
        let mut child = command.env(ROLE, role).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line.trim().parse().unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_killed_exit_resets_connections_at_both_ends() {
    killed(|exit, _| exit);
}

fn a_killed_entrance_resets_connections_at_both_ends() {
    killed(|_, entrance| entrance);
}

fn killed(which: for<'a> fn(&'a mut Process, &'a mut Process) -> &'a mut Process) {
    let (listener, address) = server(V4);
    let (mut exit, exit_address) = Process::start("exit");
    let (mut entrance, entry) = Process::start(&format!("entrance {exit_address} {address}"));
    let mut client = connect(entry);
    let mut server = accept(&listener);
    // More than the buffers on the path hold, so that both directions are in the middle of a transfer.
    let data = pattern(1, 4 << 20);
    client.set_nonblocking(true).unwrap();
    server.set_nonblocking(true).unwrap();
    while client.write(&data).is_ok() {}
    while server.write(&data).is_ok() {}
    client.set_nonblocking(false).unwrap();
    server.set_nonblocking(false).unwrap();
    which(&mut exit, &mut entrance).kill();
    assert_reset(&server);
    assert_reset(&client);
}
