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
#include "delta/snapshot.h"

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
  bool changes_protocol = false;
  // The table as ours knows it, with what earlier winners changed. Not null.
  const Snapshot* table = nullptr;
};

struct Conflict {
  std::string what;
  std::string code;  // public error name
};

// The first rule that the winning commit breaks, if any. Rules 2.8 and 2.9 rebase and are not here.
// Changes of metadata and protocol that pass (2.1, 2.2) are for ours to take over.
std::optional<Conflict> find_conflict(const Footprint& ours, const std::vector<Action>& winner,
                                      const std::string& table_path, Version version);

// Writers that began before may go on after this change of metadata: only row tracking, deletion
// vectors, in-commit timestamps, V2 checkpoints or column mapping by the present names were
// switched on, or identity columns moved on.
bool is_harmless_change(const Metadata& before, const Metadata& after);

}  // namespace strandline::delta
