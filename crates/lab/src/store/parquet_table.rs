//! Table in Parquet format.

use crate::tables::{Batch, Cell, Column};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io;

/// Number of buffered rows. It is constant, so that the file depends on the rows alone.
const BATCH_ROWS: usize = 1 << 14;

/// Parquet file that is being written.
pub(super) struct ParquetTable {
    writer: ArrowWriter<File>,
    batch: Batch,
}

impl ParquetTable {
    /// Begins a table with these columns in `file`.
    pub(super) fn new(file: File, columns: &[Column]) -> io::Result<Self> {
        let batch = Batch::new(columns);
        let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties()))?;
        Ok(Self { writer, batch })
    }

    /// Adds a row: a cell for each column, of its kind or empty.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.batch.push(cells);
        if self.batch.rows() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.close()?;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let batch = self.batch.take().map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io::Error::other)
    }
}

/// Returns the properties of all Parquet files.
pub(crate) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("hopline ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}
