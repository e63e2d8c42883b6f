#include "engine/write_rows.h"

#include "base/error.h"
#include "base/json.h"
#include "duck/delta_io.h"

namespace strandline::engine {

Result<std::vector<delta::AddFile>> apply_change(const Context& context, const delta::Table& table,
                                                 delta::Transaction& transaction,
                                                 const std::shared_ptr<const delta::Snapshot>& base,
                                                 const duck::TableChange& change) {
  std::vector<delta::AddFile> written;
  auto applied =
      duck::apply_change(*context.connection, transaction, table, base, change, &written);
  if (!applied.ok()) {
    duck::remove_files(table, written);
    return std::move(applied).error();
  }
  int64_t bytes = 0;
  int64_t rows = 0;
  for (const auto& file : written) {
    bytes += file.size_bytes;
    rows += delta::num_records(file).value_or(0);
  }
  transaction.set_metric("numFiles", static_cast<int64_t>(written.size()));
  transaction.set_metric("numOutputRows", rows);
  transaction.set_metric("numOutputBytes", bytes);
  return written;
}

std::string json_array(const std::vector<std::string>& texts) {
  JsonWriter json;
  json.begin_array();
  for (const auto& text : texts) json.value(text);
  json.end_array();
  return json.take();
}

TouchedRows::~TouchedRows() { (void)connection_.execute("DROP TABLE IF EXISTS " + name()); }

Result<int64_t> TouchedRows::keep(const std::string& query) {
  SL_TRY(connection_.execute(fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", name(), query)));
  return connection_.query_int("SELECT count(*) FROM " + name());
}

std::string TouchedRows::name() { return duck::quote_name("__strandline_touched"); }

std::string TouchedRows::positions() {
  return fmt::format("SELECT {}, {} FROM {}", duck::kFileColumn, duck::kRowColumn, name());
}

}  // namespace strandline::engine
