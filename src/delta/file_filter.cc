#include "delta/file_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "delta/filter_value.h"
#include "delta/stats_reader.h"

namespace strandline::delta {
namespace {

// What a condition can be over the rows of a file: a set of truths.
using Mask = unsigned;
constexpr Mask kCanBeTrue = 1;
constexpr Mask kCanBeFalse = 2;
constexpr Mask kCanBeNull = 4;
constexpr Mask kAnything = kCanBeTrue | kCanBeFalse | kCanBeNull;

Mask mask_of(Truth truth) {
  switch (truth) {
    case Truth::kTrue:
      return kCanBeTrue;
    case Truth::kFalse:
      return kCanBeFalse;
    case Truth::kNull:
      return kCanBeNull;
  }
  return kAnything;
}

Mask both(Mask a, Mask b) {
  Mask result = (a & b & kCanBeTrue) | ((a | b) & kCanBeFalse);
  constexpr Mask kNotFalse = kCanBeTrue | kCanBeNull;
  if (((a & kCanBeNull) != 0 && (b & kNotFalse) != 0) ||
      ((b & kCanBeNull) != 0 && (a & kNotFalse) != 0)) {
    result |= kCanBeNull;
  }
  return result;
}

Mask opposite(Mask mask) {
  return ((mask & kCanBeTrue) != 0 ? kCanBeFalse : 0) |
         ((mask & kCanBeFalse) != 0 ? kCanBeTrue : 0) | (mask & kCanBeNull);
}

struct Column {
  std::vector<std::string> path;  // names in files, statistics and partition values
  DataType type;
  bool is_partition = false;
  bool widened_from_float = false;

  bool is_float() const { return type.id == TypeId::kFloat || type.id == TypeId::kDouble; }
};

// Bounds of a column in one file, on one scale.
struct Bounds {
  std::optional<ScaleValue> min;
  std::optional<ScaleValue> max;
  // NaN may be there whatever the bounds say: writers differ in whether they count it.
  bool nan_possible = false;
};

// Sorted intervals that do not overlap.
using Intervals = std::vector<Interval>;

// a's end is below b's begin.
bool ends_before(const Interval& a, const Interval& b) {
  if (!a.high || !b.low) return false;
  return *a.high < *b.low || (!(*b.low < *a.high) && (a.high_open || b.low_open));
}

Intervals merged(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    if (!a.low || !b.low) return !a.low && b.low;
    if (*a.low < *b.low || *b.low < *a.low) return *a.low < *b.low;
    return !a.low_open && b.low_open;
  });
  Intervals result;
  for (Interval& next : intervals) {
    if (result.empty() || ends_before(result.back(), next)) {
      result.push_back(std::move(next));
      continue;
    }
    Interval& last = result.back();
    if (!last.high) continue;
    const bool further = !next.high || *last.high < *next.high ||
                         (!(*next.high < *last.high) && last.high_open && !next.high_open);
    if (further) {
      last.high = std::move(next.high);
      last.high_open = next.high_open;
    }
  }
  return result;
}

bool overlaps(const Intervals& intervals, const Bounds& bounds) {
  if (bounds.nan_possible && !intervals.empty() && !intervals.back().high) return true;
  const Interval file{bounds.min, bounds.max, false, false};
  // The first interval that does not end below the file's values is the only one to look at.
  const auto found =
      std::partition_point(intervals.begin(), intervals.end(),
                           [&](const Interval& interval) { return ends_before(interval, file); });
  return found != intervals.end() && !ends_before(file, *found);
}

bool covers(const Intervals& intervals, const Bounds& bounds) {
  if (bounds.nan_possible && (intervals.empty() || intervals.back().high)) return false;
  const Interval file{bounds.min, bounds.max, false, false};
  const auto found =
      std::partition_point(intervals.begin(), intervals.end(),
                           [&](const Interval& interval) { return ends_before(interval, file); });
  if (found == intervals.end()) return false;
  const bool from_low =
      !found->low || (bounds.min && (*found->low < *bounds.min ||
                                     (!(*bounds.min < *found->low) && !found->low_open)));
  const bool to_high =
      !found->high || (bounds.max && (*bounds.max < *found->high ||
                                      (!(*found->high < *bounds.max) && !found->high_open)));
  return from_low && to_high;
}

Intervals complement(const LiteralValue& value) {
  return {Interval{std::nullopt, value.low, false, true},
          Interval{value.high, std::nullopt, true, false}};
}

}  // namespace

struct FileFilter::Node {
  enum class Kind { kUnknown, kConstant, kWithin, kIsNull, kAllOf, kAnyOf, kNot, kIs };
  Kind kind = Kind::kUnknown;
  Truth truth = Truth::kNull;                      // kConstant, kIs
  std::shared_ptr<const Column> column = nullptr;  // kWithin, kIsNull
  Scale scale = Scale::kInteger;
  Intervals possible = {};    // kWithin: a value outside makes it false
  Intervals certain = {};     // kWithin: a value inside makes it true
  Mask of_null = kCanBeNull;  // kWithin: what a null value gives
  std::vector<std::shared_ptr<const Node>> parts = {};
};

namespace {

using Node = FileFilter::Node;
using NodePtr = std::shared_ptr<const Node>;

bool has_float_history(const Field& field) {
  const auto changes = field.metadata.find("delta.typeChanges");
  return changes != field.metadata.end() && changes->second.find("float") != std::string::npos;
}

// The column at that path, or nullptr.
std::shared_ptr<const Column> find_column(const Snapshot& table,
                                          const std::vector<std::string>& path) {
  auto column = std::make_shared<Column>();
  const bool mapped = table.column_mapping_mode() != "none";
  const std::vector<Field>* fields = &table.schema.fields;
  const Field* field = nullptr;
  for (const std::string& name : path) {
    if (fields == nullptr) return nullptr;
    const auto found = std::find_if(fields->begin(), fields->end(), [&](const Field& candidate) {
      return same_name(candidate.name, name);
    });
    if (found == fields->end()) return nullptr;
    field = &*found;
    column->path.push_back(mapped ? Snapshot::physical_name(*field) : field->name);
    fields = field->type.id == TypeId::kStruct ? field->type.fields.get() : nullptr;
  }
  if (field == nullptr) return nullptr;
  column->type = field->type;
  column->widened_from_float = field->type.id == TypeId::kDouble && has_float_history(*field);
  const auto& partitions = table.metadata.partition_columns;
  column->is_partition = path.size() == 1 && std::any_of(partitions.begin(), partitions.end(),
                                                         [&](const std::string& name) {
                                                           return same_name(name, field->name);
                                                         });
  return column;
}

NodePtr constant_node(Truth truth) {
  return std::make_shared<const Node>(Node{Node::Kind::kConstant, truth});
}

struct Literal {
  Scale scale;
  LiteralValue value;
};

std::optional<Literal> read_literal(const Column& column, const FilterLiteral& literal) {
  const auto scale = common_scale(column.type, literal.type, literal.text);
  if (!scale) return std::nullopt;
  auto value = literal_value(column.type, *scale, literal.text);
  if (!value) return std::nullopt;
  return Literal{*scale, *std::move(value)};
}

NodePtr compare_node(std::shared_ptr<const Column> column, CompareOp op, const Literal& literal) {
  const ScaleValue& low = literal.value.low;
  const ScaleValue& high = literal.value.high;
  const bool exact = !(low < high);
  const Intervals point = {Interval{low, high, false, false}};
  Node node{Node::Kind::kWithin};
  node.column = std::move(column);
  node.scale = literal.scale;
  switch (op) {
    case CompareOp::kEqual:
      node.possible = point;
      if (exact) node.certain = point;
      break;
    case CompareOp::kNotEqual:
      node.certain = complement(literal.value);
      node.possible = exact ? node.certain : Intervals{Interval{}};
      break;
    case CompareOp::kLess:
      node.possible = {Interval{std::nullopt, high, false, true}};
      node.certain = {Interval{std::nullopt, low, false, true}};
      break;
    case CompareOp::kLessEqual:
      node.possible = {Interval{std::nullopt, high, false, false}};
      node.certain = {Interval{std::nullopt, low, false, false}};
      break;
    case CompareOp::kGreater:
      node.possible = {Interval{low, std::nullopt, true, false}};
      node.certain = {Interval{high, std::nullopt, true, false}};
      break;
    case CompareOp::kGreaterEqual:
      node.possible = {Interval{low, std::nullopt, false, false}};
      node.certain = {Interval{high, std::nullopt, false, false}};
      break;
  }
  return std::make_shared<const Node>(std::move(node));
}

NodePtr is_null_node(std::shared_ptr<const Column> column) {
  Node node{Node::Kind::kIsNull};
  node.column = std::move(column);
  return std::make_shared<const Node>(std::move(node));
}

NodePtr joined(Node::Kind kind, std::vector<NodePtr> parts) {
  if (parts.size() == 1) return parts.front();
  Node node{kind};
  node.parts = std::move(parts);
  return std::make_shared<const Node>(std::move(node));
}

}  // namespace

FileFilter::FileFilter() : node_(std::make_shared<const Node>()) {}

FileFilter FileFilter::constant(Truth value) { return FileFilter(constant_node(value)); }

FileFilter FileFilter::compare(const Snapshot& table, const std::vector<std::string>& path,
                               CompareOp op, const FilterLiteral& value) {
  if (value.type == TypeId::kVoid) return constant(Truth::kNull);
  auto column = find_column(table, path);
  if (column == nullptr) return {};
  const auto literal = read_literal(*column, value);
  if (!literal) return {};
  return FileFilter(compare_node(std::move(column), op, *literal));
}

FileFilter FileFilter::null_safe_equal(const Snapshot& table, const std::vector<std::string>& path,
                                       const FilterLiteral& value) {
  if (value.type == TypeId::kVoid) return is_null(table, path);
  return is(compare(table, path, CompareOp::kEqual, value), Truth::kTrue);
}

FileFilter FileFilter::in(const Snapshot& table, const std::vector<std::string>& path,
                          const std::vector<FilterLiteral>& values) {
  auto column = find_column(table, path);
  if (column == nullptr) return {};
  std::vector<NodePtr> parts;
  std::vector<Node> by_scale;
  bool with_null = false;
  for (const FilterLiteral& value : values) {
    if (value.type == TypeId::kVoid) {
      with_null = true;
      continue;
    }
    const auto literal = read_literal(*column, value);
    if (!literal) return {};
    auto node = std::find_if(by_scale.begin(), by_scale.end(),
                             [&](const Node& known) { return known.scale == literal->scale; });
    if (node == by_scale.end()) {
      Node fresh{Node::Kind::kWithin};
      fresh.column = column;
      fresh.scale = literal->scale;
      node = by_scale.insert(node, std::move(fresh));
    }
    const Interval interval{literal->value.low, literal->value.high, false, false};
    node->possible.push_back(interval);
    if (!(literal->value.low < literal->value.high)) node->certain.push_back(interval);
  }
  for (Node& node : by_scale) {
    node.possible = merged(std::move(node.possible));
    node.certain = merged(std::move(node.certain));
    parts.push_back(std::make_shared<const Node>(std::move(node)));
  }
  if (with_null) parts.push_back(constant_node(Truth::kNull));
  return FileFilter(joined(Node::Kind::kAnyOf, std::move(parts)));
}

FileFilter FileFilter::in_ranges(const Snapshot& table, const std::vector<std::string>& path,
                                 const std::vector<std::pair<FilterLiteral, FilterLiteral>>& ranges,
                                 bool with_null) {
  auto column = find_column(table, path);
  if (column == nullptr) return {};
  Node node{Node::Kind::kWithin};
  node.column = column;
  for (const auto& [from, to] : ranges) {
    // Ends that are ordered as texts say nothing of other types.
    if ((from.type == TypeId::kString) != (column->type.id == TypeId::kString)) return {};
    const auto low = read_literal(*column, from);
    const auto high = read_literal(*column, to);
    if (!low || !high || low->scale != high->scale) return {};
    if (!node.possible.empty() && node.scale != low->scale) return {};
    node.scale = low->scale;
    node.possible.push_back(Interval{low->value.low, high->value.high, false, false});
  }
  node.possible = merged(std::move(node.possible));
  std::vector<NodePtr> parts;
  if (!node.possible.empty()) parts.push_back(std::make_shared<const Node>(std::move(node)));
  if (with_null) parts.push_back(is_null_node(std::move(column)));
  return FileFilter(joined(Node::Kind::kAnyOf, std::move(parts)));
}

FileFilter FileFilter::is_null(const Snapshot& table, const std::vector<std::string>& path) {
  auto column = find_column(table, path);
  // How writers count the nulls of lists, maps and structs differs.
  if (column == nullptr || column->type.is_nested() || column->type.id == TypeId::kVariant)
    return {};
  return FileFilter(is_null_node(std::move(column)));
}

FileFilter FileFilter::starts_with(const Snapshot& table, const std::vector<std::string>& path,
                                   const std::string& prefix) {
  auto column = find_column(table, path);
  if (column == nullptr || column->type.id != TypeId::kString) return {};
  Node node{Node::Kind::kWithin};
  node.column = std::move(column);
  node.scale = Scale::kString;
  Interval interval;
  if (!prefix.empty()) {
    // UTF-8 has no byte 0xFF, so the next text after all with the prefix differs in its last byte.
    std::string after = prefix;
    after.back() = static_cast<char>(static_cast<unsigned char>(after.back()) + 1);
    interval = Interval{prefix, after, false, true};
  }
  node.possible = {interval};
  node.certain = {interval};
  return FileFilter(std::make_shared<const Node>(std::move(node)));
}

FileFilter FileFilter::all_of(std::vector<FileFilter> parts) {
  if (parts.empty()) return constant(Truth::kTrue);
  std::vector<NodePtr> nodes;
  for (FileFilter& part : parts) nodes.push_back(std::move(part.node_));
  return FileFilter(joined(Node::Kind::kAllOf, std::move(nodes)));
}

FileFilter FileFilter::any_of(std::vector<FileFilter> parts) {
  std::vector<NodePtr> nodes;
  for (FileFilter& part : parts) nodes.push_back(std::move(part.node_));
  return FileFilter(joined(Node::Kind::kAnyOf, std::move(nodes)));
}

FileFilter FileFilter::negation(FileFilter part) {
  Node node{Node::Kind::kNot};
  node.parts.push_back(std::move(part.node_));
  return FileFilter(std::make_shared<const Node>(std::move(node)));
}

FileFilter FileFilter::is(FileFilter part, Truth value) {
  Node node{Node::Kind::kIs, value};
  node.parts.push_back(std::move(part.node_));
  return FileFilter(std::make_shared<const Node>(std::move(node)));
}

struct FileJudge::Impl {
  // A node with the place of its column among those asked for.
  struct Step {
    const Node* node = nullptr;
    size_t column = 0;
    std::vector<Step> parts;
  };
  // What is known of a column in the file at hand.
  struct Known {
    std::optional<ColumnStats> stats;
    bool is_exact = false;  // a partition value, in stats.min
    bool is_all_null = false;
  };

  explicit Impl(NodePtr root_node) : root(std::move(root_node)), top(compile(*root)) {
    std::vector<std::vector<std::string>> paths;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i]->is_partition) continue;
      paths.push_back(columns[i]->path);
      stored.push_back(i);
    }
    if (!paths.empty()) reader.emplace(paths);
    known.resize(columns.size());
    undecided = (evaluate(top) & kCanBeTrue) != 0;
  }

  Step compile(const Node& node);
  Mask evaluate(const Step& step) const;
  Mask within(const Node& node, const Known& column) const;
  bool can_be_null(const Known& column) const;
  bool can_have_value(const Known& column) const;
  void read_partition_values(const AddFile& file);

  NodePtr root;
  std::vector<std::shared_ptr<const Column>> columns;
  std::vector<size_t> stored;  // columns that statistics speak of
  Step top;
  std::optional<StatsReader> reader;
  std::vector<Known> known;
  std::optional<int64_t> num_records;
  bool undecided = true;  // some file may match
};

FileJudge::Impl::Step FileJudge::Impl::compile(const Node& node) {
  Step step{&node, 0, {}};
  if (node.column != nullptr) {
    const auto same = std::find_if(columns.begin(), columns.end(), [&](const auto& column) {
      return column->path == node.column->path;
    });
    step.column = static_cast<size_t>(same - columns.begin());
    if (same == columns.end()) columns.push_back(node.column);
  }
  for (const NodePtr& part : node.parts) step.parts.push_back(compile(*part));
  return step;
}

bool FileJudge::Impl::can_be_null(const Known& column) const {
  return !column.stats || !column.stats->null_count || *column.stats->null_count != 0;
}

bool FileJudge::Impl::can_have_value(const Known& column) const {
  if (column.is_all_null) return false;
  return !column.stats || !column.stats->null_count || !num_records ||
         *column.stats->null_count != *num_records;
}

Mask FileJudge::Impl::within(const Node& node, const Known& column) const {
  const Column& about = *node.column;
  Mask mask = can_be_null(column) ? node.of_null : 0;
  if (!can_have_value(column)) return mask;
  Bounds bounds;
  if (column.is_exact) {
    bounds.min = partition_value(about.type, node.scale, column.stats->min->text);
    bounds.max = bounds.min;
    if (!bounds.min) return mask | kCanBeTrue | kCanBeFalse;
  } else {
    bounds.nan_possible = about.is_float();
    if (column.stats && column.stats->min) {
      bounds.min = bound_value(about.type, node.scale, BoundSide::kMin, *column.stats->min,
                               about.widened_from_float);
    }
    if (column.stats && column.stats->max) {
      bounds.max = bound_value(about.type, node.scale, BoundSide::kMax, *column.stats->max,
                               about.widened_from_float);
    }
    if (bounds.min && bounds.max && *bounds.max < *bounds.min)
      return mask | kCanBeTrue | kCanBeFalse;
  }
  if (overlaps(node.possible, bounds)) mask |= kCanBeTrue;
  if (!covers(node.certain, bounds)) mask |= kCanBeFalse;
  return mask;
}

Mask FileJudge::Impl::evaluate(const Step& step) const {
  const Node& node = *step.node;
  switch (node.kind) {
    case Node::Kind::kUnknown:
      return kAnything;
    case Node::Kind::kConstant:
      return mask_of(node.truth);
    case Node::Kind::kWithin:
      return within(node, known[step.column]);
    case Node::Kind::kIsNull:
      return (can_be_null(known[step.column]) ? kCanBeTrue : 0) |
             (can_have_value(known[step.column]) ? kCanBeFalse : 0);
    case Node::Kind::kAllOf: {
      Mask mask = kCanBeTrue;
      for (const Step& part : step.parts) mask = both(mask, evaluate(part));
      return mask;
    }
    case Node::Kind::kAnyOf: {
      Mask none = kCanBeTrue;  // no part holds
      for (const Step& part : step.parts) none = both(none, opposite(evaluate(part)));
      return opposite(none);
    }
    case Node::Kind::kNot:
      return opposite(evaluate(step.parts[0]));
    case Node::Kind::kIs: {
      const Mask mask = evaluate(step.parts[0]);
      const Mask wanted = mask_of(node.truth);
      return ((mask & wanted) != 0 ? kCanBeTrue : 0) | ((mask & ~wanted) != 0 ? kCanBeFalse : 0);
    }
  }
  return kAnything;
}

void FileJudge::Impl::read_partition_values(const AddFile& file) {
  for (size_t i = 0; i < columns.size(); ++i) {
    known[i] = Known{};
    if (!columns[i]->is_partition) continue;
    const auto value = file.partition_values.find(columns[i]->path.front());
    if (value == file.partition_values.end()) continue;  // a broken file: nothing is known
    known[i].is_exact = true;
    if (!value->second || value->second->empty()) {
      known[i].is_all_null = true;
    } else {
      known[i].stats = ColumnStats{BoundText{*value->second, true}, std::nullopt, 0};
    }
  }
}

FileJudge::FileJudge(const FileFilter& filter) : impl_(std::make_unique<Impl>(filter.node_)) {}
FileJudge::FileJudge(FileJudge&&) noexcept = default;
FileJudge& FileJudge::operator=(FileJudge&&) noexcept = default;
FileJudge::~FileJudge() = default;

FileJudge::Verdict FileJudge::judge(const AddFile& file) {
  Impl& impl = *impl_;
  if (!impl.undecided) return Verdict::kExcludedByStatistics;
  if (impl.columns.empty()) return Verdict::kMayMatch;
  impl.read_partition_values(file);
  impl.num_records.reset();
  if (impl.stored.size() < impl.columns.size() && (impl.evaluate(impl.top) & kCanBeTrue) == 0) {
    return Verdict::kExcludedByPartition;
  }
  if (!impl.reader || !file.stats) return Verdict::kMayMatch;
  const std::string text = *file.stats;
  const auto& stats = impl.reader->read(text);
  impl.num_records = stats.num_records;
  for (size_t i = 0; i < impl.stored.size(); ++i) {
    impl.known[impl.stored[i]].stats = stats.columns[i];
  }
  return (impl.evaluate(impl.top) & kCanBeTrue) == 0 ? Verdict::kExcludedByStatistics
                                                     : Verdict::kMayMatch;
}

bool FileJudge::keeps_all() const { return impl_->undecided && impl_->columns.empty(); }

std::string FileSelection::to_string() const {
  return fmt::format("read {} of {} (partition values skipped {}, statistics skipped {})",
                     files.size(), total, skipped_by_partition, skipped_by_statistics);
}

FileSelection select_files(const Snapshot& snapshot, const FileFilter& filter) {
  FileSelection selection;
  selection.total = snapshot.files.size();
  FileJudge judge(filter);
  for (size_t i = 0; i < snapshot.files.size(); ++i) {
    switch (judge.judge(snapshot.files[i])) {
      case FileJudge::Verdict::kMayMatch:
        selection.files.push_back(i);
        break;
      case FileJudge::Verdict::kExcludedByPartition:
        ++selection.skipped_by_partition;
        break;
      case FileJudge::Verdict::kExcludedByStatistics:
        ++selection.skipped_by_statistics;
        break;
    }
  }
  return selection;
}

}  // namespace strandline::delta
