// Python files of a pipeline: an interpreter runs them and tells what they declare, as statements
// of the SQL surface; docs/decisions/0008-python-pipelines.md has the protocol.
#pragma once

#include <strandline/result.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "pipeline/spec.h"

namespace strandline::pipeline {

// A dataset or flow that a program declares.
struct ProgramStatement {
  std::string sql;    // one statement of a pipeline; ${key} is of its configuration
  SourcePlace place;  // in the user's file
  // Names the SQL in places, as a file does: "flows.py:12". Different for each statement.
  std::string key;
  // The source of AUTO CDC FROM SNAPSHOT is a function of the program, which is called by this
  // name.
  std::string function;
};

struct ProgramDeclarations {
  std::vector<ProgramStatement> statements;
  std::vector<Error> errors;  // of the user's code too, with its traceback
  // Of datasets whose functions failed, as SQL names them: they are not to be reported as unknown.
  std::vector<std::string> doubtful_names;
};

// A version in the words of the protocol: type is BIGINT, TIMESTAMP, DATE, STRING or DECIMAL, else
// the name of a type that no version can have.
struct ProgramVersion {
  std::string type;
  std::string value;
};

struct ProgramSnapshot {
  std::string query;                      // of the SQL surface
  std::optional<ProgramVersion> version;  // none: the function gave None for it
};

// A running interpreter with the pipeline's files loaded; it ends with this object, and by itself
// when this process dies.
class Program {
 public:
  // The interpreter is that of STRANDLINE_PYTHON, else python3. cancel, if given, ends a request
  // that runs. Errors: kNotFound PYTHON_NOT_FOUND, kIo.
  static Result<std::unique_ptr<Program>> start(const std::atomic<bool>* cancel);
  virtual ~Program() = default;

  // Runs the files and every function that gives a dataset's rows. Errors are of the interpreter
  // (PYTHON_FAILED: kNotFound without the package, kInvalidArgument if their code ends it); those
  // of the files are in the declarations.
  virtual Result<ProgramDeclarations> declare(const PipelineSpec& spec,
                                              const std::vector<PipelineFile>& files) = 0;

  // Calls a function of the declarations with the version of the last snapshot that was processed.
  // None: there is no newer snapshot now. Errors: those of the user's code, with its traceback;
  // kInvalidArgument PYTHON_FAILED.
  virtual Result<std::optional<ProgramSnapshot>> next_snapshot(
      const std::string& function, const std::optional<ProgramVersion>& latest) = 0;
};

}  // namespace strandline::pipeline
