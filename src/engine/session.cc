#include <strandline/strandline.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "duck/delta_io.h"
#include "duck/engine_errors.h"
#include "duck/render.h"
#include "engine/alter.h"
#include "engine/conditions.h"
#include "engine/context.h"
#include "engine/create_table.h"
#include "engine/definitions.h"
#include "engine/describe.h"
#include "engine/explain.h"
#include "engine/handles.h"
#include "engine/listing.h"
#include "engine/maintenance.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/rows.h"
#include "engine/show.h"
#include "engine/streaming_tables.h"
#include "engine/table_changes.h"
#include "sql/parser.h"

namespace strandline {
namespace engine {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

Error pipeline_only(const char* what) {
  return unsupported("PIPELINE_STATEMENT",
                     "{} belongs in a pipeline: put it into a .sql file of the pipeline and use "
                     "strandline run, or declare table and flow in one statement, as in CREATE "
                     "STREAMING TABLE t FLOW AUTO CDC FROM ...",
                     what);
}

duck::RenderFormat render_format(OutputFormat format) {
  switch (format) {
    case OutputFormat::kTable:
      return duck::RenderFormat::kTable;
    case OutputFormat::kCsv:
      return duck::RenderFormat::kCsv;
    case OutputFormat::kJson:
      return duck::RenderFormat::kJson;
    case OutputFormat::kNdjson:
      return duck::RenderFormat::kNdjson;
    case OutputFormat::kMarkdown:
      return duck::RenderFormat::kMarkdown;
  }
  return duck::RenderFormat::kTable;
}

// One of the names of UTC, with or without quotes.
bool is_utc(std::string zone) {
  constexpr size_t kQuotes = 2;
  if (zone.size() > kQuotes && (zone.front() == '\'' || zone.front() == '"'))
    zone = zone.substr(1, zone.size() - kQuotes);
  return same_name(zone, "UTC") || same_name(zone, "Etc/UTC") || same_name(zone, "Z") ||
         same_name(zone, "GMT") || zone == "+00:00";
}

// Where a statement's rows go: to a stream as text, or, as the query that gives them, to the
// caller.
struct Output {
  std::ostream* stream = nullptr;
  std::optional<std::string> query;
};

class SqlSession : public Session {
 public:
  SqlSession(std::shared_ptr<duck::Database> database, std::unique_ptr<duck::Connection> connection,
             std::shared_ptr<storage::Store> store, std::shared_ptr<catalog::Warehouse> warehouse,
             catalog::Defaults defaults, std::string directory, const SessionOptions& options)
      : database_(std::move(database)),
        connection_(std::move(connection)),
        warehouse_(std::move(warehouse)),
        show_changed_rows_(options.show_changed_rows) {
    context_.connection = connection_.get();
    context_.store = std::move(store);
    context_.parquet = duck::make_parquet_port(database_);
    context_.defaults = std::move(defaults);
    context_.warehouse = warehouse_.get();
    context_.directory = std::move(directory);
    context_.database = database_;
    context_.on_progress = options.on_progress;
    context_.on_update = options.on_update;
    context_.cancel = &cancelled_;
  }

  Status run(const std::string& text, const std::string& file, OutputFormat format,
             std::ostream& out) override {
    cancelled_ = false;
    SL_ASSIGN(const auto script, parse(text, file));
    Output output{&out, {}};
    for (const auto& statement : script.statements) {
      if (cancelled_) return cancelled("CANCELED", "stopped before the statement ran");
      auto done = run_statement(statement, format, output);
      out.flush();  // whoever reads along sees each answer when it is there
      if (!done.ok()) return duck::in_users_words(std::move(done).error(), statement);
    }
    return {};
  }

  Status changes(const ChangesOptions& options, OutputFormat format, std::ostream& out) override {
    if (options.follow && options.to) {
      return invalid_argument("INVALID_ARGUMENT",
                              "changes that are followed have no end: leave the end out");
    }
    if (options.follow && (format == OutputFormat::kJson || format == OutputFormat::kCsv)) {
      return invalid_argument("INVALID_ARGUMENT",
                              "changes cannot be followed as one {} document: use ndjson",
                              format == OutputFormat::kJson ? "JSON" : "CSV");
    }
    cancelled_ = false;
    Output output{&out, {}};
    return show_changes(
        context_, options,
        [&](const duck::NextQuery& next) -> Status {
          SL_TRY(print_rows(next, format, output));
          out.flush();
          return {};
        },
        cancelled_);
  }

  Status execute(const std::string& text) override {
    cancelled_ = false;
    SL_ASSIGN(const auto script, parse(text, ""));
    for (const auto& statement : script.statements) {
      if (cancelled_) return cancelled("CANCELED", "stopped before the statement ran");
      SL_ASSIGN(auto answer, answer_of(statement));
      if (answer.query.empty()) continue;
      auto done = connection_->execute(answer.query);
      if (!done.ok()) return explained(answer, std::move(done).error(), statement);
    }
    return {};
  }

  Result<std::unique_ptr<RowStream>> query(const std::string& text) override {
    cancelled_ = false;
    SL_ASSIGN(auto parsed, parse(text, ""));
    const auto kept = std::make_shared<const sql::Script>(std::move(parsed));
    const auto& script = *kept;
    if (script.statements.size() != 1) {
      return invalid_argument("NOT_ONE_STATEMENT",
                              "query() takes one statement, this text has {}: use execute()",
                              script.statements.size());
    }
    const auto& statement = script.statements[0];
    SL_ASSIGN(auto made, answer_of(statement));
    if (made.query.empty()) {
      return at(invalid_argument("NOT_A_QUERY", "the statement gives no rows: use execute()"),
                statement.place);
    }
    return open_rows(std::move(made), kept);
  }

  Result<strandline::Answer> answer(const std::string& text) override {
    cancelled_ = false;
    SL_ASSIGN(auto parsed, parse(text, ""));
    const auto script = std::make_shared<const sql::Script>(std::move(parsed));
    strandline::Answer answer;
    for (const auto& statement : script->statements) {
      if (cancelled_) return cancelled("CANCELED", "stopped before the statement ran");
      SL_ASSIGN(auto made, answer_of(statement));
      if (made.query.empty()) continue;
      if (&statement == &script->statements.back()) {
        SL_ASSIGN(answer.rows, open_rows(std::move(made), script));
        answer.repeatable = script->statements.size() == 1 && only_reads(statement);
        continue;
      }
      auto done = connection_->execute(made.query);
      if (!done.ok()) return explained(made, std::move(done).error(), statement);
    }
    return answer;
  }

  Result<std::unique_ptr<Table>> table(const std::string& name) override {
    SL_ASSIGN(const auto parsed, table_name(name));
    SL_ASSIGN(auto found, find_table(context_, parsed));
    return make_table(std::move(found));
  }

  Status register_stream(const std::string& name, ArrowArrayStream* stream) override {
    const std::string made = fmt::format("__strandline_stream_{}", ++streams_made_);
    SL_TRY(duck::load_arrow(*connection_, stream, made));
    const auto parsed = table_name(name);
    if (!parsed.ok() || parsed->is_path || parsed->parts.size() != 1) {
      (void)connection_->execute("DROP TABLE " + duck::quote_name(made));
      return invalid_argument("INVALID_NAME", "a stream has a plain name, '{}' is none", name);
    }
    std::string& known = context_.streams[fold_name(parsed->parts[0])];
    const std::string old = std::exchange(known, made);
    if (!old.empty()) SL_TRY(connection_->execute("DROP TABLE " + duck::quote_name(old)));
    return {};
  }

  Status write(const std::string& table, ArrowArrayStream* stream, WriteMode mode) override {
    const std::string source = "__strandline_written";
    SL_TRY(register_stream(source, stream));
    const auto parsed = table_name(table);
    Status done = parsed.ok()
                      ? execute(fmt::format("INSERT {} {} BY NAME SELECT * FROM {}",
                                            mode == WriteMode::kAppend ? "INTO" : "OVERWRITE",
                                            sql::to_string(*parsed), source))
                      : Status(parsed.error());
    const auto kept = context_.streams.extract(source);
    const auto dropped = connection_->execute("DROP TABLE " + duck::quote_name(kept.mapped()));
    if (!done.ok()) return done;
    return dropped.ok() ? Status() : Status(dropped.error());
  }

  void cancel() override {
    cancelled_ = true;
    connection_->interrupt();
  }

 private:
  // A statement that has run, or the query whose rows are its answer.
  struct Prepared {
    std::string query;
    std::shared_ptr<Relations> relations;
  };

  static bool only_reads(const sql::Statement& statement) {
    return std::holds_alternative<sql::SelectStatement>(statement.body) ||
           std::holds_alternative<sql::Explain>(statement.body) ||
           std::holds_alternative<sql::Describe>(statement.body) ||
           std::holds_alternative<sql::Show>(statement.body);
  }

  // The rows of the script's last statement. They may outlive this session.
  Result<std::unique_ptr<RowStream>> open_rows(Prepared answer,
                                               std::shared_ptr<const sql::Script> script) {
    SL_ASSIGN(auto connection, database_->connect());
    auto reader = duck::RowReader::open(std::move(connection), answer.query);
    if (!reader.ok())
      return explained(answer, std::move(reader).error(), script->statements.back());
    auto explain = [database = database_, relations = answer.relations, script](Error error) {
      if (relations) {
        if (auto asked = database->connect(); asked.ok())
          error = relations->explain(std::move(error), **asked);
      }
      return duck::in_users_words(std::move(error), script->statements.back());
    };
    return make_row_stream(std::move(reader).value(), answer.relations, std::move(explain));
  }

  Result<sql::Script> parse(const std::string& text, const std::string& file) {
    auto script =
        sql::parse_script(text, file, [this](const std::string& key) -> std::optional<std::string> {
          const auto found = context_.settings.find(key);
          if (found == context_.settings.end()) return std::nullopt;
          return found->second;
        });
    if (!script.errors.empty()) return script.errors.front();
    return script;
  }

  // The name of a table as SQL spells it.
  static Result<sql::TableName> table_name(const std::string& text) {
    const auto script = sql::parse_script("TRUNCATE TABLE " + text, "");
    if (script.errors.empty() && script.statements.size() == 1) {
      if (const auto* named = std::get_if<sql::Truncate>(&script.statements[0].body))
        return named->table;
    }
    return invalid_argument("INVALID_NAME",
                            "'{}' is not the name of a table: write it as in SQL, schema.table or "
                            "catalog.schema.table, parts with blanks and the like in backticks",
                            text);
  }

  static Error explained(const Prepared& answer, Error error, const sql::Statement& statement) {
    return duck::in_users_words(
        answer.relations ? answer.relations->explain(std::move(error)) : std::move(error),
        statement);
  }

  Result<Prepared> answer_of(const sql::Statement& statement) {
    Prepared answer;
    if (const auto* select = std::get_if<sql::SelectStatement>(&statement.body)) {
      answer.relations = std::make_shared<Relations>(context_);
      auto query = answer.relations->print(*select->query);
      if (!query.ok()) return at(std::move(query).error(), statement.place);
      answer.query = std::move(query).value();
      SL_TRY(check_conditions(*connection_, answer.query));
      return answer;
    }
    Output output;
    auto done = run_statement(statement, OutputFormat::kTable, output);
    if (!done.ok()) return duck::in_users_words(std::move(done).error(), statement);
    answer.query = output.query.value_or("");
    return answer;
  }

  Status run_statement(const sql::Statement& statement, OutputFormat format, Output& out) {
    return std::visit(
        Overloaded{
            [&](const sql::CreateStreamingTable& body) -> Status {
              if (!body.query && !body.auto_cdc)
                return pipeline_only("CREATE STREAMING TABLE without AS or FLOW");
              return create_streaming_table(context_, body, statement);
            },
            [&](const sql::CreateMaterializedView& body) -> Status {
              return create_materialized_view(context_, body, statement);
            },
            [&](const sql::RefreshTable& body) -> Status { return refresh(context_, body); },
            [&](const sql::CreateAutoCdcFlow&) -> Status { return pipeline_only("AUTO CDC INTO"); },
            [&](const sql::CreateInsertFlow&) -> Status { return pipeline_only("CREATE FLOW"); },
            [&](const sql::SelectStatement& select) -> Status {
              Relations relations(context_);
              SL_ASSIGN(const auto query, relations.print(*select.query));
              SL_TRY(check_conditions(*connection_, query));
              auto shown = show_rows(query, format, out);
              if (!shown.ok()) return relations.explain(std::move(shown).error());
              return {};
            },
            [&](const sql::Explain& explain) -> Status {
              SL_ASSIGN(const auto query, engine::explain(context_, explain));
              return show_rows(query, format, out);
            },
            [&](const sql::Describe& describe) -> Status {
              SL_ASSIGN(const auto query, engine::describe(context_, describe));
              return show_rows(query, format, out);
            },
            [&](const sql::Show& show) -> Status {
              SL_ASSIGN(const auto query, engine::show(context_, show));
              return show_rows(query, format, out);
            },
            [&](const sql::SetOption& option) -> Status { return set_option(option, format, out); },
            [&](const sql::CreateSchema& body) -> Status { return create_schema(context_, body); },
            [&](const sql::CreateTable& body) -> Status { return create_table(context_, body); },
            [&](const sql::AlterTable& body) -> Status { return alter_table(context_, body); },
            [&](const sql::CommentOn& body) -> Status { return comment_on(context_, body); },
            [&](const sql::CreateView& body) -> Status {
              return create_view(context_, body, statement.text);
            },
            [&](const sql::Insert& body) -> Status {
              SL_ASSIGN(const auto rows, insert(context_, body));
              return show_counts(
                  {{"num_affected_rows", rows.inserted}, {"num_inserted_rows", rows.inserted}},
                  format, out);
            },
            [&](const sql::Update& body) -> Status {
              SL_ASSIGN(const auto rows, update_rows(context_, body));
              return show_counts({{"num_affected_rows", rows.updated}}, format, out);
            },
            [&](const sql::Delete& body) -> Status {
              SL_ASSIGN(const auto rows, delete_rows(context_, body));
              return show_counts({{"num_affected_rows", rows.deleted}}, format, out);
            },
            [&](const sql::Merge& body) -> Status {
              SL_ASSIGN(const auto rows, merge(context_, body));
              return show_counts(
                  {{"num_affected_rows", rows.inserted + rows.updated + rows.deleted},
                   {"num_updated_rows", rows.updated},
                   {"num_deleted_rows", rows.deleted},
                   {"num_inserted_rows", rows.inserted}},
                  format, out);
            },
            [&](const sql::Drop& body) -> Status { return drop(context_, body, statement.text); },
            [&](const sql::Truncate& body) -> Status { return truncate(context_, body); },
            [&](const sql::Use& body) -> Status { return use(context_, body); },
            [&](const sql::Vacuum& body) -> Status {
              SL_ASSIGN(const auto query, vacuum(context_, body));
              return show_rows(query, format, out);
            },
            [&](const sql::Restore& body) -> Status {
              SL_ASSIGN(const auto query, restore(context_, body));
              return show_rows(query, format, out);
            },
            [&](const sql::Optimize& body) -> Status {
              SL_ASSIGN(const auto query, optimize(context_, body));
              return show_rows(query, format, out);
            },
            [&](const sql::NotYet& body) -> Status {
              return unsupported("UNSUPPORTED_STATEMENT", "{} is not supported yet",
                                 body.construct);
            },
        },
        statement.body);
  }

  Status show_rows(const std::string& query, OutputFormat format, Output& out) {
    if (out.stream == nullptr) {
      out.query = query;
      return {};
    }
    std::optional<std::string> left = query;
    return print_rows(
        [&left]() -> Result<std::optional<std::string>> {
          return std::exchange(left, std::nullopt);
        },
        format, out);
  }

  Status print_rows(const duck::NextQuery& next, OutputFormat format, const Output& out) {
    duck::RenderOptions options;
    options.format = render_format(format);
    auto rows =
        duck::render_all(*connection_, next, options, [&out](std::string_view piece) -> Status {
          out.stream->write(piece.data(), static_cast<std::streamsize>(piece.size()));
          if (!*out.stream)
            return io_error("IO_ERROR",
                            "the output cannot be written: is the disk full or the reader gone?");
          return {};
        });
    if (!rows.ok()) return std::move(rows).error();
    return {};
  }

  // What a statement did, for people at work. Else the output holds the rows of queries alone.
  Status show_counts(const std::vector<std::pair<std::string, int64_t>>& counts,
                     OutputFormat format, Output& out) {
    if (!show_changed_rows_ || out.stream == nullptr || format != OutputFormat::kTable) return {};
    std::string items;
    for (const auto& [name, count] : counts) {
      items += fmt::format("{}{}::BIGINT AS {}", items.empty() ? "" : ", ", count, name);
    }
    return show_rows("SELECT " + items, format, out);
  }

  // SET k = v is for ${k} in later texts; SET k and SET alone show what is set.
  Status set_option(const sql::SetOption& option, OutputFormat format, Output& out) {
    if (option.value) {
      if (same_name(option.key, "spark.sql.session.timeZone") && !is_utc(*option.value)) {
        return unsupported("UNSUPPORTED_CONFIG",
                           "the session time zone is UTC and cannot be {}: write times with their "
                           "offset, as in TIMESTAMP'2026-01-31 12:00:00+02:00'",
                           *option.value);
      }
      context_.settings[option.key] = *option.value;
      return {};
    }
    Listing listing({{"key", "VARCHAR"}, {"value", "VARCHAR"}});
    for (const auto& [key, value] : context_.settings) {
      if (option.key.empty() || key == option.key)
        listing.add({Listing::text(key), Listing::text(value)});
    }
    return show_rows(listing.query(), format, out);
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
  std::shared_ptr<catalog::Warehouse> warehouse_;
  Context context_;
  const bool show_changed_rows_;
  std::atomic<bool> cancelled_{false};
  int64_t streams_made_ = 0;
};

}  // namespace
}  // namespace engine

const char* version() { return STRANDLINE_VERSION; }

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  std::error_code failed;
  const auto directory = std::filesystem::absolute(options.directory.empty()
                                                       ? std::filesystem::path(".")
                                                       : std::filesystem::path(options.directory),
                                                   failed);
  if (failed) return io_error("IO_ERROR", "the current directory is gone: {}", failed.message());
  SL_ASSIGN(auto database,
            duck::Database::open({options.engine.memory_limit_bytes, options.engine.threads, ""}));
  SL_ASSIGN(auto connection, database->connect());
  auto store = storage::make_local_store();
  std::shared_ptr<catalog::Warehouse> warehouse;
  if (!options.warehouse.empty()) {
    SL_ASSIGN(warehouse, catalog::Warehouse::open(store, duck::make_parquet_port(database),
                                                  options.warehouse));
  }
  catalog::Defaults defaults;
  if (!options.catalog.empty()) defaults.catalog = options.catalog;
  if (!options.schema.empty()) defaults.schema = options.schema;
  return std::unique_ptr<Session>(std::make_unique<engine::SqlSession>(
      std::move(database), std::move(connection), std::move(store), std::move(warehouse),
      std::move(defaults), directory.lexically_normal().string(), options));
}

}  // namespace strandline
