#include "delta/empty_partitions.h"

#include "delta/text_length.h"

namespace strandline::delta {

std::vector<Field> columns_without_empty(const Metadata& metadata, const Schema& schema) {
  std::vector<Field> out;
  for (const auto& name : metadata.partition_columns) {
    const Field* field = schema.get(name);
    if (field == nullptr) continue;
    if (field->type.id == TypeId::kBinary ||
        (field->type.id == TypeId::kString && !is_char(*field)))
      out.push_back(*field);
  }
  return out;
}

}  // namespace strandline::delta
