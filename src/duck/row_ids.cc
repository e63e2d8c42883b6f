#include "duck/row_ids.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "delta/parquet_footer.h"
#include "duck/delta_io.h"
#include "duck/engine.h"
#include "duck/row_id_function.h"
#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

bool continues(const IdRun& run, const IdRun& next) {
  return next.row == run.row + run.count && next.id - run.id == static_cast<int64_t>(run.count) &&
         next.version == run.version;
}

void take_row_ids(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  auto* result = static_cast<bool*>(duckdb_vector_get_data(output));
  std::fill(result, result + count, false);
  const auto* sets = input_column<int64_t>(input, 0);
  const auto* files = input_column<int32_t>(input, 1);
  const auto* rows = input_column<int64_t>(input, 2);
  const auto* ids = input_column<int64_t>(input, 3);
  const auto* versions = input_column<int64_t>(input, 4);
  constexpr int64_t kMaxRow = UINT32_MAX;
  for (idx_t i = 0; i < count;) {
    const auto collector = registry_of<RowIdCollector>(info).find(sets[i]);
    if (collector == nullptr) {
      duckdb_scalar_function_set_error(info, "a query outlived what it collects row ids for");
      return;
    }
    std::vector<IdRun> runs;
    const int32_t file = files[i];
    bool fits = true;
    while (i < count && files[i] == file) {
      const idx_t begin = i;
      const int64_t shift = ids[begin] - rows[begin];
      for (++i; i < count && rows[i] == rows[i - 1] + 1 && ids[i] - rows[i] == shift &&
                versions[i] == versions[begin] && files[i] == file;) {
        ++i;
      }
      fits = fits && rows[i - 1] < kMaxRow;
      runs.push_back({ids[begin], versions[begin], static_cast<uint32_t>(rows[begin]),
                      static_cast<uint32_t>(i - begin)});
    }
    if (fits) {
      collector->take(static_cast<size_t>(file), std::move(runs));
    } else {
      collector->give_up(static_cast<size_t>(file));
    }
  }
}

}  // namespace

RowIdCollector::RowIdCollector(size_t file_count, size_t max_runs)
    : max_runs_(max_runs), files_(std::make_unique<File[]>(file_count)) {}

void RowIdCollector::take(size_t file, std::vector<IdRun> runs) const {
  File& taken = files_[file];
  if (taken.is_given_up) return;
  if ((run_count_ += runs.size()) > max_runs_) {
    run_count_ -= runs.size();
    return give_up(file);
  }
  runs.shrink_to_fit();
  const std::lock_guard lock(taken.mutex);
  taken.run_count += runs.size();
  taken.pieces.push_back(std::move(runs));
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
  // Readers give their pieces in any order, each of them in order.
  std::sort(taken.pieces.begin(), taken.pieces.end(),
            [](const auto& a, const auto& b) { return a.front().row < b.front().row; });
  auto ids = std::make_shared<RowIds>();
  ids->runs.reserve(taken.run_count);
  for (std::vector<IdRun>& piece : taken.pieces) {
    for (const IdRun& run : piece) {
      if (!ids->runs.empty() && continues(ids->runs.back(), run)) {
        ids->runs.back().count += run.count;
      } else {
        ids->runs.push_back(run);
      }
      ids->row_count += run.count;
    }
    piece = {};
  }
  const auto by_row = [](const IdRun& a, const IdRun& b) { return a.row < b.row; };
  if (!std::is_sorted(ids->runs.begin(), ids->runs.end(), by_row))
    std::sort(ids->runs.begin(), ids->runs.end(), by_row);
  const auto by_id = [](const IdRun& x, const IdRun& y) { return x.id < y.id; };
  if (!std::is_sorted(ids->runs.begin(), ids->runs.end(), by_id)) {
    ids->by_id.resize(ids->runs.size());
    std::iota(ids->by_id.begin(), ids->by_id.end(), 0U);
    sort_stretches(&ids->by_id,
                   [&](uint32_t x, uint32_t y) { return by_id(ids->runs[x], ids->runs[y]); });
  }
  return ids;
}

Status register_row_id_function(duckdb_connection connection,
                                const std::shared_ptr<RowIdCollectors>& collectors) {
  return register_function(connection, collectors, "sl_take_row_id",
                           {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_BIGINT,
                            DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_BIGINT},
                           DUCKDB_TYPE_BOOLEAN, take_row_ids);
}

Result<std::vector<std::shared_ptr<const RowIds>>> read_row_ids(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::vector<const delta::AddFile*>& files, size_t max_runs) {
  std::vector<std::shared_ptr<const RowIds>> ids(files.size());
  auto reading = std::make_shared<delta::Snapshot>(definition);
  reading->files.clear();
  std::vector<size_t> places;
  const auto materialised = {definition.row_id_column(), definition.row_commit_version_column()};
  for (size_t i = 0; i < files.size(); ++i) {
    const delta::AddFile& file = *files[i];
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(table.path(), std::string(file.path)));
    SL_ASSIGN(const auto found, table.store()->stat(path));
    const auto footer = delta::read_parquet_footer(table.store().get(), path, found.size_bytes);
    const bool is_whole =
        footer.ok() && *footer && file.base_row_id && file.default_row_commit_version &&
        (*footer)->row_count <= UINT32_MAX &&
        std::none_of(materialised.begin(), materialised.end(), [&](const auto& name) {
          const auto& names = (*footer)->names;
          return name && std::find(names.begin(), names.end(), *name) != names.end();
        });
    if (!is_whole) {
      reading->files.push_back(file);
      places.push_back(i);
      continue;
    }
    auto whole = std::make_shared<RowIds>();
    whole->row_count = static_cast<uint64_t>((*footer)->row_count);
    if (whole->row_count > 0)
      whole->runs.push_back({*file.base_row_id, *file.default_row_commit_version, 0,
                             static_cast<uint32_t>(whole->row_count)});
    ids[i] = std::move(whole);
  }
  if (places.empty()) return ids;
  ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = true;
  options.apply_deletion_vectors = false;
  SL_ASSIGN(const auto scan, scan_table(connection, table, reading, options));
  const auto collector = std::make_shared<const RowIdCollector>(places.size(), max_runs);
  struct Registered {
    explicit Registered(std::shared_ptr<RowIdCollectors> to,
                        const std::shared_ptr<const RowIdCollector>& what)
        : registry(std::move(to)), number(registry->add(what)) {}
    ~Registered() { registry->remove(number); }
    std::shared_ptr<RowIdCollectors> registry;
    int64_t number;
  } const registered(row_id_collectors(connection), collector);
  SL_TRY(connection.query_int(
      fmt::format("SELECT count(*) FROM {} WHERE sl_take_row_id({}, {}, {}, {}, {})", scan->sql(),
                  registered.number, kFileColumn, kRowColumn, kRowIdColumn, kRowVersionColumn)));
  for (size_t i = 0; i < places.size(); ++i) ids[places[i]] = collector->finish(i);
  return ids;
}

}  // namespace strandline::duck
