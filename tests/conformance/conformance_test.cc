// Tables of other Delta writers, with the rows they must give. The folder of tables is
// $STRANDLINE_SHARED/conformance, else ../shared/conformance beside the repository; its INDEX.md
// says what each table is and how the expected rows are written down.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>

#include "base/json.h"
#include "conformance/expected_rows.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "support/paths.h"

namespace strandline {
namespace {

using ::testing::HasSubstr;

std::filesystem::path conformance_folder() { return test::shared_directory() / "conformance"; }

// Tables that are refused, and what the message must name.
const std::map<std::string, std::string> kRefused = {
    {"delta-catalog-owned-preview", "catalogManaged"},
    {"delta-spark-shredded-variant-preview-delta", "variant"},
    {"delta-variant-stats-no-checkpoint", "variant"},
    {"golden-deltalog-invalid-protocol-version", "99"},
    {"golden-deltalog-state-reconstruction-from-checkpoint-missing-metadata", "metaData"},
    {"golden-deltalog-state-reconstruction-from-checkpoint-missing-protocol", "protocol"},
    {"golden-deltalog-state-reconstruction-without-metadata", "metaData"},
    {"golden-deltalog-state-reconstruction-without-protocol", "protocol"},
    {"golden-no-delta-log-folder", "golden-no-delta-log-folder"},
    {"golden-versions-not-contiguous", "1"},
    {"krs-table-with-geo", "geospatial"},
    {"krs-unshredded-variant", "variant"},
    {"rs-badlog-table_c", "12"},
    {"rs-badlog-table_e", "catalogOwned"},
};

// Tables without data files: only the number of live files is known.
const std::map<std::string, size_t> kLogOnly = {
    {"golden-checkpoint", 1},
    {"golden-log-replay-special-characters-b", 1},
    {"krs-app-txn-with-last-updated", 4},
    {"rs-badlog-table_a", 130},
    {"rs-badlog-table_b", 130},
    {"rs-badlog-table_g", 100},
    {"rs-checkpoints_vacuumed", 12},
    {"rs-latest_not_checkpointed", 1},
    {"rs-table-with-domain-metadata", 109},
};

// Columns left out of the comparison: the checkpoint's schema has one that its commit has not.
const std::map<std::string, std::string> kUncheckedColumns = {
    {"krs-parquet_row_group_skipping", "missing"},
};

// One folder of the conformance directory.
struct Case {
  std::string name;
  std::filesystem::path folder;
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

std::vector<Case> tables() {
  std::vector<Case> found;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(conformance_folder(), missing)) {
    const std::string name = entry.path().filename();
    const bool is_known = kRefused.contains(name) || kLogOnly.contains(name) ||
                          std::filesystem::exists(entry.path() / "expected");
    if (is_known) found.push_back({name, entry.path()});
  }
  std::sort(found.begin(), found.end(),
            [](const Case& a, const Case& b) { return a.name < b.name; });
  return found;
}

class ConformanceTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
  }

  delta::Table table() const {
    const auto path = std::filesystem::canonical(GetParam().folder) / "delta";
    return delta::Table(storage::make_local_store(), duck::make_parquet_port(database_), path);
  }

  std::vector<std::string> actual_rows(const std::shared_ptr<const delta::Snapshot>& snapshot) {
    auto scan = duck::scan_table(*connection_, table(), snapshot);
    if (!scan.ok()) {
      ADD_FAILURE() << scan.error().message;
      return {};
    }
    std::string members;
    for (const Field& field : snapshot->schema.fields) {
      const auto unchecked = kUncheckedColumns.find(GetParam().name);
      if (unchecked != kUncheckedColumns.end() && field.name == unchecked->second) continue;
      if (!members.empty()) members += ", ";
      members += duck::quote_name(field.name) + " := " + expected_form(field);
    }
    auto rows = connection_->query("SELECT to_json(struct_pack(" + members + ")) FROM " +
                                   (*scan)->sql() + " AS t");
    if (!rows.ok()) {
      ADD_FAILURE() << rows.error().message;
      return {};
    }
    std::vector<std::string> lines;
    for (const auto& row : rows->rows) lines.push_back(canonical_line(*row[0]));
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  // The upstream suite's own Parquet files hold the same rows; for tables too large for text.
  void expect_upstream_rows(const std::shared_ptr<const delta::Snapshot>& snapshot) {
    auto scan = duck::scan_table(*connection_, table(), snapshot);
    ASSERT_TRUE(scan.ok()) << scan.error().message;
    const std::string ours = "(FROM " + (*scan)->sql() + " AS t)";
    const std::string theirs =
        "(FROM read_parquet(" +
        duck::quote_literal((GetParam().folder / "expected" / "latest_parquet").string() +
                            "/*.parquet") +
        "))";
    const auto differing =
        connection_->query_int("SELECT count(*) FROM ((" + ours + " EXCEPT ALL " + theirs +
                               ") UNION ALL (" + theirs + " EXCEPT ALL " + ours + "))");
    ASSERT_TRUE(differing.ok()) << differing.error().message;
    EXPECT_EQ(*differing, 0);
    EXPECT_GT(*connection_->query_int("SELECT count(*) FROM " + ours), 0);
  }

  std::vector<std::string> expected_rows() const {
    std::ifstream file(GetParam().folder / "expected" / "latest.ndjson");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) lines.push_back(canonical_line(line));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
};

TEST_P(ConformanceTest, GivesItsRows) {
  const std::string& name = GetParam().name;
  const auto snapshot = table().snapshot();
  if (kRefused.contains(name)) {
    ASSERT_FALSE(snapshot.ok()) << "version " << snapshot.value()->version << " was read";
    EXPECT_THAT(snapshot.error().message, HasSubstr(kRefused.at(name)));
    return;
  }
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  if (kLogOnly.contains(name)) {
    EXPECT_EQ(snapshot.value()->files.size(), kLogOnly.at(name));
    return;
  }
  if (!std::filesystem::exists(GetParam().folder / "expected" / "latest.ndjson")) {
    expect_upstream_rows(*snapshot);
    return;
  }
  const std::vector<std::string> actual = actual_rows(*snapshot);
  const std::vector<std::string> expected = expected_rows();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << "row " << i;
}

// A table's name with the characters that a test's name may have.
std::string test_name(const ::testing::TestParamInfo<Case>& tested) {
  std::string name = tested.param.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tables, ConformanceTest, ::testing::ValuesIn(tables()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceTest);

TEST(ConformanceFolderTest, IsThere) {
  if (tables().empty()) {
    GTEST_SKIP() << "no tables of other writers in " << conformance_folder()
                 << ": set STRANDLINE_SHARED to the folder that holds conformance/";
  }
  EXPECT_GT(tables().size(), 100u);
}

}  // namespace
}  // namespace strandline
