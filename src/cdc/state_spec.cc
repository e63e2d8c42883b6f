#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "cdc/plan.h"
#include "sql/parser.h"

namespace strandline::cdc {

namespace {

// Format 2 has what format 1 did not know: partial updates, hand edits, the second axis of time.
constexpr int kPlainFormat = 1;
constexpr int kStateFormat = 2;

Error broken(const std::string& what) {
  return corrupt(
      "STATE_SPEC",
      "the AUTO CDC state's description is damaged ({}); a full refresh of the table makes it anew",
      what);
}

Result<DataType> read_type(const Json* json) {
  if (json == nullptr || !json->is_string()) return broken("a type is missing");
  Result<DataType> type = sql::parse_type(json->text(), "state");
  if (!type.ok()) return broken(type.error().message);
  return type;
}

}  // namespace

const char* to_string(ScdType type) {
  switch (type) {
    case ScdType::kType1:
      return "SCD TYPE 1";
    case ScdType::kType2:
      return "SCD TYPE 2";
    case ScdType::kBitemporal:
      return "BITEMPORAL";
  }
  return "SCD TYPE 1";
}

std::string StateSpec::to_json() const {
  JsonWriter json;
  json.begin_object();
  json.key("format");
  json.value(partial || edited || system_sequence_type ? kStateFormat : kPlainFormat);
  json.key("storedAs");
  json.value(to_string(scd_type));
  json.key("keys");
  json.begin_array();
  for (const Field& field : keys) {
    json.begin_object();
    json.key("name");
    json.value(field.name);
    json.key("type");
    json.value(to_sql(field.type));
    json.end_object();
  }
  json.end_array();
  json.key("sequenceType");
  json.value(to_sql(sequence_type));
  if (system_sequence_type) {
    json.key("systemSequenceType");
    json.value(to_sql(*system_sequence_type));
  }
  json.key("tracked");
  json.begin_object();
  for (const auto& [name, is_tracked] : tracked) {
    json.key(name);
    json.value(is_tracked);
  }
  json.end_object();
  json.key("selectedEver");
  json.begin_array();
  for (const std::string& name : selected_ever) json.value(name);
  json.end_array();
  if (sequence_column) {
    json.key("sequenceColumn");
    json.value(*sequence_column);
  }
  json.key("truncates");
  json.value(truncates);
  if (partial) {
    json.key("partial");
    json.value(true);
  }
  if (!by_leaves.empty()) {
    json.key("byLeaves");
    json.begin_array();
    for (const std::string& name : by_leaves) json.value(name);
    json.end_array();
  }
  if (edited) {
    json.key("edited");
    json.value(true);
  }
  json.end_object();
  return json.take();
}

Result<StateSpec> StateSpec::from_json(const std::string& text) {
  Result<Json> parsed = Json::parse(text);
  if (!parsed.ok()) return broken(parsed.error().message);
  const Json& json = *parsed;

  const Json* format = json.get("format");
  if (format == nullptr || !format->as_int()) return broken("it has no format number");
  if (*format->as_int() < kPlainFormat || *format->as_int() > kStateFormat) {
    return corrupt(
        "STATE_SPEC",
        "the AUTO CDC state was written in format {} and this version reads formats up to {}: "
        "use the newer "
        "strandline, or make a full refresh of the table",
        *format->as_int(), kStateFormat);
  }

  StateSpec spec;
  const Json* stored_as = json.get("storedAs");
  const std::string stored = stored_as != nullptr ? stored_as->text() : "";
  if (stored == to_string(ScdType::kType1)) {
    spec.scd_type = ScdType::kType1;
  } else if (stored == to_string(ScdType::kType2)) {
    spec.scd_type = ScdType::kType2;
  } else if (stored == to_string(ScdType::kBitemporal)) {
    spec.scd_type = ScdType::kBitemporal;
  } else {
    return broken("storedAs is '" + stored + "'");
  }

  const Json* keys = json.get("keys");
  if (keys == nullptr || keys->items().empty()) return broken("it has no keys");
  for (const Json& key : keys->items()) {
    const Json* name = key.get("name");
    if (name == nullptr || !name->is_string()) return broken("a key has no name");
    Field field;
    field.name = name->text();
    SL_ASSIGN(field.type, read_type(key.get("type")));
    spec.keys.push_back(std::move(field));
  }
  SL_ASSIGN(spec.sequence_type, read_type(json.get("sequenceType")));

  if (const Json* type = json.get("systemSequenceType")) {
    SL_ASSIGN(spec.system_sequence_type, read_type(type));
  }

  if (const Json* tracked = json.get("tracked")) {
    for (size_t i = 0; i < tracked->items().size(); ++i) {
      const std::optional<bool> is_tracked = tracked->items()[i].as_bool();
      if (!is_tracked) return broken("tracked is not a map of booleans");
      spec.tracked[tracked->names()[i]] = *is_tracked;
    }
  }
  if (const Json* selected = json.get("selectedEver")) {
    for (const Json& name : selected->items()) spec.selected_ever.push_back(name.text());
  }
  if (const Json* names = json.get("byLeaves")) {
    for (const Json& name : names->items()) spec.by_leaves.push_back(name.text());
  }
  if (const Json* column = json.get("sequenceColumn")) spec.sequence_column = column->text();
  if (const Json* truncates = json.get("truncates"))
    spec.truncates = truncates->as_bool().value_or(false);
  if (const Json* partial = json.get("partial")) spec.partial = partial->as_bool().value_or(false);
  if (const Json* edited = json.get("edited")) spec.edited = edited->as_bool().value_or(false);
  return spec;
}

}  // namespace strandline::cdc
