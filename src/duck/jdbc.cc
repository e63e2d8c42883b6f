#include "duck/jdbc.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/secrets.h"
#include "duck/engine_errors.h"
#include "duck/extensions.h"
#include "duck/jdbc_mysql.h"
#include "duck/jdbc_postgres.h"

namespace strandline::duck {
namespace {

struct Reader {
  const char* extension;
  const char* type;      // of ATTACH and of the secret
  const char* function;  // runs a query there
  const char* purpose;
};

Reader reader_of(JdbcSystem system) {
  switch (system) {
    case JdbcSystem::kPostgres:
      return {"postgres_scanner", "postgres", "postgres_query", "reading PostgreSQL"};
    case JdbcSystem::kMysql:
      return {"mysql_scanner", "mysql", "mysql_query", "reading MySQL and MariaDB"};
    case JdbcSystem::kSqlite:
      break;
  }
  return {"sqlite_scanner", "sqlite", "", "reading SQLite"};
}

// The name under which a database is attached: one for each way to connect, so that it says nothing
// of the password.
std::string attached_name(const JdbcRead& read) {
  static std::mutex mutex;
  static auto* names = new std::map<std::vector<std::string>, size_t>;
  const std::lock_guard lock(mutex);
  const std::vector<std::string> key = {std::to_string(static_cast<int>(read.system)),
                                        read.host,
                                        std::to_string(read.port),
                                        read.database,
                                        read.user,
                                        read.password,
                                        read.settings};
  return fmt::format("jdbc_{}", names->emplace(key, names->size() + 1).first->second);
}

Status attach(Connection& connection, const JdbcRead& read, const Reader& reader,
              const std::string& name) {
  // Anew each time: what it remembers of the other database's tables may be old.
  SL_TRY(connection.execute(fmt::format("DETACH DATABASE IF EXISTS {}", quote_name(name))));
  if (read.system == JdbcSystem::kSqlite) {
    SL_ASSIGN(const auto there, connection.query_int(fmt::format("SELECT count(*) FROM glob({})",
                                                                 quote_literal(read.database))));
    if (there == 0)
      return not_found("PATH_NOT_FOUND", "there is no SQLite file '{}'", read.database);
    SL_TRY(connection.execute(fmt::format("ATTACH {} AS {} (TYPE sqlite, READ_ONLY)",
                                          quote_literal(read.database), quote_name(name))));
    return {};
  }
  std::string secret =
      fmt::format("HOST {}, DATABASE {}", quote_literal(read.host), quote_literal(read.database));
  if (read.port != 0) secret += fmt::format(", PORT {}", read.port);
  if (!read.user.empty()) secret += ", USER " + quote_literal(read.user);
  if (!read.password.empty()) secret += ", PASSWORD " + quote_literal(read.password);
  SL_TRY(connection.execute(fmt::format("CREATE OR REPLACE TEMPORARY SECRET {} (TYPE {}, {})",
                                        quote_name(name), reader.type, secret)));
  SL_TRY(connection.execute(fmt::format("ATTACH {} AS {} (TYPE {}, SECRET {}, READ_ONLY)",
                                        quote_literal(read.settings), quote_name(name), reader.type,
                                        quote_name(name))));
  return {};
}

// A column as Delta has it, or nullopt where it is that already.
std::optional<std::string> cast_of(const ResultColumn& column) {
  if (column.has_delta_type && column.type.id != TypeId::kVoid) return std::nullopt;
  static const std::map<std::string, const char*> wider = {
      {"UTINYINT", "SMALLINT"},      {"USMALLINT", "INTEGER"},     {"UINTEGER", "BIGINT"},
      {"UBIGINT", "DECIMAL(20,0)"},  {"HUGEINT", "DECIMAL(38,0)"}, {"TIMESTAMP_S", "TIMESTAMP"},
      {"TIMESTAMP_MS", "TIMESTAMP"}, {"TIMESTAMP_NS", "TIMESTAMP"}};
  std::string element = column.engine_type;
  const bool is_array = element.ends_with("[]");
  if (is_array) element.resize(element.size() - 2);
  const auto found = wider.find(element);
  return std::string(found == wider.end() ? "VARCHAR" : found->second) + (is_array ? "[]" : "");
}

// SQLite keeps text in columns of any type, and its extension cuts what does not fit a time.
Status check_times(Connection& connection, const std::string& name, const JdbcRead& read,
                   const std::vector<ResultColumn>& columns) {
  for (const auto& column : columns) {
    const bool is_date = column.engine_type == "DATE";
    if (!is_date && column.engine_type != "TIMESTAMP") continue;
    const std::string quoted = quote_name(column.name);
    // SQLite passes over what surely fits.
    const auto text =
        fmt::format("SELECT {0} FROM {1} WHERE typeof({0}) = 'text' AND ({2})", quoted,
                    quote_name(read.relation),
                    is_date ? fmt::format("{} GLOB '*:*'", quoted)
                            : fmt::format("{0} GLOB '*.???????*' OR {0} GLOB '*:*[-+]*'", quoted));
    const char* const cut =
        is_date ? R"([ T][-+0:. ]*[1-9])" : R"(\.\d{6}\d*[1-9]|:\d+(\.\d+)?\s*[-+][0:]*[1-9])";
    SL_ASSIGN(const auto found,
              connection.query(fmt::format(
                  "SELECT v FROM sqlite_query({}, {}) AS q(v) WHERE regexp_matches(v, {}) LIMIT 1",
                  quote_literal(name), quote_literal(text), quote_literal(cut))));
    if (found.rows.empty()) continue;
    return invalid_data(
        "VALUE_OUT_OF_TYPE",
        "column '{}' of {} in '{}' has '{}', of which {} would lose a part: correct it, or read a "
        "view of the database that gives the column as text or in UTC, as CAST({} AS TEXT) and "
        "datetime({}) do",
        column.name, read.relation, read.shown, found.rows[0][0].value_or(""),
        is_date ? "DATE" : "TIMESTAMP_NTZ", column.name, column.name);
  }
  return {};
}

// SQLite does not look at the bytes of text.
std::string checked_text(const std::string& quoted, const std::string& name) {
  const std::string error = fmt::format(
      "[INVALID_UTF8_STRING] column '{}' has text whose bytes are not UTF-8: correct it, or read a "
      "view of the database that gives it as CAST(... AS BLOB)",
      name);
  return fmt::format(
      "CASE WHEN {0} IS NOT NULL THEN coalesce(TRY(decode(encode({0}))), error({1})) END", quoted,
      quote_literal(error));
}

}  // namespace

Result<std::string> jdbc_relation(Connection& connection, const JdbcRead& read) {
  const Reader reader = reader_of(read.system);
  SL_TRY(load_extension(connection, reader.extension, reader.purpose));
  const std::string name = attached_name(read);
  // The password may stand in what the other side says, whoever gave it.
  if (!read.password.empty()) keep_secret(name, read.password);
  if (auto attached = attach(connection, read, reader, name); !attached.ok()) {
    if (attached.error().code != "ENGINE_ERROR") return attached.error();
    return io_error("JDBC_CONNECTION_FAILED", "'{}' cannot be opened: {}", read.shown,
                    without_secrets(attached.error().message));
  }
  const auto run_there = [&](const std::string& query) {
    return fmt::format("SELECT * FROM {}({}, {})", reader.function, quote_literal(name),
                       quote_literal(query));
  };
  const auto failed = [&](const Error& error) -> Error {
    return invalid_argument("JDBC_QUERY_FAILED", "'{}': reading {} failed: {}", read.shown,
                            read.relation, without_secrets(error.message));
  };
  // What sqlite_query gives is all text.
  std::string text =
      read.system == JdbcSystem::kSqlite
          ? fmt::format("SELECT * FROM {}.{}", quote_name(name), quote_name(read.relation))
          : run_there("SELECT * FROM " + read.relation);
  auto columns = connection.describe(text);
  if (!columns.ok()) return failed(columns.error());
  if (read.system == JdbcSystem::kPostgres) {
    const auto checked = checked_by_postgres(connection, name, read.relation, *columns);
    if (!checked.ok()) return failed(checked.error());
    if (*checked) {
      text = run_there(**checked);
      // What PostgreSQL is asked to send may be of another type than what it has.
      columns = connection.describe(text);
      if (!columns.ok()) return failed(columns.error());
    }
  }
  MysqlRows of_mysql;
  if (read.system == JdbcSystem::kMysql) {
    auto checked = checked_from_mysql(connection, name, read.relation, *columns);
    if (!checked.ok()) return failed(checked.error());
    of_mysql = std::move(*checked);
    text = run_there(of_mysql.query);
  }
  const bool of_sqlite = read.system == JdbcSystem::kSqlite;
  if (of_sqlite) SL_TRY(check_times(connection, name, read, *columns));
  std::string items;
  for (size_t i = 0; i < columns->size(); ++i) {
    const auto& column = (*columns)[i];
    const std::string quoted = quote_name(column.name);
    const auto type = cast_of(column);
    items += items.empty() ? "" : ", ";
    if (i < of_mysql.values.size() && of_mysql.values[i])
      items += fmt::format("{} AS {}", *of_mysql.values[i], quoted);
    else if (type)
      items += fmt::format("CAST({0} AS {1}) AS {0}", quoted, *type);
    else if (of_sqlite && column.engine_type == "VARCHAR")
      items += fmt::format("{} AS {}", checked_text(quoted, column.name), quoted);
    else
      items += quoted;
  }
  return fmt::format("(SELECT {} FROM ({}))", items, text);
}

}  // namespace strandline::duck
