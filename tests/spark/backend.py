"""Runs programs that `strandline plan --dialect spark --json` prints, on a local Spark.

What a distributed back end would do: it registers the relations a program reads, keeps the table
of each step, applies new and dead rows. Target and state live in DataFrames; a row's place is a
number that is never used again.
"""

import json
import os
import time
from dataclasses import dataclass, field
from decimal import Decimal

os.environ["TZ"] = "UTC"
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # nothing of it listens beyond this machine
time.tzset()

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.log.level": "OFF",
    # Nobody looks at what ran: kept, the plans of thousands of statements fill the memory.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.maxPlanStringLength": "1000",
    # Small tables on a small machine.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Of a union over checkpointed tables Spark 4.1 loses columns that it knows a condition of.
    "spark.sql.constraintPropagation.enabled": "false",
}
# As the program prints them.
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
        "ignoreNullFields": "false"}


def start(folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("strandline")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    builder = builder.config("spark.local.dir", str(folder / "local"))
    builder = builder.config("spark.driver.extraJavaOptions",
                             f"-Duser.timezone=UTC -XX:ReservedCodeCacheSize=256m -Dderby.system.home={folder / 'derby'}")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class CheckFailed(Exception):
    """A check of the program failed: the batch changes nothing."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass
class Stored:
    """A table: rows with __strandline_row and __strandline_row_id; None while there is none."""

    frame: object = None
    places: set = field(default_factory=set)
    last_place: int = -1
    edits: object = None  # rows changed by hand since the batch before, with __strandline_change


@dataclass
class Tables:
    target: Stored
    state: Stored

    @staticmethod
    def empty():
        return Tables(Stored(), Stored())


def keep(frame):
    """The rows as they are now: not computed again, whatever becomes of what they were made of.
    One partition, so that nothing need be shuffled. Rows alone: a checkpoint also carries the estimate of
    its plan's size, a product over joins that from batch to batch becomes a number of megabytes."""
    from pyspark.sql.classic.dataframe import DataFrame

    session, rows = frame.sparkSession, frame.coalesce(1).localCheckpoint(eager=True)._jdf
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), False), session)


def reshaped(column, old, new):
    """A value under a new type: structs by field, what was not there is null."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if old == new:
        return column
    if isinstance(new, StructType):
        fields = {field.name.lower(): field for field in old.fields}
        parts = []
        for field in new.fields:
            had = fields.get(field.name.lower())
            part = F.lit(None).cast(field.dataType) if had is None else reshaped(column[had.name], had.dataType, field.dataType)
            parts.append(part.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(new, ArrayType):
        return F.transform(column, lambda x: reshaped(x, old.elementType, new.elementType))
    if isinstance(new, MapType):
        keys = F.transform_keys(column, lambda k, _: reshaped(k, old.keyType, new.keyType))
        return F.transform_values(keys, lambda _, v: reshaped(v, old.valueType, new.valueType))
    return column.cast(new)


class Backend:
    """One at a time in a session: its tables are the session's views."""

    def __init__(self, spark):
        self.spark = spark
        self.counts = {}  # query -> what it gave, until a table it reads changes

    def schema(self, ddl):
        from pyspark.sql.types import StructType

        return StructType.fromDDL(ddl)

    def events(self, file, ddl):
        """Rows of a file of JSON lines, under the names of the schema."""
        return keep(self.spark.read.schema(self.schema(ddl)).json(str(file)))

    def run(self, program, events, tables):
        """One batch; returns its metrics. Raises CheckFailed."""
        self.register(program, events, tables)
        self.counts = {}
        for step in program["steps"]:
            self.step(step)
        metrics = self.spark.sql(program["metrics"]).collect()
        assert len(metrics) == 1
        new = {name: keep(self.spark.sql(program[f"{name}_new"])) for name in ("target", "state")}
        dead = {name: [row[1] for row in self.spark.sql(program[f"{name}_dead"]).collect()] for name in new}
        tables.target.edits = None
        self.apply(tables.target, program["target_columns"], new["target"], dead["target"])
        self.apply(tables.state, program["state_columns"], new["state"], dead["state"])
        for step in program["steps"]:
            if step["kind"] == "make":
                self.spark.catalog.dropTempView(step["table"])
        return metrics[0].asDict()

    def register(self, program, events, tables):
        from pyspark.sql import functions as F

        events.createOrReplaceTempView("strandline_source")
        for name, stored in (("strandline_target", tables.target), ("strandline_state", tables.state)):
            self.spark.catalog.dropTempView(name)
            if stored.frame is None:
                continue
            frame = stored.frame.withColumn("__strandline_file", F.lit(0))
            frame = frame.withColumn("__strandline_row_commit_version", F.lit(None).cast("bigint"))
            frame.createOrReplaceTempView(name)
        if tables.target.edits is not None:
            tables.target.edits.createOrReplaceTempView("strandline_edits")
        for relation in program["reads"]:
            columns = self.spark.table(relation["name"]).columns
            missing = [field.name for field in self.schema(relation["columns"]).fields if field.name not in columns]
            assert not missing, f"{relation['name']} lacks {missing}"

    def is_wanted(self, query):
        if query not in self.counts:
            self.counts[query] = self.spark.sql(query).collect()[0][0]
        return self.counts[query] != 0

    def step(self, step):
        wanted = "only_if" not in step or self.is_wanted(step["only_if"])
        if step["kind"] == "make" or wanted and step["kind"] == "change":
            frame = self.spark.sql(step["sql"])
            frame = keep(frame) if wanted else self.spark.createDataFrame([], frame.schema)
            frame.createOrReplaceTempView(step["table"])
            self.counts = {query: count for query, count in self.counts.items() if step["table"] not in query}
        elif wanted:
            count, example = self.spark.sql(step["sql"]).collect()[0]
            if count:
                message = step["message"].replace("{count}", str(count)).replace("{example}", str(example))
                raise CheckFailed(step["code"], message)

    def edit(self, stored, query):
        """A change by hand: the query gives the target's rows as they shall be, from `edited`."""
        from pyspark.sql import functions as F

        before = stored.frame.drop("__strandline_row", "__strandline_row_id")
        before.createOrReplaceTempView("edited")
        after = keep(self.spark.sql(query))
        changed = [left.exceptAll(right).withColumn("__strandline_change", F.lit(sign))
                   for left, right, sign in ((after, before, 1), (before, after, -1))]
        stored.edits = keep(changed[0].union(changed[1]))
        place = F.lit(stored.last_place + 1) + F.monotonically_increasing_id()
        self.store(stored, after.select("*", place.alias("__strandline_row"), place.alias("__strandline_row_id")))

    def apply(self, stored, ddl, new, dead):
        from pyspark.sql import functions as F

        assert len(set(dead)) == len(dead) and set(dead) <= stored.places, "dead rows must be there"
        fields = self.schema(ddl).fields
        frame = self.placed(stored, fields, new)
        if stored.frame is not None:
            kept = stored.frame.where(~F.col("__strandline_row").isin(dead)) if dead else stored.frame
            old = {field.name.lower(): field for field in stored.frame.schema.fields}
            columns = [(reshaped(F.col(f"`{old[field.name.lower()].name}`"), old[field.name.lower()].dataType, field.dataType)
                        if field.name.lower() in old else F.lit(None).cast(field.dataType)).alias(field.name) for field in fields]
            frame = kept.select(*columns, "__strandline_row", "__strandline_row_id").union(frame)
        self.store(stored, frame)

    @staticmethod
    def store(stored, frame):
        stored.frame = keep(frame)
        stored.places = {row[0] for row in stored.frame.select("__strandline_row").collect()}
        stored.last_place = max([stored.last_place, *stored.places])

    @staticmethod
    def placed(stored, fields, new):
        from pyspark.sql import functions as F

        assert [field.name for field in fields] == new.columns[:len(fields)]
        place = F.lit(stored.last_place + 1) + F.monotonically_increasing_id()
        row_id = F.coalesce(F.col("__strandline_row_id"), place) if "__strandline_row_id" in new.columns else place
        columns = [F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in fields]
        return new.select(*columns, place.alias("__strandline_row"), row_id.alias("__strandline_row_id"))

    def rows(self, stored):
        """A table's rows as dictionaries, as the program prints them."""
        from pyspark.sql import functions as F

        if stored.frame is None:
            return []
        columns = [f"`{name}`" for name in stored.frame.columns if not name.startswith("__strandline_row")]
        found = stored.frame.select(F.to_json(F.struct(*columns), JSON).alias("row")).collect()
        return [json.loads(row["row"], parse_float=Decimal) for row in found]

