"""The Python blocks of the documents, cut out of their text."""

import ast
import re
from dataclasses import dataclass

from harness import SHARED

STARTS = re.compile(r"(from pyspark|@dp\.|dp\.|spark\.|\(spark|sequence_by)")
GOES_ON = re.compile(r"(from |import |@dp\.|dp\.|def |#|\s)")
# A placeholder that is no string yet.
BARE = re.compile(r'(?<!["\w])<[a-z-]+>(?!["\w])')


@dataclass
class Block:
    seed: str  # "000"
    number: int  # within its document
    text: str

    @property
    def id(self):
        return f"{self.seed}-{self.number}"


def parses(text):
    try:
        ast.parse(BARE.sub('"path"', text))
        return True
    except SyntaxError:
        return False


def blocks():
    out = []
    for path in sorted((SHARED / "seeds").glob("*.txt")):
        paragraphs = path.read_text(encoding="utf-8").split("\n\n")
        number = i = 0
        while i < len(paragraphs):
            if not STARTS.match(paragraphs[i].lstrip("\n")):
                i += 1
                continue
            end = i + 1
            found = None
            while True:
                text = "\n\n".join(paragraphs[i:end]).strip("\n")
                if parses(text):
                    found = (text, end)
                if end >= len(paragraphs) or not GOES_ON.match(paragraphs[end].lstrip("\n")):
                    break
                end += 1
            if found:
                number += 1
                out.append(Block(path.name[:3], number, found[0] + "\n"))
                i = found[1]
            else:
                i += 1
    return out
