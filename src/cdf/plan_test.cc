#include "cdf/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdf/primary_key.h"
#include "cdf/test_support.h"
#include "delta/row_id_columns.h"

namespace strandline::cdf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using PlanTest = FeedTest;

TEST_F(PlanTest, RangesByVersion) {
  commit({protocol(), metadata(kLegacy)});
  commit({add("a")});
  commit({add("b")});
  EXPECT_THAT(lines(plan(version(0))), ElementsAre("1: +a", "2: +b"));
  EXPECT_THAT(lines(plan(version(2), version(2))), ElementsAre("2: +b"));
  EXPECT_EQ(error(version(3)).code, "DELTA_CDC_START_VERSION_AFTER_LATEST");
  EXPECT_THAT(error(version(3)).message, HasSubstr("timestampGreaterThanLatestCommit"));
  EXPECT_EQ(error(version(1), version(3)).code, "DELTA_CDC_END_VERSION_AFTER_LATEST");
  EXPECT_THAT(lines(plan(version(2), version(9), true)), ElementsAre("2: +b"));
  EXPECT_THAT(lines(plan(version(3), {}, true)), IsEmpty());
  EXPECT_TRUE(plan(version(3), {}, true).ok());
  EXPECT_EQ(error(version(2), version(1)).code, "DELTA_INVALID_CDC_RANGE");
  EXPECT_EQ(error(version(-1)).code, "DELTA_VERSION_INVALID");
}

TEST_F(PlanTest, RangesByTime) {
  commit({protocol(), metadata(kLegacy), add("a")});  // 0 s
  commit({add("b")});                                 // 1 s
  commit({add("c")});                                 // 2 s
  EXPECT_THAT(lines(plan(at(1000))), ElementsAre("1: +b", "2: +c"));
  EXPECT_THAT(lines(plan(at(1001))), ElementsAre("2: +c"));
  EXPECT_THAT(lines(plan(at(-5000), at(1999))), ElementsAre("0: +a", "1: +b"));
  EXPECT_THAT(lines(plan(at(500), at(1500))), ElementsAre("1: +b"));
  EXPECT_THAT(lines(plan(version(1), at(2000))), ElementsAre("1: +b", "2: +c"));
  EXPECT_THAT(lines(plan(at(1000), at(1000))), ElementsAre("1: +b"));
  EXPECT_THAT(lines(plan(Timestamp{1'000'001})), ElementsAre("2: +c"));
  // No commit in between.
  EXPECT_TRUE(plan(at(1100), at(1200)).ok());
  EXPECT_THAT(lines(plan(at(1100), at(1200))), IsEmpty());
  EXPECT_EQ(error(at(1200), at(1100)).code, "DELTA_INVALID_CDC_RANGE");
  EXPECT_EQ(error(at(1500), at(500)).code, "DELTA_INVALID_CDC_RANGE");
  EXPECT_EQ(error(at(-2000), at(-1000)).code, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION");
  EXPECT_EQ(error(at(2001)).code, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
  EXPECT_EQ(error(at(0), at(2001)).code, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
  EXPECT_THAT(lines(plan(at(2001), {}, true)), IsEmpty());
  EXPECT_THAT(lines(plan(at(2000), at(9000), true)), ElementsAre("2: +c"));
  EXPECT_EQ(plan(version(0))->commits[1].timestamp_ms, 1000);
}

TEST_F(PlanTest, NamesTheFirstVersionThatIsNotCovered) {
  commit({protocol(), metadata({}), add("a")});
  commit({add("b")});
  commit({metadata(kLegacy)});
  commit({add("c")});
  commit({add("d")});
  commit({metadata({})});
  const auto missing = [&](Version start, Version end) {
    const Error why = error(version(start), version(end));
    EXPECT_EQ(why.code, "DELTA_MISSING_CHANGE_DATA");
    return why.message;
  };
  EXPECT_THAT(missing(0, 4), HasSubstr("version [0]"));
  EXPECT_THAT(missing(1, 4), HasSubstr("version [1]"));
  EXPECT_THAT(missing(1, 5), HasSubstr("version [1]"));
  EXPECT_THAT(missing(2, 5), HasSubstr("version [5]"));
  EXPECT_THAT(lines(plan(version(2), version(4))), ElementsAre("3: +c", "4: +d"));
}

TEST_F(PlanTest, ChoosesTheFeed) {
  commit({protocol(), metadata(kTracked), add("a")});
  commit({metadata({{"delta.enableRowTracking", "true"}, {"delta.enableChangeDataFeed", "true"}})});
  commit({add("b")});
  commit({metadata(kLegacy)});
  EXPECT_EQ(plan(version(0), version(2))->mode, FeedMode::kAutomatic);
  EXPECT_EQ(plan(version(1), version(3))->mode, FeedMode::kLegacy);
  const Error why = error(version(0), version(3));
  EXPECT_EQ(why.code, "DELTA_MISSING_CHANGE_DATA");
  EXPECT_THAT(why.message, HasSubstr("read [0 , 2] and [3 , 3]"));
  const auto asked = [&](Version start, Version end, FeedMode mode) {
    const auto made = plan({version(start), version(end), false, mode});
    return made.ok() ? std::string("ok") : made.error().code;
  };
  EXPECT_EQ(asked(1, 2, FeedMode::kAutomatic), "ok");
  EXPECT_EQ(asked(1, 3, FeedMode::kAutomatic), "DELTA_CHANGELOG_REQUIRES_ROW_TRACKING");
  EXPECT_EQ(asked(0, 2, FeedMode::kLegacy), "DELTA_MISSING_CHANGE_DATA");
  commit({metadata(kTracked)});
  EXPECT_EQ(asked(2, 4, FeedMode::kAutomatic), "DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE");
}

TEST_F(PlanTest, RecordedFilesStandForTheirCommit) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({remove("a"), add("b"), delta::CdcFile{"_change_data/c", {}, 10}});
  EXPECT_THAT(lines(plan(version(1))), ElementsAre("1: *_change_data/c"));
}

TEST_F(PlanTest, TheAutomaticFeedDoesNotReadRecordedFiles) {
  commit({protocol(), metadata(kTracked), add("a")});
  commit({remove("a"), add("b"), delta::CdcFile{"_change_data/c", {}, 10}});
  const auto made = plan(version(1));
  EXPECT_THAT(lines(made), ElementsAre("1: -a +b"));
  EXPECT_TRUE(made->commits[0].needs_matching(made->mode));
  EXPECT_FALSE(made->commits[0].needs_matching(FeedMode::kLegacy));
  EXPECT_FALSE(plan(version(0), version(0))->commits[0].needs_matching(FeedMode::kAutomatic));
}

TEST_F(PlanTest, MergesThatChangedNothing) {
  commit({protocol(), metadata(kLegacy), add("a")});
  Properties zero = {
      {"numTargetRowsInserted", "0"}, {"numTargetRowsUpdated", "0"}, {"numTargetRowsDeleted", "0"}};
  commit({remove("a"), add("b")}, "MERGE", zero);
  commit({remove("b"), add("c")}, "WRITE", zero);
  zero["numTargetRowsUpdated"] = "1";
  commit({remove("c"), add("d")}, "MERGE", zero);
  zero["numTargetRowsUpdated"] = "0";
  zero.erase("numTargetRowsDeleted");
  commit({remove("d"), add("e")}, "MERGE", zero);
  EXPECT_THAT(lines(plan(version(1))), ElementsAre("2: -b +c", "3: -c +d", "4: -d +e"));
}

TEST_F(PlanTest, TheAutomaticFeedLooksAtRowsWhateverAMergeSaysOfThem) {
  commit({protocol(), metadata(kTracked), add("a")});
  commit({remove("a"), add("b")}, "MERGE",
         {{"numTargetRowsInserted", "0"},
          {"numTargetRowsUpdated", "0"},
          {"numTargetRowsDeleted", "0"}});
  EXPECT_THAT(lines(plan(version(1))), ElementsAre("1: -a +b"));
}

TEST_F(PlanTest, RewritesAreNoChanges) {
  commit({protocol(), metadata(kLegacy), add("a")});
  auto from = remove("a");
  auto to = add("b");
  from.data_change = false;
  to.data_change = false;
  commit({from, to});
  EXPECT_THAT(lines(plan(version(0))), ElementsAre("0: +a"));
}

TEST_F(PlanTest, DeletionVectorsOfOneFileAreCompared) {
  for (const auto& properties : {kLegacy, kTracked}) {
    SCOPED_TRACE(properties.begin()->first);
    store_ = storage::make_memory_store();
    table_ = delta::open_table(store_);
    next_ = 0;
    commit({protocol(), metadata(properties), add("a%20b")});
    commit({add("a%20b", "D1"), remove("a b")});          // the order and spelling do not matter
    commit({remove("a%20b", "D1"), add("a%20b", "D2")});  // deleted and restored
    commit({remove("a%20b", "D2"), add("a%20b")});        // restored
    commit({remove("a%20b"), add("b")});
    EXPECT_THAT(lines(plan(version(1))),
                ElementsAre("1: -a b(D1)", "2: +a%20b/D2(D1) -a%20b/D1(D2)", "3: +a%20b(D2)",
                            "4: -a%20b +b"));
  }
}

TEST_F(PlanTest, ImpossibleCommits) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({remove("a"), add("a")});
  EXPECT_EQ(error(version(1)).code, "DELTA_CHANGE_DATA_FILE_UNCHANGED");
  delta::RemoveFile bare;
  bare.path = "a";
  commit({bare});
  EXPECT_EQ(error(version(2)).code, "DELTA_CHANGE_DATA_INCOMPLETE_REMOVE");
  EXPECT_THAT(error(version(2)).message, HasSubstr("version 2"));
}

TEST_F(PlanTest, RowsWithoutIds) {
  commit({protocol(), metadata(kTracked), add("a")});
  auto file = add("b");
  file.base_row_id.reset();
  commit({file});
  auto gone = remove("a");
  gone.default_row_commit_version.reset();
  commit({gone});
  EXPECT_EQ(error(version(1), version(1)).code, "DELTA_ROW_ID_MISSING");
  EXPECT_THAT(error(version(2)).message, HasSubstr("version 2 removes the file a"));
}

Schema one_more(const std::string& name, TypeId type, bool nullable = true) {
  Schema schema = delta::two_columns();
  schema.fields.push_back(Field{name, DataType::primitive(type), nullable, {}});
  return schema;
}

TEST_F(PlanTest, AddedColumnsPass) {
  for (const auto& properties : {kLegacy, kTracked}) {
    store_ = storage::make_memory_store();
    table_ = delta::open_table(store_);
    next_ = 0;
    commit({protocol(), metadata(properties), add("a")});
    commit({metadata(properties, one_more("x", TypeId::kLong)), add("b")});
    const auto made = plan(version(0));
    EXPECT_THAT(lines(made), ElementsAre("0: +a", "1: +b"));
    EXPECT_EQ(made->definition->schema.fields.size(), 3u);
    // A range before the change: the newest schema of a recorded feed, else the range's own.
    EXPECT_EQ(plan(version(0), version(0))->definition->schema.fields.size(),
              properties == kLegacy ? 3u : 2u);
  }
}

TEST_F(PlanTest, OtherSchemaChangesSplitTheRange) {
  const auto changes = [&](const Properties& properties, const Schema& before,
                           const Schema& after) {
    store_ = storage::make_memory_store();
    table_ = delta::open_table(store_);
    next_ = 0;
    commit({protocol(), metadata(properties, before), add("a")});
    commit({add("b")});
    commit({metadata(properties, after)});
    commit({add("c")});
    // Of a range on one side all columns are read.
    const auto older = plan(version(0), version(1));
    EXPECT_EQ(delta::print_schema(older->definition->schema), delta::print_schema(before));
    const auto newer = plan(version(2));
    EXPECT_EQ(delta::print_schema(newer->definition->schema), delta::print_schema(after));
    return error(version(0));
  };
  const Schema two = delta::two_columns();
  const Schema three = one_more("x", TypeId::kLong);
  const Error dropped = changes(kLegacy, three, two);
  EXPECT_EQ(dropped.code, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE");
  EXPECT_THAT(dropped.message, HasSubstr("column x was renamed or dropped at version 2"));
  EXPECT_THAT(dropped.message, HasSubstr("Read [0 , 1] and [2 , 3]"));
  const Error retyped = changes(kTracked, one_more("x", TypeId::kInteger), three);
  EXPECT_EQ(retyped.code, "DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE");
  EXPECT_THAT(retyped.message, HasSubstr("from INT to BIGINT"));
  EXPECT_THAT(changes(kTracked, three, one_more("x", TypeId::kLong, false)).message,
              HasSubstr("became NOT NULL"));
  EXPECT_THAT(changes(kTracked, two, one_more("x", TypeId::kLong, false)).message,
              HasSubstr("NOT NULL column x was added"));
  const auto of = [](const DataType& type) {
    Schema schema = delta::two_columns();
    schema.fields.push_back(Field{"x", type, true, {}});
    return schema;
  };
  const DataType number = DataType::primitive(TypeId::kLong);
  const DataType list = DataType::array(number), map = DataType::map(number, number);
  DataType strict_list = list, strict_map = map;
  strict_list.contains_null = strict_map.contains_null = false;
  EXPECT_THAT(changes(kTracked, of(list), of(strict_list)).message,
              HasSubstr("the elements of x became NOT NULL"));
  EXPECT_THAT(changes(kTracked, of(map), of(strict_map)).message,
              HasSubstr("the values of x became NOT NULL"));
}

TEST_F(PlanTest, ACommitThatReplacesRowsAndColumnsIsLeftOut) {
  const Schema three = one_more("x", TypeId::kLong);
  const auto replaces = [&](const Properties& properties, const Schema& before, const Schema& after,
                            const std::string& operation) {
    store_ = storage::make_memory_store();
    table_ = delta::open_table(store_);
    next_ = 0;
    commit({protocol(), metadata(properties, before)});
    commit({add("a")});
    commit({remove("a"), metadata(properties, after), add("b")}, operation);
    commit({add("c")});
  };
  const std::string replace = "CREATE OR REPLACE TABLE";
  for (const auto& properties : {kLegacy, kTracked}) {
    SCOPED_TRACE(properties.begin()->first);
    replaces(properties, three, delta::two_columns(), replace);
    const Error why = error(version(1));
    EXPECT_EQ(why.code, properties == kLegacy ? "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
                                              : "DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE");
    EXPECT_THAT(why.message, HasSubstr("column x was renamed or dropped at version 2"));
    EXPECT_THAT(why.message, HasSubstr("Read [1 , 1] and [3 , 3]"));
    EXPECT_TRUE(plan(version(1), version(1)).ok());
    EXPECT_TRUE(plan(version(3), version(3)).ok());
    EXPECT_THAT(error(version(2)).message, HasSubstr("version 2 can be read. Read [3 , 3]"));
    EXPECT_THAT(error(version(1), version(2)).message, HasSubstr("Read [1 , 1]"));
    EXPECT_EQ(error(version(2), version(2)).code, why.code);
    // A stream that begins after the replacement but reads over it.
    const auto columns = plan(version(3))->definition;
    RangeRequest request;
    request.start = version(2);
    request.stream_definition = columns;
    const auto streamed = plan(request);
    ASSERT_FALSE(streamed.ok());
    EXPECT_EQ(streamed.error().code, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE");
    EXPECT_THAT(streamed.error().message, HasSubstr("over version 2"));
    // More columns, the same ones, and those that RESTORE takes back.
    replaces(properties, delta::two_columns(), three, replace);
    EXPECT_THAT(lines(plan(version(1))), ElementsAre("1: +a", "2: -a +b", "3: +c"));
    EXPECT_THAT(lines(plan(version(2))), ElementsAre("2: -a +b", "3: +c"));
    replaces(properties, three, delta::two_columns(), "RESTORE");
    EXPECT_THAT(lines(plan(version(2))), ElementsAre("2: -a +b", "3: +c"));
    EXPECT_THAT(error(version(1)).message, HasSubstr("Read [1 , 1] and [2 , 3]"));
  }
}

TEST_F(PlanTest, AMergeThatChangedNothingNeedsNoOlderColumns) {
  commit({protocol(), metadata(kLegacy, one_more("x", TypeId::kLong)), add("a")});
  commit({remove("a"), metadata(kLegacy, delta::two_columns()), add("b")}, "MERGE",
         {{"numTargetRowsInserted", "0"},
          {"numTargetRowsUpdated", "0"},
          {"numTargetRowsDeleted", "0"}});
  commit({add("c")});
  EXPECT_THAT(lines(plan(version(1))), ElementsAre("2: +c"));
}

TEST_F(PlanTest, MappedColumnsAreToldApartByTheirStoredNames) {
  const auto mapped = [](const std::string& physical) {
    Schema schema = one_more("x", TypeId::kLong);
    int id = 0;
    for (Field& field : schema.fields) {
      field.metadata["delta.columnMapping.id"] = std::to_string(++id);
      field.metadata["delta.columnMapping.physicalName"] =
          "\"" + (field.name == "x" ? physical : field.name) + "\"";
    }
    return schema;
  };
  Properties properties = kLegacy;
  commit({protocol(), metadata(properties, one_more("x", TypeId::kLong)), add("a")});
  properties["delta.columnMapping.mode"] = "name";
  commit({protocol({"columnMapping"}), metadata(properties, mapped("x"))});
  EXPECT_TRUE(plan(version(0)).ok());
  commit({metadata(properties, mapped("y"))});  // dropped and added anew
  EXPECT_TRUE(plan(version(0), version(1)).ok());
  EXPECT_THAT(error(version(0)).message, HasSubstr("another one than before"));
}

TEST_F(PlanTest, OwnColumnsOfTheFeedsNames) {
  commit({protocol(), metadata(kTracked, one_more("_Change_type", TypeId::kString))});
  EXPECT_EQ(error(version(0)).code, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS");
}

TEST_F(PlanTest, ALogThatIsCleanedUp) {
  commit({protocol(), metadata(kLegacy), add("a"), add("z")});
  commit({add("b"), remove("z")});
  commit({add("c")});
  const auto snapshot = table_.snapshot(1);
  ASSERT_TRUE(snapshot.ok());
  std::string text;
  for (const Action& action : std::vector<Action>{(*snapshot)->protocol, (*snapshot)->metadata,
                                                  (*snapshot)->files[0], (*snapshot)->files[1]}) {
    text += delta::print_action(action) + "\n";
  }
  ASSERT_TRUE(store_->put(delta::classic_checkpoint_path("/t", 1), text).ok());
  ASSERT_TRUE(store_->remove(delta::commit_path("/t", 0)).ok());
  EXPECT_EQ(error(version(0)).code, "DELTA_VERSION_NOT_FOUND");
  EXPECT_THAT(error(version(0)).message, HasSubstr("from version 1 on"));
  // The commit before is not asked for the rows that the first one removes.
  EXPECT_THAT(lines(plan(at(0))), ElementsAre("1: -z +b", "2: +c"));
}

TEST_F(PlanTest, RowIdColumnsOfAllVersionsAreKnown) {
  const auto named = [](const std::string& ids) {
    auto made = metadata(kTracked);
    made.configuration[delta::kRowIdColumnProperty] = ids;
    return made;
  };
  commit({protocol(), named("a"), add("x")});
  commit({remove("x"), named("b"), add("y")}, "CREATE OR REPLACE TABLE");
  commit({named("c")});
  commit({remove("y"), add("z")});
  const auto ids = [](const Result<ChangePlan>& plan) {
    EXPECT_TRUE(plan.ok());
    return plan.ok() ? delta::row_id_columns(*plan->definition).ids : std::vector<std::string>();
  };
  EXPECT_THAT(ids(plan(version(0))), ElementsAre("c", "b", "a"));
  EXPECT_THAT(ids(plan(version(0), version(0))), ElementsAre("a"));
  // What a file of the version before may have.
  EXPECT_THAT(ids(plan(version(1), version(1))), ElementsAre("b", "a"));
  EXPECT_THAT(ids(plan(version(2), version(2))), ElementsAre("c"));
  EXPECT_THAT(ids(plan(version(2))), ElementsAre("c", "b"));
  EXPECT_THAT(ids(plan(version(3))), ElementsAre("c"));
  EXPECT_THAT(delta::row_id_columns(*plan(version(0))->definition).versions,
              ElementsAre("_versions"));
  RangeRequest request;
  request.start = version(1);
  request.stream_definition = plan(version(0), version(0))->definition;
  EXPECT_THAT(ids(plan(request)), ElementsAre("a", "c", "b"));
}

TEST_F(PlanTest, FilesThatAreGoneAreNamed) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({add("b")});
  commit({add("c")});
  commit({add("d")});
  commit({add("e")});
  const auto made = plan(version(0));
  for (const char* there : {"/t/a", "/t/c", "/t/e"}) ASSERT_TRUE(store_->put(there, "x").ok());
  const auto missing = find_missing_file(store_.get(), *made);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->code, "DELTA_CHANGE_DATA_FILE_NOT_FOUND");
  EXPECT_THAT(missing->message, HasSubstr("version 1 of /t needs the file /t/b"));
  // From which all can be read.
  EXPECT_THAT(missing->message, HasSubstr("start after version 3"));
  for (const char* there : {"/t/b", "/t/d"}) ASSERT_TRUE(store_->put(there, "x").ok());
  EXPECT_FALSE(find_missing_file(store_.get(), *made));
}

TEST(PrimaryKey, IsReadFromItsProperty) {
  delta::Snapshot table;
  table.schema = delta::two_columns();
  const auto key_of = [&](const std::string& text) {
    table.metadata.configuration[kPrimaryKeyProperty] = text;
    return primary_key(table);
  };
  EXPECT_THAT(primary_key(table), IsEmpty());
  const auto parts = key_of("[\"ID\",\"coalesce(name, id)\"]");
  EXPECT_THAT(parts, ElementsAre(ElementsAre("id"), ElementsAre("name", "id")));
  EXPECT_THAT(key_of("[\"id\",\"gone\"]"), IsEmpty());
  EXPECT_THAT(key_of("id"), IsEmpty());
}

}  // namespace
}  // namespace strandline::cdf
