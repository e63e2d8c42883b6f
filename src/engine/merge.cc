// MERGE. The source is kept in a temporary table first: it may be costly, or give other rows when
// asked again. Then only narrow facts are decided - which source row meets which target row and
// which clause applies - and rows are read in full where they change.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "delta/text_length.h"
#include "duck/key_ranges.h"
#include "engine/assignment.h"
#include "engine/conditions.h"
#include "engine/names.h"
#include "engine/new_values.h"
#include "engine/rows.h"
#include "engine/target.h"
#include "engine/write_rows.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

using When = sql::MergeClause::When;
using Action = sql::MergeClause::Action;

// Columns of the temporary tables. Their names cannot clash: scans refuse columns of such names.
constexpr const char* kSourceRow = "__strandline_source_row";
constexpr const char* kClause = "__strandline_clause";
constexpr const char* kPair = "__strandline_pair";

struct Clause {
  const sql::MergeClause* text;
  std::string condition;  // DuckDB text; empty: always
  NewValues values;
};

class Merger {
 public:
  Merger(const Context& context, const sql::Merge& statement, Target target)
      : context_(context),
        connection_(*context.connection),
        statement_(statement),
        target_(std::move(target)),
        relations_(context),
        source_(connection_, "source"),
        pairs_(connection_, "pairs"),
        unmatched_(connection_, "unmatched"),
        updated_(connection_, "updated"),
        inserted_(connection_, "inserted"),
        new_rows_(connection_, "new_rows") {}

  Result<ChangedRows> run();
  Status check();
  Error explain(Error error) const { return relations_.explain(std::move(error)); }

 private:
  // Keeps its rows, or for a check none of them.
  Status keep_source(bool with_rows);
  Status check_source_names();
  bool is_read(const std::string& column) const;
  Status evolve();
  bool is_assigned(const std::string& column) const;
  Status read_clauses();
  // A condition over the rows that a kind of clause sees, as DuckDB text.
  Result<std::string> read_condition(const sql::ExprPtr& condition, When when,
                                     const SourcePlace& place);
  Status add_star(Clause& clause);
  Status add_star_value(Clause& clause, std::vector<size_t> path, const Field& field,
                        const DataType& source, const std::string& value);
  bool has(When when) const;
  // The number of the first clause of a kind that applies to a row, or null.
  std::string decide(When when) const;
  std::string from(When when) const;
  const std::vector<sql::TableName>& names(When when) const;
  std::string numbers(When when, Action action) const;  // "0, 3", empty for none

  Status find_reads();
  Status find_pairs();
  Status check_single_matches();
  Result<std::string> describe_row(const std::string& file, const std::string& row);
  Status find_unmatched_targets();
  Status find_inserts();
  Status count();
  Result<std::vector<size_t>> files_of(const TempTable& table, const std::string& numbers);
  Status keep_updates();
  Result<std::string> columns_by_clause(Action action) const;
  Result<std::string> inserts() const;
  std::string deleted_rows() const;
  int64_t rows_of(Action action, std::optional<When> when = {}) const;
  Status plan(duck::TableChange* change);
  void describe(delta::Transaction& transaction, const duck::AppliedChange& applied) const;
  std::string predicates(When when) const;
  std::string position(const std::string& alias) const {
    return qualified(alias, duck::kFileColumn) + ", " + qualified(alias, duck::kRowColumn);
  }
  std::string at_pair() const;

  const Context& context_;
  duck::Connection& connection_;
  const sql::Merge& statement_;
  Target target_;
  Relations relations_;
  TempTable source_;     // the source's rows, columns c0, c1, ...
  TempTable pairs_;      // rows that meet by ON: target position, source row, clause or null
  TempTable unmatched_;  // target rows without source that a clause changes: position, clause
  TempTable updated_;    // rows to update, old and new values
  TempTable inserted_;   // source rows to insert: source row, clause
  TempTable new_rows_;   // rows as they are inserted, where they are read twice

  std::string alias_;                        // of the source
  std::vector<duck::ResultColumn> columns_;  // of the source
  std::string source_sql_;                   // the source as a relation under its alias
  std::string scan_;                         // the target, files that ON can match
  std::string all_;                          // the whole target, if rows without source matter
  TargetReads reads_;                        // for scan_
  std::vector<sql::TableName> source_names_;
  std::vector<sql::TableName> both_names_;
  std::string on_;
  std::vector<Clause> clauses_;

  std::optional<delta::Alteration> alteration_;  // of WITH SCHEMA EVOLUTION
  int64_t source_rows_ = 0;
  std::map<size_t, int64_t> counts_;  // rows by clause
  bool updates_ = false;              // updated_ has rows
};

bool Merger::has(When when) const {
  return std::any_of(statement_.clauses.begin(), statement_.clauses.end(),
                     [&](const sql::MergeClause& clause) { return clause.when == when; });
}

std::string Merger::numbers(When when, Action action) const {
  std::string list;
  for (size_t i = 0; i < clauses_.size(); ++i) {
    if (clauses_[i].text->when != when || clauses_[i].text->action != action) continue;
    list += (list.empty() ? "" : ", ") + std::to_string(i);
  }
  return list;
}

std::string Merger::decide(When when) const {
  std::string branches;
  std::string otherwise = "NULL";
  for (size_t i = 0; i < clauses_.size(); ++i) {
    if (clauses_[i].text->when != when) continue;
    if (clauses_[i].condition.empty()) {
      otherwise = std::to_string(i);
    } else {
      branches += fmt::format(" WHEN {} THEN {}", clauses_[i].condition, i);
    }
  }
  const auto choice =
      branches.empty() ? otherwise : fmt::format("CASE{} ELSE {} END", branches, otherwise);
  return fmt::format("CAST({} AS INTEGER) AS {}", choice, kClause);
}

std::string Merger::from(When when) const {
  switch (when) {
    case When::kMatched:
      return scan_ + ", " + source_sql_;
    case When::kNotMatched:
      return source_sql_;
    case When::kNotMatchedBySource:
      return all_;
  }
  return all_;
}

const std::vector<sql::TableName>& Merger::names(When when) const {
  switch (when) {
    case When::kMatched:
      return both_names_;
    case When::kNotMatched:
      return source_names_;
    case When::kNotMatchedBySource:
      return target_.names;
  }
  return both_names_;
}

Status Merger::keep_source(bool with_rows) {
  const sql::Relation& source = *statement_.source;
  SL_ASSIGN(const auto query, relations_.print(*sql::select_all(statement_.source)));
  SL_ASSIGN(columns_, given_columns(connection_, query));
  alias_ = "__strandline_source";
  if (source.alias) {
    alias_ = source.alias->text;
  } else if (const auto* use = source.as<sql::TableUse>()) {
    alias_ = use->function.empty() ? use->name.parts.back() : use->function;
    if (use->function.empty() && !use->name.is_path) source_names_.push_back(use->name);
  }
  if (same_name(alias_, target_.alias)) {
    return at(invalid_argument("AMBIGUOUS_REFERENCE",
                               "target and source are both called {}: give one an alias, as in "
                               "USING source AS s",
                               alias_),
              source.place);
  }
  SL_TRY(check_source_names());
  std::string kept;
  std::string named;
  for (size_t i = 0; i < columns_.size(); ++i) {
    kept += fmt::format("{}c{}", kept.empty() ? "" : ", ", i);
    named += fmt::format("c{} AS {}, ", i, duck::quote_name(columns_[i].name));
  }
  SL_ASSIGN(source_rows_, source_.keep(fmt::format("SELECT * FROM ({}) AS kept({}){}", query, kept,
                                                   with_rows ? "" : " LIMIT 0")));
  source_sql_ = fmt::format("(SELECT {}rowid AS {} FROM {}) AS {}", named, kSourceRow,
                            source_.name(), duck::quote_name(alias_));
  both_names_ = target_.names;
  both_names_.insert(both_names_.end(), source_names_.begin(), source_names_.end());
  return {};
}

// Whether the statement reads a column of this name, or a field inside one.
bool Merger::is_read(const std::string& column) const {
  const auto reads = [&](const sql::ExprPtr& expr) {
    if (!expr) return false;
    const auto names = sql::columns_read(*expr);
    return std::any_of(names.begin(), names.end(), [&](const sql::Name& name) {
      const auto text = "." + fold_name(name.text) + ".";
      return text.find("." + fold_name(column) + ".") != std::string::npos;
    });
  };
  const auto by_clause = [&](const sql::MergeClause& clause) {
    return (clause.star && is_assigned(column)) || reads(clause.condition) ||
           std::any_of(clause.assignments.begin(), clause.assignments.end(),
                       [&](const sql::Assignment& each) { return reads(each.value); });
  };
  return reads(statement_.on) ||
         std::any_of(statement_.clauses.begin(), statement_.clauses.end(), by_clause);
}

// A column of the source that is read is told by its name alone.
Status Merger::check_source_names() {
  auto columns = columns_;
  // Around a subquery the engine renames what is there twice.
  const sql::Relation& source = *statement_.source;
  if (const auto* derived = source.as<sql::Derived>();
      derived != nullptr && source.column_aliases.empty()) {
    SL_ASSIGN(const auto inner, relations_.print(*derived->query));
    SL_ASSIGN(columns, connection_.describe(inner));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t other = 0; other < i; ++other) {
      if (!same_name(columns[other].name, columns[i].name)) continue;
      if (!is_read(columns[i].name)) continue;
      return at(invalid_argument("AMBIGUOUS_REFERENCE",
                                 "the source has two columns called {}: name one of them "
                                 "differently",
                                 columns[i].name),
                source.place);
    }
  }
  return {};
}

// Whether a clause takes the source's column by *, or assigns the target's of that name.
bool Merger::is_assigned(const std::string& column) const {
  const auto named = [&](const sql::Name& name) { return same_name(name.text, column); };
  return std::any_of(
      statement_.clauses.begin(), statement_.clauses.end(), [&](const sql::MergeClause& clause) {
        if (clause.star) {
          return std::none_of(clause.except.begin(), clause.except.end(), named);
        }
        return std::any_of(clause.assignments.begin(), clause.assignments.end(),
                           [&](const sql::Assignment& assignment) {
                             const auto& parts = assignment.target;
                             const bool qualified =
                                 parts.size() > 1 && same_name(parts[0], target_.alias);
                             return same_name(parts[qualified ? 1 : 0], column);
                           });
      });
}

Status Merger::evolve() {
  if (!statement_.schema_evolution) return {};
  std::vector<duck::ResultColumn> incoming;
  for (const auto& column : columns_) {
    if (is_assigned(column.name)) incoming.push_back(column);
  }
  auto alteration = evolve_target(target_, incoming);
  if (!alteration.ok()) return at(std::move(alteration).error(), statement_.source->place);
  alteration_ = std::move(alteration).value();
  return {};
}

// UPDATE SET * and INSERT *: the columns of one name.
Status Merger::add_star(Clause& clause) {
  const auto& fields = target_.schema().fields;
  const auto excepted = [&](const std::string& name) {
    const auto& except = clause.text->except;
    return std::any_of(except.begin(), except.end(),
                       [&](const sql::Name& other) { return same_name(other.text, name); });
  };
  const auto known = known_columns(clause.text->except, target_.schema(), "EXCEPT");
  if (!known.ok()) return known.error();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (excepted(fields[i].name)) continue;
    const auto column = std::find_if(
        columns_.begin(), columns_.end(),
        [&](const duck::ResultColumn& other) { return same_name(other.name, fields[i].name); });
    if (column == columns_.end()) {
      if (statement_.schema_evolution) continue;
      return at(invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION",
                                 "{} * takes every column of {} from the source, which has no {}: "
                                 "name the columns, or add EXCEPT ({})",
                                 clause.text->action == Action::kInsert ? "INSERT" : "UPDATE SET",
                                 target_.found.name, fields[i].name, fields[i].name),
                clause.text->place);
    }
    SL_TRY(add_star_value(clause, {i}, fields[i], column->type, qualified(alias_, column->name)));
  }
  return {};
}

// Where the schema may evolve, members of a struct that the source does not have keep their value.
Status Merger::add_star_value(Clause& clause, std::vector<size_t> path, const Field& field,
                              const DataType& source, const std::string& value) {
  const auto member = [&](const std::string& name) -> const Field* {
    for (const auto& other : *source.fields) {
      if (same_name(other.name, name)) return &other;
    }
    return nullptr;
  };
  const bool by_member =
      statement_.schema_evolution && clause.text->action == Action::kUpdate &&
      field.type.id == TypeId::kStruct && source.id == TypeId::kStruct &&
      std::any_of(field.type.fields->begin(), field.type.fields->end(),
                  [&](const Field& inner) { return member(inner.name) == nullptr; });
  if (!by_member) return clause.values.add(std::move(path), value, clause.text->place);
  for (size_t i = 0; i < field.type.fields->size(); ++i) {
    const Field& inner = (*field.type.fields)[i];
    const Field* found = member(inner.name);
    if (found == nullptr) continue;
    auto below = path;
    below.push_back(i);
    SL_TRY(add_star_value(
        clause, std::move(below), inner, found->type,
        fmt::format("struct_extract({}, {})", value, duck::quote_literal(found->name))));
  }
  return {};
}

Result<std::string> Merger::read_condition(const sql::ExprPtr& condition, When when,
                                           const SourcePlace& place) {
  SL_TRY(refuse_chance(condition, "MERGE"));
  SL_ASSIGN(auto text, relations_.print(*condition, names(when), from(when)));
  SL_TRY(check_condition(connection_, text, from(when), place));
  return text;
}

Status Merger::read_clauses() {
  SL_TRY(find_reads());
  SL_ASSIGN(scan_, scan_target(relations_, target_, reads_.selection.files));
  all_ = scan_;
  if (has(When::kNotMatchedBySource)) {
    SL_ASSIGN(all_, scan_target(relations_, target_,
                                reads_of(relations_, target_, nullptr).selection.files));
  }
  SL_ASSIGN(on_, read_condition(statement_.on, When::kMatched, statement_.on->place));
  for (size_t i = 0; i < statement_.clauses.size(); ++i) {
    const auto& text = statement_.clauses[i];
    clauses_.push_back(
        {&text, "",
         NewValues(target_, fmt::format("set_{}", i),
                   statement_.schema_evolution ? StructsBy::kName : StructsBy::kWholeName)});
    Clause& clause = clauses_.back();
    if (text.condition) {
      SL_ASSIGN(clause.condition, read_condition(text.condition, text.when, text.condition->place));
    }
    if (text.star) SL_TRY(add_star(clause));
    SL_TRY(clause.values.add(text.assignments, relations_, names(text.when), from(text.when)));
    auto typed = clause.values.find_types(connection_, from(text.when));
    if (!typed.ok()) return at(std::move(typed).error(), text.place);
  }
  return {};
}

// The target's rows that can meet a source row: those of the conditions on the target alone, and
// with keys among the source's where ON compares a column with a value of the source.
Status Merger::find_reads() {
  std::vector<duck::KeyColumn> columns;
  std::string items;
  const auto add_key = [&](const sql::Expr& side, const sql::Expr& other, bool nulls_match) {
    const auto own = sql::conditions_on(side, {target_.alias}, {alias_});
    const auto* column = own.size() == 1 ? own[0]->as<sql::ColumnRef>() : nullptr;
    if (column == nullptr || column->parts.size() != 1) return;
    const auto* field = target_.found.snapshot->schema.get(column->parts[0]);
    if (field == nullptr || sql::columns_read(other).empty()) return;
    // CHAR columns of several lengths meet with blanks that the values have not.
    if (delta::is_char(*field)) return;
    const auto value = relations_.print(other, source_names_, source_sql_);
    if (!value.ok()) return;
    // What reads more than the source does not bind.
    if (!connection_.describe(fmt::format("SELECT {} FROM {}", *value, source_sql_)).ok()) return;
    const auto name = fmt::format("key{}", columns.size());
    columns.push_back({field->name, "k." + name, nulls_match});
    items += fmt::format("{}{} AS {}", items.empty() ? "" : ", ", *value, name);
  };
  for (const auto& condition : sql::conjuncts(*statement_.on)) {
    const auto* compared = condition->as<sql::Binary>();
    if (compared == nullptr) continue;
    const bool nulls_match = compared->op == sql::BinaryOp::kNullSafeEqual;
    if (compared->op != sql::BinaryOp::kEqual && !nulls_match) continue;
    add_key(*compared->left, *compared->right, nulls_match);
    add_key(*compared->right, *compared->left, nulls_match);
  }
  auto filter = relations_.filter(*target_.view, target_.alias, statement_.on, {alias_});
  if (!columns.empty()) {
    SL_ASSIGN(const auto keys,
              duck::key_ranges(connection_, columns,
                               fmt::format("(SELECT {} FROM {})", items, source_sql_)));
    filter = delta::FileFilter::all_of({std::move(filter), keys.filter(*target_.view)});
  }
  reads_ = reads_of(target_, std::move(filter));
  return {};
}

Status Merger::find_pairs() {
  if (!has(When::kMatched) && !has(When::kNotMatchedBySource)) {
    // Only inserts: which source rows are met is enough.
    return pairs_.fill(fmt::format("SELECT DISTINCT {} FROM {} WHERE {}",
                                   qualified(alias_, kSourceRow), from(When::kMatched), on_));
  }
  return pairs_.fill(fmt::format("SELECT {}, {}, {} FROM {} WHERE {}", position(target_.alias),
                                 qualified(alias_, kSourceRow), decide(When::kMatched),
                                 from(When::kMatched), on_));
}

// The target row's values that ON compares, as "id = 5".
Result<std::string> Merger::describe_row(const std::string& file, const std::string& row) {
  std::vector<std::string> columns;
  for (const auto& name : sql::columns_read(*statement_.on)) {
    const auto dot = name.text.rfind('.');
    const auto qualifier = dot == std::string::npos ? "" : name.text.substr(0, dot);
    const auto* field =
        target_.schema().get(dot == std::string::npos ? name.text : name.text.substr(dot + 1));
    const bool is_target =
        qualifier.empty() || same_name(qualifier, target_.alias) ||
        (!target_.names.empty() && same_name(qualifier, sql::to_string(target_.names[0])));
    if (field == nullptr || !is_target) continue;
    if (std::find(columns.begin(), columns.end(), field->name) == columns.end()) {
      columns.push_back(field->name);
    }
  }
  if (columns.empty()) return std::string("of one row");
  SL_ASSIGN(const auto scan,
            scan_target(relations_, target_, {static_cast<size_t>(std::stoll(file))}));
  std::string items;
  for (const auto& column : columns) {
    items += (items.empty() ? "" : ", ") + qualified(target_.alias, column);
  }
  SL_ASSIGN(const auto found,
            connection_.query(fmt::format("SELECT {} FROM {} WHERE {} = {}", items, scan,
                                          qualified(target_.alias, duck::kRowColumn), row)));
  std::string text;
  for (size_t i = 0; i < columns.size() && !found.rows.empty(); ++i) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", columns[i],
                        found.rows[0][i].value_or("NULL"));
  }
  return text;
}

// One target row cannot become two: only a lone DELETE of everything that matches may meet a row
// several times.
Status Merger::check_single_matches() {
  if (!has(When::kMatched)) return {};
  const auto matched = std::count_if(clauses_.begin(), clauses_.end(), [](const Clause& clause) {
    return clause.text->when == When::kMatched;
  });
  const bool lone_delete =
      matched == 1 && std::any_of(clauses_.begin(), clauses_.end(), [](const Clause& clause) {
        return clause.text->when == When::kMatched && clause.text->action == Action::kDelete &&
               clause.condition.empty();
      });
  if (lone_delete) return {};
  SL_ASSIGN(const auto twice,
            connection_.query(fmt::format(
                "SELECT {0}, {1}, count(*) FROM {2} WHERE {3} IS NOT NULL GROUP BY {0}, {1} HAVING "
                "count(*) > 1 ORDER BY {0}, {1} LIMIT 1",
                duck::kFileColumn, duck::kRowColumn, pairs_.name(), kClause)));
  if (twice.rows.empty()) return {};
  const auto& found = twice.rows[0];
  SL_ASSIGN(const auto key, describe_row(*found[0], *found[1]));
  return at(
      invalid_data("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
                   "{} source rows match the target row {} of {}, and it is not said which of "
                   "them counts: make the source's rows unique by what ON compares",
                   *found[2], key, target_.found.name),
      statement_.source->place);
}

Status Merger::find_unmatched_targets() {
  if (!has(When::kNotMatchedBySource)) return {};
  return unmatched_.fill(fmt::format(
      "SELECT * FROM (SELECT {0}, {1} FROM {2} WHERE NOT EXISTS (SELECT 1 FROM {3} AS {4} "
      "WHERE {5})) WHERE {6} IS NOT NULL",
      position(target_.alias), decide(When::kNotMatchedBySource), all_, pairs_.name(), kPair,
      at_pair(), kClause));
}

Status Merger::find_inserts() {
  if (!has(When::kNotMatched)) return {};
  const auto source_row = qualified(alias_, kSourceRow);
  return inserted_.fill(fmt::format(
      "SELECT * FROM (SELECT {0}, {1} FROM {2} WHERE NOT EXISTS (SELECT 1 FROM {3} AS {4} "
      "WHERE {5} = {0})) WHERE {6} IS NOT NULL",
      source_row, decide(When::kNotMatched), source_sql_, pairs_.name(), kPair,
      qualified(kPair, kSourceRow), kClause));
}

Status Merger::count() {
  const auto add = [&](const TempTable& table, const char* counted) -> Status {
    SL_ASSIGN(const auto rows,
              connection_.query(
                  fmt::format("SELECT {0}, count({1}) FROM {2} WHERE {0} IS NOT NULL GROUP BY {0}",
                              kClause, counted, table.name())));
    for (const auto& row : rows.rows) {
      counts_[static_cast<size_t>(std::stoll(*row[0]))] = std::stoll(*row[1]);
    }
    return {};
  };
  // A lone DELETE may have met a row several times.
  const auto positions = fmt::format("DISTINCT ({}, {})", duck::kFileColumn, duck::kRowColumn);
  if (has(When::kMatched)) SL_TRY(add(pairs_, positions.c_str()));
  if (has(When::kNotMatchedBySource)) SL_TRY(add(unmatched_, "*"));
  if (has(When::kNotMatched)) SL_TRY(add(inserted_, "*"));
  return {};
}

std::string Merger::at_pair() const {
  return fmt::format("{} = {} AND {} = {}", qualified(kPair, duck::kFileColumn),
                     qualified(target_.alias, duck::kFileColumn),
                     qualified(kPair, duck::kRowColumn),
                     qualified(target_.alias, duck::kRowColumn));
}

// Old values that stay or that the change feed shows, new values, and row ids of every row that is
// updated: each is computed once.
Status Merger::keep_updates() {
  std::string kept = position(target_.alias) + ", " + qualified(kPair, kClause);
  if (target_.tracks_rows()) kept += ", " + qualified(target_.alias, duck::kRowIdColumn);
  const auto& fields = target_.schema().fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool replaced = std::all_of(clauses_.begin(), clauses_.end(), [&](const Clause& clause) {
      return clause.text->action != Action::kUpdate || clause.values.replaces(i);
    });
    if (!replaced || target_.has_change_feed()) {
      kept += ", " + qualified(target_.alias, fields[i].name);
    }
  }
  std::string query;
  for (const When when : {When::kMatched, When::kNotMatchedBySource}) {
    const auto wanted = numbers(when, Action::kUpdate);
    if (wanted.empty()) continue;
    const bool matched = when == When::kMatched;
    const auto& table = matched ? pairs_ : unmatched_;
    SL_ASSIGN(auto files, files_of(table, wanted));
    if (files.empty()) continue;
    SL_ASSIGN(const auto scan, scan_target(relations_, target_, std::move(files)));
    std::string values;
    for (size_t i = 0; i < clauses_.size(); ++i) {
      if (clauses_[i].text->when != when) continue;
      values +=
          clauses_[i].values.select_items(fmt::format("{} = {}", qualified(kPair, kClause), i));
    }
    auto rows =
        fmt::format("SELECT {}{} FROM {}, {} AS {}", kept, values, scan, table.name(), kPair);
    if (matched) rows += ", " + source_sql_;
    rows += fmt::format(" WHERE {} AND {} IN ({})", at_pair(), qualified(kPair, kClause), wanted);
    if (matched) {
      rows +=
          fmt::format(" AND {} = {}", qualified(kPair, kSourceRow), qualified(alias_, kSourceRow));
    }
    query += (query.empty() ? "" : " UNION ALL BY NAME ") + rows;
  }
  if (query.empty()) return {};
  SL_TRY(updated_.fill(query));
  updates_ = true;
  return {};
}

// Files of the target with rows of these clauses.
Result<std::vector<size_t>> Merger::files_of(const TempTable& table, const std::string& numbers) {
  SL_ASSIGN(const auto rows,
            connection_.query(fmt::format("SELECT DISTINCT {0} FROM {1} WHERE {2} IN ({3}) ORDER "
                                          "BY {0}",
                                          duck::kFileColumn, table.name(), kClause, numbers)));
  std::vector<size_t> files;
  for (const auto& row : rows.rows) files.push_back(static_cast<size_t>(std::stoll(*row[0])));
  return files;
}

// The columns of rows that clauses of one action make, each by its row's clause.
Result<std::string> Merger::columns_by_clause(Action action) const {
  std::string items;
  const auto& fields = target_.schema().fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto old = duck::quote_name(fields[i].name);
    std::vector<std::pair<size_t, std::string>> texts;  // clause -> value
    for (size_t c = 0; c < clauses_.size(); ++c) {
      const Clause& clause = clauses_[c];
      if (clause.text->action != action) continue;
      // The new values of a clause that no row met are not there.
      if (action == Action::kUpdate && counts_.count(c) == 0) continue;
      auto text =
          action == Action::kInsert ? clause.values.inserted(i) : clause.values.updated(i, old);
      SL_ASSIGN(auto value, std::move(text));
      texts.emplace_back(c, std::move(value));
    }
    const bool same = std::all_of(texts.begin(), texts.end(),
                                  [&](const auto& text) { return text.second == texts[0].second; });
    std::string value = texts[0].second;
    if (!same) {
      value = fmt::format("CASE {}", kClause);
      for (const auto& [number, text] : texts)
        value += fmt::format(" WHEN {} THEN {}", number, text);
      value += " END";
    }
    items += fmt::format("{}{} AS {}", items.empty() ? "" : ", ", value, old);
  }
  return items;
}

Result<std::string> Merger::inserts() const {
  SL_ASSIGN(const auto columns, columns_by_clause(Action::kInsert));
  std::string values = qualified(kPair, kClause);
  for (size_t i = 0; i < clauses_.size(); ++i) {
    if (clauses_[i].text->when != When::kNotMatched) continue;
    values += clauses_[i].values.select_items(fmt::format("{} = {}", qualified(kPair, kClause), i));
  }
  return fmt::format("SELECT {} FROM (SELECT {} FROM {}, {} AS {} WHERE {} = {})", columns, values,
                     source_sql_, inserted_.name(), kPair, qualified(kPair, kSourceRow),
                     qualified(alias_, kSourceRow));
}

// The target's rows that a DELETE clause takes.
std::string Merger::deleted_rows() const {
  std::string conditions;
  for (const When when : {When::kMatched, When::kNotMatchedBySource}) {
    const auto deletes = numbers(when, Action::kDelete);
    if (deletes.empty()) continue;
    conditions += fmt::format("{}EXISTS (SELECT 1 FROM {} AS {} WHERE {} AND {} IN ({}))",
                              conditions.empty() ? "" : " OR ",
                              when == When::kMatched ? pairs_.name() : unmatched_.name(), kPair,
                              at_pair(), qualified(kPair, kClause), deletes);
  }
  if (conditions.empty()) return "";
  std::string items;
  for (const auto& field : target_.schema().fields) {
    items += (items.empty() ? "" : ", ") + qualified(target_.alias, field.name);
  }
  return fmt::format("SELECT {} FROM {} WHERE {}", items, all_, conditions);
}

Status Merger::plan(duck::TableChange* change) {
  change->with_row_ids = target_.tracks_rows();
  change->rows = duck::RowChange{};
  change->rows->deleted = deleted_rows();
  const auto with_ids = [&](const std::string& query, const std::string& id) {
    if (!change->with_row_ids) return query;
    return fmt::format("SELECT *, {} AS {}, CAST(NULL AS BIGINT) AS {} FROM ({})", id,
                       duck::kRowIdColumn, duck::kRowVersionColumn, query);
  };
  if (updates_) {
    SL_ASSIGN(const auto columns, columns_by_clause(Action::kUpdate));
    std::string old;
    for (const auto& field : target_.schema().fields) {
      old += (old.empty() ? "" : ", ") + duck::quote_name(field.name);
    }
    change->rows->updated_before = fmt::format("SELECT {} FROM {}", old, updated_.name());
    change->rows->updated_after = fmt::format("SELECT {} FROM {}", columns, updated_.name());
    change->new_rows =
        change->with_row_ids
            // A changed row keeps its id and gets this commit's version.
            ? fmt::format("SELECT {}, {}, CAST(NULL AS BIGINT) AS {} FROM {}", columns,
                          duck::kRowIdColumn, duck::kRowVersionColumn, updated_.name())
            : change->rows->updated_after;
  }
  if (rows_of(Action::kInsert) > 0) {
    SL_ASSIGN(auto rows, inserts());
    if (target_.has_change_feed()) {
      SL_TRY(new_rows_.fill(rows));
      rows = "SELECT * FROM " + new_rows_.name();
      change->staged_inserts = new_rows_.name();
    }
    change->rows->inserted = rows;
    const auto all = with_ids(rows, "CAST(NULL AS BIGINT)");
    change->new_rows = change->new_rows.empty()
                           ? all
                           : fmt::format("{} UNION ALL BY NAME {}", change->new_rows, all);
  }
  // Several rows of the source may delete one.
  const auto add_dead = [&](const TempTable& table) {
    change->dead_rows += fmt::format("{}SELECT DISTINCT {}, {} FROM {} WHERE {} IS NOT NULL",
                                     change->dead_rows.empty() ? "" : " UNION ALL ",
                                     duck::kFileColumn, duck::kRowColumn, table.name(), kClause);
  };
  if (has(When::kMatched)) add_dead(pairs_);
  if (has(When::kNotMatchedBySource)) add_dead(unmatched_);
  return {};
}

int64_t Merger::rows_of(Action action, std::optional<When> when) const {
  int64_t rows = 0;
  for (const auto& [number, counted] : counts_) {
    const auto& text = *clauses_[number].text;
    if (text.action == action && (!when || text.when == *when)) rows += counted;
  }
  return rows;
}

// [{"predicate":"s.v > 1","actionType":"update"}], as Delta's log has it.
std::string Merger::predicates(When when) const {
  JsonWriter json;
  json.begin_array();
  for (const Clause& clause : clauses_) {
    if (clause.text->when != when) continue;
    json.begin_object();
    if (clause.text->condition) {
      json.key("predicate");
      json.value(sql::print_spark(*clause.text->condition));
    }
    json.key("actionType");
    json.value(clause.text->action == Action::kUpdate   ? "update"
               : clause.text->action == Action::kInsert ? "insert"
                                                        : "delete");
    json.end_object();
  }
  json.end_array();
  return json.take();
}

void Merger::describe(delta::Transaction& transaction, const duck::AppliedChange& applied) const {
  const auto metric = [&](const char* name, Action action, std::optional<When> when = {}) {
    transaction.set_metric(name, rows_of(action, when));
  };
  set_merge_metrics(transaction, applied);
  transaction.set_metric("numSourceRows", source_rows_);
  metric("numTargetRowsInserted", Action::kInsert);
  metric("numTargetRowsUpdated", Action::kUpdate);
  metric("numTargetRowsDeleted", Action::kDelete);
  metric("numTargetRowsMatchedUpdated", Action::kUpdate, When::kMatched);
  metric("numTargetRowsMatchedDeleted", Action::kDelete, When::kMatched);
  metric("numTargetRowsNotMatchedBySourceUpdated", Action::kUpdate, When::kNotMatchedBySource);
  metric("numTargetRowsNotMatchedBySourceDeleted", Action::kDelete, When::kNotMatchedBySource);
  transaction.set_operation(
      "MERGE", {{"predicate", json_array({sql::print_spark(*statement_.on)})},
                {"matchedPredicates", predicates(When::kMatched)},
                {"notMatchedPredicates", predicates(When::kNotMatched)},
                {"notMatchedBySourcePredicates", predicates(When::kNotMatchedBySource)}});
}

Status Merger::check() {
  SL_TRY(keep_source(false));
  SL_TRY(evolve());
  SL_TRY(read_clauses());
  for (const Clause& clause : clauses_) {
    if (clause.text->action == Action::kDelete) continue;
    for (size_t i = 0; i < target_.schema().fields.size(); ++i) {
      SL_TRY(clause.text->action == Action::kInsert ? clause.values.inserted(i)
                                                    : clause.values.updated(i, "NULL"));
    }
  }
  return {};
}

Result<ChangedRows> Merger::run() {
  SL_TRY(keep_source(true));
  SL_TRY(evolve());
  SL_TRY(read_clauses());
  SL_TRY(find_pairs());
  SL_TRY(check_single_matches());
  SL_TRY(find_unmatched_targets());
  SL_TRY(find_inserts());
  SL_TRY(count());
  const ChangedRows changed{rows_of(Action::kInsert), rows_of(Action::kUpdate),
                            rows_of(Action::kDelete)};
  const auto& [table, snapshot, name] = target_.found;
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  if (alteration_) alteration_->apply_to(&transaction);
  duck::AppliedChange applied;
  if (!counts_.empty()) {
    SL_TRY(keep_updates());
    duck::TableChange change;
    SL_TRY(plan(&change));
    SL_ASSIGN(applied, apply_change(context_, table, transaction, snapshot, change));
  }
  if (!transaction.has_changes()) return changed;
  describe(transaction, applied);
  if (!has(When::kNotMatchedBySource) &&
      !may_read(context_, *sql::select_all(statement_.source), table)) {
    std::vector<sql::ExprPtr> values;
    for (const auto& clause : statement_.clauses) {
      values.push_back(clause.condition);
      for (const auto& assignment : clause.assignments) values.push_back(assignment.value);
    }
    tell_reads(context_, transaction, target_, reads_, statement_.on, values);
  }
  SL_TRY(duck::commit_change(transaction, table, applied));
  return changed;
}

Result<Target> target_of(const Context& context, const sql::Merge& statement) {
  const bool removes_rows =
      std::any_of(statement.clauses.begin(), statement.clauses.end(),
                  [](const sql::MergeClause& clause) { return clause.action != Action::kInsert; });
  return find_target(context, statement.table, statement.alias, "MERGE", removes_rows);
}

}  // namespace

Result<ChangedRows> merge(const Context& context, const sql::Merge& statement) {
  for (int attempt = 1;; ++attempt) {
    SL_ASSIGN(auto target, target_of(context, statement));
    const auto snapshot = target.found.snapshot;
    Merger merger(context, statement, std::move(target));
    auto changed = merger.run();
    if (changed.ok()) return changed;
    if (!lost_identity_race(changed.error(), *snapshot, attempt))
      return merger.explain(std::move(changed).error());
  }
}

Status check_merge(const Context& context, const sql::Merge& statement) {
  SL_ASSIGN(auto target, target_of(context, statement));
  return Merger(context, statement, std::move(target)).check();
}

}  // namespace strandline::engine
