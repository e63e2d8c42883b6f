#include "engine/write_rows.h"

#include "base/error.h"
#include "base/json.h"

namespace strandline::engine {

Result<duck::AppliedChange> apply_change(const Context& context, const delta::Table& table,
                                         delta::Transaction& transaction,
                                         const std::shared_ptr<const delta::Snapshot>& base,
                                         const duck::TableChange& change) {
  duck::AppliedChange applied;
  auto done = duck::apply_change(*context.connection, transaction, table, base, change, &applied);
  if (!done.ok()) {
    duck::remove_files(table, applied);
    return std::move(done).error();
  }
  if (const int64_t rows = applied.empty_partition_rows; rows > 0) {
    transaction.set_metric("numEmptyPartitionValues", rows);
  }
  return applied;
}

void set_output_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied) {
  transaction.set_metric("numFiles", static_cast<int64_t>(applied.written.size()));
  transaction.set_metric("numOutputRows", applied.written_rows());
  transaction.set_metric("numOutputBytes", applied.written_bytes());
}

void set_change_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied) {
  transaction.set_metric("numAddedFiles", static_cast<int64_t>(applied.written.size()));
  transaction.set_metric("numAddedBytes", applied.written_bytes());
  transaction.set_metric("numRemovedFiles", applied.removed_files);
  transaction.set_metric("numRemovedBytes", applied.removed_bytes);
  transaction.set_metric("numCopiedRows", applied.copied_rows);
  transaction.set_metric("numAddedChangeFiles", static_cast<int64_t>(applied.change_files.size()));
  transaction.set_metric("numDeletionVectorsAdded", applied.vectors_added);
  transaction.set_metric("numDeletionVectorsUpdated", applied.vectors_updated);
  transaction.set_metric("numDeletionVectorsRemoved", applied.vectors_removed);
}

void set_merge_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied) {
  transaction.set_metric("numOutputRows", applied.written_rows());
  transaction.set_metric("numTargetFilesAdded", static_cast<int64_t>(applied.written.size()));
  transaction.set_metric("numTargetBytesAdded", applied.written_bytes());
  transaction.set_metric("numTargetFilesRemoved", applied.removed_files);
  transaction.set_metric("numTargetBytesRemoved", applied.removed_bytes);
  transaction.set_metric("numTargetRowsCopied", applied.copied_rows);
  transaction.set_metric("numTargetChangeFilesAdded",
                         static_cast<int64_t>(applied.change_files.size()));
  transaction.set_metric("numTargetDeletionVectorsAdded", applied.vectors_added);
  transaction.set_metric("numTargetDeletionVectorsUpdated", applied.vectors_updated);
  transaction.set_metric("numTargetDeletionVectorsRemoved", applied.vectors_removed);
}

std::string json_array(const std::vector<std::string>& texts) {
  JsonWriter json;
  json.begin_array();
  for (const auto& text : texts) json.value(text);
  json.end_array();
  return json.take();
}

TempTable::~TempTable() { (void)connection_.execute("DROP TABLE IF EXISTS temp.main." + name_); }

Status TempTable::fill(const std::string& query) {
  SL_TRY(connection_.execute(fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", name_, query)));
  return {};
}

Result<int64_t> TempTable::keep(const std::string& query) {
  SL_TRY(fill(query));
  return connection_.query_int("SELECT count(*) FROM " + name_);
}

}  // namespace strandline::engine
