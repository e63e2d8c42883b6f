#include "engine/file_conditions.h"

#include "delta/text_length.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

using delta::CompareOp;
using delta::FileFilter;
using delta::FilterLiteral;
using delta::Truth;

std::optional<CompareOp> compare_op(sql::BinaryOp op) {
  switch (op) {
    case sql::BinaryOp::kEqual:
      return CompareOp::kEqual;
    case sql::BinaryOp::kNotEqual:
      return CompareOp::kNotEqual;
    case sql::BinaryOp::kLess:
      return CompareOp::kLess;
    case sql::BinaryOp::kLessEqual:
      return CompareOp::kLessEqual;
    case sql::BinaryOp::kGreater:
      return CompareOp::kGreater;
    case sql::BinaryOp::kGreaterEqual:
      return CompareOp::kGreaterEqual;
    default:
      return std::nullopt;
  }
}

// b op a for a op b.
CompareOp flipped(CompareOp op) {
  switch (op) {
    case CompareOp::kLess:
      return CompareOp::kGreater;
    case CompareOp::kLessEqual:
      return CompareOp::kGreaterEqual;
    case CompareOp::kGreater:
      return CompareOp::kLess;
    case CompareOp::kGreaterEqual:
      return CompareOp::kLessEqual;
    default:
      return op;
  }
}

// The constant text before the first wildcard of a LIKE pattern.
struct Pattern {
  std::string prefix;
  std::string rest;  // from the first wildcard on
};

std::optional<Pattern> read_pattern(const std::string& text, char escape) {
  Pattern pattern;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == escape) {
      if (++i == text.size()) return std::nullopt;
      pattern.prefix += text[i];
    } else if (text[i] == '%' || text[i] == '_') {
      pattern.rest = text.substr(i);
      return pattern;
    } else {
      pattern.prefix += text[i];
    }
  }
  return pattern;
}

class FilterReader {
 public:
  FilterReader(const delta::Snapshot& snapshot, const Constant& constant)
      : snapshot_(snapshot), constant_(constant) {}

  FileFilter read(const sql::Expr& expr) const {
    if (const auto* column = column_of(expr)) {
      return FileFilter::compare(snapshot_, *column, CompareOp::kEqual, {TypeId::kBoolean, "true"});
    }
    if (const auto* literal = expr.as<sql::Literal>()) return truth(*literal);
    if (const auto* unary = expr.as<sql::Unary>()) {
      if (unary->op != sql::UnaryOp::kNot) return {};
      return FileFilter::negation(read(*unary->operand));
    }
    if (const auto* operation = expr.as<sql::Binary>()) return binary(*operation);
    if (const auto* is = expr.as<sql::Is>()) return negated(is_what(*is), is->negated);
    if (const auto* between = expr.as<sql::Between>()) {
      return negated(
          FileFilter::all_of({compare(*between->value, CompareOp::kGreaterEqual, *between->low),
                              compare(*between->value, CompareOp::kLessEqual, *between->high)}),
          between->negated);
    }
    if (const auto* in = expr.as<sql::In>()) return negated(in_list(*in), in->negated);
    if (const auto* like = expr.as<sql::Like>()) return negated(matches(*like), like->negated);
    if (const auto* call = expr.as<sql::Call>()) return function(*call);
    return {};
  }

 private:
  static FileFilter negated(FileFilter filter, bool negate) {
    return negate ? FileFilter::negation(std::move(filter)) : filter;
  }

  static FileFilter truth(const sql::Literal& literal) {
    if (literal.type == TypeId::kVoid) return FileFilter::constant(Truth::kNull);
    if (literal.type != TypeId::kBoolean) return {};
    return FileFilter::constant(literal.text == "true" ? Truth::kTrue : Truth::kFalse);
  }

  // A CHAR column has no bounds to compare texts with, which count without blanks at their end.
  const std::vector<std::string>* column_of(const sql::Expr& expr) const {
    const auto* column = expr.as<sql::ColumnRef>();
    if (column == nullptr || column->parts.empty()) return nullptr;
    const auto* field = snapshot_.schema.get(column->parts[0]);
    return field != nullptr && delta::is_char(*field) ? nullptr : &column->parts;
  }

  std::optional<FilterLiteral> value_of(const sql::Expr& expr) const {
    if (const auto* literal = expr.as<sql::Literal>())
      return FilterLiteral{literal->type, literal->text};
    return constant_ ? constant_(expr) : std::nullopt;
  }

  FileFilter binary(const sql::Binary& operation) const {
    if (operation.op == sql::BinaryOp::kAnd)
      return FileFilter::all_of({read(*operation.left), read(*operation.right)});
    if (operation.op == sql::BinaryOp::kOr)
      return FileFilter::any_of({read(*operation.left), read(*operation.right)});
    if (operation.op == sql::BinaryOp::kNullSafeEqual)
      return null_safe_equal(*operation.left, *operation.right);
    const auto op = compare_op(operation.op);
    return op ? compare(*operation.left, *op, *operation.right) : FileFilter();
  }

  FileFilter compare(const sql::Expr& left, CompareOp op, const sql::Expr& right) const {
    if (const auto* column = column_of(left)) {
      if (const auto value = value_of(right))
        return FileFilter::compare(snapshot_, *column, op, *value);
    } else if (const auto* other = column_of(right)) {
      if (const auto value = value_of(left))
        return FileFilter::compare(snapshot_, *other, flipped(op), *value);
    }
    return {};
  }

  FileFilter null_safe_equal(const sql::Expr& left, const sql::Expr& right) const {
    const auto* column = column_of(left);
    const auto value = value_of(column == nullptr ? left : right);
    if (column == nullptr) column = column_of(right);
    if (column == nullptr || !value) return {};
    return FileFilter::null_safe_equal(snapshot_, *column, *value);
  }

  FileFilter is_what(const sql::Is& is) const {
    switch (is.what) {
      case sql::IsWhat::kNull:
        if (const auto* column = column_of(*is.value))
          return FileFilter::is_null(snapshot_, *column);
        return {};
      case sql::IsWhat::kTrue:
        return FileFilter::is(read(*is.value), Truth::kTrue);
      case sql::IsWhat::kFalse:
        return FileFilter::is(read(*is.value), Truth::kFalse);
      case sql::IsWhat::kUnknown:
        return FileFilter::is(read(*is.value), Truth::kNull);
      case sql::IsWhat::kDistinctFrom:
        return FileFilter::negation(null_safe_equal(*is.value, *is.other));
    }
    return {};
  }

  FileFilter in_list(const sql::In& in) const {
    const auto* column = column_of(*in.value);
    if (column == nullptr || in.query) return {};
    std::vector<FilterLiteral> values;
    for (const auto& item : in.list) {
      auto value = value_of(*item);
      if (!value) return {};
      values.push_back(*std::move(value));
    }
    return FileFilter::in(snapshot_, *column, values);
  }

  FileFilter matches(const sql::Like& like) const {
    const auto* column = column_of(*like.value);
    if (column == nullptr || like.kind != sql::LikeKind::kLike ||
        like.quantifier != sql::LikeQuantifier::kOne || like.patterns.size() != 1) {
      return {};
    }
    const auto* literal = like.patterns[0]->as<sql::Literal>();
    const std::string escape = like.escape.value_or("\\");
    if (literal == nullptr || literal->type != TypeId::kString || escape.size() != 1) return {};
    const auto pattern = read_pattern(literal->text, escape[0]);
    if (!pattern) return {};
    if (pattern->rest.empty()) {
      return FileFilter::compare(snapshot_, *column, CompareOp::kEqual,
                                 {TypeId::kString, pattern->prefix});
    }
    FileFilter starts = FileFilter::starts_with(snapshot_, *column, pattern->prefix);
    if (pattern->rest == "%") return starts;
    return FileFilter::all_of({std::move(starts), FileFilter()});
  }

  FileFilter function(const sql::Call& call) const {
    if (call.name.text == "startswith" && call.args.size() == 2) {
      const auto* column = column_of(*call.args[0]);
      const auto* prefix = call.args[1]->as<sql::Literal>();
      if (column != nullptr && prefix != nullptr && prefix->type == TypeId::kString)
        return FileFilter::starts_with(snapshot_, *column, prefix->text);
    } else if (call.args.size() == 1 &&
               (call.name.text == "isnull" || call.name.text == "isnotnull")) {
      if (const auto* column = column_of(*call.args[0]))
        return negated(FileFilter::is_null(snapshot_, *column), call.name.text == "isnotnull");
    }
    return {};
  }

  const delta::Snapshot& snapshot_;
  const Constant& constant_;
};

}  // namespace

FileFilter file_filter(const delta::Snapshot& snapshot, const sql::Conditions& conditions,
                       const Constant& constant) {
  const FilterReader reader(snapshot, constant);
  std::vector<FileFilter> parts;
  for (const auto& condition : conditions) parts.push_back(reader.read(*condition));
  return FileFilter::all_of(std::move(parts));
}

}  // namespace strandline::engine
