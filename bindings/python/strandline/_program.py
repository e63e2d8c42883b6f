"""The command line: the package's C++ program, which runs .py files with this interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "bin" / "strandline"


def main() -> None:
    os.environ.setdefault("STRANDLINE_PYTHON", sys.executable)
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
