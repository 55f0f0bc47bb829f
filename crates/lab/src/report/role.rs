//! Meanings of strokes and fills. Charts are drawn in placeholder colours; [`restyle`] turns each into a CSS
//! class, so that the style sheet alone decides their look: in light mode, in dark mode, on paper.

use plotters::style::RGBColor;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer};

/// Colours of variants, on light and on dark ground: the palette of Okabe and Ito (Color Universal Design,
/// 2008) without its yellow, which is hardly visible on white paper, and with its black replaced by grey,
/// which is visible on both grounds. The baseline is blue.
pub(super) const VARIANT_COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#3d9be0"),
    ("#d55e00", "#ee7a24"),
    ("#009e73", "#1fb98d"),
    ("#b65a94", "#d68cb5"),
    ("#c88400", "#e8a417"),
    ("#3f9bd1", "#7cc6f2"),
    ("#5f6770", "#a9b1ba"),
];

/// Number of dash patterns that distinguish flows.
pub(super) const DASHES: usize = 4;

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Axes and ticks.
    Axis,
    /// Grid lines.
    Grid,
    /// Names and numbers.
    Text,
    /// Titles of axes.
    Muted,
    /// The line of no difference.
    Zero,
    /// Mean, interval and curve of a variant.
    Variant(usize),
    /// Single runs of a variant.
    Single(usize),
    /// Band of a variant.
    Band(usize),
    /// A flow of a variant.
    Flow {
        /// The variant.
        variant: usize,
        /// The flow's place in the chart, below 256.
        flow: usize,
    },
}

impl Role {
    /// Returns its placeholder colour.
    pub(super) fn colour(self) -> RGBColor {
        let slot = |i: usize| (i % VARIANT_COLOURS.len()) as u8;
        match self {
            Self::Axis => RGBColor(1, 0, 0),
            Self::Grid => RGBColor(1, 0, 1),
            Self::Text => RGBColor(1, 0, 2),
            Self::Muted => RGBColor(1, 0, 3),
            Self::Zero => RGBColor(1, 0, 4),
            Self::Variant(i) => RGBColor(2, slot(i), 0),
            Self::Single(i) => RGBColor(3, slot(i), 0),
            Self::Band(i) => RGBColor(4, slot(i), 0),
            Self::Flow { variant, flow } => RGBColor(5, slot(variant), flow.min(255) as u8),
        }
    }
}

/// Returns the classes of a placeholder colour, and the flow that it is for.
fn class(colour: &str) -> Option<(String, Option<u8>)> {
    let number = u32::from_str_radix(colour.strip_prefix('#')?, 16).ok()?;
    let [_, kind, slot, rest] = number.to_be_bytes();
    Some(match (kind, rest) {
        (1, 0) => ("axis".into(), None),
        (1, 1) => ("grid".into(), None),
        (1, 2) => ("text".into(), None),
        (1, 3) => ("muted".into(), None),
        (1, _) => ("zero".into(), None),
        (2, _) => (format!("v{slot}"), None),
        (3, _) => (format!("v{slot} single"), None),
        (4, _) => (format!("v{slot} band"), None),
        (_, flow) => (format!("v{slot} flow d{}", usize::from(flow) % DASHES), Some(flow)),
    })
}

/// Returns the picture with classes in place of colours and without attributes that the style sheet sets, as
/// an element of a page: described by `label`, with `data` attributes for the script, and `more` elements at
/// its end.
pub(super) fn restyle(svg: &str, label: &str, data: &[(&str, String)], more: &str) -> String {
    let mut reader = Reader::from_str(svg);
    reader.config_mut().trim_text(true);
    let mut writer = Writer::new(Vec::new());
    loop {
        let event = reader.read_event().expect("plotters writes well-formed SVG");
        let event = match event {
            Event::Eof => break,
            Event::Start(root) if root.name().as_ref() == "svg" => {
                Event::Start(root_element(&root, label, data))
            }
            Event::Start(element) => Event::Start(element_with_class(&element)),
            Event::Empty(element) => Event::Empty(element_with_class(&element)),
            Event::End(end) if end.name().as_ref() == "svg" => {
                std::io::Write::write_all(writer.get_mut(), more.as_bytes())
                    .expect("memory takes everything");
                Event::End(end)
            }
            other => other,
        };
        writer.write_event(event).expect("memory takes everything");
    }
    String::from_utf8(writer.into_inner()).expect("what was text stays text")
}

fn root_element(root: &BytesStart<'_>, label: &str, data: &[(&str, String)]) -> BytesStart<'static> {
    let mut out = BytesStart::new("svg");
    out.push_attribute(("class", "chart"));
    out.push_attribute(("role", "img"));
    out.push_attribute(("aria-label", label));
    let view_box = root.attributes().flatten().find(|a| a.key.as_ref() == "viewBox");
    out.extend_attributes(view_box);
    out.extend_attributes(data.iter().map(|(name, value)| (*name, value.as_str())));
    out
}

fn element_with_class(element: &BytesStart<'_>) -> BytesStart<'static> {
    let mut out = BytesStart::new(element.name().as_ref().to_owned());
    for attribute in element.attributes().flatten() {
        let value = &attribute.value;
        match attribute.key.as_ref() {
            "opacity" | "font-family" => {}
            "stroke-width" if value == "1" => {}
            key @ ("fill" | "stroke") => {
                if let Some((class, flow)) = class(value) {
                    let class = format!("{class} {}", if key == "fill" { "f" } else { "l" });
                    out.push_attribute(("class", class.as_str()));
                    if let Some(flow) = flow {
                        out.push_attribute(("data-flow", flow.to_string().as_str()));
                    }
                }
            }
            "points" => out.push_attribute(("points", value.trim_end())),
            _ => out.push_attribute(attribute),
        }
    }
    out
}
