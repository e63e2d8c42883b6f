#include "report.h"

#include <fmt/format.h>
#include <strandline/jdbc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "progress.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

// Length of the well-formed UTF-8 sequence at i, 0 if there is none.
size_t utf8_length(const std::string& text, size_t i) {
  const auto byte = [&text](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const unsigned lead = byte(i);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : (lead & 0xF0) == 0xE0       ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

}  // namespace

// Messages may quote a user's bytes: what is not UTF-8 becomes U+FFFD, so that the object parses.
std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text, i);
    if (length == 0) {
      out += "\\ufffd";
      ++i;
      continue;
    }
    if (length > 1) {
      out.append(text, i, length);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
    i += length;
  }
  return out + '"';
}

namespace {

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == std::floor(value) && std::fabs(value) < 9e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.6g}", value);
}

}  // namespace

std::string json_errors(const std::vector<Error>& errors) {
  std::string out;
  for (const auto& error : errors) {
    const SourcePlace place = error.place.value_or(SourcePlace{});
    const auto number = [](int value) { return value > 0 ? std::to_string(value) : "null"; };
    out += fmt::format(
        "{}{{\"code\": {}, \"message\": {}, \"file\": {}, \"line\": {}, \"column\": {}}}",
        out.empty() ? "" : ", ", json_string(error.code),
        json_string(without_secrets(error.message)),
        place.file.empty() ? "null" : json_string(place.file), number(place.line),
        number(place.column));
  }
  return "[" + out + "]";
}

namespace {

std::string json_expectations(const std::vector<ExpectationReport>& expectations) {
  std::string out;
  for (const auto& expectation : expectations) {
    out += fmt::format(
        "{}{{\"name\": {}, \"dataset\": {}, \"passed_records\": {}, \"failed_records\": {}, "
        "\"dropped_records\": {}}}",
        out.empty() ? "" : ", ", json_string(expectation.name), json_string(expectation.dataset),
        expectation.passed_records, expectation.failed_records, expectation.dropped_records);
  }
  return out;
}

double metric(const FlowReport& flow, const char* name) {
  const auto found = flow.metrics.find(name);
  return found == flow.metrics.end() ? 0 : found->second;
}

std::string count_text(double count) { return with_separators(std::llround(count)); }

}  // namespace

std::string report_json(const UpdateReport& report) {
  std::string flows;
  for (const auto& flow : report.flows) {
    std::string metrics;
    for (const auto& [name, value] : flow.metrics) {
      metrics += fmt::format("{}{}: {}", metrics.empty() ? "" : ", ", json_string(name),
                             json_number(value));
    }
    flows += fmt::format(
        "{}{{\"name\": {}, \"target\": {}, \"status\": {}, \"metrics\": {{{}}}, "
        "\"dropped_records\": "
        "{}, \"expectations\": [{}]}}",
        flows.empty() ? "" : ", ", json_string(flow.name), json_string(flow.target),
        json_string(flow.status), metrics, flow.dropped_records,
        json_expectations(flow.expectations));
  }
  return fmt::format(
      "{{\"update_id\": {}, \"status\": {}, \"flows\": [{}], \"errors\": {}, \"warnings\": {}}}",
      json_string(report.update_id), json_string(to_string(report.status)), flows,
      json_errors(report.errors), json_errors(report.warnings));
}

std::string report_text(const UpdateReport& report) {
  std::string out;
  for (const auto& flow : report.flows) {
    std::string counts = "rows in: " + count_text(metric(flow, "num_input_rows"));
    const auto add = [&](const char* name, const char* text) {
      const double value = metric(flow, name);
      if (value > 0) counts += fmt::format(", {}: {}", text, count_text(value));
    };
    add("num_upserted_rows", "upserted");
    add("num_deleted_rows", "deleted");
    add("num_output_rows", "written");
    add("num_late_rows", "late");
    add("num_sequence_conflicts", "sequence conflicts");
    out += fmt::format("{} -> {}: {}{}\n", flow.name, flow.target, flow.status,
                       flow.status == "COMPLETED" ? " (" + counts + ")" : "");
    if (flow.status != "COMPLETED") continue;
    for (const auto& expectation : flow.expectations) {
      if (expectation.failed_records == 0) continue;
      out += fmt::format("  expectation {} of {}: {} passed, {} failed, {} dropped\n",
                         expectation.name, expectation.dataset,
                         with_separators(expectation.passed_records),
                         with_separators(expectation.failed_records),
                         with_separators(expectation.dropped_records));
    }
  }
  const bool good = report.status == UpdateStatus::kCompleted;
  out += fmt::format(
      "update {}: {}\n", report.update_id,
      colored(to_string(report.status), good ? Color::kGreen : Color::kRed, STDOUT_FILENO));
  return out;
}

int exit_code(UpdateStatus status) {
  switch (status) {
    case UpdateStatus::kCompleted:
      return 0;
    case UpdateStatus::kFailed:
    case UpdateStatus::kCanceled:
      return 1;
    case UpdateStatus::kInvalid:
      return 2;
  }
  return 1;
}

void print_error(const Error& error, const std::string& source_text) {
  print_err("{} {}\n", colored("error:", Color::kRed, STDERR_FILENO),
            render_error(error, source_text));
}

void print_warning(const Error& warning) {
  print_err("{} {}\n", colored("warning:", Color::kYellow, STDERR_FILENO), render_error(warning));
}

}  // namespace strandline::cli
