#include "cdf/stream.h"

#include <gmock/gmock.h>

#include "cdf/test_support.h"

namespace strandline::cdf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StreamTest : public FeedTest {
 protected:
  // Runs the stream until nothing comes: each batch's lines in one text, and its end.
  std::vector<std::string> batches(std::optional<StreamOffset> from = {}) {
    std::vector<std::string> out;
    if (!from) {
      auto first = first_offset(table_, options_);
      if (!first.ok()) return {first.error().code + " " + first.error().message};
      from = *first;
    }
    const auto definition = table_.snapshot();
    if (!definition.ok()) return {definition.error().code};
    const auto columns = definition_ ? definition_ : *definition;
    while (out.size() < 20) {
      const auto batch = next_batch(table_, columns, options_, *from);
      if (!batch.ok()) {
        out.push_back(batch.error().code + " " + batch.error().message);
        break;
      }
      if (batch->to == batch->from) break;
      out.push_back(text(*batch));
      const auto again = repeat_batch(table_, columns, options_, batch->from, batch->to);
      EXPECT_EQ(again.ok() ? text(*again) : again.error().message, out.back());
      from = batch->to;
    }
    end_ = *from;
    return out;
  }

  static std::string text(const StreamBatch& batch) {
    std::string all;
    for (const auto& line : lines(batch.plan)) all += line + " ";
    return fmt::format("{}-> {}/{}{}", all, batch.to.version, batch.to.index,
                       batch.to.is_starting_version ? "s" : "");
  }

  StreamOptions options_;
  std::shared_ptr<const delta::Snapshot> definition_;
  StreamOffset end_;
};

TEST_F(StreamTest, BeginsWithTheSnapshot) {
  commit({protocol(), metadata({}), add("a")});
  commit({metadata(kLegacy), add("b")});  // the feed was off before
  EXPECT_THAT(batches(), ElementsAre("1: +a +b -> 2/-1"));
  EXPECT_THAT(batches(end_), IsEmpty());  // the version does not exist yet
  commit({remove("a")});
  EXPECT_THAT(batches(end_), ElementsAre("2: -a -> 3/-1"));
}

TEST_F(StreamTest, Starts) {
  commit({protocol(), metadata({}), add("a")});
  commit({metadata(kLegacy), add("b")});
  commit({add("c")});
  options_.start = FromLatest{};
  EXPECT_THAT(batches(), IsEmpty());
  EXPECT_EQ(end_.version, 3);
  options_.start = Bound(Version{2});
  EXPECT_THAT(batches(), ElementsAre("2: +c -> 3/-1"));
  options_.start = at(500);
  EXPECT_THAT(batches(), ElementsAre("1: +b 2: +c -> 3/-1"));
  options_.start = Bound(Version{0});
  EXPECT_THAT(batches()[0], HasSubstr("DELTA_MISSING_CHANGE_DATA"));
  options_.start = Bound(Version{4});
  EXPECT_THAT(batches()[0], HasSubstr("DELTA_CDC_START_VERSION_AFTER_LATEST"));
  options_.start = at(2500);
  EXPECT_THAT(batches()[0], HasSubstr("DELTA_TIMESTAMP_GREATER_THAN_COMMIT"));
  options_.tolerate_out_of_range = true;
  EXPECT_THAT(batches(), IsEmpty());
  EXPECT_EQ(end_.version, 3);
  options_.start = Bound(Version{4});
  EXPECT_THAT(batches(), IsEmpty());
  commit({add("d")});
  EXPECT_THAT(batches(end_), IsEmpty());
  commit({add("e")});
  EXPECT_THAT(batches(end_), ElementsAre("4: +e -> 5/-1"));
}

TEST_F(StreamTest, TheSnapshotIsTakenFileByFileAndCommitsWhole) {
  commit({protocol(), metadata(kLegacy), add("a"), add("b"), add("c")});
  options_.max_files = 1;
  auto first = batches();
  EXPECT_THAT(first, ElementsAre("0: +a -> 0/0s", "0: +b -> 0/1s", "0: +c -> 1/-1"));
  commit({delta::CdcFile{"x", {}, 10}, delta::CdcFile{"y", {}, 10}});
  commit({remove("a"), add("d")});
  EXPECT_THAT(batches(end_), ElementsAre("1: *x *y -> 2/-1", "2: -a +d -> 3/-1"));
}

TEST_F(StreamTest, ARefusedCommitEndsTheBatch) {
  commit({protocol(), metadata(kLegacy)});
  commit({add("a"), add("b")});
  commit({add("c"), add("d")});
  commit({add("e")});
  options_.start = Bound(Version{0});
  options_.max_files = 3;
  EXPECT_THAT(batches(), ElementsAre("1: +a +b -> 2/-1", "2: +c +d 3: +e -> 4/-1"));
  options_.max_files.reset();
  options_.max_bytes = 1;
  EXPECT_THAT(batches(), ElementsAre("1: +a +b -> 2/-1", "2: +c +d -> 3/-1", "3: +e -> 4/-1"));
  options_.max_bytes = 300;  // of files of 100 each
  EXPECT_THAT(batches(), ElementsAre("1: +a +b -> 2/-1", "2: +c +d 3: +e -> 4/-1"));
  options_.max_bytes = 400;
  EXPECT_THAT(batches(), ElementsAre("1: +a +b 2: +c +d -> 3/-1", "3: +e -> 4/-1"));
}

TEST_F(StreamTest, EmptyCommitsMoveTheOffset) {
  commit({protocol(), metadata(kLegacy)});
  for (int i = 0; i < 4; ++i) commit({});
  options_.start = Bound(Version{1});
  EXPECT_THAT(batches(), ElementsAre("-> 5/-1"));
}

TEST_F(StreamTest, TheEndCanBeFixed) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({add("b")});
  commit({add("c")});
  const auto snapshot = table_.snapshot();
  const auto batch =
      next_batch(table_, *snapshot, options_, {(*snapshot)->metadata.id, 0, -1, false}, 1);
  EXPECT_EQ(text(*batch), "0: +a 1: +b -> 2/-1");
}

TEST_F(StreamTest, ExcludedFiles) {
  commit({protocol(), metadata(kLegacy), add("p=1/a"), add("p=2/a")});
  commit({add("p=1/b"), remove("p=1/a"), delta::CdcFile{"_change_data/p=1/c", {}, 10}});
  options_.exclude_regex = "p=1";
  // Changes that are left out do not come back as rewritten files.
  options_.start = Bound(Version{0});
  EXPECT_THAT(batches(), ElementsAre("0: +p=2/a -> 2/-1"));
  options_.exclude_regex = "(";
  EXPECT_THAT(batches()[0], HasSubstr("DELTA_INVALID_EXCLUDE_REGEX"));
}

TEST_F(StreamTest, SchemaChanges) {
  Schema more = delta::two_columns();
  more.fields.push_back(Field{"x", DataType::primitive(TypeId::kLong), true, {}});
  commit({protocol(), metadata(kLegacy, more), add("a")});
  definition_ = *table_.snapshot();
  options_.start = Bound(Version{0});
  commit({metadata(kLegacy, more), add("b")});
  more.fields[2].nullable = false;  // tightened
  commit({metadata(kLegacy, more), add("c")});
  EXPECT_THAT(batches(), ElementsAre("0: +a 1: +b 2: +c -> 3/-1"));
  const auto at_three = end_;
  more.fields[2].nullable = true;
  more.fields.push_back(Field{"y", DataType::primitive(TypeId::kLong), true, {}});
  commit({metadata(kLegacy, more), add("d")});
  EXPECT_THAT(batches(at_three)[0], HasSubstr("DELTA_SCHEMA_CHANGED_WITH_VERSION"));
  definition_ = *table_.snapshot();  // started again
  EXPECT_THAT(batches(at_three), ElementsAre("3: +d -> 4/-1"));
  commit({metadata(kLegacy, delta::two_columns()), add("e")});
  EXPECT_THAT(batches(at_three)[0],
              testing::AllOf(HasSubstr("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE"),
                             HasSubstr("version 4")));
}

TEST_F(StreamTest, ColumnsThatRestoreTakesBack) {
  Schema more = delta::two_columns();
  more.fields.push_back(Field{"x", DataType::primitive(TypeId::kLong), true, {}});
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({metadata(kLegacy, more), add("b")});
  commit({add("c")});
  delta::CommitInfo restore;
  restore.operation = "RESTORE";
  // A stream that runs goes on, one that is started again too.
  definition_ = *table_.snapshot();
  options_.start = Bound(Version{0});
  EXPECT_THAT(batches(), ElementsAre("0: +a 1: +b 2: +c -> 3/-1"));
  const auto at_three = end_;
  commit({restore, metadata(kLegacy), remove("b"), remove("c")});
  EXPECT_THAT(batches(at_three), ElementsAre("3: -b -c -> 4/-1"));
  definition_ = *table_.snapshot();
  EXPECT_THAT(batches(), ElementsAre("0: +a 1: +b 2: +c 3: -b -c -> 4/-1"));
  // A column that is dropped ends it, and starting it again does not help.
  commit({metadata(kLegacy, more), add("d")});
  commit({metadata(kLegacy), add("e")});
  definition_ = *table_.snapshot();
  EXPECT_THAT(batches(at_three)[0],
              testing::AllOf(HasSubstr("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE"),
                             HasSubstr("version 4")));
}

TEST_F(StreamTest, GoesOnFromRecordedToAutomatic) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({metadata(kTracked)});
  commit({add("b"), remove("a")});
  options_.start = Bound(Version{0});
  EXPECT_THAT(batches(), ElementsAre("0: +a -> 1/-1", "2: -a +b -> 3/-1"));
}

TEST_F(StreamTest, ATableMadeAnewAndALogThatIsCleanedUp) {
  commit({protocol(), metadata(kLegacy), add("a")});
  commit({add("b")});
  commit({add("c")});
  StreamOffset from{"another", 1, -1, false};
  EXPECT_THAT(batches(from)[0], HasSubstr("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"));
  const auto snapshot = *table_.snapshot(1);
  std::string text;
  for (const Action& action : std::vector<Action>{snapshot->protocol, snapshot->metadata,
                                                  snapshot->files[0], snapshot->files[1]}) {
    text += delta::print_action(action) + "\n";
  }
  ASSERT_TRUE(store_->put(delta::classic_checkpoint_path("/t", 1), text).ok());
  ASSERT_TRUE(store_->remove(delta::commit_path("/t", 0)).ok());
  from = {snapshot->metadata.id, 0, -1, false};
  EXPECT_THAT(batches(from)[0], HasSubstr("DELTA_MISSING_FILES_UNEXPECTED_VERSION"));
  options_.fail_on_data_loss = false;
  EXPECT_THAT(batches(from), ElementsAre("1: +b 2: +c -> 3/-1"));
  options_.start = Bound(Version{0});
  EXPECT_THAT(batches(), ElementsAre("1: +b 2: +c -> 3/-1"));
  options_.start = Bound(Version{2});
  EXPECT_THAT(batches(), ElementsAre("2: +c -> 3/-1"));
}

TEST(StreamOffset, AsText) {
  const StreamOffset offset{"id", 7, 3, true};
  EXPECT_EQ(print_offset(offset),
            "{\"sourceVersion\":1,\"reservoirId\":\"id\",\"reservoirVersion\":7,\"index\":3,"
            "\"isStartingVersion\":true}");
  EXPECT_EQ(*parse_offset(print_offset(offset)), offset);
  const auto code = [](std::string text) {
    const auto parsed = parse_offset(text);
    return parsed.ok() ? "ok" : parsed.error().code;
  };
  std::string text = print_offset(offset);
  EXPECT_EQ(code(text.replace(17, 1, "3")), "ok");
  EXPECT_EQ(code(text.replace(17, 1, "2")), "DELTA_INVALID_SOURCE_VERSION");
  EXPECT_EQ(code(text.replace(17, 1, "4")), "DELTA_INVALID_SOURCE_VERSION");
  EXPECT_EQ(code("{\"sourceVersion\":1}"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT");
  EXPECT_EQ(code("7"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT");
}

}  // namespace
}  // namespace strandline::cdf
