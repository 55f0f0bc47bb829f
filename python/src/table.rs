//! Tables in Arrow format, by the PyCapsule interface, without pyarrow.

use crate::errors;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// Table of rows and columns, for any library that reads Arrow: `polars.DataFrame(table)`.
#[pyclass(frozen, sequence, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn of(rows: Result<RecordBatch, arrow_schema::ArrowError>) -> PyResult<Self> {
        rows.map(Self).map_err(errors::internal)
    }
}

#[pymethods]
impl Table {
    /// Returns the table as an Arrow stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The types of the columns are the simplest possible; the caller casts them to other types.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns the columns as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(errors::internal)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.num_rows(), self.0.num_columns())
    }

    /// Iterates over the rows, each a dict.
    fn __iter__(table: PyRef<'_, Self>) -> Rows {
        Rows { table: table.into(), next: 0 }
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns column `key` as a list if `key` is a name, row number `key` as a dict if it is a number.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = key.extract::<String>() {
            return Ok(self.column(py, &name)?.into_any());
        }
        let (number, rows) = (key.extract::<isize>()?, self.0.num_rows());
        let row = if number < 0 { number.checked_add_unsigned(rows) } else { Some(number) };
        let row = row.and_then(|row| usize::try_from(row).ok()).filter(|row| *row < rows);
        let row = row.ok_or_else(|| PyIndexError::new_err(format!("there are {rows} rows")))?;
        Ok(self.row(py, row)?.into_any())
    }

    /// Returns a dict of columns, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for name in self.columns() {
            all.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(all)
    }
}

/// Iterator over the rows of a table.
#[pyclass(module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Rows {
    table: Py<Table>,
    next: usize,
}

#[pymethods]
impl Rows {
    fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let table = self.table.get();
        if self.next == table.0.num_rows() {
            return Ok(None);
        }
        self.next += 1;
        table.row(py, self.next - 1).map(Some)
    }
}

impl Table {
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.0.column_by_name(name) else {
            let known = self.columns().join(", ");
            return Err(PyKeyError::new_err(format!("there is no column {name:?}; there are {known}")));
        };
        let cells: PyResult<Vec<_>> = (0..self.0.num_rows()).map(|row| cell(py, column, row)).collect();
        PyList::new(py, cells?)
    }

    fn row<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        for (field, column) in self.0.schema().fields().iter().zip(self.0.columns()) {
            row.set_item(field.name(), cell(py, column, number)?)?;
        }
        Ok(row)
    }
}

/// Returns a cell: text, a number, or `None`.
fn cell<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    if let Some(text) = column.as_string_opt::<i32>() {
        return Ok(text.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(whole) = column.as_primitive_opt::<UInt64Type>() {
        return Ok(whole.value(row).into_pyobject(py)?.into_any());
    }
    let real = column.as_primitive::<Float64Type>();
    Ok(real.value(row).into_pyobject(py)?.into_any())
}
