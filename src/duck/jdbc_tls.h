// TLS of JDBC URLs: the drivers' parameters as settings of DuckDB's extensions.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>

#include "duck/jdbc.h"

namespace strandline::duck {

// One setting of a connection, with a blank behind it, in the spelling of the system's extension.
std::string jdbc_setting(JdbcSystem system, const std::string& key, const std::string& value);

// What the parameters of one URL say of TLS, whatever their order. Without any, TLS is used where
// the server offers it, as the drivers do.
class JdbcTls {
 public:
  // mariadb: the URL is one of MariaDB's driver, where useSsl alone verifies the server.
  explicit JdbcTls(JdbcSystem system, bool mariadb = false) : system_(system), mariadb_(mariadb) {}

  // Takes a parameter; false: it is none of TLS. Errors: kInvalidArgument or kUnsupported JDBC_URL.
  Result<bool> take(const std::string& key, const std::string& value);

  // Errors: kInvalidArgument JDBC_URL where the parameters do not go together.
  Result<std::string> settings() const;

  // The parameters that are taken, for messages.
  static const char* accepted(JdbcSystem system);

 private:
  Result<bool> take_postgres(const std::string& key, const std::string& value);
  Result<bool> take_mysql(const std::string& key, const std::string& value);

  JdbcSystem system_;
  bool mariadb_;
  std::optional<std::string> mode_;       // in the extension's words
  std::optional<bool> use_;               // ssl, useSSL
  std::optional<bool> require_, verify_;  // MySQL's older parameters
  std::string root_;                      // certificates that are trusted
  std::string files_;                     // settings of the client's certificate
};

}  // namespace strandline::duck
