#include "base/secrets.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/secret_places.h"

namespace strandline {
namespace {

constexpr std::string_view kMask = "***";
constexpr size_t kAnywhere = 8;
constexpr size_t kAsWord = 4;

struct Secrets {
  std::mutex mutex;
  std::map<std::string, std::string> values;
  // Longer ones first: one may be a part of another.
  struct Longer {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  std::set<std::string, Longer> hidden;

  void hide(const std::string& value) {
    for (const auto& form : {value, percent_decoded(value), percent_encoded(value)}) {
      if (form.size() >= kAsWord) hidden.insert(form);
    }
  }

  // As programs write values into URLs.
  static std::string percent_encoded(const std::string& value) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos) {
        out += c;
      } else {
        out += {'%', kDigits[byte / 16], kDigits[byte % 16]};
      }
    }
    return out;
  }
};

// Never destroyed: other threads may still speak of errors while the process ends.
Secrets& secrets() {
  static auto* all = new Secrets;
  return *all;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether the value at this place is a part of a longer word.
bool in_word(const std::string& text, size_t at, const std::string& value) {
  const size_t end = at + value.size();
  return (at > 0 && is_word(value.front()) && is_word(text[at - 1])) ||
         (end < text.size() && is_word(value.back()) && is_word(text[end]));
}

}  // namespace

void keep_secret(const std::string& name, const std::string& value) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  all.values[name] = value;
  all.hide(value);
}

std::optional<std::string> find_secret(const std::string& name) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.values.find(name); found != all.values.end()) return found->second;
  // Read anew each time; kept only to be hidden.
  const char* variable = std::getenv(name.c_str());
  if (variable == nullptr) return std::nullopt;
  all.hide(variable);
  return variable;
}

void hide_value(const std::string& value) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  all.hide(value);
}

void hide_secrets_of(std::string_view text) {
  for (const auto& place : secret_places(text))
    hide_value(std::string(text.substr(place.begin, place.end - place.begin)));
}

std::string shown_value(std::string_view name, const std::string& value) {
  return is_secret_name(name) ? std::string(kMask) : without_secrets(value);
}

std::string without_values(std::string text) {
  auto& all = secrets();
  const std::lock_guard lock(all.mutex);
  for (const auto& value : all.hidden) {
    for (size_t at = text.find(value); at != std::string::npos;) {
      if (value.size() < kAnywhere && in_word(text, at, value)) {
        at = text.find(value, at + 1);
        continue;
      }
      text.replace(at, value.size(), kMask);
      at = text.find(value, at + kMask.size());
    }
  }
  return text;
}

std::string without_secrets(std::string text) {
  const auto places = secret_places(text);
  for (auto place = places.rbegin(); place != places.rend(); ++place)
    text.replace(place->begin, place->end - place->begin, kMask);
  return without_values(std::move(text));
}

}  // namespace strandline
