#include "engine/shapes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace strandline::test {
namespace {

using Tokens = std::vector<Token>;

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_symbol(const Tokens& tokens, size_t i, std::string_view text) {
  return i < tokens.size() && tokens[i].kind == Token::Kind::kSymbol && tokens[i].text == text;
}

// Keywords in any case.
bool is_word(const Tokens& tokens, size_t i, std::string_view upper) {
  if (i >= tokens.size() || tokens[i].kind != Token::Kind::kWord) return false;
  const std::string& text = tokens[i].text;
  return text.size() == upper.size() &&
         std::equal(text.begin(), text.end(), upper.begin(), [](char a, char b) {
           return std::toupper(static_cast<unsigned char>(a)) == b;
         });
}

// The place of the bracket that closes the one at `open`; the end where none does.
size_t closing(const Tokens& tokens, size_t open) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kSymbol) continue;
    const char c = tokens[i].text[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) return i;
  }
  return tokens.size();
}

bool has_word(const Tokens& tokens, size_t begin, size_t end, std::string_view upper) {
  for (size_t i = begin; i < end; ++i) {
    if (is_word(tokens, i, upper)) return true;
  }
  return false;
}

// Names of WINDOW clauses whose windows have neither PARTITION BY nor ORDER BY.
std::set<std::string> bare_windows(const Tokens& tokens) {
  std::set<std::string> found;
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!is_word(tokens, i + 1, "AS") || !is_symbol(tokens, i + 2, "(")) continue;
    const bool in_clause =
        i > 0 && (is_word(tokens, i - 1, "WINDOW") || is_symbol(tokens, i - 1, ","));
    const size_t end = closing(tokens, i + 2);
    const bool is_window =
        i + 3 == end || is_word(tokens, i + 3, "ROWS") || is_word(tokens, i + 3, "RANGE");
    if (in_clause && is_window) found.insert(tokens[i].text);
  }
  return found;
}

// The function that a call calls whose closing bracket is at `end`: the word before its opening
// one.
std::string called(const Tokens& tokens, size_t end) {
  int depth = 0;
  for (size_t i = end + 1; i-- > 0;) {
    if (is_symbol(tokens, i, ")")) ++depth;
    if (is_symbol(tokens, i, "(") && --depth == 0) return i > 0 ? tokens[i - 1].text : "";
  }
  return "";
}

// A window without PARTITION BY and ORDER BY, which the engine computes row by row. row_number
// alone is right there: it looks at no other row.
bool is_streaming_window(const Tokens& tokens) {
  const std::set<std::string> bare = bare_windows(tokens);
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!is_word(tokens, i, "OVER")) continue;
    const size_t end = closing(tokens, i + 1);
    const auto is_bare_name = [&](size_t at) {
      return at < tokens.size() && tokens[at].kind != Token::Kind::kSymbol &&
             bare.contains(tokens[at].text);
    };
    const bool is_bare = is_symbol(tokens, i + 1, "(")
                             ? !has_word(tokens, i + 2, end, "PARTITION") &&
                                   !has_word(tokens, i + 2, end, "ORDER") &&
                                   (i + 2 == end || is_word(tokens, i + 2, "ROWS") ||
                                    is_word(tokens, i + 2, "RANGE") || is_bare_name(i + 2))
                             : is_bare_name(i + 1);
    if (!is_bare) continue;
    size_t call_end = i - 1;  // before OVER, IGNORE NULLS may stand
    while (call_end > 0 && !is_symbol(tokens, call_end, ")")) --call_end;
    if (called(tokens, call_end) != "row_number") return true;
  }
  return false;
}

// Whether tokens from `begin` to `end` read something else than the names in `bound`.
bool reads_outside(const Tokens& tokens, size_t begin, size_t end, std::set<std::string> bound) {
  for (size_t i = begin; i < end; ++i) {
    const Token& token = tokens[i];
    const bool is_member = is_symbol(tokens, i - 1, ".");
    const bool is_key = is_symbol(tokens, i + 1, ":");
    if (is_word(tokens, i, "LAMBDA")) {
      for (++i; i < end && !is_symbol(tokens, i, ":"); ++i) bound.insert(tokens[i].text);
      continue;
    }
    if (is_member || is_key || bound.contains(token.text)) continue;
    if (token.kind == Token::Kind::kName) return true;
    if (token.kind != Token::Kind::kWord || is_symbol(tokens, i + 1, "(")) continue;
    // Keywords, types and constants are printed in capitals or are these.
    static const std::set<std::string> kConstants = {"true", "false"};
    const bool is_name = std::any_of(token.text.begin(), token.text.end(),
                                     [](char c) { return c >= 'a' && c <= 'z'; }) &&
                         std::isdigit(static_cast<unsigned char>(token.text[0])) == 0;
    if (is_name && !kConstants.contains(token.text)) return true;
  }
  return false;
}

bool is_reduce_of_other_rows(const Tokens& tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!is_word(tokens, i, "LIST_REDUCE") && !is_word(tokens, i, "REDUCE")) continue;
    if (!is_symbol(tokens, i + 1, "(")) continue;
    // Its own lambda is the first at its own depth.
    const size_t end = closing(tokens, i + 1);
    for (size_t at = i + 2; at < end; ++at) {
      if (is_symbol(tokens, at, "(") || is_symbol(tokens, at, "[") || is_symbol(tokens, at, "{")) {
        at = closing(tokens, at);
        continue;
      }
      if (!is_word(tokens, at, "LAMBDA")) continue;
      std::set<std::string> bound;
      for (++at; at < end && !is_symbol(tokens, at, ":"); ++at) bound.insert(tokens[at].text);
      size_t body_end = at + 1;
      while (body_end < end && !is_symbol(tokens, body_end, ",")) {
        const bool opens = is_symbol(tokens, body_end, "(") || is_symbol(tokens, body_end, "[") ||
                           is_symbol(tokens, body_end, "{");
        body_end = opens ? closing(tokens, body_end) + 1 : body_end + 1;
      }
      if (reads_outside(tokens, at + 1, body_end, bound)) return true;
      break;
    }
  }
  return false;
}

bool is_copy_with_bloom_filters(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!is_word(tokens, i, "COPY")) continue;
    if (!has_word(tokens, i, tokens.size(), "PARQUET")) continue;
    bool is_off = false;
    for (size_t at = i; at + 1 < tokens.size(); ++at)
      is_off =
          is_off || (is_word(tokens, at, "WRITE_BLOOM_FILTER") && is_word(tokens, at + 1, "FALSE"));
    if (!is_off) return true;
  }
  return false;
}

// The arguments of each read_parquet, as begin and end.
std::vector<std::pair<size_t, size_t>> parquet_reads(const Tokens& tokens) {
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const bool reads = is_word(tokens, i, "READ_PARQUET") || is_word(tokens, i, "PARQUET_SCAN");
    if (reads && is_symbol(tokens, i + 1, "(")) found.emplace_back(i + 2, closing(tokens, i + 1));
  }
  return found;
}

bool is_read_that_trusts_bounds(const Tokens& tokens) {
  for (const auto& [begin, end] : parquet_reads(tokens)) {
    bool is_told = false;
    for (size_t at = begin; at + 2 < end; ++at) {
      is_told = is_told || (is_word(tokens, at, "CAN_HAVE_NAN") && is_symbol(tokens, at + 1, "=") &&
                            is_word(tokens, at + 2, "TRUE"));
    }
    if (!is_told) return true;
  }
  return false;
}

// A scan of files that names its columns' types and gives one of BLOB, FLOAT or DOUBLE as it is.
bool is_column_within_reach(const Tokens& tokens) {
  for (const auto& [begin, end] : parquet_reads(tokens)) {
    std::set<std::string> touchy;
    for (size_t at = begin; at + 6 < end; ++at) {
      // 'name': 'c0', 'type': 'DOUBLE'
      if (tokens[at].text != "name" || tokens[at + 4].text != "type") continue;
      const std::string& type = tokens[at + 6].text;
      if (type == "BLOB" || type == "FLOAT" || type == "DOUBLE") touchy.insert(tokens[at + 2].text);
    }
    // The SELECT list before it, back to its SELECT at the same depth.
    int depth = 0;
    for (size_t at = begin - 2; at-- > 0;) {
      if (is_symbol(tokens, at, ")") || is_symbol(tokens, at, "]") || is_symbol(tokens, at, "}"))
        ++depth;
      if (is_symbol(tokens, at, "(") || is_symbol(tokens, at, "[") || is_symbol(tokens, at, "{"))
        --depth;
      if (depth < 0 || (depth == 0 && is_word(tokens, at, "SELECT"))) break;
      const bool starts = is_word(tokens, at - 1, "SELECT") || is_symbol(tokens, at - 1, ",");
      if (starts && is_word(tokens, at + 1, "AS") && touchy.contains(tokens[at].text)) return true;
    }
  }
  return false;
}

constexpr const char* kTwins =
    "COPY (SELECT unhex('cd01') AS b, CAST('-0.0' AS DOUBLE) AS d, i AS n FROM range(5000) t(i)) "
    "TO "
    "'${file}' (FORMAT parquet)";

}  // namespace

std::vector<Token> tokens_of(const std::string& sql) {
  Tokens tokens;
  for (size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (sql.compare(i, 2, "--") == 0) {
      i = std::min(sql.find('\n', i), sql.size());
    } else if (c == '\'' || c == '"') {
      Token token{c == '"' ? Token::Kind::kName : Token::Kind::kText, "", i};
      for (++i; i < sql.size(); ++i) {
        if (sql[i] == c && (i + 1 >= sql.size() || sql[i + 1] != c)) break;
        if (sql[i] == c) ++i;
        token.text += sql[i];
      }
      ++i;
      tokens.push_back(std::move(token));
    } else if (is_word_char(c)) {
      Token token{Token::Kind::kWord, "", i};
      for (; i < sql.size() && is_word_char(sql[i]); ++i) token.text += sql[i];
      tokens.push_back(std::move(token));
    } else {
      tokens.push_back(Token{Token::Kind::kSymbol, std::string(1, c), i++});
    }
  }
  return tokens;
}

const std::vector<Shape>& banned_shapes() {
  static const std::vector<Shape> kShapes = {
      {"streaming window",
       "rows twice where it looks ahead, the first of all rows whatever the frame (25306, 25701, "
       "25995, 24458)",
       is_streaming_window, "",
       "SELECT count(*) FROM (SELECT x, lead(x) OVER () FROM (SELECT 1 AS x UNION ALL SELECT 2))",
       "SELECT count(*) FROM (SELECT x, lead(x) OVER (ORDER BY x) FROM (SELECT 1 AS x UNION ALL "
       "SELECT 2))",
       "2", true, "tests/logic/windows_without_order.test::SELECT count_if(f = x) AS f"},
      {"list_reduce over columns", "columns of other rows where lists differ in length (25816)",
       is_reduce_of_other_rows, "",
       "SELECT sum(list_reduce(l, lambda a, x: a + s, 0)) FROM (VALUES (10, [1, 1]), (20, [1]), "
       "(30, [1, 1, 1]), "
       "(40, [1, 1])) t(s, l)",
       "SELECT sum(list_reduce(list_transform(l, lambda x: s), lambda a, x: a + x, 0)) FROM "
       "(VALUES (10, [1, 1]), "
       "(20, [1]), (30, [1, 1, 1]), (40, [1, 1])) t(s, l)",
       "210", true,
       "tests/logic/list_folds.test::SELECT k, aggregate(l, 0, (acc, i) -> acc + s) AS a"},
      {"Parquet with Bloom filters",
       "rows of BLOB, -0.0 and NaN are not found behind them (24994, 23053, 23829)",
       is_copy_with_bloom_filters,
       "COPY (SELECT 1) TO '${file}' (FORMAT parquet, WRITE_BLOOM_FILTER false)",
       "COPY (SELECT 1 AS n FROM range(10)) TO '${file}' (FORMAT parquet)",
       "COPY (SELECT 1 AS n FROM range(10)) TO '${file}' (FORMAT parquet, WRITE_BLOOM_FILTER "
       "false)",
       "10", false, "tests/engine/test_found_again.py::test_files_of_ours_have_no_bloom_filters"},
      {"read_parquet that trusts bounds",
       "NaN that a writer left out of its statistics is not found (25521)",
       is_read_that_trusts_bounds, kTwins, "SELECT count(*) FROM read_parquet('${file}')",
       "SELECT count(*) FROM read_parquet('${file}', can_have_nan = true)", "5000", false,
       "tests/engine/test_found_again.py::test_nan_inside_structs_and_arrays_of_arrow_files"},
      {"column within the reader's reach",
       "conditions on BLOB, FLOAT and DOUBLE ask files' Bloom filters (24994)",
       is_column_within_reach, kTwins,
       "SELECT count(*) FROM (SELECT c0 AS b FROM read_parquet('${file}', can_have_nan = true, "
       "schema = MAP {'b': "
       "{'name': 'c0', 'type': 'BLOB', 'default_value': NULL}})) WHERE b = unhex('cd01')",
       "SELECT count(*) FROM (SELECT CASE WHEN c0 IS NOT NULL THEN c0 END AS b FROM "
       "read_parquet('${file}', "
       "can_have_nan = true, schema = MAP {'b': {'name': 'c0', 'type': 'BLOB', 'default_value': "
       "NULL}})) WHERE b = "
       "unhex('cd01')",
       "5000", true,
       "tests/engine/test_found_again.py::test_conditions_on_tables_of_other_programs"},
  };
  return kShapes;
}

std::vector<std::string> shapes_in(const std::string& sql) {
  const Tokens tokens = tokens_of(sql);
  std::vector<std::string> found;
  for (const Shape& shape : banned_shapes()) {
    if (shape.is_in(tokens)) found.emplace_back(shape.name);
  }
  return found;
}

}  // namespace strandline::test
