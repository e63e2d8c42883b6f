"""Ways in which a table's files can be wrong, and what the program must make of each.

A damage changes the files of one of the tables of test_corrupt.py. It comes to an error with a code
and words that lead to the place, or to the same rows as before: never to fewer.
"""

import json
import os
import shutil
import zlib
from dataclasses import dataclass, field
from typing import Callable

import duckdb

SAME_ROWS = "same rows"


@dataclass
class Damage:
    name: str
    table: str  # of test_corrupt.TABLES
    change: Callable  # of the table's folder
    code: str  # of the error, or SAME_ROWS
    words: list = field(default_factory=list)  # that the error must have


def commit(path, version):
    return path / "_delta_log" / f"{version:020}.json"


def edit_commit(version, change):
    """change: action (dictionary) -> action, or None to leave it out."""

    def apply(path):
        file = commit(path, version)
        actions = [change(json.loads(line)) for line in file.read_text("utf-8").splitlines()]
        file.write_text("".join(json.dumps(action) + "\n" for action in actions if action is not None), encoding="utf-8")

    return apply


def edit_add(version, **changes):
    def change(action):
        if "add" in action:
            action["add"].update(changes)
        return action

    return edit_commit(version, change)


def edit_add_without(version, name):
    def change(action):
        action.get("add", {}).pop(name, None)
        return action

    return edit_commit(version, change)


def edit_commit_text(version, change):
    def apply(path):
        file = commit(path, version)
        file.write_text(change(file.read_text("utf-8")), encoding="utf-8")

    return apply


def metadata_line(text):
    return next(line for line in text.splitlines() if "metaData" in line) + "\n"


def edit_vector(**changes):
    """Of the commit that has a deletion vector."""

    def change(action):
        if action.get("add", {}).get("deletionVector"):
            action["add"]["deletionVector"].update(changes)
        return action

    return edit_commit(VECTOR_VERSION, change)


def edit_metadata(**changes):
    def change(action):
        if "metaData" in action:
            action["metaData"].update(changes)
        return action

    return edit_commit(0, change)


def edit_protocol(**changes):
    def change(action):
        if "protocol" in action:
            action["protocol"].update(changes)
        return action

    return edit_commit(0, change)


def write(relative, content):
    def apply(path):
        (path / relative).write_bytes(content if isinstance(content, bytes) else content.encode())

    return apply


def log_file(version):
    return f"_delta_log/{version:020}.json"


def cut(find, share=0.5):
    """Leaves only the first share of a file."""

    def apply(path):
        file = find(path)
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * share)])

    return apply


def flip(find, at):
    def apply(path):
        file = find(path)
        data = bytearray(file.read_bytes())
        data[at] ^= 0x40
        file.write_bytes(data)

    return apply


def remove(find):
    return lambda path: find(path).unlink()


def newest_data_file(path):
    for version in range(4, -1, -1):
        for line in commit(path, version).read_text("utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                return path / action["add"]["path"]
    raise AssertionError("no data file")


def other_data_file(fits):
    """Another file in the place of the newest; fits: the log has its size."""

    def apply(path):
        file = newest_data_file(path)
        duckdb.sql(f"COPY (SELECT range AS id FROM range(3)) TO '{file}' (FORMAT parquet)")
        if fits:
            edit_add(4, size=file.stat().st_size)(path)

    return apply


def vector_file(path):
    return next(path.glob("**/deletion_vector_*.bin"))


def checkpoint_file(path):
    return next((path / "_delta_log").glob("*.checkpoint*.parquet"))


def rewrite_checkpoint(keep):
    """The checkpoint with only the rows that a condition keeps."""

    def apply(path):
        file = checkpoint_file(path)
        duckdb.sql(f"COPY (WITH checkpoint AS (FROM read_parquet('{file}')) SELECT * FROM checkpoint WHERE {keep}) TO '{file}.new' (FORMAT parquet)")
        os.replace(f"{file}.new", file)

    return apply


def with_good_checksum(path):
    """A deletion vector file whose bitmap is wrong but whose checksum fits it."""
    file = vector_file(path)
    data = bytearray(file.read_bytes())
    size = int.from_bytes(data[1:5], "big")
    data[5 + 4] = 200  # number of 32-bit parts
    data[5 + size:5 + size + 4] = zlib.crc32(bytes(data[5:5 + size])).to_bytes(4, "big")
    file.write_bytes(data)


def both(*changes):
    def apply(path):
        for change in changes:
            change(path)

    return apply


def wipe_footer(find):
    """47 zeros at the start of a Parquet file's footer."""

    def apply(path):
        file = find(path)
        data = bytearray(file.read_bytes())
        at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        data[at:at + 47] = bytes(47)
        file.write_bytes(data)

    return apply


def sidecar_file(path):
    return next((path / "_delta_log" / "_sidecars").glob("*.parquet"))


def old_commits_gone(path):
    for version in range(11):
        commit(path, version).unlink()


FEWER = "add IS NULL OR add.path <> (SELECT min(add.path) FROM checkpoint)"


def deep(levels):
    return '{"type":"array","containsNull":true,"elementType":' * levels + '"long"' + "}" * levels


def schema_of(*fields):
    return json.dumps({"type": "struct", "fields": [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in fields]})


VECTOR_VERSION = 4  # of the table vectors

DAMAGES = [
    Damage("commit_is_no_json", "plain", write(log_file(2), "{"), "DELTA_", [log_file(2)]),
    Damage("commit_is_cut", "plain", cut(lambda path: commit(path, 2), 0.7), "DELTA_", [log_file(2)]),
    Damage("commit_is_empty", "plain", write(log_file(2), ""), "DELTA_", [log_file(2)]),
    Damage("commit_is_binary", "plain", write(log_file(2), bytes(range(256)) * 10), "DELTA_", [log_file(2)]),
    Damage("commit_is_missing", "plain", remove(lambda path: commit(path, 2)), "DELTA_VERSIONS_NOT_CONTIGUOUS", ["2"]),
    Damage("commit_is_a_folder", "plain", lambda path: (path / log_file(5)).mkdir(), "DELTA_LOG_CORRUPT", [log_file(5), "folder"]),
    Damage("first_commit_is_missing", "plain", remove(lambda path: commit(path, 0)), "DELTA_", []),
    Damage("commit_of_absurd_version", "plain", write("_delta_log/99999999999999999999.json", "{}"), "DELTA_LOG_CORRUPT", ["99999999999999999999.json"]),
    Damage("commit_of_the_largest_version", "plain", write(f"_delta_log/{2**63 - 1:020}.json", "{}"), "DELTA_LOG_CORRUPT", [f"{2**63 - 1}.json"]),
    Damage("commit_after_an_absurd_gap", "plain", write(f"_delta_log/{2**60:020}.json", "{}"), "DELTA_VERSIONS_NOT_CONTIGUOUS", ["5", str(2**60 - 1)]),
    Damage("two_metadata_in_a_commit", "plain", edit_commit_text(0, lambda text: text + metadata_line(text)), "DELTA_LOG_CORRUPT", [log_file(0), "metaData"]),
    Damage("add_without_size", "plain", edit_add_without(2, "size"), "DELTA_LOG_CORRUPT", [log_file(2), "add.size"]),
    Damage("add_without_partition_values", "plain", edit_add_without(2, "partitionValues"), "DELTA_LOG_CORRUPT", [log_file(2), "add.partitionValues"]),
    Damage("deep_json", "plain", write(log_file(5), '{"add":' + "[" * 200000), "DELTA_", [log_file(5)]),
    Damage("deep_schema", "plain", edit_metadata(schemaString='{"type":"struct","fields":[{"name":"id","nullable":true,"metadata":{},"type":' + deep(50000) + "}]}"), "DELTA_", ["schema"]),
    Damage("action_of_wrong_kind", "plain", write(log_file(5), '{"add":7}\n'), "DELTA_", [log_file(5)]),
    Damage("add_without_path", "plain", write(log_file(5), '{"add":{"size":1}}\n'), "DELTA_", [log_file(5)]),
    Damage("schema_is_no_json", "plain", edit_metadata(schemaString="{"), "DELTA_", ["schema"]),
    Damage("schema_has_a_column_twice", "plain", edit_metadata(schemaString=schema_of(("id", "long"), ("ID", "string"), ("p", "string"))), "", ["ID"]),
    Damage("unknown_type", "plain", edit_metadata(schemaString=schema_of(("id", "quaternion"), ("p", "string"))), "", ["quaternion"]),
    Damage("partition_column_unknown", "plain", edit_metadata(partitionColumns=["nowhere"]), "", ["nowhere"]),
    Damage("partition_value_missing", "plain", edit_add(2, partitionValues={}), "", ["p"]),
    Damage("partition_value_of_wrong_type", "plain", both(edit_metadata(schemaString=schema_of(("id", "long"), ("p", "integer")))), "", ["p"]),
    Damage("path_leaves_the_table", "plain", edit_add(2, path="../../../etc/passwd"), "DELTA_PATH_INVALID", ["../../../etc/passwd"]),
    Damage("path_leaves_the_table_encoded", "plain", edit_add(2, path="%2E%2E/%2e%2e/x.parquet"), "DELTA_PATH_INVALID", ["%2E%2E"]),
    Damage("path_has_a_zero_byte", "plain", edit_add(2, path="x%00.parquet"), "DELTA_PATH_INVALID", ["%00"]),
    Damage("path_is_no_escape", "plain", edit_add(2, path="a%2"), "DELTA_PATH_INVALID", ["a%2"]),
    Damage("path_of_another_store", "plain", edit_add(2, path="s3://bucket/x.parquet"), "DELTA_UNSUPPORTED_PATH_SCHEME", ["s3://bucket/x.parquet"]),
    Damage("path_is_the_table", "plain", edit_add(2, path="."), "DELTA_PATH_INVALID", []),
    Damage("path_is_a_folder", "plain", edit_add(2, path="_delta_log"), "DELTA_DATA_FILE_DAMAGED", ["_delta_log"]),
    Damage("path_is_a_pattern", "plain", edit_add(2, path="p=*/*.parquet"), "DELTA_FILE_NOT_FOUND", ["*"]),
    Damage("negative_size", "plain", edit_add(2, size=-1), "", [log_file(2)]),
    Damage("absurd_size", "plain", edit_add(2, size=10**30), "", [log_file(2)]),
    Damage("wrong_size", "plain", edit_add(2, size=1), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4", "not the 1 "]),
    Damage("negative_records", "plain", edit_add(2, stats='{"numRecords":-5}'), SAME_ROWS),
    Damage("absurd_records", "plain", edit_add(2, stats='{"numRecords":9223372036854775807}'), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4", "2 rows"]),
    Damage("stats_are_no_json", "plain", edit_add(2, stats="{"), SAME_ROWS),
    Damage("unknown_reader_version", "plain", edit_protocol(minReaderVersion=10**9), "", ["1000000000"]),
    Damage("unknown_feature", "plain", edit_protocol(readerFeatures=["deletionVectors", "timeTravelOfRows"]), "", ["timeTravelOfRows"]),
    Damage("data_file_missing", "plain", remove(newest_data_file), "DELTA_FILE_NOT_FOUND", [".parquet", "version 4"]),
    Damage("data_file_cut", "plain", cut(newest_data_file), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4"]),
    Damage("data_file_empty", "plain", cut(newest_data_file, 0), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4"]),
    Damage("data_file_is_no_parquet", "plain", lambda path: newest_data_file(path).write_bytes(b"no parquet at all, but long enough"), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4"]),
    Damage("data_file_of_another_table", "plain", other_data_file(fits=False), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4", "bytes"]),
    Damage("data_file_of_another_table_and_size", "plain", other_data_file(fits=True), "DELTA_DATA_FILE_DAMAGED", [".parquet", "version 4", "3 rows, not the 2 "]),
    Damage("vector_missing", "vectors", remove(vector_file), "FILE_NOT_FOUND", [".bin", "version 4"]),
    Damage("vector_cut", "vectors", cut(vector_file), "DELTA_", [".bin"]),
    Damage("vector_checksum", "vectors", flip(vector_file, -1), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_bitmap", "vectors", flip(vector_file, 14), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_version", "vectors", flip(vector_file, 0), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_bitmap_with_good_checksum", "vectors", with_good_checksum, "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_cardinality", "vectors", edit_vector(cardinality=1), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_size", "vectors", edit_vector(sizeInBytes=7), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_size_absurd", "vectors", edit_vector(sizeInBytes=2**31 - 1), "DELTA_", [".bin"]),
    Damage("vector_offset", "vectors", edit_vector(offset=3), "DELTA_DELETION_VECTOR", [".bin"]),
    Damage("vector_offset_negative", "vectors", edit_vector(offset=-1), "DELTA_", []),
    Damage("vector_offset_absurd", "vectors", edit_vector(offset=2**62), "DELTA_", []),
    Damage("vector_kind", "vectors", edit_vector(storageType="x"), "DELTA_", ["x"]),
    Damage("vector_inline_alphabet", "vectors", edit_vector(storageType="i", pathOrInlineDv="~~~~~~~~~~", offset=None), "DELTA_", []),
    Damage("vector_name", "vectors", edit_vector(pathOrInlineDv="short"), "DELTA_", []),
    Damage("vector_path_leaves_the_table", "vectors", edit_vector(storageType="p", pathOrInlineDv="../x.bin"), "DELTA_", ["../x.bin"]),
    Damage("pointer_is_no_json", "checkpointed", write("_delta_log/_last_checkpoint", "{"), SAME_ROWS),
    Damage("pointer_to_nothing", "checkpointed", write("_delta_log/_last_checkpoint", '{"version":7,"size":1}'), SAME_ROWS),
    Damage("pointer_of_absurd_numbers", "checkpointed", write("_delta_log/_last_checkpoint", '{"version":1e300,"size":-1,"parts":-3}'), SAME_ROWS),
    Damage("pointer_missing", "checkpointed", remove(lambda path: path / "_delta_log" / "_last_checkpoint"), SAME_ROWS),
    Damage("checkpoint_cut", "checkpointed", cut(checkpoint_file), SAME_ROWS),
    Damage("checkpoint_empty", "checkpointed", cut(checkpoint_file, 0), SAME_ROWS),
    Damage("checkpoint_footer_wiped", "checkpointed", wipe_footer(checkpoint_file), SAME_ROWS),
    Damage("sidecar_footer_wiped", "sidecars", wipe_footer(sidecar_file), SAME_ROWS),
    Damage("only_sidecar_footer_wiped", "sidecars", both(old_commits_gone, wipe_footer(sidecar_file)), "DELTA_CHECKPOINT_UNREADABLE", ["_sidecars/"]),
    # The commits before a damaged checkpoint lead to the version as well; without them it is an error.
    Damage("checkpoint_without_protocol", "checkpointed", rewrite_checkpoint("protocol IS NULL"), "DELTA_STATE_RECOVER_ERROR", ["protocol"]),
    Damage("checkpoint_lists_fewer_files", "checkpointed", rewrite_checkpoint(FEWER), SAME_ROWS),
    Damage("only_checkpoint_cut", "checkpointed", both(old_commits_gone, cut(checkpoint_file)), "DELTA_", [".checkpoint"]),
    Damage("only_checkpoint_empty", "checkpointed", both(old_commits_gone, cut(checkpoint_file, 0)), "DELTA_", [".checkpoint"]),
    Damage("only_checkpoint_footer_wiped", "checkpointed", both(old_commits_gone, wipe_footer(checkpoint_file)), "DELTA_CHECKPOINT_UNREADABLE", [".checkpoint"]),
    Damage("only_checkpoint_without_protocol", "checkpointed", both(old_commits_gone, rewrite_checkpoint("protocol IS NULL")), "DELTA_STATE_RECOVER_ERROR", ["protocol"]),
    Damage("only_checkpoint_without_metadata", "checkpointed", both(old_commits_gone, rewrite_checkpoint('"metaData" IS NULL')), "DELTA_STATE_RECOVER_ERROR", ["metaData"]),
    Damage("only_checkpoint_lists_fewer_files", "checkpointed", both(old_commits_gone, rewrite_checkpoint(FEWER)), "DELTA_CHECKPOINT_INCOMPLETE", [".checkpoint", "_last_checkpoint"]),
    Damage("only_checkpoint_is_whole", "checkpointed", old_commits_gone, SAME_ROWS),
    Damage("checkpoint_and_old_commits_gone", "checkpointed", both(old_commits_gone, remove(checkpoint_file)), "DELTA_", []),
    Damage("commit_after_checkpoint_missing", "checkpointed", remove(lambda path: commit(path, 11)), "DELTA_VERSIONS_NOT_CONTIGUOUS", ["11"]),
    Damage("log_gone", "plain", lambda path: shutil.rmtree(path / "_delta_log"), "DELTA_TABLE_NOT_FOUND", ["its log is gone"]),
    Damage("only_the_pointer_is_left", "checkpointed", both(old_commits_gone, remove(checkpoint_file), *(remove(lambda path, version=version: commit(path, version)) for version in (11, 12))), "DELTA_LOG_MISSING", ["_last_checkpoint"]),
]
