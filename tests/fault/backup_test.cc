// Folders put back from copies, one without the other. A target, its state and its flows' progress
// are three folders; any of them, and the tables that a flow reads, may come from another moment.
// An update then says so and writes nothing, or ends in the rows that all events together give: it
// never goes on with a gap.
//
//   STRANDLINE_BACKUP_CASES=5000  how many mixtures (default 240)
//   STRANDLINE_PROPERTY_SEED=42   the first seed; printed
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "duck/optimize.h"
#include "pipeline/test_pipeline.h"
#include "property/model.h"

namespace strandline::pipeline {
namespace {

namespace fs = std::filesystem;
using model::Event;
using model::EventKind;
using model::Value;

constexpr const char* kFiles =
    "read_files('data', format => 'json', schema => 'id INT, op STRING, s INT, sys INT, a STRING, "
    "n INT', maxFilesPerTrigger => 1)";

enum class Rows { kScd1, kScd2, kBitemporal, kAll, kSums };

struct Declaration {
  const char* name;
  std::string text;
  // The tables that have rows, in the order they are made; the last one is compared.
  std::vector<std::string> tables;
  Rows rows;
};

std::string auto_cdc(const std::string& from, const std::string& more) {
  return "AUTO CDC INTO t FROM " + from + " KEYS (id) APPLY AS DELETE WHEN op = 'D' " +
         "SEQUENCE BY s " + more + ";\n";
}

std::vector<Declaration> declarations() {
  const std::string t = "CREATE STREAMING TABLE t;\nCREATE FLOW f AS ";
  const std::string files = kFiles;
  const std::string bronze =
      "CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM " + files + ";\n";
  const std::string whole = "COLUMNS * EXCEPT (op, s, sys) ";
  return {
      {"SCD type 1",
       t + auto_cdc("STREAM " + files, whole + "STORED AS SCD TYPE 1"),
       {"t"},
       Rows::kScd1},
      {"SCD type 2",
       t + auto_cdc("STREAM " + files, whole + "STORED AS SCD TYPE 2"),
       {"t"},
       Rows::kScd2},
      {"bitemporal",
       t + auto_cdc("STREAM " + files, "SYSTEM SEQUENCE BY sys " + whole + "STORED AS BITEMPORAL"),
       {"t"},
       Rows::kBitemporal},
      {"two flows",
       t +
           auto_cdc("(SELECT * FROM STREAM " + files + " WHERE id % 2 = 0)",
                    whole + "STORED AS SCD TYPE 2") +
           "CREATE FLOW g AS " +
           auto_cdc("(SELECT * FROM STREAM " + files + " WHERE id % 2 = 1)",
                    whole + "STORED AS SCD TYPE 2"),
       {"t"},
       Rows::kScd2},
      {"inserts",
       "CREATE STREAMING TABLE t AS SELECT * FROM STREAM " + files + ";\n",
       {"t"},
       Rows::kAll},
      {"AUTO CDC of a table's stream",
       bronze + t + auto_cdc("STREAM bronze", whole + "STORED AS SCD TYPE 1"),
       {"bronze", "t"},
       Rows::kScd1},
      {"inserts of a table's stream",
       bronze + "CREATE STREAMING TABLE t AS SELECT * FROM STREAM bronze;\n",
       {"bronze", "t"},
       Rows::kAll},
      {"AUTO CDC of a feed",
       "CREATE STREAMING TABLE mid;\nCREATE FLOW m AS AUTO CDC INTO mid FROM STREAM " + files +
           " KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s " + whole + ";\n" + t +
           "AUTO CDC INTO t FROM STREAM mid WITH (readChangeFeed=true) KEYS (id) SEQUENCE BY "
           "_commit_version STORED AS SCD TYPE 1;\n",
       {"mid", "t"},
       Rows::kScd1},
      {"materialized view",
       bronze + "CREATE MATERIALIZED VIEW t AS SELECT id, count(*) AS c, sum(n) AS n FROM bronze "
                "GROUP BY id;\n",
       {"bronze", "t"},
       Rows::kSums},
      {"snapshots",
       bronze +
           "CREATE MATERIALIZED VIEW sums AS SELECT id, count(*) AS c, sum(n) AS n FROM "
           "bronze GROUP BY id;\n" +
           "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * "
           "FROM sums) KEYS (id) STORED AS SCD TYPE 1;\n",
       {"bronze", "sums", "t"},
       Rows::kSums},
  };
}

// What is put back, of each table: its folder without the state, its state, its flows' progress.
enum Part { kTable, kState, kProgress, kParts };

class Story {
 public:
  explicit Story(uint64_t seed) : random_(seed) {
    const auto all = declarations();
    declaration_ = all[seed % all.size()];
  }

  // What is wrong, or nothing.
  std::string run(int mixtures) {
    p_.write("p.sql", declaration_.text);
    for (int i = 2 + pick(2); i > 0; --i) {
      if (auto wrong = go_on(); !wrong.empty()) return wrong;
    }
    for (int i = 0; i < mixtures; ++i) {
      if (auto wrong = mix(); !wrong.empty()) return wrong;
    }
    return "";
  }
  std::string described() const { return declaration_.name + ("\n" + told_); }
  const std::map<std::string, int>& outcomes() const { return outcomes_; }

 private:
  bool chance(int of) { return random_() % static_cast<uint64_t>(of) == 0; }
  int pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void add_file() {
    std::string file;
    for (int i = 2 + pick(4); i > 0; --i) {
      Event event;
      const int key = pick(4), sequence = pick(40), system = pick(6), n = pick(5);
      event.key = {Value::integer(key)};
      event.sequence = Value::integer(sequence);
      if (declaration_.rows == Rows::kBitemporal) event.system = Value::integer(system);
      if (chance(4)) event.kind = EventKind::kDelete;
      const std::string op = event.kind == EventKind::kDelete ? "D" : "U";
      const std::string a(1, static_cast<char>('x' + pick(3)));
      if (event.kind == EventKind::kUpsert) {
        event.values = {Value::string(a), Value::integer(n)};
        event.leaves = {event.values[0], event.values[1]};
      }
      for (auto& value : event.values)
        value.spelled = value.text.empty() ? std::to_string(value.number) : value.text;
      events_.push_back(event);
      file += "{\"id\":" + std::to_string(key) + ",\"op\":\"" + op +
              "\",\"s\":" + std::to_string(sequence) + ",\"sys\":" + std::to_string(system) +
              ",\"a\":\"" + a + "\",\"n\":" + std::to_string(n) + "}\n";
      all_.push_back(std::to_string(key) + "|" + op + "|" + std::to_string(sequence) + "|" +
                     std::to_string(system) + "|" + a + "|" + std::to_string(n));
      auto& [count, sum] = sums_[key];
      ++count;
      sum += n;
    }
    p_.write("data/" + std::to_string(files_++) + ".json", file);
  }

  // A batch, perhaps stopped on the way, and what there is then is kept.
  std::string go_on() {
    add_file();
    if (chance(3)) {
      auto faulty = storage::FaultStore::wrap(storage::make_local_store());
      faulty->arm(1 + pick(16), static_cast<storage::FaultMode>(pick(3)));
      p_.store = faulty;
      (void)p_.run();
      p_.store = nullptr;
      keep();
    }
    const auto report = p_.run();
    if (report.status != UpdateStatus::kCompleted) return "going on: " + errors_of(report);
    if (chance(4)) optimize();
    keep();
    return compare("going on");
  }

  void optimize() {
    auto connection = shared_database()->connect();
    ASSERT_TRUE(connection.ok());
    const auto done = duck::optimize(**connection, p_.table("t"), {});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  // --- folders -----------------------------------------------------------------------------------

  fs::path place(const std::string& table, int part) const {
    const fs::path warehouse = p_.path("warehouse");
    if (part == kProgress)
      return warehouse / "_strandline/pipelines/p/checkpoints/main.default." += table;
    const fs::path folder = warehouse / "main/default" / table;
    return part == kState ? folder / "_strandline_state" : folder;
  }
  fs::path copy_place(size_t moment, const std::string& table, int part) const {
    return fs::path(p_.path("..")) / "moments" / std::to_string(moment) / table /
           std::to_string(part);
  }

  static void copy(const fs::path& from, const fs::path& to, bool without_state) {
    fs::create_directories(to);
    for (const auto& entry : fs::directory_iterator(from)) {
      if (without_state && entry.path().filename() == "_strandline_state") continue;
      fs::copy(entry.path(), to / entry.path().filename(), fs::copy_options::recursive);
    }
  }

  void keep() {
    for (const auto& table : declaration_.tables) {
      for (int part = 0; part < kParts; ++part) {
        if (!fs::exists(place(table, part))) continue;
        copy(place(table, part), copy_place(moments_, table, part), part == kTable);
      }
    }
    ++moments_;
  }

  void put_back(size_t moment, const std::string& table, int part) {
    const fs::path to = place(table, part);
    if (part == kTable) {
      if (fs::exists(to)) {
        for (const auto& entry : fs::directory_iterator(to)) {
          if (entry.path().filename() != "_strandline_state") fs::remove_all(entry.path());
        }
      }
    } else {
      fs::remove_all(to);
    }
    const fs::path from = copy_place(moment, table, part);
    if (fs::exists(from)) copy(from, to, false);
  }

  void put_all_back(size_t moment) {
    told_ += "all of moment " + std::to_string(moment) + "\n";
    for (const auto& table : declaration_.tables) {
      for (int part = 0; part < kParts; ++part) put_back(moment, table, part);
    }
  }

  // --- mixtures ----------------------------------------------------------------------------------

  std::string mix() {
    put_all_back(random_() % moments_);
    const char* const parts[] = {"table", "state", "progress"};
    for (const auto& table : declaration_.tables) {
      for (int part = 0; part < kParts; ++part) {
        if (!chance(3)) continue;
        const size_t moment = random_() % moments_;
        told_ += "  " + table + " " + parts[part] + " of " + std::to_string(moment) + "\n";
        put_back(moment, table, part);
      }
    }
    if (chance(2)) add_file();
    const auto before = versions();
    const auto report = p_.run();
    told_ += errors_of(report);
    if (report.status == UpdateStatus::kCompleted) {
      ++outcomes_["COMPLETED"];
      if (auto wrong = compare("of several moments"); !wrong.empty()) return wrong;
      keep();
      return "";
    }
    for (const auto& error : report.errors) {
      ++outcomes_[error.code];
      static const std::set<std::string> kNamed = {
          "CHECKPOINT_BEHIND", "TARGET_BEHIND", "STATE_BEHIND", "SOURCE_BEHIND",
          "AUTOCDC_INVALID_STATE.STATE_MISSING", "AUTOCDC_INVALID_STATE.TARGET_REPLACED",
          "AUTOCDC_INVALID_STATE.SNAPSHOT_DRIFT", "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
          // A table that was fully refreshed since it was read.
          "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE", "DELTA_LOG_MISSING"};
      if (kNamed.count(error.code) == 0) return "another error: " + errors_of(report);
    }
    const auto after = versions();
    for (const auto& flow : report.flows) {
      if (flow.status != "FAILED") continue;
      const std::string table = flow.target.substr(flow.target.rfind('.') + 1);
      if (before.at(table) != after.at(table)) return "a failed flow wrote: " + errors_of(report);
    }
    return find_way_out();
  }

  // What the messages advise: all of one moment, or a full refresh.
  std::string find_way_out() {
    UpdateReport report;
    if (chance(2)) {
      put_all_back(random_() % moments_);
      report = p_.run();
    } else {
      report = p_.full_refresh();
    }
    if (report.status != UpdateStatus::kCompleted) return "the way out: " + errors_of(report);
    keep();
    return compare("after the way out");
  }

  std::map<std::string, std::string> versions() const {
    std::map<std::string, std::string> out;
    for (const auto& name : declaration_.tables) {
      const delta::Table table = p_.table(name);
      const delta::Table state(table.store(), table.parquet(), table.path() + "/_strandline_state");
      for (const auto& one : {table, state}) {
        const auto version = one.latest_version();
        out[name] += (version.ok() ? std::to_string(*version) : "none") + " ";
      }
    }
    return out;
  }

  // --- rows --------------------------------------------------------------------------------------

  std::vector<std::string> expected() const {
    std::vector<std::string> out;
    if (declaration_.rows == Rows::kAll) {
      out = all_;
    } else if (declaration_.rows == Rows::kSums) {
      for (const auto& [key, sums] : sums_) {
        out.push_back(std::to_string(key) + "|" + std::to_string(sums.first) + "|" +
                      std::to_string(sums.second));
      }
    } else {
      const model::Columns columns{{{}, {}}, {true, true}, {}};
      const auto rows = declaration_.rows == Rows::kScd1   ? model::scd1(events_, columns)
                        : declaration_.rows == Rows::kScd2 ? model::scd2(events_, columns)
                                                           : model::bitemporal(events_, columns);
      for (const auto& row : rows) {
        std::string text = text_of(row.key[0]);
        for (const auto& value : row.values) text += "|" + text_of(value);
        if (declaration_.rows != Rows::kScd1)
          text += "|" + text_of(row.start) + "|" + text_of(row.end);
        if (declaration_.rows == Rows::kBitemporal)
          text += "|" + text_of(row.system_start) + "|" + text_of(row.system_end);
        out.push_back(std::move(text));
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  static std::string text_of(const Value& value) {
    if (value.kind == Value::Kind::kNull) return "NULL";
    return value.kind == Value::Kind::kText ? value.text : std::to_string(value.number);
  }

  std::string compare(const std::string& when) const {
    const char* select = "*";
    if (declaration_.rows == Rows::kScd1) select = "id, a, n";
    if (declaration_.rows == Rows::kSums) select = "id, c, n";
    const auto wanted = expected();
    const auto got = p_.rows("t", select);
    if (got == wanted) return "";
    std::string wrong = when + ": expected, then got:\n";
    for (const auto& row : wanted) wrong += row + "\n";
    wrong += "--\n";
    for (const auto& row : got) wrong += row + "\n";
    return wrong;
  }

  std::mt19937_64 random_;
  Declaration declaration_;
  TestPipeline p_;
  int files_ = 0;
  size_t moments_ = 0;
  std::vector<Event> events_;
  std::vector<std::string> all_;
  std::map<int, std::pair<int, int>> sums_;
  std::string told_;
  std::map<std::string, int> outcomes_;
};

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Backups, FoldersOfSeveralMomentsAreAnErrorOrTheRightTable) {
  constexpr uint64_t kMixtures = 6;  // of a pipeline
  const uint64_t wanted = number_from_environment("STRANDLINE_BACKUP_CASES", 240);
  const uint64_t first = number_from_environment("STRANDLINE_PROPERTY_SEED", 1);
  std::cout << "seed " << first << ", " << wanted << " mixtures\n";
  std::map<std::string, int> outcomes;
  for (uint64_t i = 0; i * kMixtures < wanted; ++i) {
    Story story(first + i);
    const std::string wrong = story.run(kMixtures);
    ASSERT_EQ(wrong, "") << "seed " << first + i << "\n" << story.described();
    for (const auto& [code, count] : story.outcomes()) outcomes[code] += count;
  }
  for (const auto& [code, count] : outcomes) std::cout << code << " " << count << "\n";
  // The ways a mixture can end are met; the rare one by more of them (tests/crash/test_backups.py).
  constexpr uint64_t kSome = 240, kMany = 2000;
  if (wanted < kSome) return;
  for (const char* code : {"COMPLETED", "TARGET_BEHIND", "STATE_BEHIND", "CHECKPOINT_BEHIND"})
    EXPECT_GT(outcomes[code], 0) << code;
  if (wanted < kMany) return;
  EXPECT_GT(outcomes["SOURCE_BEHIND"], 0);
}

}  // namespace
}  // namespace strandline::pipeline
