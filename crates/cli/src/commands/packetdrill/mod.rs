//! `hopline packetdrill`.

mod files;
mod output;
mod tried;

use crate::args::{Packetdrill as Args, PacketdrillPreset};
use crate::console;
use crate::problems::Failure;
use files::ScriptFile;
use hopline_config::source::Origin;
use hopline_lab::{Problem, Problems};
use hopline_packetdrill::script::Script;
use hopline_packetdrill::{ParseError, Stop, Verdict, run};
use hopline_transport::tcp::Config;
use tried::Tried;

/// Runs scripts, and prints their verdicts. Fails if a script fails; a script with a syntax error is an input error, after
/// the other scripts have run.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scripts = files::find(&args.scripts)?;
    let (mut tried, mut problems) = (Vec::new(), Vec::new());
    for file in &scripts {
        match try_script(file, args) {
            Ok(verdict) => tried.push(Tried { name: file.source.name.clone(), verdict }),
            Err(error) => problems.push(syntax_problem(file, &error)),
        }
    }
    console::print(&if args.json { output::json(&tried) } else { output::text(&tried, args.summary) })?;
    if !problems.is_empty() {
        return Err(Failure::Input(Problems(problems)));
    }
    match tried.iter().filter(|script| matches!(script.verdict, Verdict::Failed(_))).count() {
        0 => Ok(()),
        failed => Err(Failure::Other(format!("{failed} of {} scripts failed", tried.len()))),
    }
}

fn try_script(file: &ScriptFile, args: &Args) -> Result<Verdict, ParseError> {
    let text = &file.source.text;
    match Script::parse(text) {
        Ok(mut script) => {
            for (name, value) in &args.option {
                script.add_option(name, value);
            }
            Ok(run(&script, text, config(args.preset), &|path| file.read_beside(path)))
        }
        Err(Stop::NotApplicable { line, reason }) => Ok(Verdict::NotApplicable { line, reason }),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn syntax_problem(file: &ScriptFile, error: &ParseError) -> Problem {
    let end = error.offset + error.found.len().max(1);
    let origin = Origin { source: file.source.clone(), span: error.offset..end.min(file.source.text.len()) };
    let found = if error.found.is_empty() { "the end of the line" } else { &error.found };
    Problem::new(format!("{origin}: expected {}, found `{found}`", error.expected)).at(&origin)
}

fn config(preset: PacketdrillPreset) -> Config {
    match preset {
        PacketdrillPreset::Linux => Config::linux().with_linux_host(),
        PacketdrillPreset::Modern => Config::modern(),
        PacketdrillPreset::Bsd => Config::bsd(),
    }
}
