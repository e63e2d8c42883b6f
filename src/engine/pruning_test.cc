// Queries read no more files than they need, and never fewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <strandline/strandline.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace strandline {
namespace {

using testing::HasSubstr;

class PruningTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 fmt::format("pruning_{}_{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    SessionOptions options;
    options.warehouse = (directory_ / "lake").string();
    options.engine.threads = 2;
    options.directory = directory_.string();
    auto opened = Session::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session_ = std::move(opened).value();
  }
  void TearDown() override {
    session_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string csv(const std::string& text) {
    std::ostringstream out;
    auto done = session_->run(text, "", OutputFormat::kCsv, out);
    if (!done.ok()) return done.error().code + ": " + done.error().message;
    return out.str();
  }
  // The files of each table that a query reads, as "2 of 7", in the order of the tables' names.
  std::vector<std::string> reads(const std::string& query) {
    std::istringstream lines(csv("EXPLAIN " + query));
    std::multimap<std::string, std::string> found;
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("files: read ");
      if (at == std::string::npos) continue;
      const auto start = at + 12;
      const auto path = line.substr(0, line.find(" version "));
      found.emplace(path.substr(path.rfind('/') + 1),
                    line.substr(start, line.find(" (", start) - start));
    }
    std::vector<std::string> files;
    for (const auto& [table, read] : found) files.push_back(read);
    return files;
  }

  // Five files of ids 0-9, 10-19, ... with d = 2026-01-01 + file and, in file 4, a null name.
  void make_table(const std::string& name, const std::string& options = "") {
    EXPECT_EQ(csv("CREATE TABLE " + name +
                  " (id BIGINT, name STRING, d DATE, s STRUCT<a: INT, b: STRING>)" + options),
              "");
    for (int file = 0; file < 5; ++file) {
      EXPECT_EQ(csv(fmt::format(
                    "INSERT INTO {} SELECT {} * 10 + id, CASE WHEN {} < 4 THEN concat('n', {} * 10 "
                    "+ id) END, date_add(DATE'2026-01-01', {}), struct(CAST({} AS INT) AS a, 'x' "
                    "AS b) FROM range(10)",
                    name, file, file, file, file, file)),
                "");
    }
  }

  std::filesystem::path directory_;
  std::unique_ptr<Session> session_;
};

using Reads = std::vector<std::string>;

TEST_F(PruningTest, WhereLeavesFilesOut) {
  make_table("t");
  EXPECT_EQ(reads("SELECT * FROM t"), Reads{"5 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE id = 25"), Reads{"1 of 5"});
  EXPECT_EQ(csv("SELECT name FROM t WHERE id = 25"), "name\nn25\n");
  EXPECT_EQ(reads("SELECT * FROM t WHERE 10 > ID AND rand() < 2"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t x WHERE x.id BETWEEN 15 AND 20"), Reads{"2 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE t.id IN (1, 2, 45)"), Reads{"2 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE id < 10 OR d = '2026-01-05'"), Reads{"2 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE name IS NULL"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE NOT (name IS NOT NULL)"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE name LIKE 'n3%'"), Reads{"2 of 5"})
      << "n3 to n39 and n0 to n9, which holds n3";
  EXPECT_EQ(reads("SELECT * FROM t WHERE s.a >= 3"), Reads{"2 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE t.s.a = 3"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE id = 5 * 5"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE d > date_add(DATE'2026-01-01', 3)"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t WHERE d > current_date() + INTERVAL 90 YEAR"), Reads{"0 of 5"});
  EXPECT_EQ(csv("SELECT count(*) AS n FROM t WHERE id > 1000"), "n\n0\n");
  EXPECT_EQ(reads("SELECT * FROM t WHERE id % 10 = 3"), Reads{"5 of 5"});
  EXPECT_EQ(reads("SELECT * FROM t VERSION AS OF 3 WHERE id >= 20"), Reads{"1 of 3"});
  EXPECT_THAT(csv("EXPLAIN SELECT * FROM t WHERE id = 25"),
              HasSubstr("files: read 1 of 5 (partition values skipped 0, statistics skipped 4)"));
}

TEST_F(PruningTest, PartitionValuesAreCountedApart) {
  make_table("t", " PARTITIONED BY (d)");
  EXPECT_THAT(csv("EXPLAIN SELECT * FROM t WHERE d >= '2026-01-03' AND id < 30"),
              HasSubstr("files: read 1 of 5 (partition values skipped 2, statistics skipped 2)"));
}

TEST_F(PruningTest, ConditionsFollowNamesToTheirTables) {
  make_table("t");
  make_table("u");
  EXPECT_EQ(reads("SELECT * FROM t JOIN u ON t.id = u.id AND u.id < 10 WHERE t.id > 40"),
            (Reads{"1 of 5", "1 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t, u WHERE t.id = u.id AND t.id = 3"),
            (Reads{"1 of 5", "5 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t JOIN u USING (id) WHERE id = 3"), (Reads{"1 of 5", "1 of 5"}));
  // The side filled with nulls keeps its files for conditions after the join, not those of ON.
  EXPECT_EQ(reads("SELECT * FROM t LEFT JOIN u ON t.id = u.id AND u.id < 10 AND t.id < 10 WHERE "
                  "t.id > 40 AND u.id IS NULL"),
            (Reads{"1 of 5", "1 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t LEFT JOIN u ON t.id = u.id WHERE u.id IS NULL"),
            (Reads{"5 of 5", "5 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t RIGHT JOIN u ON t.id = u.id AND t.id < 10 WHERE u.id = 1 AND "
                  "t.id IS NULL"),
            (Reads{"1 of 5", "1 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t FULL JOIN u ON t.id = u.id AND t.id = 1 WHERE t.id = 3"),
            (Reads{"5 of 5", "5 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t LEFT SEMI JOIN u ON t.id = u.id AND t.id < 10 AND u.id < 20"),
            (Reads{"1 of 5", "2 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t LEFT ANTI JOIN u ON t.id = u.id AND t.id < 10 AND u.id < 20"),
            (Reads{"5 of 5", "2 of 5"}));
  // Subqueries, common table expressions and views.
  EXPECT_EQ(reads("SELECT * FROM (SELECT id AS d, * EXCEPT (id) FROM t) v WHERE v.d = 3"),
            Reads{"5 of 5"})
      << "two columns have that name";
  EXPECT_EQ(reads("SELECT * FROM (SELECT id AS k, d FROM t) v WHERE v.k = 3 AND d < '2026-02-01'"),
            Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM (SELECT * FROM t WHERE id < 30) WHERE id > 25"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM (SELECT * FROM t LIMIT 10) WHERE id > 45"), Reads{"5 of 5"});
  EXPECT_EQ(
      reads("SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) r FROM t) WHERE id > 45"),
      Reads{"5 of 5"});
  EXPECT_EQ(reads("SELECT * FROM (SELECT d, count(*) n FROM t GROUP BY d) WHERE d = '2026-01-02'"),
            Reads{"1 of 5"});
  EXPECT_EQ(csv("SELECT * FROM (SELECT d, count(*) n FROM t GROUP BY d) WHERE d = '2026-01-02'"),
            "d,n\n2026-01-02,10\n");
  EXPECT_EQ(reads("WITH c AS (SELECT id k FROM t) SELECT * FROM c WHERE k = 3"), Reads{"1 of 5"});
  EXPECT_EQ(reads("WITH c(x) AS (SELECT id k FROM t) SELECT * FROM c a JOIN c b ON a.x = b.x AND "
                  "a.x = 3 AND b.x = 13"),
            Reads{"2 of 5"});
  EXPECT_EQ(reads("WITH t AS (SELECT * FROM u WHERE id < 10) SELECT * FROM t WHERE id < 50"),
            Reads{"1 of 5"});
  EXPECT_EQ(
      reads("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.id < 10 AND "
            "t.id = 49)"),
      (Reads{"5 of 5", "1 of 5"}));
  EXPECT_EQ(reads("SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM u WHERE id = 2"),
            (Reads{"1 of 5", "1 of 5"}));
  csv("CREATE VIEW w (k, day) AS SELECT id, d FROM t WHERE id >= 10; CREATE TEMPORARY VIEW w2 AS "
      "SELECT * FROM w WHERE day < '2026-01-04'");
  EXPECT_EQ(reads("SELECT * FROM w WHERE k < 20"), Reads{"1 of 5"});
  EXPECT_EQ(reads("SELECT * FROM w2 WHERE k < 30"), Reads{"2 of 5"});
  EXPECT_EQ(csv("SELECT count(*) AS n FROM w2 WHERE k < 30"), "n\n20\n");
}

TEST_F(PruningTest, ChangesReadTheFilesOfTheirCondition) {
  make_table("t");
  // "files read of files there" of the newest commit, and whether it is a blind append.
  const auto newest = [&] {
    const auto log = directory_ / "lake/main/default/t/_delta_log";
    std::filesystem::path last;
    for (const auto& entry : std::filesystem::directory_iterator(log)) {
      if (entry.path().extension() == ".json" && entry.path() > last) last = entry.path();
    }
    std::ifstream file(last);
    std::string line;
    std::getline(file, line);
    const auto value = [&](const std::string& name) {
      const auto start = line.find('"' + name + "\":\"");
      if (start == std::string::npos) return std::string("none");
      const auto from = start + name.size() + 4;
      return line.substr(from, line.find('"', from) - from);
    };
    return value("numFilesAfterSkipping") + " of " + value("numFilesBeforeSkipping");
  };
  csv("DELETE FROM t WHERE id = 25");
  EXPECT_EQ(newest(), "1 of 5");
  csv("UPDATE t SET name = 'x' WHERE t.id BETWEEN 15 AND 21");
  EXPECT_EQ(newest(), "2 of 5");
  csv("CREATE TABLE s AS SELECT 3 AS k, 'y' AS name UNION ALL SELECT 47, 'z'");
  csv("MERGE INTO t USING s ON s.k = t.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT "
      "MATCHED THEN INSERT (id, name) VALUES (k, s.name)");
  EXPECT_EQ(newest(), "2 of 6") << "of 0-9, 10-19, ..., 40-49 and the updated 15-21";
  EXPECT_EQ(csv("SELECT id FROM t WHERE name IN ('y', 'z') ORDER BY id"), "id\n3\n47\n");
  csv("MERGE INTO t USING s ON s.k + 1 = t.id AND t.d < '2026-01-02' WHEN MATCHED THEN DELETE");
  EXPECT_EQ(newest(), "2 of 7") << "4 and 48, but those of the first day only";
  EXPECT_EQ(csv("INSERT INTO t REPLACE WHERE id = 33 VALUES (33, 'v', NULL, NULL)"), "");
  EXPECT_EQ(newest(), "2 of 7") << "30-39 and the file of 3 and 47";
  csv("CREATE TABLE texts AS SELECT '9' AS k UNION ALL SELECT '10'");
  csv("MERGE INTO t USING texts ON texts.k = t.id WHEN MATCHED THEN UPDATE SET name = 'w'");
  EXPECT_EQ(csv("SELECT id FROM t WHERE name = 'w' ORDER BY id"), "id\n9\n10\n")
      << "texts are ordered otherwise than the numbers they are cast to";
}

// Random rows in small files, random conditions: what a query finds after leaving files out is what
// it finds among all rows (a FILTER clause leaves nothing out).
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

 private:
  std::mt19937 random_;
};

struct Column {
  std::string name;
  std::string type;
  std::vector<std::string> values;  // SQL text
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"i", "BIGINT", {"-3", "0", "1", "2", "7", "9007199254740992", "9007199254740993"}},
      {"n", "INT", {"-1", "0", "1", "2", "3", "2147483647"}},
      {"x",
       "DOUBLE",
       {"CAST('NaN' AS DOUBLE)", "CAST('-0.0' AS DOUBLE)", "0D", "0.1D", "-1.5D", "2D",
        "CAST('Infinity' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "1e300D"}},
      {"f", "FLOAT", {"CAST(0.1 AS FLOAT)", "CAST(2 AS FLOAT)", "CAST('NaN' AS FLOAT)", "0F"}},
      {"m", "DECIMAL(20,4)", {"0", "1.5", "1.5001", "-2.25", "1234567890123456.7891"}},
      {"s",
       "STRING",
       {"''", "'a'", "'ab'", "'abc'", "'Z'", "'zzz'", "'\\u007f'", "'\\uFFFF'", "'\\uD83D\\uDE00'",
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'",
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\uD83D\\uDE00z'"}},
      {"d",
       "DATE",
       {"DATE'1969-12-31'", "DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'9999-12-31'"}},
      {"t",
       "TIMESTAMP",
       {"TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2024-01-01 00:00:00.0005'",
        "TIMESTAMP'2024-01-01 00:00:00.001'", "TIMESTAMP'1969-12-31 23:59:59.999999'",
        "TIMESTAMP'1960-01-01 00:00:00.123456'"}},
      {"w",
       "TIMESTAMP_NTZ",
       {"TIMESTAMP_NTZ'2024-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-01-01 00:00:00.999999'",
        "TIMESTAMP_NTZ'1900-05-05 05:05:05'"}},
      {"b", "BOOLEAN", {"true", "false"}},
      {"p", "STRING", {"'x'", "'y y'", "'Z'"}},
      {"q", "DATE", {"DATE'2024-01-01'", "DATE'2024-01-02'"}},
  };
  return all;
}

std::string random_value(Chance& chance, const Column& column) {
  return chance.below(5) == 0 ? "CAST(NULL AS " + column.type + ")" : chance.pick(column.values);
}

std::string random_condition(Chance& chance, int depth) {
  if (depth > 0) {
    switch (chance.below(5)) {
      case 0:
      case 1:
        return "(" + random_condition(chance, depth - 1) + " AND " +
               random_condition(chance, depth - 1) + ")";
      case 2:
        return "(" + random_condition(chance, depth - 1) + " OR " +
               random_condition(chance, depth - 1) + ")";
      case 3:
        return "(NOT " + random_condition(chance, depth - 1) + ")";
      default:
        break;
    }
  }
  const Column& column = columns()[chance.below(columns().size())];
  static const std::vector<std::string> operators = {"=", "<=>", "<", "<=", ">", ">=", "<>"};
  const std::string& name = column.name;
  switch (chance.below(9)) {
    case 0:
      return name + " IS NULL";
    case 1:
      return name + " IS NOT NULL";
    case 2:
      return fmt::format("{} {}IN ({}, {}, {})", name, chance.below(3) == 0 ? "NOT " : "",
                         random_value(chance, column), random_value(chance, column),
                         chance.pick(column.values));
    case 3:
      return fmt::format("{} BETWEEN {} AND {}", name, chance.pick(column.values),
                         random_value(chance, column));
    case 4:
      return fmt::format("({} {} {}) IS {}{}", name, chance.pick(operators),
                         random_value(chance, column), chance.below(2) == 0 ? "NOT " : "",
                         chance.below(2) == 0 ? "TRUE" : "FALSE");
    case 5:
      return fmt::format("{} {} {}", random_value(chance, column), chance.pick(operators), name);
    case 6: {
      static const std::vector<std::string> patterns = {
          "a%", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%", "%b", "ab_", "abc", "zz%", "y%"};
      return fmt::format("{} {}LIKE '{}'", chance.below(2) == 0 ? "s" : "p",
                         chance.below(3) == 0 ? "NOT " : "", chance.pick(patterns));
    }
    default:
      return fmt::format("{} {} {}", name, chance.pick(operators), random_value(chance, column));
  }
}

TEST_F(PruningTest, LeavingFilesOutChangesNoResult) {
  Chance chance(20260801);
  std::string definition;
  for (const Column& column : columns())
    definition += fmt::format("{}{} {}", definition.empty() ? "" : ", ", column.name, column.type);
  ASSERT_EQ(csv("CREATE TABLE t (" + definition + ") PARTITIONED BY (p, q)"), "");
  for (int insert = 0; insert < 12; ++insert) {
    std::string rows;
    for (size_t row = 0; row <= chance.below(4); ++row) {
      std::string values;
      for (const Column& column : columns())
        values += (values.empty() ? "(" : ", ") + random_value(chance, column);
      rows += (rows.empty() ? "" : ", ") + values + ")";
    }
    ASSERT_EQ(csv("INSERT INTO t VALUES " + rows), "");
  }
  ASSERT_EQ(csv("DELETE FROM t WHERE n = 1"), "");
  size_t skipping = 0;
  for (int round = 0; round < 120; ++round) {
    const std::string condition = random_condition(chance, 2);
    const std::string query = fmt::format(
        "SELECT (SELECT count(*) FROM t WHERE {0}) = (SELECT count(*) FILTER (WHERE {0}) FROM t) "
        "AS same",
        condition);
    ASSERT_EQ(csv(query), "same\ntrue\n") << condition;
    if (round % 3 != 0) continue;
    const auto files = reads("SELECT * FROM t WHERE " + condition);
    ASSERT_EQ(files.size(), 1u) << condition;
    if (files[0].substr(0, files[0].find(' ')) != files[0].substr(files[0].rfind(' ') + 1))
      ++skipping;
  }
  EXPECT_GT(skipping, 12u);
}

}  // namespace
}  // namespace strandline
