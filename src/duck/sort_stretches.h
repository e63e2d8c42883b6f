// Sorting what is mostly in order already, stretch by stretch.
#pragma once

#include <algorithm>
#include <vector>

namespace strandline::duck {

template <typename T, typename Less>
void sort_stretches(std::vector<T>* items, const Less& less) {
  std::vector<size_t> begins = {0};
  for (size_t i = 1; i < items->size(); ++i) {
    if (less((*items)[i], (*items)[i - 1])) begins.push_back(i);
  }
  // Short stretches are no help.
  constexpr size_t kLeastLength = 16;
  if (begins.size() > 2 && begins.size() > items->size() / kLeastLength) {
    std::stable_sort(items->begin(), items->end(), less);
    return;
  }
  std::vector<T> merged(begins.size() > 1 ? items->size() : 0);
  while (begins.size() > 1) {
    std::vector<size_t> pairs;
    const auto place = [&](size_t i) {
      return items->begin() + static_cast<long>(i < begins.size() ? begins[i] : items->size());
    };
    auto out = merged.begin();
    for (size_t i = 0; i < begins.size(); i += 2) {
      pairs.push_back(begins[i]);
      out = std::merge(place(i), place(i + 1), place(i + 1), place(i + 2), out, less);
    }
    items->swap(merged);
    begins = std::move(pairs);
  }
}

}  // namespace strandline::duck
