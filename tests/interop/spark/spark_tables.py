"""Tables that Spark with Delta writes: its statements, and ours on top of them. {t} is the table."""

from dataclasses import dataclass, field


@dataclass
class SparkTable:
    name: str
    statements: list
    # Statements of ours; after each one Spark must read what we read. Empty: the table is read only.
    ours: list = field(default_factory=list)
    settings: dict = field(default_factory=dict)  # of Spark, while it writes
    key: str = ""  # column by whose values rows are told apart: then row ids are compared as well
    we_refuse: str = ""  # words of our error when reading


TRACKED = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5', 'delta.columnMapping.mode' = '{mode}'"

PRIMITIVES = """CREATE TABLE {t} (k BIGINT NOT NULL, bo BOOLEAN, ti TINYINT, sm SMALLINT, i INT, f FLOAT, d DOUBLE, m DECIMAL(38,10), mi DECIMAL(9,2),
  ml DECIMAL(18,4), te STRING, vc VARCHAR(10), ch CHAR(4), bi BINARY, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING delta"""
NESTED = """CREATE TABLE {t} (k BIGINT, ar ARRAY<DOUBLE>, ma MAP<INT, STRING>, st STRUCT<x: INT, y: STRUCT<z: STRING, w: DECIMAL(20,3)>>,
  deep ARRAY<STRUCT<q: MAP<STRING, ARRAY<BINARY>>, n: TIMESTAMP_NTZ>>) USING delta"""
PRIMITIVE_ROWS = ["""INSERT INTO {t} VALUES
  (1, true, -128, -32768, -2147483648, 0.1, 1e300, 1234567890123456789012345678.0123456789, -9999999.99, 12345678901234.5678, '', 'v', 'c',
   X'00FF', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00'),
  (2, false, 127, 32767, 2147483647, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), 0, 0.01, -0.0001, 'größe ☃', NULL, NULL,
   X'', DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'),
  (3, NULL, NULL, NULL, NULL, NULL, -0.0D, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DATE'1582-10-04', TIMESTAMP'1582-10-04 12:00:00', NULL)"""]
ODD_PARTITIONS = ("INSERT INTO {t} VALUES ('a/b', 1), ('50%', 2), ('x=y', 3), ('a b', 4), ('c:d', 5), ('#?&+', 6), ('größe ☃', 7), ('\\'q\"', 8), "
                  "('%2F', 9), ('.', 10), ('..', 11), ('back\\\\slash', 12), ('line\\nbreak', 13), (NULL, 14), ('', 15), ('{{}}', 16), ('A', 17), ('a', 18)")
CHANGE_OF_OURS = ["UPDATE {t} SET g = 'ours' WHERE id IN (2, 7)", "DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} (id, g) VALUES (900, 'new')",
                  "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (901, 'merged'), (902, 'merged') AS v(id, g)) AS s ON t.id = s.id "
                  "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, s.g)",
                  "OPTIMIZE {t}", "ALTER TABLE {t} ADD COLUMNS (added STRUCT<x: INT>)",
                  "INSERT INTO {t} (id, g, added) VALUES (903, 'n', named_struct('x', 1))"]

TABLES = [
    SparkTable("primitives", [PRIMITIVES, *PRIMITIVE_ROWS], ["UPDATE {t} SET te = 'ours' WHERE k = 3", "DELETE FROM {t} WHERE k = 1"]),
    SparkTable("int96", [PRIMITIVES, *PRIMITIVE_ROWS], ["DELETE FROM {t} WHERE k = 1"], {"spark.sql.parquet.outputTimestampType": "INT96"}),
    SparkTable("millis", ["CREATE TABLE {t} (k INT, ts TIMESTAMP) USING delta",
                          "INSERT INTO {t} VALUES (1, TIMESTAMP'2024-02-29 12:30:00.123'), (2, TIMESTAMP'1900-01-01 00:00:00.001')"],
               ["UPDATE {t} SET k = 3 WHERE k = 1"], {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}),
    SparkTable("legacy_parquet", [NESTED, """INSERT INTO {t} SELECT 1, array(1.0D, NULL), map(1, 'a', 2, NULL),
        named_struct('x', 1, 'y', named_struct('z', 'q', 'w', CAST(0.125 AS DECIMAL(20,3)))), NULL"""],
               ["DELETE FROM {t} WHERE k = 5"], {"spark.sql.parquet.writeLegacyFormat": "true"}),
    SparkTable("nested", [NESTED, """INSERT INTO {t} VALUES (1, array(1.0D, NULL, -0.0D), map(1, 'a', 2, NULL),
        named_struct('x', 1, 'y', named_struct('z', 'q', 'w', CAST(0.125 AS DECIMAL(20,3)))),
        array(named_struct('q', map('k', array(X'00', NULL)), 'n', TIMESTAMP_NTZ'2024-02-29 12:30:00.5'), NULL)),
        (2, array(), map(), named_struct('x', NULL, 'y', NULL), array()), (3, NULL, NULL, NULL, NULL)"""],
               ["UPDATE {t} SET k = 10 WHERE k = 1"]),
    SparkTable("partitions", ["CREATE TABLE {t} (p STRING, id INT) USING delta PARTITIONED BY (p)", ODD_PARTITIONS],
               ["DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET p = 'neu/%' WHERE id IN (4, 14)"]),
    SparkTable("typed_partitions", ["""CREATE TABLE {t} (v STRING, i INT, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, m DECIMAL(10,3), b BOOLEAN, d DOUBLE, bi BINARY)
        USING delta PARTITIONED BY (i, da, ts, tn, m, b, d, bi)""", """INSERT INTO {t} VALUES
        ('a', -1, DATE'2024-02-29', TIMESTAMP'2024-02-29 12:30:00.123456', TIMESTAMP_NTZ'2024-02-29 12:30:00', 1.5, true, 1.5, X'41'),
        ('b', 0, DATE'1969-12-31', TIMESTAMP'1969-12-31 00:00:00', TIMESTAMP_NTZ'1969-12-31 23:59:59.5', -0.001, false, -1e100, X'4142'),
        ('c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""], ["UPDATE {t} SET v = 'ours' WHERE v = 'a'"]),
    SparkTable("deletion_vectors", ["CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS "
                                    "SELECT id, CAST(id % 7 AS STRING) AS g FROM range(0, 300, 1, 1)",
                                    "DELETE FROM {t} WHERE id % 10 = 3", "UPDATE {t} SET g = 'x' WHERE id = 42",
                                    "MERGE INTO {t} USING (SELECT id, 'm' AS g FROM range(290, 310)) s ON {t}.id = s.id "
                                    "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT *",
                                    "DELETE FROM {t} WHERE id = 44", "OPTIMIZE {t}", "DELETE FROM {t} WHERE id = 45", "RESTORE {t} TO VERSION AS OF 3"],
               CHANGE_OF_OURS),
    SparkTable("row_tracking", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES (" + TRACKED + ")",
                                "INSERT INTO {t} SELECT id, 'a' FROM range(0, 20, 1, 1)", "INSERT INTO {t} SELECT id + 100, 'b' FROM range(0, 5, 1, 1)",
                                "UPDATE {t} SET g = 'u' WHERE id < 8", "DELETE FROM {t} WHERE id = 11",
                                "MERGE INTO {t} USING (SELECT id, 'm' AS g FROM range(15, 25)) s ON {t}.id = s.id "
                                "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT *", "OPTIMIZE {t}"], CHANGE_OF_OURS, key="id"),
    SparkTable("row_tracking_later", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
                                      "INSERT INTO {t} SELECT id, 'a' FROM range(0, 20, 1, 1)",
                                      "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
                                      "UPDATE {t} SET g = 'u' WHERE id < 8"], CHANGE_OF_OURS, key="id"),
    SparkTable("v2_json_checkpoint", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2', " + TRACKED + ")",
                                      "INSERT INTO {t} SELECT id, 'a' FROM range(0, 10, 1, 1)", "UPDATE {t} SET g = 'u' WHERE id < 3",
                                      "INSERT INTO {t} VALUES (50, 'after')"], CHANGE_OF_OURS,
               {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"}, key="id"),
    SparkTable("v2_parquet_checkpoint", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta PARTITIONED BY (g) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
                                         "'delta.checkpointInterval' = '2', 'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false')",
                                         "INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING) FROM range(0, 10, 1, 1)", "DELETE FROM {t} WHERE id < 3",
                                         "INSERT INTO {t} VALUES (50, 'after')"], CHANGE_OF_OURS,
               {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}),
    SparkTable("classic_checkpoint", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '2')",
                                      "INSERT INTO {t} SELECT id, 'a' FROM range(0, 10, 1, 1)", "DELETE FROM {t} WHERE id < 3", "INSERT INTO {t} VALUES (50, 'x')"],
               CHANGE_OF_OURS, {"spark.databricks.delta.checkpoint.partSize": "2"}),
    SparkTable("in_commit_timestamps", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
                                        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"], CHANGE_OF_OURS),
    SparkTable("name_mapping", ["CREATE TABLE {t} (id BIGINT, old STRING, `odd, name;{{}}` INT) USING delta TBLPROPERTIES (" + MAPPED.format(mode="name") + ")",
                                "INSERT INTO {t} VALUES (1, 'a', 10), (2, 'b', 20), (7, 'c', 30)", "ALTER TABLE {t} RENAME COLUMN old TO g",
                                "ALTER TABLE {t} ADD COLUMN later STRUCT<x: INT, `y z`: STRING>", "INSERT INTO {t} VALUES (8, 'd', 40, named_struct('x', 1, 'y z', 'deep'))",
                                "ALTER TABLE {t} DROP COLUMN `odd, name;{{}}`", "ALTER TABLE {t} ADD COLUMN `odd, name;{{}}` DOUBLE",
                                "ALTER TABLE {t} RENAME COLUMN later.x TO renamed"], CHANGE_OF_OURS),
    SparkTable("id_mapping", ["CREATE TABLE {t} (id BIGINT, g STRING, p STRING, s STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>) USING delta PARTITIONED BY (p) "
                              "TBLPROPERTIES (" + MAPPED.format(mode="id") + ")",
                              "INSERT INTO {t} VALUES (1, 'a', 'x/y', named_struct('a', 1, 'b', array(named_struct('c', 5)))), (2, 'b', NULL, NULL)",
                              "ALTER TABLE {t} RENAME COLUMN p TO `part ition`", "INSERT INTO {t} VALUES (7, 'c', 'z', NULL)"], CHANGE_OF_OURS),
    SparkTable("upgraded_to_mapping", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta", "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
                                       "ALTER TABLE {t} SET TBLPROPERTIES (" + MAPPED.format(mode="name") + ")", "ALTER TABLE {t} RENAME COLUMN g TO h",
                                       "ALTER TABLE {t} RENAME COLUMN h TO g", "INSERT INTO {t} VALUES (7, 'c')"], CHANGE_OF_OURS),
    SparkTable("mapping_vectors_tracking", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', " + TRACKED + ")",
                                            "INSERT INTO {t} SELECT id, 'a' FROM range(0, 20, 1, 1)", "UPDATE {t} SET g = 'u' WHERE id < 4",
                                            "DELETE FROM {t} WHERE id = 9", "ALTER TABLE {t} RENAME COLUMN g TO h", "ALTER TABLE {t} RENAME COLUMN h TO g"],
               CHANGE_OF_OURS, key="id"),
    SparkTable("type_widening", ["CREATE TABLE {t} (id INT, g STRING, b TINYINT, f FLOAT, m DECIMAL(6,2), da DATE, s STRUCT<x: SMALLINT>) USING delta "
                                 "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')",
                                 "INSERT INTO {t} VALUES (1, 'a', 1, 0.1, 1.25, DATE'2024-02-29', named_struct('x', 5)), (2, 'b', -128, NULL, -9999.99, NULL, NULL)",
                                 "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "ALTER TABLE {t} ALTER COLUMN b TYPE INT", "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
                                 "ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(12,4)", "ALTER TABLE {t} ALTER COLUMN da TYPE TIMESTAMP_NTZ",
                                 "ALTER TABLE {t} ALTER COLUMN s.x TYPE INT",
                                 "INSERT INTO {t} VALUES (5000000000, 'c', 100000, 1e300, 12345678.1234, TIMESTAMP_NTZ'2024-01-01 01:02:03', named_struct('x', 70000))"],
               CHANGE_OF_OURS),
    SparkTable("check_constraint", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta", "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
                                    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (5, 'c')"], CHANGE_OF_OURS),
    SparkTable("generated_column", ["CREATE TABLE {t} (id BIGINT, g STRING, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta",
                                    "INSERT INTO {t} (id, g) VALUES (1, 'a'), (2, 'b')"], CHANGE_OF_OURS),
    SparkTable("identity_column", ["CREATE TABLE {t} (id BIGINT, g STRING, n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5)) USING delta",
                                   "INSERT INTO {t} (id, g) VALUES (1, 'a'), (2, 'b')"], CHANGE_OF_OURS),
    SparkTable("default_column", ["CREATE TABLE {t} (id BIGINT, g STRING, d INT DEFAULT 42) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
                                  "INSERT INTO {t} (id, g) VALUES (1, 'a'), (2, 'b')"], ["UPDATE {t} SET g = 'ours' WHERE id = 2", "DELETE FROM {t} WHERE id = 1"]),
    SparkTable("not_null", ["CREATE TABLE {t} (id BIGINT NOT NULL, g STRING, s STRUCT<x: INT NOT NULL>) USING delta",
                            "INSERT INTO {t} VALUES (1, 'a', named_struct('x', 1)), (2, 'b', named_struct('x', 2))"], CHANGE_OF_OURS),
    SparkTable("clustered", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta CLUSTER BY (g)", "INSERT INTO {t} SELECT id, CAST(id % 3 AS STRING) FROM range(0, 30, 1, 1)",
                             "OPTIMIZE {t}"], CHANGE_OF_OURS),
    SparkTable("change_feed", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
                               "INSERT INTO {t} SELECT id, 'a' FROM range(0, 10, 1, 1)", "UPDATE {t} SET g = 'u' WHERE id < 3", "DELETE FROM {t} WHERE id = 4"],
               CHANGE_OF_OURS),
    SparkTable("append_only", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')", "INSERT INTO {t} VALUES (1, 'a')"],
               ["INSERT INTO {t} VALUES (2, 'b')"]),
    SparkTable("log_compaction", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta", *[f"INSERT INTO {{t}} VALUES ({n}, 'a')" for n in range(5)],
                                  "DELETE FROM {t} WHERE id = 3"], CHANGE_OF_OURS,
               {"spark.databricks.delta.deltaLog.minorCompaction.useForReads": "true"}),
    SparkTable("schema_evolution", ["CREATE TABLE {t} (id BIGINT, g STRING) USING delta", "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
                                    "ALTER TABLE {t} ADD COLUMNS (h INT, s STRUCT<x: INT>)", "INSERT INTO {t} VALUES (7, 'c', 1, named_struct('x', 2))",
                                    "ALTER TABLE {t} ADD COLUMNS (s.y STRING AFTER x)", "INSERT INTO {t} VALUES (8, 'd', 2, named_struct('x', 3, 'y', 'z'))"], CHANGE_OF_OURS),
    SparkTable("variant", ["CREATE TABLE {t} (id BIGINT, v VARIANT) USING delta", "INSERT INTO {t} SELECT 1, parse_json('{{\"a\": [1, 2.5, null]}}')"], we_refuse="variantType"),
]
