#include "delta/row_id_columns.h"

#include <algorithm>

#include "base/json.h"

namespace strandline::delta {
namespace {

constexpr const char* kOthersDomain = "strandline.rowIdColumnsOfOthers";

void add_new(const std::vector<std::string>& from, std::vector<std::string>* names) {
  for (const std::string& name : from) {
    if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
  }
}

std::string print(const RowIdColumns& columns) {
  JsonWriter json;
  const auto list = [&json](const char* key, const std::vector<std::string>& names) {
    json.key(key);
    json.begin_array();
    for (const std::string& name : names) json.value(name);
    json.end_array();
  };
  json.begin_object();
  list("ids", columns.ids);
  list("versions", columns.versions);
  json.end_object();
  return json.take();
}

}  // namespace

RowIdColumns row_id_columns(const Snapshot& snapshot) {
  RowIdColumns columns;
  const auto id = snapshot.row_id_column();
  const auto version = snapshot.row_commit_version_column();
  if (id && version) columns = {{*id}, {*version}};
  const auto others = snapshot.domains.find(kOthersDomain);
  if (others == snapshot.domains.end()) return columns;
  const auto json = Json::parse(others->second.configuration);
  if (!json.ok()) return columns;
  const auto add = [&json](const char* key, std::vector<std::string>* names) {
    const Json* const list = json->get(key);
    std::vector<std::string> more;
    if (list == nullptr) return;
    for (const Json& name : list->items()) more.push_back(name.text());
    add_new(more, names);
  };
  add("ids", &columns.ids);
  add("versions", &columns.versions);
  return columns;
}

void add_row_id_columns(const Snapshot& other, Snapshot* reader) {
  RowIdColumns columns = row_id_columns(*reader);
  const RowIdColumns more = row_id_columns(other);
  add_new(more.ids, &columns.ids);
  add_new(more.versions, &columns.versions);
  reader->domains[kOthersDomain] = {kOthersDomain, print(columns), false};
}

void keep_row_id_columns(const Metadata& now, std::map<std::string, std::string>* properties) {
  for (const char* key : {kRowIdColumnProperty, kRowVersionColumnProperty}) {
    const auto kept = now.configuration.find(key);
    if (kept != now.configuration.end()) properties->insert_or_assign(key, kept->second);
  }
}

}  // namespace strandline::delta
