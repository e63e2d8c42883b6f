#include "delta/alter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/features.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

DataType type(TypeId id) { return DataType::primitive(id); }

// id BIGINT, name STRING, s STRUCT<a INT, l ARRAY<STRUCT<x INT, d DATE>>>, m MAP<INT, FLOAT>
Schema nested_schema() {
  const DataType item = DataType::structure(
      {Field{"x", type(TypeId::kInteger), true, {}}, Field{"d", type(TypeId::kDate), true, {}}});
  Schema schema = two_columns();
  schema.fields.push_back(Field{"s",
                                DataType::structure({Field{"a", type(TypeId::kInteger), true, {}},
                                                     Field{"l", DataType::array(item), true, {}}}),
                                true,
                                {}});
  schema.fields.push_back(
      Field{"m", DataType::map(type(TypeId::kInteger), type(TypeId::kFloat)), true, {}});
  return schema;
}

using Properties = std::map<std::string, std::string>;
const Properties kPlain{{"delta.enableDeletionVectors", "false"},
                        {"delta.enableRowTracking", "false"},
                        {"delta.enableInCommitTimestamps", "false"}};

class AlterTest : public ::testing::Test {
 protected:
  void create(Properties properties = {}, std::vector<std::string> partitions = {}) {
    NewTable definition;
    definition.schema = nested_schema();
    definition.partition_columns = std::move(partitions);
    definition.properties = kPlain;
    for (const auto& [key, value] : properties) definition.properties[key] = value;
    auto transaction = Transaction::create(table_, definition);
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    ASSERT_TRUE(transaction->commit_or_error().ok());
  }

  std::shared_ptr<const Snapshot> snapshot() {
    auto result = table_.snapshot();
    EXPECT_TRUE(result.ok());
    return *result;
  }

  // Commits a change; "ok" or the error's code.
  std::string alter(const std::function<Status(Alteration*)>& change) {
    const auto version = commit_alteration(
        table_, {"CHANGE", {}},
        [&](const Snapshot&, Alteration* alteration) { return change(alteration); });
    message_ = version.ok() ? "" : version.error().message;
    return version.ok() ? "ok" : version.error().code;
  }

  Field field(const FieldPath& path) {
    const auto now = snapshot();
    const Field* const found = find_field(now->schema, path);
    EXPECT_NE(found, nullptr) << to_string(path);
    return found == nullptr ? Field{} : *found;
  }

  std::vector<std::string> column_names() {
    std::vector<std::string> names;
    const auto now = snapshot();
    for (const Field& column : now->schema.fields) names.push_back(column.name);
    return names;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
  std::string message_;
};

TEST_F(AlterTest, ColumnsAreAddedAtTheirPlace) {
  create();
  const Field note{"note", type(TypeId::kString), true, {{"comment", R"("why")"}}};
  EXPECT_EQ(alter([&](Alteration* a) {
              return a->add_columns(
                  {{{}, note, FieldPosition::first()},
                   {{"S"}, Field{"b", type(TypeId::kDate), true, {}}, FieldPosition::behind("A")},
                   {{"s", "l", "element"}, Field{"y", type(TypeId::kLong), true, {}}, {}}});
            }),
            "ok")
      << message_;
  EXPECT_THAT(column_names(), ElementsAre("note", "id", "name", "s", "m"));
  EXPECT_EQ(to_sql(field({"s"}).type),
            "STRUCT<a: INT, b: DATE, l: ARRAY<STRUCT<x: INT, d: DATE, y: BIGINT>>>");
  EXPECT_EQ(field({"note"}).metadata.at("comment"), R"("why")");

  const auto add = [&](const FieldPath& parent, Field added, FieldPosition at = {}) {
    return alter([&](Alteration* a) { return a->add_columns({{parent, added, at}}); });
  };
  const Field good{"z", type(TypeId::kLong), true, {}};
  EXPECT_EQ(add({}, Field{"NAME", type(TypeId::kLong), true, {}}), "DELTA_DUPLICATE_COLUMNS_FOUND");
  EXPECT_EQ(add({"s"}, Field{"A", type(TypeId::kLong), true, {}}), "DELTA_DUPLICATE_COLUMNS_FOUND");
  EXPECT_EQ(add({"t"}, good), "DELTA_COLUMN_NOT_FOUND");
  EXPECT_EQ(add({"name"}, good), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT");
  EXPECT_EQ(add({}, good, FieldPosition::behind("nope")), "DELTA_COLUMN_NOT_FOUND");
  EXPECT_EQ(add({}, Field{"z", type(TypeId::kLong), false, {}}), "DELTA_OPERATION_NOT_ALLOWED");
  EXPECT_EQ(add({}, Field{"z z", type(TypeId::kLong), true, {}}),
            "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES");
  EXPECT_THAT(message_, HasSubstr("'delta.columnMapping.mode' = 'name'"));
  Field with_default = good;
  set_default(&with_default, "1");
  EXPECT_EQ(add({}, with_default),
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED");
  EXPECT_EQ(snapshot()->version, 1);
}

TEST_F(AlterTest, RenamingAndDroppingNeedColumnMapping) {
  create({}, {"name"});
  const auto rename = [&](const FieldPath& path, const std::string& to) {
    return alter([&](Alteration* a) { return a->rename_column(path, to); });
  };
  const auto drop = [&](const FieldPath& path) {
    return alter([&](Alteration* a) { return a->drop_columns({path}); });
  };
  EXPECT_EQ(rename({"id"}, "key"), "DELTA_UNSUPPORTED_RENAME_COLUMN");
  EXPECT_THAT(message_, HasSubstr("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"));
  EXPECT_EQ(drop({"id"}), "DELTA_UNSUPPORTED_DROP_COLUMN");

  // The names that the files have stay their physical names.
  EXPECT_EQ(alter([](Alteration* a) {
              return a->set_properties({{"delta.columnMapping.mode", "NAME"}});
            }),
            "ok")
      << message_;
  EXPECT_EQ(snapshot()->column_mapping_mode(), "name");
  EXPECT_EQ(Snapshot::physical_name(field({"s", "l", "element", "x"})), "x");
  EXPECT_EQ(snapshot()->property("delta.columnMapping.maxColumnId"), "8");

  EXPECT_EQ(rename({"NAME"}, "full name"), "ok") << message_;
  EXPECT_EQ(rename({"s", "l", "element", "x"}, "x2"), "ok") << message_;
  EXPECT_EQ(rename({"id"}, "full NAME"), "DELTA_DUPLICATE_COLUMNS_FOUND");
  EXPECT_EQ(rename({"gone"}, "x"), "DELTA_COLUMN_NOT_FOUND");
  EXPECT_THAT(column_names(), ElementsAre("id", "full name", "s", "m"));
  EXPECT_THAT(snapshot()->metadata.partition_columns, ElementsAre("full name"));
  EXPECT_EQ(Snapshot::physical_name(field({"full name"})), "name");
  EXPECT_EQ(Snapshot::physical_name(field({"s", "l", "element", "x2"})), "x");

  EXPECT_EQ(drop({"full name"}), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN");
  EXPECT_EQ(drop({"m"}), "ok");
  EXPECT_EQ(drop({"s", "a"}), "ok");
  EXPECT_EQ(drop({"s", "l"}), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA");
  EXPECT_EQ(drop({"s"}), "ok");
  EXPECT_EQ(drop({"id"}), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA");
  // A column of an old name is a new column.
  EXPECT_EQ(alter([](Alteration* a) {
              return a->add_columns({{{}, Field{"m", type(TypeId::kLong), true, {}}, {}}});
            }),
            "ok");
  EXPECT_THAT(Snapshot::physical_name(field({"m"})), StartsWith("col-"));
  EXPECT_EQ(field({"m"}).metadata.at("delta.columnMapping.id"), "9");
}

TEST_F(AlterTest, MappingModesChangeOneWay) {
  const auto set_mode = [&](const std::string& mode) {
    return alter(
        [&](Alteration* a) { return a->set_properties({{"delta.columnMapping.mode", mode}}); });
  };
  create();
  EXPECT_EQ(set_mode("id"), "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE");
  EXPECT_EQ(set_mode("name"), "ok");
  EXPECT_EQ(set_mode("none"), "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE");
  EXPECT_EQ(
      alter([](Alteration* a) { return a->unset_properties({"delta.columnMapping.mode"}, false); }),
      "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE");
  EXPECT_EQ(alter([](Alteration* a) {
              return a->set_properties({{"delta.columnMapping.maxColumnId", "1"}});
            }),
            "DELTA_CANNOT_MODIFY_TABLE_PROPERTY");
}

TEST_F(AlterTest, TypesWiden) {
  create();
  const auto widen = [&](const FieldPath& path, const DataType& to) {
    return alter([&](Alteration* a) { return a->change_type(path, to); });
  };
  EXPECT_EQ(widen({"s", "a"}, type(TypeId::kLong)), "DELTA_ALTER_TABLE_CHANGE_TYPE_NOT_ENABLED");
  EXPECT_EQ(alter([](Alteration* a) {
              return a->set_properties({{"delta.enableTypeWidening", "true"}});
            }),
            "ok");
  EXPECT_TRUE(supports(snapshot()->protocol, "typeWidening"));
  EXPECT_EQ(widen({"s", "a"}, type(TypeId::kLong)), "ok") << message_;
  EXPECT_EQ(field({"s", "a"}).metadata.at("delta.typeChanges"),
            R"([{"toType":"long","fromType":"integer"}])");
  EXPECT_EQ(widen({"s", "l", "element", "d"}, type(TypeId::kTimestampNtz)), "ok");
  EXPECT_EQ(to_sql(field({"s"}).type),
            "STRUCT<a: BIGINT, l: ARRAY<STRUCT<x: INT, d: TIMESTAMP_NTZ>>>");
  EXPECT_TRUE(supports(snapshot()->protocol, "timestampNtz"));
  EXPECT_EQ(widen({"m", "key"}, type(TypeId::kLong)), "ok");
  EXPECT_EQ(widen({"m"}, DataType::map(type(TypeId::kLong), type(TypeId::kDouble))), "ok");
  EXPECT_EQ(field({"m"}).metadata.at("delta.typeChanges"),
            R"([{"toType":"long","fromType":"integer","fieldPath":"key"},)"
            R"({"toType":"double","fromType":"float","fieldPath":"value"}])");
  const Version version = snapshot()->version;
  EXPECT_EQ(widen({"id"}, type(TypeId::kLong)), "ok");
  EXPECT_EQ(snapshot()->version, version);

  EXPECT_EQ(widen({"id"}, type(TypeId::kInteger)), "DELTA_CANNOT_CHANGE_DATA_TYPE");
  EXPECT_EQ(widen({"name"}, type(TypeId::kLong)), "DELTA_CANNOT_CHANGE_DATA_TYPE");
  EXPECT_EQ(widen({"id"}, DataType::decimal(19, 0)), "DELTA_CANNOT_CHANGE_DATA_TYPE");
  EXPECT_EQ(widen({"id"}, DataType::decimal(20, 0)), "ok");
}

TEST_F(AlterTest, NullabilityCommentsAndOrder) {
  create();
  const auto status = alter([](Alteration* a) -> Status {
    SL_TRY(a->set_not_null({"s", "a"}));
    EXPECT_TRUE(a->depends_on_rows());
    SL_TRY(a->change_comment({"id"}, "the key"));
    SL_TRY(a->move_column({"m"}, FieldPosition::first()));
    SL_TRY(a->move_column({"s", "a"}, FieldPosition::behind("l")));
    return a->change_default({"name"}, "'none'");
  });
  EXPECT_EQ(status, "ok") << message_;
  EXPECT_THAT(column_names(), ElementsAre("m", "id", "name", "s"));
  EXPECT_FALSE(field({"s", "a"}).nullable);
  EXPECT_EQ((*field({"s"}).type.fields)[1].name, "a");
  EXPECT_EQ(field({"id"}).metadata.at("comment"), R"("the key")");
  EXPECT_TRUE(supports(snapshot()->protocol, "allowColumnDefaults"));
  EXPECT_EQ(table_rules(snapshot()->metadata, snapshot()->schema)->find("NAME")->default_sql,
            "'none'");
  EXPECT_EQ(alter([](Alteration* a) -> Status {
              SL_TRY(a->set_nullable({"s", "a"}));
              SL_TRY(a->change_default({"name"}, std::nullopt));
              return a->change_comment({"id"}, std::nullopt);
            }),
            "ok");
  EXPECT_TRUE(field({"s", "a"}).nullable);
  EXPECT_TRUE(table_rules(snapshot()->metadata, snapshot()->schema)->empty());
  EXPECT_EQ(alter([](Alteration* a) { return a->set_not_null({"s", "l", "element", "x"}); }),
            "DELTA_NESTED_NOT_NULL_CONSTRAINT");
}

TEST_F(AlterTest, ConstraintsGuardTheirColumns) {
  create({{"delta.columnMapping.mode", "name"}});
  EXPECT_EQ(alter([](Alteration* a) { return a->add_constraint("Positive", "`id` > 0 + s.a"); }),
            "ok");
  EXPECT_EQ(snapshot()->property("delta.constraints.positive"), "`id` > 0 + s.a");
  EXPECT_TRUE(supports(snapshot()->protocol, "checkConstraints"));
  EXPECT_EQ(alter([](Alteration* a) { return a->add_constraint("POSITIVE", "true"); }),
            "DELTA_CONSTRAINT_ALREADY_EXISTS");
  EXPECT_EQ(alter([](Alteration* a) { return a->rename_column({"id"}, "i"); }),
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE");
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_columns({{"s", "a"}}); }),
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE");
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_columns({{"name"}}); }), "ok");
  EXPECT_EQ(
      alter([](Alteration* a) { return a->set_properties({{"delta.constraints.x", "true"}}); }),
      "DELTA_ADD_CONSTRAINTS");
  EXPECT_TRUE(Transaction::begin(table_, snapshot()).ok());
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_constraint("positive", false); }), "ok");
  EXPECT_TRUE(Transaction::begin(table_, snapshot()).ok());
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_constraint("positive", false); }),
            "DELTA_CONSTRAINT_DOES_NOT_EXIST");
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_constraint("positive", true); }), "ok");
}

TEST_F(AlterTest, ClusteringIsByPhysicalNames) {
  create({{"delta.columnMapping.mode", "id"}});
  EXPECT_EQ(alter([](Alteration* a) { return a->set_clustering({{"ID"}, {"s", "a"}}); }), "ok")
      << message_;
  EXPECT_TRUE(supports(snapshot()->protocol, "clustering"));
  const std::string id = Snapshot::physical_name(field({"id"}));
  EXPECT_THAT(clustering_columns(snapshot()->domains),
              ElementsAre(FieldPath{id}, FieldPath{Snapshot::physical_name(field({"s"})),
                                                   Snapshot::physical_name(field({"s", "a"}))}));
  EXPECT_EQ(alter([](Alteration* a) { return a->drop_columns({{"s"}}); }),
            "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN");
  EXPECT_EQ(alter([](Alteration* a) { return a->rename_column({"id"}, "key"); }), "ok");
  EXPECT_EQ(clustering_columns(snapshot()->domains)[0], FieldPath{id});
  EXPECT_EQ(alter([](Alteration* a) { return a->set_clustering({}); }), "ok");
  EXPECT_TRUE(clustering_columns(snapshot()->domains).empty());
  EXPECT_EQ(alter([](Alteration* a) { return a->set_clustering({{"m"}}); }),
            "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED");
}

TEST_F(AlterTest, SchemasMerge) {
  create({{"delta.columnMapping.mode", "name"}, {"delta.enableTypeWidening", "true"}});
  const std::string known = Snapshot::physical_name(field({"s", "a"}));
  Schema incoming;
  // Ids of another table's columns mean nothing here.
  incoming.fields.push_back(
      Field{"NEW",
            type(TypeId::kDate),
            false,
            {{"delta.columnMapping.id", "1"}, {"delta.columnMapping.physicalName", R"("id")"}}});
  incoming.fields.push_back(Field{"s",
                                  DataType::structure({Field{"b", type(TypeId::kString), true, {}},
                                                       Field{"A", type(TypeId::kLong), true, {}}}),
                                  true,
                                  {}});
  incoming.fields.push_back(Field{"id", type(TypeId::kInteger), true, {}});
  EXPECT_EQ(alter([&](Alteration* a) { return a->merge_schema(incoming); }), "ok") << message_;
  EXPECT_THAT(column_names(), ElementsAre("id", "name", "s", "m", "NEW"));
  EXPECT_TRUE(field({"new"}).nullable);
  EXPECT_THAT(Snapshot::physical_name(field({"new"})), StartsWith("col-"));
  EXPECT_EQ(field({"new"}).metadata.at("delta.columnMapping.id"), "10");
  EXPECT_EQ(to_sql(field({"s"}).type),
            "STRUCT<a: BIGINT, l: ARRAY<STRUCT<x: INT, d: DATE>>, b: STRING>");
  EXPECT_EQ(Snapshot::physical_name(field({"s", "a"})), known);
  EXPECT_EQ(field({"s", "a"}).metadata.at("delta.typeChanges"),
            R"([{"toType":"long","fromType":"integer"}])");
  EXPECT_EQ(to_sql(field({"id"}).type), "BIGINT");

  incoming.fields = {Field{"s", type(TypeId::kLong), true, {}}};
  EXPECT_EQ(alter([&](Alteration* a) { return a->merge_schema(incoming); }),
            "DELTA_FAILED_TO_MERGE_FIELDS");
  // Integers do not become decimals by themselves.
  incoming.fields = {Field{"id", DataType::decimal(20, 0), true, {}}};
  EXPECT_EQ(alter([&](Alteration* a) { return a->merge_schema(incoming); }), "ok");
  EXPECT_EQ(to_sql(field({"id"}).type), "BIGINT");
}

TEST_F(AlterTest, SetSchemaKeepsIdsAndGivesNewOnes) {
  create({{"delta.columnMapping.mode", "name"}});
  const Field before = field({"name"});
  auto transaction = Transaction::begin(table_, snapshot());
  Schema next = two_columns();  // as a plan makes it: names and types
  next.fields.push_back(Field{"extra", type(TypeId::kLong), true, {}});
  transaction->set_schema(next);
  ASSERT_TRUE(transaction->commit_or_error().ok());
  EXPECT_EQ(field({"name"}).metadata, before.metadata);
  EXPECT_THAT(Snapshot::physical_name(field({"extra"})), StartsWith("col-"));
  EXPECT_EQ(snapshot()->property("delta.columnMapping.maxColumnId"), "9");
}

TEST_F(AlterTest, PropertiesBringTheirFeatures) {
  create();
  EXPECT_EQ(alter([](Alteration* a) {
              return a->set_properties({{"delta.enableDeletionVectors", "TRUE"},
                                        {"delta.enableChangeDataFeed", "true"},
                                        {"delta.checkpointPolicy", "v2"},
                                        {"delta.feature.vacuumProtocolCheck", "supported"},
                                        {"mine", "x"}});
            }),
            "ok")
      << message_;
  for (const char* feature :
       {"deletionVectors", "changeDataFeed", "v2Checkpoint", "vacuumProtocolCheck", "invariants"}) {
    EXPECT_TRUE(supports(snapshot()->protocol, feature)) << feature;
  }
  EXPECT_EQ(snapshot()->property("delta.feature.vacuumProtocolCheck"), std::nullopt);
  EXPECT_TRUE(snapshot()->deletion_vectors_enabled());
  EXPECT_EQ(alter([](Alteration* a) { return a->unset_properties({"mine"}, false); }), "ok");
  EXPECT_EQ(alter([](Alteration* a) { return a->unset_properties({"mine"}, false); }),
            "DELTA_UNSET_NON_EXISTENT_PROPERTY");
  const Version version = snapshot()->version;
  EXPECT_EQ(alter([](Alteration* a) { return a->unset_properties({"mine"}, true); }), "ok");
  EXPECT_EQ(snapshot()->version, version);
  EXPECT_EQ(alter([](Alteration* a) { return a->set_properties({{"delta.nope", "1"}}); }),
            "DELTA_UNKNOWN_CONFIGURATION");
  EXPECT_EQ(alter([](Alteration* a) {
              return a->set_properties({{"delta.feature.unheardOf", "supported"}});
            }),
            "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
}

TEST_F(AlterTest, InCommitTimestampsRememberWhenTheyBegan) {
  create();
  const auto set = [&](const char* value) {
    return alter([&](Alteration* a) {
      return a->set_properties({{"delta.enableInCommitTimestamps", value}});
    });
  };
  EXPECT_EQ(set("true"), "ok");
  EXPECT_EQ(snapshot()->property("delta.inCommitTimestampEnablementVersion"), "1");
  EXPECT_EQ(snapshot()->property("delta.inCommitTimestampEnablementTimestamp"),
            std::to_string(snapshot()->timestamp_ms));
  EXPECT_EQ(set("false"), "ok");
  EXPECT_EQ(snapshot()->property("delta.inCommitTimestampEnablementVersion"), std::nullopt);
}

TEST_F(AlterTest, RowTrackingGivesOldFilesTheirIdsFirst) {
  create();
  auto append = Transaction::begin(table_, snapshot());
  append->add_file(data_file("a.parquet", 10));
  append->add_file(data_file("b.parquet", 5));
  ASSERT_TRUE(append->commit_or_error().ok());
  const auto enable = [](Alteration* a) {
    return a->set_properties({{"delta.enableRowTracking", "true"}});
  };
  EXPECT_EQ(alter(enable), "ok") << message_;
  const auto now = snapshot();
  EXPECT_TRUE(now->row_tracking_enabled());
  EXPECT_THAT(*now->row_id_column(), StartsWith("_row-id-col-"));
  EXPECT_EQ(now->files[0].base_row_id, 0);
  EXPECT_EQ(now->files[1].base_row_id, 10);
  EXPECT_EQ(now->row_id_high_water_mark(), 14);
  // Protocol, row ids, property: each a commit, and no row is new in any.
  EXPECT_EQ(now->version, 4);
  const auto backfill = table_.commit(3);
  ASSERT_TRUE(backfill.ok());
  for (const Action& action : *backfill) {
    if (const auto* const add = std::get_if<AddFile>(&action)) {
      EXPECT_FALSE(add->data_change);
    }
  }
  EXPECT_EQ(alter(enable), "ok");
  EXPECT_EQ(snapshot()->version, 4);
}

TEST_F(AlterTest, RowTrackingNeedsRowCounts) {
  create();
  auto append = Transaction::begin(table_, snapshot());
  AddFile file = data_file("a.parquet");
  file.stats.reset();
  append->add_file(file);
  ASSERT_TRUE(append->commit_or_error().ok());
  const auto enable = [](Alteration* a) {
    return a->set_properties({{"delta.enableRowTracking", "true"}});
  };
  // An encrypted file does not tell.
  ASSERT_TRUE(store_->put("/t/a.parquet", parquet_bytes(9, false, "PARE")).ok());
  EXPECT_EQ(alter(enable), "DELTA_ROW_TRACKING_BACKFILL_WITHOUT_STATS");
  EXPECT_THAT(message_, HasSubstr("a.parquet"));
  ASSERT_TRUE(store_->put("/t/a.parquet", parquet_bytes(9)).ok());
  EXPECT_EQ(alter(enable), "ok");
  EXPECT_EQ(snapshot()->row_id_high_water_mark(), 8);
  EXPECT_EQ(num_records(snapshot()->files.at(0)), 9);
}

TEST(IdentityRuleTest, GoesBeyondValuesOnItsOwnSteps) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const auto mark = [](int64_t start, int64_t step, int64_t value,
                       std::optional<int64_t> before = {}) -> std::optional<int64_t> {
    IdentityRule rule{start, step, true, before};
    if (!rule.go_beyond(value).ok()) return -999;
    return rule.high_water_mark;
  };
  EXPECT_EQ(mark(1, 3, 50), 52);
  EXPECT_EQ(mark(1, 3, 52), 52);
  EXPECT_EQ(mark(1, 3, 1), 1);
  EXPECT_EQ(mark(1, 3, 0), std::nullopt);
  EXPECT_EQ(mark(1, 3, 50, 100), 100);
  EXPECT_EQ(mark(1, 3, 50, 7), 52);
  EXPECT_EQ(mark(-1, -3, -8), -10);
  EXPECT_EQ(mark(-1, -3, 70), std::nullopt);
  EXPECT_EQ(mark(-1, -3, -8, -100), -100);
  EXPECT_EQ(mark(kMin, 1, kMax), kMax);
  EXPECT_EQ(mark(kMax, -1, kMin), kMin);
  EXPECT_EQ(mark(kMin, kMax, kMax), -999);  // the next step after kMax - 1 is too far
  EXPECT_EQ(mark(0, kMin, kMin), kMin);
  EXPECT_EQ(mark(0, kMin, -1), kMin);
}

TEST_F(AlterTest, LostRacesRunAgain) {
  create();
  int runs = 0;
  EXPECT_EQ(alter([&](Alteration* a) -> Status {
              if (++runs == 1) {
                auto other = Transaction::begin(table_, snapshot());
                Metadata metadata = snapshot()->metadata;
                metadata.configuration["theirs"] = "1";
                other->set_metadata(metadata);
                EXPECT_TRUE(other->commit_or_error().ok());
              }
              return a->set_properties({{"ours", "2"}});
            }),
            "ok");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(snapshot()->property("theirs"), "1");
  EXPECT_EQ(snapshot()->property("ours"), "2");
}

TEST(ColumnRules, AreReadFromTheLog) {
  Schema schema = nested_schema();
  schema.fields[0].metadata = {{"delta.identity.start", "10"},
                               {"delta.identity.step", "-2"},
                               {"delta.identity.highWaterMark", "4"},
                               {"delta.identity.allowExplicitInsert", "true"}};
  schema.fields[1].metadata = {
      {"delta.generationExpression", json_string("concat('a', m['x'])")},
      {"delta.invariants", json_string(R"({"expression":{"expression":"name <> ''"}})")}};
  Metadata metadata;
  metadata.configuration["delta.constraints.c1"] = "id > 0";
  const auto rules = table_rules(metadata, schema);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_TRUE(rules->constrain_values());
  ASSERT_EQ(rules->columns.size(), 2u);
  EXPECT_EQ(rules->find("ID")->identity->next().value(), 2);
  EXPECT_TRUE(rules->find("id")->identity->allow_explicit_insert);
  EXPECT_EQ(rules->find("name")->generated_sql, "concat('a', m['x'])");
  EXPECT_EQ(rules->find("name")->invariant_sql, "name <> ''");
  ASSERT_EQ(rules->checks.size(), 1u);
  EXPECT_EQ(rules->checks[0].name, "c1");

  schema.fields[1].metadata = {{"delta.invariants", R"("{}")"}};
  EXPECT_EQ(table_rules(metadata, schema).error().code, "DELTA_INVALID_COLUMN_RULE");
  IdentityRule last{1, 1, false, INT64_MAX};
  EXPECT_EQ(last.next().error().code, "DELTA_IDENTITY_COLUMN_EXHAUSTED");
  EXPECT_THAT(words_of_sql("`a``b` + c1 <> 'x' AND f(\"y\", größe)"),
              ElementsAre("a`b", "c1", "AND", "f", "größe"));
}

TEST(FieldPaths, Text) {
  EXPECT_EQ(to_string({"a", "b c", "d`e"}), "a.`b c`.`d``e`");
  EXPECT_THAT(parse_column_list("a, `b.c`.d"), ElementsAre(FieldPath{"a"}, FieldPath{"b.c", "d"}));
}

}  // namespace
}  // namespace strandline::delta
