#include <strandline/changes.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "cdf/stream.h"
#include "duck/change_range.h"
#include "engine/handles.h"
#include "engine/open_context.h"
#include "engine/table_changes.h"

namespace strandline {
namespace engine {
namespace {

class TableChangeReader final : public ChangeReader {
 public:
  Status start(const SessionOptions& session, const ChangeReaderOptions& options) {
    SL_ASSIGN(opened_, OpenContext::open(session));
    const Context& context = opened_->context;
    SL_ASSIGN(auto table, feed_table(context, options.table));
    table_ = std::make_unique<delta::Table>(std::move(table));
    SL_ASSIGN(const auto newest, table_->snapshot());
    definition_ = cdf::without_files(*newest);
    options_.max_files = options.max_files;
    if (!options.checkpoint.empty()) {
      SL_ASSIGN(checkpoint_, context.absolute_path(options.checkpoint));
      const auto text = context.store->read(checkpoint_);
      if (text.ok()) {
        SL_ASSIGN(given_, cdf::parse_offset(*text));
        return {};
      }
      if (text.error().kind != ErrorKind::kNotFound) return text.error();
    }
    if (options.from == "latest") {
      options_.start = cdf::FromLatest{};
    } else if (options.from) {
      SL_ASSIGN(const auto bound, duck::parse_bound(*context.connection, *options.from));
      options_.start = bound;
    }
    SL_ASSIGN(given_, cdf::first_offset(*table_, options_));
    return {};
  }

  Result<std::unique_ptr<RowStream>> next() override {
    for (;;) {
      SL_ASSIGN(const auto batch, cdf::next_batch(*table_, definition_, options_, given_));
      if (batch.to == batch.from) return std::unique_ptr<RowStream>();
      given_ = batch.to;
      if (batch.plan.commits.empty()) continue;
      SL_ASSIGN(auto made, ChangeQueries::of(*table_, batch.plan));
      // The stream may outlive this reader.
      const auto queries = std::make_shared<ChangeQueries>(std::move(made));
      const auto next =
          [queries, database = opened_->database]() -> Result<std::unique_ptr<duck::RowReader>> {
        SL_ASSIGN(auto connection, database->connect());
        SL_ASSIGN(const auto query, queries->next(*connection));
        if (!query) return std::unique_ptr<duck::RowReader>();
        return duck::RowReader::open(std::move(connection), *query);
      };
      SL_ASSIGN(auto reader, duck::RowReader::chain(next));
      return make_row_stream(std::move(reader), queries, [queries](Error error) {
        if (error.code != "ENGINE_ERROR") return error;
        auto better = queries->find_missing();
        return better ? *std::move(better) : error;
      });
    }
  }

  Status commit() override {
    if (checkpoint_.empty()) return {};
    const auto& store = opened_->context.store;
    SL_TRY(store->make_directories(std::filesystem::path(checkpoint_).parent_path().string()));
    return store->put(checkpoint_, cdf::print_offset(given_));
  }

 private:
  std::unique_ptr<OpenContext> opened_;
  std::unique_ptr<delta::Table> table_;
  std::shared_ptr<const delta::Snapshot> definition_;
  cdf::StreamOptions options_;
  cdf::StreamOffset given_;
  std::string checkpoint_;
};

}  // namespace
}  // namespace engine

Result<std::unique_ptr<ChangeReader>> ChangeReader::open(const SessionOptions& session,
                                                         const ChangeReaderOptions& options) {
  auto reader = std::make_unique<engine::TableChangeReader>();
  SL_TRY(reader->start(session, options));
  return std::unique_ptr<ChangeReader>(std::move(reader));
}

}  // namespace strandline
