// How a materialized view follows its sources: by what changed in them where its query allows it,
// else computed anew and compared (change-data-feed.md, materialized views).
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "pipeline/checkpoint.h"
#include "pipeline/sources.h"
#include "pipeline/target.h"
#include "pipeline/view_change.h"
#include "pipeline/view_shape.h"

namespace strandline::pipeline {

// One refresh of a view that has rows already.
struct ViewRefresh {
  const Flow& flow;
  const FlowSources& sources;
  const FlowCheckpoint& checkpoint;  // of what was done before
  const BatchPlan& plan;
  const Target& target;
  std::shared_ptr<const delta::Snapshot> view;
  std::string select;  // the view's columns from the query's, which is row_alias(labels)
  std::vector<std::string> labels;  // the query's columns as a column list names them, if any
  Schema columns;                   // of the query, with these names if there are any
};

// What a view's query is called in SQL: `q`, with columns of these names if there are any.
std::string row_alias(const std::vector<std::string>& labels);

// Null where the view has to be computed anew, and then why. Errors: kCancelled and kIo; whatever
// else goes wrong is a reason to compute it anew.
Result<std::unique_ptr<ViewChange>> follow_sources(duck::Connection& connection,
                                                   const ViewRefresh& refresh,
                                                   const ViewShape& shape,
                                                   std::vector<std::unique_ptr<duck::Scan>>* scans,
                                                   std::string* why);

// The view's columns that tell its rows apart, as far as the query says.
std::vector<std::string> view_key(const ViewShape& shape, const ViewRefresh& refresh);

}  // namespace strandline::pipeline
