#include "delta/column_rules.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadRule = "DELTA_INVALID_COLUMN_RULE";
constexpr const char* kStart = "delta.identity.start";
constexpr const char* kStep = "delta.identity.step";
constexpr const char* kHighWaterMark = "delta.identity.highWaterMark";
constexpr const char* kAllowExplicit = "delta.identity.allowExplicitInsert";

std::string path_text(const std::vector<std::string>& path) {
  return fmt::format("{}", fmt::join(path, "."));
}

Result<std::optional<Json>> metadata_value(const Field& field, const char* key,
                                           const std::vector<std::string>& path) {
  const auto found = field.metadata.find(key);
  if (found == field.metadata.end()) return std::optional<Json>();
  auto json = Json::parse(found->second);
  if (!json.ok()) {
    return corrupt(kBadRule, "column {} has {} = {}, which is no JSON", path_text(path), key,
                   found->second);
  }
  if (json->is_null()) return std::optional<Json>();
  return std::optional<Json>(std::move(json).value());
}

Result<std::optional<std::string>> sql_value(const Field& field, const char* key,
                                             const std::vector<std::string>& path) {
  SL_ASSIGN(const auto json, metadata_value(field, key, path));
  if (!json) return std::optional<std::string>();
  if (!json->is_string()) {
    return corrupt(kBadRule, "column {} has {} = {}, which is no text", path_text(path), key,
                   json->dump());
  }
  return std::optional<std::string>(json->text());
}

// {"expression":{"expression":"x > 3"}}, as a JSON text inside the JSON.
Result<std::optional<std::string>> invariant(const Field& field,
                                             const std::vector<std::string>& path) {
  SL_ASSIGN(const auto text, sql_value(field, kInvariantKey, path));
  if (!text) return std::optional<std::string>();
  const auto json = Json::parse(*text);
  const Json* at = json.ok() ? &*json : nullptr;
  for (int depth = 0; depth < 2 && at != nullptr; ++depth) at = at->get("expression");
  if (at == nullptr || !at->is_string()) {
    return corrupt(kBadRule, "column {} has the invariant {}, which has no expression",
                   path_text(path), *text);
  }
  return std::optional<std::string>(at->text());
}

Result<std::optional<IdentityRule>> identity(const Field& field,
                                             const std::vector<std::string>& path) {
  const auto at = field.metadata.lower_bound(kIdentityPrefix);
  if (at == field.metadata.end() || !at->first.starts_with(kIdentityPrefix)) {
    return std::optional<IdentityRule>();
  }
  IdentityRule rule;
  const auto number = [&](const char* key) -> Result<std::optional<int64_t>> {
    SL_ASSIGN(const auto json, metadata_value(field, key, path));
    if (!json) return std::optional<int64_t>();
    const auto value = json->as_int();
    if (!value) {
      return corrupt(kBadRule, "column {} has {} = {}, which is no BIGINT", path_text(path), key,
                     json->dump());
    }
    return value;
  };
  SL_ASSIGN(const auto start, number(kStart));
  SL_ASSIGN(const auto step, number(kStep));
  SL_ASSIGN(rule.high_water_mark, number(kHighWaterMark));
  rule.start = start.value_or(1);
  rule.step = step.value_or(1);
  if (rule.step == 0)
    return corrupt(kBadRule, "column {} is an identity column of step 0", path_text(path));
  SL_ASSIGN(const auto allow, metadata_value(field, kAllowExplicit, path));
  rule.allow_explicit_insert = allow && allow->as_bool().value_or(false);
  return std::optional<IdentityRule>(rule);
}

Status collect(const std::vector<Field>& fields, const std::vector<std::string>& parent,
               std::vector<ColumnRule>* rules);

Status collect_inside(const DataType& type, const std::vector<std::string>& path,
                      std::vector<ColumnRule>* rules) {
  const auto part = [&](const DataType& inner, const char* name) {
    std::vector<std::string> at = path;
    at.emplace_back(name);
    return collect_inside(inner, at, rules);
  };
  switch (type.id) {
    case TypeId::kStruct:
      return collect(*type.fields, path, rules);
    case TypeId::kArray:
      return part(*type.element, "element");
    case TypeId::kMap:
      SL_TRY(part(*type.key, "key"));
      return part(*type.element, "value");
    default:
      return {};
  }
}

Status collect(const std::vector<Field>& fields, const std::vector<std::string>& parent,
               std::vector<ColumnRule>* rules) {
  for (const Field& field : fields) {
    ColumnRule rule;
    rule.path = parent;
    rule.path.push_back(field.name);
    SL_ASSIGN(rule.invariant_sql, invariant(field, rule.path));
    if (parent.empty()) {
      SL_ASSIGN(rule.default_sql, sql_value(field, kDefaultKey, rule.path));
      SL_ASSIGN(rule.generated_sql, sql_value(field, kGeneratedKey, rule.path));
      SL_ASSIGN(rule.identity, identity(field, rule.path));
    }
    const std::vector<std::string> path = rule.path;
    if (rule.default_sql || rule.generated_sql || rule.identity || rule.invariant_sql) {
      rules->push_back(std::move(rule));
    }
    SL_TRY(collect_inside(field.type, path, rules));
  }
  return {};
}

}  // namespace

Result<int64_t> IdentityRule::next() const {
  if (!high_water_mark) return start;
  int64_t value = 0;
  if (__builtin_add_overflow(*high_water_mark, step, &value)) {
    return invalid_data("DELTA_IDENTITY_COLUMN_EXHAUSTED",
                        "an identity column has no BIGINT left after {} in steps of {}",
                        *high_water_mark, step);
  }
  return value;
}

Status IdentityRule::go_beyond(int64_t value) {
  const bool up = step > 0;
  if (up ? value < start : value > start) return {};  // before the first value
  // Distances between BIGINTs are whole numbers without a sign.
  const auto apart = [up](int64_t from, int64_t to) {
    const auto distance = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return up ? distance : 0 - distance;
  };
  const uint64_t length = apart(0, step);
  const uint64_t distance = apart(start, value);
  const uint64_t steps = distance / length + (distance % length == 0 ? 0 : 1);
  const int64_t end =
      up ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  if (steps > apart(start, end) / length) {
    return invalid_data("DELTA_IDENTITY_COLUMN_EXHAUSTED",
                        "an identity column has no BIGINT left after {} in steps of {}", value,
                        step);
  }
  const auto reached =
      static_cast<int64_t>(static_cast<uint64_t>(start) + steps * static_cast<uint64_t>(step));
  const bool is_further =
      !high_water_mark || (up ? reached > *high_water_mark : reached < *high_water_mark);
  if (is_further) high_water_mark = reached;
  return {};
}

bool TableRules::constrain_values() const {
  return !checks.empty() || std::any_of(columns.begin(), columns.end(), [](const ColumnRule& rule) {
    return rule.generated_sql || rule.identity || rule.invariant_sql;
  });
}

const ColumnRule* TableRules::find(const std::string& column) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const ColumnRule& rule) {
    return rule.path.size() == 1 && same_name(rule.path[0], column);
  });
  return found == columns.end() ? nullptr : &*found;
}

Result<TableRules> table_rules(const Metadata& metadata, const Schema& schema) {
  TableRules rules;
  SL_TRY(collect(schema.fields, {}, &rules.columns));
  const std::string prefix = kConstraintPrefix;
  for (auto at = metadata.configuration.lower_bound(prefix);
       at != metadata.configuration.end() && at->first.starts_with(prefix); ++at) {
    rules.checks.push_back({at->first.substr(prefix.size()), at->second});
  }
  return rules;
}

void set_default(Field* field, const std::string& sql) {
  field->metadata[kDefaultKey] = json_string(sql);
}

void set_generated(Field* field, const std::string& sql) {
  field->metadata[kGeneratedKey] = json_string(sql);
}

void set_identity(Field* field, const IdentityRule& rule) {
  field->metadata[kStart] = std::to_string(rule.start);
  field->metadata[kStep] = std::to_string(rule.step);
  field->metadata[kAllowExplicit] = rule.allow_explicit_insert ? "true" : "false";
  if (rule.high_water_mark) field->metadata[kHighWaterMark] = std::to_string(*rule.high_water_mark);
}

std::vector<std::string> words_of_sql(const std::string& sql) {
  std::vector<std::string> words;
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  for (size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    if (c == '\'' || c == '"') {
      const char quote = c;
      for (++i; i < sql.size() && sql[i] != quote; ++i) {
        if (sql[i] == '\\') ++i;
      }
      ++i;
    } else if (c == '`') {
      std::string word;
      for (++i; i < sql.size(); ++i) {
        if (sql[i] == '`') {
          if (i + 1 >= sql.size() || sql[i + 1] != '`') break;
          ++i;
        }
        word += sql[i];
      }
      ++i;
      words.push_back(std::move(word));
    } else if (is_word(c)) {
      size_t end = i;
      while (end < sql.size() && is_word(sql[end])) ++end;
      words.push_back(sql.substr(i, end - i));
      i = end;
    } else {
      ++i;
    }
  }
  return words;
}

}  // namespace strandline::delta
