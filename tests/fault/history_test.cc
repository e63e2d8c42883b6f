// Random histories through whole pipelines: updates are stopped at a random call of the store, as
// often as they like, files with new and without old columns arrive meanwhile, rows come twice and
// late; in the end the table is what the reference model makes of all events (auto-cdc.md section
// 1).
//
//   STRANDLINE_CRASH_HISTORIES=2000  how many key histories (default 24)
//   STRANDLINE_PROPERTY_SEED=42      the first seed; printed, random by default
//
// Each pipeline has a seed of its own, one after the other, so that a run can be split, or go on
// where it was stopped: with the next seed, as printed, and as many histories as are left.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "pipeline/test_pipeline.h"
#include "property/model.h"

namespace strandline::pipeline {
namespace {

using model::Event;
using model::EventKind;
using model::Value;

constexpr int kKeys = 4;
constexpr int kBatches = 4;

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Story {
 public:
  explicit Story(uint64_t seed) : random_(seed) {
    const char* const types[] = {"SCD TYPE 1", "SCD TYPE 2", "BITEMPORAL"};
    type_ = static_cast<int>(random_() % 3);
    partial_ = chance(2);
    truncates_ = type_ == 0 && chance(2);
    tracks_a_ = type_ > 0 && chance(3);
    column_from_ = pick(kBatches);
    column_until_ = chance(3) ? column_from_ + 1 : kBatches;
    text_ =
        std::string("CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM ") +
        "read_files('data', format => 'json', maxFilesPerTrigger => 1) KEYS (id) " +
        (partial_ ? "IGNORE NULL UPDATES " : "") + "APPLY AS DELETE WHEN op = 'D' " +
        (truncates_ ? "APPLY AS TRUNCATE WHEN op = 'T' " : "") + "SEQUENCE BY s " +
        (type_ == 2 ? "SYSTEM SEQUENCE BY sys " : "") + "COLUMNS * EXCEPT (op, s, sys) STORED AS " +
        types[type_] + (tracks_a_ ? " TRACK HISTORY ON (a)" : "") + ";";
  }

  // What is wrong, or nothing.
  std::string run() {
    TestPipeline p;
    p.write("t.sql", text_);
    std::vector<std::string> lines;
    for (int batch = 0; batch < kBatches; ++batch) {
      // A full file comes first, so that every type is known.
      std::string file = batch == 0 ? event_line(batch, 0, true) : "";
      for (int i = pick(9) + 3; i > 0; --i) file += event_line(batch, pick(kKeys), false);
      p.write("data/" + std::to_string(batch) + ".json", file);
      if (auto wrong = update(p); !wrong.empty()) return wrong;
    }
    return compare(p);
  }
  const std::string& text() const { return text_; }
  int stops() const { return stops_; }

 private:
  bool chance(int of) { return random_() % static_cast<uint64_t>(of) == 0; }
  int pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  // Updates that are stopped, then one that is not.
  std::string update(TestPipeline& p) {
    std::string stops;
    for (int stop = 1 + pick(2); stop > 0; --stop) {
      const auto mode = static_cast<storage::FaultMode>(pick(3));
      const int at = 1 + pick(18);
      auto faulty = storage::FaultStore::wrap(storage::make_local_store());
      faulty->arm(at, mode);
      p.store = faulty;
      const auto stopped = p.run();
      stops_ += stopped.status == UpdateStatus::kCompleted ? 0 : 1;
      stops += " call " + std::to_string(at) + ": " + errors_of(stopped);
      p.store = nullptr;
    }
    const auto report = p.run();
    if (report.status == UpdateStatus::kCompleted) return "";
    return errors_of(report) + "after stops at" + stops;
  }

  std::string event_line(int batch, int key, bool full) {
    if (!full && !lines_.empty() && chance(6)) {
      // Once more: of the columns that were there then, whatever the source has now.
      const size_t again = random_() % lines_.size();
      events_.push_back(events_[again]);
      lines_.push_back(lines_[again]);
      return lines_[again];
    }
    Event event;
    event.key = {Value::integer(key)};
    const int sequence = pick(12), system = pick(6);
    event.sequence = Value::integer(sequence);
    if (type_ == 2) event.system = Value::integer(system);
    if (!full && chance(5)) event.kind = EventKind::kDelete;
    if (!full && truncates_ && chance(15)) event.kind = EventKind::kTruncate;
    const char* const op = event.kind == EventKind::kDelete     ? "D"
                           : event.kind == EventKind::kTruncate ? "T"
                                                                : "U";
    std::string line = "{\"id\":" + std::to_string(key) + ",\"op\":\"" + op +
                       "\",\"s\":" + std::to_string(sequence) +
                       ",\"sys\":" + std::to_string(system);
    event.partial = partial_;
    const bool has_column = batch >= column_from_ && batch < column_until_;
    for (const char* name : {"a", "extra", "n"}) {
      const bool is_text = *name == 'a';
      const bool is_there = *name != 'e' || has_column;
      const bool is_null = !is_there || (!full && chance(4));
      const int number = pick(3);
      Value value;
      if (!is_null) {
        value = is_text ? Value::string(std::string(1, static_cast<char>('x' + number)))
                        : Value::integer(number);
        value.spelled = is_text ? value.text : std::to_string(number);
      }
      if (is_there) {
        line += ",\"" + std::string(name) + "\":" +
                (is_null ? "null" : (is_text ? "\"" + value.text + "\"" : std::to_string(number)));
      }
      if (event.kind == EventKind::kUpsert) {
        event.values.push_back(value);
        event.leaves.push_back(is_null ? std::nullopt : std::optional(value));
      }
    }
    events_.push_back(event);
    lines_.push_back(line + "}\n");
    return lines_.back();
  }

  static std::string text_of(const Value& value) {
    switch (value.kind) {
      case Value::Kind::kNull:
        return "NULL";
      case Value::Kind::kText:
        return value.text;
      default:
        return std::to_string(value.number);
    }
  }

  std::string compare(const TestPipeline& p) {
    const model::Columns columns{{{}, {}, {}}, {true, !tracks_a_, !tracks_a_}, {}};
    const auto rows = type_ == 0   ? model::scd1(events_, columns)
                      : type_ == 1 ? model::scd2(events_, columns)
                                   : model::bitemporal(events_, columns);
    const bool has_extra = p.snapshot("t")->schema.find("extra").has_value();
    std::vector<std::string> expected;
    for (const auto& row : rows) {
      std::string text = text_of(row.key[0]);
      for (size_t i = 0; i < row.values.size(); ++i) {
        if (i != 1 || has_extra) text += "|" + text_of(row.values[i]);
      }
      if (type_ > 0) text += "|" + text_of(row.start) + "|" + text_of(row.end);
      if (type_ > 1) text += "|" + text_of(row.system_start) + "|" + text_of(row.system_end);
      expected.push_back(std::move(text));
    }
    std::sort(expected.begin(), expected.end());
    std::string select = has_extra ? "id, a, extra, n" : "id, a, n";
    if (type_ > 0) select += ", __START_AT, __END_AT";
    if (type_ > 1) select += ", __SYSTEM_START_AT, __SYSTEM_END_AT";
    const auto got = p.rows("t", select);
    if (got == expected) return "";
    std::string wrong = "expected, then got:\n";
    for (const auto& row : expected) wrong += row + "\n";
    wrong += "--\n";
    for (const auto& row : got) wrong += row + "\n";
    for (const auto& line : lines_) wrong += line;
    return wrong;
  }

  std::mt19937_64 random_;
  int type_ = 0;
  bool partial_ = false, truncates_ = false, tracks_a_ = false;
  int column_from_ = 0, column_until_ = 0;
  int stops_ = 0;  // updates that did not complete
  std::string text_;
  std::vector<Event> events_;
  std::vector<std::string> lines_;
};

TEST(CrashHistories, EndInTheModelsRows) {
  const uint64_t wanted = number_from_environment("STRANDLINE_CRASH_HISTORIES", 24);
  const uint64_t first = number_from_environment("STRANDLINE_PROPERTY_SEED", 1);
  std::cout << "seed " << first << ", " << wanted << " histories\n";
  constexpr uint64_t kTold = 50;  // pipelines between two lines about how far it is
  uint64_t stops = 0;
  for (uint64_t i = 0; i * kKeys < wanted; ++i) {
    if (i > 0 && i % kTold == 0) {
      std::cout << i * kKeys << " histories passed, " << stops << " stops; next seed " << first + i
                << std::endl;
    }
    Story story(first + i);
    const std::string wrong = story.run();
    ASSERT_EQ(wrong, "") << "seed " << first + i << "\n" << story.text();
    stops += static_cast<uint64_t>(story.stops());
  }
  EXPECT_GT(stops * kKeys, wanted);
}

}  // namespace
}  // namespace strandline::pipeline
