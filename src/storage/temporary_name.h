// Hidden names of files that are not whole yet.
#pragma once

#include <string>

namespace strandline::storage {

// A path beside path, another at each call: what is written there moves to path when it is whole.
std::string temporary_path(const std::string& path);

// Whether a file's name, without its folder, is of the form that temporary_path gives. Other
// writers of Delta logs use the same form.
bool is_temporary_name(const std::string& name);

}  // namespace strandline::storage
