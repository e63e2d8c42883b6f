// Where rows can be read, by their stable row ids: a row that is copied from file to file is the
// same in all of them, so the place where it was last changed will do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace strandline::duck {

// Rows next to each other whose ids are too.
struct PlacedRun {
  int64_t id = 0;    // of the first
  uint32_t row = 0;  // in its file
  uint32_t count = 0;
  uint32_t file = 0;  // a number of the caller's
};

// Sorts by id. False where an id is there twice.
bool sort_by_id(std::vector<PlacedRun>* runs);

// Costs 24 bytes for each run. What it does takes as long as the part of the ids that it is about.
class RowPlaces {
 public:
  // From now on these rows are there, whatever was known of their ids. runs: as of sort_by_id.
  void put(const std::vector<PlacedRun>& runs);
  // Visits all of these rows in order, parts of runs: each as it is given, and the place that is
  // known of its ids, or null.
  void find(const std::vector<PlacedRun>& runs,
            const std::function<void(const PlacedRun& given, const PlacedRun* known)>& visit) const;
  size_t run_count() const { return run_count_; }
  void clear();

 private:
  // Runs ascending by id.
  using Block = std::vector<PlacedRun>;
  using Blocks = std::map<int64_t, Block>;  // by the least id that they may have

  void merge(Blocks::iterator block, const std::vector<PlacedRun>& runs);

  Blocks blocks_ = {{INT64_MIN, {}}};
  size_t run_count_ = 0;
  Block merged_;  // kept for its memory
};

}  // namespace strandline::duck
