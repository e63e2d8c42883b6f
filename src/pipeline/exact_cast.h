// Conversions that keep every digit or say that they cannot, as DuckDB expressions.
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::pipeline {

// How values come out of a file reader.
enum class TextKind {
  kJson,  // texts of sl_json_fields, nested ones as carrier_type says
  kText,  // VARCHAR, as in CSV
};

// DuckDB type in which a JSON value of this type is read: texts, which keep every digit.
std::string carrier_type(const DataType& type);

// Boolean SQL: the value (an expression without side effects, evaluated several times) is not null
// and cannot become `type` exactly.
std::string bad_value(const std::string& value, const DataType& type, TextKind kind);
// SQL that converts a value that is not bad.
std::string good_value(const std::string& value, const DataType& type, TextKind kind);

// The same for typed values (Parquet): conversion between types, checked by converting back.
std::string bad_typed_value(const std::string& value, const DataType& from, const DataType& to);
std::string good_typed_value(const std::string& value, const DataType& from, const DataType& to);

}  // namespace strandline::pipeline
