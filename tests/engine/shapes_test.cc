// Nothing that is asked of the engine has a shape that it gets wrong: neither the texts of
// tests/golden nor what runs while stories of tests/logic are told.
#include "engine/shapes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "duck/connection.h"
#include "engine/story.h"
#include "support/paths.h"

namespace strandline::test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string with_file(std::string sql, const std::string& path) {
  for (size_t at; (at = sql.find("${file}")) != std::string::npos;) sql.replace(at, 7, path);
  return sql;
}

std::filesystem::path scratch() {
  return std::filesystem::path(::testing::TempDir()) / fmt::format("shapes_{}", ::getpid());
}

TEST(ShapesTest, AreFoundInTheirExamplesAlone) {
  for (const Shape& shape : banned_shapes()) {
    EXPECT_THAT(shapes_in(shape.example), Contains(shape.name));
    EXPECT_TRUE(!shape.is_in(tokens_of(shape.instead))) << shape.name << ": " << shape.instead;
  }
}

TEST(ShapesTest, AreFoundHoweverTheyAreWritten) {
  const auto streams = [](const std::string& sql) { return !shapes_in(sql).empty(); };
  EXPECT_TRUE(streams("SELECT lead(code, 2, CAST(8 AS BIGINT)) OVER () AS c FROM t"));
  EXPECT_TRUE(streams("SELECT lag(a) over() FROM t"));
  EXPECT_TRUE(streams("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM t"));
  EXPECT_TRUE(streams("SELECT first_value(a IGNORE NULLS) OVER w FROM t WINDOW w AS ()"));
  EXPECT_TRUE(
      streams("SELECT max(a) OVER (w ROWS UNBOUNDED PRECEDING) FROM t WINDOW v AS (PARTITION BY "
              "a), w AS ()"));
  EXPECT_TRUE(streams("SELECT count(*) OVER (--no order\n) FROM t"));
  EXPECT_FALSE(streams("SELECT row_number() OVER () FROM t"));
  EXPECT_FALSE(streams("SELECT lead(a) OVER (PARTITION BY b) FROM t"));
  EXPECT_FALSE(streams("SELECT lead(a) OVER w FROM t WINDOW w AS (ORDER BY a)"));
  EXPECT_FALSE(streams("SELECT 'lead(a) OVER ()' AS s, (SELECT 1) AS x FROM t"));
  EXPECT_TRUE(streams("SELECT list_reduce(l, lambda a, x: a + \"s\", 0) FROM t"));
  EXPECT_TRUE(
      streams("SELECT list_transform(l, lambda y: list_reduce(l, lambda a, x: a + y, 0)) FROM t"));
  EXPECT_FALSE(streams(
      "SELECT list_reduce(l, lambda a, x: CASE WHEN a.v > 1 THEN x.s ELSE abs(2) END, s) FROM t"));
  EXPECT_FALSE(
      streams("SELECT list_reduce(l, lambda a, x: {v: a.v + list_sum(list_transform(x.l, lambda y: "
              "y))}, s) FROM t"));
}

TEST(ShapesTest, WhatStandsInsteadIsRight) {
  std::filesystem::create_directories(scratch());
  int number = 0;
  for (const Shape& shape : banned_shapes()) {
    const auto database =
        *duck::Database::open({.memory_limit_bytes = 0, .threads = 1, .temp_directory = ""});
    const auto connection = std::move(database->connect()).value();
    const auto answer = [&](const char* sql) {
      const std::string file = (scratch() / fmt::format("{}.parquet", number++)).string();
      for (const char* text : {shape.setup, sql}) {
        if (*text == '\0') continue;
        const bool copies = std::string(text).starts_with("COPY") && text == sql;
        if (text == shape.setup || copies) {
          const auto done = connection->execute(with_file(text, file));
          EXPECT_TRUE(done.ok()) << done.error().message;
          if (copies) return std::to_string(done.ok() ? *done : -1);
          continue;
        }
        const auto rows = connection->query(with_file(text, file));
        EXPECT_TRUE(rows.ok()) << rows.error().message;
        return rows.ok() ? rows->rows[0][0].value_or("NULL") : std::string();
      }
      return std::string();
    };
    EXPECT_EQ(answer(shape.instead), shape.right) << shape.name;
    const auto version = connection->query("SELECT version()");
    const bool is_default = version.ok() && version->rows[0][0] == "v1.5.5";
    if (!shape.wrong_here || !is_default) continue;
    EXPECT_NE(answer(shape.example), shape.right) << shape.name << " is right: must it be banned?";
  }
  std::filesystem::remove_all(scratch());
}

TEST(ShapesTest, ResultsShowThatEachIsGone) {
  for (const Shape& shape : banned_shapes()) {
    const std::string proof = shape.proof;
    const size_t mark = proof.find("::");
    const std::string text = content(source_directory() / proof.substr(0, mark));
    EXPECT_NE(text.find(proof.substr(mark + 2)), std::string::npos) << shape.name << ": " << proof;
  }
}

TEST(ShapesTest, FaultyRewritesOfPlansAreOff) {
  const auto database =
      *duck::Database::open({.memory_limit_bytes = 0, .threads = 1, .temp_directory = ""});
  const auto connection = std::move(database->connect()).value();
  const auto on = connection->query(
      "SELECT name FROM duckdb_optimizers() WHERE name IN ('common_subplan', 'deliminator', "
      "'top_n_window_elimination') AND NOT "
      "contains(current_setting('disabled_optimizers'), name)");
  ASSERT_TRUE(on.ok()) << on.error().message;
  EXPECT_THAT(on->rows, IsEmpty());
}

// Temporary tables and common table expressions of AUTO CDC programs.
std::set<std::string> stages_of(const std::string& sql) {
  static const std::regex kStage("__strandline_cdc_[a-z_]+");
  std::set<std::string> found;
  for (std::sregex_iterator at(sql.begin(), sql.end(), kStage), end; at != end; ++at)
    found.insert(at->str());
  return found;
}

TEST(ShapesTest, ProgramsHaveNone) {
  size_t programs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_directory() / "tests/golden")) {
    if (!entry.path().string().ends_with(".duckdb.sql")) continue;
    ++programs;
    EXPECT_THAT(shapes_in(content(entry.path())), IsEmpty()) << entry.path();
  }
  EXPECT_GT(programs, 10u);
}

// Stories of every kind of flow, of edits by hand, snapshots, feeds, views, OPTIMIZE, MERGE and
// the statements of users.
constexpr const char* kStories[] = {"auto_cdc_from_feed",
                                    "chains",
                                    "column_mapping",
                                    "column_rules",
                                    "drop_feature",
                                    "engine_faults",
                                    "expectations",
                                    "feed_history",
                                    "feed_streams",
                                    "formats",
                                    "full_refresh",
                                    "grouping_sets",
                                    "hand_edits",
                                    "hand_edits_alone",
                                    "identity",
                                    "late_events",
                                    "list_folds",
                                    "merge",
                                    "merge_evolution",
                                    "negative_zero",
                                    "nested_values",
                                    "once",
                                    "optimize",
                                    "own_tables",
                                    "partial_updates",
                                    "partitions",
                                    "recorded_feeds_of_targets",
                                    "schema_evolution",
                                    "several_flows",
                                    "snapshot_edits",
                                    "snapshot_feed",
                                    "snapshot_versions",
                                    "snapshots",
                                    "spark_functions",
                                    "spark_values",
                                    "stream_of_a_table",
                                    "table_changes",
                                    "table_changes_of_targets",
                                    "ties",
                                    "tombstones",
                                    "truncate",
                                    "type_widening",
                                    "update_delete",
                                    "users_columns",
                                    "vacuum_restore",
                                    "views_of_changes",
                                    "views_over_targets",
                                    "windows_without_order",
                                    "wrong_results"};

TEST(ShapesTest, WhatRunsInStoriesHasNone) {
  std::set<std::string> seen;
  std::set<std::string> stages;
  std::string story;
  duck::observe_statements([&](const std::string& sql) {
    if (!seen.insert(sql).second) return;
    stages.merge(stages_of(sql));
    // The same statement over other files, versions and times is one finding.
    for (const std::string& shape : shapes_in(sql))
      ADD_FAILURE() << story << ": " << shape << " in\n" << sql;
  });
  const auto before = std::filesystem::current_path();
  std::filesystem::remove_all(scratch());
  for (const char* name : kStories) {
    story = name;
    EXPECT_THAT(
        tell_story(source_directory() / fmt::format("tests/logic/{}.test", name), scratch() / name),
        IsEmpty())
        << name;
  }
  std::filesystem::current_path(before);
  duck::observe_statements({});
  std::filesystem::remove_all(scratch());

  EXPECT_GT(seen.size(), 1000u);
  // No stage of a program is left that no story reaches.
  for (const auto& entry :
       std::filesystem::directory_iterator(source_directory() / "tests/golden")) {
    if (!entry.path().string().ends_with(".duckdb.sql")) continue;
    for (const std::string& stage : stages_of(content(entry.path())))
      EXPECT_TRUE(stages.contains(stage)) << stage << " of " << entry.path().filename();
  }
}

}  // namespace
}  // namespace strandline::test
