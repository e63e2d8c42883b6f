// Names of Spark SQL as text. Private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strandline::sql {

// Words that continue a clause, and so are no column, table or alias without backquotes.
bool is_clause_word(std::string_view upper);
// The name as Spark text, in backquotes unless it is a plain word.
std::string spark_name(const std::string& name);
std::string spark_names(const std::vector<std::string>& parts);
// 'text' with Spark's escapes.
std::string spark_string(const std::string& text);
// "name" and 'text' as DuckDB text.
std::string duckdb_name(const std::string& name);
std::string duckdb_string(const std::string& text);

std::string lower_ascii(std::string text);
std::string upper_ascii(std::string text);

}  // namespace strandline::sql
