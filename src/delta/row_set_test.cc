#include "delta/row_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace strandline::delta {
namespace {

std::vector<uint64_t> positions(const RowSet& rows) {
  std::vector<uint64_t> result;
  rows.for_each([&](uint64_t position) { result.push_back(position); });
  return result;
}

TEST(RowSet, BehavesLikeASet) {
  std::mt19937_64 random(7);
  std::set<uint64_t> expected;
  RowSet rows;
  std::vector<uint64_t> batch;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t position = random() % 3 == 0 ? random() % (5ull << 32) : random() % 30000;
    expected.insert(position);
    batch.push_back(position);
  }
  rows.add_many(batch.data(), batch.size() / 2);
  RowSet other;
  for (size_t i = batch.size() / 2; i < batch.size(); ++i) other.add(batch[i]);
  rows.union_with(other);
  EXPECT_EQ(rows.cardinality(), expected.size());
  EXPECT_EQ(positions(rows), std::vector<uint64_t>(expected.begin(), expected.end()));
  EXPECT_EQ(rows.max(), *expected.rbegin());
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(rows.contains(i), expected.count(i) > 0);

  const auto restored = RowSet::deserialize(rows.serialize());
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(positions(*restored), positions(rows));

  RowSet rest = rows;
  rest.subtract(other);
  for (const uint64_t position : positions(other)) expected.erase(position);
  EXPECT_EQ(positions(rest), std::vector<uint64_t>(expected.begin(), expected.end()));
  EXPECT_TRUE(RowSet::deserialize(rest.serialize()).ok());
  rest.subtract(rest);
  EXPECT_TRUE(rest.empty());
}

TEST(RowSet, CopiesAreDeep) {
  RowSet a;
  a.add(1);
  RowSet b = a;
  b.add(2);
  EXPECT_EQ(a.cardinality(), 1u);
  EXPECT_EQ(b.cardinality(), 2u);
  a = b;
  a.add(3);
  EXPECT_FALSE(b.contains(3));
  EXPECT_TRUE(RowSet().empty());
  EXPECT_FALSE(RowSet().max());
}

TEST(RowSet, BytesFollowTheProtocol) {
  RowSet rows;
  rows.add(3);
  rows.add((1ull << 32) + 5);
  const std::string bytes = rows.serialize();
  EXPECT_EQ(bytes.substr(0, 4), std::string("\xD1\xD3\x39\x64", 4));
  EXPECT_EQ(bytes.substr(4, 8), std::string("\x02\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 4), std::string(4, '\0'));
}

TEST(RowSet, DamagedBytesAreRefused) {
  RowSet rows;
  for (uint64_t i = 0; i < 100000; i += 3) rows.add(i);
  rows.add(9ull << 32);
  const std::string bytes = rows.serialize();
  for (size_t length = 0; length < bytes.size(); length += length < 64 ? 1 : 97) {
    const auto result = RowSet::deserialize(bytes.substr(0, length));
    ASSERT_FALSE(result.ok()) << length;
    EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
  }
  EXPECT_FALSE(RowSet::deserialize(bytes + "x").ok());
  std::string other_magic = bytes;
  other_magic[0] = '\xD0';  // the "native" form, which is not part of the protocol
  EXPECT_FALSE(RowSet::deserialize(other_magic).ok());
  std::string huge_count = bytes;
  huge_count[10] = '\x7F';
  EXPECT_FALSE(RowSet::deserialize(huge_count).ok());
}

}  // namespace
}  // namespace strandline::delta
