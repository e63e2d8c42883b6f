#include "delta/check_schema.h"

#include <map>

#include "base/error.h"
#include "delta/column_mapping.h"

namespace strandline::delta {

namespace {

class Checker {
 public:
  explicit Checker(bool mapped) : mapped_(mapped) {}

  Status fields(const std::vector<Field>& fields, const std::string& parent) {
    std::map<std::string, std::string> seen;
    for (const Field& field : fields) {
      const std::string path = parent.empty() ? field.name : parent + "." + field.name;
      SL_TRY(name(field.name, path, parent));
      const auto [other, is_new] = seen.emplace(fold_name(field.name), field.name);
      if (!is_new) {
        return invalid_argument(
            "DELTA_DUPLICATE_COLUMNS_FOUND", "columns '{}' and '{}'{} {}", other->second,
            field.name, parent.empty() ? "" : " of " + parent,
            other->second == field.name ? "have one name" : "differ only in case");
      }
      // A column without a type is in no file and reads as NULL.
      if (field.type.id != TypeId::kVoid) SL_TRY(type(field.type, path));
    }
    return {};
  }

 private:
  Status name(const std::string& name, const std::string& path, const std::string& parent) const {
    if (name.empty()) {
      return invalid_argument("DELTA_INVALID_TABLE_DEFINITION", "a column of {} has an empty name",
                              parent.empty() ? "the table" : parent);
    }
    if (mapped_ || name.find_first_of(kMappedCharacters) == std::string::npos) return {};
    return invalid_argument(
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "column '{}' has one of the characters ' ,;{{}}()=', tab or newline in its name; give it "
        "another name with AS, or keep it with the table property '{}' = 'name'",
        path, kMappingModeProperty);
  }

  Status type(const DataType& type, const std::string& where) {
    switch (type.id) {
      case TypeId::kStruct:
        return fields(*type.fields, where);
      case TypeId::kArray:
        return this->type(*type.element, where + ".element");
      case TypeId::kMap:
        SL_TRY(this->type(*type.key, where + ".key"));
        return this->type(*type.element, where + ".value");
      case TypeId::kVoid:
      case TypeId::kVariant:
      case TypeId::kInterval:
        return unsupported("DELTA_UNSUPPORTED_DATA_TYPE",
                           "column {} has type {}, which cannot be stored; cast it to another type "
                           "or leave it out",
                           where, to_sql(type));
      default:
        return {};
    }
  }

  const bool mapped_;
};

}  // namespace

Status check_columns(const std::vector<Field>& fields, bool mapped) {
  return Checker(mapped).fields(fields, "");
}

Status check_reserved_names(const Schema& schema, const Schema& before, const Metadata& metadata) {
  constexpr std::string_view kOwnPrefix = "__strandline_";
  for (const Field& field : schema.fields) {
    if (!fold_name(field.name).starts_with(kOwnPrefix) || before.find(field.name)) continue;
    return invalid_argument("RESERVED_COLUMN_NAME",
                            "a column cannot be called {}: names that begin with {} are reserved; "
                            "give it another name",
                            field.name, kOwnPrefix);
  }
  const auto feed = metadata.configuration.find("delta.enableChangeDataFeed");
  if (feed == metadata.configuration.end() || feed->second != "true") return {};
  for (const char* name : {"_change_type", "_commit_version", "_commit_timestamp"}) {
    if (!schema.find(name)) continue;
    if (before.find(name)) {
      return invalid_argument("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
                              "the table has a column {}, a name that its change data feed needs: "
                              "rename the column before 'delta.enableChangeDataFeed' is 'true'",
                              name);
    }
    return invalid_argument("RESERVED_CDC_COLUMNS_ON_WRITE",
                            "a column cannot be called {} where 'delta.enableChangeDataFeed' is "
                            "'true': the change data feed needs the name; give it another one",
                            name);
  }
  return {};
}

}  // namespace strandline::delta
