// What the end of a Parquet file says of the whole file: a few bytes of it, without the engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delta/actions.h"
#include "storage/store.h"

namespace strandline::delta {

struct ParquetFooter {
  int64_t row_count = 0;
  bool has_field_ids = false;      // of any column, at any level
  std::vector<std::string> names;  // of the columns, at all levels, and first of the schema itself
};

// Of the bytes of a footer, without its length and the magic after it; a start that reaches beyond
// the schema is enough. Errors: kCorrupt PARQUET_FOOTER_DAMAGED.
Result<ParquetFooter> parse_parquet_footer(std::string_view bytes);

// Of a file of that size; nullopt when the footer is encrypted.
// Errors: kCorrupt PARQUET_FOOTER_DAMAGED ("is no whole Parquet file", to go on after the file's
// name), and the store's.
Result<std::optional<ParquetFooter>> read_parquet_footer(storage::Store* store,
                                                         const std::string& path,
                                                         int64_t size_bytes);

// The bytes of the footer, as parse_parquet_footer takes them. nullopt and errors: as above.
Result<std::optional<std::string>> read_parquet_footer_bytes(storage::Store* store,
                                                             const std::string& path,
                                                             int64_t size_bytes);

// How many rows a data file of the table has, deleted ones too: what its statistics say, else its
// footer; nullopt when neither tells. Errors: as above, with the file's name; kNotFound.
Result<std::optional<int64_t>> count_rows(storage::Store* store, const std::string& table_path,
                                          const AddFile& file);

// Statistics as JSON text that say so many rows, and all else that they said.
std::string with_row_count(const std::string& stats, int64_t count);

}  // namespace strandline::delta
