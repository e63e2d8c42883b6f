#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "delta/action_json.h"
#include "delta/test_support.h"
#include "duck/delta_io.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ParquetPortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok());
    database_ = *database;
    port_ = make_parquet_port(database_);
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("parquet_port_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The actions as sorted JSON lines.
  static std::vector<std::string> lines(const std::vector<delta::Action>& actions) {
    std::vector<std::string> printed;
    for (const delta::Action& action : actions) printed.push_back(delta::print_action(action));
    std::sort(printed.begin(), printed.end());
    return printed;
  }

  std::vector<std::string> round_trip(const std::vector<delta::Action>& actions) {
    const std::string path = directory_ / ".checkpoint [x].parquet";
    delta::CheckpointContent content;
    content.each = [&](const delta::CheckpointContent::Take& take) -> Status {
      for (const delta::Action& action : actions) SL_TRY(take(action));
      return {};
    };
    const Status written = port_->write_checkpoint(path, content);
    EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
    delta::AllActions all;
    const Status read = port_->read_checkpoint(path, &all);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    EXPECT_THAT(all.sidecars, IsEmpty());
    EXPECT_EQ(all.expected, actions.size());
    return lines(all.actions);
  }

  std::shared_ptr<Database> database_;
  std::shared_ptr<delta::ParquetPort> port_;
  std::filesystem::path directory_;
};

TEST_F(ParquetPortTest, CheckpointsRoundTrip) {
  const std::string log =
      R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors","rowTracking"]}})"
      "\n"
      R"({"metaData":{"id":"i","name":"n","description":"d \"q\"","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":["p","q"],"configuration":{"a.b":"c","x":""},"createdTime":4}})"
      "\n"
      R"({"add":{"path":"p=1/a%20b.parquet","partitionValues":{"p":"1","q":null},"size":5000000000,"modificationTime":7,"dataChange":false,"stats":"{\"numRecords\":3,\"minValues\":{\"d\":1.50}}","tags":{"k":"v"},"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":36,"cardinality":2},"baseRowId":9,"defaultRowCommitVersion":4,"clusteringProvider":"liquid"}})"
      "\n"
      R"({"add":{"path":"plain.parquet","partitionValues":{},"size":1,"modificationTime":8,"dataChange":false}})"
      "\n"
      R"({"remove":{"path":"gone.parquet","deletionTimestamp":12,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{"p":"é","q":""},"size":77,"deletionVector":{"storageType":"i","pathOrInlineDv":"x","sizeInBytes":40,"cardinality":6},"baseRowId":1,"defaultRowCommitVersion":2}})"
      "\n"
      R"({"txn":{"appId":"app","version":42,"lastUpdated":5}})"
      "\n"
      R"({"txn":{"appId":"other","version":1}})"
      "\n"
      R"({"domainMetadata":{"domain":"delta.rowTracking","configuration":"{\"rowIdHighWaterMark\":11}","removed":false}})";
  auto actions = delta::parse_actions(log, "test");
  ASSERT_TRUE(actions.ok()) << actions.error().message;
  ASSERT_EQ(actions->size(), 8u);
  EXPECT_EQ(round_trip(*actions), lines(*actions));
}

TEST_F(ParquetPortTest, LegacyProtocolHasNoFeatureLists) {
  const std::vector<delta::Action> actions = {delta::Protocol{1, 2, {}, {}}};
  EXPECT_EQ(round_trip(actions), lines(actions));
}

TEST_F(ParquetPortTest, ManyFiles) {
  std::vector<delta::Action> actions;
  for (int i = 0; i < 20'000; ++i) {
    delta::AddFile add;
    add.path = "part-" + std::to_string(i) + ".parquet";
    add.size_bytes = i;
    add.data_change = false;
    add.stats = "{\"numRecords\":" + std::to_string(i) + "}";
    actions.emplace_back(std::move(add));
  }
  EXPECT_EQ(round_trip(actions), lines(actions));
}

TEST_F(ParquetPortTest, ParsedStatisticsBecomeText) {
  const std::string path = directory_ / "parsed.parquet";
  auto connection = database_->connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE(
      (*connection)
          ->execute(
              "COPY (SELECT {'path': 'a', 'partitionValues': MAP {'p': '1'}, 'size': 1::BIGINT, "
              "'modificationTime': 1::BIGINT, 'dataChange': true, 'stats_parsed': "
              "{'numRecords': 5::BIGINT, 'minValues': {'t': TIMESTAMPTZ '2024-01-01 "
              "00:00:00.123456+00', "
              "'n': 1.50::DECIMAL(10,2), 'f': 'nan'::DOUBLE, 's': 'x\"y'}}} AS add, "
              "{'path': 'side.parquet', 'sizeInBytes': 1} AS sidecar) TO " +
              quote_literal(path) + " (FORMAT parquet)")
          .ok());
  delta::AllActions all;
  const Status read = port_->read_checkpoint(path, &all);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_THAT(all.sidecars, ElementsAre("side.parquet"));
  ASSERT_EQ(all.actions.size(), 1u);
  EXPECT_EQ(
      *std::get<delta::AddFile>(all.actions[0]).stats,
      R"({"numRecords":5,"minValues":{"t":"2024-01-01T00:00:00.123Z","n":1.5,"f":null,"s":"x\"y"}})");
}

TEST_F(ParquetPortTest, UnreadableFilesAreNamed) {
  const std::string path = directory_ / "broken.parquet";
  std::ofstream(path) << "PAR1 this is no checkpoint";
  delta::AllActions all;
  const Status read = port_->read_checkpoint(path, &all);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("broken.parquet"));
  const Status missing = port_->read_checkpoint(directory_ / "missing.parquet", &all);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kIo);
}

// Every stretch of a file wiped or flipped: what is read, or that the file is damaged.
TEST_F(ParquetPortTest, DamagedBytesAreCorrupt) {
  const std::string path = directory_ / "whole.parquet";
  delta::CheckpointContent content;
  content.each = [&](const delta::CheckpointContent::Take& take) -> Status {
    delta::AddFile add;
    add.path = "a.parquet";
    return take(std::move(add));
  };
  ASSERT_TRUE(port_->write_checkpoint(path, content).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::set<std::string> told;
  size_t count = 0;
  const auto check = [&](const std::string& bytes, size_t at) {
    // The engine remembers a file by its name and the time it was written.
    const std::string name = "damaged" + std::to_string(count++) + ".parquet";
    const std::string damaged = directory_ / name;
    std::ofstream(damaged, std::ios::binary) << bytes;
    delta::AllActions all;
    const Status read = port_->read_checkpoint(damaged, &all);
    if (read.ok()) return;
    const Error& error = read.error();
    EXPECT_EQ(error.kind, ErrorKind::kCorrupt) << at << ": " << error.message;
    EXPECT_THAT(error.message, HasSubstr(name)) << at;
    EXPECT_TRUE(std::none_of(error.message.begin(), error.message.end(),
                             [](unsigned char c) { return std::iscntrl(c) != 0; }))
        << at << ": " << error.message;
    told.insert(error.message.substr(error.message.rfind(": ")));
  };
  for (size_t at = 0; at < whole.size(); at += 89) {
    std::string bytes = whole;
    bytes.replace(at, std::min<size_t>(47, whole.size() - at), 47, '\0');
    check(bytes.substr(0, whole.size()), at);
    bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x0e);
    check(bytes, at);
  }
  EXPECT_GT(told.size(), 2u);
}

// Neither the system nor memory says anything of the bytes.
TEST_F(ParquetPortTest, OutOfMemoryIsNoDamage) {
  const std::string path = directory_ / "large.parquet";
  delta::CheckpointContent content;
  content.each = [&](const delta::CheckpointContent::Take& take) -> Status {
    for (int i = 0; i < 20'000; ++i) {
      delta::AddFile add;
      add.path = "part-" + std::to_string(i) + ".parquet";
      SL_TRY(take(std::move(add)));
    }
    return {};
  };
  ASSERT_TRUE(port_->write_checkpoint(path, content).ok());
  auto connection = database_->connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->execute("SET memory_limit = '100KB'").ok());
  delta::AllActions all;
  const Status read = port_->read_checkpoint(path, &all);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::kIo) << read.error().message;
  EXPECT_THAT(read.error().message, HasSubstr("large.parquet"));
}

}  // namespace
}  // namespace strandline::duck
