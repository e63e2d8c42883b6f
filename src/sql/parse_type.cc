// Types and schema text: "id INT, tags ARRAY<STRING>, s STRUCT<a: INT NOT NULL>".
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

const std::map<std::string, TypeId, std::less<>>& primitive_types() {
  static const std::map<std::string, TypeId, std::less<>> kTypes = {
      {"STRING", TypeId::kString},
      {"BIGINT", TypeId::kLong},
      {"LONG", TypeId::kLong},
      {"INT", TypeId::kInteger},
      {"INTEGER", TypeId::kInteger},
      {"SMALLINT", TypeId::kShort},
      {"SHORT", TypeId::kShort},
      {"TINYINT", TypeId::kByte},
      {"BYTE", TypeId::kByte},
      {"FLOAT", TypeId::kFloat},
      {"REAL", TypeId::kFloat},
      {"DOUBLE", TypeId::kDouble},
      {"BOOLEAN", TypeId::kBoolean},
      {"BINARY", TypeId::kBinary},
      {"DATE", TypeId::kDate},
      {"TIMESTAMP", TypeId::kTimestamp},
      {"TIMESTAMP_LTZ", TypeId::kTimestamp},
      {"TIMESTAMP_NTZ", TypeId::kTimestampNtz},
      {"VOID", TypeId::kVoid},
      {"VARIANT", TypeId::kVariant},
  };
  return kTypes;
}

}  // namespace

DataType Parser::type() {
  const Nesting nesting(*this);
  const DataType nothing = DataType::primitive(TypeId::kVoid);
  const Token& token = peek();
  if (token.kind != TokenKind::kWord) {
    fail_expected("a type");
    return nothing;
  }
  const std::string& word = token.upper;
  if (const auto found = primitive_types().find(word); found != primitive_types().end()) {
    next();
    if (word == "STRING" && at_word("COLLATE")) {
      fail_unsupported(peek().place, "a collation other than the default", "use STRING");
    }
    return DataType::primitive(found->second);
  }
  if (word == "DECIMAL" || word == "DEC" || word == "NUMERIC") {
    next();
    int precision = 10;
    int scale = 0;
    if (accept_symbol("(")) {
      const auto number = [&](std::string_view what, int most) {
        const Token& digits = peek();
        if (digits.kind != TokenKind::kNumber || digits.text.size() > 2 || !digits.suffix.empty() ||
            digits.text.find_first_not_of("0123456789") != std::string::npos ||
            std::stoi(digits.text) > most) {
          fail_expected(fmt::format("{} from 0 to {}", what, most));
          return 0;
        }
        return std::stoi(next().text);
      };
      precision = number("the precision", 38);
      if (accept_symbol(",")) scale = number("the scale", precision);
      expect_symbol(")");
      if (precision == 0) fail_at(token.place, "a DECIMAL has a precision of at least 1");
    }
    return failed_ ? nothing : DataType::decimal(precision, scale);
  }
  if (at_sized_type()) {
    fail_unsupported(token.place, "a " + word + " in this place",
                     "use STRING: lengths are kept for the columns of a table alone");
    return nothing;
  }
  if (word == "ARRAY") {
    next();
    expect_symbol("<");
    DataType element = type();
    expect_symbol(">");
    return failed_ ? nothing : DataType::array(std::move(element));
  }
  if (word == "MAP") {
    next();
    expect_symbol("<");
    DataType key = type();
    expect_symbol(",");
    DataType value = type();
    expect_symbol(">");
    return failed_ ? nothing : DataType::map(std::move(key), std::move(value));
  }
  if (word == "STRUCT") {
    next();
    if (accept_symbol("<>")) return DataType::structure({});
    expect_symbol("<");
    std::vector<Field> fields = schema_fields(">");
    expect_symbol(">");
    return failed_ ? nothing : DataType::structure(std::move(fields));
  }
  if (word == "INTERVAL") {
    next();
    while (at_word("YEAR") || at_word("MONTH") || at_word("DAY") || at_word("HOUR") ||
           at_word("MINUTE") || at_word("SECOND") || at_word("TO")) {
      next();
    }
    return DataType::primitive(TypeId::kInterval);
  }
  if (word == "OBJECT" || word == "GEOGRAPHY" || word == "GEOMETRY") {
    fail_unsupported(token.place, fmt::format("the type {}", word), "");
    return nothing;
  }
  fail_expected("a type",
                {"STRING", "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "FLOAT", "DOUBLE", "BOOLEAN",
                 "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL", "ARRAY", "STRUCT"});
  return nothing;
}

bool Parser::at_sized_type() const {
  const std::string& word = peek().upper;
  return peek().kind == TokenKind::kWord &&
         (word == "CHAR" || word == "VARCHAR" || word == "CHARACTER");
}

DataType Parser::column_type(std::string* sized) {
  sized->clear();
  if (!at_sized_type()) return type();
  const Token& word = next();
  *sized = word.upper == "VARCHAR" ? "varchar" : "char";
  if (!at_symbol("(")) {
    fail(invalid_argument("DATATYPE_MISSING_SIZE", "{} needs a length, as in {}(10)", word.upper,
                          word.upper),
         word.place);
    return DataType();
  }
  next();
  constexpr size_t kMostDigits = 9;
  const Token& digits = peek();
  if (digits.kind != TokenKind::kNumber || !digits.suffix.empty() ||
      digits.text.size() > kMostDigits ||
      digits.text.find_first_not_of("0123456789") != std::string::npos) {
    fail_expected("a length");
    return DataType();
  }
  *sized += fmt::format("({})", std::stoi(next().text));
  expect_symbol(")");
  return DataType::primitive(TypeId::kString);
}

DataType Parser::cast_type() {
  std::string sized;
  return column_type(&sized);
}

std::vector<Field> Parser::schema_fields(std::string_view stop_symbol) {
  std::vector<Field> fields;
  const auto at_stop = [&] {
    return stop_symbol.empty() ? peek().kind == TokenKind::kEnd : at_symbol(stop_symbol);
  };
  while (!failed_ && !at_stop()) {
    Field field;
    const Name field_name = name("a field's name");
    field.name = field_name.text;
    accept_symbol(":");
    field.type = type();
    if (accept_words({"NOT", "NULL"})) field.nullable = false;
    if (accept_word("COMMENT")) {
      field.metadata["comment"] = json_string(string_value("the comment"));
    }
    if (failed_) break;
    for (const Field& other : fields) {
      if (same_name(other.name, field.name)) {
        note(other.name == field.name
                 ? invalid_argument("COLUMN_ALREADY_EXISTS", "the column '{}' is declared twice",
                                    field.name)
                 : invalid_argument("COLUMN_ALREADY_EXISTS",
                                    "the columns '{}' and '{}' differ in case alone", other.name,
                                    field.name),
             field_name.place);
      }
    }
    fields.push_back(std::move(field));
    if (!accept_symbol(",")) break;
  }
  return fields;
}

}  // namespace strandline::sql
