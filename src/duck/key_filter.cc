#include "duck/key_filter.h"

#include <fmt/format.h>

#include "duck/key_filter_bits.h"

namespace strandline::duck {
namespace {

constexpr size_t kMaxValues = size_t{1} << 25;

void may_contain(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const auto* numbers = input_column<int64_t>(input, 0);
  const auto* hashes = input_column<uint64_t>(input, 1);
  auto* result = static_cast<bool*>(duckdb_vector_get_data(output));
  const idx_t count = duckdb_data_chunk_get_size(input);
  std::shared_ptr<const KeyFilterBits> bits;
  int64_t number = 0;
  for (idx_t i = 0; i < count; ++i) {
    if (numbers[i] != number) {
      number = numbers[i];
      bits = registry_of<KeyFilterBits>(info).find(number);
    }
    if (bits == nullptr) {
      duckdb_scalar_function_set_error(info, "a query outlived the key filter it uses");
      return;
    }
    result[i] = bits->may_contain(hashes[i]);
  }
}

class RegisteredFilter final : public KeyFilter {
 public:
  RegisteredFilter(std::shared_ptr<KeyFilters> registry, const std::vector<uint64_t>& hashes)
      : registry_(std::move(registry)),
        number_(registry_->add(std::make_shared<const KeyFilterBits>(hashes))) {}
  RegisteredFilter(const RegisteredFilter&) = delete;
  RegisteredFilter& operator=(const RegisteredFilter&) = delete;
  ~RegisteredFilter() override { registry_->remove(number_); }

  std::string condition(const std::string& value_sql) const override {
    return fmt::format("sl_key_filter({}, hash({}))", number_, value_sql);
  }

 private:
  std::shared_ptr<KeyFilters> registry_;
  int64_t number_;
};

class OpenFilter final : public KeyFilter {
 public:
  std::string condition(const std::string&) const override { return "true"; }
};

}  // namespace

Status register_key_filter_function(duckdb_connection connection,
                                    const std::shared_ptr<KeyFilters>& filters) {
  return register_function(connection, filters, "sl_key_filter",
                           {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_UBIGINT}, DUCKDB_TYPE_BOOLEAN,
                           may_contain);
}

Result<std::unique_ptr<KeyFilter>> build_key_filter(Connection& connection,
                                                    const std::string& values_sql) {
  std::vector<uint64_t> hashes;
  const auto on_columns = [](const std::vector<StreamColumn>&) -> Status { return {}; };
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    const auto* values = input_column<uint64_t>(chunk, 0);
    hashes.insert(hashes.end(), values, values + duckdb_data_chunk_get_size(chunk));
    return {};
  };
  SL_TRY(stream(connection,
                fmt::format("SELECT hash(v) FROM (SELECT * FROM ({}) AS q(v) LIMIT {})", values_sql,
                            kMaxValues + 1),
                on_columns, on_chunk));
  if (hashes.size() > kMaxValues) return std::unique_ptr<KeyFilter>(std::make_unique<OpenFilter>());
  return std::unique_ptr<KeyFilter>(
      std::make_unique<RegisteredFilter>(key_filters(connection), hashes));
}

}  // namespace strandline::duck
