// Texts from outside parse: the documents' SQL blocks, Spark's own AUTO CDC syntax tests; and no
// text makes the parser crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>

#include "base/json.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"
#include "support/paths.h"

namespace strandline::sql {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The runs of lines that begin like a statement and end at ';' or a blank line.
std::vector<std::string> sql_blocks(const std::string& text) {
  static const std::vector<std::string> kStarts = {
      "CREATE ", "INSERT ", "SELECT ", "ALTER ", "SHOW ",     "SET ",          "TRUNCATE ",
      "DROP ",   "UPDATE ", "DELETE ", "MERGE ", "DESCRIBE ", "APPLY CHANGES "};
  std::vector<std::string> blocks;
  std::string block;
  std::istringstream lines(text);
  std::string line;
  const auto finish = [&] {
    if (!block.empty()) blocks.push_back(block);
    block.clear();
  };
  while (std::getline(lines, line)) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) {
      finish();
      continue;
    }
    const std::string content = line.substr(first);
    if (block.empty()) {
      const bool starts =
          std::any_of(kStarts.begin(), kStarts.end(),
                      [&](const std::string& start) { return content.rfind(start, 0) == 0; });
      if (!starts) continue;
    }
    block += line + "\n";
    if (content.back() == ';') finish();
  }
  finish();
  return blocks;
}

// <placeholder> as a name.
std::string filled(const std::string& block) {
  static const std::regex kPlaceholder("<([a-z_]+)>");
  return std::regex_replace(block, kPlaceholder, "$1");
}

TEST(Samples, EverySqlBlockOfTheDocumentsParses) {
  const fs::path folder = test::shared_directory() / "seeds";
  if (!fs::is_directory(folder))
    GTEST_SKIP() << "no folder " << folder << "; set STRANDLINE_SHARED";
  size_t blocks = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    for (const std::string& printed : sql_blocks(read_text(entry.path()))) {
      ++blocks;
      const std::string block = filled(printed);
      const Script script = parse_script(block, entry.path().filename());
      EXPECT_EQ(script.statements.size(), 1u) << block;
      for (const Error& error : script.errors) ADD_FAILURE() << render_error(error, block);
    }
  }
  EXPECT_GE(blocks, 25u);
}

// Spark refuses these, we take them: other rules or wider features (sql.md, auto-cdc.md section 2).
bool taken_here(const std::string& name, std::string* reason) {
  static const std::map<std::string, std::string> kTaken = {
      {"sql: non-streaming source",
       "a declaration mistake that the flow's check reports, with the graph at hand"},
      {"sql: no SEQUENCE BY", "a declaration mistake that the flow's check reports"},
      {"sql: APPLY AS TRUNCATE WHEN", "supported here"},
      {"sql: combined form rejects LOCATION '/x'", "LOCATION is a table clause here"},
  };
  const auto found = kTaken.find(name);
  if (found == kTaken.end()) return false;
  *reason = found->second;
  return true;
}

TEST(Samples, SparksAutoCdcSyntaxCases) {
  fs::path path = test::source_directory() / "tests/cases/spark-cases.json";
  if (!fs::exists(path)) path = test::shared_directory() / "cases/spark-cases.json";
  if (!fs::exists(path)) GTEST_SKIP() << "no file " << path << "; set STRANDLINE_SHARED";
  const auto cases = Json::parse(read_text(path));
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  size_t run = 0;
  for (const Json& item : cases->items()) {
    if (*item.get("level")->as_string() != "parser") continue;
    ++run;
    const std::string name = *item.get("name")->as_string();
    const std::string sql = *item.get("options")->get("sql")->as_string();
    const Json* expected = item.get("expected_error");
    const bool refused = expected != nullptr && !expected->is_null();
    const Script script = parse_script(sql, "case.sql");
    std::string reason;
    if (taken_here(name, &reason)) {
      std::cout << "taken: " << name << ": " << reason << "\n";
      EXPECT_TRUE(script.errors.empty()) << name;
    } else if (refused) {
      EXPECT_FALSE(script.errors.empty()) << name << "\n" << sql;
      const Json* condition = expected->get("condition");
      if (condition != nullptr && *condition->as_string() == "DUPLICATE_CLAUSES") {
        ASSERT_FALSE(script.errors.empty());
        EXPECT_EQ(script.errors[0].code, "DUPLICATE_CLAUSES");
      }
    } else {
      for (const Error& error : script.errors)
        ADD_FAILURE() << name << "\n" << render_error(error, sql);
      EXPECT_EQ(script.statements.size(), 1u) << name;
    }
  }
  EXPECT_EQ(run, 23u);
}

const std::vector<std::string>& valid_texts() {
  static const std::vector<std::string> kTexts = {
      R"(CREATE OR REFRESH STREAMING TABLE a.b (id INT NOT NULL COMMENT 'x', s STRUCT<a: ARRAY<INT>, b: MAP<STRING, DECIMAL(10,2)>>,
         g DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), CONSTRAINT c EXPECT (id > 0) ON VIOLATION DROP ROW) CLUSTER BY (id)
         TBLPROPERTIES ('a.b' = 'c', delta.x = true) FLOW AUTO CDC FROM (SELECT * FROM STREAM x WHERE op <> 'u') KEYS (id)
         APPLY AS DELETE WHEN op = "D" SEQUENCE BY STRUCT(ts, _metadata.file_path) COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2
         TRACK HISTORY ON * EXCEPT (city);)",
      R"(WITH a AS (SELECT x, row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS rn FROM t VERSION AS OF 3)
         SELECT a.*, CASE WHEN x IN (1, 2) THEN 'it''s' ELSE "q\n" END c, arr[0], raw:p.q::bigint, transform(xs, (e, i) -> e + i)
         FROM a LEFT JOIN u USING (k) LATERAL VIEW OUTER explode(m) tt AS kk, vv WHERE x <=> 1 AND NOT EXISTS (SELECT 1)
         GROUP BY ALL HAVING count(*) FILTER (WHERE y) > 1 QUALIFY rn = 1 ORDER BY 1 LIMIT 5 OFFSET 1;)",
      R"(FROM STREAM read_files('/p', format => 'csv', schema => 'a INT') |> WHERE a > 1 |> EXTEND b + INTERVAL 1 DAY AS c
         |> AGGREGATE sum(c) AS s GROUP BY d |> UNION ALL SELECT * FROM VALUES (1, X'0A', -1.5e3D) AS v(a, b, c);)",
      R"(INSERT INTO t (a, b) VALUES (1, 'x'), (NULL, `q`); UPDATE t SET a = a + 1 WHERE b LIKE 'x\_%' ESCAPE '!';
         SET a.b = 'c'; SELECT ${a.b}; DELETE FROM t WHERE a BETWEEN 1 AND 2; /* c /* nested */ */ -- end)",
  };
  return kTexts;
}

// Parsing, and printing of what parses, ends without a crash whatever the text is.
void survive(const std::string& text) {
  const Script script =
      parse_script(text, "fuzz.sql", [](const std::string&) { return std::string("1"); });
  for (const Error& error : script.errors) {
    EXPECT_FALSE(error.code.empty());
    EXPECT_FALSE(render_error(error, text).empty());
  }
  for (const Statement& statement : script.statements) {
    if (const auto* select = std::get_if<SelectStatement>(&statement.body)) {
      const std::string spark = print_spark(*select->query);
      (void)print_duckdb(*select->query, [](const TableUse&) -> Result<std::string> {
        return std::string("\"t\"");
      });
      (void)table_uses(*select->query);
      const auto again = parse_query(spark, "again.sql");
      EXPECT_TRUE(again.ok()) << again.error().message << "\n" << spark << "\nfrom\n" << text;
    }
  }
}

TEST(Samples, NoMutationOfValidTextCrashes) {
  for (const std::string& text : valid_texts()) {
    const Script script =
        parse_script(text, "valid.sql", [](const std::string&) { return std::string("1"); });
    for (const Error& error : script.errors) ADD_FAILURE() << render_error(error, text);
  }
  const unsigned seed = 20260728;
  std::mt19937 random(seed);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const std::string bytes = "()[]<>,.;:'\"`\\*-/|=${}@ \n0aE\xC3\xA9";
  for (int round = 0; round < 1500; ++round) {
    std::string text = valid_texts()[below(valid_texts().size())];
    const size_t changes = 1 + below(4);
    for (size_t i = 0; i < changes && !text.empty(); ++i) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, 1, bytes[below(bytes.size())]);
          break;
        default:
          text.resize(at);
          break;
      }
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    survive(text);
  }
}

}  // namespace
}  // namespace strandline::sql
