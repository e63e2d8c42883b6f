// Paths as users write them.
#pragma once

#include <strandline/result.h>

#include <string>

namespace strandline {

// The path on this machine that a text names: a plain one as it is, a file: URI without its scheme
// and its %20 decoded. Everything that takes a path asks here first, so that no address becomes a
// folder called "s3:". Errors: kUnsupported UNSUPPORTED_PATH_SCHEME for other schemes ("s3://b/x",
// "dbfs:/x"); kInvalidArgument INVALID_PATH for a file: URI of another host or with a broken %.
Result<std::string> local_path(const std::string& text);

// "s3" of "s3://bucket/x" and "dbfs" of "dbfs:/x"; empty where a path has no scheme. A colon in a
// plain name ("a:b", "c:/x") makes none.
std::string path_scheme(const std::string& path);

}  // namespace strandline
