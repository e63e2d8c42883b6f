// Options of STREAM table WITH (…) (sql.md; change-data-feed.md, streaming).
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "sql/query.h"

namespace strandline::pipeline {

struct StreamOptions {
  bool read_change_feed = false;  // the table's change data feed instead of what is appended

  // Where a stream without a checkpoint starts; none of them: with the table as it stands.
  std::optional<delta::Version> starting_version;
  bool starting_latest = false;  // after the newest commit
  std::optional<int64_t> starting_timestamp_ms;

  // Of one batch; without either 1000 files, with bytes alone any number of files. The first file
  // (of the feed: the first commit) is taken whatever its size.
  std::optional<int64_t> max_files;
  std::optional<int64_t> max_bytes;

  std::optional<std::string> exclude_regex;  // files in whose path it is found are left out
  bool fail_on_data_loss = true;             // else goes on from the oldest version there is

  // Commits that do more than append, of a stream that is not of the feed: passed over whole;
  // passed over where they only delete; the files they add are read, copied rows again.
  bool skip_change_commits = false;
  bool ignore_deletes = false;
  bool ignore_changes = false;
};

// Whether a table is read with readChangeFeed=true, whatever the other options are.
bool reads_change_feed(const sql::TableUse& use);

// Options after WITH. Errors: unknown and unsupported ones by name, with places.
std::optional<StreamOptions> read_stream_options(const sql::TableUse& use,
                                                 std::vector<Error>* errors);

// Whether SET … = true lets a start after the newest commit wait for it.
bool tolerates_out_of_range(const std::map<std::string, std::string>& settings);

}  // namespace strandline::pipeline
