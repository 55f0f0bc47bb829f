//! Drawing area in CSS pixels.

use super::role::{Role, restyle};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Text};
pub(super) use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};
use std::fmt::Write as _;

/// Units of the drawing for a CSS pixel: plotters has whole units only.
pub(super) const SCALE: f64 = 10.0;
/// Divisor of font sizes in plotters' SVG.
const FONT_FACTOR: f64 = 1.24;

/// Drawing area.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Result of drawing; errors do not occur in memory.
pub(super) type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Parts of a picture that plotters does not support.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// Attributes of the picture, for the script.
    pub(super) data: Vec<(&'static str, String)>,
    /// Elements after the drawing.
    pub(super) elements: String,
}

impl Extras {
    /// Adds a spot with `text` as its tooltip. Units of the drawing.
    pub(super) fn spot(&mut self, (x, y): (i32, i32), text: &str) {
        let text = quick_xml::escape::escape(text);
        write!(
            self.elements,
            r#"<circle class="spot" cx="{x}" cy="{y}" r="60"><title>{text}</title></circle>"#
        )
        .expect("memory takes everything");
    }
}

/// Draws a picture of `width` × `height` CSS pixels. `label`: its description in words.
pub(super) fn picture(
    (width, height): (f64, f64),
    label: &str,
    paint: impl FnOnce(&Area<'_>, &mut Extras) -> DrawResult,
) -> String {
    let mut svg = String::new();
    let mut extras = Extras::default();
    {
        let backend = SVGBackend::with_string(&mut svg, (units(width) as u32, units(height) as u32));
        let area = backend.into_drawing_area();
        paint(&area, &mut extras).expect("drawing into memory does not fail");
        area.present().expect("drawing into memory does not fail");
    }
    restyle(&svg, label, &extras.data, &extras.elements)
}

/// Converts CSS pixels into units of the drawing.
pub(super) fn units(px: f64) -> i32 {
    (px * SCALE).round() as i32
}

/// Returns the style of text in `ink`.
pub(super) fn text_style(ink: Role, px: f64, anchor: HPos) -> TextStyle<'static> {
    let font = ("sans-serif", px * SCALE * FONT_FACTOR).into_font();
    TextStyle { font, color: ink.colour().to_backend_color(), pos: Pos::new(anchor, VPos::Center) }
}

/// Returns the style of a line of `px` CSS pixels in `ink`.
pub(super) fn line_style(ink: Role, px: f64) -> ShapeStyle {
    ink.colour().stroke_width(units(px) as u32)
}

/// Draws a line through points in units of the drawing.
pub(super) fn line(area: &Area<'_>, points: Vec<(i32, i32)>, ink: Role, px: f64) -> DrawResult {
    area.draw(&PathElement::new(points, line_style(ink, px)))
}

/// Draws a filled outline.
pub(super) fn fill(area: &Area<'_>, points: Vec<(i32, i32)>, ink: Role) -> DrawResult {
    area.draw(&Polygon::new(points, ink.colour().filled()))
}

/// Draws a filled circle, all in units of the drawing.
pub(super) fn dot(area: &Area<'_>, at: (i32, i32), radius: u32, ink: Role) -> DrawResult {
    area.draw(&Circle::new(at, radius, ink.colour().filled()))
}

/// Draws a line of text, its middle at height `y`.
pub(super) fn text(area: &Area<'_>, text: &str, at: (i32, i32), style: &TextStyle<'_>) -> DrawResult {
    area.draw(&Text::new(legible(text, MAX_CHARACTERS), at, style.clone()))
}

/// Maximum length of a name in a chart, characters.
const MAX_CHARACTERS: usize = 46;

/// Returns `text` without control characters and cut to `most` characters, with an ellipsis in place of the
/// rest.
pub(crate) fn legible(text: &str, most: usize) -> String {
    let visible =
        |c: char| if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) { '\u{fffd}' } else { c };
    let mut out: String = text.chars().take(most).map(visible).collect();
    if text.chars().nth(most).is_some() {
        out.pop();
        out.push('…');
    }
    out
}
