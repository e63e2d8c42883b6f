// The dataflow graph of a pipeline: datasets and flows from the statements of its files, checked as
// far as that is possible without looking at data (auto-cdc.md sections 2 and 6, sql.md).
#pragma once

#include <strandline/result.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/warehouse.h"
#include "cdc/plan.h"
#include "pipeline/program.h"
#include "pipeline/spec.h"
#include "sql/query.h"

namespace strandline::pipeline {

enum class DatasetKind { kStreamingTable, kMaterializedView, kTemporaryView, kView };
const char* to_string(DatasetKind kind);  // "streaming table", …

struct Dataset {
  DatasetKind kind = DatasetKind::kStreamingTable;
  catalog::QualifiedName name;
  std::string shown;               // as messages name it
  sql::TableOptions options;       // tables
  sql::QueryPtr query;             // views
  std::vector<sql::Name> columns;  // a view's own column names
  bool streaming = false;          // a view over a stream
  bool auto_cdc = false;           // AUTO CDC flows write it
  std::string text;
  SourcePlace place;

  bool is_view() const { return kind == DatasetKind::kTemporaryView || kind == DatasetKind::kView; }
  // Schema written in the statement, if any.
  std::optional<Schema> declared_schema() const;
};

enum class FlowKind { kAutoCdc, kAppend, kMaterialize };

struct Flow {
  std::string name;
  FlowKind kind = FlowKind::kAutoCdc;
  bool once = false;
  bool by_name = true;  // kAppend: columns by name, else by place
  bool labels = false;  // kMaterialize: the target's column list names the query's columns in order
  size_t target = 0;    // in Graph::datasets
  sql::QueryPtr query;  // what the flow reads
  std::optional<cdc::Declaration> declaration;  // kAutoCdc
  // A function of the pipeline's program gives the snapshots and versions of AUTO CDC FROM
  // SNAPSHOT, by this name; the query means nothing then.
  std::string snapshot_function;
  std::vector<size_t> upstream;  // tables of this pipeline it reads, through views
  // Fingerprint of its text and of the views of this pipeline that it reads; once its sources are
  // known, "+" and that of the views of the warehouse, if it reads any.
  std::string definition;
  bool mentions_metadata = false;   // its text or its views' name _metadata
  bool mentions_row_index = false;  // … and row_index or the whole of it
  SourcePlace place;

  // AUTO CDC FROM SNAPSHOT.
  bool takes_snapshots() const { return declaration && declaration->clauses.from_snapshot; }
};

struct Graph {
  std::vector<Dataset> datasets;
  std::vector<Flow> flows;  // upstream first, otherwise in text order
  catalog::Defaults defaults;
  // The pipeline's configuration, and SET of its files.
  std::map<std::string, std::string> settings;
  // Folded names that broken statements would have declared; not to be reported as unknown.
  std::vector<std::string> doubtful;

  // The dataset a name in this pipeline's SQL means, LIVE.x too.
  std::optional<size_t> find(const catalog::Warehouse& warehouse, const sql::TableName& name) const;
  // The datasets that a query names.
  std::vector<size_t> datasets_read(const catalog::Warehouse& warehouse,
                                    const sql::Query& query) const;
  bool is_doubtful(const sql::TableName& name) const;
};

struct BuiltGraph {
  Graph graph;
  std::vector<Error> errors;  // all of them, in file and text order as far as they have a place
  std::vector<Error> warnings;
};

// Parses the spec's .sql files and what its .py files declared, and builds the graph. Places in the
// SQL of a program's statement name its key as the file.
BuiltGraph build_graph(const PipelineSpec& spec, storage::Store& store,
                       const catalog::Warehouse& warehouse,
                       const ProgramDeclarations& declared = {});

// Text picture: for each target its flows and what they read.
std::string draw_graph(const PipelineSpec& spec, const Graph& graph);

}  // namespace strandline::pipeline
