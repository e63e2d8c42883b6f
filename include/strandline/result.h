// Result and Error: how every part of Strandline reports failure.
//
// No exception crosses a folder of this project; duck converts DuckDB's errors and the Python
// binding turns kinds into exceptions. Kinds say what the caller can do, the code is the public
// error name of the documents, the message names the thing, the place and the way out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace strandline {

// What the caller can do about it.
enum class ErrorKind {
  kInvalidArgument,  // the request or pipeline text is wrong: change it
  kInvalidData,      // the data broke a rule: fix or filter the rows
  kNotFound,         // the named thing does not exist
  kAlreadyExists,    // the name is taken
  kUnsupported,      // a named feature that is not built: use what the message offers
  kCorrupt,          // stored bytes contradict the format: restore them
  kConflict,         // another writer won: start again from a new snapshot
  kIo,               // the operating system said no: check disk, rights, space
  kBusy,             // held by another process: wait and retry
  kCancelled,        // the user stopped it
  kInternal,         // our bug
};

// The kind's stable lower-case name, such as "invalid_argument".
const char* to_string(ErrorKind kind);

// A place in a user's file; line and column count from 1, 0 means unknown.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  // Public name, e.g. "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"; never empty once reported.
  std::string code;
  std::string message;
  std::optional<SourcePlace> place;

  // The same error with "context: " before its message.
  Error with_context(const std::string& context) const;
};

// A T or an Error. Test with ok() before value().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace strandline

#define SL_CONCAT_INNER(a, b) a##b
#define SL_CONCAT(a, b) SL_CONCAT_INNER(a, b)

// Returns the error of a Status or Result expression, else goes on.
#define SL_TRY(expr)                                \
  do {                                              \
    if (auto sl_status = (expr); !sl_status.ok()) { \
      return std::move(sl_status).error();          \
    }                                               \
  } while (false)

// SL_ASSIGN(auto x, f()): x gets f()'s value, or the function returns f()'s error.
#define SL_ASSIGN(lhs, expr) SL_ASSIGN_INNER(SL_CONCAT(sl_result_, __LINE__), lhs, expr)
#define SL_ASSIGN_INNER(tmp, lhs, expr)         \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = std::move(tmp).value()
