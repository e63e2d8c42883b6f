#include "delta/parquet_footer.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "delta/snapshot.h"
#include "delta/thrift.h"

namespace strandline::delta {

namespace {

constexpr std::string_view kMagic = "PAR1";           // both ends of a file
constexpr std::string_view kEncryptedMagic = "PARE";  // the end of one with an encrypted footer
constexpr int64_t kTailSize = 8;                      // length of the footer, magic
constexpr int64_t kLeastSize = 12;                    // magic, length of the footer, magic
constexpr int64_t kFirstLook = 8 << 10;               // bytes that hold most footers
constexpr int64_t kSchemaLook = 128 << 10;            // bytes that hold most schemas

Error damaged() { return corrupt("PARQUET_FOOTER_DAMAGED", "is no whole Parquet file"); }

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

namespace {

// Where a footer is, and the end of the file, which holds most footers whole.
struct FooterPlace {
  int64_t start = 0;
  int64_t size_bytes = 0;
  std::string tail;

  std::optional<std::string_view> whole() const {
    const auto needed = static_cast<size_t>(size_bytes + kTailSize);
    if (needed > tail.size()) return std::nullopt;
    return std::string_view(tail).substr(tail.size() - needed, static_cast<size_t>(size_bytes));
  }
};

// nullopt when the footer is encrypted.
Result<std::optional<FooterPlace>> find_footer(storage::Store* store, const std::string& path,
                                               int64_t size_bytes) {
  if (size_bytes < kLeastSize) {
    return corrupt("PARQUET_FOOTER_DAMAGED", "has {} bytes, too few for a Parquet file",
                   size_bytes);
  }
  FooterPlace place;
  const int64_t first_look = std::min(size_bytes, kFirstLook);
  SL_ASSIGN(place.tail, store->read_range(path, size_bytes - first_look, first_look));
  const std::string_view ending =
      std::string_view(place.tail).substr(place.tail.size() - kTailSize);
  if (ending.substr(4) == kEncryptedMagic) return std::optional<FooterPlace>();
  if (ending.substr(4) != kMagic) return damaged();
  for (size_t i = 0; i < 4; ++i) {
    place.size_bytes |= static_cast<int64_t>(static_cast<uint8_t>(ending[i])) << (8 * i);
  }
  if (place.size_bytes > size_bytes - kLeastSize) return damaged();
  place.start = size_bytes - kTailSize - place.size_bytes;
  return std::optional(std::move(place));
}

}  // namespace

Result<std::optional<ParquetFooter>> read_parquet_footer(storage::Store* store,
                                                         const std::string& path,
                                                         int64_t size_bytes) {
  SL_ASSIGN(const auto place, find_footer(store, path, size_bytes));
  if (!place) return std::optional<ParquetFooter>();
  const auto parse = [](std::string_view bytes) -> Result<std::optional<ParquetFooter>> {
    SL_ASSIGN(const ParquetFooter footer, parse_parquet_footer(bytes));
    return std::optional(footer);
  };
  if (const auto whole = place->whole()) return parse(*whole);
  // The schema and the count come first; only a very wide one needs a second look.
  SL_ASSIGN(const std::string head,
            store->read_range(path, place->start, std::min(place->size_bytes, kSchemaLook)));
  auto footer = parse(head);
  if (footer.ok() || place->size_bytes <= kSchemaLook) return footer;
  SL_ASSIGN(const std::string whole, store->read_range(path, place->start, place->size_bytes));
  return parse(whole);
}

Result<std::optional<std::string>> read_parquet_footer_bytes(storage::Store* store,
                                                             const std::string& path,
                                                             int64_t size_bytes) {
  SL_ASSIGN(const auto place, find_footer(store, path, size_bytes));
  if (!place) return std::optional<std::string>();
  if (const auto whole = place->whole()) return std::optional(std::string(*whole));
  SL_ASSIGN(std::string whole, store->read_range(path, place->start, place->size_bytes));
  return std::optional(std::move(whole));
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
