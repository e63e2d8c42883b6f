#include "duck/extensions.h"

#include <duckdb.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace strandline::duck {
namespace {

struct Folders {
  std::mutex mutex;
  std::vector<std::string> all;
};

Folders& folders() {
  static auto* known = new Folders;
  return *known;
}

std::vector<std::string> folders_to_search() {
  std::vector<std::string> out;
  {
    auto& known = folders();
    const std::lock_guard lock(known.mutex);
    out = known.all;
  }
  const char* variable = std::getenv("STRANDLINE_EXTENSIONS");
  const std::string list = variable == nullptr ? "" : variable;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

void add_extension_folder(const std::string& folder) {
  auto& known = folders();
  const std::lock_guard lock(known.mutex);
  for (const auto& one : known.all) {
    if (one == folder) return;
  }
  known.all.push_back(folder);
}

const char* library_version() { return duckdb_library_version(); }

Status load_extension(Connection& connection, const std::string& name, const std::string& purpose) {
  SL_ASSIGN(const auto loaded, connection.query_int(fmt::format(
                                   "SELECT count(*) FROM duckdb_extensions() WHERE extension_name "
                                   "= {} AND loaded",
                                   quote_literal(name))));
  if (loaded > 0) return {};
  for (const auto& folder : folders_to_search()) {
    const auto path = fmt::format("{}/{}.duckdb_extension", folder, name);
    SL_ASSIGN(const auto there, connection.query_int(fmt::format("SELECT count(*) FROM glob({})",
                                                                 quote_literal(path))));
    if (there == 0) continue;
    const auto done = connection.execute("LOAD " + quote_literal(path));
    if (done.ok()) return {};
    return not_found("JDBC_EXTENSION_MISSING",
                     "{} needs DuckDB's extension {}, and '{}' does not fit: {}", purpose, name,
                     path, done.error().message);
  }
  if (connection.execute("LOAD " + name).ok()) return {};
  return not_found(
      "JDBC_EXTENSION_MISSING",
      "{} needs DuckDB's extension {} of version {}: pip install 'strandline[jdbc]', or "
      "put {}.duckdb_extension into a folder that the environment variable "
      "STRANDLINE_EXTENSIONS names",
      purpose, name, library_version(), name);
}

}  // namespace strandline::duck
