"""The Python end of next_snapshot, as the program asks it: docs/decisions/0008-python-pipelines.md."""

import json
import socket
import subprocess
import sys

import pytest

import strandline

HEAD = "import datetime, decimal\nfrom pyspark import pipelines as dp\ndp.create_streaming_table('t')\n"
FLOW = "dp.create_auto_cdc_from_snapshot_flow(target='t', source=f, keys=['id'])\n"


class Interpreter:
    """python -m strandline._declare with one file."""

    def __init__(self, path, warehouse):
        self.path, self._socket = path, socket.socketpair()
        theirs = self._socket[1]
        self._child = subprocess.Popen([sys.executable, "-m", "strandline._declare", str(theirs.fileno())],
                                       pass_fds=[theirs.fileno()])  # fmt: skip
        theirs.close()
        self._lines = self._socket[0].makefile("rw")
        self.declared = self.ask(do="declare", root=str(path.parent), warehouse=warehouse, catalog="main", schema="default",
                                 configuration={}, files=[[str(path), "a.py"]])  # fmt: skip

    def ask(self, **request):
        self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()
        return json.loads(self._lines.readline())

    def next(self, latest):
        function = next(one["function"] for one in self.declared["statements"] if "function" in one)
        return self.ask(do="next_snapshot", function=function, latest=latest)

    def close(self):
        self._lines.close()
        self._socket[0].close()
        assert self._child.wait(20) == 0


@pytest.fixture
def interpreter(tmp_path):
    opened = []

    def start(code):
        path = tmp_path / "a.py"
        path.write_text(HEAD + code)
        opened.append(Interpreter(path, str(tmp_path / "warehouse")))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_versions_keep_their_type(interpreter):
    """Each version goes out as type and text, and comes back as it was given."""
    asked = interpreter("""
seen = []
zone = datetime.timezone(datetime.timedelta(hours=2))
versions = [7, -2**70, datetime.datetime(2024, 1, 31, 12), datetime.datetime(2024, 1, 31, 14, 0, 0, 5, zone),
            datetime.date(2024, 1, 31), "a 'b'", decimal.Decimal("1.50"), 1.5, True, None, ("x",), float]
def f(latest):
    assert not seen or (latest == versions[len(seen) - 1] and type(latest) is type(versions[len(seen) - 1])), latest
    seen.append(latest)
    if len(seen) > len(versions):
        return None
    return spark.createDataFrame([(len(seen),)], schema="id INT"), versions[len(seen) - 1]
""" + FLOW)  # fmt: skip
    assert asked.declared["errors"] == []
    expected = [
        ("BIGINT", "7"), ("BIGINT", str(-2**70)), ("TIMESTAMP", "2024-01-31 12:00:00"), ("TIMESTAMP", "2024-01-31 12:00:00.000005+00:00"),
        ("DATE", "2024-01-31"), ("STRING", "a 'b'"), ("DECIMAL", "1.50"), ("float", "1.5"), ("bool", "True"), None,
        ("tuple", "('x',)"), ("type", "<class 'float'>")]  # fmt: skip
    latest = None
    for number, version in enumerate(expected, 1):
        answer = asked.next(latest)
        assert set(answer) == {"query", "version"} and f"VALUES ({number})" in answer["query"], answer
        assert answer["version"] == (None if version is None else {"type": version[0], "value": version[1]})
        latest = answer["version"]
    assert asked.next(latest) == {"done": True}


def test_versions_of_an_earlier_update(interpreter):
    """The first call of an interpreter gets what the checkpoint has."""
    asked = interpreter("def f(latest):\n  return spark.createDataFrame([(repr(latest),)], schema='id STRING'), 1\n" + FLOW)
    for version, shown in [
        ({"type": "BIGINT", "value": "3"}, "3"), ({"type": "STRING", "value": "x"}, "\\'x\\'"), (None, "None"),
        ({"type": "DATE", "value": "2024-01-31"}, "datetime.date(2024, 1, 31)"),
        ({"type": "TIMESTAMP", "value": "2024-01-31 12:00:00.000001"}, "datetime.datetime(2024, 1, 31, 12, 0, 0, 1)"),
        ({"type": "TIMESTAMP", "value": "2024-01-31 12:00:00.25"}, "datetime.datetime(2024, 1, 31, 12, 0, 0, 250000)"),
        ({"type": "TIMESTAMP", "value": "2024-01-31 12:00:00+00"}, "datetime.datetime(2024, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)"),
        ({"type": "DECIMAL", "value": "1.50"}, "Decimal(\\'1.50\\')"),
    ]:  # fmt: skip
        assert f"VALUES ('{shown}')" in asked.next(version)["query"]


WRONG = {
    "return 1 / (0 if latest is None else 1)": ("PYTHON_ERROR", "ZeroDivisionError: division by zero\n  a.py:5 in f"),
    "return helper()": ("PYTHON_ERROR", "ValueError: no file today\n  a.py:5 in f\n    return helper()\n  a.py:7 in helper"),
    "return 5": ("INVALID_SNAPSHOT_FUNCTION_RESULT", "f() must return (DataFrame, version), or None when there is no newer snapshot, not 5"),
    "return 5, 1": ("INVALID_SNAPSHOT_FUNCTION_RESULT", "the first is 5 (int)"),
    "return spark.readStream.table('t'), 1": ("SNAPSHOT_IS_A_STREAM", "read with spark.read"),
    "return dbutils.fs.ls('/nowhere/at/all')": ("PATH_NOT_FOUND", "there is no '/nowhere/at/all'"),
    "raise SystemExit(3)": ("PYTHON_ERROR", "SystemExit: 3"),
    "raise KeyboardInterrupt('mine')": ("PYTHON_ERROR", "KeyboardInterrupt: mine\n  a.py:5 in f"),
    "class Own(BaseException): pass\n  raise Own('mine')": ("PYTHON_ERROR", "Own: mine\n  a.py:6 in f"),
    "import os; os._exit(3)": ("PYTHON_ERROR", "os._exit(3) would end the update: raise an exception\n  a.py:5 in f"),
    "raise ValueError('\\ud800 bad')": ("PYTHON_ERROR", "ValueError: \\ud800 bad\n  a.py:5 in f"),
    "return dbutils.fs.ls(5)": ("PYTHON_ERROR", "path must be str or PathLike, not 5 (int)\n  a.py:5 in f"),
    "return spark.range(1), '\\ud800'":
        ("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE", "'\\ud800' (str) is no version of a snapshot: it is not text"),
    "return spark.range(1), datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))":
        ("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE", "in UTC it is outside of the years 1 to 9999"),
    "import pandas; return spark.range(1), pandas.Timestamp('2024-01-01 00:00:00.000000001')":
        ("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE", "versions that are times have microseconds; cut it with floor('us')"),
    "return spark.createDataFrame([(1, '\\ud800')], 'id INT, v STRING'), 1": ("INVALID_TEXT", "column v: '\\ud800' (str) is not text"),
}  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_what_goes_wrong_in_a_function(line, interpreter):
    code, message = WRONG[line]
    asked = interpreter(f"def f(latest):\n  {line}\ndef helper():\n  raise ValueError('no file today')\n{FLOW}")
    error = asked.next(None)["error"]
    assert error["code"] == code and message in error["message"], error
    assert (error["file"], error["line"]) in [("a.py", 4), ("a.py", 5), ("a.py", 6), ("a.py", 7)]
    assert "strandline_pipeline" not in error["message"]
    # It answers the next time, too.
    assert asked.next(None)["error"]["code"] == code


def test_what_an_error_comes_from(interpreter):
    asked = interpreter("""
def f(latest):
  try:
    helper()
  except KeyError as error:
    raise RuntimeError("no stock") from error
def helper():
  raise KeyError("stock")
""" + FLOW)
    message = asked.next(None)["error"]["message"]
    assert "RuntimeError: no stock\n  a.py:9 in f" in message
    assert "\ncaused by KeyError: 'stock'\n  a.py:7 in f\n    helper()\n  a.py:11 in helper" in message, message


def test_a_long_traceback_shows_its_ends(interpreter):
    message = interpreter(f"def f(latest):\n  return f(latest)\n{FLOW}").next(None)["error"]["message"]
    assert message.startswith("RecursionError: maximum recursion depth") and " more calls\n" in message
    assert message.count("a.py:5 in f") == 10


def test_passwords_go_to_the_program_alone(interpreter):
    asked = interpreter("""
def f(latest):
    password = "very-secret"
    frame = spark.read.format("jdbc").options(url="jdbc:postgresql://h/d", dbtable="t", password=password).load()
    if latest is None:
        return frame, 1
    raise ValueError("password is " + password)
""" + FLOW)
    assert "secrets" not in asked.declared
    answer = asked.next(None)
    assert list(answer["secrets"].values()) == ["very-secret"] and list(answer["secrets"])[0] in answer["query"]
    assert "very-secret" not in answer["query"] and isinstance(answer["extensions"], list)
    assert "password is ***" in asked.next(answer["version"])["error"]["message"]


CALLS = {
    "source=lambda: 1": "source must take one argument, the latest processed version",
    "source=lambda a, b: 1": "source must take one argument, the latest processed version",
    "source=3": "source must be the name of a table or view, or a function, not 3 (int)",
    "source=None": "source must be the name of a table or view, or a function, not None",
    "source='t', keys=[]": "keys is empty",
    "source='t', keys='id'": "keys must be list or tuple, not 'id' (str)",
    "source='t', stored_as_scd_type='bitemporal'": "stored_as_scd_type must be one of 1, '1', 2, '2', not 'bitemporal'",
    "source='t', track_history_column_list=['a'], track_history_except_column_list=['b']":
        "give track_history_column_list or track_history_except_column_list, not both",
    "source='t', track_history_column_list='a'": "track_history_column_list must be list or tuple, not 'a'",
    "source='t', once='yes'": "once must be bool, not 'yes' (str)",
    "source='t', name=5": "name must be str, not 5 (int)",
    "source='t', sequence_by='x'": "has no parameter sequence_by; there are target, source, keys,",
    "source='t', name=''": "name is empty",
    "source='t', target='a.b.c.d'": "target: 'a.b.c.d' is not a name",
    "source='t', keys={'id'}": "keys must be list or tuple, not {'id'} (set)",
    "source='t', keys=['id', 'ID']": "[AUTOCDC_DUPLICATE_COLUMN] keys names `ID` twice",
    "source='t', keys=['a.b']": "[AUTOCDC_MULTIPART_COLUMN_IDENTIFIER] keys: `a`.`b` has several parts",
    "source='t', track_history_column_list=['v']": "track_history_column_list needs stored_as_scd_type=2, not None",
    "source='t', track_history_except_column_list=['v'], stored_as_scd_type='1'":
        "track_history_except_column_list needs stored_as_scd_type=2, not '1'",
}  # fmt: skip


@pytest.mark.parametrize("arguments", CALLS)
def test_wrong_arguments_raise_at_the_call(arguments):
    from strandline import pipelines as dp

    given = eval(f"dict({arguments})")
    with pipelines_registry(dp), pytest.raises((TypeError, ValueError, strandline.InvalidArgumentError)) as caught:
        dp.create_auto_cdc_from_snapshot_flow(**{"target": "x", "keys": ["id"], **given})
    assert CALLS[arguments] in str(caught.value)


def test_old_names_take_the_same():
    from strandline import pipelines as dp

    with pipelines_registry(dp) as registry:
        dp.apply_changes_from_snapshot(target="x", snapshot_and_version=lambda latest: None, keys=["id"])
        assert registry.declared[0].function is not None
        with pytest.raises(strandline.InvalidArgumentError, match="give source or snapshot_and_version, not both"):
            dp.apply_changes_from_snapshot(target="x", source="t", snapshot_and_version=lambda latest: None, keys=["id"])
        with pytest.raises(TypeError, match="has no parameter bogus; there are target, source, keys"):
            dp.apply_changes_from_snapshot(target="x", source="t", keys=["id"], bogus=1)
    with pytest.raises(AttributeError, match="pipelines.tabel is not there; there are append_flow, .*, table,"):
        dp.tabel


def pipelines_registry(dp):
    return dp.collecting(dp.Registry())


@pytest.mark.parametrize("source", ["lambda latest: None", "Once().next", "Once()", "functools.partial(two, 1)", "lambda *a: None"])
def test_what_counts_as_a_function(source):
    import functools

    from strandline import pipelines as dp

    class Once:
        def next(self, latest):
            return None

        def __call__(self, latest=None):
            return None

    def two(a, latest):
        return None

    with pipelines_registry(dp) as registry:
        dp.apply_changes_from_snapshot("x", eval(source, {"Once": Once, "functools": functools, "two": two}), ["id"], "2")
        assert "FROM SNAPSHOT" in registry.declared[0].sql() and registry.declared[0].function is not None
