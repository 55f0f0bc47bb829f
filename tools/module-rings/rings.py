#!/usr/bin/env python3
"""Find rings of source files: tools/module-rings/rings.py [--check] [--arrows] [CRATE...]

A ring is a set of files of one crate, each of which depends on each other one, directly or over files between them: a
strongly connected component of more than one file. Prints the rings of each crate under crates/, and their total.

An arrow goes from a file to the file that defines a name that it uses: by `use`, or by a path in its code. A re-export
leads to the file of the definition. These are no arrows: `mod child;`, a re-export that its own file does not use, a
method call, and code for tests alone (`#[cfg(test)]`, tests.rs).

--arrows prints the arrows of each ring with the names. --check fails if a crate has a ring that allowed.txt, beside
this file, does not have, or if a line of allowed.txt is stale. A line there is `CRATE: FILE FILE...: REASON`, with files
relative to src; a ring that consists of some of these files is allowed.
"""

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ALLOWED = HERE / "allowed.txt"

SKIPPED = re.compile(
    r"//[^\n]*"
    r"|/\*.*?\*/"
    r'|b?r(?P<hashes>#*)".*?"(?P=hashes)'
    r'|b?"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])'",
    re.DOTALL,
)
TEST = re.compile(r"#!?\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
VISIBILITY = r"(?:pub(?:\s*\([^)]*\))?\s+)?"
MODULE = re.compile(r"(?:#\[path\s*=\s*(?P<path>\x00\d+\x00)\]\s*)?" + VISIBILITY + r"\bmod\s+(?P<name>\w+)\s*(?P<end>[;{])")
USE = re.compile(r"(?P<visibility>" + VISIBILITY + r")\buse\s+(?P<tree>[^;]+);")
DEFINITION = re.compile(r"\b(?:struct|enum|union|trait|type|fn|macro_rules!|(?:const|(?<!')static)(?:\s+mut)?)\s+(\w+)")
PATH = re.compile(r"(?<![\w:.$])(?:r#)?([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+)")


def without_comments(text):
    """Returns the code without comments, and with each literal as a number between NULs; and the literals."""
    literals = []

    def replace(match):
        if match[0].startswith(("//", "/*")):
            return " "
        literals.append(match[0])
        return f"\0{len(literals) - 1}\0"

    return SKIPPED.sub(replace, text), literals


def block_end(text, start):
    """Returns the position after the item that begins at `start`: after its `;` or its outermost braces."""
    depth = 0
    for position in range(start, len(text)):
        character = text[position]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                return position
            if depth == 0 and character == "}":
                return position + 1
        elif character in ";," and depth == 0:
            return position + 1
    return len(text)


def without_tests(text):
    """Returns the code without the items for tests alone."""
    while found := TEST.search(text):
        if found[0].startswith("#!"):
            return ""
        end = found.end()
        while attribute := re.compile(r"\s*#\[").match(text, end):
            depth, end = 1, attribute.end()
            while depth and end < len(text):
                depth += {"[": 1, "]": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[block_end(text, end) :]
    return text


def use_tree(tree):
    """Yields the path, as a tuple, and the name in scope of each leaf of a `use`; the name is "*" for all names."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = tree.partition(" as ")
        segments = tuple(part.strip().removeprefix("r#") for part in path.split("::") if part.strip())
        if segments and segments[-1] == "self" and len(segments) > 1:
            segments = segments[:-1]
        if segments:
            yield segments, alias.strip() or segments[-1]
        return
    prefix, inner = tree[:brace], tree[brace + 1 : tree.rfind("}")]
    depth, part = 0, ""
    for character in inner + ",":
        if character == "," and depth == 0:
            if part.strip():
                yield from use_tree(prefix + part.strip())
            part = ""
            continue
        depth += {"{": 1, "}": -1}.get(character, 0)
        part += character


class Module:
    """A module: its file, its children, and the names in its scope."""

    def __init__(self, file, parent=None):
        self.file = file
        self.parent = parent
        self.root = parent.root if parent else self
        self.children = {}
        self.definitions = set()
        self.uses = []
        self.code = ""

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()


class Crate:
    """The modules of a crate, and the arrows between its files."""

    def __init__(self, source):
        self.source = source
        roots = [source / "lib.rs", source / "main.rs", *sorted((source / "bin").glob("*.rs"))]
        self.roots = [self.read(root, source) for root in roots if root.exists()]

    def read(self, file, folder, parent=None):
        module = Module(file.relative_to(self.source).as_posix(), parent)
        code, literals = without_comments(file.read_text(encoding="utf-8"))
        self.fill(module, without_tests(code), literals, folder)
        return module

    def fill(self, module, code, literals, folder):
        """Sets the contents of `module`; the files of its children are in `folder`."""
        rest, position = "", 0
        while found := MODULE.search(code, position):
            rest += code[position : found.start()]
            position = found.end()
            name = found["name"]
            if found["end"] == "{":
                end = block_end(code, found.end() - 1)
                child = Module(module.file, module)
                self.fill(child, code[found.end() : end - 1], literals, folder / name)
                module.children[name] = child
                position = end
            elif name != "tests":
                files = [folder / f"{name}.rs", folder / name / "mod.rs"]
                if found["path"]:
                    literal = literals[int(found["path"].strip("\0"))].strip('"')
                    files = [(self.source / module.file).parent / literal]
                for file in files:
                    if file.exists():
                        module.children[name] = self.read(file, folder / name, module)
        rest += code[position:]
        for found in USE.finditer(rest):
            for path, name in use_tree(found["tree"]):
                module.uses.append((path, name, bool(found["visibility"].strip())))
        module.code = USE.sub(" ", rest)
        module.definitions = set(DEFINITION.findall(module.code))

    def resolve(self, module, path, seen=frozenset()):
        """Returns the module of which `path`, used in `module`, is a name or itself, and whether it is the module."""
        key = (id(module), path)
        if key in seen:
            return None
        seen = seen | {key}
        first, rest = path[0], path[1:]
        if first == "crate":
            return self.walk(module.root, rest, seen)
        if first == "self":
            return self.walk(module, rest, seen)
        if first == "super":
            return self.walk(module.parent, rest, seen) if module.parent else None
        return self.walk(module, path, seen)

    def walk(self, module, path, seen):
        """Does the part of `resolve` for a path that begins in the scope of `module`."""
        key = (id(module), path, "walk")
        if key in seen:
            return None
        seen = seen | {key}
        if not path:
            return module, True
        first, rest = path[0], path[1:]
        if first == "super":
            return self.walk(module.parent, rest, seen) if module.parent else None
        child = module.children.get(first)
        if child:
            return self.walk(child, rest, seen)
        if first in module.definitions:
            return module, False
        for target, name, _ in module.uses:
            if name == first and target[0] != first:
                return self.resolve(module, target + rest, seen)
            if name == "*":
                all_of = self.resolve(module, target[:-1], seen) if len(target) > 1 else None
                found = self.walk(all_of[0], path, seen) if all_of and all_of[1] and all_of[0] is not module else None
                if found:
                    return found
        return None

    def arrows(self):
        """Returns the names that each file takes from each other one: {file: {file: {name}}}."""
        arrows = {}
        for root in self.roots:
            for module in root.all():
                for path in self.paths(module):
                    found = self.resolve(module, path)
                    if found and not found[1] and found[0].file != module.file:
                        arrows.setdefault(module.file, {}).setdefault(found[0].file, set()).add("::".join(path))
        return arrows

    def paths(self, module):
        """Yields the paths by which code of `module` takes names of other ones."""
        words = set(re.findall(r"\w+", module.code))
        for path, name, public in module.uses:
            if name == "*":
                found = self.resolve(module, path[:-1])
                if found and found[1]:
                    for taken in self.names(found[0]) & words:
                        yield path[:-1] + (taken,)
            elif name == "_" or not public or name in words:
                yield path
        for path in PATH.findall(module.code):
            yield tuple(part.strip() for part in path.split("::"))

    @staticmethod
    def names(module):
        return module.definitions | {name for _, name, _ in module.uses if name not in "*_"}

    def rings(self):
        """Returns the rings, each a sorted list of files."""
        return components({file: set(to) for file, to in self.arrows().items()})


def components(graph):
    """Returns the strongly connected components of more than one node, after Tarjan."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for to in sorted(graph.get(node, ())):
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on_stack:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                on_stack.discard(component[-1])
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def allowed_rings(text):
    """Returns the crate and the files of each line of the allow-list."""
    rings = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        crate, files, reason = (part.strip() for part in line.split(":", 2))
        if not reason:
            raise ValueError(f"no reason: {line}")
        rings.append((crate, frozenset(files.split())))
    return rings


def faults(rings, allowed):
    """Yields what is wrong with `rings`, {crate: [ring]}, beside what is allowed."""
    used = set()
    for crate, of_crate in sorted(rings.items()):
        for ring in of_crate:
            match = next((entry for entry in allowed if entry[0] == crate and set(ring) <= entry[1]), None)
            if match:
                used.add(match)
            else:
                yield f"{crate}: ring of {len(ring)} files: {' '.join(ring)}"
    for entry in allowed:
        if entry not in used and entry[0] in rings:
            yield f"{entry[0]}: stale line in {ALLOWED.name}: {' '.join(sorted(entry[1]))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crate", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--arrows", action="store_true")
    options = parser.parse_args()
    sys.setrecursionlimit(10_000)
    rings = {}
    for source in sorted(ROOT.glob("crates/*/src")):
        name = source.parent.name
        if options.crate and name not in options.crate:
            continue
        crate = Crate(source)
        rings[name] = crate.rings()
        arrows = crate.arrows() if rings[name] else {}
        for ring in rings[name]:
            print(f"{name}: {len(ring)} files: {' '.join(ring)}")
            if options.arrows:
                for file in ring:
                    for to in sorted(set(arrows[file]) & set(ring)):
                        print(f"    {file} -> {to}: {', '.join(sorted(arrows[file][to]))}")
    files = sum(len(ring) for of_crate in rings.values() for ring in of_crate)
    print(f"rings: {sum(map(len, rings.values()))} in {len(rings)} crates, {files} files")
    if options.check:
        found = list(faults(rings, allowed_rings(ALLOWED.read_text(encoding="utf-8"))))
        for fault in found:
            print(f"rings: {fault}", file=sys.stderr)
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
