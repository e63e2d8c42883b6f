// What options and URLs of read_jdbc may say.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/data_type.h"
#include "base/error.h"
#include "base/secret_places.h"
#include "base/secrets.h"
#include "duck/jdbc.h"
#include "duck/jdbc_tls.h"
#include "sql/duckdb_printer.h"
#include "sql/expr.h"

namespace strandline::duck {
namespace {

struct System {
  JdbcSystem system;
  const char* prefix;
  const char* url;  // how a URL looks
  std::array<const char*, 2> drivers;
};

constexpr std::array<System, 4> kSystems = {{
    {JdbcSystem::kPostgres,
     "jdbc:postgresql:",
     "jdbc:postgresql://host:5432/database",
     {"org.postgresql.Driver", ""}},
    {JdbcSystem::kMysql,
     "jdbc:mysql:",
     "jdbc:mysql://host:3306/database",
     {"com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver"}},
    {JdbcSystem::kMysql,
     "jdbc:mariadb:",
     "jdbc:mariadb://host:3306/database",
     {"org.mariadb.jdbc.Driver", ""}},
    {JdbcSystem::kSqlite, "jdbc:sqlite:", "jdbc:sqlite:/path/file.db", {"org.sqlite.JDBC", ""}},
}};

// How the rows travel; the rows are the same whatever they say.
constexpr std::array<const char*, 10> kHints = {
    "fetchsize",         "partitioncolumn",    "lowerbound",     "upperbound",
    "numpartitions",     "pushdownlimit",      "pushdownoffset", "pushdownpredicate",
    "pushdownaggregate", "pushdowntablesample"};

constexpr const char* kAccepted =
    "url, dbtable, query, user, password and driver; fetchsize, partitionColumn, lowerBound, "
    "upperBound, numPartitions and pushDown… change nothing here";

Status take_parameter(JdbcRead* read, JdbcTls* tls, const std::string& key,
                      const std::string& value) {
  const std::string folded = fold_name(key);
  if (folded == "user") {
    read->user = value;
    return {};
  }
  if (folded == "password") {
    read->password = value;
    return {};
  }
  SL_ASSIGN(const bool of_tls, tls->take(key, value));
  if (of_tls) return {};
  const bool postgres = read->system == JdbcSystem::kPostgres;
  if (postgres && folded == "currentschema") {
    read->settings += jdbc_setting(read->system, "options", "-csearch_path=" + value);
  } else if (postgres && folded == "connecttimeout") {
    read->settings += jdbc_setting(read->system, "connect_timeout", value);
  } else if (postgres && folded == "applicationname") {
    read->settings += jdbc_setting(read->system, "application_name", value);
  } else if (postgres || (folded != "useunicode" && folded != "characterencoding" &&
                          folded != "allowpublickeyretrieval")) {
    return unsupported(
        "JDBC_URL",
        "the URL '{}' has the parameter '{}', which is not supported; there are user, password, "
        "{}{}",
        read->shown, key, JdbcTls::accepted(read->system),
        postgres ? ", currentSchema, connectTimeout and ApplicationName"
                 : ", useUnicode, characterEncoding and allowPublicKeyRetrieval");
  }
  return {};
}

Status take_url(JdbcRead* read, const std::string& url, const System& system) {
  std::string rest = url.substr(std::string(system.prefix).size());
  std::string parameters;
  if (const size_t mark = rest.find('?'); mark != std::string::npos) {
    parameters = rest.substr(mark + 1);
    rest.resize(mark);
  }
  read->shown = system.prefix + rest;
  const auto wrong = [&](const char* what) -> Status {
    return invalid_argument("JDBC_URL", "the URL '{}' {}: write it as in '{}'", read->shown, what,
                            system.url);
  };
  if (read->system == JdbcSystem::kSqlite) {
    if (rest.rfind("file:", 0) == 0) rest = rest.substr(5);
    if (rest.empty() || rest == ":memory:") return wrong("names no file");
    if (!parameters.empty()) return wrong("has parameters, which a file has not");
    read->database = rest;
    return {};
  }
  if (rest.rfind("//", 0) == 0) {
    const size_t slash = rest.find('/', 2);
    if (slash == std::string::npos) return wrong("names no database");
    std::string host = rest.substr(2, slash - 2);
    if (host.find('@') != std::string::npos) {
      read->shown = system.prefix;
      return wrong("has a user before the host: give user and password as options");
    }
    if (host.find(',') != std::string::npos)
      return unsupported("JDBC_URL", "the URL '{}' names several hosts: name one", read->shown);
    const size_t bracket = host.rfind(']');
    const size_t colon = host.rfind(':');
    if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
      const std::string port = host.substr(colon + 1);
      if (port.empty() || port.size() > 5 ||
          port.find_first_not_of("0123456789") != std::string::npos)
        return wrong("has a port that is no number");
      read->port = std::atoi(port.c_str());
      host.resize(colon);
    }
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    read->host = host.empty() ? "localhost" : percent_decoded(host);
    rest = rest.substr(slash + 1);
  } else {
    read->host = "localhost";
    if (!rest.empty() && rest.front() == '/') rest = rest.substr(1);
  }
  read->database = percent_decoded(rest);
  if (read->database.empty()) return wrong("names no database");
  JdbcTls tls(read->system, std::string_view(system.prefix) == "jdbc:mariadb:");
  for (size_t begin = 0; begin < parameters.size();) {
    const size_t end = std::min(parameters.find('&', begin), parameters.size());
    const std::string pair = parameters.substr(begin, end - begin);
    const size_t equal = std::min(pair.find('='), pair.size());
    const std::string value = equal < pair.size() ? pair.substr(equal + 1) : "";
    SL_TRY(
        take_parameter(read, &tls, percent_decoded(pair.substr(0, equal)), percent_decoded(value)));
    begin = end + 1;
  }
  SL_ASSIGN(const auto settings, tls.settings());
  read->settings += settings;
  return {};
}

// Before anything is said of the options: errors may show them, and the lines they stand in.
void hide_passwords(const std::map<std::string, std::string>& options) {
  for (const auto& [key, value] : options) {
    if (is_secret_name(key))
      hide_value(value);
    else
      hide_secrets_of(value);
  }
}

const System* system_of(const std::string& url) {
  const std::string folded = fold_name(url);
  for (const auto& system : kSystems) {
    if (folded.rfind(system.prefix, 0) == 0) return &system;
  }
  return nullptr;
}

// The scheme alone: what follows may hold a password.
std::string scheme_of(const std::string& url) {
  size_t end = 0;
  for (int colons = 0; end < url.size() && colons < 2; ++end) {
    if (url[end] == ':') ++colons;
  }
  return url.substr(0, std::min<size_t>(end, 40));
}

std::string trimmed(std::string text) {
  const auto space = [](char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ';';
  };
  while (!text.empty() && space(text.back())) text.pop_back();
  size_t begin = 0;
  while (begin < text.size() && space(text[begin])) ++begin;
  return text.substr(begin);
}

// users, "odd name", main.users, [users]: the name itself; nullopt for anything else.
std::optional<std::string> plain_name(std::string text) {
  if (fold_name(text).rfind("main.", 0) == 0) text = text.substr(5);
  const std::string pairs = "\"\"``[]";
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (text.size() < 3 || text.front() != pairs[i] || text.back() != pairs[i + 1]) continue;
    const std::string inside = text.substr(1, text.size() - 2);
    if (inside.find(pairs[i + 1]) != std::string::npos) return std::nullopt;
    return inside;
  }
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '$' || static_cast<unsigned char>(c) >= 0x80;
  });
  if (!plain) return std::nullopt;
  return text;
}

}  // namespace

Result<JdbcRead> jdbc_read(const std::map<std::string, std::string>& options) {
  hide_passwords(options);
  std::map<std::string, std::string> given;
  for (const auto& [key, value] : options) {
    if (!given.emplace(fold_name(key), value).second)
      return invalid_argument("JDBC_OPTION", "option '{}' of read_jdbc is given twice", key);
  }
  const auto take = [&](const char* key) -> std::optional<std::string> {
    const auto node = given.extract(key);
    if (node.empty()) return std::nullopt;
    return node.mapped();
  };
  const auto url = take("url");
  if (!url || url->empty()) {
    return invalid_argument("JDBC_OPTION", "read_jdbc needs the option url, such as {}, {} or {}",
                            kSystems[0].url, kSystems[1].url, kSystems[3].url);
  }
  const System* system = system_of(*url);
  if (system == nullptr) {
    return unsupported("JDBC_URL", "the URL '{}…' is not supported; there are {}, {}, {} and {}",
                       scheme_of(*url), kSystems[0].url, kSystems[1].url, kSystems[2].url,
                       kSystems[3].url);
  }
  JdbcRead read;
  read.system = system->system;
  SL_TRY(take_url(&read, *url, *system));

  const auto table = take("dbtable");
  const auto query = take("query");
  if (table && query) {
    return invalid_argument("JDBC_OPTION",
                            "read_jdbc has both dbtable and query: give one of them");
  }
  const std::string text = trimmed(table ? *table : query.value_or(""));
  if (text.empty()) {
    return invalid_argument("JDBC_OPTION",
                            "read_jdbc needs the option dbtable (a table, or a query in "
                            "parentheses with a name) or query");
  }
  read.relation = table ? text : "(" + text + ") AS strandline_query";

  if (const auto user = take("user")) read.user = *user;
  if (const auto password = take("password")) read.password = *password;
  if (const auto driver = take("driver")) {
    if (std::find(system->drivers.begin(), system->drivers.end(), *driver) ==
        system->drivers.end()) {
      return invalid_argument("JDBC_OPTION", "driver '{}' does not read {}: leave it out", *driver,
                              system->prefix);
    }
  }
  if (const auto ntz = take("prefertimestampntz"); ntz && fold_name(*ntz) != "true") {
    return unsupported("JDBC_OPTION",
                       "preferTimestampNTZ = {} is not supported: timestamps without a time zone "
                       "are TIMESTAMP_NTZ; leave it out, and cast the column where you read it",
                       *ntz);
  }
  if (const auto timeout = take("querytimeout"); timeout && *timeout != "0") {
    return unsupported("JDBC_OPTION", "queryTimeout = {} is not supported: set it on the server",
                       *timeout);
  }
  for (const char* hint : kHints) given.erase(hint);
  if (!given.empty()) {
    return unsupported("JDBC_OPTION", "read_jdbc has no option '{}'; there are {}",
                       given.begin()->first, kAccepted);
  }
  if (read.system == JdbcSystem::kSqlite) {
    // A file has no users.
    read.user.clear();
    read.password.clear();
    const auto name = table ? plain_name(text) : std::nullopt;
    if (!name) {
      return unsupported("JDBC_OPTION",
                         "of SQLite a table or view is read, as dbtable => 'users': give its name, "
                         "and filter, join and group where you read it");
    }
    read.relation = *name;
  }
  return read;
}

Result<JdbcRead> jdbc_read(const sql::TableUse& use, const std::string& directory) {
  const auto fail = [&](Error error, const SourcePlace& place) {
    error.place = place.line > 0 ? place : use.place;
    return error;
  };
  if (!use.arguments.empty()) {
    return fail(invalid_argument("JDBC_OPTION",
                                 "read_jdbc takes options by name, as in read_jdbc(url => '{}', "
                                 "dbtable => 't', user => 'me', password => secret('DB_PASSWORD'))",
                                 kSystems[0].url),
                use.place);
  }
  std::map<std::string, std::string> options;
  for (const auto& [key, expr] : use.named_arguments) {
    const auto text = sql::literal_text(*expr);
    if (fold_name(key) == "password") {
      const auto* call = std::get_if<sql::Call>(&expr->node);
      const bool named =
          call != nullptr && fold_name(call->name.text) == "secret" && call->args.size() == 1;
      const auto name = named ? sql::literal_text(*call->args[0]) : std::nullopt;
      if (!name) {
        if (text) hide_value(*text);  // messages show the line
        return fail(invalid_argument("JDBC_OPTION",
                                     "a password does not belong into SQL text: write password => "
                                     "secret('NAME'), which is the environment variable NAME"),
                    expr->place);
      }
      const auto value = find_secret(*name);
      if (!value) {
        return fail(
            not_found("SECRET_NOT_FOUND",
                      "there is no secret '{}': set the environment variable of that name", *name),
            expr->place);
      }
      options[key] = *value;
      continue;
    }
    if (!text) {
      return fail(invalid_argument("JDBC_OPTION", "option '{}' of read_jdbc needs a literal", key),
                  expr->place);
    }
    options[key] = *text;
  }
  const bool has_password = std::any_of(options.begin(), options.end(), [](const auto& one) {
    return fold_name(one.first) == "password";
  });
  auto read = jdbc_read(options);
  if (!read.ok()) return fail(std::move(read).error(), use.place);
  if (!has_password && !read->password.empty()) {
    return fail(invalid_argument("JDBC_URL",
                                 "the URL '{}' has a password, which does not belong into SQL "
                                 "text: write password => secret('NAME'), which is the environment "
                                 "variable NAME",
                                 read->shown),
                use.place);
  }
  if (read->system == JdbcSystem::kSqlite && !directory.empty())
    read->database =
        (std::filesystem::path(directory) / read->database).lexically_normal().string();
  return read;
}

}  // namespace strandline::duck

namespace strandline {

Status check_jdbc(const std::map<std::string, std::string>& options) {
  const auto read = duck::jdbc_read(options);
  if (!read.ok()) return read.error();
  return {};
}

}  // namespace strandline
