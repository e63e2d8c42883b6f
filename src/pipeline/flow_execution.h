// What the batches of all kinds of flows share. Private to FlowRun.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cdf/primary_key.h"
#include "duck/delta_io.h"
#include "duck/program_runner.h"
#include "pipeline/batch_keys.h"
#include "pipeline/flow_run.h"

namespace strandline::pipeline {

// Relations of one batch. Scans live as long as the statements that read them.
struct FlowRun::Execution {
  std::vector<std::unique_ptr<duck::Scan>> scans;
  std::map<size_t, std::string> views;  // with expectations: their rows, by dataset
  std::vector<std::unique_ptr<CheckedRows>> checked_views;
  std::unique_ptr<CheckedRows> checked;  // by the target's expectations
  std::optional<BatchKeys> keys;
};

// Drops a program's tables when their rows are written, or will not be.
class ProgramTables {
 public:
  ProgramTables(duck::Connection& connection, const cdc::Program& program)
      : connection_(connection), program_(program) {}
  ~ProgramTables() { (void)duck::clean_up(connection_, program_).ok(); }
  ProgramTables(const ProgramTables&) = delete;
  ProgramTables& operator=(const ProgramTables&) = delete;

 private:
  duck::Connection& connection_;
  const cdc::Program& program_;
};

// The primary key of a target (auto-cdc.md section 12), and its text as a table property.
std::vector<cdf::KeyPart> key_parts(const cdc::Plan& plan);
std::string primary_key(const cdc::Plan& plan);

bool same_schema(const Schema& a, const Schema& b);

// Relation of a target's or state's rows with positions; row ids are null where the table has none.
Result<std::string> positioned(duck::Connection& connection, const delta::Table& table,
                               const std::shared_ptr<const delta::Snapshot>& snapshot,
                               const std::vector<size_t>& files, bool with_row_ids,
                               std::vector<std::unique_ptr<duck::Scan>>* scans);

}  // namespace strandline::pipeline
