// One row for each Delta table feature that Strandline knows (delta-protocol.md section 3). What is
// not here, or not marked here, is refused by name. docs/features.md is made from it.
#pragma once

#include <span>
#include <string>

#include "base/data_type.h"
#include "delta/actions.h"

namespace strandline::delta {

struct Feature {
  enum class Kind { kWriter, kReaderWriter };
  enum class Support { kNo, kYes };
  enum class Write { kNo, kYes };
  // What makes a table use the feature.
  enum class Use {
    kListed,          // nothing but its name in the protocol
    kFlag,            // property `what` = true
    kValue,           // property `what`, as "key=value"
    kSet,             // property `what`, other than none
    kPropertyPrefix,  // any property that starts with `what`
    kColumn,          // a column with metadata that starts with `what`
    kType,            // a column of type `type`
    kDomain,          // metadata domain `what`
  };

  const char* name;
  Kind kind;
  Support read;
  Write write;
  // The change feed of a table with it can be read.
  Support feed;
  Use use = Use::kListed;
  const char* what = "";
  TypeId type = TypeId::kVoid;
  int legacy_writer = 0;  // implied by this minWriterVersion and higher ones below 7
  int legacy_reader = 0;  // implied by this minReaderVersion below 3
  const char* note = "";  // for people
};

std::span<const Feature> feature_table();
// Null for features that are not known.
const Feature* find_feature(const std::string& name);

// A table of this definition makes use of the feature. Domains are not looked at.
bool is_used(const Feature& feature, const Metadata& metadata, const Schema& schema);

}  // namespace strandline::delta
