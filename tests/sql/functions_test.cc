// Spark expressions give Spark's values when DuckDB runs their printed form, and every row of the
// function table has a case here.
#include "sql/functions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <set>

#include "duck/connection.h"
#include "duck/describer.h"
#include "sql/duckdb_printer.h"
#include "sql/expr.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::HasSubstr;

// One row with a column of each type, and a few rows for aggregates.
constexpr const char* kOneRow =
    "(SELECT CAST(7 AS INTEGER) AS i, CAST(-7 AS INTEGER) AS neg, CAST(0 AS INTEGER) AS zero, "
    "CAST(3000000000 AS BIGINT) AS l, CAST(2.5 AS DOUBLE) AS d, CAST(12.34 AS DECIMAL(10, 2)) AS "
    "c, "
    "'Spark SQL' AS s, '12' AS digits, CAST(NULL AS INTEGER) AS n, CAST(NULL AS VARCHAR) AS ns, "
    "encode('ab') AS b, DATE '2024-02-29' AS dt, TIMESTAMPTZ '2024-02-29 13:14:15.678901+00' AS "
    "ts, "
    "TIMESTAMP '2024-02-29 13:14:15.5' AS ntz, true AS t, false AS f, [3, NULL, 1, 3] AS a, "
    "['x', 'y'] AS sa, MAP {'k': 1, 'j': 2} AS m, {'x': 1, 'y': 'z'} AS st, "
    "CAST('NaN' AS DOUBLE) AS nan, '{\"a\":1,\"b\":{\"c\":\"x\",\"d\":null},\"e\":[10,20]}' AS j, "
    "CAST([] AS INTEGER[]) AS empty) AS r";
constexpr const char* kRows =
    "(VALUES (1, 'a', CAST(1.5 AS DOUBLE), true, 10), (2, 'b', CAST(2.5 AS DOUBLE), false, NULL), "
    "(2, NULL, CAST(4.0 AS DOUBLE), true, 30), (NULL, 'b', NULL, NULL, 20)) AS r(i, s, d, t, v)";

struct Case {
  const char* expression;
  const char* expected;  // text of the value, "NULL", or "ERROR part of the message"
};

const std::vector<Case>& scalar_cases() {
  static const std::vector<Case> kCases = {
      // --- operators and literals ---
      {"1 / 2", "0.5"},
      {"i / 2", "3.5"},
      {"neg / 2", "-3.5"},
      {"i / zero", "ERROR DIVIDE_BY_ZERO"},
      {"i % zero", "ERROR REMAINDER_BY_ZERO"},
      {"i DIV zero", "ERROR DIVIDE_BY_ZERO"},
      {"n / zero", "NULL"},
      {"i / n", "NULL"},
      {"c / 2", "ERROR DECIMAL"},
      {"CAST(c AS DOUBLE) / 2", "6.17"},
      {"c / d", "4.936"},
      {"neg DIV 2", "-3"},
      {"neg % 3", "-1"},
      {"i + 2147483647", "ERROR Overflow"},
      {"-2147483648", "-2147483648"},
      {"1.5 + 2", "3.5"},
      {"1e2", "100.0"},
      {"5 & 3", "1"},
      {"5 | 3", "7"},
      {"5 ^ 3", "6"},
      {"~5", "-6"},
      {"1 << 3", "8"},
      {"16 >> 2", "4"},
      {"n <=> NULL", "true"},
      {"i <=> n", "false"},
      {"i IS DISTINCT FROM n", "true"},
      {"n = 1", "NULL"},
      {"t AND n IS NULL", "true"},
      {"NOT f", "true"},
      {"t IS NOT TRUE", "false"},
      {"'a' || 'b' || i", "ab7"},
      {"'a' || ns", "NULL"},
      {"'a' || ts", "ERROR cast it to STRING"},
      {"sa || array('z')", "[x, y, z]"},
      {"s LIKE 'Spark%'", "true"},
      {"'a_c' LIKE 'a\\_c'", "true"},
      {"'abc' LIKE 'a\\_c'", "false"},
      {"'a%c' LIKE 'a$%c' ESCAPE '$'", "true"},
      {"s ILIKE 'spark%'", "true"},
      {"s RLIKE '^S.*L$'", "true"},
      {"s LIKE ANY ('x%', '%SQL')", "true"},
      {"s LIKE ALL ('S%', '%SQL')", "true"},
      {"s NOT LIKE 'x'", "true"},
      {"i IN (1, 7)", "true"},
      {"i NOT IN (1, NULL)", "NULL"},
      {"i BETWEEN 1 AND 7", "true"},
      {"CASE i WHEN 7 THEN 'seven' ELSE 'other' END", "seven"},
      {"CASE WHEN n > 1 THEN 1 END", "NULL"},
      {"a[0]", "3"},
      {"a[9]", "ERROR INVALID_ARRAY_INDEX"},
      {"a[zero]", "3"},
      {"a[neg]", "ERROR INVALID_ARRAY_INDEX"},
      {"m['k']", "1"},
      {"m['none']", "NULL"},
      {"st.y", "z"},
      {"named_struct('q', 5).q", "5"},
      {"j:a", "1"},
      {"j:b.c", "x"},
      {"j:e[1]", "20"},
      {"j:['b']['c']", "x"},
      {"j:none", "NULL"},
      {"s:a", "NULL"},
      {"X'4142'", "AB"},
      {"DATE '2024-01-31' + INTERVAL 1 MONTH", "2024-02-29"},
      {"dt + INTERVAL 1 DAY", "2024-03-01"},
      {"dt + INTERVAL 1 HOUR", "ERROR a DATE column plus hours"},
      {"CAST(dt AS DATE) + INTERVAL 1 DAY", "2024-03-01"},
      {"ts + INTERVAL 1 DAY 2 HOURS", "2024-03-01 15:14:15.678901+00"},
      {"ntz - INTERVAL '1 day'", "2024-02-28 13:14:15.5"},
      {"DATE '2024-01-01' + 1", "2024-01-02"},

      // --- casts ---
      {"CAST(1.9 AS INT)", "1"},
      {"CAST(-1.9 AS INT)", "-1"},
      {"CAST(d AS INT)", "2"},
      {"CAST(c AS BIGINT)", "12"},
      {"CAST(digits AS INT)", "12"},
      {"CAST(' 12 ' AS INT)", "12"},
      {"CAST('1.5' AS INT)", "ERROR CAST_INVALID_INPUT"},
      {"CAST('1e3' AS INT)", "ERROR CAST_INVALID_INPUT"},
      {"CAST('0x10' AS INT)", "ERROR CAST_INVALID_INPUT"},
      {"CAST(s AS INT)", "ERROR CAST_INVALID_INPUT"},
      {"TRY_CAST(s AS INT)", "NULL"},
      {"TRY_CAST('1.5' AS INT)", "NULL"},
      {"CAST(l AS INT)", "ERROR"},
      {"CAST(t AS INT)", "1"},
      {"CAST(ts AS STRING)", "2024-02-29 13:14:15.678901"},
      {"CAST(ntz AS STRING)", "2024-02-29 13:14:15.5"},
      {"CAST(dt AS STRING)", "2024-02-29"},
      {"CAST(c AS STRING)", "12.34"},
      {"CAST(d AS STRING)", "2.5"},
      {"CAST(CAST(0 AS DOUBLE) AS STRING)", "0.0"},
      {"CAST(1e7 AS STRING)", "1.0E7"},
      {"CAST(1e-4 AS STRING)", "1.0E-4"},
      {"CAST(nan AS STRING)", "NaN"},
      {"CAST(9999999.0D AS STRING)", "9999999.0"},
      {"CAST(t AS STRING)", "true"},
      {"CAST(a AS STRING)", "ERROR use to_json"},
      {"CAST(b AS STRING)", "ERROR use to_json"},
      {"CAST('2024-01-01 00:00:00+02' AS TIMESTAMP)", "2023-12-31 22:00:00+00"},
      {"TIMESTAMP '2024-01-01 10:00:00'", "2024-01-01 10:00:00+00"},
      {"CAST('2024-01-01 00:00:00+02' AS TIMESTAMP_NTZ)", "2023-12-31 22:00:00"},
      {"CAST('2024-01-01' AS DATE)", "2024-01-01"},
      {"CAST('x' AS DATE)", "ERROR"},
      {"TRY_CAST('x' AS DATE)", "NULL"},
      {"CAST('1.005' AS DECIMAL(10, 2))", "1.01"},
      {"CAST(60 AS TIMESTAMP)", "1970-01-01 00:01:00+00"},
      {"CAST('é' AS BINARY)", "\\xC3\\xA9"},
      {"CAST(s AS BINARY)", "Spark SQL"},
      {"CAST(NULL AS STRUCT<a: INT>)", "NULL"},
      {"CAST(a AS ARRAY<BIGINT>)", "[3, NULL, 1, 3]"},
      {"i::string", "7"},

      // --- strings ---
      {"upper('aé')", "AÉ"},
      {"upper('straße')", "STRASSE"},
      {"ucase(s)", "SPARK SQL"},
      {"lower(s)", "spark sql"},
      {"lcase('AB')", "ab"},
      {"length('añb')", "3"},
      {"char_length(s)", "9"},
      {"character_length(s)", "9"},
      {"len(s)", "9"},
      {"octet_length('ñ')", "2"},
      {"octet_length(b)", "2"},
      {"bit_length('ñ')", "16"},
      {"trim('  a b ') || '|'", "a b|"},
      {"ltrim('  a') || '|'", "a|"},
      {"rtrim('a  ') || '|'", "a|"},
      {"btrim('  a ') || '|'", "a|"},
      {"btrim('xxaxx', 'x')", "a"},
      {"ltrim('x', 'xxa')", "a"},
      {"rtrim('x', 'axx')", "a"},
      {"trim(BOTH 'x' FROM 'xax')", "a"},
      {"trim(LEADING 'x' FROM 'xax')", "ax"},
      {"trim(TRAILING 'x' FROM 'xax')", "xa"},
      {"trim('x' FROM 'xax')", "a"},
      {"concat('a', 'b', 'c')", "abc"},
      {"concat('a', ns)", "NULL"},
      {"concat(s)", "Spark SQL"},
      {"concat_ws('-', 'a', ns, s)", "a-Spark SQL"},
      {"concat_ws('-')", ""},
      {"concat_ws(',', a)", "ERROR array_join"},
      {"substring('abcdef', 2, 3)", "bcd"},
      {"substring('abcdef', 0, 2)", "ab"},
      {"substring('abcdef', -3, 2)", "de"},
      {"substring('abcdef', 3)", "cdef"},
      {"substring(s, zero, 5)", "Spark"},
      {"substr(s, neg, 2)", "ar"},
      {"substring('abc', 2, -1)", ""},
      {"substring(s FROM 7 FOR 3)", "SQL"},
      {"left('abc', 2)", "ab"},
      {"left('abc', -1)", ""},
      {"right('abc', 2)", "bc"},
      {"right('abc', -1)", ""},
      {"replace('abcabc', 'b')", "acac"},
      {"replace('abcabc', 'b', 'X')", "aXcaXc"},
      {"translate('abcba', 'ab', 'X')", "XcX"},
      {"instr('abc', 'c')", "3"},
      {"instr('abc', 'z')", "0"},
      {"locate('c', 'abc')", "3"},
      {"charindex('c', 'abc')", "3"},
      {"locate('a', 'abca', 2)", "4"},
      {"locate('z', 'abca', 2)", "0"},
      {"locate('a', 'abca', 0)", "0"},
      {"regexp_substr('ab12', '[0-9]+')", "12"},
      {"regexp_substr('ab', '[0-9]+')", "NULL"},
      {"url_decode('a%20b')", "a b"},
      {"arrays_overlap(a, array(1))", "true"},
      {"arrays_overlap(a, array(9))", "NULL"},
      {"arrays_overlap(sa, array('q'))", "false"},
      {"zip_with(array(1, 2, 3), array(10, 20), (x, y) -> x + y)", "[11, 22, NULL]"},
      {"transform_values(m, (k, v) -> v + 1)", "{k=2, j=3}"},
      {"transform_keys(m, (k, v) -> upper(k))", "{K=1, J=2}"},
      {"map_filter(m, (k, v) -> v > 1 AND k = 'j')", "{j=2}"},
      {"sequence(DATE '2024-01-01', DATE '2024-01-03', INTERVAL 1 DAY)",
       "[2024-01-01, 2024-01-02, 2024-01-03]"},
      {"DATE '2024-01-02' - DATE '2024-01-01'", "ERROR use datediff"},
      {"position('c', 'abc')", "3"},
      {"position('c' IN 'abc')", "3"},
      {"lpad('7', 3)", "  7"},
      {"lpad('7', 3, '0')", "007"},
      {"lpad('1234', 2, '0')", "12"},
      {"rpad('7', 3) || '|'", "7  |"},
      {"rpad('7', 3, '0')", "700"},
      {"repeat('ab', 2)", "abab"},
      {"space(2) || '|'", "  |"},
      {"reverse('abc')", "cba"},
      {"initcap('sPark sql')", "Spark Sql"},
      {"split('a1b22c', '[0-9]+')", "[a, b, c]"},
      {"split_part('a,b,c', ',', 2)", "b"},
      {"split_part('a,b,c', ',', -1)", "c"},
      {"substring_index('a.b.c', '.', 2)", "a.b"},
      {"substring_index('a.b.c', '.', -2)", "b.c"},
      {"substring_index('a.b.c', '.', 0)", ""},
      {"substring_index('a.b.c', '.', 9)", "a.b.c"},
      {"substring_index('a.b.c', '.', -9)", "a.b.c"},
      {"regexp_replace('aabab', 'a+(b)', '<$1>')", "<b><b>"},
      {"regexp_replace('a', 'a', '\\\\$')", "$"},
      {"regexp_extract('ab12', '([a-z]+)([0-9]+)')", "ab"},
      {"regexp_extract('ab12', '([a-z]+)([0-9]+)', 2)", "12"},
      {"regexp_extract('x', '([0-9])', 1)", ""},
      {"regexp_extract_all('1a2b', '([0-9])')", "[1, 2]"},
      {"regexp_extract_all('1a2b', '([0-9])([a-z])', 2)", "[a, b]"},
      {"regexp_like(s, 'S.L')", "true"},
      {"regexp(s, 'zzz')", "false"},
      {"rlike(s, 'park')", "true"},
      {"regexp_count('1a2b', '[0-9]')", "2"},
      {"startswith(s, 'Sp')", "true"},
      {"endswith(s, 'L')", "true"},
      {"contains(s, 'k S')", "true"},
      {"ascii('é')", "233"},
      {"ascii('')", "0"},
      {"chr(65)", "A"},
      {"char(321)", "A"},
      {"hex(255)", "FF"},
      {"hex('a')", "61"},
      {"hex(-1)", "FFFFFFFFFFFFFFFF"},
      {"unhex('4142')", "AB"},
      {"base64('ab')", "YWI="},
      {"base64(b)", "YWI="},
      {"unbase64('YWI=')", "ab"},
      {"md5('a')", "0cc175b9c0f1b6a831c399e269772661"},
      {"sha('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"},
      {"sha1(s) = sha1('Spark SQL')", "true"},
      {"sha2('a', 256)", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
      {"encode('é', 'UTF-8')", "\\xC3\\xA9"},
      {"decode(b, 'utf-8')", "ab"},
      {"levenshtein('kitten', 'sitting')", "3"},
      {"length(uuid())", "36"},

      // --- conditions ---
      {"coalesce(n, i)", "7"},
      {"nvl(n, 1)", "1"},
      {"ifnull(n, 1)", "1"},
      {"nvl2(n, 1, 2)", "2"},
      {"nullif(i, 7)", "NULL"},
      {"if(t, 1, 2)", "1"},
      {"if(n > 0, 1, 2)", "2"},
      {"iff(f, 1, 2)", "2"},
      {"nullifzero(zero)", "NULL"},
      {"zeroifnull(n)", "0"},
      {"greatest(1, n, i)", "7"},
      {"least(1, n, i)", "1"},
      {"greatest(d, nan)", "nan"},
      {"isnull(n)", "true"},
      {"isnotnull(n)", "false"},
      {"isnan(nan)", "true"},
      {"isnan(CAST(n AS DOUBLE))", "false"},
      {"nanvl(nan, d)", "2.5"},
      {"equal_null(n, n)", "true"},
      {"assert_true(t)", "NULL"},
      {"assert_true(f)", "ERROR USER_RAISED_EXCEPTION"},
      {"raise_error('boom')", "ERROR boom"},

      // --- numbers ---
      {"abs(neg)", "7"},
      {"ceil(d)", "3"},
      {"ceiling(-2.5)", "-2"},
      {"floor(-2.5)", "-3"},
      {"round(2.5)", "3"},
      {"round(d)", "3.0"},
      {"round(1.255, 2)", "1.26"},
      {"round(15, -1)", "20"},
      {"sqrt(16)", "4.0"},
      {"sqrt(neg)", "nan"},
      {"cbrt(8)", "2.0"},
      {"exp(zero)", "1.0"},
      {"ln(1)", "0.0"},
      {"ln(zero)", "NULL"},
      {"log(1)", "0.0"},
      {"log(2, 8)", "3.0"},
      {"log10(100)", "2.0"},
      {"log2(8)", "3.0"},
      {"log1p(0)", "0.0"},
      {"pow(2, 10)", "1024.0"},
      {"power(2, 3)", "8.0"},
      {"sign(neg)", "-1.0"},
      {"signum(d)", "1.0"},
      {"mod(neg, 3)", "-1"},
      {"mod(1, zero)", "ERROR REMAINDER_BY_ZERO"},
      {"pmod(neg, 3)", "2"},
      {"positive(i)", "7"},
      {"negative(i)", "-7"},
      {"round(pi(), 4)", "3.1416"},
      {"round(e(), 4)", "2.7183"},
      {"sin(0)", "0.0"},
      {"cos(0)", "1.0"},
      {"tan(0)", "0.0"},
      {"asin(0)", "0.0"},
      {"asin(2)", "nan"},
      {"acos(1)", "0.0"},
      {"acos(2)", "nan"},
      {"atan(0)", "0.0"},
      {"atan2(0, 1)", "0.0"},
      {"sinh(0)", "0.0"},
      {"cosh(0)", "1.0"},
      {"tanh(0)", "0.0"},
      {"round(degrees(pi()))", "180.0"},
      {"round(radians(180), 4)", "3.1416"},
      {"round(cot(1), 4)", "0.6421"},
      {"hypot(3, 4)", "5.0"},
      {"rint(2.5)", "2.0"},
      {"bround(2.5D)", "2.0"},
      {"bround(2.5)", "2"},
      {"bround(1.25, 1)", "1.2"},
      {"bround(25, -1)", "20"},
      {"bround(2.25D, 1)", "2.2"},
      {"factorial(5)", "120"},
      {"factorial(21)", "NULL"},
      {"bin(13)", "1101"},
      {"bit_count(7)", "3"},
      {"shiftleft(1, 3)", "8"},
      {"shiftright(16, 2)", "4"},
      {"rand() BETWEEN 0 AND 1", "true"},
      {"random() < 1", "true"},
      {"try_add(2147483647, i)", "NULL"},
      {"try_subtract(i, 1)", "6"},
      {"try_multiply(2147483647, i)", "NULL"},
      {"try_divide(i, zero)", "NULL"},
      {"try_divide(i, 2)", "3.5"},

      // --- casts by name ---
      {"string(i)", "7"},
      {"int('5')", "5"},
      {"bigint(d)", "2"},
      {"smallint(1)", "1"},
      {"tinyint(1)", "1"},
      {"float(1)", "1.0"},
      {"double('1.5')", "1.5"},
      {"decimal(i)", "7"},
      {"boolean('true')", "true"},
      {"binary('a')", "a"},
      {"date('2024-01-02')", "2024-01-02"},
      {"timestamp('2024-01-02')", "2024-01-02 00:00:00+00"},

      // --- dates and times (now is 2024-05-06 07:08:09.123456) ---
      {"current_date()", "2024-05-06"},
      {"current_date", "2024-05-06"},
      {"curdate()", "2024-05-06"},
      {"current_timestamp()", "2024-05-06 07:08:09.123456+00"},
      {"now()", "2024-05-06 07:08:09.123456+00"},
      {"localtimestamp()", "2024-05-06 07:08:09.123456"},
      {"current_timezone()", "UTC"},
      {"year(dt)", "2024"},
      {"year('2024-05-01')", "2024"},
      {"quarter(dt)", "1"},
      {"month(ts)", "2"},
      {"day(dt)", "29"},
      {"dayofmonth(ntz)", "29"},
      {"dayofyear(dt)", "60"},
      {"dayofweek(DATE '2024-01-07')", "1"},
      {"weekday(DATE '2024-01-01')", "0"},
      {"weekofyear(DATE '2021-01-03')", "53"},
      {"hour(ts)", "13"},
      {"minute(ts)", "14"},
      {"second(ts)", "15"},
      {"dayname(dt)", "Thu"},
      {"monthname(dt)", "Feb"},
      {"date_part('YEAR', dt)", "2024"},
      {"datepart('dow', DATE '2024-01-07')", "1"},
      {"extract(SECOND FROM ts)", "15.678901"},
      {"extract(WEEK FROM dt)", "9"},
      {"last_day(dt)", "2024-02-29"},
      {"last_day('2023-02-01')", "2023-02-28"},
      {"add_months('2024-01-31', 1)", "2024-02-29"},
      {"date_add(dt, 1)", "2024-03-01"},
      {"date_add('2024-12-31', 1)", "2025-01-01"},
      {"dateadd(dt, 1)", "2024-03-01"},
      {"date_sub(ts, 29)", "2024-01-31"},
      {"datediff(dt, '2024-02-27')", "2"},
      {"date_diff(dt, DATE '2024-03-01')", "-1"},
      {"dateadd(HOUR, 2, ts)", "2024-02-29 15:14:15.678901+00"},
      {"timestampadd(MONTH, 1, '2024-01-31')", "2024-02-29 00:00:00+00"},
      {"datediff(HOUR, '2024-01-01 00:00:00', '2024-01-01 01:59:00')", "1"},
      {"timestampdiff(DAY, dt, ts)", "0"},
      {"date_trunc('MONTH', ts)", "2024-02-01 00:00:00+00"},
      {"date_trunc('hour', '2024-01-01 10:59:00')", "2024-01-01 10:00:00+00"},
      {"trunc(dt, 'MM')", "2024-02-01"},
      {"trunc('2024-08-09', 'year')", "2024-01-01"},
      {"make_date(2024, 2, 29)", "2024-02-29"},
      {"make_timestamp(2024, 1, 2, 3, 4, 5.5)", "2024-01-02 03:04:05.5+00"},
      {"to_date('2024-01-02')", "2024-01-02"},
      {"to_date('02/01/2024', 'dd/MM/yyyy')", "2024-01-02"},
      {"to_date('x')", "ERROR"},
      {"try_to_date('x')", "NULL"},
      {"try_to_date('x', 'yyyy')", "NULL"},
      {"to_timestamp('2024-01-02 03:04:05')", "2024-01-02 03:04:05+00"},
      {"to_timestamp('2024-01-02T03:04:05+02:00', \"yyyy-MM-dd'T'HH:mm:ssXXX\")",
       "2024-01-02 01:04:05+00"},
      {"to_timestamp('2024-01-02 03:04:05.123', 'yyyy-MM-dd HH:mm:ss.SSS')",
       "2024-01-02 03:04:05.123+00"},
      {"to_timestamp_ltz('2024-01-02 03:04:05')", "2024-01-02 03:04:05+00"},
      {"to_timestamp_ntz('2024-01-02 03:04:05')", "2024-01-02 03:04:05"},
      {"try_to_timestamp('x')", "NULL"},
      {"date_format(ts, 'yyyy-MM-dd HH:mm')", "2024-02-29 13:14"},
      {"date_format('2024-03-04', 'd/M/yy EEEE')", "4/3/24 Monday"},
      {"unix_timestamp()", "1714979289"},
      {"unix_timestamp('1970-01-01 00:01:00')", "60"},
      {"unix_timestamp('01.01.1970', 'dd.MM.yyyy')", "0"},
      {"to_unix_timestamp('1970-01-01 00:01:00')", "60"},
      {"from_unixtime(60)", "1970-01-01 00:01:00"},
      {"from_unixtime(60, 'HH:mm')", "00:01"},
      {"timestamp_seconds(1.5)", "1970-01-01 00:00:01.5+00"},
      {"timestamp_millis(1500)", "1970-01-01 00:00:01.5+00"},
      {"timestamp_micros(1)", "1970-01-01 00:00:00.000001+00"},
      {"unix_seconds(ts)", "1709212455"},
      {"unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')", "-1"},
      {"unix_millis(ts)", "1709212455678"},
      {"unix_micros(ts)", "1709212455678901"},
      {"unix_date(DATE '1970-01-03')", "2"},
      {"date_from_unix_date(2)", "1970-01-03"},
      {"from_utc_timestamp('2024-01-01 00:00:00', 'Europe/Paris')", "2024-01-01 01:00:00+00"},
      {"to_utc_timestamp('2024-01-01 01:00:00', 'Europe/Paris')", "2024-01-01 00:00:00+00"},

      // --- arrays, maps, structs ---
      {"array(1, 2)", "[1, 2]"},
      {"array()", "[]"},
      {"size(a)", "4"},
      {"size(CAST(NULL AS ARRAY<INT>))", "NULL"},
      {"size(s)", "ERROR size of a"},
      {"cardinality(sa)", "2"},
      {"size(map('a', 1))", "1"},
      {"array_size(a)", "4"},
      {"array_contains(a, 1)", "true"},
      {"array_contains(a, 9)", "NULL"},
      {"array_contains(sa, 'q')", "false"},
      {"array_position(a, 1)", "3"},
      {"array_position(a, 9)", "0"},
      {"array_distinct(a)", "[3, NULL, 1]"},
      {"array_max(a)", "3"},
      {"array_min(a)", "1"},
      {"sort_array(a)", "[NULL, 1, 3, 3]"},
      {"sort_array(a, false)", "[3, 3, 1, NULL]"},
      {"array_sort(a)", "[1, 3, 3, NULL]"},
      {"array_join(sa, '-')", "x-y"},
      {"array_append(sa, 'z')", "[x, y, z]"},
      {"array_prepend(sa, 'w')", "[w, x, y]"},
      {"array_remove(a, 3)", "[NULL, 1]"},
      {"array_compact(a)", "[3, 1, 3]"},
      {"array_repeat('x', 2)", "[x, x]"},
      {"array_union(array(1, 2), array(2, 3))", "[1, 2, 3]"},
      {"array_intersect(array(1, 2, 2), array(2, 3))", "[2]"},
      {"array_except(array(1, 2, 1), array(2))", "[1]"},
      {"flatten(array(array(1), array(2, 3)))", "[1, 2, 3]"},
      {"slice(array(1, 2, 3, 4), 2, 2)", "[2, 3]"},
      {"slice(array(1, 2, 3, 4), -2, 2)", "[3, 4]"},
      {"slice(array(1, 2), -5, 2)", "[]"},
      {"sequence(1, 3)", "[1, 2, 3]"},
      {"sequence(DATE '2024-01-02', DATE '2024-01-01')", "[2024-01-02, 2024-01-01]"},
      {"sequence(DATE '2024-01-31', DATE '2024-03-31', INTERVAL 1 MONTH)",
       "[2024-01-31, 2024-02-29, 2024-03-31]"},
      {"sequence(DATE '2024-01-01', DATE '2024-01-02', INTERVAL 12 HOURS)",
       "ERROR takes steps of days or months"},
      {"sequence(3, 1)", "[3, 2, 1]"},
      {"sequence(1, 9, 4)", "[1, 5, 9]"},
      {"element_at(sa, 1)", "x"},
      {"element_at(sa, -1)", "y"},
      {"element_at(m, 'j')", "2"},
      {"element_at(sa, 9)", "ERROR INVALID_ARRAY_INDEX_IN_ELEMENT_AT"},
      {"element_at(sa, 0)", "ERROR INVALID_INDEX_OF_ZERO"},
      {"try_element_at(sa, 9)", "NULL"},
      {"get(sa, 0)", "x"},
      {"get(sa, -1)", "NULL"},
      {"transform(a, x -> x + 1)", "[4, NULL, 2, 4]"},
      {"transform(sa, (x, k) -> x || k)", "[x0, y1]"},
      {"filter(a, x -> x > 1)", "[3, 3]"},
      {"filter(sa, (x, k) -> k = 0)", "[x]"},
      {"exists(a, x -> x = 1)", "true"},
      {"exists(empty, x -> x = 1)", "false"},
      {"forall(sa, x -> x > 'a')", "true"},
      {"forall(empty, x -> x = 1)", "true"},
      {"aggregate(array(1, 2, 3), 10, (acc, x) -> acc + x)", "16"},
      {"reduce(array(1, 2), 0, (acc, x) -> acc + x, acc -> acc * 10)", "30"},
      {"map('a', 1)['a']", "1"},
      {"map()", "{}"},
      {"map_keys(m)", "[k, j]"},
      {"map_values(m)", "[1, 2]"},
      {"map_entries(map('a', 1))[0].key", "a"},
      {"map_contains_key(m, 'k')", "true"},
      {"map_from_arrays(array('a'), array(1))", "{a=1}"},
      {"map_from_entries(array(struct('a', 1)))", "{a=1}"},
      {"map_concat(map('a', 1), map('b', 2))", "{a=1, b=2}"},
      {"struct(i, s AS name).name", "Spark SQL"},
      {"struct(1, 2).col2", "2"},
      {"(i, s).s", "Spark SQL"},
      {"named_struct('a', 1, 'b', 2).b", "2"},

      // --- JSON ---
      {"get_json_object(j, '$.b.c')", "x"},
      {"get_json_object(j, '$.b')", "{\"c\":\"x\",\"d\":null}"},
      {"get_json_object(s, '$.a')", "NULL"},
      {"from_json(j, 'a INT, b STRUCT<c: STRING>').b.c", "x"},
      {"from_json(j, 'STRUCT<a: BIGINT>').a", "1"},
      {"from_json('bad', 'a INT').a", "NULL"},
      {"from_json('bad', 'a INT') IS NULL", "false"},
      {"from_json('[1,2]', 'ARRAY<INT>')[1]", "2"},
      {"from_json('{\"k\":1}', 'MAP<STRING, INT>')['k']", "1"},
      {"to_json(named_struct('a', 1, 'b', n))", "{\"a\":1}"},
      {"to_json(struct(ts))", "ERROR to_json of timestamps"},
      {"json_array_length('[1,2]')", "2"},
      {"json_array_length(s)", "NULL"},
      {"json_object_keys('{\"a\":1,\"b\":2}')", "[a, b]"},
  };
  return kCases;
}

const std::vector<Case>& aggregate_cases() {
  static const std::vector<Case> kCases = {
      {"count(*)", "4"},
      {"count(i)", "3"},
      {"count(DISTINCT i)", "2"},
      {"count(i, s)", "2"},
      {"count(DISTINCT i, s)", "2"},
      {"count(*) FILTER (WHERE t)", "2"},
      {"count_if(t)", "2"},
      {"sum(i)", "5"},
      {"sum(DISTINCT i)", "3"},
      {"sum(d)", "8.0"},
      {"avg(i)", "1.6666666666666667"},
      {"mean(d)", "2.6666666666666665"},
      {"avg(CAST(i AS DECIMAL(10, 2)))", "1.666667"},
      {"avg(v / 2)", "10.0"},
      {"avg(DISTINCT i)", "1.5"},
      {"sum(CAST(i AS DECIMAL(10, 2)))", "5.00"},
      {"sum(CAST(d AS FLOAT))", "8.0"},
      {"sum(v) FILTER (WHERE i = 2)", "30"},
      {"min(s)", "a"},
      {"max(v)", "30"},
      {"min_by(s, v)", "a"},
      {"max_by(s, v)", "NULL"},
      {"first(i)", "1"},
      {"first(i, true)", "1"},
      {"first_value(s)", "a"},
      {"any_value(v, true)", "10"},
      {"last(i)", "NULL"},
      {"last(i, true)", "2"},
      {"last_value(v) IGNORE NULLS", "20"},
      {"sort_array(collect_list(i))", "[1, 2, 2]"},
      {"collect_list(i) FILTER (WHERE i > 9)", "[]"},
      {"sort_array(array_agg(s))", "[a, b, b]"},
      {"sort_array(collect_set(s))", "[a, b]"},
      {"round(stddev(d), 4)", "1.2583"},
      {"round(std(d), 4)", "1.2583"},
      {"round(stddev_samp(d), 4)", "1.2583"},
      {"round(stddev_pop(d), 4)", "1.0274"},
      {"round(variance(d), 4)", "1.5833"},
      {"round(var_samp(d), 4)", "1.5833"},
      {"round(var_pop(d), 4)", "1.0556"},
      {"round(covar_pop(d, i), 4)", "0.3889"},
      {"round(covar_samp(d, i), 4)", "0.5833"},
      {"round(corr(d, i), 4)", "0.803"},
      {"median(i)", "2.0"},
      {"percentile(v, 0.5)", "20.0"},
      {"percentile_approx(v, 0.5)", "20"},
      {"approx_percentile(v, 0.5, 100)", "20"},
      {"percentile_cont(0.5) WITHIN GROUP (ORDER BY v)", "20.0"},
      {"percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC)", "20"},
      {"approx_count_distinct(i)", "2"},
      {"bool_and(t)", "false"},
      {"every(t)", "false"},
      {"bool_or(t)", "true"},
      {"some(t)", "true"},
      {"any(t)", "true"},
      {"bit_and(i)", "0"},
      {"bit_or(i)", "3"},
      {"bit_xor(i)", "1"},
      {"mode(i)", "2"},
      {"listagg(s, '-') WITHIN GROUP (ORDER BY s DESC)", "b-b-a"},
      {"string_agg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s)", "a,b"},
      {"max(i) + 1", "3"},
  };
  return kCases;
}

// Over the rows ordered by v: values joined by blanks.
const std::vector<Case>& window_cases() {
  static const std::vector<Case> kCases = {
      {"row_number() OVER (ORDER BY v)", "1 2 3 4"},
      {"rank() OVER (ORDER BY i)", "3 2 1 3"},
      {"dense_rank() OVER (ORDER BY i)", "3 2 1 3"},
      {"ntile(2) OVER (ORDER BY v)", "1 1 2 2"},
      {"percent_rank() OVER (ORDER BY v DESC)", "1.0 0.6666666666666666 0.3333333333333333 0.0"},
      {"cume_dist() OVER (ORDER BY v)", "0.25 0.5 0.75 1.0"},
      {"lag(v) OVER (ORDER BY v)", "NULL NULL 10 20"},
      {"lag(v, 1, 0) OVER (ORDER BY v)", "0 NULL 10 20"},
      {"lead(v, 2) OVER (ORDER BY v)", "20 30 NULL NULL"},
      {"nth_value(v, 2) OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
       "10 10 10 10"},
      {"first_value(v) OVER (ORDER BY v DESC)", "30 30 30 30"},
      {"last_value(v, true) OVER (ORDER BY v)", "NULL 10 20 30"},
      {"first(v) IGNORE NULLS OVER (ORDER BY v)", "NULL 10 10 10"},
      {"sum(v) OVER (ORDER BY v)", "NULL 10 30 60"},
      {"avg(v) OVER (ORDER BY v)", "NULL 10.0 15.0 20.0"},
      {"count(*) OVER (PARTITION BY s)", "2 1 2 1"},
      {"collect_list(v) OVER (ORDER BY v)", "[] [10] [10, 20] [10, 20, 30]"},
  };
  return kCases;
}

class Functions : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = duck::Database::open({});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    database_ = *opened;
    auto connected = database_->connect();
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    connection_ = std::move(*connected);
    options_.now_us = 1714979289123456;  // 2024-05-06 07:08:09.123456
  }

  // The printed form's values over the relation, and its type.
  void check(const Case& test_case, const std::string& relation, const std::string& order) {
    SCOPED_TRACE(test_case.expression);
    const auto parsed = parse_expression(test_case.expression, "case");
    ASSERT_TRUE(parsed.ok()) << render_error(parsed.error(), test_case.expression);
    note_calls(**parsed);
    const std::string expected = test_case.expected;
    const bool fails = expected.rfind("ERROR", 0) == 0;
    const std::string message = fails && expected.size() > 6 ? expected.substr(6) : "";
    const auto printed = print_duckdb(**parsed, options_);
    if (!printed.ok()) {
      EXPECT_TRUE(fails) << printed.error().message;
      EXPECT_THAT(printed.error().message, HasSubstr(message));
      return;
    }
    const auto rows = connection_->query("SELECT CAST((" + *printed + ") AS VARCHAR), typeof(" +
                                         *printed + ") FROM " + relation + order);
    if (!rows.ok()) {
      EXPECT_TRUE(fails) << rows.error().message << "\n" << *printed;
      EXPECT_THAT(rows.error().code + " " + rows.error().message, HasSubstr(message)) << *printed;
      return;
    }
    std::string text;
    for (const auto& row : rows->rows) text += (text.empty() ? "" : " ") + row[0].value_or("NULL");
    EXPECT_EQ(text, expected) << *printed;
    check_type(**parsed, *rows->rows[0][1]);
  }

  // A row of the table that tells its type tells the truth.
  void check_type(const Expr& expr, const std::string& type) {
    const auto* call = expr.as<Call>();
    if (call == nullptr) return;
    bool known = false;
    const Function* function = find_function(call->name.text, call->args.size(), &known);
    ASSERT_NE(function, nullptr);
    static const std::map<TypeId, std::string> kNames = {
        {TypeId::kString, "VARCHAR"},
        {TypeId::kInteger, "INTEGER"},
        {TypeId::kLong, "BIGINT"},
        {TypeId::kDouble, "DOUBLE"},
        {TypeId::kBoolean, "BOOLEAN"},
        {TypeId::kDate, "DATE"},
        {TypeId::kTimestamp, "TIMESTAMP WITH TIME ZONE"},
        {TypeId::kTimestampNtz, "TIMESTAMP"},
        {TypeId::kBinary, "BLOB"},
        {TypeId::kShort, "SMALLINT"},
        {TypeId::kByte, "TINYINT"},
        {TypeId::kFloat, "FLOAT"}};
    const auto name = kNames.find(function->result);
    if (name != kNames.end()) {
      EXPECT_EQ(type, name->second);
    }
  }

  void note_calls(const Expr& expr) {
    if (const auto* call = expr.as<Call>()) {
      bool known = false;
      covered_.insert(find_function(call->name.text, call->args.size(), &known));
    }
    for_each_child(expr, [&](const ExprPtr& child) { note_calls(*child); });
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
  PrintOptions options_;
  std::set<const Function*> covered_;
};

TEST_F(Functions, GiveSparksValues) {
  for (const Case& test_case : scalar_cases()) check(test_case, kOneRow, "");
  for (const Case& test_case : aggregate_cases()) check(test_case, kRows, "");
  for (const Case& test_case : window_cases()) check(test_case, kRows, " ORDER BY v NULLS FIRST");
  for (const Function& function : functions()) {
    if (function.kind == FunctionKind::kGenerator) continue;  // queries_test.cc
    if (function.name.starts_with("grouping")) continue;      // tests/logic/grouping_sets.test
    EXPECT_TRUE(covered_.count(&function) > 0)
        << "no case for " << function.name << " with " << function.min_args << " arguments";
  }
}

// The expression with each column, outside of texts and lambdas' heads, as form(column) makes it;
// counts them.
std::string with_columns(const std::string& expression, int* count,
                         const std::function<std::string(const std::string&)>& form) {
  static const std::set<std::string> kColumns = {
      "i",  "neg", "zero", "l", "d", "c",  "s", "digits", "n",   "ns", "b",    "dt",
      "ts", "ntz", "t",    "f", "a", "sa", "m", "st",     "nan", "j",  "empty"};
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string result;
  for (size_t at = 0; at < expression.size();) {
    if (expression[at] == '\'') {
      const size_t end = expression.find('\'', at + 1);
      result += expression.substr(at, end - at + 1);
      at = end + 1;
      continue;
    }
    size_t end = at;
    while (end < expression.size() && is_part(expression[end])) ++end;
    if (end == at) {
      result += expression[at++];
      continue;
    }
    const std::string word = expression.substr(at, end - at);
    const bool member = at > 0 && expression[at - 1] == '.';
    const bool text =
        end < expression.size() && (expression[end] == '\'' || expression[end] == '(');
    const bool column = kColumns.contains(word) && !member && !text;
    *count += column ? 1 : 0;
    result += column ? form(word) : word;
    at = end;
  }
  return result;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What differs at every call stands in the text once for each call, whatever a function needs it
// for; and the value is the same.
TEST_F(Functions, ComputeTheirArgumentsOnce) {
  std::set<const Function*> tried;
  std::vector<Case> cases = scalar_cases();
  // Functions that take constants or lambdas, whose cases above have constants alone.
  for (const char* more : {"regexp_replace(s, 'a', 'b')",
                           "sha2(s, 256)",
                           "encode(s, 'UTF-8')",
                           "decode(b, 'UTF-8')",
                           "datepart('YEAR', dt)",
                           "date_part('YEAR', dt)",
                           "aggregate(a, i, (x, y) -> x + y)",
                           "aggregate(a, i, (x, y) -> x + y, x -> x * 2)",
                           "reduce(a, i, (x, y) -> x + y)",
                           "reduce(a, i, (x, y) -> x + y, x -> x * 2)",
                           "transform(a, x -> x + 1)",
                           "filter(a, x -> x > 1)",
                           "exists(a, x -> x > 1)",
                           "forall(a, x -> x > 1)",
                           "zip_with(a, a, (x, y) -> x + y)",
                           "transform_keys(m, (k, v) -> k)",
                           "transform_values(m, (k, v) -> v)",
                           "map_filter(m, (k, v) -> v > 1)",
                           "from_json(s, 'x INT')",
                           "from_json(s, 'x DECIMAL(5,2)')",
                           "named_struct('x', i)",
                           "get_json_object(s, '$.x')",
                           "timestampadd(DAY, i, ts)",
                           "timestampdiff(DAY, ts, ts)",
                           "timestampdiff(MONTH, ts, ts)",
                           "trunc(dt, 'MM')",
                           "date_trunc('DAY', ts)",
                           "date_format(ts, 'yyyy')",
                           "to_date(s, 'yyyy')",
                           "try_to_date(s, 'yyyy')",
                           "to_timestamp(s, 'yyyy')",
                           "to_timestamp_ltz(s, 'yyyy')",
                           "to_timestamp_ntz(s, 'yyyy')",
                           "try_to_timestamp(s, 'yyyy')",
                           "unix_timestamp(s, 'yyyy')",
                           "map(s, i)",
                           "to_unix_timestamp(s, 'yyyy')",
                           "from_unixtime(l, 'yyyy')",
                           "sort_array(a, true)",
                           "CASE i + 1 WHEN '1' THEN 2 WHEN d THEN 3 END",
                           "s LIKE ANY ('a', 'b')",
                           "nullif(c + 1, d)",
                           "d BETWEEN c AND i",
                           "count(i, s)"})
    cases.push_back({more, ""});
  for (const Case& test_case : cases) {
    int count = 0;
    const std::string volatiles = with_columns(
        test_case.expression, &count,
        [](const std::string& column) { return fmt::format("if(rand() < 2, {0}, {0})", column); });
    const auto parsed = parse_expression(volatiles, "case");
    if (!parsed.ok()) continue;  // a column where a name or a lambda's parameter is
    SCOPED_TRACE(volatiles);
    for (const bool knows_types : {false, true}) {
      PrintOptions options = options_;
      if (knows_types) {
        options.from = kOneRow;
        options.describe = duck::describer(*connection_);
      }
      const auto printed = print_duckdb(**parsed, options);
      if (!printed.ok()) continue;  // it wants a constant
      // Where types are not known the engine takes one of several branches, each with its columns.
      EXPECT_EQ(count_of(*printed, "random()"), count + count_of(test_case.expression, "rand"))
          << *printed;
    }
    const std::function<void(const Expr&)> note = [&](const Expr& node) {
      bool known = false;
      if (const auto* call = node.as<Call>())
        tried.insert(find_function(call->name.text, call->args.size(), &known));
      for_each_child(node, [&](const ExprPtr& child) { note(*child); });
    };
    if (count > 0) note(**parsed);
  }
  // Of functions whose cases have constants alone, and of new ones.
  for (const Function& function : functions()) {
    if (function.kind != FunctionKind::kScalar || function.max_args == 0 ||
        function.name.starts_with("grouping")) {
      continue;
    }
    const int arguments = std::max(function.min_args, 1);
    std::string text = std::string(function.name) + "(";
    for (int i = 0; i < arguments; ++i)
      text += i == 0 ? "if(rand() < 2, i, i)" : ", if(rand() < 2, i, i)";
    const auto parsed = parse_expression(text + ")", "case");
    ASSERT_TRUE(parsed.ok()) << text;
    const auto printed = print_duckdb(**parsed, options_);
    if (!printed.ok()) {  // it takes a constant or a lambda, as its cases do
      EXPECT_TRUE(tried.contains(&function)) << function.name << ": " << printed.error().message;
    } else {
      // concat_ws of a separator alone is empty, whatever it is.
      const int wanted = function.name == "concat_ws" ? 0 : arguments;
      EXPECT_EQ(count_of(*printed, "random()"), wanted) << *printed;
    }
  }
}

// A function in itself, again and again, takes text in proportion: it is not multiplied.
TEST_F(Functions, NestInLinearSpace) {
  for (const Case& test_case : scalar_cases()) {
    const auto nested = [&](int depth) -> std::optional<size_t> {
      std::string text = "i";
      for (int level = 0; level < depth; ++level) {
        int count = 0;
        text = with_columns(test_case.expression, &count,
                            [&](const std::string& column) { return count == 1 ? text : column; });
      }
      const auto parsed = parse_expression(text, "case");
      if (!parsed.ok()) return std::nullopt;
      const auto printed = print_duckdb(**parsed, options_);
      return printed.ok() ? std::optional(printed->size()) : std::nullopt;
    };
    const auto twice = nested(2);
    if (!twice) continue;
    const auto six = nested(6);
    const auto twelve = nested(12);
    ASSERT_TRUE(six && twelve) << test_case.expression << " cannot be printed twelve times";
    EXPECT_LT(*twelve, 3 * *six) << test_case.expression;
  }
}

// Where Spark's type follows from the argument's, so does ours.
TEST_F(Functions, GiveSparksTypes) {
  const std::vector<Case> cases = {
      {"sum(i)", "BIGINT"},
      {"sum(l)", "BIGINT"},
      {"sum(d)", "DOUBLE"},
      {"sum(c)", "DECIMAL(22,2)"},
      {"sum(i) OVER ()", "BIGINT"},
      {"avg(i)", "DOUBLE"},
      {"avg(d)", "DOUBLE"},
      {"avg(c)", "DECIMAL(17,6)"},
      {"i / 2", "DOUBLE"},
      {"i DIV 2", "BIGINT"},
      {"i + 1", "INTEGER"},
      {"l * 2", "BIGINT"},
      {"sequence(i, 9)", "INTEGER[]"},
      {"dt + INTERVAL 1 DAY", "DATE"},
      {"ts + INTERVAL 1 DAY", "TIMESTAMP WITH TIME ZONE"},
      {"ntz + INTERVAL 1 DAY", "TIMESTAMP"},
      {"coalesce(n, 1)", "INTEGER"},
      {"collect_list(i)", "INTEGER[]"},
      {"CAST(l AS INT)", "INTEGER"},
      {"1.5", "DECIMAL(2,1)"},
      {"2147483648", "BIGINT"},
  };
  for (const Case& test_case : cases) {
    SCOPED_TRACE(test_case.expression);
    const auto parsed = parse_expression(test_case.expression, "case");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const auto printed = print_duckdb(**parsed, options_);
    ASSERT_TRUE(printed.ok()) << printed.error().message;
    const auto columns = connection_->describe("SELECT " + *printed + " AS x FROM " + kOneRow);
    ASSERT_TRUE(columns.ok()) << columns.error().message;
    EXPECT_EQ((*columns)[0].engine_type, test_case.expected) << *printed;
  }
}

TEST_F(Functions, UnknownAndRefusedOnesAreNamed) {
  const auto message = [&](const std::string& text) {
    const auto parsed = parse_expression(text, "case");
    if (!parsed.ok()) return parsed.error().message;
    const auto printed = print_duckdb(**parsed);
    return printed.ok() ? "printed: " + *printed
                        : printed.error().code + ": " + printed.error().message;
  };
  EXPECT_THAT(message("frobnicate(1)"),
              HasSubstr("UNRESOLVED_ROUTINE: the function frobnicate is not supported"));
  EXPECT_THAT(message("uper('a')"), HasSubstr("did you mean upper?"));
  EXPECT_THAT(message("xxhash64(a)"), HasSubstr("use md5 or sha2"));
  EXPECT_THAT(message("upper()"), HasSubstr("WRONG_NUM_ARGS"));
  EXPECT_THAT(message("row_number()"), HasSubstr("needs OVER"));
  EXPECT_THAT(message("upper(a) OVER ()"), HasSubstr("not a window function"));
  EXPECT_THAT(message("date_format(ts, 'QQQ')"), HasSubstr("'QQQ' in the pattern"));
  EXPECT_THAT(message("1 + explode(a)"), HasSubstr("explode inside an expression"));
}

}  // namespace
}  // namespace strandline::sql
