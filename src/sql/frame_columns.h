// Select items of Python's DataFrames that stand for columns which only the FROM clause tells, at
// the time the query runs: a source may have other columns then than when the program was read.
//   __strandline_with('name', value, …)    all columns, those of a name with its value; values of
//                                          names that are not there come last
//   __strandline_set('name', value, …)     the same, but that columns keep the case of their names
//   __strandline_rename('old', 'new', …)   all columns, those named under another name
//   __strandline_drop('name', …)           all columns but those
//   __strandline_names('name', …)          all columns under these names, as many as there are
//   __strandline_each('filled', arg, …)    __strandline_filled(column, arg, …) of each column
// Names that are not there are no mistake but in the last but one, as in PySpark. What a relation
// hides (_metadata, columns that are added on the way) stays as it is.
#pragma once

#include <strandline/result.h>

#include <string>
#include <vector>

#include "sql/query.h"

namespace strandline::sql {

bool is_frame_item(const Expr& expr);
// * or an item of a frame: how many columns it gives is not known from the text.
bool gives_all_columns(const Expr& expr);
// The items that an item of a frame stands for over these columns.
// Errors: AMBIGUOUS_REFERENCE where a column that stays is there twice; NUM_COLUMNS_MISMATCH.
Result<std::vector<SelectItem>> frame_items(const Expr& item,
                                            const std::vector<std::string>& columns);
// What a column of that name is made of; null where the text does not tell.
ExprPtr frame_source(const Expr& item, const std::string& name);

}  // namespace strandline::sql
