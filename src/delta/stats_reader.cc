#include "delta/stats_reader.h"

#include <simdjson.h>

#include <cstring>

namespace strandline::delta {

namespace ondemand = simdjson::ondemand;

namespace {

// A name of the schema on the way to columns.
struct NameNode {
  std::string name;
  std::optional<size_t> column;
  std::vector<NameNode> members;
};

const NameNode* find(const std::vector<NameNode>& nodes, std::string_view name) {
  for (const NameNode& node : nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

std::string_view trim(std::string_view token) {
  const size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

enum class Part { kMin, kMax, kNullCount };

}  // namespace

struct StatsReader::Impl {
  std::vector<NameNode> roots;
  FileStats stats;
  ondemand::parser parser;
  std::vector<char> buffer;

  bool read_document(std::string_view json);
  bool read_part(ondemand::value value, const std::vector<NameNode>& nodes, Part part);
  bool read_cell(ondemand::value value, Part part, ColumnStats* column);
};

// False where the text is broken, so that nothing after it can be believed either.
bool StatsReader::Impl::read_cell(ondemand::value value, Part part, ColumnStats* column) {
  ondemand::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return false;
  if (part == Part::kNullCount) {
    int64_t count = 0;
    if (type == ondemand::json_type::number && value.get_int64().get(count) == simdjson::SUCCESS &&
        count >= 0) {
      column->null_count = count;
    }
    return true;
  }
  std::optional<BoundText>& bound = part == Part::kMin ? column->min : column->max;
  switch (type) {
    case ondemand::json_type::string: {
      std::string_view text;
      // Half of a surrogate pair, for one: this cell alone is unknown.
      if (value.get_string().get(text) == simdjson::SUCCESS) bound = BoundText{text, true};
      return true;
    }
    case ondemand::json_type::number:
    case ondemand::json_type::boolean:
      bound = BoundText{trim(value.raw_json_token()), false};
      return true;
    default:
      return true;
  }
}

bool StatsReader::Impl::read_part(ondemand::value value, const std::vector<NameNode>& nodes,
                                  Part part) {
  ondemand::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return false;
  if (type != ondemand::json_type::object) return true;
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto item : object) {
    ondemand::field field;
    std::string_view name;
    if (std::move(item).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return false;
    const NameNode* const node = find(nodes, name);
    if (node == nullptr) continue;
    ondemand::value inner = field.value();
    if (!node->members.empty()) {
      if (!read_part(inner, node->members, part)) return false;
    } else if (node->column && !read_cell(inner, part, &stats.columns[*node->column])) {
      return false;
    }
  }
  return true;
}

bool StatsReader::Impl::read_document(std::string_view json) {
  buffer.resize(json.size() + simdjson::SIMDJSON_PADDING);
  if (!json.empty()) std::memcpy(buffer.data(), json.data(), json.size());
  std::memset(buffer.data() + json.size(), 0, simdjson::SIMDJSON_PADDING);
  ondemand::document document;
  const simdjson::padded_string_view padded(buffer.data(), json.size(), buffer.size());
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return false;
  ondemand::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto item : object) {
    ondemand::field field;
    std::string_view name;
    if (std::move(item).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return false;
    ondemand::value value = field.value();
    bool good = true;
    if (name == "numRecords") {
      int64_t count = 0;
      if (value.get_int64().get(count) == simdjson::SUCCESS && count >= 0)
        stats.num_records = count;
    } else if (name == "minValues") {
      good = read_part(value, roots, Part::kMin);
    } else if (name == "maxValues") {
      good = read_part(value, roots, Part::kMax);
    } else if (name == "nullCount") {
      good = read_part(value, roots, Part::kNullCount);
    }
    if (!good) return false;
  }
  return true;
}

StatsReader::StatsReader(const std::vector<std::vector<std::string>>& columns)
    : impl_(std::make_unique<Impl>()) {
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<NameNode>* level = &impl_->roots;
    NameNode* node = nullptr;
    for (const std::string& name : columns[i]) {
      node = const_cast<NameNode*>(find(*level, name));
      if (node == nullptr) node = &level->emplace_back(NameNode{name, std::nullopt, {}});
      level = &node->members;
    }
    if (node != nullptr) node->column = i;
  }
  impl_->stats.columns.resize(columns.size());
}
StatsReader::StatsReader(StatsReader&&) noexcept = default;
StatsReader& StatsReader::operator=(StatsReader&&) noexcept = default;
StatsReader::~StatsReader() = default;

const StatsReader::FileStats& StatsReader::read(std::string_view json) {
  const auto forget = [this] {
    impl_->stats.num_records.reset();
    for (ColumnStats& column : impl_->stats.columns) column = ColumnStats{};
  };
  forget();
  if (!impl_->read_document(json)) forget();
  return impl_->stats;
}

}  // namespace strandline::delta
