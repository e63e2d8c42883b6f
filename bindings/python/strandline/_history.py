"""The history of one key, as rows and as a picture."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ._arguments import accept, given
from ._result import Result, _need, _text
from ._text import plain, quote
from .errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from ._warehouse import Table

_START, _END = "__START_AT", "__END_AT"
_SYSTEM_START, _SYSTEM_END = "__SYSTEM_START_AT", "__SYSTEM_END_AT"
_SYSTEM = (_START, _END, _SYSTEM_START, _SYSTEM_END)


def history_of(table: Table, key: Any) -> History:
    from ._literals import _type, value_text

    types = {field.name: field.type for field in table.schema}
    if _START not in types:
        raise InvalidArgumentError(
            f"{table.name} keeps no history of its rows: history(key) is for targets of AUTO CDC with SCD type 2 or "
            "bitemporal; for the commits of the table write history() or history(limit=5)", "NO_HISTORY")  # fmt: skip
    # The property has the times of a version, too.
    parts = [_key_columns(part, types) for part in json.loads(table.properties.get("strandline.primaryKey", "[]"))]
    keys = [part for part in parts if part[0] not in _SYSTEM]
    if not keys:
        raise InvalidArgumentError(f"{table.name} has no key of AUTO CDC: select its rows with sql()", "NO_HISTORY")
    shown = [part[0] for part in keys]
    if isinstance(key, Mapping):
        folded = {str(name).casefold(): value for name, value in key.items()}
        if set(folded) != {name.casefold() for name in shown}:
            raise ValueError(f"key must name {', '.join(shown)}, not {given(key)}")
        values = [folded[name.casefold()] for name in shown]
    else:
        values = list(key) if isinstance(key, (tuple, list)) else [key]
    if len(values) != len(keys):
        raise ValueError(f"key must have {len(keys)} values, those of {', '.join(shown)}, not {given(key)}")
    conditions = []
    for part, value in zip(keys, values):
        type_ = types[part[0]]
        column = quote(part[0]) if len(part) == 1 else f"coalesce({', '.join(map(quote, part))})"
        conditions.append(f"{column} <=> CAST({value_text(value, _type(type_))} AS {type_})")
    order = f"{_START}, {_SYSTEM_START}" if _SYSTEM_START in types else _START
    result = table._warehouse.sql(
        f"SELECT * FROM {plain(table._text)} VERSION AS OF {table.version} WHERE {' AND '.join(conditions)} ORDER BY {order}"
    )
    label = ", ".join(f"{name} = {_text(value)}" for name, value in zip(shown, values))
    return History(f"{table.name}: {label}", result, {name for part in keys for name in part})


def _key_columns(part: str, types: Mapping[str, str]) -> list[str]:
    if part in types or not (part.startswith("coalesce(") and part.endswith(")")):
        return [part]
    return part[len("coalesce(") : -1].split(", ")


class History:
    """The versions of one key, oldest first; a loop gives them as dicts. Bitemporal tables have one
    for each pair of times."""

    def __init__(self, title: str, result: Result, keys: set[str]) -> None:
        self.title = title
        self.columns = result.columns
        self._keys = keys
        self._result = result
        self._rows = result.fetchall()

    @property
    def bitemporal(self) -> bool:
        """Its rows have a second pair of times."""
        return _SYSTEM_START in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row)) for row in self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<strandline.History {self.title}: {len(self)} versions>"

    def _repr_html_(self) -> str:
        return self._result._repr_html_()

    def show(self) -> None:
        """Prints the versions as a table."""
        self._result.show(len(self._rows) or 1)

    def df(self) -> Any:
        """The versions as a pandas frame."""
        return self._result.df()

    def plot(self, columns: Optional[Sequence[str]] = None, *, ax: Any = None) -> Any:
        """Draws the history and gives the matplotlib Axes.

        A line of bars for each column, each bar a value and how long it held; the row is gone where
        there is none. Bitemporal: a rectangle for each version, business time to the right, system
        time upwards. Open ends reach the edge and fade.

        :param columns: what is drawn; None: all but the keys.
        :param ax: where to draw; None: a new figure.
        :raises ImportError: matplotlib is missing. :raises ValueError: a column that is not there.
        """
        if columns is not None:
            for name in accept("columns", columns, list, tuple):
                accept("columns (its items)", name, str)
        _need("matplotlib", "plot")
        names = [name for name in self.columns if name not in _SYSTEM and name not in self._keys]
        if columns is not None:
            missing = [name for name in columns if name not in self.columns]
            if missing:
                raise ValueError(f"columns: there is no {', '.join(missing)}; there are {', '.join(names)}")
            names = list(columns)
        if not self._rows:
            raise UnsupportedError(f"there is nothing to draw: {self.title} has no version", "NO_HISTORY")
        if not names:
            names = [name for name in self.columns if name in self._keys]
        draw = _draw_rectangles if self.bitemporal else _draw_lines
        return draw(self.title, list(self), names, ax)


# --- drawing


class _Scale:
    """Where values of one time axis lie. Numbers and times lie where they are; others (struct, text)
    in their order, each as far from the next."""

    def __init__(self, rows: list[dict[str, Any]], start: str, end: str) -> None:
        given_ = [row[name] for row in rows for name in (start, end) if row[name] is not None]
        values: list[Any] = []
        for value in sorted(given_, key=_sortable):
            if not values or _sortable(values[-1]) != _sortable(value):
                values.append(value)
        self._values = values
        self.is_time = bool(values) and all(isinstance(value, (datetime.date, datetime.datetime)) for value in values)
        self.is_number = bool(values) and all(
            isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool) for value in values
        )
        self._order = {_sortable(value): float(i) for i, value in enumerate(values)}
        places = [self._place(value) for value in values] or [0.0]
        span = (places[-1] - places[0]) or 1.0
        self.low, self.high = places[0] - 0.02 * span, places[-1] + 0.18 * span

    def _place(self, value: Any) -> float:
        if self.is_time:
            from matplotlib import dates

            return float(dates.date2num(value))
        return float(value) if self.is_number else self._order[_sortable(value)]

    def begin(self, value: Any) -> float:
        return self.low if value is None else self._place(value)

    def end(self, value: Any) -> float:
        return self.high if value is None else self._place(value)

    def label(self, axis: Any, limit: Any, text: str) -> None:
        limit(self.low, self.high)
        axis.set_label_text(text)
        if self.is_time:
            from matplotlib import dates

            locator = dates.AutoDateLocator()
            axis.set_major_locator(locator)
            axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        elif not self.is_number or len(self._values) <= 12:
            labels = [_short(value) for value in self._values]
            axis.set_ticks([self._place(value) for value in self._values], labels, parse_math=False)


def _sortable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((item is not None, _sortable(item)) for item in value.values())
    return value


def _short(value: Any, room: int = 24) -> str:
    if isinstance(value, Mapping):
        text = ", ".join(_text(item) for item in value.values())
    elif isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
    else:
        text = _text(value)
    return text if len(text) <= room else text[: max(room - 1, 0)] + "…"


def _colors() -> list[Any]:
    from matplotlib import colormaps

    # Light enough for black text.
    return [tuple(0.45 * part + 0.55 for part in colormaps["tab10"](i)[:3]) for i in range(10)]


def _axes(ax: Any, height_inches: float) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(9.0, height_inches), layout="constrained")[1]


def _box(ax: Any, x: tuple[float, float], y: tuple[float, float], color: Any, fades: bool) -> None:
    """A filled box; fades: its end is open, and its last part goes over into white."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x[0], y[0]), x[1] - x[0], y[1] - y[0], facecolor=color, edgecolor="none", zorder=2))
    if fades:
        steps, length = 24, min(0.5 * (x[1] - x[0]), 0.1 * (ax.get_xlim()[1] - ax.get_xlim()[0]))
        for i in range(steps):
            left = x[1] - length * (1 - i / steps)
            ax.add_patch(Rectangle((left, y[0]), length / steps, y[1] - y[0], facecolor="white", alpha=i / steps,
                                   edgecolor="none", zorder=2.5))  # fmt: skip


def _room(ax: Any, width: float, points: float) -> int:
    """How many letters fit into that width of the axis."""
    low, high = ax.get_xlim()
    inches = ax.figure.get_figwidth() * 0.8 * width / (high - low)
    return int(inches * 72 / (points * 0.62))


def _lines(ax: Any, height: float, points: float) -> int:
    """How many lines of text fit into that height of the axis."""
    low, high = ax.get_ylim()
    inches = ax.figure.get_figheight() * 0.75 * height / (high - low)
    return int((inches * 72 - 3) / (points * 1.3))


def _draw_lines(title: str, rows: list[dict[str, Any]], names: list[str], ax: Any) -> Any:
    ax = _axes(ax, 1.1 + 0.42 * len(names))
    scale = _Scale(rows, _START, _END)
    scale.label(ax.xaxis, ax.set_xlim, "time of the change")
    colors = _colors()
    for lane, name in enumerate(names):
        y = len(names) - 1 - lane
        seen: dict[str, int] = {}
        # Versions that follow each other with the same value are one bar.
        bars: list[list[Any]] = []
        for row in rows:
            text = _text(row[name])
            if bars and bars[-1][2] == text and bars[-1][1] == row[_START]:
                bars[-1][1] = row[_END]
            else:
                bars.append([row[_START], row[_END], text, row[name]])
        for start, end, text, value in bars:
            left, right = scale.begin(start), scale.end(end)
            color = colors[seen.setdefault(text, len(seen)) % len(colors)] if value is not None else "0.92"
            _box(ax, (left, right), (y - 0.36, y + 0.36), color, end is None)
            room = _room(ax, right - left, 9)
            if room >= min(3, len(_short(value))):
                ax.text((left + right) / 2, y, _short(value, room), ha="center", va="center", fontsize=9, clip_on=True,
                        color="0.5" if value is None else "black", zorder=3, parse_math=False)  # fmt: skip
    for edge in {_sortable(row[_START]): row[_START] for row in rows}.values():
        ax.axvline(scale.begin(edge), color="0.75", linewidth=0.7, zorder=1)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_yticks(range(len(names)), list(reversed(names)), parse_math=False)
    ax.tick_params(axis="y", length=0)
    return _finished(ax, title)


def _draw_rectangles(title: str, rows: list[dict[str, Any]], names: list[str], ax: Any) -> Any:
    from matplotlib.patches import Rectangle

    ax = _axes(ax, 5.5)
    business, system = _Scale(rows, _START, _END), _Scale(rows, _SYSTEM_START, _SYSTEM_END)
    business.label(ax.xaxis, ax.set_xlim, "business time")
    system.label(ax.yaxis, ax.set_ylim, "system time")
    colors = _colors()
    seen: dict[str, int] = {}
    changing = [name for name in names if len({_text(row[name]) for row in rows}) > 1] or names
    for row in rows:
        x = (business.begin(row[_START]), business.end(row[_END]))
        y = (system.begin(row[_SYSTEM_START]), system.end(row[_SYSTEM_END]))
        text = "\n".join(_text(row[name]) for name in names)
        color = colors[seen.setdefault(text, len(seen)) % len(colors)]
        _box(ax, x, y, color, row[_END] is None)
        superseded = row[_SYSTEM_END] is not None
        ax.add_patch(Rectangle((x[0], y[0]), x[1] - x[0], y[1] - y[0], fill=False, edgecolor="0.35", linewidth=0.9,
                               hatch="//" if superseded else None, alpha=0.35 if superseded else 1, zorder=3))  # fmt: skip
        # What does not fit would lie on the labels of the versions around it.
        room, most = _room(ax, x[1] - x[0], 9), min(6, _lines(ax, y[1] - y[0], 9))
        named = [(name if len(changing) > 1 else "", _short(row[name])) for name in changing[:most]]
        lines = [f"{name}: {value}" if name and len(name) + 2 + len(value) <= room else value for name, value in named]
        if lines and room >= min(3, max(map(len, lines))):
            label = "\n".join(_short(line, room) for line in lines)
            ax.text(sum(x) / 2, sum(y) / 2, label, ha="center", va="center", fontsize=9, clip_on=True, zorder=4,
                    parse_math=False, bbox={"facecolor": color, "edgecolor": "none", "pad": 1.5})  # fmt: skip
    return _finished(ax, title + "\nhatched: no longer believed")


def _finished(ax: Any, title: str) -> Any:
    ax.set_title(title, fontsize=10, loc="left", parse_math=False)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax
