// Function calls as DuckDB text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "sql/date_pattern.h"
#include "sql/duckdb_core.h"
#include "sql/names.h"
#include "sql/parser.h"

namespace strandline::sql {

namespace {

// Days since 1970-01-01 to year, month, day (proleptic Gregorian).
void civil_from_days(int64_t days, int64_t* year, int* month, int* day) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t of_era = days - era * 146097;
  const int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;
  *day = static_cast<int>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  *month = static_cast<int>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  *year = year_of_era + era * 400 + (*month <= 2 ? 1 : 0);
}

std::string utc_text(int64_t micros) {
  const int64_t day_us = 86400000000;
  int64_t days = micros / day_us;
  int64_t rest = micros % day_us;
  if (rest < 0) {
    rest += day_us;
    --days;
  }
  int64_t year = 0;
  int month = 0;
  int day = 0;
  civil_from_days(days, &year, &month, &day);
  const int64_t seconds = rest / 1000000;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}+00", year, month, day,
                     seconds / 3600, seconds / 60 % 60, seconds % 60, rest % 1000000);
}

// Spark's unit names of date_trunc and trunc, "" if unknown.
std::string truncation_unit(const std::string& unit) {
  const std::string word = upper_ascii(unit);
  if (word == "YEAR" || word == "YYYY" || word == "YY") return "year";
  if (word == "QUARTER") return "quarter";
  if (word == "MONTH" || word == "MON" || word == "MM") return "month";
  if (word == "WEEK") return "week";
  if (word == "DAY" || word == "DD") return "day";
  if (word == "HOUR") return "hour";
  if (word == "MINUTE") return "minute";
  if (word == "SECOND") return "second";
  if (word == "MILLISECOND") return "milliseconds";
  if (word == "MICROSECOND") return "microseconds";
  return "";
}

bool read_as_text(const DataType& type) {
  if (type.id == TypeId::kArray || type.id == TypeId::kMap) return read_as_text(*type.element);
  if (type.id != TypeId::kStruct) {
    return is_integer(type.id) || type.id == TypeId::kDecimal || type.id == TypeId::kTimestamp;
  }
  return std::any_of(type.fields->begin(), type.fields->end(),
                     [](const Field& field) { return read_as_text(field.type); });
}

// The engine's type with JSON for each whole number outside of keys: it would round fractions and
// read texts and truth values as numbers. Decimals are the texts that sl_json_decimals makes of
// them, times are texts for the zones in them.
std::string json_type(const DataType& type) {
  if (!read_as_text(type)) return duckdb_type(type);
  if (type.id == TypeId::kArray) return json_type(*type.element) + "[]";
  if (type.id == TypeId::kMap)
    return fmt::format("MAP({}, {})", duckdb_type(*type.key), json_type(*type.element));
  if (type.id == TypeId::kDecimal || type.id == TypeId::kTimestamp) return "VARCHAR";
  if (type.id != TypeId::kStruct) return "JSON";
  std::string fields;
  for (const Field& field : *type.fields) {
    fields += fmt::format("{}{} {}", fields.empty() ? "" : ", ", duckdb_name(field.name),
                          json_type(field.type));
  }
  return "STRUCT(" + fields + ")";
}

// Where sl_json_decimals finds decimals in a value of a type; "" where there are none.
std::string decimals_in(const DataType& type) {
  if (type.id == TypeId::kDecimal) return "\"decimal\"";
  if (type.id == TypeId::kArray || type.id == TypeId::kMap) {
    const std::string element = decimals_in(*type.element);
    if (element.empty()) return "";
    return (type.id == TypeId::kMap ? "[\"map\"," : "[") + element + "]";
  }
  if (type.id != TypeId::kStruct) return "";
  std::string fields;
  for (const Field& field : *type.fields) {
    const std::string of_field = decimals_in(field.type);
    if (!of_field.empty())
      fields += (fields.empty() ? "" : ",") + json_string(field.name) + ":" + of_field;
  }
  return fields.empty() ? "" : "{" + fields + "}";
}

// A value of that type with its whole numbers, decimals and times read.
std::string read_texts(const std::string& value, const DataType& type, int depth) {
  if (!read_as_text(type)) return value;
  const std::string item = fmt::format("sl_json_{}", depth);
  if (type.id == TypeId::kArray) {
    return fmt::format("list_transform({}, lambda {}: {})", value, item,
                       read_texts(item, *type.element, depth + 1));
  }
  if (type.id == TypeId::kMap) {
    return fmt::format(
        "map_from_entries(list_transform(map_entries({}), lambda {}: {{'key': {}.key, 'value': "
        "{}}}))",
        value, item, item, read_texts(item + ".value", *type.element, depth + 1));
  }
  if (type.id == TypeId::kTimestamp) return duckdb_instant_of_text(value, true);
  if (type.id == TypeId::kDecimal) {
    return fmt::format("TRY_CAST(sl_decimal_of_text({}, {}) AS {})", value, type.scale,
                       duckdb_type(type));
  }
  if (type.id != TypeId::kStruct) {
    return fmt::format(
        "CASE WHEN regexp_full_match(CAST({0} AS VARCHAR), '-?[0-9]+') THEN TRY_CAST(CAST({0} AS "
        "VARCHAR) AS {1}) END",
        value, duckdb_type(type));
  }
  std::string fields;
  for (const Field& field : *type.fields) {
    const std::string name = duckdb_string(field.name);
    fields += fmt::format(
        "{}{}: {}", fields.empty() ? "" : ", ", name,
        read_texts(fmt::format("struct_extract({}, {})", value, name), field.type, depth + 1));
  }
  return fmt::format("CASE WHEN {} IS NOT NULL THEN {{{}}} END", value, fields);
}

// The structure argument of json_transform for json_type; "" for types it has not.
std::string json_structure(const DataType& type) {
  switch (type.id) {
    case TypeId::kStruct: {
      std::string fields;
      for (const Field& field : *type.fields) {
        const std::string of_field = json_structure(field.type);
        if (of_field.empty()) return "";
        fields += (fields.empty() ? "" : ",") + json_string(field.name) + ":" + of_field;
      }
      return "{" + fields + "}";
    }
    case TypeId::kArray: {
      const std::string element = json_structure(*type.element);
      return element.empty() ? "" : "[" + element + "]";
    }
    case TypeId::kMap: {
      return duckdb_type(type).empty() ? "" : json_string(json_type(type));
    }
    case TypeId::kBinary:
    case TypeId::kInterval:
    case TypeId::kVariant:
    case TypeId::kVoid:
      return "";
    default:
      return json_string(json_type(type));
  }
}

std::string pure_name(const Expr& expr) {
  if (const auto* column = expr.as<ColumnRef>()) return column->parts.back();
  if (const auto* field = expr.as<FieldAccess>()) return field->name.text;
  return "";
}

}  // namespace

std::optional<std::string> DuckdbPrinter::constant_argument(const Call& call, size_t index,
                                                            const char* what) {
  const auto* literal = index < call.args.size() ? call.args[index]->as<Literal>() : nullptr;
  if (literal == nullptr || literal->type == TypeId::kVoid) {
    fail_unsupported(call.name.place,
                     fmt::format("{} with {} that is not a constant", call.name.text, what), "");
    return std::nullopt;
  }
  return literal->text;
}

std::optional<std::string> DuckdbPrinter::pattern_argument(const Call& call, size_t index,
                                                           bool parse) {
  const std::optional<std::string> pattern = constant_argument(call, index, "a pattern");
  if (!pattern) return std::nullopt;
  Result<std::string> translated =
      strftime_pattern(*pattern, parse ? PatternUse::kParse : PatternUse::kFormat);
  if (!translated.ok()) {
    fail(translated.error(), call.args[index]->place);
    return std::nullopt;
  }
  return duckdb_string(*translated);
}

std::string DuckdbPrinter::now_text() {
  return options_.now_us ? fmt::format("CAST('{}' AS TIMESTAMPTZ)", utc_text(*options_.now_us))
                         : "now()";
}

bool DuckdbPrinter::is_ordered(const WindowSpec& given) const {
  static const std::vector<NamedWindow> kNone;
  const bool inside = !scopes_.empty() && scopes_.back().select != nullptr;
  const std::vector<NamedWindow>& windows = inside ? scopes_.back().select->windows : kNone;
  const WindowSpec* spec = &given;
  // Windows that name each other in a circle, or none that there is, are the engine's to refuse.
  for (size_t steps = 0; spec->order_by.empty() && spec->base && steps <= windows.size(); ++steps) {
    const auto named = std::find_if(windows.begin(), windows.end(), [&](const NamedWindow& window) {
      return same_name(window.name.text, spec->base->text);
    });
    if (named == windows.end()) return true;
    spec = &named->spec;
  }
  return !spec->order_by.empty();
}

std::string DuckdbPrinter::suffix(const Call& call) {
  std::string result;
  if (call.filter) result += fmt::format(" FILTER (WHERE {})", condition(call.filter));
  if (call.over) {
    result += " OVER ";
    const WindowSpec& spec = *call.over;
    const bool only_name =
        spec.base && spec.partition_by.empty() && spec.order_by.empty() && !spec.frame;
    result += only_name ? duckdb_name(spec.base->text) : window(spec);
  }
  return result;
}

std::string DuckdbPrinter::form_argument(const Call& call, char kind, size_t index) {
  const ExprPtr& argument = call.args[index];
  switch (kind) {
    case 's':
      return as_string(argument);
    case '?':
      return condition(argument);
    case 'n':
      return number(argument, nullptr);
    case 't':
      return as_time(argument);
    case 'D':
      return as_date(argument);
    case 'b':
      return as_bytes(argument);
    default:
      return expr(argument);
  }
}

std::string DuckdbPrinter::fill_form(const Function& function, const Call& call) {
  const std::string_view form = function.form;
  // The arguments in their order, each in the one way in which the form takes it.
  std::vector<std::pair<char, size_t>> used;
  std::vector<std::string> values;
  std::vector<size_t> counts;
  const auto place_of = [&](size_t at, size_t* length) -> std::optional<std::pair<char, size_t>> {
    if (form[at] != '$' || at + 1 >= form.size()) return std::nullopt;
    const bool plain = form[at + 1] >= '1' && form[at + 1] <= '9';
    const char digit = plain ? form[at + 1] : at + 2 < form.size() ? form[at + 2] : '\0';
    if (digit < '1' || digit > '9' || form[at + 1] == '*' || form[at + 1] == 'd')
      return std::nullopt;
    *length = plain ? 2 : 3;
    return std::pair(plain ? '$' : form[at + 1], static_cast<size_t>(digit - '1'));
  };
  size_t length = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    const auto argument = place_of(i, &length);
    if (!argument) continue;
    const auto known = std::find(used.begin(), used.end(), *argument);
    if (known == used.end()) {
      used.push_back(*argument);
      values.push_back(form_argument(call, argument->first, argument->second));
      counts.push_back(1);
    } else {
      ++counts[static_cast<size_t>(known - used.begin())];
    }
  }
  const auto fill = [&](const std::vector<std::string>& texts) {
    std::string result;
    for (size_t i = 0; i < form.size(); ++i) {
      if (form[i] == '@') {
        result += suffix(call);
      } else if (const auto argument = place_of(i, &length)) {
        const auto known = std::find(used.begin(), used.end(), *argument);
        result += texts[static_cast<size_t>(known - used.begin())];
        i += length - 1;
      } else if (form[i] == '$' && i + 1 < form.size()) {
        result += form[++i] == '*' ? list(call.args) : call.distinct ? "DISTINCT " : "";
      } else {
        result += form[i];
      }
    }
    return result;
  };
  bool repeats = false;
  for (size_t i = 0; i < values.size(); ++i)
    repeats = repeats || (counts[i] > 1 && !is_plain_value(values[i]));
  return repeats ? computed_once(values, fill) : fill(values);
}

// Arguments that become one type.
void DuckdbPrinter::check_merged(const Call& call) {
  static constexpr std::string_view kAll[] = {
      "array",  "coalesce",    "nvl",          "ifnull",          "greatest",      "least",
      "concat", "array_union", "array_except", "array_intersect", "arrays_overlap"};
  const std::string& name = call.name.text;
  if (std::find(std::begin(kAll), std::end(kAll), name) != std::end(kAll)) {
    check_structs(call.args);
  } else if ((name == "if" || name == "iff" || name == "nvl2") && call.args.size() == 3) {
    check_structs({call.args[1], call.args[2]});
  } else if (name == "map") {
    std::vector<ExprPtr> values;
    for (size_t i = 1; i < call.args.size(); i += 2) values.push_back(call.args[i]);
    check_structs(values, "DATATYPE_MISMATCH.CREATE_MAP_VALUE_DIFF_TYPES");
  }
}

ExprPtr DuckdbPrinter::without_stars(const Expr& node, const Call& call) {
  Call expanded = call;
  expanded.args.clear();
  for (const ExprPtr& arg : call.args) {
    const auto* const all = arg->as<Star>();
    if (all == nullptr) {
      expanded.args.push_back(arg);
      continue;
    }
    const auto columns =
        scopes_.empty() || scopes_.back().from.empty()
            ? std::nullopt
            : described(fmt::format("SELECT {} FROM {}", star(*all), scopes_.back().from));
    if (!columns) {
      fail_unsupported(node.place, "* as an argument of " + call.name.text + " here",
                       "name the columns");
      return nullptr;
    }
    std::set<std::string> names;
    for (const Field& column : *columns) {
      // What * does not mean: files' _metadata, and what is added to tables on the way.
      if (same_name(column.name, "_metadata") || column.name.starts_with("__strandline_")) continue;
      if (!names.insert(fold_name(column.name)).second) {
        fail(invalid_argument("AMBIGUOUS_REFERENCE",
                              "* in {} stands for two columns '{}': name the columns",
                              call.name.text, column.name),
             node.place);
        return nullptr;
      }
      ColumnRef reference{all->qualifier};
      reference.parts.push_back(column.name);
      expanded.args.push_back(make_expr(std::move(reference), arg->place));
    }
  }
  return make_expr(std::move(expanded), node.place);
}

std::string DuckdbPrinter::call(const Expr& node, const Call& call) {
  const bool counts_rows = call.name.text == "count" && call.args.size() == 1 && !call.distinct &&
                           call.args[0]->as<Star>() != nullptr &&
                           call.args[0]->as<Star>()->qualifier.empty();
  if (!counts_rows && std::any_of(call.args.begin(), call.args.end(),
                                  [](const ExprPtr& arg) { return arg->as<Star>() != nullptr; })) {
    const ExprPtr expanded = without_stars(node, call);
    return expanded ? expr(expanded) : "";
  }
  if (const auto value = frame_value(call)) return *value;
  bool known = false;
  const Function* function = find_function(call.name.text, call.args.size(), &known);
  if (function == nullptr) {
    if (known) {
      fail(invalid_argument("WRONG_NUM_ARGS", "the function {} does not take {} argument{}",
                            call.name.text, call.args.size(), call.args.size() == 1 ? "" : "s"),
           node.place);
      return "";
    }
    const std::string_view reason = refused_function(call.name.text);
    const std::string nearest = reason.empty() ? nearest_function(call.name.text) : "";
    fail(unsupported("UNRESOLVED_ROUTINE", "the function {} is not supported{}{}", call.name.text,
                     reason.empty() ? "" : fmt::format(": {}", reason),
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)),
         node.place);
    return "";
  }
  if (!call.named_args.empty()) {
    fail_unsupported(call.named_args[0].first.place, "a named argument of " + call.name.text,
                     "give it by position");
    return "";
  }
  const bool aggregate = function->kind == FunctionKind::kAggregate;
  if (!captures_.empty() && (aggregate || function->kind == FunctionKind::kWindow)) {
    auto captures = std::exchange(captures_, {});
    std::string text = this->call(node, call);
    captures_ = std::move(captures);
    return captured(std::move(text), std::nullopt);
  }
  if (!aggregate && function->kind != FunctionKind::kWindow && call.over) {
    fail(invalid_argument("UNSUPPORTED_EXPR_FOR_WINDOW",
                          "{} is not a window function: OVER has no meaning there", call.name.text),
         node.place);
    return "";
  }
  if (function->kind == FunctionKind::kWindow && !call.over) {
    fail(invalid_argument("WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
                          "the window function {} needs OVER (...)", call.name.text),
         node.place);
    return "";
  }
  if (function->kind == FunctionKind::kWindow && !is_ordered(*call.over)) {
    fail(invalid_argument("WINDOW_FUNCTION_WITHOUT_ORDER_BY",
                          "the window function {0} needs an order: write {0}(...) OVER (... ORDER "
                          "BY ...)",
                          call.name.text),
         node.place);
    return "";
  }
  if (!aggregate && (call.filter || call.distinct)) {
    fail(invalid_argument("INVALID_SQL_FUNCTION_PLAN_STRUCTURE",
                          "{} is not an aggregate: {} has no meaning there", call.name.text,
                          call.filter ? "FILTER" : "DISTINCT"),
         node.place);
    return "";
  }
  if (call.distinct && call.over) {
    fail(unsupported("DISTINCT_WINDOW_FUNCTION_UNSUPPORTED",
                     "DISTINCT in a window function is not supported"),
         node.place);
    return "";
  }
  if (function->kind == FunctionKind::kGenerator) {
    fail_unsupported(node.place, call.name.text + " inside an expression",
                     "make it a column of its own in SELECT, or use LATERAL VIEW");
    return "";
  }
  check_merged(call);
  const Call merged = merged_arguments(call);
  if (std::string sorted = sorted_by_parts(merged); !sorted.empty()) return sorted;
  if (function->form != "!") {
    if (call.ignore_nulls || !call.within_group.empty()) {
      fail_unsupported(node.place,
                       fmt::format("{} with {}", call.name.text,
                                   call.within_group.empty() ? "IGNORE NULLS" : "WITHIN GROUP"),
                       "");
      return "";
    }
    if (options_.describe && aggregate && !call.args.empty()) {
      // The greatest by what sorts as Spark has it.
      const std::string& name = call.name.text;
      const bool by = name == "max_by" || name == "min_by";
      if ((by || name == "max" || name == "min") && type_of(*call.args.back()).is_nested()) {
        return fmt::format("{}{}({}, {}){}", name.starts_with("max") ? "arg_max" : "arg_min",
                           by ? "_null" : "", expr(call.args[0]), sortable(call.args.back()),
                           suffix(call));
      }
    }
    return fill_form(*function, merged);
  }
  if (aggregate || function->kind == FunctionKind::kWindow) return aggregate_special(node, call);
  return special(node, merged);
}

// cast_to_type(value, sample) takes the sample's type only, so it is where a result's type can
// follow from a column's. Samples stand beside the aggregate: its argument in a window, else its
// maximum.
std::string DuckdbPrinter::sum(const Call& call) {
  const std::string value = number(call.args[0], nullptr);
  const std::string distinct = call.distinct ? "DISTINCT " : "";
  const DataType type = summed_type(call);
  if (type.id == TypeId::kDecimal) return decimal_sum(call, value, type);
  if (const DataType result = sum_type(type); result.id != TypeId::kVoid) {
    const bool single = type.id == TypeId::kFloat;
    return fmt::format("CAST(sum({}{}){} AS {})", distinct,
                       single ? fmt::format("CAST({} AS DOUBLE)", value) : value, suffix(call),
                       duckdb_type(result));
  }
  // Integers add up as HUGEINT and give BIGINT, decimals stay decimals.
  const std::string sample = call.over ? value : fmt::format("max({})", value);
  return fmt::format(
      "cast_to_type(sum({0}CASE WHEN typeof({1}) = 'FLOAT' THEN error('[UNSUPPORTED_CONSTRUCT] sum "
      "of a FLOAT is not supported: cast it to DOUBLE') ELSE {1} END){2}, {3} + CAST(0 AS BIGINT))",
      distinct, value, suffix(call), sample);
}

// The engine counts in 128 bits and begins anew behind the last number, which the sum of doubles
// tells: it lies far beyond 38 digits.
std::string DuckdbPrinter::decimal_sum(const Call& call, const std::string& value,
                                       const DataType& type) {
  const std::string of = call.distinct ? "DISTINCT " : "";
  const std::string result = duckdb_type(sum_type(type));
  const std::string sum = fmt::format("sum({}{}){}", of, value, suffix(call));
  constexpr int kSafeDigits = 28;  // ten thousand million rows of so many are no more than 38
  if (type.precision <= kSafeDigits) return fmt::format("CAST({} AS {})", sum, result);
  const std::string about = fmt::format("sum({}CAST({} AS DOUBLE)){}", of, value, suffix(call));
  const std::string most = std::string(static_cast<size_t>(38 - type.scale), '9') + "." +
                           std::string(static_cast<size_t>(type.scale), '9');
  return fmt::format(
      "CASE WHEN abs({0}) > 1.5e{1} OR abs({2}) > CAST('{3}' AS DECIMAL(38, {4})) THEN "
      "error('[NUMERIC_VALUE_OUT_OF_RANGE] the sum has more than 38 digits: cast to DOUBLE, or to "
      "decimals of fewer digits after the point') ELSE CAST({2} AS {5}) END",
      about, 38 - type.scale, sum, most, type.scale, result);
}

DataType DuckdbPrinter::summed_type(const Call& call) {
  DataType type = type_of(*call.args[0]);
  if (type.id == TypeId::kString) return DataType::primitive(TypeId::kDouble);
  if (type.id != TypeId::kVoid && type.id != TypeId::kInterval && !is_number(type.id)) {
    fail(invalid_argument("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                          "{} takes numbers, but {} is {}", call.name.text,
                          output_name(*call.args[0]), to_sql(type)),
         call.args[0]->place);
  }
  return type;
}

std::string DuckdbPrinter::average(const Call& call) {
  const std::string value = number(call.args[0], nullptr);
  const DataType type = summed_type(call);
  const auto aggregate = [&](const char* name, const std::string& of) {
    return fmt::format("{}({}{}){}", name, call.distinct ? "DISTINCT " : "", of, suffix(call));
  };
  const DataType result = average_type(type);
  if (result.id == TypeId::kDouble) {
    return aggregate("avg",
                     type.id == TypeId::kFloat ? fmt::format("CAST({} AS DOUBLE)", value) : value);
  }
  if (result.id == TypeId::kDecimal) {
    const std::string count = aggregate("count", value);
    return decimals(BinaryOp::kDivide, result, false,
                    type.precision > 28 ? decimal_sum(call, value, type) : aggregate("sum", value),
                    fmt::format("nullif({}, 0)", count));
  }
  // A decimal's average has four more digits; that of anything else is a DOUBLE, as ceil of it is.
  const std::string sample = call.over ? value : fmt::format("max({})", value);
  return fmt::format("cast_to_type({0}, {1} * 1.0000 + ceil({1}))", aggregate("avg", value),
                     sample);
}

// The columns are those of GROUP BY where none are named.
std::string DuckdbPrinter::grouping_id(const Expr& node, const Call& call) {
  const Select* select = scopes_.empty() ? nullptr : scopes_.back().select;
  if (select == nullptr || select->groupings.empty()) {
    fail(invalid_argument("UNSUPPORTED_GROUPING_EXPRESSION",
                          "{} is for GROUP BY with ROLLUP, CUBE or GROUPING SETS", call.name.text),
         node.place);
    return "";
  }
  std::vector<std::string> keys;
  for (const ExprPtr& key : call.args.empty() ? select->group_by : call.args) {
    std::string text = expr(key);
    if (std::find(keys.begin(), keys.end(), text) == keys.end()) keys.push_back(std::move(text));
  }
  return fmt::format("CAST(grouping({}) AS {})", fmt::join(keys, ", "),
                     call.name.text == "grouping" ? "TINYINT" : "BIGINT");
}

std::string DuckdbPrinter::aggregate_special(const Expr& node, const Call& call) {
  const std::string& name = call.name.text;
  const std::string distinct = call.distinct ? "DISTINCT " : "";
  if (name == "count") {
    std::string what;
    if (call.args.size() == 1) {
      what = call.args[0]->as<Star>() != nullptr ? "*" : expr(call.args[0]);
    } else {  // rows in which no argument is null
      std::vector<std::string> values;
      for (const ExprPtr& arg : call.args) values.push_back(expr(arg));
      what = computed_once(values, [](const std::vector<std::string>& parts) {
        return fmt::format("CASE WHEN {} IS NOT NULL THEN row({}) END",
                           fmt::join(parts, " IS NOT NULL AND "), fmt::join(parts, ", "));
      });
    }
    return fmt::format("count({}{}){}", distinct, what, suffix(call));
  }
  if (name == "sum") return sum(call);
  if (name == "avg" || name == "mean") return average(call);
  if (name == "first" || name == "last" || name == "first_value" || name == "last_value" ||
      name == "any_value") {
    bool ignore_nulls = call.ignore_nulls.value_or(false);
    if (call.args.size() == 2) {
      const std::optional<std::string> flag = constant_argument(call, 1, "an ignore-nulls flag");
      if (!flag) return "";
      ignore_nulls = *flag == "true";
    }
    const bool is_last = name == "last" || name == "last_value";
    const std::string value = expr(call.args[0]);
    if (call.over) {
      return fmt::format("{}({}{}){}", is_last ? "last_value" : "first_value", value,
                         ignore_nulls ? " IGNORE NULLS" : "", suffix(call));
    }
    if (!ignore_nulls)
      return fmt::format("{}({}){}", is_last ? "last" : "first", value, suffix(call));
    std::string condition = fmt::format("{} IS NOT NULL", value);
    if (call.filter) condition = fmt::format("({}) AND {}", expr(call.filter), condition);
    return fmt::format("{}({}) FILTER (WHERE {})", is_last ? "last" : "first", value, condition);
  }
  if (name == "lag" || name == "lead" || name == "nth_value") {
    return fmt::format("{}({}{}){}", name, list(call.args),
                       call.ignore_nulls.value_or(false) ? " IGNORE NULLS" : "", suffix(call));
  }
  if (name == "percentile_cont" || name == "percentile_disc") {
    if (call.within_group.size() != 1) {
      fail(invalid_argument("INVALID_WITHIN_GROUP_EXPRESSION",
                            "{} needs WITHIN GROUP (ORDER BY one expression)", name),
           node.place);
      return "";
    }
    const OrderItem& item = call.within_group[0];
    // From the top, 0 is the end for the engine: it tells the direction by the sign.
    const auto share = literal_text(*call.args[0]);
    const bool is_first = share && share->find_first_of("123456789") == std::string::npos &&
                          share->find('0') != std::string::npos;
    if (item.descending && is_first)
      return fmt::format("{}(1) WITHIN GROUP (ORDER BY {}){}", name, expr(item.expr), suffix(call));
    return fmt::format("{}({}) WITHIN GROUP (ORDER BY {}{}){}", name, expr(call.args[0]),
                       expr(item.expr), item.descending ? " DESC" : "", suffix(call));
  }
  // listagg, string_agg
  std::string value = as_string(call.args[0]);
  const std::string separator = call.args.size() > 1 ? as_string(call.args[1]) : "''";
  std::string result = fmt::format("string_agg({}{}, {}", distinct, value, separator);
  if (!call.within_group.empty()) result += " ORDER BY " + order(call.within_group);
  return result + ")" + suffix(call);
}

std::string DuckdbPrinter::structure(const Call& call) {
  std::string fields;
  for (size_t i = 0; i < call.args.size(); ++i) {
    std::string name = i < call.arg_names.size() ? call.arg_names[i] : "";
    if (name.empty()) name = pure_name(*call.args[i]);
    if (name.empty()) name = fmt::format("col{}", i + 1);
    fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", duckdb_string(name),
                          expr(call.args[i]));
  }
  return "{" + fields + "}";
}

std::string DuckdbPrinter::named_structure(const Expr& node, const Call& call) {
  if (call.args.size() % 2 != 0) {
    fail(invalid_argument("WRONG_NUM_ARGS", "named_struct takes names and values in pairs"),
         node.place);
    return "";
  }
  std::string fields;
  for (size_t i = 0; i < call.args.size(); i += 2) {
    const std::optional<std::string> name = constant_argument(call, i, "a name");
    if (!name) return "";
    fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", duckdb_string(*name),
                          expr(call.args[i + 1]));
  }
  return "{" + fields + "}";
}

std::string DuckdbPrinter::time_special(const Expr& node, const Call& call) {
  const std::string& name = call.name.text;
  if (name == "current_timestamp" || name == "now") return now_text();
  if (name == "current_date" || name == "curdate")
    return fmt::format("CAST({} AS DATE)", now_text());
  if (name == "localtimestamp") return fmt::format("CAST({} AS TIMESTAMP)", now_text());

  if (name == "to_date" || name == "try_to_date" || name == "to_timestamp" ||
      name == "to_timestamp_ltz" || name == "to_timestamp_ntz" || name == "try_to_timestamp") {
    const bool to_date = name == "to_date" || name == "try_to_date";
    const bool ntz = name == "to_timestamp_ntz";
    const bool lenient = name.rfind("try_", 0) == 0;
    const DataType target = DataType::primitive(to_date ? TypeId::kDate
                                                : ntz   ? TypeId::kTimestampNtz
                                                        : TypeId::kTimestamp);
    if (call.args.size() == 1) return cast(node, call.args[0], target, lenient);
    const std::optional<std::string> pattern = pattern_argument(call, 1, true);
    if (!pattern) return "";
    return fmt::format("CAST({}({}, {}) AS {})", lenient ? "try_strptime" : "strptime",
                       expr(call.args[0]), *pattern, duckdb_type(target));
  }
  if (name == "date_format") {
    const std::optional<std::string> pattern = pattern_argument(call, 1, false);
    return pattern ? fmt::format("strftime({}, {})", as_time(call.args[0]), *pattern) : "";
  }
  if (name == "to_utc_timestamp") {
    const std::string local =
        is_text(call.args[0])
            ? cast(node, call.args[0], DataType::primitive(TypeId::kTimestamp), false)
            : fmt::format("CAST({} AS TIMESTAMPTZ)", expr(call.args[0]));
    return computed_once(
        std::vector{fmt::format("CAST({} AS TIMESTAMP)", local), as_string(call.args[1])},
        [](const std::vector<std::string>& values) {
          return earlier_instant(fmt::format("timezone({}, {})", values[1], values[0]), values[1]);
        });
  }
  if (name == "unix_timestamp" || name == "to_unix_timestamp") {
    std::string instant = now_text();
    if (call.args.size() == 2 && known_type(*call.args[0]) != TypeId::kTimestamp) {
      const std::optional<std::string> pattern = pattern_argument(call, 1, true);
      if (!pattern) return "";
      instant = fmt::format("CAST(strptime({}, {}) AS TIMESTAMPTZ)", expr(call.args[0]), *pattern);
    } else if (!call.args.empty()) {
      instant = fmt::format("CAST({} AS TIMESTAMPTZ)", expr(call.args[0]));
    }
    return fmt::format("(epoch_us({}) // 1000000)", instant);
  }
  if (name == "from_unixtime") {
    std::optional<std::string> pattern = "'%Y-%m-%d %H:%M:%S'";
    if (call.args.size() == 2) pattern = pattern_argument(call, 1, false);
    if (!pattern) return "";
    return fmt::format("strftime(make_timestamp(CAST({} AS BIGINT) * 1000000), {})",
                       expr(call.args[0]), *pattern);
  }
  if (name == "date_trunc" || name == "trunc") {
    // In a list of one: a comparison with what no unit begins at is not null for null otherwise.
    const size_t unit_index = name == "trunc" ? 1 : 0;
    const std::optional<std::string> unit = constant_argument(call, unit_index, "a unit");
    if (!unit) return "";
    const std::string duckdb_unit = truncation_unit(*unit);
    if (duckdb_unit.empty()) {
      fail(invalid_argument("INVALID_PARAMETER_VALUE.DATETIME_UNIT",
                            "{} does not know the unit '{}'", name, *unit),
           call.args[unit_index]->place);
      return "";
    }
    if (name == "trunc")
      return fmt::format("CAST(list_extract([date_trunc('{}', {})], 1) AS DATE)", duckdb_unit,
                         as_date(call.args[0]));
    return fmt::format("list_extract([date_trunc('{}', CAST({} AS TIMESTAMPTZ))], 1)", duckdb_unit,
                       expr(call.args[1]));
  }
  if (name == "date_part" || name == "datepart") {
    const std::optional<std::string> field = constant_argument(call, 0, "a field");
    if (!field) return "";
    const std::string value = as_time(call.args[1]);
    const std::string part = lower_ascii(*field);
    const auto integer = [&](const std::string& text) {
      return fmt::format("CAST({} AS INTEGER)", text);
    };
    if (part == "year" || part == "y" || part == "years" || part == "yr" || part == "yrs")
      return integer(fmt::format("year({})", value));
    if (part == "quarter" || part == "qtr") return integer(fmt::format("quarter({})", value));
    if (part == "month" || part == "mon" || part == "mons" || part == "months")
      return integer(fmt::format("month({})", value));
    if (part == "week" || part == "weeks" || part == "w")
      return integer(fmt::format("week({})", value));
    if (part == "yearofweek") return integer(fmt::format("isoyear({})", value));
    if (part == "day" || part == "d" || part == "days")
      return integer(fmt::format("day({})", value));
    if (part == "dayofweek" || part == "dow")
      return integer(fmt::format("dayofweek({}) + 1", value));
    if (part == "dayofweek_iso" || part == "dow_iso")
      return integer(fmt::format("isodow({})", value));
    if (part == "doy") return integer(fmt::format("dayofyear({})", value));
    if (part == "hour" || part == "h" || part == "hours" || part == "hr" || part == "hrs")
      return integer(fmt::format("hour({})", value));
    if (part == "minute" || part == "m" || part == "min" || part == "mins" || part == "minutes")
      return integer(fmt::format("minute({})", value));
    if (part == "second" || part == "s" || part == "sec" || part == "secs" || part == "seconds") {
      return fmt::format("CAST(microsecond({}) / 1000000 AS DECIMAL(8, 6))", value);
    }
    fail(invalid_argument("INVALID_EXTRACT_FIELD",
                          "'{}' cannot be extracted from a date or timestamp", *field),
         call.args[0]->place);
    return "";
  }
  // timestampadd, timestampdiff
  const std::optional<std::string> unit = constant_argument(call, 0, "a unit");
  if (!unit) return "";
  const std::string word = upper_ascii(*unit);
  if (name == "timestampdiff") return time_difference(call, word);
  const char* maker = word == "YEAR"                         ? "to_years"
                      : word == "QUARTER"                    ? "to_quarters"
                      : word == "MONTH"                      ? "to_months"
                      : word == "WEEK"                       ? "to_weeks"
                      : word == "DAY" || word == "DAYOFYEAR" ? "to_days"
                      : word == "HOUR"                       ? "to_hours"
                      : word == "MINUTE"                     ? "to_minutes"
                      : word == "SECOND"                     ? "to_seconds"
                      : word == "MILLISECOND"                ? "to_milliseconds"
                      : word == "MICROSECOND"                ? "to_microseconds"
                                                             : nullptr;
  if (maker == nullptr) {
    fail(invalid_argument("INVALID_PARAMETER_VALUE.DATETIME_UNIT",
                          "timestampadd does not know the unit '{}'", *unit),
         call.args[0]->place);
    return "";
  }
  return fmt::format("(CAST({} AS TIMESTAMPTZ) + {}(CAST({} AS INTEGER)))", expr(call.args[2]),
                     maker, expr(call.args[1]));
}

// Whole units from one time to another. Months count by their days and times alone: from the 31st
// to a shorter month's last day is not a whole one, which DuckDB would count.
std::string DuckdbPrinter::time_difference(const Call& call, const std::string& unit) {
  const std::string start = expr(call.args[1]);
  const std::string end = expr(call.args[2]);
  const int months = unit == "MONTH" ? 1 : unit == "QUARTER" ? 3 : unit == "YEAR" ? 12 : 0;
  if (months == 0) {
    return fmt::format("datesub('{}', CAST({} AS TIMESTAMPTZ), CAST({} AS TIMESTAMPTZ))",
                       unit == "DAYOFYEAR" ? "day" : lower_ascii(unit), start, end);
  }
  constexpr const char* kMonths = "(12 * year({0}) + month({0}))";
  // The part of a month that has passed, as one number.
  constexpr const char* kRest =
      "(day({0}) * 86400000000 + (epoch_us({0}) - epoch_us(CAST({0} AS DATE))))";
  const auto between =
      fmt::format("({} - {})", fmt::format(kMonths, "sl_p.b"), fmt::format(kMonths, "sl_p.a"));
  const auto rest_a = fmt::format(kRest, "sl_p.a");
  const auto rest_b = fmt::format(kRest, "sl_p.b");
  const auto whole = fmt::format(
      "({0} - CASE WHEN {0} > 0 AND {1} < {2} THEN 1 WHEN {0} < 0 AND {1} > {2} THEN -1 ELSE 0 "
      "END)",
      between, rest_b, rest_a);
  // A list of one pair names the two times, which stand in the text once.
  return fmt::format(
      "list_transform([{{'a': CAST({} AS TIMESTAMP), 'b': CAST({} AS TIMESTAMP)}}], lambda sl_p: "
      "CAST({} // {} AS BIGINT))[1]",
      start, end, whole, months);
}

std::string DuckdbPrinter::collection_special(const Expr& node, const Call& call) {
  const std::string& name = call.name.text;
  if (name == "map") {
    if (call.args.size() % 2 != 0) {
      fail(invalid_argument("WRONG_NUM_ARGS", "map takes keys and values in pairs"), node.place);
      return "";
    }
    std::string entries;
    for (size_t i = 0; i < call.args.size(); i += 2) {
      entries += fmt::format("{}{}: {}", entries.empty() ? "" : ", ", expr(call.args[i]),
                             expr(call.args[i + 1]));
    }
    return "MAP {" + entries + "}";
  }
  if (name == "map_concat") {  // the engine's own takes the last of equal keys
    std::string entries;
    for (const ExprPtr& arg : call.args)
      entries += fmt::format("{}map_entries({})", entries.empty() ? "" : " || ", expr(arg));
    return fmt::format("map_from_entries({})", entries);
  }
  if (name == "sequence") return sequence(call);
  if (name == "element_at") return element_at(call);
  if (name == "size" || name == "cardinality") {
    const std::string value = expr(call.args[0]);
    const auto* inner = call.args[0]->as<Call>();
    const bool map = inner != nullptr && inner->name.text.rfind("map", 0) == 0 &&
                     inner->name.text != "map_keys" && inner->name.text != "map_values" &&
                     inner->name.text != "map_entries";
    if (map || type_of(*call.args[0]).id == TypeId::kMap)
      return fmt::format("CAST(cardinality({}) AS INTEGER)", value);
    return computed_once(value, [](const std::string& once) {
      return fmt::format(
          "CASE WHEN typeof({0}) NOT LIKE '%]' THEN error('[UNSUPPORTED_CONSTRUCT] size of a ' || "
          "typeof({0}) "
          "|| ': for a map write size(map_keys(...))') ELSE CAST(len({0}) AS INTEGER) END",
          once);
    });
  }
  if (name == "sort_array") {
    const std::optional<std::string> ascending = constant_argument(call, 1, "a direction");
    if (!ascending) return "";
    return fmt::format("list_sort({}, {})", expr(call.args[0]),
                       *ascending == "true" ? "'ASC', 'NULLS FIRST'" : "'DESC', 'NULLS LAST'");
  }
  if (name == "zip_with" || name == "transform_keys" || name == "transform_values" ||
      name == "map_filter") {
    return pairs_special(node, call);
  }
  const auto* function = call.args[name == "aggregate" || name == "reduce" ? 2 : 1]->as<Lambda>();
  if (function == nullptr) {
    fail(invalid_argument("INVALID_LAMBDA_FUNCTION_CALL", "{} needs a lambda such as x -> x + 1",
                          name),
         node.place);
    return "";
  }
  const std::string array = expr(call.args[0]);
  const size_t params = function->params.size();
  if (name == "aggregate" || name == "reduce") {
    if (params != 2) {
      fail(invalid_argument("INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
                            "{} needs a lambda of two parameters", name),
           node.place);
      return "";
    }
    const std::string reduced = reduce(call, *function);
    if (call.args.size() == 3) return reduced;
    const auto* finish = call.args[3]->as<Lambda>();
    if (finish == nullptr || finish->params.size() != 1) {
      fail(invalid_argument("INVALID_LAMBDA_FUNCTION_CALL",
                            "{} needs a lambda of one parameter at the end", name),
           node.place);
      return "";
    }
    return fmt::format("list_transform([{}], {})[1]", reduced, lambda(*finish, false));
  }
  const bool with_index = name == "transform" || name == "filter";
  if (params == 0 || params > (with_index ? 2u : 1u)) {
    fail(invalid_argument("INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
                          "{} does not take a lambda of {} parameters", name, params),
         node.place);
    return "";
  }
  const std::string body = lambda(*function, true, name != "transform");
  if (name == "transform") return fmt::format("list_transform({}, {})", array, body);
  if (name == "filter") return fmt::format("list_filter({}, {})", array, body);
  // With nulls as OR and AND have them, which list_bool_or and list_bool_and leave out.
  return fmt::format("list_reduce(list_transform({}, {}), lambda sl_a, sl_b: sl_a {}, {})", array,
                     body, name == "exists" ? "OR sl_b" : "AND sl_b",
                     name == "exists" ? "false" : "true");
}

namespace {

// Whether a call is computed of several rows: count(*) names no column, and is one to the engine.
bool is_over_rows(const Call& call) {
  bool known = false;
  const Function* function = find_function(call.name.text, call.args.size(), &known);
  return function != nullptr &&
         (function->kind == FunctionKind::kAggregate || function->kind == FunctionKind::kWindow);
}

// Whether a lambda's body reads more than the names that are bound in it.
bool reads_outside(const Expr& node, const std::vector<std::string>& bound) {
  const auto is_bound = [&](const std::string& name) {
    return std::any_of(bound.begin(), bound.end(),
                       [&](const std::string& other) { return same_name(other, name); });
  };
  if (const auto* column = node.as<ColumnRef>()) return !is_bound(column->parts[0]);
  if (const auto* call = node.as<Call>(); call != nullptr && is_over_rows(*call)) return true;
  std::vector<std::string> inner = bound;
  if (const auto* lambda = node.as<Lambda>())
    inner.insert(inner.end(), lambda->params.begin(), lambda->params.end());
  bool found = false;
  for_each_child(node,
                 [&](const ExprPtr& child) { found = found || reads_outside(*child, inner); });
  return found;
}

}  // namespace

// aggregate and reduce without their last lambda. Each element carries what the lambda reads from
// outside, and beside it a place for the value so far, which has a type of its own.
std::string DuckdbPrinter::reduce(const Call& call, const Lambda& merge) {
  const std::string array = expr(call.args[0]);
  const std::string start = expr(call.args[1]);
  if (!reads_outside(*merge.body, merge.params))
    return fmt::format("list_reduce({}, {}, {})", array, lambda(merge, false), start);

  const size_t scope = params_.size();
  const std::string so_far = fmt::format("sl_param_{}", scope);
  const std::string element = fmt::format("sl_param_{}", scope + 1);
  captures_.push_back({scope, element, {}});
  params_.emplace_back(merge.params[0], so_far + ".a");
  params_.emplace_back(merge.params[1], element + ".e");
  const std::string body = expr(merge.body);
  params_.resize(scope);
  const std::vector<std::string> texts = std::move(captures_.back().texts);
  captures_.pop_back();
  const std::string box = fmt::format("sl_box_{}", scope);
  std::string boxed, of_box, of_element;
  for (size_t i = 0; i < texts.size(); ++i) {
    boxed += fmt::format(", c{}: {}", i, texts[i]);
    of_box += fmt::format(", c{0}: {1}.c{0}", i, box);
    of_element += fmt::format(", c{0}: {1}.c{0}", i, element);
  }
  return fmt::format(
      "list_transform([{{l: {array}, s: {start}{boxed}}}], lambda {box}: list_reduce("
      "list_transform({box}.l, lambda {element}: {{a: CASE WHEN false THEN {box}.s END, e: "
      "{element}{of_box}}}), lambda {so_far}, {element}: {{a: {body}, e: "
      "{element}.e{of_element}}}, "
      "{{a: {box}.s, e: CASE WHEN false THEN {box}.l[1] END{of_box}}}).a)[1]",
      fmt::arg("array", array), fmt::arg("start", start), fmt::arg("boxed", boxed),
      fmt::arg("box", box), fmt::arg("element", element), fmt::arg("of_box", of_box),
      fmt::arg("so_far", so_far), fmt::arg("body", body), fmt::arg("of_element", of_element));
}

// Numbers, or dates and times: by days, or by a constant interval. Months are counted from the
// start, so that a month's last day comes back after a shorter month.
std::string DuckdbPrinter::sequence(const Call& call) {
  const bool has_step = call.args.size() == 3;
  const auto* step = has_step ? call.args[2]->as<IntervalLiteral>() : nullptr;
  const TypeId type = type_of(*call.args[0]).id;
  const bool times = step != nullptr || type == TypeId::kDate || type == TypeId::kTimestamp ||
                     type == TypeId::kTimestampNtz;
  const std::string start = expr(call.args[0]);
  const std::string stop = expr(call.args[1]);
  if (!times) {
    const std::string step_text = has_step ? expr(call.args[2]) : "NULL";
    return computed_once(
        std::vector{start, stop, step_text}, [&](const std::vector<std::string>& values) {
          const std::string by =
              has_step ? values[2]
                       : fmt::format("CASE WHEN {} <= {} THEN 1 ELSE -1 END", values[0], values[1]);
          return fmt::format("cast_to_type(generate_series({}, {}, {}), [{}])", values[0],
                             values[1], by, values[0]);
        });
  }
  if (!has_step) {
    return computed_once(std::vector{start, stop}, [](const std::vector<std::string>& values) {
      return fmt::format(
          "cast_to_type(generate_series({0}, {1}, CASE WHEN {0} <= {1} THEN INTERVAL '1' DAY ELSE "
          "INTERVAL '-1' DAY END), [{0}])",
          values[0], values[1]);
    });
  }
  const auto too_fine = [](const auto& part) {
    return part.second != "YEAR" && part.second != "QUARTER" && part.second != "MONTH" &&
           part.second != "WEEK" && part.second != "DAY";
  };
  if (type == TypeId::kDate && step != nullptr &&
      std::any_of(step->parts.begin(), step->parts.end(), too_fine)) {
    fail(invalid_argument("DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES",
                          "sequence of DATEs takes steps of days or months: cast the dates to "
                          "TIMESTAMP"),
         call.args[2]->place);
    return "";
  }
  int64_t months = 0;
  bool constant = step != nullptr;
  bool has_rest = false;
  for (size_t i = 0; constant && i < step->parts.size(); ++i) {
    const auto& [value, unit] = step->parts[i];
    const int each = unit == "YEAR" ? 12 : unit == "QUARTER" ? 3 : unit == "MONTH" ? 1 : 0;
    const auto number = literal_text(*value);
    constant = number && !number->empty() && number->size() <= 9 &&
               number->find_first_not_of("-0123456789") == std::string::npos;
    has_rest = has_rest || each == 0;
    if (constant && each > 0) months += each * std::stoll(*number);
  }
  if (!constant && !has_rest) {
    fail_unsupported(call.args[2]->place, "sequence of dates or times with such a step",
                     "write a constant such as INTERVAL 1 DAY");
    return "";
  }
  if (months == 0) {
    return computed_once(std::vector{start, stop}, [&](const std::vector<std::string>& values) {
      return fmt::format("cast_to_type(generate_series({}, {}, {}), [{}])", values[0], values[1],
                         expr(call.args[2]), values[0]);
    });
  }
  if (has_rest) {
    fail_unsupported(call.args[2]->place, "sequence with a step of months and days",
                     "use months or days alone");
    return "";
  }
  return computed_once(std::vector{start, stop}, [&](const std::vector<std::string>& values) {
    return fmt::format(
        "cast_to_type(list_filter(list_transform(range(0, abs(datediff('month', {0}, {1})) // {3} "
        "+ 2), lambda sl_step: {0} + to_months(CAST(sl_step * {2} AS INTEGER))), lambda sl_item: "
        "sl_item {4} {1}), "
        "[{0}])",
        values[0], values[1], months, std::abs(months), months > 0 ? "<=" : ">=");
  });
}

// Counts from 1, or from the end; outside an array is an error, a key that a map has not is null.
std::string DuckdbPrinter::element_at(const Call& call) {
  const std::string value = expr(call.args[0]);
  const std::string position = expr(call.args[1]);
  const auto* constant = call.args[1]->as<Literal>();
  if (constant != nullptr && !is_integer(constant->type))
    return fmt::format("({})[{}]", value, position);
  const ElementRule zero{"{1} = 0",
                         "[INVALID_INDEX_OF_ZERO] element_at counts from 1, or from the end by -1"};
  const ElementRule outside{
      "abs({1}) > {0}",
      "[INVALID_ARRAY_INDEX_IN_ELEMENT_AT] there is no element ', {1}, ' in an array of ', {0}, ': "
      "use try_element_at for null instead"};
  return computed_once(std::vector{value, position}, [&](const std::vector<std::string>& values) {
    return element(type_of(*call.args[0]).id, values[0], values[1], "{0}", {zero, outside});
  });
}

// A DOUBLE rounds as its shortest text does in Spark, by its binary value in DuckDB.
std::string DuckdbPrinter::rounded(const Call& call) {
  const bool even = call.name.text == "bround";
  const ExprPtr& argument = call.args[0];
  const TypeId type = is_text(argument) ? TypeId::kDouble : type_of(*argument).id;
  const std::string scale_text =
      call.args.size() == 2 ? fmt::format("CAST({} AS INTEGER)", expr(call.args[1])) : "0";
  return computed_once(
      std::vector{number(argument, nullptr), scale_text},
      [&](const std::vector<std::string>& values) {
        const std::string& value = values[0];
        const std::string& scale = values[1];
        // The engine rounds within the type, past its end.
        if (is_integer(type) && call.args.size() == 2) {
          return fmt::format("CAST({}(CAST({} AS HUGEINT), {}) AS {})",
                             even ? "round_even" : "round", value, scale,
                             duckdb_type(DataType::primitive(type)));
        }
        const std::string away = call.args.size() == 2 ? fmt::format("round({}, {})", value, scale)
                                                       : fmt::format("round({})", value);
        const std::string exact =
            even ? fmt::format("cast_to_type(round_even({}, {}), {})", value, scale, away) : away;
        const std::string shortest =
            fmt::format("sl_round(CAST({} AS DOUBLE), {}, {})", value, scale, even);
        if (type == TypeId::kDouble) return shortest;
        if (type == TypeId::kFloat) return fmt::format("CAST({} AS FLOAT)", shortest);
        if (type != TypeId::kVoid) return exact;
        return fmt::format(
            "CASE WHEN typeof({}) IN ('DOUBLE', 'FLOAT') THEN cast_to_type({}, {}) ELSE {} END",
            value, shortest, away, exact);
      });
}

// Functions whose lambda takes two values at once: they become the two parts of one element.
std::string DuckdbPrinter::pairs_special(const Expr& node, const Call& call) {
  const std::string& name = call.name.text;
  const bool zip = name == "zip_with";
  const auto* function = call.args.back()->as<Lambda>();
  if (function == nullptr || function->params.size() != 2) {
    fail(invalid_argument("INVALID_LAMBDA_FUNCTION_CALL",
                          "{} needs a lambda of two parameters such as (x, y) -> x", name),
         node.place);
    return "";
  }
  const std::string element = fmt::format("sl_pair_{}", params_.size());
  const size_t scope = params_.size();
  params_.emplace_back(function->params[0], element + (zip ? "[1]" : ".key"));
  params_.emplace_back(function->params[1], element + (zip ? "[2]" : ".value"));
  const std::string body = name == "map_filter" ? condition(function->body) : expr(function->body);
  params_.resize(scope);
  const std::string value = expr(call.args[0]);
  if (zip) {
    const std::string other = expr(call.args[1]);
    // The lambda may read whatever it wants; the two lists are computed apart from it.
    const auto zipped =
        computed_once(std::vector{value, other}, [](const std::vector<std::string>& values) {
          return fmt::format(
              "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN list_zip({0}, {1}) END",
              values[0], values[1]);
        });
    return fmt::format("list_transform({}, lambda {}: {})", zipped, element, body);
  }
  if (name == "map_filter") {
    return fmt::format("map_from_entries(list_filter(map_entries({}), lambda {}: {}))", value,
                       element, body);
  }
  const bool keys = name == "transform_keys";
  return fmt::format(
      "map_from_entries(list_transform(map_entries({}), lambda {}: {{'key': {}, 'value': {}}}))",
      value, element, keys ? body : element + ".key", keys ? element + ".value" : body);
}

std::string DuckdbPrinter::special(const Expr& node, const Call& call) {
  const std::string& name = call.name.text;
  if (name == "struct") return structure(call);
  if (name == "named_struct") return named_structure(node, call);
  if (name == "concat") {
    if (call.args.size() == 1) return as_string(call.args[0]);
    std::string result;
    for (const ExprPtr& arg : call.args)
      result += (result.empty() ? "(" : " || ") + concat_part(*arg);
    return result + ")";
  }
  if (name == "concat_ws") {
    if (call.args.size() == 1) return "''";
    std::vector<std::string> values = {as_string(call.args[0])};
    std::vector<size_t> lists;  // arrays of strings, by their place among the arguments
    for (size_t i = 1; i < call.args.size(); ++i) {
      const DataType type = type_of(*call.args[i]);
      if (type.id == TypeId::kArray && type.element->id == TypeId::kString) {
        lists.push_back(i);
        values.push_back(expr(call.args[i]));
        continue;
      }
      const bool plain = type.id != TypeId::kVoid && !type.is_nested();
      const std::string text = plain ? as_string(call.args[i]) : expr(call.args[i]);
      const bool known = plain || call.args[i]->as<Literal>() != nullptr;
      values.push_back(known ? text : computed_once(text, [](const std::string& once) {
        return fmt::format(
            "CASE WHEN typeof({0}) <> 'VARCHAR' THEN error('[UNSUPPORTED_CONSTRUCT] concat_ws of a "
            "' || typeof({0}) || ': use array_join or CAST(... AS STRING)') ELSE {0} END",
            once);
      }));
    }
    const auto form = [&](const std::vector<std::string>& parts) {
      std::vector<std::string> args = parts;
      for (const size_t i : lists) {
        args[i] = fmt::format(
            "CASE WHEN list_aggregate({0}, 'count') > 0 THEN array_to_string({0}, {1}) END",
            parts[i], parts[0]);
      }
      return fmt::format("concat_ws({})", fmt::join(args, ", "));
    };
    return lists.empty() ? form(values) : computed_once(values, form);
  }
  if (name == "substring" || name == "substr") {
    const auto number = [&](const ExprPtr& arg, bool length) {
      const std::string text = expr(arg);
      const auto* constant = arg->as<Literal>();
      if (constant != nullptr && is_integer(constant->type)) {
        const bool zero = constant->text.find_first_of("123456789") == std::string::npos;
        if (length) return constant->text[0] == '-' ? std::string("0") : text;
        return zero ? std::string("1") : text;
      }
      return length ? fmt::format("greatest({}, 0)", text)
                    : computed_once(text, [](const std::string& once) {
                        return fmt::format("CASE WHEN {0} = 0 THEN 1 ELSE {0} END", once);
                      });
    };
    const std::string text = as_string(call.args[0]);
    if (call.args.size() == 2)
      return fmt::format("substring({}, {})", text, number(call.args[1], false));
    return fmt::format("substring({}, {}, {})", text, number(call.args[1], false),
                       number(call.args[2], true));
  }
  if (name == "regexp_replace") {
    const std::optional<std::string> replacement = constant_argument(call, 2, "a replacement");
    if (!replacement) return "";
    std::string translated;  // $1 is \1, \$ is $
    for (size_t i = 0; i < replacement->size(); ++i) {
      const char c = (*replacement)[i];
      const char following = i + 1 < replacement->size() ? (*replacement)[i + 1] : '\0';
      if (c == '$' && following >= '0' && following <= '9') {
        translated += '\\';
      } else if (c == '\\' && following != '\0') {
        translated += following == '\\' ? "\\\\" : std::string(1, following);
        ++i;
      } else {
        translated += c;
      }
    }
    return fmt::format("regexp_replace({}, {}, {}, 'g')", as_string(call.args[0]),
                       as_string(call.args[1]), duckdb_string(translated));
  }
  if (name == "regexp_extract" || name == "regexp_extract_all") {
    const std::string group = call.args.size() == 3 ? expr(call.args[2]) : "1";
    return fmt::format("{}({}, {}, {})", name, as_string(call.args[0]), as_string(call.args[1]),
                       group);
  }
  if (name == "sha2") {
    const std::optional<std::string> bits = constant_argument(call, 1, "a length");
    if (!bits) return "";
    if (*bits != "256" && *bits != "0") {
      fail_unsupported(node.place, "sha2 with " + *bits + " bits", "use 256");
      return "";
    }
    return fmt::format("sha256({})", as_bytes(call.args[0]));
  }
  if (name == "encode" || name == "decode") {
    const std::optional<std::string> charset = constant_argument(call, 1, "a character set");
    if (!charset) return "";
    if (upper_ascii(*charset) != "UTF-8" && upper_ascii(*charset) != "UTF8") {
      fail_unsupported(node.place, name + " with the character set " + *charset, "use UTF-8");
      return "";
    }
    return name == "encode" ? fmt::format("encode({})", as_string(call.args[0]))
                            : fmt::format("decode({})", as_bytes(call.args[0]));
  }
  if (name == "round" || name == "bround") return rounded(call);
  if (name == "grouping" || name == "grouping_id") return grouping_id(node, call);
  if (name == "nullif") {
    const ExprPtr& value = call.args[0];
    if (!compared_type({value, call.args[1]}))
      return fmt::format("nullif({}, {})", expr(value), expr(call.args[1]));
    return with_columns({value, call.args[1]}, [&](const std::vector<ExprPtr>& args) {
      return fmt::format("CASE WHEN {} THEN NULL ELSE {} END",
                         infix({BinaryOp::kEqual, args[0], args[1]}), expr(args[0]));
    });
  }
  if (name == "length" || name == "char_length" || name == "character_length" || name == "len") {
    const bool bytes = type_of(*call.args[0]).id == TypeId::kBinary;
    return bytes ? fmt::format("CAST(octet_length({}) AS INTEGER)", expr(call.args[0]))
                 : fmt::format("CAST(length({}) AS INTEGER)", as_string(call.args[0]));
  }
  if (name == "reverse") {
    const bool array = type_of(*call.args[0]).id == TypeId::kArray;
    return array ? fmt::format("list_reverse({})", expr(call.args[0]))
                 : fmt::format("reverse({})", as_string(call.args[0]));
  }
  if (name == "array_join") {
    const DataType type = type_of(*call.args[0]);
    std::string items = expr(call.args[0]);
    if (type.id == TypeId::kArray && type.element->id != TypeId::kString) {
      // The engine has other texts for numbers and times.
      const std::string text = duckdb_text_of("sl_item", *type.element);
      if (!text.empty()) items = fmt::format("list_transform({}, lambda sl_item: {})", items, text);
    }
    return fmt::format("array_to_string({}, {})", items, as_string(call.args[1]));
  }
  if (name == "pmod") {  // the rest with the sign of the divisor, which must not be zero
    return with_columns({call.args[0], call.args[1]}, [&](const std::vector<ExprPtr>& args) {
      const ExprPtr rest = sql::binary(BinaryOp::kModulo, args[0], args[1]);
      const ExprPtr sum = sql::binary(BinaryOp::kAdd, rest, args[1]);
      return fmt::format("CASE WHEN {0} < 0 THEN {1} ELSE {0} END", expr(rest),
                         expr(sql::binary(BinaryOp::kModulo, sum, args[1])));
    });
  }
  if (name == "mod") return expr(sql::binary(BinaryOp::kModulo, call.args[0], call.args[1]));
  if (name == "try_divide") {
    return with_columns({call.args[0], call.args[1]}, [&](const std::vector<ExprPtr>& args) {
      const std::string quotient = divide(args[0], args[1]);
      return fmt::format("CASE WHEN {} <> 0 THEN {} END", expr(args[1]), quotient);
    });
  }
  if (name == "get_json_object") {
    const std::optional<std::string> path = constant_argument(call, 1, "a path");
    if (!path) return "";
    if (path->empty() || (*path)[0] != '$' || path->find('*') != std::string::npos) {
      fail_unsupported(call.args[1]->place, fmt::format("the JSON path '{}'", *path),
                       "write a path such as $.a.b[0], without *");
      return "";
    }
    return json_value(as_string(call.args[0]), *path);
  }
  if (name == "from_json") {
    if (call.args.size() == 3) {
      fail_unsupported(node.place, "from_json with options", "leave them out");
      return "";
    }
    const std::optional<std::string> schema = constant_argument(call, 1, "a schema");
    if (!schema) return "";
    // A DDL list of fields is a struct; else it is a type.
    Result<DataType> type = parse_type(*schema, call.args[1]->place.file);
    if (!type.ok()) {
      Result<Schema> fields = parse_schema_ddl(*schema, call.args[1]->place.file);
      if (!fields.ok()) {
        fail(invalid_argument("INVALID_SCHEMA", "the schema of from_json: {}",
                              fields.error().message),
             call.args[1]->place);
        return "";
      }
      type = DataType::structure(fields->fields);
    }
    const std::string structure = json_structure(*type);
    if (structure.empty()) {
      fail_unsupported(call.args[1]->place, "the schema of from_json " + to_sql(*type), "");
      return "";
    }
    const std::string decimals = decimals_in(*type);
    const std::string valid = computed_once(as_string(call.args[0]), [&](const std::string& text) {
      const std::string exact =
          decimals.empty() ? text
                           : fmt::format("sl_json_decimals({}, {})", text, duckdb_string(decimals));
      return fmt::format("CASE WHEN json_valid({0}) THEN {1} WHEN {0} IS NOT NULL THEN '{2}' END",
                         text, exact, type->id == TypeId::kStruct ? "{}" : "null");
    });
    const std::string transformed =
        fmt::format("json_transform({}, {})", valid, duckdb_string(structure));
    if (!read_as_text(*type)) return transformed;
    return fmt::format("list_transform([{}], lambda sl_json: {})[1]", transformed,
                       read_texts("sl_json", *type, 0));
  }
  if (name == "to_json") {
    const std::string value = expr(call.args[0]);
    const DataType type = described_value(value).value_or(DataType());
    if (!json_text_of("x", type).empty()) {
      return computed_once(value,
                           [&](const std::string& text) { return json_text_of(text, type); });
    }
    return computed_once(value, [](const std::string& once) {
      return fmt::format(
          "CASE WHEN typeof({0}) LIKE '%TIMESTAMP%' OR typeof({0}) LIKE '%BLOB%' THEN "
          "error('[UNSUPPORTED_CONSTRUCT] to_json of timestamps or binary: cast them to STRING "
          "first') "
          "WHEN {0} IS NOT NULL THEN CAST(json_merge_patch('{{}}', to_json({0})) AS VARCHAR) END",
          once);
    });
  }
  static const std::pair<const char*, TypeId> kCasts[] = {
      {"string", TypeId::kString},  {"int", TypeId::kInteger},         {"bigint", TypeId::kLong},
      {"smallint", TypeId::kShort}, {"tinyint", TypeId::kByte},        {"float", TypeId::kFloat},
      {"double", TypeId::kDouble},  {"boolean", TypeId::kBoolean},     {"binary", TypeId::kBinary},
      {"date", TypeId::kDate},      {"timestamp", TypeId::kTimestamp},
  };
  for (const auto& [cast_name, type] : kCasts) {
    if (name == cast_name) return cast(node, call.args[0], DataType::primitive(type), false);
  }
  if (name == "decimal") return cast(node, call.args[0], DataType::decimal(10, 0), false);

  static constexpr std::string_view kCollections[] = {
      "map",        "size",           "cardinality",      "sort_array", "transform", "sequence",
      "element_at", "filter",         "exists",           "forall",     "aggregate", "reduce",
      "zip_with",   "transform_keys", "transform_values", "map_filter", "map_concat"};
  for (const std::string_view collection : kCollections) {
    if (name == collection) return collection_special(node, call);
  }
  return time_special(node, call);
}

}  // namespace strandline::sql
