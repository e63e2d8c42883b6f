// Where passwords stand in a text, told by what is around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strandline {

// A part of a text, in bytes.
struct SecretPlace {
  size_t begin = 0;
  size_t end = 0;
};

// The passwords of a text of any kind (SQL, Python, YAML, JSON, a message, a URL), in order, apart
// from each other and never empty: what follows the user in the user info of a URL, and the value
// of a name such as password, pwd or sslpassword: of a URL's parameter, an option, a property, a
// field, an argument, an assignment. Without quotes around it. A value that is computed, such as
// secret('NAME'), is none.
std::vector<SecretPlace> secret_places(std::string_view text);

// Whether what this name has for a value is a password: "sslPassword", "spark.x.pwd",
// "client-secret".
bool is_secret_name(std::string_view name);

// "%24a" as "$a"; a % that begins no such code stays.
std::string percent_decoded(std::string_view text);

}  // namespace strandline
