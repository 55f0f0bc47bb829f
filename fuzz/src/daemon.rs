//! Daemon of proxies: its configuration file, the journal of its rules, and its metrics over HTTP.

use crate::files::{check_problems, source};
use crate::machines::Choices;
use hopline_daemon::rules::{Rules, Tracking, listed, with_one_more};
use hopline_daemon::status::{Condition, ProxyStatus, Reading, ReadingKind, Status};
use hopline_daemon::{Config, metrics};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Longest request that is answered, bytes.
const LONGEST_REQUEST: usize = 4096;

/// Text of a daemon's configuration file. Errors have a position; accepted files have rules that can be written. The word
/// KEY stands for a file with a key of 32 bytes, and KEY16 for one of 16. The target opens no other file.
pub fn daemon_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let names_files = |line: &&str| ["_file", "peers", "\\"].iter().any(|key| line.contains(key));
    if text.lines().filter(names_files).any(|line| line.contains('/') || !line.contains("KEY")) {
        return;
    }
    let text = text.replace("KEY16", &key_file(16)).replace("KEY", &key_file(32));
    match Config::parse(&source("proxy.toml", text.as_bytes())) {
        Ok(config) => {
            let rules = Rules::of(&config, Tracking::InUse).to_string();
            let is_plain = |c: char| c == '\n' || !c.is_control();
            assert!(rules.chars().all(is_plain), "{rules:?}");
            assert_eq!(Config::parse(&source("proxy.toml", text.as_bytes())).as_ref(), Ok(&config));
        }
        Err(problems) => check_problems(&problems),
    }
}

/// Returns the path of a file with a key of `len` bytes.
fn key_file(len: usize) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("there is room for a folder").keep();
        for len in [16, 32] {
            std::fs::write(folder.join(format!("key{len}")), "07".repeat(len))
                .expect("there is room for a key");
        }
        folder
    });
    folder.join(format!("key{len}")).display().to_string()
}

/// Bytes of a journal of rules. The rules to undo are of kinds that daemons make, are listed again when they are written
/// again, and do not get lost behind an unfinished line.
pub fn daemon_journal(data: &[u8]) {
    let before = listed(data);
    for made in &before {
        // Interfaces may have almost any name. The names are separate arguments, and no shell reads them.
        let is_of_an_interface = made.starts_with("{\"Queue\"");
        let is_plain = |c: char| !c.is_control() && (is_of_an_interface || !";|&`$<>'".contains(c));
        assert!(made.chars().all(is_plain), "{made}");
    }
    let again: String = before.iter().map(|made| format!("{made}\n")).collect();
    assert_eq!(listed(again.as_bytes()), before);
    if let Some(more) = with_one_more(data) {
        let after = listed(&more);
        assert_eq!(after, [before.clone(), vec![before[before.len() - 1].clone()]].concat());
    }
}

/// Client of the metrics page, with any size of its writes. It gets one answer with the right length in its head, or none.
/// Names and values of metrics are arbitrary too; each sample is one line.
pub fn metrics_http(data: &[u8]) {
    let mut choices = Choices(data);
    let status = status(&mut choices);
    let mut client = Client { rest: choices.0, step: usize::from(choices.byte()) + 1, read: 0 };
    let Ok(answer) = metrics::answer_to(&mut client, &status) else { return };
    assert!(client.read <= LONGEST_REQUEST);
    let answer = String::from_utf8(answer).expect("a page is text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    if head.starts_with("HTTP/1.1 200 ") {
        // Two samples of the daemon, and those of each proxy.
        let samples = body.lines().filter(|line| !line.starts_with('#')).count();
        let of_proxies = status.proxies.iter().map(|proxy| 2 + proxy.figures.len());
        assert_eq!(samples, 2 + of_proxies.sum::<usize>());
        assert!(body.lines().all(|line| line.starts_with("hopline_") || line.starts_with("# ")));
    }
}

/// Writes a few bytes at a time, and closes.
struct Client<'a> {
    rest: &'a [u8],
    step: usize,
    read: usize,
}

impl Read for Client<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.step.min(buffer.len()).min(self.rest.len());
        buffer[..len].copy_from_slice(&self.rest[..len]);
        self.rest = &self.rest[len..];
        self.read += len;
        Ok(len)
    }
}

/// Returns the status of a daemon with up to two proxies, with any names and metrics.
fn status(choices: &mut Choices<'_>) -> Status {
    let word = |choices: &mut Choices<'_>| {
        let len = usize::from(choices.byte() % 16);
        let bytes: Vec<u8> = (0..len).map(|_| choices.byte()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let proxies = (0..choices.byte() % 3).map(|_| {
        let figures = (0..choices.byte() % 3).map(|number| Reading {
            name: format!("figure_{number}"),
            doc: word(choices),
            kind: choices.pick(&[ReadingKind::Counter, ReadingKind::Gauge]),
            value: u64::from(choices.u16()),
        });
        let figures = figures.collect();
        ProxyStatus {
            name: word(choices),
            kind: "snoop".into(),
            state: choices.pick(&[Condition::Running, Condition::Waiting]),
            why: None,
            notices: Vec::new(),
            for_s: 0,
            restarts: 0,
            figures,
        }
    });
    let proxies = proxies.collect();
    Status {
        name: "daemon".into(),
        version: String::new(),
        process: 1,
        running_s: choices.u16().into(),
        reloads: 0,
        sandbox: None,
        connection_tracking: None,
        proxies,
    }
}
