#include "sql/functions.h"

#include <map>

#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

constexpr auto kScalar = FunctionKind::kScalar;
constexpr auto kAggregate = FunctionKind::kAggregate;
constexpr auto kWindow = FunctionKind::kWindow;
constexpr auto kGenerator = FunctionKind::kGenerator;
constexpr auto kAny = TypeId::kVoid;
constexpr auto kString = TypeId::kString;
constexpr auto kInt = TypeId::kInteger;
constexpr auto kLong = TypeId::kLong;
constexpr auto kDouble = TypeId::kDouble;
constexpr auto kBool = TypeId::kBoolean;
constexpr auto kDate = TypeId::kDate;
constexpr auto kTimestamp = TypeId::kTimestamp;
constexpr auto kBinary = TypeId::kBinary;

const std::vector<Function>& table() {
  static const std::vector<Function> kTable = {
      // --- strings ---
      {"upper", 1, 1, kScalar, "upper(replace($s1, 'ß', 'SS'))", kString,
       "of letters that grow only the German sharp s does"},
      {"ucase", 1, 1, kScalar, "upper(replace($s1, 'ß', 'SS'))", kString, ""},
      {"lower", 1, 1, kScalar, "lower($s1)", kString, ""},
      {"lcase", 1, 1, kScalar, "lower($s1)", kString, ""},
      {"length", 1, 1, kScalar, "!", kInt, ""},
      {"char_length", 1, 1, kScalar, "!", kInt, ""},
      {"character_length", 1, 1, kScalar, "!", kInt, ""},
      {"len", 1, 1, kScalar, "!", kInt, ""},
      {"octet_length", 1, 1, kScalar, "CAST(octet_length($b1) AS INTEGER)", kInt, ""},
      {"bit_length", 1, 1, kScalar, "CAST(8 * octet_length($b1) AS INTEGER)", kInt, ""},
      {"trim", 1, 1, kScalar, "trim($s1, ' ')", kString, ""},
      {"ltrim", 1, 1, kScalar, "ltrim($s1, ' ')", kString, ""},
      {"rtrim", 1, 1, kScalar, "rtrim($s1, ' ')", kString, ""},
      {"btrim", 1, 1, kScalar, "trim($s1, ' ')", kString, ""},
      {"btrim", 2, 2, kScalar, "trim($s1, $s2)", kString, ""},
      {"ltrim", 2, 2, kScalar, "ltrim($s2, $s1)", kString, "ltrim(characters, text)"},
      {"rtrim", 2, 2, kScalar, "rtrim($s2, $s1)", kString, "rtrim(characters, text)"},
      {"concat", 1, -1, kScalar, "!", kAny, "strings or arrays"},
      {"concat_ws", 1, -1, kScalar, "!", kString, "arrays of strings too"},
      {"substring", 2, 3, kScalar, "!", kString, ""},
      {"substr", 2, 3, kScalar, "!", kString, ""},
      {"left", 2, 2, kScalar, "left($s1, greatest(CAST($2 AS BIGINT), 0))", kString, ""},
      {"right", 2, 2, kScalar, "right($s1, greatest(CAST($2 AS BIGINT), 0))", kString, ""},
      {"replace", 2, 2, kScalar, "replace($s1, $s2, '')", kString, ""},
      {"replace", 3, 3, kScalar, "replace($s1, $s2, $s3)", kString, ""},
      {"translate", 3, 3, kScalar, "translate($s1, $s2, $s3)", kString, ""},
      {"instr", 2, 2, kScalar, "CAST(instr($s1, $s2) AS INTEGER)", kInt, ""},
      {"locate", 2, 2, kScalar, "CAST(instr($s2, $s1) AS INTEGER)", kInt, ""},
      {"locate", 3, 3, kScalar,
       "CAST(CASE WHEN $3 < 1 THEN 0 WHEN instr(substring($s2, $3), $s1) = 0 THEN 0 "
       "ELSE instr(substring($s2, $3), $s1) + $3 - 1 END AS INTEGER)",
       kInt, ""},
      {"charindex", 2, 2, kScalar, "CAST(instr($s2, $s1) AS INTEGER)", kInt, ""},
      {"position", 2, 2, kScalar, "CAST(instr($s2, $s1) AS INTEGER)", kInt, ""},
      {"lpad", 2, 2, kScalar, "lpad($s1, CAST($2 AS INTEGER), ' ')", kString, ""},
      {"lpad", 3, 3, kScalar, "lpad($s1, CAST($2 AS INTEGER), $s3)", kString,
       "an empty pad string is an error"},
      {"rpad", 2, 2, kScalar, "rpad($s1, CAST($2 AS INTEGER), ' ')", kString, ""},
      {"rpad", 3, 3, kScalar, "rpad($s1, CAST($2 AS INTEGER), $s3)", kString,
       "an empty pad string is an error"},
      {"repeat", 2, 2, kScalar, "repeat($s1, CAST($2 AS BIGINT))", kString, ""},
      {"space", 1, 1, kScalar, "repeat(' ', CAST($1 AS BIGINT))", kString, ""},
      {"reverse", 1, 1, kScalar, "!", kAny, "composed characters stay together"},
      {"initcap", 1, 1, kScalar,
       "array_to_string(list_transform(string_split(lower($s1), ' '), lambda sl_word: "
       "upper(sl_word[1]) "
       "|| sl_word[2:]), ' ')",
       kString, ""},
      {"split", 2, 2, kScalar, "string_split_regex($s1, $s2)", kAny,
       "a pattern that matches nothing splits differently"},
      {"split_part", 3, 3, kScalar, "split_part($s1, $s2, CAST($3 AS BIGINT))", kString, ""},
      {"substring_index", 3, 3, kScalar,
       "CASE WHEN $3 > 0 THEN array_to_string(string_split($s1, $s2)[1:$3], $s2) "
       "WHEN $3 < 0 THEN array_to_string(string_split($s1, $s2)[$3:], $s2) "
       "WHEN $3 = 0 AND $s1 IS NOT NULL AND $s2 IS NOT NULL THEN '' END",
       kString, ""},
      {"regexp_replace", 3, 3, kScalar, "!", kString, "the replacement must be a constant"},
      {"regexp_extract", 2, 3, kScalar, "!", kString, ""},
      {"regexp_extract_all", 2, 3, kScalar, "!", kAny, ""},
      {"regexp_like", 2, 2, kScalar, "regexp_matches($s1, $s2)", kBool,
       "RE2 syntax: no look-around"},
      {"regexp", 2, 2, kScalar, "regexp_matches($s1, $s2)", kBool, ""},
      {"rlike", 2, 2, kScalar, "regexp_matches($s1, $s2)", kBool, ""},
      {"regexp_count", 2, 2, kScalar, "CAST(len(regexp_extract_all($s1, $s2)) AS INTEGER)", kInt,
       ""},
      {"regexp_substr", 2, 2, kScalar,
       "CASE WHEN regexp_matches($s1, $s2) THEN regexp_extract($s1, $s2, 0) END", kString, ""},
      {"startswith", 2, 2, kScalar, "starts_with($s1, $s2)", kBool, ""},
      {"endswith", 2, 2, kScalar, "ends_with($s1, $s2)", kBool, ""},
      {"contains", 2, 2, kScalar, "contains($s1, $s2)", kBool, ""},
      {"ascii", 1, 1, kScalar, "CAST(ascii($s1) AS INTEGER)", kInt, ""},
      {"chr", 1, 1, kScalar, "CASE WHEN $1 < 0 THEN '' ELSE chr(CAST($1 % 256 AS INTEGER)) END",
       kString, ""},
      {"char", 1, 1, kScalar, "CASE WHEN $1 < 0 THEN '' ELSE chr(CAST($1 % 256 AS INTEGER)) END",
       kString, ""},
      {"hex", 1, 1, kScalar, "hex($1)", kString, ""},
      {"unhex", 1, 1, kScalar, "unhex($s1)", kBinary, "what is not hexadecimal is an error"},
      {"base64", 1, 1, kScalar, "base64($b1)", kString, ""},
      {"unbase64", 1, 1, kScalar, "from_base64($s1)", kBinary, ""},
      {"url_decode", 1, 1, kScalar, "url_decode($s1)", kString, ""},
      {"md5", 1, 1, kScalar, "md5($b1)", kString, ""},
      {"sha", 1, 1, kScalar, "sha1($b1)", kString, ""},
      {"sha1", 1, 1, kScalar, "sha1($b1)", kString, ""},
      {"sha2", 2, 2, kScalar, "!", kString, "256 bits only"},
      {"encode", 2, 2, kScalar, "!", kBinary, "UTF-8 only"},
      {"decode", 2, 2, kScalar, "!", kString, "UTF-8 only"},
      {"levenshtein", 2, 2, kScalar, "CAST(levenshtein($s1, $s2) AS INTEGER)", kInt, ""},
      {"uuid", 0, 0, kScalar, "CAST(uuid() AS VARCHAR)", kString, "differs at every call"},

      // --- conditions and nulls ---
      {"coalesce", 1, -1, kScalar, "coalesce($*)", kAny, ""},
      {"nvl", 2, 2, kScalar, "coalesce($1, $2)", kAny, ""},
      {"ifnull", 2, 2, kScalar, "coalesce($1, $2)", kAny, ""},
      {"nvl2", 3, 3, kScalar, "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END", kAny, ""},
      {"nullif", 2, 2, kScalar, "!", kAny, ""},
      {"if", 3, 3, kScalar, "CASE WHEN $?1 THEN $2 ELSE $3 END", kAny, ""},
      {"iff", 3, 3, kScalar, "CASE WHEN $?1 THEN $2 ELSE $3 END", kAny, ""},
      {"nullifzero", 1, 1, kScalar, "nullif($1, 0)", kAny, ""},
      {"zeroifnull", 1, 1, kScalar, "coalesce($1, 0)", kAny, ""},
      {"greatest", 2, -1, kScalar, "greatest($*)", kAny, ""},
      {"least", 2, -1, kScalar, "least($*)", kAny, ""},
      {"isnull", 1, 1, kScalar, "($1 IS NULL)", kBool, ""},
      {"isnotnull", 1, 1, kScalar, "($1 IS NOT NULL)", kBool, ""},
      {"isnan", 1, 1, kScalar, "coalesce(isnan($1), false)", kBool, ""},
      {"nanvl", 2, 2, kScalar, "CASE WHEN isnan($1) THEN $2 ELSE $1 END", kDouble, ""},
      {"equal_null", 2, 2, kScalar, "($1 IS NOT DISTINCT FROM $2)", kBool, ""},
      {"assert_true", 1, 1, kScalar,
       "CASE WHEN $?1 THEN NULL ELSE error('[USER_RAISED_EXCEPTION] assert_true: the condition is "
       "not true') END",
       kAny, ""},
      {"raise_error", 1, 1, kScalar, "error('[USER_RAISED_EXCEPTION] ' || $s1)", kAny, ""},

      // --- numbers ---
      {"abs", 1, 1, kScalar, "abs($n1)", kAny, ""},
      {"ceil", 1, 1, kScalar, "CAST(ceil($n1) AS BIGINT)", kLong, "BIGINT for decimals too"},
      {"ceiling", 1, 1, kScalar, "CAST(ceil($n1) AS BIGINT)", kLong, "BIGINT for decimals too"},
      {"floor", 1, 1, kScalar, "CAST(floor($n1) AS BIGINT)", kLong, "BIGINT for decimals too"},
      {"round", 1, 2, kScalar, "!", kAny, "halves away from zero"},
      {"sqrt", 1, 1, kScalar, "CASE WHEN $n1 < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt($n1) END",
       kDouble, ""},
      {"cbrt", 1, 1, kScalar,
       "CASE WHEN pow(round(cbrt($n1)), 3) = $n1 THEN round(cbrt($n1)) ELSE cbrt($n1) END", kDouble,
       ""},
      {"exp", 1, 1, kScalar, "exp($n1)", kDouble, ""},
      {"ln", 1, 1, kScalar, "CASE WHEN $n1 > 0 THEN ln($n1) END", kDouble, ""},
      {"log", 1, 1, kScalar, "CASE WHEN $n1 > 0 THEN ln($n1) END", kDouble, ""},
      {"log", 2, 2, kScalar, "CASE WHEN $n1 > 0 AND $n2 > 0 THEN ln($n2) / ln($n1) END", kDouble,
       ""},
      {"log10", 1, 1, kScalar, "CASE WHEN $n1 > 0 THEN log10($n1) END", kDouble, ""},
      {"log2", 1, 1, kScalar, "CASE WHEN $n1 > 0 THEN log2($n1) END", kDouble, ""},
      {"log1p", 1, 1, kScalar, "CASE WHEN $1 > -1 THEN ln(1 + $1) END", kDouble, ""},
      {"pow", 2, 2, kScalar, "pow($n1, $n2)", kDouble, ""},
      {"power", 2, 2, kScalar, "pow($n1, $n2)", kDouble, ""},
      {"sign", 1, 1, kScalar, "CAST(sign($n1) AS DOUBLE)", kDouble, ""},
      {"signum", 1, 1, kScalar, "CAST(sign($n1) AS DOUBLE)", kDouble, ""},
      {"mod", 2, 2, kScalar, "!", kAny, ""},
      {"pmod", 2, 2, kScalar, "!", kAny, ""},
      {"positive", 1, 1, kScalar, "(+ $n1)", kAny, ""},
      {"negative", 1, 1, kScalar, "(- $n1)", kAny, ""},
      {"pi", 0, 0, kScalar, "pi()", kDouble, ""},
      {"e", 0, 0, kScalar, "exp(1)", kDouble, ""},
      {"sin", 1, 1, kScalar, "sin($1)", kDouble, ""},
      {"cos", 1, 1, kScalar, "cos($1)", kDouble, ""},
      {"tan", 1, 1, kScalar, "tan($1)", kDouble, ""},
      {"asin", 1, 1, kScalar, "CASE WHEN abs($1) > 1 THEN CAST('NaN' AS DOUBLE) ELSE asin($1) END",
       kDouble, ""},
      {"acos", 1, 1, kScalar, "CASE WHEN abs($1) > 1 THEN CAST('NaN' AS DOUBLE) ELSE acos($1) END",
       kDouble, ""},
      {"atan", 1, 1, kScalar, "atan($1)", kDouble, ""},
      {"atan2", 2, 2, kScalar, "atan2($1, $2)", kDouble, ""},
      {"sinh", 1, 1, kScalar, "sinh($1)", kDouble, ""},
      {"cosh", 1, 1, kScalar, "cosh($1)", kDouble, ""},
      {"tanh", 1, 1, kScalar, "tanh($1)", kDouble, ""},
      {"degrees", 1, 1, kScalar, "degrees($1)", kDouble, ""},
      {"radians", 1, 1, kScalar, "radians($1)", kDouble, ""},
      {"cot", 1, 1, kScalar, "cot($1)", kDouble, ""},
      {"hypot", 2, 2, kScalar, "sqrt($1 * $1 + $2 * $2)", kDouble, ""},
      {"rint", 1, 1, kScalar, "round_even(CAST($1 AS DOUBLE), 0)", kDouble, ""},
      {"bround", 1, 2, kScalar, "!", kAny, "halves to even"},
      {"factorial", 1, 1, kScalar,
       "CASE WHEN $1 BETWEEN 0 AND 20 THEN CAST(factorial(CAST($1 AS INTEGER)) AS BIGINT) END",
       kLong, ""},
      {"bin", 1, 1, kScalar, "bin(CAST($1 AS BIGINT))", kString, ""},
      {"bit_count", 1, 1, kScalar, "CAST(bit_count(CAST($1 AS BIGINT)) AS INTEGER)", kInt, ""},
      {"shiftleft", 2, 2, kScalar, "($1 << $2)", kAny, "a result out of range is an error"},
      {"shiftright", 2, 2, kScalar, "($1 >> $2)", kAny, ""},
      {"rand", 0, 0, kScalar, "random()", kDouble, "differs at every call"},
      {"random", 0, 0, kScalar, "random()", kDouble, "differs at every call"},
      {"try_add", 2, 2, kScalar, "TRY($1 + $2)", kAny, ""},
      {"try_subtract", 2, 2, kScalar, "TRY($1 - $2)", kAny, ""},
      {"try_multiply", 2, 2, kScalar, "TRY($1 * $2)", kAny, ""},
      {"try_divide", 2, 2, kScalar, "!", kAny, ""},

      // --- casts by name ---
      {"string", 1, 1, kScalar, "!", kString, ""},
      {"int", 1, 1, kScalar, "!", kInt, ""},
      {"bigint", 1, 1, kScalar, "!", kLong, ""},
      {"smallint", 1, 1, kScalar, "!", TypeId::kShort, ""},
      {"tinyint", 1, 1, kScalar, "!", TypeId::kByte, ""},
      {"float", 1, 1, kScalar, "!", TypeId::kFloat, ""},
      {"double", 1, 1, kScalar, "!", kDouble, ""},
      {"decimal", 1, 1, kScalar, "!", TypeId::kDecimal, ""},
      {"boolean", 1, 1, kScalar, "!", kBool, ""},
      {"binary", 1, 1, kScalar, "!", kBinary, ""},
      {"date", 1, 1, kScalar, "!", kDate, ""},
      {"timestamp", 1, 1, kScalar, "!", kTimestamp, ""},

      // --- dates and times ---
      {"current_date", 0, 0, kScalar, "!", kDate, "the batch's planned time"},
      {"curdate", 0, 0, kScalar, "!", kDate, ""},
      {"current_timestamp", 0, 0, kScalar, "!", kTimestamp, "the batch's planned time"},
      {"now", 0, 0, kScalar, "!", kTimestamp, ""},
      {"localtimestamp", 0, 0, kScalar, "!", TypeId::kTimestampNtz, ""},
      {"current_timezone", 0, 0, kScalar, "current_setting('TimeZone')", kString, ""},
      {"year", 1, 1, kScalar, "CAST(year($t1) AS INTEGER)", kInt, ""},
      {"quarter", 1, 1, kScalar, "CAST(quarter($t1) AS INTEGER)", kInt, ""},
      {"month", 1, 1, kScalar, "CAST(month($t1) AS INTEGER)", kInt, ""},
      {"day", 1, 1, kScalar, "CAST(day($t1) AS INTEGER)", kInt, ""},
      {"dayofmonth", 1, 1, kScalar, "CAST(day($t1) AS INTEGER)", kInt, ""},
      {"dayofyear", 1, 1, kScalar, "CAST(dayofyear($t1) AS INTEGER)", kInt, ""},
      {"dayofweek", 1, 1, kScalar, "CAST(dayofweek($t1) + 1 AS INTEGER)", kInt, ""},
      {"weekday", 1, 1, kScalar, "CAST(isodow($t1) - 1 AS INTEGER)", kInt, ""},
      {"weekofyear", 1, 1, kScalar, "CAST(week($t1) AS INTEGER)", kInt, ""},
      {"hour", 1, 1, kScalar, "CAST(hour($t1) AS INTEGER)", kInt, ""},
      {"minute", 1, 1, kScalar, "CAST(minute($t1) AS INTEGER)", kInt, ""},
      {"second", 1, 1, kScalar, "CAST(second($t1) AS INTEGER)", kInt, ""},
      {"dayname", 1, 1, kScalar, "strftime($t1, '%a')", kString, ""},
      {"monthname", 1, 1, kScalar, "strftime($t1, '%b')", kString, ""},
      {"date_part", 2, 2, kScalar, "!", kAny, "the field must be a constant"},
      {"datepart", 2, 2, kScalar, "!", kAny, ""},
      {"last_day", 1, 1, kScalar, "last_day($D1)", kDate, ""},
      {"add_months", 2, 2, kScalar, "CAST($D1 + to_months(CAST($2 AS INTEGER)) AS DATE)", kDate,
       ""},
      {"date_add", 2, 2, kScalar, "($D1 + CAST($2 AS INTEGER))", kDate, ""},
      {"dateadd", 2, 2, kScalar, "($D1 + CAST($2 AS INTEGER))", kDate, ""},
      {"date_sub", 2, 2, kScalar, "($D1 - CAST($2 AS INTEGER))", kDate, ""},
      {"datediff", 2, 2, kScalar, "CAST($D1 - $D2 AS INTEGER)", kInt, ""},
      {"date_diff", 2, 2, kScalar, "CAST($D1 - $D2 AS INTEGER)", kInt, ""},
      {"timestampadd", 3, 3, kScalar, "!", kTimestamp, ""},
      {"timestampdiff", 3, 3, kScalar, "!", kLong, "whole units between the two"},
      {"date_trunc", 2, 2, kScalar, "!", kTimestamp, "the unit must be a constant"},
      {"trunc", 2, 2, kScalar, "!", kDate, "the unit must be a constant"},
      {"make_date", 3, 3, kScalar, "make_date($*)", kDate, ""},
      {"make_timestamp", 6, 6, kScalar, "make_timestamptz($1, $2, $3, $4, $5, CAST($6 AS DOUBLE))",
       kTimestamp, ""},
      {"to_date", 1, 2, kScalar, "!", kDate, "the pattern must be a constant"},
      {"try_to_date", 1, 2, kScalar, "!", kDate, ""},
      {"to_timestamp", 1, 2, kScalar, "!", kTimestamp, "the pattern must be a constant"},
      {"to_timestamp_ltz", 1, 2, kScalar, "!", kTimestamp, ""},
      {"to_timestamp_ntz", 1, 2, kScalar, "!", TypeId::kTimestampNtz, ""},
      {"try_to_timestamp", 1, 2, kScalar, "!", kTimestamp, ""},
      {"date_format", 2, 2, kScalar, "!", kString, "the pattern must be a constant"},
      {"unix_timestamp", 0, 2, kScalar, "!", kLong, ""},
      {"to_unix_timestamp", 1, 2, kScalar, "!", kLong, ""},
      {"from_unixtime", 1, 2, kScalar, "!", kString, ""},
      {"timestamp_seconds", 1, 1, kScalar, "make_timestamptz(CAST($1 * 1000000 AS BIGINT))",
       kTimestamp, ""},
      {"timestamp_millis", 1, 1, kScalar, "make_timestamptz(CAST($1 AS BIGINT) * 1000)", kTimestamp,
       ""},
      {"timestamp_micros", 1, 1, kScalar, "make_timestamptz(CAST($1 AS BIGINT))", kTimestamp, ""},
      {"unix_seconds", 1, 1, kScalar, "CAST(floor(epoch_us($t1) / 1000000) AS BIGINT)", kLong, ""},
      {"unix_millis", 1, 1, kScalar, "CAST(floor(epoch_us($t1) / 1000) AS BIGINT)", kLong, ""},
      {"unix_micros", 1, 1, kScalar, "epoch_us($t1)", kLong, ""},
      {"unix_date", 1, 1, kScalar, "CAST($D1 - DATE '1970-01-01' AS INTEGER)", kInt, ""},
      {"date_from_unix_date", 1, 1, kScalar, "(DATE '1970-01-01' + CAST($1 AS INTEGER))", kDate,
       ""},
      {"from_utc_timestamp", 2, 2, kScalar,
       "CAST(timezone($2, CAST($1 AS TIMESTAMPTZ)) AS TIMESTAMPTZ)", kTimestamp, ""},
      {"to_utc_timestamp", 2, 2, kScalar, "!", kTimestamp,
       "a time that comes twice in the zone is the earlier one"},

      // --- aggregates ---
      {"count", 1, -1, kAggregate, "!", kLong, ""},
      {"count_if", 1, 1, kAggregate, "count($dCASE WHEN $?1 THEN 1 END)@", kLong, ""},
      {"sum", 1, 1, kAggregate, "!", kAny, ""},
      {"avg", 1, 1, kAggregate, "!", kAny, ""},
      {"mean", 1, 1, kAggregate, "!", kAny, ""},
      {"min", 1, 1, kAggregate, "min($1)@", kAny, ""},
      {"max", 1, 1, kAggregate, "max($1)@", kAny, ""},
      {"min_by", 2, 2, kAggregate, "arg_min_null($1, $2)@", kAny, "of equal least rows any one"},
      {"max_by", 2, 2, kAggregate, "arg_max_null($1, $2)@", kAny, "of equal greatest rows any one"},
      {"first", 1, 2, kAggregate, "!", kAny,
       "which row is first is not determined without OVER (ORDER BY)"},
      {"first_value", 1, 2, kAggregate, "!", kAny, ""},
      {"any_value", 1, 2, kAggregate, "!", kAny, ""},
      {"last", 1, 2, kAggregate, "!", kAny, ""},
      {"last_value", 1, 2, kAggregate, "!", kAny, ""},
      {"collect_list", 1, 1, kAggregate,
       "coalesce(list_filter(list($d$1)@, lambda sl_item: sl_item IS NOT NULL), [])", kAny, ""},
      {"array_agg", 1, 1, kAggregate,
       "coalesce(list_filter(list($d$1)@, lambda sl_item: sl_item IS NOT NULL), [])", kAny, ""},
      {"collect_set", 1, 1, kAggregate,
       "coalesce(list_filter(list(DISTINCT $1)@, lambda sl_item: sl_item IS NOT NULL), [])", kAny,
       "in any order"},
      {"stddev", 1, 1, kAggregate, "stddev_samp($d$1)@", kDouble, ""},
      {"std", 1, 1, kAggregate, "stddev_samp($d$1)@", kDouble, ""},
      {"stddev_samp", 1, 1, kAggregate, "stddev_samp($d$1)@", kDouble, ""},
      {"stddev_pop", 1, 1, kAggregate, "stddev_pop($d$1)@", kDouble, ""},
      {"variance", 1, 1, kAggregate, "var_samp($d$1)@", kDouble, ""},
      {"var_samp", 1, 1, kAggregate, "var_samp($d$1)@", kDouble, ""},
      {"var_pop", 1, 1, kAggregate, "var_pop($d$1)@", kDouble, ""},
      {"covar_pop", 2, 2, kAggregate, "covar_pop($1, $2)@", kDouble, ""},
      {"covar_samp", 2, 2, kAggregate, "covar_samp($1, $2)@", kDouble, ""},
      {"corr", 2, 2, kAggregate, "corr($1, $2)@", kDouble, ""},
      {"median", 1, 1, kAggregate, "median(CAST($1 AS DOUBLE))@", kDouble, ""},
      {"percentile", 2, 2, kAggregate, "quantile_cont(CAST($1 AS DOUBLE), $2)@", kDouble, ""},
      {"percentile_approx", 2, 3, kAggregate, "quantile_disc($1, $2)@", kAny, "exact"},
      {"approx_percentile", 2, 3, kAggregate, "quantile_disc($1, $2)@", kAny, "exact"},
      {"percentile_cont", 1, 1, kAggregate, "!", kDouble, ""},
      {"percentile_disc", 1, 1, kAggregate, "!", kAny, ""},
      {"approx_count_distinct", 1, 2, kAggregate, "count(DISTINCT $1)@", kLong, "exact"},
      {"bool_and", 1, 1, kAggregate, "bool_and($?1)@", kBool, ""},
      {"every", 1, 1, kAggregate, "bool_and($?1)@", kBool, ""},
      {"bool_or", 1, 1, kAggregate, "bool_or($?1)@", kBool, ""},
      {"some", 1, 1, kAggregate, "bool_or($?1)@", kBool, ""},
      {"any", 1, 1, kAggregate, "bool_or($?1)@", kBool, ""},
      {"bit_and", 1, 1, kAggregate, "bit_and($1)@", kAny, ""},
      {"bit_or", 1, 1, kAggregate, "bit_or($1)@", kAny, ""},
      {"bit_xor", 1, 1, kAggregate, "bit_xor($1)@", kAny, ""},
      {"listagg", 1, 2, kAggregate, "!", kString, ""},
      {"string_agg", 1, 2, kAggregate, "!", kString, ""},

      {"mode", 1, 1, kAggregate, "mode($1)@", kAny, "of equally frequent values any one"},

      {"grouping", 1, 1, kScalar, "!", TypeId::kByte, "of GROUP BY ROLLUP, CUBE, GROUPING SETS"},
      {"grouping_id", 0, -1, kScalar, "!", kLong, ""},

      // --- window functions ---
      {"row_number", 0, 0, kWindow, "CAST(row_number()@ AS INTEGER)", kInt, ""},
      {"rank", 0, 0, kWindow, "CAST(rank()@ AS INTEGER)", kInt, ""},
      {"dense_rank", 0, 0, kWindow, "CAST(dense_rank()@ AS INTEGER)", kInt, ""},
      {"ntile", 1, 1, kWindow, "CAST(ntile($1)@ AS INTEGER)", kInt, ""},
      {"percent_rank", 0, 0, kWindow, "percent_rank()@", kDouble, ""},
      {"cume_dist", 0, 0, kWindow, "cume_dist()@", kDouble, ""},
      {"lag", 1, 3, kWindow, "!", kAny, ""},
      {"lead", 1, 3, kWindow, "!", kAny, ""},
      {"nth_value", 2, 2, kWindow, "!", kAny, ""},

      // --- arrays ---
      {"array", 0, -1, kScalar, "[$*]", kAny, ""},
      {"size", 1, 1, kScalar, "!", kInt, ""},
      {"cardinality", 1, 1, kScalar, "!", kInt, ""},
      {"array_size", 1, 1, kScalar, "CAST(len($1) AS INTEGER)", kInt, ""},
      {"array_contains", 2, 2, kScalar,
       "CASE WHEN list_contains($1, $2) THEN true WHEN len($1) > list_aggregate($1, 'count') OR $2 "
       "IS NULL THEN NULL "
       "WHEN $1 IS NOT NULL THEN false END",
       kBool, ""},
      {"array_position", 2, 2, kScalar,
       "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(CAST(list_position($1, $2) AS "
       "BIGINT), 0) END",
       kLong, ""},
      {"array_distinct", 1, 1, kScalar,
       "list_filter($1, lambda sl_item, sl_index: list_position($1, sl_item) = sl_index)", kAny,
       ""},
      {"array_max", 1, 1, kScalar, "list_max($1)", kAny, ""},
      {"array_min", 1, 1, kScalar, "list_min($1)", kAny, ""},
      {"sort_array", 1, 1, kScalar, "list_sort($1, 'ASC', 'NULLS FIRST')", kAny, ""},
      {"sort_array", 2, 2, kScalar, "!", kAny, "the direction must be a constant"},
      {"array_sort", 1, 1, kScalar, "list_sort($1, 'ASC', 'NULLS LAST')", kAny, ""},
      {"array_join", 2, 2, kScalar, "!", kString, ""},
      {"array_append", 2, 2, kScalar, "CASE WHEN $1 IS NOT NULL THEN list_append($1, $2) END", kAny,
       ""},
      {"array_prepend", 2, 2, kScalar, "CASE WHEN $1 IS NOT NULL THEN list_prepend($2, $1) END",
       kAny, ""},
      {"array_remove", 2, 2, kScalar,
       "CASE WHEN $2 IS NOT NULL THEN list_filter($1, lambda sl_item: sl_item IS DISTINCT FROM $2) "
       "END",
       kAny, ""},
      {"array_compact", 1, 1, kScalar, "list_filter($1, lambda sl_item: sl_item IS NOT NULL)", kAny,
       ""},
      {"array_repeat", 2, 2, kScalar, "repeat([$1], CAST($2 AS BIGINT))", kAny, ""},
      {"array_union", 2, 2, kScalar,
       "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_filter(list_concat($1, $2), lambda "
       "sl_item, sl_index: list_position(list_concat($1, $2), sl_item) = sl_index) END",
       kAny, ""},
      {"array_intersect", 2, 2, kScalar,
       "CASE WHEN $2 IS NOT NULL THEN list_filter($1, lambda sl_item, sl_index: list_position($1, "
       "sl_item) = sl_index AND list_position($2, sl_item) IS NOT NULL) END",
       kAny, ""},
      {"array_except", 2, 2, kScalar,
       "CASE WHEN $2 IS NOT NULL THEN list_filter($1, lambda sl_item, sl_index: list_position($1, "
       "sl_item) = sl_index AND list_position($2, sl_item) IS NULL) END",
       kAny, ""},
      {"arrays_overlap", 2, 2, kScalar,
       "CASE WHEN list_has_any($1, $2) THEN true WHEN len($1) > 0 AND len($2) > 0 AND "
       "(len($1) > list_aggregate($1, 'count') OR len($2) > list_aggregate($2, 'count')) THEN NULL "
       "WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN false END",
       kBool, ""},
      {"flatten", 1, 1, kScalar,
       "CASE WHEN len($1) = list_aggregate($1, 'count') THEN flatten($1) END", kAny, ""},
      {"slice", 3, 3, kScalar,
       "CASE WHEN $2 > 0 THEN list_slice($1, $2, $2 + $3 - 1) "
       "WHEN $2 < 0 AND len($1) + $2 < 0 THEN list_slice($1, 1, 0) "
       "WHEN $2 < 0 THEN list_slice($1, len($1) + $2 + 1, len($1) + $2 + $3) "
       "WHEN $2 = 0 THEN error('[INVALID_PARAMETER_VALUE.START] slice counts from 1') END",
       kAny, ""},
      {"sequence", 2, 3, kScalar, "!", kAny, "the step of dates and times must be a constant"},
      {"element_at", 2, 2, kScalar, "!", kAny, ""},
      {"try_element_at", 2, 2, kScalar, "($1)[$2]", kAny, ""},
      {"get", 2, 2, kScalar, "($1)[CASE WHEN $2 < 0 THEN NULL ELSE $2 + 1 END]", kAny, ""},
      {"transform", 2, 2, kScalar, "!", kAny, ""},
      {"filter", 2, 2, kScalar, "!", kAny, ""},
      {"exists", 2, 2, kScalar, "!", kBool, ""},
      {"forall", 2, 2, kScalar, "!", kBool, ""},
      {"aggregate", 3, 4, kScalar, "!", kAny, ""},
      {"reduce", 3, 4, kScalar, "!", kAny, ""},
      {"zip_with", 3, 3, kScalar, "!", kAny, ""},
      {"transform_keys", 2, 2, kScalar, "!", kAny, ""},
      {"transform_values", 2, 2, kScalar, "!", kAny, ""},
      {"map_filter", 2, 2, kScalar, "!", kAny, ""},
      {"explode", 1, 1, kGenerator, "!", kAny, "a map needs two aliases: explode(m) AS (k, v)"},
      {"explode_outer", 1, 1, kGenerator, "!", kAny, ""},
      {"posexplode", 1, 1, kGenerator, "!", kAny, "arrays"},
      {"posexplode_outer", 1, 1, kGenerator, "!", kAny, ""},
      {"inline", 1, 1, kGenerator, "!", kAny, ""},
      {"inline_outer", 1, 1, kGenerator, "!", kAny, ""},

      // --- maps and structs ---
      {"map", 0, -1, kScalar, "!", kAny, ""},
      {"map_keys", 1, 1, kScalar, "map_keys($1)", kAny, ""},
      {"map_values", 1, 1, kScalar, "map_values($1)", kAny, ""},
      {"map_entries", 1, 1, kScalar, "map_entries($1)", kAny, ""},
      {"map_contains_key", 2, 2, kScalar, "map_contains($1, $2)", kBool, ""},
      {"map_from_arrays", 2, 2, kScalar, "map($1, $2)", kAny, ""},
      {"map_from_entries", 1, 1, kScalar, "map_from_entries($1)", kAny, ""},
      {"map_concat", 1, -1, kScalar, "!", kAny, ""},
      {"struct", 1, -1, kScalar, "!", kAny, ""},
      {"named_struct", 2, -1, kScalar, "!", kAny, ""},

      // --- JSON ---
      {"get_json_object", 2, 2, kScalar, "!", kString, "the path must be a constant without [*]"},
      {"from_json", 2, 3, kScalar, "!", kAny, "the schema must be a constant; no options"},
      {"to_json", 1, 1, kScalar, "!", kString, "null fields are left out; no timestamps"},
      {"json_array_length", 1, 1, kScalar,
       "CASE WHEN json_valid($s1) AND json_type($s1) = 'ARRAY' THEN CAST(json_array_length($s1) AS "
       "INTEGER) END",
       kInt, ""},
      {"json_object_keys", 1, 1, kScalar,
       "CASE WHEN json_valid($s1) AND json_type($s1) = 'OBJECT' THEN json_keys($s1) END", kAny, ""},
  };
  return kTable;
}

const std::map<std::string_view, std::string_view>& refusals() {
  static const std::map<std::string_view, std::string_view> kRefusals = {
      {"hash", "its values would differ from Spark's; use md5 or sha2"},
      {"xxhash64", "its values would differ from Spark's; use md5 or sha2"},
      {"crc32", "use md5 or sha2"},
      {"input_file_name", "select _metadata.file_path"},
      {"input_file_block_start", "select _metadata.file_path"},
      {"monotonically_increasing_id",
       "use row_number() OVER (ORDER BY ...) or _metadata.row_index"},
      {"spark_partition_id", "there are no Spark partitions here"},
      {"current_user", "there are no users here"},
      {"session_user", "there are no users here"},
      {"user", "there are no users here"},
      {"format_string", "use concat, lpad and CAST"},
      {"printf", "use concat, lpad and CAST"},
      {"format_number", "use round and CAST"},
      {"to_char", "use date_format or CAST"},
      {"to_varchar", "use date_format or CAST"},
      {"to_number", "use CAST(... AS DECIMAL(p, s))"},
      {"typeof", "type names differ"},
      {"window", "group by date_trunc(...) instead"},
      {"session_window", "use lag and a running sum"},
      {"parse_json", "VARIANT is not supported; use from_json or get_json_object"},
      {"try_parse_json", "VARIANT is not supported; use from_json or get_json_object"},
      {"variant_get", "VARIANT is not supported; use from_json or get_json_object"},
      {"schema_of_json", "write the schema down"},
      {"json_tuple", "use get_json_object for each field"},
      {"stack", "use VALUES or UNION ALL"},
      {"skewness", "DuckDB's definition differs from Spark's"},
      {"kurtosis", "DuckDB's definition differs from Spark's"},
      {"months_between", "use timestampdiff(MONTH, start, end)"},
      {"randn", "use rand()"},
      {"conv", "use hex, unhex or bin"},
      {"ai_query", "there is no model here"},
  };
  return kRefusals;
}

}  // namespace

const std::vector<Function>& functions() { return table(); }

const Function* find_function(std::string_view name, size_t args, bool* known) {
  *known = false;
  for (const Function& function : table()) {
    if (function.name != name) continue;
    *known = true;
    const auto count = static_cast<int>(args);
    if (count >= function.min_args && (function.max_args < 0 || count <= function.max_args))
      return &function;
  }
  return nullptr;
}

std::string nearest_function(std::string_view name) {
  std::vector<std::string> names;
  for (const Function& function : table()) names.emplace_back(function.name);
  return nearest_word(name, names);
}

std::string_view refused_function(std::string_view name) {
  const auto found = refusals().find(name);
  return found == refusals().end() ? std::string_view() : found->second;
}

}  // namespace strandline::sql
