#include "duck/optimize_plan.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/json.h"

namespace strandline::duck {
namespace {

constexpr int64_t kDefaultTargetBytes = 128ll << 20;
constexpr double kMostDeletedShare = 0.05;
constexpr double kMostDeletedShareAutomatic = 0.5;
constexpr size_t kLeastFilesAutomatic = 16;

using PartitionValues = std::map<std::string, std::optional<std::string>>;

class Planner {
 public:
  Planner(const delta::Snapshot& snapshot, const ColumnPaths& sort, const OptimizeOptions& options)
      : files_(snapshot.files),
        options_(options),
        target_bytes_(target_file_size_bytes(snapshot)),
        sort_(sort.empty() ? "" : print_paths(sort)) {}

  RewritePlan plan(const std::vector<size_t>& selected) {
    std::map<PartitionValues, std::vector<size_t>> partitions;
    for (const size_t index : selected) partitions[files_[index].partition_values].push_back(index);
    for (auto& [values, files] : partitions) {
      const size_t before = plan_.jobs.size();
      if (sort_.empty()) {
        plan_compaction(std::move(files));
      } else {
        plan_sort(files);
      }
      if (plan_.jobs.size() > before) ++plan_.partitions;
    }
    plan_.considered_files = static_cast<int64_t>(selected.size());
    return std::move(plan_);
  }

 private:
  // Share of a file's rows that its deletion vector hides.
  double deleted_share(size_t index) const {
    const delta::AddFile& file = files_[index];
    if (!file.deletion_vector) return 0;
    const int64_t rows = delta::num_records(file).value_or(0);
    return rows <= 0
               ? 1
               : static_cast<double>(file.deletion_vector->cardinality) / static_cast<double>(rows);
  }
  bool needs_purge(size_t index) const {
    if (options_.purge) return static_cast<bool>(files_[index].deletion_vector);
    const double share = deleted_share(index);
    return share >= (options_.automatic ? kMostDeletedShareAutomatic : kMostDeletedShare);
  }
  int64_t bytes(size_t index) const { return files_[index].size_bytes; }
  int64_t total_bytes(const std::vector<size_t>& files) const {
    return std::accumulate(files.begin(), files.end(), int64_t{0},
                           [&](int64_t sum, size_t index) { return sum + bytes(index); });
  }

  // Small files in the order of their age, packed one after the other, so that what was written
  // together stays together.
  void plan_compaction(std::vector<size_t> files) {
    std::vector<size_t> candidates;
    std::vector<size_t> small;
    for (const size_t index : files) {
      if (needs_purge(index)) {
        candidates.push_back(index);
      } else if (!options_.purge && bytes(index) < target_bytes_ / 2) {
        small.push_back(index);
      }
    }
    if (options_.automatic) keep_worthwhile(&small);
    candidates.insert(candidates.end(), small.begin(), small.end());
    std::sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
      return std::pair(files_[a].modification_time_ms, a) <
             std::pair(files_[b].modification_time_ms, b);
    });
    RewriteJob job;
    int64_t job_bytes = 0;
    const auto close = [&] {
      // One file alone gains nothing unless deleted rows leave it.
      if (job.files.size() > 1 || (!job.files.empty() && needs_purge(job.files[0])))
        plan_.jobs.push_back(job);
      job.files.clear();
      job_bytes = 0;
    };
    for (const size_t index : candidates) {
      if (job_bytes + bytes(index) > target_bytes_) close();
      job.files.push_back(index);
      job_bytes += bytes(index);
    }
    close();
  }

  // The smaller files, each of which the ones before it outweigh, so that no row is written again
  // more often than sizes can double. None when they are few. Sorted files stay as they are.
  void keep_worthwhile(std::vector<size_t>* files) const {
    std::erase_if(*files, [&](size_t index) { return files_[index].tags.count(kCubeIdTag) > 0; });
    std::sort(files->begin(), files->end(),
              [&](size_t a, size_t b) { return std::pair(bytes(a), a) < std::pair(bytes(b), b); });
    size_t count = 0;
    int64_t sum = 0;
    while (count < files->size() &&
           (count + 1 < kLeastFilesAutomatic || bytes((*files)[count]) <= sum)) {
      sum += bytes((*files)[count++]);
    }
    files->resize(count < kLeastFilesAutomatic ? 0 : count);
  }

  void plan_sort(const std::vector<size_t>& files) {
    std::map<std::string, std::vector<size_t>> cubes;
    RewriteJob job;
    job.sorted = true;
    for (const size_t index : files) {
      const auto& tags = files_[index].tags;
      const auto columns = tags.find(kCubeColumnsTag);
      const auto cube = tags.find(kCubeIdTag);
      const bool is_sorted =
          cube != tags.end() && columns != tags.end() && columns->second == sort_;
      if (is_sorted && !options_.full && !needs_purge(index)) {
        cubes[cube->second].push_back(index);
      } else {
        job.files.push_back(index);
      }
    }
    if (job.files.empty()) return;
    std::vector<std::vector<size_t>> by_size;
    for (auto& [id, members] : cubes) by_size.push_back(std::move(members));
    std::sort(by_size.begin(), by_size.end(),
              [&](const auto& a, const auto& b) { return total_bytes(a) < total_bytes(b); });
    int64_t size = total_bytes(job.files);
    for (const auto& members : by_size) {
      const int64_t more = total_bytes(members);
      if (more > size) break;
      size += more;
      job.files.insert(job.files.end(), members.begin(), members.end());
    }
    int64_t rows = 0;
    for (const size_t index : job.files) {
      const delta::AddFile& file = files_[index];
      rows += delta::num_records(file).value_or(bytes(index) / 64 + 1);
    }
    const double row_bytes =
        std::max(1.0, static_cast<double>(size)) / static_cast<double>(std::max<int64_t>(rows, 1));
    job.rows_per_file =
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(target_bytes_) / row_bytes));
    plan_.jobs.push_back(std::move(job));
  }

  const std::vector<delta::AddFile>& files_;
  const OptimizeOptions& options_;
  const int64_t target_bytes_;
  const std::string sort_;
  RewritePlan plan_;
};

}  // namespace

std::string print_paths(const ColumnPaths& paths) {
  JsonWriter json;
  json.begin_array();
  for (const auto& path : paths) {
    json.begin_array();
    for (const std::string& name : path) json.value(name);
    json.end_array();
  }
  json.end_array();
  return json.take();
}

int64_t target_file_size_bytes(const delta::Snapshot& snapshot) {
  const std::string text = fold_name(snapshot.property("delta.targetFileSize").value_or(""));
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || number <= 0) return kDefaultTargetBytes;
  std::string unit(end, text.data() + text.size());
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  const std::map<std::string, int> shifts = {{"", 0}, {"b", 0}, {"k", 10}, {"m", 20}, {"g", 30}};
  const auto shift = shifts.find(unit);
  if (shift == shifts.end() || number > (int64_t{1} << (62 - shift->second)))
    return kDefaultTargetBytes;
  return number << shift->second;
}

RewritePlan plan_rewrite(const delta::Snapshot& snapshot, const std::vector<size_t>& selected,
                         const ColumnPaths& sort, const OptimizeOptions& options) {
  return Planner(snapshot, sort, options).plan(selected);
}

}  // namespace strandline::duck
