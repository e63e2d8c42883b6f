#include "pipeline/file_options.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"
#include "strandline/paths.h"

namespace strandline::pipeline {
namespace {

class Reader {
 public:
  Reader(const sql::TableUse& use, std::vector<Error>* errors) : use_(use), errors_(errors) {}

  std::optional<FileOptions> read(const std::string& root) {
    const size_t before = errors_->size();
    options_.place = use_.place;
    read_path(root);
    bool has_format = false;
    std::set<std::string> seen;
    const auto take = [&](const std::string& key, const std::optional<std::string>& value,
                          const SourcePlace& place) {
      if (!value) {
        fail(place, invalid_argument("READ_FILES_OPTION",
                                     "option '{}' of read_files needs a literal", key));
        return;
      }
      if (!seen.insert(fold_name(key)).second) {
        fail(place, invalid_argument("READ_FILES_OPTION",
                                     "option '{}' of read_files is given twice", key));
        return;
      }
      if (fold_name(key) == "format") {
        has_format = true;
        read_format(*value, place);
      } else {
        read_option(key, *value, place);
      }
    };
    for (const auto& [key, expr] : use_.named_arguments) {
      take(key, sql::literal_text(*expr), expr->place.line > 0 ? expr->place : use_.place);
    }
    for (const auto& option : use_.stream_options) take(option.key, option.value, option.place);
    if (!has_format && !options_.path.empty()) guess_format();
    check_together();
    if (errors_->size() > before) return {};
    return options_;
  }

 private:
  void fail(const SourcePlace& place, Error error) {
    error.place = place.line > 0 ? place : use_.place;
    errors_->push_back(std::move(error));
  }

  void read_path(const std::string& root) {
    std::optional<std::string> path;
    if (use_.arguments.size() == 1) path = sql::literal_text(*use_.arguments[0]);
    if (!path || path->empty()) {
      fail(use_.place, invalid_argument("READ_FILES_PATH",
                                        "read_files needs one path as text, as in "
                                        "read_files('data', format => 'json')"));
      return;
    }
    options_.path = *path;
    const auto local = local_path(*path);
    if (!local.ok()) fail(use_.place, local.error());
    std::string location = local.ok() ? *local : "";
    namespace fs = std::filesystem;
    location = (fs::path(root) / location).lexically_normal().string();
    while (location.size() > 1 && location.back() == '/') location.pop_back();
    options_.location = location;
  }

  void read_format(const std::string& value, const SourcePlace& place) {
    const std::string format = fold_name(value);
    if (format == "json") {
      options_.format = FileFormat::kJson;
    } else if (format == "csv") {
      options_.format = FileFormat::kCsv;
    } else if (format == "parquet") {
      options_.format = FileFormat::kParquet;
    } else {
      fail(place, unsupported("READ_FILES_FORMAT",
                              "format '{}' is not supported: use json, csv or parquet", value));
    }
  }

  void guess_format() {
    std::string name = fold_name(options_.path);
    for (const char* end : {".gz", ".zst"}) {
      if (name.size() > 4 && name.ends_with(end)) name.resize(name.rfind('.'));
    }
    if (name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".ndjson")) {
      options_.format = FileFormat::kJson;
    } else if (name.ends_with(".csv")) {
      options_.format = FileFormat::kCsv;
    } else if (name.ends_with(".parquet")) {
      options_.format = FileFormat::kParquet;
    } else {
      fail(use_.place,
           invalid_argument("READ_FILES_FORMAT",
                            "read_files('{}') does not say the format of its files: add "
                            "format => 'json', 'csv' or 'parquet'",
                            options_.path));
    }
  }

  bool boolean(const std::string& key, const std::string& value, const SourcePlace& place) {
    const std::string text = fold_name(value);
    if (text != "true" && text != "false") {
      fail(place, invalid_argument("READ_FILES_OPTION", "option '{}' is true or false, not '{}'",
                                   key, value));
    }
    return text == "true";
  }

  int64_t number(const std::string& key, const std::string& value, const SourcePlace& place) {
    std::string text = fold_name(value);
    int64_t unit = 1;
    if (text.ends_with("b") && text.size() > 1) text.pop_back();
    for (const auto& [suffix, factor] :
         {std::pair{'k', int64_t{1} << 10}, std::pair{'m', int64_t{1} << 20},
          std::pair{'g', int64_t{1} << 30}}) {
      if (!text.empty() && text.back() == suffix) {
        unit = factor;
        text.pop_back();
        break;
      }
    }
    const bool digits = !text.empty() && text.size() <= 12 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoll(text) <= 0) {
      fail(place, invalid_argument("READ_FILES_OPTION", "option '{}' is a number above 0, not '{}'",
                                   key, value));
      return 1;
    }
    return std::stoll(text) * unit;
  }

  std::string character(const std::string& key, const std::string& value,
                        const SourcePlace& place) {
    if (value.size() > 1) {
      fail(place, unsupported("READ_FILES_OPTION", "option '{}' is one ASCII character, not '{}'",
                              key, value));
    }
    return value;
  }

  Schema ddl(const std::string& key, const std::string& value, const SourcePlace& place) {
    auto schema = sql::parse_schema_ddl(value, place.file);
    if (schema.ok()) return *schema;
    Error error = schema.error();
    error.message = fmt::format("option '{}' of read_files: {}", key, error.message);
    fail(place, std::move(error));
    ddl_failed_ = true;
    return {};
  }

  void only(const std::string& key, const std::string& value, const char* allowed,
            const SourcePlace& place) {
    if (fold_name(value) != fold_name(allowed)) {
      fail(place, unsupported("READ_FILES_OPTION",
                              "{} => '{}' is not supported: only '{}', which is the default here",
                              key, value, allowed));
    }
  }

  void read_option(const std::string& key, const std::string& value, const SourcePlace& place) {
    const std::string name = fold_name(key);
    if (name == "schema") {
      options_.schema = ddl(key, value, place);
    } else if (name == "schemahints") {
      options_.schema_hints = ddl(key, value, place);
    } else if (name == "rescueddatacolumn") {
      options_.rescued_column = value;
    } else if (name == "filenamepattern" || name == "pathglobfilter" ||
               name == "pathglobalfilter") {
      options_.name_pattern = value;
    } else if (name == "recursivefilelookup") {
      options_.recursive = boolean(key, value, place);
    } else if (name == "allowoverwrites") {
      options_.allow_overwrites = boolean(key, value, place);
    } else if (name == "maxfilespertrigger") {
      options_.max_files = number(key, value, place);
    } else if (name == "maxbytespertrigger") {
      options_.max_bytes = number(key, value, place);
    } else if (name == "header") {
      csv_only_.emplace_back(key, place);
      options_.header = boolean(key, value, place);
    } else if (name == "inferschema") {
      csv_only_.emplace_back(key, place);
      options_.infer_types = boolean(key, value, place);
    } else if (name == "infercolumntypes") {
      options_.infer_types = boolean(key, value, place);
    } else if (name == "sep" || name == "delimiter") {
      csv_only_.emplace_back(key, place);
      options_.separator = value == "\\t" ? "\t" : value;
      if (options_.separator.empty() || options_.separator.size() > 4) {
        fail(place, invalid_argument("READ_FILES_OPTION", "option '{}' is one to four bytes", key));
      }
    } else if (name == "quote") {
      csv_only_.emplace_back(key, place);
      options_.quote = character(key, value, place);
    } else if (name == "escape") {
      csv_only_.emplace_back(key, place);
      options_.escape = character(key, value, place);
    } else if (name == "nullvalue") {
      csv_only_.emplace_back(key, place);
      options_.null_value = value;
    } else if (name == "comment") {
      csv_only_.emplace_back(key, place);
      options_.comment = character(key, value, place);
    } else if (name == "multiline") {
      options_.multi_line = boolean(key, value, place);
    } else if (name == "mode") {
      only(key, value, "FAILFAST", place);
    } else if (name == "encoding" || name == "charset") {
      only(key, value, "UTF-8", place);
    } else if (name == "includeexistingfiles") {
      only(key, value, "true", place);
    } else if (name == "schemaevolutionmode") {
      only(key, value, "addNewColumns", place);
    } else {
      fail(place,
           unsupported("READ_FILES_OPTION", "option '{}' of read_files is not supported", key));
    }
  }

  void check_together() {
    if (options_.format != FileFormat::kCsv) {
      for (const auto& [key, place] : csv_only_) {
        fail(place,
             invalid_argument("READ_FILES_OPTION", "option '{}' is for csv files, these are {}",
                              key, to_string(options_.format)));
      }
    }
    if (options_.schema) {
      // A schema that names _rescued_data asks for it.
      if (!options_.rescued_column) {
        if (const auto index = options_.schema->find("_rescued_data")) {
          options_.rescued_column = options_.schema->fields[*index].name;
        }
      }
      if (options_.rescued_column) {
        if (const auto index = options_.schema->find(*options_.rescued_column)) {
          if (options_.schema->fields[*index].type.id != TypeId::kString) {
            fail(use_.place,
                 invalid_argument("READ_FILES_OPTION", "column '{}' for rescued data is STRING",
                                  *options_.rescued_column));
          }
          options_.schema->fields.erase(options_.schema->fields.begin() +
                                        static_cast<long>(*index));
        }
      }
      if (options_.schema->fields.empty() && !ddl_failed_) {
        fail(use_.place,
             invalid_argument("READ_FILES_OPTION", "the schema of read_files has no column"));
      }
      check_types(*options_.schema);
    }
    check_types(options_.schema_hints);
    if (options_.rescued_column && options_.format == FileFormat::kParquet) {
      fail(use_.place, unsupported("READ_FILES_OPTION", "rescued data is for json and csv files"));
    }
    if (options_.rescued_column && options_.multi_line && options_.format == FileFormat::kJson) {
      fail(use_.place, unsupported("READ_FILES_OPTION",
                                   "rescued data needs one JSON value a line: leave out "
                                   "multiLine or '{}'",
                                   *options_.rescued_column));
    }
  }

  void check_types(const Schema& schema) {
    std::set<std::string> names;
    for (const auto& field : schema.fields) {
      if (!names.insert(fold_name(field.name)).second) {
        fail(use_.place,
             invalid_argument("READ_FILES_OPTION", "column '{}' is given twice", field.name));
      }
      if (same_name(field.name, "_metadata")) {
        fail(use_.place, invalid_argument("READ_FILES_OPTION",
                                          "'_metadata' is the name of the files' own data"));
      }
      if (options_.format == FileFormat::kCsv && field.type.is_nested()) {
        fail(use_.place, unsupported("READ_FILES_OPTION",
                                     "column '{}': a csv file has no {} values: read "
                                     "STRING and use from_json",
                                     field.name, to_sql(field.type)));
      }
      if (field.type.id == TypeId::kVariant || field.type.id == TypeId::kInterval) {
        fail(use_.place, unsupported("READ_FILES_OPTION", "column '{}': type {} is not supported",
                                     field.name, to_sql(field.type)));
      }
    }
  }

  const sql::TableUse& use_;
  std::vector<Error>* errors_;
  bool ddl_failed_ = false;
  FileOptions options_;
  std::vector<std::pair<std::string, SourcePlace>> csv_only_;
};

}  // namespace

const char* to_string(FileFormat format) {
  switch (format) {
    case FileFormat::kJson:
      return "json";
    case FileFormat::kCsv:
      return "csv";
    case FileFormat::kParquet:
      return "parquet";
  }
  return "";
}

std::optional<FileOptions> read_file_options(const sql::TableUse& use, const std::string& root,
                                             std::vector<Error>* errors) {
  return Reader(use, errors).read(root);
}

}  // namespace strandline::pipeline
