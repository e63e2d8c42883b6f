#include "delta/checksum.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "delta/action_json.h"
#include "delta/log_files.h"

namespace strandline::delta {

namespace {

namespace dom = simdjson::dom;

std::optional<int64_t> integer(const dom::element& json, const char* name) {
  int64_t value = 0;
  if (json[name].get_int64().get(value)) return std::nullopt;
  return value;
}

// A member that holds what an action of the log does.
template <typename T>
std::optional<T> action(const dom::element& json, const char* name, const char* action_name) {
  dom::element value;
  if (json[name].get(value)) return std::nullopt;
  auto actions =
      parse_actions(fmt::format("{{\"{}\":{}}}", action_name, simdjson::to_string(value)), name);
  if (!actions.ok() || actions->size() != 1) return std::nullopt;
  auto* const found = std::get_if<T>(&actions->front());
  return found == nullptr ? std::nullopt : std::optional<T>(std::move(*found));
}

bool same_schema(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = parse_schema(a);
  const auto second = parse_schema(b);
  return !first.ok() || !second.ok() || print_schema(*first) == print_schema(*second);
}

}  // namespace

bool contradicts_checksum(storage::Store* store, const Snapshot& snapshot) {
  const auto text = store->read(checksum_path(snapshot.table_path, snapshot.version));
  if (!text.ok()) return false;
  dom::parser parser;
  dom::element json;
  if (parser.parse(*text).get(json) || !json.is_object()) return false;

  const auto count = static_cast<int64_t>(snapshot.files.size());
  if (integer(json, "numFiles").value_or(count) != count) return true;
  int64_t size_bytes = 0;
  for (const AddFile& file : snapshot.files) size_bytes += file.size_bytes;
  if (integer(json, "tableSizeBytes").value_or(size_bytes) != size_bytes) return true;
  if (const auto protocol = action<Protocol>(json, "protocol", "protocol")) {
    const Protocol& ours = snapshot.protocol;
    if (protocol->min_reader_version != ours.min_reader_version ||
        protocol->min_writer_version != ours.min_writer_version ||
        protocol->reader_features != ours.reader_features ||
        protocol->writer_features != ours.writer_features) {
      return true;
    }
  }
  if (const auto metadata = action<Metadata>(json, "metadata", "metaData")) {
    const Metadata& ours = snapshot.metadata;
    return metadata->id != ours.id || metadata->partition_columns != ours.partition_columns ||
           metadata->configuration != ours.configuration ||
           !same_schema(metadata->schema_string, ours.schema_string);
  }
  return false;
}

}  // namespace strandline::delta
