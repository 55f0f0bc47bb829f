//! Rows in Arrow format: column by column.

use super::cell::{Cell, Column, Kind};
use super::{LeadingCells, Table};
use crate::record::Record;
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::sync::Arc;

/// Rows that are being collected.
#[derive(Debug)]
pub struct Batch {
    schema: Arc<Schema>,
    columns: Vec<Builder>,
    rows: usize,
}

#[derive(Debug)]
enum Builder {
    Text(StringBuilder),
    Whole(UInt64Builder),
    Real(Float64Builder),
}

impl Batch {
    /// Creates an empty batch with these columns.
    #[must_use]
    pub fn new(columns: &[Column]) -> Self {
        let field = |column: &Column| Field::new(&column.name, column.kind.data_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Self { schema, columns: columns.iter().map(|column| Builder::new(column.kind)).collect(), rows: 0 }
    }

    /// Returns its columns.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row: a cell for each column, of its kind or empty.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(*cell);
        }
        self.rows += 1;
    }

    /// Takes the rows.
    ///
    /// # Errors
    ///
    /// If columns differ in length: a row was incomplete.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Builder::take).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

impl Table {
    /// Returns all rows of `records` in this table. For flows, columns without any value are left out.
    ///
    /// # Errors
    ///
    /// None for valid records.
    pub fn batch<'r>(
        self,
        heads: &LeadingCells,
        records: impl IntoIterator<Item = &'r Record>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut batch = Batch::new(&self.columns(heads));
        for record in records {
            self.add(heads, record, &mut batch);
        }
        self.whole(heads, batch)
    }

    /// Adds the rows of `record` in this table to `batch`.
    pub fn add(self, heads: &LeadingCells, record: &Record, batch: &mut Batch) {
        let mut push = |cells: &[Cell<'_>]| {
            batch.push(cells);
            Ok(())
        };
        self.rows(heads, record, &mut push).expect("rows in memory take everything");
    }

    /// Returns the batch of rows that were [added](Self::add), as [`batch`](Self::batch) does.
    ///
    /// # Errors
    ///
    /// None for valid records.
    pub fn whole(self, heads: &LeadingCells, mut batch: Batch) -> Result<RecordBatch, ArrowError> {
        let all = batch.take()?;
        match self {
            Self::Flows => without_empty(&all, heads.columns().len() + self.own_columns().len()),
            _ => Ok(all),
        }
    }
}

/// Returns `batch` without those columns from number `from` on that are empty in every row.
///
/// # Errors
///
/// None for a valid batch.
pub fn without_empty(batch: &RecordBatch, from: usize) -> Result<RecordBatch, ArrowError> {
    let rows = batch.num_rows();
    let some = |&i: &usize| i < from || batch.column(i).null_count() < rows;
    batch.project(&(0..batch.num_columns()).filter(some).collect::<Vec<_>>())
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

impl Builder {
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
