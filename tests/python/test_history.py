"""history(key): the versions of one row, as rows and as a picture."""

import datetime
import sys

import matplotlib
import pytest

import strandline

matplotlib.use("Agg")

HEAD = "from pyspark import pipelines as dp\nfrom pyspark.sql.functions import *\n"


@pytest.fixture
def users(warehouse, pipeline):
    """Users with history, by times."""
    warehouse.sql("""
        CREATE TABLE changes (id INT, name STRING, city STRING, gone BOOLEAN, at TIMESTAMP);
        INSERT INTO changes VALUES
          (1, 'Ann', 'Rome', false, '2024-01-01'), (1, 'Ann', 'Oslo', false, '2024-03-01'),
          (1, 'Anna', 'Oslo', false, '2024-04-01'), (1, NULL, NULL, true, '2024-06-01'),
          (1, 'Anna', 'Lima', false, '2024-08-01'), (2, 'Bob', NULL, false, '2024-02-01')""")
    folder = pipeline({"a.py": HEAD + """
dp.create_streaming_table("users")
dp.create_auto_cdc_flow("users", "changes", ["id"], "at", apply_as_deletes="gone", except_column_list=["gone", "at"],
                        stored_as_scd_type=2)
"""})  # fmt: skip
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    return warehouse.table("users")


@pytest.fixture
def prices(warehouse, pipeline):
    """Prices on two time axes, with two keys."""
    warehouse.sql("""
        CREATE TABLE changes (shop STRING, item INT, price DECIMAL(8,2), valid INT, known INT);
        INSERT INTO changes VALUES
          ('a', 1, 2.00, 10, 100), ('a', 1, 3.00, 30, 110), ('a', 1, 2.50, 20, 130), ('b', 1, 9.00, 10, 100)""")
    folder = pipeline({"a.py": HEAD + """
dp.create_streaming_table("prices")
dp.create_auto_cdc_flow("prices", "changes", ["shop", "item"], "valid", system_sequence_by="known",
                        except_column_list=["valid", "known"], stored_as_scd_type="bitemporal")
"""})  # fmt: skip
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    return warehouse.table("prices")


def test_the_versions_of_a_key(users):
    history = users.history(1)
    assert len(history) == 4 and not history.bitemporal
    assert [(row["name"], row["city"], row["__START_AT"].month) for row in history] == [
        ("Ann", "Rome", 1), ("Ann", "Oslo", 3), ("Anna", "Oslo", 4), ("Anna", "Lima", 8)]  # fmt: skip
    assert list(history)[2]["__END_AT"] == datetime.datetime(2024, 6, 1, tzinfo=datetime.timezone.utc)
    assert "<table>" in history._repr_html_() and "Lima" in history._repr_html_() and "id = 1: 4 versions" in repr(history)
    assert len(history.df()) == 4
    assert len(users.history({"ID": 2})) == 1 and len(users.history(77)) == 0
    # Of the commits it is told apart by the key.
    assert users.history(limit=1)[0].operation and users.history()[-1].version == 0


def test_a_key_of_several_columns(prices):
    assert len(prices.history(("b", 1))) == 1 and prices.history({"shop": "b", "item": 1}).bitemporal
    with pytest.raises(ValueError, match="key must have 2 values, those of shop, item, not 'a'"):
        prices.history("a")
    with pytest.raises(ValueError, match="key must name shop, item"):
        prices.history({"shop": "b"})


def test_tables_without_history(warehouse):
    warehouse.sql("CREATE TABLE plain (id INT)")
    with pytest.raises(strandline.InvalidArgumentError, match=r"NO_HISTORY.*history\(limit=5\)"):
        warehouse.table("plain").history(5)


def bars(ax):
    """(left, right, lane) of the bars, without what fades them."""
    boxes = [patch for patch in ax.patches if patch.get_zorder() == 2]
    return [(box.get_x(), box.get_x() + box.get_width(), round(box.get_y() + box.get_height() / 2)) for box in boxes]


def test_a_timeline(users, tmp_path):
    ax = users.history(1).plot()
    ax.figure.savefig(tmp_path / "timeline.png")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["city", "name"]
    # name: Ann, Anna, gone for two months, Anna; city: Rome, Oslo, gone, Lima.
    assert len([bar for bar in bars(ax) if bar[2] == 1]) == 3 and len([bar for bar in bars(ax) if bar[2] == 0]) == 3
    assert {text.get_text() for text in ax.texts} == {"Ann", "Anna", "Rome", "Oslo", "Lima"}
    right = ax.get_xlim()[1]
    assert len([bar for bar in bars(ax) if bar[1] == right]) == 2  # open ends
    only = users.history(2).plot(["city"])
    assert [text.get_text() for text in only.texts] == ["NULL"]
    with pytest.raises(ValueError, match="there is no nope; there are name, city"):
        users.history(1).plot(["nope"])
    with pytest.raises(TypeError, match=r"columns \(its items\) must be str, not 1 \(int\)"):
        users.history(1).plot([1])
    with pytest.raises(strandline.UnsupportedError, match="nothing to draw"):
        users.history(5).plot()


def test_rectangles_of_two_times(prices, tmp_path):
    from matplotlib import pyplot

    figure, given = pyplot.subplots()
    history = prices.history(("a", 1))
    ax = history.plot(ax=given)
    assert ax is given
    figure.savefig(tmp_path / "rectangles.png")
    assert len(bars(ax)) == len(history) and ax.get_xlabel() == "business time" and ax.get_ylabel() == "system time"
    assert {text.get_text() for text in ax.texts} == {"2.00", "3.00", "2.50"}
    # Each pair of times is in one rectangle at most.
    boxes = [patch.get_bbox() for patch in ax.patches if patch.get_zorder() == 2]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            across = min(a.x1, b.x1) - max(a.x0, b.x0) > 1e-9 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1e-9
            assert not across
    pyplot.close("all")


def test_labels_of_many_versions_do_not_cover_each_other(warehouse, pipeline):
    from matplotlib import pyplot

    warehouse.sql("""
        CREATE TABLE changes (item INT, price DECIMAL(8,2), stock INT, valid INT, known INT);
        INSERT INTO changes SELECT 1, id * 1.25, 1000 + id, 10 * (id * 7 % 12), 100 + CAST(pow(1.5, id) AS INT) FROM range(24)""")
    folder = pipeline({"a.py": HEAD + """
dp.create_streaming_table("prices")
dp.create_auto_cdc_flow("prices", "changes", ["item"], "valid", system_sequence_by="known",
                        except_column_list=["valid", "known"], stored_as_scd_type="bitemporal")
"""})  # fmt: skip
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    history = warehouse.table("prices").history(1)
    figure, ax = pyplot.subplots(figsize=(9.0, 5.5))
    history.plot(ax=ax)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(history) > 24 and 3 < len(boxes) < len(history)
    covered = [(i, j) for i in range(len(boxes)) for j in range(i) if boxes[i].overlaps(boxes[j])]
    assert not covered, [(ax.texts[i].get_text(), ax.texts[j].get_text()) for i, j in covered]
    pyplot.close("all")


def test_sequences_that_are_no_numbers(warehouse, pipeline):
    warehouse.sql("CREATE TABLE c (id INT, v STRING, a INT, b STRING); INSERT INTO c VALUES (1, 'x', 1, 'p'), (1, 'y', 1, 'q')")
    folder = pipeline({"a.py": HEAD + "dp.create_streaming_table('t')\ndp.create_auto_cdc_flow('t', 'c', ['id'], struct('a', 'b'),"
                                      "column_list=['id', 'v'], stored_as_scd_type=2)\n"})  # fmt: skip
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    ax = warehouse.table("t").history(1).plot()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1, p", "1, q"]


def test_dollars_are_no_formulas(warehouse, pipeline, tmp_path):
    warehouse.sql("CREATE TABLE c (`id$` STRING, `v$_$` STRING, s STRING);"
                  "INSERT INTO c VALUES ('$k$', '$\\\\frac$', '$\\\\x$')")  # fmt: skip
    folder = pipeline({"a.py": HEAD + "dp.create_streaming_table('t')\ndp.create_auto_cdc_flow('t', 'c', ['id$'], 's',"
                                      "column_list=['id$', 'v$_$'], stored_as_scd_type=2)\n"})  # fmt: skip
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    ax = warehouse.table("t").history("$k$").plot()
    ax.figure.savefig(tmp_path / "dollars.png")  # a formula would raise: \\x is none
    texts = [*ax.texts, *ax.get_yticklabels(), *ax.get_xticklabels(), ax._left_title]
    assert {text.get_text() for text in texts} >= {"$\\frac$", "v$_$", "$\\x$"} and not any(text.get_parse_math() for text in texts)


def test_without_matplotlib(users, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'strandline\[plot\]'"):
        users.history(1).plot()
