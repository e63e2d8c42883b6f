#include "delta/parquet_statistics.h"

#include <algorithm>

#include "delta/thrift.h"

namespace strandline::delta {
namespace {

// Numbers of fields and types in Parquet's format.
constexpr int64_t kRowGroups = 4;      // of the footer
constexpr int64_t kRowCount = 3;       // of a row group
constexpr int64_t kColumns = 1;        // of a row group
constexpr int64_t kMetaData = 3;       // of a column in it
constexpr int64_t kPhysicalType = 1;   // of that
constexpr int64_t kPath = 3;           // of that
constexpr int64_t kValueCount = 5;     // of that
constexpr int64_t kStatistics = 12;    // of that
constexpr int64_t kNullCount = 3;      // of the statistics
constexpr int64_t kMax = 5, kMin = 6;  // of the statistics
constexpr int64_t kInt64 = 2;          // a physical type

// What one row group says of one column.
struct Chunk {
  bool is_wanted = false;
  bool is_long = false;
  std::optional<int64_t> value_count, null_count, min, max;
};

std::optional<int64_t> plain_long(std::string_view bytes) {
  if (bytes.size() != sizeof(int64_t)) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return static_cast<int64_t>(value);
}

// Calls take(field, type), which reads the field's value or returns false, for each field.
template <typename Take>
void for_each_field(Thrift* in, const Take& take) {
  int64_t field = 0;
  for (auto type = in->field(&field); type != Thrift::kStop; type = in->field(&field)) {
    if (!take(field, type)) in->skip(type);
  }
}

// Calls take() for each struct of a list.
template <typename Take>
bool for_each_struct(Thrift* in, Thrift::Type type, const Take& take) {
  if (type != Thrift::kList) return false;
  Thrift::Type element = Thrift::kStop;
  const uint64_t count = in->list(&element);
  for (uint64_t i = 0; i < count && !in->failed(); ++i) {
    if (element == Thrift::kStruct) {
      take();
    } else {
      in->skip(element);
    }
  }
  return true;
}

void take_statistics(Thrift* in, Chunk* chunk) {
  for_each_field(in, [&](int64_t field, Thrift::Type type) {
    if (field == kNullCount && type == Thrift::kI64) {
      chunk->null_count = in->zigzag();
    } else if (field == kMax && type == Thrift::kBinary) {
      chunk->max = plain_long(in->text());
    } else if (field == kMin && type == Thrift::kBinary) {
      chunk->min = plain_long(in->text());
    } else {
      return false;
    }
    return true;
  });
}

Chunk take_chunk(Thrift* in, std::string_view column) {
  Chunk chunk;
  const auto take_meta_data = [&](int64_t field, Thrift::Type type) {
    if (field == kPhysicalType && type == Thrift::kI32) {
      chunk.is_long = in->zigzag() == kInt64;
    } else if (field == kPath && type == Thrift::kList) {
      Thrift::Type element = Thrift::kStop;
      const uint64_t count = in->list(&element);
      for (uint64_t i = 0; i < count && !in->failed(); ++i) {
        if (element != Thrift::kBinary) {
          in->skip(element);
        } else if (in->text() == column) {
          chunk.is_wanted = count == 1;
        }
      }
    } else if (field == kValueCount && type == Thrift::kI64) {
      chunk.value_count = in->zigzag();
    } else if (field == kStatistics && type == Thrift::kStruct) {
      take_statistics(in, &chunk);
    } else {
      return false;
    }
    return true;
  };
  for_each_field(in, [&](int64_t field, Thrift::Type type) {
    if (field != kMetaData || type != Thrift::kStruct) return false;
    for_each_field(in, take_meta_data);
    return true;
  });
  return chunk;
}

std::optional<LongStatistics> statistics_of(const Chunk& chunk) {
  if (!chunk.is_long || !chunk.value_count || !chunk.null_count) return std::nullopt;
  LongStatistics values{*chunk.value_count, *chunk.null_count, std::nullopt, std::nullopt};
  if (values.null_count < 0 || values.null_count > values.value_count) return std::nullopt;
  if (values.null_count == values.value_count) return values;
  if (!chunk.min || !chunk.max) return std::nullopt;
  values.min = chunk.min;
  values.max = chunk.max;
  return values;
}

RowGroup take_row_group(Thrift* in, std::string_view column) {
  RowGroup group;
  size_t found = 0;
  for_each_field(in, [&](int64_t field, Thrift::Type type) {
    if (field == kRowCount && type == Thrift::kI64) {
      group.row_count = in->zigzag();
      return true;
    }
    if (field != kColumns) return false;
    return for_each_struct(in, type, [&] {
      const Chunk chunk = take_chunk(in, column);
      if (!chunk.is_wanted) return;
      ++found;
      group.values = statistics_of(chunk);
    });
  });
  if (found != 1 || (group.values && group.values->value_count != group.row_count))
    group.values.reset();
  return group;
}

}  // namespace

void LongStatistics::add(const LongStatistics& more) {
  value_count += more.value_count;
  null_count += more.null_count;
  if (more.min) min = std::min(min.value_or(*more.min), *more.min);
  if (more.max) max = std::max(max.value_or(*more.max), *more.max);
}

std::optional<std::vector<RowGroup>> row_groups(std::string_view footer, std::string_view column) {
  Thrift in(footer);
  std::vector<RowGroup> groups;
  for_each_field(&in, [&](int64_t field, Thrift::Type type) {
    return field == kRowGroups &&
           for_each_struct(&in, type, [&] { groups.push_back(take_row_group(&in, column)); });
  });
  if (in.failed()) return std::nullopt;
  return groups;
}

std::optional<LongStatistics> long_statistics(std::string_view footer, std::string_view column) {
  const auto groups = row_groups(footer, column);
  if (!groups || groups->empty()) return std::nullopt;
  LongStatistics all;
  for (const RowGroup& group : *groups) {
    if (!group.values) return std::nullopt;
    all.add(*group.values);
  }
  return all;
}

}  // namespace strandline::delta
