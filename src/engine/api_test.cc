// The public C++ interface: typed results, Arrow both ways, table handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <strandline/strandline.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

namespace strandline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("api_" + std::to_string(::getpid()) + "_" +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    SessionOptions options;
    options.warehouse = (directory_ / "w").string();
    options.engine.threads = 2;
    options.on_update = [this](const UpdateReport& report) { updates_.push_back(report); };
    options.on_progress = [this](const Progress& progress) { stages_ += progress.stage + " "; };
    auto session = Session::open(options);
    ASSERT_TRUE(session.ok()) << session.error().message;
    session_ = std::move(session).value();
  }
  void TearDown() override {
    session_.reset();
    std::filesystem::remove_all(directory_);
  }

  void execute(const std::string& sql) {
    const auto done = session_->execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  std::unique_ptr<RowStream> query(const std::string& sql) {
    auto rows = session_->query(sql);
    EXPECT_TRUE(rows.ok()) << rows.error().message;
    return rows.ok() ? std::move(rows).value() : nullptr;
  }
  static std::string text(const Value& value) {
    if (std::holds_alternative<std::monostate>(value)) return "NULL";
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&value)) return "~" + std::to_string(*real);
    return std::get<std::string>(value);
  }
  // "1|a" for each row.
  std::vector<std::string> rows(const std::string& sql) {
    std::vector<std::string> lines;
    const auto stream = query(sql);
    while (stream != nullptr) {
      auto row = stream->next();
      EXPECT_TRUE(row.ok()) << row.error().message;
      if (!row.ok() || !*row) break;
      std::string line;
      for (const auto& value : **row) line += (line.empty() ? "" : "|") + text(value);
      lines.push_back(line);
    }
    return lines;
  }

  std::filesystem::path directory_;
  std::unique_ptr<Session> session_;
  std::vector<UpdateReport> updates_;
  std::string stages_;
};

TEST_F(ApiTest, StreamingTablesTellWhatTheirUpdatesDid) {
  execute(
      "CREATE TABLE src (id INT, s INT); INSERT INTO src VALUES (1, 1), (2, 1);"
      "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(src) KEYS (id) SEQUENCE BY s");
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].status, UpdateStatus::kCompleted);
  EXPECT_EQ(updates_[0].flows.at(0).metrics.at("num_upserted_rows"), 2);
  EXPECT_THAT(stages_, HasSubstr("plan"));
  execute("INSERT INTO src VALUES (1, 0), (3, 1); REFRESH STREAMING TABLE t");
  ASSERT_EQ(updates_.size(), 2u);
  EXPECT_EQ(updates_[1].flows.at(0).metrics.at("num_late_rows"), 1);
  EXPECT_EQ(updates_[1].flows.at(0).metrics.at("num_upserted_rows"), 1);
  EXPECT_THAT(rows("SELECT id, s FROM t ORDER BY id"), ElementsAre("1|1", "2|1", "3|1"));

  const auto broken = session_->execute(
      "CREATE STREAMING TABLE u FLOW AUTO CDC FROM STREAM(src) KEYS (x) SEQUENCE BY y");
  ASSERT_FALSE(broken.ok());
  ASSERT_EQ(updates_.size(), 3u);
  EXPECT_EQ(updates_[2].status, UpdateStatus::kInvalid);
  EXPECT_GT(updates_[2].errors.size(), 1u) << "all mistakes are in the report";
  EXPECT_EQ(broken.error().code, updates_[2].errors[0].code);
}

TEST_F(ApiTest, RowsHaveTypes) {
  const auto stream = query(
      "SELECT true AS b, 1Y AS t, 2 AS i, 3L AS l, 1.5D AS d, 'x' AS s, X'00FF' AS bin, "
      "1.25BD AS dec, DATE'2026-01-02' AS da, TIMESTAMP'2026-01-02 03:04:05.6' AS ts, "
      "array(1, 2) AS a, CAST(NULL AS INT) AS n");
  ASSERT_NE(stream, nullptr);
  std::vector<std::string> types;
  for (const auto& column : stream->columns()) types.push_back(column.name + " " + column.type);
  EXPECT_THAT(types, ElementsAre("b BOOLEAN", "t TINYINT", "i INT", "l BIGINT", "d DOUBLE",
                                 "s STRING", "bin BINARY", "dec DECIMAL(3,2)", "da DATE",
                                 "ts TIMESTAMP", "a ARRAY<INT>", "n INT"));
  const auto row = stream->next();
  ASSERT_TRUE(row.ok()) << row.error().message;
  ASSERT_TRUE(row->has_value());
  EXPECT_EQ(std::get<bool>((**row)[0]), true);
  EXPECT_EQ(std::get<int64_t>((**row)[1]), 1);
  EXPECT_EQ(std::get<int64_t>((**row)[3]), 3);
  EXPECT_EQ(std::get<double>((**row)[4]), 1.5);
  EXPECT_EQ(std::get<std::string>((**row)[6]), std::string("\0\xFF", 2));
  EXPECT_EQ(std::get<std::string>((**row)[7]), "1.25");
  EXPECT_EQ(std::get<std::string>((**row)[8]), "2026-01-02");
  EXPECT_THAT(std::get<std::string>((**row)[9]), HasSubstr("2026-01-02 03:04:05.6"));
  EXPECT_EQ(std::get<std::string>((**row)[10]), "[1, 2]");
  EXPECT_TRUE(std::holds_alternative<std::monostate>((**row)[11]));
  EXPECT_FALSE(stream->next()->has_value());
  EXPECT_FALSE(stream->next()->has_value());
}

TEST_F(ApiTest, EveryStatementWithRowsIsAQuery) {
  execute("CREATE TABLE t (id INT, name STRING); INSERT INTO t VALUES (1, 'a')");
  EXPECT_THAT(rows("SELECT * FROM t"), ElementsAre("1|a"));
  EXPECT_THAT(rows("SHOW TABLES"), ElementsAre("default|t|false"));
  EXPECT_THAT(rows("DESCRIBE t"), ElementsAre("id|int|NULL", "name|string|NULL"));
  EXPECT_EQ(rows("OPTIMIZE t").size(), 1u);
  EXPECT_EQ(session_->query("INSERT INTO t VALUES (2, 'b')").error().code, "NOT_A_QUERY");
  EXPECT_EQ(session_->query("SELECT 1; SELECT 2").error().code, "NOT_ONE_STATEMENT");
  EXPECT_EQ(session_->query("SELECT nope FROM t").error().place->line, 1);
  EXPECT_EQ(session_->execute("SELECT * FROM nowhere").error().code, "TABLE_OR_VIEW_NOT_FOUND");
}

TEST_F(ApiTest, ResultsLiveOnTheirOwn) {
  execute("CREATE TABLE t AS SELECT id FROM range(10000)");
  execute("DELETE FROM t WHERE id % 2 = 0");
  auto first = query("SELECT id FROM t ORDER BY id");
  auto second = query("SELECT id FROM t ORDER BY id DESC");
  EXPECT_EQ(text((**first->next())[0]), "1");
  EXPECT_EQ(text((**second->next())[0]), "9999");
  execute("DELETE FROM t WHERE id > 5");
  session_.reset();
  int64_t count = 1;
  while (first->next()->has_value()) ++count;
  EXPECT_EQ(count, 5000);
}

TEST_F(ApiTest, CancelStopsAResult) {
  const auto stream = query("SELECT count(*) FROM range(100000000000) a");
  ASSERT_NE(stream, nullptr);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stream->cancel();
  });
  const auto row = stream->next();
  stopper.join();
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().kind, ErrorKind::kCancelled);
}

TEST_F(ApiTest, CancelBeforeTheFirstRowStopsAResult) {
  const auto stream = query("SELECT count(*) FROM range(10) a");
  ASSERT_NE(stream, nullptr);
  stream->cancel();
  const auto row = stream->next();
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().kind, ErrorKind::kCancelled);
}

TEST_F(ApiTest, ArrowHasTheTablesTypes) {
  const auto stream = query(
      "SELECT 1.25BD AS dec, TIMESTAMP'2026-01-02 03:04:05' AS ts, X'00FF' AS bin, 'x' AS s, "
      "named_struct('a', 1) AS st, array(1L) AS li, map('k', 1) AS mp, "
      "TIMESTAMP_NTZ'2026-01-02 03:04:05' AS ntz, DATE'1970-01-02' AS da");
  ArrowArrayStream arrow;
  ASSERT_TRUE(stream->to_arrow(&arrow).ok());
  EXPECT_EQ(stream->to_arrow(&arrow).error().code, "STREAM_HANDED_OVER");
  EXPECT_EQ(stream->next().error().code, "STREAM_HANDED_OVER");
  ArrowSchema schema;
  ASSERT_EQ(arrow.get_schema(&arrow, &schema), 0);
  std::vector<std::string> formats;
  for (int64_t i = 0; i < schema.n_children; ++i) formats.emplace_back(schema.children[i]->format);
  EXPECT_THAT(formats,
              ElementsAre("d:3,2,128", "tsu:UTC", "z", "u", "+s", "+l", "+m", "tsu:", "tdD"));
  schema.release(&schema);
  ArrowArray array;
  ASSERT_EQ(arrow.get_next(&arrow, &array), 0);
  ASSERT_NE(array.release, nullptr);
  EXPECT_EQ(array.length, 1);
  int64_t digits = 0;
  std::memcpy(&digits, array.children[0]->buffers[1], sizeof digits);
  EXPECT_EQ(digits, 125);
  array.release(&array);
  ASSERT_EQ(arrow.get_next(&arrow, &array), 0);
  EXPECT_EQ(array.release, nullptr);
  arrow.release(&arrow);
}

TEST_F(ApiTest, ArrowRoundTrip) {
  execute(
      "CREATE TABLE a AS SELECT id, CASE WHEN id % 3 = 0 THEN NULL ELSE 'text ' || id END AS s, "
      "CAST(id AS DECIMAL(20,3)) AS dec, array(id, NULL) AS li, named_struct('x', id, 'y', 'z') AS "
      "st, map('k', id) AS mp, timestamp_micros(id) AS ts FROM range(5000)");
  execute("CREATE TABLE b AS SELECT * FROM a WHERE false");
  const auto from = query("SELECT * FROM a");
  // What was read row by row is not handed over again.
  ASSERT_TRUE((*from->next()).has_value());
  ArrowArrayStream arrow;
  ASSERT_TRUE(from->to_arrow(&arrow).ok());
  const auto written = session_->write("b", &arrow);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(arrow.release, nullptr);
  EXPECT_THAT(rows("SELECT count(*) FROM b"), ElementsAre("4999"));
  EXPECT_THAT(rows("SELECT count(*) FROM (SELECT * FROM b EXCEPT SELECT * FROM a)"),
              ElementsAre("0"));

  ASSERT_TRUE(query("SELECT * FROM a WHERE id < 7")->to_arrow(&arrow).ok());
  ASSERT_TRUE(session_->write("b", &arrow, WriteMode::kOverwrite).ok());
  EXPECT_THAT(rows("SELECT count(*), sum(id) FROM b"), ElementsAre("7|21"));

  // No rows, and a failing stream.
  ASSERT_TRUE(query("SELECT * FROM a WHERE id < 0")->to_arrow(&arrow).ok());
  ASSERT_TRUE(session_->write("b", &arrow, WriteMode::kOverwrite).ok());
  EXPECT_THAT(rows("SELECT count(*) FROM b"), ElementsAre("0"));
  ASSERT_TRUE(
      query("SELECT CASE WHEN id < 4000 THEN id ELSE raise_error('[TOO_BIG] no') END AS id FROM a")
          ->to_arrow(&arrow)
          .ok());
  const auto failed = session_->write("b", &arrow);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, "ARROW_STREAM_FAILED");
  EXPECT_EQ(arrow.release, nullptr);
  EXPECT_THAT(rows("SELECT count(*) FROM b"), ElementsAre("0"));
}

TEST_F(ApiTest, RegisteredStreamsAreRelations) {
  execute("CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b')");
  ArrowArrayStream arrow;
  ASSERT_TRUE(query("SELECT 2 AS id, 'B' AS v UNION ALL SELECT 3, 'C'")->to_arrow(&arrow).ok());
  ASSERT_TRUE(session_->register_stream("Changes", &arrow).ok());
  EXPECT_THAT(rows("SELECT * FROM changes c JOIN t ON c.id = t.id"), ElementsAre("2|B|2|b"));
  execute("INSERT INTO t SELECT * FROM changes WHERE id = 3");
  EXPECT_THAT(rows("SELECT * FROM t ORDER BY id"), ElementsAre("1|a", "2|b", "3|C"));
  // A new stream takes the old one's place.
  ASSERT_TRUE(query("SELECT 9 AS n")->to_arrow(&arrow).ok());
  ASSERT_TRUE(session_->register_stream("changes", &arrow).ok());
  EXPECT_THAT(rows("SELECT * FROM changes"), ElementsAre("9"));
  ASSERT_TRUE(query("SELECT 9 AS n")->to_arrow(&arrow).ok());
  EXPECT_EQ(session_->register_stream("a.b", &arrow).error().code, "INVALID_NAME");
  EXPECT_EQ(arrow.release, nullptr);
}

TEST_F(ApiTest, TableHandle) {
  execute(
      "CREATE TABLE t (id INT NOT NULL COMMENT 'key', `odd name` STRING) PARTITIONED BY (id) "
      "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'my.owner' = 'ann')");
  const auto table = session_->table("default.t");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ((*table)->name(), "main.default.t");
  EXPECT_EQ((*table)->version(), 0);
  EXPECT_EQ((*table)->schema_text(), "id INT NOT NULL, `odd name` STRING");
  EXPECT_EQ((*table)->fields()[0].comment, "key");
  EXPECT_FALSE((*table)->fields()[0].nullable);
  EXPECT_THAT((*table)->partition_columns(), ElementsAre("id"));
  EXPECT_EQ((*table)->properties().at("my.owner"), "ann");
  execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
  EXPECT_EQ((*table)->file_count(), 0);
  ASSERT_TRUE((*table)->refresh().ok());
  EXPECT_EQ((*table)->version(), 1);
  EXPECT_EQ((*table)->file_count(), 2);
  EXPECT_EQ((*table)->row_count(), 2);
  EXPECT_GT((*table)->size_bytes(), 0);
  const auto history = (*table)->history();
  ASSERT_TRUE(history.ok());
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ(history->at(0).operation, "WRITE");
  EXPECT_EQ(history->at(0).metrics.at("numOutputRows"), "2");
  EXPECT_GT(history->at(0).timestamp_ms, history->at(1).timestamp_ms);
  EXPECT_EQ((*table)->history(1)->size(), 1u);
  EXPECT_EQ(session_->table("nope").error().code, "TABLE_OR_VIEW_NOT_FOUND");
  EXPECT_EQ(session_->table("a b").error().code, "INVALID_NAME");
}

}  // namespace
}  // namespace strandline
