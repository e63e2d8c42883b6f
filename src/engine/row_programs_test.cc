// Random programs of INSERT, UPDATE, DELETE and MERGE, run by a session and by the engine on a
// plain table of its own: the same statements give the same rows. Row ids and change data files are
// checked at every step.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <strandline/strandline.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "delta/snapshot.h"
#include "duck/delta_io.h"
#include "storage/store.h"

namespace strandline::engine {
namespace {

struct Variant {
  const char* name;
  const char* partitioned_by;
  const char* properties;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

// Rows by their column u, which no statement changes: "id|k|n".
using State = std::map<int64_t, std::string>;

class RowPrograms : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 fmt::format("row_programs_{}_{}", ::getpid(), GetParam().name);
    std::filesystem::remove_all(directory_);
    SessionOptions options;
    options.warehouse = directory_.string();
    options.engine.threads = 2;
    auto opened = Session::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session_ = std::move(opened).value();
    auto database = duck::Database::open({0, 1, ""});
    ASSERT_TRUE(database.ok());
    database_ = std::move(database).value();
    connection_ = std::move(database_->connect()).value();
  }
  void TearDown() override {
    session_.reset();
    std::filesystem::remove_all(directory_);
  }

  delta::Table table() const {
    return {storage::make_local_store(), duck::make_parquet_port(database_),
            (directory_ / "main/default/t").string()};
  }

  void begin() {
    ours("DROP TABLE IF EXISTS t");
    ours(fmt::format("CREATE TABLE t (u BIGINT, id INT, k STRING, n INT) {} TBLPROPERTIES ({})",
                     GetParam().partitioned_by, GetParam().properties));
    ASSERT_TRUE(
        connection_->execute("CREATE OR REPLACE TABLE t (u BIGINT, id INT, k VARCHAR, n INT)")
            .ok());
    next_u_ = 0;
    row_ids_.clear();
  }

  void ours(const std::string& text) {
    std::ostringstream out;
    auto done = session_->run(text, "", OutputFormat::kNdjson, out);
    ASSERT_TRUE(done.ok()) << done.error().code << ": " << done.error().message << "\n" << text;
  }

  State state(const std::string& from) {
    auto rows = connection_->query(
        fmt::format("SELECT u, concat_ws('|', coalesce(id::VARCHAR, '-'), coalesce(k, '-'), "
                    "coalesce(n::VARCHAR, '-')) FROM {}",
                    from));
    EXPECT_TRUE(rows.ok()) << rows.error().message;
    State state;
    if (!rows.ok()) return state;
    for (const auto& row : rows->rows) {
      EXPECT_TRUE(state.emplace(std::stoll(*row[0]), *row[1]).second) << "u " << *row[0];
    }
    return state;
  }

  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  std::string id() { return pick(8) == 0 ? "CAST(NULL AS INT)" : fmt::format("{}", pick(30)); }
  std::string k() {
    static const char* const kTexts[] = {"'a'", "'b'", "'c'", "CAST(NULL AS STRING)"};
    return kTexts[pick(4)];
  }
  std::string n() { return pick(8) == 0 ? "CAST(NULL AS INT)" : fmt::format("{}", pick(10)); }
  std::string row(const std::string& its_id) {
    return fmt::format("({}, CAST({} AS INT), {}, CAST({} AS INT))", next_u_++, its_id, k(), n());
  }
  std::string condition(const std::string& q) {
    switch (pick(6)) {
      case 0:
        return fmt::format("{}n > {}", q, pick(10));
      case 1:
        return fmt::format("{}k = {}", q, k());
      case 2:
        return fmt::format("{}k IS NULL OR {}id < {}", q, q, pick(30));
      case 3:
        return fmt::format("{}id % 3 = {}", q, pick(3));
      case 4:
        return fmt::format("NOT ({}n = {})", q, pick(10));
      default:
        return fmt::format("{}id IN ({}, {}, {})", q, pick(30), pick(30), pick(30));
    }
  }
  // Values of SET; source names the rows beside the target's, if there are any.
  std::string settings(bool source) {
    switch (pick(4)) {
      case 0:
        return fmt::format("n = {}t.n + 1", source ? "s.n + " : "");
      case 1:
        return fmt::format("k = {}", source ? "s.k" : k());
      case 2:
        return fmt::format("n = t.id, k = {}", k());
      default:
        return "n = t.n";
    }
  }
  std::string merge() {
    std::set<int> ids;
    std::string rows;
    for (int i = pick(8) + 1; i > 0; --i) {
      const int key = pick(30);
      if (!ids.insert(key).second) continue;
      rows += (rows.empty() ? "" : ", ") + row(std::to_string(key));
    }
    std::string text = fmt::format(
        "MERGE INTO t USING (SELECT * FROM (VALUES {}) AS v(u, id, k, n)) AS s ON t.id = s.id",
        rows);
    if (pick(4) == 0) text += " AND t.n > 2";
    const auto clause = [&](const std::string& when, const std::string& q, bool source) {
      const int count = pick(3);
      for (int i = 0; i < count; ++i) {
        text += " WHEN " + when;
        if (i + 1 < count || pick(2) == 0) text += " AND (" + condition(q) + ")";
        text += pick(3) == 0 ? " THEN DELETE" : " THEN UPDATE SET " + settings(source);
      }
    };
    clause("MATCHED", "t.", true);
    if (pick(2) == 0) clause("NOT MATCHED BY SOURCE", "t.", false);
    if (pick(3) > 0 || text.find("WHEN") == std::string::npos) {
      if (pick(3) == 0) {
        text += " WHEN NOT MATCHED AND (" + condition("s.") +
                ") THEN INSERT (u, id, n) VALUES (s.u, s.id, s.n * 2)";
      }
      text += " WHEN NOT MATCHED THEN INSERT (u, id, k, n) VALUES (s.u, s.id, s.k, s.n)";
    }
    return text;
  }
  std::string statement() {
    switch (pick(7)) {
      case 0:
      case 1: {
        std::string rows;
        for (int i = pick(12) + 1; i > 0; --i) rows += (rows.empty() ? "" : ", ") + row(id());
        return "INSERT INTO t VALUES " + rows;
      }
      case 2:
        return fmt::format("UPDATE t SET {} WHERE {}", settings(false), condition("t."));
      case 3:
        return "DELETE FROM t WHERE " + condition("t.");
      default:
        return merge();
    }
  }

  void check_row_ids(const State& rows) {
    const auto handle = table();
    auto snapshot = handle.snapshot();
    ASSERT_TRUE(snapshot.ok());
    if (!(*snapshot)->row_tracking_enabled()) return;
    duck::ScanOptions options;
    options.with_row_ids = true;
    auto scan = duck::scan_table(*connection_, handle, *snapshot, options);
    ASSERT_TRUE(scan.ok()) << scan.error().message;
    auto found =
        connection_->query(fmt::format("SELECT u, {} FROM {}", duck::kRowIdColumn, (*scan)->sql()));
    ASSERT_TRUE(found.ok()) << found.error().message;
    std::map<int64_t, std::string> now;
    std::set<std::string> seen;
    for (const auto& row : found->rows) {
      const int64_t u = std::stoll(*row[0]);
      now[u] = *row[1];
      EXPECT_TRUE(seen.insert(*row[1]).second) << "row id " << *row[1] << " twice";
      const auto before = row_ids_.find(u);
      if (before != row_ids_.end()) {
        EXPECT_EQ(before->second, *row[1]) << "of row " << u;
      }
    }
    EXPECT_EQ(now.size(), rows.size());
    row_ids_ = std::move(now);
  }

  // The change data files of the newest commit tell exactly what happened; a commit without any is
  // one that adds or deletes rows alone.
  void check_change_files(const State& before, const State& after) {
    const auto handle = table();
    const auto version = handle.latest_version();
    ASSERT_TRUE(version.ok());
    auto actions = handle.commit(*version);
    ASSERT_TRUE(actions.ok());
    std::string files;
    std::string partition;
    for (const auto& action : *actions) {
      const auto* file = std::get_if<delta::CdcFile>(&action);
      if (file == nullptr) continue;
      EXPECT_EQ(file->path.rfind("_change_data/", 0), 0u) << file->path;
      const auto path = delta::resolve_data_path(handle.path(), file->path);
      ASSERT_TRUE(path.ok());
      auto k = std::string("k");
      if (const auto value = file->partition_values.find("k");
          value != file->partition_values.end()) {
        k = value->second ? duck::quote_literal(*value->second) : "CAST(NULL AS VARCHAR)";
      }
      files += fmt::format(
          "{}SELECT u, id, {} AS k, n, _change_type FROM read_parquet({}, "
          "hive_partitioning = false)",
          files.empty() ? "" : " UNION ALL ", k, duck::quote_literal(*path));
    }
    const auto images = [&](const char* type) {
      return state(fmt::format("({}) WHERE _change_type = '{}'", files, type));
    };
    State deleted;
    State inserted;
    State changed;
    for (const auto& [u, row] : before) {
      const auto found = after.find(u);
      if (found == after.end()) {
        deleted.emplace(u, row);
      } else if (found->second != row) {
        changed.emplace(u, found->second);
      }
    }
    for (const auto& [u, row] : after) {
      if (!before.contains(u)) inserted.emplace(u, row);
    }
    if (files.empty()) {
      EXPECT_TRUE(changed.empty()) << "updates without change data";
      EXPECT_TRUE(deleted.empty() || inserted.empty());
      return;
    }
    EXPECT_EQ(images("delete"), deleted);
    EXPECT_EQ(images("insert"), inserted);
    const auto old_rows = images("update_preimage");
    const auto new_rows = images("update_postimage");
    EXPECT_EQ(old_rows.size(), new_rows.size());
    for (const auto& [u, row] : old_rows) EXPECT_EQ(before.at(u), row);
    for (const auto& [u, row] : new_rows) EXPECT_EQ(after.at(u), row);
    for (const auto& [u, row] : changed) EXPECT_TRUE(new_rows.contains(u)) << u;
  }

  void run_program(unsigned seed) {
    random_.seed(seed);
    begin();
    State before;
    std::string program;
    for (int step = 0; step < 12; ++step) {
      const auto text = statement();
      program += text + ";\n";
      const auto version = table().latest_version();
      ASSERT_TRUE(version.ok());
      ours(text);
      auto model = text;  // VARCHAR is STRING in the engine too
      const auto done = connection_->execute(model);
      ASSERT_TRUE(done.ok()) << done.error().message << "\n" << program;
      const auto expected = state("t");
      const auto handle = table();
      auto snapshot = handle.snapshot();
      ASSERT_TRUE(snapshot.ok());
      auto scan = duck::scan_table(*connection_, handle, *snapshot);
      ASSERT_TRUE(scan.ok());
      ASSERT_EQ(state((*scan)->sql()), expected) << program;
      check_row_ids(expected);
      if ((*snapshot)->property_is_true("delta.enableChangeDataFeed") &&
          (*snapshot)->version > *version) {
        check_change_files(before, expected);
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << program;
      before = expected;
    }
  }

  std::filesystem::path directory_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
  std::mt19937 random_;
  int64_t next_u_ = 0;
  std::map<int64_t, std::string> row_ids_;  // by u
};

TEST_P(RowPrograms, GiveTheRowsOfAPlainTable) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    run_program(seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tables, RowPrograms,
    testing::Values(
        Variant{"vectors", "", "'delta.enableDeletionVectors' = 'true'"},
        Variant{"rewritten", "", "'delta.enableDeletionVectors' = 'false'"},
        Variant{"partitioned", "PARTITIONED BY (k)", "'delta.checkpointInterval' = '3'"},
        Variant{"partitioned_rewritten", "PARTITIONED BY (k)",
                "'delta.enableDeletionVectors' = 'false'"},
        Variant{"untracked", "",
                "'delta.enableRowTracking' = 'false', 'delta.enableDeletionVectors' = 'false'"},
        Variant{"feed", "", "'delta.enableChangeDataFeed' = 'true'"},
        Variant{"feed_rewritten", "PARTITIONED BY (k)",
                "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false'"}),
    [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace strandline::engine
