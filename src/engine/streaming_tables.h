// Streaming tables and materialized views declared outside of a pipeline, and REFRESH of them
// (src/pipeline/table_pipeline.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "engine/context.h"
#include "pipeline/table_pipeline.h"

namespace strandline::engine {

// Declares the table and loads it; the context is told how that went. statement is the whole.
// Errors: those of create_table_pipeline, the first one of its report.
Status create_streaming_table(const Context& context, const sql::CreateStreamingTable& table,
                              const sql::Statement& statement);
Status create_materialized_view(const Context& context, const sql::CreateMaterializedView& view,
                                const sql::Statement& statement);

// Errors: NOT_A_STREAMING_TABLE, NOT_A_MATERIALIZED_VIEW, REFRESH_OF_PIPELINE_TABLE (naming the
// command that does it), TABLE_OR_VIEW_NOT_FOUND, those of the update.
Status refresh(const Context& context, const sql::RefreshTable& statement);

// The declaration of a table, where it has one of its own.
std::optional<pipeline::TableDeclaration> declaration_of(const Context& context,
                                                         const FoundTable& table);
// Where a pipeline lies, empty if that is not known.
std::string pipeline_place(const Context& context, const std::string& pipeline);

// What a DROP says that it drops.
enum class DropKind { kOther, kStreamingTable, kMaterializedView };

// Drops a table with a declaration of its own; false when the name has none.
// Errors: NOT_A_STREAMING_TABLE, NOT_A_MATERIALIZED_VIEW.
Result<bool> drop_declared_table(const Context& context, const sql::Drop& statement, DropKind kind,
                                 const catalog::QualifiedName& name);
// Before a schema is dropped: with CASCADE drops the tables there that have declarations, else
// refuses if there are any. Errors: SCHEMA_NOT_EMPTY.
Status drop_declared_tables(const Context& context, const sql::Drop& statement,
                            const std::pair<std::string, std::string>& schema);

}  // namespace strandline::engine
