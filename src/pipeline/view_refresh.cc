#include "pipeline/view_refresh.h"

#include <algorithm>

#include "base/error.h"
#include "pipeline/view_sources.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;
using Rows = ViewSources::Rows;

class Follower {
 public:
  Follower(duck::Connection& connection, const ViewRefresh& refresh, const ViewShape& shape,
           ViewSources sources, std::vector<std::unique_ptr<duck::Scan>>* scans)
      : connection_(connection),
        refresh_(refresh),
        shape_(shape),
        sources_(std::move(sources)),
        scans_(scans) {}

  Result<std::unique_ptr<ViewChange>> rows(std::string* why);
  Result<std::unique_ptr<ViewChange>> groups();

 private:
  Result<std::string> print(const sql::Query& query, size_t changed, Rows rows, bool with_row_ids);
  Result<std::string> print_now(const sql::Query& query) {
    return print(query, sources_.count(), Rows::kNow, false);
  }

  duck::Connection& connection_;
  const ViewRefresh& refresh_;
  const ViewShape& shape_;
  ViewSources sources_;
  std::vector<std::unique_ptr<duck::Scan>>* scans_;
};

// The query over some rows of one source, joined with what the sources before it are now and those
// after it were: over all sources, the changes of an inner join add up from these.
Result<std::string> Follower::print(const sql::Query& query, size_t changed, Rows rows,
                                    bool with_row_ids) {
  const auto relation_of = [&](size_t source) {
    const Rows which = source == changed ? rows : source < changed ? Rows::kNow : Rows::kBefore;
    return sources_.relation(connection_, source, which, with_row_ids, scans_);
  };
  const auto check_view = [](size_t, const std::string& text) -> Result<std::string> {
    return text;
  };
  return refresh_.sources.print(query, refresh_.plan.time_us, relation_of, check_view, connection_);
}

Result<std::unique_ptr<ViewChange>> Follower::rows(std::string* why) {
  const bool with_row_ids =
      sources_.have_row_ids() && std::none_of(shape_.row_names.begin(), shape_.row_names.end(),
                                              [](const std::string& name) { return name.empty(); });
  sql::QueryPtr query = refresh_.flow.query;
  std::string pair = "NULL";
  if (with_row_ids) {
    std::vector<std::vector<std::string>> columns;
    pair = "struct_pack(";
    for (size_t i = 0; i < sources_.count(); ++i) {
      const std::string column = ViewSources::row_id_column(i);
      columns.push_back({shape_.row_names[i], column});
      pair += fmt::format("{0}r{1} := q.{2}_of_view", i == 0 ? "" : ", ", i, column);
    }
    pair += ")";
    query = with_columns(*query, columns);
  }
  std::string changes;
  const auto add = [&](const std::string& printed, int sign, const char* condition) {
    changes += fmt::format("{}SELECT {}, {} AS {}, {} AS {} FROM ({}) AS q{}",
                           changes.empty() ? "" : " UNION ALL ", refresh_.select, sign, kRowSign,
                           pair, kRowPair, printed, condition);
  };
  for (size_t i = 0; i < sources_.count(); ++i) {
    if (!sources_.changed(i)) continue;
    SL_ASSIGN(const auto came, print(*query, i, Rows::kCame, with_row_ids));
    add(came, 1, "");
    SL_ASSIGN(const auto went, print(*query, i, Rows::kWent, with_row_ids));
    add(went, -1, "");
  }
  if (changes.empty()) {
    SL_ASSIGN(const auto printed, print(*query, sources_.count(), Rows::kNow, with_row_ids));
    add(printed, 1, " WHERE false");
  }
  SL_ASSIGN(auto change,
            ViewChange::of_changes(connection_, refresh_.target.table(), refresh_.view, changes));
  if (change == nullptr) *why = "the view lacks rows that it should have";
  return change;
}

Result<std::unique_ptr<ViewChange>> Follower::groups() {
  std::string touched;
  for (size_t i = 0; i < sources_.count(); ++i) {
    if (!sources_.changed(i)) continue;
    SL_ASSIGN(const auto keys, print(*shape_.groups, i, Rows::kTouched, false));
    touched += fmt::format("{}SELECT * FROM ({})", touched.empty() ? "" : " UNION ", keys);
  }
  if (touched.empty()) {
    SL_ASSIGN(const auto keys, print_now(*shape_.groups));
    touched = fmt::format("SELECT * FROM ({}) WHERE false", keys);
  }
  SL_TRY(
      connection_.execute(fmt::format("CREATE OR REPLACE TEMP TABLE {} AS SELECT DISTINCT * FROM "
                                      "({})",
                                      kGroupsTable, touched)));
  SL_ASSIGN(const auto now, print_now(*shape_.of_groups));
  ViewRows rows;
  rows.rows = fmt::format("SELECT {} FROM ({}) AS q", refresh_.select, now);
  rows.key = view_key(shape_, *refresh_.view);
  rows.of_keys = kGroupsTable;
  return ViewChange::make(connection_, refresh_.target.table(), refresh_.view, rows);
}

// What keeps a refresh from being incremental, apart from the sources' changes; empty: nothing.
std::string obstacle(const ViewRefresh& refresh, const ViewShape& shape) {
  if (shape.kind == ViewShape::Kind::kOther) return shape.why;
  const auto& before = refresh.checkpoint.definition();
  const auto& now = refresh.plan.definition;
  if (before != now) {
    const bool same_text = before.substr(0, before.find('+')) == now.substr(0, now.find('+'));
    return same_text ? "a view that it reads was defined anew" : "its definition changed";
  }
  if (!refresh.target.dataset().options.expectations.empty()) return "it has expectations";
  const auto edits = refresh.target.hand_edits(*refresh.view, nullptr);
  if (!edits.ok() || !edits->empty()) return "its rows were changed by others";
  if (shape.kind == ViewShape::Kind::kGroups && view_key(shape, *refresh.view).empty())
    return "its columns are named otherwise than the query's";
  return {};
}

}  // namespace

std::vector<std::string> view_key(const ViewShape& shape, const delta::Snapshot& view) {
  for (const auto& column : shape.group_columns) {
    if (view.schema.get(column) == nullptr) return {};
  }
  return shape.group_columns;
}

Result<std::unique_ptr<ViewChange>> follow_sources(duck::Connection& connection,
                                                   const ViewRefresh& refresh,
                                                   const ViewShape& shape,
                                                   std::vector<std::unique_ptr<duck::Scan>>* scans,
                                                   std::string* why) {
  *why = obstacle(refresh, shape);
  if (!why->empty()) return std::unique_ptr<ViewChange>();
  SL_ASSIGN(auto sources,
            ViewSources::find(refresh.sources.sources(), refresh.checkpoint, refresh.plan, why));
  if (!why->empty()) return std::unique_ptr<ViewChange>();
  Follower follower(connection, refresh, shape, std::move(sources), scans);
  auto change = shape.kind == ViewShape::Kind::kRows ? follower.rows(why) : follower.groups();
  if (change.ok()) return change;
  if (change.error().kind == ErrorKind::kCancelled || change.error().kind == ErrorKind::kIo)
    return change.error();
  *why = fmt::format("following the sources failed ({})", change.error().message);
  return std::unique_ptr<ViewChange>();
}

}  // namespace strandline::pipeline
