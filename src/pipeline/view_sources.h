// What changed in the tables that a materialized view reads, since it last read them.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cdf/plan.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "pipeline/checkpoint.h"
#include "pipeline/sources.h"

namespace strandline::pipeline {

class ViewSources {
 public:
  // Between what the last finished batch and this plan read. why: what is in the way, with the
  // table's name; the result then means nothing. Errors: kIo.
  static Result<ViewSources> find(const std::vector<Source>& sources,
                                  const FlowCheckpoint& checkpoint, const BatchPlan& plan,
                                  std::string* why);

  size_t count() const { return sources_.size(); }
  bool changed(size_t source) const { return !sources_[source].changes.commits.empty(); }
  // Whether rows of all of them, and all changes, have row ids.
  bool have_row_ids() const;

  enum class Rows { kBefore, kNow, kCame, kWent, kTouched };
  // A relation of a source's columns, with row ids as row_id_column(source) if asked for: always or
  // never. Scans are kept as long as it is read. Errors: of scan_table.
  Result<std::string> relation(duck::Connection& connection, size_t source, Rows rows,
                               bool with_row_ids, std::vector<std::unique_ptr<duck::Scan>>* scans);
  static std::string row_id_column(size_t source);

 private:
  struct One {
    const Source* source = nullptr;
    std::shared_ptr<const delta::Snapshot> before, now;
    cdf::ChangePlan changes;
    std::string changed_rows;  // relation of all of them, once it is made
  };
  std::vector<One> sources_;
};

}  // namespace strandline::pipeline
