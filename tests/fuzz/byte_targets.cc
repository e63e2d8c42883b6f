// Deletion vectors, Parquet footers and paths.
#include <charconv>
#include <optional>

#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/parquet_footer.h"
#include "delta/snapshot.h"
#include "fuzz/targets.h"
#include "strandline/paths.h"

namespace strandline::fuzz {
namespace {

void check_rows(const delta::RowSet& rows) {
  uint64_t count = 0;
  std::optional<uint64_t> previous;
  if (rows.cardinality() <= 100'000) {
    rows.for_each([&](uint64_t position) {
      expect(!previous || position > *previous, "positions ascend");
      expect(rows.contains(position), "a listed position is contained");
      previous = position;
      ++count;
    });
    expect(count == rows.cardinality(), "there are as many positions as are counted");
    expect(previous == rows.max(), "the last position is the greatest");
  }
  const auto again = delta::RowSet::deserialize(rows.serialize());
  expect(again.ok() && again->cardinality() == rows.cardinality() && again->max() == rows.max(),
         "a row set survives writing");
}

int32_t number(std::string_view* text) {
  int32_t value = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  if (!text->empty() && error == std::errc()) text->remove_prefix(1);
  return value;
}

}  // namespace

// "offset size cardinality storage-type path", a line end, and the file's bytes.
void deletion_vector(std::string_view input) {
  const auto plain = delta::RowSet::deserialize(input);
  if (plain.ok()) check_rows(*plain);

  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return;
  std::string_view line = input.substr(0, end);
  delta::DeletionVectorDescriptor descriptor;
  descriptor.offset = number(&line);
  descriptor.size_bytes = number(&line);
  descriptor.cardinality = number(&line);
  descriptor.storage_type = line.empty() ? 'u' : line[0];
  descriptor.path_or_inline = std::string(line.substr(std::min<size_t>(line.size(), 2)));
  const auto store = storage::make_memory_store();
  expect(store->put("/t/v.bin", std::string(input.substr(end + 1))).ok(), "the store takes a file");
  delta::DeletionVectorReader reader(store.get(), "/t");
  const auto rows = reader.read(descriptor);
  if (!rows.ok()) return;
  check_rows(*rows);
  expect(static_cast<int64_t>(rows->cardinality()) == descriptor.cardinality,
         "a vector has as many rows as its descriptor says");
}

void parquet_footer(std::string_view input) {
  const auto footer = delta::parse_parquet_footer(input);
  if (footer.ok()) expect(footer->row_count >= 0, "a file has no fewer than no rows");
  const auto store = storage::make_memory_store();
  expect(store->put("/t/f", std::string(input)).ok(), "the store takes a file");
  const auto read =
      delta::read_parquet_footer(store.get(), "/t/f", static_cast<int64_t>(input.size()));
  if (read.ok() && *read) expect((*read)->row_count >= 0, "a file has no fewer than no rows");
}

void data_path(std::string_view input) {
  const auto decoded = delta::percent_decode(delta::percent_encode(input));
  const bool has_zero = input.find('\0') != std::string_view::npos;
  expect(decoded.ok() ? *decoded == input : has_zero, "an encoded path decodes to itself");
  const std::string log_path(input);
  expect(!delta::canonical_path("/t", input).empty() || input.empty() || path_scheme(log_path) == "file",
         "a path has a spelling");
  const auto resolved = delta::resolve_data_path("/t", log_path);
  if (!resolved.ok()) return;
  expect(resolved->starts_with('/'), "a data path is absolute");
  expect(resolved->find('\0') == std::string::npos, "a file's name has no byte 0");
  const auto plain = delta::percent_decode(input);
  if (!plain.ok() || *resolved != "/t/" + *plain) return;  // absolute: any place of the disk
  // A relative path stays in the table, however often it goes up.
  int depth = 0;
  for (size_t start = 1; start <= resolved->size();) {
    const size_t end = std::min(resolved->find('/', start), resolved->size());
    const std::string_view part = std::string_view(*resolved).substr(start, end - start);
    depth += part == ".." ? -1 : part.empty() || part == "." ? 0 : 1;
    expect(depth >= 1, "a relative path stays in the table");
    start = end + 1;
  }
}

void canary(std::string_view input) {
  // Percent decoding without a look at the end.
  const std::vector<char> text(input.begin(), input.end());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') expect(text.data()[i + 2] != '\x7f', "no control character is encoded");
  }
}

}  // namespace strandline::fuzz
