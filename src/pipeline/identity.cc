#include "pipeline/identity.h"

#include <filesystem>

#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"

namespace strandline::pipeline {
namespace {

std::string file_of(const Context& context) {
  return context.warehouse->pipeline_directory(context.spec.name) + "/pipeline.json";
}

// A name stands for one pipeline of a warehouse. A folder that no longer holds the pipeline has
// moved here, and a warehouse that was copied belongs to whoever uses the copy.
Status check_same_pipeline(const Context& context, const std::string& folder,
                           const std::string& place, const std::string& warehouse) {
  const PipelineSpec& spec = context.spec;
  std::error_code gone;
  if (folder.empty() || warehouse != context.warehouse->root() || folder == spec.root ||
      std::filesystem::equivalent(folder, spec.root, gone)) {
    return {};
  }
  const auto other = load_spec(*context.store, place, std::nullopt);
  if (other.spec.files.empty() || other.spec.name != spec.name) return {};
  return already_exists(
      "PIPELINE_NAME_TAKEN",
      "warehouse '{}' already has a pipeline named '{}', that of '{}', and '{}' is another one: "
      "give this one a name of its own ('name: …' in its spark-pipeline.yml) or use another "
      "--warehouse; if the pipeline moved here, remove or rename the one in '{}' and run again",
      context.warehouse->root(), spec.name, folder, spec.root, folder);
}

}  // namespace

Result<Identity> read_identity(const Context& context) {
  Identity identity;
  const auto text = context.store->read(file_of(context));
  if (!text.ok()) {
    if (text.error().kind == ErrorKind::kNotFound) return identity;
    return text.error();
  }
  const auto json = Json::parse(*text);
  const Json* id = json.ok() ? json->get("id") : nullptr;
  if (id == nullptr || !id->is_string()) {
    return corrupt("CHECKPOINT_CORRUPT", "'{}' is not a file of this program", file_of(context));
  }
  identity.id = id->text();
  const auto recorded = [&](const char* key) {
    const Json* value = json->get(key);
    return value != nullptr && value->is_string() ? value->text() : std::string();
  };
  const std::string table = recorded("table");
  if (table.empty() == context.spec.of_one_table) {
    return already_exists(
        "PIPELINE_NAME_TAKEN", "warehouse '{}' already has a pipeline named '{}', {}: {}",
        context.warehouse->root(), context.spec.name,
        table.empty() ? "that of '" + recorded("folder") + "'"
                      : "that of the table " + table + ", which is declared on its own",
        table.empty() ? "give the table another name"
                      : "give this one a name of its own ('name: …' in its spark-pipeline.yml)");
  }
  if (context.spec.of_one_table) {
    identity.place_is_known = true;
    return identity;
  }
  const std::string folder = recorded("folder");
  const std::string warehouse = recorded("warehouse");
  identity.place_is_known = folder == context.spec.root && warehouse == context.warehouse->root();
  SL_TRY(check_same_pipeline(context, folder, recorded("place"), warehouse));
  return identity;
}

Result<std::string> keep_identity(const Context& context, const Identity& identity,
                                  const std::string& place) {
  if (!identity.id.empty() && identity.place_is_known) return identity.id;
  const std::string id = identity.id.empty() ? new_uuid() : identity.id;
  JsonWriter w;
  w.begin_object();
  w.key("id");
  w.value(id);
  w.key("name");
  w.value(context.spec.name);
  if (context.spec.of_one_table) {
    w.key("table");
    w.value(context.graph.datasets[0].name.to_string());
  } else {
    w.key("folder");
    w.value(context.spec.root);
    w.key("place");  // what to look at to see whether the pipeline is still there
    w.value(std::filesystem::absolute(place).lexically_normal().string());
  }
  w.key("warehouse");
  w.value(context.warehouse->root());
  w.end_object();
  SL_TRY(context.store->put(file_of(context), w.take()));
  return id;
}

}  // namespace strandline::pipeline
