// How programs start Python with the package of this project.
#pragma once

#include <string>
#include <vector>

namespace strandline {

// The words of a command line that runs a module of the package as a program, with its arguments to
// follow: `python -m module` without the current directory, which -m would search first, so that a
// file there that is called as a module of Python or of ours never runs in its place. (-P does the
// same from CPython 3.11 on; this works with 3.10, too.) PYTHONPATH stays what the user says.
std::vector<std::string> python_words(const std::string& python, const std::string& module);

}  // namespace strandline
