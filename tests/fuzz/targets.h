// What is fuzzed: code that reads bytes of others. Each function takes any bytes and stops the
// process when a promise is broken; a clang build makes one libFuzzer program of each
// (scripts/fuzz.sh), every build replays the inputs kept in corpus/.
#pragma once

#include <string_view>
#include <vector>

namespace strandline::fuzz {

// Commits, one after another, as a table's log.
void commit_log(std::string_view input);
// _last_checkpoint, checkpoint and sidecar rows (as JSON) and a commit after them.
void checkpoint(std::string_view input);
// A descriptor, then the bytes of a deletion vector file.
void deletion_vector(std::string_view input);
// The end of a Parquet file.
void parquet_footer(std::string_view input);
// Paths of the log: decoding, joining, one spelling.
void data_path(std::string_view input);
// Statements, expressions, types and schemas.
void sql(std::string_view input);
// A planted mistake that a working fuzzer finds in seconds. It has no inputs in corpus/.
void canary(std::string_view input);

struct Target {
  const char* name;  // also of its folder in corpus/
  void (*run)(std::string_view);
};
inline constexpr Target kTargets[] = {{"commit_log", commit_log},
                                      {"checkpoint", checkpoint},
                                      {"deletion_vector", deletion_vector},
                                      {"parquet_footer", parquet_footer},
                                      {"data_path", data_path},
                                      {"sql", sql}};

// Says what is broken and aborts.
void expect(bool holds, std::string_view promise);
// The parts between lines of "---"; an input without such a line is one part.
std::vector<std::string_view> parts_of(std::string_view input);

}  // namespace strandline::fuzz
