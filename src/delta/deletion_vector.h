// Deletion vectors on disk and inline (delta-protocol.md section 7).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "delta/actions.h"
#include "delta/row_set.h"
#include "storage/store.h"

namespace strandline::delta {

// Z85 text of bytes, zero-padded to whole groups of four.
std::string z85_encode(std::string_view bytes);
// The first size_bytes bytes. Errors: kCorrupt for another alphabet, length or value.
Result<std::string> z85_decode(std::string_view text, size_t size_bytes);

// CRC-32 with the polynomial of zlib.
uint32_t crc32(std::string_view bytes);

// Absolute path of the file that a vector lies in; empty for inline ones. Errors: kCorrupt,
// kUnsupported.
Result<std::string> deletion_vector_path(const std::string& table_path,
                                         const DeletionVectorDescriptor& descriptor);

// Reads vectors of one table, each file once, while it lives.
class DeletionVectorReader {
 public:
  DeletionVectorReader(storage::Store* store, std::string table_path)
      : store_(store), table_path_(std::move(table_path)) {}

  // Errors: kCorrupt (version, size, checksum, cardinality), kNotFound, kIo, kUnsupported.
  Result<RowSet> read(const DeletionVectorDescriptor& descriptor);

 private:
  storage::Store* store_;
  std::string table_path_;
  std::map<std::string, std::string> files_;  // bytes by path
};

// One file for all vectors of a commit, in their order. rows must not be empty.
struct DeletionVectorFile {
  std::string path;  // absolute, a new name in the table's directory
  std::string bytes;
  std::vector<DeletionVectorDescriptor> descriptors;
};
DeletionVectorFile build_deletion_vector_file(const std::string& table_path,
                                              const std::vector<const RowSet*>& rows);

}  // namespace strandline::delta
