#include "duck/zero_signs.h"

#include <algorithm>
#include <cmath>

namespace strandline::duck {
namespace {

template <typename T>
void see_zeros(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  if (count == 0) return;
  const T* const values = input_column<T>(input, 1);
  std::copy(values, values + count, static_cast<T*>(duckdb_vector_get_data(output)));
  uint64_t* const valid = duckdb_vector_get_validity(duckdb_data_chunk_get_vector(input, 1));
  constexpr idx_t kBits = 64;
  const idx_t words = (count + kBits - 1) / kBits;
  if (valid != nullptr) {
    duckdb_vector_ensure_validity_writable(output);
    std::copy(valid, valid + words, duckdb_vector_get_validity(output));
  } else if (uint64_t* const before = duckdb_vector_get_validity(output); before != nullptr) {
    std::fill(before, before + words, ~uint64_t{0});
  }
  unsigned signs = 0;
  for (idx_t i = 0; i < count; ++i) {
    if (values[i] != 0 || !is_valid(valid, i)) continue;
    signs |= std::signbit(values[i]) ? ZeroSigns::kNegative : ZeroSigns::kPositive;
  }
  if (signs == 0) return;
  const auto seen = registry_of<ZeroSigns>(info).find(*input_column<int64_t>(input, 0));
  if (seen == nullptr) {
    duckdb_scalar_function_set_error(info, "a query outlived what it tells zeros to");
    return;
  }
  seen->see(signs);
}

}  // namespace

Status register_zero_signs_functions(duckdb_connection connection,
                                     const std::shared_ptr<ZeroSignsOfColumns>& columns) {
  SL_TRY(register_function(connection, columns, "sl_see_zeros_of_float",
                           {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_FLOAT}, DUCKDB_TYPE_FLOAT,
                           see_zeros<float>, Nulls::kGiven));
  return register_function(connection, columns, "sl_see_zeros_of_double",
                           {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_DOUBLE}, DUCKDB_TYPE_DOUBLE,
                           see_zeros<double>, Nulls::kGiven);
}

}  // namespace strandline::duck
