#include "base/secrets.h"

#include <gtest/gtest.h>

#include "base/secret_places.h"

namespace strandline {
namespace {

TEST(Secrets, PasswordsAreHiddenWhereTheyStand) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"jdbc:postgresql://bob:HUSH@h/db", "jdbc:postgresql://bob:***@h/db"},
      {"'http://bob%3AHUSH@h/x' and more", "'http://bob%3A***@h/x' and more"},
      {"s3://key:HU/S@H@bucket/x", "s3://key:***@bucket/x"},
      {"x://bob:HU?S@#H@h/db", "x://bob:***@h/db"},
      {"'x://bob:HU''S H@h/db', 'a@b'", "'x://bob:***@h/db', 'a@b'"},
      {"x://h:5432/d?mail=a@b", "x://h:5432/d?mail=a@b"},
      {"jdbc:oracle:thin:me/HUSH@h", "jdbc:oracle:thin:me/***@h"},
      {"jdbc:oracle:thin:@h:1521:db", "jdbc:oracle:thin:@h:1521:db"},
      {"jdbc:mysql:bob:HUSH@h/db", "jdbc:mysql:bob:***@h/db"},
      {"//h/d?user=me&password=HU,SH&ssl=1", "//h/d?user=me&password=***&ssl=1"},
      {"//h/d?%70assword=H%55SH", "//h/d?%70assword=***"},
      {"//h/d?sslpassword=HUSH'", "//h/d?sslpassword=***'"},
      {"//h;user=me;Pwd=HUSH;x=1", "//h;user=me;Pwd=***;x=1"},
      {"host=h password=HUSH user=me", "host=h password=*** user=me"},
      {"PASSWORD 'HU''SH', USER 'me'", "PASSWORD '***', USER 'me'"},
      {"password => 'HUSH')", "password => '***')"},
      {"OPTIONS ('keyStorePassword' = \"HUSH\")", "OPTIONS ('keyStorePassword' = \"***\")"},
      {"{\"password\": \"HU\\\"SH\", \"user\": \"me\"}",
       "{\"password\": \"***\", \"user\": \"me\"}"},
      {R"("{\"password\":\"HUSH\"}")", R"("{\"password\":\"***\"}")"},
      {"{'password': 12345}", "{'password': ***}"},
      {".option('password', 'HUSH')", ".option('password', '***')"},
      {"connect(password=f'HUSH', user='me')", "connect(password=f'***', user='me')"},
      {"  password: HUSH\n  user: me", "  password: ***\n  user: me"},
      {"x: {password: HUSH, y: 1}", "x: {password: ***, y: 1}"},
      {"x: {y: 1, password: HUSH}", "x: {y: 1, password: ***}"},
      // Nothing to hide.
      {"{x} and user, password", "{x} and user, password"},
      {"user, password: write both", "user, password: write both"},
      {"write password => secret('NAME'), which", "write password => secret('NAME'), which"},
      {"user, password, 'ssl'", "user, password, 'ssl'"},
      {"select('password', 'id')", "select('password', 'id')"},
      {"password=os.environ['X']", "password=os.environ['X']"},
      {"FATAL: password authentication failed for user 'me'",
       "FATAL: password authentication failed for user 'me'"},
      {"URL has a password: write", "URL has a password: write"},
      {"password", "password"},
  };
  for (const auto& one : cases) EXPECT_EQ(without_secrets(one.text), one.shown);
}

TEST(Secrets, ShortValuesHideNoLetters) {
  keep_secret("short", "a");
  EXPECT_EQ(without_secrets("a man, a plan"), "a man, a plan");
  keep_secret("word", "zebu");
  EXPECT_EQ(without_secrets("zebu, zebus 'zebu'"), "***, zebus '***'");
  keep_secret("long", "rumpel$tilz");
  EXPECT_EQ(without_secrets("xrumpel$tilzx rumpel%24tilz"), "x***x ***");
}

TEST(Secrets, PartsOfUrlsAreHiddenWhoeverTellsThem) {
  hide_secrets_of("jdbc:postgresql://h/d?sslpassword=quag%24mire&x=quagga");
  EXPECT_EQ(without_secrets("no quag$mire here, quag%24mire, quagga"), "no *** here, ***, quagga");
}

TEST(Secrets, NamedValues) {
  EXPECT_EQ(shown_value("db.password", "x"), "***");
  EXPECT_EQ(shown_value("db.url", "x://u:p@h"), "x://u:***@h");
  EXPECT_EQ(shown_value("compass", "north"), "north");
}

}  // namespace
}  // namespace strandline
