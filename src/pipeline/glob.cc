#include "pipeline/glob.h"

#include <algorithm>

namespace strandline::pipeline {
namespace {

// {a,b} alternatives, expanded; nested braces expand from the inside of each alternative.
std::vector<std::string> expand_braces(std::string_view pattern) {
  size_t open = std::string_view::npos;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '{') {
      open = i;
      break;
    }
  }
  if (open == std::string_view::npos) return {std::string(pattern)};
  int depth = 0;
  size_t part = open + 1;
  std::vector<std::string_view> parts;
  size_t close = std::string_view::npos;
  for (size_t i = open; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '{') {
      ++depth;
    } else if (pattern[i] == ',' && depth == 1) {
      parts.push_back(pattern.substr(part, i - part));
      part = i + 1;
    } else if (pattern[i] == '}' && --depth == 0) {
      parts.push_back(pattern.substr(part, i - part));
      close = i;
      break;
    }
  }
  if (close == std::string_view::npos) return {std::string(pattern)};
  std::vector<std::string> out;
  for (const auto& alternative : parts) {
    for (auto& rest :
         expand_braces(std::string(pattern.substr(0, open)) + std::string(alternative) +
                       std::string(pattern.substr(close + 1)))) {
      out.push_back(std::move(rest));
    }
  }
  return out;
}

// [abc], [a-z], [^a], [!a] at pattern[0]; length of the class, or 0 when it is not closed.
size_t match_class(std::string_view pattern, char c, bool* matched) {
  size_t i = 1;
  bool negated = false;
  if (i < pattern.size() && (pattern[i] == '^' || pattern[i] == '!')) {
    negated = true;
    ++i;
  }
  bool hit = false;
  bool first = true;
  for (; i < pattern.size() && (pattern[i] != ']' || first); ++i, first = false) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const char low = pattern[i];
    char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    hit = hit || (low <= c && c <= high);
  }
  if (i >= pattern.size()) return 0;
  *matched = hit != negated;
  return i + 1;
}

bool match_plain(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    if (pattern.substr(0, 2) == "**") {
      pattern.remove_prefix(2);
      // "**/" also stands for nothing at all.
      if (!pattern.empty() && pattern[0] == '/' && match_plain(pattern.substr(1), path))
        return true;
      for (size_t i = 0; i <= path.size(); ++i) {
        if (match_plain(pattern, path.substr(i))) return true;
      }
      return false;
    }
    if (pattern[0] == '*') {
      pattern.remove_prefix(1);
      for (size_t i = 0;; ++i) {
        if (match_plain(pattern, path.substr(i))) return true;
        if (i == path.size() || path[i] == '/') return false;
      }
    }
    if (path.empty()) return false;
    if (pattern[0] == '?') {
      if (path[0] == '/') return false;
      pattern.remove_prefix(1);
    } else if (bool matched = false;
               pattern[0] == '[' && match_class(pattern, path[0], &matched) > 0) {
      if (!matched || path[0] == '/') return false;
      pattern.remove_prefix(match_class(pattern, path[0], &matched));
    } else {
      if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
      if (pattern[0] != path[0]) return false;
      pattern.remove_prefix(1);
    }
    path.remove_prefix(1);
  }
  return path.empty();
}

bool is_hidden(const std::string& path) {
  const size_t slash = path.rfind('/');
  const char first = path[slash + 1];
  return first == '.' || first == '_';
}

// Files below directory that fit (directory itself fits: all of them).
Status walk(storage::Store& store, const std::string& directory,
            const std::vector<std::string>& patterns, const std::vector<std::string>& skip,
            bool all, std::vector<storage::FileInfo>* out) {
  SL_ASSIGN(auto entries, store.list(directory));
  for (auto& entry : entries) {
    if (is_hidden(entry.path)) continue;
    if (std::find(skip.begin(), skip.end(), entry.path) != skip.end()) continue;
    const bool fits =
        all || std::any_of(patterns.begin(), patterns.end(),
                           [&](const auto& pattern) { return match_plain(pattern, entry.path); });
    if (entry.is_directory) {
      SL_TRY(walk(store, entry.path, patterns, skip, fits, out));
    } else if (fits) {
      out->push_back(std::move(entry));
    }
  }
  return {};
}

}  // namespace

bool has_glob(std::string_view text) {
  return text.find_first_of("*?[{") != std::string_view::npos;
}

bool glob_match(std::string_view pattern, std::string_view path) {
  const auto patterns = expand_braces(pattern);
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& plain) { return match_plain(plain, path); });
}

Result<std::vector<storage::FileInfo>> list_files(storage::Store& store, const std::string& path,
                                                  const std::vector<std::string>& skip) {
  std::vector<storage::FileInfo> files;
  if (auto info = store.stat(path); info.ok()) {
    if (!info->is_directory) return std::vector<storage::FileInfo>{*info};
    SL_TRY(walk(store, path, {}, skip, true, &files));
  } else if (info.error().kind != ErrorKind::kNotFound || !has_glob(path)) {
    return info.error();
  } else {
    const std::string fixed = path.substr(0, path.find_first_of("*?[{"));
    const size_t slash = fixed.rfind('/');
    const std::string directory = slash == 0 ? "/" : fixed.substr(0, slash);
    SL_TRY(walk(store, directory, expand_braces(path), skip, false, &files));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace strandline::pipeline
