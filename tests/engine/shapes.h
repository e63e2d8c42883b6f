// What must not be asked of the engine, because some version of it that runs here gives wrong rows
// for it: docs/engine-faults.md. To add a shape, add what shows it: a row of banned_shapes().
#pragma once

#include <string>
#include <vector>

namespace strandline::test {

struct Token {
  enum class Kind { kWord, kName, kText, kSymbol };  // word, "name", 'text', ( ) , . : and others
  Kind kind;
  std::string text;  // of names and texts without their quotes
  size_t begin = 0;  // in the statement
};

// The tokens of a statement, without comments.
std::vector<Token> tokens_of(const std::string& sql);

struct Shape {
  const char* name;
  const char* why;
  bool (*is_in)(const std::vector<Token>& statement);
  // Statements that give one number over `data`, a Parquet file that `setup` writes: one of the
  // shape, and one that asks the same in another way. ${file} stands for the file's name.
  const char* setup;
  const char* example;
  const char* instead;
  const char* right;
  // Whether the version that is the default (1.5.5) is wrong about the example on one thread.
  bool wrong_here;
  const char* proof;  // a test of results: file of the project, "::", what it is called there
};

const std::vector<Shape>& banned_shapes();

// The shapes that a statement has, by name; empty: none.
std::vector<std::string> shapes_in(const std::string& sql);

}  // namespace strandline::test
