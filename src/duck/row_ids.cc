#include "duck/row_ids.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "delta/find_damage.h"
#include "delta/parquet_footer.h"
#include "delta/parquet_statistics.h"
#include "delta/row_id_columns.h"
#include "duck/engine.h"
#include "duck/names.h"
#include "duck/row_id_function.h"
#include "duck/sort_stretches.h"

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

RowIdCollector::RowIdCollector(std::vector<Defaults> files, Rows rows, size_t max_runs)
    : defaults_(std::move(files)),
      rows_(rows),
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
  if (rows_ == Rows::kSome) {
    if (taken.pieces.empty()) taken.pieces.emplace_back();
    taken.pieces.front().insert(taken.pieces.front().end(), runs.begin(), runs.end());
    return;
  }
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
  if (rows_ == Rows::kSome) {
    for (auto& piece : ids->pieces) {
      sort_stretches(&piece, [](const IdRun& a, const IdRun& b) { return a.row < b.row; });
      for (const IdRun& run : piece) ids->row_count += run.count;
    }
    return ids;
  }
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

namespace {

// Reads the ids of some files, of all of their rows or of new ones.
class RowIdReader {
 public:
  RowIdReader(Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
              size_t max_runs)
      : connection_(connection),
        table_(table),
        columns_(delta::row_id_columns(definition)),
        max_runs_(max_runs),
        reading_(definition) {
    reading_.files.clear();
  }

  // What the footers say. Then ids() of files whose ids follow from their place are known.
  Status open(const std::vector<const delta::AddFile*>& files);
  Status read_all();
  Status read_new();

  std::vector<std::shared_ptr<const RowIds>>& ids() { return ids_; }
  // Of the file, or none where its footer is encrypted.
  const std::vector<std::optional<uint64_t>>& row_counts() const { return row_counts_; }

 private:
  Status plan();
  std::string select(const std::string& file, const std::string& paths) const;
  std::vector<std::pair<int64_t, int64_t>> rows_with_new(size_t i) const;
  template <typename MakeQuery>
  Status read(RowIdCollector::Rows rows, const MakeQuery& make_query);
  std::string value_of(const std::vector<std::string>& names);

  Connection& connection_;
  const delta::Table& table_;
  const delta::RowIdColumns columns_;
  const size_t max_runs_;

  std::vector<std::shared_ptr<const RowIds>> ids_;   // by file
  std::vector<std::optional<uint64_t>> row_counts_;  // by file
  delta::Snapshot reading_;                          // its files have to be read
  std::vector<size_t> places_;                       // of those among all
  std::vector<std::string> paths_;                   // of those
  std::vector<int64_t> sizes_;                       // of those, in bytes
  std::vector<RowIdCollector::Defaults> defaults_;   // of those
  std::string stored_;                               // the columns, as read_parquet wants them
  size_t stored_count_ = 0;
  std::string id_, version_;  // as expressions
  int64_t set_ = 0;           // what takes the ids, by number
};

Status RowIdReader::open(const std::vector<const delta::AddFile*>& files) {
  ids_.resize(files.size());
  row_counts_.resize(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const delta::AddFile& file = *files[i];
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(table_.path(), std::string(file.path)));
    SL_ASSIGN(const auto found, table_.store()->stat(path));
    const auto footer = delta::read_parquet_footer(table_.store().get(), path, found.size_bytes);
    const bool is_known = footer.ok() && *footer;
    if (is_known) row_counts_[i] = static_cast<uint64_t>((*footer)->row_count);
    const auto has_any = [&footer](const std::vector<std::string>& wanted) {
      const auto& names = (*footer)->names;
      return std::find_first_of(names.begin(), names.end(), wanted.begin(), wanted.end()) !=
             names.end();
    };
    const bool is_whole = is_known && file.base_row_id && file.default_row_commit_version &&
                          *row_counts_[i] <= UINT32_MAX && !has_any(columns_.ids) &&
                          !has_any(columns_.versions);
    if (!is_whole) {
      reading_.files.push_back(file);
      places_.push_back(i);
      continue;
    }
    auto whole = std::make_shared<RowIds>();
    whole->row_count = *row_counts_[i];
    if (whole->row_count > 0) {
      whole->pieces = {{{*file.base_row_id, *file.default_row_commit_version, 0,
                         static_cast<uint32_t>(whole->row_count)}}};
      whole->run_count = 1;
      whole->versions.add(*file.default_row_commit_version);
    }
    ids_[i] = std::move(whole);
  }
  return {};
}

// Of what is to be read.
Status RowIdReader::plan() {
  if (columns_.empty()) {
    return unsupported("DELTA_ROW_TRACKING_NOT_ENABLED",
                       "table {} does not track rows: set 'delta.enableRowTracking' to 'true'",
                       table_.path());
  }
  if (auto damage = delta::find_damage(table_.store().get(), reading_)) return *std::move(damage);
  for (const delta::AddFile& file : reading_.files) {
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(table_.path(), std::string(file.path)));
    SL_ASSIGN(const auto found, table_.store()->stat(path));
    paths_.push_back(path);
    sizes_.push_back(found.size_bytes);
    if (!file.base_row_id || !file.default_row_commit_version) {
      return corrupt("DELTA_ROW_ID_MISSING",
                     "table {} tracks rows, but its file {} has no baseRowId or "
                     "defaultRowCommitVersion",
                     table_.path(), file.path);
    }
    defaults_.push_back({*file.base_row_id, *file.default_row_commit_version});
  }
  id_ = value_of(columns_.ids);
  version_ = value_of(columns_.versions);
  return {};
}

// The value of the one of these columns that a file has; null where it has none.
std::string RowIdReader::value_of(const std::vector<std::string>& names) {
  std::string listed;
  for (const std::string& name : names) {
    stored_ += fmt::format("{}{}: {{'name': 'c{}', 'type': 'BIGINT', 'default_value': NULL}}",
                           stored_.empty() ? "" : ", ", quote_literal(name), stored_count_);
    listed += fmt::format("{}c{}", listed.empty() ? "" : ", ", stored_count_++);
  }
  return names.size() == 1 ? listed : "coalesce(" + listed + ")";
}

// Takes the ids of the rows of these files; file: an expression of a file's number among them all.
std::string RowIdReader::select(const std::string& file, const std::string& paths) const {
  return fmt::format(
      "SELECT sl_take_row_id({}, {}, file_row_number, {}, {}) AS taken FROM read_parquet([{}], "
      "schema = MAP {{{}}}, hive_partitioning = false, can_have_nan = true)",
      set_, file, id_, version_, paths, stored_);
}

template <typename MakeQuery>
Status RowIdReader::read(RowIdCollector::Rows rows, const MakeQuery& make_query) {
  if (places_.empty()) return {};
  SL_TRY(plan());
  const auto collector = std::make_shared<const RowIdCollector>(defaults_, rows, max_runs_);
  struct Registered {
    explicit Registered(std::shared_ptr<RowIdCollectors> to,
                        const std::shared_ptr<const RowIdCollector>& what)
        : registry(std::move(to)), number(registry->add(what)) {}
    ~Registered() { registry->remove(number); }
    std::shared_ptr<RowIdCollectors> registry;
    int64_t number;
  } const registered(row_id_collectors(connection_), collector);
  set_ = registered.number;
  SL_TRY(connection_.query_int(fmt::format("SELECT count(taken) FROM ({})", make_query())));
  for (size_t i = 0; i < places_.size(); ++i) ids_[places_[i]] = collector->finish(i);
  return {};
}

Status RowIdReader::read_all() {
  return read(RowIdCollector::Rows::kAll, [this] {
    std::string paths;
    for (const std::string& path : paths_)
      paths += (paths.empty() ? "" : ", ") + path_literal(path);
    return select("file_index", paths);
  });
}

// Stretches of rows of a file, first and last, outside of which statistics tell of older versions
// alone.
std::vector<std::pair<int64_t, int64_t>> RowIdReader::rows_with_new(size_t i) const {
  const int64_t version = defaults_[i].row_commit_version;
  const std::vector<std::pair<int64_t, int64_t>> all = {{0, INT64_MAX}};
  const auto bytes = delta::read_parquet_footer_bytes(table_.store().get(), paths_[i], sizes_[i]);
  if (!bytes.ok() || !*bytes || columns_.versions.size() != 1) return all;
  const auto groups = delta::row_groups(**bytes, columns_.versions.front());
  if (!groups) return all;
  std::vector<std::pair<int64_t, int64_t>> found;
  int64_t begin = 0;
  for (const delta::RowGroup& group : *groups) {
    const int64_t end = begin + group.row_count;
    const auto& versions = group.values;
    const bool is_old = versions && versions->null_count == 0 && versions->max < version;
    if (!is_old && !found.empty() && found.back().second == begin - 1) {
      found.back().second = end - 1;
    } else if (!is_old) {
      found.emplace_back(begin, end - 1);
    }
    begin = end;
  }
  // Each takes a part of the query.
  constexpr size_t kMaxStretches = 16;
  return found.size() > kMaxStretches ? all : found;
}

// File by file, for each has its own version. The engine passes over row groups by ranges of rows,
// and does not decode the ids of rows that a condition on the version leaves out.
Status RowIdReader::read_new() {
  return read(RowIdCollector::Rows::kSome, [this] {
    std::string query;
    for (size_t i = 0; i < paths_.size(); ++i) {
      for (const auto& [first, last] : rows_with_new(i)) {
        query +=
            fmt::format("{}{} WHERE file_row_number BETWEEN {} AND {} AND ({} IS NULL OR {} >= {})",
                        query.empty() ? "" : " UNION ALL ",
                        select(fmt::format("CAST({} AS UBIGINT)", i), path_literal(paths_[i])),
                        first, last, version_, version_, defaults_[i].row_commit_version);
      }
    }
    return query.empty() ? "SELECT NULL AS taken" : query;
  });
}

}  // namespace

Result<std::vector<std::shared_ptr<const RowIds>>> read_row_ids(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::vector<const delta::AddFile*>& files, size_t max_runs) {
  RowIdReader reader(connection, table, definition, max_runs);
  SL_TRY(reader.open(files));
  SL_TRY(reader.read_all());
  return std::move(reader.ids());
}

Result<std::vector<NewRows>> read_new_rows(Connection& connection, const delta::Table& table,
                                           const delta::Snapshot& definition,
                                           const std::vector<const delta::AddFile*>& files,
                                           size_t max_runs) {
  RowIdReader reader(connection, table, definition, max_runs);
  SL_TRY(reader.open(files));
  SL_TRY(reader.read_new());
  std::vector<NewRows> rows;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::optional<uint64_t> row_count = reader.row_counts()[i];
    rows.push_back({row_count ? std::move(reader.ids()[i]) : nullptr, row_count.value_or(0)});
  }
  return rows;
}

}  // namespace strandline::duck
