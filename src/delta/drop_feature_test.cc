#include "delta/drop_feature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "delta/features.h"
#include "delta/log_cleanup.h"
#include "delta/restore.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kDayMs = 86'400'000;
const std::map<std::string, std::string> kPlain{{"delta.enableDeletionVectors", "false"},
                                                {"delta.enableRowTracking", "false"},
                                                {"delta.enableInCommitTimestamps", "false"}};

Protocol features(std::set<std::string> writer, std::set<std::string> reader = {}) {
  return Protocol{reader.empty() ? 1 : 3, 7, std::move(reader), std::move(writer)};
}

std::string text_of(const Protocol& protocol) { return print_action(protocol); }

TEST(WithoutFeatureTest, GivesTheLowestProtocol) {
  const auto without = [](const Protocol& protocol, const char* name) {
    return text_of(without_feature(protocol, name));
  };
  const Protocol two{1, 2, {}, {}};
  const Protocol four{1, 4, {}, {}};
  const Protocol mapped{2, 5, {}, {}};
  EXPECT_EQ(without(features({"appendOnly", "invariants", "rowTracking"}), "rowTracking"),
            text_of(two));
  EXPECT_EQ(without(mapped, "columnMapping"), text_of(four));
  EXPECT_EQ(without(four, "checkConstraints"),
            text_of(features({"appendOnly", "invariants", "changeDataFeed", "generatedColumns"})));
  EXPECT_EQ(
      without(features({"deletionVectors", "columnMapping"}, {"deletionVectors", "columnMapping"}),
              "deletionVectors"),
      text_of(Protocol{2, 7, {}, {"columnMapping"}}));
  EXPECT_EQ(without(features({"deletionVectors", "timestampNtz", "rowTracking"},
                             {"deletionVectors", "timestampNtz"}),
                    "timestampNtz"),
            text_of(features({"deletionVectors", "rowTracking"}, {"deletionVectors"})));
  EXPECT_EQ(without(features({"someNewFeature", "deletionVectors"},
                             {"someNewFeature", "deletionVectors"}),
                    "deletionVectors"),
            text_of(features({"someNewFeature"}, {"someNewFeature"})));
}

class DropFeatureTest : public ::testing::Test {
 protected:
  void create(std::map<std::string, std::string> properties) {
    NewTable definition;
    definition.schema = two_columns();
    definition.properties = kPlain;
    for (auto& [key, value] : properties) definition.properties[key] = value;
    auto transaction = Transaction::create(table_, definition);
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    ASSERT_TRUE(transaction->commit_or_error().ok());
  }

  std::shared_ptr<const Snapshot> snapshot() { return table_.snapshot().value(); }

  void append(const std::string& path) {
    auto transaction = Transaction::begin(table_, snapshot()).value();
    transaction.add_file(data_file(path));
    transaction.set_blind_append();
    ASSERT_TRUE(transaction.commit_or_error().ok());
  }

  std::string alter(const std::function<Status(Alteration*)>& change) {
    const auto version = commit_alteration(
        table_, {"CHANGE", {}},
        [&](const Snapshot&, Alteration* alteration) { return change(alteration); });
    return version.ok() ? "ok" : version.error().code + ": " + version.error().message;
  }
  std::string stop(const std::string& name) {
    return alter([&](Alteration* alteration) { return alteration->stop_using(name); });
  }
  std::string drop(const std::string& name, bool truncate = false) {
    return alter(
        [&](Alteration* alteration) { return alteration->drop_feature({name, truncate}); });
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
};

TEST_F(DropFeatureTest, AFeatureWithTracesStays) {
  create({{"delta.enableDeletionVectors", "true"}});
  append("f1");
  auto transaction = Transaction::begin(table_, snapshot()).value();
  RowSet rows;
  rows.add(3);
  ASSERT_TRUE(transaction.delete_rows(snapshot()->files[0], rows).ok());
  ASSERT_TRUE(transaction.commit_or_error().ok());

  EXPECT_THAT(drop("deletionVectors"), HasSubstr("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"));
  EXPECT_EQ(stop("deletionVectors"), "ok");
  EXPECT_FALSE(snapshot()->deletion_vectors_enabled());
  EXPECT_TRUE(has_file_traces(*snapshot(), "deletionVectors"));
  EXPECT_THAT(drop("deletionVectors"), HasSubstr("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"));

  auto purge = Transaction::begin(table_, snapshot()).value();
  purge.remove_file(snapshot()->files[0], false);
  AddFile whole = data_file("f2", 9);
  whole.data_change = false;
  purge.add_file(whole);
  ASSERT_TRUE(purge.commit_or_error().ok());
  const Version before = snapshot()->version;
  EXPECT_EQ(drop("deletionVectors"), "ok");
  EXPECT_FALSE(supports(snapshot()->protocol, "deletionVectors"));
  EXPECT_TRUE(supports(snapshot()->protocol, "checkpointProtection"));
  EXPECT_EQ(protected_before(*snapshot()), before + 1);
  EXPECT_THAT(drop("deletionVectors"), HasSubstr("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"));
  EXPECT_THAT(
      alter([](Alteration* a) { return a->set_properties({{kProtectedBeforeProperty, "1"}}); }),
      HasSubstr("DELTA_CANNOT_MODIFY_TABLE_PROPERTY"));
}

TEST_F(DropFeatureTest, RowIdsGoAndAreNeverGivenAgain) {
  create({{"delta.enableRowTracking", "true"}});
  append("f1");
  append("f2");
  const Version tracked = snapshot()->version;
  EXPECT_THAT(drop("rowTracking"), HasSubstr("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"));
  EXPECT_EQ(stop("rowTracking"), "ok");
  ASSERT_TRUE(withdraw_row_ids(table_).ok());
  for (const AddFile& file : snapshot()->files) {
    EXPECT_FALSE(file.base_row_id) << file.path;
    EXPECT_FALSE(file.default_row_commit_version) << file.path;
  }
  EXPECT_EQ(drop("rowTracking"), "ok");
  EXPECT_FALSE(supports(snapshot()->protocol, "rowTracking"));
  EXPECT_FALSE(snapshot()->property("delta.enableRowTracking"));
  append("f3");

  // An older version comes back without ids: the files that stayed have none either.
  const auto wanted = table_.snapshot(tracked - 1).value();
  for (const char* path : {"/t/f1", "/t/f2", "/t/f3"}) ASSERT_TRUE(store_->put(path, "x").ok());
  const auto restored = restore(table_, *wanted, {});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_FALSE(snapshot()->row_tracking_enabled());
  EXPECT_FALSE(supports(snapshot()->protocol, "rowTracking"));
  ASSERT_EQ(snapshot()->files.size(), 1u);

  // Switched on again, new ids lie beyond all that ever were.
  EXPECT_EQ(
      alter([](Alteration* a) { return a->set_properties({{"delta.enableRowTracking", "true"}}); }),
      "ok");
  EXPECT_EQ(snapshot()->files[0].base_row_id, 20);
}

TEST_F(DropFeatureTest, ProtectedCheckpointsGoWithAllBeforeThem) {
  create({{"delta.checkpointInterval", "2"}, {"delta.feature.vacuumProtocolCheck", "supported"}});
  for (int i = 1; i <= 4; ++i) append("f" + std::to_string(i));
  ASSERT_TRUE(write_barrier(table_, 3).ok());
  EXPECT_EQ(snapshot()->version, 7);
  EXPECT_EQ(drop("vacuumProtocolCheck"), "ok");
  EXPECT_EQ(snapshot()->protocol.min_reader_version, 1);
  const auto log = list_log(store_.get(), "/t").value();
  for (const Version version : {5, 6, 7}) {
    EXPECT_TRUE(std::any_of(log.checkpoints.begin(), log.checkpoints.end(),
                            [&](const Checkpoint& one) { return one.version == version; }))
        << version;
  }

  // The newest old checkpoint lies before the drop: nothing goes.
  auto early = std::make_shared<Snapshot>(*snapshot());
  early->metadata.configuration[kProtectedBeforeProperty] = "100";
  EXPECT_EQ(clean_log(table_, *early, now_ms() + 60 * kDayMs).value(), 0);
  // Else all of it.
  append("f5");
  append("f6");
  EXPECT_EQ(protected_before(*snapshot()), 8);
  EXPECT_GT(clean_log(table_, *snapshot(), now_ms() + 60 * kDayMs).value(), 0);
  const auto left = list_log(store_.get(), "/t").value();
  EXPECT_EQ(left.commits.begin()->first, 10);
  EXPECT_EQ(left.checkpoints.front().version, 10);
  EXPECT_EQ(snapshot()->files.size(), 6u);

  // Then the protection itself may go.
  EXPECT_THAT(drop("checkpointProtection"),
              HasSubstr("DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY"));
  ASSERT_TRUE(truncate_history(table_, "checkpointProtection", now_ms()).ok());
  EXPECT_EQ(drop("checkpointProtection", true), "ok");
  EXPECT_FALSE(snapshot()->property(kProtectedBeforeProperty));
  EXPECT_EQ(text_of(snapshot()->protocol), text_of(Protocol{1, 2, {}, {}}));
}

TEST_F(DropFeatureTest, HistoryWithTracesIsToldUntilItIsGone) {
  create({{"delta.checkpointPolicy", "v2"}, {"delta.checkpointInterval", "2"}});
  append("f1");
  append("f2");
  EXPECT_EQ(stop("v2Checkpoint"), "ok");
  ASSERT_TRUE(write_barrier(table_, 1).ok());
  const auto early = truncate_history(table_, "v2Checkpoint", now_ms());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST");
  EXPECT_THAT(early.error().message, HasSubstr("checkpoint of version 2"));
  ASSERT_TRUE(truncate_history(table_, "v2Checkpoint", now_ms() + 2 * kDayMs).ok());
  EXPECT_EQ(drop("v2Checkpoint", true), "ok");
  EXPECT_EQ(text_of(snapshot()->protocol), text_of(Protocol{1, 2, {}, {}}));
  EXPECT_EQ(snapshot()->files.size(), 2u);
  EXPECT_FALSE(table_.snapshot(1).ok());
}

TEST_F(DropFeatureTest, DomainsGoWithTheirFeature) {
  create({{"delta.enableRowTracking", "true"}});
  append("f1");
  EXPECT_THAT(drop("domainMetadata"), HasSubstr("DELTA_FEATURE_DROP_DEPENDENT_FEATURE"));
  EXPECT_EQ(stop("rowTracking"), "ok");
  ASSERT_TRUE(withdraw_row_ids(table_).ok());
  EXPECT_EQ(drop("rowTracking"), "ok");
  EXPECT_THAT(drop("domainMetadata"), HasSubstr("REVALIDATION_FAIL"));
  ASSERT_TRUE(remove_domains(table_).ok());
  EXPECT_THAT(snapshot()->domains, IsEmpty());
  EXPECT_EQ(drop("domainMetadata"), "ok");
  EXPECT_EQ(text_of(snapshot()->protocol), text_of(Protocol{1, 2, {}, {}}));
}

}  // namespace
}  // namespace strandline::delta
