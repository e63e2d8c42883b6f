#include "engine/new_values.h"

#include <strandline/suggest.h>

#include <algorithm>

#include "base/error.h"
#include "engine/assignment.h"
#include "engine/names.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

std::string dotted(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ".") + part;
  return text;
}

// One path leads to the other or into it.
bool overlap(const std::vector<size_t>& a, const std::vector<size_t>& b) {
  return std::equal(a.begin(), a.begin() + static_cast<long>(std::min(a.size(), b.size())),
                    b.begin());
}

std::vector<std::string> names_of(const std::vector<Field>& fields) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  return names;
}

std::optional<size_t> index_of(const std::vector<Field>& fields, const std::string& name) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (same_name(fields[i].name, name)) return i;
  }
  return std::nullopt;
}

bool is_default(const sql::Expr& expr) {
  const auto name = sql::plain_column(expr);
  return name && same_name(name->text, "DEFAULT");
}

const Field& field_at(const Schema& schema, const std::vector<size_t>& path) {
  const Field* field = &schema.fields[path[0]];
  for (size_t i = 1; i < path.size(); ++i) field = &(*field->type.fields)[path[i]];
  return *field;
}

}  // namespace

// The parts after an alias or table name lead from a column to a field inside it.
Result<std::vector<size_t>> NewValues::resolve(const sql::Assignment& assignment) const {
  const Schema& schema = target_->schema();
  const auto& parts = assignment.target;
  size_t first = 0;
  if (parts.size() > 1 && same_name(parts[0], target_->alias) && schema.find(parts[1])) first = 1;
  for (const auto& name : target_->names) {
    const size_t count = name.parts.size();
    if (count > 1 && parts.size() > count &&
        std::equal(name.parts.begin(), name.parts.end(), parts.begin(), same_name)) {
      first = count;
    }
  }
  std::vector<size_t> path;
  const std::vector<Field>* fields = &schema.fields;
  std::string shown;
  for (size_t i = first; i < parts.size(); ++i) {
    if (fields == nullptr) {
      return at(
          invalid_argument("INVALID_EXTRACT_BASE_FIELD_TYPE",
                           "{} cannot be set: {} of {} is {}, which has no fields", dotted(parts),
                           shown, target_->found.name, to_sql(field_at(schema, path).type)),
          assignment.place);
    }
    const auto index = index_of(*fields, parts[i]);
    if (!index) {
      const auto near = nearest_name(parts[i], names_of(*fields));
      return at(invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION", "{} is no {} of {}{}",
                                 parts[i], shown.empty() ? "column" : "field of " + shown,
                                 target_->found.name, near ? ": did you mean " + *near + "?" : ""),
                assignment.place);
    }
    const Field& field = (*fields)[*index];
    path.push_back(*index);
    shown += (shown.empty() ? "" : ".") + field.name;
    fields = field.type.id == TypeId::kStruct ? field.type.fields.get() : nullptr;
  }
  return path;
}

Status NewValues::add(const std::vector<sql::Assignment>& assignments, Relations& relations,
                      const std::vector<sql::TableName>& tables, const std::string& from) {
  for (const auto& assignment : assignments) {
    SL_ASSIGN(auto path, resolve(assignment));
    std::string text;
    if (is_default(*assignment.value)) {
      auto value = assign_default(field_at(target_->schema(), path), target_->found.name);
      if (!value.ok()) return at(std::move(value).error(), assignment.place);
      text = std::move(value).value();
    } else {
      SL_ASSIGN(text, relations.print(*assignment.value, tables, from));
    }
    SL_TRY(add(std::move(path), std::move(text), assignment.place));
  }
  return {};
}

Status NewValues::add(std::vector<size_t> path, std::string sql, const SourcePlace& place) {
  for (const auto& other : values_) {
    if (!overlap(other.path, path)) continue;
    return at(invalid_argument("DUPLICATE_ASSIGNMENTS", "{} of {} is assigned twice",
                               field_at(target_->schema(), path).name, target_->found.name),
              place);
  }
  auto column = fmt::format("__strandline_{}_{}", prefix_, values_.size());
  values_.push_back({std::move(path), std::move(sql), std::move(column), {}, place});
  return {};
}

Status NewValues::find_types(duck::Connection& connection, const std::string& from) {
  if (values_.empty()) return {};
  const auto items = select_items().substr(2);
  SL_ASSIGN(auto types, given_columns(connection, fmt::format("SELECT {} FROM {}", items, from)));
  for (size_t i = 0; i < values_.size(); ++i) values_[i].source = std::move(types[i]);
  return {};
}

std::string NewValues::select_items(const std::string& condition) const {
  std::string items;
  for (const auto& value : values_) {
    items += condition.empty() ? fmt::format(", {}", value.sql)
                               : fmt::format(", CASE WHEN {} THEN {} END", condition, value.sql);
    items += " AS " + duck::quote_name(value.column);
  }
  return items;
}

bool NewValues::replaces(size_t column) const {
  return std::any_of(values_.begin(), values_.end(), [&](const NewValue& value) {
    return value.path.size() == 1 && value.path[0] == column;
  });
}

bool NewValues::touches(size_t column) const {
  return std::any_of(values_.begin(), values_.end(),
                     [&](const NewValue& value) { return value.path[0] == column; });
}

// A struct some of whose members are new is built again from its members.
Result<std::string> NewValues::value_text(const Field& field, const std::string& shown,
                                          const std::vector<size_t>& path,
                                          const std::string& old) const {
  bool inside = false;
  for (const auto& value : values_) {
    if (value.path == path) {
      Field named = field;
      named.name = shown;
      auto text = assign(duck::quote_name(value.column), value.source, named, target_->found.name,
                         structs_by_);
      if (!text.ok()) return at(std::move(text).error(), value.place);
      return text;
    }
    inside = inside || (value.path.size() > path.size() && overlap(value.path, path));
  }
  if (!inside) return old;
  std::string members;
  for (size_t i = 0; i < field.type.fields->size(); ++i) {
    const Field& member = (*field.type.fields)[i];
    auto below = path;
    below.push_back(i);
    SL_ASSIGN(const auto text, value_text(member, shown + "." + member.name, below,
                                          fmt::format("struct_extract({}, {})", old,
                                                      duck::quote_literal(member.name))));
    members +=
        fmt::format("{}{} := {}", members.empty() ? "" : ", ", duck::quote_name(member.name), text);
  }
  return fmt::format("struct_pack({})", members);
}

Result<std::string> NewValues::updated(size_t column, const std::string& old) const {
  const Field& field = target_->schema().fields[column];
  if (touches(column)) {
    SL_TRY(check_identity(field, true, target_->found.name));
  } else if (is_generated(field)) {
    // Computed anew from the row as it becomes.
    return fmt::format("CAST(NULL AS {})", duck::engine_type(field.type));
  }
  return value_text(field, field.name, {column}, old);
}

Result<std::string> NewValues::inserted(size_t column) const {
  const Field& field = target_->schema().fields[column];
  if (!touches(column)) return assign_default(field, target_->found.name);
  SL_TRY(check_identity(field, false, target_->found.name));
  return value_text(field, field.name, {column},
                    fmt::format("CAST(NULL AS {})", duck::engine_type(field.type)));
}

}  // namespace strandline::engine
