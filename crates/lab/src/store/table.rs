//! A table that is written as CSV and as Parquet at once, row by row, in bounded memory.

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;

/// Rows that wait for the Parquet file. A fixed number, so that the file depends on the rows alone.
const BATCH_ROWS: usize = 1 << 14;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    /// Text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// None.
    Empty,
}

/// A table in the making.
pub(super) struct Table {
    csv: csv::Writer<BufWriter<File>>,
    parquet: ArrowWriter<File>,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    rows: usize,
    /// The number that is being written.
    number: String,
}

enum Column {
    Text(StringBuilder),
    Whole(UInt64Builder),
    Real(Float64Builder),
}

impl Table {
    /// A table with these columns.
    pub(super) fn new(csv: File, parquet: File, columns: &[(String, Kind)]) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(BufWriter::new(csv));
        csv.write_record(columns.iter().map(|(name, _)| name))?;
        let field = |(name, kind): &(String, Kind)| Field::new(name, kind.data_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("hopline ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let parquet = ArrowWriter::try_new(parquet, schema.clone(), Some(properties))?;
        let columns = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Self { csv, parquet, schema, columns, rows: 0, number: String::new() })
    }

    /// Adds a row: a cell for each column, of its kind or empty.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.csv.write_field(cell.text(&mut self.number))?;
            column.push(*cell);
        }
        self.csv.write_record(None::<&[u8]>)?;
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Ends both files.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.parquet.close()?;
        self.csv.into_inner().map_err(|e| io::Error::from(e.error().kind()))?.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let arrays = self.columns.iter_mut().map(Column::take).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(io::Error::other)?;
        self.parquet.write(&batch)?;
        self.rows = 0;
        Ok(())
    }
}

impl Kind {
    const fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Whole => DataType::UInt64,
            Self::Real => DataType::Float64,
        }
    }
}

impl<'a> Cell<'a> {
    /// The cell in words; a number is written into `number`.
    fn text<'t>(&self, number: &'t mut String) -> &'t str
    where
        'a: 't,
    {
        number.clear();
        match self {
            Self::Text(text) => return text,
            Self::Whole(i) => write!(number, "{i}").expect("strings take everything"),
            Self::Real(x) => write!(number, "{x}").expect("strings take everything"),
            Self::Empty => {}
        }
        number
    }
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Whole => Self::Whole(UInt64Builder::new()),
            Kind::Real => Self::Real(Float64Builder::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Text(column), Cell::Text(text)) => column.append_value(text),
            (Self::Text(column), _) => column.append_null(),
            (Self::Whole(column), Cell::Whole(i)) => column.append_value(i),
            (Self::Whole(column), _) => column.append_null(),
            (Self::Real(column), Cell::Real(x)) => column.append_value(x),
            (Self::Real(column), _) => column.append_null(),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Text(column) => Arc::new(column.finish()),
            Self::Whole(column) => Arc::new(column.finish()),
            Self::Real(column) => Arc::new(column.finish()),
        }
    }
}
