// The printer behind duckdb_printer.h. Private to this folder.
//
// It has no types of columns. Where a meaning depends on a type it cannot see, it writes
// CASE typeof(x) ... END: DuckDB folds typeof while it plans, so that only the right branch runs.
// Errors: the first is kept and the rest of the text is of no use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sql/coercion.h"
#include "sql/duckdb_printer.h"
#include "sql/functions.h"

namespace strandline::sql {

class DuckdbPrinter {
 public:
  DuckdbPrinter(const Resolve* resolve, const PrintOptions& options)
      : resolve_(resolve), options_(options), tables_(options.tables) {
    if (!options.from.empty()) scopes_.push_back(Scope{options.from});
  }

  Result<std::string> whole(const Query& query);
  Result<std::string> whole(const Expr& expr);

 private:
  // A FROM clause around, "" for SELECT without one, and what was asked about it.
  struct Scope {
    std::string from;
    bool sees_names = false;         // those of the SELECT list, as ORDER BY and HAVING do
    const Select* select = nullptr;  // whose clause it is
    std::optional<std::optional<std::vector<Field>>> columns = {};  // nothing inside: does not bind
    std::map<std::string, std::optional<Field>> values = {};        // by text
    std::map<const Expr*, DataType> types = {};                     // of what was asked
  };

  void fail(Error error, const SourcePlace& place);
  void fail_unsupported(const SourcePlace& place, const std::string& what,
                        const std::string& instead);

  // --- queries (duckdb_query.cc) ---
  std::string query(const Query& query);
  std::string select(const Select& select);
  // The SELECT with items of frames written out, over FROM as it is around; null where it has none.
  std::shared_ptr<const Select> with_frame_items(const Select& select);
  std::string group_by(const Select& select);
  std::string select_item(const SelectItem& item, const Select& select);
  std::string relation(const Relation& relation);
  std::string table(const Relation& relation, const TableUse& use);
  std::string join(const Join& join);
  std::string lateral_view(const Relation& relation, const LateralView& view);
  // The generator's output columns as a select list; names are its aliases or Spark's defaults.
  std::string generator(const Expr& call, bool outer, const std::vector<Name>& aliases);
  std::string rows(const ValuesRows& values);
  std::string alias(const Relation& relation, const std::vector<std::string>& default_columns = {});
  bool is_cte(const TableUse& use) const;
  // Adds the unaliased tables of a FROM clause to tables_, names given twice to doubles_.
  void collect_tables(const Relation& relation);

  // --- expressions (duckdb_expression.cc) ---
  std::string expr(const ExprPtr& node) { return expr(*node); }
  std::string expr(const Expr& node);
  std::string print(const Expr& node);
  // What must be a BOOLEAN: the engine would take numbers and text as well.
  std::string condition(const ExprPtr& node);
  // The same where null leaves a row out as false does: WHERE, ON and their kin.
  std::string filter(const ExprPtr& node);
  std::string literal(const Expr& node, const Literal& literal);
  std::string column(const Expr& node, const ColumnRef& column);
  std::string ordered_column(const ColumnRef& column);
  std::string star(const Star& star);
  std::string field(const FieldAccess& field);
  std::string unary(const Unary& unary);
  std::string is(const Is& is);
  std::string between(const Between& between);
  std::string in(const In& in);
  std::string padded_in(const In& in);
  std::string binary(const Expr& node, const Binary& binary);
  std::string infix(const Binary& binary);
  std::string padded_infix(const Binary& binary);
  // + - * and, with a divisor that is not zero, %.
  std::string arithmetic(const Binary& binary);
  std::string decimals(BinaryOp op, const DataType& result, bool exact, const std::string& left,
                       const std::string& right);
  // The grouping functions, and what FROM ... GROUP BY they are asked of.
  std::string grouping_id(const Expr& node, const Call& call);
  // A comparison of value, whose text form gets, with others.
  bool meets_as_double(const ExprPtr& value, const std::vector<ExprPtr>& others);
  std::string comparison(const ExprPtr& value, const std::vector<ExprPtr>& others,
                         const std::function<std::string(const std::string&)>& form);
  // Whether a STRING becomes a DATE because it is compared with one, and the text of what is.
  bool becomes_date(const ExprPtr& value, const ExprPtr& other);
  std::string compared(const ExprPtr& value, const ExprPtr& other);
  std::string remainder(const Binary& binary);
  std::string chain(const Binary& binary);
  std::string concat_part(const Expr& operand);
  std::string add_interval(const Binary& binary);
  std::string divide(const ExprPtr& left, const ExprPtr& right);
  // The divisor, with an error where it is zero and the dividend, whose text is given, is not null.
  std::string nonzero(const ExprPtr& divisor, const std::string& text, const std::string& dividend,
                      const char* code = "DIVIDE_BY_ZERO");
  std::string index(const IndexAccess& index);
  // What is wrong with a position, as forms with {0} the length and {1} the position: a condition,
  // and what concat makes the message of.
  struct ElementRule {
    const char* broken;
    const char* message;
  };
  // The element of an array or map, whichever it is; the array's position is `shifted` of it.
  std::string element(TypeId container, const std::string& value, const std::string& position,
                      const char* shifted, const std::vector<ElementRule>& rules);
  std::string json_value(const std::string& value, const std::string& path);
  std::string like(const Like& like);
  std::string case_when(const Case& choice);
  std::string cast(const Expr& node, const ExprPtr& value, const DataType& type, bool try_cast);
  std::string cast_to_string(const Expr& value);
  std::string cast_to_integer(const ExprPtr& value, const DataType& type, bool try_cast);
  std::string lambda(const Lambda& lambda, bool zero_based_index, bool is_condition = false);
  std::string interval(const IntervalLiteral& interval);
  std::string order(const std::vector<OrderItem>& items);
  std::string window(const WindowSpec& spec);
  std::string bound(const FrameBound& bound);
  std::string list(const std::vector<ExprPtr>& items);
  // Arguments in the ways of functions.h.
  std::string as_string(const ExprPtr& value);
  std::string as_time(const ExprPtr& value);
  // Text of a date or time with the month and day that Spark adds where they are left out.
  std::string date_text(const ExprPtr& value);
  std::string as_date(const ExprPtr& value);
  // A STRING as DATE, of which the engine would drop whatever follows the day.
  std::string text_as_date(const ExprPtr& value, bool try_cast);
  std::string as_bytes(const ExprPtr& value);

  // --- types (duckdb_types.cc) ---
  // What a query gives, in the place where it stands; nothing where that is not known.
  std::optional<std::vector<Field>> described(const std::string& query);
  const std::optional<std::vector<Field>>& columns_of(Scope& scope);
  // An expression's text in the SELECT that is being printed: as a column, and its type.
  std::optional<Field> described_column(const std::string& text);
  std::optional<DataType> described_value(const std::string& text);
  // The type of an expression, VOID where it is not known.
  DataType type_of(const Expr& node);
  DataType type_of_value(const Expr& node);
  // What a column stands for where names of the SELECT list are seen, if that is another one.
  const SelectItem* named_item(const ColumnRef& column) const;
  DataType type_of_column(const Expr& node, const ColumnRef& column);
  DataType type_of_operation(const Binary& binary);
  DataType type_of_call(const Call& call);
  // The type of an operand of arithmetic after number().
  DataType operand_type(const ExprPtr& operand, const ExprPtr& other);
  DataType common_type_of(const std::vector<ExprPtr>& values);
  // The type that values of several types become; nothing where all are of one, or a type is not
  // known. Fails with the code where there is none.
  std::optional<DataType> merged_type(const std::vector<ExprPtr>& values,
                                      const char* code = "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                                      Texts texts = Texts::kBecomeOthers);
  // The same of values to compare, where the engine would not do so by itself.
  std::optional<DataType> compared_type(
      const std::vector<ExprPtr>& values,
      const char* code = "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES");
  // The value as that type.
  ExprPtr as_type(const ExprPtr& value, const DataType& type);
  void merge(std::vector<ExprPtr>& values, const char* code = "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
             Texts texts = Texts::kBecomeOthers);
  // The call with arguments of one type, where they become one.
  Call merged_arguments(const Call& call);
  // Whether the columns of the FROM clause around may have such a type; true where the clause
  // itself does not tell.
  bool scope_has(const std::function<bool(const DataType&)>& is_such);
  bool may_hold_struct(const Expr& node);
  // The length of a CHAR column; 0 for all else.
  size_t char_length(const ExprPtr& value);
  // Gives values that are compared the blanks with which they meet: a CHAR column, a constant text
  // and another CHAR column have those of the longest.
  void pad(std::vector<ExprPtr>& values);
  // Whether a value is a STRING, as far as it is known.
  bool is_text(const ExprPtr& value);
  // Values that become one type: structs among them must have the same fields, else the printing
  // fails with the code.
  void check_structs(const std::vector<ExprPtr>& values,
                     const char* code = "DATATYPE_MISMATCH.DATA_DIFF_TYPES");
  // The text of a value, whose fields get the names that those of the other have.
  std::string compared_struct(const ExprPtr& value, const ExprPtr& other, const std::string& text);
  // What sorts as the value does in Spark, where a null in a struct or array comes first: the
  // engine puts it last. The text itself for other types.
  std::string sortable(const ExprPtr& value);
  // greatest, array_max, sort_array and their kin of such values; "" for others.
  std::string sorted_by_parts(const Call& call);
  // The query of IN, the same way, or with values of one type: that of the value goes to *type.
  std::string compared_query(const In& in, std::optional<DataType>* type);
  // An operand of arithmetic: a STRING becomes a BIGINT beside whole numbers, a DOUBLE beside
  // others and, without an other, alone.
  std::string number(const ExprPtr& operand, const ExprPtr& other);
  // Gives both sides of a set operation the same types, and the right one the field names of the
  // left.
  void align_sides(const SetOperation& operation, std::string& left, std::string& right);
  // Gives both sides of UNION BY NAME the same columns in the same order, null where a side lacks
  // one; false where the columns are not known.
  bool align_names(std::string& left, std::string& right);

  // --- calls (duckdb_call.cc) ---
  std::string call(const Expr& node, const Call& call);
  // The call with the columns that * and t.* among its arguments stand for; null after an error.
  ExprPtr without_stars(const Expr& node, const Call& call);
  // What frames compute of columns whose types decide, see duckdb_frames.cc; nothing for other
  // calls.
  std::optional<std::string> frame_value(const Call& call);
  std::string fill_form(const Function& function, const Call& call);
  // An argument in the way that a form asks for: its letter, or $ for the value as it is.
  std::string form_argument(const Call& call, char kind, size_t index);
  // A form of expressions that needs some of them several times. Those that are more than columns
  // and constants become parameters that are computed once.
  std::string with_columns(const std::vector<ExprPtr>& values,
                           const std::function<std::string(const std::vector<ExprPtr>&)>& form);
  // Whether a window has an order, of its own or of the one it names.
  bool is_ordered(const WindowSpec& spec) const;
  // FILTER and OVER of the call.
  std::string suffix(const Call& call);
  std::string special(const Expr& node, const Call& call);
  std::string aggregate_special(const Expr& node, const Call& call);
  void check_merged(const Call& call);
  std::string sum(const Call& call);
  // sum(value) of decimals, an error where it has more digits than decimals have.
  std::string decimal_sum(const Call& call, const std::string& value, const DataType& type);
  // The type of the argument of sum or avg, which must be a number.
  DataType summed_type(const Call& call);
  std::string average(const Call& call);
  std::string time_special(const Expr& node, const Call& call);
  std::string time_difference(const Call& call, const std::string& unit);
  std::string collection_special(const Expr& node, const Call& call);
  std::string sequence(const Call& call);
  std::string element_at(const Call& call);
  std::string rounded(const Call& call);
  std::string pairs_special(const Expr& node, const Call& call);
  std::string structure(const Call& call);
  std::string named_structure(const Expr& node, const Call& call);
  std::string now_text();
  // The constant string argument, or an error that names the function.
  std::optional<std::string> constant_argument(const Call& call, size_t index, const char* what);
  std::optional<std::string> pattern_argument(const Call& call, size_t index, bool parse);

  const Resolve* resolve_;
  const PrintOptions& options_;
  std::optional<Error> error_;
  std::vector<std::string> ctes_;
  // Names of the tables of the SELECTs around, innermost last: their columns may be written in
  // full.
  std::vector<TableName> tables_;
  // Lambda parameters in scope: name and the text that stands for it.
  std::vector<std::pair<std::string, std::string>> params_;
  // Values that with_columns() computes once, by the expression that stands for each in its form.
  struct Computed {
    std::string text;
    DataType type;
    size_t char_length = 0;
    ExprPtr node = nullptr;  // keeps the expression, whose address is the key
  };
  std::map<const Expr*, Computed> computed_;
  // A lambda that may read nothing but its own parameters, as that of list_reduce, which takes what
  // it reads of other rows where lists differ in length: what it reads from outside comes to it in
  // fields c0, c1, ... of `box`.
  struct Captures {
    size_t first_param = 0;  // of params_, its own and those inside it
    std::string box;
    std::vector<std::string> texts;  // what stands in the fields, as it reads outside
  };
  std::vector<Captures> captures_;  // innermost last
  // The text that stands for a column or parameter inside the lambdas of captures_; param: its
  // place in params_, nothing for a column.
  std::string captured(std::string text, std::optional<size_t> param);
  std::string reduce(const Call& call, const Lambda& merge);
  // FROM clauses around, innermost last.
  std::vector<Scope> scopes_;
  std::string last_from_;                      // of the SELECT printed last
  std::shared_ptr<const Select> last_select_;  // as it was printed; null: as it was given
  const Select* ordered_ = nullptr;  // whose ORDER BY is printed: names of its list come first
  bool computes_order_ = false;      // by an expression, not a name alone
  bool is_filter_ = false;           // what is printed next is, see filter()
  bool sorts_parts_ = false;         // whether sortable() had to do with parts
  bool asks_ = true;                 // whether the describer may be asked
  // Types of a set operation's columns by its text: its sides need not be asked for again.
  std::pair<std::string, std::vector<Field>> last_sides_;
  // Names that a subquery in the FROM clause around gives twice, with the subquery's alias. The
  // engine would take the first.
  std::vector<std::pair<std::string, std::string>> doubles_;
  std::string with_;  // the common table expressions in scope, as WITH has them
};

// The type an expression has whatever its columns are, if that can be told; kVoid when not.
TypeId known_type(const Expr& expr);
// DuckDB's name of a type, "" if it has none here.
std::string duckdb_type(const DataType& type);
// A text of months or years alone as its first day. "2026" and "2026-05" are dates in Spark.
std::string whole_date(const std::string& text);
// The same of a value: with the month and day that are left out.
std::string whole_date_of(const std::string& value);
// Whether a text has the form of a date; after a day whatever follows a T or a blank.
bool is_date_text(std::string_view text);
// Whether a text is a column, a parameter, a field of one or a constant: what may stand in a text
// several times, as it costs nothing and gives the same each time.
bool is_plain_value(const std::string& text);
// A form that needs a value several times, with the value computed once. The form may read nothing
// else that is bound so.
std::string computed_once(const std::string& value,
                          const std::function<std::string(const std::string&)>& form);
// The same of several values: the form gets their names in their order.
std::string computed_once(const std::vector<std::string>& values,
                          const std::function<std::string(const std::vector<std::string>&)>& form);
// An instant that a local time of a zone stands for, or the earlier one where that time comes
// twice.
std::string earlier_instant(const std::string& instant, const std::string& zone);
// A value of that type as JSON text, as to_json writes it; "" for types that have none.
std::string json_text_of(const std::string& value, const DataType& type);
// The text of a decimal with a digit before the point.
std::string decimal_text(const std::string& text);
// What Spark trims of a text that it reads as a number or a truth value.
std::string trimmed(const std::string& text);

}  // namespace strandline::sql
