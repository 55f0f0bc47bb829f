#!/usr/bin/env python3
"""Check the project's language: tools/language/check.py [--update] [--list CHECK]

Four checks, each counted over all files that git tracks:

openings     doc comments that open with What, Who, Whose, Whether, Where, How, So, Why, When, Which
actors       who, whoever, whose, somebody, nobody and everybody in comments and pages, "others" as a subject
sentences    sentences of pages with more than 35 words
subjects     commits since the upstream branch with a subject of more than 72 characters

The counts may not rise above those of counts.json, beside this file. --update lowers them to what is found, and never
raises them. --list prints what one check finds. allowed.txt has what may stay, a regular expression for `PATH:LINE: TEXT`
on each line, below a comment with the reason.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COUNTS = HERE / "counts.json"
ALLOWED = HERE / "allowed.txt"

LONGEST_SENTENCE = 35
LONGEST_SUBJECT = 72
OPENING = re.compile(r"(What|Who|Whose|Whether|Where|How|So|Why|When|Which)\b")
ACTOR = re.compile(
    r"\b(who|whoever|whose|somebody|nobody|everybody)\b"
    r"|\bothers (?:are|were|have|had|do|did|is|can|may|must|will|would|see|send|take|get|wait|use|say)\b",
    re.IGNORECASE,
)
DOC = re.compile(r"^\s*//([/!]) ?(.*)$")
COMMENT = re.compile(r"^\s*//[/!]? ?(.*)$")
HASH_COMMENT = re.compile(r"^\s*# ?(.*)$")


def openings(path, lines):
    """Yields the number and the text of each doc comment that opens with a word that asks."""
    if path.suffix != ".rs":
        return
    before = None
    for number, line in enumerate(lines, 1):
        comment = DOC.match(line)
        if comment and comment[1] != before and OPENING.match(comment[2]):
            yield number, comment[2]
        before = comment[1] if comment else None


def actors(path, lines):
    """Yields each line of prose that has a pronoun in place of an actor, once for each."""
    for number, text in prose(path, lines):
        for _ in ACTOR.finditer(text):
            yield number, text


def sentences(path, lines):
    """Yields sentences of a page that are too long."""
    if path.suffix != ".md":
        return
    for number, paragraph in paragraphs(lines):
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[])", paragraph):
            if len(sentence.split()) > LONGEST_SENTENCE:
                yield number, sentence


def prose(path, lines):
    """Yields the number and the text of each line that people read: comments of sources, all of a page but its code."""
    if path.suffix == ".md":
        yield from outside_code(lines)
        return
    pattern = {".rs": COMMENT, ".toml": HASH_COMMENT, ".py": HASH_COMMENT}.get(path.suffix)
    if pattern is None:
        return
    for number, line in enumerate(lines, 1):
        comment = pattern.match(line)
        if comment:
            yield number, comment[1]


def outside_code(lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def paragraphs(lines):
    """Yields running text with the number of its first line: no tables, no headings. Each item of a list stands alone."""
    start, words = 0, []
    for number, line in [*outside_code(lines), (len(lines) + 1, "")]:
        text = line.strip()
        item = re.match(r"(?:[-*]|\d+\.) ", text)
        ends = not text or text.startswith(("|", "#", "<")) or item
        if ends and words:
            yield start, " ".join(words)
            words = []
        if text and not text.startswith(("|", "#", "<")):
            start = start if words else number
            words.append(text[item.end() :] if item else text)


CHECKS = {"openings": openings, "actors": actors, "sentences": sentences}


def subjects():
    """Yields subjects of commits that are too long, of those that the upstream branch does not have."""
    log = git("log", "--format=%h %s", "@{upstream}..HEAD", check=False) or ""
    for line in log.splitlines():
        name, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield f"{name}: {subject}"


def git(*words, check=True):
    result = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if check and result.returncode:
        sys.exit(f"language: git {words[0]}: {result.stderr.strip()}")
    return None if result.returncode else result.stdout


def tracked():
    for name in git("ls-files", "-z").split("\0"):
        path = ROOT / name
        if path.suffix in {".rs", ".md", ".toml", ".py"} and path.is_file() and HERE not in path.parents:
            yield path


def allowed():
    if not ALLOWED.exists():
        return []
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def findings():
    """Returns what each check finds, as lines `PATH:LINE: TEXT`."""
    found = {name: [] for name in CHECKS}
    may_stay = allowed()
    for path in tracked():
        lines = path.read_text(encoding="utf-8").splitlines()
        for name, check in CHECKS.items():
            for number, text in check(path, lines):
                line = f"{path.relative_to(ROOT)}:{number}: {text.strip()}"
                if not any(pattern.search(line) for pattern in may_stay):
                    found[name].append(line)
    return {**found, "subjects": list(subjects())}


def risen(counts, limits):
    """Returns a sentence for each count above its limit."""
    return [
        f"language: {name}: {count} found, {limits.get(name, 0)} allowed; see tools/language/check.py --list {name}"
        for name, count in counts.items()
        if count > limits.get(name, 0)
    ]


def main(arguments):
    parser = argparse.ArgumentParser(description="Check the project's language.")
    parser.add_argument("--update", action="store_true", help="lower the counts that are allowed to what is found")
    parser.add_argument("--list", choices=[*CHECKS, "subjects"], help="print what this check finds")
    options = parser.parse_args(arguments)
    found = findings()
    if options.list:
        print(*found[options.list], sep="\n")
        return 0
    counts = {name: len(lines) for name, lines in found.items()}
    limits = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else counts
    problems = risen(counts, limits)
    print(*problems, sep="\n", file=sys.stderr, end="\n" if problems else "")
    if options.update and not problems:
        COUNTS.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    print("language:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
