// Secrets by name, for the life of the process; include/strandline/jdbc.h has the rest.
#pragma once

#include <strandline/jdbc.h>

#include <optional>
#include <string>
#include <string_view>

namespace strandline {

// A kept secret, else the environment variable of that name. From then on without_secrets hides
// it.
std::optional<std::string> find_secret(const std::string& name);

// From then on without_secrets hides this value, too, as it is and as it stands in a URL.
void hide_value(const std::string& value);

// The same for what secret_places finds in the text, which others may tell again in their words.
void hide_secrets_of(std::string_view text);

// What is shown of a named value, such as a property of a table: *** for a password.
std::string shown_value(std::string_view name, const std::string& value);

// The text where values that were kept, asked for or hidden are ***: those of 8 bytes and more
// wherever they stand, those of 4 to 7 as whole words, shorter ones not at all, since a letter is
// not a secret by itself. What says nothing of places; without_secrets is for messages.
std::string without_values(std::string text);

}  // namespace strandline
