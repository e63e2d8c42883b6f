"""The command line: the package's C++ program, which runs .py files with this interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._extensions import use_extensions

PROGRAM = Path(__file__).parent / "bin" / "strandline"


def main() -> None:
    os.environ.setdefault("STRANDLINE_PYTHON", sys.executable)
    use_extensions()
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
