#include "duck/jdbc_tls.h"

#include <algorithm>

#include "base/data_type.h"
#include "base/error.h"

namespace strandline::duck {
namespace {

// As the drivers take them; a parameter without a value is true.
Result<bool> truth(const std::string& key, const std::string& value) {
  const std::string word = fold_name(value);
  if (word.empty() || word == "true" || word == "1" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "no") return false;
  return invalid_argument("JDBC_URL", "{} = {} is neither true nor false", key, value);
}

Error key_store(const std::string& key, const char* instead) {
  return unsupported("JDBC_URL", "the parameter '{}' names a key store of Java: give {}", key,
                     instead);
}

}  // namespace

std::string jdbc_setting(JdbcSystem system, const std::string& key, const std::string& value) {
  const char quote = system == JdbcSystem::kPostgres ? '\'' : '"';
  std::string out = key + "=" + quote;
  for (const char c : value) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote + " ";
}

const char* JdbcTls::accepted(JdbcSystem system) {
  return system == JdbcSystem::kPostgres ? "ssl, sslmode, sslrootcert, sslcert, sslkey, sslfactory"
                                         : "sslMode, useSSL, requireSSL, verifyServerCertificate, "
                                           "trustServerCertificate, serverSslCert";
}

Result<bool> JdbcTls::take(const std::string& key, const std::string& value) {
  return system_ == JdbcSystem::kPostgres ? take_postgres(key, value) : take_mysql(key, value);
}

Result<bool> JdbcTls::take_postgres(const std::string& key, const std::string& value) {
  const std::string folded = fold_name(key);
  if (folded == "ssl") {
    SL_ASSIGN(use_, truth(key, value));
  } else if (folded == "sslmode") {
    const std::string word = fold_name(value);
    mode_.reset();
    for (const char* mode : {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}) {
      if (word == mode) mode_ = word;
    }
    if (!mode_)
      return invalid_argument("JDBC_URL",
                              "sslmode = {} is not one of disable, allow, prefer, require, "
                              "verify-ca and verify-full",
                              value);
  } else if (folded == "sslrootcert") {
    root_ = value;
  } else if (folded == "sslcert" || folded == "sslkey") {
    const std::string file = fold_name(value);
    if (file.ends_with(".p12") || file.ends_with(".pfx") || file.ends_with(".jks"))
      return key_store(key, "certificate and key as PEM files with sslcert and sslkey");
    files_ += jdbc_setting(system_, folded, value);
  } else if (folded == "sslfactory") {
    // The one that checks nothing has a meaning here; the default is what ssl=true does.
    if (value == "org.postgresql.ssl.NonValidatingFactory") {
      verify_ = false;
    } else if (value != "org.postgresql.ssl.LibPQFactory") {
      return unsupported("JDBC_URL",
                         "sslfactory = {} is a class of Java's: give sslmode, and sslrootcert with "
                         "the certificates that are trusted",
                         value);
    }
  } else {
    return false;
  }
  return true;
}

Result<bool> JdbcTls::take_mysql(const std::string& key, const std::string& value) {
  const std::string folded = fold_name(key);
  if (folded == "usessl") {
    SL_ASSIGN(use_, truth(key, value));
  } else if (folded == "requiressl") {
    SL_ASSIGN(require_, truth(key, value));
  } else if (folded == "verifyservercertificate") {
    SL_ASSIGN(verify_, truth(key, value));
  } else if (folded == "trustservercertificate") {
    SL_ASSIGN(const bool trusted, truth(key, value));
    verify_ = !trusted;
  } else if (folded == "sslmode") {
    const struct {
      const char* word;
      const char* mode;
    } words[] = {{"disabled", "disabled"},
                 {"preferred", "preferred"},
                 {"required", "required"},
                 {"verify_ca", "verify_ca"},
                 {"verify_identity", "verify_identity"},
                 // Those of MariaDB's driver.
                 {"disable", "disabled"},
                 {"trust", "required"},
                 {"verify_full", "verify_identity"}};
    std::string word = fold_name(value);
    std::replace(word.begin(), word.end(), '-', '_');
    mode_.reset();
    for (const auto& one : words) {
      if (word == one.word) mode_ = one.mode;
    }
    if (!mode_)
      return invalid_argument("JDBC_URL",
                              "sslMode = {} is not one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA "
                              "and VERIFY_IDENTITY, nor of disable, trust, verify-ca and "
                              "verify-full",
                              value);
  } else if (folded == "serversslcert") {
    root_ = value.starts_with("file:") ? value.substr(5) : value;
    if (value.starts_with("-----") || value.starts_with("classpath:"))
      return unsupported("JDBC_URL", "serverSslCert takes the path of a PEM file here");
  } else if (folded.starts_with("trustcertificatekeystore") || folded.starts_with("truststore")) {
    return key_store(key, "the certificates that are trusted as a PEM file with serverSslCert");
  } else if (folded.starts_with("clientcertificatekeystore") || folded.starts_with("keystore")) {
    return unsupported("JDBC_URL",
                       "the parameter '{}' is not supported: the client shows no certificate of "
                       "its own to MySQL and MariaDB here",
                       key);
  } else {
    return false;
  }
  return true;
}

Result<std::string> JdbcTls::settings() const {
  std::string mode = mode_.value_or("");
  if (system_ == JdbcSystem::kPostgres) {
    // ssl=false leaves the driver's default, as no ssl at all does.
    if (!mode_ && use_.value_or(false)) mode = verify_.value_or(true) ? "verify-full" : "require";
    std::string out;
    if (!mode.empty()) out += jdbc_setting(system_, "sslmode", mode);
    if (!root_.empty()) out += jdbc_setting(system_, "sslrootcert", root_);
    return out + files_;
  }
  if (!mode_) {
    if (use_ && !*use_) {
      mode = "disabled";
    } else if (use_.value_or(false) && verify_.value_or(mariadb_)) {
      mode = mariadb_ ? "verify_identity" : "verify_ca";
    } else if (use_.value_or(false) || require_.value_or(false)) {
      mode = "required";
    }
  }
  if (mode.starts_with("verify") && root_.empty())
    return invalid_argument("JDBC_URL",
                            "the URL asks to verify the server, and nothing says by what: give "
                            "serverSslCert with the PEM file of the certificates that are trusted, "
                            "or sslMode=REQUIRED, which encrypts and verifies nothing");
  if (!mode.starts_with("verify") && !root_.empty()) {
    // A certificate that is given and not looked at would be a trap.
    if (mode_ || !use_.value_or(true) || !verify_.value_or(true))
      return invalid_argument("JDBC_URL",
                              "serverSslCert verifies the server, which the URL's other parameters "
                              "forbid: give it with sslMode=VERIFY_CA or VERIFY_IDENTITY, or leave "
                              "it out");
    mode = "verify_ca";
  }
  std::string out;
  if (!mode.empty()) out += "ssl_mode=" + mode + " ";
  if (!root_.empty()) out += jdbc_setting(system_, "ssl_ca", root_);
  return out;
}

}  // namespace strandline::duck
