// A file of tests/logic, told in this process: its statements and updates run, what they give is
// not compared (tests/logic/test_logic.py does that).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace strandline::test {

// Tells it in a folder of its own, which becomes the process's current one. Returns what went
// otherwise than the story says: a statement that failed or did not, an update's status.
std::vector<std::string> tell_story(const std::filesystem::path& story,
                                    const std::filesystem::path& folder);

}  // namespace strandline::test
