#include "pipeline/view_refresh.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "delta/empty_partitions.h"
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
  Result<std::unique_ptr<ViewChange>> groups(std::string* why);
  Result<bool> meets_empty_groups(const std::vector<std::string>& key) const;

 private:
  bool has_row_ids(const ViewShape::Part& part) const;
  Result<std::string> side(const std::string& printed, const std::string& pair, std::string* why);
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

// Row ids of a part's sources, where its columns keep their places beside them.
bool Follower::has_row_ids(const ViewShape::Part& part) const {
  const bool moves = part.has_star && part.sources.size() > 1 &&
                     (!refresh_.labels.empty() || shape_.parts.size() > 1);
  return !moves && sources_.have_row_ids() &&
         std::none_of(part.row_names.begin(), part.row_names.end(),
                      [](const std::string& name) { return name.empty(); });
}

// A side of UNION ALL has the names and types of the whole. Empty: it may not be so, and why.
Result<std::string> Follower::side(const std::string& printed, const std::string& pair,
                                   std::string* why) {
  std::vector<std::string> names;
  for (const auto& column : refresh_.columns.fields) names.push_back(column.name);
  const std::string rows = fmt::format("({}) AS {}", printed, row_alias(names));
  SL_ASSIGN(const auto given, connection_.describe("SELECT * FROM " + rows));
  std::string columns;
  for (size_t i = 0; i < names.size(); ++i) {
    const DataType& type = refresh_.columns.fields[i].type;
    const DataType& of_side = given[i].type;
    if (!same_type(type, of_side) && (type.is_nested() || of_side.is_nested())) {
      *why = fmt::format("the sides of its UNION ALL give '{}' with different types", names[i]);
      return std::string();
    }
    columns +=
        fmt::format("CAST(q.{0} AS {1}) AS {0}, ", quote_name(names[i]), duck::engine_type(type));
  }
  return fmt::format("SELECT {}{} AS {} FROM {}", columns, pair, kRowPair, rows);
}

Result<std::unique_ptr<ViewChange>> Follower::rows(std::string* why) {
  constexpr const char* kNoPair = "CAST(NULL AS BIGINT[])";
  std::string changes;
  const auto add = [&](const std::string& from, const std::string& pair, int sign,
                       const char* condition) {
    changes += fmt::format("{}SELECT {}, {} AS {}, {} AS {} FROM {}{}",
                           changes.empty() ? "" : " UNION ALL ", refresh_.select, sign, kRowSign,
                           pair, kRowPair, from, condition);
  };
  for (size_t p = 0; p < shape_.parts.size(); ++p) {
    const auto& part = shape_.parts[p];
    const bool with_row_ids = has_row_ids(part);
    sql::QueryPtr query = part.query;
    std::string pair = kNoPair;
    if (with_row_ids) {
      std::vector<std::vector<std::string>> columns;
      pair = fmt::format("list_value({}", p);
      for (size_t i = 0; i < part.sources.size(); ++i) {
        const std::string column = ViewSources::row_id_column(part.sources[i]);
        columns.push_back({part.row_names[i], column});
        pair += fmt::format(", q.{}_of_view", column);
      }
      pair = fmt::format("CAST({}) AS BIGINT[])", pair);
      query = with_columns(*query, columns);
    }
    for (const size_t source : part.sources) {
      if (!sources_.changed(source)) continue;
      for (const auto& [which, sign] : {std::pair(Rows::kCame, 1), std::pair(Rows::kWent, -1)}) {
        SL_ASSIGN(const auto printed, print(*query, source, which, with_row_ids));
        if (shape_.parts.size() == 1) {
          add(fmt::format("({}) AS {}", printed, row_alias(refresh_.labels)), pair, sign, "");
          continue;
        }
        SL_ASSIGN(const auto rows, side(printed, pair, why));
        if (rows.empty()) return std::unique_ptr<ViewChange>();
        add("(" + rows + ") AS q", std::string("q.") + kRowPair, sign, "");
      }
    }
  }
  if (changes.empty()) {
    SL_ASSIGN(const auto printed, print_now(*refresh_.flow.query));
    add(fmt::format("({}) AS {}", printed, row_alias(refresh_.labels)), kNoPair, 1, " WHERE false");
  }
  SL_ASSIGN(auto change,
            ViewChange::of_changes(connection_, refresh_.target.table(), refresh_.view, changes));
  if (change == nullptr) *why = "the view lacks rows that it should have";
  return change;
}

// Whether a group that changed may look like another in the view: one of a null and one of an empty
// value of a column that partitions it.
Result<bool> Follower::meets_empty_groups(const std::vector<std::string>& key) const {
  std::string alike;
  for (const auto& column :
       delta::columns_without_empty(refresh_.view->metadata, refresh_.view->schema)) {
    for (size_t i = 0; i < key.size(); ++i) {
      if (!same_name(key[i], column.name)) continue;
      alike +=
          fmt::format("{0}coalesce({1}{2} = CAST('' AS {3}), true)", alike.empty() ? "" : " OR ",
                      kGroupColumn, i, duck::engine_type(column.type));
    }
  }
  if (alike.empty()) return false;
  SL_ASSIGN(const int64_t count, connection_.query_int(fmt::format(
                                     "SELECT count(*) FROM {} WHERE {}", kGroupsTable, alike)));
  return count > 0;
}

Result<std::unique_ptr<ViewChange>> Follower::groups(std::string* why) {
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
  SL_ASSIGN(const bool alike, meets_empty_groups(view_key(shape_, refresh_)));
  if (alike) {
    *why = "a group that changed has null or an empty value in a partition column";
    return std::unique_ptr<ViewChange>();
  }
  SL_ASSIGN(const auto now, print_now(*shape_.of_groups));
  ViewRows rows;
  rows.rows =
      fmt::format("SELECT {} FROM ({}) AS {}", refresh_.select, now, row_alias(refresh_.labels));
  rows.key = view_key(shape_, refresh_);
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
  if (shape.kind == ViewShape::Kind::kGroups && view_key(shape, refresh).empty())
    return "its columns are named otherwise than the query's";
  return {};
}

}  // namespace

std::string row_alias(const std::vector<std::string>& labels) {
  std::string names;
  for (const auto& label : labels) names += (names.empty() ? "" : ", ") + quote_name(label);
  return names.empty() ? "q" : "q(" + names + ")";
}

std::vector<std::string> view_key(const ViewShape& shape, const ViewRefresh& refresh) {
  std::vector<std::string> key;
  for (const auto& column : shape.group_columns) {
    if (!refresh.labels.empty() && refresh.labels.size() != shape.columns) return {};
    key.push_back(refresh.labels.empty() ? column.name : refresh.labels[column.at]);
    if (refresh.view->schema.get(key.back()) == nullptr) return {};
  }
  return key;
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
  auto change = shape.kind == ViewShape::Kind::kRows ? follower.rows(why) : follower.groups(why);
  if (change.ok()) return change;
  if (change.error().kind == ErrorKind::kCancelled || change.error().kind == ErrorKind::kIo)
    return change.error();
  *why = fmt::format("following the sources failed ({})", change.error().message);
  return std::unique_ptr<ViewChange>();
}

}  // namespace strandline::pipeline
