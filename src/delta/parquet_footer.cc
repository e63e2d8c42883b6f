#include "delta/parquet_footer.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "delta/snapshot.h"

namespace strandline::delta {

namespace {

constexpr std::string_view kMagic = "PAR1";           // both ends of a file
constexpr std::string_view kEncryptedMagic = "PARE";  // the end of one with an encrypted footer
constexpr int64_t kTailSize = 8;                      // length of the footer, magic
constexpr int64_t kLeastSize = 12;                    // magic, length of the footer, magic
constexpr int64_t kFirstLook = 8 << 10;               // bytes that hold most footers
constexpr int64_t kSchemaLook = 128 << 10;            // bytes that hold most schemas

Error damaged() { return corrupt("PARQUET_FOOTER_DAMAGED", "is no whole Parquet file"); }

// Thrift's compact protocol, as far as it is needed to get past what is of no interest.
class Thrift {
 public:
  enum Type : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12,
  };

  explicit Thrift(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }

  // The next field of a struct; kStop at its end and after a failure.
  Type field(int64_t* id) {
    const uint8_t head = byte();
    if (failed_ || head == 0) return kStop;
    *id = head >> 4 == 0 ? zigzag() : *id + (head >> 4);
    return failed_ ? kStop : static_cast<Type>(head & 0x0f);
  }
  uint64_t list(Type* element) {
    const uint8_t head = byte();
    *element = static_cast<Type>(head & 0x0f);
    return head >> 4 == 15 ? varint() : static_cast<uint64_t>(head >> 4);
  }
  int64_t zigzag() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  std::string_view text() {
    const uint64_t length = varint();
    const size_t begin = at_;
    jump(length);
    return failed_ ? std::string_view() : bytes_.substr(begin, length);
  }

  void skip(Type type, int depth = 0) {
    constexpr int kMaxDepth = 32;
    if (depth > kMaxDepth) fail();
    if (failed_) return;
    switch (type) {
      case kTrue:
      case kFalse:
        return;  // the value is in the type
      case kByte:
        return jump(1);
      case kI16:
      case kI32:
      case kI64:
        varint();
        return;
      case kDouble:
        return jump(8);
      case kBinary:
        return jump(varint());
      case kList:
      case kSet: {
        Type element = kStop;
        const uint64_t count = list(&element);
        for (uint64_t i = 0; i < count && !failed_; ++i) skip_element(element, depth);
        return;
      }
      case kMap: {
        const uint64_t count = varint();
        if (count == 0) return;
        const uint8_t types = byte();
        for (uint64_t i = 0; i < count && !failed_; ++i) {
          skip_element(static_cast<Type>(types >> 4), depth);
          skip_element(static_cast<Type>(types & 0x0f), depth);
        }
        return;
      }
      case kStruct: {
        int64_t id = 0;
        for (Type next = field(&id); next != kStop; next = field(&id)) skip(next, depth + 1);
        return;
      }
      default:
        return fail();
    }
  }

 private:
  // In a collection a flag has a byte of its own.
  void skip_element(Type type, int depth) {
    if (type == kTrue || type == kFalse) return jump(1);
    skip(type, depth + 1);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      if (failed_) return 0;
      value |= static_cast<uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }
  uint8_t byte() {
    if (at_ >= bytes_.size()) fail();
    return failed_ ? 0 : static_cast<uint8_t>(bytes_[at_++]);
  }
  void jump(uint64_t count) {
    if (failed_ || count > bytes_.size() - at_) return fail();
    at_ += count;
  }
  void fail() { failed_ = true; }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

void take_schema_element(Thrift* in, ParquetFooter* footer) {
  constexpr int64_t kName = 4;
  constexpr int64_t kFieldId = 9;
  int64_t id = 0;
  for (auto type = in->field(&id); type != Thrift::kStop; type = in->field(&id)) {
    footer->has_field_ids = footer->has_field_ids || id == kFieldId;
    if (id == kName && type == Thrift::kBinary) {
      footer->names.emplace_back(in->text());
    } else {
      in->skip(type);
    }
  }
}

}  // namespace

Result<ParquetFooter> parse_parquet_footer(std::string_view bytes) {
  constexpr int64_t kSchema = 2;
  constexpr int64_t kRowCount = 3;
  ParquetFooter footer;
  Thrift in(bytes);
  int64_t id = 0;
  for (auto type = in.field(&id); type != Thrift::kStop; type = in.field(&id)) {
    if (id == kSchema && type == Thrift::kList) {
      Thrift::Type element = Thrift::kStop;
      const uint64_t count = in.list(&element);
      if (element != Thrift::kStruct) return damaged();
      for (uint64_t i = 0; i < count && !in.failed(); ++i) {
        take_schema_element(&in, &footer);
      }
    } else if (id == kRowCount && type == Thrift::kI64) {
      footer.row_count = in.zigzag();
      if (in.failed() || footer.row_count < 0) return damaged();
      return footer;  // what follows is of no interest
    } else {
      in.skip(type);
    }
  }
  return damaged();
}

Result<std::optional<ParquetFooter>> read_parquet_footer(storage::Store* store,
                                                         const std::string& path,
                                                         int64_t size_bytes) {
  if (size_bytes < kLeastSize) {
    return corrupt("PARQUET_FOOTER_DAMAGED", "has {} bytes, too few for a Parquet file",
                   size_bytes);
  }
  const int64_t first_look = std::min(size_bytes, kFirstLook);
  SL_ASSIGN(const std::string tail, store->read_range(path, size_bytes - first_look, first_look));
  const std::string_view ending = std::string_view(tail).substr(tail.size() - kTailSize);
  if (ending.substr(4) == kEncryptedMagic) return std::optional<ParquetFooter>();
  if (ending.substr(4) != kMagic) return damaged();
  int64_t length = 0;
  for (size_t i = 0; i < 4; ++i) {
    length |= static_cast<int64_t>(static_cast<uint8_t>(ending[i])) << (8 * i);
  }
  if (length > size_bytes - kLeastSize) return damaged();
  const auto parse = [](std::string_view bytes) -> Result<std::optional<ParquetFooter>> {
    SL_ASSIGN(const ParquetFooter footer, parse_parquet_footer(bytes));
    return std::optional(footer);
  };
  if (length + kTailSize <= first_look) {
    return parse(std::string_view(tail).substr(
        tail.size() - static_cast<size_t>(kTailSize + length), static_cast<size_t>(length)));
  }
  // The schema and the count come first; only a very wide one needs a second look.
  const int64_t start = size_bytes - kTailSize - length;
  SL_ASSIGN(const std::string head, store->read_range(path, start, std::min(length, kSchemaLook)));
  auto footer = parse(head);
  if (footer.ok() || length <= kSchemaLook) return footer;
  SL_ASSIGN(const std::string whole, store->read_range(path, start, length));
  return parse(whole);
}

Result<std::optional<int64_t>> count_rows(storage::Store* store, const std::string& table_path,
                                          const AddFile& file) {
  if (const std::optional<int64_t> known = num_records(file)) return known;
  SL_ASSIGN(const std::string path, resolve_data_path(table_path, file.path));
  SL_ASSIGN(const storage::FileInfo found, store->stat(path));
  const auto footer = read_parquet_footer(store, path, found.size_bytes);
  if (!footer.ok()) return footer.error().with_context(path);
  return *footer ? std::optional((*footer)->row_count) : std::nullopt;
}

std::string with_row_count(const std::string& stats, int64_t count) {
  const auto json = Json::parse(stats);
  JsonWriter out;
  out.begin_object();
  out.key("numRecords");
  out.value(count);
  if (json.ok() && json->is_object()) {
    for (size_t i = 0; i < json->names().size(); ++i) {
      if (json->names()[i] == "numRecords") continue;
      out.key(json->names()[i]);
      out.raw(json->items()[i].dump());
    }
  }
  out.end_object();
  return out.take();
}

}  // namespace strandline::delta
