#include "delta/transaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "delta/alter.h"
#include "delta/checkpoint.h"
#include "delta/column_mapping.h"
#include "delta/conflict.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NewTable definition(std::map<std::string, std::string> properties = {}) {
  NewTable table;
  table.schema = two_columns();
  table.properties = std::move(properties);
  return table;
}

RowSet rows(std::initializer_list<uint64_t> positions) {
  RowSet set;
  for (const uint64_t position : positions) set.add(position);
  return set;
}

class TransactionTest : public ::testing::Test {
 protected:
  void create(std::map<std::string, std::string> properties = {}) {
    auto transaction = Transaction::create(table_, definition(std::move(properties)));
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    const auto version = transaction->commit_or_error();
    ASSERT_TRUE(version.ok()) << version.error().message;
    ASSERT_EQ(*version, 0);
  }

  std::shared_ptr<const Snapshot> snapshot(std::optional<Version> version = {}) {
    auto result = table_.snapshot(version);
    if (!result.ok()) {
      ADD_FAILURE() << result.error().message;
      return std::make_shared<Snapshot>();
    }
    return *result;
  }

  Transaction begin() {
    auto transaction = Transaction::begin(table_, snapshot());
    EXPECT_TRUE(transaction.ok());
    return std::move(transaction).value();
  }

  Version append(const std::string& path, int64_t count = 10) {
    Transaction transaction = begin();
    transaction.add_file(data_file(path, count));
    transaction.set_blind_append();
    const auto version = transaction.commit_or_error();
    EXPECT_TRUE(version.ok()) << version.error().message;
    return version.ok() ? *version : -1;
  }

  // The error code of a commit, or "ok".
  static std::string outcome(Transaction& transaction) {
    const auto version = transaction.commit_or_error();
    return version.ok() ? "ok" : version.error().code;
  }

  AddFile live(const std::string& path) {
    const auto now = snapshot();
    for (const AddFile& file : now->files) {
      if (file.path == path) return file;
    }
    ADD_FAILURE() << path << " is not live";
    return {};
  }

  std::vector<std::string> vector_files() {
    std::vector<std::string> found;
    const auto files = store_->list("/t");
    for (const auto& file : *files) {
      if (file.path.find("deletion_vector_") != std::string::npos) found.push_back(file.path);
    }
    return found;
  }

  // A commit as another program writes it.
  void commit_of_others(const std::vector<Action>& actions) {
    std::string text;
    for (const Action& action : actions) text += print_action(action) + "\n";
    ASSERT_TRUE(
        store_->put_if_absent(commit_path(table_.path(), snapshot()->version + 1), text).ok());
  }
  CommitInfo info_of_others(std::optional<bool> is_blind_append) {
    CommitInfo made;
    made.operation = "WRITE";
    made.timestamp_ms = snapshot()->timestamp_ms + 1;
    made.in_commit_timestamp_ms = made.timestamp_ms;
    made.is_blind_append = is_blind_append;
    return made;
  }
  AddFile file_of_others(const std::string& path) {
    AddFile file = data_file(path);
    file.base_row_id = 1000;
    file.default_row_commit_version = snapshot()->version + 1;
    return file;
  }
  RemoveFile removal_by_others(const std::string& path, const std::string& spelling) {
    const AddFile file = live(path);
    RemoveFile gone;
    gone.path = spelling;
    gone.data_change = true;
    gone.deletion_vector = file.deletion_vector;
    return gone;
  }

  CommitInfo info(Version version) {
    const auto actions = table_.commit(version);
    return std::get<CommitInfo>((*actions)[0]);
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
};

TEST_F(TransactionTest, CreateAppendRead) {
  EXPECT_FALSE(table_.exists().value());
  create();
  EXPECT_TRUE(table_.exists().value());
  EXPECT_EQ(append("a", 10), 1);
  EXPECT_EQ(append("b", 5), 2);

  const auto now = snapshot();
  EXPECT_EQ(now->version, 2);
  EXPECT_EQ(now->schema.fields[1].name, "name");
  ASSERT_EQ(now->files.size(), 2u);
  EXPECT_EQ(now->files[0].base_row_id, 0);
  EXPECT_EQ(now->files[0].default_row_commit_version, 1);
  EXPECT_EQ(now->files[1].base_row_id, 10);
  EXPECT_EQ(now->files[1].default_row_commit_version, 2);
  EXPECT_EQ(now->row_id_high_water_mark(), 14);
  EXPECT_EQ(live_row_count(*now), 15);
  EXPECT_TRUE(now->row_id_column());
  EXPECT_TRUE(now->deletion_vectors_enabled());
  EXPECT_EQ(snapshot(1)->files.size(), 1u);
}

TEST_F(TransactionTest, CreateOverATableConflicts) {
  create();
  auto again = Transaction::create(table_, definition());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(outcome(*again), "DELTA_TABLE_ALREADY_EXISTS");
}

TEST_F(TransactionTest, CommitInfoTellsWhatHappened) {
  create();
  Transaction transaction = begin();
  transaction.add_file(data_file("a"));
  transaction.set_blind_append();
  transaction.set_operation("STREAMING UPDATE", {{"outputMode", "Append"}, {"batchId", "7"}});
  transaction.set_metric("numOutputRows", 10);
  transaction.set_tag("mine", "x");
  ASSERT_EQ(outcome(transaction), "ok");
  const CommitInfo commit = info(1);
  EXPECT_EQ(commit.operation, "STREAMING UPDATE");
  EXPECT_EQ(commit.operation_parameters.at("batchId"), "\"7\"");
  EXPECT_EQ(commit.operation_metrics.at("numOutputRows"), "10");
  EXPECT_EQ(commit.read_version, 0);
  EXPECT_EQ(commit.isolation_level, "Serializable");
  EXPECT_EQ(commit.is_blind_append, true);
  EXPECT_EQ(commit.tags.at("mine"), "x");
  EXPECT_EQ(commit.tags.at("delta.rowTracking.preserved"), "true");
  EXPECT_THAT(commit.engine_info, HasSubstr("Strandline/"));
  EXPECT_EQ(commit.in_commit_timestamp_ms, snapshot()->timestamp_ms);
}

TEST_F(TransactionTest, InCommitTimestampsGrow) {
  create();
  // A table whose last writer's clock was ahead.
  const int64_t future = now_ms() + 3'600'000;
  CommitInfo ahead;
  ahead.in_commit_timestamp_ms = future;
  ASSERT_TRUE(store_->put(commit_path("/t", 1), print_action(ahead) + "\n").ok());
  append("a");
  append("b");
  EXPECT_EQ(snapshot(2)->timestamp_ms, future + 1);
  EXPECT_EQ(snapshot(3)->timestamp_ms, future + 2);
  EXPECT_EQ(table_.version_at(future + 1).value(), 2);
}

TEST_F(TransactionTest, PropertiesTurnFeaturesOff) {
  create({{"delta.enableDeletionVectors", "false"},
          {"delta.enableRowTracking", "false"},
          {"delta.enableInCommitTimestamps", "false"}});
  append("a");
  const auto now = snapshot();
  EXPECT_EQ(now->files[0].base_row_id, std::nullopt);
  EXPECT_EQ(now->domains.size(), 0u);
  EXPECT_EQ(info(1).in_commit_timestamp_ms, std::nullopt);
  EXPECT_GT(now->timestamp_ms, 0);
  Transaction transaction = begin();
  EXPECT_EQ(transaction.delete_rows(live("a"), rows({1})).error().code,
            "DELTA_DELETION_VECTORS_DISABLED");
}

TEST_F(TransactionTest, DeletedRowsAccumulate) {
  create();
  append("a", 10);
  append("b", 4);
  const AddFile before = live("a");
  {
    Transaction transaction = begin();
    ASSERT_TRUE(transaction.delete_rows(before, rows({1, 3})).ok());
    ASSERT_TRUE(transaction.delete_rows(before, rows({3, 5})).ok());
    ASSERT_TRUE(transaction.delete_rows(live("b"), rows({0})).ok());
    ASSERT_EQ(outcome(transaction), "ok");
  }
  EXPECT_EQ(vector_files().size(), 1u);
  AddFile after = live("a");
  EXPECT_EQ(after.deletion_vector->cardinality, 3);
  EXPECT_EQ(after.base_row_id, before.base_row_id);
  EXPECT_EQ(after.default_row_commit_version, before.default_row_commit_version);
  EXPECT_EQ(after.stats, R"({"numRecords":10,"minValues":{"id":1},"tightBounds":false})");
  EXPECT_EQ(live_row_count(*snapshot()), 10);
  {
    Transaction transaction = begin();
    ASSERT_TRUE(transaction.delete_rows(after, rows({9})).ok());
    ASSERT_EQ(outcome(transaction), "ok");
  }
  after = live("a");
  EXPECT_EQ(after.deletion_vector->cardinality, 4);
  EXPECT_EQ(after.stats, R"({"numRecords":10,"minValues":{"id":1},"tightBounds":false})");
  const auto deleted = table_.load_deletion_vectors(*snapshot());
  ASSERT_TRUE(deleted.ok());
  ASSERT_EQ(deleted->size(), 2u);
  EXPECT_TRUE(deleted->at(0).contains(9));
  EXPECT_TRUE(deleted->at(0).contains(1));
  EXPECT_TRUE(deleted->at(1).contains(0));
  // Removes carry what the change feed needs.
  const auto last_commit = table_.commit(snapshot()->version);
  for (const Action& action : *last_commit) {
    if (const auto* const remove = std::get_if<RemoveFile>(&action)) {
      EXPECT_TRUE(remove->extended_file_metadata);
      EXPECT_EQ(remove->size_bytes, 100);
      EXPECT_EQ(remove->deletion_vector->cardinality, 3);
      EXPECT_EQ(remove->base_row_id, before.base_row_id);
    }
  }
  EXPECT_EQ(snapshot(2)->files[0].deletion_vector, std::nullopt);
}

TEST_F(TransactionTest, AllRowsGoneIsAPlainRemove) {
  create();
  append("a", 3);
  {
    Transaction transaction = begin();
    ASSERT_TRUE(transaction.delete_rows(live("a"), rows({0, 2})).ok());
    ASSERT_EQ(outcome(transaction), "ok");
  }
  Transaction transaction = begin();
  ASSERT_TRUE(transaction.delete_rows(live("a"), rows({1})).ok());
  ASSERT_EQ(outcome(transaction), "ok");
  EXPECT_TRUE(snapshot()->files.empty());
  EXPECT_EQ(vector_files().size(), 1u);
}

TEST_F(TransactionTest, DeletingDeletedRowsChangesNothing) {
  create();
  append("a", 3);
  for (int i = 0; i < 2; ++i) {
    Transaction transaction = begin();
    ASSERT_TRUE(transaction.delete_rows(live("a"), rows({1})).ok());
    ASSERT_EQ(outcome(transaction), "ok");
  }
  EXPECT_EQ(snapshot()->version, 2);
  Transaction empty = begin();
  EXPECT_FALSE(empty.has_changes());
  EXPECT_EQ(empty.commit_or_error().value(), 2);
}

TEST_F(TransactionTest, IllegalActionSetsAreRefused) {
  create();
  append("a", 3);
  const auto refused = [&](const std::function<void(Transaction&)>& fill) {
    Transaction transaction = begin();
    fill(transaction);
    const auto version = transaction.commit_or_error();
    EXPECT_FALSE(version.ok());
    EXPECT_EQ(version.error().kind, ErrorKind::kInternal);
    return version.error().message;
  };
  const AddFile file = live("a");
  EXPECT_THAT(refused([&](Transaction& t) {
                t.add_file(data_file("b"));
                t.add_file(data_file("b"));
              }),
              HasSubstr("added twice"));
  EXPECT_THAT(refused([&](Transaction& t) {
                t.remove_file(file);
                t.remove_file(file);
              }),
              HasSubstr("removed twice"));
  EXPECT_THAT(refused([&](Transaction& t) {
                t.remove_file(file);
                t.add_file(file);
              }),
              HasSubstr("added and removed"));
  EXPECT_THAT(refused([&](Transaction& t) { t.remove_file(data_file("zz")); }),
              HasSubstr("was not live"));
  EXPECT_THAT(refused([&](Transaction& t) {
                AddFile other = file;
                other.deletion_vector = DeletionVectorDescriptor{'i', "AAAAA", {}, 4, 1};
                t.remove_file(other);
              }),
              HasSubstr("was not live"));
  EXPECT_THAT(refused([&](Transaction& t) {
                t.remove_file(file, false);
                t.add_file(data_file("b"));
              }),
              HasSubstr("some file actions change data"));
  EXPECT_THAT(refused([&](Transaction& t) {
                AddFile unknown = data_file("b");
                unknown.stats.reset();
                t.add_file(unknown);
              }),
              HasSubstr("no row count"));
  EXPECT_THAT(refused([&](Transaction& t) { ASSERT_TRUE(t.delete_rows(file, rows({3})).ok()); }),
              HasSubstr("row 3 is to be deleted"));
  EXPECT_THAT(refused([&](Transaction& t) { t.set_domain({"delta.rowTracking", "{}", false}); }),
              HasSubstr("set by hand"));
  EXPECT_THAT(refused([&](Transaction& t) {
                t.add_file(data_file("b"));
                t.set_read_files({7});
              }),
              HasSubstr("file 7 of the snapshot"));
  EXPECT_THAT(refused([&](Transaction& t) {
                AddFile other = file;
                other.deletion_vector = DeletionVectorDescriptor{'i', "AAAAA", {}, 4, 1};
                t.add_file(other);
              }),
              HasSubstr("without being removed"));
  EXPECT_EQ(snapshot()->version, 1);
  EXPECT_TRUE(vector_files().empty());

  Transaction twice = begin();
  twice.add_file(data_file("b"));
  EXPECT_EQ(outcome(twice), "ok");
  EXPECT_EQ(outcome(twice), "DELTA_ILLEGAL_ACTIONS");
}

TEST_F(TransactionTest, PartitionValuesMustBeThere) {
  NewTable table = definition();
  table.partition_columns = {"name"};
  auto creating = Transaction::create(table_, table);
  ASSERT_EQ(outcome(*creating), "ok");
  Transaction transaction = begin();
  transaction.add_file(data_file("a"));
  EXPECT_THAT(transaction.commit_or_error().error().message, HasSubstr("partition column name"));
  Transaction right = begin();
  AddFile file = data_file("name=x/a");
  file.partition_values["name"] = "x";
  right.add_file(file);
  EXPECT_EQ(outcome(right), "ok");
  // A remove tells them too: a feed gives the rows that go.
  Transaction removing = begin();
  removing.remove_file(live("name=x/a"));
  EXPECT_EQ(outcome(removing), "ok");
  const auto actions = *table_.commit(2);
  const auto* const removed = std::get_if<RemoveFile>(&actions.back());
  ASSERT_NE(removed, nullptr);
  EXPECT_EQ(removed->partition_values, file.partition_values);
}

TEST_F(TransactionTest, StatisticsOfOthersKeepAllButTightBoundsWhenRowsGo) {
  create();
  Transaction appending = begin();
  AddFile file = data_file("a");
  file.stats = R"({"tightBounds":true,"numRecords":10,"minValues":{"id":1}})";
  appending.add_file(file);
  ASSERT_EQ(outcome(appending), "ok");
  Transaction deleting = begin();
  ASSERT_TRUE(deleting.delete_rows(live("a"), rows({1})).ok());
  ASSERT_EQ(outcome(deleting), "ok");
  EXPECT_EQ(live("a").stats, R"({"numRecords":10,"minValues":{"id":1},"tightBounds":false})");
}

TEST_F(TransactionTest, ACommitThatRemovesIsNoBlindAppend) {
  create();
  append("a");
  Transaction replacing = begin();
  replacing.remove_file(live("a"));
  replacing.add_file(data_file("b"));
  replacing.set_blind_append();
  ASSERT_EQ(outcome(replacing), "ok");
  EXPECT_EQ(info(2).is_blind_append, false);
}

TEST_F(TransactionTest, ProgressBesideFilesThatAreOnlyRearrangedIsSerializable) {
  create();
  append("a");
  Transaction rearranging = begin();
  rearranging.remove_file(live("a"), false);
  AddFile file = data_file("b");
  file.data_change = false;
  rearranging.add_file(file);
  rearranging.set_txn("app", 1);
  ASSERT_EQ(outcome(rearranging), "ok");
  EXPECT_EQ(info(2).isolation_level, "Serializable");
}

TEST_F(TransactionTest, AppendOnlyAndChangeFeedTables) {
  create({{"delta.appendOnly", "true"}});
  append("a");
  Transaction removing = begin();
  removing.remove_file(live("a"));
  EXPECT_EQ(outcome(removing), "DELTA_CANNOT_MODIFY_APPEND_ONLY");
  Transaction rewriting = begin();
  rewriting.remove_file(live("a"), false);
  AddFile compacted = data_file("b");
  compacted.data_change = false;
  rewriting.add_file(compacted);
  EXPECT_EQ(outcome(rewriting), "ok");

  table_ = open_table(store_, "/feed");
  create({{"delta.enableChangeDataFeed", "true"}});
  append("a");
  Transaction deleting = begin();
  EXPECT_TRUE(deleting.delete_rows(live("a"), rows({1})).ok());
  EXPECT_EQ(outcome(deleting), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
  Transaction updating = begin();
  updating.remove_file(live("a"));
  updating.add_file(data_file("b"));
  EXPECT_EQ(outcome(updating), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
  // A whole file that goes tells its rows itself.
  append("gone");
  Transaction removing_all = begin();
  removing_all.remove_file(live("gone"));
  EXPECT_EQ(outcome(removing_all), "ok");
  Transaction recording = begin();
  recording.remove_file(live("a"));
  recording.add_file(data_file("b"));
  recording.add_change_file({"_change_data/c", {}, 5});
  recording.set_change_feed_complete();
  EXPECT_EQ(outcome(recording), "ok");
  const auto actions = *table_.commit(4);
  EXPECT_TRUE(std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    const auto* file = std::get_if<CdcFile>(&action);
    return file != nullptr && file->path == "_change_data/c" && file->size_bytes == 5;
  }));
}

TEST_F(TransactionTest, TablesWithFeaturesWeCannotWriteAreRefused) {
  const auto begin_on = [&](const std::string& writer_features, const std::string& configuration,
                            const std::string& field_metadata) {
    const std::string schema =
        R"({"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":)" +
        field_metadata + "}]}";
    const std::string log =
        R"({"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":)" +
        writer_features + "}}\n" +
        R"({"metaData":{"id":"i","format":{"provider":"parquet"},"schemaString":)" +
        json_string(schema) + R"(,"partitionColumns":[],"configuration":)" + configuration + "}}\n";
    EXPECT_TRUE(store_->put(commit_path("/t", 0), log).ok());
    const auto transaction = Transaction::begin(table_, snapshot());
    return transaction.ok() ? "ok" : transaction.error().code + " " + transaction.error().message;
  };
  EXPECT_EQ(begin_on(R"(["invariants","checkConstraints"])", R"({"delta.constraints.c":"id > 0"})",
                     R"({"delta.invariants":"{}"})"),
            "ok");
  EXPECT_THAT(begin_on(R"(["icebergCompatV2","unheardOf"])", "{}", "{}"),
              HasSubstr("icebergCompatV2, unheardOf"));
}

TEST_F(TransactionTest, SchemaChangesRaiseTheProtocol) {
  create({{"delta.enableDeletionVectors", "false"},
          {"delta.enableRowTracking", "false"},
          {"delta.enableInCommitTimestamps", "false"}});
  Transaction transaction = begin();
  Schema schema = two_columns();
  schema.fields.push_back(Field{"at", DataType::primitive(TypeId::kTimestampNtz), true, {}});
  transaction.set_schema(schema);
  EXPECT_EQ(transaction.snapshot().schema.fields.size(), 3u);
  ASSERT_EQ(outcome(transaction), "ok");
  const auto now = snapshot();
  EXPECT_EQ(now->schema.fields.size(), 3u);
  EXPECT_EQ(now->protocol.min_reader_version, 3);
  EXPECT_THAT(now->protocol.writer_features,
              ElementsAre("appendOnly", "invariants", "timestampNtz"));
  EXPECT_EQ(now->metadata.id, snapshot(0)->metadata.id);
}

TEST_F(TransactionTest, EnablingInCommitTimestampsLater) {
  create({{"delta.enableInCommitTimestamps", "false"}});
  append("a");
  Transaction transaction = begin();
  Metadata metadata = transaction.snapshot().metadata;
  metadata.configuration["delta.enableInCommitTimestamps"] = "true";
  transaction.set_metadata(metadata);
  ASSERT_EQ(outcome(transaction), "ok");
  const auto now = snapshot();
  EXPECT_EQ(now->property("delta.inCommitTimestampEnablementVersion"), "2");
  EXPECT_EQ(now->property("delta.inCommitTimestampEnablementTimestamp"),
            std::to_string(now->timestamp_ms));
  EXPECT_EQ(table_.version_at(now->timestamp_ms).value(), 2);
  EXPECT_EQ(table_.version_at(now->timestamp_ms - 1).value(), 1);
}

TEST_F(TransactionTest, DomainsAndTransactions) {
  create({{"delta.enableRowTracking", "false"}});
  Transaction transaction = begin();
  transaction.set_domain({"my.domain", "{}", false});
  transaction.set_txn("app", 5);
  ASSERT_EQ(outcome(transaction), "ok");
  EXPECT_EQ(snapshot()->txn_version("app"), 5);
  EXPECT_EQ(snapshot()->domains.at("my.domain").configuration, "{}");
  EXPECT_EQ(snapshot()->protocol.writer_features.count("domainMetadata"), 1u);
}

// Conflicts: `ours` begins, `theirs` commits, `ours` commits.
class Conflicts : public TransactionTest {
 protected:
  void SetUp() override {
    create();
    append("a");
    append("b");
  }
  void use_write_serializable() {
    Transaction transaction = begin();
    Metadata metadata = transaction.snapshot().metadata;
    metadata.configuration["delta.isolationLevel"] = "WriteSerializable";
    transaction.set_metadata(metadata);
    ASSERT_EQ(outcome(transaction), "ok");
  }
  Transaction deleting(const std::string& path, std::vector<size_t> read_files, uint64_t row = 1) {
    Transaction transaction = begin();
    EXPECT_TRUE(transaction.delete_rows(live(path), rows({row})).ok());
    transaction.set_read_files(std::move(read_files));
    return transaction;
  }
};

TEST_F(Conflicts, BlindAppendsNever) {
  Transaction ours = begin();
  ours.add_file(data_file("mine", 7));
  ours.set_blind_append();
  append("theirs1", 5);
  append("theirs2", 5);
  Transaction theirs = deleting("a", {0});
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(ours.commit_or_error().value(), 6);
  // Rebased: ids above the winners', versions of the commit itself.
  const AddFile mine = live("mine");
  EXPECT_EQ(mine.base_row_id, 30);
  EXPECT_EQ(mine.default_row_commit_version, 6);
  EXPECT_EQ(snapshot()->row_id_high_water_mark(), 36);
  EXPECT_EQ(info(6).read_version, 2);
  EXPECT_GT(snapshot(6)->timestamp_ms, snapshot(5)->timestamp_ms);
}

// Tables of plain old Delta, whose features others switch on.
class ChangedMeanwhile : public TransactionTest {
 protected:
  void SetUp() override {
    create({{"delta.enableDeletionVectors", "false"},
            {"delta.enableRowTracking", "false"},
            {"delta.enableInCommitTimestamps", "false"}});
    append("a");
  }
  void alter(const std::map<std::string, std::string>& properties) {
    const auto version = commit_alteration(table_, {"SET TBLPROPERTIES", {}},
                                           [&](const Snapshot&, Alteration* alteration) {
                                             return alteration->set_properties(properties);
                                           });
    ASSERT_TRUE(version.ok()) << version.error().message;
  }
  Transaction appending() {
    Transaction ours = begin();
    ours.add_file(data_file("mine", 7));
    ours.set_blind_append();
    return ours;
  }
};

TEST_F(ChangedMeanwhile, SwitchesAreTakenOver) {
  Transaction ours = appending();
  alter({{"delta.enableDeletionVectors", "true"}, {"delta.checkpointPolicy", "v2"}});
  alter({{"delta.enableInCommitTimestamps", "true"}});
  alter({{"delta.columnMapping.mode", "name"}});
  alter({{"delta.enableRowTracking", "true"}});
  ASSERT_EQ(outcome(ours), "ok");
  const auto now = snapshot();
  const CommitInfo commit = info(now->version);
  EXPECT_TRUE(commit.in_commit_timestamp_ms);
  EXPECT_EQ(live("mine").base_row_id, 10);
  EXPECT_EQ(live("mine").default_row_commit_version, now->version);
  EXPECT_EQ(now->row_id_high_water_mark(), 16);
  EXPECT_EQ(now->column_mapping_mode(), "name");
  EXPECT_EQ(commit.read_version, 1);
}

TEST_F(ChangedMeanwhile, RowsThatWereMovedBeforeTrackingLoseTheirIds) {
  Transaction ours = begin();
  ours.remove_file(live("a"));
  ours.add_file(data_file("mine", 7));
  ours.set_read_files({0});
  Transaction theirs = begin();
  Metadata metadata = theirs.snapshot().metadata;
  metadata.configuration["delta.enableDeletionVectors"] = "true";
  theirs.set_metadata(metadata);
  ASSERT_EQ(outcome(theirs), "ok");
  ASSERT_EQ(outcome(ours), "ok");
  EXPECT_EQ(info(snapshot()->version).tags.count("delta.rowTracking.preserved"), 0u);
}

// Tables that give rows their ids, though no property says so yet.
TEST_F(TransactionTest, RowsMovedWhileTrackingIsSwitchedOnDoNotKeepTheirIds) {
  create({{"delta.enableRowTracking", "false"}, {"delta.feature.rowTracking", "supported"}});
  append("a");
  Transaction moving = begin();
  moving.remove_file(live("a"));
  moving.add_file(data_file("mine", 7));
  moving.set_read_files({0});
  Transaction appending = begin();
  appending.add_file(data_file("mine2", 7));
  appending.set_blind_append();
  const auto switched = commit_alteration(
      table_, {"SET TBLPROPERTIES", {}}, [&](const Snapshot&, Alteration* alteration) {
        return alteration->set_properties({{"delta.enableRowTracking", "true"}});
      });
  ASSERT_TRUE(switched.ok()) << switched.error().message;
  ASSERT_EQ(outcome(moving), "ok");
  EXPECT_EQ(info(snapshot()->version).tags["delta.rowTracking.preserved"], "false");
  ASSERT_EQ(outcome(appending), "ok");
  EXPECT_EQ(info(snapshot()->version).tags["delta.rowTracking.preserved"], "true");
}

TEST_F(ChangedMeanwhile, OtherChangesConflict) {
  const auto race = [&](const std::map<std::string, std::string>& properties) {
    Transaction ours = appending();
    alter(properties);
    return outcome(ours);
  };
  EXPECT_EQ(race({{"delta.appendOnly", "true"}}), "DELTA_METADATA_CHANGED");
  EXPECT_EQ(race({{"mine", "1"}}), "DELTA_METADATA_CHANGED");
  EXPECT_EQ(race({{"delta.enableDeletionVectors", "true"}, {"mine", "2"}}),
            "DELTA_METADATA_CHANGED");
  EXPECT_EQ(race({{"delta.feature.timestampNtz", "supported"}}), "DELTA_PROTOCOL_CHANGED");
  EXPECT_EQ(race({{"delta.enableDeletionVectors", "false"}}), "DELTA_METADATA_CHANGED");

  Transaction ours = appending();
  Schema schema = two_columns();
  schema.fields.push_back(Field{"new", DataType::primitive(TypeId::kLong), true, {}});
  Transaction theirs = begin();
  theirs.set_schema(schema);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_METADATA_CHANGED");

  // Two changes of metadata are never one after the other by themselves.
  Transaction changing = begin();
  Metadata metadata = changing.snapshot().metadata;
  metadata.configuration["ours"] = "1";
  changing.set_metadata(metadata);
  alter({{"delta.checkpointPolicy", "v2"}});
  EXPECT_EQ(outcome(changing), "DELTA_METADATA_CHANGED");
}

TEST_F(ChangedMeanwhile, AFileWithoutARowCountCannotBeTracked) {
  Transaction ours = begin();
  AddFile file = data_file("mine");
  file.stats = std::nullopt;
  ours.add_file(file);
  ours.set_blind_append();
  alter({{"delta.enableRowTracking", "true"}});
  EXPECT_EQ(outcome(ours), "DELTA_METADATA_CHANGED");
}

TEST(HarmlessChanges, IdentityColumnsMoveOn) {
  Metadata before;
  Schema schema = two_columns();
  schema.fields[0].metadata = {{"delta.identity.start", "1"},
                               {"delta.identity.highWaterMark", "5"}};
  before.schema_string = print_schema(schema);
  Metadata after = before;
  schema.fields[0].metadata["delta.identity.highWaterMark"] = "9";
  after.schema_string = print_schema(schema);
  EXPECT_TRUE(is_harmless_change(before, after));
  schema.fields[0].metadata["delta.identity.start"] = "2";
  after.schema_string = print_schema(schema);
  EXPECT_FALSE(is_harmless_change(before, after));
}

TEST(HarmlessChanges, AnotherTableAndOtherPartitionsAreNone) {
  Metadata before;
  before.id = "one";
  before.schema_string = print_schema(two_columns());
  before.partition_columns = {"name"};
  EXPECT_TRUE(is_harmless_change(before, before));
  Metadata after = before;
  after.id = "other";
  EXPECT_FALSE(is_harmless_change(before, after));
  after = before;
  after.partition_columns = {};
  EXPECT_FALSE(is_harmless_change(before, after));
}

TEST(HarmlessChanges, WhatIsSwitchedOnAlreadyKeepsWhatCameAlong) {
  Metadata before;
  before.schema_string = print_schema(two_columns());
  before.configuration = {{"delta.enableRowTracking", "true"},
                          {"delta.rowTracking.materializedRowIdColumnName", "_ids"}};
  Metadata after = before;
  after.configuration["delta.rowTracking.materializedRowIdColumnName"] = "_others";
  EXPECT_FALSE(is_harmless_change(before, after));
  before.configuration.erase("delta.enableRowTracking");
  EXPECT_TRUE(is_harmless_change(before, after));
}

TEST(HarmlessChanges, MappingWithOtherNamesIsNone) {
  Metadata before;
  before.schema_string = print_schema(two_columns());
  Metadata after = before;
  after.configuration = {{"delta.columnMapping.mode", "name"}};
  Schema schema = two_columns();
  assign_mapping(&schema, &after, PhysicalNames::kCurrent);
  after.schema_string = print_schema(schema);
  EXPECT_TRUE(is_harmless_change(before, after));
  schema = two_columns();
  assign_mapping(&schema, &after, PhysicalNames::kFresh);
  after.schema_string = print_schema(schema);
  EXPECT_FALSE(is_harmless_change(before, after));
}

TEST_F(Conflicts, AppendAgainstReader) {
  Transaction ours = deleting("a", {0});
  append("theirs");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_APPEND");
  EXPECT_TRUE(vector_files().empty());

  use_write_serializable();
  Transaction tolerant = deleting("a", {0});
  append("theirs2");
  EXPECT_EQ(outcome(tolerant), "ok");
  EXPECT_EQ(info(snapshot()->version).isolation_level, "WriteSerializable");

  // An append that read the table is no blind one.
  Transaction third = deleting("b", {1});
  Transaction reader = begin();
  reader.add_file(data_file("theirs3"));
  ASSERT_EQ(outcome(reader), "ok");
  EXPECT_EQ(outcome(third), "DELTA_CONCURRENT_APPEND");
}

TEST_F(Conflicts, AppendsOfOthersAreBlindOnlyIfTheySaySoAndRemoveNothing) {
  use_write_serializable();
  const auto race = [&](const std::vector<Action>& actions) {
    Transaction ours = deleting("b", {1}, static_cast<uint64_t>(snapshot()->version));
    commit_of_others(actions);
    return outcome(ours);
  };
  EXPECT_EQ(race({info_of_others(true), file_of_others("c")}), "ok");
  EXPECT_EQ(race({info_of_others({}), file_of_others("d")}), "DELTA_CONCURRENT_APPEND");
  EXPECT_EQ(race({info_of_others(true), removal_by_others("a", "a"), file_of_others("e")}),
            "DELTA_CONCURRENT_APPEND");
}

TEST_F(Conflicts, AFileIsTheSameHoweverItsPathIsSpelt) {
  use_write_serializable();
  Transaction ours = deleting("a", {0});
  Transaction reader = begin();
  reader.add_file(data_file("mine"));
  reader.set_read_files({0});
  commit_of_others({info_of_others(false), removal_by_others("a", "/t/a")});
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_DELETE_DELETE");
  EXPECT_EQ(outcome(reader), "DELTA_CONCURRENT_DELETE_READ");
}

TEST_F(Conflicts, AProtocolThatLosesAFeatureOrThatBothChange) {
  const auto with = [&](const std::function<void(Protocol*)>& change) {
    Protocol protocol = snapshot()->protocol;
    change(&protocol);
    return protocol;
  };
  Transaction ours = begin();
  ours.add_file(data_file("mine"));
  ours.set_blind_append();
  commit_of_others({info_of_others(false), with([](Protocol* protocol) {
                      protocol->writer_features.erase("appendOnly");
                    })});
  EXPECT_EQ(outcome(ours), "DELTA_PROTOCOL_CHANGED");

  Transaction changing = begin();
  changing.set_protocol(
      with([](Protocol* protocol) { protocol->writer_features.insert("changeDataFeed"); }));
  changing.set_blind_append();
  // Ours would take away what theirs adds.
  commit_of_others({info_of_others(false), with([](Protocol* protocol) {
                      protocol->writer_features.insert("changeDataFeed");
                      protocol->reader_features.insert("vacuumProtocolCheck");
                      protocol->writer_features.insert("vacuumProtocolCheck");
                    })});
  EXPECT_EQ(outcome(changing), "DELTA_PROTOCOL_CHANGED");
}

TEST_F(Conflicts, AChangeOfTheMetadataFollowsNeitherAnotherNorAnAppend) {
  use_write_serializable();
  const auto describing = [&] {
    Transaction ours = begin();
    Metadata metadata = ours.snapshot().metadata;
    metadata.description = "ours";
    ours.set_metadata(metadata);
    return ours;
  };
  Transaction ours = describing();
  ours.set_blind_append();
  Transaction theirs = begin();
  Metadata metadata = theirs.snapshot().metadata;
  metadata.configuration["delta.checkpointPolicy"] = "v2";
  theirs.set_metadata(metadata);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_METADATA_CHANGED") << "the switch of the others would be lost";

  Transaction reading = describing();
  append("c");
  EXPECT_EQ(outcome(reading), "DELTA_CONCURRENT_APPEND");
}

TEST_F(Conflicts, DeletesOfOneFile) {
  use_write_serializable();
  Transaction ours = deleting("a", {0}, 1);
  Transaction theirs = deleting("a", {0}, 2);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_DELETE_DELETE");

  Transaction removing = begin();
  removing.remove_file(live("a"));
  removing.set_read_files({0});
  Transaction also_removing = begin();
  also_removing.remove_file(live("a"));
  ASSERT_EQ(outcome(also_removing), "ok");
  EXPECT_EQ(outcome(removing), "DELTA_CONCURRENT_DELETE_DELETE");
}

TEST_F(Conflicts, RemovedFilesThatWereRead) {
  Transaction whole = begin();
  whole.add_file(data_file("mine"));
  Transaction one = begin();
  one.add_file(data_file("mine2"));
  one.set_read_files({1});  // b
  Transaction theirs = begin();
  theirs.remove_file(live("a"));
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(whole), "DELTA_CONCURRENT_DELETE_READ");
  EXPECT_EQ(outcome(one), "ok");
}

TEST_F(Conflicts, CompactionAgainstAppendAndReader) {
  const auto compacting = [&] {
    Transaction transaction = begin();
    transaction.remove_file(live("a"), false);
    transaction.remove_file(live("b"), false);
    AddFile file = data_file("ab", 20);
    file.data_change = false;
    transaction.add_file(file);
    transaction.set_read_files({0, 1});
    return transaction;
  };
  Transaction ours = compacting();
  Transaction updating = deleting("a", {0});
  append("theirs");
  EXPECT_EQ(outcome(ours), "ok");
  EXPECT_EQ(info(snapshot()->version).isolation_level, "SnapshotIsolation");
  EXPECT_EQ(outcome(updating), "DELTA_CONCURRENT_APPEND");
}

TEST_F(Conflicts, MetadataAndProtocolChanges) {
  Transaction ours = begin();
  ours.add_file(data_file("mine"));
  ours.set_blind_append();
  use_write_serializable();
  EXPECT_EQ(outcome(ours), "DELTA_METADATA_CHANGED");

  Transaction second = begin();
  second.add_file(data_file("mine"));
  second.set_blind_append();
  Transaction theirs = begin();
  Protocol protocol = theirs.snapshot().protocol;
  protocol.writer_features.insert("changeDataFeed");
  theirs.set_protocol(protocol);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(second), "DELTA_PROTOCOL_CHANGED");
}

TEST_F(Conflicts, TransactionsAndDomains) {
  const auto appending = [&](const std::string& path) {
    Transaction transaction = begin();
    transaction.add_file(data_file(path));
    transaction.set_blind_append();
    return transaction;
  };
  Transaction ours = appending("mine");
  ours.set_txn("app", 1);
  Transaction other_app = appending("mine2");
  other_app.set_txn("other", 1);
  Transaction theirs = appending("theirs");
  theirs.set_txn("app", 1);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_TRANSACTION");
  EXPECT_EQ(outcome(other_app), "ok");

  Transaction first = appending("d1");
  first.set_domain({"d", "1", false});
  Transaction second = appending("d2");
  second.set_domain({"d", "2", false});
  ASSERT_EQ(outcome(first), "ok");
  EXPECT_EQ(outcome(second), "DELTA_DOMAIN_METADATA_CONFLICT");
}

TEST_F(TransactionTest, CheckpointsAreWrittenAndRead) {
  create();
  for (int i = 1; i <= 10; ++i) append("f" + std::to_string(i));
  Transaction deleting = begin();
  ASSERT_TRUE(deleting.delete_rows(live("f1"), rows({1})).ok());
  deleting.set_txn("app", 3);
  ASSERT_EQ(outcome(deleting), "ok");
  for (int i = 12; i <= 23; ++i) append("f" + std::to_string(i));

  const auto hint = Json::parse(store_->read("/t/_delta_log/_last_checkpoint").value());
  EXPECT_EQ(hint->get("version")->as_int(), 20);
  EXPECT_EQ(hint->get("numOfAddFiles")->as_int(), 19);
  ASSERT_TRUE(store_->stat(classic_checkpoint_path("/t", 10)).ok());

  const auto with_log = snapshot();
  for (Version version = 0; version < 20; ++version) {
    ASSERT_TRUE(store_->remove(commit_path("/t", version)).ok());
  }
  const auto from_checkpoint = snapshot();
  ASSERT_EQ(from_checkpoint->files.size(), with_log->files.size());
  for (size_t i = 0; i < with_log->files.size(); ++i) {
    AddFile expected = with_log->files[i];
    AddFile actual = from_checkpoint->files[i];
    expected.data_change = actual.data_change;
    EXPECT_EQ(print_action(actual), print_action(expected));
  }
  EXPECT_EQ(from_checkpoint->txn_version("app"), 3);
  EXPECT_EQ(from_checkpoint->row_id_high_water_mark(), with_log->row_id_high_water_mark());
  EXPECT_EQ(table_.tombstones(*from_checkpoint)->size(), 1u);
  EXPECT_EQ(from_checkpoint->timestamp_ms, with_log->timestamp_ms);
  append("more");
  EXPECT_EQ(snapshot()->files.back().path, "more");
  const auto listed = store_->list("/t/_delta_log");
  for (const auto& file : *listed)
    EXPECT_EQ(file.path.find(".tmp"), std::string::npos) << file.path;
}

TEST(ParsedStatistics, LeaveOutBoundsOfDecimalsThatADoubleWouldMove) {
  Snapshot table;
  table.schema = Schema{{Field{"id", DataType::primitive(TypeId::kLong), true, {}},
                         Field{"small", DataType::decimal(15, 2), true, {}},
                         Field{"large", DataType::decimal(16, 2), true, {}}}};
  const Schema parsed = parsed_stats_schema(table);
  const auto names = [&](const char* part) {
    std::vector<std::string> found;
    for (const Field& field : *parsed.get(part)->type.fields) found.push_back(field.name);
    return found;
  };
  EXPECT_THAT(names("minValues"), ElementsAre("id", "small"));
  EXPECT_THAT(names("maxValues"), ElementsAre("id", "small"));
  EXPECT_THAT(names("nullCount"), ElementsAre("id", "small", "large"));
}

TEST_F(TransactionTest, CheckpointIntervalIsAProperty) {
  create({{"delta.checkpointInterval", "3"}});
  for (int i = 1; i <= 4; ++i) append("f" + std::to_string(i));
  EXPECT_TRUE(store_->stat(classic_checkpoint_path("/t", 3)).ok());
  EXPECT_FALSE(store_->stat(classic_checkpoint_path("/t", 4)).ok());
}

TEST_F(TransactionTest, CheckpointsLeaveOutWhatExpired) {
  Snapshot state;
  RemoveFile old_file;
  old_file.path = "old";
  old_file.deletion_timestamp_ms = 0;
  RemoveFile new_file;
  new_file.path = "new";
  new_file.deletion_timestamp_ms = 9 * 86'400'000ll;
  state.txns = {{"a", Txn{"a", 1, 0}}, {"b", Txn{"b", 1, {}}}};
  const int64_t now = 10 * 86'400'000ll;
  EXPECT_EQ(kept_txns(state, now).size(), 2u);
  EXPECT_FALSE(is_kept(old_file, state, now));
  EXPECT_TRUE(is_kept(new_file, state, now));
  state.metadata.configuration["delta.setTransactionRetentionDuration"] = "interval 1 day";
  state.metadata.configuration["delta.deletedFileRetentionDuration"] = "interval 30 days";
  EXPECT_EQ(kept_txns(state, now).size(), 1u);
  EXPECT_TRUE(is_kept(old_file, state, now));
}

// Fails a commit's store at every mutating call in every way. The table is at the old or the new
// version, as the outcome says, and the next writer goes on.
TEST(Faults, EveryCallOfACommit) {
  int outcomes[3] = {0, 0, 0};
  for (const storage::FaultMode mode :
       {storage::FaultMode::kError, storage::FaultMode::kErrorAfter, storage::FaultMode::kStop}) {
    for (int fail_at = 1;; ++fail_at) {
      SCOPED_TRACE(fmt::format("mode {} call {}", static_cast<int>(mode), fail_at));
      const auto inner = storage::make_memory_store();
      const Table healthy = open_table(inner);
      auto creating = Transaction::create(healthy, definition({{"delta.checkpointInterval", "2"}}));
      ASSERT_TRUE(creating->commit_or_error().ok());
      auto appending = Transaction::begin(healthy, *healthy.snapshot());
      appending->add_file(data_file("a"));
      ASSERT_TRUE(appending->commit_or_error().ok());

      const auto faulty = storage::FaultStore::wrap(inner);
      const Table table(faulty, std::make_shared<JsonCheckpoints>(faulty), "/t");
      const auto before = *table.snapshot();
      auto transaction = Transaction::begin(table, before);
      ASSERT_TRUE(transaction->delete_rows(before->files[0], rows({4})).ok());
      transaction->add_file(data_file("b"));
      faulty->arm(fail_at, mode);
      const auto outcome = transaction->commit();
      const bool reached = faulty->mutating_calls() >= fail_at;

      const auto after = healthy.snapshot();
      ASSERT_TRUE(after.ok()) << after.error().message;
      const bool is_new = (*after)->version == 2;
      ASSERT_TRUE(is_new || (*after)->version == 1);
      EXPECT_EQ((*after)->files.size(), is_new ? 2u : 1u);
      EXPECT_EQ(live_row_count(**after), is_new ? 19 : 10);
      EXPECT_TRUE(healthy.load_deletion_vectors(**after).ok());
      if (!outcome.ok()) {
        EXPECT_FALSE(is_new);
        ++outcomes[0];
      } else if (std::holds_alternative<Committed>(*outcome)) {
        EXPECT_TRUE(is_new);
        ++outcomes[1];
      } else {
        ASSERT_TRUE(std::holds_alternative<Unknown>(*outcome));
        EXPECT_EQ(mode, storage::FaultMode::kStop);
        ++outcomes[2];
      }
      if (mode != storage::FaultMode::kStop && !is_new) {
        const auto left = inner->list("/t");
        EXPECT_EQ(left->size(), 1u) << "the deletion vector file is an orphan";
      }

      auto next = Transaction::begin(healthy, *after);
      next->add_file(data_file("c"));
      next->set_blind_append();
      EXPECT_EQ(next->commit_or_error().value(), (*after)->version + 1);
      if (!reached) break;
    }
  }
  EXPECT_GT(outcomes[0], 0);
  EXPECT_GT(outcomes[1], 0);
  EXPECT_GT(outcomes[2], 0);
}

TEST(Faults, EveryCallOfACreation) {
  for (const storage::FaultMode mode :
       {storage::FaultMode::kError, storage::FaultMode::kErrorAfter, storage::FaultMode::kStop}) {
    for (int fail_at = 1; fail_at <= 3; ++fail_at) {
      const auto inner = storage::make_memory_store();
      const auto faulty = storage::FaultStore::wrap(inner);
      faulty->arm(fail_at, mode);
      const Table table = open_table(faulty);
      auto transaction = Transaction::create(table, definition());
      const auto outcome = transaction->commit();
      const Table healthy = open_table(inner);
      const bool exists = healthy.exists().value();
      EXPECT_EQ(exists, outcome.ok() && std::holds_alternative<Committed>(*outcome));
      auto again = Transaction::create(healthy, definition());
      EXPECT_EQ(again->commit_or_error().ok(), !exists);
      EXPECT_TRUE(healthy.snapshot().ok());
    }
  }
}

class LocalTables : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (std::filesystem::temp_directory_path() / ("delta_test_" + new_uuid())).string();
    auto transaction = Transaction::create(open(), definition());
    ASSERT_TRUE(transaction.ok());
    const auto version = transaction->commit_or_error();
    ASSERT_TRUE(version.ok()) << version.error().message;
  }
  void TearDown() override { EXPECT_TRUE(store_->remove_tree(root_).ok()); }

  Table open() const { return open_table(store_, root_); }

  // Appends files one by one; the number of commits that failed.
  int append_many(const std::string& name, int count) const {
    int failures = 0;
    for (int i = 0; i < count; ++i) {
      const auto snapshot = open().snapshot();
      if (!snapshot.ok()) {
        ++failures;
        continue;
      }
      auto transaction = Transaction::begin(open(), *snapshot);
      transaction->add_file(data_file(name + std::to_string(i), 3));
      transaction->set_blind_append();
      if (!transaction->commit_or_error().ok()) ++failures;
    }
    return failures;
  }

  void expect_files(size_t count) const {
    const auto snapshot = open().snapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
    ASSERT_EQ((*snapshot)->files.size(), count);
    EXPECT_EQ((*snapshot)->version, static_cast<Version>(count));
    // Row ids never overlap, whoever won.
    std::set<int64_t> ids;
    for (const AddFile& file : (*snapshot)->files) ids.insert(*file.base_row_id);
    EXPECT_EQ(ids.size(), count);
    EXPECT_EQ(*ids.rbegin(), static_cast<int64_t>(count - 1) * 3);
    EXPECT_EQ((*snapshot)->row_id_high_water_mark(), static_cast<int64_t>(count) * 3 - 1);
    const auto log = store_->list(root_ + "/_delta_log");
    for (const auto& file : *log) EXPECT_EQ(file.path.find(".tmp"), std::string::npos) << file.path;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_local_store();
  std::string root_;
};

TEST_F(LocalTables, AppendersOfManyThreadsAllLand) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::vector<int> failures(4, 0);
  for (size_t i = 0; i < failures.size(); ++i) {
    threads.emplace_back([&, i] { failures[i] = append_many("t" + std::to_string(i) + "-", 15); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(failures, ElementsAre(0, 0, 0, 0));
  expect_files(60);
}

TEST_F(LocalTables, AppendersOfTwoProcessesAllLand) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(append_many("child", 30));
  EXPECT_EQ(append_many("parent", 30), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_files(60);
}

TEST_F(LocalTables, OneCreatorWins) {
  for (int round = 0; round < 10; ++round) {
    const std::string path = root_ + "/new" + std::to_string(round);
    std::atomic<int> wins = 0;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        auto transaction = Transaction::create(open_table(store_, path), definition());
        if (transaction.ok() && transaction->commit_or_error().ok()) ++wins;
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wins, 1);
  }
}

TEST_F(LocalTables, KilledWriterLeavesOldOrNew) {
  // The child commits as fast as it can and is killed at some moment.
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      append_many(fmt::format("r{}-", round), 100000);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(5000 + round * 3000));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const auto snapshot = open().snapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
    EXPECT_EQ((*snapshot)->files.size(), static_cast<size_t>((*snapshot)->version));
  }
  EXPECT_EQ(append_many("after", 1), 0);
}

}  // namespace
}  // namespace strandline::delta
