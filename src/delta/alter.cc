// Changes of columns.
#include "delta/alter.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/type_widening.h"
#include "delta/check_schema.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/definition.h"
#include "delta/features.h"
#include "delta/text_length.h"
#include "delta/type_widening.h"

namespace strandline::delta {

namespace {

constexpr const char* kNotFound = "DELTA_COLUMN_NOT_FOUND";
constexpr const char* kNotAllowed = "DELTA_OPERATION_NOT_ALLOWED";

std::optional<size_t> index_of(const std::vector<Field>& fields, const std::string& name) {
  return Schema{fields}.find(name);
}

FieldPath parent_of(const FieldPath& path) { return FieldPath(path.begin(), path.end() - 1); }

Error no_column(const FieldPath& path, size_t depth) {
  const FieldPath known(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth));
  return invalid_argument(
      kNotFound, "there is no column {}{}", to_string(path),
      known.empty() ? "" : fmt::format(": {} has no {}", to_string(known), path[depth]));
}

using EditType = std::function<Status(Field* owner, DataType* type, const std::string& place)>;

// Calls edit with the type at a path, the field it belongs to and the way from that field's type:
// "" for the field's own. Types share their parts: what lies on the way is copied.
Status edit_type(std::vector<Field>* fields, const FieldPath& path, size_t depth,
                 const EditType& edit);

Status edit_inside(Field* owner, DataType* type, const FieldPath& path, size_t depth,
                   const std::string& place, const EditType& edit) {
  if (depth == path.size()) return edit(owner, type, place);
  const auto part = [&](std::shared_ptr<const DataType>* shared, const char* name) -> Status {
    DataType changed = **shared;
    SL_TRY(edit_inside(owner, &changed, path, depth + 1, place.empty() ? name : place + "." + name,
                       edit));
    *shared = std::make_shared<const DataType>(std::move(changed));
    return {};
  };
  const std::string name = fold_name(path[depth]);
  if (type->id == TypeId::kStruct) {
    std::vector<Field> members = *type->fields;
    SL_TRY(edit_type(&members, path, depth, edit));
    *type = DataType::structure(std::move(members));
    return {};
  }
  if (type->id == TypeId::kArray && name == "element") return part(&type->element, "element");
  if (type->id == TypeId::kMap && name == "key") return part(&type->key, "key");
  if (type->id == TypeId::kMap && name == "value") return part(&type->element, "value");
  return no_column(path, depth);
}

Status edit_type(std::vector<Field>* fields, const FieldPath& path, size_t depth,
                 const EditType& edit) {
  const auto index = index_of(*fields, path[depth]);
  if (!index) return no_column(path, depth);
  // Edited aside: the edit may look at the field while it changes its type.
  Field field = (*fields)[*index];
  DataType type = field.type;
  SL_TRY(edit_inside(&field, &type, path, depth + 1, "", edit));
  field.type = std::move(type);
  (*fields)[*index] = std::move(field);
  return {};
}

using EditFields = std::function<Status(std::vector<Field>*)>;

// Calls edit with the members of the struct at a path, or the columns for the empty path.
Status edit_members(std::vector<Field>* fields, const FieldPath& path, const EditFields& edit) {
  if (path.empty()) return edit(fields);
  return edit_type(fields, path, 0, [&](Field*, DataType* type, const std::string&) -> Status {
    if (type->id != TypeId::kStruct) {
      return invalid_argument("DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
                              "{} has type {}, which has no members", to_string(path),
                              to_sql(*type));
    }
    std::vector<Field> members = *type->fields;
    SL_TRY(edit(&members));
    *type = DataType::structure(std::move(members));
    return {};
  });
}

// Calls edit with one field.
Status edit_field(std::vector<Field>* fields, const FieldPath& path,
                  const std::function<Status(Field*)>& edit) {
  if (path.empty()) return invalid_argument(kNotFound, "a column has no name");
  return edit_members(fields, parent_of(path), [&](std::vector<Field>* members) -> Status {
    const auto index = index_of(*members, path.back());
    if (!index) return no_column(path, path.size() - 1);
    return edit(&(*members)[*index]);
  });
}

Result<size_t> place_among(const std::vector<Field>& fields, const FieldPosition& position,
                           const FieldPath& parent) {
  switch (position.kind) {
    case FieldPosition::Kind::kFirst:
      return size_t{0};
    case FieldPosition::Kind::kLast:
      return fields.size();
    case FieldPosition::Kind::kAfter:
      break;
  }
  const auto index = index_of(fields, position.after);
  if (index) return *index + 1;
  FieldPath path = parent;
  path.push_back(position.after);
  return no_column(path, parent.size());
}

// A column's path in files; `path` must exist.
FieldPath physical_path(const Schema& schema, const FieldPath& path, bool mapped) {
  FieldPath physical;
  for (size_t i = 0; i < path.size(); ++i) {
    const Field* const field = find_field(
        schema, FieldPath(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i) + 1));
    physical.push_back(field == nullptr ? path[i]
                       : mapped         ? Snapshot::physical_name(*field)
                                        : field->name);
  }
  return physical;
}

// `inner` is the field at `outer` or inside it.
bool lies_in(const FieldPath& inner, const FieldPath& outer) {
  return inner.size() >= outer.size() &&
         std::equal(outer.begin(), outer.end(), inner.begin(), same_name);
}

bool mentions(const std::string& sql, const FieldPath& path) {
  const std::vector<std::string> words = words_of_sql(sql);
  return std::all_of(path.begin(), path.end(), [&](const std::string& name) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return same_name(word, name); });
  });
}

// Column names in a comma-separated property, one of them renamed.
std::string rename_in_list(const std::string& list, const FieldPath& path,
                           const std::string& new_name) {
  FieldPath renamed = path;
  renamed.back() = new_name;
  std::string result;
  for (FieldPath column : parse_column_list(list)) {
    if (lies_in(column, path)) std::copy(renamed.begin(), renamed.end(), column.begin());
    if (!result.empty()) result += ',';
    result += to_string(column);
  }
  return result;
}

std::string drop_from_list(const std::string& list, const FieldPath& path) {
  std::string result;
  for (const FieldPath& column : parse_column_list(list)) {
    if (lies_in(column, path)) continue;
    if (!result.empty()) result += ',';
    result += to_string(column);
  }
  return result;
}

constexpr const char* kStatsColumns = "delta.dataSkippingStatsColumns";

// Widening that schema evolution does by itself; integers to DOUBLE or decimals are a decision.
bool widens_by_itself(const DataType& from, const DataType& to) {
  const bool leaves_integers = (to.id == TypeId::kDouble && from.id != TypeId::kFloat) ||
                               (to.id == TypeId::kDecimal && from.id != TypeId::kDecimal);
  return can_widen(from, to) && !leaves_integers;
}

// Joins the columns of new rows into those of the table.
class SchemaMerge {
 public:
  explicit SchemaMerge(bool widening) : widening_(widening) {}

  Status fields(std::vector<Field>* fields, const std::vector<Field>& incoming, FieldPath* path) {
    for (const Field& field : incoming) {
      path->push_back(field.name);
      const auto index = index_of(*fields, field.name);
      if (index) {
        SL_TRY(type(&(*fields)[*index].type, field.type, path));
      } else {
        Field added{field.name, field.type, true, {}};
        const auto comment = field.metadata.find("comment");
        if (comment != field.metadata.end()) added.metadata.insert(*comment);
        fields->push_back(std::move(added));
      }
      path->pop_back();
    }
    return {};
  }

 private:
  Status type(DataType* current, const DataType& incoming, FieldPath* path) {
    if (incoming.id == TypeId::kVoid) return {};
    if (current->id == TypeId::kVoid) {
      *current = incoming;
      return {};
    }
    const auto part = [&](std::shared_ptr<const DataType>* shared, const DataType& other,
                          const char* name) -> Status {
      DataType changed = **shared;
      path->emplace_back(name);
      SL_TRY(type(&changed, other, path));
      path->pop_back();
      *shared = std::make_shared<const DataType>(std::move(changed));
      return {};
    };
    if (current->is_nested() || incoming.is_nested()) {
      if (current->id != incoming.id) {
        return invalid_argument("DELTA_FAILED_TO_MERGE_FIELDS",
                                "column {} is {} and the new rows give {}: no type holds both",
                                to_string(*path), to_sql(*current), to_sql(incoming));
      }
      switch (current->id) {
        case TypeId::kStruct: {
          std::vector<Field> members = *current->fields;
          SL_TRY(fields(&members, *incoming.fields, path));
          *current = DataType::structure(std::move(members));
          return {};
        }
        case TypeId::kArray:
          return part(&current->element, *incoming.element, "element");
        default:
          SL_TRY(part(&current->key, *incoming.key, "key"));
          return part(&current->element, *incoming.element, "value");
      }
    }
    const auto common = least_common_type(*current, incoming);
    if (widening_ && common && widens_by_itself(*current, *common)) *current = *common;
    return {};
  }

  const bool widening_;
};

// Follows a wanted type through the parts of a nested one; plain types must widen.
class TypeChange {
 public:
  TypeChange(const FieldPath& path, bool widening) : path_(path), widening_(widening) {}

  // place: the way from the field's type to this part of it.
  Status apply(Field* owner, DataType* current, const DataType& wanted, const std::string& place) {
    if (current->id == TypeId::kStruct && wanted.id == TypeId::kStruct) {
      return members(current, wanted);
    }
    const auto part = [&](std::shared_ptr<const DataType>* shared, const DataType& other,
                          const char* name) -> Status {
      DataType changed = **shared;
      SL_TRY(apply(owner, &changed, other, place.empty() ? name : place + "." + name));
      *shared = std::make_shared<const DataType>(std::move(changed));
      return {};
    };
    if (current->id == TypeId::kArray && wanted.id == TypeId::kArray) {
      return part(&current->element, *wanted.element, "element");
    }
    if (current->id == TypeId::kMap && wanted.id == TypeId::kMap) {
      SL_TRY(part(&current->key, *wanted.key, "key"));
      return part(&current->element, *wanted.element, "value");
    }
    if (!current->is_nested() && same_type(*current, wanted)) return {};
    if (current->id == TypeId::kVoid) {
      *current = wanted;
      return {};
    }
    if (!can_widen(*current, wanted)) return refused(*current, wanted);
    if (!widening_) {
      return invalid_argument("DELTA_ALTER_TABLE_CHANGE_TYPE_NOT_ENABLED",
                              "column {} is {} and can only become {} with the table property "
                              "'delta.enableTypeWidening' = 'true': set it first",
                              to_string(path_), to_sql(*current), to_sql(wanted));
    }
    record_type_change(owner, *current, wanted, place);
    *current = wanted;
    return {};
  }

 private:
  Status members(DataType* current, const DataType& wanted) {
    std::vector<Field> fields = *current->fields;
    if (fields.size() != wanted.fields->size()) return refused(*current, wanted);
    for (Field& field : fields) {
      const auto other = index_of(*wanted.fields, field.name);
      if (!other) return refused(*current, wanted);
      DataType type = field.type;
      SL_TRY(apply(&field, &type, (*wanted.fields)[*other].type, ""));
      field.type = std::move(type);
    }
    *current = DataType::structure(std::move(fields));
    return {};
  }

  Error refused(const DataType& from, const DataType& to) const {
    return invalid_argument(
        "DELTA_CANNOT_CHANGE_DATA_TYPE",
        "column {} cannot change from {} to {}: only wider types can be read from the files there "
        "are; add a column of the new type, or write the table anew",
        to_string(path_), to_sql(from), to_sql(to));
  }

  const FieldPath& path_;
  const bool widening_;
};

}  // namespace

Alteration::Alteration(const Snapshot& snapshot)
    : base_(&snapshot),
      schema_(snapshot.schema),
      metadata_(snapshot.metadata),
      protocol_(snapshot.protocol),
      domains_(snapshot.domains) {}

Status Alteration::replace_schema(Schema schema) {
  const bool mapped = mapping_mode(metadata_) != "none";
  SL_TRY(check_columns(schema.fields, mapped));
  SL_TRY(check_reserved_names(schema, schema_, metadata_));
  schema_ = std::move(schema);
  if (mapped) assign_mapping(&schema_, &metadata_, PhysicalNames::kFresh);
  metadata_.schema_string = print_schema(schema_);
  finish();
  return {};
}

Status Alteration::add_columns(const std::vector<AddedColumn>& columns) {
  Schema schema = schema_;
  for (const AddedColumn& column : columns) {
    FieldPath path = column.parent;
    path.push_back(column.field.name);
    Schema added{{column.field}};
    strip_mapping(&added);
    Field& field = added.fields[0];
    if (!field.nullable) {
      return invalid_argument(kNotAllowed,
                              "column {} cannot be added as NOT NULL, since the rows there are "
                              "have no value: add it, fill it, then SET NOT NULL",
                              to_string(path));
    }
    if (field.metadata.count(kDefaultKey) > 0) {
      return unsupported(
          "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
          "column {} cannot be added with a DEFAULT: add it, then ALTER COLUMN {} SET DEFAULT, "
          "which holds for rows to come",
          to_string(path), to_string(path));
    }
    if (has_field_metadata(added, kGeneratedKey) || has_field_metadata(added, kIdentityPrefix)) {
      return invalid_argument(
          kNotAllowed,
          "column {} cannot be added as a generated or identity column: the rows there are would "
          "break its rule; name it when the table is created",
          to_string(path));
    }
    SL_TRY(edit_members(&schema.fields, column.parent, [&](std::vector<Field>* members) -> Status {
      if (index_of(*members, field.name)) {
        return invalid_argument("DELTA_DUPLICATE_COLUMNS_FOUND", "there is a column {} already",
                                to_string(path));
      }
      SL_ASSIGN(const size_t at, place_among(*members, column.position, column.parent));
      members->insert(members->begin() + static_cast<std::ptrdiff_t>(at), std::move(field));
      return {};
    }));
  }
  return replace_schema(std::move(schema));
}

Status Alteration::require_mapping(const FieldPath& path, const char* code,
                                   const char* action) const {
  if (mapping_mode(metadata_) != "none") return {};
  return unsupported(code,
                     "column {} of table {} cannot be {} without column mapping: SET TBLPROPERTIES "
                     "('{}' = 'name') first",
                     to_string(path), base_->table_path, action, kMappingModeProperty);
}

Status Alteration::check_dependents(const FieldPath& path, const char* action) const {
  SL_ASSIGN(const TableRules rules, table_rules(metadata_, schema_));
  for (const CheckConstraint& check : rules.checks) {
    if (!mentions(check.sql, path)) continue;
    return invalid_argument("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                            "column {} cannot be {}: the CHECK constraint {} ({}) needs it; drop "
                            "the constraint first",
                            to_string(path), action, check.name, check.sql);
  }
  for (const ColumnRule& rule : rules.columns) {
    if (rule.generated_sql && mentions(*rule.generated_sql, path)) {
      return invalid_argument("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                              "column {} cannot be {}: the generated column {} ({}) needs it",
                              to_string(path), action, to_string(rule.path), *rule.generated_sql);
    }
    // An invariant of the column itself goes with it when it is dropped.
    if (rule.invariant_sql && mentions(*rule.invariant_sql, path)) {
      return invalid_argument("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                              "column {} cannot be {}: the invariant {} of column {} needs it",
                              to_string(path), action, *rule.invariant_sql, to_string(rule.path));
    }
  }
  return {};
}

Status Alteration::rename_column(const FieldPath& path, const std::string& new_name) {
  if (find_field(schema_, path) == nullptr) return no_column(path, path.size() - 1);
  SL_TRY(require_mapping(path, "DELTA_UNSUPPORTED_RENAME_COLUMN", "renamed"));
  SL_TRY(check_dependents(path, "renamed"));
  Schema schema = schema_;
  std::string old_name;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    old_name = std::exchange(field->name, new_name);
    return {};
  }));
  const Metadata before = metadata_;
  if (path.size() == 1) {
    std::replace(metadata_.partition_columns.begin(), metadata_.partition_columns.end(), old_name,
                 new_name);
  }
  if (const auto list = metadata_.configuration.find(kStatsColumns);
      list != metadata_.configuration.end()) {
    list->second = rename_in_list(list->second, path, new_name);
  }
  Status replaced = replace_schema(std::move(schema));
  if (!replaced.ok()) metadata_ = before;
  return replaced;
}

Status Alteration::drop_columns(const std::vector<FieldPath>& paths) {
  Schema schema = schema_;
  std::map<std::string, std::string> configuration = metadata_.configuration;
  const bool mapped = mapping_mode(metadata_) != "none";
  for (const FieldPath& path : paths) {
    if (find_field(schema, path) == nullptr) return no_column(path, path.size() - 1);
    SL_TRY(require_mapping(path, "DELTA_UNSUPPORTED_DROP_COLUMN", "dropped"));
    const auto& partitions = metadata_.partition_columns;
    if (path.size() == 1 &&
        std::any_of(partitions.begin(), partitions.end(),
                    [&](const auto& name) { return same_name(name, path[0]); })) {
      return invalid_argument("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
                              "column {} cannot be dropped: the table is partitioned by it",
                              to_string(path));
    }
    const FieldPath physical = physical_path(schema, path, mapped);
    for (const FieldPath& clustering : clustering_columns(domains_)) {
      if (!lies_in(clustering, physical)) continue;
      return invalid_argument("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
                              "column {} cannot be dropped: the table is clustered by it; ALTER "
                              "TABLE ... CLUSTER BY other columns first",
                              to_string(path));
    }
    SL_TRY(check_dependents(path, "dropped"));
    SL_TRY(
        edit_members(&schema.fields, parent_of(path), [&](std::vector<Field>* members) -> Status {
          if (members->size() == 1) {
            return invalid_argument("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                                    "column {} cannot be dropped: {} would have none left",
                                    to_string(path), path.size() == 1 ? "the table" : "its struct");
          }
          members->erase(members->begin() +
                         static_cast<std::ptrdiff_t>(*index_of(*members, path.back())));
          return {};
        }));
    if (const auto list = configuration.find(kStatsColumns); list != configuration.end()) {
      list->second = drop_from_list(list->second, path);
      if (list->second.empty()) configuration.erase(list);
    }
  }
  const auto is_partition = [&](const Field& field) {
    return std::find(metadata_.partition_columns.begin(), metadata_.partition_columns.end(),
                     field.name) != metadata_.partition_columns.end();
  };
  if (std::all_of(schema.fields.begin(), schema.fields.end(), is_partition)) {
    return invalid_argument("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                            "the table would have no column left besides its partition columns");
  }
  metadata_.configuration = std::move(configuration);
  return replace_schema(std::move(schema));
}

Status Alteration::change_type(const FieldPath& path, const DataType& type) {
  if (path.empty()) return no_column(path, 0);
  Schema schema = schema_;
  const bool widening = metadata_.configuration.count("delta.enableTypeWidening") > 0 &&
                        metadata_.configuration.at("delta.enableTypeWidening") == "true";
  bool changes = false;
  SL_TRY(edit_type(&schema.fields, path, 0,
                   [&](Field* owner, DataType* current, const std::string& place) -> Status {
                     changes = !same_type(*current, type);
                     return TypeChange(path, widening).apply(owner, current, type, place);
                   }));
  if (!changes) return {};
  SL_TRY(check_dependents(path, "changed"));
  return replace_schema(std::move(schema));
}

Status Alteration::change_text_type(const FieldPath& path, const std::string& sized_type) {
  const Field* const before = find_field(schema_, path);
  if (before == nullptr) return no_column(path, path.size() - 1);
  if (path.size() != 1 && sized_type.empty()) return {};
  Field after = *before;
  set_text_type(&after, sized_type);
  if (declared_type(after) == declared_type(*before)) return {};
  const auto refused = [&](const std::string& why) {
    return invalid_argument("NOT_SUPPORTED_CHANGE_COLUMN",
                            "column {} cannot change from {} to {}: {}", to_string(path),
                            declared_type(*before), declared_type(after), why);
  };
  if (path.size() != 1) return refused("lengths are kept for the columns of a table alone");
  SL_ASSIGN(const auto old_length, text_length(*before));
  SL_ASSIGN(const auto new_length, text_length(after));
  if (new_length) {
    if (!old_length || new_length->length < old_length->length)
      return refused("texts that are there may be longer; use a CHECK constraint");
    if (new_length->is_char) return refused("texts that are there lack the blanks; use VARCHAR");
  }
  Schema schema = schema_;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    set_text_type(field, sized_type);
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::change_comment(const FieldPath& path,
                                  const std::optional<std::string>& comment) {
  Schema schema = schema_;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    field->metadata.erase("comment");
    if (comment) field->metadata["comment"] = json_string(*comment);
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::change_default(const FieldPath& path, const std::optional<std::string>& sql) {
  if (path.size() != 1) {
    return invalid_argument(kNotAllowed,
                            "{} is no column of the table: only whole columns can have "
                            "a default",
                            to_string(path));
  }
  Schema schema = schema_;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    const Schema alone{{*field}};
    if (has_field_metadata(alone, kGeneratedKey) || has_field_metadata(alone, kIdentityPrefix)) {
      return invalid_argument(kNotAllowed, "column {} is generated and has no default",
                              to_string(path));
    }
    field->metadata.erase(kDefaultKey);
    if (sql) set_default(field, *sql);
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::sync_identity(const FieldPath& path, std::optional<int64_t> furthest) {
  SL_ASSIGN(const TableRules rules, table_rules(metadata_, schema_));
  const ColumnRule* const rule = path.size() == 1 ? rules.find(path[0]) : nullptr;
  if (rule == nullptr || !rule->identity) {
    return invalid_argument("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
                            "column {} is no identity column: SYNC IDENTITY is for those",
                            to_string(path));
  }
  depends_on_rows_ = true;
  if (!furthest) return {};
  IdentityRule identity = *rule->identity;
  SL_TRY(identity.go_beyond(*furthest));
  if (identity.high_water_mark == rule->identity->high_water_mark) return {};
  Schema schema = schema_;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    set_identity(field, identity);
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::set_nullable(const FieldPath& path) {
  Schema schema = schema_;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    field->nullable = true;
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::set_not_null(const FieldPath& path) {
  for (size_t depth = 1; depth < path.size(); ++depth) {
    const FieldPath outer(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth));
    const Field* const field = find_field(schema_, outer);
    if (field != nullptr && field->type.id == TypeId::kStruct) continue;
    if (field == nullptr) break;
    return unsupported("DELTA_NESTED_NOT_NULL_CONSTRAINT",
                       "{} lies in {}, which is {}: NOT NULL is for columns and members of structs",
                       to_string(path), to_string(outer), to_sql(field->type));
  }
  Schema schema = schema_;
  bool changes = false;
  SL_TRY(edit_field(&schema.fields, path, [&](Field* field) -> Status {
    changes = std::exchange(field->nullable, false);
    return {};
  }));
  depends_on_rows_ = depends_on_rows_ || changes;
  return replace_schema(std::move(schema));
}

Status Alteration::move_column(const FieldPath& path, const FieldPosition& position) {
  if (path.empty()) return no_column(path, 0);
  Schema schema = schema_;
  SL_TRY(edit_members(&schema.fields, parent_of(path), [&](std::vector<Field>* members) -> Status {
    const auto index = index_of(*members, path.back());
    if (!index) return no_column(path, path.size() - 1);
    if (position.kind == FieldPosition::Kind::kAfter && same_name(position.after, path.back())) {
      return {};
    }
    Field moved = std::move((*members)[*index]);
    members->erase(members->begin() + static_cast<std::ptrdiff_t>(*index));
    SL_ASSIGN(const size_t at, place_among(*members, position, parent_of(path)));
    members->insert(members->begin() + static_cast<std::ptrdiff_t>(at), std::move(moved));
    return {};
  }));
  return replace_schema(std::move(schema));
}

Status Alteration::merge_schema(const Schema& incoming) {
  Schema schema = schema_;
  const auto widening = metadata_.configuration.find("delta.enableTypeWidening");
  FieldPath path;
  SL_TRY(SchemaMerge(widening != metadata_.configuration.end() && widening->second == "true")
             .fields(&schema.fields, incoming.fields, &path));
  Metadata metadata = metadata_;
  return replace_schema(next_schema(schema_, std::move(schema), true, &metadata));
}

}  // namespace strandline::delta
