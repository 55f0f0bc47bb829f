//! Scripts of packetdrill. Any text is parsed and run without a panic, and the run ends.

use hopline_packetdrill::script::Script;
use hopline_packetdrill::{Stop, Verdict, run};
use hopline_transport::tcp::Config;

/// Scripts of packetdrill. Errors and verdicts have a place in the text; shell scripts do not exist.
pub fn packetdrill(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count().max(1) + 1;
    match Script::parse(&text) {
        Err(Stop::Error(error)) => {
            assert!(text.is_char_boundary(error.offset) && !error.expected.is_empty(), "{error:?}");
            assert!((1..=lines).contains(&error.line) && error.column > 0, "{error:?}");
        }
        Err(Stop::NotApplicable { line, reason }) => {
            assert!((1..=lines).contains(&line) && !reason.is_empty(), "line {line}: {reason}");
        }
        Ok(script) => match run(&script, &text, Config::linux().with_linux_host(), &|_| None) {
            Verdict::Passed => {}
            Verdict::NotApplicable { line, reason } => {
                assert!((1..=lines).contains(&line) && !reason.is_empty(), "line {line}: {reason}");
            }
            Verdict::Failed(failure) => {
                assert!((1..=lines).contains(&failure.line) && !failure.difference.is_empty(), "{failure:?}");
            }
        },
    }
}
