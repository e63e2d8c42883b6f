#include "delta/parquet_statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace strandline::delta {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int64_t value) {
  return varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}
std::string text(const std::string& value) { return varint(value.size()) + value; }
std::string plain(int64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>((static_cast<uint64_t>(value) >> shift) & 0xff);
  return text(bytes);
}
const std::string kEnd(1, '\0');

struct Column {
  std::string name;
  int64_t values = 0;
  std::optional<int64_t> nulls = std::nullopt;
  std::optional<int64_t> min = std::nullopt, max = std::nullopt;
  int64_t physical_type = 2;  // INT64
  std::string parent = "";
};

std::string statistics_of(const Column& column) {
  std::string bytes;
  int64_t last = 0;
  const auto field = [&](int64_t id, int type, const std::string& value) {
    bytes += static_cast<char>((id - last) << 4 | type);
    bytes += value;
    last = id;
  };
  if (column.nulls) field(3, 6, number(*column.nulls));
  if (column.max) field(5, 8, plain(*column.max));
  if (column.min) field(6, 8, plain(*column.min));
  return bytes + kEnd;
}

std::string chunk_of(const Column& column) {
  const std::string path = column.parent.empty() ? "\x18" + text(column.name)
                                                 : "\x28" + text(column.parent) + text(column.name);
  // type; path_in_schema; num_values; statistics
  const std::string meta = "\x15" + number(column.physical_type) + "\x29" + path + "\x26" +
                           number(column.values) + "\x7c" + statistics_of(column) + kEnd;
  return "\x26" + number(4) + "\x1c" + meta + kEnd;  // file_offset, meta_data
}

// Of row groups.
std::string footer_of(const std::vector<std::vector<Column>>& groups) {
  std::string bytes = "\x15" + number(2);  // version
  bytes += "\x39" + std::string(1, static_cast<char>(groups.size() << 4 | 12));
  for (const auto& group : groups) {
    bytes += "\x19" + std::string(1, static_cast<char>(group.size() << 4 | 12));
    for (const Column& column : group) bytes += chunk_of(column);
    bytes += "\x26" + number(group[0].values) + kEnd;  // num_rows
  }
  return bytes + kEnd;
}

TEST(ParquetStatisticsTest, RowGroupsAreTakenTogether) {
  const std::string footer = footer_of({{{"a", 3, 0, 1, 9}, {"id", 3, 1, -5, 4}},
                                        {{"a", 2, 0, 1, 9}, {"id", 2, 2}},
                                        {{"a", 1, 0, 1, 9}, {"id", 1, 0, 70'000, 1LL << 40}}});
  const auto ids = long_statistics(footer, "id");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->value_count, 6);
  EXPECT_EQ(ids->null_count, 3);
  EXPECT_EQ(ids->min, -5);
  EXPECT_EQ(ids->max, 1LL << 40);
  EXPECT_FALSE(long_statistics(footer, "b"));
  const auto nulls = long_statistics(footer_of({{{"id", 2, 2}}}), "id");
  ASSERT_TRUE(nulls);
  EXPECT_FALSE(nulls->min || nulls->max);
  const auto groups = row_groups(footer_of({{{"id", 3, 1, -5, 4}}, {{"id", 2}}}), "id");
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 2U);
  EXPECT_EQ(groups->at(0).row_count, 3);
  EXPECT_EQ(groups->at(0).values->max, 4);
  EXPECT_EQ(groups->at(1).row_count, 2);
  EXPECT_FALSE(groups->at(1).values);
}

TEST(ParquetStatisticsTest, WhatIsNotSaidIsNotKnown) {
  const Column whole = {"id", 3, 1, -5, 4};
  EXPECT_TRUE(long_statistics(footer_of({{whole}}), "id"));
  Column column = whole;
  column.nulls.reset();
  EXPECT_FALSE(long_statistics(footer_of({{whole}, {column}}), "id"));
  column = whole;
  column.max.reset();
  EXPECT_FALSE(long_statistics(footer_of({{column}}), "id"));
  column = whole;
  column.physical_type = 1;  // INT32
  EXPECT_FALSE(long_statistics(footer_of({{column}}), "id"));
  column = whole;
  column.nulls = 4;
  EXPECT_FALSE(long_statistics(footer_of({{column}}), "id"));
  EXPECT_FALSE(long_statistics(footer_of({{{"a", 2, 0, 1, 9}, whole}}), "id"));
  column = whole;
  column.parent = "s";
  EXPECT_FALSE(long_statistics(footer_of({{column}}), "id"));
  EXPECT_FALSE(long_statistics(footer_of({{whole}, {{"other", 1, 0, 1, 1}}}), "id"));
  EXPECT_FALSE(long_statistics(footer_of({}), "id"));
}

TEST(ParquetStatisticsTest, ACutFooterSaysNothing) {
  const std::string whole = footer_of({{{"a", 3, 0, 1, 9}, {"id", 3, 1, -5, 4}}});
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(long_statistics(std::string_view(whole).substr(0, length), "id")) << length;
}

}  // namespace
}  // namespace strandline::delta
