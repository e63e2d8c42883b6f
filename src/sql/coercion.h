// The types that values become where several meet, as Spark's ANSI mode has them: the one place for
// such facts. The printer casts where the engine would do otherwise.
#pragma once

#include <optional>

#include "base/data_type.h"
#include "sql/expr.h"

namespace strandline::sql {

bool is_integer(TypeId type);
bool is_floating(TypeId type);
// A whole number, a decimal or a floating-point number.
bool is_number(TypeId type);

// Digits of a decimal, or of what becomes one beside a decimal.
struct DecimalShape {
  int precision = 0;
  int scale = 0;
};
// Of a decimal or whole number of that type; constants have the digits they are written with.
DecimalShape decimal_shape(const Expr& expr, const DataType& type);

// Whether a STRING becomes what it stands with (a BIGINT beside whole numbers, a DOUBLE beside
// others). The columns of VALUES and the arguments of greatest and least have one type without it.
enum class Texts { kBecomeOthers, kStayTexts };

// The type that holds values of both: of CASE, coalesce, arrays, IN, comparisons, UNION. A FLOAT
// beside a whole number or a decimal is a DOUBLE. Nothing where there is none, as for a BOOLEAN and
// an INT. Structs have their fields in the same order.
std::optional<DataType> common_type(const DataType& a, const DataType& b,
                                    Texts texts = Texts::kBecomeOthers);

// What + - * % of numbers give; VOID for what are none. Decimals: 38 digits at most, of which six
// after the point are kept at least where there are so many.
DataType arithmetic_type(BinaryOp op, const Expr& left, const DataType& left_type,
                         const Expr& right, const DataType& right_type);

// The results of sum and avg of numbers; VOID for what are none.
DataType sum_type(const DataType& type);
DataType average_type(const DataType& type);

}  // namespace strandline::sql
