// A pipeline in a temporary folder, for end-to-end tests in one process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catalog/warehouse.h"
#include "duck/delta_io.h"
#include "pipeline/pipeline.h"

namespace strandline::pipeline {

// One engine for all tests of the program: opening it is the slowest step. It is never closed,
// since the engine's thread-local data is gone when static objects are destroyed.
inline std::shared_ptr<duck::Database> shared_database() {
  static const auto* const database = [] {
    auto opened = duck::Database::open({});
    EXPECT_TRUE(opened.ok());
    return new std::shared_ptr<duck::Database>(opened.ok() ? *opened : nullptr);
  }();
  return *database;
}

class TestPipeline {
 public:
  explicit TestPipeline(const std::string& name = "p") {
    static std::atomic<int> count{0};
    folder_ = std::filesystem::temp_directory_path() /
              ("strandline_" + std::to_string(::getpid()) + "_" + std::to_string(++count)) / name;
    std::filesystem::create_directories(folder_ / "data");
  }
  ~TestPipeline() { std::filesystem::remove_all(folder_.parent_path()); }
  TestPipeline(const TestPipeline&) = delete;
  TestPipeline& operator=(const TestPipeline&) = delete;

  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(folder_ / name); }

  UpdateReport run(RunOptions options = {}) const {
    options.pipeline = folder_.string();
    if (warehouse) options.warehouse = *warehouse;
    Dependencies dependencies;
    dependencies.store = store;
    dependencies.database = shared_database();
    return run_update(options, dependencies, listener, cancel);
  }
  UpdateReport full_refresh(const std::vector<std::string>& tables = {}) const {
    RunOptions options;
    options.refresh = tables.empty() ? RefreshKind::kFullAll : RefreshKind::kFullSelected;
    options.tables = tables;
    return run(options);
  }

  delta::Table table(const std::string& name, const std::string& schema = "default") const {
    auto opened = catalog::Warehouse::open(storage::make_local_store(),
                                           duck::make_parquet_port(shared_database()),
                                           warehouse.value_or(path("warehouse")));
    EXPECT_TRUE(opened.ok());
    auto found = (*opened)->table(catalog::QualifiedName{"main", schema, name});
    EXPECT_TRUE(found.ok());
    return *found;
  }
  std::shared_ptr<const delta::Snapshot> snapshot(const std::string& name) const {
    auto found = table(name).snapshot();
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? *found : nullptr;
  }
  // Rows as texts joined by '|', sorted; "no table" when there is none.
  std::vector<std::string> rows(const std::string& name, const std::string& select = "*") const {
    return rows_of(table(name), select);
  }
  static std::vector<std::string> rows_of(const delta::Table& from,
                                          const std::string& select = "*") {
    const auto exists = from.exists();
    if (!exists.ok() || !*exists) return {"no table"};
    auto found = from.snapshot();
    if (!found.ok()) return {found.error().message};
    auto connection = shared_database()->connect();
    if (!connection.ok()) return {connection.error().message};
    auto scan = duck::scan_table(**connection, from, *found);
    if (!scan.ok()) return {scan.error().message};
    const auto result = (*connection)->query("SELECT " + select + " FROM " + (*scan)->sql());
    if (!result.ok()) return {result.error().message};
    std::vector<std::string> out;
    for (const auto& row : result->rows) {
      std::string text;
      for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : "|") + row[i].value_or("NULL");
      out.push_back(std::move(text));
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::shared_ptr<storage::Store> store;  // null: the local one
  std::optional<std::string> warehouse;
  ProgressListener listener;
  const std::atomic<bool>* cancel = nullptr;

 private:
  std::filesystem::path folder_;
};

// "CODE: message" of every error of a report, for failure texts.
inline std::string errors_of(const UpdateReport& report) {
  std::string out = std::string(to_string(report.status)) + "\n";
  for (const auto& error : report.errors) {
    out += error.code + ": " + error.message;
    if (error.place)
      out += " (" + error.place->file + ":" + std::to_string(error.place->line) + ")";
    out += "\n";
  }
  return out;
}

}  // namespace strandline::pipeline
