#include "delta/commit_mark.h"

#include "base/error.h"
#include "base/ids.h"
#include "delta/log_files.h"

namespace strandline::delta {

Result<CommitMark> mark_commit(const Table& table, Version version) {
  const auto bytes = table.store()->read(commit_path(table.path(), version));
  if (bytes.ok()) return CommitMark{version, strandline::fingerprint(*bytes)};
  if (bytes.error().kind == ErrorKind::kNotFound) return CommitMark{version, {}};
  return bytes.error();
}

Result<CommitMark> mark_newest(const Table& table, std::optional<Version> known) {
  if (!known) {
    SL_ASSIGN(known, table.latest_version());
  }
  while (true) {
    const auto next = table.store()->stat(commit_path(table.path(), *known + 1));
    if (!next.ok() && next.error().kind != ErrorKind::kNotFound) return next.error();
    if (!next.ok()) return mark_commit(table, *known);
    ++*known;
  }
}

Result<MarkedCommit> find_marked(const Table& table, const CommitMark& mark, Version newest) {
  if (mark.version > newest) return MarkedCommit::kGone;
  if (mark.fingerprint.empty()) return MarkedCommit::kThere;
  SL_ASSIGN(const auto now, mark_commit(table, mark.version));
  const bool same = now.fingerprint.empty() || now.fingerprint == mark.fingerprint;
  return same ? MarkedCommit::kThere : MarkedCommit::kOther;
}

}  // namespace strandline::delta
