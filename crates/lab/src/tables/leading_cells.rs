//! Leading cells of every row of an experiment: the point, and the settings that distinguish it.

use super::cell::{Cell, Column, Kind};
use crate::description::Description;
use serde_json::Value as Json;

/// Leading cells of all rows, by point.
#[derive(Clone, Debug, Default)]
pub struct LeadingCells {
    columns: Vec<Column>,
    points: Vec<Vec<OwnedCell>>,
}

/// A leading cell of a point.
#[derive(Clone, Debug)]
enum OwnedCell {
    Text(String),
    Whole(u64),
    Real(f64),
    Empty,
}

impl LeadingCells {
    /// Returns `point`, `variant`, and a column for each key that the points of an experiment differ in.
    #[must_use]
    pub fn of(description: &Description) -> Self {
        let keys: Vec<Column> = description.keys.iter().map(|key| column(description, key)).collect();
        let head = [Column::new("point", Kind::Whole), Column::new("variant", Kind::Text)];
        let points = (0..description.points.len()).map(|point| cells(description, &keys, point)).collect();
        Self { columns: head.into_iter().chain(keys).collect(), points }
    }

    /// Returns no leading cells, for a single run.
    #[must_use]
    pub fn none() -> Self {
        Self { columns: Vec::new(), points: vec![Vec::new()] }
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns a complete row of `point`.
    pub(super) fn row<'a>(&'a self, point: usize, own: &[Cell<'a>]) -> Vec<Cell<'a>> {
        let head = self.points[point].iter().map(|cell| match cell {
            OwnedCell::Text(text) => Cell::Text(text),
            OwnedCell::Whole(i) => Cell::Whole(*i),
            OwnedCell::Real(x) => Cell::Real(*x),
            OwnedCell::Empty => Cell::Empty,
        });
        head.chain(own.iter().copied()).collect()
    }
}

/// Returns the column of a key: numeric if all points with the key have a number.
fn column(description: &Description, key: &str) -> Column {
    let mut values = description.points.iter().filter_map(|p| p.settings.get(key));
    Column::new(key, if values.all(Json::is_number) { Kind::Real } else { Kind::Text })
}

/// Returns number, label and settings of a point, one for each column.
fn cells(description: &Description, keys: &[Column], number: usize) -> Vec<OwnedCell> {
    let point = &description.points[number];
    let label = point.variant.as_ref().unwrap_or(&point.label);
    let cell = |key: &Column| match (key.kind, point.settings.get(&key.name)) {
        (_, None) => OwnedCell::Empty,
        (Kind::Real, Some(value)) => value.as_f64().map_or(OwnedCell::Empty, OwnedCell::Real),
        (_, Some(Json::String(text))) => OwnedCell::Text(text.clone()),
        (_, Some(value)) => OwnedCell::Text(value.to_string()),
    };
    let head = [OwnedCell::Whole(number as u64), OwnedCell::Text(label.clone())];
    head.into_iter().chain(keys.iter().map(cell)).collect()
}
