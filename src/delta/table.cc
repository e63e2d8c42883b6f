#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/error.h"
#include "delta/commit_times.h"
#include "delta/deletion_vector.h"
#include "delta/log_files.h"
#include "delta/replay.h"
#include "delta/snapshot.h"

namespace strandline::delta {

namespace {

using SnapshotResult = Result<std::shared_ptr<const Snapshot>>;

// A listing is not one moment: files come while it runs, so that a commit may be missing from it
// and its successor not; and another engine may clean up what it named. A second look decides.
template <typename Read>
auto read_log(const Table& table, const Read& read)
    -> decltype(read(std::declval<LogReader*>(), std::declval<const LogFiles&>())) {
  constexpr int kLooks = 3;
  for (int look = 1;; ++look) {
    SL_ASSIGN(const LogFiles log, list_log(table.store().get(), table.path()));
    LogReader reader(table.store().get(), table.parquet().get(), table.path());
    auto result = read(&reader, log);
    const bool may_have_moved =
        !result.ok() && (result.error().code == kGap || result.error().code == kMissingSidecar ||
                         result.error().code == "FILE_NOT_FOUND");
    if (!may_have_moved || look == kLooks) return result;
  }
}

std::optional<int64_t> whole_number(const std::optional<std::string>& text) {
  int64_t value = 0;
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Table::Table(std::shared_ptr<storage::Store> store, std::shared_ptr<ParquetPort> parquet,
             std::string path)
    : store_(std::move(store)), parquet_(std::move(parquet)), path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

Result<bool> Table::exists() const {
  // Most tables still have their first commit, which is found without a listing.
  if (store_->stat(commit_path(path_, 0)).ok()) return true;
  const auto log = list_log(store_.get(), path_);
  if (log.ok()) return true;
  if (log.error().kind == ErrorKind::kNotFound) return false;
  return log.error();
}

Result<std::shared_ptr<const Snapshot>> Table::snapshot(std::optional<Version> version) const {
  return read_log(*this, [&](LogReader* reader, const LogFiles& log) -> SnapshotResult {
    return reader->snapshot(log, version);
  });
}

Result<std::shared_ptr<const Snapshot>> Table::snapshot_after(
    const std::shared_ptr<const Snapshot>& older, std::optional<Version> version) const {
  SL_ASSIGN(std::shared_ptr<const Snapshot> advanced,
            LogReader(store_.get(), parquet_.get(), path_).advance(older, version));
  if (advanced == nullptr) return snapshot(version);
  return advanced;
}

Result<std::vector<RemoveFile>> Table::tombstones(const Snapshot& snapshot) const {
  return read_log(*this,
                  [&](LogReader* reader, const LogFiles& log) -> Result<std::vector<RemoveFile>> {
                    return reader->tombstones(log, snapshot.version);
                  });
}

Result<Version> Table::latest_version() const {
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  return log.latest();
}

Result<Version> Table::version_at(int64_t timestamp_ms) const {
  SL_ASSIGN(const std::shared_ptr<const Snapshot> latest, snapshot());
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  // The commits that lead to the latest version without a gap.
  std::vector<Version> versions;
  for (Version version = latest->version; log.commits.count(version) > 0; --version)
    versions.push_back(version);
  std::reverse(versions.begin(), versions.end());
  if (versions.empty()) versions.push_back(latest->version);

  const std::optional<Version> first_own = first_in_commit_version(*latest);
  const CommitTimes times(*this, *latest, log);

  // File times and commit times may overlap where in-commit timestamps were enabled later; the
  // enablement timestamp says on which side the answer lies.
  size_t begin = 0;
  size_t end = versions.size();
  const std::optional<int64_t> enabled_at =
      whole_number(latest->property("delta.inCommitTimestampEnablementTimestamp"));
  if (first_own && enabled_at) {
    const size_t border = static_cast<size_t>(
        std::lower_bound(versions.begin(), versions.end(), *first_own) - versions.begin());
    if (timestamp_ms >= *enabled_at) {
      begin = border;
    } else if (border > 0) {
      end = border;
    }
  }
  if (begin >= end) begin = 0;

  // The last version in [begin, end) at or before the timestamp.
  size_t low = begin;
  size_t high = end;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    SL_ASSIGN(const int64_t time, times.of(versions[middle]));
    if (time <= timestamp_ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == begin) {
    SL_ASSIGN(const int64_t earliest, times.of(versions[begin]));
    return not_found("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
                     "table {} has no version as old as {}; its earliest kept version {} is of {}",
                     path_, format_utc_ms(timestamp_ms), versions[begin], format_utc_ms(earliest));
  }
  return versions[low - 1];
}

Result<std::vector<Action>> Table::commit(Version version) const {
  auto actions = read_commit(store_.get(), path_, version);
  if (actions.ok() || actions.error().kind != ErrorKind::kNotFound) return actions;
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  if (log.commits.empty()) return actions;
  return not_found("DELTA_VERSION_NOT_FOUND",
                   "table {} has no commit {}; commits {} to {} are kept", path_, version,
                   log.commits.begin()->first, log.commits.rbegin()->first);
}

Result<RowSet> Table::deletion_vector(const DeletionVectorDescriptor& descriptor) const {
  return DeletionVectorReader(store_.get(), path_).read(descriptor);
}

Result<std::map<size_t, RowSet>> Table::load_deletion_vectors(const Snapshot& snapshot) const {
  DeletionVectorReader reader(store_.get(), path_);
  std::map<size_t, RowSet> result;
  for (size_t i = 0; i < snapshot.files.size(); ++i) {
    const AddFile& file = snapshot.files[i];
    if (!file.deletion_vector) continue;
    auto rows = reader.read(*file.deletion_vector);
    if (!rows.ok()) {
      return rows.error().with_context(fmt::format("table {}, version {}, deletion vector of {}",
                                                   path_, snapshot.version, file.path));
    }
    result.emplace_hint(result.end(), i, std::move(rows).value());
  }
  return result;
}

}  // namespace strandline::delta
