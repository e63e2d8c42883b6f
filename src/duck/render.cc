#include "duck/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "duck/engine.h"
#include "duck/value_text.h"

namespace strandline::duck {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;

template <typename T>
T element(duckdb_vector vector, idx_t row) {
  return static_cast<T*>(duckdb_vector_get_data(vector))[row];
}

// How a value stands in JSON.
enum class Form { kBare, kText };

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::string date_text(duckdb_date date) {
  if (!duckdb_is_finite_date(date)) return date.days > 0 ? "infinity" : "-infinity";
  const duckdb_date_struct parts = duckdb_from_date(date);
  return fmt::format("{}{:04}-{:02}-{:02}", parts.year < 0 ? "-" : "", std::abs(parts.year),
                     static_cast<int>(parts.month), static_cast<int>(parts.day));
}

std::string timestamp_text(duckdb_timestamp timestamp, bool is_instant) {
  if (!duckdb_is_finite_timestamp(timestamp))
    return timestamp.micros > 0 ? "infinity" : "-infinity";
  const duckdb_timestamp_struct parts = duckdb_from_timestamp(timestamp);
  std::string text = date_text(duckdb_to_date(parts.date));
  text += fmt::format("T{:02}:{:02}:{:02}", static_cast<int>(parts.time.hour),
                      static_cast<int>(parts.time.min), static_cast<int>(parts.time.sec));
  if (parts.time.micros != 0) text += fmt::format(".{:06}", parts.time.micros);
  return text + (is_instant ? "Z" : "");
}

template <typename T>
std::pair<std::string, Form> float_text(T value) {
  if (std::isnan(value)) return {"NaN", Form::kText};
  if (std::isinf(value)) return {value > 0 ? "Infinity" : "-Infinity", Form::kText};
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return {text, Form::kBare};
}

// A value that is neither null nor nested: its text and whether JSON leaves it bare.
std::pair<std::string, Form> scalar(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_BOOLEAN:
      return {element<bool>(vector, row) ? "true" : "false", Form::kBare};
    case DUCKDB_TYPE_TINYINT:
      return {std::to_string(element<int8_t>(vector, row)), Form::kBare};
    case DUCKDB_TYPE_SMALLINT:
      return {std::to_string(element<int16_t>(vector, row)), Form::kBare};
    case DUCKDB_TYPE_INTEGER:
      return {std::to_string(element<int32_t>(vector, row)), Form::kBare};
    case DUCKDB_TYPE_BIGINT:
      return {std::to_string(element<int64_t>(vector, row)), Form::kBare};
    case DUCKDB_TYPE_UBIGINT:
      return {std::to_string(element<uint64_t>(vector, row)), Form::kBare};
    case DUCKDB_TYPE_FLOAT:
      return float_text(element<float>(vector, row));
    case DUCKDB_TYPE_DOUBLE:
      return float_text(element<double>(vector, row));
    case DUCKDB_TYPE_VARCHAR:
      return {text_at(vector, row).value_or(""), Form::kText};
    case DUCKDB_TYPE_BLOB:
      return {base64(text_at(vector, row).value_or("")), Form::kText};
    case DUCKDB_TYPE_DATE:
      return {date_text(element<duckdb_date>(vector, row)), Form::kText};
    case DUCKDB_TYPE_TIMESTAMP:
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return {timestamp_text(element<duckdb_timestamp>(vector, row),
                             duckdb_get_type_id(type) == DUCKDB_TYPE_TIMESTAMP_TZ),
              Form::kText};
    default: {
      // Rare types in the engine's own text; of these, only the integers are numbers.
      const Value value = vector_value(vector, type, row);
      auto known = text_of(value.get(), type);
      std::string text = known ? std::move(*known) : "<" + spell_type(type) + ">";
      const duckdb_type id = duckdb_get_type_id(type);
      const bool is_integer = id == DUCKDB_TYPE_HUGEINT || id == DUCKDB_TYPE_UHUGEINT ||
                              id == DUCKDB_TYPE_UTINYINT || id == DUCKDB_TYPE_USMALLINT ||
                              id == DUCKDB_TYPE_UINTEGER || id == DUCKDB_TYPE_BIGNUM;
      return {std::move(text), is_integer ? Form::kBare : Form::kText};
    }
  }
}

void append_json(std::string* out, duckdb_vector vector, duckdb_logical_type type, idx_t row);

void append_list(std::string* out, duckdb_vector child, duckdb_logical_type type, idx_t first,
                 idx_t count) {
  *out += '[';
  for (idx_t i = 0; i < count; ++i) {
    if (i > 0) *out += ',';
    append_json(out, child, type, first + i);
  }
  *out += ']';
}

void append_struct(std::string* out, duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  *out += '{';
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
    if (i > 0) *out += ',';
    const LogicalType child(duckdb_struct_type_child_type(type, i));
    append_json_string(out, take_string(duckdb_struct_type_child_name(type, i)));
    *out += ':';
    append_json(out, duckdb_struct_vector_get_child(vector, i), child.get(), row);
  }
  *out += '}';
}

void append_map(std::string* out, duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  const LogicalType key_type(duckdb_map_type_key_type(type));
  const LogicalType value_type(duckdb_map_type_value_type(type));
  const duckdb_vector entries = duckdb_list_vector_get_child(vector);
  const duckdb_list_entry entry = list_entry_at(vector, row);
  *out += '{';
  for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
    if (i > entry.offset) *out += ',';
    std::string key;
    append_json(&key, duckdb_struct_vector_get_child(entries, 0), key_type.get(), i);
    if (key.starts_with('"')) {
      *out += key;
    } else {
      append_json_string(out, key);
    }
    *out += ':';
    append_json(out, duckdb_struct_vector_get_child(entries, 1), value_type.get(), i);
  }
  *out += '}';
}

bool is_nested(duckdb_logical_type type) {
  const duckdb_type id = duckdb_get_type_id(type);
  return id == DUCKDB_TYPE_LIST || id == DUCKDB_TYPE_ARRAY || id == DUCKDB_TYPE_STRUCT ||
         id == DUCKDB_TYPE_MAP;
}

void append_json(std::string* out, duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) {
    *out += "null";
    return;
  }
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_LIST: {
      const LogicalType child(duckdb_list_type_child_type(type));
      const duckdb_list_entry entry = list_entry_at(vector, row);
      append_list(out, duckdb_list_vector_get_child(vector), child.get(), entry.offset,
                  entry.length);
      return;
    }
    case DUCKDB_TYPE_ARRAY: {
      const LogicalType child(duckdb_array_type_child_type(type));
      const idx_t size = duckdb_array_type_array_size(type);
      append_list(out, duckdb_array_vector_get_child(vector), child.get(), row * size, size);
      return;
    }
    case DUCKDB_TYPE_STRUCT:
      append_struct(out, vector, type, row);
      return;
    case DUCKDB_TYPE_MAP:
      append_map(out, vector, type, row);
      return;
    default: {
      const auto [text, form] = scalar(vector, type, row);
      if (form == Form::kBare) {
        *out += text;
      } else {
        append_json_string(out, text);
      }
    }
  }
}

// The text of a cell outside JSON; nullopt is null.
std::optional<std::string> cell_text(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return std::nullopt;
  if (!is_nested(type)) return scalar(vector, type, row).first;
  std::string text;
  append_json(&text, vector, type, row);
  return text;
}

bool is_number(duckdb_logical_type type) {
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_BIGINT:
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_UBIGINT:
    case DUCKDB_TYPE_HUGEINT:
    case DUCKDB_TYPE_UHUGEINT:
    case DUCKDB_TYPE_FLOAT:
    case DUCKDB_TYPE_DOUBLE:
    case DUCKDB_TYPE_DECIMAL:
      return true;
    default:
      return false;
  }
}

// Collects output and hands it over in large pieces.
class Output {
 public:
  explicit Output(const Sink& sink) : sink_(sink) {}
  std::string& text() { return text_; }
  Status flush_if_full() { return text_.size() < kPieceBytes ? Status() : flush(); }
  Status flush() {
    if (text_.empty()) return {};
    Status done = sink_(text_);
    text_.clear();
    return done;
  }

 private:
  const Sink& sink_;
  std::string text_;
};

// One format: header, rows, end.
class Renderer {
 public:
  virtual ~Renderer() = default;
  virtual void begin(std::string* out, const std::vector<StreamColumn>& columns) = 0;
  virtual void row(std::string* out, duckdb_data_chunk chunk, idx_t row) = 0;
  // The columns are gone by then.
  virtual void end(std::string* out) = 0;
  // begin() of every format calls this; and before rows of another query, who has its columns.
  void remember(const std::vector<StreamColumn>& columns) { columns_ = &columns; }

 protected:
  const std::vector<StreamColumn>& columns() const { return *columns_; }
  std::optional<std::string> cell(duckdb_data_chunk chunk, idx_t column, idx_t row) const {
    return cell_text(duckdb_data_chunk_get_vector(chunk, column), columns()[column].type.get(),
                     row);
  }

 private:
  const std::vector<StreamColumn>* columns_ = nullptr;
};

class CsvRenderer final : public Renderer {
 public:
  void begin(std::string* out, const std::vector<StreamColumn>& columns) override {
    remember(columns);
    for (size_t c = 0; c < columns.size(); ++c) field(out, c, columns[c].name);
    *out += '\n';
  }
  void row(std::string* out, duckdb_data_chunk chunk, idx_t row) override {
    for (size_t c = 0; c < columns().size(); ++c) field(out, c, cell(chunk, c, row));
    *out += '\n';
  }
  void end(std::string*) override {}

 private:
  // Null is empty, an empty text is quoted.
  void field(std::string* out, size_t column, const std::optional<std::string>& text) const {
    if (column > 0) *out += ',';
    if (!text) return;
    if (!text->empty() && text->find_first_of(",\"\r\n") == std::string::npos) {
      *out += *text;
      return;
    }
    *out += '"';
    for (const char c : *text) {
      if (c == '"') *out += '"';
      *out += c;
    }
    *out += '"';
  }
};

class JsonRenderer final : public Renderer {
 public:
  explicit JsonRenderer(bool is_array) : is_array_(is_array) {}
  void begin(std::string* out, const std::vector<StreamColumn>& columns) override {
    remember(columns);
    for (const StreamColumn& column : columns) keys_.push_back(json_string(column.name) + ":");
    if (is_array_) *out += '[';
  }
  void row(std::string* out, duckdb_data_chunk chunk, idx_t row) override {
    if (is_array_) *out += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    *out += '{';
    for (size_t c = 0; c < columns().size(); ++c) {
      if (c > 0) *out += ',';
      *out += keys_[c];
      append_json(out, duckdb_data_chunk_get_vector(chunk, c), columns()[c].type.get(), row);
    }
    *out += '}';
    if (!is_array_) *out += '\n';
  }
  void end(std::string* out) override {
    if (is_array_) *out += is_first_ ? "]\n" : "\n]\n";
  }

 private:
  const bool is_array_;
  bool is_first_ = true;
  std::vector<std::string> keys_;
};

class MarkdownRenderer final : public Renderer {
 public:
  void begin(std::string* out, const std::vector<StreamColumn>& columns) override {
    remember(columns);
    *out += '|';
    for (const StreamColumn& column : columns) *out += " " + escape(column.name) + " |";
    *out += "\n|";
    for (const StreamColumn& column : columns)
      *out += is_number(column.type.get()) ? "---:|" : "---|";
    *out += '\n';
  }
  void row(std::string* out, duckdb_data_chunk chunk, idx_t row) override {
    *out += '|';
    for (size_t c = 0; c < columns().size(); ++c) {
      *out += " " + escape(cell(chunk, c, row).value_or("NULL")) + " |";
    }
    *out += '\n';
  }
  void end(std::string*) override {}

 private:
  static std::string escape(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '|' || c == '\\') {
        escaped += '\\';
        escaped += c;
      } else if (c == '\n') {
        escaped += "<br>";
      } else if (c != '\r') {
        escaped += c;
      }
    }
    return escaped;
  }
};

class TableRenderer final : public Renderer {
 public:
  explicit TableRenderer(int64_t row_limit) : row_limit_(row_limit) {}
  void begin(std::string*, const std::vector<StreamColumn>& columns) override {
    remember(columns);
    std::vector<std::string> header;
    for (const StreamColumn& column : columns) {
      header.push_back(escape(column.name));
      are_numbers_.push_back(is_number(column.type.get()));
    }
    rows_.push_back(std::move(header));
  }
  void row(std::string*, duckdb_data_chunk chunk, idx_t row) override {
    if (row_count_++ >= row_limit_) return;
    std::vector<std::string> cells;
    for (size_t c = 0; c < columns().size(); ++c) {
      cells.push_back(escape(cell(chunk, c, row).value_or("NULL")));
    }
    rows_.push_back(std::move(cells));
  }
  void end(std::string* out) override {
    std::vector<size_t> widths(are_numbers_.size(), 0);
    for (const auto& cells : rows_) {
      for (size_t c = 0; c < cells.size(); ++c) {
        widths[c] = std::max(widths[c], display_width(cells[c]));
      }
    }
    std::string rule = "+";
    for (const size_t width : widths) rule += std::string(width + 2, '-') + "+";
    rule += '\n';
    *out += rule;
    for (size_t r = 0; r < rows_.size(); ++r) {
      *out += '|';
      for (size_t c = 0; c < widths.size(); ++c) {
        const std::string padding(widths[c] - display_width(rows_[r][c]), ' ');
        const bool right = r > 0 && are_numbers_[c];
        *out += ' ' + (right ? padding + rows_[r][c] : rows_[r][c] + padding) + " |";
      }
      *out += '\n';
      if (r == 0) *out += rule;
    }
    if (rows_.size() > 1) *out += rule;
    *out += fmt::format("{} row{}\n", row_count_, row_count_ == 1 ? "" : "s");
    if (row_count_ > row_limit_) {
      *out +=
          fmt::format("the first {} are shown; --format csv or ndjson prints all\n", row_limit_);
    }
  }

 private:
  // Control characters would break the grid.
  static std::string escape(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '\n') {
        escaped += "\\n";
      } else if (c == '\t') {
        escaped += "\\t";
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        escaped += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
      } else {
        escaped += c;
      }
    }
    return escaped;
  }

  const int64_t row_limit_;
  int64_t row_count_ = 0;
  std::vector<bool> are_numbers_;               // by column
  std::vector<std::vector<std::string>> rows_;  // header first
};

std::unique_ptr<Renderer> make_renderer(const RenderOptions& options) {
  switch (options.format) {
    case RenderFormat::kCsv:
      return std::make_unique<CsvRenderer>();
    case RenderFormat::kJson:
      return std::make_unique<JsonRenderer>(true);
    case RenderFormat::kNdjson:
      return std::make_unique<JsonRenderer>(false);
    case RenderFormat::kMarkdown:
      return std::make_unique<MarkdownRenderer>();
    case RenderFormat::kTable:
      break;
  }
  return std::make_unique<TableRenderer>(options.table_row_limit);
}

struct Range {
  char32_t first;
  char32_t last;
};

template <size_t n>
bool in_ranges(const std::array<Range, n>& ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

// Blocks of combining marks and invisible joiners.
constexpr std::array<Range, 12> kZeroWidth = {{{0x0300, 0x036F},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05BD},
                                               {0x0610, 0x061A},
                                               {0x064B, 0x065F},
                                               {0x1AB0, 0x1AFF},
                                               {0x1DC0, 0x1DFF},
                                               {0x200B, 0x200F},
                                               {0x20D0, 0x20FF},
                                               {0xFE00, 0xFE0F},
                                               {0xFE20, 0xFE2F},
                                               {0xE0100, 0xE01EF}}};
// East Asian wide and fullwidth blocks, and emoji.
constexpr std::array<Range, 12> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};

}  // namespace

std::optional<RenderFormat> parse_render_format(std::string_view name) {
  if (name == "table") return RenderFormat::kTable;
  if (name == "csv") return RenderFormat::kCsv;
  if (name == "json") return RenderFormat::kJson;
  if (name == "ndjson") return RenderFormat::kNdjson;
  if (name == "markdown") return RenderFormat::kMarkdown;
  return std::nullopt;
}

Result<int64_t> render(Connection& connection, const std::string& sql, const RenderOptions& options,
                       const Sink& sink) {
  std::optional<std::string> query = sql;
  const auto next = [&]() -> Result<std::optional<std::string>> {
    return std::exchange(query, std::nullopt);
  };
  return render_all(connection, next, options, sink);
}

Result<int64_t> render_all(Connection& connection, const NextQuery& next,
                           const RenderOptions& options, const Sink& sink) {
  const std::unique_ptr<Renderer> renderer = make_renderer(options);
  Output output(sink);
  int64_t row_count = 0;
  bool has_begun = false;
  const auto on_columns = [&](const std::vector<StreamColumn>& columns) -> Status {
    if (std::exchange(has_begun, true)) {
      renderer->remember(columns);
    } else {
      renderer->begin(&output.text(), columns);
    }
    return {};
  };
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    const idx_t count = duckdb_data_chunk_get_size(chunk);
    for (idx_t row = 0; row < count; ++row) {
      renderer->row(&output.text(), chunk, row);
      SL_TRY(output.flush_if_full());
    }
    row_count += static_cast<int64_t>(count);
    return {};
  };
  for (;;) {
    SL_ASSIGN(const std::optional<std::string> query, next());
    if (!query) break;
    SL_TRY(stream(connection, *query, on_columns, on_chunk));
  }
  renderer->end(&output.text());
  SL_TRY(output.flush());
  return row_count;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    char32_t code_point = 0;
    const size_t length = decode_utf8(text, &code_point);
    if (length == 0) {
      ++width;
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(length);
    if (in_ranges(kZeroWidth, code_point)) continue;
    width += in_ranges(kWide, code_point) ? 2 : 1;
  }
  return width;
}

}  // namespace strandline::duck
