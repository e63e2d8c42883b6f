// Which commit of a table's log it is. A table that was put back from a copy and written again has
// versions with the same numbers and other commits.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>

#include "delta/snapshot.h"

namespace strandline::delta {

struct CommitMark {
  Version version = -1;
  std::string fingerprint;  // of the commit's bytes; empty where the log did not have them any more

  bool operator==(const CommitMark&) const = default;
};

// Errors: kIo.
Result<CommitMark> mark_commit(const Table& table, Version version);
// Of the newest version. known: one that the table has, from which on it is looked for without a
// listing. Errors: kNotFound where there is no table, kIo.
Result<CommitMark> mark_newest(const Table& table, std::optional<Version> known);

// What a table, at this newest version, has of a commit that it had once.
enum class MarkedCommit {
  kThere,  // also where a log that was cleaned up cannot tell
  kGone,   // the table ends before it
  kOther,  // the version is another commit
};
// Errors: kIo.
Result<MarkedCommit> find_marked(const Table& table, const CommitMark& mark, Version newest);

}  // namespace strandline::delta
