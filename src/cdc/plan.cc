#include "cdc/plan.h"

#include <strandline/suggest.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/type_widening.h"
#include "sql/duckdb_printer.h"

namespace strandline::cdc {

namespace {

std::string list_types(const std::vector<Field>& fields) {
  std::vector<std::string> parts;
  parts.reserve(fields.size());
  for (const Field& field : fields) parts.push_back(field.name + " " + to_sql(field.type));
  std::sort(parts.begin(), parts.end());
  return fmt::format("({})", fmt::join(parts, ", "));
}

std::string list_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

bool same_key_set(const std::vector<Field>& a, const std::vector<Field>& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const Field& x) {
    return std::any_of(b.begin(), b.end(), [&](const Field& y) {
      return same_name(x.name, y.name) && same_type(x.type, y.type);
    });
  });
}

std::optional<bool> find_tracked(const std::map<std::string, bool>& tracked,
                                 const std::string& name) {
  for (const auto& [column, is_tracked] : tracked) {
    if (same_name(column, name)) return is_tracked;
  }
  return std::nullopt;
}

// Whether the clauses let a column of the source into the target.
bool may_select(const sql::AutoCdcClauses& clauses, const std::string& name) {
  if (!clauses.columns) return true;
  const bool listed =
      std::any_of(clauses.columns->names.begin(), clauses.columns->names.end(),
                  [&](const sql::Name& listed_name) { return same_name(listed_name.text, name); });
  return listed != clauses.columns->except;
}

// Whether the flow's upserts are partial updates.
bool gives_partly(const sql::AutoCdcClauses& clauses) {
  return clauses.ignore_null_updates || clauses.columns_to_update.has_value();
}

bool contains_name(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return same_name(name, other); });
}

bool same_schema(const Schema& a, const std::optional<Schema>& b) {
  if (!b || a.fields.size() != b->fields.size()) return false;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const Field& x = a.fields[i];
    const Field& y = b->fields[i];
    if (x.name != y.name || x.nullable != y.nullable || !same_type(x.type, y.type)) return false;
  }
  return true;
}

class Planner {
 public:
  Planner(const Declaration& declaration, const SourceFacts& source, const TargetFacts& target)
      : declaration_(declaration),
        clauses_(declaration.clauses),
        source_(source),
        target_(target) {}

  PlanOrErrors make() {
    errors_ = check_declaration(declaration_);
    plan_.flow_name = declaration_.flow_name;
    plan_.target = declaration_.target;
    plan_.scd_type = scd_type();
    plan_.sequence_type = source_.sequence_type;
    plan_.sequence_by = clauses_.sequence_by;
    plan_.system_sequence_type = source_.system_sequence_type;
    plan_.system_sequence_by = clauses_.system_sequence_by;
    plan_.gives_partly = gives_partly(clauses_);
    plan_.delete_when = clauses_.delete_when;
    plan_.truncate_when = clauses_.truncate_when;

    check_source_names();
    check_expressions();
    select_columns();
    resolve_keys();
    check_sequence_type();
    resolve_tracking();
    check_partial_updates();
    check_drift();
    if (errors_.empty()) lay_out_target();
    if (errors_.empty()) lay_out_state();

    PlanOrErrors result;
    if (errors_.empty()) {
      result.plan = std::move(plan_);
    } else {
      result.errors = std::move(errors_);
    }
    return result;
  }

 private:
  void add(Error error, const SourcePlace& place) {
    error.place = place.line > 0 ? place : declaration_.place;
    error.message = "flow " + declaration_.flow_name + ": " + error.message;
    errors_.push_back(std::move(error));
  }

  ScdType scd_type() const {
    switch (clauses_.stored_as.value_or(sql::StoredAs::kScdType1)) {
      case sql::StoredAs::kScdType1:
        return ScdType::kType1;
      case sql::StoredAs::kScdType2:
        return ScdType::kType2;
      case sql::StoredAs::kBitemporal:
        return ScdType::kBitemporal;
    }
    return ScdType::kType1;
  }

  bool has_intervals() const { return plan_.scd_type != ScdType::kType1; }
  bool is_bitemporal() const { return plan_.scd_type == ScdType::kBitemporal; }

  // The interval columns in their order, with their types.
  std::vector<Field> interval_columns() const {
    std::vector<Field> fields;
    if (!has_intervals()) return fields;
    fields.push_back(Field{kStartAt, plan_.sequence_type, true, {}});
    fields.push_back(Field{kEndAt, plan_.sequence_type, true, {}});
    if (!is_bitemporal()) return fields;
    fields.push_back(Field{kSystemStartAt, plan_.system_sequence_type, true, {}});
    fields.push_back(Field{kSystemEndAt, plan_.system_sequence_type, true, {}});
    return fields;
  }

  bool is_interval_name(const std::string& name) const {
    const std::vector<Field> fields = interval_columns();
    return std::any_of(fields.begin(), fields.end(),
                       [&](const Field& field) { return same_name(field.name, name); });
  }

  // --- the source ------------------------------------------------------------------------------

  void check_source_names() {
    std::unordered_map<std::string, std::string> seen;
    for (const Field& field : source_.schema.fields) {
      const auto [at, is_new] = seen.emplace(fold_name(field.name), field.name);
      if (!is_new) {
        add(invalid_argument("COLUMN_ALREADY_EXISTS",
                             "the source has the columns '{}' and '{}', which are one name because "
                             "case does not "
                             "count: rename one of them in the source query",
                             at->second, field.name),
            declaration_.place);
      }
    }
  }

  bool source_has(const std::string& written) const {
    if (source_.schema.find(written) || source_.hidden.find(written)) return true;
    const size_t dot = written.find('.');
    if (dot == std::string::npos) return false;
    const std::string first = written.substr(0, dot);
    return source_.schema.find(first) || source_.hidden.find(first);
  }

  void check_expressions() {
    const auto check = [&](const sql::ExprPtr& expr, const char* clause, const SourcePlace& place) {
      if (expr == nullptr) return;
      for (const sql::Name& name : sql::columns_read(*expr)) {
        if (source_has(name.text)) continue;
        const auto near = nearest_name(name.text, source_names());
        add(invalid_argument("UNRESOLVED_COLUMN",
                             "{} reads '{}', which the source does not have{}; it has {}", clause,
                             name.text, near ? " (did you mean '" + *near + "'?)" : "",
                             list_names(source_names())),
            name.place.line > 0 ? name.place : place);
      }
    };
    check(clauses_.sequence_by, "SEQUENCE BY", clauses_.sequence_place);
    check(clauses_.system_sequence_by, "SYSTEM SEQUENCE BY", clauses_.system_sequence_place);
    check(clauses_.delete_when, "APPLY AS DELETE WHEN", clauses_.delete_place);
    check(clauses_.truncate_when, "APPLY AS TRUNCATE WHEN", clauses_.truncate_place);
  }

  std::vector<std::string> source_names() const {
    std::vector<std::string> names;
    names.reserve(source_.schema.fields.size());
    for (const Field& field : source_.schema.fields) names.push_back(field.name);
    return names;
  }

  // Names of a list that the schema lacks: one error for all of them.
  void check_known(const std::vector<sql::Name>& names, const std::vector<Field>& known,
                   const char* clause, const char* where) {
    std::vector<std::string> missing;
    SourcePlace place;
    for (const sql::Name& name : names) {
      const bool found = std::any_of(known.begin(), known.end(), [&](const Field& field) {
        return same_name(field.name, name.text);
      });
      if (found) continue;
      if (missing.empty()) place = name.place;
      missing.push_back(name.text);
    }
    if (missing.empty()) return;
    std::vector<std::string> available;
    available.reserve(known.size());
    for (const Field& field : known) available.push_back(field.name);
    const bool has_parts = missing.size() == 1 && missing.front().find('.') != std::string::npos;
    add(invalid_argument(has_parts ? "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER"
                                   : "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA",
                         "{} names {}, which {} does not have (plain column names only); it has {}",
                         clause, list_names(missing), where, list_names(available)),
        place);
  }

  void select_columns() {
    std::vector<Field> all = source_.schema.fields;
    all.insert(all.end(), source_.hidden.fields.begin(), source_.hidden.fields.end());
    if (clauses_.columns) check_known(clauses_.columns->names, all, "COLUMNS", "the source");
    // A hidden column is selected only by its name.
    const bool by_name = clauses_.columns && !clauses_.columns->except;
    if (!by_name) all = source_.schema.fields;
    for (const Field& field : all) {
      if (clauses_.columns) {
        const bool listed =
            std::any_of(clauses_.columns->names.begin(), clauses_.columns->names.end(),
                        [&](const sql::Name& name) { return same_name(name.text, field.name); });
        if (listed == clauses_.columns->except) continue;
      }
      selected_.push_back(field);
    }
    for (const Field& field : selected_) {
      const bool has_prefix = fold_name(field.name).starts_with(kReservedPrefix);
      if (!has_prefix && !is_interval_name(field.name)) continue;
      add(invalid_argument("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
                           "the source's column '{}' has a name that {} keeps for itself: leave it "
                           "out {} or rename it in the source query",
                           field.name, has_prefix ? "strandline" : to_string(plan_.scd_type),
                           without(field.name)),
          clauses_.columns ? clauses_.columns->place : declaration_.place);
    }
  }

  // How a flow leaves a column of its source out.
  std::string without(const std::string& column) const {
    return clauses_.from_snapshot ? "of the query or frame that gives the snapshots"
                                  : fmt::format("with COLUMNS * EXCEPT ({})", column);
  }

  const Field* find_selected(const std::string& name) const {
    const auto found = std::find_if(selected_.begin(), selected_.end(), [&](const Field& field) {
      return same_name(field.name, name);
    });
    return found == selected_.end() ? nullptr : &*found;
  }

  bool is_key(const std::string& name) const {
    return std::any_of(plan_.keys.begin(), plan_.keys.end(),
                       [&](const Field& key) { return same_name(key.name, name); });
  }

  void resolve_keys() {
    for (const sql::Name& name : clauses_.keys) {
      const Field* field = find_selected(name.text);
      if (field == nullptr) {
        if (name.text.find('.') != std::string::npos) {
          add(invalid_argument("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER",
                               "key '{}' is not a plain column name of the source", name.text),
              name.place);
          continue;
        }
        const bool in_source = source_.schema.find(name.text).has_value();
        add(invalid_argument(
                "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "key '{}' {}", name.text,
                in_source ? "is left out by COLUMNS: keys always land in the target"
                          : "is no column of the source; it has " + list_names(source_names())),
            name.place);
        continue;
      }
      if (!is_sortable(field->type)) {
        add(invalid_argument("AUTOCDC_INVALID_KEY_TYPE",
                             "key '{}' is {}: a MAP, VARIANT or INTERVAL cannot identify a row; "
                             "use other columns or "
                             "to_json of it",
                             field->name, to_sql(field->type)),
            name.place);
      }
      if (!is_key(field->name)) plan_.keys.push_back(*field);
    }
  }

  void check_sequence_type() {
    const auto check = [&](const sql::ExprPtr& expr, const DataType& type, const char* clause,
                           const SourcePlace& place) {
      if (expr == nullptr || is_sortable(type)) return;
      add(invalid_argument("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE",
                           "{} has the type {}, which has no order: use a number, a timestamp, a "
                           "string or a STRUCT of such",
                           clause, to_sql(type)),
          place);
    };
    check(clauses_.sequence_by, source_.sequence_type, "SEQUENCE BY", clauses_.sequence_place);
    if (!is_bitemporal()) return;
    check(clauses_.system_sequence_by, source_.system_sequence_type, "SYSTEM SEQUENCE BY",
          clauses_.system_sequence_place);
  }

  // --- TRACK HISTORY, partial updates ----------------------------------------------------------

  void resolve_tracking() {
    if (!has_intervals()) return;
    if (clauses_.track_history) {
      check_known(clauses_.track_history->names, selected_, "TRACK HISTORY ON",
                  "the flow's selection");
    }
    for (const Field& field : selected_) {
      if (is_key(field.name)) continue;
      bool tracked = true;
      if (clauses_.track_history) {
        const auto& names = clauses_.track_history->names;
        const bool listed = std::any_of(names.begin(), names.end(), [&](const sql::Name& name) {
          return same_name(name.text, field.name);
        });
        tracked = listed != clauses_.track_history->except;
      }
      tracked_[field.name] = tracked;
    }
  }

  // What a flow's partial updates give of a selected column that is not a key.
  Gives gives(const sql::AutoCdcClauses& clauses, const std::string& name) const {
    if (!gives_partly(clauses)) return Gives::kAlways;
    const auto reads = [&](const sql::ExprPtr& expr) {
      if (expr == nullptr) return false;
      const std::vector<sql::Name> names = sql::columns_read(*expr);
      return std::any_of(names.begin(), names.end(), [&](const sql::Name& read) {
        // A field of a struct column reads the column.
        return same_name(read.text, name) ||
               (!source_.schema.find(read.text) &&
                same_name(read.text.substr(0, read.text.find('.')), name));
      });
    };
    if (reads(clauses.sequence_by) || reads(clauses.system_sequence_by)) return Gives::kAlways;
    if (clauses.columns_to_update) {
      return same_name(clauses.columns_to_update->text, name) ? Gives::kAlways : Gives::kWhenNamed;
    }
    if (!clauses.ignore_null_columns) return Gives::kLeavesNotNull;
    const sql::ColumnList& list = *clauses.ignore_null_columns;
    const bool listed = std::any_of(
        list.names.begin(), list.names.end(),
        [&](const sql::Name& listed_name) { return same_name(listed_name.text, name); });
    return listed != list.except ? Gives::kLeavesNotNull : Gives::kAlways;
  }

  void check_partial_updates() {
    if (clauses_.ignore_null_columns) {
      check_known(clauses_.ignore_null_columns->names, selected_, "IGNORE NULL UPDATES ON",
                  "the flow's selection");
    }
    if (!clauses_.columns_to_update) return;
    const sql::Name& name = *clauses_.columns_to_update;
    const Field* field = source_.schema.get(name.text);
    if (field == nullptr) {
      check_known({name}, source_.schema.fields, "COLUMNS TO UPDATE", "the source");
    } else if (field->type.id != TypeId::kArray || field->type.element->id != TypeId::kString) {
      add(invalid_argument("AUTOCDC_INVALID_COLUMNS_TO_UPDATE_TYPE",
                           "COLUMNS TO UPDATE names '{}', which is {}: it must be ARRAY<STRING>, "
                           "the names of the columns "
                           "an event gives",
                           field->name, to_sql(field->type)),
          name.place);
    } else {
      plan_.columns_to_update = *field;
      for (const Field& other : source_.schema.fields) {
        if (find_selected(other.name) == nullptr) plan_.unselected.push_back(other.name);
      }
    }
  }

  // --- what the state remembers ----------------------------------------------------------------

  void drift(const char* sub_code, const std::string& what, const std::string& was,
             const std::string& is, const SourcePlace& place) {
    add(invalid_argument(std::string("AUTOCDC_INVALID_STATE.") + sub_code,
                         "{} of table {} was {} and is now {}: either restore it or make a full "
                         "refresh of that table "
                         "(--full-refresh {})",
                         what, plan_.target, was, is, plan_.target),
        place);
  }

  void check_drift() {
    if (!target_.state) return;
    const StateSpec& state = *target_.state;
    if (state.scd_type != plan_.scd_type) {
      drift("SCD_TYPE_DRIFT", "STORED AS", to_string(state.scd_type), to_string(plan_.scd_type),
            clauses_.stored_as_place);
    }
    if (plan_.keys.size() == clauses_.keys.size() && !plan_.keys.empty()) {
      std::vector<Field> keys = plan_.keys;
      for (Field& key : keys) key.type = declared_key_type(key);
      if (!same_key_set(keys, state.keys))
        drift("KEY_SCHEMA_DRIFT", "KEYS", list_types(state.keys), list_types(keys),
              clauses_.keys_place);
    }
    if ((clauses_.sequence_by != nullptr || clauses_.from_snapshot) &&
        !same_type(state.sequence_type, plan_.sequence_type)) {
      drift("SEQUENCING_TYPE_DRIFT",
            clauses_.from_snapshot ? "the type of the snapshots' versions"
                                   : "the type of SEQUENCE BY",
            to_sql(state.sequence_type), to_sql(plan_.sequence_type), clauses_.sequence_place);
    }
    if (is_bitemporal() && state.system_sequence_type && clauses_.system_sequence_by != nullptr &&
        !same_type(*state.system_sequence_type, plan_.system_sequence_type)) {
      drift("SEQUENCING_TYPE_DRIFT", "the type of SYSTEM SEQUENCE BY",
            to_sql(*state.system_sequence_type), to_sql(plan_.system_sequence_type),
            clauses_.system_sequence_place);
    }
    if (!has_intervals() || state.scd_type != plan_.scd_type) return;
    std::vector<std::string> was, is;
    for (const auto& [name, tracked] : tracked_) {
      const std::optional<bool> before = find_tracked(state.tracked, name);
      if (!before || *before == tracked) continue;
      was.push_back(fmt::format("{} {}", name, *before ? "tracked" : "not tracked"));
      is.push_back(fmt::format("{} {}", name, tracked ? "tracked" : "not tracked"));
    }
    if (!was.empty())
      drift("TRACK_HISTORY_DRIFT", "the history that is tracked", list_names(was), list_names(is),
            clauses_.track_history ? clauses_.track_history->place : declaration_.place);
  }

  // A declared schema fixes the key's type; values are cast up to it.
  DataType declared_key_type(const Field& key) const {
    const Field* declared = target_.declared ? target_.declared->get(key.name) : nullptr;
    if (declared == nullptr) return key.type;
    const std::optional<DataType> common = least_common_type(declared->type, key.type);
    return common && same_type(*common, declared->type) ? declared->type : key.type;
  }

  // --- the target's columns --------------------------------------------------------------------

  void lay_out_target() {
    check_interval_columns(target_.declared, "declared schema");
    check_interval_columns(target_.existing, "table");
    begin_with(target_.existing ? target_.existing : target_.declared);
    if (target_.existing && target_.declared) merge_declared();
    for (const Field& field : selected_) merge_source(field);
    for (Field& field : interval_columns()) {
      if (!plan_.target_schema.find(field.name)) {
        plan_.target_schema.fields.push_back(std::move(field));
      }
    }
    if (!errors_.empty()) return;

    for (Field& key : plan_.keys) key = *plan_.target_schema.get(key.name);
    if (target_.existing && !target_.state) check_adopted_keys();
    plan_.target_schema_changed = !same_schema(plan_.target_schema, target_.existing);
    for (const Field& field : plan_.target_schema.fields) {
      if (!is_interval_name(field.name)) plan_.columns.push_back(make_column(field));
    }
  }

  void check_interval_columns(const std::optional<Schema>& schema, const char* what) {
    if (!schema) return;
    for (const Field& interval : interval_columns()) {
      const std::string& name = interval.name;
      const char* clause = clauses_.from_snapshot                    ? "the snapshot's version"
                           : fold_name(name).starts_with("__system") ? "SYSTEM SEQUENCE BY"
                                                                     : "SEQUENCE BY";
      const Field* field = schema->get(name);
      if (field == nullptr) {
        add(invalid_argument("AUTOCDC_INTERVAL_COLUMNS_MISMATCH",
                             "the {} of {} lacks {}: {} needs it with the type of {}, {}", what,
                             plan_.target, name, to_string(plan_.scd_type), clause,
                             to_sql(interval.type)),
            declaration_.place);
      } else if (!same_type(field->type, interval.type)) {
        add(invalid_argument(
                "AUTOCDC_INTERVAL_COLUMNS_MISMATCH",
                "the {} of {} has {} as {}, but {} has the type {}: they must be the same", what,
                plan_.target, name, to_sql(field->type), clause, to_sql(interval.type)),
            declaration_.place);
      } else if (!field->nullable) {
        add(invalid_argument(
                "AUTOCDC_INTERVAL_COLUMNS_MISMATCH",
                "the {} of {} has {} as NOT NULL: it must be nullable, null means no bound", what,
                plan_.target, name),
            declaration_.place);
      }
    }
  }

  void begin_with(const std::optional<Schema>& schema) {
    if (!schema) return;
    plan_.target_schema = *schema;
    for (const Field& field : schema->fields) {
      if (fold_name(field.name).starts_with(kReservedPrefix)) {
        add(invalid_argument(
                "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
                "table {} has a column '{}', a name that strandline keeps for itself: rename it",
                plan_.target, field.name),
            declaration_.place);
      }
    }
  }

  // New columns go before __START_AT.
  void insert_column(Field field) {
    auto& fields = plan_.target_schema.fields;
    auto at = fields.end();
    if (has_intervals()) {
      const std::optional<size_t> start = plan_.target_schema.find(kStartAt);
      if (start) at = fields.begin() + static_cast<std::ptrdiff_t>(*start);
    }
    fields.insert(at, std::move(field));
  }

  // The declaration of an existing table: it may add columns and widen types.
  void merge_declared() {
    for (const Field& declared : target_.declared->fields) {
      const std::optional<size_t> index = plan_.target_schema.find(declared.name);
      if (!index) {
        Field added = declared;
        added.nullable = true;
        insert_column(std::move(added));
        continue;
      }
      Field& field = plan_.target_schema.fields[*index];
      if (!same_type(field.type, declared.type)) widen(field, declared.type, "declared");
    }
  }

  void merge_source(const Field& source) {
    const std::optional<size_t> index = plan_.target_schema.find(source.name);
    if (!index) {
      if (target_.declared) {
        add(invalid_argument("AUTOCDC_COLUMN_NOT_IN_DECLARED_SCHEMA",
                             "the declared schema of {} has no column '{}', which the source "
                             "gives: declare it, or leave it out {}",
                             plan_.target, source.name, without(source.name)),
            declaration_.place);
        return;
      }
      Field added = source;
      added.nullable = true;
      added.metadata.clear();
      insert_column(std::move(added));
      return;
    }
    Field& field = plan_.target_schema.fields[*index];
    if (same_type(field.type, source.type)) return;
    const std::optional<DataType> common = least_common_type(field.type, source.type);
    if (common && same_type(*common, field.type)) return;  // narrower: cast up
    if (target_.declared) {
      add(incompatible(field, source.type,
                       "the declared type is fixed and holds no values of the other: change the "
                       "declaration or cast in "
                       "the source query"),
          declaration_.place);
      return;
    }
    widen(field, source.type, "source");
  }

  void widen(Field& field, const DataType& other, const char* whose) {
    const std::optional<DataType> common = least_common_type(field.type, other);
    if (!common) {
      add(incompatible(field, other, fmt::format("no type holds both: cast the {} column", whose)),
          declaration_.place);
      return;
    }
    const std::optional<DataType> reached = widened_type(field.type, other, target_.type_widening);
    if (!reached) {
      const std::optional<DataType> wider = widened_type(field.type, other, true);
      add(incompatible(
              field, other,
              wider ? fmt::format("declare the table with TBLPROPERTIES "
                                  "('delta.enableTypeWidening' = 'true') to make the column {}, or "
                                  "cast in the source query",
                                  to_sql(*wider))
                    : fmt::format("a stored {} cannot be read as {}: cast the {} column",
                                  to_sql(field.type), to_sql(*common), whose)),
          declaration_.place);
      return;
    }
    field.type = *reached;
  }

  Error incompatible(const Field& field, const DataType& other, const std::string& way_out) const {
    return invalid_argument(
        "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
        "column '{}' of {} is {} and the new data are {}; {} (delta.enableTypeWidening is {})",
        field.name, plan_.target, to_sql(field.type), to_sql(other), way_out,
        target_.type_widening ? "on" : "off");
  }

  void check_adopted_keys() {
    for (const Field& key : plan_.keys) {
      const Field* source = find_selected(key.name);
      const Field* existing = target_.existing->get(key.name);
      if (existing == nullptr) {
        add(invalid_argument("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT",
                             "table {} exists without AUTO CDC state and has no column '{}', a key "
                             "of this flow: use "
                             "another target or drop the table",
                             plan_.target, key.name),
            declaration_.place);
      } else if (!target_.declared && !same_type(source->type, existing->type)) {
        add(invalid_argument("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT",
                             "table {} exists with key '{}' as {}, and this flow's key is {}: cast "
                             "it in the source query",
                             plan_.target, key.name, to_sql(existing->type), to_sql(source->type)),
            declaration_.place);
      }
    }
  }

  PlanColumn make_column(const Field& field) const {
    PlanColumn column;
    column.name = field.name;
    column.type = field.type;
    column.nullable = field.nullable;
    column.is_key = is_key(field.name);
    column.empty_is_null = contains_name(target_.columns_without_empty, field.name);
    if (const Field* source = find_selected(field.name)) column.source = *source;
    if (column.source && !column.is_key) column.gives = gives(clauses_, field.name);
    // By what the clauses say alone, so that all flows into the table find the same.
    const auto by_leaves = [&](const sql::AutoCdcClauses& clauses) {
      return may_select(clauses, field.name) && gives(clauses, field.name) == Gives::kLeavesNotNull;
    };
    column.by_leaves =
        !column.is_key && (by_leaves(clauses_) ||
                           (target_.state && contains_name(target_.state->by_leaves, field.name)) ||
                           std::any_of(target_.clauses_elsewhere.begin(),
                                       target_.clauses_elsewhere.end(), by_leaves));
    column.generated = !column.source && target_.generated.count(field.name) > 0;
    const bool by_others =
        contains_name(target_.selected_elsewhere, field.name) ||
        (target_.state && contains_name(target_.state->selected_ever, field.name));
    column.owned = column.source.has_value() || (!column.generated && by_others);
    if (const auto given = target_.defaults.find(field.name);
        !column.owned && given != target_.defaults.end()) {
      column.default_value = given->second;
    }
    if (!column.is_key) {
      const std::optional<bool> tracked = find_tracked(tracked_, field.name);
      const std::optional<bool> before =
          target_.state ? find_tracked(target_.state->tracked, field.name) : std::nullopt;
      column.tracked = tracked.value_or(before.value_or(false));
    }
    if (target_.existing) {
      if (const Field* existing = target_.existing->get(field.name))
        column.existing = existing->type;
    }
    if (target_.existing_state) {
      if (const Field* existing = target_.existing_state->get(field.name))
        column.existing_state = existing->type;
    }
    return column;
  }

  // --- the state -------------------------------------------------------------------------------

  void lay_out_state() {
    StateSpec& spec = plan_.state_spec;
    if (target_.state) spec = *target_.state;
    spec.scd_type = plan_.scd_type;
    spec.sequence_type = plan_.sequence_type;
    if (!target_.state) spec.keys = plan_.keys;
    for (const PlanColumn& column : plan_.columns) {
      if (!column.source) continue;
      if (!contains_name(spec.selected_ever, column.name))
        spec.selected_ever.push_back(column.name);
      if (column.by_leaves && !contains_name(spec.by_leaves, column.name))
        spec.by_leaves.push_back(column.name);
      if (has_intervals() && !column.is_key && !find_tracked(spec.tracked, column.name)) {
        spec.tracked[column.name] = column.tracked;
      }
    }
    spec.truncates = spec.truncates || plan_.truncate_when != nullptr;
    spec.partial = spec.partial || plan_.gives_partly;
    spec.edited = spec.edited || target_.edited;
    if (is_bitemporal()) spec.system_sequence_type = plan_.system_sequence_type;
    resolve_sequence_column();
    for (PlanColumn& column : plan_.columns) {
      column.noted = spec.edited && !is_bitemporal() && !column.owned && !column.generated;
    }

    std::vector<Field> fields;
    fields.reserve(plan_.keys.size());
    for (const Field& key : plan_.keys) fields.push_back(Field{key.name, key.type, true, {}});
    fields.push_back(Field{kStateSequence, plan_.sequence_type, true, {}});
    fields.push_back(Field{kStateKind, DataType::primitive(TypeId::kByte), true, {}});
    if (is_bitemporal()) {
      fields.push_back(Field{kStateSystemSequence, plan_.system_sequence_type, true, {}});
    }
    if (spec.partial) {
      fields.push_back(
          Field{kStateGivenNulls, DataType::array(DataType::primitive(TypeId::kString)), true, {}});
    }
    if (has_intervals() || spec.partial) {
      for (const PlanColumn& column : plan_.columns) {
        if (!column.is_key && (column.owned || (column.noted && has_intervals())))
          fields.push_back(Field{column.name, column.type, true, {}});
      }
    }
    merge_state_schema(std::move(fields));

    for (const PlanColumn& column : plan_.columns) {
      if (column.owned && !column.source && !plan_.gives_partly) {
        plan_.warnings.push_back(Error{ErrorKind::kInvalidArgument, "AUTOCDC_COLUMN_NOT_GIVEN",
                                       fmt::format("flow {} does not give column '{}' of {}, which "
                                                   "another flow gives: its events make it null",
                                                   plan_.flow_name, column.name, plan_.target),
                                       declaration_.place});
      }
    }
  }

  // The existing state keeps its order; new columns go to the end.
  void merge_state_schema(std::vector<Field> fields) {
    Schema& schema = plan_.state_schema;
    if (target_.existing_state) schema = *target_.existing_state;
    for (const Field& field : schema.fields) plan_.state_columns_before.insert(field.name);
    for (Field& field : fields) {
      const std::optional<size_t> index = schema.find(field.name);
      if (index) {
        schema.fields[*index].type = field.type;
      } else {
        schema.fields.push_back(std::move(field));
      }
    }
    plan_.state_schema_changed = !same_schema(schema, target_.existing_state);
  }

  void resolve_sequence_column() {
    if (plan_.scd_type != ScdType::kType1 || clauses_.from_snapshot) return;
    const std::optional<sql::Name> plain = sql::plain_column(*clauses_.sequence_by);
    const Field* source = plain ? find_selected(plain->text) : nullptr;
    const Field* kept = source != nullptr ? plan_.target_schema.get(source->name) : nullptr;
    const bool is_kept = kept != nullptr && same_type(kept->type, plan_.sequence_type);
    StateSpec& spec = plan_.state_spec;
    const bool begins = !target_.state && (!target_.existing || !target_.has_rows);
    if (begins && is_kept) spec.sequence_column = kept->name;
    plan_.sequence_column = spec.sequence_column;
    plan_.sequence_is_column =
        is_kept && spec.sequence_column && same_name(*spec.sequence_column, kept->name);
  }

  const Declaration& declaration_;
  const sql::AutoCdcClauses& clauses_;
  const SourceFacts& source_;
  const TargetFacts& target_;
  std::vector<Field> selected_;
  std::map<std::string, bool> tracked_;
  Plan plan_;
  std::vector<Error> errors_;
};

}  // namespace

PlanOrErrors make_plan(const Declaration& declaration, const SourceFacts& source,
                       const TargetFacts& target) {
  return Planner(declaration, source, target).make();
}

}  // namespace strandline::cdc
