// UTF-8 text, code point by code point.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strandline {

// Length in bytes of the sequence at the start of text (not empty) and its code point; 0 when it is
// none: a stray or missing continuation byte, an overlong form, a surrogate, beyond U+10FFFF.
size_t decode_utf8(std::string_view text, char32_t* code_point);
void append_utf8(std::string* out, char32_t code_point);
bool is_utf8(std::string_view text);

}  // namespace strandline
