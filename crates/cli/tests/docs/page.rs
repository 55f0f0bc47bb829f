//! Page: its links, its anchors, and its examples.

use crate::docs::snippet::Language;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Page of the documentation.
pub(crate) struct Page {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Path relative to the root of the repository.
    pub(crate) name: String,
    /// Text of the page.
    pub(crate) text: String,
    /// Line and target of each link and picture.
    pub(crate) links: Vec<(usize, String)>,
    /// Line and text of each code span.
    pub(crate) code: Vec<(usize, String)>,
    /// Anchors, without `#`.
    pub(crate) anchors: Vec<String>,
    /// Code blocks, and commands before them, in order.
    pub(crate) examples: Vec<Example>,
}

/// Code block, or command before the next one.
pub(crate) struct Example {
    pub(crate) line: usize,
    /// Content of the block.
    pub(crate) text: String,
    /// Position in the page.
    pub(crate) at: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) is_slow: bool,
}

/// Kind of an example, which decides how it is tested.
pub(crate) enum Kind {
    /// `$ command`, and its output.
    Console,
    /// Output of this command.
    Output(String),
    /// Commands of hopline, one on each line. They have to succeed; simulations are shortened.
    Commands,
    /// Shell script, run without changes.
    Script,
    /// File of this name.
    File(FileKind, String),
    /// Lines of this file.
    Excerpt(PathBuf),
    /// Program.
    Snippet(Language),
    /// Command that prepares the next block, and is not shown.
    Setup(String),
    /// Not run, for a reason on the page.
    NotRun,
    /// Neither a kind nor a reason is given.
    Unmarked,
}

/// Check of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Any,
    Scenario,
    /// A scenario that needs no flows.
    Network,
    Plan,
    Proxy,
}

impl Page {
    /// Reads the page at `path`.
    pub(crate) fn load(path: &Path) -> Self {
        let root = crate::docs::root();
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        Self::parse(path, name, std::fs::read_to_string(path).unwrap())
    }

    /// Parses the page `text`, called `name`, as if it were at `path`.
    pub(crate) fn parse(path: &Path, name: String, text: String) -> Self {
        let mut reader = Reader { path, text: &text, found: Found::default() };
        reader.read();
        let Found { links, code, anchors, examples, .. } = reader.found;
        Self { path: path.to_owned(), name, links, code, anchors, examples, text }
    }
}

/// Parts found so far.
#[derive(Default)]
struct Found {
    links: Vec<(usize, String)>,
    code: Vec<(usize, String)>,
    anchors: Vec<String>,
    headings: BTreeMap<String, usize>,
    examples: Vec<Example>,
    /// HTML comments since the last block of another kind.
    marks: Vec<String>,
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    found: Found,
}

impl Reader<'_> {
    fn read(&mut self) {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
        let mut parser = Parser::new_ext(self.text, options).into_offset_iter();
        while let Some((event, at)) = parser.next() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    self.found.links.push((self.line(at.start), dest_url.into_string()));
                }
                Event::Code(code) => self.found.code.push((self.line(at.start), code.into_string())),
                Event::Start(Tag::Heading { level, .. }) => self.heading(level, &mut parser),
                Event::Start(Tag::HtmlBlock) => self.comments(&self.text[at.clone()], at.start),
                Event::Start(Tag::CodeBlock(kind)) => self.block(&kind, &mut parser),
                Event::Start(Tag::Paragraph | Tag::Table(_) | Tag::List(_)) => self.found.marks.clear(),
                _ => {}
            }
        }
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    fn heading<'e>(
        &mut self,
        level: HeadingLevel,
        parser: &mut impl Iterator<Item = (Event<'e>, Range<usize>)>,
    ) {
        let mut title = String::new();
        for (event, at) in parser {
            match event {
                Event::End(TagEnd::Heading(ended)) if ended == level => break,
                Event::Text(text) | Event::Code(text) => title.push_str(&text),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    self.found.links.push((self.line(at.start), dest_url.into_string()));
                }
                _ => {}
            }
        }
        let anchor = anchor(&title);
        let earlier = self.found.headings.entry(anchor.clone()).or_default();
        self.found.anchors.push(if *earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
        *earlier += 1;
        self.found.marks.clear();
    }

    fn comments(&mut self, html: &str, at: usize) {
        for comment in html.split("<!--").skip(1) {
            let mark = comment.split("-->").next().unwrap_or_default().trim();
            match mark.split_once(": ") {
                Some(("setup", command)) => {
                    let line = self.line(at);
                    let kind = Kind::Setup(command.to_owned());
                    let example = Example { line, text: String::new(), at: at..at, kind, is_slow: false };
                    self.found.examples.push(example);
                }
                _ => self.found.marks.push(mark.to_owned()),
            }
        }
    }

    fn block<'e>(
        &mut self,
        of: &CodeBlockKind<'_>,
        parser: &mut impl Iterator<Item = (Event<'e>, Range<usize>)>,
    ) {
        let mut text = String::new();
        let mut whole: Option<Range<usize>> = None;
        for (event, at) in parser {
            match event {
                Event::Text(more) => {
                    text.push_str(&more);
                    whole = Some(whole.map_or(at.start, |whole| whole.start)..at.end);
                }
                _ => break,
            }
        }
        let at = whole.unwrap_or_default();
        let marks = std::mem::take(&mut self.found.marks);
        let kind = self.kind(of, &text, &marks);
        let is_slow = marks.iter().any(|mark| mark == "slow");
        self.found.examples.push(Example { line: self.line(at.start), text, at, kind, is_slow });
    }

    fn kind(&self, of: &CodeBlockKind<'_>, text: &str, marks: &[String]) -> Kind {
        for (word, rest) in marks.iter().filter_map(|mark| mark.split_once(": ")) {
            let file = |kind| Kind::File(kind, rest.to_owned());
            match word {
                "file" => return file(FileKind::Any),
                "scenario" => return file(FileKind::Scenario),
                "network" => return file(FileKind::Network),
                "plan" => return file(FileKind::Plan),
                "proxy" => return file(FileKind::Proxy),
                "prints" => return Kind::Output(rest.to_owned()),
                "excerpt" => return Kind::Excerpt(self.path.parent().unwrap().join(rest)),
                "not run" => return Kind::NotRun,
                _ => {}
            }
        }
        for mark in marks {
            match mark.as_str() {
                "run" => return Kind::Script,
                "run over a link" => return Kind::Snippet(Language::ShellOverLink),
                _ => {}
            }
        }
        let info = match of {
            CodeBlockKind::Fenced(info) => info.as_ref(),
            CodeBlockKind::Indented => "sh",
        };
        match info {
            "text" | "console" | "sh" | "" if text.starts_with("$ hopline ") => Kind::Console,
            "sh" => Kind::Commands,
            "python" => Kind::Snippet(Language::Python),
            "sql" => Kind::Snippet(Language::Sql),
            _ => Kind::Unmarked,
        }
    }
}

/// Returns the anchor of a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
