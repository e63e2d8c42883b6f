#include "duck/curve.h"

#include <algorithm>

#include "duck/curve_function.h"

namespace strandline::duck {
namespace {

constexpr int kMostBits = 10;
constexpr int64_t kSampleRows = 1 << 16;
// Longer keys differ late: what lies behind is not worth the memory.
constexpr size_t kKeyBytes = 64;

// SQL for the sort keys of a row: one BLOB for each column, nulls first. Keys of short types alone
// would be numbers; with an empty text behind they are bytes, too.
std::string keys_sql(const std::vector<std::string>& columns) {
  std::string keys;
  for (const std::string& column : columns) {
    keys += fmt::format("{}create_sort_key({}, 'ASC NULLS FIRST', '', 'ASC NULLS FIRST')",
                        keys.empty() ? "" : ", ", column);
  }
  return "[" + keys + "]";
}

void place_on_curve(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const auto* numbers = input_column<int64_t>(input, 0);
  const duckdb_vector lists = duckdb_data_chunk_get_vector(input, 1);
  const duckdb_vector keys = duckdb_list_vector_get_child(lists);
  auto* result = static_cast<uint64_t*>(duckdb_vector_get_data(output));
  auto* strings = static_cast<duckdb_string_t*>(duckdb_vector_get_data(keys));
  const idx_t count = duckdb_data_chunk_get_size(input);
  if (count == 0) return;
  const auto ranges = registry_of<CurveRanges>(info).find(numbers[0]);
  if (ranges == nullptr) {
    duckdb_scalar_function_set_error(info, "a query outlived the curve it sorts by");
    return;
  }
  std::vector<uint32_t> point(ranges->columns());
  for (idx_t i = 0; i < count; ++i) {
    const duckdb_list_entry entry = list_entry_at(lists, i);
    for (size_t c = 0; c < point.size(); ++c) {
      duckdb_string_t& key = strings[entry.offset + c];
      point[c] = ranges->range(
          c, std::string_view(duckdb_string_t_data(&key), duckdb_string_t_length(key)));
    }
    result[i] = ranges->place(point);
  }
}

class SortedColumn final : public Curve {
 public:
  explicit SortedColumn(const std::string& column) : order_by_(column + " NULLS FIRST") {}
  const std::string& order_by() const override { return order_by_; }

 private:
  std::string order_by_;
};

class HilbertCurve final : public Curve {
 public:
  HilbertCurve(std::shared_ptr<Curves> registry, CurveRanges ranges,
               const std::vector<std::string>& columns)
      : registry_(std::move(registry)),
        number_(registry_->add(std::make_shared<const CurveRanges>(std::move(ranges)))),
        order_by_(fmt::format("sl_curve({}, {})", number_, keys_sql(columns))) {}
  HilbertCurve(const HilbertCurve&) = delete;
  HilbertCurve& operator=(const HilbertCurve&) = delete;
  ~HilbertCurve() override { registry_->remove(number_); }
  const std::string& order_by() const override { return order_by_; }

 private:
  std::shared_ptr<Curves> registry_;
  int64_t number_;
  std::string order_by_;
};

}  // namespace

uint64_t hilbert_place(std::vector<uint32_t> axes, int bits) {
  const size_t n = axes.size();
  // From the highest bit down: each half of the cube that the point lies in is turned so that the
  // curve inside it has the same shape again.
  for (uint32_t high = uint32_t{1} << (bits - 1); high > 1; high >>= 1) {
    const uint32_t lower = high - 1;
    for (size_t i = 0; i < n; ++i) {
      if ((axes[i] & high) != 0) {
        axes[0] ^= lower;
      } else {
        const uint32_t swapped = (axes[0] ^ axes[i]) & lower;
        axes[0] ^= swapped;
        axes[i] ^= swapped;
      }
    }
  }
  // Neighbours on the curve differ in one axis: Gray code, undone.
  for (size_t i = 1; i < n; ++i) axes[i] ^= axes[i - 1];
  uint32_t flips = 0;
  for (uint32_t high = uint32_t{1} << (bits - 1); high > 1; high >>= 1) {
    if ((axes[n - 1] & high) != 0) flips ^= high - 1;
  }
  for (uint32_t& axis : axes) axis ^= flips;
  uint64_t place = 0;
  for (int bit = bits - 1; bit >= 0; --bit) {
    for (const uint32_t axis : axes) place = place << 1 | (axis >> bit & 1);
  }
  return place;
}

CurveRanges::CurveRanges(std::vector<std::vector<std::string>> samples)
    : bits_(std::min(kMostBits, 64 / std::max(1, static_cast<int>(samples.size())))) {
  const size_t ranges = size_t{1} << bits_;
  for (std::vector<std::string>& keys : samples) {
    std::sort(keys.begin(), keys.end());
    std::vector<std::string>& borders = borders_.emplace_back();
    for (size_t i = 1; i < ranges && !keys.empty(); ++i) {
      const std::string& key = keys[i * keys.size() / ranges];
      if (borders.empty() || borders.back() != key) borders.push_back(key);
    }
  }
}

uint32_t CurveRanges::range(size_t column, std::string_view key) const {
  const auto& borders = borders_[column];
  key = key.substr(0, kKeyBytes);
  const auto above = std::upper_bound(borders.begin(), borders.end(), key);
  return static_cast<uint32_t>(above - borders.begin());
}

Status register_curve_function(duckdb_connection connection,
                               const std::shared_ptr<Curves>& curves) {
  const LogicalType blob(duckdb_create_logical_type(DUCKDB_TYPE_BLOB));
  const LogicalType keys(duckdb_create_list_type(blob.get()));
  const LogicalType number(duckdb_create_logical_type(DUCKDB_TYPE_BIGINT));
  const LogicalType place(duckdb_create_logical_type(DUCKDB_TYPE_UBIGINT));
  return register_typed_function(connection, curves, "sl_curve", {number.get(), keys.get()},
                                 place.get(), place_on_curve);
}

Result<std::unique_ptr<Curve>> build_curve(Connection& connection, const std::string& relation,
                                           const std::vector<std::string>& columns) {
  if (columns.size() == 1)
    return std::unique_ptr<Curve>(std::make_unique<SortedColumn>(columns[0]));
  std::vector<std::vector<std::string>> samples(columns.size());
  const auto on_columns = [](const std::vector<StreamColumn>&) -> Status { return {}; };
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    const duckdb_vector lists = duckdb_data_chunk_get_vector(chunk, 0);
    const duckdb_vector keys = duckdb_list_vector_get_child(lists);
    for (idx_t i = 0; i < duckdb_data_chunk_get_size(chunk); ++i) {
      const duckdb_list_entry entry = list_entry_at(lists, i);
      for (size_t c = 0; c < columns.size(); ++c)
        samples[c].push_back(text_at(keys, entry.offset + c).value_or("").substr(0, kKeyBytes));
    }
    return {};
  };
  // A repeatable sample: the same files are sorted the same way again.
  SL_TRY(stream(connection,
                fmt::format("SELECT {} FROM {} AS t USING SAMPLE reservoir({} ROWS) REPEATABLE (1)",
                            keys_sql(columns), relation, kSampleRows),
                on_columns, on_chunk));
  return std::unique_ptr<Curve>(
      std::make_unique<HilbertCurve>(curves(connection), CurveRanges(std::move(samples)), columns));
}

}  // namespace strandline::duck
