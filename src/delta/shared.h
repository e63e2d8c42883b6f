// Values that copies share, for the fields of file actions: a table may have millions of files,
// which say the same about their partition, and a snapshot shares its files' statistics with the
// next one.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace strandline::delta {

// Like an optional<const T> in the space of a pointer: a value can be replaced, not changed.
// Different objects that share a value may be used by different threads.
template <typename T>
class Shared {
 public:
  Shared() = default;
  Shared(std::nullopt_t) {}
  template <typename U>
    requires(!std::is_same_v<std::remove_cvref_t<U>, Shared> &&
             !std::is_same_v<std::remove_cvref_t<U>, std::optional<T>> &&
             std::is_convertible_v<U &&, T>)
  Shared(U&& value) : block_(new Block{1, T(std::forward<U>(value))}) {}
  Shared(std::optional<T> value) : block_(value ? new Block{1, *std::move(value)} : nullptr) {}
  Shared(const Shared& other) : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Shared() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete block_;
  }

  bool has_value() const { return block_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // Undefined without a value.
  const T& operator*() const { return block_->value; }
  const T* operator->() const { return &block_->value; }
  // Throws without a value, as an optional does.
  const T& value() const {
    if (block_ == nullptr) throw std::bad_optional_access();
    return block_->value;
  }
  template <typename U>
  T value_or(U&& fallback) const {
    return has_value() ? **this : static_cast<T>(std::forward<U>(fallback));
  }
  void reset() { *this = Shared(); }

  // The value to change, for the only owner; nullptr if there is none or it is shared.
  T* unshared() {
    return block_ != nullptr && block_->owners.load(std::memory_order_acquire) == 1 ? &block_->value
                                                                                    : nullptr;
  }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.block_ == b.block_ || (a && b && *a == *b);
  }
  friend bool operator==(const Shared& a, std::nullopt_t) { return !a.has_value(); }
  template <typename U>
    requires(!std::is_same_v<U, Shared> && !std::is_same_v<U, std::nullopt_t>)
  friend bool operator==(const Shared& a, const U& b) {
    return a.has_value() && *a == b;
  }

 private:
  struct Block {
    std::atomic<uint32_t> owners;
    T value;
  };

  Block* block_ = nullptr;
};

// A map by name that is copied when one of several owners changes it. Reading is as with std::map;
// a mutating call invalidates iterators and references.
template <typename V>
class SharedMap {
 public:
  using Map = std::map<std::string, V>;
  using key_type = std::string;
  using mapped_type = V;
  using value_type = typename Map::value_type;
  using size_type = typename Map::size_type;
  using const_iterator = typename Map::const_iterator;
  using iterator = const_iterator;
  using const_reference = const value_type&;
  using reference = const_reference;

  SharedMap() = default;
  SharedMap(Map map) {
    if (!map.empty()) map_ = std::move(map);
  }
  SharedMap(std::initializer_list<value_type> values) : SharedMap(Map(values)) {}

  operator const Map&() const { return get(); }
  const Map& get() const {
    static const Map kEmpty;
    return map_ ? *map_ : kEmpty;
  }
  const_iterator begin() const { return get().begin(); }
  const_iterator end() const { return get().end(); }
  bool empty() const { return get().empty(); }
  size_type size() const { return get().size(); }
  size_type count(const std::string& key) const { return get().count(key); }
  bool contains(const std::string& key) const { return get().contains(key); }
  const_iterator find(const std::string& key) const { return get().find(key); }
  const V& at(const std::string& key) const { return get().at(key); }

  V& operator[](const std::string& key) { return own()[key]; }
  template <typename... Args>
  bool emplace(Args&&... args) {
    return own().emplace(std::forward<Args>(args)...).second;
  }
  size_type erase(const std::string& key) { return contains(key) ? own().erase(key) : 0; }
  void clear() { map_.reset(); }

  friend bool operator==(const SharedMap& a, const SharedMap& b) { return a.get() == b.get(); }
  friend bool operator==(const SharedMap& a, const Map& b) { return a.get() == b; }

 private:
  Map& own() {
    if (map_.unshared() == nullptr) map_ = Map(get());
    return *map_.unshared();
  }

  Shared<Map> map_;
};

}  // namespace strandline::delta
