#include "pipeline/glob.h"

#include <gtest/gtest.h>

namespace strandline::pipeline {
namespace {

TEST(Glob, MatchesOneComponent) {
  EXPECT_TRUE(glob_match("/a/*.json", "/a/x.json"));
  EXPECT_FALSE(glob_match("/a/*.json", "/a/b/x.json"));
  EXPECT_TRUE(glob_match("/a/?.json", "/a/x.json"));
  EXPECT_FALSE(glob_match("/a?b", "/a/b"));
}

TEST(Glob, MatchesAnyNumberOfComponents) {
  EXPECT_TRUE(glob_match("/a/**", "/a/b/c.sql"));
  EXPECT_TRUE(glob_match("/a/**/c.sql", "/a/c.sql"));
  EXPECT_TRUE(glob_match("/a/**/c.sql", "/a/b/d/c.sql"));
  EXPECT_FALSE(glob_match("/a/**/c.sql", "/b/c.sql"));
}

TEST(Glob, MatchesClassesAndAlternatives) {
  EXPECT_TRUE(glob_match("/f[0-9].csv", "/f7.csv"));
  EXPECT_FALSE(glob_match("/f[^0-9].csv", "/f7.csv"));
  EXPECT_TRUE(glob_match("/f.{csv,json}", "/f.json"));
  EXPECT_FALSE(glob_match("/f.{csv,json}", "/f.txt"));
  EXPECT_TRUE(glob_match("/a\\*b", "/a*b"));
  EXPECT_FALSE(glob_match("/a\\*b", "/axb"));
}

class ListFiles : public testing::Test {
 protected:
  void SetUp() override {
    store_ = storage::make_memory_store();
    for (const char* path : {"/d/a.json", "/d/b/c.json", "/d/b/e.csv", "/d/_SUCCESS", "/d/.hidden",
                             "/d/_log/x.json"}) {
      const std::string text = path;
      ASSERT_TRUE(store_->make_directories(text.substr(0, text.rfind('/'))).ok());
      ASSERT_TRUE(store_->put(path, "x").ok());
    }
  }
  std::vector<std::string> names(const std::string& path) {
    auto files = list_files(*store_, path);
    EXPECT_TRUE(files.ok());
    std::vector<std::string> out;
    for (const auto& file : *files) out.push_back(file.path);
    return out;
  }
  std::shared_ptr<storage::Store> store_;
};

TEST_F(ListFiles, FolderGivesAllBelowWithoutHiddenOnes) {
  EXPECT_EQ(names("/d"), (std::vector<std::string>{"/d/a.json", "/d/b/c.json", "/d/b/e.csv"}));
}

TEST_F(ListFiles, PatternGivesFilesAndFolders) {
  EXPECT_EQ(names("/d/*.json"), (std::vector<std::string>{"/d/a.json"}));
  EXPECT_EQ(names("/d/**/*.json"), (std::vector<std::string>{"/d/a.json", "/d/b/c.json"}));
  EXPECT_EQ(names("/d/b*"), (std::vector<std::string>{"/d/b/c.json", "/d/b/e.csv"}));
}

TEST_F(ListFiles, OneFileIsItself) {
  EXPECT_EQ(names("/d/a.json"), (std::vector<std::string>{"/d/a.json"}));
}

TEST_F(ListFiles, MissingFolderIsNotFound) {
  EXPECT_EQ(list_files(*store_, "/nowhere").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(list_files(*store_, "/nowhere/*.json").error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace strandline::pipeline
