#include "duck/change_scan.h"

#include <gmock/gmock.h>

#include "cdf/primary_key.h"
#include "delta/row_id_columns.h"
#include "duck/test_tables.h"

namespace strandline::duck {
namespace {

using cdf::ChangeKind;
using cdf::FeedMode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Plans made by hand over files of a table (k, v) that tracks its rows.
class ChangeScanTest : public DeltaIoTest {
 protected:
  void SetUp() override {
    DeltaIoTest::SetUp();
    if (HasFatalFailure()) return;
    definition_ = define({field("k", TypeId::kLong), field("v", TypeId::kString)});
    definition_.protocol = {1, 7, {}, {"rowTracking", "domainMetadata"}};
    definition_.metadata.configuration = {
        {"delta.enableRowTracking", "true"},
        {"delta.rowTracking.materializedRowIdColumnName", "_ids"},
        {"delta.rowTracking.materializedRowCommitVersionColumnName", "_versions"}};
    plan_.mode = FeedMode::kAutomatic;
  }

  // Rows "k, v, id, version" as a file.
  delta::AddFile file(const std::string& rows) {
    WriteOptions options;
    options.with_row_ids = true;
    return written(fmt::format("SELECT k::BIGINT AS k, v::VARCHAR AS v, id::BIGINT AS {}, "
                               "version::BIGINT AS {} FROM (VALUES {}) AS r(k, v, id, version)",
                               kRowIdColumn, kRowVersionColumn, rows),
                   options);
  }
  // Rows "k, v, type" as a file of the recorded feed.
  delta::AddFile recorded(const std::string& rows) {
    WriteOptions options;
    options.change_data = true;
    return written(fmt::format("SELECT k::BIGINT AS k, v::VARCHAR AS v, type AS _change_type FROM "
                               "(VALUES {}) AS r(k, v, type)",
                               rows),
                   options);
  }
  delta::AddFile written(const std::string& query, const WriteOptions& options) {
    auto files = write_files(*connection_, table(), definition_, query, options);
    EXPECT_TRUE(files.ok() && files->size() == 1);
    if (!files.ok()) return {};
    files->at(0).base_row_id = 1000;
    files->at(0).default_row_commit_version = 9;
    return files->at(0);
  }

  // Rows of a file that the next commit makes.
  delta::AddFile new_file(const std::string& rows) {
    delta::AddFile made = file(rows);
    made.default_row_commit_version = static_cast<delta::Version>(plan_.commits.size()) + 1;
    return made;
  }

  void commit(std::vector<std::pair<ChangeKind, delta::AddFile>> files) {
    cdf::CommitChanges changes;
    changes.version = static_cast<delta::Version>(plan_.commits.size()) + 1;
    changes.timestamp_ms = changes.version * 1000 + 7;
    for (auto& [kind, file] : files) changes.files.push_back({kind, std::move(file), {}});
    plan_.commits.push_back(std::move(changes));
  }

  std::vector<std::string> changes(
      const std::string& select = "_commit_version, _change_type, k, v") {
    plan_.definition = std::make_shared<const delta::Snapshot>(definition_);
    auto scan = scan_changes(*connection_, table(), plan_);
    EXPECT_TRUE(scan.ok()) << scan.error().message;
    if (!scan.ok()) return {};
    return query_rows(fmt::format("SELECT {} FROM {} AS t", select, (*scan)->sql()));
  }

  delta::Snapshot definition_;
  cdf::ChangePlan plan_;
};

TEST_F(ChangeScanTest, CopiedRowsAreDroppedAndIdsPaired) {
  commit({{ChangeKind::kInsert, file("(1, 'a', 0, 1), (2, 'b', 1, 1), (3, 'c', 2, 1)")}});
  commit({{ChangeKind::kDelete, file("(1, 'a', 0, 1), (2, 'b', 1, 1), (3, 'c', 2, 1)")},
          {ChangeKind::kInsert, file("(1, 'a', 0, 1), (2, 'B', 1, 2), (4, 'd', NULL, NULL)")}});
  EXPECT_THAT(changes(),
              ElementsAre("1|insert|1|a", "1|insert|2|b", "1|insert|3|c", "2|delete|3|c",
                          "2|insert|4|d", "2|update_postimage|2|B", "2|update_preimage|2|b"));
  EXPECT_THAT(changes("DISTINCT _commit_version, _commit_timestamp"),
              ElementsAre("1|1970-01-01 00:00:01.007+00", "2|1970-01-01 00:00:02.007+00"));
}

TEST_F(ChangeScanTest, FilesHaveTheIdColumnsOfTheirOwnDefinition) {
  const auto first = file("(1, 'a', 0, 1), (2, 'b', 1, 1), (3, 'c', 2, 1)");
  const delta::Snapshot before = definition_;
  definition_.metadata.configuration[delta::kRowIdColumnProperty] = "_newer_ids";
  definition_.metadata.configuration[delta::kRowVersionColumnProperty] = "_newer_versions";
  const auto second = file("(1, 'a', 0, 1), (2, 'B', 1, 2)");
  // An id that is there twice: the engine has to match.
  const auto third = file("(1, 'a', 0, 1), (2, 'B', 1, 2), (4, 'd', 3, 3), (4, 'd', 3, 3)");
  commit({{ChangeKind::kDelete, first}, {ChangeKind::kInsert, second}});
  commit({{ChangeKind::kDelete, first}, {ChangeKind::kInsert, third}});
  delta::add_row_id_columns(before, &definition_);
  const auto expected =
      ElementsAre("1|delete|3|c", "1|update_postimage|2|B", "1|update_preimage|2|b",  //
                  "2|delete|3|c", "2|insert|4|d", "2|insert|4|d",                     //
                  "2|update_postimage|2|B", "2|update_preimage|2|b");
  EXPECT_THAT(changes(), expected);
  // The ids of update images are read with them.
  definition_.metadata.configuration[cdf::kPrimaryKeyProperty] = "[\"k\"]";
  EXPECT_THAT(changes(), expected);
}

TEST_F(ChangeScanTest, RowsThatGoBackAreUpdates) {
  commit({{ChangeKind::kDelete, file("(1, 'b', 0, 5)")},
          {ChangeKind::kInsert, file("(1, 'a', 0, 3)")}});
  EXPECT_THAT(changes(), ElementsAre("1|update_postimage|1|a", "1|update_preimage|1|b"));
}

TEST_F(ChangeScanTest, RowsThatWereCopiedBeforeTheyChanged) {
  const auto first = file("(1, 'a', 0, 1), (2, 'b', 1, 1), (3, 'c', 2, 1), (4, 'd', 3, 1)");
  const auto second = file("(1, 'A', 0, 2), (2, 'b', 1, 1), (3, 'c', 2, 1), (4, 'd', 3, 1)");
  const auto third = file("(3, 'C', 2, 3), (1, 'A', 0, 2), (4, 'd', 3, 1)");
  const auto fourth = file("(1, 'AA', 0, 4), (4, 'D', 3, 4), (3, 'C', 2, 3)");
  commit({{ChangeKind::kDelete, first}, {ChangeKind::kInsert, second}});
  commit({{ChangeKind::kDelete, second}, {ChangeKind::kInsert, third}});
  commit({{ChangeKind::kDelete, third}, {ChangeKind::kInsert, fourth}});
  // What was is there again: the rows of the first file, under another name.
  commit({{ChangeKind::kDelete, fourth},
          {ChangeKind::kInsert, file("(1, 'a', 0, 1), (3, 'c', 2, 1), (4, 'd', 3, 1)")}});
  EXPECT_THAT(
      changes(),
      ElementsAre("1|update_postimage|1|A", "1|update_preimage|1|a",                  //
                  "2|delete|2|b", "2|update_postimage|3|C", "2|update_preimage|3|c",  //
                  "3|update_postimage|1|AA", "3|update_postimage|4|D",                //
                  "3|update_preimage|1|A", "3|update_preimage|4|d",                   //
                  "4|update_postimage|1|a", "4|update_postimage|3|c", "4|update_postimage|4|d",
                  "4|update_preimage|1|AA", "4|update_preimage|3|C", "4|update_preimage|4|D"));
}

TEST_F(ChangeScanTest, NewRowsTellWhereNoneIsDeleted) {
  auto before = file("(1, 'a', 0, 0), (2, 'b', 1, 0), (3, 'c', 2, 0), (4, 'd', 3, 0)");
  const auto replace = [&](const std::string& rows) {
    const auto after = new_file(rows);
    commit({{ChangeKind::kDelete, before}, {ChangeKind::kInsert, after}});
    before = after;
  };
  replace("(2, 'B', 1, NULL), (1, 'a', 0, 0), (3, 'c', 2, 0), (4, 'd', 3, 0)");
  replace("(2, 'BB', 1, NULL), (1, 'a', 0, 0), (4, 'D', 3, 2), (3, 'c', 2, 0), (9, 'x', 77, NULL)");
  // A row that is gone, though they are as many as before.
  replace("(2, 'BB', 1, 2), (1, 'a', 0, 0), (4, 'D', 3, 2), (5, 'e', NULL, NULL), (9, 'x', 77, 2)");
  replace("(2, 'BB', 1, 2), (1, 'A', 0, NULL), (4, 'D', 3, 2), (5, 'e', 1003, 3), (9, 'x', 77, 2)");
  // Nothing was copied.
  replace("(2, 'b', 1, 5), (1, 'a', 0, 5), (4, 'd', 3, 5), (5, 'E', 1003, 5), (9, 'X', 77, 5)");
  replace("(2, 'b', 1, 5), (1, 'a', 0, 5), (4, 'D', 3, NULL), (5, 'E', 1003, 5), (9, 'X', 77, 5)");
  EXPECT_THAT(
      changes(),
      ElementsAre("1|update_postimage|2|B", "1|update_preimage|2|b",                          //
                  "2|insert|9|x", "2|update_postimage|2|BB", "2|update_postimage|4|D",        //
                  "2|update_preimage|2|B", "2|update_preimage|4|d",                           //
                  "3|delete|3|c", "3|insert|5|e",                                             //
                  "4|update_postimage|1|A", "4|update_preimage|1|a",                          //
                  "5|update_postimage|1|a", "5|update_postimage|2|b",                         //
                  "5|update_postimage|4|d", "5|update_postimage|5|E",                         //
                  "5|update_postimage|9|X",                                                   //
                  "5|update_preimage|1|A", "5|update_preimage|2|BB",                          //
                  "5|update_preimage|4|D", "5|update_preimage|5|e", "5|update_preimage|9|x",  //
                  "6|update_postimage|4|D", "6|update_preimage|4|d"));
}

TEST_F(ChangeScanTest, StatisticsTellOfUpdatesAlone) {
  const auto before = file("(1, 'a', 0, 0), (2, 'b', 1, 0)");
  const auto update = [&](const std::string& rows, bool is_new = true) {
    commit({{ChangeKind::kDelete, before},
            {ChangeKind::kInsert, is_new ? new_file(rows) : file(rows)}});
  };
  update("(1, 'A', 0, NULL), (2, 'B', 1, NULL)");
  // What looks much like it: a new row without and with an id; a copy; a row less; an old file.
  update("(1, 'A', 0, NULL), (3, 'c', NULL, NULL)");
  update("(1, 'A', 0, NULL), (3, 'c', 1001, NULL)");
  update("(1, 'A', 0, NULL), (2, 'b', 1, 0)");
  update("(1, 'A', 0, NULL)");
  update("(1, 'A', 0, NULL), (7, 'x', 9, NULL)", false);
  EXPECT_THAT(changes(),
              ElementsAre("1|update_postimage|1|A", "1|update_postimage|2|B",
                          "1|update_preimage|1|a", "1|update_preimage|2|b",                   //
                          "2|delete|2|b", "2|insert|3|c", "2|update_postimage|1|A",           //
                          "2|update_preimage|1|a",                                            //
                          "3|delete|2|b", "3|insert|3|c", "3|update_postimage|1|A",           //
                          "3|update_preimage|1|a",                                            //
                          "4|update_postimage|1|A", "4|update_preimage|1|a",                  //
                          "5|delete|2|b", "5|update_postimage|1|A", "5|update_preimage|1|a",  //
                          "6|delete|2|b", "6|insert|7|x", "6|update_postimage|1|A",
                          "6|update_preimage|1|a"));
}

TEST_F(ChangeScanTest, PiecesOfAPlanGiveWhatItGives) {
  auto before = file("(1, 'a', 0, 0), (2, 'b', 1, 0), (3, 'c', 2, 0), (4, 'd', 3, 0)");
  const auto replace = [&](const std::string& rows) {
    const auto after = new_file(rows);
    commit({{ChangeKind::kDelete, before}, {ChangeKind::kInsert, after}});
    before = after;
  };
  replace("(2, 'B', 1, NULL), (1, 'a', 0, 0), (3, 'c', 2, 0), (4, 'd', 3, 0)");
  replace("(1, 'a', 0, 0), (4, 'D', 3, NULL), (2, 'B', 1, 1), (3, 'c', 2, 0)");
  replace("(1, 'a', 0, 0), (4, 'D', 3, 2), (3, 'c', 2, 0)");
  replace("(1, 'A', 0, NULL), (4, 'D', 3, 2), (3, 'c', 2, 0)");
  replace("(1, 'A', 0, 4), (4, 'DD', 3, NULL), (3, 'C', 2, NULL)");
  const auto whole = changes();
  EXPECT_EQ(whole.size(), 11U);
  ChangeScans scans(table());
  std::vector<std::string> rows;
  for (const cdf::CommitChanges& one : plan_.commits) {
    cdf::ChangePlan piece = plan_;
    piece.commits = {one};
    const auto scan = scans.next(*connection_, piece);
    ASSERT_TRUE(scan.ok()) << scan.error().message;
    const auto some =
        query_rows("SELECT _commit_version, _change_type, k, v FROM " + (*scan)->sql() + " AS t");
    rows.insert(rows.end(), some.begin(), some.end());
  }
  EXPECT_EQ(rows, whole);
}

TEST_F(ChangeScanTest, CommitsAreMatchedApart) {
  commit({{ChangeKind::kDelete, file("(1, 'a', 0, 1), (2, 'b', 1, 1)")},
          {ChangeKind::kInsert, file("(2, 'b', 1, 1)")}});
  commit({{ChangeKind::kInsert, file("(1, 'a', 0, 1)")},
          {ChangeKind::kDelete, file("(2, 'b', 1, 1)")}});
  EXPECT_THAT(changes(), ElementsAre("1|delete|1|a", "2|delete|2|b", "2|insert|1|a"));
}

TEST_F(ChangeScanTest, UpdatesOfThePrimaryKeyAreDeletesAndInserts) {
  definition_.metadata.configuration[cdf::kPrimaryKeyProperty] = "[\"k\"]";
  commit({{ChangeKind::kDelete, file("(1, 'a', 0, 1), (2, 'b', 1, 1), (NULL, 'x', 2, 1)")},
          {ChangeKind::kInsert, file("(1, 'A', 0, 2), (3, 'b', 1, 2), (NULL, 'y', 2, 2)")}});
  EXPECT_THAT(changes(), ElementsAre("1|delete|2|b", "1|insert|3|b", "1|update_postimage|1|A",
                                     "1|update_postimage|NULL|y", "1|update_preimage|1|a",
                                     "1|update_preimage|NULL|x"));
  plan_.commits.clear();
  plan_.mode = FeedMode::kLegacy;
  commit({{ChangeKind::kRecorded,
           recorded("(1, 'a', 'update_preimage'), (1, 'A', 'update_postimage'), "
                    "(2, 'b', 'update_preimage'), (3, 'b', 'update_postimage'), "
                    "(4, 'd', 'delete'), (5, 'e', 'insert')")}});
  EXPECT_THAT(changes(), ElementsAre("1|delete|2|b", "1|delete|4|d", "1|insert|3|b", "1|insert|5|e",
                                     "1|update_postimage|1|A", "1|update_preimage|1|a"));
}

TEST_F(ChangeScanTest, RecordedTypesArePassedOn) {
  plan_.mode = FeedMode::kLegacy;
  commit({{ChangeKind::kRecorded, recorded("(1, 'a', 'update_pre'), (2, 'b', NULL)")}});
  EXPECT_THAT(changes(), ElementsAre("1|NULL|2|b", "1|update_pre|1|a"));
}

TEST_F(ChangeScanTest, AnEmptyPlanHasTheColumns) { EXPECT_THAT(changes(), IsEmpty()); }

TEST_F(ChangeScanTest, ConditionsLeaveFilesOut) {
  const auto insert = file("(1, 'a', 0, 1)");
  const auto kept = [&](const std::string& of_commits, const std::string& of_types) {
    plan_.commits.clear();
    commit({{ChangeKind::kInsert, insert}});
    commit({{ChangeKind::kDelete, insert}});
    commit({{ChangeKind::kDelete, insert}, {ChangeKind::kInsert, insert}});
    commit({{ChangeKind::kRecorded, insert}});
    const auto done = prune_changes(*connection_, {of_commits, of_types}, &plan_);
    EXPECT_TRUE(done.ok()) << done.error().message;
    std::string text;
    for (const auto& one : plan_.commits) {
      text += fmt::format("{}x{} ", one.version, one.files.size());
    }
    return text;
  };
  EXPECT_EQ(kept("", "_change_type = 'insert'"), "1x1 3x2 4x1 ");
  EXPECT_EQ(kept("", "_change_type = 'update_preimage'"), "3x2 4x1 ");
  EXPECT_EQ(kept("_commit_version >= 2 AND _commit_version < 4", "_change_type <> 'insert'"),
            "2x1 3x2 ");
  EXPECT_EQ(kept("_commit_timestamp > '1970-01-01 00:00:03.5'", ""), "4x1 ");
  EXPECT_FALSE(prune_changes(*connection_, {"nonsense", ""}, &plan_).ok());
}

}  // namespace
}  // namespace strandline::duck
