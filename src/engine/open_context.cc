#include "engine/open_context.h"

#include <filesystem>

#include "base/error.h"
#include "duck/delta_io.h"

namespace strandline::engine {

Result<std::unique_ptr<OpenContext>> OpenContext::open(const SessionOptions& session) {
  auto opened = std::make_unique<OpenContext>();
  Context& context = opened->context;
  SL_ASSIGN(opened->database,
            duck::Database::open({session.engine.memory_limit_bytes, session.engine.threads, ""}));
  SL_ASSIGN(opened->connection, opened->database->connect());
  context.connection = opened->connection.get();
  context.store = storage::make_local_store();
  context.parquet = duck::make_parquet_port(opened->database);
  context.directory =
      session.directory.empty() ? std::filesystem::current_path().string() : session.directory;
  if (!session.catalog.empty()) context.defaults.catalog = session.catalog;
  if (!session.schema.empty()) context.defaults.schema = session.schema;
  if (!session.warehouse.empty()) {
    SL_ASSIGN(opened->warehouse,
              catalog::Warehouse::open(context.store, context.parquet, session.warehouse));
    context.warehouse = opened->warehouse.get();
  }
  return opened;
}

}  // namespace strandline::engine
