#include "base/secrets.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace strandline {
namespace {

struct Secrets {
  std::mutex mutex;
  std::map<std::string, std::string> values;
};

// Never destroyed: other threads may still speak of errors while the process ends.
Secrets& secrets() {
  static auto* all = new Secrets;
  return *all;
}

}  // namespace

void keep_secret(const std::string& name, const std::string& value) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  all.values[name] = value;
}

std::optional<std::string> find_secret(const std::string& name) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.values.find(name); found != all.values.end()) return found->second;
  const char* variable = std::getenv(name.c_str());
  if (variable == nullptr) return std::nullopt;
  // Read anew each time; kept only to be hidden.
  return all.values["environment variable " + name] = variable;
}

std::string without_secrets(std::string text) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  // Longer ones first: one may be a part of another.
  std::vector<std::string> values;
  for (const auto& [name, value] : all.values) {
    if (!value.empty()) values.push_back(value);
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& value : values) {
    for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at + 3))
      text.replace(at, value.size(), "***");
  }
  return text;
}

}  // namespace strandline
