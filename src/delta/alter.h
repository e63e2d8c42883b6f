// Alteration: changes of a table's columns and properties, built up in memory against a snapshot
// (delta-protocol.md sections 3, 8, 9, 12). Shared by ALTER TABLE, schema evolution of MERGE and
// INSERT, and AUTO CDC.
//
//   Alteration alteration(*snapshot);
//   SL_TRY(alteration.rename_column({"address", "city"}, "town"));
//   alteration.apply_to(&transaction);
//
// Each call leaves the alteration as it was when it fails. Errors are kInvalidArgument, or
// kUnsupported for what Delta tables cannot do, with Delta's public names.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "delta/field_path.h"
#include "delta/snapshot.h"
#include "delta/transaction.h"

namespace strandline::delta {

// A place among the fields of one struct.
struct FieldPosition {
  enum class Kind { kLast, kFirst, kAfter } kind = Kind::kLast;
  std::string after;  // kAfter: the name of a sibling

  static FieldPosition last() { return {}; }
  static FieldPosition first() { return {Kind::kFirst, {}}; }
  static FieldPosition behind(std::string name) { return {Kind::kAfter, std::move(name)}; }
};

struct AddedColumn {
  FieldPath parent;  // empty: a column of the table
  Field field;
  FieldPosition position = {};
};

// DROP FEATURE (drop_feature.h).
struct FeatureDrop {
  std::string feature;            // as the protocol spells it
  bool truncate_history = false;  // the log has lost the versions that use it
};

class Alteration {
 public:
  explicit Alteration(const Snapshot& snapshot);

  // The table as altered so far.
  const Schema& schema() const { return schema_; }
  const Metadata& metadata() const { return metadata_; }
  const Protocol& protocol() const { return protocol_; }
  bool changed() const;
  // Rows must be looked at to know that the change is right (NOT NULL, CHECK): what others add
  // meanwhile conflicts.
  bool depends_on_rows() const { return depends_on_rows_; }
  // Row tracking is switched on and the table has files without row ids: assign_row_ids must run
  // first.
  bool needs_row_ids() const { return needs_row_ids_; }

  // New columns read as NULL in the rows there are. Errors: DELTA_DUPLICATE_COLUMNS_FOUND,
  // DELTA_COLUMN_NOT_FOUND (parent, sibling), DELTA_ADD_COLUMN_PARENT_NOT_STRUCT,
  // DELTA_OPERATION_NOT_ALLOWED (NOT NULL; generated and identity columns),
  // WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED,
  // DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES.
  Status add_columns(const std::vector<AddedColumn>& columns);
  // Errors: DELTA_UNSUPPORTED_RENAME_COLUMN (without column mapping), DELTA_COLUMN_NOT_FOUND,
  // DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
  // DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE.
  Status rename_column(const FieldPath& path, const std::string& new_name);
  // Errors: DELTA_UNSUPPORTED_DROP_COLUMN (without column mapping),
  // DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN, DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN,
  // DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA, and as for renaming.
  Status drop_columns(const std::vector<FieldPath>& paths);
  // A wider type (type_widening.h) for a column, a member, an element, a key or a value; a nested
  // type may widen in several parts at once, with the same members. The same type is no change.
  // Errors: DELTA_CANNOT_CHANGE_DATA_TYPE, DELTA_ALTER_TABLE_CHANGE_TYPE_NOT_ENABLED (a type that
  // could be widened with delta.enableTypeWidening), and as for renaming.
  Status change_type(const FieldPath& path, const DataType& type);
  // "varchar(5)" or "char(5)" for a STRING column that is no longer than this, "" for STRING; other
  // columns have none. Errors: NOT_SUPPORTED_CHANGE_COLUMN where texts that are there, or their
  // padding, may not fit.
  Status change_text_type(const FieldPath& path, const std::string& sized_type);
  // nullopt takes the comment away.
  Status change_comment(const FieldPath& path, const std::optional<std::string>& comment);
  // SQL text of the default of rows to come; nullopt drops it. Errors: DELTA_OPERATION_NOT_ALLOWED
  // for members, generated and identity columns.
  Status change_default(const FieldPath& path, const std::optional<std::string>& sql);
  // SYNC IDENTITY: values to come lie beyond `furthest`, the last in the direction of the steps
  // among the table's rows, if there are any. Errors:
  // DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN, DELTA_IDENTITY_COLUMN_EXHAUSTED.
  Status sync_identity(const FieldPath& path, std::optional<int64_t> furthest);
  // DROP NOT NULL.
  Status set_nullable(const FieldPath& path);
  // SET NOT NULL: the caller has looked that no row breaks it. Errors:
  // DELTA_NESTED_NOT_NULL_CONSTRAINT for what lies in an array or map.
  Status set_not_null(const FieldPath& path);
  Status move_column(const FieldPath& path, const FieldPosition& position);

  // The columns joined with those of new rows, as schema evolution does: unknown ones are added at
  // the end (nested too, nullable); where type widening is enabled narrower types widen. Types that
  // new rows can be cast to stay. Errors: DELTA_FAILED_TO_MERGE_FIELDS.
  Status merge_schema(const Schema& incoming);

  // Sets properties and what they call for: features, ids and physical names (column mapping), the
  // names of row tracking columns. Errors: as check_properties;
  // DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE; DELTA_ADD_CONSTRAINTS (use add_constraint);
  // DELTA_CANNOT_MODIFY_TABLE_PROPERTY for those that Delta keeps itself.
  // delta.feature.NAME = supported adds a feature.
  Status set_properties(const std::map<std::string, std::string>& properties);
  // Errors: DELTA_UNSET_NON_EXISTENT_PROPERTY unless if_exists; as set_properties.
  Status unset_properties(const std::vector<std::string>& keys, bool if_exists);
  // The table's comment; nullopt takes it away.
  Status set_description(const std::optional<std::string>& description);

  // The caller has looked that every row makes the expression true. Errors:
  // DELTA_CONSTRAINT_ALREADY_EXISTS.
  Status add_constraint(const std::string& name, const std::string& sql);
  // Errors: DELTA_CONSTRAINT_DOES_NOT_EXIST unless if_exists.
  Status drop_constraint(const std::string& name, bool if_exists);

  // CLUSTER BY; empty is CLUSTER BY NONE. Errors:
  // DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED, DELTA_COLUMN_NOT_FOUND.
  Status set_clustering(const std::vector<FieldPath>& columns);

  // Switches off the properties by which new files would use a feature, of those that change
  // nothing of what a reader sees; nothing for others.
  Status stop_using(const std::string& feature);
  // Takes a feature out of the protocol. Errors: of check_droppable (drop_feature.h);
  // kInvalidArgument DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL where files, properties or
  // domains have traces of it.
  Status drop_feature(const FeatureDrop& drop);

  // Puts what changed into a transaction on the same snapshot; what it reads and writes besides is
  // its own affair.
  void apply_to(Transaction* transaction) const;

 private:
  Status require_mapping(const FieldPath& path, const char* code, const char* action) const;
  // No rule's SQL mentions the column.
  Status check_dependents(const FieldPath& path, const char* action) const;
  Status replace_schema(Schema schema);
  // Metadata and protocol after a change of schema or properties.
  void finish();
  // Ids and physical names of a table that turns column mapping on.
  Status change_mapping_mode(const std::string& before, Schema* schema, Metadata* metadata) const;

  const Snapshot* base_;
  Schema schema_;
  Metadata metadata_;
  Protocol protocol_;
  std::map<std::string, DomainMetadata> domains_;  // live and changed ones, by name
  std::map<std::string, DomainMetadata> changed_domains_;
  bool depends_on_rows_ = false;
  bool needs_row_ids_ = false;
};

// Physical names of the clustering columns of a table, each a path; empty when it is not clustered.
std::vector<FieldPath> clustering_columns(const std::map<std::string, DomainMetadata>& domains);

// Names and parameters for the log's commitInfo.
struct AlterOperation {
  std::string name;  // "ADD COLUMNS", "SET TBLPROPERTIES", ...
  std::map<std::string, std::string> parameters;
};

// Makes the change on the newest snapshot and commits it; without a change nothing is written and
// the version read is returned. A lost race runs it again on the new snapshot (`change` then looks
// at the rows anew). Files get their row ids first where row tracking is switched on.
// Errors: of change; kConflict when the race is lost again and again.
Result<Version> commit_alteration(
    const Table& table, const AlterOperation& operation,
    const std::function<Status(const Snapshot&, Alteration*)>& change);

// Gives every file a baseRowId (section 9), in commits of their own that change no data; needs
// nothing when all have one. Errors: kUnsupported DELTA_ROW_TRACKING_BACKFILL_WITHOUT_STATS naming
// a file whose row count is unknown.
Result<Version> assign_row_ids(const Table& table);

}  // namespace strandline::delta
