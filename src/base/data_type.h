// The logical types of columns, shared by every layer. One type system: Delta's (Spark's).
#pragma once

#include <strandline/result.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace strandline {

enum class TypeId {
  kString,
  kLong,
  kInteger,
  kShort,
  kByte,
  kFloat,
  kDouble,
  kDecimal,
  kBoolean,
  kBinary,
  kDate,
  kTimestamp,     // an instant, microseconds UTC
  kTimestampNtz,  // a wall clock reading, microseconds
  kVoid,          // only nulls; reads as NULL, never in a file
  kVariant,
  kInterval,  // named so that they can be refused by name
  kStruct,
  kArray,
  kMap,
};

struct Field;

// A value type; children are shared and immutable.
struct DataType {
  TypeId id = TypeId::kVoid;
  int precision = 0;                                 // kDecimal
  int scale = 0;                                     // kDecimal
  std::shared_ptr<const std::vector<Field>> fields;  // kStruct
  std::shared_ptr<const DataType> element;           // kArray element, kMap value
  std::shared_ptr<const DataType> key;               // kMap key
  bool contains_null = true;                         // kArray elements, kMap values

  static DataType primitive(TypeId id);
  static DataType decimal(int precision, int scale);
  static DataType structure(std::vector<Field> fields);
  static DataType array(DataType element, bool contains_null = true);
  static DataType map(DataType key, DataType value, bool value_contains_null = true);

  bool is_nested() const {
    return id == TypeId::kStruct || id == TypeId::kArray || id == TypeId::kMap;
  }
};

// Same type, struct field names compared without regard to case; nullability is ignored.
bool same_type(const DataType& a, const DataType& b);
// May be a key or a sequence (auto-cdc.md section 6): every part sortable; not map, variant,
// interval.
bool is_sortable(const DataType& type);
// Spark SQL text: "BIGINT", "DECIMAL(10,2)", "STRUCT<a: INT, b: STRING>", as shown to users.
std::string to_sql(const DataType& type);

struct Field {
  std::string name;
  DataType type;
  bool nullable = true;
  // Delta field metadata: key -> raw JSON text of the value (column mapping, comments, ...).
  std::map<std::string, std::string> metadata;
};

// Columns of a table in order. Names are unique without regard to case.
struct Schema {
  std::vector<Field> fields;

  // Index of the column with that name (case-insensitive, simple folding), if any.
  std::optional<size_t> find(const std::string& name) const;
  const Field* get(const std::string& name) const;
};

// Unicode simple case folding of UTF-8 text, for name comparison (auto-cdc.md section 6).
std::string fold_name(const std::string& name);
bool same_name(const std::string& a, const std::string& b);

// The least type that holds every value of both (auto-cdc.md section 6), if there is one:
// integer widths, float to double, decimals, byte..int into decimal/double where exact,
// date to timestamp_ntz, void to anything, structs by field.
std::optional<DataType> least_common_type(const DataType& a, const DataType& b);

}  // namespace strandline
