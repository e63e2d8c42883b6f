#include "delta/action_json.h"

#include <gtest/gtest.h>

#include "delta/data_path.h"
#include "delta/snapshot.h"

namespace strandline::delta {
namespace {

std::string round_trip(const std::string& line) {
  const auto actions = parse_actions(line, "test");
  if (!actions.ok()) return actions.error().message;
  std::string text;
  for (const Action& action : *actions) text += print_action(action);
  return text;
}

TEST(ActionJson, EveryActionSurvives) {
  for (
      const char* line : {
          R"({"add":{"path":"p=a%2520b/x.parquet","partitionValues":{"p":"a%20b","q":null},"size":10,"modificationTime":5,"dataChange":false,"stats":"{\"numRecords\":3}","tags":{"k":"v"},"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":36,"cardinality":2},"baseRowId":7,"defaultRowCommitVersion":2,"clusteringProvider":"liquid"}})",
          R"({"remove":{"path":"x","deletionTimestamp":1,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":10,"deletionVector":{"storageType":"i","pathOrInlineDv":"wi5b=","sizeInBytes":4,"cardinality":1},"baseRowId":1,"defaultRowCommitVersion":0}})",
          R"({"cdc":{"path":"_change_data/x","partitionValues":{},"size":1,"dataChange":false}})",
          R"({"txn":{"appId":"a\"b","version":3,"lastUpdated":9}})",
          R"({"domainMetadata":{"domain":"d","configuration":"{}","removed":true}})",
          R"({"protocol":{"minReaderVersion":1,"minWriterVersion":2}})",
          R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["appendOnly","deletionVectors"]}})",
          R"({"metaData":{"id":"i","name":"n","description":"d","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["p"],"configuration":{"a":"b"},"createdTime":4}})",
          R"({"commitInfo":{"inCommitTimestamp":5,"timestamp":4,"operation":"MERGE","operationParameters":{"a":"[]","b":{"x":1.0}},"readVersion":1,"isolationLevel":"Serializable","isBlindAppend":false,"operationMetrics":{"numTargetRowsInserted":"1"},"tags":{"t":"u"},"engineInfo":"e","txnId":"x"}})",
      }) {
    EXPECT_EQ(round_trip(line), line);
  }
}

TEST(ActionJson, UnknownThingsAreSkipped) {
  const auto actions = parse_actions(
      "{\"newAction\":{\"x\":1}}\n\n{\"txn\":{\"appId\":\"a\",\"version\":1,\"later\":[1]},"
      "\"other\":null}\r\n"
      "{\"add\":null}\n{\"checkpointMetadata\":{\"version\":1}}",
      "test");
  ASSERT_TRUE(actions.ok()) << actions.error().message;
  ASSERT_EQ(actions->size(), 1u);
  EXPECT_EQ(std::get<Txn>((*actions)[0]).app_id, "a");
}

TEST(ActionJson, EmptyPartitionValuesAreNull) {
  const auto actions =
      parse_actions(R"({"add":{"path":"x","partitionValues":{"p":""},"size":1}})", "test");
  EXPECT_EQ(std::get<AddFile>((*actions)[0]).partition_values.at("p"), std::nullopt);
}

TEST(ActionJson, SidecarsAreCollected) {
  std::vector<std::string> sidecars;
  ASSERT_TRUE(
      parse_actions(R"({"sidecar":{"path":"a.parquet","sizeInBytes":1}})", "test", &sidecars).ok());
  EXPECT_EQ(sidecars, std::vector<std::string>{"a.parquet"});
}

TEST(ActionJson, DamageNamesFileLineAndField) {
  const auto cut =
      parse_actions("{\"txn\":{\"appId\":\"a\",\"version\":1}}\n{\"add\":{\"pa", "7.json");
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(cut.error().message.find("line 2 of 7.json"), std::string::npos) << cut.error().message;
  EXPECT_NE(round_trip(R"({"add":{"path":1}})").find("add.path is not a string"),
            std::string::npos);
  EXPECT_NE(round_trip(R"({"add":{"size":1}})").find("add.path is missing"), std::string::npos);
  EXPECT_NE(
      round_trip(R"({"metaData":{"schemaString":"{}","format":{"provider":"orc"}}})").find("orc"),
      std::string::npos);
}

TEST(SchemaJson, RoundTrips) {
  const std::string text =
      R"x({"type":"struct","fields":[{"name":"a","type":"long","nullable":false,"metadata":{"delta.columnMapping.id":1,"comment":"x"}},{"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{}},{"name":"s","type":{"type":"struct","fields":[{"name":"l","type":{"type":"array","elementType":"timestamp_ntz","containsNull":false},"nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},{"name":"m","type":{"type":"map","keyType":"string","valueType":"void","valueContainsNull":true},"nullable":true,"metadata":{}}]})x";
  const auto schema = parse_schema(text);
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_EQ(schema->fields[0].metadata.at("delta.columnMapping.id"), "1");
  EXPECT_EQ(schema->fields[0].metadata.at("comment"), "\"x\"");
  const auto again = parse_schema(print_schema(*schema));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(print_schema(*again), print_schema(*schema));
  EXPECT_EQ(to_sql(schema->fields[2].type), "STRUCT<l: ARRAY<TIMESTAMP_NTZ>>");
  EXPECT_FALSE(schema->fields[0].nullable);
}

TEST(SchemaJson, UnknownTypesAreNamed) {
  const auto schema = parse_schema(
      R"x({"type":"struct","fields":[{"name":"g","type":"geometry(OGC:CRS84)","nullable":true,"metadata":{}}]})x");
  ASSERT_FALSE(schema.ok());
  EXPECT_EQ(schema.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(schema.error().message.find("geometry"), std::string::npos);
  EXPECT_EQ(parse_schema("{}").error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(parse_schema(R"x({"fields":[{"name":"d","type":"decimal(39,2)"}]})x").error().kind,
            ErrorKind::kCorrupt);
}

TEST(DataPath, ResolvesOnceAndStaysInside) {
  const auto resolve = [](const std::string& path) {
    auto result = resolve_data_path("/t/a", path);
    return result.ok() ? *result : std::string(to_string(result.error().kind));
  };
  EXPECT_EQ(resolve("p=a%2525b/x%20y.parquet"), "/t/a/p=a%25b/x y.parquet");
  EXPECT_EQ(resolve("/abs/x"), "/abs/x");
  EXPECT_EQ(resolve("file:/abs/x%20y"), "/abs/x y");
  EXPECT_EQ(resolve("file:///abs/x"), "/abs/x");
  EXPECT_EQ(resolve("file://host/x"), "corrupt");
  EXPECT_EQ(resolve("s3://bucket/x"), "unsupported");
  EXPECT_EQ(resolve("p=a:/b"), "/t/a/p=a:/b");
  EXPECT_EQ(resolve("a/../b"), "/t/a/a/../b");
  EXPECT_EQ(resolve("../b"), "corrupt");
  EXPECT_EQ(resolve("a/%2E%2E/../b"), "corrupt");
  EXPECT_EQ(resolve("a%2"), "corrupt");
  EXPECT_EQ(resolve(""), "corrupt");
  EXPECT_EQ(canonical_path("/t/a", "file:/t/a/x%20y"), "x y");
  EXPECT_EQ(canonical_path("/t/a", "/t/ab/x"), "/t/ab/x");
  EXPECT_EQ(percent_decode(percent_encode("ä %=/ü")).value(), "ä %=/ü");
}

}  // namespace
}  // namespace strandline::delta
