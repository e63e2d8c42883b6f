#include "delta/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "delta/feature_table.h"
#include "delta/test_support.h"
#include "support/paths.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string use_of(const Feature& feature) {
  const std::string what = feature.what;
  switch (feature.use) {
    case Feature::Use::kListed:
      return "listed by the protocol";
    case Feature::Use::kFlag:
      return fmt::format("`{}` = `true`", what);
    case Feature::Use::kValue: {
      const size_t split = what.find('=');
      return fmt::format("`{}` = `{}`", what.substr(0, split), what.substr(split + 1));
    }
    case Feature::Use::kSet:
      return fmt::format("`{}` other than `none`", what);
    case Feature::Use::kPropertyPrefix:
      return fmt::format("properties `{}NAME`", what);
    case Feature::Use::kColumn:
      return fmt::format("column metadata `{}`{}", what, what.ends_with('.') ? "..." : "");
    case Feature::Use::kType:
      return fmt::format("columns of type {}", to_sql(DataType::primitive(feature.type)));
    case Feature::Use::kDomain:
      return fmt::format("metadata domain `{}`", what);
  }
  return "";
}

std::string yes_or_no(Feature::Support support) {
  return support == Feature::Support::kYes ? "yes" : "no";
}

std::string write_of(const Feature& feature) {
  switch (feature.write) {
    case Feature::Write::kNo:
      return "no";
    case Feature::Write::kYes:
      return "yes";
  }
  return "";
}

std::string page() {
  std::string text =
      "# Delta table features\n\n"
      "What Strandline does with each table feature; a table that has a feature with `no`, or one "
      "that is not here, is\nrefused by the feature's name. `delta.feature.NAME` = `supported` "
      "adds a feature without using it. Made from\n`src/delta/feature_table.cc` by its test "
      "(`STRANDLINE_UPDATE_DOCS=1 build/tests/delta_test`).\n\n"
      "| feature | kind | read | write | change feed | used when | legacy versions | notes |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Feature& feature : feature_table()) {
    std::string legacy;
    if (feature.legacy_reader > 0) legacy += fmt::format("reader {}, ", feature.legacy_reader);
    if (feature.legacy_writer > 0) legacy += fmt::format("writer {}", feature.legacy_writer);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", feature.name,
                        feature.kind == Feature::Kind::kWriter ? "writer" : "reader and writer",
                        yes_or_no(feature.read), write_of(feature), yes_or_no(feature.feed),
                        use_of(feature), legacy, feature.note);
  }
  return text;
}

TEST(FeatureTable, ThePageInDocsSaysWhatIs) {
  const auto path = test::source_directory() / "docs/features.md";
  if (std::getenv("STRANDLINE_UPDATE_DOCS") != nullptr) std::ofstream(path) << page();
  std::stringstream found;
  found << std::ifstream(path).rdbuf();
  EXPECT_EQ(found.str(), page()) << "run with STRANDLINE_UPDATE_DOCS=1 and read the diff";
}

TEST(FeatureTable, RowsAreSound) {
  std::set<std::string> names;
  for (const Feature& feature : feature_table()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name << " has two rows";
    // What cannot be read can neither be written nor followed.
    if (feature.read == Feature::Support::kNo) {
      EXPECT_EQ(feature.write, Feature::Write::kNo) << feature.name;
      EXPECT_EQ(feature.feed, Feature::Support::kNo) << feature.name;
    }
    const bool needs_no_name =
        feature.use == Feature::Use::kListed || feature.use == Feature::Use::kType;
    EXPECT_EQ(std::string(feature.what).empty(), needs_no_name) << feature.name;
    EXPECT_EQ(find_feature(feature.name), &feature);
  }
  EXPECT_EQ(find_feature("zeta"), nullptr);
}

TEST(FeatureTable, UsesAreSeen) {
  Metadata metadata;
  metadata.configuration = {{"delta.enableDeletionVectors", "TRUE"},
                            {"delta.appendOnly", "false"},
                            {"delta.checkpointPolicy", "v2"},
                            {"delta.columnMapping.mode", "id"},
                            {"delta.constraints.c", "x > 0"}};
  Schema schema = two_columns();
  schema.fields[0].metadata["delta.identity.start"] = "1";
  schema.fields[1].type = DataType::map(
      DataType::primitive(TypeId::kLong),
      DataType::structure({Field{
          "t", DataType::primitive(TypeId::kTimestampNtz), true, {{"CURRENT_DEFAULT", "1"}}}}));
  EXPECT_THAT(required_features(metadata, schema),
              ElementsAre("allowColumnDefaults", "checkConstraints", "columnMapping",
                          "deletionVectors", "identityColumns", "timestampNtz", "v2Checkpoint"));
}

TEST(Features, APreviewIsEnough) {
  const Protocol preview{3, 7, {"typeWidening-preview"}, {"typeWidening-preview"}};
  EXPECT_THAT(with_features(preview, {"typeWidening"}).writer_features,
              ElementsAre("typeWidening-preview"));
}

TEST(Features, TheFeedNeedsEveryFeatureOfTheTable) {
  EXPECT_TRUE(check_feed_readable(Protocol{1, 4, {}, {}}, "/t").ok());
  EXPECT_TRUE(check_feed_readable(Protocol{3, 7, {"columnMapping"}, {"columnMapping"}}, "/t").ok());
  // A writer feature that nobody knows may change what a commit means.
  const auto unknown = check_feed_readable(Protocol{1, 7, {}, {"zeta"}}, "/t");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("change feed of table /t"));
  EXPECT_THAT(unknown.error().message, HasSubstr("zeta"));
}

}  // namespace
}  // namespace strandline::delta
