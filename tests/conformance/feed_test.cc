// Change data feeds of tables of other Delta writers: each expected/cdf_v<first>_v<last>.ndjson.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "cdf/plan.h"
#include "conformance/expected_rows.h"
#include "duck/change_scan.h"
#include "support/paths.h"

namespace strandline {
namespace {

using ::testing::HasSubstr;

struct FeedCase {
  std::string table;
  std::filesystem::path expected;
  delta::Version first = 0;
  delta::Version last = 0;
};
void PrintTo(const FeedCase& value, std::ostream* out) {
  *out << value.table << " " << value.first << " to " << value.last;
}

std::filesystem::path conformance_folder() { return test::shared_directory() / "conformance"; }

std::vector<FeedCase> feeds() {
  std::vector<FeedCase> found;
  std::error_code missing;
  for (const auto& table : std::filesystem::directory_iterator(conformance_folder(), missing)) {
    for (const auto& file :
         std::filesystem::directory_iterator(table.path() / "expected", missing)) {
      FeedCase one{table.path().filename(), file.path(), 0, 0};
      const std::string name = file.path().filename();
      long long first = 0;
      long long last = 0;
      if (std::sscanf(name.c_str(), "cdf_v%lld_v%lld", &first, &last) != 2) continue;
      one.first = first;
      one.last = last;
      found.push_back(one);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.expected < b.expected; });
  return found;
}

class FeedConformance : public ::testing::TestWithParam<FeedCase> {
 protected:
  void SetUp() override {
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
  }

  delta::Table table(const std::string& name) const {
    const auto path = std::filesystem::canonical(conformance_folder() / name) / "delta";
    return delta::Table(storage::make_local_store(), duck::make_parquet_port(database_), path);
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
};

TEST_P(FeedConformance, HasTheExpectedRows) {
  const auto source = table(GetParam().table);
  cdf::RangeRequest request;
  request.start = GetParam().first;
  request.end = GetParam().last;
  const auto plan = cdf::plan_changes(source, request);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto scan = duck::scan_changes(*connection_, source, *plan);
  ASSERT_TRUE(scan.ok()) << scan.error().message;

  std::string members;
  for (const Field& field : plan->definition->schema.fields) {
    members += duck::quote_name(field.name) + " := " + expected_form(field) + ", ";
  }
  members += "_change_type := _change_type, _commit_version := _commit_version";
  const auto rows = connection_->query("SELECT to_json(struct_pack(" + members + ")) FROM " +
                                       (*scan)->sql() + " AS t");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  std::vector<std::string> actual;
  for (const auto& row : rows->rows) actual.push_back(canonical_line(*row[0]));
  std::sort(actual.begin(), actual.end());

  std::ifstream file(GetParam().expected);
  std::vector<std::string> expected;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) expected.push_back(canonical_line(line));
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Tables, FeedConformance, ::testing::ValuesIn(feeds()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FeedConformance);

TEST(FeedConformanceTables, AreThere) {
  if (!std::filesystem::exists(conformance_folder())) {
    GTEST_SKIP() << "no folder " << conformance_folder()
                 << "; STRANDLINE_SHARED names the folder it lies in";
  }
  EXPECT_GE(feeds().size(), 16u);
}

}  // namespace
}  // namespace strandline
