"""Values that Spark reads and computes in another way than the engine below: random ones against
Python's own, and a table that Spark wrote."""

import csv
import datetime
import json
import random
import struct
import zoneinfo
from decimal import ROUND_HALF_UP, Decimal, localcontext

from harness import query, run_pipeline, sql_text

UTC = datetime.timezone.utc


def rounded(text, precision, scale):
    with localcontext() as context:
        context.prec = 400
        value = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return value if abs(value) < Decimal(10) ** (precision - scale) else None


def random_double(dice):
    kind = dice.randrange(4)
    if kind == 0:  # halves of the last digit
        return (2 * dice.randrange(-1_000_000, 1_000_000) + 1) / 200
    if kind == 1:
        return dice.randrange(-10**15, 10**15) / 10 ** dice.randrange(8)
    if kind == 2:
        return dice.uniform(-1, 1) * 10.0 ** dice.randrange(-14, 16)
    value = struct.unpack("<d", dice.randbytes(8))[0]
    return value if value == value and abs(value) < 1e30 else 0.0


def test_doubles_become_the_decimal_of_their_shortest_text(tmp_path):
    dice = random.Random(20261201)
    values = [random_double(dice) for _ in range(100_000)]
    with open(tmp_path / "values.csv", "w", newline="") as file:
        csv.writer(file).writerows([("n", "v"), *((i, repr(value)) for i, value in enumerate(values))])
    types = [(18, 2), (38, 10), (10, 0)]
    items = ", ".join(f"try_cast(v AS DECIMAL({p},{s})) AS d{i}, "
                      f"from_json(concat('{{\"a\":', t, '}}'), 'a DECIMAL({p},{s})').a AS j{i}"
                      for i, (p, s) in enumerate(types))
    rows = query(tmp_path / "w", f"""SELECT n, {items} FROM (SELECT n, CAST(t AS DOUBLE) AS v, t FROM
        read_files('{tmp_path}/values.csv', format => 'csv', header => true, schema => 'n INT, v STRING') AS f(n, t))""")
    assert len(rows) == len(values)
    for row in rows:
        for i, (precision, scale) in enumerate(types):
            wanted = rounded(repr(values[row["n"]]), precision, scale)
            for got in (row[f"d{i}"], row[f"j{i}"]):
                assert (got if got is None else Decimal(str(got))) == wanted, (values[row["n"]], precision, scale)


def local_times(dice):
    """Times around the changes of clocks and at random, with their zones."""
    zones = sorted(zone for zone in zoneinfo.available_timezones()
                   if "/" in zone and not zone.startswith(("posix/", "right/", "Etc/")))
    for name in dice.sample(zones, 80) + ["Europe/Berlin", "Europe/Dublin", "Australia/Lord_Howe",
                                          "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]:
        zone = zoneinfo.ZoneInfo(name)
        for _ in range(20):
            day = datetime.datetime(dice.randrange(1850, 2037), 1, 1)
            yield name, day + datetime.timedelta(minutes=dice.randrange(366 * 24 * 60))
        for year in dice.sample(range(1905, 2037), 3):
            hours = (datetime.datetime(year, 1, 1, tzinfo=UTC) + datetime.timedelta(hours=h) for h in range(366 * 24))
            before = None
            for hour in hours:
                offset = hour.astimezone(zone).utcoffset()
                if before is not None and offset != before:
                    around = hour.astimezone(zone).replace(tzinfo=None)
                    for minutes in range(-150, 151, 30):
                        yield name, around + datetime.timedelta(minutes=minutes)
                before = offset


def test_local_times_are_the_earlier_of_two_and_later_by_what_is_left_out(tmp_path):
    cases = list(local_times(random.Random(7)))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    wanted = []
    for zone, local in cases:
        instant = local.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=0).astimezone(UTC)
        wanted.append((instant - epoch) // datetime.timedelta(microseconds=1))
    with open(tmp_path / "times.csv", "w", newline="") as file:
        rows = ((i, zone, local.isoformat(" "), want) for i, ((zone, local), want) in enumerate(zip(cases, wanted)))
        csv.writer(file).writerows([("n", "z", "l", "w"), *rows])
    # What the two databases of zones tell differently is not compared: their times about the instant.
    day = 86_400_000_000
    about = ", ".join(f"unix_micros(from_utc_timestamp(timestamp_micros(w + {shift}), z)) AS s{i}"
                      for i, shift in enumerate((-day, -day // 8, 0, day // 8, day)))
    rows = query(tmp_path / "w", f"""SELECT n, unix_micros(to_utc_timestamp(l, z)) AS u,
        unix_micros(CAST(concat(l, ' ', z) AS TIMESTAMP)) AS c, {about} FROM read_files('{tmp_path}/times.csv',
        format => 'csv', header => true, schema => 'n INT, z STRING, l STRING, w BIGINT')""")
    assert len(rows) == len(cases)
    compared = twice = 0
    for row in rows:
        zone, local = cases[row["n"]]
        want = wanted[row["n"]]
        tz = zoneinfo.ZoneInfo(zone)

        def seen(shift, want=want, tz=tz):
            there = (epoch + datetime.timedelta(microseconds=want + shift)).astimezone(tz)
            return (there.replace(tzinfo=UTC) - epoch) // datetime.timedelta(microseconds=1)

        if any(row[f"s{i}"] != seen(shift) for i, shift in enumerate((-day, -day // 8, 0, day // 8, day))):
            continue
        compared += 1
        aware = local.replace(tzinfo=tz)
        twice += aware.utcoffset() > aware.replace(fold=1).utcoffset()
        assert (row["u"], row["c"]) == (want, want), (zone, local)
    assert compared > 2_000 and twice > 100


def as_char(table, column, length):
    """Declares a column as Spark does: the texts in the files stay as they are."""
    first = sorted((table / "_delta_log").glob("*.json"))[0]
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for field in schema["fields"]:
                if field["name"] == column:
                    field["metadata"]["__CHAR_VARCHAR_TYPE_STRING"] = f"char({length})"
            action["metaData"]["schemaString"] = json.dumps(schema)
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in (table / "_delta_log").glob("*.crc"):
        checksum.unlink()


def char_table(warehouse, name, partitioned=False):
    """A table of Spark's with CHAR(4) texts without blanks at their end."""
    by = "PARTITIONED BY (c)" if partitioned else ""
    sql_text(warehouse, f"CREATE TABLE {name} (c STRING, v INT) {by}; "
                        f"INSERT INTO {name} VALUES ('ab', 1), ('abcd', 2), (NULL, 3), ('é', 4)")
    as_char(warehouse / "main" / "default" / name, "c", 4)


def test_chars_without_their_blanks_are_read_with_them(tmp_path):
    for name, partitioned in (("plain", False), ("parted", True)):
        char_table(tmp_path, name, partitioned)
        assert query(tmp_path, f"SELECT concat(c, '|') AS c FROM {name} ORDER BY v") == [
            {"c": "ab  |"}, {"c": "abcd|"}, {"c": None}, {"c": "é   |"}]
        for text in ("ab", "ab  ", "ab      "):
            assert query(tmp_path, f"SELECT v FROM {name} WHERE c = '{text}'") == [{"v": 1}]
        assert query(tmp_path, f"SELECT v FROM {name} WHERE c IN ('é', 'x')") == [{"v": 4}]
        assert query(tmp_path, f"SELECT v FROM {name} WHERE concat(c, '') = 'ab  '") == [{"v": 1}]
        assert query(tmp_path, f"SELECT a.v FROM {name} a JOIN (SELECT 'ab  ' AS k) b ON a.c = b.k") == [{"v": 1}]
        sql_text(tmp_path, f"UPDATE {name} SET v = 10 WHERE c = 'ab'; DELETE FROM {name} WHERE c = 'é'; "
                           f"MERGE INTO {name} t USING (SELECT 'abcd' AS k) s ON t.c = s.k WHEN MATCHED THEN UPDATE SET v = 20; "
                           f"INSERT INTO {name} VALUES ('ab', 11)")
        assert query(tmp_path, f"SELECT concat(c, '|') AS c, v FROM {name} ORDER BY v") == [
            {"c": None, "v": 3}, {"c": "ab  |", "v": 10}, {"c": "ab  |", "v": 11}, {"c": "abcd|", "v": 20}]
        changes = query(tmp_path, f"SELECT DISTINCT length(c) AS n FROM table_changes('{name}', 0) WHERE c IS NOT NULL")
        assert changes == [{"n": 4}]


def test_keys_of_auto_cdc_from_chars_meet_whoever_wrote_them(tmp_path):
    char_table(tmp_path, "src")
    sql_text(tmp_path, "INSERT INTO src VALUES ('ab', 7)")
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "p.sql").write_text("CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM (SELECT * FROM STREAM(src) WHERE c IS NOT NULL) "
                                  "KEYS (c) SEQUENCE BY v;")
    done = run_pipeline(folder, tmp_path)
    assert done.ok, done.explain()
    assert query(tmp_path, "SELECT concat(c, '|') AS c, v FROM t ORDER BY v") == [
        {"c": "abcd|", "v": 2}, {"c": "é   |", "v": 4}, {"c": "ab  |", "v": 7}]
