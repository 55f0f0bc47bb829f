"""Tests of the check of language: python3 -m unittest discover tools/language"""

import unittest
from pathlib import Path

import check

RUST, PAGE, TOML = Path("a.rs"), Path("a.md"), Path("a.toml")


def found(of, path, text):
    return [number for number, _ in of(path, text.splitlines())]


class Openings(unittest.TestCase):
    def test_a_doc_comment_that_asks_is_found_at_its_first_line(self):
        text = "/// Whose turn it is.\nfn a() {}\n/// The turn.\n/// Who has it.\nfn b() {}\n//! What it is.\n/// How.\n"
        self.assertEqual(found(check.openings, RUST, text), [1, 6, 7])

    def test_words_that_begin_alike_are_not(self):
        self.assertEqual(found(check.openings, RUST, "/// Whole packets.\n\n/// Sound.\n\n// Who\n"), [])

    def test_pages_have_none(self):
        self.assertEqual(found(check.openings, PAGE, "/// Who\n"), [])


class Actors(unittest.TestCase):
    def test_each_pronoun_in_a_comment_counts(self):
        self.assertEqual(found(check.actors, RUST, "// who sends to nobody\nlet who = 1;\n/// Others wait.\n"), [1, 1, 3])

    def test_others_as_an_object_may_stay(self):
        self.assertEqual(found(check.actors, PAGE, "It waits for the others.\n"), [])

    def test_code_of_a_page_is_not_prose(self):
        self.assertEqual(found(check.actors, PAGE, "```\nwho\n```\n    whoami who\nwho\n"), [5])

    def test_comments_of_configuration_are_prose(self):
        self.assertEqual(found(check.actors, TOML, '# whose\nname = "who"\n'), [1])


class Sentences(unittest.TestCase):
    def test_a_sentence_of_36_words_is_too_long_and_one_of_35_is_not(self):
        for words, expected in [(35, []), (36, [1])]:
            self.assertEqual(found(check.sentences, PAGE, "word " * (words - 1) + "end."), expected)

    def test_it_may_run_over_lines_and_ends_with_the_paragraph(self):
        self.assertEqual(found(check.sentences, PAGE, "# A\n\n" + "word\n" * 36), [3])
        self.assertEqual(found(check.sentences, PAGE, ("word " * 20 + "\n\n") * 2), [])

    def test_items_of_a_list_and_rows_of_a_table_stand_alone(self):
        row = "| " + "word " * 40 + "|\n"
        self.assertEqual(found(check.sentences, PAGE, ("- " + "word " * 20 + "\n") * 2 + row), [])


class Counts(unittest.TestCase):
    def test_a_count_that_rises_is_a_problem(self):
        self.assertEqual(len(check.risen({"openings": 3, "actors": 0}, {"openings": 2, "actors": 1})), 1)
        self.assertEqual(check.risen({"openings": 2}, {"openings": 2}), [])

    def test_a_check_without_a_limit_allows_none(self):
        self.assertEqual(len(check.risen({"subjects": 1}, {})), 1)


if __name__ == "__main__":
    unittest.main()
