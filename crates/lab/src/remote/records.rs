//! Records as a Parquet file: the result of a batch.

use super::RemoteError;
use crate::record::Record;
use crate::store::parquet_table::properties;
use crate::tables::{Batch, Cell, Column, Kind};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Point and run, and the record in the format of journals.
const COLUMNS: [(&str, Kind); 3] = [("point", Kind::Whole), ("run", Kind::Whole), ("record", Kind::Text)];

/// Returns `records` as a file.
pub(super) fn write(records: &[Record]) -> Result<Vec<u8>, RemoteError> {
    let columns = COLUMNS.map(|(name, kind)| Column { name: name.to_owned(), kind });
    let mut rows = Batch::new(&columns);
    for record in records {
        let json = serde_json::to_string(record).expect("a record is made of strings and numbers");
        rows.push(&[Cell::Whole(record.point as u64), Cell::Whole(record.run), Cell::Text(&json)]);
    }
    file(&mut rows).map_err(|e| RemoteError::Damaged(e.to_string()))
}

fn file(rows: &mut Batch) -> parquet::errors::Result<Vec<u8>> {
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties()))?;
    writer.write(&rows.take()?)?;
    writer.into_inner()
}

/// Reads the records of a file.
pub(super) fn read(file: &[u8]) -> Result<Vec<Record>, RemoteError> {
    let damaged = |e: &dyn std::fmt::Display| RemoteError::Damaged(e.to_string());
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(file));
    let reader = reader.and_then(|reader| reader.build()).map_err(|e| damaged(&e))?;
    let mut records = Vec::new();
    for batch in reader {
        records.extend(of_batch(&batch.map_err(|e| damaged(&e))?)?);
    }
    Ok(records)
}

fn of_batch(batch: &RecordBatch) -> Result<Vec<Record>, RemoteError> {
    let texts = batch.column_by_name("record").and_then(|column| column.as_string_opt::<i32>());
    let texts = texts.ok_or_else(|| RemoteError::Damaged("it has no records".into()))?;
    let record = |text: Option<&str>| {
        serde_json::from_str(text.unwrap_or_default()).map_err(|e| RemoteError::Damaged(e.to_string()))
    };
    texts.iter().map(record).collect()
}
