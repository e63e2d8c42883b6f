#include "duck/row_ids.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "delta/find_damage.h"
#include "delta/parquet_footer.h"
#include "delta/row_id_columns.h"
#include "duck/engine.h"
#include "duck/names.h"
#include "duck/row_id_function.h"

namespace strandline::duck {
namespace {

uint64_t end_row(const IdRun& run) { return uint64_t{run.row} + run.count; }

bool continues(const IdRun& run, const IdRun& next) {
  return next.row == end_row(run) && next.id - run.id == static_cast<int64_t>(run.count) &&
         next.version == run.version;
}

// The ids, or versions, of a chunk's rows: what the file says, else what `of_row` does.
class Stored {
 public:
  Stored(duckdb_data_chunk input, idx_t column)
      : values_(input_column<int64_t>(input, column)),
        validity_(duckdb_vector_get_validity(duckdb_data_chunk_get_vector(input, column))) {}

  template <typename OfRow>
  int64_t get(idx_t row, const OfRow& of_row) const {
    return is_valid(validity_, row) ? values_[row] : of_row();
  }

 private:
  const int64_t* values_;
  const uint64_t* validity_;
};

void take_row_ids(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  auto* result = static_cast<bool*>(duckdb_vector_get_data(output));
  std::fill(result, result + count, false);
  const auto* sets = input_column<int64_t>(input, 0);
  const auto* files = input_column<uint64_t>(input, 1);
  const auto* rows = input_column<int64_t>(input, 2);
  const Stored ids(input, 3), versions(input, 4);
  std::vector<IdRun> runs;
  for (idx_t i = 0; i < count;) {
    const auto collector = registry_of<RowIdCollector>(info).find(sets[i]);
    if (collector == nullptr || files[i] >= collector->file_count()) {
      duckdb_scalar_function_set_error(info, "a query outlived what it collects row ids for");
      return;
    }
    const uint64_t file = files[i];
    const auto& defaults = collector->defaults(file);
    const auto id_of = [&](idx_t at) {
      return ids.get(at, [&] { return defaults.base_row_id + rows[at]; });
    };
    const auto version_of = [&](idx_t at) {
      return versions.get(at, [&] { return defaults.row_commit_version; });
    };
    runs.clear();
    int64_t last_row = 0;
    while (i < count && files[i] == file) {
      const idx_t begin = i;
      const int64_t version = version_of(begin);
      const int64_t id = id_of(begin);
      int64_t next_id = id;
      int64_t next_row = rows[begin];
      do {
        ++i;
        ++next_id;
        ++next_row;
      } while (i < count && rows[i] == next_row && id_of(i) == next_id &&
               version_of(i) == version && files[i] == file);
      runs.push_back(
          {id, version, static_cast<uint32_t>(rows[begin]), static_cast<uint32_t>(i - begin)});
      last_row = std::max(last_row, next_row - 1);
    }
    // Rows are counted in 32 bits.
    if (last_row < UINT32_MAX) {
      collector->take(file, runs);
    } else {
      collector->give_up(file);
    }
  }
}

}  // namespace

RowIdCollector::RowIdCollector(std::vector<Defaults> files, size_t max_runs)
    : defaults_(std::move(files)),
      max_runs_(max_runs),
      files_(std::make_unique<File[]>(defaults_.size())) {}

void RowIdCollector::take(size_t file, const std::vector<IdRun>& runs) const {
  File& taken = files_[file];
  if (taken.is_given_up) return;
  if ((run_count_ += runs.size()) > max_runs_) {
    run_count_ -= runs.size();
    return give_up(file);
  }
  VersionRange versions;
  for (const IdRun& run : runs) versions.add(run.version);
  const std::lock_guard lock(taken.mutex);
  taken.versions.add(versions);
  taken.run_count += runs.size();
  // Each reader goes on where it was, in one of the newest.
  const auto goes_on =
      std::find_if(taken.pieces.rbegin(), taken.pieces.rend(),
                   [&](const auto& piece) { return end_row(piece.back()) == runs.front().row; });
  if (goes_on == taken.pieces.rend()) {
    taken.pieces.push_back(runs);
    return;
  }
  const bool is_one = continues(goes_on->back(), runs.front());
  if (is_one) {
    goes_on->back().count += runs.front().count;
    --taken.run_count;
    --run_count_;
  }
  goes_on->insert(goes_on->end(), runs.begin() + (is_one ? 1 : 0), runs.end());
}

void RowIdCollector::give_up(size_t file) const {
  File& taken = files_[file];
  const std::lock_guard lock(taken.mutex);
  taken.is_given_up = true;
  run_count_ -= taken.run_count;
  taken.run_count = 0;
  taken.pieces = {};
}

std::shared_ptr<const RowIds> RowIdCollector::finish(size_t file) const {
  File& taken = files_[file];
  if (taken.is_given_up) return nullptr;
  std::sort(taken.pieces.begin(), taken.pieces.end(),
            [](const auto& a, const auto& b) { return a.front().row < b.front().row; });
  auto ids = std::make_shared<RowIds>();
  ids->pieces = std::move(taken.pieces);
  ids->run_count = taken.run_count;
  ids->versions = taken.versions;
  for (const auto& piece : ids->pieces) ids->row_count += end_row(piece.back()) - piece.front().row;
  return ids;
}

Status register_row_id_function(duckdb_connection connection,
                                const std::shared_ptr<RowIdCollectors>& collectors) {
  return register_function(connection, collectors, "sl_take_row_id",
                           {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_UBIGINT, DUCKDB_TYPE_BIGINT,
                            DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_BIGINT},
                           DUCKDB_TYPE_BOOLEAN, take_row_ids, Nulls::kGiven);
}

Result<std::vector<std::shared_ptr<const RowIds>>> read_row_ids(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::vector<const delta::AddFile*>& files, size_t max_runs) {
  std::vector<std::shared_ptr<const RowIds>> ids(files.size());
  auto reading = std::make_shared<delta::Snapshot>(definition);
  reading->files.clear();
  std::vector<size_t> places;
  const auto materialised = delta::row_id_columns(definition);
  for (size_t i = 0; i < files.size(); ++i) {
    const delta::AddFile& file = *files[i];
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(table.path(), std::string(file.path)));
    SL_ASSIGN(const auto found, table.store()->stat(path));
    const auto footer = delta::read_parquet_footer(table.store().get(), path, found.size_bytes);
    const auto has_any = [&footer](const std::vector<std::string>& wanted) {
      const auto& names = (*footer)->names;
      return std::find_first_of(names.begin(), names.end(), wanted.begin(), wanted.end()) !=
             names.end();
    };
    const bool is_whole = footer.ok() && *footer && file.base_row_id &&
                          file.default_row_commit_version && (*footer)->row_count <= UINT32_MAX &&
                          !has_any(materialised.ids) && !has_any(materialised.versions);
    if (!is_whole) {
      reading->files.push_back(file);
      places.push_back(i);
      continue;
    }
    auto whole = std::make_shared<RowIds>();
    whole->row_count = static_cast<uint64_t>((*footer)->row_count);
    if (whole->row_count > 0) {
      whole->pieces = {{{*file.base_row_id, *file.default_row_commit_version, 0,
                         static_cast<uint32_t>(whole->row_count)}}};
      whole->run_count = 1;
      whole->versions.add(*file.default_row_commit_version);
    }
    ids[i] = std::move(whole);
  }
  if (places.empty()) return ids;
  if (materialised.empty()) {
    return unsupported("DELTA_ROW_TRACKING_NOT_ENABLED",
                       "table {} does not track rows: set 'delta.enableRowTracking' to 'true'",
                       table.path());
  }
  if (auto damage = delta::find_damage(table.store().get(), *reading)) return *std::move(damage);
  std::string paths;
  std::vector<RowIdCollector::Defaults> defaults;
  for (const delta::AddFile& file : reading->files) {
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(table.path(), std::string(file.path)));
    paths += (paths.empty() ? "" : ", ") + path_literal(path);
    if (!file.base_row_id || !file.default_row_commit_version) {
      return corrupt("DELTA_ROW_ID_MISSING",
                     "table {} tracks rows, but its file {} has no baseRowId or "
                     "defaultRowCommitVersion",
                     table.path(), file.path);
    }
    defaults.push_back({*file.base_row_id, *file.default_row_commit_version});
  }
  const auto collector = std::make_shared<const RowIdCollector>(std::move(defaults), max_runs);
  struct Registered {
    explicit Registered(std::shared_ptr<RowIdCollectors> to,
                        const std::shared_ptr<const RowIdCollector>& what)
        : registry(std::move(to)), number(registry->add(what)) {}
    ~Registered() { registry->remove(number); }
    std::shared_ptr<RowIdCollectors> registry;
    int64_t number;
  } const registered(row_id_collectors(connection), collector);
  std::string columns;
  size_t column_count = 0;
  // The value of the one of these columns that a file has; null where it has none.
  const auto value_of = [&](const std::vector<std::string>& names) {
    std::string listed;
    for (const std::string& name : names) {
      columns += fmt::format("{}{}: {{'name': 'c{}', 'type': 'BIGINT', 'default_value': NULL}}",
                             columns.empty() ? "" : ", ", quote_literal(name), column_count);
      listed += fmt::format("{}c{}", listed.empty() ? "" : ", ", column_count++);
    }
    return names.size() == 1 ? listed : "coalesce(" + listed + ")";
  };
  const std::string id = value_of(materialised.ids);
  const std::string version = value_of(materialised.versions);
  SL_TRY(connection.query_int(
      fmt::format("SELECT count(sl_take_row_id({}, file_index, file_row_number, {}, {})) FROM "
                  "read_parquet([{}], schema = MAP {{{}}}, hive_partitioning = false)",
                  registered.number, id, version, paths, columns)));
  for (size_t i = 0; i < places.size(); ++i) ids[places[i]] = collector->finish(i);
  return ids;
}

}  // namespace strandline::duck
