#include "duck/file_layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "delta/column_mapping.h"
#include "delta/properties.h"

namespace strandline::duck {
namespace {

// A field of a Parquet file's schema.
struct Node {
  std::string name;
  std::optional<int64_t> id;
  std::vector<Node> children;
};

// The lines of parquet_schema, each field before its children.
Node take_node(const std::vector<std::vector<Cell>>& lines, size_t* at, size_t end) {
  const std::vector<Cell>& line = lines[(*at)++];
  Node node;
  node.name = line[1].value_or("");
  if (line[3]) node.id = std::stoll(*line[3]);
  const int64_t count = line[2] ? std::stoll(*line[2]) : 0;
  for (int64_t i = 0; i < count && *at < end; ++i) {
    node.children.push_back(take_node(lines, at, end));
  }
  return node;
}

const Node* child_at(const Node* node, size_t index) {
  return node != nullptr && index < node->children.size() ? &node->children[index] : nullptr;
}

// The element of a list: in its repeated group, or that group itself in the old form of two levels.
const Node* element_of(const Node* list) {
  const Node* const repeated = child_at(list, 0);
  if (repeated == nullptr || repeated->children.size() != 1) return repeated;
  return &repeated->children[0];
}

// Fits a column to one file.
class Fit {
 public:
  explicit Fit(ColumnMode mode) : mode_(mode) {}

  const Node* find(const Node& parent, const Field& field) const {
    const auto id = mode_ == ColumnMode::kById ? field_id(field) : Result<int64_t>(int64_t{-1});
    const auto found =
        std::find_if(parent.children.begin(), parent.children.end(), [&](const Node& child) {
          return mode_ == ColumnMode::kById ? id.ok() && child.id == *id
                                            : child.name == file_name(field, mode_);
        });
    return found == parent.children.end() ? nullptr : &*found;
  }

  FileColumn column(const Field& field, const Node* node) {
    FileColumn column{field, {}, false};
    if (node != nullptr) rename(&column.field, *node);
    rebuild_ = false;
    column.in_file = shape(&column.field.type, node);
    column.rebuild = rebuild_;
    return column;
  }

 private:
  static void rename(Field* field, const Node& node) {
    field->metadata["delta.columnMapping.physicalName"] = json_string(node.name);
  }

  // The type that the file has; names the members of *logical as the file does.
  DataType shape(DataType* logical, const Node* node) {
    const auto part = [&](std::shared_ptr<const DataType>* inner, const Node* inner_node) {
      DataType changed = **inner;
      DataType in_file = shape(&changed, inner_node);
      *inner = std::make_shared<const DataType>(std::move(changed));
      return in_file;
    };
    switch (logical->id) {
      case TypeId::kArray:
        return DataType::array(part(&logical->element, element_of(node)), logical->contains_null);
      case TypeId::kMap: {
        const Node* const entry = child_at(node, 0);
        DataType key = part(&logical->key, child_at(entry, 0));
        DataType value = part(&logical->element, child_at(entry, 1));
        return DataType::map(std::move(key), std::move(value), logical->contains_null);
      }
      case TypeId::kStruct:
        return shape_struct(logical, node);
      default:
        return *logical;
    }
  }

  DataType shape_struct(DataType* logical, const Node* node) {
    std::vector<Field> members = *logical->fields;
    std::vector<Field> in_file;
    bool shares_one = false;
    for (Field& member : members) {
      if (member.type.id == TypeId::kVoid) continue;
      const Node* const child = node == nullptr ? nullptr : find(*node, member);
      if (child != nullptr) {
        rename(&member, *child);
        shares_one = true;
      }
      DataType type = shape(&member.type, child);
      in_file.push_back(Field{file_name(member, mode_), std::move(type), true, {}});
    }
    // Without a common member the reader cannot tell an empty struct from none: any one will do.
    if (node != nullptr && !shares_one && !node->children.empty()) {
      in_file.push_back(
          Field{node->children[0].name, DataType::primitive(TypeId::kString), true, {}});
      rebuild_ = true;
    }
    *logical = DataType::structure(std::move(members));
    return DataType::structure(std::move(in_file));
  }

  const ColumnMode mode_;
  bool rebuild_ = false;
};

bool holds_struct(const DataType& type) {
  switch (type.id) {
    case TypeId::kStruct:
      return true;
    case TypeId::kArray:
      return holds_struct(*type.element);
    case TypeId::kMap:
      return holds_struct(*type.key) || holds_struct(*type.element);
    default:
      return false;
  }
}

int64_t count_fields(const DataType& type) {
  switch (type.id) {
    case TypeId::kStruct: {
      int64_t count = 0;
      for (const Field& field : *type.fields) count += 1 + count_fields(field.type);
      return count;
    }
    case TypeId::kArray:
      return count_fields(*type.element);
    case TypeId::kMap:
      return count_fields(*type.key) + count_fields(*type.element);
    default:
      return 0;
  }
}

// Text that is equal for equal layouts of one table's columns.
std::string signature(const FileLayout& layout) {
  std::string text;
  for (const FileColumn& column : layout) {
    text += json_string(file_name(column.field, ColumnMode::kByPhysicalName)) + " " +
            engine_type(column.in_file) + "\n";
  }
  return text;
}

}  // namespace

Result<FileLayout> usual_layout(const std::vector<const Field*>& columns, ColumnMode mode) {
  FileLayout layout;
  for (const Field* field : columns) {
    SL_ASSIGN(DataType in_file, file_type(field->name, field->type, mode));
    layout.push_back({*field, std::move(in_file), false});
  }
  return layout;
}

bool may_differ(const delta::Snapshot& snapshot, const std::vector<const Field*>& columns) {
  const ColumnMode mode = column_mode(snapshot);
  if (mode == ColumnMode::kByLogicalName) return false;
  if (std::none_of(columns.begin(), columns.end(),
                   [](const Field* field) { return holds_struct(field->type); })) {
    return false;
  }
  // By name, files differ only in what was dropped, and each field that ever was has an id.
  return mode == ColumnMode::kById ||
         delta::integer_property(snapshot.metadata.configuration, delta::kMaxColumnIdProperty,
                                 INT64_MAX) >
             count_fields(DataType::structure(snapshot.schema.fields));
}

Result<FileLayouts> inspect_files(Connection& connection, const std::vector<const Field*>& columns,
                                  ColumnMode mode, const std::vector<std::string>& paths) {
  SL_TRY(usual_layout(columns, mode));  // for its errors
  std::string list;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < paths.size(); ++i) {
    list += (list.empty() ? "" : ", ") + path_literal(paths[i]);
    places[paths[i]] = i;
  }
  SL_ASSIGN(const Rows schema,
            connection.query(fmt::format("SELECT file_name, name, num_children, field_id FROM "
                                         "parquet_schema([{}]) ORDER BY file_name, column_id",
                                         list)));
  FileLayouts result;
  result.by_path.assign(paths.size(), 0);
  std::map<std::string, size_t> known;
  for (size_t at = 0; at < schema.rows.size();) {
    const std::string path = schema.rows[at][0].value_or("");
    size_t end = at;
    while (end < schema.rows.size() && schema.rows[end][0] == path) ++end;
    const Node root = take_node(schema.rows, &at, end);
    at = end;
    FileLayout layout;
    Fit fit(mode);
    for (const Field* field : columns) layout.push_back(fit.column(*field, fit.find(root, *field)));
    const auto [place, is_new] = known.emplace(signature(layout), result.layouts.size());
    if (is_new) result.layouts.push_back(std::move(layout));
    const auto file = places.find(path);
    if (file == places.end()) {
      return internal_error("FILE_LAYOUT", "the reader names a file {} that it was not given",
                            path);
    }
    result.by_path[file->second] = place->second;
  }
  return result;
}

}  // namespace strandline::duck
