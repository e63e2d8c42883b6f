// The change data feed of tables named in SQL and on the command line.
#pragma once

#include <strandline/strandline.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cdf/plan.h"
#include "delta/snapshot.h"
#include "duck/change_scan.h"
#include "duck/delta_io.h"
#include "duck/render.h"
#include "engine/context.h"

namespace strandline::engine {

// The table of a name as text, with backquotes where needed: "s.t", "`s`.`dotted.name`",
// "delta.`/path`". Errors: TABLE_OR_VIEW_NOT_FOUND, DELTA_TABLE_ONLY_OPERATION for views,
// DELTA_MISSING_DELTA_TABLE for paths, INVALID_NAME.
Result<delta::Table> feed_table(const Context& context, const std::string& name);
Result<delta::Table> feed_table(const Context& context, const sql::TableName& name,
                                const catalog::Defaults& defaults);
// The table at a path. Errors: DELTA_MISSING_DELTA_TABLE.
Result<delta::Table> feed_table_at(const Context& context, const std::string& path);

// The setting under which ends after the newest commit are no errors.
bool tolerates_out_of_range(const Context& context);

// The changes of a plan by version, as queries of pieces that are read one after the other: sorting
// them all would take as much memory, and disk, as there are changes; commits are in order already.
class ChangeQueries {
 public:
  // Nothing is given of changes that cannot be given to their end. Errors: kNotFound
  // DELTA_CHANGE_DATA_FILE_NOT_FOUND.
  static Result<ChangeQueries> of(delta::Table table, cdf::ChangePlan plan);

  // The next query, which can be run until this is called again or the object is gone; nullopt:
  // there is none any more. Errors: as scan_changes.
  Result<std::optional<std::string>> next(duck::Connection& connection);
  // After reading failed: the first file that is gone, with its version.
  std::optional<Error> find_missing() const;

 private:
  ChangeQueries(delta::Table table, std::vector<cdf::ChangePlan> pieces)
      : table_(std::move(table)), pieces_(std::move(pieces)), scans_(table_) {}

  delta::Table table_;
  std::vector<cdf::ChangePlan> pieces_;
  size_t next_ = 0;
  duck::ChangeScans scans_;
  std::unique_ptr<duck::Scan> scan_;
};

// Prints the rows of some queries as one document.
using ShowRows = std::function<Status(const duck::NextQuery& next)>;

// See Session::changes. Stops, without an error, when `stop` is set.
Status show_changes(const Context& context, const ChangesOptions& options, const ShowRows& show,
                    const std::atomic<bool>& stop);

}  // namespace strandline::engine
