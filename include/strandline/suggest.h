// Nearest known name, for "did you mean" in error messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace strandline {

// The candidate that differs least from name, if it is near enough to be a slip of the keyboard:
// at most a third of its letters changed. ASCII case does not count.
inline std::optional<std::string> nearest_name(const std::string& name,
                                               const std::vector<std::string>& candidates) {
  const auto lower = [](std::string text) {
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  };
  const std::string wanted = lower(name);
  std::optional<std::string> best;
  size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    const std::string known = lower(candidate);
    // Damerau-Levenshtein with three rows, so that swapped neighbours are one slip.
    std::vector<size_t> before(known.size() + 1);
    std::vector<size_t> above(known.size() + 1);
    std::iota(above.begin(), above.end(), size_t{0});
    for (size_t i = 1; i <= wanted.size(); ++i) {
      std::vector<size_t> row(known.size() + 1);
      row[0] = i;
      for (size_t j = 1; j <= known.size(); ++j) {
        const size_t change = wanted[i - 1] == known[j - 1] ? 0 : 1;
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
        if (i > 1 && j > 1 && wanted[i - 1] == known[j - 2] && wanted[i - 2] == known[j - 1]) {
          row[j] = std::min(row[j], before[j - 2] + 1);
        }
      }
      before = std::move(above);
      above = std::move(row);
    }
    const size_t distance = above.back();
    const size_t allowed = std::max<size_t>(1, std::max(wanted.size(), known.size()) / 3);
    if (distance <= allowed && (!best || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace strandline
