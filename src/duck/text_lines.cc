#include "duck/text_lines.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "duck/engine.h"
#include "storage/store.h"

namespace strandline::duck {

namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;
// A chunk of the engine ends with the line that comes to this.
constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

template <typename T>
void destroy(void* owned) {
  delete static_cast<T*>(owned);
}

struct Paths {
  std::vector<std::string> all;
};

struct NextFile {
  std::atomic<size_t> index = 0;
};

// One file, from its begin to its end.
class LineReader {
 public:
  LineReader(storage::Store& store, std::string path, int64_t size)
      : store_(store), path_(std::move(path)), size_(size) {}

  const std::string& path() const { return path_; }
  int64_t number() const { return number_; }

  // The next line that is more than blanks, valid until the next call; false at the end.
  Result<bool> next(std::string_view* line) {
    while (true) {
      size_t end = text_.find('\n', searched_);
      while (end == std::string::npos && at_ < size_) {
        searched_ = text_.size();
        SL_TRY(read());
        end = text_.find('\n', searched_);
      }
      if (end == std::string::npos && begin_ == text_.size()) return false;
      const size_t stop = std::min(end, text_.size());
      std::string_view found(text_.data() + begin_, stop - begin_);
      begin_ = searched_ = std::min(stop + 1, text_.size());
      if (++number_ == 1) {
        while (found.starts_with(kByteOrderMark)) found.remove_prefix(kByteOrderMark.size());
      }
      while (found.ends_with('\r')) found.remove_suffix(1);
      if (found.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (!is_utf8(found)) {
        return invalid_data("MALFORMED_RECORD", "file '{}', line {}: is no UTF-8 text", path_,
                            number_);
      }
      *line = found;
      return true;
    }
  }

 private:
  // Goes on with the line that is begun.
  Status read() {
    text_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
    SL_ASSIGN(const std::string piece,
              store_.read_range(path_, at_, std::min(kPieceBytes, size_ - at_)));
    at_ += static_cast<int64_t>(piece.size());
    text_ += piece;
    return {};
  }

  storage::Store& store_;
  const std::string path_;
  const int64_t size_;
  int64_t at_ = 0;       // of the file: what is read so far
  std::string text_;     // of the file, from somewhere on
  size_t begin_ = 0;     // in text_: of the next line
  size_t searched_ = 0;  // in text_: no line ends between begin_ and here
  int64_t number_ = 0;
};

// What one thread has in hand.
struct Reading {
  std::shared_ptr<storage::Store> store = storage::make_local_store();
  std::unique_ptr<LineReader> file;
};

void bind(duckdb_bind_info info) {
  auto paths = std::make_unique<Paths>();
  const Value list(duckdb_bind_get_parameter(info, 0));
  for (idx_t i = 0; i < duckdb_get_list_size(list.get()); ++i) {
    const Value path(duckdb_get_list_child(list.get(), i));
    paths->all.push_back(take_string(duckdb_get_varchar(path.get())));
  }
  const LogicalType text(duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR));
  const LogicalType number(duckdb_create_logical_type(DUCKDB_TYPE_BIGINT));
  duckdb_bind_add_result_column(info, "p", text.get());
  duckdb_bind_add_result_column(info, "n", number.get());
  duckdb_bind_add_result_column(info, "l", text.get());
  duckdb_bind_set_bind_data(info, paths.release(), destroy<Paths>);
}

void begin(duckdb_init_info info) {
  const auto* paths = static_cast<const Paths*>(duckdb_init_get_bind_data(info));
  duckdb_init_set_max_threads(info, std::max<idx_t>(paths->all.size(), 1));
  duckdb_init_set_init_data(info, new NextFile, destroy<NextFile>);
}

void begin_thread(duckdb_init_info info) {
  duckdb_init_set_init_data(info, new Reading, destroy<Reading>);
}

// Fills the chunk; nothing at the end of all files.
Status fill(const Paths& paths, NextFile& next_file, Reading& reading, duckdb_data_chunk chunk) {
  const duckdb_vector path = duckdb_data_chunk_get_vector(chunk, 0);
  auto* numbers =
      static_cast<int64_t*>(duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 1)));
  const duckdb_vector text = duckdb_data_chunk_get_vector(chunk, 2);
  idx_t rows = 0;
  int64_t bytes = 0;
  while (rows < duckdb_vector_size() && bytes < kChunkBytes) {
    if (!reading.file) {
      const size_t index = next_file.index++;
      if (index >= paths.all.size()) break;
      SL_ASSIGN(const auto info, reading.store->stat(paths.all[index]));
      reading.file =
          std::make_unique<LineReader>(*reading.store, paths.all[index], info.size_bytes);
    }
    std::string_view line;
    SL_ASSIGN(const bool found, reading.file->next(&line));
    if (!found) {
      reading.file.reset();
      continue;
    }
    const std::string& name = reading.file->path();
    duckdb_vector_assign_string_element_len(path, rows, name.data(), name.size());
    numbers[rows] = reading.file->number();
    duckdb_vector_assign_string_element_len(text, rows, line.data(), line.size());
    bytes += static_cast<int64_t>(line.size());
    ++rows;
  }
  duckdb_data_chunk_set_size(chunk, rows);
  return {};
}

void read_lines(duckdb_function_info info, duckdb_data_chunk chunk) {
  const auto* paths = static_cast<const Paths*>(duckdb_function_get_bind_data(info));
  auto* next_file = static_cast<NextFile*>(duckdb_function_get_init_data(info));
  auto* reading = static_cast<Reading*>(duckdb_function_get_local_init_data(info));
  const Status done = fill(*paths, *next_file, *reading, chunk);
  if (done.ok()) return;
  duckdb_function_set_error(
      info, fmt::format("[{}] {}", done.error().code, done.error().message).c_str());
}

}  // namespace

Status register_text_lines_function(duckdb_connection connection) {
  const char* name = "sl_text_lines";
  const Handle<duckdb_table_function, duckdb_destroy_table_function> made(
      duckdb_create_table_function());
  const LogicalType text(duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR));
  const LogicalType texts(duckdb_create_list_type(text.get()));
  duckdb_table_function_set_name(made.get(), name);
  duckdb_table_function_add_parameter(made.get(), texts.get());
  duckdb_table_function_set_bind(made.get(), bind);
  duckdb_table_function_set_init(made.get(), begin);
  duckdb_table_function_set_local_init(made.get(), begin_thread);
  duckdb_table_function_set_function(made.get(), read_lines);
  if (duckdb_register_table_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

}  // namespace strandline::duck
