#include "pipeline/feed_flow.h"

#include <algorithm>

#include "base/error.h"
#include "cdf/plan.h"
#include "duck/connection.h"
#include "sql/duckdb_printer.h"
#include "sql/expr.h"
#include "sql/parser.h"

namespace strandline::pipeline {
namespace {

bool is_commit_column(const sql::Expr& expr) {
  const auto* const column = expr.as<sql::ColumnRef>();
  return column != nullptr && !column->parts.empty() &&
         (same_name(column->parts.back(), cdf::kCommitVersionColumn) ||
          same_name(column->parts.back(), cdf::kCommitTimestampColumn));
}

// The first field of struct(…) or named_struct(…); null for anything else.
const sql::Expr* first_field(const sql::Expr& expr) {
  const auto* const call = expr.as<sql::Call>();
  if (call == nullptr) return nullptr;
  const size_t first = call->name.text == "struct" ? 0 : call->name.text == "named_struct" ? 1 : 2;
  return first < 2 && first < call->args.size() ? call->args[first].get() : nullptr;
}

bool begins_with_commit(const sql::ExprPtr& expr) {
  if (!expr) return false;
  if (is_commit_column(*expr)) return true;
  const auto* const first = first_field(*expr);
  return first != nullptr && is_commit_column(*first);
}

}  // namespace

Result<cdc::Declaration> over_feed(cdc::Declaration declaration) {
  SL_ASSIGN(auto deletes, sql::parse_expression(fmt::format("{} IN ('delete', 'update_preimage')",
                                                            cdf::kChangeTypeColumn),
                                                declaration.place.file));
  auto& clauses = declaration.clauses;
  if (clauses.delete_when) {
    deletes = sql::make_expr(sql::Binary{sql::BinaryOp::kOr, deletes, clauses.delete_when},
                             clauses.delete_when->place);
  } else {
    clauses.delete_place = declaration.place;
  }
  clauses.delete_when = std::move(deletes);
  return declaration;
}

std::vector<Error> check_over_feed(const cdc::Declaration& declaration, const Schema& query) {
  std::vector<Error> errors;
  const auto add = [&](Error error, const SourcePlace& place) {
    error.place = place.line > 0 ? place : declaration.place;
    error.message = "flow " + declaration.flow_name + ": " + error.message;
    errors.push_back(std::move(error));
  };
  for (const char* name : {cdf::kChangeTypeColumn, cdf::kCommitVersionColumn}) {
    if (query.find(name)) continue;
    add(invalid_argument("AUTOCDC_FEED_COLUMN_MISSING",
                         "the source reads a change data feed and its query leaves {} out, which "
                         "says what a row means: select it too, under its name; it stays out of "
                         "the target",
                         name),
        declaration.place);
  }
  const auto& clauses = declaration.clauses;
  const bool bitemporal = clauses.stored_as == sql::StoredAs::kBitemporal;
  if (clauses.sequence_by && !begins_with_commit(clauses.sequence_by) &&
      !(bitemporal && begins_with_commit(clauses.system_sequence_by))) {
    add(invalid_argument(
            "AUTOCDC_FEED_SEQUENCE",
            "the source reads a change data feed, so that {} must be _commit_version or "
            "_commit_timestamp, or a STRUCT that begins with one: a delete of the feed has the old "
            "row's columns, and ordered by those it would come too early and be lost",
            bitemporal ? "SEQUENCE BY or SYSTEM SEQUENCE BY" : "SEQUENCE BY"),
        clauses.sequence_place);
  }
  return errors;
}

void hide_feed_columns(Schema* schema, Schema* hidden) {
  for (const char* name :
       {cdf::kChangeTypeColumn, cdf::kCommitVersionColumn, cdf::kCommitTimestampColumn}) {
    const auto index = schema->find(name);
    if (!index) continue;
    hidden->fields.push_back(schema->fields[*index]);
    schema->fields.erase(schema->fields.begin() + static_cast<long>(*index));
  }
}

Result<std::string> feed_events(const std::string& query, const std::vector<std::string>& keys,
                                const cdc::Declaration& declaration) {
  const auto& sequence = declaration.clauses.sequence_by;
  const bool by_commit_alone = sequence && is_commit_column(*sequence);
  constexpr const char* kGivenAgain = "__strandline_given_again";
  std::string partition = cdf::kCommitVersionColumn;
  for (const auto& key : keys) partition += ", " + duck::quote_name(key);
  if (sequence && !begins_with_commit(sequence)) {
    SL_ASSIGN(const auto time, sql::print_duckdb(*sequence));
    return fmt::format(
        "SELECT * EXCLUDE ({0}, {0}_then) FROM (SELECT *, bool_or({1} IN ('insert', "
        "'update_postimage')) OVER (PARTITION BY {2}) AS {0}, bool_or({1} IN ('insert', "
        "'update_postimage')) OVER (PARTITION BY {2}, {4}) AS {0}_then FROM ({3})) "
        "WHERE NOT ({0} AND {1} = 'update_preimage') AND NOT ({0}_then AND {1} = 'delete')",
        kGivenAgain, cdf::kChangeTypeColumn, partition, query, time);
  }
  return fmt::format(
      "SELECT * EXCLUDE ({0}) FROM (SELECT *, bool_or({1} IN ('insert', 'update_postimage')) OVER "
      "(PARTITION BY {2}) AS {0} FROM ({3})) WHERE NOT ({0} AND {1} IN ({4}))",
      kGivenAgain, cdf::kChangeTypeColumn, partition, query,
      by_commit_alone ? "'update_preimage'" : "'update_preimage', 'delete'");
}

}  // namespace strandline::pipeline
