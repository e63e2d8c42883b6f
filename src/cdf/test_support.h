// Tables that are a log alone, for the tests of this folder.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cdf/plan.h"
#include "delta/test_support.h"

namespace strandline::cdf {

using delta::Action;
using delta::Version;

using Properties = std::map<std::string, std::string>;

inline const Properties kLegacy = {{"delta.enableChangeDataFeed", "true"}};
inline const Properties kTracked = {{"delta.enableRowTracking", "true"}};

// A table whose version v is of second v.
class FeedTest : public ::testing::Test {
 protected:
  void commit(std::vector<Action> actions, const std::string& operation = "WRITE",
              Properties metrics = {}) {
    delta::CommitInfo info;
    info.operation = operation;
    info.operation_metrics = std::move(metrics);
    info.timestamp_ms = next_ * 1000;
    info.in_commit_timestamp_ms = next_ * 1000;
    std::string text = delta::print_action(info) + "\n";
    for (const Action& action : actions) text += delta::print_action(action) + "\n";
    ASSERT_TRUE(store_->put_if_absent(delta::commit_path("/t", next_), text).ok());
    ++next_;
  }

  static delta::Protocol protocol(const std::set<std::string>& more = {}) {
    delta::Protocol made{3,
                         7,
                         {"deletionVectors"},
                         {"deletionVectors", "changeDataFeed", "rowTracking", "domainMetadata",
                          "inCommitTimestamp"}};
    for (const auto& feature : more) {
      made.reader_features.insert(feature);
      made.writer_features.insert(feature);
    }
    return made;
  }

  static delta::Metadata metadata(Properties properties,
                                  const Schema& schema = delta::two_columns()) {
    delta::Metadata made;
    made.id = "b9f8a0b6-1f0a-4a53-a7b5-0a3a6f7b8a11";
    made.schema_string = delta::print_schema(schema);
    properties["delta.enableInCommitTimestamps"] = "true";
    if (properties.contains("delta.enableRowTracking")) {
      properties["delta.rowTracking.materializedRowIdColumnName"] = "_ids";
      properties["delta.rowTracking.materializedRowCommitVersionColumnName"] = "_versions";
    }
    made.configuration = std::move(properties);
    return made;
  }

  static delta::AddFile add(const std::string& path, const std::string& vector = "") {
    auto file = delta::data_file(path);
    file.base_row_id = 0;
    file.default_row_commit_version = 0;
    if (!vector.empty()) file.deletion_vector = inline_vector(vector);
    return file;
  }
  static delta::RemoveFile remove(const std::string& path, const std::string& vector = "") {
    delta::RemoveFile file;
    file.path = path;
    file.extended_file_metadata = true;
    file.size_bytes = 100;
    file.base_row_id = 0;
    file.default_row_commit_version = 0;
    if (!vector.empty()) file.deletion_vector = inline_vector(vector);
    return file;
  }
  static delta::DeletionVectorDescriptor inline_vector(const std::string& name) {
    delta::DeletionVectorDescriptor vector;
    vector.storage_type = 'i';
    vector.path_or_inline = name;
    vector.size_bytes = 1;
    vector.cardinality = 1;
    return vector;
  }

  Result<ChangePlan> plan(RangeRequest request) { return plan_changes(table_, request); }
  Result<ChangePlan> plan(Bound start, std::optional<Bound> end = {}, bool tolerate = false) {
    return plan_changes(table_, {start, end, tolerate, {}});
  }
  Error error(Bound start, std::optional<Bound> end = {}, bool tolerate = false) {
    auto made = plan(start, end, tolerate);
    EXPECT_FALSE(made.ok());
    return made.ok() ? Error{} : made.error();
  }
  // "3: +a -b", the "only" of a file in parentheses.
  static std::vector<std::string> lines(const Result<ChangePlan>& plan) {
    if (!plan.ok()) return {plan.error().code + " " + plan.error().message};
    std::vector<std::string> out;
    for (const auto& commit : plan->commits) {
      std::string line = fmt::format("{}:", commit.version);
      for (const auto& change : commit.files) {
        line += change.kind == ChangeKind::kInsert   ? " +"
                : change.kind == ChangeKind::kDelete ? " -"
                                                     : " *";
        line += change.file.path;
        if (change.file.deletion_vector) line += "/" + change.file.deletion_vector->path_or_inline;
        if (change.only_deleted_by) line += "(" + change.only_deleted_by->path_or_inline + ")";
      }
      out.push_back(line);
    }
    return out;
  }
  static Bound at(int64_t ms) { return Timestamp{ms * 1000}; }
  static Bound version(Version v) { return v; }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  delta::Table table_ = delta::open_table(store_);
  Version next_ = 0;
};

}  // namespace strandline::cdf
