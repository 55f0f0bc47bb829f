//! Peers for measurements: the simplest proxies that split a connection, with two blocking threads a connection that copy or
//! splice.

use crate::split::daemon::{PORT, setting};
use crate::split::hosts::meanwhile;
use hopline_linux::transparent::{
    AcceptedConnection, LegOptions, TransparentListener, close_cleanly, connect_from,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{SpliceFlags, pipe, splice};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::fd::AsFd;

/// Most bytes that are carried at once.
const CHUNK: usize = 1 << 16;

/// Splits whatever comes until the process is told to end.
pub(crate) fn run(kind: &str, ready: impl FnOnce()) {
    let carry = if kind == "splice" { splice_all } else { copy_all };
    let listener = TransparentListener::bind((Ipv4Addr::LOCALHOST, PORT).into()).unwrap();
    ready();
    meanwhile(move || {
        loop {
            wait(&listener, PollFlags::IN);
            while let Some(call) = listener.accept().unwrap() {
                meanwhile(move || serve(call, carry));
            }
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

fn serve(
    AcceptedConnection { stream, client, server }: AcceptedConnection,
    carry: fn(&TcpStream, &TcpStream),
) {
    let options = LegOptions::default().with_congestion(setting("mobile"));
    options.apply(&stream).unwrap();
    let onward = connect_from(client, server, &options).unwrap();
    wait(&onward, PollFlags::OUT);
    [&stream, &onward].into_iter().for_each(|half| half.set_nonblocking(false).unwrap());
    let [other, other_onward] = [&stream, &onward].map(|half| half.try_clone().unwrap());
    let back = meanwhile(move || carry(&other_onward, &other));
    carry(&stream, &onward);
    back.join().unwrap();
    [stream, onward].into_iter().for_each(|half| close_cleanly(half).unwrap());
}

fn wait(what: impl AsFd, flags: PollFlags) {
    poll(&mut [PollFd::from_borrowed_fd(what.as_fd(), flags)], None).unwrap();
}

fn copy_all(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn splice_all(from: &TcpStream, to: &TcpStream) {
    let (exit, entry) = pipe().unwrap();
    while let Ok(len @ 1..) = splice(from, None, &entry, None, CHUNK, SpliceFlags::MOVE) {
        let mut left = len;
        while left > 0 {
            match splice(&exit, None, to, None, left, SpliceFlags::MOVE) {
                Ok(len @ 1..) => left -= len,
                _ => return,
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
