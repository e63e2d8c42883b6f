"""Names and values as text of the SQL surface, in which ``${name}`` is a value of the configuration."""

from __future__ import annotations

import re
from typing import Any

from ._arguments import accept, given
from .errors import InvalidArgumentError


def plain(text: str) -> str:
    """A text between backquotes: its own ${name} stays, as ``${$}`` is a dollar sign."""
    return text.replace("${", "${$}{")


def quote(name: str) -> str:
    """A name in backquotes."""
    return "`" + plain(name.replace("`", "``")) + "`"


def split_name(text: str) -> list[str]:
    """The parts of ``a.b`` or ``a.`odd.name```, as they are called."""
    parts, part, quoted, i = [], "", False, 0
    while i < len(text):
        c = text[i]
        if c == "`":
            if quoted and text[i + 1 : i + 2] == "`":
                part += "`"
                i += 1
            else:
                quoted = not quoted
        elif c == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += c
        i += 1
    parts.append(part)
    return [one.replace("${$}", "$") for one in parts]


def sql_name(parameter: str, text: str, most: int = 3) -> str:
    """A name of a table or flow as SQL, each part in backquotes. most: how many parts it may have."""
    accept(parameter, text, str)
    parts = [part.strip() for part in split_name(text)]
    if not all(parts) or len(parts) > most:
        raise ValueError(f"{parameter}: {text!r} is not a name; write it as in SQL: 'users' or 'main.sales.users'")
    return ".".join(map(quote, parts))


def table_name(text: str) -> str:
    """A table's name as SQL; ``delta.`/path``` as it is."""
    match = re.fullmatch(r"\s*delta\s*\.\s*(`.*`)\s*", text, re.IGNORECASE)
    return f"delta.{match.group(1)}" if match else sql_name("tableName", text)


def is_unicode(text: str) -> bool:
    """No half of a surrogate pair stands alone in it."""
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False


def literal(text: str) -> str:
    """A string literal of the SQL surface."""
    if not is_unicode(text):
        raise InvalidArgumentError(f"{given(text)} is not text: half of a surrogate pair stands alone", "INVALID_TEXT")
    # ${name} is the text's own, not a value of the configuration.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


def schema_text(schema: Any) -> str:
    """Columns as DDL, given as DDL or as a StructType; empty for None."""
    if schema is None:
        return ""
    if isinstance(schema, str):
        return schema.strip()
    if hasattr(schema, "fields"):  # a StructType
        return ", ".join(
            f"{quote(field.name)} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
            for field in schema.fields
        )
    raise TypeError(f"schema must be DDL such as 'id INT, name STRING' or a StructType, not {given(schema)}")


def late(kind: str, *arguments: str) -> list[str]:
    """A select list of which the columns of FROM make columns, those that are there when the query
    runs: a flow of the pipeline may add some before. See src/sql/frame_columns.h."""
    return [f"__strandline_{kind}({', '.join(arguments)})"]
