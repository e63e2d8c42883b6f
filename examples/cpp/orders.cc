// Orders into a Delta table, a change merged in, and the rows back: row by row and as Arrow.
#include <strandline/strandline.h>

#include <iostream>

namespace {

void print(const strandline::Value& value) {
  if (std::holds_alternative<std::monostate>(value)) std::cout << "NULL";
  if (const auto* flag = std::get_if<bool>(&value)) std::cout << (*flag ? "true" : "false");
  if (const auto* number = std::get_if<int64_t>(&value)) std::cout << *number;
  if (const auto* number = std::get_if<double>(&value)) std::cout << *number;
  if (const auto* text = std::get_if<std::string>(&value)) std::cout << *text;
}

strandline::Status run(const std::string& warehouse) {
  strandline::SessionOptions options;
  options.warehouse = warehouse;
  SL_ASSIGN(auto session, strandline::Session::open(options));

  SL_TRY(session->execute("CREATE TABLE orders (id INT, item STRING, price DECIMAL(10,2))"));
  SL_TRY(session->execute("INSERT INTO orders VALUES (1, 'tea', 3.50), (2, 'cake', 4.00)"));
  SL_TRY(session->execute("UPDATE orders SET price = 4.25 WHERE id = 2"));

  // What the table is made of.
  SL_ASSIGN(const auto table, session->table("orders"));
  std::cout << table->name() << " version " << table->version() << ": " << table->schema_text()
            << "\n";
  SL_ASSIGN(const auto versions, table->history());
  for (const auto& version : versions)
    std::cout << version.version << " " << version.operation << "\n";

  // Row by row.
  SL_ASSIGN(const auto rows, session->query("SELECT * FROM orders ORDER BY id"));
  for (;;) {
    SL_ASSIGN(const auto row, rows->next());
    if (!row) break;
    for (const auto& value : *row) {
      print(value);
      std::cout << " ";
    }
    std::cout << "\n";
  }

  // The rows of a query into another table, as Arrow batches: any producer of the interface will
  // do.
  SL_TRY(session->execute("CREATE TABLE dear (id INT, price DECIMAL(10,2))"));
  SL_ASSIGN(const auto dear, session->query("SELECT id, price FROM orders WHERE price > 4"));
  ArrowArrayStream stream;
  SL_TRY(dear->to_arrow(&stream));
  SL_TRY(session->write("dear", &stream));
  SL_ASSIGN(const auto count, session->query("SELECT count(*) FROM dear"));
  SL_ASSIGN(const auto one, count->next());
  std::cout << "dear: ";
  print(one->front());
  std::cout << "\n";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " WAREHOUSE\n";
    return 2;
  }
  const auto done = run(argv[1]);
  if (done.ok()) return 0;
  std::cerr << strandline::render_error(done.error()) << "\n";
  return 1;
}
