// What the tests of this folder share.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "delta/action_json.h"
#include "delta/log_files.h"
#include "delta/snapshot.h"
#include "delta/transaction.h"

namespace strandline::delta {

// Keeps "Parquet" checkpoints as JSON lines in a store, so that this folder needs no Parquet
// engine.
class JsonCheckpoints : public ParquetPort {
 public:
  explicit JsonCheckpoints(std::shared_ptr<storage::Store> store) : store_(std::move(store)) {}

  Status read_checkpoint(const std::string& path, CheckpointVisitor* visitor) override {
    SL_ASSIGN(std::string text, store_->read(path));
    std::vector<std::string> sidecars;
    SL_ASSIGN(std::vector<Action> actions, parse_actions(std::move(text), path, &sidecars));
    visitor->expect(actions.size());
    for (Action& action : actions) {
      if (std::holds_alternative<AddFile>(action) && !visitor->wants_adds()) continue;
      if (std::holds_alternative<RemoveFile>(action) && !visitor->wants_removes()) continue;
      SL_TRY(visitor->take(std::move(action)));
    }
    for (std::string& sidecar : sidecars) SL_TRY(visitor->take_sidecar(std::move(sidecar)));
    return {};
  }

  Status write_checkpoint(const std::string& path, const CheckpointContent& content) override {
    std::string text;
    SL_TRY(content.each([&](const Action& action) -> Status {
      text += print_action(action) + "\n";
      return {};
    }));
    return store_->put(path, text);
  }

 private:
  std::shared_ptr<storage::Store> store_;
};

// Everything that a checkpoint holds.
class AllActions : public CheckpointVisitor {
 public:
  bool wants_adds() const override { return true; }
  bool wants_removes() const override { return true; }
  void expect(size_t rows) override { expected += rows; }
  Status take(Action action) override {
    actions.push_back(std::move(action));
    return {};
  }
  Status take_sidecar(std::string path) override {
    sidecars.push_back(std::move(path));
    return {};
  }

  size_t expected = 0;
  std::vector<Action> actions;
  std::vector<std::string> sidecars;
};

inline Table open_table(const std::shared_ptr<storage::Store>& store,
                        const std::string& path = "/t") {
  return Table(store, std::make_shared<JsonCheckpoints>(store), path);
}

inline Schema two_columns() {
  return Schema{{Field{"id", DataType::primitive(TypeId::kLong), true, {}},
                 Field{"name", DataType::primitive(TypeId::kString), true, {}}}};
}

inline AddFile data_file(const std::string& path, int64_t rows = 10) {
  AddFile file;
  file.path = path;
  file.size_bytes = 100;
  file.modification_time_ms = 1;
  file.stats = fmt::format(R"({{"numRecords":{},"minValues":{{"id":1}}}})", rows);
  return file;
}

// The least that a Parquet file of so many rows can be.
inline std::string parquet_bytes(int64_t rows, bool with_field_ids = false,
                                 const std::string& magic = "PAR1") {
  std::string footer =
      "\x15\x02\x19\x1c\x48\x06schema";  // version, a list of one element, its name
  if (with_field_ids) footer += "\x55\x02";
  footer += '\0';
  footer += '\x16';
  auto zigzag = static_cast<uint64_t>(rows) * 2;
  for (; zigzag >= 0x80; zigzag >>= 7) footer += static_cast<char>(zigzag | 0x80);
  footer += static_cast<char>(zigzag);
  footer += '\0';
  return "PAR1" + footer + std::string{static_cast<char>(footer.size()), 0, 0, 0} + magic;
}

}  // namespace strandline::delta
