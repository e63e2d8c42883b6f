// What every part of one update shares.
#pragma once

#include <strandline/strandline.h>

#include <functional>
#include <memory>
#include <string>

#include "catalog/warehouse.h"
#include "cdf/primary_key.h"
#include "duck/connection.h"
#include "pipeline/graph.h"
#include "pipeline/program.h"
#include "pipeline/spec.h"
#include "storage/store.h"

namespace strandline::pipeline {

// Table properties a pipeline writes.
inline constexpr const char* kPipelineIdProperty = "pipelines.pipelineId";
inline constexpr const char* kPipelineNameProperty = "strandline.pipelineName";
// What a table is that is no streaming table: "MATERIALIZED VIEW".
inline constexpr const char* kDatasetProperty = "strandline.dataset";
// JSON array of column names and expressions (auto-cdc.md section 12).
using cdf::kPrimaryKeyProperty;
// Marks a target of AUTO CDC: "SCD TYPE 1", …
inline constexpr const char* kScdTypeProperty = "strandline.cdc.scdType";
// Of state tables: cdc::StateSpec as JSON, the target's table id, the full refresh it belongs to.
// The first of them also of targets of snapshot flows, which have no state table.
inline constexpr const char* kStateSpecProperty = "strandline.cdc.spec";
inline constexpr const char* kStateTargetProperty = "strandline.cdc.targetId";
// Version of the target up to which rows changed by hand are part of the state.
inline constexpr const char* kStateEditsProperty = "strandline.cdc.editsUpTo";
// When deletes were last looked through for what may be forgotten; microseconds UTC.
inline constexpr const char* kStateForgottenProperty = "strandline.cdc.forgottenAt";
// A target that was there, with its rows, before a pipeline took it over.
inline constexpr const char* kAdoptedProperty = "strandline.cdc.adopted";
inline constexpr const char* kStateGenerationProperty = "strandline.cdc.generation";

// The error with a place, if it has none of its own.
inline Error placed(Error error, const SourcePlace& place) {
  if (!error.place) error.place = place;
  return error;
}

struct Context {
  PipelineSpec spec;
  Graph graph;
  std::string pipeline_id;  // empty before the first update
  std::shared_ptr<storage::Store> store;
  std::shared_ptr<delta::ParquetPort> parquet;
  std::shared_ptr<catalog::Warehouse> warehouse;
  duck::Connection* connection = nullptr;
  Program* program = nullptr;  // of the pipeline's .py files; null without any
  // Told at each stage of the running flow.
  std::function<void(const std::string& stage)> on_stage;
  std::function<bool()> cancelled;
  // Whether no further batch is to begin.
  std::function<bool()> stopping;

  // An error if the user stopped the update.
  Status check_cancelled() const;
};

}  // namespace strandline::pipeline
