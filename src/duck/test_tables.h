// Tables without a log, for the tests of reading and writing data files.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "storage/store.h"

namespace strandline::duck {

inline Field field(const std::string& name, DataType type, bool nullable = true) {
  return Field{name, std::move(type), nullable, {}};
}
inline Field field(const std::string& name, TypeId type, bool nullable = true) {
  return field(name, DataType::primitive(type), nullable);
}
// A field of a column-mapped table.
inline Field mapped(const std::string& name, DataType type, int id) {
  Field made = field(name, std::move(type));
  made.metadata["delta.columnMapping.id"] = std::to_string(id);
  made.metadata["delta.columnMapping.physicalName"] = fmt::format("\"col-{}\"", id);
  return made;
}

class DeltaIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({.memory_limit_bytes = 0, .threads = 2, .temp_directory = ""});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 fmt::format("delta_io_{}_{}", ::getpid(),
                             ::testing::UnitTest::GetInstance()->current_test_info()->name()) /
                 "t[1] %a";
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_.parent_path()); }

  delta::Table table(std::shared_ptr<storage::Store> store = storage::make_local_store()) {
    return delta::Table(std::move(store), make_parquet_port(database_), directory_.string());
  }

  // An empty table of that schema, as a snapshot.
  delta::Snapshot define(std::vector<Field> fields,
                         std::vector<std::string> partition_columns = {}) {
    delta::Snapshot snapshot;
    snapshot.table_path = directory_.string();
    snapshot.version = 0;
    snapshot.schema.fields = std::move(fields);
    snapshot.metadata.partition_columns = std::move(partition_columns);
    return snapshot;
  }

  // The snapshot with the rows of a query written to it.
  std::shared_ptr<const delta::Snapshot> with_rows(delta::Snapshot snapshot,
                                                   const std::string& query,
                                                   const WriteOptions& options = {}) {
    auto files = write_files(*connection_, table(), snapshot, query, options);
    EXPECT_TRUE(files.ok()) << files.error().message;
    if (files.ok()) {
      for (delta::AddFile& file : *files) {
        if (snapshot.row_tracking_enabled()) {
          file.base_row_id = static_cast<int64_t>(snapshot.files.size()) * 1000;
          file.default_row_commit_version = 7;
        }
        snapshot.files.push_back(std::move(file));
      }
    }
    std::sort(snapshot.files.begin(), snapshot.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::make_shared<const delta::Snapshot>(std::move(snapshot));
  }

  Error write_error(const delta::Snapshot& snapshot, const std::string& query,
                    std::shared_ptr<storage::Store> store = storage::make_local_store()) {
    auto files = write_files(*connection_, table(std::move(store)), snapshot, query);
    EXPECT_FALSE(files.ok());
    return files.ok() ? Error{} : files.error();
  }

  std::unique_ptr<Scan> scan(const std::shared_ptr<const delta::Snapshot>& snapshot,
                             const ScanOptions& options = {}) {
    auto made = scan_table(*connection_, table(), snapshot, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(made).value() : nullptr;
  }

  // Rows of a query in which {} stands for the scan, each as "a|b|NULL", sorted by the text.
  std::vector<std::string> rows(const std::shared_ptr<const delta::Snapshot>& snapshot,
                                const std::string& query = "SELECT * FROM {} AS t",
                                const ScanOptions& options = {}) {
    const auto scanned = scan(snapshot, options);
    if (scanned == nullptr) return {};
    return query_rows(fmt::format(fmt::runtime(query), scanned->sql()));
  }
  std::vector<std::string> query_rows(const std::string& sql) {
    auto result = connection_->query(sql);
    EXPECT_TRUE(result.ok()) << result.error().message;
    std::vector<std::string> lines;
    if (!result.ok()) return lines;
    for (const auto& row : result->rows) {
      std::string line;
      for (const Cell& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
      lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  std::vector<std::string> files_on_disk() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file()) names.push_back(entry.path().filename());
    }
    return names;
  }

  std::shared_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
  std::filesystem::path directory_;
};

}  // namespace strandline::duck
