#include "arrow.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <vector>

namespace nb = nanobind;

namespace strandline::python {
namespace {

constexpr const char* kStreamName = "arrow_array_stream";

void destroy_stream(PyObject* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStreamName));
  if (stream == nullptr) return;
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

template <typename T>
T number_at(const ArrowArray& array, size_t buffer, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const T*>(array.buffers[buffer]) + i, sizeof(T));
  return value;
}

bool bit_at(const void* bits, int64_t i) {
  return ((static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8)) & 1) != 0;
}

// Python values of one column. Made once for each batch.
class Reader {
 public:
  Reader(const ArrowSchema& schema, const ArrowArray& array)
      : schema_(schema), array_(array), format_(schema.format) {
    if (format_ == "+s" || format_ == "+l" || format_ == "+L" || format_ == "+m") {
      for (int64_t i = 0; i < array.n_children; ++i)
        children_.emplace_back(*schema.children[i], *array.children[i]);
    }
    if (format_[0] == 't' || format_[0] == 'd') types_ = nb::module_::import_("strandline._values");
  }

  // row counts within the array, without its offset.
  nb::object at(int64_t row) const {
    const int64_t i = row + array_.offset;
    if (format_ == "n") return nb::none();
    if (array_.n_buffers > 0 && array_.buffers[0] != nullptr && !bit_at(array_.buffers[0], i))
      return nb::none();
    if (format_.size() == 1) return plain(i);
    if (format_ == "+s") return fields(row + array_.offset);
    if (format_ == "+l") return items<int32_t>(i, false);
    if (format_ == "+L") return items<int64_t>(i, false);
    if (format_ == "+m") return items<int32_t>(i, true);
    if (format_[0] == 'd') return decimal(i);
    if (format_[0] == 't') return time(i);
    unknown();
  }

 private:
  [[noreturn]] void unknown() const {
    throw nb::value_error(
        ("column type " + format_ + " has no Python value here: read the result with arrow()")
            .c_str());
  }

  nb::object plain(int64_t i) const {
    switch (format_[0]) {
      case 'b':
        return nb::bool_(bit_at(array_.buffers[1], i));
      case 'c':
        return nb::int_(static_cast<int>(number_at<int8_t>(array_, 1, i)));
      case 'C':
        return nb::int_(static_cast<int>(number_at<uint8_t>(array_, 1, i)));
      case 's':
        return nb::int_(static_cast<int>(number_at<int16_t>(array_, 1, i)));
      case 'S':
        return nb::int_(static_cast<int>(number_at<uint16_t>(array_, 1, i)));
      case 'i':
        return nb::int_(number_at<int32_t>(array_, 1, i));
      case 'I':
        return nb::int_(number_at<uint32_t>(array_, 1, i));
      case 'l':
        return nb::int_(number_at<int64_t>(array_, 1, i));
      case 'L':
        return nb::int_(number_at<uint64_t>(array_, 1, i));
      case 'f':
        return nb::float_(static_cast<double>(number_at<float>(array_, 1, i)));
      case 'g':
        return nb::float_(number_at<double>(array_, 1, i));
      case 'u':
        return text<int32_t>(i);
      case 'U':
        return text<int64_t>(i);
      case 'z':
        return bytes<int32_t>(i);
      case 'Z':
        return bytes<int64_t>(i);
      default:
        unknown();
    }
  }

  template <typename Offset>
  std::pair<const char*, size_t> piece(int64_t i) const {
    const auto begin = number_at<Offset>(array_, 1, i);
    const auto end = number_at<Offset>(array_, 1, i + 1);
    return {static_cast<const char*>(array_.buffers[2]) + begin, static_cast<size_t>(end - begin)};
  }
  template <typename Offset>
  nb::object text(int64_t i) const {
    const auto [data, size] = piece<Offset>(i);
    PyObject* made = PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(size), nullptr);
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  }
  template <typename Offset>
  nb::object bytes(int64_t i) const {
    const auto [data, size] = piece<Offset>(i);
    return nb::bytes(data, size);
  }

  nb::object fields(int64_t i) const {
    nb::dict out;
    for (size_t k = 0; k < children_.size(); ++k) {
      // A child of a struct is read at the struct's place.
      out[schema_.children[k]->name] = children_[k].at(i);
    }
    return out;
  }

  template <typename Offset>
  nb::object items(int64_t i, bool is_map) const {
    const auto begin = number_at<Offset>(array_, 1, i);
    const auto end = number_at<Offset>(array_, 1, i + 1);
    if (!is_map) {
      nb::list out;
      for (Offset k = begin; k < end; ++k) out.append(children_[0].at(k));
      return out;
    }
    nb::dict out;
    for (Offset k = begin; k < end; ++k) {
      const int64_t entry = k + children_[0].array_.offset;
      const nb::object key = children_[0].children_[0].at(entry);
      if (PyObject_Hash(key.ptr()) == -1) {
        PyErr_Clear();
        throw nb::value_error("a map has keys that no Python dict takes: use arrow()");
      }
      out[key] = children_[0].children_[1].at(entry);
    }
    return out;
  }

  // d:precision,scale[,bits]; 128 bits when not said.
  nb::object decimal(int64_t i) const {
    const size_t comma = format_.find(',');
    if (comma == std::string::npos) unknown();
    const size_t second = format_.find(',', comma + 1);
    const size_t bytes =
        second == std::string::npos ? 16 : std::stoul(format_.substr(second + 1)) / 8;
    const auto* data = static_cast<const char*>(array_.buffers[1]) + static_cast<size_t>(i) * bytes;
    return types_.attr("decimal")(nb::bytes(data, bytes), std::stoi(format_.substr(comma + 1)));
  }

  nb::object time(int64_t i) const {
    if (format_ == "tdD")
      return types_.attr("date")(static_cast<int64_t>(number_at<int32_t>(array_, 1, i)));
    if (format_.rfind("tsu:", 0) == 0)
      return types_.attr("timestamp")(number_at<int64_t>(array_, 1, i), format_.size() > 4);
    if (format_ == "ttu") return types_.attr("time")(number_at<int64_t>(array_, 1, i));
    unknown();
  }

  const ArrowSchema& schema_;
  const ArrowArray& array_;
  std::string format_;
  std::vector<Reader> children_;
  nb::object types_;
};

}  // namespace

nb::object stream_capsule(std::unique_ptr<ArrowArrayStream> stream) {
  PyObject* capsule = PyCapsule_New(stream.get(), kStreamName, destroy_stream);
  if (capsule == nullptr) throw nb::python_error();
  (void)stream.release();
  return nb::steal(capsule);
}

ArrowArrayStream* stream_of(nb::handle object, nb::object* capsule) {
  if (!nb::hasattr(object, "__arrow_c_stream__")) {
    throw nb::type_error(
        "rows must have __arrow_c_stream__, as results of sql(), pyarrow tables and readers, "
        "pandas and polars frames and DuckDB relations have");
  }
  *capsule = object.attr("__arrow_c_stream__")();
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule->ptr(), kStreamName));
  if (stream == nullptr) throw nb::python_error();
  return stream;
}

void append_rows(const ArrowSchema& schema, const ArrowArray& array, nb::list rows) {
  std::vector<Reader> columns;
  for (int64_t k = 0; k < array.n_children; ++k)
    columns.emplace_back(*schema.children[k], *array.children[k]);
  for (int64_t row = 0; row < array.length; ++row) {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(columns.size())));
    for (size_t k = 0; k < columns.size(); ++k) {
      nb::object value = columns[k].at(row + array.offset);
      PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(k), value.release().ptr());
    }
    rows.append(tuple);
  }
}

}  // namespace strandline::python
