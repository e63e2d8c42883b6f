#include "catalog/warehouse.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "strandline/paths.h"

namespace strandline::catalog {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr const char* kOwnFolder = "_strandline";
// Then a UUID: a folder whose table was dropped, to be removed.
constexpr std::string_view kDropped = ".strandline_dropped_";

// Bytes that stand for themselves in a file name. Globs and separators of other readers are encoded
// too, and a leading '.' or '_' since such names are hidden to Delta readers.
bool stands_for_itself(unsigned char byte, bool first) {
  if (byte < 0x20 || byte == 0x7f) return false;
  if (first && (byte == '.' || byte == '_')) return false;
  return std::string_view("/\\%:*?[]{}\"'<>|=#&").find(static_cast<char>(byte)) ==
         std::string_view::npos;
}

std::string encode_name(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (stands_for_itself(byte, i == 0)) {
      out += name[i];
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::string decode_name(const std::string& encoded) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  std::string out;
  for (size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] == '%' && i + 2 < encoded.size()) {
      const int high = digit(encoded[i + 1]);
      const int low = digit(encoded[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += encoded[i];
  }
  return out;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_not_found(const Error& error) { return error.kind == ErrorKind::kNotFound; }

// What a file under _strandline/catalog says a name is.
struct Registered {
  std::optional<View> view;
  std::string location;  // of an external table
};

std::string print_registered(const Registered& entry) {
  JsonWriter json;
  json.begin_object();
  json.key("type");
  json.value(entry.view ? "view" : "table");
  if (entry.view) {
    json.key("sql");
    json.value(entry.view->sql);
    json.key("columns");
    json.begin_array();
    for (const auto& column : entry.view->columns) json.value(column);
    json.end_array();
    json.key("catalog");
    json.value(entry.view->catalog);
    json.key("schema");
    json.value(entry.view->schema);
    if (entry.view->comment) {
      json.key("comment");
      json.value(*entry.view->comment);
    }
  } else {
    json.key("location");
    json.value(entry.location);
  }
  json.end_object();
  return json.take() + "\n";
}

Result<Registered> parse_registered(const std::string& path, const std::string& bytes) {
  const auto damaged = [&path] {
    return corrupt("WAREHOUSE_CORRUPT",
                   "{} is not a catalog entry of Strandline: restore or remove it", path);
  };
  const auto json = Json::parse(bytes);
  if (!json.ok()) return damaged();
  const auto text = [&json](const char* key) -> const std::string* {
    const Json* member = json->get(key);
    return member == nullptr ? nullptr : member->as_string();
  };
  const auto* type = text("type");
  if (type == nullptr) return damaged();
  if (*type == "table") {
    const auto* location = text("location");
    if (location == nullptr) return damaged();
    return Registered{{}, *location};
  }
  const auto* sql = text("sql");
  const auto* catalog = text("catalog");
  const auto* schema = text("schema");
  const Json* columns = json->get("columns");
  if (*type != "view" || sql == nullptr || catalog == nullptr || schema == nullptr ||
      columns == nullptr) {
    return damaged();
  }
  View view{*sql, {}, *catalog, *schema, {}};
  if (const auto* comment = text("comment")) view.comment = *comment;
  for (const auto& column : columns->items()) view.columns.push_back(column.text());
  return Registered{std::move(view), {}};
}

class DirectoryWarehouse : public Warehouse {
 public:
  DirectoryWarehouse(std::shared_ptr<storage::Store> store,
                     std::shared_ptr<delta::ParquetPort> parquet, std::string root)
      : store_(std::move(store)), parquet_(std::move(parquet)), root_(std::move(root)) {}

  const std::string& root() const override { return root_; }
  const std::shared_ptr<storage::Store>& store() const override { return store_; }

  std::string pipeline_directory(const std::string& pipeline_name) const override {
    return own_folder() + "/pipelines/" + encode_name(pipeline_name);
  }

  Status check_format() const {
    auto bytes = store_->read(format_file());
    if (!bytes.ok()) return is_not_found(bytes.error()) ? Status() : Status(bytes.error());
    const auto json = Json::parse(*bytes);
    const Json* member = json.ok() ? json->get("formatVersion") : nullptr;
    const auto version = member == nullptr ? std::nullopt : member->as_int();
    if (!version) {
      return corrupt("WAREHOUSE_CORRUPT", "{} does not name a format version: restore it",
                     format_file());
    }
    if (*version > kFormatVersion) {
      return unsupported("WAREHOUSE_TOO_NEW",
                         "warehouse {} has format version {}, this program knows up to {}: use a "
                         "newer strandline",
                         root_, *version, kFormatVersion);
    }
    return {};
  }

  Status prepare() override {
    auto known = store_->stat(format_file());
    if (known.ok()) return {};
    if (!is_not_found(known.error())) return known.error();
    SL_TRY(store_->make_directories(own_folder()));
    auto written = store_->put_if_absent(format_file(),
                                         fmt::format("{{\"formatVersion\":{}}}\n", kFormatVersion));
    if (!written.ok() && written.error().kind != ErrorKind::kAlreadyExists) return written;
    return {};
  }

  Result<QualifiedName> qualify(const sql::TableName& name,
                                const Defaults& defaults) const override {
    const auto fail = [&name](Error error) {
      if (!name.place.file.empty() || name.place.line > 0) error.place = name.place;
      return error;
    };
    if (name.is_path) {
      return fail(invalid_argument("PATH_NOT_A_NAME",
                                   "{} is a path: a name catalog.schema.table is needed here",
                                   sql::to_string(name)));
    }
    const auto& parts = name.parts;
    if (parts.empty() || parts.size() > 3) {
      return fail(invalid_argument("REQUIRES_SINGLE_PART_NAMESPACE",
                                   "{} has {} parts: a name is catalog.schema.table",
                                   sql::to_string(name), parts.size()));
    }
    for (const auto& part : parts) {
      if (part.empty()) {
        return fail(invalid_argument("INVALID_NAME", "{} has an empty part", sql::to_string(name)));
      }
    }
    QualifiedName out;
    out.name = parts.back();
    out.schema = parts.size() >= 2 ? parts[parts.size() - 2] : defaults.schema;
    out.catalog = parts.size() == 3 ? parts[0] : defaults.catalog;
    if (same_name(out.catalog, "hive_metastore")) {
      return fail(unsupported("UNSUPPORTED_CATALOG",
                              "the catalog hive_metastore is not supported: use another catalog, "
                              "such as {}",
                              defaults.catalog));
    }
    out.catalog = spelling(root_, out.catalog);
    out.schema = spelling(catalog_path(out.catalog), out.schema);
    SL_ASSIGN(auto stored, registered(out));
    if (stored) {
      out.name = stored->first;
    } else {
      out.name = spelling(schema_path(out.catalog, out.schema), out.name);
    }
    return out;
  }

  Result<delta::Table> table(const sql::TableName& name, const Defaults& defaults) const override {
    if (name.is_path) {
      if (name.parts.size() != 1 || name.parts[0].empty()) {
        return invalid_argument("INVALID_NAME", "{} names no path", sql::to_string(name));
      }
      std::error_code failed;
      SL_ASSIGN(const std::string given, local_path(name.parts[0]));
      auto path = std::filesystem::absolute(given, failed).lexically_normal().string();
      if (failed) {
        return io_error("IO_ERROR", "cannot resolve {}: {}", name.parts[0], failed.message());
      }
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      return delta::Table(store_, parquet_, path);
    }
    SL_ASSIGN(const auto qualified, qualify(name, defaults));
    return table(qualified);
  }

  Result<delta::Table> table(const QualifiedName& name) const override {
    SL_ASSIGN(const auto entry, registered(name));
    if (entry && !entry->second.location.empty()) {
      return delta::Table(store_, parquet_, entry->second.location);
    }
    return delta::Table(store_, parquet_, table_path(name));
  }

  Result<bool> table_exists(const QualifiedName& name) const override {
    SL_ASSIGN(const auto handle, table(name));
    return is_there(handle);
  }

  Result<std::optional<View>> view(const QualifiedName& name) const override {
    SL_ASSIGN(auto entry, registered(name));
    if (!entry) return std::optional<View>();
    return std::move(entry->second.view);
  }

  Result<bool> schema_exists(const std::string& catalog, const std::string& schema) const override {
    if (same_name(schema, "default")) return true;
    SL_ASSIGN(const auto names, schemas(catalog));
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return same_name(name, schema); });
  }

  Status create_schema(const std::string& catalog, const std::string& schema,
                       bool if_not_exists) override {
    if (catalog.empty() || schema.empty()) {
      return invalid_argument("INVALID_NAME", "a catalog or schema name is empty");
    }
    if (same_name(catalog, "hive_metastore")) {
      return unsupported("UNSUPPORTED_CATALOG",
                         "the catalog hive_metastore is not supported: use another catalog");
    }
    SL_ASSIGN(const bool exists, schema_exists(catalog, schema));
    if (exists) {
      if (if_not_exists) return {};
      return already_exists("SCHEMA_ALREADY_EXISTS",
                            "schema {}.{} exists: use CREATE SCHEMA IF NOT EXISTS", catalog,
                            schema);
    }
    SL_TRY(prepare());
    return store_->make_directories(schema_path(spelling(root_, catalog), schema));
  }

  Status drop_schema(const std::string& catalog, const std::string& schema, bool cascade) override {
    SL_ASSIGN(const bool exists, schema_exists(catalog, schema));
    if (!exists) return schema_missing(catalog, schema);
    SL_ASSIGN(const auto entries, tables(catalog, schema));
    if (!entries.empty() && !cascade) {
      return invalid_argument("SCHEMA_NOT_EMPTY",
                              "schema {}.{} holds {} and {} more: drop them or use CASCADE",
                              catalog, schema, entries[0].name.to_string(), entries.size() - 1);
    }
    for (const auto& entry : entries) {
      SL_TRY(entry.is_view ? drop_view(entry.name) : drop_table(entry.name));
    }
    const auto stored_catalog = spelling(root_, catalog);
    SL_TRY(store_->remove_tree(
        schema_path(stored_catalog, spelling(catalog_path(stored_catalog), schema))));
    return store_->remove_tree(entry_folder(stored_catalog, schema));
  }

  Status set_schema_comment(const std::string& catalog, const std::string& schema,
                            const std::optional<std::string>& comment) override {
    SL_ASSIGN(const bool exists, schema_exists(catalog, schema));
    if (!exists) return schema_missing(catalog, schema);
    const auto file = comment_file(catalog, schema);
    if (!comment) return store_->remove(file);
    SL_TRY(prepare());
    SL_TRY(store_->make_directories(entry_folder(catalog, schema)));
    return store_->put(file, *comment);
  }

  Result<std::optional<std::string>> schema_comment(const std::string& catalog,
                                                    const std::string& schema) const override {
    auto text = store_->read(comment_file(catalog, schema));
    if (text.ok()) return std::optional<std::string>(std::move(text).value());
    if (is_not_found(text.error())) return std::optional<std::string>();
    return text.error();
  }

  Status create_view(const QualifiedName& name, const View& view, bool or_replace) override {
    SL_ASSIGN(const auto entry, registered(name));
    SL_ASSIGN(const bool is_table, table_exists(name));
    if (is_table || (entry && !entry->second.view)) {
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS", "{} is a table: choose another name",
                            name.to_string());
    }
    if (entry && !or_replace) {
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                            "view {} exists: use CREATE OR REPLACE VIEW", name.to_string());
    }
    return write_entry(name, Registered{view, {}}, entry.has_value());
  }

  Status drop_view(const QualifiedName& name) override {
    SL_ASSIGN(const auto entry, registered(name));
    if (!entry || !entry->second.view) {
      return not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no view {}", name.to_string());
    }
    return store_->remove(entry_file(QualifiedName{name.catalog, name.schema, entry->first}));
  }

  Status register_location(const QualifiedName& name, const std::string& path) override {
    SL_ASSIGN(const auto entry, registered(name));
    SL_ASSIGN(const bool is_table, table_exists(name));
    if (entry || is_table) {
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS", "{} exists: drop it first",
                            name.to_string());
    }
    return write_entry(name, Registered{{}, path}, false);
  }

  Result<bool> is_external(const QualifiedName& name) const override {
    SL_ASSIGN(const auto entry, registered(name));
    return entry.has_value() && !entry->second.location.empty();
  }

  Status drop_table(const QualifiedName& name) override {
    SL_ASSIGN(const auto entry, registered(name));
    if (entry && !entry->second.view) {
      return store_->remove(entry_file(QualifiedName{name.catalog, name.schema, entry->first}));
    }
    SL_ASSIGN(const bool exists, table_exists(name));
    if (!exists) {
      return not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no table {}", name.to_string());
    }
    const auto path = table_path(name);
    const auto dropped =
        schema_path(name.catalog, name.schema) + "/" + std::string(kDropped) + new_uuid();
    // One step takes the name away. What stops after it leaves a folder that is no table.
    const auto moved = store_->rename(path, dropped);
    if (moved.ok()) return store_->remove_tree(dropped);
    if (moved.error().code != "IO_ERROR") return moved.error();
    // Some folders cannot be moved, as those of a container's image. The log goes first: a drop
    // that stops half-way leaves files that no table names.
    SL_TRY(store_->remove_tree(path + "/_delta_log"));
    return store_->remove_tree(path);
  }

  void remove_dropped(const std::string& catalog, const std::string& schema) override {
    const auto stored_catalog = spelling(root_, catalog);
    const auto children =
        store_->list(schema_path(stored_catalog, spelling(catalog_path(stored_catalog), schema)));
    if (!children.ok()) return;
    for (const auto& child : *children) {
      const auto folder = base_name(child.path);
      if (folder.starts_with(kDropped) && parse_uuid(folder.substr(kDropped.size())))
        (void)store_->remove_tree(child.path);
    }
  }

  Status rename_table(const QualifiedName& from, const QualifiedName& to) override {
    SL_ASSIGN(const auto taken, registered(to));
    SL_ASSIGN(const bool is_table, table_exists(to));
    if (taken || is_table) {
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS", "{} exists: choose another name",
                            to.to_string());
    }
    SL_ASSIGN(const bool to_schema, schema_exists(to.catalog, to.schema));
    if (!to_schema) return schema_missing(to.catalog, to.schema);
    SL_ASSIGN(const auto entry, registered(from));
    if (entry && !entry->second.view) {
      SL_TRY(write_entry(to, entry->second, false));
      return store_->remove(entry_file(QualifiedName{from.catalog, from.schema, entry->first}));
    }
    SL_ASSIGN(const bool exists, table_exists(from));
    if (!exists) {
      return not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no table {}", from.to_string());
    }
    const auto schema = schema_path(to.catalog, to.schema);
    SL_TRY(store_->make_directories(schema));
    return store_->rename(table_path(from), schema + "/" + encode_name(to.name));
  }

  Result<std::vector<std::string>> catalogs() const override {
    SL_ASSIGN(auto names, folders(root_));
    return with_default(std::move(names), "main");
  }

  Result<std::vector<std::string>> schemas(const std::string& catalog) const override {
    SL_ASSIGN(auto names, folders(catalog_path(spelling(root_, catalog))));
    return with_default(std::move(names), "default");
  }

  Result<std::vector<Entry>> tables(const std::string& catalog,
                                    const std::string& schema) const override {
    const auto stored_catalog = spelling(root_, catalog);
    const auto stored_schema = spelling(catalog_path(stored_catalog), schema);
    std::vector<Entry> out;
    SL_ASSIGN(const auto names, folders(schema_path(stored_catalog, stored_schema)));
    for (const auto& name : names) {
      const QualifiedName qualified{stored_catalog, stored_schema, name};
      SL_ASSIGN(const bool exists, is_there(delta::Table(store_, parquet_, table_path(qualified))));
      if (exists) out.push_back({qualified, false});
    }
    auto files = store_->list(entry_folder(stored_catalog, stored_schema));
    if (!files.ok()) {
      if (!is_not_found(files.error())) return files.error();
      return out;
    }
    for (const auto& file : *files) {
      const auto name = entry_name(file.path);
      if (!name) continue;
      SL_ASSIGN(const auto bytes, store_->read(file.path));
      SL_ASSIGN(const auto entry, parse_registered(file.path, bytes));
      out.push_back({{stored_catalog, stored_schema, *name}, entry.view.has_value()});
    }
    std::sort(out.begin(), out.end(),
              [](const Entry& a, const Entry& b) { return a.name.name < b.name.name; });
    return out;
  }

 private:
  // A table whose log is damaged is one too: it is listed, and can be dropped.
  static Result<bool> is_there(const delta::Table& table) {
    auto exists = table.exists();
    if (!exists.ok() && exists.error().kind == ErrorKind::kCorrupt) return true;
    return exists;
  }
  std::string own_folder() const { return root_ + "/" + kOwnFolder; }
  std::string format_file() const { return own_folder() + "/warehouse.json"; }
  std::string catalog_path(const std::string& catalog) const {
    return root_ + "/" + encode_name(catalog);
  }
  std::string schema_path(const std::string& catalog, const std::string& schema) const {
    return catalog_path(catalog) + "/" + encode_name(schema);
  }
  std::string table_path(const QualifiedName& name) const {
    const auto schema = schema_path(name.catalog, name.schema);
    return schema + "/" + encode_name(spelling(schema, name.name));
  }
  // Entries are filed under folded catalog and schema names, so that no listing is needed to find
  // them.
  std::string entry_folder(const std::string& catalog, const std::string& schema) const {
    return own_folder() + "/catalog/" + encode_name(fold_name(catalog)) + "/" +
           encode_name(fold_name(schema));
  }
  std::string entry_file(const QualifiedName& name) const {
    return entry_folder(name.catalog, name.schema) + "/" + encode_name(name.name) + ".json";
  }
  // No entry's name: a leading '_' of a name is encoded.
  std::string comment_file(const std::string& catalog, const std::string& schema) const {
    return entry_folder(catalog, schema) + "/_comment";
  }
  static std::optional<std::string> entry_name(const std::string& path) {
    const auto file = base_name(path);
    if (file.size() <= 5 || !file.ends_with(".json")) return std::nullopt;
    return decode_name(file.substr(0, file.size() - 5));
  }

  // The name of an existing child folder that equals name without regard to case, else name.
  std::string spelling(const std::string& folder, const std::string& name) const {
    if (store_->stat(folder + "/" + encode_name(name)).ok()) return name;
    auto children = store_->list(folder);
    if (!children.ok()) return name;
    for (const auto& child : *children) {
      if (!child.is_directory) continue;
      auto known = decode_name(base_name(child.path));
      if (same_name(known, name)) return known;
    }
    return name;
  }

  // Visible subfolders, decoded; none for a missing folder.
  Result<std::vector<std::string>> folders(const std::string& folder) const {
    std::vector<std::string> out;
    auto children = store_->list(folder);
    if (!children.ok()) {
      if (is_not_found(children.error())) return out;
      return children.error();
    }
    for (const auto& child : *children) {
      const auto file = base_name(child.path);
      if (child.is_directory && file[0] != '_' && file[0] != '.') out.push_back(decode_name(file));
    }
    return out;
  }

  static std::vector<std::string> with_default(std::vector<std::string> names,
                                               const char* implied) {
    const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return same_name(name, implied);
    });
    if (!known) names.emplace_back(implied);
    std::sort(names.begin(), names.end());
    return names;
  }

  // Stored spelling and entry of a registered name, if it is one.
  Result<std::optional<std::pair<std::string, Registered>>> registered(
      const QualifiedName& name) const {
    using Found = std::optional<std::pair<std::string, Registered>>;
    auto files = store_->list(entry_folder(name.catalog, name.schema));
    if (!files.ok()) {
      if (is_not_found(files.error())) return Found();
      return files.error();
    }
    for (const auto& file : *files) {
      const auto known = entry_name(file.path);
      if (!known || !same_name(*known, name.name)) continue;
      SL_ASSIGN(const auto bytes, store_->read(file.path));
      SL_ASSIGN(auto entry, parse_registered(file.path, bytes));
      return Found({*known, std::move(entry)});
    }
    return Found();
  }

  Status write_entry(const QualifiedName& name, const Registered& entry, bool replace) {
    SL_ASSIGN(const bool exists, schema_exists(name.catalog, name.schema));
    if (!exists) return schema_missing(name.catalog, name.schema);
    SL_TRY(prepare());
    SL_TRY(store_->make_directories(entry_folder(name.catalog, name.schema)));
    const auto file = entry_file(name);
    return replace ? store_->put(file, print_registered(entry))
                   : store_->put_if_absent(file, print_registered(entry));
  }

  static Error schema_missing(const std::string& catalog, const std::string& schema) {
    return not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}: create it with CREATE SCHEMA",
                     catalog, schema);
  }

  std::shared_ptr<storage::Store> store_;
  std::shared_ptr<delta::ParquetPort> parquet_;
  std::string root_;
};

}  // namespace

std::string QualifiedName::to_string() const {
  return sql::to_string(sql::TableName{{catalog, schema, name}, false, {}});
}

bool operator==(const QualifiedName& a, const QualifiedName& b) {
  return same_name(a.catalog, b.catalog) && same_name(a.schema, b.schema) &&
         same_name(a.name, b.name);
}

Result<std::shared_ptr<Warehouse>> Warehouse::open(std::shared_ptr<storage::Store> store,
                                                   std::shared_ptr<delta::ParquetPort> parquet,
                                                   const std::string& root) {
  SL_ASSIGN(const std::string given, local_path(root));
  std::error_code failed;
  auto path = std::filesystem::absolute(given, failed).lexically_normal().string();
  if (root.empty() || failed) {
    return invalid_argument("INVALID_WAREHOUSE", "'{}' is not a directory name", root);
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  auto known = store->stat(path);
  if (known.ok() && !known->is_directory) {
    return invalid_argument("INVALID_WAREHOUSE", "warehouse {} is a file: name a directory", path);
  }
  if (!known.ok() && !is_not_found(known.error())) return known.error();
  auto warehouse =
      std::make_shared<DirectoryWarehouse>(std::move(store), std::move(parquet), std::move(path));
  SL_TRY(warehouse->check_format());
  return std::shared_ptr<Warehouse>(std::move(warehouse));
}

}  // namespace strandline::catalog
