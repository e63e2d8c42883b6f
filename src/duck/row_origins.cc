#include "duck/row_origins.h"

#include <algorithm>
#include <utility>

namespace strandline::duck {

void RowOrigins::add(const std::vector<CopiedRun>& copies,
                     const std::function<size_t(size_t file)>& number) {
  for (size_t i = 0; i < copies.size();) {
    const size_t after_file = copies[i].after_file;
    File made;
    for (; i < copies.size() && copies[i].after_file == after_file; ++i) {
      const CopiedRun& copy = copies[i];
      const size_t before = number(copy.before_file);
      for (uint64_t done = 0; done < copy.count;) {
        const RowPlace place = find(before, copy.before_row + done, copy.count - done);
        const uint64_t row = copy.after_row + done;
        done += place.count;
        if (!made.origins.empty()) {
          Origin& last = made.origins.back();
          if (last.end() == row && last.file == place.file &&
              last.origin_row + last.count == place.row) {
            last.count += place.count;
            continue;
          }
        }
        made.origins.push_back({row, place.count, place.file, place.row});
      }
    }
    const size_t after = number(after_file);
    if (files_.size() <= after) files_.resize(after + 1);
    files_[after] = std::move(made);
  }
}

RowPlace RowOrigins::find(size_t file, uint64_t row, uint64_t count) {
  if (file >= files_.size() || files_[file].origins.empty()) return {file, row, count};
  File& known = files_[file];
  // The first that ends behind the row.
  const auto is_before = [row](const Origin& origin) { return origin.end() <= row; };
  constexpr size_t kNear = 8;
  size_t at = known.last;
  const bool is_behind = at > 0 && !is_before(known.origins[at - 1]);
  for (size_t i = 0; i < kNear && at < known.origins.size() && is_before(known.origins[at]); ++i)
    ++at;
  if (is_behind || (at < known.origins.size() && is_before(known.origins[at]))) {
    at = static_cast<size_t>(
        std::partition_point(known.origins.begin(), known.origins.end(), is_before) -
        known.origins.begin());
  }
  known.last = at;
  if (at == known.origins.size()) return {file, row, count};
  const Origin& origin = known.origins[at];
  if (row < origin.row) return {file, row, std::min(count, origin.row - row)};
  return {origin.file, origin.origin_row + (row - origin.row), std::min(count, origin.end() - row)};
}

void RowOrigins::keep(const std::function<bool(size_t file)>& is_kept) {
  for (size_t file = 0; file < files_.size(); ++file) {
    if (!files_[file].origins.empty() && !is_kept(file)) files_[file] = {};
  }
}

}  // namespace strandline::duck
