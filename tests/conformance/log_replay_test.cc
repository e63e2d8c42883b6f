// The logs of other Delta writers: latest versions and numbers of live files as their INDEX.md
// says, and the same state with and without their checkpoints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "delta/action_json.h"
#include "delta/data_path.h"
#include "delta/log_files.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "support/paths.h"

namespace strandline {
namespace {

std::filesystem::path conformance_folder() { return test::shared_directory() / "conformance"; }

// A line of INDEX.md: | folder | protocol | latest | covers | expected | notes | origin |
struct Entry {
  std::string name;
  std::optional<delta::Version> latest;
  std::optional<int64_t> live_files;
};

std::optional<int64_t> number_at(const std::string& text, size_t at) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::vector<Entry> read_index() {
  std::vector<Entry> entries;
  std::ifstream file(conformance_folder() / "INDEX.md");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    for (size_t start = 0; start < line.size();) {
      const size_t end = std::min(line.find(" | ", start), line.size());
      cells.push_back(line.substr(start, end - start));
      start = end + 3;
    }
    if (cells.size() < 6 || !cells[0].starts_with("| ")) continue;
    Entry entry;
    entry.name = cells[0].substr(2);
    if (!std::filesystem::exists(conformance_folder() / entry.name / "delta" / "_delta_log"))
      continue;
    if (cells[2].starts_with("v")) entry.latest = number_at(cells[2], 1);
    if (cells[4].find("active adds") != std::string::npos)
      entry.live_files = number_at(cells[4], 0);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Everything about a state that both ways of reading it must agree on.
std::vector<std::string> state_of(const delta::Snapshot& snapshot) {
  std::vector<std::string> lines;
  for (const delta::AddFile& file : snapshot.files) {
    lines.push_back(fmt::format("{} {} {} {}",
                                delta::canonical_path(snapshot.table_path, file.path),
                                file.deletion_vector ? file.deletion_vector->unique_id() : "-",
                                file.size_bytes, file.base_row_id.value_or(-1)));
    for (const auto& [column, value] : file.partition_values) {
      lines.back() += fmt::format(" {}={}", column, value.value_or("NULL"));
    }
  }
  for (const auto& [app_id, txn] : snapshot.txns)
    lines.push_back(fmt::format("txn {} {}", app_id, txn.version));
  for (const auto& [name, domain] : snapshot.domains)
    lines.push_back("domain " + name + domain.configuration);
  lines.push_back(delta::print_action(snapshot.protocol));
  lines.push_back(delta::print_schema(snapshot.schema));
  std::sort(lines.begin(), lines.end());
  return lines;
}

class LogReplay : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(conformance_folder())) {
      GTEST_SKIP() << "no folder " << conformance_folder() << "; set STRANDLINE_SHARED to run this";
    }
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    parquet_ = duck::make_parquet_port(*database);
    entries_ = read_index();
    ASSERT_GT(entries_.size(), 100u);
  }

  std::string path_of(const Entry& entry) const {
    return std::filesystem::canonical(conformance_folder() / entry.name / "delta").string();
  }

  std::shared_ptr<storage::Store> store_ = storage::make_local_store();
  std::shared_ptr<delta::ParquetPort> parquet_;
  std::vector<Entry> entries_;
};

// Each table opens as the index says or is refused; which ones are refused is conformance_test's.
TEST_F(LogReplay, LatestVersions) {
  int opened = 0;
  for (const Entry& entry : entries_) {
    SCOPED_TRACE(entry.name);
    const delta::Table table(store_, parquet_, path_of(entry));
    const auto snapshot = table.snapshot();
    if (!snapshot.ok()) {
      EXPECT_TRUE(snapshot.error().kind == ErrorKind::kUnsupported ||
                  snapshot.error().kind == ErrorKind::kCorrupt || entry.name == "krs-crc-malformed")
          << snapshot.error().message;  // that one has checksum files and no commit
      continue;
    }
    ++opened;
    if (entry.latest) {
      EXPECT_EQ((*snapshot)->version, *entry.latest);
    }
    // The index counts without resolving absolute paths.
    const bool resolves_paths = entry.name.starts_with("golden-canonicalized-paths");
    if (entry.live_files) {
      EXPECT_EQ((*snapshot)->files.size(),
                resolves_paths ? 0u : static_cast<size_t>(*entry.live_files));
    }
  }
  EXPECT_GT(opened, 100);
}

TEST_F(LogReplay, CheckpointsAndCommitsAgree) {
  int compared = 0;
  for (const Entry& entry : entries_) {
    SCOPED_TRACE(entry.name);
    const std::string path = path_of(entry);
    const auto log = delta::list_log(store_.get(), path);
    if (!log.ok() || log->checkpoints.empty() || !log->commits.contains(0)) continue;
    // Its checkpoint was made for another schema than its commits have.
    if (entry.name == "krs-parquet_row_group_skipping") continue;
    // The same commits in a store without the checkpoints.
    const auto commits_only = storage::make_memory_store();
    for (const auto& [version, file] : log->commits) {
      ASSERT_TRUE(commits_only->put(file.path, store_->read(file.path).value()).ok());
    }
    const delta::Table with(store_, parquet_, path);
    const delta::Table without(commits_only, parquet_, path);
    for (delta::Version version = log->checkpoints.front().version; version <= log->latest();
         ++version) {
      const auto expected = without.snapshot(version);
      if (!expected.ok()) continue;  // gaps before the checkpoint are legal
      const auto actual = with.snapshot(version);
      if (!actual.ok() && actual.error().code == "DELTA_STATE_RECOVER_ERROR") continue;
      ASSERT_TRUE(actual.ok()) << actual.error().message;
      EXPECT_EQ(state_of(**actual), state_of(**expected)) << "version " << version;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace strandline
