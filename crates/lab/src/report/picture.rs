//! A sheet to draw on, in CSS pixels.

use super::ink::{Ink, restyle};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Text};
pub(super) use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};
use std::fmt::Write as _;

/// Units of the drawing for a CSS pixel: plotters knows whole units only.
pub(super) const SCALE: f64 = 10.0;
/// plotters' SVG writes font sizes divided by this.
const FONT_FACTOR: f64 = 1.24;

/// What is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What can go wrong: nothing, in memory.
pub(super) type Painted = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Things around a drawing that plotters does not know.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// Attributes of the picture, for the script.
    pub(super) data: Vec<(&'static str, String)>,
    /// Elements after the drawing.
    pub(super) elements: String,
}

impl Extras {
    /// A spot that tells `text` when it is pointed at. Units of the drawing.
    pub(super) fn spot(&mut self, (x, y): (i32, i32), text: &str) {
        let text = quick_xml::escape::escape(text);
        write!(
            self.elements,
            r#"<circle class="spot" cx="{x}" cy="{y}" r="60"><title>{text}</title></circle>"#
        )
        .expect("memory takes everything");
    }
}

/// Draws a picture of `width` × `height` CSS pixels. `label` says in words what it shows.
pub(super) fn picture(
    (width, height): (f64, f64),
    label: &str,
    paint: impl FnOnce(&Area<'_>, &mut Extras) -> Painted,
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

/// CSS pixels in units of the drawing.
pub(super) fn units(px: f64) -> i32 {
    (px * SCALE).round() as i32
}

/// Text in `ink`.
pub(super) fn text_style(ink: Ink, px: f64, anchor: HPos) -> TextStyle<'static> {
    let font = ("sans-serif", px * SCALE * FONT_FACTOR).into_font();
    TextStyle { font, color: ink.colour().to_backend_color(), pos: Pos::new(anchor, VPos::Center) }
}

/// A line of `px` CSS pixels in `ink`.
pub(super) fn line_style(ink: Ink, px: f64) -> ShapeStyle {
    ink.colour().stroke_width(units(px) as u32)
}

/// A line through points in units of the drawing.
pub(super) fn line(area: &Area<'_>, points: Vec<(i32, i32)>, ink: Ink, px: f64) -> Painted {
    area.draw(&PathElement::new(points, line_style(ink, px)))
}

/// A filled outline.
pub(super) fn fill(area: &Area<'_>, points: Vec<(i32, i32)>, ink: Ink) -> Painted {
    area.draw(&Polygon::new(points, ink.colour().filled()))
}

/// A filled circle, all in units of the drawing.
pub(super) fn dot(area: &Area<'_>, at: (i32, i32), radius: u32, ink: Ink) -> Painted {
    area.draw(&Circle::new(at, radius, ink.colour().filled()))
}

/// A line of text, its middle at height `y`.
pub(super) fn text(area: &Area<'_>, text: &str, at: (i32, i32), style: &TextStyle<'_>) -> Painted {
    area.draw(&Text::new(legible(text, MOST_CHARACTERS), at, style.clone()))
}

/// Longest name in a chart.
const MOST_CHARACTERS: usize = 46;

/// `text` without control characters and cut to `most` characters, with an ellipsis in the place of the rest.
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
