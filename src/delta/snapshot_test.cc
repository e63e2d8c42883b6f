#include "delta/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "delta/features.h"
#include "delta/test_support.h"
#include "storage/passing_store.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kProtocol = R"({"protocol":{"minReaderVersion":1,"minWriterVersion":2}})";

std::string metadata_line(const std::string& configuration = "{}") {
  return R"({"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":)"
         R"("{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}",)"
         R"("partitionColumns":[],"configuration":)" +
         configuration + "}}";
}

std::string add(const std::string& path, const std::string& vector = "") {
  return R"({"add":{"path":")" + path +
         R"(","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true)" +
         (vector.empty() ? "" : R"(,"deletionVector":)" + vector) + "}}";
}

std::string remove(const std::string& path, const std::string& vector = "") {
  return R"({"remove":{"path":")" + path + R"(","deletionTimestamp":5,"dataChange":true)" +
         (vector.empty() ? "" : R"(,"deletionVector":)" + vector) + "}}";
}

std::string vector_json(const std::string& id) {
  return R"({"storageType":"i","pathOrInlineDv":")" + id + R"(","sizeInBytes":4,"cardinality":1})";
}

class SnapshotTest : public ::testing::Test {
 protected:
  void commit(Version version, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    ASSERT_TRUE(store_->put(commit_path("/t", version), text).ok());
  }
  void put(const std::string& name, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    ASSERT_TRUE(store_->put("/t/_delta_log/" + name, text).ok());
  }

  std::vector<std::string> paths(std::optional<Version> version = {}) {
    const auto snapshot = table_.snapshot(version);
    if (!snapshot.ok()) return {std::string("error: ") + snapshot.error().message};
    std::vector<std::string> result;
    for (const AddFile& file : (*snapshot)->files) result.push_back(file.path);
    return result;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
};

TEST_F(SnapshotTest, NoTable) {
  EXPECT_FALSE(table_.exists().value());
  const auto snapshot = table_.snapshot();
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(snapshot.error().code, "DELTA_TABLE_NOT_FOUND");
  ASSERT_TRUE(store_->put("/t/_delta_log/.00000000000000000000.json.uuid.tmp", "x").ok());
  EXPECT_FALSE(table_.exists().value());
}

TEST_F(SnapshotTest, ReplaysAddsAndRemoves) {
  commit(0, {kProtocol, metadata_line(), add("b"), add("a")});
  commit(1, {remove("b"), add("c"), R"({"txn":{"appId":"x","version":9}})"});
  commit(2, {add("b"), R"({"txn":{"appId":"x","version":3}})",
             R"({"domainMetadata":{"domain":"d","configuration":"1","removed":false}})"});
  commit(3, {R"({"domainMetadata":{"domain":"d","configuration":"","removed":true}})"});
  EXPECT_THAT(paths(0), ElementsAre("a", "b"));
  EXPECT_THAT(paths(1), ElementsAre("a", "c"));
  EXPECT_THAT(paths(), ElementsAre("a", "b", "c"));
  EXPECT_EQ((*table_.snapshot(1))->txn_version("x"), 9);
  EXPECT_EQ(table_.tombstones(**table_.snapshot(1))->size(), 1u);
  EXPECT_EQ((*table_.snapshot())->txn_version("x"), 3);  // the latest, not the largest
  EXPECT_EQ(table_.tombstones(**table_.snapshot())->size(), 0u);
  EXPECT_EQ((*table_.snapshot(2))->domains.count("d"), 1u);
  EXPECT_EQ((*table_.snapshot(3))->domains.count("d"), 0u);
  EXPECT_EQ(table_.latest_version().value(), 3);
}

TEST_F(SnapshotTest, TheLastWordOfACommitCounts) {
  commit(0, {kProtocol, metadata_line(), R"({"txn":{"appId":"x","version":1}})",
             R"({"txn":{"appId":"x","version":2}})"});
  EXPECT_EQ((*table_.snapshot())->txn_version("x"), 2);
}

TEST_F(SnapshotTest, ASnapshotThatGoesOnKeepsWhatNewCommitsDoNotSpeakOf) {
  const auto domain = [](const std::string& name, const std::string& value) {
    return R"({"domainMetadata":{"domain":")" + name + R"(","configuration":")" + value +
           R"(","removed":false}})";
  };
  commit(0, {kProtocol, metadata_line(), add("a"), R"({"txn":{"appId":"x","version":1}})",
             domain("kept", "1"), domain("set", "1")});
  const auto first = *table_.snapshot();
  commit(1, {add("b"), domain("set", "2")});
  const auto second = *table_.snapshot_after(first);
  EXPECT_EQ(second->version, 1);
  EXPECT_EQ(second->txn_version("x"), 1);
  ASSERT_EQ(second->domains.size(), 2u);
  EXPECT_EQ(second->domains.at("kept").configuration, "1");
  EXPECT_EQ(second->domains.at("set").configuration, "2");
}

TEST_F(SnapshotTest, AFileThatIsLiveTwiceIsDamage) {
  commit(0, {kProtocol, metadata_line(), add("a")});
  commit(1, {add("a", vector_json("AAAAA"))});  // without a remove
  EXPECT_THAT(paths(), ElementsAre(HasSubstr("lists file a twice")));
}

TEST_F(SnapshotTest, KeysHoldTheDeletionVector) {
  commit(0, {kProtocol, metadata_line(), add("a")});
  commit(1, {remove("a"), add("a", vector_json("AAAAA"))});
  commit(2, {remove("a", vector_json("AAAAA")), add("a", vector_json("BBBBB"))});
  EXPECT_THAT(paths(), ElementsAre("a"));
  EXPECT_EQ((*table_.snapshot())->files[0].deletion_vector->path_or_inline, "BBBBB");
  EXPECT_EQ((*table_.snapshot(1))->files[0].deletion_vector->path_or_inline, "AAAAA");
  commit(3, {remove("a", vector_json("BBBBB"))});
  EXPECT_TRUE(paths().empty());
}

TEST_F(SnapshotTest, PathsAreComparedDecoded) {
  commit(0, {kProtocol, metadata_line(), add("x%20y"), add("/abs/f")});
  commit(1, {remove("x%20y"), remove("file:///abs/f")});
  EXPECT_TRUE(paths().empty());
  commit(2, {add("file:/t/z")});
  commit(3, {remove("z")});
  EXPECT_TRUE(paths().empty());
}

TEST_F(SnapshotTest, UnknownNamesInTheLogAreIgnored) {
  commit(0, {kProtocol, metadata_line(), add("a")});
  for (const char* name :
       {"00000000000000000001.json.tmp", ".00000000000000000001.json", "0000000000000000001.json",
        "00000000000000000000.crc", "00000000000000000000.00000000000000000001.compacted.json",
        "_commits/00000000000000000001.json", "-0000000000000000001.json", "x"}) {
    put(name, {"garbage"});
  }
  EXPECT_THAT(paths(), ElementsAre("a"));
  EXPECT_EQ(table_.latest_version().value(), 0);
}

TEST_F(SnapshotTest, GapsAreErrors) {
  commit(0, {kProtocol, metadata_line()});
  commit(1, {add("a")});
  commit(4, {add("b")});
  const auto snapshot = table_.snapshot();
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(snapshot.error().message, HasSubstr("versions 2 to 3 are missing"));
  EXPECT_THAT(paths(1), ElementsAre("a"));
  EXPECT_EQ(table_.snapshot(5).error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(table_.snapshot(5).error().message, HasSubstr("versions 0 to 4 are kept"));
  EXPECT_EQ(table_.snapshot(-1).error().kind, ErrorKind::kNotFound);
}

// Leaves one name out of its first listing, as a directory that grows while it is read may.
class HastyStore : public storage::PassingStore {
 public:
  HastyStore(std::shared_ptr<storage::Store> inner, std::string hidden)
      : PassingStore(std::move(inner)), hidden_(std::move(hidden)) {}
  Result<std::vector<storage::FileInfo>> list(const std::string& directory) override {
    auto files = inner_->list(directory);
    if (files.ok() && !listed_)
      std::erase_if(*files, [&](const auto& file) { return file.path == hidden_; });
    listed_ = true;
    return files;
  }

 private:
  std::string hidden_;
  bool listed_ = false;
};

TEST_F(SnapshotTest, ListingThatMissedACommitIsRepeated) {
  commit(0, {kProtocol, metadata_line()});
  commit(1, {add("a")});
  commit(2, {add("b")});
  const auto hasty = std::make_shared<HastyStore>(store_, commit_path("/t", 1));
  const auto snapshot = open_table(hasty).snapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  EXPECT_EQ((*snapshot)->files.size(), 2u);
}

TEST_F(SnapshotTest, ProtocolAndMetadataAreRequired) {
  commit(0, {kProtocol, add("a")});
  EXPECT_EQ(table_.snapshot().error().code, "DELTA_STATE_RECOVER_ERROR");
}

class Checkpoints : public SnapshotTest {
 protected:
  void SetUp() override {
    commit(0, {kProtocol, metadata_line(), add("a"), add("b")});
    commit(1, {remove("a")});
    commit(2, {add("c")});
  }
  const std::vector<std::string> at_one_{kProtocol, metadata_line(), add("b"), remove("a")};
};

TEST_F(Checkpoints, Classic) {
  put("00000000000000000001.checkpoint.parquet", at_one_);
  ASSERT_TRUE(store_->remove(commit_path("/t", 0)).ok());
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  EXPECT_THAT(paths(1), ElementsAre("b"));
  EXPECT_THAT(paths(0)[0], HasSubstr("versions 1 to 2 are kept"));
}

TEST_F(Checkpoints, CommitsBeforeThemMayHaveGaps) {
  put("00000000000000000001.checkpoint.parquet", at_one_);
  ASSERT_TRUE(store_->remove(commit_path("/t", 1)).ok());
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  EXPECT_THAT(paths(1), ElementsAre("b"));
}

TEST_F(Checkpoints, MultiPartCountOnlyWhenComplete) {
  put("00000000000000000001.checkpoint.0000000001.0000000002.parquet",
      {kProtocol, metadata_line()});
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  put("00000000000000000001.checkpoint.0000000002.0000000002.parquet",
      {add("from-checkpoint"), remove("a")});
  EXPECT_THAT(paths(), ElementsAre("c", "from-checkpoint"));
}

TEST_F(Checkpoints, V2ManifestWithSidecars) {
  put("00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
      {R"({"checkpointMetadata":{"version":1}})", kProtocol, metadata_line(),
       R"({"sidecar":{"path":"s1.parquet","sizeInBytes":1,"modificationTime":1}})",
       R"({"sidecar":{"path":"s2.parquet","sizeInBytes":1,"modificationTime":1}})"});
  put("_sidecars/s1.parquet", {add("b")});
  put("_sidecars/s2.parquet", {remove("a"), add("d")});
  ASSERT_TRUE(store_->remove(commit_path("/t", 0)).ok());
  EXPECT_THAT(paths(), ElementsAre("b", "c", "d"));
}

TEST_F(Checkpoints, DamagedOnesArePassedOver) {
  put("00000000000000000001.checkpoint.parquet", {"PAR1"});
  put("_last_checkpoint", {"{not json"});
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  ASSERT_TRUE(store_->remove(commit_path("/t", 0)).ok());
  EXPECT_THAT(paths()[0], HasSubstr("checkpoint.parquet"));
}

TEST_F(Checkpoints, ThatLackFilesArePassedOver) {
  put("00000000000000000001.checkpoint.parquet", {kProtocol, metadata_line()});
  put("_last_checkpoint", {R"({"version":1,"size":3,"numOfAddFiles":1})"});
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  ASSERT_TRUE(store_->remove(commit_path("/t", 0)).ok());
  EXPECT_THAT(paths()[0], HasSubstr("lists 0 files, but _last_checkpoint says 1"));
}

TEST_F(Checkpoints, WithoutProtocolOrMetadataAreErrors) {
  put("00000000000000000001.checkpoint.parquet", {metadata_line(), add("b")});
  ASSERT_TRUE(store_->remove(commit_path("/t", 0)).ok());
  EXPECT_EQ(table_.snapshot().error().code, "DELTA_STATE_RECOVER_ERROR");
}

TEST_F(SnapshotTest, UnsupportedFeaturesAreNamed) {
  commit(0, {R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,)"
             R"("readerFeatures":["deletionVectors","zetaFeature","variantType"],)"
             R"("writerFeatures":["deletionVectors","zetaFeature","variantType","omegaWriter"]}})",
             metadata_line()});
  const auto snapshot = table_.snapshot();
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(snapshot.error().code, "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
  EXPECT_THAT(snapshot.error().message, HasSubstr("variantType, zetaFeature,"));

  commit(
      1,
      {R"({"protocol":{"minReaderVersion":3,"minWriterVersion":9,"readerFeatures":[],"writerFeatures":[]}})"});
  EXPECT_EQ(table_.snapshot().error().code, "DELTA_INVALID_PROTOCOL_VERSION");
  commit(2, {R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],)"
             R"("writerFeatures":["omegaWriter"]}})"});
  EXPECT_TRUE(table_.snapshot().ok());
}

std::string with_time(int64_t in_commit_timestamp) {
  return fmt::format(
      R"({{"commitInfo":{{"inCommitTimestamp":{},"timestamp":1,"operation":"WRITE"}}}})",
      in_commit_timestamp);
}

TEST_F(SnapshotTest, VersionsByInCommitTimestamp) {
  commit(
      0,
      {with_time(100),
       R"({"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["inCommitTimestamp"]}})",
       metadata_line(R"({"delta.enableInCommitTimestamps":"true"})")});
  for (Version version = 1; version < 6; ++version)
    commit(version, {with_time(100 + 10 * version)});
  EXPECT_EQ((*table_.snapshot())->timestamp_ms, 150);
  EXPECT_EQ((*table_.snapshot(2))->timestamp_ms, 120);
  EXPECT_EQ(table_.version_at(100).value(), 0);
  EXPECT_EQ(table_.version_at(129).value(), 2);
  EXPECT_EQ(table_.version_at(130).value(), 3);
  EXPECT_EQ(table_.version_at(1'000'000).value(), 5);
  EXPECT_EQ(table_.version_at(99).error().kind, ErrorKind::kNotFound);
}

TEST_F(SnapshotTest, VersionsByFileTimeBeforeEnablement) {
  commit(0, {kProtocol, metadata_line()});
  commit(1, {add("a")});
  const int64_t file_time = (*table_.snapshot(1))->timestamp_ms;
  const int64_t enabled = file_time + 1'000'000;
  commit(
      2,
      {with_time(enabled),
       R"({"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["inCommitTimestamp"]}})",
       metadata_line(fmt::format(
           R"({{"delta.enableInCommitTimestamps":"true","delta.inCommitTimestampEnablementVersion":"2",)"
           R"("delta.inCommitTimestampEnablementTimestamp":"{}"}})",
           enabled))});
  commit(3, {with_time(enabled + 5)});
  EXPECT_EQ((*table_.snapshot(2))->timestamp_ms, enabled);
  EXPECT_EQ(table_.version_at(enabled - 1).value(), 1);
  EXPECT_EQ(table_.version_at(enabled).value(), 2);
  EXPECT_EQ(table_.version_at(enabled + 5).value(), 3);
  EXPECT_EQ(table_.version_at(file_time).value(), 1);
  // File times grow even where the clock stood still.
  EXPECT_GT((*table_.snapshot(1))->timestamp_ms, (*table_.snapshot(0))->timestamp_ms);
}

// Files of the times that a test says.
class TimedStore : public storage::PassingStore {
 public:
  using PassingStore::PassingStore;
  std::map<std::string, int64_t> times_ms;

  Result<storage::FileInfo> stat(const std::string& path) override {
    SL_ASSIGN(storage::FileInfo file, PassingStore::stat(path));
    set_time(&file);
    return file;
  }
  Result<std::vector<storage::FileInfo>> list(const std::string& directory) override {
    SL_ASSIGN(std::vector<storage::FileInfo> files, PassingStore::list(directory));
    for (storage::FileInfo& file : files) set_time(&file);
    return files;
  }

 private:
  void set_time(storage::FileInfo* file) const {
    if (const auto time = times_ms.find(file->path); time != times_ms.end())
      file->modified_ms = time->second;
  }
};

TEST_F(SnapshotTest, ASnapshotThatGoesOnHasTheTimesOfOneThatIsReadAnew) {
  const auto timed = std::make_shared<TimedStore>(store_);
  const Table table = open_table(timed);
  commit(0, {kProtocol, metadata_line()});
  commit(1, {add("a")});
  timed->times_ms = {{commit_path("/t", 0), 2000}, {commit_path("/t", 1), 1000}};
  const auto first = *table.snapshot(0);
  EXPECT_EQ(first->timestamp_ms, 2000);
  EXPECT_EQ((*table.snapshot_after(first))->timestamp_ms, 2001);
  EXPECT_EQ((*table.snapshot())->timestamp_ms, 2001);
}

TEST_F(SnapshotTest, ASnapshotOfATableThatWasMadeAnewDoesNotGoOn) {
  const auto timed = std::make_shared<TimedStore>(store_);
  const Table table = open_table(timed);
  commit(0, {kProtocol, metadata_line(), add("old")});
  timed->times_ms = {{commit_path("/t", 0), 1000}};
  const auto first = *table.snapshot();
  commit(0, {kProtocol, metadata_line(), add("new")});
  commit(1, {add("newer")});
  timed->times_ms[commit_path("/t", 0)] = 2000;
  const auto now = *table.snapshot_after(first);
  ASSERT_EQ(now->files.size(), 2u);
  EXPECT_EQ(now->files[0].path, "new");
  EXPECT_EQ(now->files[1].path, "newer");
}

TEST_F(SnapshotTest, CommitGivesActionsInOrder) {
  commit(0, {kProtocol, metadata_line()});
  commit(1, {remove("a"), add("b")});
  const auto actions = table_.commit(1);
  ASSERT_TRUE(actions.ok());
  ASSERT_EQ(actions->size(), 2u);
  EXPECT_EQ(std::get<RemoveFile>((*actions)[0]).path, "a");
  EXPECT_THAT(table_.commit(7).error().message, HasSubstr("commits 0 to 1 are kept"));
}

TEST_F(SnapshotTest, RowCounts) {
  AddFile file = data_file("a", 7);
  EXPECT_EQ(num_records(file), 7);
  file.stats = R"({ "minValues" : {"d":123456789012345678901234567890.5}, "numRecords" : 8 })";
  EXPECT_EQ(num_records(file), 8);
  file.stats = "{}";
  EXPECT_EQ(num_records(file), std::nullopt);
  file.stats.reset();
  EXPECT_EQ(num_records(file), std::nullopt);
}

TEST_F(SnapshotTest, ReplayOfManyFilesIsFast) {
  // 50 commits of 1000 files each; a quadratic step would take minutes.
  commit(0, {kProtocol, metadata_line()});
  for (Version version = 1; version <= 50; ++version) {
    std::vector<std::string> lines;
    for (int i = 0; i < 1000; ++i) {
      lines.push_back(add(fmt::format("part-{}-{}.parquet", version, i)));
      if (version > 1 && i % 2 == 0)
        lines.push_back(remove(fmt::format("part-{}-{}.parquet", version - 1, i)));
    }
    commit(version, lines);
  }
  EXPECT_EQ(paths().size(), 49u * 500 + 1000);
}

TEST(Features, LegacyVersionsImplyThem) {
  EXPECT_THAT(supported_features({1, 1, {}, {}}), ElementsAre());
  EXPECT_THAT(supported_features({1, 2, {}, {}}), ElementsAre("appendOnly", "invariants"));
  EXPECT_THAT(supported_features({2, 5, {}, {}}),
              ElementsAre("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping",
                          "generatedColumns", "invariants"));
  EXPECT_THAT(supported_features({1, 7, {}, {"rowTracking"}}), ElementsAre("rowTracking"));
}

TEST(Features, UpgradesListWhatWasImplied) {
  EXPECT_EQ(with_features({1, 2, {}, {}}, {"appendOnly"}).min_writer_version, 2);
  const Protocol feed = with_features({1, 2, {}, {}}, {"changeDataFeed"});
  EXPECT_EQ(feed.min_reader_version, 1);
  EXPECT_EQ(feed.min_writer_version, 7);
  EXPECT_THAT(feed.writer_features, ElementsAre("appendOnly", "changeDataFeed", "invariants"));
  EXPECT_THAT(feed.reader_features, ElementsAre());

  const Protocol vectors = with_features({2, 5, {}, {}}, {"deletionVectors"});
  EXPECT_EQ(vectors.min_reader_version, 3);
  EXPECT_THAT(vectors.reader_features, ElementsAre("columnMapping", "deletionVectors"));
  EXPECT_EQ(vectors.writer_features.count("identityColumns"), 0u);
  EXPECT_EQ(vectors.writer_features.count("generatedColumns"), 1u);
}

}  // namespace
}  // namespace strandline::delta
