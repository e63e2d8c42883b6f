#include "engine/explain.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "engine/conditions.h"
#include "engine/listing.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/rows.h"
#include "engine/target.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

std::string line_of(const std::string& path, delta::Version version,
                    const delta::FileSelection& selection) {
  return fmt::format("{} version {}: files: {}", path, version, selection.to_string());
}

class Explainer {
 public:
  explicit Explainer(const Context& context) : context_(context), relations_(context) {}

  Status query(const sql::Query& query) {
    SL_ASSIGN(const auto text, relations_.print(query));
    SL_TRY(check_conditions(*context_.connection, text));
    return plan(text);
  }

  Status rows(const sql::Insert& insertion) {
    const bool append = insertion.mode == sql::InsertMode::kAppend;
    SL_ASSIGN(const auto target, find_target(context_, insertion.table, std::nullopt,
                                             append ? "INSERT" : "INSERT OVERWRITE", !append));
    if (insertion.mode == sql::InsertMode::kReplaceWhere) {
      SL_TRY(target_rows(target, insertion.replace_where));
    } else if (append) {
      add(fmt::format("{} version {}: files: only new ones are written", target.found.table.path(),
                      target.view->version));
    } else {
      add(fmt::format("{} version {}: files: those of the partitions overwritten leave, of {}",
                      target.found.table.path(), target.view->version, target.view->files.size()));
    }
    SL_TRY(check_insert(context_, insertion));
    // Rows that are written out have no plan.
    if (insertion.query->as<sql::ValuesRows>() != nullptr) return {};
    return query(*insertion.query);
  }

  Status rows(const sql::Update& update) {
    SL_ASSIGN(const auto target, find_target(context_, update.table, update.alias, "UPDATE", true));
    SL_TRY(check_update(context_, update));
    return target_rows(target, update.where);
  }

  Status rows(const sql::Delete& removal) {
    SL_ASSIGN(const auto target,
              find_target(context_, removal.table, removal.alias, "DELETE", true));
    SL_TRY(refuse_chance(removal.where, "DELETE"));
    return target_rows(target, removal.where);
  }

  Status rows(const sql::Merge& merge) {
    SL_TRY(check_merge(context_, merge));
    SL_ASSIGN(const auto target, find_target(context_, merge.table, merge.alias, "MERGE", true));
    const sql::Relation& source = *merge.source;
    std::string alias = source.alias ? source.alias->text : "";
    if (const auto* use = source.as<sql::TableUse>(); use != nullptr && !source.alias)
      alias = use->function.empty() ? use->name.parts.back() : use->function;
    const auto filter = relations_.filter(*target.view, target.alias, merge.on, {alias});
    add_target(target, reads_of(target, filter));
    std::string keys;
    for (const auto& condition : sql::conjuncts(*merge.on)) {
      const auto* compared = condition->as<sql::Binary>();
      if (compared == nullptr || (compared->op != sql::BinaryOp::kEqual &&
                                  compared->op != sql::BinaryOp::kNullSafeEqual)) {
        continue;
      }
      for (const auto* side : {&compared->left, &compared->right}) {
        const auto own = sql::conditions_on(**side, {target.alias}, {alias});
        const auto* column = own.size() == 1 ? own[0]->as<sql::ColumnRef>() : nullptr;
        const auto* field = column != nullptr && column->parts.size() == 1
                                ? target.schema().get(column->parts[0])
                                : nullptr;
        if (field != nullptr) keys += (keys.empty() ? "" : ", ") + field->name;
      }
    }
    if (!keys.empty()) {
      add("files without a key of the source are left out as well when it runs, by: " + keys);
    }
    const bool all_rows =
        std::any_of(merge.clauses.begin(), merge.clauses.end(), [](const sql::MergeClause& clause) {
          return clause.when == sql::MergeClause::When::kNotMatchedBySource;
        });
    if (all_rows) add("WHEN NOT MATCHED BY SOURCE reads every file of the target");
    return query(*sql::select_all(merge.source));
  }

  template <typename Other>
  Status rows(const Other&) {
    return internal_error("INTERNAL_ERROR", "EXPLAIN of a statement that changes no rows");
  }

  std::string listed() const {
    Listing listing({{"plan", "VARCHAR"}});
    for (const auto& line : targets_) listing.add({Listing::text(line)});
    for (const auto& read : relations_.table_reads())
      listing.add({Listing::text(line_of(read.table_path, read.version, read.selection))});
    for (const auto& line : plans_) listing.add({Listing::text(line)});
    return listing.query();
  }

 private:
  void add(std::string line) { targets_.push_back(std::move(line)); }
  void add_target(const Target& target, const TargetReads& reads) {
    add(line_of(target.found.table.path(), target.view->version, reads.selection));
  }

  // The rows that a condition chooses.
  Status target_rows(const Target& target, const sql::ExprPtr& where) {
    const auto reads = reads_of(relations_, target, where);
    add_target(target, reads);
    SL_ASSIGN(const auto scan, scan_target(relations_, target, reads.selection.files));
    std::string condition = "true";
    if (where) {
      SL_ASSIGN(condition, relations_.print(*where, target.names, scan));
      SL_TRY(check_condition(*context_.connection, condition, scan, where->place));
    }
    return plan(fmt::format("SELECT * FROM {} WHERE {}", scan, condition));
  }

  Status plan(const std::string& query) {
    SL_ASSIGN(const auto plan, context_.connection->query("EXPLAIN " + query));
    for (const auto& row : plan.rows) {
      std::istringstream lines(row.back().value_or(""));
      for (std::string line; std::getline(lines, line);) plans_.push_back(line);
    }
    return {};
  }

  const Context& context_;
  Relations relations_;
  std::vector<std::string> targets_;
  std::vector<std::string> plans_;
};

}  // namespace

Result<std::string> explain(const Context& context, const sql::Explain& statement) {
  Explainer explainer(context);
  if (statement.query) {
    SL_TRY(explainer.query(*statement.query));
  } else {
    SL_TRY(std::visit([&](const auto& body) { return explainer.rows(body); },
                      statement.statement->body));
  }
  return explainer.listed();
}

}  // namespace strandline::engine
