#include "pipeline/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace strandline::pipeline {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  FlowCheckpoint open() {
    auto checkpoint = FlowCheckpoint::open(store_, "/c/f");
    EXPECT_TRUE(checkpoint.ok());
    return std::move(*checkpoint);
  }
  static BatchPlan plan(int64_t batch) {
    BatchPlan plan;
    plan.batch = batch;
    plan.time_us = 1000 + batch;
    plan.definition = "d";
    plan.target_id = "t";
    plan.state_version = batch - 1;
    plan.pinned["table:/x"] = 7;
    SourcePlan files;
    files.key = "files";
    files.files = {{fmt::format("/d/{}.json", batch), batch, 5}};
    files.schema = Schema{{Field{"id", DataType::primitive(TypeId::kLong), true, {}}}};
    SourcePlan delta;
    delta.key = "delta:/y";
    delta.from = DeltaOffset{"id", batch, 0, batch == 0};
    delta.to = DeltaOffset{"id", batch + 1, 3, false};
    plan.sources = {files, delta};
    return plan;
  }
  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
};

TEST_F(CheckpointTest, BeginsEmpty) {
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.last_batch(), -1);
  EXPECT_FALSE(checkpoint.unfinished());
  EXPECT_EQ(checkpoint.consumed("files", "/d/0.json"), nullptr);
  EXPECT_FALSE(checkpoint.offset("delta:/y"));
}

TEST_F(CheckpointTest, VersionsOfSnapshotsSurvive) {
  const auto take = [&](int64_t batch, std::optional<SnapshotVersion> version) {
    auto checkpoint = open();
    BatchPlan taken = plan(batch);
    taken.is_snapshot = true;
    taken.snapshot_version = std::move(version);
    ASSERT_TRUE(checkpoint.write_plan(taken).ok());
    ASSERT_TRUE(checkpoint.mark_done({}).ok());
  };
  const auto decimal = [](int64_t number) {
    return SnapshotVersion{DataType::decimal(5, 1), fmt::format("{}.5", number)};
  };
  ASSERT_FALSE(open().snapshot_version());
  // Long enough for plans to be folded into a state file, and a last batch without a snapshot.
  for (int64_t batch = 0; batch < 40; ++batch) take(batch, decimal(batch));
  take(40, std::nullopt);
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.last_batch(), 40);
  ASSERT_TRUE(checkpoint.snapshot_version());
  EXPECT_EQ(checkpoint.snapshot_version()->value, "39.5");
  EXPECT_TRUE(same_type(checkpoint.snapshot_version()->type, DataType::decimal(5, 1)));
  // What a snapshot read is read again by the next one; its columns are known without files too.
  EXPECT_TRUE(checkpoint.consumed_files("files").empty());
  EXPECT_NE(checkpoint.schema("files"), nullptr);
  EXPECT_FALSE(checkpoint.offset("delta:/y"));
}

TEST_F(CheckpointTest, PlannedBatchSurvives) {
  ASSERT_TRUE(open().write_plan(plan(0)).ok());
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.last_batch(), -1);
  ASSERT_TRUE(checkpoint.unfinished());
  const auto& again = *checkpoint.unfinished();
  EXPECT_EQ(again.batch, 0);
  EXPECT_EQ(again.time_us, 1000);
  EXPECT_EQ(again.state_version, -1);
  EXPECT_EQ(again.pinned.at("table:/x"), 7);
  ASSERT_EQ(again.sources.size(), 2u);
  EXPECT_EQ(again.sources[0].files[0].path, "/d/0.json");
  EXPECT_EQ(again.sources[0].schema->fields[0].name, "id");
  EXPECT_TRUE(again.sources[1].from->initial);
  EXPECT_EQ(again.sources[1].to->index, 3);
  EXPECT_EQ(checkpoint.consumed("files", "/d/0.json"), nullptr) << "not consumed before it is done";
}

TEST_F(CheckpointTest, DoneBatchIsProgress) {
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.write_plan(plan(0)).ok());
  ASSERT_TRUE(checkpoint.mark_done({}).ok());
  const auto again = open();
  EXPECT_EQ(again.last_batch(), 0);
  EXPECT_FALSE(again.unfinished());
  ASSERT_NE(again.consumed("files", "/d/0.json"), nullptr);
  EXPECT_EQ(again.offset("delta:/y")->version, 1);
  EXPECT_EQ(again.target_id(), "t");
  EXPECT_EQ(again.schema("files")->fields.size(), 1u);
  EXPECT_FALSE(again.had_state());
}

TEST_F(CheckpointTest, RemembersTheTablesOfItsLastBatch) {
  const auto marks = [](int64_t version) {
    return TableMarks{delta::CommitMark{version, fmt::format("t{}", version)},
                      delta::CommitMark{version + 1, fmt::format("s{}", version)}};
  };
  const auto expect_marks = [&](int64_t version) {
    const auto found = open().marks();
    EXPECT_EQ(found.target, marks(version).target);
    EXPECT_EQ(found.state, marks(version).state);
  };
  // Long enough for plans to be folded into a state file.
  for (int64_t batch = 0; batch < 40; ++batch) {
    auto checkpoint = open();
    auto planned = plan(batch);
    planned.marks = marks(10 * batch);
    planned.pinned_commits["table:/x"] = fmt::format("c{}", batch);
    planned.sources[1].to->last = delta::CommitMark{batch, "l"};
    ASSERT_TRUE(checkpoint.write_plan(planned).ok());
    expect_marks(10 * batch);
    ASSERT_TRUE(checkpoint.mark_done(marks(10 * batch + 5)).ok());
    expect_marks(10 * batch + 5);
    EXPECT_EQ(open().pinned_commits().at("table:/x"), fmt::format("c{}", batch));
    EXPECT_EQ(open().offset("delta:/y")->last, (delta::CommitMark{batch, "l"}));
  }
}

TEST_F(CheckpointTest, ThatOfAnEarlierProgramKnowsNothingOfTables) {
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.write_plan(plan(0)).ok());
  ASSERT_TRUE(checkpoint.mark_done({delta::CommitMark{3, "t"}, {}}).ok());
  ASSERT_TRUE(store_->put("/c/f/done-0.json", "{}").ok());
  EXPECT_EQ(open().last_batch(), 0);
  EXPECT_FALSE(open().marks().target);
  EXPECT_FALSE(open().marks().state);
}

TEST_F(CheckpointTest, DroppedPlanIsPlannedAnew) {
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.write_plan(plan(0)).ok());
  ASSERT_TRUE(checkpoint.drop_plan().ok());
  EXPECT_FALSE(open().unfinished());
  EXPECT_TRUE(checkpoint.write_plan(plan(0)).ok());
}

TEST_F(CheckpointTest, PlansFollowEachOther) {
  auto checkpoint = open();
  EXPECT_FALSE(checkpoint.write_plan(plan(1)).ok());
  ASSERT_TRUE(checkpoint.write_plan(plan(0)).ok());
  EXPECT_FALSE(checkpoint.write_plan(plan(1)).ok());
}

TEST_F(CheckpointTest, ThousandsOfBatchesStaySmall) {
  for (int64_t batch = 0; batch < 1000; ++batch) {
    auto checkpoint = open();
    ASSERT_EQ(checkpoint.last_batch(), batch - 1);
    ASSERT_TRUE(checkpoint.write_plan(plan(batch)).ok());
    ASSERT_TRUE(checkpoint.mark_done({}).ok());
  }
  EXPECT_LT(store_->list("/c/f")->size(), 2 * 256u + 2);
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.last_batch(), 999);
  EXPECT_EQ(checkpoint.consumed_files("files").size(), 1000u);
  EXPECT_EQ(checkpoint.consumed("files", "/d/3.json")->size_bytes, 3);
  EXPECT_EQ(checkpoint.offset("delta:/y")->version, 1000);
  EXPECT_TRUE(checkpoint.had_state());
  EXPECT_EQ(checkpoint.pinned().at("table:/x"), 7);
  EXPECT_EQ(checkpoint.definition(), "d");
}

// Stops the store at every mutating call of two batches with a compaction between them: what is
// read again is always the last state that was reached or the one before it.
TEST_F(CheckpointTest, StopsAnywhere) {
  for (const auto mode : {storage::FaultMode::kStop, storage::FaultMode::kErrorAfter}) {
    for (int at = 1; at < 200; ++at) {
      store_ = storage::make_memory_store();
      auto faulty = storage::FaultStore::wrap(store_);
      faulty->arm(at, mode);
      int64_t done = -1;
      {
        auto checkpoint = FlowCheckpoint::open(faulty, "/c/f");
        ASSERT_TRUE(checkpoint.ok());
        for (int64_t batch = 0; batch < 20; ++batch) {
          if (!checkpoint->write_plan(plan(batch)).ok()) break;
          if (!checkpoint->mark_done({}).ok()) break;
          done = batch;
        }
      }
      const auto again = open();
      EXPECT_GE(again.last_batch(), done);
      EXPECT_LE(again.last_batch(), done + 1);
      EXPECT_EQ(again.consumed_files("files").size(), static_cast<size_t>(again.last_batch() + 1));
      if (done == 19) break;
    }
  }
}

TEST_F(CheckpointTest, BrokenFileIsNamed) {
  ASSERT_TRUE(open().write_plan(plan(0)).ok());
  ASSERT_TRUE(store_->put("/c/f/plan-0.json", "{").ok());
  const auto checkpoint = FlowCheckpoint::open(store_, "/c/f");
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(checkpoint.error().message.find("/c/f/plan-0.json"), std::string::npos);
}

TEST_F(CheckpointTest, RefreshBeginsANewGeneration) {
  auto target = TargetCheckpoint::open(store_, "/c");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->generation(), 0);
  EXPECT_EQ(target->flow_directory("My Flow"), "/c/0/my%20flow");
  ASSERT_TRUE(target->begin_refresh(-1).ok());
  EXPECT_EQ(TargetCheckpoint::open(store_, "/c")->generation(), 1);
  target->remove_old();
  EXPECT_FALSE(store_->stat("/c/0").ok());
}

}  // namespace
}  // namespace strandline::pipeline
