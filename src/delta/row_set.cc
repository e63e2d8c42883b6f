#include "delta/row_set.h"

#include <roaring/roaring.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace strandline::delta {

namespace {

constexpr uint32_t kMagic = 1681511377;
constexpr const char* kBadBitmap = "DELTA_DELETION_VECTOR_INVALID";

struct FreeBitmap {
  void operator()(roaring_bitmap_t* bitmap) const { roaring_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<roaring_bitmap_t, FreeBitmap>;

// Running out of memory here is no different from failing `new`.
Bitmap checked(roaring_bitmap_t* bitmap) {
  if (bitmap == nullptr) throw std::bad_alloc();
  return Bitmap(bitmap);
}

template <typename T>
void append_little_endian(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) *out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

template <typename T>
bool take_little_endian(std::string_view* bytes, T* value) {
  if (bytes->size() < sizeof(T)) return false;
  *value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    *value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>((*bytes)[i])) << (8 * i));
  }
  bytes->remove_prefix(sizeof(T));
  return true;
}

uint32_t high(uint64_t position) { return static_cast<uint32_t>(position >> 32); }
uint32_t low(uint64_t position) { return static_cast<uint32_t>(position); }

}  // namespace

namespace {

// CRoaring believes the order and the counts that bytes of its portable format claim; searches in a
// bitmap that lies about them would miss rows. Bytes: as many as the bitmap takes.
class BitmapBytes {
 public:
  explicit BitmapBytes(std::string_view bytes) : bytes_(bytes) {}

  bool are_sound() {
    constexpr uint32_t kCookie = 12346;
    constexpr uint16_t kCookieWithRuns = 12347;
    constexpr size_t kLeastWithOffsets = 4;
    uint32_t cookie = 0;
    if (!take(&cookie)) return false;
    const bool has_runs = static_cast<uint16_t>(cookie) == kCookieWithRuns;
    uint32_t count = (cookie >> 16) + 1;
    if (!has_runs && (cookie != kCookie || !take(&count))) return false;
    if (count > kContainerValues) return false;
    std::string_view is_run, heads;
    if (has_runs && !take((size_t{count} + 7) / 8, &is_run)) return false;
    if (!take(size_t{count} * 4, &heads)) return false;
    std::string_view offsets;
    if ((!has_runs || count >= kLeastWithOffsets) && !take(size_t{count} * 4, &offsets))
      return false;
    int previous_key = -1;
    for (size_t i = 0; i < count; ++i) {
      const int key = at16(heads, 2 * i);
      if (key <= previous_key) return false;
      previous_key = key;
      const size_t values = size_t{at16(heads, 2 * i + 1)} + 1;
      const bool runs =
          has_runs && ((static_cast<unsigned char>(is_run[i / 8]) >> (i % 8)) & 1) != 0;
      if (!(runs ? has_sound_runs() : has_sound_container(values))) return false;
    }
    return bytes_.empty();
  }

 private:
  static constexpr uint32_t kContainerValues = 1 << 16;

  static uint16_t at16(std::string_view bytes, size_t index) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[2 * index + i]); };
    return static_cast<uint16_t>(byte(0) | byte(1) << 8);
  }
  bool take(uint32_t* value) { return take_little_endian(&bytes_, value); }
  bool take(size_t size, std::string_view* taken) {
    if (bytes_.size() < size) return false;
    *taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }

  // Stretches of values, each its first one and how many follow.
  bool has_sound_runs() {
    std::string_view head, runs;
    if (!take(2, &head)) return false;
    const size_t count = at16(head, 0);
    if (count == 0 || !take(count * 4, &runs)) return false;
    uint32_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t begin = at16(runs, 2 * i);
      if (begin < next) return false;
      next = begin + at16(runs, 2 * i + 1) + 1;
    }
    return next <= kContainerValues;
  }

  // Few values are listed, many are bits.
  bool has_sound_container(size_t values) {
    constexpr size_t kMaxListed = 4096;
    std::string_view bytes;
    if (values > kMaxListed) {
      if (!take(kContainerValues / 8, &bytes)) return false;
      size_t set = 0;
      for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, sizeof(word));
        set += static_cast<size_t>(std::popcount(word));
      }
      return set == values;
    }
    if (!take(values * 2, &bytes)) return false;
    for (size_t i = 1; i < values; ++i) {
      if (at16(bytes, i) <= at16(bytes, i - 1)) return false;
    }
    return true;
  }

  std::string_view bytes_;
};

}  // namespace

// One 32-bit bitmap for each upper half of positions, ascending and never empty.
struct RowSet::Impl {
  struct Part {
    uint32_t key;
    Bitmap bitmap;
  };
  std::vector<Part> parts;

  const Part* find(uint32_t key) const {
    for (const Part& part : parts) {
      if (part.key == key) return &part;
    }
    return nullptr;
  }

  roaring_bitmap_t* get_or_add(uint32_t key) {
    const auto at =
        std::lower_bound(parts.begin(), parts.end(), key,
                         [](const Part& part, uint32_t wanted) { return part.key < wanted; });
    if (at != parts.end() && at->key == key) return at->bitmap.get();
    return parts.insert(at, Part{key, checked(roaring_bitmap_create())})->bitmap.get();
  }
};

RowSet::RowSet() : impl_(std::make_unique<Impl>()) {}
RowSet::RowSet(const RowSet& other) : RowSet() { *this = other; }
RowSet::RowSet(RowSet&& other) noexcept : impl_(std::move(other.impl_)) {}
RowSet& RowSet::operator=(RowSet&&) noexcept = default;
RowSet::~RowSet() = default;

RowSet& RowSet::operator=(const RowSet& other) {
  if (this == &other) return *this;
  auto copy = std::make_unique<Impl>();
  for (const Impl::Part& part : other.impl_->parts) {
    copy->parts.push_back({part.key, checked(roaring_bitmap_copy(part.bitmap.get()))});
  }
  impl_ = std::move(copy);
  return *this;
}

void RowSet::add(uint64_t position) {
  roaring_bitmap_add(impl_->get_or_add(high(position)), low(position));
}

void RowSet::add_many(const uint64_t* positions, size_t count) {
  std::vector<uint32_t> run;
  run.reserve(std::min<size_t>(count, 4096));
  for (size_t i = 0; i < count;) {
    const uint32_t key = high(positions[i]);
    run.clear();
    while (i < count && high(positions[i]) == key && run.size() < 4096)
      run.push_back(low(positions[i++]));
    roaring_bitmap_add_many(impl_->get_or_add(key), run.size(), run.data());
  }
}

void RowSet::union_with(const RowSet& other) {
  if (this == &other) return;
  for (const Impl::Part& part : other.impl_->parts) {
    roaring_bitmap_or_inplace(impl_->get_or_add(part.key), part.bitmap.get());
  }
}

void RowSet::subtract(const RowSet& other) {
  if (this == &other) {
    impl_->parts.clear();
    return;
  }
  for (Impl::Part& part : impl_->parts) {
    const Impl::Part* const less = other.impl_->find(part.key);
    if (less != nullptr) roaring_bitmap_andnot_inplace(part.bitmap.get(), less->bitmap.get());
  }
  // Written sets have no empty parts.
  std::erase_if(impl_->parts,
                [](const Impl::Part& part) { return roaring_bitmap_is_empty(part.bitmap.get()); });
}

RowSet RowSet::minus(const RowSet& other) const {
  RowSet rest;
  for (const Impl::Part& part : impl_->parts) {
    const Impl::Part* const less = other.impl_->find(part.key);
    Bitmap left =
        checked(less == nullptr ? roaring_bitmap_copy(part.bitmap.get())
                                : roaring_bitmap_andnot(part.bitmap.get(), less->bitmap.get()));
    if (!roaring_bitmap_is_empty(left.get()))
      rest.impl_->parts.push_back({part.key, std::move(left)});
  }
  return rest;
}

bool RowSet::contains(uint64_t position) const {
  const Impl::Part* const part = impl_->find(high(position));
  return part != nullptr && roaring_bitmap_contains(part->bitmap.get(), low(position));
}

uint64_t RowSet::cardinality() const {
  uint64_t count = 0;
  for (const Impl::Part& part : impl_->parts)
    count += roaring_bitmap_get_cardinality(part.bitmap.get());
  return count;
}

std::optional<uint64_t> RowSet::max() const {
  if (impl_->parts.empty()) return std::nullopt;
  const Impl::Part& last = impl_->parts.back();
  return (static_cast<uint64_t>(last.key) << 32) | roaring_bitmap_maximum(last.bitmap.get());
}

void RowSet::for_each(const std::function<void(uint64_t)>& visit) const {
  for (const Impl::Part& part : impl_->parts) {
    const uint64_t upper = static_cast<uint64_t>(part.key) << 32;
    roaring_uint32_iterator_t at;
    roaring_init_iterator(part.bitmap.get(), &at);
    std::array<uint32_t, 1024> values;
    while (const uint32_t count = roaring_read_uint32_iterator(
               &at, values.data(), static_cast<uint32_t>(values.size()))) {
      for (uint32_t i = 0; i < count; ++i) visit(upper | values[i]);
    }
  }
}

std::string RowSet::serialize() const {
  std::string bytes;
  append_little_endian(&bytes, kMagic);
  append_little_endian(&bytes, static_cast<uint64_t>(impl_->parts.size()));
  for (const Impl::Part& part : impl_->parts) {
    const Bitmap compact = checked(roaring_bitmap_copy(part.bitmap.get()));
    roaring_bitmap_run_optimize(compact.get());
    append_little_endian(&bytes, part.key);
    const size_t start = bytes.size();
    bytes.resize(start + roaring_bitmap_portable_size_in_bytes(compact.get()));
    roaring_bitmap_portable_serialize(compact.get(), bytes.data() + start);
  }
  return bytes;
}

Result<RowSet> RowSet::deserialize(std::string_view bytes) {
  uint32_t magic = 0;
  uint64_t count = 0;
  if (!take_little_endian(&bytes, &magic))
    return corrupt(kBadBitmap, "the row bitmap is cut short");
  if (magic != kMagic) {
    return corrupt(kBadBitmap, "the row bitmap starts with {}, not with {}", magic, kMagic);
  }
  if (!take_little_endian(&bytes, &count))
    return corrupt(kBadBitmap, "the row bitmap is cut short");
  // Each part takes at least its key and a roaring header.
  if (count > bytes.size() / 8)
    return corrupt(kBadBitmap, "the row bitmap cannot hold {} parts", count);
  RowSet rows;
  std::optional<uint32_t> previous;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t key = 0;
    if (!take_little_endian(&bytes, &key))
      return corrupt(kBadBitmap, "the row bitmap is cut short");
    if (key > INT32_MAX || (previous && key <= *previous)) {
      return corrupt(kBadBitmap, "the parts of the row bitmap are out of order");
    }
    previous = key;
    const size_t size = roaring_bitmap_portable_deserialize_size(bytes.data(), bytes.size());
    if (size == 0 || size > bytes.size()) return corrupt(kBadBitmap, "the row bitmap is cut short");
    if (!BitmapBytes(bytes.substr(0, size)).are_sound())
      return corrupt(kBadBitmap, "the row bitmap is damaged");
    Bitmap bitmap(roaring_bitmap_portable_deserialize_safe(bytes.data(), bytes.size()));
    if (bitmap == nullptr) return corrupt(kBadBitmap, "the row bitmap is damaged");
    bytes.remove_prefix(size);
    if (!roaring_bitmap_is_empty(bitmap.get()))
      rows.impl_->parts.push_back({key, std::move(bitmap)});
  }
  if (!bytes.empty()) return corrupt(kBadBitmap, "{} bytes follow the row bitmap", bytes.size());
  return rows;
}

}  // namespace strandline::delta
