"""One Spark with Delta for all tests, and a reader made of it."""

import os
import time
from pathlib import Path

import delta_types
from harness import quote

# The tests' programs are in New York; instants and what Python makes of them are told in UTC here.
os.environ["TZ"] = "UTC"
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # nothing of it listens beyond this machine
time.tzset()

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.readSideCharPadding": "false",  # CHAR as it is stored
    # Small tables on a small machine.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "false",
}


class Spark:
    name = "spark"
    spelling = staticmethod(delta_types.bare)

    def __init__(self, folder):
        from pyspark.sql import SparkSession

        jars = sorted(Path(os.environ["STRANDLINE_SPARK_JARS"]).glob("*.jar"))
        builder = SparkSession.builder.master("local[1]").appName("strandline")
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        builder = builder.config("spark.local.dir", str(folder / "local"))
        builder = builder.config("spark.driver.extraJavaOptions",
                                 f"-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Dderby.system.home={folder / 'derby'}")
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()

    def sql(self, text):
        return self.session.sql(text)

    def run(self, *statements):
        for statement in statements:
            self.session.sql(statement).collect()

    def query(self, text):
        return [row.asDict() for row in self.session.sql(text).collect()]

    def read(self, path, version=None):
        at = "" if version is None else f" VERSION AS OF {version}"
        frame = self.session.sql(f"SELECT * FROM delta.{quote(str(path))}{at}")
        types = {field.name: delta_types.bare(field.dataType.jsonValue()) for field in frame.schema.fields}
        return types, [row.asDict() for row in frame.collect()]

    def row_ids(self, path, key):
        """Value of the key column -> (row id, row commit version)."""
        rows = self.query(f"SELECT {key} AS k, _metadata.row_id AS id, _metadata.row_commit_version AS at FROM delta.{quote(str(path))}")
        assert len({row["k"] for row in rows}) == len(rows)
        return {row["k"]: (row["id"], row["at"]) for row in rows}
