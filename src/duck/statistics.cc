#include "duck/statistics.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "delta/alter.h"
#include "duck/connection.h"

namespace strandline::duck {
namespace {

enum class Part { kMin, kMax, kNullCount };

constexpr int64_t kDefaultIndexedColumns = 32;
constexpr int64_t kDefaultStringPrefix = 32;
constexpr char32_t kLastCodePoint = 0x10FFFF;

int64_t int_property(const delta::Snapshot& definition, const std::string& key, int64_t otherwise) {
  const auto text = definition.property(key);
  if (!text) return otherwise;
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), value);
  return failure == std::errc() && end == text->data() + text->size() ? value : otherwise;
}

bool starts_with(const delta::FieldPath& path, const delta::FieldPath& start) {
  return start.size() <= path.size() && std::equal(start.begin(), start.end(), path.begin());
}

// Which leaf columns get statistics: the first n, or those a property names; always those that the
// table is clustered by.
class IndexedColumns {
 public:
  explicit IndexedColumns(const delta::Snapshot& definition)
      : left_(int_property(definition, "delta.dataSkippingNumIndexedCols", kDefaultIndexedColumns)),
        clustering_(delta::clustering_columns(definition.domains)) {
    if (left_ < 0) left_ = INT64_MAX;
    if (const auto named = definition.property("delta.dataSkippingStatsColumns")) {
      named_ = delta::parse_column_list(*named);
      for (delta::FieldPath& path : *named_) {
        for (std::string& name : path) name = fold_name(name);
      }
    }
  }

  // To be asked once for each leaf, in schema order. Paths in folded logical and in file names.
  bool take(const delta::FieldPath& folded, const delta::FieldPath& in_file) {
    const bool chosen =
        named_ ? std::any_of(named_->begin(), named_->end(),
                             [&](const auto& wanted) { return starts_with(folded, wanted); })
               : left_ > 0 && left_-- > 0;
    return chosen ||
           std::find(clustering_.begin(), clustering_.end(), in_file) != clustering_.end();
  }

 private:
  int64_t left_;
  std::optional<std::vector<delta::FieldPath>> named_;
  std::vector<delta::FieldPath> clustering_;
};

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "2024-01-31" with a year of four digits.
bool is_plain_date(std::string_view text) {
  return text.size() == 10 && is_digits(text.substr(0, 4)) && text[4] == '-' &&
         is_digits(text.substr(5, 2)) && text[7] == '-' && is_digits(text.substr(8, 2));
}

// DuckDB's text of a timestamp as ISO 8601 cut down to milliseconds.
std::optional<std::string> timestamp_bound(std::string_view text, bool is_instant) {
  if (text.size() < 19 || !is_plain_date(text.substr(0, 10)) || text[10] != ' ') {
    return std::nullopt;
  }
  std::string_view rest = text.substr(19);
  std::string millis = "000";
  if (rest.starts_with('.')) {
    size_t digits = 1;
    while (digits < rest.size() && is_digits(rest.substr(digits, 1))) ++digits;
    millis = (std::string(rest.substr(1, digits - 1)) + "000").substr(0, 3);
    rest = rest.substr(digits);
  }
  if (!rest.empty() && rest != "+00") return std::nullopt;
  std::string iso(text.substr(0, 10));
  iso += 'T';
  iso += text.substr(11, 8);
  return iso + "." + millis + (is_instant ? "Z" : "");
}

// A float or double as a JSON number. Zero bounds carry the sign that keeps both zeros inside.
std::optional<std::string> float_bound(const std::string& text, Part part) {
  const bool is_number = std::all_of(text.begin(), text.end(),
                                     [](char c) { return std::strchr("+-.0123456789e", c); });
  if (!is_number || text.empty()) return std::nullopt;  // inf, nan
  if (text == "0.0" || text == "-0.0" || text == "0" || text == "-0") {
    return part == Part::kMin ? "-0.0" : "0.0";
  }
  return text;
}

// A decimal as a JSON number: DuckDB leaves out the zero before the point of DECIMAL(p, p).
std::string decimal_bound(std::string text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (text.substr(first).starts_with('.')) text.insert(first, "0");
  return text;
}

class StatisticsPrinter {
 public:
  StatisticsPrinter(const delta::Snapshot& definition, const ColumnStatistics& columns)
      : definition_(definition), columns_(columns), mode_(column_mode(definition)) {
    const int64_t prefix =
        int_property(definition, "delta.dataSkippingStringPrefixLength", kDefaultStringPrefix);
    prefix_length_ = prefix > 0 ? static_cast<size_t>(prefix) : kDefaultStringPrefix;
  }

  // The object of one part; "{}" when nothing is known.
  std::string print(Part part) {
    IndexedColumns indexed(definition_);
    std::vector<Field> stored;
    for (const Field& field : definition_.schema.fields) {
      const auto& partitions = definition_.metadata.partition_columns;
      const bool is_partition =
          std::any_of(partitions.begin(), partitions.end(),
                      [&](const std::string& name) { return same_name(name, field.name); });
      if (!is_partition) stored.push_back(field);
    }
    return print_fields(stored, part, "", {}, {}, indexed);
  }

 private:
  std::string print_fields(const std::vector<Field>& fields, Part part, const std::string& path,
                           const delta::FieldPath& folded, const delta::FieldPath& in_file,
                           IndexedColumns& indexed) {
    std::string members;
    for (const Field& field : fields) {
      if (field.type.id == TypeId::kVoid) continue;
      const std::string name = file_name(field, mode_);
      const std::string own_path = path + (path.empty() ? "" : ".") + quote_name(name);
      delta::FieldPath own_folded = folded;
      own_folded.push_back(fold_name(field.name));
      delta::FieldPath own_in_file = in_file;
      own_in_file.push_back(name);
      std::string value;
      if (field.type.id == TypeId::kStruct) {
        value = print_fields(*field.type.fields, part, own_path, own_folded, own_in_file, indexed);
        if (value == "{}") value.clear();
      } else if (indexed.take(own_folded, own_in_file)) {
        value = leaf(field.type, own_path, part).value_or("");
      }
      if (value.empty()) continue;
      if (!members.empty()) members += ',';
      members += json_string(name) + ":" + value;
    }
    return "{" + members + "}";
  }

  std::optional<std::string> leaf(const DataType& type, const std::string& path, Part part) const {
    const auto column = columns_.find(path);
    if (column == columns_.end() || type.is_nested()) return std::nullopt;
    const auto cell = [&](const char* name) -> std::optional<std::string> {
      const auto found = column->second.find(name);
      if (found == column->second.end()) return std::nullopt;
      return found->second;
    };
    if (part == Part::kNullCount) return cell("null_count");
    const auto text = cell(part == Part::kMin ? "min" : "max");
    if (!text) return std::nullopt;
    switch (type.id) {
      case TypeId::kByte:
      case TypeId::kShort:
      case TypeId::kInteger:
      case TypeId::kLong:
        return text;
      case TypeId::kDecimal:
        return decimal_bound(*text);
      case TypeId::kFloat:
      case TypeId::kDouble:
        if (cell("has_nan").value_or("true") != "false") return std::nullopt;
        return float_bound(*text, part);
      case TypeId::kDate:
        if (!is_plain_date(*text)) return std::nullopt;
        return json_string(*text);
      case TypeId::kTimestamp:
      case TypeId::kTimestampNtz: {
        const auto bound = timestamp_bound(*text, type.id == TypeId::kTimestamp);
        if (!bound) return std::nullopt;
        return json_string(*bound);
      }
      case TypeId::kString: {
        if (part == Part::kMin) return json_string(lower_bound(*text, prefix_length_));
        const auto bound = upper_bound(*text, prefix_length_);
        if (!bound) return std::nullopt;
        return json_string(*bound);
      }
      default:
        return std::nullopt;
    }
  }

  const delta::Snapshot& definition_;
  const ColumnStatistics& columns_;
  const ColumnMode mode_;
  size_t prefix_length_ = 0;
};

// Byte length of the first count code points, or of all text if it is shorter; less than that where
// the text is no UTF-8 (COPY cuts long texts at a byte).
size_t prefix_bytes(std::string_view text, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count && bytes < text.size(); ++i) {
    char32_t code_point = 0;
    const size_t length = decode_utf8(text.substr(bytes), &code_point);
    if (length == 0) return bytes;
    bytes += length;
  }
  return bytes;
}

}  // namespace

std::string lower_bound(const std::string& text, size_t prefix_length) {
  return text.substr(0, prefix_bytes(text, prefix_length));
}

std::optional<std::string> upper_bound(const std::string& text, size_t prefix_length) {
  // While the next character is the last code point, nothing after the prefix would be greater.
  for (size_t length = prefix_length; length <= 2 * prefix_length; ++length) {
    const size_t bytes = prefix_bytes(text, length);
    if (bytes == text.size()) return text;
    char32_t next = 0;
    if (decode_utf8(std::string_view(text).substr(bytes), &next) == 0) return std::nullopt;
    if (next == kLastCodePoint) continue;
    std::string bound = text.substr(0, bytes);
    append_utf8(&bound, next < 0x7F ? char32_t{0x7F} : kLastCodePoint);
    return bound;
  }
  return std::nullopt;
}

std::string statistics_json(const delta::Snapshot& definition, int64_t row_count,
                            const ColumnStatistics& columns) {
  StatisticsPrinter printer(definition, columns);
  std::string json = "{\"numRecords\":" + std::to_string(row_count);
  json += ",\"minValues\":" + printer.print(Part::kMin);
  json += ",\"maxValues\":" + printer.print(Part::kMax);
  json += ",\"nullCount\":" + printer.print(Part::kNullCount);
  return json + ",\"tightBounds\":true}";
}

}  // namespace strandline::duck
