// The bits of a KeyFilter and their SQL function: sl_key_filter(filter, hash) BOOLEAN.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "duck/registry.h"

namespace strandline::duck {

// Each key sets four bits of one 64-bit word.
class KeyFilterBits {
 public:
  explicit KeyFilterBits(const std::vector<uint64_t>& hashes)
      : words_(std::bit_ceil(std::max<uint64_t>(kMinWords, hashes.size() / 4))) {
    for (const uint64_t hash : hashes) words_[word(hash)] |= mask(hash);
  }

  bool may_contain(uint64_t hash) const {
    const uint64_t bits = mask(hash);
    return (words_[word(hash)] & bits) == bits;
  }

 private:
  // Fewer would let too many strangers through: their hashes share the words of few keys.
  static constexpr uint64_t kMinWords = 16'384;

  uint64_t word(uint64_t hash) const { return (hash >> 24) & (words_.size() - 1); }
  static uint64_t mask(uint64_t hash) {
    return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) |
           uint64_t{1} << (hash >> 12 & 63) | uint64_t{1} << (hash >> 18 & 63);
  }

  std::vector<uint64_t> words_;
};

using KeyFilters = Registry<KeyFilterBits>;

Status register_key_filter_function(duckdb_connection connection,
                                    const std::shared_ptr<KeyFilters>& filters);

}  // namespace strandline::duck
