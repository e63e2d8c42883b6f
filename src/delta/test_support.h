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

  Result<std::vector<Action>> read_checkpoint(const std::string& path,
                                              std::vector<std::string>* sidecars) override {
    SL_ASSIGN(std::string text, store_->read(path));
    return parse_actions(std::move(text), path, sidecars);
  }

  Status write_checkpoint(const std::string& path, const std::vector<Action>& actions) override {
    std::string text;
    for (const Action& action : actions) text += print_action(action) + "\n";
    return store_->put(path, text);
  }

 private:
  std::shared_ptr<storage::Store> store_;
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

}  // namespace strandline::delta
