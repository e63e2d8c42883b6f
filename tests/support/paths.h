// Where the source tree of the running test lies.
#pragma once

#include <filesystem>

namespace strandline::test {

// The project's root.
std::filesystem::path source_directory();
// The folder of shared inputs beside it, or what STRANDLINE_SHARED says; it may be absent.
std::filesystem::path shared_directory();

}  // namespace strandline::test
