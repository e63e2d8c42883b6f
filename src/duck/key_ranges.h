// Which files can hold rows whose keys are among given ones.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "delta/file_filter.h"
#include "duck/connection.h"

namespace strandline::duck {

struct KeyColumn {
  std::string table_column;  // logical name in the table
  std::string value;         // expression over the relation of keys, whose alias is k
  bool nulls_match = false;  // a null key matches rows with a null there (<=>)
};

// The keys of a relation, column by column: each as at most a few hundred tight ranges.
struct KeyRanges {
  struct Column {
    std::string table_column;
    std::vector<std::pair<delta::FilterLiteral, delta::FilterLiteral>> ranges;
    bool with_null = false;
  };
  std::vector<Column> columns;
  int64_t count = 0;  // rows of the relation; 0: there are no keys at all

  // Keeps every file that may hold a row equal to some key in all columns. Columns whose types have
  // no order, NaN and infinities leave nothing out.
  delta::FileFilter filter(const delta::Snapshot& table) const;
};

// keys: a relation, as for FROM. Costs two passes over each column; no table is read.
Result<KeyRanges> key_ranges(Connection& connection, const std::vector<KeyColumn>& columns,
                             const std::string& keys);

}  // namespace strandline::duck
