// Rows in the order of a Hilbert curve, so that each file covers a small box of several columns.
//
// Each column's values are cut into up to 2^bits ranges that hold about as many rows each, found in
// a sample; the ranges' numbers are a point, whose place on the curve is the sort key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "duck/connection.h"

namespace strandline::duck {

// Place of a point on the Hilbert curve through the cube of side 2^bits; axes.size() * bits <= 64.
uint64_t hilbert_place(std::vector<uint32_t> axes, int bits);

// The borders between the ranges, by column: sort keys that compare as bytes.
class CurveRanges {
 public:
  // samples: sort keys of some rows, by column.
  explicit CurveRanges(std::vector<std::vector<std::string>> samples);

  size_t columns() const { return borders_.size(); }
  uint32_t range(size_t column, std::string_view key) const;
  uint64_t place(const std::vector<uint32_t>& ranges) const { return hilbert_place(ranges, bits_); }

 private:
  int bits_;
  std::vector<std::vector<std::string>> borders_;
};

class Curve {
 public:
  virtual ~Curve() = default;
  // SQL to order by, over the columns given to build_curve. The curve must outlive its queries.
  virtual const std::string& order_by() const = 0;
};

inline constexpr size_t kMostCurveColumns = 16;

// columns are SQL expressions over relation, a FROM item; reads it once for a sample. One column is
// simply sorted.
Result<std::unique_ptr<Curve>> build_curve(Connection& connection, const std::string& relation,
                                           const std::vector<std::string>& columns);

}  // namespace strandline::duck
