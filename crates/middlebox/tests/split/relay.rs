//! Relay between two stations in tests: it passes their frames on, and stops before one of a kind.

use crate::split::hosts::meanwhile;
use crate::split::stations::{MOVES, Stations};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Kinds of frames, as `moving/channel.rs` numbers them.
pub(crate) const CLAIM: u8 = 1;
pub(crate) const OFFER: u8 = 2;
pub(crate) const BYTES: u8 = 3;
pub(crate) const READY: u8 = 4;
pub(crate) const COMMIT: u8 = 6;
pub(crate) const DONE: u8 = 8;

/// Length and kind of a frame, and its proof.
const HEADER: usize = 5;
const PROOF: usize = 16;
const RANDOM: usize = 32;

/// Stands before the first station for the second one.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    stopped: Receiver<()>,
    resume: Sender<()>,
}

impl Relay {
    /// Stops before the first frame of a kind.
    pub(crate) fn stopping_before(hosts: &Stations, kind: u8) -> Self {
        let open = || (TcpListener::bind("10.5.0.2:0").unwrap(), TcpStream::connect(MOVES[0]).unwrap());
        let (listener, holder) = hosts.stations[1].run(open).unwrap();
        let address = listener.local_addr().unwrap();
        let (stops, stopped) = channel();
        let (goes_on, waits) = channel();
        meanwhile(move || {
            let (claimant, _) = listener.accept().unwrap();
            let waits = Arc::new(Mutex::new(waits));
            for (from, to) in [(&claimant, &holder), (&holder, &claimant)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (stops, waits) = (stops.clone(), Arc::clone(&waits));
                meanwhile(move || {
                    let _ = pass(&from, &to, |found| {
                        found != kind || {
                            let _ = stops.send(());
                            waits.lock().unwrap().recv().is_ok()
                        }
                    });
                    for stream in [from, to] {
                        let _ = stream.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        Self { address, stopped, resume: goes_on }
    }

    /// Waits until the frame has come.
    pub(crate) fn wait(&self) {
        self.stopped.recv_timeout(Duration::from_secs(10)).expect("the frame has come");
    }

    /// Passes on what has come.
    pub(crate) fn resume_forwarding(&self) {
        self.resume.send(()).unwrap();
    }
}

/// Passes frames on as long as `passes` says so.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut passes: impl FnMut(u8) -> bool) -> io::Result<()> {
    let mut random = [0; RANDOM];
    from.read_exact(&mut random)?;
    to.write_all(&random)?;
    loop {
        let mut frame = vec![0; HEADER];
        from.read_exact(&mut frame)?;
        let len = u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize;
        frame.resize(HEADER + len + PROOF, 0);
        from.read_exact(&mut frame[HEADER..])?;
        if !passes(frame[HEADER - 1]) {
            return Ok(());
        }
        to.write_all(&frame)?;
    }
}
