// KeyFilter: a Bloom filter over keys, as a condition that the engine runs inside a table scan.
//
// A condition on a single column is evaluated before the scan's other columns are decoded, which a
// semi-join is not. So: WHERE <filter's condition on a key column> AND <the exact join>.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "duck/connection.h"

namespace strandline::duck {

class KeyFilter {
 public:
  virtual ~KeyFilter() = default;
  // SQL that is true for every value that hashes like a key, and for few others (about one in a
  // thousand). value_sql is one column of the type that was hashed: hash() differs between types.
  // The filter must outlive the queries that use it.
  virtual std::string condition(const std::string& value_sql) const = 0;
};

// Reads the values of a one-column query (duplicates and nulls are fine; null passes the filter
// only if it is among them). Costs 8 bytes a value while building, then 2 to 4 bytes a value, at
// least 128 KiB. Above 2^25 values a filter would not pay: the condition is then "true".
Result<std::unique_ptr<KeyFilter>> build_key_filter(Connection& connection,
                                                    const std::string& values_sql);

}  // namespace strandline::duck
