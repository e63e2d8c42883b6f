#include "pipeline/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strandline::pipeline {
namespace {

using testing::HasSubstr;

class SpecTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(store_->make_directories(path.substr(0, path.rfind('/'))).ok());
    ASSERT_TRUE(store_->put(path, text).ok());
  }
  std::vector<std::string> files(const LoadedSpec& loaded) {
    std::vector<std::string> out;
    for (const auto& file : loaded.spec.files) out.push_back(file.path);
    return out;
  }
  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
};

TEST_F(SpecTest, ReadsASpecFile) {
  put("/p/spark-pipeline.yml",
      "name: sales\ncatalog: c\ndatabase: s\nstorage: ../store\nlibraries:\n  - glob:\n      "
      "include: "
      "transformations/**\nconfiguration:\n  env: test\n  n: 3\n");
  put("/p/transformations/a.sql", "");
  put("/p/transformations/deep/b.sql", "");
  put("/p/transformations/readme.md", "");
  const auto loaded = load_spec(*store_, "/p", {});
  EXPECT_TRUE(loaded.errors.empty());
  EXPECT_EQ(loaded.spec.name, "sales");
  EXPECT_EQ(loaded.spec.defaults.catalog, "c");
  EXPECT_EQ(loaded.spec.defaults.schema, "s");
  EXPECT_EQ(loaded.spec.warehouse, "/store");
  EXPECT_EQ(loaded.spec.configuration.at("env"), "test");
  EXPECT_EQ(loaded.spec.configuration.at("n"), "3");
  EXPECT_EQ(files(loaded), (std::vector<std::string>{"/p/transformations/a.sql",
                                                     "/p/transformations/deep/b.sql"}));
}

TEST_F(SpecTest, AFileIsASpecToo) {
  put("/p/x.yml", "name: x\nlibraries:\n  - glob: {include: '*.sql'}\n");
  put("/p/a.sql", "");
  const auto loaded = load_spec(*store_, "/p/x.yml", "/elsewhere");
  EXPECT_TRUE(loaded.errors.empty());
  EXPECT_EQ(loaded.spec.root, "/p");
  EXPECT_EQ(loaded.spec.warehouse, "/elsewhere");
  EXPECT_EQ(files(loaded), (std::vector<std::string>{"/p/a.sql"}));
}

TEST_F(SpecTest, WithoutSpecTransformationsElseTheFolder) {
  put("/p/a.sql", "");
  put("/p/explorations/q.sql", "");
  put("/p/warehouse/main/x.sql", "");
  EXPECT_EQ(files(load_spec(*store_, "/p", {})), (std::vector<std::string>{"/p/a.sql"}));
  put("/p/transformations/t.sql", "");
  const auto loaded = load_spec(*store_, "/p", {});
  EXPECT_EQ(files(loaded), (std::vector<std::string>{"/p/transformations/t.sql"}));
  EXPECT_EQ(loaded.spec.name, "p");
  EXPECT_EQ(loaded.spec.warehouse, "/p/warehouse");
}

TEST_F(SpecTest, AllMistakesAtOnceWithPlaces) {
  put("/p/spark-pipeline.yml",
      "name: x\ncolour: red\nschema: a\ndatabase: b\nlibraries:\n  - notebook: {path: n}\n");
  put("/p/a.sql", "");
  const auto loaded = load_spec(*store_, "/p", {});
  ASSERT_EQ(loaded.errors.size(), 3u);
  EXPECT_THAT(loaded.errors[0].message, HasSubstr("unknown key 'colour'"));
  EXPECT_EQ(loaded.errors[0].place->line, 2);
  EXPECT_EQ(loaded.errors[0].place->file, "/p/spark-pipeline.yml");
  EXPECT_THAT(loaded.errors[1].message, HasSubstr("'schema' and 'database'"));
  EXPECT_THAT(loaded.errors[2].message, HasSubstr("notebook"));
}

TEST_F(SpecTest, BrokenYamlHasAPlace) {
  put("/p/spark-pipeline.yml", "name: x\n  bad: [\n");
  put("/p/a.sql", "");
  const auto loaded = load_spec(*store_, "/p", {});
  ASSERT_FALSE(loaded.errors.empty());
  EXPECT_EQ(loaded.errors[0].code, "PIPELINE_SPEC");
  EXPECT_GT(loaded.errors[0].place->line, 0);
}

TEST_F(SpecTest, PythonFilesAreOfThePipeline) {
  put("/p/transformations/b.sql", "");
  put("/p/transformations/a.py", "");
  put("/p/transformations/a.pyc", "");
  const auto loaded = load_spec(*store_, "/p", {});
  ASSERT_TRUE(loaded.errors.empty());
  ASSERT_EQ(loaded.spec.files.size(), 2u);
  EXPECT_EQ(loaded.spec.files[0].display, "/p/transformations/a.py");
  EXPECT_TRUE(loaded.spec.files[0].is_python());
  EXPECT_FALSE(loaded.spec.files[1].is_python());
}

TEST_F(SpecTest, MissingAndEmptyPipelines) {
  EXPECT_EQ(load_spec(*store_, "/nowhere", {}).errors.at(0).code, "PIPELINE_NOT_FOUND");
  put("/p/readme.md", "");
  EXPECT_EQ(load_spec(*store_, "/p", {}).errors.at(0).code, "PIPELINE_EMPTY");
}

TEST_F(SpecTest, OtherStoresAreRefused) {
  put("/p/spark-pipeline.yml", "name: x\nstorage: s3://bucket/x\n");
  put("/p/a.sql", "");
  EXPECT_EQ(load_spec(*store_, "/p", {}).errors.at(0).code, "UNSUPPORTED_PATH_SCHEME");
}

}  // namespace
}  // namespace strandline::pipeline
