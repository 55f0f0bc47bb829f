"""Run a program: its output, its CPU seconds and its peak memory."""

import os
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    output: str
    cpu_s: float  # user + system
    peak_mib: float


def run(command):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        pid = os.posix_spawnp(
            command[0], [str(word) for word in command], os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1),
                          (os.POSIX_SPAWN_DUP2, err.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            words = " ".join(str(word) for word in command)
            raise RuntimeError(f"exit code {code} from: {words}\n{err.read()[-2000:]}")
        return Measured(out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
