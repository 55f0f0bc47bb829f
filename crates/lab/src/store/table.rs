//! A table that is written as CSV and as Parquet at once, row by row, in bounded memory.

use crate::tables::{Batch, Cell, Column};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

/// Rows that wait for the Parquet file. A fixed number, so that the file depends on the rows alone.
const BATCH_ROWS: usize = 1 << 14;

/// A table in the making.
pub(super) struct Files {
    csv: csv::Writer<BufWriter<File>>,
    parquet: ArrowWriter<File>,
    batch: Batch,
    /// Whether there was a row at all.
    empty: bool,
    /// The number that is being written.
    number: String,
}

impl Files {
    /// A table with these columns.
    pub(super) fn new(csv: File, parquet: File, columns: &[Column]) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(BufWriter::new(csv));
        csv.write_record(columns.iter().map(|column| &column.name))?;
        let batch = Batch::new(columns);
        let parquet = ArrowWriter::try_new(parquet, batch.schema(), Some(properties()))?;
        Ok(Self { csv, parquet, batch, empty: true, number: String::new() })
    }

    /// Adds a row: a cell for each column, of its kind or empty.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            self.csv.write_field(cell.text(&mut self.number))?;
        }
        self.csv.write_record(None::<&[u8]>)?;
        self.batch.push(cells);
        self.empty = false;
        if self.batch.rows() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Whether it has no row.
    pub(super) const fn is_empty(&self) -> bool {
        self.empty
    }

    /// Ends both files.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.parquet.close()?;
        self.csv.into_inner().map_err(|e| io::Error::from(e.error().kind()))?.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let batch = self.batch.take().map_err(io::Error::other)?;
        self.parquet.write(&batch).map_err(io::Error::other)
    }
}

/// How Parquet is written, everywhere.
pub(crate) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("hopline ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}
