//! Results as tables: list of tables, their columns, and the rows of a record in each.
//!
//! A result directory has them as CSV and, with the feature `parquet`, as Parquet; the Python package has
//! them as Arrow.

#[cfg(feature = "parquet")]
mod batch;
mod cell;
#[cfg(feature = "parquet")]
mod estimates;
mod leading_cells;
#[cfg(all(test, feature = "parquet"))]
mod tests;

#[cfg(feature = "parquet")]
pub use batch::{Batch, without_empty};
pub use cell::{Cell, Column, Kind};
#[cfg(feature = "parquet")]
pub use estimates::estimates;
pub use leading_cells::LeadingCells;

use crate::metrics::{CATALOGUE, Level};
use crate::record::{CompletedRun, Record};
use std::io;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each run: fingerprint, events, and the reason if it failed.
    Runs,
    /// A row for each metric of a run, of a group, of a flow or of a node.
    Metrics,
    /// A row for each flow of a run, with its ends and all its metrics.
    Flows,
    /// A row for each second of a flow, of runs with stored series.
    Series,
    /// A row for each 100 ms of a node with an observed neighbourhood.
    Neighborhoods,
}

/// Receiver of rows, one after the other.
pub type RowSink<'a> = dyn FnMut(&[Cell<'_>]) -> io::Result<()> + 'a;

impl Table {
    /// Returns its columns, after those of `heads`.
    #[must_use]
    pub fn columns(self, heads: &LeadingCells) -> Vec<Column> {
        let own = self.own_columns().iter().map(|(name, kind)| Column::new(name, *kind));
        let more = if self == Self::Flows { of_flows().collect() } else { Vec::new() };
        let more = more.into_iter().map(|name| Column::new(name, Kind::Real));
        heads.columns().iter().cloned().chain(own).chain(more).collect()
    }

    const fn own_columns(self) -> &'static [(&'static str, Kind)] {
        use Kind::{Real, Text, Whole};
        match self {
            Self::Runs => {
                &[("run", Whole), ("fingerprint", Text), ("events", Whole), ("sim_s", Real), ("error", Text)]
            }
            Self::Metrics => &[
                ("run", Whole),
                ("group", Text),
                ("flow", Text),
                ("node", Text),
                ("metric", Text),
                ("value", Real),
            ],
            Self::Flows => &[
                ("run", Whole),
                ("flow", Text),
                ("src", Text),
                ("dst", Text),
                ("transport", Text),
                ("kind", Text),
                ("class", Text),
            ],
            Self::Series => &[
                ("run", Whole),
                ("flow", Text),
                ("time_s", Real),
                ("goodput_bps", Real),
                ("cwnd_bytes", Whole),
                ("srtt_s", Real),
                ("queue_packets", Whole),
                ("delay_mean_s", Real),
            ],
            Self::Neighborhoods => &[
                ("run", Whole),
                ("node", Text),
                ("time_s", Real),
                ("queue_packets", Whole),
                ("average_queue_packets", Real),
                ("estimate_packets", Real),
                ("latest_packets", Real),
            ],
        }
    }

    /// Passes the rows of `record` in this table to `each`.
    ///
    /// # Errors
    ///
    /// Errors of `each`.
    pub fn rows(self, heads: &LeadingCells, record: &Record, each: &mut RowSink<'_>) -> io::Result<()> {
        let run = Cell::Whole(record.run);
        let row = &mut |own: &[Cell<'_>]| each(&heads.row(record.point, &[&[run], own].concat()));
        match (self, &record.result) {
            (Self::Runs, Ok(done)) => {
                let fingerprint = format!("{:016x}", done.fingerprint);
                let events = Cell::Whole(done.events);
                row(&[Cell::Text(&fingerprint), events, Cell::Real(done.sim_s), Cell::Empty])
            }
            (Self::Runs, Err(why)) => row(&[Cell::Empty, Cell::Empty, Cell::Empty, Cell::Text(why)]),
            (_, Err(_)) => Ok(()),
            (Self::Metrics, Ok(done)) => metrics(done, row),
            (Self::Flows, Ok(done)) => flows(done, row),
            (Self::Series, Ok(done)) => series(done, row),
            (Self::Neighborhoods, Ok(done)) => neighborhoods(done, row),
        }
    }
}

/// Returns the names of the metrics of flows.
fn of_flows() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().filter(|info| info.level() == Level::Flow).map(|info| info.name)
}

fn metrics(done: &CompletedRun, row: &mut RowSink<'_>) -> io::Result<()> {
    for value in &done.metrics {
        let subject = Cell::Text(&value.subject);
        let (group, flow, node) = match value.metric.level() {
            Level::Run => (Cell::Empty, Cell::Empty, Cell::Empty),
            Level::Group => (subject, Cell::Empty, Cell::Empty),
            Level::Flow | Level::Pair => (Cell::Empty, subject, Cell::Empty),
            Level::Node => (Cell::Empty, Cell::Empty, subject),
        };
        row(&[group, flow, node, Cell::Text(value.metric.name), Cell::Real(value.value)])?;
    }
    Ok(())
}

fn flows(done: &CompletedRun, row: &mut RowSink<'_>) -> io::Result<()> {
    let values = done.by_key();
    for flow in &done.flows {
        let ends = [&flow.id, &flow.src, &flow.dst, &flow.transport, &flow.kind].map(|text| Cell::Text(text));
        let class = if flow.class.is_empty() { Cell::Empty } else { Cell::Text(&flow.class) };
        let metrics =
            of_flows().map(|name| Cell::from(values.get(&(Level::Flow, flow.id.as_str(), name)).copied()));
        row(&ends.into_iter().chain([class]).chain(metrics).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn series(done: &CompletedRun, row: &mut RowSink<'_>) -> io::Result<()> {
    for series in &done.series {
        for second in series.seconds() {
            row(&[
                Cell::Text(&series.flow),
                Cell::Real(second.time_s),
                Cell::Real(second.goodput_bps),
                second.cwnd_bytes.into(),
                second.srtt_s.into(),
                Cell::Whole(second.queue_packets.into()),
                second.delay_s.into(),
            ])?;
        }
    }
    Ok(())
}

fn neighborhoods(done: &CompletedRun, row: &mut RowSink<'_>) -> io::Result<()> {
    for node in &done.neighborhoods {
        for (i, time_s) in node.time_s.iter().enumerate() {
            row(&[
                Cell::Text(&node.node),
                Cell::Real(*time_s),
                Cell::Whole(node.queue_packets[i].into()),
                node.average_queue_packets.get(i).copied().into(),
                Cell::Real(node.estimate_packets[i]),
                Cell::Real(node.latest_packets[i]),
            ])?;
        }
    }
    Ok(())
}
