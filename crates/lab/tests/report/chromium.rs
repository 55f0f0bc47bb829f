//! The report in Chromium: pixels show whether charts were drawn.

use crate::sample;
use hopline_lab::report::{Report, html};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Window that shows a whole page at once.
const WIDTH: u32 = 1200;
const HEIGHT: u32 = 7000;
/// Time after which the browser counts as hanging, seconds.
const TIMEOUT_SECONDS: &str = "120";

/// Colour scheme of the reader's system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

/// Makes Chromium open a page, do `task`, and exit. Returns its stdout and stderr.
fn chromium(page: &Path, scheme: Scheme, task: &str) -> (String, String) {
    chromium_with(page, scheme, &[task])
}

/// As [`chromium`], with several options.
pub(crate) fn chromium_with(page: &Path, scheme: Scheme, options: &[&str]) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        TIMEOUT_SECONDS,
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
    ]);
    command.args(["--disable-quic", "--no-first-run", "--disable-background-networking"]);
    command.args([
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--window-size={WIDTH},{HEIGHT}"));
    if scheme == Scheme::Dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let output = command.args(options).arg(format!("file://{}", page.display())).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "chromium failed or took longer than {TIMEOUT_SECONDS} s: {stderr}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), stderr)
}

/// Returns complaints of the browser: errors of scripts, refused or failed requests.
pub(crate) fn browser_errors(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("CONSOLE")).collect()
}

/// A part of a page, in pixels.
#[derive(Clone, Debug)]
struct Place {
    /// Name of the chart, and for panels the variant.
    name: String,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

/// Script that replaces the page's text by the places of its charts.
const PROBE: &str = "<script>(function () {
  var rows = Array.from(document.querySelectorAll('[data-chart]')).filter(function (figure) {
    return !figure.closest('[hidden]');
  }).map(function (figure) {
    var panel = figure.closest('.panel');
    var box = figure.querySelector('.plot, .chart, .map').getBoundingClientRect();
    var name = figure.dataset.chart + (panel ? '-' + panel.dataset.variant : '');
    return [name, box.x, box.y, box.width, box.height].join(' ');
  });
  document.body.textContent = 'PLACES;' + rows.join(';') + ';END';
})();</script></body>";

fn places(folder: &Path, page: &str) -> Vec<Place> {
    let probe = folder.join("probe.html");
    std::fs::write(&probe, page.replace("</body>", PROBE)).unwrap();
    let (dom, _) = chromium(&probe, Scheme::Light, "--dump-dom");
    let rows = dom.split("PLACES;").nth(1).unwrap().split(";END").next().unwrap();
    let place = |row: &str| {
        let fields: Vec<&str> = row.split(' ').collect();
        let pixels = |i: usize| fields[i].parse::<f64>().unwrap().round() as u32;
        Place { name: fields[0].into(), x: pixels(1), y: pixels(2), width: pixels(3), height: pixels(4) }
    };
    rows.split(';').map(place).collect()
}

/// A screenshot.
struct Picture {
    pixels: Vec<[u8; 3]>,
    width: u32,
}

impl Picture {
    fn read(path: &Path) -> Self {
        let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let channels = info.color_type.samples();
        assert!(channels >= 3, "{:?}", info.color_type);
        let pixels = bytes[..info.buffer_size()].chunks_exact(channels).map(|p| [p[0], p[1], p[2]]).collect();
        Self { pixels, width: info.width }
    }

    fn inside(&self, place: &Place) -> impl Iterator<Item = [u8; 3]> {
        let rows = place.y..place.y + place.height;
        rows.flat_map(move |y| (place.x..place.x + place.width).map(move |x| (x, y)))
            .filter_map(|(x, y)| self.pixels.get((y * self.width + x) as usize).copied())
    }

    /// Returns the number of pixels of `colour` in `place`, with a tolerance for smoothing.
    fn count(&self, place: &Place, colour: [u8; 3]) -> usize {
        let near = |p: &[u8; 3]| p.iter().zip(colour).all(|(a, b)| a.abs_diff(b) <= 8);
        self.inside(place).filter(near).count()
    }
}

fn screenshot(folder: &Path, page: &Path, scheme: Scheme) -> Picture {
    let file = folder.join(format!("{scheme:?}.png"));
    let (_, stderr) = chromium(page, scheme, &format!("--screenshot={}", file.display()));
    assert_eq!(browser_errors(&stderr), [""; 0], "{scheme:?}");
    Picture::read(&file)
}

/// Returns the value of a colour variable of the page.
pub(crate) fn colour(page: &str, variable: &str, scheme: Scheme) -> [u8; 3] {
    let declared = format!("{variable}:");
    let mut values = page.match_indices(&declared).map(|(at, found)| page[at + found.len()..].trim_start());
    let value = if scheme == Scheme::Light { values.next() } else { values.nth(1) }.unwrap();
    let channel = |i: usize| u8::from_str_radix(&value[1 + 2 * i..3 + 2 * i], 16).unwrap();
    [channel(0), channel(1), channel(2)]
}

/// Returns the variables of the colours that a chart must show.
fn expected(chart: &str) -> Vec<String> {
    let variants: Vec<usize> = match chart.rsplit_once('-') {
        Some(("sweep", _)) => vec![0, 1, 2, 3, 6],
        Some(("family", _)) => vec![0, 1],
        _ if chart == "gains" => vec![1, 2, 3],
        _ if chart == "map" => vec![0, 1],
        _ => vec![0, 1, 2, 3],
    };
    variants.into_iter().map(|v| format!("--v{v}")).collect()
}

fn write(folder: &Path, report: &Report) -> (PathBuf, String) {
    let (path, page) = (folder.join("report.html"), html(report));
    std::fs::write(&path, &page).unwrap();
    (path, page)
}

pub(crate) fn every_chart_shows_every_variant_in_the_light_and_in_the_dark() {
    let folder = tempfile::tempdir().unwrap();
    let (path, page) = write(folder.path(), &sample::normal(20));
    let places = places(folder.path(), &page);
    let names: Vec<&str> = places.iter().map(|p| p.name.as_str()).collect();
    let compared = ["means", "gains", "family-0", "sweep-0", "sweep-1", "sweep-2", "sweep-3"];
    let over_time = ["goodput", "window", "delay", "queue", "delays", "map"];
    assert_eq!(names, [&compared[..], &over_time].concat());
    for scheme in [Scheme::Light, Scheme::Dark] {
        let picture = screenshot(folder.path(), &path, scheme);
        let ground = colour(&page, "--ground", scheme);
        assert_eq!(picture.pixels[0], ground, "{scheme:?}");
        for place in &places {
            assert!(place.x + place.width <= WIDTH && place.y + place.height <= HEIGHT, "{place:?}");
            let drawn = picture.inside(place).filter(|pixel| *pixel != ground).count();
            assert!(
                drawn > (place.width * place.height / 100) as usize,
                "{place:?} in {scheme:?}: {drawn} pixels"
            );
            for variable in expected(&place.name) {
                let count = picture.count(place, colour(&page, &variable, scheme));
                assert!(count >= 12, "{place:?} in {scheme:?}: {count} pixels of {variable}");
            }
        }
    }
}

pub(crate) fn a_complete_page_opens_without_browser_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = write(folder.path(), &sample::several());
    let (dom, stderr) = chromium(&path, Scheme::Light, "--dump-dom");
    assert_eq!(browser_errors(&stderr), [""; 0]);
    assert!(dom.contains("class=\"js\""), "the script ran");
    assert!(dom.contains("<option value=\"19\">n19</option>"), "the script listed the nodes of a map");
}

/// Script that uses the page like a reader, and records the results.
const READER: &str = "<script>(function () {
  var seen = [];
  function set(control, value) {
    control.value = value;
    control.dispatchEvent(new Event('change', { bubbles: true }));
    control.dispatchEvent(new Event('input', { bubbles: true }));
  }
  function count(root, selector) { return root.querySelectorAll(selector).length; }
  var walk = document.querySelector('#experiment-2');
  var series = walk.querySelector('.timeline'), goodput = series.querySelector('[data-chart=goodput]');
  seen.push(count(goodput, '.flow'));
  set(series.querySelector('[name=variant]'), '1');
  seen.push(count(goodput, '.flow'));
  set(series.querySelector('[name=flow]'), 'each');
  seen.push(count(goodput, '.flow'));
  set(series.querySelector('[name=flow]'), 'sum');
  seen.push(count(series, '.over-time:not([hidden])'));
  set(series.querySelector('[name=flow]'), '3');
  set(series.querySelector('[name=variant]'), '');
  var told = [];
  walk.addEventListener('hopline:time', function (event) { told.push(event.detail.kind + ' ' + Math.round(event.detail.t)); });
  var plot = goodput.querySelector('.plot'), box = plot.getBoundingClientRect();
  ['pointermove', 'click'].forEach(function (type) {
    plot.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + 40 }));
  });
  var cursors = Array.from(series.querySelectorAll('.cursor')).filter(function (path) { return path.getAttribute('d'); });
  told.push(walk.querySelector('.network output').textContent);
  seen.push(told.join(', ') + ' | ' + cursors.length + ' | ' + goodput.querySelector('.readings').textContent.slice(-9));
  var map = walk.querySelector('.network'), node = map.querySelector('.node');
  var before = node.getAttribute('cx');
  set(map.querySelector('input'), 100);
  seen.push(before !== node.getAttribute('cx') && map.querySelector('output').textContent);
  set(map.querySelector('select'), '7');
  var chosen = map.querySelectorAll('.node')[7], reach = map.querySelector('.reach');
  seen.push(chosen.classList.contains('selected') && chosen.getAttribute('cx') === reach.getAttribute('cx'));
  var dots = document.querySelector('[data-chart=means] svg'), spot = dots.querySelector('.spot').getBoundingClientRect();
  dots.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: spot.x + 4, clientY: spot.y + 4 }));
  seen.push(document.querySelector('.tip').textContent);
  document.body.textContent = 'SEEN;' + seen.join(';') + ';END';
})();</script></body>";

pub(crate) fn a_reader_can_select_runs_variants_flows_nodes_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let (path, page) = write(folder.path(), &sample::several());
    std::fs::write(&path, page.replace("</body>", READER)).unwrap();
    let (dom, stderr) = chromium(&path, Scheme::Light, "--dump-dom");
    assert_eq!(browser_errors(&stderr), [""; 0]);
    let seen: Vec<&str> =
        dom.split("SEEN;").nth(1).unwrap().split(";END").next().unwrap().split(';').collect();
    // Three variants, one of them, its eleven flows, their sum in a chart alone; then a crosshair in all four
    // charts.
    assert_eq!(seen[..4], ["3", "1", "11", "1"], "{seen:?}");
    let mut crosshair = seen[4].split(" | ");
    let told: Vec<&str> = crosshair.next().unwrap().split(", ").collect();
    let [hover, seek, map] = told[..] else { panic!("{seen:?}") };
    assert!(map.starts_with('5') || map.starts_with('6'), "the map has gone there, too: {seen:?}");
    let second = |told: &str, kind: &str| told.strip_prefix(kind).unwrap().trim().parse::<u32>().unwrap();
    assert!((55..65).contains(&second(hover, "hover")), "about the middle of 120 s: {seen:?}");
    assert!((55..65).contains(&second(seek, "seek")), "{seen:?}");
    assert_eq!(crosshair.next(), Some("4"), "{seen:?}");
    assert!(crosshair.next().unwrap().ends_with(" s"), "{seen:?}");
    assert_eq!(seen[5..7], ["100.0 s", "true"], "{seen:?}");
    assert!(seen[7].starts_with("error_rate=0e0 transport=tcp-reno, run 1: 1"), "{seen:?}");
}

pub(crate) fn without_scripts_charts_are_shown_and_controls_are_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let (path, page) = write(folder.path(), &sample::normal(20));
    let silent = page.replace("script-src 'unsafe-inline'; ", "");
    assert_ne!(silent, page);
    std::fs::write(&path, &silent).unwrap();
    let file = folder.path().join("silent.png");
    let (_, stderr) = chromium(&path, Scheme::Light, &format!("--screenshot={}", file.display()));
    assert!(stderr.contains("Refused to execute") || stderr.contains("Content Security Policy"), "{stderr}");
    let (dom, _) = chromium(&path, Scheme::Light, "--dump-dom");
    assert!(dom.contains("<html lang=\"en\">"), "the script did not run, so no control is shown");
    let picture = Picture::read(&file);
    let all = Place { name: "page".into(), x: 0, y: 0, width: WIDTH, height: HEIGHT };
    for v in 0..4 {
        let count = picture.count(&all, colour(&page, &format!("--v{v}"), Scheme::Light));
        assert!(count > 1000, "{count} pixels of variant {v}");
    }
}

pub(crate) fn a_browser_error_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let (path, page) = write(folder.path(), &sample::normal(1));
    let faulty = "<script>missing();</script><img src=\"http://127.0.0.1:9/x.png\"></body>";
    std::fs::write(&path, page.replace("</body>", faulty)).unwrap();
    let (_, stderr) = chromium(&path, Scheme::Light, "--dump-dom");
    let found = browser_errors(&stderr).join("\n");
    assert!(found.contains("missing is not defined"), "{stderr}");
    assert!(found.contains("Content Security Policy"), "a request is refused and that is said: {stderr}");
}
