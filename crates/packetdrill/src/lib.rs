//! Runs scripts of packetdrill against [`hopline_transport::tcp::Endpoint`], in virtual time.
//!
//! A script is a timed dialogue of one host: system calls of its application, segments of its peer, segments that the
//! host has to send, and assertions about its state. Packetdrill runs it against the kernel of the machine. Here, the host
//! is an endpoint with a small socket layer, and a run is the same each time.
//!
//! ```
//! use hopline_packetdrill::{Verdict, run, script::Script};
//! use hopline_transport::tcp::Config;
//!
//! let text = "0 < S 100:100(0) win 1000\n+0 > R. 0:0(0) ack 101\n";
//! let script = Script::parse(text).expect("no syntax error");
//! assert_eq!(run(&script, text, Config::modern(), &|_| None), Verdict::Passed);
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `script`, `parse` | syntax tree, parser |
//! | `settings`, `sysctl`, `command` | script options, `sysctl` values and shell commands |
//! | `host`, `socket`, `connection` | host under test |
//! | `calls`, `options`, `tx_timestamps` | system calls |
//! | `mapping`, `compare` | numbers of the script and of the connection; expected and real segments |
//! | `assertion` | assertions about `TCP_INFO` |
//! | `systems` | choices of FreeBSD that the RFCs leave open |
//! | `run`, `verdict` | run of a script, its verdict |

mod assertion;
mod calls;
mod command;
mod compare;
mod connection;
mod host;
mod mapping;
mod options;
mod parse;
mod run;
pub mod script;
mod settings;
mod socket;
mod sysctl;
mod systems;
mod tx_timestamps;
mod verdict;

pub use parse::{ParseError, Stop};
pub use run::run;
pub use verdict::{Failure, Verdict};
