// What a transaction read decides which commits of others it can follow: `ours` begins, `theirs`
// commits, `ours` commits (delta-protocol.md section 2, rules 2.5 to 2.7).
#include "delta/conflict.h"

#include <gtest/gtest.h>

#include "delta/test_support.h"

namespace strandline::delta {
namespace {

class ConflictTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    NewTable definition;
    definition.schema = Schema{{Field{"id", DataType::primitive(TypeId::kLong), true, {}},
                                Field{"p", DataType::primitive(TypeId::kString), true, {}}}};
    definition.partition_columns = {"p"};
    definition.properties["delta.isolationLevel"] = GetParam();
    auto created = Transaction::create(open_table(store_), definition);
    ASSERT_TRUE(created.ok()) << created.error().message;
    ASSERT_EQ(outcome(*created), "ok");
    append({file("a", "x", 0, 9), file("b", "x", 10, 19), file("c", "y", 0, 9)});
  }

  static bool is_serializable() { return std::string(GetParam()) == "Serializable"; }

  static AddFile file(const std::string& path, const std::string& p, int low, int high) {
    AddFile add = data_file(path);
    add.partition_values["p"] = p;
    add.stats = fmt::format(
        R"({{"numRecords":10,"minValues":{{"id":{}}},"maxValues":{{"id":{}}},"nullCount":{{"id":0}}}})",
        low, high);
    return add;
  }

  std::shared_ptr<const Snapshot> snapshot() { return *open_table(store_).snapshot(); }
  Transaction begin() { return Transaction::begin(open_table(store_), snapshot()).value(); }
  static std::string outcome(Transaction& transaction) {
    const auto done = transaction.commit();
    if (!done.ok()) return done.error().code + ": " + done.error().message;
    if (const auto* conflicted = std::get_if<Conflicted>(&*done)) return conflicted->code;
    return std::holds_alternative<Committed>(*done) ? "ok" : "unknown";
  }

  void append(const std::vector<AddFile>& files) {
    Transaction transaction = begin();
    for (const AddFile& add : files) transaction.add_file(add);
    transaction.set_blind_append();
    ASSERT_EQ(outcome(transaction), "ok");
  }

  static FileFilter where(const Snapshot& table, const std::string& p, int id) {
    return FileFilter::all_of(
        {FileFilter::compare(table, {"p"}, CompareOp::kEqual, {TypeId::kString, p}),
         FileFilter::compare(table, {"id"}, CompareOp::kEqual,
                             {TypeId::kInteger, std::to_string(id)})});
  }
  // DELETE WHERE p = ... AND id = ...: one row of the file that may hold it.
  Transaction deleting(const std::string& p, int id) {
    Transaction transaction = begin();
    const FileFilter filter = where(transaction.snapshot(), p, id);
    const auto selection = select_files(transaction.snapshot(), filter);
    EXPECT_EQ(selection.files.size(), 1u);
    for (const size_t index : selection.files) {
      RowSet rows;
      rows.add(static_cast<uint64_t>(id % 10));
      EXPECT_TRUE(transaction.delete_rows(transaction.snapshot().files[index], rows).ok());
    }
    transaction.set_read_predicate(filter, selection.files);
    return transaction;
  }
  // A write of new rows that looked for a row which is not there: no file was read.
  Transaction adding_unless_there(const std::string& p, int id) {
    Transaction transaction = begin();
    const FileFilter filter = where(transaction.snapshot(), p, id);
    EXPECT_TRUE(select_files(transaction.snapshot(), filter).files.empty());
    transaction.add_file(file(fmt::format("new-{}-{}", p, id), p, id, id));
    transaction.set_read_predicate(filter, {});
    return transaction;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
};

INSTANTIATE_TEST_SUITE_P(Levels, ConflictTest,
                         ::testing::Values("Serializable", "WriteSerializable"));

TEST_P(ConflictTest, AppendsThatCannotMatchAreFollowed) {
  Transaction ours = deleting("x", 5);
  append({file("d", "x", 100, 109), file("e", "y", 5, 5)});
  EXPECT_EQ(outcome(ours), "ok");
}

TEST_P(ConflictTest, BlindAppendsThatMayMatch) {
  Transaction ours = deleting("x", 5);
  append({file("d", "x", 0, 9)});
  EXPECT_EQ(outcome(ours), is_serializable() ? "DELTA_CONCURRENT_APPEND" : "ok");
  // Of a file without statistics nothing is known but its partition.
  Transaction second = deleting("y", 5);
  AddFile unknown = file("u", "y", 0, 0);
  unknown.stats = R"({"numRecords":1})";
  append({unknown});
  EXPECT_EQ(outcome(second), is_serializable() ? "DELTA_CONCURRENT_APPEND" : "ok");
}

TEST_P(ConflictTest, WritesThatReadAndMayMatch) {
  Transaction ours = adding_unless_there("z", 1);
  Transaction theirs = adding_unless_there("z", 1);
  Transaction elsewhere = adding_unless_there("z", 2);
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_APPEND") << "both would add the row";
  EXPECT_EQ(outcome(elsewhere), "ok");
  const auto commit = open_table(store_).commit(3).value();
  EXPECT_EQ(std::get<CommitInfo>(commit.front()).is_blind_append, false);
}

TEST_P(ConflictTest, DeletesOfDifferentFilesCommute) {
  Transaction in_b = deleting("x", 15);
  Transaction in_c = deleting("y", 5);
  Transaction in_a = deleting("x", 5);
  EXPECT_EQ(outcome(in_a), "ok");
  EXPECT_EQ(outcome(in_b), "ok");
  EXPECT_EQ(outcome(in_c), "ok");
  EXPECT_EQ(live_row_count(*snapshot()), 27);
}

TEST_P(ConflictTest, DeletesOfOneFileDoNot) {
  Transaction ours = deleting("x", 5);
  Transaction theirs = deleting("x", 6);
  EXPECT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_DELETE_DELETE");
}

TEST_P(ConflictTest, AFileThatWasReadIsGone) {
  Transaction ours = begin();
  const FileFilter filter = where(ours.snapshot(), "x", 5);
  ours.add_file(file("copy", "y", 5, 5));
  ours.set_read_predicate(filter, select_files(ours.snapshot(), filter).files);
  Transaction other = begin();
  other.add_file(file("copy2", "y", 15, 15));
  const FileFilter other_filter = where(other.snapshot(), "x", 15);
  other.set_read_predicate(other_filter, select_files(other.snapshot(), other_filter).files);
  Transaction theirs = begin();
  theirs.remove_file(theirs.snapshot().files[0]);
  theirs.set_read_files({0});
  ASSERT_EQ(outcome(theirs), "ok");
  EXPECT_EQ(outcome(ours), "DELTA_CONCURRENT_DELETE_READ");
  EXPECT_EQ(outcome(other), "ok");
}

TEST_P(ConflictTest, CompactionOfOtherFilesIsFollowed) {
  Transaction in_c = deleting("y", 5);
  Transaction in_a = deleting("x", 5);
  Transaction compacting = begin();
  for (const size_t index : {0, 1})
    compacting.remove_file(compacting.snapshot().files[index], false);
  AddFile both = file("ab", "x", 0, 19);
  both.data_change = false;
  compacting.add_file(both);
  compacting.set_read_files({0, 1});
  append({file("d", "x", 0, 9)});
  ASSERT_EQ(outcome(compacting), "ok") << "compaction moves the rows it read, whatever is appended";
  EXPECT_EQ(outcome(in_c), "ok");
  EXPECT_EQ(outcome(in_a),
            is_serializable() ? "DELTA_CONCURRENT_APPEND" : "DELTA_CONCURRENT_DELETE_DELETE");
}

TEST_P(ConflictTest, WholeTableReadsFollowNothing) {
  Transaction ours = begin();
  ours.add_file(file("sum", "z", 1, 1));
  Transaction removing = begin();
  removing.remove_file(removing.snapshot().files[0]);
  removing.set_read_files({0});
  Transaction reader = begin();
  reader.add_file(file("sum2", "z", 1, 1));
  append({file("d", "x", 100, 109)});
  EXPECT_EQ(outcome(ours), is_serializable() ? "DELTA_CONCURRENT_APPEND" : "ok");
  EXPECT_EQ(outcome(removing), "DELTA_CONCURRENT_APPEND");
  EXPECT_EQ(outcome(reader), "DELTA_CONCURRENT_APPEND");
}

}  // namespace
}  // namespace strandline::delta
