#include "catalog/warehouse.h"

#include <gtest/gtest.h>

namespace strandline::catalog {
namespace {

class WarehouseTest : public testing::Test {
 protected:
  void SetUp() override { open(); }

  void open() {
    auto opened = Warehouse::open(store_, nullptr, "/lake");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    warehouse_ = *opened;
  }

  QualifiedName name(std::vector<std::string> parts) {
    auto qualified = warehouse_->qualify(sql::TableName{std::move(parts), false, {}}, Defaults{});
    EXPECT_TRUE(qualified.ok());
    return *qualified;
  }

  // The bytes that make a directory a table; the log's content is delta's concern.
  void make_table(const QualifiedName& qualified) {
    auto table = warehouse_->table(qualified);
    ASSERT_TRUE(table.ok());
    const auto log = table->path() + "/_delta_log";
    ASSERT_TRUE(store_->make_directories(log).ok());
    ASSERT_TRUE(store_->put(log + "/00000000000000000000.json", "{}\n").ok());
  }

  std::string path_of(const std::string& table_name) {
    return warehouse_->table(name({table_name}))->path();
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  std::shared_ptr<Warehouse> warehouse_;
};

TEST_F(WarehouseTest, NamesTakeTheDefaultsTheyLack) {
  EXPECT_EQ(name({"t"}).to_string(), "main.default.t");
  EXPECT_EQ(name({"s", "t"}).to_string(), "main.s.t");
  EXPECT_EQ(name({"c", "s", "t"}).to_string(), "c.s.t");
}

TEST_F(WarehouseTest, RefusesNamesItCannotResolve) {
  const auto code = [&](std::vector<std::string> parts) {
    auto result = warehouse_->qualify(sql::TableName{std::move(parts), false, {}}, Defaults{});
    return result.ok() ? "" : result.error().code;
  };
  EXPECT_EQ(code({"a", "b", "c", "d"}), "REQUIRES_SINGLE_PART_NAMESPACE");
  EXPECT_EQ(code({"a", ""}), "INVALID_NAME");
  EXPECT_EQ(code({"HIVE_metastore", "s", "t"}), "UNSUPPORTED_CATALOG");
}

TEST_F(WarehouseTest, WritesNothingUntilSomethingIsCreated) {
  EXPECT_FALSE(store_->stat("/lake").ok());
  ASSERT_TRUE(warehouse_->create_schema("main", "s", false).ok());
  EXPECT_TRUE(store_->stat("/lake/_strandline/warehouse.json").ok());
  EXPECT_TRUE(*warehouse_->schema_exists("MAIN", "S"));
}

TEST_F(WarehouseTest, RefusesANewerFormat) {
  ASSERT_TRUE(store_->make_directories("/lake/_strandline").ok());
  ASSERT_TRUE(store_->put("/lake/_strandline/warehouse.json", "{\"formatVersion\":2}").ok());
  auto opened = Warehouse::open(store_, nullptr, "/lake");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, "WAREHOUSE_TOO_NEW");
  EXPECT_EQ(opened.error().kind, ErrorKind::kUnsupported);
}

TEST_F(WarehouseTest, RefusesAFormatFileItCannotRead) {
  ASSERT_TRUE(store_->make_directories("/lake/_strandline").ok());
  ASSERT_TRUE(store_->put("/lake/_strandline/warehouse.json", "{").ok());
  auto opened = Warehouse::open(store_, nullptr, "/lake");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::kCorrupt);
}

TEST_F(WarehouseTest, FindsTablesWithoutRegardToCaseAndKeepsTheirSpelling) {
  make_table(name({"Users"}));
  EXPECT_EQ(name({"USERS"}).name, "Users");
  EXPECT_TRUE(*warehouse_->table_exists(name({"users"})));
  EXPECT_EQ(path_of("uSERS"), "/lake/main/default/Users");
}

TEST_F(WarehouseTest, EncodesWhatPathsCannotCarry) {
  EXPECT_EQ(path_of("a/b"), "/lake/main/default/a%2Fb");
  EXPECT_EQ(path_of(".."), "/lake/main/default/%2E.");
  EXPECT_EQ(path_of("_delta_log"), "/lake/main/default/%5Fdelta_log");
  EXPECT_EQ(path_of("50%"), "/lake/main/default/50%25");
  EXPECT_EQ(path_of("Größe 日本"), "/lake/main/default/Größe 日本");
  make_table(name({"a/b*[1]"}));
  auto tables = warehouse_->tables("main", "default");
  ASSERT_TRUE(tables.ok());
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_EQ((*tables)[0].name.name, "a/b*[1]");
  EXPECT_EQ((*tables)[0].name.to_string(), "main.default.`a/b*[1]`");
}

TEST_F(WarehouseTest, KeepsViewsAcrossOpenings) {
  const View view{"SELECT 'a \"quote\"\n' AS x", {"y"}, "main", "s", "what it is"};
  ASSERT_TRUE(warehouse_->create_view(name({"V1"}), view, false).ok());
  open();
  auto read = warehouse_->view(name({"v1"}));
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->sql, view.sql);
  EXPECT_EQ((*read)->columns, view.columns);
  EXPECT_EQ((*read)->schema, "s");
  EXPECT_EQ((*read)->comment, "what it is");

  EXPECT_EQ(warehouse_->create_view(name({"v1"}), view, false).error().kind,
            ErrorKind::kAlreadyExists);
  EXPECT_TRUE(warehouse_->create_view(name({"v1"}), view, true).ok());
  auto listed = warehouse_->tables("main", "default");
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_TRUE((*listed)[0].is_view);
  ASSERT_TRUE(warehouse_->drop_view(name({"V1"})).ok());
  EXPECT_FALSE(warehouse_->view(name({"v1"}))->has_value());
  EXPECT_EQ(warehouse_->drop_view(name({"V1"})).error().kind, ErrorKind::kNotFound);
}

TEST_F(WarehouseTest, AViewNeedsItsSchemaAndAFreeName) {
  const View view{"SELECT 1", {}, "main", "default", {}};
  EXPECT_EQ(warehouse_->create_view(name({"nowhere", "v"}), view, false).error().code,
            "SCHEMA_NOT_FOUND");
  make_table(name({"t"}));
  EXPECT_EQ(warehouse_->create_view(name({"T"}), view, true).error().code,
            "TABLE_OR_VIEW_ALREADY_EXISTS");
}

TEST_F(WarehouseTest, ExternalTablesLoseOnlyTheirName) {
  ASSERT_TRUE(store_->make_directories("/elsewhere/t/_delta_log").ok());
  ASSERT_TRUE(store_->put("/elsewhere/t/_delta_log/00000000000000000000.json", "{}\n").ok());
  ASSERT_TRUE(warehouse_->register_location(name({"ext"}), "/elsewhere/t").ok());
  EXPECT_TRUE(*warehouse_->is_external(name({"EXT"})));
  EXPECT_EQ(path_of("Ext"), "/elsewhere/t");
  EXPECT_TRUE(*warehouse_->table_exists(name({"ext"})));
  EXPECT_EQ(warehouse_->register_location(name({"EXT"}), "/x").error().kind,
            ErrorKind::kAlreadyExists);
  ASSERT_TRUE(warehouse_->drop_table(name({"eXt"})).ok());
  EXPECT_FALSE(*warehouse_->table_exists(name({"ext"})));
  EXPECT_TRUE(store_->stat("/elsewhere/t/_delta_log").ok());
}

TEST_F(WarehouseTest, DropsTablesAndSchemas) {
  ASSERT_TRUE(warehouse_->create_schema("main", "s", false).ok());
  EXPECT_EQ(warehouse_->create_schema("main", "S", false).error().kind, ErrorKind::kAlreadyExists);
  EXPECT_TRUE(warehouse_->create_schema("main", "S", true).ok());
  make_table(name({"s", "t"}));
  EXPECT_EQ(warehouse_->drop_schema("main", "s", false).error().code, "SCHEMA_NOT_EMPTY");
  ASSERT_TRUE(warehouse_->drop_table(name({"s", "T"})).ok());
  EXPECT_EQ(warehouse_->drop_table(name({"s", "t"})).error().kind, ErrorKind::kNotFound);
  make_table(name({"s", "u"}));
  ASSERT_TRUE(warehouse_->drop_schema("main", "s", true).ok());
  EXPECT_FALSE(*warehouse_->schema_exists("main", "s"));
  EXPECT_EQ(warehouse_->drop_schema("main", "s", true).error().code, "SCHEMA_NOT_FOUND");
}

TEST_F(WarehouseTest, ADropCutShortLeavesTheTableOrNone) {
  const auto inner = store_;
  const std::string schema = "/lake/main/default";
  ASSERT_TRUE(store_->make_directories(schema).ok());
  bool finished = false;
  for (int step = 1; !finished; ++step) {
    ASSERT_LT(step, 10);
    const auto faults = storage::FaultStore::wrap(inner);
    store_ = faults;
    open();
    make_table(name({"t"}));
    ASSERT_TRUE(store_->put(schema + "/t/part-1.parquet", "x").ok());
    faults->arm(step, storage::FaultMode::kStop);
    finished = warehouse_->drop_table(name({"T"})).ok();
    store_ = inner;
    open();
    const bool whole = inner->stat(schema + "/t/_delta_log/00000000000000000000.json").ok() &&
                       inner->stat(schema + "/t/part-1.parquet").ok();
    EXPECT_TRUE(whole || !inner->stat(schema + "/t").ok()) << step;
    EXPECT_EQ(warehouse_->tables("main", "default")->size(), whole ? 1u : 0u) << step;
    EXPECT_EQ(inner->list(schema)->size(), finished ? 0u : 1u) << step;
    warehouse_->remove_dropped("main", "DEFAULT");
    EXPECT_EQ(inner->list(schema)->size(), whole ? 1u : 0u) << step;
  }
}

TEST_F(WarehouseTest, HiddenFoldersOfOthersStay) {
  const std::string file = "/lake/main/default/.strandline_dropped_by_me/x";
  ASSERT_TRUE(store_->put(file, "x").ok());
  warehouse_->remove_dropped("main", "default");
  EXPECT_TRUE(store_->stat(file).ok());
}

TEST_F(WarehouseTest, ListsCatalogsAndSchemasWithTheImpliedOnes) {
  ASSERT_TRUE(warehouse_->create_schema("other", "s", false).ok());
  EXPECT_EQ(*warehouse_->catalogs(), (std::vector<std::string>{"main", "other"}));
  EXPECT_EQ(*warehouse_->schemas("OTHER"), (std::vector<std::string>{"default", "s"}));
}

TEST_F(WarehouseTest, PathsAreTablesToo) {
  auto table = warehouse_->table(sql::TableName{{"/data/x/"}, true, {}}, Defaults{});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->path(), "/data/x");
}

TEST_F(WarehouseTest, PipelineFoldersAreEncoded) {
  EXPECT_EQ(warehouse_->pipeline_directory("a/b"), "/lake/_strandline/pipelines/a%2Fb");
}

TEST_F(WarehouseTest, TablesAreRenamed) {
  ASSERT_TRUE(warehouse_->create_schema("main", "s", false).ok());
  make_table(name({"a.b"}));
  ASSERT_TRUE(warehouse_->rename_table(name({"a.b"}), name({"s", "c d"})).ok());
  EXPECT_FALSE(*warehouse_->table_exists(name({"a.b"})));
  EXPECT_TRUE(*warehouse_->table_exists(name({"s", "c d"})));

  // An external table stays where it is.
  ASSERT_TRUE(warehouse_->register_location(name({"out"}), "/elsewhere/t").ok());
  ASSERT_TRUE(warehouse_->rename_table(name({"out"}), name({"s", "in"})).ok());
  EXPECT_EQ(warehouse_->table(name({"s", "in"}))->path(), "/elsewhere/t");
  EXPECT_FALSE(*warehouse_->is_external(name({"out"})));

  EXPECT_EQ(warehouse_->rename_table(name({"s", "c d"}), name({"s", "IN"})).error().code,
            "TABLE_OR_VIEW_ALREADY_EXISTS");
  EXPECT_EQ(warehouse_->rename_table(name({"nothing"}), name({"x"})).error().code,
            "TABLE_OR_VIEW_NOT_FOUND");
  EXPECT_EQ(warehouse_->rename_table(name({"s", "c d"}), name({"nowhere", "x"})).error().code,
            "SCHEMA_NOT_FOUND");
}

TEST_F(WarehouseTest, SchemasHaveComments) {
  ASSERT_TRUE(warehouse_->create_schema("main", "s", false).ok());
  EXPECT_FALSE(warehouse_->schema_comment("main", "s")->has_value());
  ASSERT_TRUE(warehouse_->set_schema_comment("main", "S", "what it's for").ok());
  EXPECT_EQ(**warehouse_->schema_comment("main", "s"), "what it's for");
  EXPECT_TRUE(warehouse_->tables("main", "s")->empty());
  ASSERT_TRUE(warehouse_->set_schema_comment("main", "s", std::nullopt).ok());
  EXPECT_FALSE(warehouse_->schema_comment("main", "s")->has_value());
  EXPECT_EQ(warehouse_->set_schema_comment("main", "none", "x").error().code, "SCHEMA_NOT_FOUND");
}

}  // namespace
}  // namespace strandline::catalog
