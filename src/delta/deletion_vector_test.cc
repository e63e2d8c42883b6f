#include "delta/deletion_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delta/snapshot.h"

namespace strandline::delta {
namespace {

using ::testing::HasSubstr;

std::vector<uint64_t> positions(const RowSet& rows) {
  std::vector<uint64_t> result;
  rows.for_each([&](uint64_t position) { result.push_back(position); });
  return result;
}

TEST(Z85, RoundTripsEveryLength) {
  EXPECT_EQ(z85_encode(std::string("\x86\x4F\xD2\x6F\xB5\x59\xF7\x5B", 8)), "HelloWorld");
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(z85_decode(z85_encode(bytes), bytes.size()).value(), bytes);
    bytes += static_cast<char>(i * 37 + 200);
  }
}

TEST(Z85, RefusesWhatIsNoText) {
  EXPECT_FALSE(z85_decode("HelloWorl", 8).ok());
  EXPECT_FALSE(z85_decode("HelloWorld", 4).ok());
  EXPECT_FALSE(z85_decode("Hello~orld", 8).ok());
  EXPECT_FALSE(z85_decode("#####", 4).ok());  // exceeds 32 bits
  EXPECT_FALSE(z85_decode("#####", 2).ok());
}

TEST(Z85, LastGroupPaddedWithMarks) {
  EXPECT_EQ(z85_decode("##093", 2).value(), std::string("\x03\0", 2));
  EXPECT_EQ(z85_decode("HelloHello##093", 10).value().substr(8), std::string("\x03\0", 2));
  EXPECT_FALSE(z85_decode("##093Hello", 8).ok());
}

TEST(Checksum, IsCrc32) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog"), 0x414FA339u);
}

class DeletionVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    first_.add(1);
    first_.add(70000);
    for (uint64_t i = 10; i < 500; ++i) second_.add(i);
    file_ = build_deletion_vector_file("/t", {&first_, &second_});
    ASSERT_TRUE(store_->put(file_.path, file_.bytes).ok());
  }

  std::string problem(const DeletionVectorDescriptor& descriptor) {
    const auto result = DeletionVectorReader(store_.get(), "/t").read(descriptor);
    return result.ok() ? "ok" : result.error().message;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  RowSet first_;
  RowSet second_;
  DeletionVectorFile file_;
};

TEST_F(DeletionVectors, OneFileHoldsMany) {
  EXPECT_EQ(file_.descriptors[0].offset, 1);
  DeletionVectorReader reader(store_.get(), "/t");
  EXPECT_EQ(positions(reader.read(file_.descriptors[0]).value()),
            (std::vector<uint64_t>{1, 70000}));
  ASSERT_TRUE(store_->remove(file_.path).ok());  // it is read once
  EXPECT_EQ(reader.read(file_.descriptors[1])->cardinality(), 490u);
  EXPECT_EQ(problem(file_.descriptors[1]),
            "cannot open " + file_.path + ": no such file or directory");
}

TEST_F(DeletionVectors, InlineAndAbsolute) {
  DeletionVectorDescriptor descriptor;
  descriptor.storage_type = 'i';
  const std::string bitmap = first_.serialize();
  descriptor.path_or_inline = z85_encode(bitmap);
  descriptor.size_bytes = static_cast<int64_t>(bitmap.size());
  descriptor.cardinality = 2;
  DeletionVectorReader reader(store_.get(), "/elsewhere");
  EXPECT_EQ(positions(reader.read(descriptor).value()), (std::vector<uint64_t>{1, 70000}));

  descriptor = file_.descriptors[1];
  descriptor.storage_type = 'p';
  descriptor.path_or_inline = "file://" + file_.path;
  EXPECT_EQ(reader.read(descriptor)->cardinality(), 490u);
}

TEST_F(DeletionVectors, DamageIsNamed) {
  DeletionVectorDescriptor descriptor = file_.descriptors[0];
  descriptor.cardinality = 3;
  EXPECT_THAT(problem(descriptor), HasSubstr("2 rows, but the log says 3"));
  descriptor = file_.descriptors[0];
  descriptor.size_bytes += 1;
  EXPECT_THAT(problem(descriptor), HasSubstr("the log says"));
  descriptor = file_.descriptors[1];
  descriptor.offset = 100000;
  EXPECT_THAT(problem(descriptor), HasSubstr("cannot hold"));
  descriptor.storage_type = 'x';
  EXPECT_THAT(problem(descriptor), HasSubstr("storage type 'x'"));

  descriptor = file_.descriptors[0];
  std::string bytes = file_.bytes;
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  ASSERT_TRUE(store_->put(file_.path, bytes).ok());
  EXPECT_THAT(problem(descriptor), HasSubstr("wrong checksum"));
  bytes = file_.bytes;
  bytes[0] = 2;
  ASSERT_TRUE(store_->put(file_.path, bytes).ok());
  EXPECT_THAT(problem(descriptor), HasSubstr("version 1"));
  ASSERT_TRUE(store_->put(file_.path, file_.bytes.substr(0, 30)).ok());
  EXPECT_THAT(problem(file_.descriptors[1]), HasSubstr("cannot hold"));
}

TEST(DeletionVectorPaths, PrefixIsAFolder) {
  const auto store = storage::make_memory_store();
  RowSet rows;
  rows.add(4);
  DeletionVectorFile file = build_deletion_vector_file("/t", {&rows});
  file.path.insert(3, "ab/");
  ASSERT_TRUE(store->put(file.path, file.bytes).ok());
  file.descriptors[0].path_or_inline = "ab" + file.descriptors[0].path_or_inline;
  EXPECT_TRUE(DeletionVectorReader(store.get(), "/t").read(file.descriptors[0]).ok());
}

}  // namespace
}  // namespace strandline::delta
