// Secrets by name, for the life of the process; include/strandline/jdbc.h has the rest.
#pragma once

#include <strandline/jdbc.h>

#include <optional>
#include <string>

namespace strandline {

// A kept secret, else the environment variable of that name. From then on without_secrets hides
// it.
std::optional<std::string> find_secret(const std::string& name);

}  // namespace strandline
