"""Pages with tables that measurements write."""

import sys


def put_into(path, mark, text):
    """Replace what stands between the first two occurrences of `mark` in the page at `path`."""
    before, found, rest = path.read_text(encoding="utf-8").partition(mark)
    if not found:
        sys.exit(f"{path}: no {mark}")
    _, _, after = rest.partition(mark)
    path.write_text(f"{before}{mark}\n\n{text}\n\n{mark}{after}", encoding="utf-8")
