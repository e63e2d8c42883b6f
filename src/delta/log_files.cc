#include "delta/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/error.h"

namespace strandline::delta {

namespace {

// Larger than the number of any version; counting on from it stays a number.
constexpr int64_t kAbsurd = int64_t{1} << 62;

// A number of exactly that many digits at the start of text, which is cut off; kAbsurd for one
// that is as large or larger.
std::optional<int64_t> take_digits(std::string_view* text, size_t digits) {
  if (text->size() < digits) return std::nullopt;
  int64_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char digit = (*text)[i];
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value >= kAbsurd / 10 ? kAbsurd : value * 10 + (digit - '0');
  }
  text->remove_prefix(digits);
  return value;
}

bool take(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

// Of a name that no commit can have, or that is taken by something else.
Error no_commit(const std::string& path, const char* what) {
  return corrupt("DELTA_LOG_CORRUPT",
                 "{} {}, so rows of the table may be missing: remove it, or restore the commit",
                 path, what);
}

struct PartKey {
  Version version;
  int64_t parts;
  auto operator<=>(const PartKey&) const = default;
};

}  // namespace

Version LogFiles::latest() const {
  Version version = -1;
  if (!commits.empty()) version = commits.rbegin()->first;
  if (!checkpoints.empty()) version = std::max(version, checkpoints.back().version);
  return version;
}

Version LogFiles::earliest() const {
  if (commits.count(0) > 0 || checkpoints.empty())
    return commits.empty() ? -1 : commits.begin()->first;
  return checkpoints.front().version;
}

std::string log_directory(const std::string& table_path) { return table_path + "/_delta_log"; }

std::string commit_path(const std::string& table_path, Version version) {
  return fmt::format("{}/_delta_log/{:020}.json", table_path, version);
}

std::string checksum_path(const std::string& table_path, Version version) {
  return fmt::format("{}/_delta_log/{:020}.crc", table_path, version);
}

std::string sidecar_directory(const std::string& table_path) {
  return log_directory(table_path) + "/_sidecars";
}

std::string classic_checkpoint_path(const std::string& table_path, Version version) {
  return fmt::format("{}/_delta_log/{:020}.checkpoint.parquet", table_path, version);
}

std::string v2_checkpoint_path(const std::string& table_path, Version version,
                               const std::string& uuid) {
  return fmt::format("{}/_delta_log/{:020}.checkpoint.{}.json", table_path, version, uuid);
}

Result<LogFiles> list_log(storage::Store* store, const std::string& table_path) {
  LogFiles log;
  std::map<PartKey, std::map<int64_t, const storage::FileInfo*>> parts;
  auto listed = store->list(log_directory(table_path));
  if (!listed.ok() && listed.error().kind != ErrorKind::kNotFound) return std::move(listed).error();
  if (listed.ok()) {
    for (const storage::FileInfo& file : *listed) {
      std::string_view name = file.path;
      name.remove_prefix(name.rfind('/') + 1);
      const std::optional<int64_t> version = take_digits(&name, 20);
      if (!version) continue;
      if (name == ".json" && file.is_directory) return no_commit(file.path, "is a folder");
      if (name == ".json" && *version == kAbsurd) {
        return no_commit(file.path, "has a number that no version has");
      }
      if (file.is_directory || *version == kAbsurd) continue;
      if (name == ".json") {
        log.commits.emplace(*version, file);
        continue;
      }
      if (name == ".crc") {
        log.checksums.emplace(*version, file.path);
        continue;
      }
      if (take(&name, ".checkpoint.")) {
        // Below.
      } else {
        const std::optional<int64_t> last =
            take(&name, ".") ? take_digits(&name, 20) : std::nullopt;
        if (last && name == ".compacted.json") log.others.emplace(*last, file.path);
        continue;
      }
      if (name == "parquet") {
        log.checkpoints.push_back({*version, file.modified_ms, {file.path}});
        continue;
      }
      // 10 digits, a point, 10 digits; a UUID begins with 8 digits and a hyphen.
      std::string_view part_name = name;
      const std::optional<int64_t> part = take_digits(&part_name, 10);
      if (part && take(&part_name, ".")) {
        const std::optional<int64_t> count = take_digits(&part_name, 10);
        if (count && part_name == ".parquet") parts[{*version, *count}][*part] = &file;
        continue;
      }
      if (name.size() == 36 + 5 && name.ends_with(".json")) {
        log.checkpoints.push_back({*version, file.modified_ms, {file.path}});
      } else if (name.size() == 36 + 8 && name.ends_with(".parquet")) {
        log.checkpoints.push_back({*version, file.modified_ms, {file.path}});
      }
    }
  }
  for (const auto& [key, files] : parts) {
    if (static_cast<int64_t>(files.size()) != key.parts || files.begin()->first != 1 ||
        files.rbegin()->first != key.parts) {
      for (const auto& [number, file] : files) log.others.emplace(key.version, file->path);
      continue;
    }
    Checkpoint checkpoint{key.version, 0, {}};
    for (const auto& [number, file] : files) {
      checkpoint.modified_ms = std::max(checkpoint.modified_ms, file->modified_ms);
      checkpoint.paths.push_back(file->path);
    }
    log.checkpoints.push_back(std::move(checkpoint));
  }
  // The last one is tried first: for one version, the one of fewest parts.
  std::sort(log.checkpoints.begin(), log.checkpoints.end(),
            [](const Checkpoint& a, const Checkpoint& b) {
              return std::make_tuple(a.version, b.paths.size()) <
                     std::make_tuple(b.version, a.paths.size());
            });
  if (log.empty() && listed.ok()) {
    for (const storage::FileInfo& file : *listed) {
      std::string_view name = file.path;
      name.remove_prefix(name.rfind('/') + 1);
      const bool is_remains =
          name == "_last_checkpoint" || name == "_sidecars" || take_digits(&name, 20).has_value();
      if (!is_remains) continue;
      return corrupt("DELTA_LOG_MISSING",
                     "the log of the table at {} is gone: there is {}, but no commit and no whole "
                     "checkpoint: restore them, or drop the table",
                     table_path, file.path);
    }
  }
  if (log.empty()) {
    return not_found("DELTA_TABLE_NOT_FOUND", "there is no Delta table at {}: {} holds no commit",
                     table_path, log_directory(table_path));
  }
  return log;
}

}  // namespace strandline::delta
