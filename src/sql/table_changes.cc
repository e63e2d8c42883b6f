#include "sql/table_changes.h"

#include "base/error.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

Result<TableChanges> parsed(const TableUse& use) {
  const bool by_path = use.function == "table_changes_by_path";
  if (use.arguments.size() < 2 || use.arguments.size() > 3 || !use.named_arguments.empty()) {
    return invalid_argument("WRONG_NUM_ARGS",
                            "{0} requires at least 2 arguments and at most 3 arguments, by "
                            "position: {0}(table, start[, end])",
                            use.function);
  }
  if (use.version_as_of || use.timestamp_as_of) {
    return invalid_argument("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
                            "{} takes its versions as arguments: leave the time travel out",
                            use.function);
  }
  const auto* const literal = use.arguments[0]->as<Literal>();
  if (literal == nullptr || literal->type != TypeId::kString) {
    return invalid_argument("DELTA_UNSUPPORTED_EXPRESSION",
                            "the first argument of {} has an unsupported expression type: write "
                            "the table's {} as a string",
                            use.function, by_path ? "path" : "name");
  }
  TableChanges changes;
  if (by_path) {
    changes.table.parts = {literal->text};
    changes.table.is_path = true;
  } else {
    SL_ASSIGN(changes.table, parse_table_name(literal->text));
  }
  changes.table.place = use.place;
  changes.start = use.arguments[1];
  if (use.arguments.size() == 3) changes.end = use.arguments[2];
  return changes;
}

}  // namespace

Result<std::optional<TableChanges>> table_changes_of(const TableUse& use) {
  if (use.function != "table_changes" && use.function != "table_changes_by_path")
    return std::optional<TableChanges>();
  auto changes = parsed(use);
  if (changes.ok()) return std::optional<TableChanges>(*std::move(changes));
  Error error = std::move(changes).error();
  if (use.place.line > 0) error.place = use.place;
  return error;
}

Result<TableName> parse_table_name(const std::string& text) {
  const auto query = parse_query("SELECT * FROM " + text, "");
  const auto* const use = query.ok() ? plain_table(**query) : nullptr;
  if (use == nullptr || !use->function.empty() || use->stream || use->version_as_of ||
      use->timestamp_as_of || !use->stream_options.empty()) {
    return invalid_argument("INVALID_NAME",
                            "'{}' is no table name: write one such as 's.t' or "
                            "'`s`.`odd.name`', with backquotes around odd names",
                            text);
  }
  TableName name = use->name;
  name.place = {};
  return name;
}

}  // namespace strandline::sql
