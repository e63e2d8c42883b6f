#include "duck/engine_errors.h"

#include <map>
#include <regex>
#include <vector>

#include "sql/duckdb_printer.h"

namespace strandline::duck {
namespace {

Error at(Error error, const SourcePlace& place) {
  if (!error.place && place.line > 0) error.place = place;
  return error;
}

// A message of the engine, by its beginning after "... Error: ". In `says`, $1 is the group of that
// number and %1 the same as a type. A message about a name has it in group 1.
struct Message {
  const char* pattern;
  const char* code;
  const char* says;
  bool of_name = false;
};

constexpr const char* kUnresolved = "UNRESOLVED_COLUMN.WITH_SUGGESTION";
constexpr const char* kBadCast = "CAST_INVALID_INPUT";
constexpr const char* kCastOverflow = "CAST_OVERFLOW";
constexpr const char* kTryCast = ": use try_cast for null instead";

const std::vector<Message>& messages() {
  static const std::vector<Message> kMessages = {
      // Names.
      {R"re((?:Referenced (?:table|column)|Column) "(_metadata)" (?:was not|not|referenced))re",
       kUnresolved,
       "$1 tells of files that read_files reads; tables and views without it have none", true},
      {R"re(Referenced column "([^"]*)" not found in FROM clause!\s*Candidate bindings: (.*))re",
       kUnresolved, "there is no column $1 here; near are $2", true},
      {R"re(Referenced column "([^"]*)" (not found|was not found))re", kUnresolved,
       "there is no column $1 here: no relation of a FROM clause has it", true},
      {R"re(Column "([^"]*)" referenced that exists in the SELECT clause)re", kUnresolved,
       "no relation of FROM has a column $1: DESCRIBE shows what there is", true},
      {R"re((?:Table|Values list) "([^"]*)" does not have a column named "([^"]*)"\s*Candidate bindings: :? ?(.*))re",
       kUnresolved, "$1 has no column $2; near are $3", true},
      {R"re((?:Table|Values list) "([^"]*)" does not have a column named "([^"]*)")re", kUnresolved,
       "$1 has no column $2", true},
      {R"re(Referenced table "([^"]*)" not found!\s*Candidate tables: (.*))re", kUnresolved,
       "no relation of FROM is called $1; there are $2", true},
      {R"re(Referenced table "([^"]*)" not found)re", kUnresolved,
       "no relation of FROM is called $1", true},
      {R"re(Could not find key "([^"]*)" in struct\s*Candidate Entries: (.*))re", "FIELD_NOT_FOUND",
       "the struct has no field $1; near are $2", true},
      {R"re(Cannot extract field '([^']*)' from expression "([^"]*)" because)re",
       "INVALID_EXTRACT_BASE_FIELD_TYPE", "$2 is no struct: it has no field $1", true},
      {R"re(Column "([^"]*)" in EXCLUDE list not found)re", kUnresolved,
       "EXCEPT names $1, which is no column here", true},
      {R"re(Column "([^"]*)" does not exist on (left|right) side of join)re",
       "UNRESOLVED_USING_COLUMN_FOR_JOIN", "USING names $1, which the $2 side of the join has not",
       true},
      {R"re(Ambiguous reference to column name "([^"]*)" \(use: (.*)\))re", "AMBIGUOUS_REFERENCE",
       "the column $1 is in several relations: write which is meant, as in $2", true},
      {R"re(Ambiguous reference to table "([^"]*)")re", "AMBIGUOUS_REFERENCE",
       "several relations are called $1: give them aliases of their own", true},
      {R"re(column "?([^" ]*)"? must appear in the GROUP BY)re", "MISSING_AGGREGATION",
       "the column $1 is neither in GROUP BY nor in an aggregate: add it there, or use "
       "any_value($1)",
       true},
      // Shapes of queries.
      {R"re(WHERE clause cannot contain (aggregates|window functions))re",
       "INVALID_WHERE_CONDITION", "WHERE cannot contain $1: use HAVING, QUALIFY or a subquery"},
      {R"re(aggregate function calls cannot be nested)re", "NESTED_AGGREGATE_FUNCTION",
       "an aggregate stands in an aggregate: compute the inner one in a subquery"},
      {R"re(More than one row returned by a subquery)re", "SCALAR_SUBQUERY_TOO_MANY_ROWS",
       "a subquery that stands for one value gives several rows"},
      {R"re(Subquery returns (\d+) columns - expected (\d+))re",
       "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
       "a subquery gives $1 columns where $2 is expected"},
      {R"re(Set operations can only apply to expressions with the same number)re",
       "NUM_COLUMNS_MISMATCH",
       "the sides of UNION, INTERSECT or EXCEPT have different numbers of columns"},
      {R"re(GROUP BY term out of range - should be between 1 and (\d+))re",
       "GROUP_BY_POS_OUT_OF_RANGE", "GROUP BY counts a column that is not there: there are $1"},
      {R"re(ORDER term out of range - should be between 1 and (\d+))re",
       "ORDER_BY_POS_OUT_OF_RANGE", "ORDER BY counts a column that is not there: there are $1"},
      {R"re(VALUES lists must all be the same length)re",
       "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
       "the rows of VALUES differ in their number of columns"},
      // Types.
      {R"re(Cannot combine types (?:of )?(.*) and (.*) - an explicit cast)re",
       "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE",
       "rows or items of %1 and of %2 stand together: cast them to one type"},
      {R"re(Cannot mix values of type (.*) and (.*) in (.*) - an explicit cast)re",
       "DATATYPE_MISMATCH.DATA_DIFF_TYPES", "$3 has values of %1 and of %2: cast them to one type"},
      {R"re(Cannot compare values of type (.*) and (?:values of )?type (.*) - an explicit cast)re",
       "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES", "%1 and %2 cannot be compared: cast one of them"},
      {R"re(Unimplemented type for cast \((.*) -> ([^)]*\)?)\))re",
       "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "%1 cannot become %2"},
      {R"re((?:No matching aggregate function\s*Binder Error: )?No function matches the given name and argument types '([^(]*)\((.*?)\)'\.)re",
       "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "$1 does not take ($2): cast what it is given"},
      {R"re(The initial value type must be the same as the list child type)re",
       "UNSUPPORTED_CONSTRUCT",
       "aggregate whose start is of another type than the elements is not supported: bring the "
       "elements to it first, as in aggregate(transform(items, e -> e.price), 0, ...)"},
      // Values.
      {R"re(Could not convert string ['"]([\s\S]*)['"] to ([A-Z][A-Z0-9_(),]*))re", kBadCast,
       "the text '$1' is no %2"},
      {R"re((?:invalid|Invalid) (timestamp|date|time) field format: "([\s\S]*)", expected)re",
       kBadCast, "the text '$2' is no $1"},
      {R"re((timestamp|date|time) field value out of range: "([\s\S]*)")re", kBadCast,
       "the text '$2' is no $1"},
      {R"re(Type (\S+) with value (\S+) can't be cast because the value is out of range for the destination type (\S+))re",
       kCastOverflow, "$2 is out of the range of %3"},
      {R"re(Casting value "([^"]*)" to type (\S+) failed)re", "NUMERIC_VALUE_OUT_OF_RANGE",
       "$1 is out of the range of %2"},
      {R"re(Could not cast value (\S+) to (DECIMAL\S+))re", "NUMERIC_VALUE_OUT_OF_RANGE",
       "$1 is out of the range of %2"},
      {R"re(Overflow in (\w+) of (?:\w+) \(([^)]*)\))re", "ARITHMETIC_OVERFLOW",
       "$2 is out of the range of its type: cast to a larger one, or use try_add and its kin"},
      {R"re(Overflow in (\w+))re", "ARITHMETIC_OVERFLOW",
       "the $1 of a number is out of the range of its type: cast it to a larger one"},
      {R"re(Overflow on (\S+))re", "ARITHMETIC_OVERFLOW",
       "$1 is out of the range of its type: cast to a larger one"},
      {R"re(Could not parse string "([\s\S]*)" according to format specifier)re",
       "CANNOT_PARSE_TIMESTAMP",
       "the text '$1' is not of the pattern given: use try_to_date or try_to_timestamp for null "
       "instead"},
      {R"re((missing [\])]|unexpected \)|bad repetition operator|no argument for repetition operator|invalid (?:escape sequence|character class range|perl operator|named capture group|UTF-8|repetition size)|trailing \\ at end of regexp)(?:: ([\s\S]*))?)re",
       "INVALID_PARAMETER_VALUE.PATTERN",
       "the regular expression is not understood ($1 $2): RE2's syntax is meant, without "
       "look-around"},
      {R"re(Map keys must be unique)re", "DUPLICATED_MAP_KEY", "a map has a key twice"},
      {R"re(Map keys can not be NULL)re", "NULL_MAP_KEY", "a map has a null key"},
      {R"re(Invalid type in column "([\s\S]*?)": column was declared as (\w+), found "([\s\S]*)" of type "(\w+)" instead)re",
       "VALUE_OUT_OF_TYPE",
       "column '$1' is declared as $2, and a row of that database has the $4 '$3' there: correct "
       "it, "
       "or read a view of the database that casts the column"},
      // What jdbc.cc has PostgreSQL say.
      {R"re([\s\S]*"misfit: ([\s\S]*?) of column '([\s\S]*?)' does not fit ([A-Z]+\S*?)")re",
       "VALUE_OUT_OF_TYPE",
       "column '$2' of that database has $1, which does not fit $3: give it as text, or as a value "
       "that fits, in a query"},
      // Its reader has no more to say.
      {R"re(Failed to fetch result row for MySQL query)re", "JDBC_QUERY_FAILED",
       "that database began the query and failed in a row of it: run the query there to see why"},
      {R"re(Failed to \w+ [^"]*: ERROR:\s*([\s\S]*))re", "JDBC_QUERY_FAILED",
       "that database says: $1"},
      {R"re(Failure in decode)re", "INVALID_UTF8_STRING",
       "bytes that are to become a string are not UTF-8: keep them BINARY, or use hex"},
      {R"re(Date out of range: (\S+))re", "DATETIME_FIELD_OUT_OF_BOUNDS", "$1 is no date"},
  };
  return kMessages;
}

// The message alone: without its class, hints on the engine's settings and the text it was asked
// with.
std::string what_it_says(const std::string& message) {
  constexpr size_t kMostText = 2000;
  static const std::string kQuery =
      " COPY \"";  // what PostgreSQL was asked stands before its error
  const size_t query = message.find(kQuery);
  const size_t answer = query < kMostText ? message.find("\": ERROR:", query) : std::string::npos;
  std::string text = answer == std::string::npos ? message.substr(0, kMostText)
                                                 : message.substr(0, query + kQuery.size() - 2) +
                                                       message.substr(answer + 1, kMostText);
  for (const char* end : {"\nLINE ", "\n\nLINE ", "\tCandidate functions:"})
    text.erase(std::min(text.find(end), text.size()));
  const size_t head = text.find(" Error: ");
  constexpr size_t kLongestClass = 30;
  if (head < kLongestClass) text.erase(0, head + 8);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  return text;
}

// Names that this program gives to what it makes on the way are nobody's business.
std::string without_own_names(std::string text) {
  static const std::regex kCandidate(R"re(,? ?"__strandline_[^"]*"(?!\.))re");
  static const std::regex kQualifier(R"re("?__strandline_\w*"?\.?)re");
  text = std::regex_replace(text, kCandidate, "");
  return std::regex_replace(text, kQualifier, "");
}

// A list of names near by that has none.
std::string without_empty_list(std::string text) {
  for (const std::string end : {"; near are", "; there are"}) {
    while (!text.empty() && (text.back() == ' ' || text.back() == ',')) text.pop_back();
    if (text.ends_with(end)) text.erase(text.size() - end.size());
  }
  return text;
}

std::string filled(const Message& message, const std::smatch& found) {
  std::string out;
  for (const char* at = message.says; *at != '\0'; ++at) {
    if ((*at != '$' && *at != '%') || at[1] < '1' || at[1] > '9') {
      out += *at;
      continue;
    }
    const auto group = found[static_cast<size_t>(at[1] - '0')].str();
    out += *at == '%' ? spark_type(group) : group;
    ++at;
  }
  return out;
}

}  // namespace

std::string spark_type(const std::string& engine_type) {
  static const std::map<std::string, std::string> kNames = {
      {"INTEGER", "INT"},
      {"INTEGER_LITERAL", "INT"},
      {"INT8", "TINYINT"},
      {"INT16", "SMALLINT"},
      {"INT32", "INT"},
      {"INT64", "BIGINT"},
      {"BOOL", "BOOLEAN"},
      {"VARCHAR", "STRING"},
      {"STRING_LITERAL", "STRING"},
      {"BLOB", "BINARY"},
      {"TIMESTAMP", "TIMESTAMP_NTZ"},
      {"TIMESTAMP WITH TIME ZONE", "TIMESTAMP"},
  };
  if (engine_type.ends_with("[]"))
    return "ARRAY<" + spark_type(engine_type.substr(0, engine_type.size() - 2)) + ">";
  const auto found = kNames.find(engine_type);
  return found == kNames.end() ? engine_type : found->second;
}

namespace {

// An error of one row at the only expression that can have caused it, else at the statement.
Error at_its_cause(Error error, const sql::Statement& statement) {
  static const std::map<std::string, sql::FailingValue> kCauses = {
      {"DIVIDE_BY_ZERO", sql::FailingValue::kDivision},
      {"REMAINDER_BY_ZERO", sql::FailingValue::kDivision},
      {kBadCast, sql::FailingValue::kCast},
      {kCastOverflow, sql::FailingValue::kCast},
      {"CANNOT_PARSE_TIMESTAMP", sql::FailingValue::kCast},
      {"ARITHMETIC_OVERFLOW", sql::FailingValue::kArithmetic},
  };
  const auto cause = kCauses.find(error.code);
  // A value that enters a column is cast by no expression of the statement.
  const bool of_column = error.message.find(" in column ") != std::string::npos;
  if (!error.place && cause != kCauses.end() && !of_column)
    error.place = sql::place_of_failure(statement, cause->second);
  return at(std::move(error), statement.place);
}

}  // namespace

Error in_users_words(Error error, const sql::Statement& statement) {
  if (error.code != "ENGINE_ERROR") return at_its_cause(std::move(error), statement);
  // What this program was doing may stand before what the engine says.
  static const std::regex kClass(
      R"re(: (?:Binder|Conversion|Out of Range|Invalid Input|Catalog|Not implemented) Error: )re");
  std::smatch of_class;
  std::string doing;
  if (std::regex_search(error.message, of_class, kClass) && of_class.position(0) > 0)
    doing = error.message.substr(0, static_cast<size_t>(of_class.position(0)) + 2);
  const auto text = what_it_says(error.message.substr(doing.size()));
  error.message = doing + without_own_names(text);
  for (const auto& message : messages()) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(message.pattern),
                           std::regex_constants::match_continuous)) {
      continue;
    }
    error.code = message.code;
    error.message = doing + without_empty_list(without_own_names(filled(message, found)));
    if (error.code == kBadCast || error.code == kCastOverflow) error.message += kTryCast;
    // What the engine says of another database's values and queries it says of its connection.
    if (error.code == "VALUE_OUT_OF_TYPE") error.kind = ErrorKind::kInvalidData;
    if (error.code == "JDBC_QUERY_FAILED") error.kind = ErrorKind::kInvalidArgument;
    // A relation that is not known here may well be named rightly elsewhere.
    if (!message.of_name || (error.place && text.starts_with("Referenced table"))) break;
    // Of "t.k" the message may name both parts.
    for (const size_t group : {size_t{2}, size_t{1}}) {
      if (group >= found.size()) continue;
      if (const auto place = sql::place_of_column(statement, found[group].str())) {
        error.place = place;
        break;
      }
    }
    break;
  }
  return at_its_cause(std::move(error), statement);
}

Error in_users_words(Error error, const sql::QueryPtr& query, const SourcePlace& place) {
  sql::Statement statement;
  statement.body = sql::SelectStatement{query};
  statement.place = place;
  return in_users_words(std::move(error), statement);
}

}  // namespace strandline::duck
