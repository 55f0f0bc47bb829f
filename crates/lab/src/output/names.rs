//! Names of files of a result directory.

/// Name of the file that identifies a result directory.
pub const MANIFEST: &str = "manifest.json";
/// Name of the table of flows.
pub const FLOWS: &str = "flows.csv";
/// Name of the table of series.
pub const SERIES: &str = "series.csv";
/// Name of the table of neighbourhoods, which exists if any was observed.
pub const NEIGHBORHOODS: &str = "neighborhoods.csv";
/// Name of the capture of every frame.
pub const CAPTURE: &str = "run.pcapng";
/// Name of the trace in ns-2's format.
pub const NS2_TRACE: &str = "run.tr";
/// Name of the FlowMonitor file.
pub const FLOWMON: &str = "flowmon.xml";
/// Value of `format` in a manifest: the writer, and the version of the layout.
pub const FORMAT: &str = "hopline-run-1";
/// Value of `format` in the manifest of a comparison on random networks.
pub const DRAWS_FORMAT: &str = "hopline-draws-1";
