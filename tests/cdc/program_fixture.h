// A toy lake and flows into it, for tests of programs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sql/parser.h"
#include "support/toy_lake.h"

namespace strandline::test {

class ProgramFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
  }
  static void TearDownTestSuite() { database_.reset(); }
  void SetUp() override {
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    connection_ = std::move(connection).value();
    lake_ = std::make_unique<ToyLake>(*connection_);
  }
  void TearDown() override { lake_.reset(); }

  // A flow over a source of these columns.
  struct Flow {
    std::string columns;  // DDL
    std::string clauses;
    std::string sequence_type = "BIGINT";
    std::string name = "f";
    std::string system_type = "BIGINT";
  };

  // One batch of the rows of a query.
  Result<BatchOutcome> try_deliver_query(const Flow& flow, const std::string& query) {
    cdc::Declaration declaration;
    declaration.flow_name = flow.name;
    declaration.target = "t";
    const sql::Script script = sql::parse_script(
        "CREATE FLOW f AS AUTO CDC INTO t FROM stream(s) " + flow.clauses, "test.sql");
    if (!script.errors.empty()) return script.errors.front();
    declaration.clauses = std::get<sql::CreateAutoCdcFlow>(script.statements.at(0).body).clauses;
    cdc::SourceFacts facts;
    SL_ASSIGN(facts.schema, sql::parse_schema_ddl(flow.columns, "test"));
    SL_ASSIGN(facts.sequence_type, sql::parse_type(flow.sequence_type, "test"));
    SL_ASSIGN(facts.system_sequence_type, sql::parse_type(flow.system_type, "test"));
    return lake_->run_batch(declaration, facts, "(" + query + ")");
  }

  // One batch of rows: "(1, 'a', 3), (2, 'b', 4)".
  Result<BatchOutcome> try_deliver(const Flow& flow, const std::string& rows) {
    SL_ASSIGN(const Schema schema, sql::parse_schema_ddl(flow.columns, "test"));
    std::string names, casts;
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const Field& field = schema.fields[i];
      names += fmt::format("{}v{}", i > 0 ? ", " : "", i);
      casts += fmt::format("{}CAST(v{} AS {}) AS {}", i > 0 ? ", " : "", i,
                           duck::engine_type(field.type), duck::quote_name(field.name));
    }
    std::string none;
    for (size_t i = 0; i < schema.fields.size(); ++i) none += i > 0 ? ", NULL" : "NULL";
    return try_deliver_query(flow, fmt::format("SELECT {} FROM (VALUES {}) AS v({}) WHERE {}",
                                               casts, rows.empty() ? "(" + none + ")" : rows, names,
                                               rows.empty() ? "false" : "true"));
  }

  BatchOutcome deliver(const Flow& flow, const std::string& rows) {
    const Result<BatchOutcome> outcome = try_deliver(flow, rows);
    EXPECT_TRUE(outcome.ok()) << outcome.error().code << ": " << outcome.error().message;
    return outcome.ok() ? *outcome : BatchOutcome{};
  }
  Error deliver_badly(const Flow& flow, const std::string& rows) {
    const Result<BatchOutcome> outcome = try_deliver(flow, rows);
    EXPECT_FALSE(outcome.ok());
    return outcome.ok() ? Error{} : outcome.error();
  }

  static std::vector<std::string> lines(const Result<duck::Rows>& rows) {
    EXPECT_TRUE(rows.ok()) << rows.error().message;
    std::vector<std::string> list;
    for (const auto& row : rows->rows) {
      std::string line;
      for (size_t i = 0; i + 1 < row.size(); ++i) {
        line += (i > 0 ? "|" : "") + row[i].value_or("-");
      }
      list.push_back(line);
    }
    return list;
  }
  std::vector<std::string> table() { return lines(lake_->target_rows()); }
  std::vector<std::string> state() { return lines(lake_->state_rows()); }

  inline static std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
  std::unique_ptr<ToyLake> lake_;
};

}  // namespace strandline::test
