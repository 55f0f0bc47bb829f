//! A table that is written row by row, in bounded memory: as CSV, and as Parquet in a build with the feature `parquet`.

#[cfg(feature = "parquet")]
use super::parquet_table::ParquetTable;
use crate::tables::{Cell, Column};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// A table that is being written.
pub(super) struct Files {
    csv: csv::Writer<BufWriter<File>>,
    #[cfg(feature = "parquet")]
    parquet: ParquetTable,
    /// `true` if there was no row.
    empty: bool,
    /// Buffer for the number that is being written.
    number: String,
}

impl Files {
    /// Creates the files of a table with these columns in `folder`.
    pub(super) fn create(folder: &Path, name: &str, columns: &[Column]) -> io::Result<Self> {
        let file = |extension: &str| File::create(folder.join(format!("{name}.{extension}")));
        let mut csv = csv::Writer::from_writer(BufWriter::new(file("csv")?));
        csv.write_record(columns.iter().map(|column| &column.name))?;
        Ok(Self {
            csv,
            #[cfg(feature = "parquet")]
            parquet: ParquetTable::new(file("parquet")?, columns)?,
            empty: true,
            number: String::new(),
        })
    }

    /// Adds a row: a cell for each column, of its kind or empty.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            self.csv.write_field(cell.text(&mut self.number))?;
        }
        self.csv.write_record(None::<&[u8]>)?;
        #[cfg(feature = "parquet")]
        self.parquet.row(cells)?;
        self.empty = false;
        Ok(())
    }

    /// Returns whether it has no row.
    pub(super) const fn is_empty(&self) -> bool {
        self.empty
    }

    /// Ends the files.
    pub(super) fn finish(self) -> io::Result<()> {
        #[cfg(feature = "parquet")]
        self.parquet.finish()?;
        self.csv.into_inner().map_err(|e| io::Error::from(e.error().kind()))?.flush()
    }
}
