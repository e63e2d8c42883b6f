// Bitmaps that another project's writer made; EXPECTED.md beside them says what they hold.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "delta/deletion_vector.h"
#include "support/paths.h"

namespace strandline {
namespace {

std::filesystem::path folder() {
  return test::shared_directory() / "conformance" / "iceberg-deletes-bin";
}

std::string bytes_of(const std::string& name) {
  std::ifstream file(folder() / name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<uint64_t> positions(const delta::RowSet& rows) {
  std::vector<uint64_t> found;
  rows.for_each([&](uint64_t position) { found.push_back(position); });
  return found;
}

// Both ends included.
void add(uint64_t first, uint64_t last, std::vector<uint64_t>* positions) {
  for (uint64_t position = first; position <= last; ++position) positions->push_back(position);
}

class Bitmaps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) {
      GTEST_SKIP() << "no folder " << folder() << "; set STRANDLINE_SHARED to run this";
    }
  }

  // Bare 64-bit bitmaps lack the magic number that a deletion vector begins with.
  static Result<delta::RowSet> bare(const std::string& name) {
    return delta::RowSet::deserialize("\xD1\xD3\x39\x64" + bytes_of(name));
  }

  // A whole blob is what follows the version byte of a deletion vector file.
  static Result<delta::RowSet> blob(const std::string& name, int64_t cardinality,
                                    int damaged_at = -1) {
    std::string bytes = "\x01" + bytes_of(name);
    if (damaged_at >= 0) bytes[static_cast<size_t>(damaged_at)] ^= 0x10;
    const auto store = storage::make_memory_store();
    EXPECT_TRUE(store->put("/t/v.bin", bytes).ok());
    delta::DeletionVectorDescriptor descriptor;
    descriptor.storage_type = 'p';
    descriptor.path_or_inline = "/t/v.bin";
    descriptor.offset = 1;
    descriptor.size_bytes = static_cast<int64_t>(bytes.size()) - 9;  // version, length, checksum
    descriptor.cardinality = cardinality;
    return delta::DeletionVectorReader(store.get(), "/t").read(descriptor);
  }
};

TEST_F(Bitmaps, BareOnes) {
  const auto none = bare("64mapempty.bin");
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_TRUE(none->empty());

  const auto few = bare("64map32bitvals.bin");
  ASSERT_TRUE(few.ok()) << few.error().message;
  std::vector<uint64_t> expected;
  add(0, 9, &expected);
  EXPECT_EQ(positions(*few), expected);

  const auto spread = bare("64mapspreadvals.bin");
  ASSERT_TRUE(spread.ok()) << spread.error().message;
  expected.clear();
  for (uint64_t k = 0; k < 10; ++k) add(k << 32, (k << 32) + 9, &expected);
  EXPECT_EQ(positions(*spread), expected);

  const auto damaged = bare("64maphighvals.bin");
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().kind, ErrorKind::kCorrupt);
}

TEST_F(Bitmaps, WholeBlobs) {
  const auto none = blob("empty-position-index.bin", 0);
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_TRUE(none->empty());

  const auto small = blob("small-alternating-values-position-index.bin", 5);
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(positions(*small), (std::vector<uint64_t>{1, 3, 5, 7, 9}));

  const auto large = blob("small-and-large-values-position-index.bin", 4);
  ASSERT_TRUE(large.ok()) << large.error().message;
  EXPECT_EQ(positions(*large), (std::vector<uint64_t>{100, 101, 2147483747, 2147483748}));

  const auto all = blob("all-container-types-position-index.bin", 132561);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->cardinality(), 132561u);
  EXPECT_TRUE(all->contains(5) && all->contains(7) && !all->contains(6));
  EXPECT_EQ(all->max(), (uint64_t{1} << 32) + 196606);
}

TEST_F(Bitmaps, DamageIsSeen) {
  for (const int at : {0, 2, 7, 20, 40}) {
    const auto damaged = blob("small-alternating-values-position-index.bin", 5, at);
    ASSERT_FALSE(damaged.ok()) << "byte " << at;
    EXPECT_EQ(damaged.error().kind, ErrorKind::kCorrupt);
  }
  EXPECT_FALSE(blob("small-alternating-values-position-index.bin", 6).ok());
}

}  // namespace
}  // namespace strandline
