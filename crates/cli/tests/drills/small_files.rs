//! A tree of many small files over a path with a round trip of 50 ms.

use crate::drills::world::{BOTH, TransportProtocol, ended, now};
use hopline_core::Duration as Span;
use hopline_link::{Emulation, Side};
use hopline_tools::link::NamespaceLink;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;
use tempfile::TempDir;

const FILES: usize = 20_000;
/// Bytes of each file.
const SIZE: usize = 1000;
/// One-way delay.
const DELAY: Span = Span::from_millis(25);
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn drill() {
    let rates = BOTH.map(|speaks| {
        let rate = files_in_a_second(speaks);
        println!("{FILES} files of {SIZE} bytes over {speaks:?}, 25 ms each way: {rate:.0} in a second");
        (speaks, rate)
    });
    let is_enough = |(speaks, rate): &(TransportProtocol, f64)| *rate >= least(*speaks);
    assert!(rates.iter().all(is_enough), "{rates:.0?}");
}

/// Returns the least number of files per second.
fn least(speaks: TransportProtocol) -> f64 {
    match speaks {
        // It may have only six segments in flight in 50 ms: 174 kB/s, including names and answers.
        TransportProtocol::Tpa => 120.0,
        TransportProtocol::TpaWide => 200.0,
    }
}

fn files_in_a_second(speaks: TransportProtocol) -> f64 {
    let folders = TempDir::new().unwrap();
    let [from, to] = ["from", "to"].map(|name| folders.path().join(name));
    make(&from);
    fs::create_dir(&to).unwrap();
    let way = Emulation::delay(DELAY);
    let link = NamespaceLink::new(way.clone(), way, 1).unwrap();
    let mut recv = speaks.receiver(folders.path(), &["-q"]);
    recv.arg("-o").arg(&to);
    let _receiver = Killed(link.host(Side::B).spawn(recv).unwrap());
    let mut send = speaks.hopline(folders.path(), &["send", "-q", "--patience", "30"]);
    send.arg(&from).arg(link.address_b().to_string());
    let began = now();
    let mut sender = Killed(link.host(Side::A).spawn(send).unwrap());
    let status = ended(&mut sender.0, PATIENCE);
    let took = began.elapsed();
    assert!(status.is_some_and(|status| status.success()), "{speaks:?}: {status:?}");
    check(&to.join("from"));
    FILES as f64 / took.as_secs_f64()
}

/// Process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a hundred folders, each with its share of the files.
fn make(tree: &Path) {
    for number in 0..FILES {
        let path = place(tree, number);
        if number < 100 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, content(number)).unwrap();
    }
}

fn check(tree: &Path) {
    for number in 0..FILES {
        assert_eq!(fs::read(place(tree, number)).unwrap(), content(number), "file {number}");
    }
}

fn place(tree: &Path, number: usize) -> std::path::PathBuf {
    tree.join(format!("{:02}/{number:05}", number % 100))
}

fn content(number: usize) -> Vec<u8> {
    number.to_string().into_bytes().into_iter().cycle().take(SIZE).collect()
}
