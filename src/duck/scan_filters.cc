#include "duck/scan_filters.h"

#include <fmt/format.h>

namespace strandline::duck {

std::string out_of_reach(const std::string& value) {
  return fmt::format("CASE WHEN {0} IS NOT NULL THEN {0} END", value);
}

std::string unfiltered(const std::string& column, const DataType& type) {
  switch (type.id) {
    case TypeId::kBinary:
    case TypeId::kFloat:
    case TypeId::kDouble:
      return out_of_reach(column);
    default:
      return column;  // members of a struct are compared with values alone
  }
}

}  // namespace strandline::duck
