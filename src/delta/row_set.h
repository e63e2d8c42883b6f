// RowSet: physical row positions of one data file, as a 64-bit roaring bitmap.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace strandline::delta {

// Value type (copies are deep). contains() is safe from many threads while nobody writes.
class RowSet {
 public:
  RowSet();
  RowSet(const RowSet&);
  RowSet(RowSet&&) noexcept;
  RowSet& operator=(const RowSet&);
  RowSet& operator=(RowSet&&) noexcept;
  ~RowSet();

  void add(uint64_t position);
  void add_many(const uint64_t* positions, size_t count);
  void union_with(const RowSet& other);
  void subtract(const RowSet& other);
  RowSet minus(const RowSet& other) const;
  bool contains(uint64_t position) const;
  uint64_t cardinality() const;
  bool empty() const { return cardinality() == 0; }
  std::optional<uint64_t> max() const;
  // In ascending order.
  void for_each(const std::function<void(uint64_t)>& visit) const;

  // Bitmap bytes of delta-protocol.md 7.4 (magic, count, keyed 32-bit bitmaps), little-endian.
  std::string serialize() const;
  // Errors: kCorrupt for another magic, cut bytes or an impossible count.
  static Result<RowSet> deserialize(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strandline::delta
