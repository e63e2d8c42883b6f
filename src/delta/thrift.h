// Thrift's compact protocol, in which Parquet's footers are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strandline::delta {

// Reads values one after the other, and gets past what is of no interest. After a failure nothing
// comes any more. The bytes outlive it.
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

}  // namespace strandline::delta
