// The extension module strandline._core: the C++ library as Python objects, one to one. What users
// see is made of these in strandline/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <strandline/changes.h>
#include <strandline/jdbc.h>
#include <strandline/paths.h>
#include <strandline/strandline.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <tuple>

#include "arrow.h"
#include "errors.h"
#include "wait.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace strandline::python {
namespace {

// The thread that imported this module; Python delivers signals to its main thread.
std::thread::id main_thread;

// Rows that are read once: as Python tuples, or handed over as an Arrow stream.
class PyRows {
 public:
  explicit PyRows(std::unique_ptr<RowStream> rows) : rows_(std::move(rows)) {}
  ~PyRows() {
    if (stream_.release != nullptr) stream_.release(&stream_);
  }
  PyRows(const PyRows&) = delete;
  PyRows& operator=(const PyRows&) = delete;

  std::vector<std::pair<std::string, std::string>> columns() const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& column : rows_->columns()) out.emplace_back(column.name, column.type);
    return out;
  }

  // The next batch as tuples; an empty list after the last.
  nb::list next_batch() {
    if (stream_.release == nullptr) {
      check(rows_->to_arrow(&stream_));
      pull([this] { return stream_.get_schema(&stream_, &schema_); });
    }
    nb::list out;
    Owned<ArrowArray> array;
    pull([&] { return stream_.get_next(&stream_, &array); });
    if (array.release != nullptr) append_rows(schema_, array, out);
    return out;
  }

  nb::object capsule() {
    auto stream = std::make_unique<ArrowArrayStream>();
    check(rows_->to_arrow(stream.get()));
    auto* handed = new Handed{*stream, rows_, interrupted_};
    *stream = {&Handed::get_schema, &Handed::get_next, &Handed::last_error, &Handed::release,
               handed};
    return stream_capsule(std::move(stream));
  }

  // Raises what stopped the stream that capsule() gave; does nothing if nothing did.
  void raise_failure() const {
    if (*interrupted_) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw nb::python_error();
    }
    if (const auto failure = rows_->failure()) raise(*failure);
  }

  void cancel() { rows_->cancel(); }

 private:
  // A stream whose consumer can be stopped by Ctrl-C, which only the main thread sees. Others do
  // not touch the GIL here: whoever waits for them may hold it.
  struct Handed {
    ArrowArrayStream inner;
    std::shared_ptr<RowStream> rows;
    std::shared_ptr<std::atomic<bool>> interrupted;

    static Handed& of(ArrowArrayStream* stream) {
      return *static_cast<Handed*>(stream->private_data);
    }
    static int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
      return of(stream).inner.get_schema(&of(stream).inner, out);
    }
    static int get_next(ArrowArrayStream* stream, ArrowArray* out) {
      Handed& self = of(stream);
      const auto next = [&] { return self.inner.get_next(&self.inner, out); };
      if (std::this_thread::get_id() != main_thread) return next();
      const nb::gil_scoped_acquire acquire;
      try {
        return wait_for(next, [&] { self.rows->cancel(); });
      } catch (const nb::python_error&) {
        *self.interrupted = true;  // raised again by raise_failure()
        return ECANCELED;
      }
    }
    static const char* last_error(ArrowArrayStream* stream) {
      return of(stream).inner.get_last_error(&of(stream).inner);
    }
    static void release(ArrowArrayStream* stream) {
      Handed* self = &of(stream);
      self->inner.release(&self->inner);
      stream->release = nullptr;
      delete self;
    }
  };

  template <typename Work>
  void pull(Work&& work) {
    const int code = wait_for(work, [this] { rows_->cancel(); });
    if (code == 0) return;
    raise_failure();
    const char* text = stream_.get_last_error(&stream_);
    raise({ErrorKind::kInternal, "INTERNAL_ERROR", text != nullptr ? text : "no reason given", {}});
  }

  std::shared_ptr<RowStream> rows_;
  ArrowArrayStream stream_{};
  Owned<ArrowSchema> schema_;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
};

class PySession {
  template <typename Work>
  auto waited(Work&& work) {
    return check(wait_for(std::forward<Work>(work), [this] { session_->cancel(); }));
  }

 public:
  explicit PySession(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  // (rows or None, whether the text can be asked for its rows again)
  nb::tuple answer(const std::string& sql) {
    auto answer = waited([&] { return session_->answer(sql); });
    nb::object rows = nb::none();
    if (answer.rows)
      rows = nb::cast(new PyRows(std::move(answer.rows)), nb::rv_policy::take_ownership);
    return nb::make_tuple(rows, answer.repeatable);
  }
  PyRows* query(const std::string& sql) {
    return new PyRows(waited([&] { return session_->query(sql); }));
  }
  std::unique_ptr<Table> table(const std::string& name) {
    return waited([&] { return session_->table(name); });
  }
  void register_stream(const std::string& name, nb::handle rows) {
    nb::object capsule;
    ArrowArrayStream* stream = stream_of(rows, &capsule);
    check(wait_for([&] { return session_->register_stream(name, stream); },
                   [this] { session_->cancel(); }));
  }
  void write(const std::string& table, nb::handle rows, bool overwrite) {
    nb::object capsule;
    ArrowArrayStream* stream = stream_of(rows, &capsule);
    const WriteMode mode = overwrite ? WriteMode::kOverwrite : WriteMode::kAppend;
    check(wait_for([&] { return session_->write(table, stream, mode); },
                   [this] { session_->cancel(); }));
  }
  void cancel() { session_->cancel(); }

 private:
  std::unique_ptr<Session> session_;
};

SessionOptions session_options(const std::string& warehouse, const std::string& catalog,
                               const std::string& schema, const std::string& directory,
                               int64_t memory_limit_bytes, int threads) {
  SessionOptions options;
  options.warehouse = warehouse;
  options.catalog = catalog;
  options.schema = schema;
  options.directory = directory;
  options.engine = {memory_limit_bytes, threads};
  return options;
}

PySession* open_session(const std::string& warehouse, const std::string& catalog,
                        const std::string& schema, const std::string& directory,
                        int64_t memory_limit_bytes, int threads) {
  const auto options =
      session_options(warehouse, catalog, schema, directory, memory_limit_bytes, threads);
  return new PySession(check(wait_for([&] { return Session::open(options); }, [] {})));
}

std::unique_ptr<ChangeReader> open_changes(const std::string& warehouse, const std::string& catalog,
                                           const std::string& schema, const std::string& directory,
                                           int64_t memory_limit_bytes, int threads,
                                           const std::string& table,
                                           const std::optional<std::string>& from,
                                           const std::string& checkpoint, int64_t max_files) {
  const auto session =
      session_options(warehouse, catalog, schema, directory, memory_limit_bytes, threads);
  const ChangeReaderOptions options{table, from, checkpoint, max_files};
  return check(wait_for([&] { return ChangeReader::open(session, options); }, [] {}));
}

const char* to_text(Progress::Kind kind) {
  switch (kind) {
    case Progress::Kind::kUpdateStarted:
      return "update_started";
    case Progress::Kind::kFlowStarted:
      return "flow_started";
    case Progress::Kind::kStage:
      return "stage";
    case Progress::Kind::kRows:
      return "rows";
    case Progress::Kind::kFlowDone:
      return "flow_done";
    case Progress::Kind::kUpdateDone:
      return "update_done";
  }
  return "";
}

nb::list exceptions(const std::vector<Error>& errors) {
  nb::list out;
  for (const auto& error : errors) out.append(exception_of(error));
  return out;
}

// The report as plain values; strandline/_pipeline.py makes objects of them.
nb::dict report_of(const UpdateReport& report) {
  nb::dict out;
  out["update_id"] = report.update_id;
  out["status"] = to_string(report.status);
  nb::list flows;
  for (const auto& flow : report.flows) {
    nb::dict one;
    one["name"] = flow.name;
    one["target"] = flow.target;
    one["status"] = flow.status;
    one["metrics"] = flow.metrics;
    one["dropped_records"] = flow.dropped_records;
    nb::list expectations;
    for (const auto& expectation : flow.expectations) {
      expectations.append(nb::make_tuple(expectation.name, expectation.dataset,
                                         expectation.passed_records, expectation.failed_records,
                                         expectation.dropped_records));
    }
    one["expectations"] = expectations;
    flows.append(one);
  }
  out["flows"] = flows;
  out["errors"] = exceptions(report.errors);
  out["warnings"] = exceptions(report.warnings);
  out["graph"] = report.graph;
  return out;
}

nb::dict run(const std::string& pipeline, const std::optional<std::string>& warehouse,
             const std::string& refresh, const std::vector<std::string>& tables,
             bool allow_missing_sources, bool dry_run, int64_t memory_limit_bytes, int threads,
             const std::optional<nb::callable>& listener) {
  RunOptions options;
  options.pipeline = pipeline;
  options.warehouse = warehouse;
  options.refresh = refresh == "selected"        ? RefreshKind::kSelected
                    : refresh == "full_selected" ? RefreshKind::kFullSelected
                    : refresh == "full_all"      ? RefreshKind::kFullAll
                                                 : RefreshKind::kUpdate;
  options.tables = tables;
  options.allow_missing_sources = allow_missing_sources;
  options.dry_run = dry_run;
  options.engine = {memory_limit_bytes, threads};
  std::atomic<bool> cancel{false};
  std::exception_ptr of_listener;
  ProgressListener tell;
  if (listener) {
    tell = [&](const Progress& progress) {
      const nb::gil_scoped_acquire acquire;
      if (of_listener) return;
      try {
        (*listener)(to_text(progress.kind), progress.flow, progress.stage, progress.rows,
                    progress.elapsed_seconds, progress.fraction);
      } catch (nb::python_error&) {
        of_listener = std::current_exception();
        cancel = true;
      }
    };
  }
  const UpdateReport report =
      wait_for([&] { return run_update(options, tell, &cancel); }, [&] { cancel = true; });
  if (of_listener) std::rethrow_exception(of_listener);
  return report_of(report);
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("__version__") = version();
  main_thread = std::this_thread::get_id();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    // What threads hold that still run is not lost.
    if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) > 1)
      nb::set_leak_warnings(false);
    RunningCalls::all().end();
  }));

  nb::class_<PyRows>(m, "Rows")
      .def_prop_ro("columns", &PyRows::columns)
      .def("next_batch", &PyRows::next_batch)
      .def("capsule", &PyRows::capsule)
      .def("raise_failure", &PyRows::raise_failure)
      .def("cancel", &PyRows::cancel);

  nb::class_<Table>(m, "Table")
      .def_prop_ro("name", &Table::name)
      .def_prop_ro("path", &Table::path)
      .def_prop_ro("id", &Table::id)
      .def_prop_ro("version", &Table::version)
      .def_prop_ro(
          "fields",
          [](const Table& table) {
            nb::list out;
            for (const auto& field : table.fields())
              out.append(nb::make_tuple(field.name, field.type, field.nullable, field.comment));
            return out;
          })
      .def_prop_ro("schema_text", &Table::schema_text)
      .def_prop_ro("partition_columns", &Table::partition_columns)
      .def_prop_ro("properties", &Table::properties)
      .def_prop_ro("file_count", &Table::file_count)
      .def_prop_ro("size_bytes", &Table::size_bytes)
      .def_prop_ro("row_count", &Table::row_count)
      .def("history",
           [](const Table& table, size_t limit) {
             const auto versions = check(wait_for([&] { return table.history(limit); }, [] {}));
             nb::list out;
             for (const auto& version : versions) {
               out.append(nb::make_tuple(version.version, version.timestamp_ms, version.operation,
                                         version.metrics));
             }
             return out;
           })
      .def("refresh",
           [](Table& table) { check(wait_for([&] { return table.refresh(); }, [] {})); });

  nb::class_<PySession>(m, "Session")
      .def("answer", &PySession::answer)
      .def("query", &PySession::query, nb::rv_policy::take_ownership)
      .def("table", &PySession::table)
      .def("register_stream", &PySession::register_stream)
      .def("write", &PySession::write)
      .def("cancel", &PySession::cancel);

  nb::class_<ChangeReader>(m, "ChangeReader")
      .def("next",
           [](ChangeReader& reader) -> nb::object {
             auto rows = check(wait_for([&] { return reader.next(); }, [] {}));
             if (!rows) return nb::none();
             return nb::cast(new PyRows(std::move(rows)), nb::rv_policy::take_ownership);
           })
      .def("commit", [](ChangeReader& reader) { check(reader.commit()); });

  m.def("open_changes", &open_changes, "warehouse"_a, "catalog"_a, "schema"_a, "directory"_a,
        "memory_limit_bytes"_a, "threads"_a, "table"_a, "from_"_a.none(), "checkpoint"_a,
        "max_files"_a);
  m.def("open_session", &open_session, nb::rv_policy::take_ownership);
  m.def("run_update", &run, "pipeline"_a, "warehouse"_a.none(), "refresh"_a, "tables"_a,
        "allow_missing_sources"_a, "dry_run"_a, "memory_limit_bytes"_a, "threads"_a,
        "listener"_a.none());
  m.def("keep_secret", &keep_secret);
  m.def("without_secrets", &without_secrets);
  m.def("local_path", [](const std::string& text) { return check(local_path(text)); });
  m.def("check_jdbc",
        [](const std::map<std::string, std::string>& options) { check(check_jdbc(options)); });
  m.def("locate_pipeline", [](const std::string& path) {
    const auto place = check(locate_pipeline(path));
    return std::make_tuple(place.name, place.directory, place.warehouse, place.catalog,
                           place.schema);
  });
}

}  // namespace strandline::python
