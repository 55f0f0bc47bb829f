//! Observation of an emulation besides flows, and the threads that store it.

use super::watch::Watch;
use crate::commands::run::capture_nodes;
use crate::net::args::Emulate as Args;
use crate::problems::{Failure, print_error_line};
use hopline_emulate::{BackgroundWriter, LinkMeasurement, Observation, Observer, background_writer};
use hopline_lab::animation::{self, CollectedRecording, LiveRecorder, Window};
use hopline_lab::map::Map;
use hopline_lab::output::{CAPTURE, Directory, Extra, OutputError};
use hopline_lab::{Scenario, Spec, report};
use hopline_sim::Tracer;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

/// Threads that take what the thread of the events observes.
pub(super) struct Observers {
    pub(super) extras: Vec<Extra>,
    capture: Option<Capture>,
    recording: Option<JoinHandle<CollectedRecording>>,
    watch: Option<Watch>,
}

/// A capture that is being written.
struct Capture {
    place: PathBuf,
    writer: BackgroundWriter,
}

impl Observers {
    /// Prepares the observation that the options ask for.
    pub(super) fn start(
        args: &Args,
        scenario: &Scenario,
        spec: &Spec,
        results: Option<&Directory>,
    ) -> Result<(Self, Observation), Failure> {
        let mut observation = Observation {
            links: if args.record.is_some() { LinkMeasurement::On } else { LinkMeasurement::Off },
            ..Observation::default()
        };
        let mut all = Self { extras: Vec::new(), capture: None, recording: None, watch: None };
        if let (Some(directory), Some(nodes)) = (results, capture_nodes(args.pcap, &args.pcap_node, spec)?) {
            let file = directory.file(CAPTURE)?;
            let file: Box<dyn Write + Send> = if args.kernels.virtual_time {
                // The network waits for the disk.
                Box::new(file)
            } else {
                let (sink, writer) = background_writer(file).map_err(cannot_start)?;
                all.capture = Some(Capture { place: directory.place(CAPTURE), writer });
                Box::new(sink)
            };
            observation.capture = Some(hopline_emulate::Capture { file, nodes: nodes.clone() });
            all.extras.push(Extra::Capture(nodes));
        }
        if let Some(port) = args.watch {
            let (recorder, network) = animation::watched(spec);
            observation.others.push(observer(recorder));
            let page = report::live(&scenario.name(), &Map::of(spec));
            all.watch = Some(Watch::start(port, page, network)?);
        }
        if args.report.is_some() {
            let (recorder, recording) = animation::live(spec, window(args, scenario)?);
            observation.others.push(observer(recorder));
            let thread = thread::Builder::new().name("recording".into());
            all.recording = Some(thread.spawn(move || recording.collect()).map_err(cannot_start)?);
        }
        Ok((all, observation))
    }

    /// Returns the error of a capture that cannot go on, such as a full disk.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let ended = self.capture.take_if(|capture| capture.writer.has_ended());
        ended.map_or(Ok(()), Capture::finish)
    }

    /// Waits until all is stored, after the emulation has ended. Returns the files besides tables, unless one cannot be
    /// written, and the recording.
    pub(super) fn finish(self) -> (Result<Vec<Extra>, Failure>, Option<CollectedRecording>) {
        if let Some(watch) = self.watch {
            watch.end();
        }
        let captured = self.capture.map_or(Ok(()), Capture::finish);
        (captured.map(|()| self.extras), self.recording.and_then(|thread| thread.join().ok()))
    }
}

impl Capture {
    /// Waits until it is written.
    fn finish(self) -> Result<(), Failure> {
        let Self { place: path, writer } = self;
        let lost = writer.finish().map_err(|error| OutputError::Io { path, error })?;
        if lost > 0 {
            print_error_line(&format!(
                "warning: {CAPTURE} lacks {lost} frames, since the disk was too slow; --pcap-node captures fewer"
            ));
        }
        Ok(())
    }
}

fn observer(mut recorder: LiveRecorder) -> Observer {
    Observer(Box::new(move |now, node, event| recorder.trace(now, node, event)))
}

/// Returns the part that the report plays: by default from the beginning on.
fn window(args: &Args, scenario: &Scenario) -> Result<Window, Failure> {
    let of_file = scenario.animation().map(|(from, to)| Window::new(from, to)).transpose();
    let of_file = of_file.map_err(|e| Failure::Other(e.to_string()))?;
    Ok(args.animate.or(of_file).unwrap_or_default())
}

fn cannot_start(error: io::Error) -> Failure {
    Failure::Other(format!("starting a thread: {error}"))
}
