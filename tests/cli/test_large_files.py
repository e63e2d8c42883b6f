"""JSON files that are larger than what the program may take of memory: they are read as they come, with the same values,
errors and rescued records as small ones."""

import pytest
from harness import query, run_pipeline

LIMITS = ["--memory-limit", "400MB", "--threads", "2"]
LINES = 660_000  # of 200 bytes: 132 MB
SCHEMA = "id BIGINT, price DECIMAL(12,2), o STRUCT<x: INT>"


def line(i):
    text = f'{{"id": {i}, "price": {i}.{i % 100:02d}, "o": {{"x": {i % 7}}}, "more": "'
    return text + "y" * (197 - len(text)) + '"}\n'


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    file = tmp_path_factory.mktemp("lines") / "in" / "1.json"
    file.parent.mkdir()
    with file.open("w") as out:
        for begin in range(0, LINES, 10_000):
            out.write("".join(line(i) for i in range(begin, begin + 10_000)))
    assert file.stat().st_size == 132_000_000
    return file


TOTALS = {
    "n": LINES,
    "ids": LINES * (LINES - 1) // 2,
    "price": f"{LINES * (LINES - 1) // 2 + sum(range(100)) * (LINES // 100) / 100:.2f}",
    "x": sum(i % 7 for i in range(LINES)),
}


def totals(folder, more=""):
    return query(folder.parent / "w", f"""SELECT count(*) AS n, sum(id) AS ids, CAST(sum(price) AS STRING) AS price, sum(o.x) AS x
        FROM read_files('{folder}', format => 'json', schema => '{SCHEMA}'{more})""", arguments=LIMITS)


def pipeline_of(folder, where, more=""):
    where.mkdir()
    (where / "t.sql").write_text(f"""CREATE STREAMING TABLE t AS SELECT id, price, o, _metadata.row_index AS i{", r" if more else ""}
        FROM STREAM read_files('{folder}', format => 'json', schema => '{SCHEMA}'{more});""")
    return where


def test_lines_of_a_large_file(lines):
    assert totals(lines.parent) == [TOTALS]


def test_places_of_rows_in_a_large_file(lines, tmp_path):
    run = run_pipeline(pipeline_of(lines.parent, tmp_path / "p"), tmp_path / "w", *LIMITS)
    assert run.ok, run.explain()
    assert query(tmp_path / "w", "SELECT count(*) AS n, bool_and(id = i) AS same FROM t") == [{"n": LINES, "same": True}]


@pytest.mark.parametrize("last, code", [('{"id": 1, "price": 0.001}', "VALUE_OUT_OF_TYPE"), ('{"id": 1,', "MALFORMED_RECORD")])
def test_the_last_line_of_a_large_file_is_wrong(lines, tmp_path, last, code):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_bytes(lines.read_bytes() + last.encode() + b"\n")
    run = run_pipeline(pipeline_of(folder, tmp_path / "p"), tmp_path / "w", *LIMITS)
    assert run.codes == [code], run.explain()
    assert f"1.json', line {LINES + 1}:" in run.report["errors"][0]["message"]


def test_rescued_records_of_a_large_file(lines, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_bytes(b"\xef\xbb\xbf" + lines.read_bytes() + b"no json\n")
    run = run_pipeline(pipeline_of(folder, tmp_path / "p", ", rescuedDataColumn => 'r'"), tmp_path / "w", *LIMITS)
    assert run.ok, run.explain()
    assert query(tmp_path / "w", """SELECT count(*) AS n, sum(id) AS ids, bool_and(id = i) AS same,
        count_if(r LIKE '{"more":"yyy%') AS more, max(CASE WHEN r LIKE '%_corrupt_record%' THEN i END) AS bad FROM t""") == [
        {"n": LINES + 1, "ids": TOTALS["ids"], "same": True, "more": LINES, "bad": LINES}]


def test_one_array_over_many_lines(lines, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_bytes(b"[" + lines.read_bytes().rstrip().replace(b"}\n", b"},\n") + b"]\n")
    assert totals(folder, ", multiLine => true") == [TOTALS]


def test_lines_of_very_different_lengths(tmp_path):
    with (tmp_path / "1.json").open("w") as out:
        for i, length in enumerate([1, 20_000_000, 5, 3_000_000, 40_000_000, 0]):
            out.write(f'{{"id": {i}, "s": "{"z" * length}"}}\n')
    assert query(tmp_path / "w", f"SELECT id, length(s) AS n FROM read_files('{tmp_path}', format => 'json', schema => 'id INT, s STRING')",
                 arguments=["--memory-limit", "2GB"]) == [
        {"id": i, "n": n} for i, n in enumerate([1, 20_000_000, 5, 3_000_000, 40_000_000, 0])]


def test_lines_end_as_they_like_when_records_are_rescued(tmp_path):
    text = b'\xef\xbb\xbf{"id": 1}\r\n \t\r\n\n{"id": 2}\r\r\n{"id": "\r"}\n{"id": 4}'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_bytes(text)
    pipeline = tmp_path / "p"
    pipeline.mkdir()
    (pipeline / "t.sql").write_text(f"""CREATE STREAMING TABLE t AS SELECT id, _rescued_data IS NULL AS whole, _metadata.row_index AS i
        FROM STREAM read_files('{tmp_path}/in', format => 'json', schema => 'id INT', rescuedDataColumn => '_rescued_data');""")
    run = run_pipeline(pipeline, tmp_path / "w")
    assert run.ok, run.explain()
    assert query(tmp_path / "w", "SELECT * FROM t ORDER BY i") == [
        {"id": 1, "whole": True, "i": 0}, {"id": 2, "whole": True, "i": 3},
        {"id": None, "whole": False, "i": 4}, {"id": 4, "whole": True, "i": 5}]


@pytest.mark.parametrize("name, content, said", [
    ("1.json", b'{"id": 1}\n{"id": "\xff"}\n', "1.json', line 2: is no UTF-8 text"),
    ("1.json.gz", b"\x1f\x8b", "rescuedDataColumn keeps bad lines as they are written, which is not supported for compressed JSON"),
])
def test_what_cannot_be_rescued_is_named(tmp_path, name, content, said):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(content)
    run = run_pipeline(pipeline_of(tmp_path / "in", tmp_path / "p", ", rescuedDataColumn => 'r'"), tmp_path / "w")
    assert not run.ok and said in run.report["errors"][0]["message"], run.explain()
