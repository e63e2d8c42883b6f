// The cells of per-file statistics that a question needs, read straight out of the JSON text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delta/filter_value.h"

namespace strandline::delta {

// What a file's statistics say about one column; texts live until the next read.
struct ColumnStats {
  std::optional<BoundText> min;
  std::optional<BoundText> max;
  std::optional<int64_t> null_count;
};

class StatsReader {
 public:
  // The columns as paths of names in the files. No other column is looked at.
  explicit StatsReader(const std::vector<std::vector<std::string>>& columns);
  StatsReader(StatsReader&&) noexcept;
  StatsReader& operator=(StatsReader&&) noexcept;
  ~StatsReader();

  struct FileStats {
    std::optional<int64_t> num_records;
    std::vector<ColumnStats> columns;  // as given to the constructor
  };
  // Cells that are missing or no scalar stay unknown; of text that is not JSON everything does.
  const FileStats& read(std::string_view json);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strandline::delta
