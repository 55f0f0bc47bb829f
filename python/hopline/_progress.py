"""Progress: by tqdm if it is installed and there is a terminal or notebook; else none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Told = Callable[[float, float, int, int], object]


class Bar:
    """Bar over virtual time. Nothing is imported before there is progress to show."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, done_s: float, total_s: float, runs: int, all_runs: int) -> None:
        if self._bar is None:
            self._bar = _tqdm(total=round(total_s, 3), unit="s", unit_scale=True, leave=False)
        # A precision may need more runs than planned.
        self._bar.total = round(total_s, 3)
        self._bar.set_postfix_str(f"{runs} of {all_runs} runs", refresh=False)
        self._bar.update(max(0.0, round(min(done_s, total_s), 3) - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Teller:
    """Function of the caller."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def __call__(self, done_s: float, total_s: float, runs: int, all_runs: int) -> None:
        self._told(done_s, total_s, runs, all_runs)

    def close(self) -> None:
        pass


def chosen(progress: bool | Told | None) -> Bar | Teller | None:
    """Returns the display of progress: `progress` if it is a function, none if it is ``False``, else a bar if possible."""
    if callable(progress):
        return Teller(progress)
    if progress is False or (progress is None and not _seen()):
        return None
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return None
    return Bar()


def _seen() -> bool:
    return _in_notebook() or bool(sys.stderr and sys.stderr.isatty())


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = shell and shell.get_ipython()
    return type(kernel).__name__ == "ZMQInteractiveShell"


def _tqdm(**options: Any) -> Any:
    if _in_notebook():
        try:
            import ipywidgets  # noqa: F401
            from tqdm.notebook import tqdm as of_notebooks

            return of_notebooks(**options)
        except ImportError:
            pass
    from tqdm import tqdm

    return tqdm(**options)
