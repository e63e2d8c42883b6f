#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delta/properties.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

NewTable with(std::map<std::string, std::string> properties) {
  NewTable table;
  table.schema = two_columns();
  table.properties = std::move(properties);
  return table;
}

const std::map<std::string, std::string> kAllOff{{"delta.enableDeletionVectors", "false"},
                                                 {"delta.enableRowTracking", "FALSE"},
                                                 {"delta.enableInCommitTimestamps", "false"}};

std::map<std::string, std::string> all_off_and(const std::string& key, const std::string& value) {
  std::map<std::string, std::string> properties = kAllOff;
  properties[key] = value;
  return properties;
}

TEST(DefineTable, DefaultsAreModern) {
  const auto table = define_table(with({{"mine", "x"}}));
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->protocol.min_reader_version, 3);
  EXPECT_EQ(table->protocol.min_writer_version, 7);
  EXPECT_THAT(table->protocol.reader_features, ElementsAre("deletionVectors"));
  EXPECT_THAT(table->protocol.writer_features,
              ElementsAre("appendOnly", "deletionVectors", "domainMetadata", "inCommitTimestamp",
                          "invariants", "rowTracking"));
  const auto& configuration = table->metadata.configuration;
  EXPECT_EQ(configuration.at("delta.enableRowTracking"), "true");
  EXPECT_EQ(configuration.at("mine"), "x");
  EXPECT_THAT(configuration.at("delta.rowTracking.materializedRowIdColumnName"),
              HasSubstr("_row-id-col-"));
  EXPECT_THAT(configuration.at("delta.rowTracking.materializedRowCommitVersionColumnName"),
              HasSubstr("_row-commit-version-col-"));
  EXPECT_EQ(table->metadata.id.size(), 36u);
}

TEST(DefineTable, EverythingOffIsLegacy) {
  const auto table = define_table(with(kAllOff));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->protocol.min_reader_version, 1);
  EXPECT_EQ(table->protocol.min_writer_version, 2);
  EXPECT_EQ(table->metadata.configuration.at("delta.enableRowTracking"), "false");
  EXPECT_EQ(table->metadata.configuration.count("delta.rowTracking.materializedRowIdColumnName"),
            0u);
}

TEST(DefineTable, LowestProtocolForEachProperty) {
  const auto protocol = [](const NewTable& table) { return define_table(table)->protocol; };
  EXPECT_THAT(protocol(with(all_off_and("delta.enableChangeDataFeed", "true"))).writer_features,
              ElementsAre("appendOnly", "changeDataFeed", "invariants"));
  EXPECT_EQ(protocol(with(all_off_and("delta.enableChangeDataFeed", "true"))).min_reader_version,
            1);
  EXPECT_EQ(protocol(with(all_off_and("delta.appendOnly", "true"))).min_writer_version, 2);
  EXPECT_THAT(protocol(with(all_off_and("delta.checkpointPolicy", "v2"))).reader_features,
              ElementsAre("v2Checkpoint"));
  EXPECT_EQ(protocol(with(all_off_and("delta.feature.vacuumProtocolCheck", "supported")))
                .reader_features.count("vacuumProtocolCheck"),
            1u);
  NewTable ntz = with(kAllOff);
  ntz.schema.fields.push_back(
      Field{"l", DataType::array(DataType::primitive(TypeId::kTimestampNtz)), true, {}});
  EXPECT_THAT(protocol(ntz).reader_features, ElementsAre("timestampNtz"));
}

std::string problem(const NewTable& table) {
  const auto result = define_table(table);
  return result.ok() ? "ok" : result.error().code + ": " + result.error().message;
}

TEST(DefineTable, PropertiesAreChecked) {
  EXPECT_THAT(problem(with({{"delta.enableDeletionVector", "true"}})),
              HasSubstr("DELTA_UNKNOWN_CONFIGURATION"));
  EXPECT_THAT(problem(with({{"delta.appendOnly", "yes"}})), HasSubstr("must be true or false"));
  EXPECT_THAT(problem(with({{"delta.checkpointInterval", "0"}})), HasSubstr("from 1 on"));
  EXPECT_THAT(problem(with({{"delta.isolationLevel", "Snapshot"}})),
              HasSubstr("Serializable WriteSerializable"));
  EXPECT_THAT(problem(with({{"delta.logRetentionDuration", "soon"}})),
              HasSubstr("interval 7 days"));
  EXPECT_THAT(problem(with({{"delta.enableIcebergCompatV2", "true"}})),
              HasSubstr("icebergCompatV2"));
  EXPECT_EQ(problem(with({{"delta.enableIcebergCompatV2", "false"}})), "ok");
  EXPECT_THAT(problem(with({{"delta.columnMapping.mode", "names"}})), HasSubstr("none name id"));
  EXPECT_THAT(problem(with({{"delta.feature.nonsense", "supported"}})), HasSubstr("nonsense"));
  EXPECT_THAT(problem(with({{"delta.minReaderVersion", "2"}})), HasSubstr("cannot be set"));
  EXPECT_EQ(problem(with({{"delta.isolationLevel", "writeserializable"}})), "ok");
}

TEST(DefineTable, ColumnsAreChecked) {
  NewTable table = with({});
  table.schema.fields.push_back(Field{"NAME", DataType::primitive(TypeId::kLong), true, {}});
  EXPECT_THAT(problem(table), HasSubstr("'name' and 'NAME' differ only in case"));
  table = with({});
  table.schema.fields[0].name = "a b";
  EXPECT_THAT(problem(table), HasSubstr("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"));
  table = with({});
  table.schema.fields[0].type = DataType::array(DataType::primitive(TypeId::kVoid));
  EXPECT_THAT(problem(table), HasSubstr("column id.element has type VOID"));
  table = with({});
  table.schema.fields.clear();
  EXPECT_THAT(problem(table), HasSubstr("at least one column"));
}

std::string physical(const Schema& schema, const std::string& name) {
  return Snapshot::physical_name(*schema.get(name));
}

TEST(DefineTable, ColumnMapping) {
  NewTable table = with({{"delta.columnMapping.mode", "name"}});
  table.schema.fields[0].name = "a b";
  // What a copied column knows of another table's files is nothing here.
  table.schema.fields[1].metadata = {{"delta.columnMapping.id", "7"},
                                     {"delta.columnMapping.physicalName", R"("other")"},
                                     {"comment", R"("kept")"}};
  const DataType inner =
      DataType::structure({Field{"x", DataType::primitive(TypeId::kLong), true, {}}});
  table.schema.fields.push_back(Field{"m", DataType::map(inner, DataType::array(inner)), true, {}});
  table.clustering_columns = {FieldPath{"name"}};
  const auto made = define_table(table);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->protocol.reader_features.count("columnMapping"), 1u);
  const Schema& schema = made->schema;
  EXPECT_EQ(print_schema(schema), made->metadata.schema_string);
  EXPECT_EQ(made->metadata.configuration.at("delta.columnMapping.maxColumnId"), "5");
  EXPECT_EQ(schema.fields[0].metadata.at("delta.columnMapping.id"), "1");
  EXPECT_EQ(schema.fields[1].metadata.at("delta.columnMapping.id"), "2");
  EXPECT_EQ(schema.fields[1].metadata.at("comment"), R"("kept")");
  EXPECT_THAT(physical(schema, "a b"), StartsWith("col-"));
  const DataType& map = schema.fields[2].type;
  EXPECT_EQ((*map.key->fields)[0].metadata.at("delta.columnMapping.id"), "4");
  const Field& deepest = (*map.element->element->fields)[0];
  EXPECT_EQ(deepest.metadata.at("delta.columnMapping.id"), "5");
  EXPECT_THAT(Snapshot::physical_name(deepest), StartsWith("col-"));
  EXPECT_EQ(made->domains[0].configuration,
            "{\"clusteringColumns\":[[\"" + physical(schema, "name") + "\"]]}");

  // A table that replaces another goes on with its ids.
  table.last_column_id = 40;
  EXPECT_EQ(define_table(table)->schema.fields[0].metadata.at("delta.columnMapping.id"), "41");
}

TEST(DefineTable, VoidColumnsAreInNoFile) {
  NewTable table = with({});
  table.schema.fields.push_back(Field{"v", DataType::primitive(TypeId::kVoid), true, {}});
  EXPECT_EQ(problem(table), "ok");
  table.partition_columns = {"v"};
  EXPECT_THAT(problem(table), HasSubstr("VOID"));
  table.partition_columns = {};
  table.schema.fields.erase(table.schema.fields.begin(), table.schema.fields.end() - 1);
  EXPECT_THAT(problem(table), HasSubstr("every column is VOID"));
}

TEST(DefineTable, PartitionsAndClustering) {
  NewTable table = with({});
  table.partition_columns = {"NAME"};
  EXPECT_THAT(define_table(table)->metadata.partition_columns, ElementsAre("name"));
  table.partition_columns = {"nope"};
  EXPECT_THAT(problem(table), HasSubstr("partition column 'nope'"));
  table.partition_columns = {"id", "name"};
  EXPECT_THAT(problem(table), HasSubstr("every column is a partition column"));

  table.partition_columns = {};
  table.clustering_columns = {FieldPath{"ID"}};
  const auto clustered = define_table(table);
  ASSERT_TRUE(clustered.ok());
  ASSERT_EQ(clustered->domains.size(), 1u);
  EXPECT_EQ(clustered->domains[0].domain, "delta.clustering");
  EXPECT_EQ(clustered->domains[0].configuration, R"({"clusteringColumns":[["id"]]})");
  EXPECT_EQ(clustered->protocol.writer_features.count("clustering"), 1u);
  table.schema.fields.push_back(
      Field{"s",
            DataType::structure({Field{"X", DataType::primitive(TypeId::kLong), true, {}}}),
            true,
            {}});
  table.clustering_columns = {FieldPath{"S", "x"}};
  EXPECT_EQ(define_table(table)->domains[0].configuration, R"({"clusteringColumns":[["s","X"]]})");
  table.clustering_columns = {FieldPath{"s"}};
  EXPECT_THAT(problem(table), HasSubstr("only plain types"));
  table.clustering_columns = {FieldPath{"id"}};
  table.partition_columns = {"name"};
  EXPECT_THAT(problem(table), HasSubstr("either"));
}

TEST(Properties, Intervals) {
  EXPECT_EQ(parse_interval_ms("interval 7 days"), 7 * 86'400'000ll);
  EXPECT_EQ(parse_interval_ms("1 week 2 Hours"), 612'000'000);
  EXPECT_EQ(parse_interval_ms("INTERVAL 1 second"), 1000);
  EXPECT_EQ(parse_interval_ms("7"), std::nullopt);
  EXPECT_EQ(parse_interval_ms("interval"), std::nullopt);
  EXPECT_EQ(parse_interval_ms("-1 days"), std::nullopt);
  EXPECT_EQ(parse_interval_ms("2 months"), std::nullopt);
  EXPECT_EQ(parse_interval_ms("9000000000000000 weeks"), std::nullopt);
}

}  // namespace
}  // namespace strandline::delta
