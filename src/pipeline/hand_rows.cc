#include "pipeline/hand_rows.h"

#include <set>

#include "base/error.h"
#include "cdc/program.h"
#include "delta/find_damage.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

// The files of `a` that `b` does not have with the same rows.
std::vector<size_t> files_not_in(const delta::Snapshot& a, const delta::Snapshot& b) {
  const auto name = [](const delta::AddFile& file) {
    std::string text = file.path;
    if (file.deletion_vector) text += "\n" + file.deletion_vector->unique_id();
    return text;
  };
  std::set<std::string> there;
  for (const auto& file : b.files) there.insert(name(file));
  std::vector<size_t> indexes;
  for (size_t i = 0; i < a.files.size(); ++i) {
    if (there.count(name(a.files[i])) == 0) indexes.push_back(i);
  }
  return indexes;
}

// Queries of the rows that one version of a table has and another one has not, with these columns.
struct RowDifference {
  std::string now, before;
};

Result<RowDifference> row_difference(duck::Connection& connection, const delta::Table& table,
                                     const std::shared_ptr<const delta::Snapshot>& before,
                                     const std::shared_ptr<const delta::Snapshot>& after,
                                     const Schema& columns,
                                     std::vector<std::unique_ptr<duck::Scan>>* scans) {
  const auto rows = [&](const std::shared_ptr<const delta::Snapshot>& snapshot,
                        const std::vector<size_t>& files) -> Result<std::string> {
    std::string names;
    for (const auto& field : columns.fields) {
      const std::string name = quote_name(field.name);
      names += fmt::format("{}CAST({} AS {}) AS {}", names.empty() ? "" : ", ",
                           snapshot->schema.find(field.name) ? name : "NULL",
                           duck::engine_type(field.type), name);
    }
    duck::ScanOptions options;
    options.files = files;
    SL_ASSIGN(auto scan, duck::scan_table(connection, table, snapshot, options));
    std::string sql = fmt::format("(SELECT {} FROM {})", names, scan->sql());
    scans->push_back(std::move(scan));
    return sql;
  };
  SL_ASSIGN(const auto old_rows, rows(before, files_not_in(*before, *after)));
  SL_ASSIGN(const auto new_rows, rows(after, files_not_in(*after, *before)));
  return RowDifference{fmt::format("({} EXCEPT ALL {})", new_rows, old_rows),
                       fmt::format("({} EXCEPT ALL {})", old_rows, new_rows)};
}

// Two versions of a table that hands changed rows between, with all files that tell which.
// Errors: AUTOCDC_INVALID_STATE.HAND_EDITS_LOST (kInvalidData) where VACUUM or a cleaned log have
// taken something of it.
struct Edited {
  std::shared_ptr<const delta::Snapshot> before, after;
};
Result<Edited> edited_versions(const delta::Table& table, const Target::Versions& edits,
                               const std::string& shown) {
  const auto lost = [&](const Error& why) {
    return invalid_data(
        "AUTOCDC_INVALID_STATE.HAND_EDITS_LOST",
        "versions {} to {} of '{}' changed rows by hand, and what they changed cannot be read any "
        "more ({}): run a full refresh of that table (--full-refresh {}), which goes without them",
        edits.first, edits.second, shown, why.message, shown);
  };
  Edited edited;
  for (auto [version, snapshot] :
       {std::pair(edits.first - 1, &edited.before), std::pair(edits.second, &edited.after)}) {
    auto found = table.snapshot(version);
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kNotFound) return found.error();
      return lost(found.error());
    }
    *snapshot = *std::move(found);
  }
  for (const auto& [one, other] :
       {std::pair(edited.before, edited.after), std::pair(edited.after, edited.before)}) {
    const auto files = files_not_in(*one, *other);
    if (const auto damage = delta::find_damage(table.store().get(), *one, &files))
      return lost(*damage);
  }
  return edited;
}

Result<bool> has_repair(const delta::Table& table, const std::vector<Target::Versions>& edits) {
  for (const auto& [first, last] : edits) {
    for (delta::Version version = first; version <= last; ++version) {
      SL_ASSIGN(const auto actions, table.commit(version));
      for (const auto& action : actions) {
        const auto* const info = std::get_if<delta::CommitInfo>(&action);
        if (info != nullptr && is_repair(*info)) return true;
      }
    }
  }
  return false;
}

}  // namespace

bool is_repair(const delta::CommitInfo& info) {
  const auto tag = info.tags.find(kRepairTag);
  return tag != info.tags.end() && tag->second == "true";
}

Result<std::string> rows_by_hand(duck::Connection& connection, const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& target,
                                 const std::vector<Target::Versions>& edits,
                                 const std::string& shown,
                                 std::vector<std::unique_ptr<duck::Scan>>* scans) {
  std::string now, before;
  for (const auto& versions : edits) {
    if (versions.first == 0) {
      // Taken over with all its rows.
      SL_ASSIGN(auto scan, duck::scan_table(connection, table, target));
      const std::string sql =
          fmt::format("(SELECT *, 1 AS {} FROM {})", cdc::kEditSign, scan->sql());
      scans->push_back(std::move(scan));
      return sql;
    }
    SL_ASSIGN(const auto edited, edited_versions(table, versions, shown));
    SL_ASSIGN(const auto difference, row_difference(connection, table, edited.before, edited.after,
                                                    target->schema, scans));
    now += (now.empty() ? "" : " UNION ALL ") + difference.now;
    before += (before.empty() ? "" : " UNION ALL ") + difference.before;
  }
  // What one change made and a later one took away was never there for the program.
  if (edits.size() > 1) {
    const std::string all = fmt::format("(({}) EXCEPT ALL ({}))", now, before);
    before = fmt::format("(({}) EXCEPT ALL ({}))", before, now);
    now = all;
  }
  // Where equal rows were folded meanwhile: a row of which one still stands there has not gone.
  SL_ASSIGN(const bool repaired, has_repair(table, edits));
  if (repaired) {
    SL_ASSIGN(auto scan, duck::scan_table(connection, table, target));
    before = fmt::format("(({}) EXCEPT (SELECT * FROM {}))", before, scan->sql());
    scans->push_back(std::move(scan));
  }
  return fmt::format("(SELECT *, 1 AS {} FROM {} UNION ALL SELECT *, -1 FROM {})", cdc::kEditSign,
                     now, before);
}

}  // namespace strandline::pipeline
