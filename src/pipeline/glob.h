// File name patterns: library globs of a pipeline's spec file and the paths of read_files.
#pragma once

#include <strandline/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "storage/store.h"

namespace strandline::pipeline {

// True if text holds a pattern character: * ? [ {
bool has_glob(std::string_view text);

// Patterns as in Hadoop: * ? [a-c] [^a] {x,y} inside one path component, ** over any number of
// them, and \ before a character that stands for itself.
bool glob_match(std::string_view pattern, std::string_view path);

// All files a path stands for, sorted by path: the file itself; every file below a directory; every
// file that matches a pattern or lies below a directory that does. Names that begin with '.' or '_'
// below the part without pattern characters are left out, as Spark leaves them out.
// skip names folders that are not entered.
// Errors: kNotFound when the path, or the part before the first pattern character, does not exist.
Result<std::vector<storage::FileInfo>> list_files(storage::Store& store, const std::string& path,
                                                  const std::vector<std::string>& skip = {});

}  // namespace strandline::pipeline
