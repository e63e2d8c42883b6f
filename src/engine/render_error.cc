#include <strandline/strandline.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sql/parser.h"

namespace strandline {

std::string render_error(const Error& error, const std::string& source_text) {
  std::string text = source_text;
  std::error_code failed;
  if (text.empty() && error.place && error.place->column > 0 &&
      std::filesystem::is_regular_file(error.place->file, failed)) {
    std::ifstream in(error.place->file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return sql::render_error(error, text);
}

}  // namespace strandline
