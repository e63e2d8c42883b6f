#include "delta/parquet_footer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delta/find_damage.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::HasSubstr;

std::string footer_of(const std::string& file) { return file.substr(4, file.size() - 12); }

TEST(ParquetFooterTest, CountsRowsAndSeesFieldIds) {
  for (const int64_t rows : {0, 1, 63, 64, 1'000'000}) {
    const auto plain = parse_parquet_footer(footer_of(parquet_bytes(rows)));
    ASSERT_TRUE(plain.ok());
    EXPECT_EQ(plain->row_count, rows);
    EXPECT_FALSE(plain->has_field_ids);
  }
  const auto with_ids = parse_parquet_footer(footer_of(parquet_bytes(5, true)));
  ASSERT_TRUE(with_ids.ok());
  EXPECT_EQ(with_ids->row_count, 5);
  EXPECT_TRUE(with_ids->has_field_ids);
}

TEST(ParquetFooterTest, SkipsWhatItDoesNotKnow) {
  // Fields 4 to 14 of each kind before the two that count, which come by their numbers.
  std::string bytes = "\x41\x12";       // flags
  bytes += std::string("\x13\x07", 2);  // byte
  bytes += "\x17";                      // double
  bytes += std::string(8, 'd');
  bytes += "\x19\x21" + std::string("\x01\x02", 2);   // list of two flags
  bytes += "\x1a\xf5\x10" + std::string(16, '\x01');  // set of sixteen numbers
  bytes += std::string("\x1b\x00", 2);                // empty map
  bytes += "\x1b\x01\x85" + std::string("\x02hi\x07", 4);
  bytes += std::string("\x1c\x15\x02\x00", 4);  // struct
  bytes += std::string("\x06\x06\x12", 3);      // field 3, by its full number
  const auto footer = parse_parquet_footer(bytes);
  ASSERT_TRUE(footer.ok());
  EXPECT_EQ(footer->row_count, 9);
}

TEST(ParquetFooterTest, EveryCutIsAnError) {
  const std::string whole = footer_of(parquet_bytes(1'000'000, true));
  for (size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_FALSE(parse_parquet_footer(std::string_view(whole).substr(0, length)).ok()) << length;
  }
  EXPECT_TRUE(parse_parquet_footer(std::string_view(whole).substr(0, whole.size() - 1)).ok());
  // A struct in a struct in a struct ...
  EXPECT_FALSE(parse_parquet_footer(std::string(10'000, '\x1c')).ok());
}

class DataFileTest : public ::testing::Test {
 protected:
  // What is wrong with a file of these bytes under a log that says so many rows.
  std::string damage(const std::string& bytes, std::optional<int64_t> rows, int64_t size_bytes) {
    EXPECT_TRUE(store_->put("/t/a.parquet", bytes).ok());
    Snapshot snapshot;
    snapshot.table_path = "/t";
    snapshot.version = 7;
    AddFile file = data_file("a.parquet", rows.value_or(0));
    if (!rows) file.stats.reset();
    file.size_bytes = size_bytes;
    snapshot.files.push_back(std::move(file));
    if (mapped_) {
      snapshot.protocol.min_reader_version = 2;
      snapshot.protocol.min_writer_version = 5;
      snapshot.metadata.configuration["delta.columnMapping.mode"] = "id";
    }
    const auto error = find_damage(store_.get(), snapshot);
    if (!error) return "whole";
    EXPECT_THAT(error->message, HasSubstr("/t/a.parquet"));
    EXPECT_THAT(error->message, HasSubstr("version 7"));
    return error->code + " " + error->message;
  }
  static int64_t size_of(const std::string& bytes) { return static_cast<int64_t>(bytes.size()); }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  bool mapped_ = false;
};

TEST_F(DataFileTest, SizeAndRowsMustBeThoseOfTheLog) {
  const std::string file = parquet_bytes(3);
  EXPECT_EQ(damage(file, 3, size_of(file)), "whole");
  EXPECT_EQ(damage(file, std::nullopt, size_of(file)), "whole");
  EXPECT_THAT(damage(file, 3, size_of(file) + 1), HasSubstr("DELTA_DATA_FILE_DAMAGED"));
  EXPECT_THAT(damage(file, 2, size_of(file)), HasSubstr("3 rows, not the 2 that the log says"));
  const std::string other = "PAR1" + std::string(40, 'x') + "PAR2";
  EXPECT_THAT(damage(other, 3, size_of(other)), HasSubstr("is no whole Parquet file"));
  const std::string encrypted = parquet_bytes(3, false, "PARE");
  EXPECT_EQ(damage(encrypted, 2, size_of(encrypted)), "whole");  // nothing can be said of it
}

TEST_F(DataFileTest, ColumnsFoundByIdNeedIds) {
  mapped_ = true;
  const std::string without = parquet_bytes(3);
  EXPECT_THAT(damage(without, 3, size_of(without)), HasSubstr("DELTA_FIELD_IDS_MISSING"));
  const std::string with = parquet_bytes(3, true);
  EXPECT_EQ(damage(with, 3, size_of(with)), "whole");
}

TEST_F(DataFileTest, AWideSchemaTakesASecondLook) {
  // 20,000 columns before the count: more than the first look holds, and than the second.
  std::string footer = "\x15\x02\x19\xfc";
  footer += std::string("\xa0\x9c\x01", 3);
  for (int i = 0; i < 20'000; ++i) footer += std::string("\x48\x0a") + "0123456789" + '\0';
  footer += std::string("\x16\x0e\x00", 3);
  std::string length;
  for (int shift = 0; shift < 32; shift += 8)
    length += static_cast<char>((footer.size() >> shift) & 0xff);
  const std::string file = "PAR1" + footer + length + "PAR1";
  EXPECT_EQ(damage(file, 7, size_of(file)), "whole");
  EXPECT_THAT(damage(file, 8, size_of(file)), HasSubstr("7 rows"));
}

TEST(RowCountTest, ComesFromTheFooterWhereTheLogIsSilent) {
  const auto store = storage::make_memory_store();
  ASSERT_TRUE(store->put("/t/a b.parquet", parquet_bytes(12)).ok());
  AddFile file = data_file("a%20b.parquet", 4);
  EXPECT_EQ(count_rows(store.get(), "/t", file).value(), 4);
  file.stats.reset();
  EXPECT_EQ(count_rows(store.get(), "/t", file).value(), 12);
  ASSERT_TRUE(store->put("/t/a b.parquet", parquet_bytes(12, false, "PARE")).ok());
  EXPECT_FALSE(count_rows(store.get(), "/t", file).value());
}

TEST(RowCountTest, StatisticsKeepWhatElseTheySay) {
  EXPECT_EQ(with_row_count("", 3), R"({"numRecords":3})");
  EXPECT_EQ(with_row_count("no json", 3), R"({"numRecords":3})");
  EXPECT_EQ(with_row_count(R"({"minValues":{"a":1},"numRecords":-1})", 3),
            R"({"numRecords":3,"minValues":{"a":1}})");
}

}  // namespace
}  // namespace strandline::delta
