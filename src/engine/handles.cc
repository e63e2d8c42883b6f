#include "engine/handles.h"

#include <cerrno>

#include "base/error.h"
#include "base/json.h"
#include "delta/commit_times.h"

namespace strandline::engine {
namespace {

std::string type_text(const duck::ResultColumn& column) {
  return column.has_delta_type ? to_sql(column.type) : column.engine_type;
}

// The result, shared by a RowStream and the Arrow stream that it may turn into.
struct OpenResult {
  std::shared_ptr<void> sources;  // outlive the reader
  std::unique_ptr<duck::RowReader> reader;
  std::function<Error(Error)> explain;
  std::string last_error;
  std::optional<Error> failure;
};

// An ArrowArrayStream over a result: its private data is a shared pointer to it.
class Export {
 public:
  static void fill(std::shared_ptr<OpenResult> result, ArrowArrayStream* out) {
    out->get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
      return answer(stream, of(stream).reader->arrow_schema(schema));
    };
    out->get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
      return answer(stream, of(stream).reader->next_array(array));
    };
    out->get_last_error = [](ArrowArrayStream* stream) {
      const std::string& text = of(stream).last_error;
      return text.empty() ? nullptr : text.c_str();
    };
    out->release = [](ArrowArrayStream* stream) {
      delete static_cast<std::shared_ptr<OpenResult>*>(stream->private_data);
      stream->private_data = nullptr;
      stream->release = nullptr;
    };
    out->private_data = new std::shared_ptr<OpenResult>(std::move(result));
  }

 private:
  static OpenResult& of(ArrowArrayStream* stream) {
    return **static_cast<std::shared_ptr<OpenResult>*>(stream->private_data);
  }
  static int answer(ArrowArrayStream* stream, const Status& status) {
    if (status.ok()) return 0;
    const Error error = of(stream).explain(status.error());
    of(stream).last_error = fmt::format("[{}] {}", error.code, error.message);
    of(stream).failure = error;
    switch (error.kind) {
      case ErrorKind::kCancelled:
        return ECANCELED;
      case ErrorKind::kIo:
        return EIO;
      default:
        return EINVAL;
    }
  }
};

class EngineRowStream final : public RowStream {
 public:
  EngineRowStream(std::unique_ptr<duck::RowReader> reader, std::shared_ptr<void> sources,
                  std::function<Error(Error)> explain)
      : result_(std::make_shared<OpenResult>()) {
    result_->sources = std::move(sources);
    result_->explain = std::move(explain);
    result_->reader = std::move(reader);
    for (const auto& column : result_->reader->columns())
      columns_.push_back({column.name, type_text(column)});
  }

  const std::vector<Column>& columns() const override { return columns_; }

  Result<std::optional<std::vector<Value>>> next() override {
    if (handed_over_) return gone();
    auto row = result_->reader->next_row();
    if (!row.ok()) return result_->explain(std::move(row).error());
    return row;
  }

  Status to_arrow(ArrowArrayStream* out) override {
    if (handed_over_) return gone();
    handed_over_ = true;
    Export::fill(result_, out);
    return {};
  }

  std::optional<Error> failure() const override { return result_->failure; }

  void cancel() override { result_->reader->interrupt(); }

 private:
  static Error gone() {
    return invalid_argument("STREAM_HANDED_OVER",
                            "the rows were handed over as an Arrow stream: read them there");
  }

  std::shared_ptr<OpenResult> result_;
  std::vector<Column> columns_;
  bool handed_over_ = false;
};

std::optional<std::string> comment_of(const Field& field) {
  const auto found = field.metadata.find("comment");
  if (found == field.metadata.end()) return std::nullopt;
  const auto json = Json::parse(found->second);
  return json.ok() && json->is_string() ? std::optional(json->text()) : std::nullopt;
}

class EngineTable final : public Table {
 public:
  explicit EngineTable(FoundTable found) : found_(std::move(found)) {}

  const std::string& name() const override { return found_.name; }
  const std::string& path() const override { return found_.table.path(); }
  const std::string& id() const override { return found_.snapshot->metadata.id; }
  int64_t version() const override { return found_.snapshot->version; }

  std::vector<TableField> fields() const override {
    std::vector<TableField> fields;
    for (const Field& field : found_.snapshot->schema.fields)
      fields.push_back({field.name, to_sql(field.type), field.nullable, comment_of(field)});
    return fields;
  }
  std::string schema_text() const override {
    std::string text;
    for (const Field& field : found_.snapshot->schema.fields) {
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ",
                          sql::to_string(sql::TableName{{field.name}, false, {}}),
                          to_sql(field.type), field.nullable ? "" : " NOT NULL");
    }
    return text;
  }
  std::vector<std::string> partition_columns() const override {
    return found_.snapshot->metadata.partition_columns;
  }
  std::map<std::string, std::string> properties() const override {
    return found_.snapshot->metadata.configuration;
  }
  int64_t file_count() const override {
    return static_cast<int64_t>(found_.snapshot->files.size());
  }
  int64_t size_bytes() const override {
    int64_t bytes = 0;
    for (const auto& file : found_.snapshot->files) bytes += file.size_bytes;
    return bytes;
  }
  std::optional<int64_t> row_count() const override {
    return delta::live_row_count(*found_.snapshot);
  }

  Result<std::vector<TableVersion>> history(size_t limit) const override {
    SL_ASSIGN(const auto times, delta::CommitTimes::of_table(found_.table, *found_.snapshot));
    std::vector<TableVersion> versions;
    for (delta::Version version = found_.snapshot->version;
         version >= 0 && (limit == 0 || versions.size() < limit); --version) {
      const auto actions = found_.table.commit(version);
      if (!actions.ok()) {
        if (actions.error().kind == ErrorKind::kNotFound) break;
        return actions.error();
      }
      TableVersion& made = versions.emplace_back();
      made.version = version;
      SL_ASSIGN(made.timestamp_ms, times.of(version, *actions));
      for (const auto& action : *actions) {
        const auto* const info = std::get_if<delta::CommitInfo>(&action);
        if (info == nullptr) continue;
        made.operation = info->operation;
        made.metrics = info->operation_metrics;
      }
    }
    return versions;
  }

  Status refresh() override {
    SL_ASSIGN(found_.snapshot, found_.table.snapshot());
    return {};
  }

 private:
  FoundTable found_;
};

}  // namespace

std::unique_ptr<RowStream> make_row_stream(std::unique_ptr<duck::RowReader> reader,
                                           std::shared_ptr<void> sources,
                                           std::function<Error(Error)> explain) {
  return std::make_unique<EngineRowStream>(std::move(reader), std::move(sources),
                                           std::move(explain));
}

std::unique_ptr<Table> make_table(FoundTable found) {
  return std::make_unique<EngineTable>(std::move(found));
}

}  // namespace strandline::engine
