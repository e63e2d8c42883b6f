#include "delta/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "delta/row_id_columns.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RestoreTest : public ::testing::Test {
 protected:
  void create(std::map<std::string, std::string> properties = {},
              std::vector<FieldPath> clustering = {}) {
    NewTable definition;
    definition.schema = two_columns();
    definition.properties = std::move(properties);
    definition.clustering_columns = std::move(clustering);
    auto transaction = Transaction::create(table_, definition);
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    commit(*transaction);
  }
  static Version commit(Transaction& transaction) {
    const auto version = transaction.commit_or_error();
    EXPECT_TRUE(version.ok()) << version.error().message;
    return version.ok() ? *version : -1;
  }
  Transaction begin() const { return std::move(Transaction::begin(table_, at({}))).value(); }
  std::shared_ptr<const Snapshot> at(std::optional<Version> version) const {
    auto snapshot = table_.snapshot(version);
    EXPECT_TRUE(snapshot.ok()) << snapshot.error().message;
    return *snapshot;
  }
  Version add(const std::string& path) {
    EXPECT_TRUE(store_->put("/t/" + path, "x").ok());
    auto transaction = begin();
    transaction.add_file(data_file(path));
    return commit(transaction);
  }
  Version delete_row(size_t file, uint64_t row) {
    auto transaction = begin();
    RowSet rows;
    rows.add(row);
    EXPECT_TRUE(transaction.delete_rows(transaction.snapshot().files[file], rows).ok());
    return commit(transaction);
  }
  Version remove(size_t file) {
    auto transaction = begin();
    transaction.remove_file(AddFile(transaction.snapshot().files[file]));
    return commit(transaction);
  }
  RestoreReport restore_to(Version version, RestoreOptions options = {}) {
    const auto report = restore(table_, *at(version), options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : RestoreReport();
  }

  // Everything a reader sees of a version's files.
  static std::vector<std::string> files_of(const Snapshot& snapshot) {
    std::vector<std::string> lines;
    for (const AddFile& file : snapshot.files) {
      lines.push_back(fmt::format("{} {} {} {} {}", file.path,
                                  file.deletion_vector ? file.deletion_vector->unique_id() : "-",
                                  file.base_row_id.value_or(-1),
                                  file.default_row_commit_version.value_or(-1),
                                  file.stats.value_or("-")));
    }
    return lines;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
};

TEST_F(RestoreTest, FilesVectorsAndRowIdsComeBack) {
  create();
  add("a");
  add("b");
  const Version wanted = delete_row(0, 3);
  delete_row(0, 4);
  remove(1);
  add("c");
  const int64_t mark = at({})->row_id_high_water_mark();
  RestoreOptions options;
  options.parameters["version"] = "3";
  const RestoreReport report = restore_to(wanted, options);
  EXPECT_EQ(files_of(*at({})), files_of(*at(wanted)));
  EXPECT_EQ(report.version, 7);
  EXPECT_EQ(report.num_files, 2);
  EXPECT_EQ(report.num_removed_files, 2);   // a with two rows deleted, c
  EXPECT_EQ(report.num_restored_files, 2);  // a with one row deleted, b
  EXPECT_EQ(report.table_size_bytes, 200);
  EXPECT_EQ(at({})->row_id_high_water_mark(), mark);
  const auto actions = table_.commit(7);
  ASSERT_TRUE(actions.ok());
  const auto& info = std::get<CommitInfo>(actions->at(0));
  EXPECT_EQ(info.operation, "RESTORE");
  EXPECT_EQ(info.operation_parameters.at("version"), R"("3")");
  EXPECT_EQ(info.operation_metrics.at("numRestoredFiles"), "2");
  EXPECT_EQ(info.operation_metrics.at("tableSizeAfterRestore"), "200");
  for (const Action& action : *actions) {
    if (const auto* const file = std::get_if<AddFile>(&action)) {
      EXPECT_TRUE(file->data_change);
    }
    if (const auto* const file = std::get_if<RemoveFile>(&action)) {
      EXPECT_TRUE(file->data_change);
    }
  }
  // New rows get ids that no row ever had.
  add("d");
  EXPECT_GT(*at({})->files.back().base_row_id, mark);
  // There is nothing to do any more at the newest version.
  const Version now = at({})->version;
  EXPECT_EQ(restore_to(now).version, now);
}

TEST_F(RestoreTest, AnyHistory) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_TRUE(store_->remove_tree("/t").ok());
    std::mt19937 random(seed);
    create();
    for (int step = 0; step < 30; ++step) {
      const size_t files = at({})->files.size();
      const auto what = random() % 4;
      if (files == 0 || what == 0) {
        add(fmt::format("f{}", step));
      } else if (what == 1) {
        remove(random() % files);
      } else if (what == 2) {
        delete_row(random() % files, random() % 10);
      } else {
        const auto wanted = static_cast<Version>(random() % static_cast<size_t>(at({})->version));
        restore_to(wanted);
        ASSERT_EQ(files_of(*at({})), files_of(*at(wanted)));
      }
    }
  }
}

TEST_F(RestoreTest, SchemaPropertiesAndClusteringAreThoseOfThen) {
  create({{"my.owner", "ann"}}, {FieldPath{"id"}});
  const std::shared_ptr<const Snapshot> first = at(0);
  auto change = begin();
  Metadata metadata = change.snapshot().metadata;
  Schema wider = change.snapshot().schema;
  wider.fields.push_back(Field{"more", DataType::primitive(TypeId::kTimestampNtz), true, {}});
  metadata.schema_string = print_schema(wider);
  metadata.configuration["my.owner"] = "bob";
  metadata.configuration["delta.columnMapping.maxColumnId"] = "7";
  metadata.description = "new";
  change.set_metadata(metadata);
  DomainMetadata clustering = change.snapshot().domains.at("delta.clustering");
  clustering.configuration = R"({"clusteringColumns":[["name"]]})";
  change.set_domain(clustering);
  commit(change);
  ASSERT_EQ(at({})->protocol.writer_features.count("timestampNtz"), 1u);
  auto progress = begin();
  progress.set_txn("app", 5);
  commit(progress);

  restore_to(0);
  const auto now = at({});
  EXPECT_EQ(print_schema(now->schema), print_schema(first->schema));
  EXPECT_EQ(now->property("my.owner"), "ann");
  EXPECT_EQ(now->property("delta.columnMapping.maxColumnId"), "7");
  EXPECT_FALSE(now->metadata.description);
  EXPECT_EQ(now->metadata.id, first->metadata.id);
  EXPECT_EQ(now->domains.at("delta.clustering").configuration,
            first->domains.at("delta.clustering").configuration);
  EXPECT_EQ(now->protocol.writer_features.count("timestampNtz"), 1u);
  EXPECT_EQ(now->txn_version("app"), 5);
}

// Files that come back have the hidden columns of then.
TEST_F(RestoreTest, NamesOfRowIdColumnsAreThoseOfTheFiles) {
  create();
  const auto first = at(0)->row_id_column();
  ASSERT_TRUE(first);
  const auto rename = [&](const std::string& name) {
    auto change = begin();
    Metadata metadata = change.snapshot().metadata;
    if (name.empty()) {
      metadata.configuration.erase(kRowIdColumnProperty);
    } else {
      metadata.configuration[kRowIdColumnProperty] = name;
    }
    change.set_metadata(metadata);
    commit(change);
  };
  rename("");
  rename("second");
  restore_to(0);
  EXPECT_EQ(at({})->row_id_column(), first);
  rename("second");
  // A version without a name takes none away.
  restore_to(1);
  EXPECT_EQ(at({})->row_id_column(), "second");
}

TEST_F(RestoreTest, MissingFilesAreNamed) {
  create();
  add("a");
  const Version wanted = add("b");
  remove(0);
  remove(0);
  ASSERT_TRUE(store_->remove("/t/a").ok());
  const auto refused = restore(table_, *at(wanted));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "RESTORE_MISSING_FILES");
  EXPECT_THAT(refused.error().message, HasSubstr("version 2"));
  EXPECT_THAT(refused.error().message, HasSubstr("by hand: a."));
  RestoreOptions options;
  options.ignore_missing_files = true;
  EXPECT_EQ(restore_to(wanted, options).num_files, 1);
  ASSERT_EQ(at({})->files.size(), 1u);
  EXPECT_EQ(at({})->files[0].path, "b");
}

TEST_F(RestoreTest, MissingVectorIsAMissingFile) {
  create();
  add("a");
  const Version wanted = delete_row(0, 1);
  remove(0);
  const auto files = store_->list("/t");
  for (const auto& file : *files) {
    if (!file.path.ends_with(".bin")) continue;
    ASSERT_TRUE(store_->remove(file.path).ok());
  }
  EXPECT_EQ(restore(table_, *at(wanted)).error().code, "RESTORE_MISSING_FILES");
  EXPECT_EQ(restore_to(1).num_files, 1);  // before the vector
}

TEST_F(RestoreTest, AppendOnlyTablesOnlyGrow) {
  create({{"delta.appendOnly", "true"}});
  add("a");
  EXPECT_EQ(restore(table_, *at(0)).error().code, "DELTA_CANNOT_MODIFY_APPEND_ONLY");
}

TEST_F(RestoreTest, EveryFailureLeavesOldOrNew) {
  for (const auto mode :
       {storage::FaultMode::kError, storage::FaultMode::kErrorAfter, storage::FaultMode::kStop}) {
    for (int at_call = 1;; ++at_call) {
      ASSERT_TRUE(store_->remove_tree("/t").ok());
      create();
      add("a");
      delete_row(0, 1);
      const auto before = files_of(*at({}));
      const auto after = files_of(*at(1));
      auto faulty = storage::FaultStore::wrap(store_);
      faulty->arm(at_call, mode);
      const auto restored = restore(open_table(faulty), *at(1));
      const auto got = files_of(*at({}));
      if (restored.ok()) {
        EXPECT_EQ(got, after);
      } else {
        EXPECT_THAT(got, ::testing::AnyOf(before, after));
        if (mode == storage::FaultMode::kError) {
          EXPECT_EQ(got, before);
        }
      }
      if (faulty->mutating_calls() < at_call) break;
      ASSERT_LT(at_call, 20);
    }
  }
}

}  // namespace
}  // namespace strandline::delta
