// Commits and checkpoints.
#include <fmt/format.h>

#include "delta/action_json.h"
#include "delta/snapshot.h"
#include "delta/test_support.h"
#include "fuzz/targets.h"

namespace strandline::fuzz {
namespace {

constexpr const char* kLog = "/t/_delta_log/";

std::shared_ptr<storage::Store> store_with(
    const std::vector<std::pair<std::string, std::string_view>>& files) {
  auto store = storage::make_memory_store();
  for (const auto& [name, bytes] : files) {
    expect(store->put(kLog + name, std::string(bytes)).ok(), "the memory store takes every file");
  }
  return store;
}

void expect_typed(const Error& error) {
  expect(!error.code.empty() && !error.message.empty(), "an error has a code and a message");
  expect(error.kind != ErrorKind::kInternal, "a strange log is no fault of ours");
}

// What every state that was read must hold.
void check_state(const delta::Table& table, const delta::Snapshot& snapshot) {
  expect(snapshot.version >= 0, "a snapshot has a version");
  for (const delta::AddFile& file : snapshot.files) {
    const auto path = delta::resolve_data_path(snapshot.table_path, file.path);
    if (path.ok()) {
      expect(path->find('\0') == std::string::npos, "a file's name has no byte 0");
      expect(path->starts_with('/'), "a data path is absolute");
    }
    const auto records = delta::num_records(file);
    expect(!records || *records >= 0, "a file has no negative number of rows");
    if (file.deletion_vector) {
      const auto deleted = table.deletion_vector(*file.deletion_vector);
      if (!deleted.ok()) expect_typed(deleted.error());
    }
  }
  const auto live = delta::live_row_count(snapshot);
  expect(!live || *live >= 0, "a table has no negative number of rows");
  const std::string text = delta::print_schema(snapshot.schema);
  const auto schema = delta::parse_schema(text);
  expect(schema.ok() && delta::print_schema(*schema) == text, "a schema survives printing");
}

void read_all(const std::shared_ptr<storage::Store>& store) {
  const delta::Table table = delta::open_table(store);
  const auto snapshot = table.snapshot();
  if (snapshot.ok()) {
    check_state(table, **snapshot);
    const auto again = table.snapshot((*snapshot)->version);
    expect(again.ok() && (*again)->files.size() == (*snapshot)->files.size(),
           "the latest version is the same by its number");
  } else {
    expect_typed(snapshot.error());
  }
  const auto version = table.version_at(1700000000000);
  if (!version.ok()) expect_typed(version.error());
}

}  // namespace

void commit_log(std::string_view input) {
  std::vector<std::pair<std::string, std::string_view>> files;
  for (const std::string_view part : parts_of(input)) {
    files.emplace_back(fmt::format("{:020}.json", files.size()), part);
    const auto actions = delta::parse_actions(std::string(part), "f");
    if (!actions.ok()) continue;
    for (const delta::Action& action : *actions) {
      const std::string line = delta::print_action(action);
      const auto again = delta::parse_actions(line, "f");
      expect(again.ok() && again->size() == 1, "a printed action is read again");
      expect(delta::print_action((*again)[0]) == line, "an action survives printing");
    }
  }
  read_all(store_with(files));
}

void checkpoint(std::string_view input) {
  static constexpr const char* kNames[] = {
      "_last_checkpoint", "00000000000000000003.checkpoint.parquet", "00000000000000000004.json",
      "_sidecars/one.parquet", "00000000000000000003.json"};
  std::vector<std::pair<std::string, std::string_view>> files;
  for (const std::string_view part : parts_of(input)) {
    if (files.size() == std::size(kNames)) break;
    files.emplace_back(kNames[files.size()], part);
  }
  read_all(store_with(files));
  // The same rows as the JSON manifest of a V2 checkpoint.
  if (files.size() < 2) return;
  files[1].first = "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
  read_all(store_with(files));
}

}  // namespace strandline::fuzz
