// sl_json_fields: the fields of a JSON record as texts that keep every digit, which the engine's
// own reader takes through a double.
#pragma once

#include <duckdb.h>
#include <strandline/result.h>

namespace strandline::duck {

// sl_json_fields(record VARCHAR, shape VARCHAR, mode VARCHAR) -> VARCHAR[]
//
// record: JSON that the engine has found valid. shape: JSON object, the wanted fields' names with
// their shapes: "text", "number" (exponents are written out), {…} for a struct, [shape] for an
// array, ["map", shape] for a map. Names match by fold_name.
// Elements: [1] what is wrong with the record (not an object, a name twice), null when nothing;
// [2] members without a wanted field, as "name":value,…, null when none; then one for each field:
// null when missing or null, the characters of a string, other scalars as written; nested values
// of a nested shape as JSON with all scalars as strings and the shape's names, others as written
// without blanks. mode 'raw' (constant) appends the fields' JSON as written; in mode 'strict' a
// wrong record fails the query with MALFORMED_RECORD and [2] stays null.
Status register_json_fields_function(duckdb_connection connection);

// sl_json_decimals(json VARCHAR, shape VARCHAR) -> VARCHAR
//
// JSON that the engine has found valid, with the numbers where shape has "decimal" as strings of
// the digits that are written, so that the engine's reader keeps them; true, false, objects and
// arrays there become null. shape (constant) as above, with the fields alone that hold decimals;
// names match exactly. All else stays as it is.
Status register_json_decimals_function(duckdb_connection connection);

}  // namespace strandline::duck
