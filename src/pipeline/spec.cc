#include "pipeline/spec.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "pipeline/glob.h"
#include "strandline/paths.h"

namespace strandline::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpecNames[] = {"spark-pipeline.yml", "spark-pipeline.yaml", "pipeline.yml",
                                      "pipeline.yaml"};

std::string absolute(const std::string& path) {
  std::error_code ignored;
  std::string text = fs::absolute(path, ignored).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string join(const std::string& folder, const std::string& path) {
  return absolute((fs::path(folder) / path).string());
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Reads one spec file into a LoadedSpec; every mistake is noted with its place.
class SpecReader {
 public:
  SpecReader(LoadedSpec* out, std::string display) : out_(out), display_(std::move(display)) {}

  void read(const std::string& text) {
    try {
      const YAML::Node node = YAML::Load(text);
      if (node.IsNull()) return fail(node, "the spec file is empty: it needs at least 'name: …'");
      if (!node.IsMap()) return fail(node, "a spec file is a list of 'key: value' lines");
      read_root(node);
    } catch (const YAML::Exception& error) {
      fail_at(error.mark, error.msg);
    }
  }

  const std::vector<std::pair<std::string, SourcePlace>>& globs() const { return globs_; }
  const std::optional<std::string>& storage() const { return storage_; }

 private:
  void read_root(const YAML::Node& node) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      if (!seen.insert(key).second) {
        fail(entry.first, fmt::format("'{}' is given twice", key));
      } else if (key == "name") {
        out_->spec.name = text_of(entry.second, key);
      } else if (key == "catalog") {
        out_->spec.defaults.catalog = text_of(entry.second, key);
      } else if (key == "schema" || key == "database" || key == "target") {
        if (schema_key_.empty()) {
          out_->spec.defaults.schema = text_of(entry.second, key);
          schema_key_ = key;
        } else {
          fail(entry.first, fmt::format("'{}' and '{}' mean the same: keep one", schema_key_, key));
        }
      } else if (key == "storage") {
        storage_ = text_of(entry.second, key);
      } else if (key == "configuration") {
        read_configuration(entry.second);
      } else if (key == "libraries") {
        read_libraries(entry.second);
      } else {
        fail(entry.first,
             fmt::format("unknown key '{}': a spec file may have name, catalog, schema, "
                         "configuration, libraries and storage",
                         key));
      }
    }
    if (seen.count("name") == 0) fail(node, "'name' is missing");
  }

  void read_configuration(const YAML::Node& node) {
    if (node.IsNull()) return;
    if (!node.IsMap()) return fail(node, "'configuration' is a map of keys to values");
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      out_->spec.configuration[key] = text_of(entry.second, "configuration." + key);
    }
  }

  void read_libraries(const YAML::Node& node) {
    if (!node.IsSequence()) return fail(node, "'libraries' is a list of '- glob:' entries");
    for (const auto& library : node) {
      if (!library.IsMap() || library.size() != 1) {
        fail(library, "an entry of 'libraries' is one 'glob:' with 'include: …'");
        continue;
      }
      const auto kind = library.begin()->first.as<std::string>();
      const YAML::Node value = library.begin()->second;
      if (kind == "glob" && value.IsMap() && value.size() == 1 && value["include"]) {
        globs_.emplace_back(text_of(value["include"], "include"), place(value["include"].Mark()));
      } else if (kind == "file" && value.IsMap() && value.size() == 1 && value["path"]) {
        globs_.emplace_back(text_of(value["path"], "path"), place(value["path"].Mark()));
      } else {
        fail(library, fmt::format("'{}' of 'libraries' is not supported: write '- glob: {{include: "
                                  "transformations/**}}'",
                                  kind));
      }
    }
  }

  std::string text_of(const YAML::Node& node, const std::string& key) {
    if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
    if (node.IsScalar() && key.rfind("configuration.", 0) == 0) return "";
    fail(node, fmt::format("'{}' needs one value", key));
    return "";
  }

  SourcePlace place(const YAML::Mark& mark) const {
    return {display_, mark.is_null() ? 0 : mark.line + 1, mark.is_null() ? 0 : mark.column + 1};
  }
  void fail(const YAML::Node& node, const std::string& message) { fail_at(node.Mark(), message); }
  void fail_at(const YAML::Mark& mark, const std::string& message) {
    Error error = invalid_argument("PIPELINE_SPEC", "{}", message);
    error.place = place(mark);
    out_->errors.push_back(std::move(error));
  }

  LoadedSpec* out_;
  std::string display_;
  std::string schema_key_;
  std::optional<std::string> storage_;
  std::vector<std::pair<std::string, SourcePlace>> globs_;
};

// path below root, as messages show it.
std::string display_of(const std::string& shown_root, const std::string& root,
                       const std::string& path) {
  std::string below = path.substr(0, root.size()) == root ? path.substr(root.size()) : path;
  while (!below.empty() && below[0] == '/') below.erase(0, 1);
  if (shown_root.empty() || shown_root == ".") return below.empty() ? "." : below;
  if (below.empty()) return shown_root;
  return ends_with(shown_root, "/") ? shown_root + below : shown_root + "/" + below;
}

class Loader {
 public:
  Loader(storage::Store& store, const std::string& path) : store_(store), given_(path) {}

  // Of the warehouse; an error is noted.
  std::string folder_of(const std::string& text) {
    auto path = local_path(text);
    if (path.ok()) return *path;
    out_.errors.push_back(path.error());
    return "warehouse";
  }

  LoadedSpec load(const std::optional<std::string>& warehouse) {
    const auto local = local_path(given_);
    if (!local.ok()) {
      out_.errors.push_back(local.error());
      return std::move(out_);
    }
    given_ = *local;
    const std::string path = absolute(given_.empty() ? "." : given_);
    const auto info = store_.stat(path);
    if (!info.ok()) {
      Error error = info.error();
      if (error.kind == ErrorKind::kNotFound) {
        error = not_found(
            "PIPELINE_NOT_FOUND",
            "there is no pipeline at '{}': name a folder with .sql or .py files or a spec file; "
            "'strandline init NAME' makes one",
            given_.empty() ? "." : given_);
      }
      out_.errors.push_back(std::move(error));
      return std::move(out_);
    }
    std::string spec_file;
    if (info->is_directory) {
      out_.spec.root = path;
      shown_root_ = given_.empty() ? "." : given_;
      for (const char* name : kSpecNames) {
        const std::string candidate = path + "/" + name;
        if (spec_file.empty() && store_.stat(candidate).ok()) spec_file = candidate;
      }
    } else {
      spec_file = path;
      out_.spec.root = fs::path(path).parent_path().string();
      shown_root_ = fs::path(given_).parent_path().string();
    }
    out_.spec.name = fs::path(out_.spec.root).filename().string();
    if (out_.spec.name.empty()) out_.spec.name = "pipeline";

    std::optional<std::string> storage = warehouse;
    out_.spec.warehouse =
        warehouse ? absolute(folder_of(*warehouse)) : join(out_.spec.root, "warehouse");
    if (spec_file.empty()) {
      find_files_without_spec();
    } else if (!ends_with(spec_file, ".yml") && !ends_with(spec_file, ".yaml")) {
      out_.errors.push_back(invalid_argument(
          "PIPELINE_SPEC", "'{}' is neither a folder nor a spec file (.yml, .yaml)", given_));
    } else {
      read_spec(spec_file, &storage);
    }
    if (!warehouse && storage) out_.spec.warehouse = join(out_.spec.root, folder_of(*storage));
    sort_files();
    return std::move(out_);
  }

 private:
  void read_spec(const std::string& spec_file, std::optional<std::string>* storage) {
    auto text = store_.read(spec_file);
    if (!text.ok()) {
      out_.errors.push_back(text.error());
      return;
    }
    const std::string display = display_of(shown_root_, out_.spec.root, spec_file);
    SpecReader reader(&out_, display);
    reader.read(*text);
    if (!*storage) *storage = reader.storage();
    if (reader.globs().empty()) find_files_without_spec();
    for (const auto& [include, place] : reader.globs()) {
      const auto local = local_path(include);
      if (!local.ok()) {
        Error error = local.error();
        error.place = place;
        out_.errors.push_back(std::move(error));
        continue;
      }
      const auto listed = list_files(store_, join(out_.spec.root, *local));
      if (!listed.ok() || listed->empty()) {
        Error error = not_found("PIPELINE_SPEC", "no file matches '{}'", include);
        error.place = place;
        out_.errors.push_back(std::move(error));
        continue;
      }
      for (const auto& file : *listed) add_file(file.path);
    }
  }

  void find_files_without_spec() {
    std::string folder = out_.spec.root + "/transformations";
    const auto info = store_.stat(folder);
    if (!info.ok() || !info->is_directory) folder = out_.spec.root;
    auto listed =
        list_files(store_, folder, {out_.spec.root + "/explorations", out_.spec.warehouse});
    if (!listed.ok()) {
      out_.errors.push_back(listed.error());
      return;
    }
    for (const auto& file : *listed) add_file(file.path);
    if (out_.spec.files.empty() && out_.errors.empty()) {
      out_.errors.push_back(
          not_found("PIPELINE_EMPTY",
                    "'{}' holds no .sql or .py file: write the pipeline's statements into "
                    "one, or name the folder that has them",
                    display_of(shown_root_, out_.spec.root, folder)));
    }
  }

  void add_file(const std::string& path) {
    const std::string below = path.substr(out_.spec.root.size());
    if (below.rfind("/explorations/", 0) == 0) return;
    if (ends_with(path, ".sql") || ends_with(path, ".py"))
      out_.spec.files.push_back({path, display_of(shown_root_, out_.spec.root, path)});
  }

  void sort_files() {
    auto& files = out_.spec.files;
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    files.erase(std::unique(files.begin(), files.end(),
                            [](const auto& a, const auto& b) { return a.path == b.path; }),
                files.end());
  }

  storage::Store& store_;
  std::string given_;
  std::string shown_root_;
  LoadedSpec out_;
};

}  // namespace

LoadedSpec load_spec(storage::Store& store, const std::string& path,
                     const std::optional<std::string>& warehouse) {
  return Loader(store, path).load(warehouse);
}

}  // namespace strandline::pipeline
