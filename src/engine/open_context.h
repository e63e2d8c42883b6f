// A context for one call of the public interface that works without a Session.
#pragma once

#include <memory>

#include "catalog/warehouse.h"
#include "duck/connection.h"
#include "engine/context.h"

namespace strandline::engine {

// Keeps alive what its context points to; stays where it is made.
struct OpenContext {
  std::shared_ptr<duck::Database> database;
  std::unique_ptr<duck::Connection> connection;
  std::shared_ptr<catalog::Warehouse> warehouse;
  Context context;

  // Errors: of the engine and of the warehouse.
  static Result<std::unique_ptr<OpenContext>> open(const SessionOptions& session);
};

}  // namespace strandline::engine
