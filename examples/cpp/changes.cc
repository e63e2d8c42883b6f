// The change data feed from C++: ranges of versions and times, and streams into tables of their
// own. Each reading block of the documents has its counterpart here.
#include <strandline/strandline.h>

#include <filesystem>
#include <fstream>
#include <iostream>

namespace {

using strandline::Session;
using strandline::Status;

// Prints how many changes of each type a query over a feed gives.
Status count(Session& session, const std::string& title, const std::string& feed) {
  SL_ASSIGN(const auto rows, session.query("SELECT _change_type, count(*) FROM " + feed +
                                           " GROUP BY _change_type ORDER BY _change_type"));
  std::cout << title << ":";
  for (;;) {
    SL_ASSIGN(const auto row, rows->next());
    if (!row) break;
    std::cout << " " << std::get<std::string>((*row)[0]) << " " << std::get<int64_t>((*row)[1]);
  }
  std::cout << "\n";
  return {};
}

// Available-now: everything there is, in as many batches as the limits ask for, then it ends. The
// pipeline's folder has the checkpoint: the next run goes on from there.
Status stream(const std::string& folder, const std::string& warehouse, const std::string& flows) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/flows.sql") << flows;
  strandline::RunOptions options;
  options.pipeline = folder;
  options.warehouse = warehouse;
  const auto report = strandline::run_update(options);
  return report.errors.empty() ? Status() : Status(report.errors.front());
}

Status run(const std::string& warehouse, const std::string& folder) {
  strandline::SessionOptions options;
  options.warehouse = warehouse;
  SL_ASSIGN(const auto session, Session::open(options));
  SL_TRY(
      session->execute("CREATE TABLE source_table (id INT, v STRING);"
                       "INSERT INTO source_table VALUES (1, 'a'), (2, 'b');"
                       "UPDATE source_table SET v = 'B' WHERE id = 2;"
                       "DELETE FROM source_table WHERE id = 1"));

  // Batch: both ends are inclusive; without an end up to the newest version.
  SL_TRY(count(*session, "versions 0 to 2", "table_changes('source_table', 0, 2)"));
  SL_TRY(count(*session, "from version 0", "table_changes('source_table', 0)"));
  SL_TRY(count(*session, "from a time", "table_changes('source_table', '2021-04-21 05:45:46')"));
  // An end after the newest commit is an error, unless it may be.
  SL_TRY(session->execute(
      "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled = true"));
  SL_TRY(count(*session, "between two times",
               "table_changes('source_table', '2021-04-21 05:45:46', '2121-05-21 12:00:00')"));
  SL_TRY(
      session->execute("CREATE SCHEMA `schema`; CREATE TABLE `schema`.`dotted.tableName` (id INT);"
                       "INSERT INTO `schema`.`dotted.tableName` VALUES (1)"));
  SL_TRY(count(*session, "odd names", "table_changes('`schema`.`dotted.tableName`', 0)"));

  // A permanent history, and a table that is complete up to version 2: it takes what comes after.
  const std::string flows =
      "CREATE STREAMING TABLE target_table AS "
      "SELECT * FROM STREAM source_table WITH (readChangeFeed=true);"
      "CREATE STREAMING TABLE rest AS "
      "SELECT * FROM STREAM source_table WITH (readChangeFeed=true, startingVersion=3);";
  SL_TRY(stream(folder, warehouse, flows));
  SL_TRY(session->execute("INSERT INTO source_table VALUES (3, 'c')"));
  SL_TRY(stream(folder, warehouse, flows));
  SL_TRY(count(*session, "target_table", "target_table"));
  SL_TRY(count(*session, "rest", "rest"));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " WAREHOUSE PIPELINE\n";
    return 2;
  }
  const auto done = run(argv[1], argv[2]);
  if (done.ok()) return 0;
  std::cerr << strandline::render_error(done.error()) << "\n";
  return 1;
}
