// May a transaction still commit after another writer took its version? (delta-protocol.md section
// 2)
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "delta/actions.h"
#include "delta/file_filter.h"

namespace strandline::delta {

enum class Isolation { kSerializable, kWriteSerializable, kSnapshot };

// The log's name of it.
const char* to_string(Isolation isolation);

// What a transaction read and wrote, as far as the rules ask.
struct Footprint {
  Isolation isolation = Isolation::kSerializable;
  bool reads_whole_table = true;
  std::unordered_set<std::string> read_paths;  // canonical; when not the whole table
  // Anything was read, so that files added meanwhile might have been read too: those that the
  // predicate keeps.
  bool reads_files = true;
  FileFilter read_predicate;
  std::unordered_set<std::string> removed_paths;  // canonical
  std::set<std::string> app_ids;
  std::set<std::string> domains;
  bool changes_metadata = false;
};

struct Conflict {
  std::string what;
  std::string code;  // public error name
};

// The first rule that the winning commit breaks, if any. Rules 2.8 and 2.9 rebase and are not here.
std::optional<Conflict> find_conflict(const Footprint& ours, const std::vector<Action>& winner,
                                      const std::string& table_path, Version version);

}  // namespace strandline::delta
