//! One line of a movement file.

use crate::movements::quantity::Quantity;
use crate::movements::text_error::{TextError, shorten};
use core::ops::Range;
use hopline_core::Instant;
use hopline_radio::mobility::{Position, SetdestCommand};

/// Content of a line.
pub(super) enum Statement {
    /// Nothing that moves a node: blank, a comment, `set-dist`.
    Nothing,
    /// `$node_(N) set X_ value`.
    Place(NodeRef, Axis, f64),
    /// `$ns_ at t "$node_(N) setdest x y speed"`.
    SetDest(NodeRef, SetdestCommand),
}

/// A node as the line names it.
pub(super) struct NodeRef {
    pub(super) index: u32,
    /// Bytes of the line.
    pub(super) range: Range<usize>,
}

/// A coordinate.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    X,
    Y,
    Z,
}

const PLACEMENT_EXAMPLE: &str = "`$node_(0) set X_ 83.4`";
const MOVE_EXAMPLE: &str = "`$ns_ at 2.0 \"$node_(0) setdest 90.4 44.8 1.3\"`";

/// Reads one line, without its line end.
pub(super) fn parse(line: &str) -> Result<Statement, TextError> {
    let mut words = Words { line, at: 0, end: line.len() };
    if words.at_end() || words.rest().starts_with('#') {
        return Ok(Statement::Nothing);
    }
    let statement = match words.variable()? {
        Variable::Node(node) => placement(&mut words, node)?,
        Variable::Plain => {
            let verb = words.word("`at` or `set-dist`")?;
            match verb.text {
                "at" => scheduled(&mut words)?,
                "set-dist" => distance(&mut words)?,
                _ => return Err(verb.unknown(format!("expected {MOVE_EXAMPLE} or `$god_ set-dist 0 1 2`"))),
            }
        }
    };
    words.finish_line()?;
    Ok(statement)
}

/// Parses `set X_ value`, after the node.
fn placement(words: &mut Words<'_>, node: NodeRef) -> Result<Statement, TextError> {
    let verb = words.word("`set`")?;
    match verb.text {
        "set" => {}
        "setdest" => return Err(verb.flaw("`setdest` has no time", format!("expected {MOVE_EXAMPLE}"))),
        _ => return Err(verb.unknown(format!("expected {PLACEMENT_EXAMPLE} or {MOVE_EXAMPLE}"))),
    }
    let name = words.word("X_, Y_ or Z_")?;
    let (axis, quantity) = match name.text {
        "X_" => (Axis::X, Quantity::X),
        "Y_" => (Axis::Y, Quantity::Y),
        "Z_" => (Axis::Z, Quantity::Ground),
        _ => return Err(name.unknown("expected X_, Y_ or Z_".to_owned())),
    };
    Ok(Statement::Place(node, axis, words.number(quantity)?))
}

/// Parses `t "…"`, after `at`.
fn scheduled(words: &mut Words<'_>) -> Result<Statement, TextError> {
    let at = words.instant()?;
    let mut inner = words.quoted()?;
    let statement = match inner.variable()? {
        Variable::Node(node) => {
            let verb = inner.word("`setdest`")?;
            if verb.text != "setdest" {
                return Err(verb.unknown(format!("a node can only be told to move: expected {MOVE_EXAMPLE}")));
            }
            let to = Position { x_m: inner.number(Quantity::X)?, y_m: inner.number(Quantity::Y)? };
            Statement::SetDest(node, SetdestCommand { at, to, speed_mps: inner.number(Quantity::Speed)? })
        }
        Variable::Plain => {
            let verb = inner.word("`set-dist`")?;
            if verb.text != "set-dist" {
                return Err(verb.unknown(format!("expected {MOVE_EXAMPLE} or `\"$god_ set-dist 0 1 2\"`")));
            }
            distance(&mut inner)?
        }
    };
    inner.finish()?;
    Ok(statement)
}

/// Parses `a b hops`, after `set-dist`: checked and forgotten.
fn distance(words: &mut Words<'_>) -> Result<Statement, TextError> {
    for quantity in [Quantity::Node, Quantity::Node, Quantity::Hops] {
        words.number(quantity)?;
    }
    Ok(Statement::Nothing)
}

enum Variable {
    /// `$name(N)`.
    Node(NodeRef),
    /// `$name`.
    Plain,
}

struct Word<'a> {
    text: &'a str,
    at: usize,
}

impl Word<'_> {
    fn flaw(&self, message: impl Into<String>, help: impl Into<String>) -> TextError {
        TextError::new(self.at..self.at + self.text.len(), message, help)
    }

    fn unknown(&self, help: String) -> TextError {
        self.flaw(format!("`{}` is not known here", shorten(self.text)), help)
    }
}

/// The words of a part of a line, from left to right.
struct Words<'a> {
    line: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..self.end]
    }

    /// Skips blanks; whether nothing is left.
    fn at_end(&mut self) -> bool {
        self.at = self.end - self.rest().trim_start_matches(is_blank).len();
        self.at == self.end
    }

    fn here(&self) -> Range<usize> {
        self.at..self.at + self.rest().chars().next().map_or(0, char::len_utf8)
    }

    /// Returns the next word; `expected` says what it should be if there is none.
    fn word(&mut self, expected: &str) -> Result<Word<'a>, TextError> {
        self.at_end();
        let rest = self.rest();
        let text = &rest[..rest.find(|c| is_blank(c) || c == '"' || c == ';').unwrap_or(rest.len())];
        if text.is_empty() {
            let message = rest.chars().next().map_or_else(
                || "something is missing here".to_owned(),
                |c| format!("`{}` is out of place", c.escape_debug()),
            );
            return Err(TextError::new(self.here(), message, format!("expected {expected}")));
        }
        let word = Word { text, at: self.at };
        self.at += text.len();
        Ok(word)
    }

    fn number(&mut self, quantity: Quantity) -> Result<f64, TextError> {
        let word = self.word(quantity.name())?;
        quantity.read(word.text, word.at)
    }

    fn instant(&mut self) -> Result<Instant, TextError> {
        let word = self.word(Quantity::Time.name())?;
        Quantity::read_instant(word.text, word.at)
    }

    fn variable(&mut self) -> Result<Variable, TextError> {
        let help = format!("expected {PLACEMENT_EXAMPLE} or {MOVE_EXAMPLE}");
        let word = self.word("a variable such as `$node_(0)` or `$ns_`")?;
        let Some(name) = word.text.strip_prefix('$') else { return Err(word.unknown(help)) };
        let plain =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let Some((array, index)) = name.split_once('(') else {
            return if plain(name) { Ok(Variable::Plain) } else { Err(word.unknown(help)) };
        };
        let digits =
            index.strip_suffix(')').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(index) if plain(array) => {
                Ok(Variable::Node(NodeRef { index, range: word.at..word.at + word.text.len() }))
            }
            _ => Err(word.flaw(
                format!("`{}` is not a node", shorten(word.text)),
                "expected a whole number in parentheses, such as `$node_(0)`",
            )),
        }
    }

    /// Returns the words between quotes.
    fn quoted(&mut self) -> Result<Self, TextError> {
        self.at_end();
        let help = format!("expected {MOVE_EXAMPLE}");
        let Some(inside) = self.rest().strip_prefix('"') else {
            return Err(TextError::new(self.here(), "the order must be in double quotes", help));
        };
        let Some(length) = inside.find('"') else {
            return Err(TextError::new(self.here(), "this quote is not closed", help));
        };
        let start = self.at + 1;
        self.at = start + length + 1;
        Ok(Self { line: self.line, at: start, end: start + length })
    }

    fn finish(&mut self) -> Result<(), TextError> {
        if self.at_end() {
            return Ok(());
        }
        let more = self.at..self.at + self.rest().trim_end_matches(is_blank).len();
        Err(TextError::new(
            more,
            "the statement is over before this",
            "remove it, or put it on a line of its own",
        ))
    }

    /// Checks the end of a statement outside quotes, where Tcl allows `;` and after it a comment.
    fn finish_line(&mut self) -> Result<(), TextError> {
        if !self.at_end() && self.rest().starts_with(';') {
            self.at += 1;
            if self.at_end() || self.rest().starts_with('#') {
                return Ok(());
            }
        }
        self.finish()
    }
}

const fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}
