//! Reads qlog files by the types of Cloudflare's crate `qlog`, and compares the packets of the sender's with counters.
//!
//! `qlog-schema RESULT.json DIR`: what `hopline run --json --qlog DIR` printed, and its files. The scenario has one flow.

use qlog::events::EventData;
use qlog::reader::{Event, QlogSeqReader};
use serde_json::Value;
use std::error::Error;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

/// Counts of one file.
#[derive(Debug, Default)]
struct Counts {
    events: u64,
    data_sent: u64,
    sent: u64,
    received: u64,
    lost: u64,
    metrics: u64,
}

/// Reads every record of a file.
fn read(file: &Path) -> Result<Counts, Box<dyn Error>> {
    let records = fs::read(file)?.iter().filter(|&&byte| byte == 0x1e).count() as u64;
    let reader = QlogSeqReader::new(Box::new(BufReader::new(File::open(file)?)))?;
    let header = &reader.qlog;
    if (header.qlog_version.as_str(), header.qlog_format.as_str()) != ("0.3", "JSON-SEQ") {
        return Err(format!("version {}, format {}", header.qlog_version, header.qlog_format).into());
    }
    let mut counts = Counts::default();
    for event in reader {
        // The reader returns what its types do not know as plain JSON, and skips what is no event.
        let Event::Qlog(event) = event else { return Err(format!("unknown event {event:?}").into()) };
        counts.events += 1;
        match event.data {
            EventData::PacketSent(packet) => {
                counts.sent += 1;
                let data = packet.raw.and_then(|raw| raw.payload_length).unwrap_or(0);
                counts.data_sent += u64::from(data > 0);
            }
            EventData::PacketReceived(_) => counts.received += 1,
            EventData::PacketLost(_) => counts.lost += 1,
            EventData::MetricsUpdated(metrics) => {
                counts.metrics += 1;
                if let Some(field) = metrics.ex_data.keys().next() {
                    return Err(format!("unknown metric {field}").into());
                }
            }
            _ => {}
        }
    }
    // Its header is a record, too.
    if counts.events + 1 != records {
        return Err(format!("{} of {} events were read", counts.events, records - 1).into());
    }
    Ok(counts)
}

fn main() -> Result<(), Box<dyn Error>> {
    let [result, folder]: [String; 2] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "usage: qlog-schema RESULT.json DIR")?;
    let flow = serde_json::from_slice::<Value>(&fs::read(result)?)?["flows"][0].take();
    let [sender, receiver] = ["sender", "receiver"].map(|end| {
        let file = Path::new(&folder).join(format!("f0-{end}.sqlog"));
        read(&file).map_err(|error| format!("{}: {error}", file.display()))
    });
    let (sender, receiver) = (sender?, receiver?);
    let counted = |name: &str| flow[name].as_u64().ok_or(format!("no {name}"));
    let checks = [
        ("segments sent", sender.data_sent, counted("segments_sent")?),
        ("losses and retransmissions", sender.lost, counted("retransmissions")?),
        ("acknowledgments that were sent", receiver.sent.max(sender.received), receiver.sent),
        ("packets that arrived", sender.sent.max(receiver.received), sender.sent),
    ];
    for (name, logged, expected) in checks {
        if logged != expected {
            return Err(format!("{name}: {logged}, not {expected}").into());
        }
    }
    let (events, metrics) = (sender.events + receiver.events, sender.metrics);
    println!(
        "{}: {events} events, {} packets sent, {} lost, {metrics} metrics",
        flow["transport"], sender.sent, sender.lost
    );
    Ok(())
}
