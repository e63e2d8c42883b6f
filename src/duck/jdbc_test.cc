#include "duck/jdbc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/secrets.h"
#include "sql/expr.h"
#include "sql/parser.h"

namespace strandline::duck {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<JdbcRead> of_url(const std::string& url) {
  return jdbc_read({{"url", url}, {"dbtable", "t"}});
}

TEST(JdbcOptions, UrlsOfPostgres) {
  auto read = of_url("jdbc:postgresql://db.example:6543/my%20shop?user=me&password=p%26q&ssl=true");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->system, JdbcSystem::kPostgres);
  EXPECT_EQ(read->host, "db.example");
  EXPECT_EQ(read->port, 6543);
  EXPECT_EQ(read->database, "my shop");
  EXPECT_EQ(read->user, "me");
  EXPECT_EQ(read->password, "p&q");
  EXPECT_EQ(read->settings, "sslmode='verify-full' ");
  EXPECT_EQ(read->shown, "jdbc:postgresql://db.example:6543/my%20shop");

  read = of_url("jdbc:postgresql:shop");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, "localhost");
  EXPECT_EQ(read->port, 0);
  EXPECT_EQ(read->database, "shop");

  read = of_url("jdbc:postgresql:///shop?currentSchema=it's");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, "localhost");
  EXPECT_EQ(read->settings, "options='-csearch_path=it\\'s' ");

  read = of_url("jdbc:postgresql://[::1]:5/d");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, "::1");
  EXPECT_EQ(read->port, 5);
}

TEST(JdbcOptions, UrlsOfMysqlAndSqlite) {
  auto read = of_url("JDBC:mariadb://h/d?useSSL=false&characterEncoding=UTF-8");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->system, JdbcSystem::kMysql);
  EXPECT_EQ(read->settings, "ssl_mode=disabled ");

  read = jdbc_read({{"URL", "jdbc:sqlite:file:/a/b.db"}, {"dbTable", "main.\"odd name\""}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->database, "/a/b.db");
  EXPECT_EQ(read->relation, "odd name");
}

TEST(JdbcOptions, Tls) {
  const struct {
    const char* url;
    const char* settings;
  } cases[] = {
      {"jdbc:postgresql://h/d?ssl", "sslmode='verify-full' "},
      {"jdbc:postgresql://h/d?ssl=false", ""},
      {"jdbc:postgresql://h/d?sslmode=Verify-CA&sslrootcert=/a%20b/it's.pem&ssl=true",
       "sslmode='verify-ca' sslrootcert='/a b/it\\'s.pem' "},
      {"jdbc:postgresql://h/d?ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory",
       "sslmode='require' "},
      {"jdbc:postgresql://h/d?sslmode=verify-full&sslfactory=org.postgresql.ssl.LibPQFactory&"
       "sslcert=c.pem&sslkey=k.pem&currentSchema=s",
       "options='-csearch_path=s' sslmode='verify-full' sslcert='c.pem' sslkey='k.pem' "},
      {"jdbc:mysql://h/d", ""},
      {"jdbc:mysql://h/d?useSSL=true", "ssl_mode=required "},
      {"jdbc:mysql://h/d?requireSSL=true&verifyServerCertificate=false", "ssl_mode=required "},
      {"jdbc:mysql://h/d?useSSL=true&verifyServerCertificate=true&serverSslCert=file:/a/ca.pem",
       "ssl_mode=verify_ca ssl_ca=\"/a/ca.pem\" "},
      {"jdbc:mysql://h/d?sslMode=VERIFY_IDENTITY&serverSslCert=/a%22b.pem",
       "ssl_mode=verify_identity ssl_ca=\"/a\\\"b.pem\" "},
      {"jdbc:mysql://h/d?serverSslCert=ca.pem", "ssl_mode=verify_ca ssl_ca=\"ca.pem\" "},
      // MariaDB's driver verifies unless it is told not to.
      {"jdbc:mariadb://h/d?useSsl=true&serverSslCert=ca.pem",
       "ssl_mode=verify_identity ssl_ca=\"ca.pem\" "},
      {"jdbc:mariadb://h/d?useSsl=true&trustServerCertificate=true", "ssl_mode=required "},
      {"jdbc:mariadb://h/d?sslMode=trust", "ssl_mode=required "},
      {"jdbc:mariadb://h/d?sslMode=disable", "ssl_mode=disabled "},
  };
  for (const auto& one : cases) {
    const auto read = of_url(one.url);
    ASSERT_TRUE(read.ok()) << one.url << ": " << read.error().message;
    EXPECT_EQ(read->settings, one.settings) << one.url;
  }
}

TEST(JdbcOptions, TlsThatIsNotSupportedIsNamed) {
  const struct {
    const char* url;
    const char* says;
  } cases[] = {
      {"jdbc:postgresql://h/d?sslmode=verify", "sslmode = verify is not one of disable"},
      {"jdbc:postgresql://h/d?ssl=maybe", "ssl = maybe is neither true nor false"},
      {"jdbc:postgresql://h/d?sslkey=me.p12", "'sslkey' names a key store"},
      {"jdbc:postgresql://h/d?sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory",
       "is a class of Java's"},
      {"jdbc:postgresql://h/d?sslpassword=x", "'sslpassword', which is not supported"},
      {"jdbc:mysql://h/d?trustCertificateKeyStoreUrl=file:x", "with serverSslCert"},
      {"jdbc:mysql://h/d?clientCertificateKeyStoreUrl=file:x", "no certificate of its own"},
      {"jdbc:mysql://h/d?sslMode=VERIFY_CA", "nothing says by what"},
      {"jdbc:mariadb://h/d?useSSL=true", "nothing says by what"},
      {"jdbc:mysql://h/d?sslMode=REQUIRED&serverSslCert=a.pem", "other parameters forbid"},
      {"jdbc:mysql://h/d?useSSL=false&serverSslCert=a.pem", "other parameters forbid"},
      {"jdbc:mariadb://h/d?serverSslCert=-----BEGIN%20CERTIFICATE", "path of a PEM file"},
  };
  for (const auto& one : cases) {
    const auto read = of_url(one.url);
    ASSERT_FALSE(read.ok()) << one.url;
    EXPECT_EQ(read.error().code, "JDBC_URL");
    EXPECT_THAT(read.error().message, HasSubstr(one.says));
  }
}

TEST(JdbcOptions, QueriesAndHints) {
  const auto read = jdbc_read({{"url", "jdbc:mysql://h/d"},
                               {"query", " SELECT 1; "},
                               {"fetchSize", "10"},
                               {"numPartitions", "4"},
                               {"driver", "com.mysql.cj.jdbc.Driver"},
                               {"user", "me"}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->relation, "(SELECT 1) AS strandline_query");
  EXPECT_EQ(read->user, "me");
}

TEST(JdbcOptions, MistakesAreNamed) {
  const struct {
    std::map<std::string, std::string> options;
    const char* code;
    const char* says;
  } cases[] = {
      {{}, "JDBC_OPTION", "needs the option url"},
      {{{"url", "jdbc:oracle:thin:me/secret@h"}}, "JDBC_URL", "'jdbc:oracle:…' is not supported"},
      {{{"url", "jdbc:postgresql://h"}, {"dbtable", "t"}}, "JDBC_URL", "names no database"},
      {{{"url", "jdbc:postgresql://me:secret@h/d"}, {"dbtable", "t"}}, "JDBC_URL", "as options"},
      {{{"url", "jdbc:postgresql://a,b/d"}, {"dbtable", "t"}}, "JDBC_URL", "several hosts"},
      {{{"url", "jdbc:postgresql://h:70x/d"}, {"dbtable", "t"}}, "JDBC_URL", "no number"},
      {{{"url", "jdbc:mysql://h/d?zeroDateTimeBehavior=x"}, {"dbtable", "t"}},
       "JDBC_URL",
       "useSSL"},
      {{{"url", "jdbc:sqlite::memory:"}, {"dbtable", "t"}}, "JDBC_URL", "names no file"},
      {{{"url", "jdbc:sqlite:a"}, {"dbtable", "a b"}}, "JDBC_OPTION", "of SQLite"},
      {{{"url", "jdbc:postgresql:d"}}, "JDBC_OPTION", "dbtable"},
      {{{"url", "jdbc:postgresql:d"}, {"dbtable", ";"}}, "JDBC_OPTION", "dbtable"},
      {{{"url", "jdbc:postgresql:d"}, {"dbtable", "t"}, {"query", "q"}}, "JDBC_OPTION", "one of"},
      {{{"url", "jdbc:postgresql:d"}, {"URL", "x"}, {"dbtable", "t"}}, "JDBC_OPTION", "twice"},
      {{{"url", "jdbc:postgresql:d"}, {"dbtable", "t"}, {"x", "1"}}, "JDBC_OPTION", "'x'"},
  };
  for (const auto& one : cases) {
    const auto read = jdbc_read(one.options);
    ASSERT_FALSE(read.ok()) << one.says;
    EXPECT_EQ(read.error().code, one.code);
    EXPECT_THAT(read.error().message, HasSubstr(one.says));
    EXPECT_THAT(read.error().message, Not(HasSubstr("secret")));
  }
}

Result<JdbcRead> of_sql(const std::string& call) {
  const auto query = sql::parse_query("SELECT * FROM " + call, "q.sql");
  if (!query.ok()) return query.error();
  return jdbc_read(*sql::plain_table(**query), "/data");
}

TEST(JdbcOptions, PasswordsInSqlAreSecrets) {
  keep_secret("kept", "hunter2");
  auto read =
      of_sql("read_jdbc(url => 'jdbc:postgresql:d', dbtable => 't', password => secret('kept'))");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->password, "hunter2");
  EXPECT_EQ(without_secrets("it is hunter2, hunter2!"), "it is ***, ***!");

  for (const char* call :
       {"read_jdbc(url => 'jdbc:postgresql:d', dbtable => 't', password => 'plain')",
        "read_jdbc(url => 'jdbc:postgresql:d?password=plain', dbtable => 't')"}) {
    read = of_sql(call);
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("does not belong into SQL text"));
    EXPECT_THAT(read.error().message, Not(HasSubstr("plain")));
    ASSERT_TRUE(read.error().place.has_value());
    EXPECT_EQ(read.error().place->line, 1);
  }
  read =
      of_sql("read_jdbc(url => 'jdbc:postgresql:d', dbtable => 't', password => secret('no one'))");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, "SECRET_NOT_FOUND");

  read = of_sql("read_jdbc(url => 'jdbc:sqlite:in/a.db', dbtable => 't')");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->database, "/data/in/a.db");
}

}  // namespace
}  // namespace strandline::duck
