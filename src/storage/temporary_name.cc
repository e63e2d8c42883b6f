#include "storage/temporary_name.h"

#include <string_view>

#include "base/ids.h"

namespace strandline::storage {

namespace {

constexpr std::string_view kEnding = ".tmp";
constexpr size_t kUuidLength = 36;

}  // namespace

std::string temporary_path(const std::string& path) {
  const size_t name = path.rfind('/') + 1;
  std::string temporary = path.substr(0, name) + "." + path.substr(name);
  return temporary.append(".").append(new_uuid()).append(kEnding);
}

bool is_temporary_name(const std::string& name) {
  // A dot, a name, a dot and a UUID before the ending.
  if (name.size() < kUuidLength + kEnding.size() + 3) return false;
  if (!name.starts_with('.') || !name.ends_with(kEnding)) return false;
  const size_t uuid = name.size() - kEnding.size() - kUuidLength;
  return name[uuid - 1] == '.' &&
         parse_uuid(std::string_view(name).substr(uuid, kUuidLength)).has_value();
}

}  // namespace strandline::storage
