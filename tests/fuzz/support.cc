#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace strandline::fuzz {

void expect(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

std::vector<std::string_view> parts_of(std::string_view input) {
  constexpr std::string_view kBetween = "\n---\n";
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = input.find(kBetween);
    parts.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return parts;
    input.remove_prefix(end + kBetween.size());
  }
}

}  // namespace strandline::fuzz
