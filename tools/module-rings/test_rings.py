"""Tests of the search for rings: python3 -m unittest discover tools/module-rings"""

import tempfile
import unittest
from pathlib import Path

import rings


def crate(**files):
    """Returns the crate of `files`, each named like its module, with `__` for `/`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            file = Path(folder, name.replace("__", "/") + ".rs")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return rings.Crate(Path(folder))


class Arrows(unittest.TestCase):
    def test_two_files_that_use_each_other_are_a_ring(self):
        found = crate(lib="mod a; mod b;", a="use crate::b::B; struct A;", b="use super::a::A; struct B;")
        self.assertEqual(found.rings(), [["a.rs", "b.rs"]])

    def test_a_chain_is_none(self):
        found = crate(lib="mod a; mod b;", a="use crate::b::B;", b="struct B;")
        self.assertEqual(found.rings(), [])
        self.assertEqual(found.arrows(), {"a.rs": {"b.rs": {"crate::b::B"}}})

    def test_a_reexport_leads_to_the_file_of_the_definition(self):
        found = crate(lib="mod a; mod b; pub use b::B as C;", a="use crate::C;", b="pub struct B;")
        self.assertEqual(found.arrows(), {"a.rs": {"b.rs": {"crate::C"}}})

    def test_a_reexport_that_its_file_uses_is_an_arrow(self):
        found = crate(lib="mod a; pub use a::A; struct L; fn f(_: A) {}", a="use crate::L; pub struct A;")
        self.assertEqual(found.rings(), [["a.rs", "lib.rs"]])

    def test_paths_in_code_are_arrows(self):
        found = crate(lib="mod a; mod b;", a="use crate::b; fn f() { b::g() }", b="pub fn g() { crate::a::f() }")
        self.assertEqual(found.rings(), [["a.rs", "b.rs"]])

    def test_trees_and_globs_are_followed(self):
        found = crate(
            lib="mod a; mod b; mod c;",
            a="use crate::{b::{B, self}, c::*}; fn f() { b::g(C) }",
            b="pub struct B; pub fn g() {}",
            c="pub struct C; pub struct Unused;",
        )
        self.assertEqual(found.arrows()["a.rs"], {"b.rs": {"crate::b::B", "b::g"}, "c.rs": {"crate::c::C"}})

    def test_a_glob_of_an_enum_or_another_crate_is_no_arrow(self):
        self.assertEqual(crate(lib="use Kind::*; use other::*; enum Kind { X } fn f() { g::h() }").arrows(), {})

    def test_modules_in_a_file_and_modules_of_folders_are_found(self):
        found = crate(
            lib="mod a;",
            a__mod="mod inner { use super::c::C; } mod c;",
            a__c="use super::super::a::d; pub struct C;",
        )
        self.assertEqual(found.arrows(), {"a/mod.rs": {"a/c.rs": {"super::c::C"}}})


class LeftOut(unittest.TestCase):
    def test_tests_are(self):
        found = crate(
            lib="mod a; mod b;",
            a="pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)]\n#[allow(x)]\nuse crate::b::B;",
            b="use crate::a::A; pub struct B; mod tests;",
            b__tests="use crate::a::A;",
        )
        self.assertEqual(found.arrows(), {"b.rs": {"a.rs": {"crate::a::A"}}})

    def test_comments_and_strings_are(self):
        text = '// crate::b::B\n/* crate::b::B */ const S: &str = "crate::b::B"; const C: char = \'"\'; fn f<\'a>() {}'
        self.assertEqual(crate(lib="mod a; mod b;", a=text, b="pub struct B;").arrows(), {})


class Allowed(unittest.TestCase):
    ALLOWED = rings.allowed_rings("# Comment.\n\nx: a.rs b.rs c.rs: one machine\n")

    def test_a_part_of_an_allowed_ring_is(self):
        self.assertEqual(list(rings.faults({"x": [["a.rs", "b.rs"]]}, self.ALLOWED)), [])

    def test_a_larger_one_and_one_of_another_crate_are_not(self):
        found = list(rings.faults({"x": [["a.rs", "b.rs", "d.rs"]], "y": [["a.rs", "b.rs"]]}, self.ALLOWED))
        self.assertEqual(len(found), 3)

    def test_a_line_without_a_ring_is_stale(self):
        self.assertIn("stale", next(rings.faults({"x": []}, self.ALLOWED)))

    def test_a_reason_is_required(self):
        with self.assertRaises(ValueError):
            rings.allowed_rings("x: a.rs b.rs:")


class Components(unittest.TestCase):
    def test_rings_that_share_a_file_are_one(self):
        graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"b", "d"}, "d": set()}
        self.assertEqual(rings.components(graph), [["a", "b", "c"]])


if __name__ == "__main__":
    unittest.main()
