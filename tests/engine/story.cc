#include "engine/story.h"

#include <fmt/format.h>
#include <strandline/strandline.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace strandline::test {
namespace {

struct Directive {
  std::string word;  // file, run, statement, query, output, shell, skip
  std::string rest;
  std::string body;
};

std::vector<Directive> directives_of(const std::filesystem::path& story,
                                     const std::string& folder) {
  std::ifstream in(story);
  std::vector<Directive> found;
  bool expects = false;  // what follows `----` is what the story expects
  for (std::string line; std::getline(in, line);) {
    for (size_t at; (at = line.find("${dir}")) != std::string::npos;) line.replace(at, 6, folder);
    const bool in_file = !found.empty() && found.back().word == "file";
    if (in_file && line == "~~~") {
      found.push_back({});
    } else if (in_file) {
      found.back().body += line + "\n";
    } else if (line.empty()) {
      found.push_back({});
      expects = false;
    } else if (line == "----") {
      expects = true;
    } else if (!expects && line[0] != '#') {
      if (found.empty() || found.back().word.empty()) {
        const size_t blank = std::min(line.find(' '), line.size());
        found.push_back({line.substr(0, blank), line.substr(std::min(blank + 1, line.size())), ""});
      } else {
        found.back().body += line + "\n";
      }
    }
  }
  std::erase_if(found, [](const Directive& directive) { return directive.word.empty(); });
  return found;
}

class Story {
 public:
  explicit Story(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string tell(const Directive& directive) {
    if (directive.word == "file") return file(directive);
    if (directive.word == "run") return run(directive.rest);
    if (directive.word == "shell") return shell(directive.rest);
    if (directive.word == "skip") return "";
    return statement(directive);
  }

 private:
  std::string file(const Directive& directive) {
    const std::filesystem::path path = folder_ / directive.rest;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << directive.body;
    return "";
  }

  std::string shell(const std::string& command) {
    return std::system(command.c_str()) == 0 ? "" : "shell " + command;
  }

  std::string run(const std::string& rest) {
    std::istringstream words(rest);
    RunOptions options;
    options.warehouse = warehouse();
    options.engine.threads = 2;
    UpdateStatus expected = UpdateStatus::kCompleted;
    std::string word;
    words >> word;
    options.pipeline = (folder_ / word).string();
    while (words >> word) {
      if (word == "fails") expected = UpdateStatus::kFailed;
      if (word == "invalid") expected = UpdateStatus::kInvalid;
      if (word == "--dry-run") options.dry_run = true;
      if (word == "--allow-missing-sources") options.allow_missing_sources = true;
      if (word == "--full-refresh-all") options.refresh = RefreshKind::kFullAll;
      if (word != "--full-refresh" && word != "--refresh") continue;
      options.refresh = word == "--refresh" ? RefreshKind::kSelected : RefreshKind::kFullSelected;
      words >> word;
      std::istringstream names(word);
      for (std::string name; std::getline(names, name, ',');) options.tables.push_back(name);
    }
    const UpdateReport report = run_update(options);
    if (report.status == expected) return "";
    const std::string why = report.errors.empty() ? "" : report.errors[0].message;
    return fmt::format("run {}: {}, {}", rest, to_string(report.status), why);
  }

  std::string statement(const Directive& directive) {
    SessionOptions options;
    options.warehouse = warehouse();
    options.engine.threads = 2;
    auto session = Session::open(options);
    if (!session.ok()) return session.error().message;
    std::ostringstream out;
    const Status done = (*session)->run(directive.body, "story.sql", OutputFormat::kNdjson, out);
    const bool is_error = directive.word == "statement" && directive.rest == "error";
    if (done.ok() != is_error) return "";
    return directive.body + (done.ok() ? "did not fail" : done.error().message);
  }

  std::string warehouse() const { return (folder_ / "warehouse").string(); }

  std::filesystem::path folder_;
};

}  // namespace

std::vector<std::string> tell_story(const std::filesystem::path& story,
                                    const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  Story told(folder);
  std::vector<std::string> wrong;
  for (const Directive& directive : directives_of(story, folder.string())) {
    std::string otherwise = told.tell(directive);
    if (!otherwise.empty()) wrong.push_back(std::move(otherwise));
  }
  return wrong;
}

}  // namespace strandline::test
