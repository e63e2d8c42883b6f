"""Tables that `strandline sql` writes for other readers: statements, and what a reader is known not to do."""

from dataclasses import dataclass, field
from pathlib import Path

import delta_types
from harness import query, run_pipeline, write_json_lines


@dataclass
class Scenario:
    name: str
    script: str  # statements that leave a table t
    rows: int  # of the latest version
    # Reader -> words of the error with which it refuses the table; it must refuse, so that a change is seen.
    refused_by: dict = field(default_factory=dict)

    def build(self, warehouse):
        """The table's folder."""
        query(warehouse, self.script)
        return Path(warehouse) / "main" / "default" / "t"


ALL_TYPES = """
CREATE TABLE t (
  k BIGINT NOT NULL, bo BOOLEAN, ti TINYINT, sm SMALLINT, i INT, f FLOAT, d DOUBLE, m DECIMAL(38,10), mi DECIMAL(9,2),
  te STRING, bi BINARY, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, ar ARRAY<DOUBLE>, ma MAP<INT, STRING>,
  st STRUCT<x: INT, y: STRUCT<z: STRING, w: DECIMAL(20,3)>>, deep ARRAY<STRUCT<q: MAP<STRING, ARRAY<BINARY>>, n: TIMESTAMP_NTZ>>
);
INSERT INTO t VALUES
  (1, true, -128, -32768, -2147483648, 0.1, 1e300, 1234567890123456789012345678.0123456789, -9999999.99,
   '', X'00FF', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00',
   array(1.0D, NULL, -0.0D), map(1, 'a', 2, NULL), named_struct('x', 1, 'y', named_struct('z', 'q', 'w', 0.125)),
   array(named_struct('q', map('k', array(X'00', NULL)), 'n', TIMESTAMP_NTZ'2024-02-29 12:30:00.5'), NULL)),
  (2, false, 127, 32767, 2147483647, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), 0, 0.01,
   'größe ☃ \\n \\'quoted\\'', X'', DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999',
   CAST(array() AS ARRAY<DOUBLE>), CAST(map() AS MAP<INT, STRING>), named_struct('x', NULL, 'y', NULL), array(named_struct('q', NULL, 'n', NULL)));
INSERT INTO t (k) VALUES (3);
"""

# Text that is special in file names, URLs, JSON or Hive paths.
ODD = ["a/b", "50%", "x=y", "a b", "c:d", "#?&+", "größe ☃", "'quote\"", "back\\slash", "%2F", ".", "..", "UPPER", "upper", "*[x]", "a,b;c|d",
       "__HIVE_DEFAULT_PARTITION__x", "tab\there", "line\nbreak"]


def text(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"


TEXT_PARTITIONS = ("CREATE TABLE t (p STRING, n INT) PARTITIONED BY (p); INSERT INTO t VALUES " +
                   ", ".join(f"({text(value)}, {number})" for number, value in enumerate(ODD)) + ", (NULL, 99)")

TYPED_PARTITIONS = """
CREATE TABLE t (v STRING, i INT, l BIGINT, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, m DECIMAL(10,3), b BOOLEAN, d DOUBLE)
PARTITIONED BY (i, l, da, ts, tn, m, b, d);
INSERT INTO t VALUES
  ('a', -1, 9223372036854775807, DATE'2024-02-29', TIMESTAMP'2024-02-29 12:30:00.123456', TIMESTAMP_NTZ'2024-02-29 12:30:00', 1.500, true, 1.5),
  ('b', 0, -9223372036854775808, DATE'1969-12-31', TIMESTAMP'1969-12-31 00:00:00', TIMESTAMP_NTZ'1969-12-31 23:59:59.5', -0.001, false, -1e100),
  ('c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""

# Names that only column mapping can keep, at every level. The partition column is the first: DuckDB's extension reads NULL
# for a mapped one elsewhere.
MAPPED = """
CREATE TABLE t (`p=q` STRING, `user id` BIGINT, s STRUCT<`a b`: INT, l: ARRAY<STRUCT<`x,y`: STRING, d: DECIMAL(9,2)>>>, mm MAP<STRING, STRUCT<`k;`: INT>>)
{layout} TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}'{properties});
INSERT INTO t VALUES
  ('a%b=c', 1, named_struct('a b', 5, 'l', array(named_struct('x,y', 'hi', 'd', 1.25), NULL)), map('u', named_struct('k;', 3))),
  (NULL, 2, NULL, map()), ('z', 3, named_struct('a b', NULL, 'l', NULL), NULL);
INSERT INTO t SELECT 'z', id, NULL, NULL FROM range(10, 40);
UPDATE t SET `user id` = 20000 WHERE `user id` = 2;
DELETE FROM t WHERE `user id` BETWEEN 12 AND 15;
"""


def mapped(mode, layout, properties=""):
    return MAPPED.format(mode=mode, layout=layout, properties=properties)


SCENARIOS = [
    Scenario("all_types", ALL_TYPES, 3),
    Scenario("text_partitions", TEXT_PARTITIONS, len(ODD) + 1),
    Scenario("typed_partitions", TYPED_PARTITIONS, 3),
    Scenario("empty", "CREATE TABLE t (a INT, b STRUCT<x: STRING>)", 0),
    Scenario("created_as", "CREATE TABLE t AS SELECT id, CAST(id * 1.5 AS DECIMAL(12,2)) AS m, CAST(id AS STRING) AS s FROM range(1000)", 1000),
    Scenario("odd_names", "CREATE TABLE t (`user-id` INT, `größe` DOUBLE, `日本` STRING, file_row_number INT, `select` STRING); "
             "INSERT INTO t VALUES (1, 1.5, '本', 7, 's'), (2, NULL, NULL, NULL, NULL)", 2),
    Scenario("deletion_vectors", """
        CREATE TABLE t AS SELECT id, id % 7 AS g FROM range(500);
        DELETE FROM t WHERE id % 10 = 3;
        DELETE FROM t WHERE id IN (1, 499);
        UPDATE t SET g = -1 WHERE id < 20 AND g = 2;
        INSERT INTO t VALUES (1000, 5);
        DELETE FROM t WHERE id = 1000;""", 448),
    Scenario("no_deletion_vectors", """
        CREATE TABLE t (id BIGINT, g STRING) PARTITIONED BY (g) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
        INSERT INTO t SELECT id, CAST(id % 3 AS STRING) FROM range(30);
        DELETE FROM t WHERE id < 5;
        UPDATE t SET g = 'moved' WHERE id = 7;
        DELETE FROM t WHERE g = '1';""", 18),
    Scenario("checkpoint", "CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p); " + "".join(
        f"INSERT INTO t VALUES ({n}, 'p {n % 2}'), ({n + 100}, NULL); " for n in range(12)) + "DELETE FROM t WHERE id IN (3, 104)", 22),
    Scenario("v2_checkpoint", "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2'); " + "".join(
        f"INSERT INTO t VALUES ({n}), ({n + 100}); " for n in range(12)) + "DELETE FROM t WHERE id IN (3, 104)", 22),
    Scenario("clustered", "CREATE TABLE t (id BIGINT, g STRING) CLUSTER BY (g); INSERT INTO t SELECT id, CAST(id % 5 AS STRING) FROM range(50); "
             "DELETE FROM t WHERE id = 7", 49),
    Scenario("overwritten", "CREATE TABLE t AS SELECT 1 AS a; INSERT OVERWRITE t VALUES (5), (6); TRUNCATE TABLE t; INSERT INTO t VALUES (7)", 1),
    Scenario("plain_properties", "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.enableRowTracking' = 'false', "
             "'delta.enableInCommitTimestamps' = 'false'); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1", 1),
    Scenario("replaced", "CREATE TABLE t AS SELECT 1 AS a; CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 2 AS c", 1),
    Scenario("merged", """
        CREATE TABLE t AS SELECT id, CAST(id AS STRING) AS g FROM range(20);
        MERGE INTO t USING (SELECT id, 'm' AS g FROM range(15, 25)) AS s ON t.id = s.id
          WHEN MATCHED AND s.id = 16 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
          WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN UPDATE SET g = 'left';""", 24),
    Scenario("merged_without_vectors", """
        CREATE TABLE t (id BIGINT, g STRING) PARTITIONED BY (g) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
        INSERT INTO t SELECT id, CAST(id % 2 AS STRING) FROM range(10);
        MERGE INTO t USING (SELECT id, 'x/y' AS g FROM range(8, 12)) AS s ON t.id = s.id
          WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);""", 12),
    Scenario("replaced_where", """
        CREATE TABLE t (id BIGINT, g STRING) PARTITIONED BY (g);
        INSERT INTO t SELECT id, CAST(id % 3 AS STRING) FROM range(9);
        INSERT INTO t REPLACE WHERE g = '1' SELECT id, '1' FROM range(100, 105);""", 11),
    Scenario("optimized", "CREATE TABLE t (id BIGINT, g STRING) PARTITIONED BY (g); " + "".join(
        f"INSERT INTO t SELECT id, CAST(id % 3 AS STRING) FROM range({n}, {n + 10}); " for n in (0, 10, 20)) + """
        DELETE FROM t WHERE id % 5 = 0;
        OPTIMIZE t;
        INSERT INTO t VALUES (100, '0'), (101, NULL);
        OPTIMIZE t ZORDER BY (id);
        DELETE FROM t WHERE id = 1;
        REORG TABLE t APPLY (PURGE);
        VACUUM t;
        RESTORE TABLE t TO VERSION AS OF 4;
        INSERT INTO t VALUES (200, 'x');
        OPTIMIZE t WHERE g = 'x' OR g = '1'""", 25),
    Scenario("optimized_clusters", mapped("id", "CLUSTER BY (`user id`, `p=q`)") +
             "OPTIMIZE t; INSERT INTO t VALUES ('n', 77, NULL, NULL); OPTIMIZE t; OPTIMIZE t FULL; RESTORE TABLE t TO VERSION AS OF 2;"
             "INSERT INTO t VALUES ('n', 78, NULL, NULL); OPTIMIZE t", 34),
    Scenario("mapped_by_name", mapped("name", "PARTITIONED BY (`p=q`)"), 29),
    Scenario("mapped_by_id", mapped("id", "CLUSTER BY (`user id`)"), 29),
    Scenario("mapped_plain", mapped("name", "", ", 'delta.enableDeletionVectors' = 'false', 'delta.enableRowTracking' = 'false'"), 29),
]

# Target -> storage and what follows it, properties of the table.
AUTO_CDC = {
    "scd1": ("1", ""),
    "scd2": ("2", " PARTITIONED BY (b) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
    "tracked": ("2 TRACK HISTORY ON (a)", " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"),
}


# The same with a recorded change feed, for readers of feeds.
FEED = "'delta.enableChangeDataFeed' = 'true'"
FED = {
    "scd1": ("1", f" TBLPROPERTIES ({FEED}, 'delta.enableDeletionVectors' = 'false')"),
    "scd1_vectors": ("1", f" TBLPROPERTIES ({FEED})"),
    "scd2": ("2", f" TBLPROPERTIES ({FEED}, 'delta.enableDeletionVectors' = 'false')"),
    "scd2_partitions": ("2", f" PARTITIONED BY (b) TBLPROPERTIES ({FEED}, 'delta.enableDeletionVectors' = 'false')"),
    "tracked_vectors": ("2 TRACK HISTORY ON (a)", f" TBLPROPERTIES ({FEED})"),
}


def feed_bag(rows, path):
    """Rows of a feed in what readers can agree in: the commit's time is a matter of the reader's clock."""
    schema = {"type": "struct", "fields": [*delta_types.logged_schema(path)["fields"], {"name": "_change_type", "type": "string"},
                         {"name": "_commit_version", "type": "long"}]}
    names = [field["name"] for field in schema["fields"]]
    return delta_types.bag([{name: row[name] for name in names} for row in rows], schema)


def auto_cdc_targets(folder, targets=None):
    """Name -> folder of a target after three batches with late events, deletes and nulls."""
    targets = targets or AUTO_CDC
    (folder / "p").mkdir()
    (folder / "p" / "p.sql").write_text("".join(
        f"CREATE STREAMING TABLE {name}{properties};\nCREATE FLOW {name} AS AUTO CDC INTO {name} "
        f"FROM STREAM read_files('{folder / 'in'}', format => 'json', schema => 'k BIGINT, a STRING, b STRING, n STRUCT<x: DECIMAL(9,2)>, op STRING, "
        f"s TIMESTAMP') KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT (op, s) STORED AS SCD TYPE {storage};\n"
        for name, (storage, properties) in targets.items()), encoding="utf-8")
    for batch in range(3):
        write_json_lines(folder / "in" / f"{batch}.json", [
            {"k": key, "a": f"{key % 3}", "b": None if key % 4 == 0 else f"{batch}/%", "n": {"x": f"{key}.25"}, "op": "D" if (key + batch) % 5 == 0 else "U",
             "s": f"2024-01-01T00:{(7 * batch + key) % 20:02}:00Z"} for key in range(12)])
        run = run_pipeline(folder / "p", folder / "w")
        assert run.ok, run.explain()
    return {name: folder / "w" / "main" / "default" / name for name in targets}
