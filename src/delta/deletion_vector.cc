#include "delta/deletion_vector.h"

#include <array>

#include "base/error.h"
#include "base/ids.h"
#include "delta/snapshot.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadVector = "DELTA_DELETION_VECTOR_INVALID";
constexpr char kFileVersion = 1;
constexpr size_t kUuidTextLength = 20;
constexpr std::string_view kAlphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

int digit_of(char c) {
  const size_t at = kAlphabet.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

void append_big_endian(std::string* out, uint32_t value, size_t bytes = 4) {
  for (size_t i = bytes; i-- > 0;) *out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = (value << 8) | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

std::string z85_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 3) / 4 * 5);
  for (size_t i = 0; i < bytes.size(); i += 4) {
    std::string group(bytes.substr(i, 4));
    group.resize(4, '\0');
    uint32_t value = big_endian(group);
    std::array<char, 5> digits;
    for (size_t d = 5; d-- > 0;) {
      digits[d] = kAlphabet[value % 85];
      value /= 85;
    }
    text.append(digits.data(), digits.size());
  }
  return text;
}

Result<std::string> z85_decode(std::string_view text, size_t size_bytes) {
  const size_t groups = (size_bytes + 3) / 4;
  if (text.size() != groups * 5) {
    return corrupt(kBadVector, "Z85 text of {} characters cannot hold {} bytes", text.size(),
                   size_bytes);
  }
  std::string bytes;
  bytes.reserve(groups * 4);
  for (size_t i = 0; i < groups; ++i) {
    const std::string_view group = text.substr(i * 5, 5);
    const size_t wanted = std::min<size_t>(4, size_bytes - i * 4);
    uint64_t value = 0;
    for (const char c : group) {
      const int digit = digit_of(c);
      if (digit < 0) return corrupt(kBadVector, "Z85 text holds the character '{}'", c);
      value = value * 85 + static_cast<uint64_t>(digit);
    }
    if (value <= UINT32_MAX) {
      append_big_endian(&bytes, static_cast<uint32_t>(value));
      continue;
    }
    // Some writers print a last group of n bytes as n + 1 digits with '#' before them. As '#' is
    // the highest digit, such a group exceeds 32 bits and cannot be mistaken for a plain one.
    const size_t marks = 4 - wanted;
    uint64_t short_value = 0;
    for (const char c : group.substr(marks))
      short_value = short_value * 85 + static_cast<uint64_t>(digit_of(c));
    const bool is_short = marks > 0 && group.substr(0, marks) == std::string(marks, '#') &&
                          (short_value >> (8 * wanted)) == 0;
    if (!is_short) return corrupt(kBadVector, "Z85 group '{}' exceeds 32 bits", group);
    append_big_endian(&bytes, static_cast<uint32_t>(short_value), wanted);
  }
  bytes.resize(size_bytes);
  return bytes;
}

uint32_t crc32(std::string_view bytes) {
  // kTables[n][b]: what the byte b does, n bytes later. Eight bytes at a time are looked up side by
  // side.
  constexpr size_t kStep = 8;
  static const auto kTables = [] {
    std::array<std::array<uint32_t, 256>, kStep> tables{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0);
      tables[0][i] = value;
    }
    for (size_t n = 1; n < kStep; ++n) {
      for (size_t i = 0; i < 256; ++i) {
        const uint32_t before = tables[n - 1][i];
        tables[n][i] = tables[0][before & 0xFF] ^ (before >> 8);
      }
    }
    return tables;
  }();
  uint32_t crc = 0xFFFFFFFF;
  const auto byte = [&bytes](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    crc ^= byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
    uint32_t next = 0;
    for (size_t i = 0; i < 4; ++i) {
      next ^= kTables[kStep - 1 - i][(crc >> (8 * i)) & 0xFF];
      next ^= kTables[kStep - 5 - i][byte(at + 4 + i)];
    }
    crc = next;
  }
  for (; at < bytes.size(); ++at) crc = kTables[0][(crc ^ byte(at)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

Result<std::string> deletion_vector_path(const std::string& table_path,
                                         const DeletionVectorDescriptor& descriptor) {
  if (descriptor.storage_type == 'i') return std::string();
  if (descriptor.storage_type == 'p')
    return resolve_data_path(table_path, descriptor.path_or_inline);
  const std::string& text = descriptor.path_or_inline;
  if (text.size() < kUuidTextLength)
    return corrupt(kBadVector, "deletion vector '{}' is no UUID", text);
  const size_t prefix_length = text.size() - kUuidTextLength;
  SL_ASSIGN(const std::string bytes, z85_decode(std::string_view(text).substr(prefix_length), 16));
  Uuid uuid;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(uuid.data()));
  const std::string name = "deletion_vector_" + to_string(uuid) + ".bin";
  return prefix_length == 0 ? table_path + "/" + name
                            : table_path + "/" + text.substr(0, prefix_length) + "/" + name;
}

namespace {

// The bitmap bytes at the descriptor's place in the bytes of its file.
Result<std::string_view> find_in_file(std::string_view bytes,
                                      const DeletionVectorDescriptor& descriptor) {
  if (bytes.empty() || bytes[0] != kFileVersion) {
    return corrupt(kBadVector, "not a deletion vector file of version {}",
                   static_cast<int>(kFileVersion));
  }
  const int64_t offset = descriptor.offset.value_or(0);
  const auto available = static_cast<int64_t>(bytes.size()) - 8;
  if (offset < 0 || descriptor.size_bytes < 0 || offset > available ||
      descriptor.size_bytes > available - offset) {
    return corrupt(kBadVector, "{} bytes cannot hold {} at offset {}", bytes.size(),
                   descriptor.size_bytes, offset);
  }
  bytes.remove_prefix(static_cast<size_t>(offset));
  const uint32_t stored_size = big_endian(bytes);
  if (stored_size != descriptor.size_bytes) {
    return corrupt(kBadVector, "size {} at offset {}, but the log says {}", stored_size, offset,
                   descriptor.size_bytes);
  }
  const auto size = static_cast<size_t>(descriptor.size_bytes);
  const std::string_view bitmap = bytes.substr(4, size);
  if (crc32(bitmap) != big_endian(bytes.substr(4 + size))) {
    return corrupt(kBadVector, "wrong checksum at offset {}", offset);
  }
  return bitmap;
}

}  // namespace

Result<RowSet> DeletionVectorReader::read(const DeletionVectorDescriptor& descriptor) {
  std::string inline_bytes;
  std::string_view bitmap;
  std::string where = "inline deletion vector";
  switch (descriptor.storage_type) {
    case 'i': {
      if (descriptor.size_bytes < 0 || descriptor.size_bytes > INT32_MAX) {
        return corrupt(kBadVector, "an inline deletion vector has the size {}",
                       descriptor.size_bytes);
      }
      SL_ASSIGN(inline_bytes,
                z85_decode(descriptor.path_or_inline, static_cast<size_t>(descriptor.size_bytes)));
      bitmap = inline_bytes;
      break;
    }
    case 'u':
    case 'p': {
      SL_ASSIGN(where, deletion_vector_path(table_path_, descriptor));
      auto file = files_.find(where);
      if (file == files_.end()) {
        SL_ASSIGN(std::string bytes, store_->read(where));
        file = files_.emplace(where, std::move(bytes)).first;
      }
      auto found = find_in_file(file->second, descriptor);
      if (!found.ok()) return found.error().with_context(where);
      bitmap = *found;
      break;
    }
    default:
      return unsupported(
          "DELTA_UNSUPPORTED_DELETION_VECTOR",
          "table {} has a deletion vector of storage type '{}'; u, p and i are known", table_path_,
          descriptor.storage_type);
  }
  auto rows = RowSet::deserialize(bitmap);
  if (!rows.ok()) return rows.error().with_context(where);
  if (static_cast<int64_t>(rows->cardinality()) != descriptor.cardinality) {
    return corrupt("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", "{}: {} rows, but the log says {}",
                   where, rows->cardinality(), descriptor.cardinality);
  }
  return rows;
}

DeletionVectorFile build_deletion_vector_file(const std::string& table_path,
                                              const std::vector<const RowSet*>& rows) {
  const Uuid uuid = random_uuid();
  DeletionVectorFile file;
  file.path = table_path + "/deletion_vector_" + to_string(uuid) + ".bin";
  file.bytes = std::string(1, kFileVersion);
  const std::string name =
      z85_encode(std::string_view(reinterpret_cast<const char*>(uuid.data()), uuid.size()));
  for (const RowSet* const set : rows) {
    const std::string bitmap = set->serialize();
    DeletionVectorDescriptor descriptor;
    descriptor.storage_type = 'u';
    descriptor.path_or_inline = name;
    descriptor.offset = static_cast<int64_t>(file.bytes.size());
    descriptor.size_bytes = static_cast<int64_t>(bitmap.size());
    descriptor.cardinality = static_cast<int64_t>(set->cardinality());
    file.descriptors.push_back(std::move(descriptor));
    append_big_endian(&file.bytes, static_cast<uint32_t>(bitmap.size()));
    file.bytes += bitmap;
    append_big_endian(&file.bytes, crc32(bitmap));
  }
  return file;
}

}  // namespace strandline::delta
