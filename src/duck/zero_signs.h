// Which zeros a column has. The engine's Parquet writer takes -0.0 and 0.0 for one value of a
// dictionary, so that a file with both needs to be written without dictionaries.
//   sl_see_zeros_of_float(number, value), …_of_double  the value; notes its sign if it is zero
#pragma once

#include <duckdb.h>

#include <atomic>
#include <memory>

#include "duck/registry.h"

namespace strandline::duck {

// Thread-safe.
class ZeroSigns {
 public:
  void see(unsigned signs) const { seen_.fetch_or(signs, std::memory_order_relaxed); }
  bool has_both() const { return seen_.load() == (kPositive | kNegative); }
  void forget() const { seen_ = 0; }

  static constexpr unsigned kPositive = 1;
  static constexpr unsigned kNegative = 2;

 private:
  mutable std::atomic<unsigned> seen_ = 0;
};

using ZeroSignsOfColumns = Registry<ZeroSigns>;

Status register_zero_signs_functions(duckdb_connection connection,
                                     const std::shared_ptr<ZeroSignsOfColumns>& columns);

}  // namespace strandline::duck
