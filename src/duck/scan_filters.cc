#include "duck/scan_filters.h"

#include <fmt/format.h>

namespace strandline::duck {

std::string unfiltered(const std::string& column, const DataType& type) {
  switch (type.id) {
    case TypeId::kBinary:
      return fmt::format("({} || ''::BLOB)", column);
    case TypeId::kFloat:
    case TypeId::kDouble:
      return fmt::format("(-(-{}))", column);
    default:
      return column;  // members of a struct are compared with values alone
  }
}

}  // namespace strandline::duck
