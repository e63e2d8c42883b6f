// What a query says about the rows of each table that it reads: conditions that a row must make
// true to take part in the result at all. For leaving out files; the query still filters itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sql/query.h"

namespace strandline::sql {

// Conditions that must all hold, about one relation: columns are unqualified (the first part of a
// ColumnRef is a column of the relation, further parts are fields). A ColumnRef without parts
// stands for a value that is not of this relation or too far away to follow: anything.
using Conditions = std::vector<ExprPtr>;

// Conditions for each table use of the query, by the address of its node; table uses without any
// may be missing. outer: conditions on the query's own rows, by output column.
std::map<const TableUse*, Conditions> table_conditions(const Query& query,
                                                       const Conditions& outer = {});
// The same for the subqueries of an expression outside a query.
std::map<const TableUse*, Conditions> table_conditions(const Expr& expr);

// The operands of an expression's ANDs; the expression alone if it is none.
Conditions conjuncts(const Expr& expr);

// The conjuncts of an expression as conditions on the relation that goes by `qualifier` (an alias,
// or the parts of a table's name); others are the names of relations beside it.
Conditions conditions_on(const Expr& expr, const std::vector<std::string>& qualifier,
                         const std::vector<std::string>& others = {});

// Conditions on a relation with these column names, as conditions on the query behind it, whose
// output columns they name by position; none if the query's columns are not known.
Conditions rename_columns(const Conditions& conditions, const std::vector<std::string>& names,
                          const Query& query);

}  // namespace strandline::sql
