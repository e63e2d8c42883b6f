// How an update's report is printed: one JSON object, or lines for people.
#pragma once

#include <strandline/strandline.h>

#include <string>
#include <vector>

namespace strandline::cli {

// The JSON object of the command line's contract, one line.
std::string report_json(const UpdateReport& report);
// Target, status and row counts of each flow, then the update's status.
std::string report_text(const UpdateReport& report);
// The text as a JSON string; a list of errors as a JSON array.
std::string json_string(const std::string& text);
std::string json_errors(const std::vector<Error>& errors);
// 0 completed, 1 failed or cancelled, 2 invalid.
int exit_code(UpdateStatus status);
// "error:" in colour and the rendered error, on stderr; source_text as in render_error.
void print_error(const Error& error, const std::string& source_text = {});
void print_warning(const Error& warning);

}  // namespace strandline::cli
