// sl_text_lines: the lines of text files, a few at a time, whatever the size of the file.
#pragma once

#include <duckdb.h>
#include <strandline/result.h>

namespace strandline::duck {

// sl_text_lines(paths VARCHAR[]) -> TABLE(p VARCHAR, n BIGINT, l VARCHAR)
//
// p: the file's path as given; n: the line's number from 1; l: the line without its end, which is a
// line feed with or without carriage returns before it. Lines of blanks alone are left out, a byte
// order mark at the beginning of a file too. Lines of a file come in their order, files at the same
// time. Local, uncompressed files. A line that is no UTF-8 fails the query with MALFORMED_RECORD, a
// file that cannot be read with the store's message.
Status register_text_lines_function(duckdb_connection connection);

}  // namespace strandline::duck
