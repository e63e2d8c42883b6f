#include "pipeline/checkpoint.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "delta/snapshot.h"
#include "sql/parser.h"

namespace strandline::pipeline {
namespace {

constexpr int64_t kFormat = 1;
// Plans are folded into a state file after this many batches, when the state has not grown much, or
// after kMaxBatches whatever its size: reading a checkpoint never opens more files than that.
constexpr int64_t kMinBatches = 16;
constexpr int64_t kMaxBatches = 256;

Error broken(const std::string& path) {
  return corrupt(
      "CHECKPOINT_CORRUPT",
      "'{}' is not a checkpoint file of this program: restore it, or run a full refresh of "
      "the flow's target",
      path);
}

void print_file(JsonWriter& w, const ConsumedFile& file) {
  w.begin_array();
  w.value(file.path);
  w.value(file.size_bytes);
  w.value(file.modified_ms);
  w.end_array();
}

std::optional<ConsumedFile> parse_file(const Json& json) {
  if (!json.is_array() || json.items().size() != 3) return {};
  const auto size = json.items()[1].as_int();
  const auto modified = json.items()[2].as_int();
  if (!json.items()[0].is_string() || !size || !modified) return {};
  return ConsumedFile{json.items()[0].text(), *size, *modified};
}

void print_mark(JsonWriter& w, const char* name, const std::optional<delta::CommitMark>& mark) {
  if (!mark) return;
  w.key(name);
  w.begin_object();
  w.key("version");
  w.value(mark->version);
  w.key("commit");
  w.value(mark->fingerprint);
  w.end_object();
}

void print_marks(JsonWriter& w, const TableMarks& marks) {
  w.key("marks");
  w.begin_object();
  print_mark(w, "target", marks.target);
  print_mark(w, "state", marks.state);
  w.end_object();
}

void print_offset(JsonWriter& w, const DeltaOffset& offset) {
  w.begin_object();
  w.key("table_id");
  w.value(offset.table_id);
  w.key("version");
  w.value(offset.version);
  w.key("index");
  w.value(offset.index);
  w.key("initial");
  w.value(offset.initial);
  print_mark(w, "last", offset.last);
  w.end_object();
}

std::string text_member(const Json& json, const char* name) {
  const Json* member = json.get(name);
  return member != nullptr && member->is_string() ? member->text() : std::string();
}

std::optional<int64_t> int_member(const Json& json, const char* name) {
  const Json* member = json.get(name);
  return member == nullptr ? std::nullopt : member->as_int();
}

std::optional<delta::CommitMark> parse_mark(const Json* json) {
  if (json == nullptr || !json->is_object()) return {};
  const auto version = int_member(*json, "version");
  if (!version) return {};
  return delta::CommitMark{*version, text_member(*json, "commit")};
}

TableMarks parse_marks(const Json& json) {
  const Json* const marks = json.get("marks");
  if (marks == nullptr) return {};
  return {parse_mark(marks->get("target")), parse_mark(marks->get("state"))};
}

std::optional<DeltaOffset> parse_offset(const Json* json) {
  if (json == nullptr || !json->is_object()) return {};
  const auto version = int_member(*json, "version");
  const auto index = int_member(*json, "index");
  const Json* initial = json->get("initial");
  if (!version || !index || initial == nullptr) return {};
  return DeltaOffset{text_member(*json, "table_id"), *version, *index,
                     initial->as_bool().value_or(false), parse_mark(json->get("last"))};
}

void print_version(JsonWriter& w, const std::optional<SnapshotVersion>& version) {
  w.key("snapshot");
  if (!version) return w.null();
  w.begin_object();
  w.key("type");
  w.value(to_sql(version->type));
  w.key("value");
  w.value(version->value);
  w.end_object();
}

Result<std::optional<SnapshotVersion>> parse_version(const Json* json, const std::string& path) {
  if (json == nullptr || !json->is_object()) return std::optional<SnapshotVersion>();
  const auto type = sql::parse_type(text_member(*json, "type"), path);
  if (!type.ok()) return broken(path);
  return std::optional(SnapshotVersion{*type, text_member(*json, "value")});
}

void print_texts(JsonWriter& w, const char* name, const std::map<std::string, std::string>& texts) {
  w.key(name);
  w.begin_object();
  for (const auto& [source, text] : texts) {
    w.key(source);
    w.value(text);
  }
  w.end_object();
}

// Checkpoints of earlier programs have none.
std::map<std::string, std::string> parse_texts(const Json& json, const char* name) {
  std::map<std::string, std::string> texts;
  const Json* const given = json.get(name);
  if (given == nullptr) return texts;
  for (size_t i = 0; i < given->names().size(); ++i)
    texts[given->names()[i]] = given->items()[i].text();
  return texts;
}

std::string print_plan(const BatchPlan& plan) {
  JsonWriter w;
  w.begin_object();
  w.key("format");
  w.value(kFormat);
  w.key("batch");
  w.value(plan.batch);
  w.key("time_us");
  w.value(plan.time_us);
  w.key("definition");
  w.value(plan.definition);
  w.key("target_id");
  w.value(plan.target_id);
  w.key("state_version");
  w.value(plan.state_version);
  w.key("pinned");
  w.begin_object();
  for (const auto& [path, version] : plan.pinned) {
    w.key(path);
    w.value(version);
  }
  w.end_object();
  print_texts(w, "pinned_ids", plan.pinned_ids);
  print_texts(w, "pinned_commits", plan.pinned_commits);
  print_marks(w, plan.marks);
  if (plan.is_snapshot) print_version(w, plan.snapshot_version);
  w.key("sources");
  w.begin_array();
  for (const auto& source : plan.sources) {
    w.begin_object();
    w.key("key");
    w.value(source.key);
    if (source.from) {
      w.key("from");
      print_offset(w, *source.from);
    }
    if (source.to) {
      w.key("to");
      print_offset(w, *source.to);
    }
    if (source.schema) {
      w.key("schema");
      w.value(delta::print_schema(*source.schema));
    }
    w.key("files");
    w.begin_array();
    for (const auto& file : source.files) {
      if (!plan.is_snapshot) print_file(w, file);
    }
    w.end_array();
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take();
}

Result<BatchPlan> parse_plan(const std::string& text, const std::string& path) {
  const auto json = Json::parse(text);
  if (!json.ok() || int_member(*json, "format") != kFormat) return broken(path);
  BatchPlan plan;
  const auto batch = int_member(*json, "batch");
  const auto time_us = int_member(*json, "time_us");
  const auto state_version = int_member(*json, "state_version");
  const Json* pinned = json->get("pinned");
  const Json* sources = json->get("sources");
  if (!batch || !time_us || !state_version || pinned == nullptr || sources == nullptr) {
    return broken(path);
  }
  plan.batch = *batch;
  plan.time_us = *time_us;
  plan.state_version = *state_version;
  plan.definition = text_member(*json, "definition");
  plan.target_id = text_member(*json, "target_id");
  for (size_t i = 0; i < pinned->names().size(); ++i) {
    plan.pinned[pinned->names()[i]] = pinned->items()[i].as_int().value_or(0);
  }
  plan.pinned_ids = parse_texts(*json, "pinned_ids");
  plan.pinned_commits = parse_texts(*json, "pinned_commits");
  plan.marks = parse_marks(*json);
  if (const Json* snapshot = json->get("snapshot")) {
    plan.is_snapshot = true;
    SL_ASSIGN(plan.snapshot_version, parse_version(snapshot, path));
  }
  for (const auto& item : sources->items()) {
    SourcePlan source;
    source.key = text_member(item, "key");
    source.from = parse_offset(item.get("from"));
    source.to = parse_offset(item.get("to"));
    if (const Json* schema = item.get("schema")) {
      SL_ASSIGN(source.schema, delta::parse_schema(schema->text()));
    }
    if (const Json* files = item.get("files")) {
      for (const auto& entry : files->items()) {
        auto file = parse_file(entry);
        if (!file) return broken(path);
        source.files.push_back(std::move(*file));
      }
    }
    plan.sources.push_back(std::move(source));
  }
  return plan;
}

// "plan-12.json" -> 12 for kind "plan".
std::optional<int64_t> batch_of(const std::string& path, const std::string& kind) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string end = ".json";
  if (name.size() <= kind.size() + 1 + end.size() || name.compare(0, kind.size(), kind) != 0 ||
      name[kind.size()] != '-' || name.compare(name.size() - end.size(), end.size(), end) != 0) {
    return {};
  }
  int64_t number = 0;
  for (size_t i = kind.size() + 1; i < name.size() - end.size(); ++i) {
    if (name[i] < '0' || name[i] > '9') return {};
    number = number * 10 + (name[i] - '0');
  }
  return number;
}

}  // namespace

bool operator==(const DeltaOffset& a, const DeltaOffset& b) {
  return a.table_id == b.table_id && a.version == b.version && a.index == b.index &&
         a.initial == b.initial;
}

std::string checkpoint_name(const std::string& name) {
  std::string out;
  for (const char c : fold_name(name)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !out.empty());
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

Result<TargetCheckpoint> TargetCheckpoint::open(std::shared_ptr<storage::Store> store,
                                                std::string directory) {
  TargetCheckpoint checkpoint;
  checkpoint.store_ = std::move(store);
  checkpoint.directory_ = std::move(directory);
  const std::string path = checkpoint.directory_ + "/generation.json";
  const auto text = checkpoint.store_->read(path);
  if (!text.ok()) {
    if (text.error().kind == ErrorKind::kNotFound) return checkpoint;
    return text.error();
  }
  const auto json = Json::parse(*text);
  if (!json.ok()) return broken(path);
  const auto generation = int_member(*json, "generation");
  if (!generation) return broken(path);
  checkpoint.generation_ = *generation;
  return checkpoint;
}

std::string TargetCheckpoint::directory() const {
  return fmt::format("{}/{}", directory_, generation_);
}

std::string TargetCheckpoint::flow_directory(const std::string& flow) const {
  return directory() + "/" + checkpoint_name(flow);
}

Status TargetCheckpoint::begin_refresh(int64_t used) {
  const int64_t next = std::max(generation_, used) + 1;
  JsonWriter w;
  w.begin_object();
  w.key("generation");
  w.value(next);
  w.end_object();
  SL_TRY(store_->make_directories(directory_));
  SL_TRY(store_->put(directory_ + "/generation.json", w.take()));
  generation_ = next;
  return {};
}

void TargetCheckpoint::remove_old() const {
  for (int64_t old = generation_ - 1; old >= 0; --old) {
    const std::string folder = fmt::format("{}/{}", directory_, old);
    if (!store_->stat(folder).ok() || !store_->remove_tree(folder).ok()) return;
  }
}

Result<FlowCheckpoint> FlowCheckpoint::open(std::shared_ptr<storage::Store> store,
                                            std::string directory) {
  FlowCheckpoint checkpoint;
  checkpoint.store_ = std::move(store);
  checkpoint.directory_ = std::move(directory);
  const auto listed = checkpoint.store_->list(checkpoint.directory_);
  if (!listed.ok()) {
    if (listed.error().kind == ErrorKind::kNotFound) return checkpoint;
    return listed.error();
  }
  checkpoint.exists_ = true;
  std::set<int64_t> plans;
  std::set<int64_t> done;
  for (const auto& entry : *listed) {
    if (const auto batch = batch_of(entry.path, "plan")) plans.insert(*batch);
    if (const auto batch = batch_of(entry.path, "done")) done.insert(*batch);
    if (const auto batch = batch_of(entry.path, "state")) {
      checkpoint.state_batch_ = std::max(checkpoint.state_batch_, *batch);
    }
  }
  if (checkpoint.state_batch_ >= 0) {
    SL_ASSIGN(const auto text,
              checkpoint.store_->read(checkpoint.file("state", checkpoint.state_batch_)));
    SL_TRY(checkpoint.load_state(text));
    checkpoint.last_batch_ = checkpoint.state_batch_;
  }
  for (const int64_t batch : plans) {
    if (batch <= checkpoint.state_batch_) continue;  // a compaction that did not get to the end
    const std::string path = checkpoint.file("plan", batch);
    SL_ASSIGN(const auto text, checkpoint.store_->read(path));
    SL_ASSIGN(auto plan, parse_plan(text, path));
    if (batch != checkpoint.last_batch_ + 1 || plan.batch != batch) return broken(path);
    if (done.count(batch) > 0) {
      checkpoint.apply(plan);
    } else {
      checkpoint.unfinished_ = std::move(plan);
      break;
    }
  }
  if (checkpoint.last_batch_ > checkpoint.state_batch_) SL_TRY(checkpoint.read_marks());
  return checkpoint;
}

// Of the last finished batch, in the file that says so.
Status FlowCheckpoint::read_marks() {
  const std::string path = file("done", last_batch_);
  SL_ASSIGN(const auto text, store_->read(path));
  const auto json = Json::parse(text);
  if (!json.ok()) return broken(path);
  marks_ = parse_marks(*json);
  return {};
}

void FlowCheckpoint::apply(const BatchPlan& plan) {
  last_batch_ = plan.batch;
  if (!plan.target_id.empty()) target_id_ = plan.target_id;
  definition_ = plan.definition;
  had_state_ = had_state_ || plan.state_version >= 0;
  pinned_ = plan.pinned;
  pinned_ids_ = plan.pinned_ids;
  pinned_commits_ = plan.pinned_commits;
  if (plan.is_snapshot) {
    if (plan.snapshot_version) snapshot_version_ = plan.snapshot_version;
  }
  for (const auto& source : plan.sources) {
    if (source.schema) progress_.schemas[source.key] = *source.schema;
    if (plan.is_snapshot) continue;
    if (source.to) progress_.offsets[source.key] = *source.to;
    const bool whole = source.key.starts_with(kWholeKey);
    if (source.files.empty() && !whole) continue;
    auto& files = progress_.files[source.key];
    if (whole) files.clear();
    for (const auto& file : source.files) files[file.path] = file;
  }
}

std::string FlowCheckpoint::file(const char* kind, int64_t batch) const {
  return fmt::format("{}/{}-{}.json", directory_, kind, batch);
}

TableMarks FlowCheckpoint::marks() const {
  TableMarks marks = unfinished_ ? unfinished_->marks : marks_;
  if (!marks.target) marks.target = marks_.target;
  if (!marks.state) marks.state = marks_.state;
  return marks;
}

std::optional<DeltaOffset> FlowCheckpoint::offset(const std::string& source) const {
  const auto it = progress_.offsets.find(source);
  return it == progress_.offsets.end() ? std::nullopt : std::optional(it->second);
}

const ConsumedFile* FlowCheckpoint::consumed(const std::string& source,
                                             const std::string& path) const {
  const auto it = progress_.files.find(source);
  if (it == progress_.files.end()) return nullptr;
  const auto found = it->second.find(path);
  return found == it->second.end() ? nullptr : &found->second;
}

std::vector<const ConsumedFile*> FlowCheckpoint::consumed_files(const std::string& source) const {
  std::vector<const ConsumedFile*> out;
  const auto it = progress_.files.find(source);
  if (it == progress_.files.end()) return out;
  for (const auto& [path, entry] : it->second) out.push_back(&entry);
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->path < b->path; });
  return out;
}

const Schema* FlowCheckpoint::schema(const std::string& source) const {
  const auto it = progress_.schemas.find(source);
  return it == progress_.schemas.end() ? nullptr : &it->second;
}

Status FlowCheckpoint::write_plan(const BatchPlan& plan) {
  if (unfinished_ || plan.batch != last_batch_ + 1) {
    return internal_error("CHECKPOINT_ORDER", "batch {} does not follow batch {}", plan.batch,
                          last_batch_);
  }
  if (!exists_) {
    SL_TRY(store_->make_directories(directory_));
    exists_ = true;
  }
  SL_TRY(store_->put(file("plan", plan.batch), print_plan(plan)));
  unfinished_ = plan;
  return {};
}

Status FlowCheckpoint::mark_done(const TableMarks& marks) {
  if (!unfinished_) return internal_error("CHECKPOINT_ORDER", "there is no planned batch");
  JsonWriter w;
  w.begin_object();
  print_marks(w, marks);
  w.end_object();
  SL_TRY(store_->put(file("done", unfinished_->batch), w.take()));
  apply(*unfinished_);
  marks_ = marks;
  unfinished_.reset();
  compact();
  return {};
}

Status FlowCheckpoint::drop_plan() {
  if (!unfinished_) return {};
  SL_TRY(store_->remove(file("plan", unfinished_->batch)));
  unfinished_.reset();
  return {};
}

// A failure leaves more files to read, nothing wrong.
void FlowCheckpoint::compact() {
  const int64_t batches = last_batch_ - state_batch_;
  size_t files = 0;
  for (const auto& [source, entries] : progress_.files) files += entries.size();
  const bool cheap = (files - state_files_) * 4 >= state_files_;
  if (batches < kMinBatches || (!cheap && batches < kMaxBatches)) return;
  if (!store_->put(file("state", last_batch_), print_state()).ok()) return;
  const int64_t old_state = state_batch_;
  state_batch_ = last_batch_;
  state_files_ = files;
  for (int64_t batch = old_state + 1; batch <= last_batch_; ++batch) {
    if (!store_->remove(file("plan", batch)).ok()) return;
    if (!store_->remove(file("done", batch)).ok()) return;
  }
  if (old_state >= 0) (void)store_->remove(file("state", old_state)).ok();
}

std::string FlowCheckpoint::print_state() const {
  JsonWriter w;
  w.begin_object();
  w.key("format");
  w.value(kFormat);
  w.key("batch");
  w.value(last_batch_);
  w.key("target_id");
  w.value(target_id_);
  w.key("definition");
  w.value(definition_);
  w.key("had_state");
  w.value(had_state_);
  w.key("pinned");
  w.begin_object();
  for (const auto& [table, version] : pinned_) {
    w.key(table);
    w.value(version);
  }
  w.end_object();
  print_texts(w, "pinned_ids", pinned_ids_);
  print_texts(w, "pinned_commits", pinned_commits_);
  print_marks(w, marks_);
  if (snapshot_version_) print_version(w, snapshot_version_);
  w.key("offsets");
  w.begin_object();
  for (const auto& [source, offset] : progress_.offsets) {
    w.key(source);
    print_offset(w, offset);
  }
  w.end_object();
  w.key("schemas");
  w.begin_object();
  for (const auto& [source, schema] : progress_.schemas) {
    w.key(source);
    w.value(delta::print_schema(schema));
  }
  w.end_object();
  w.key("files");
  w.begin_object();
  for (const auto& [source, files] : progress_.files) {
    w.key(source);
    w.begin_array();
    for (const auto* entry : consumed_files(source)) print_file(w, *entry);
    w.end_array();
  }
  w.end_object();
  w.end_object();
  return w.take();
}

Status FlowCheckpoint::load_state(const std::string& text) {
  const std::string path = file("state", state_batch_);
  const auto json = Json::parse(text);
  if (!json.ok() || int_member(*json, "format") != kFormat ||
      int_member(*json, "batch") != state_batch_) {
    return broken(path);
  }
  target_id_ = text_member(*json, "target_id");
  definition_ = text_member(*json, "definition");
  if (const Json* had = json->get("had_state")) had_state_ = had->as_bool().value_or(false);
  if (const Json* pinned = json->get("pinned")) {
    for (size_t i = 0; i < pinned->names().size(); ++i) {
      pinned_[pinned->names()[i]] = pinned->items()[i].as_int().value_or(0);
    }
  }
  pinned_ids_ = parse_texts(*json, "pinned_ids");
  pinned_commits_ = parse_texts(*json, "pinned_commits");
  marks_ = parse_marks(*json);
  SL_ASSIGN(snapshot_version_, parse_version(json->get("snapshot"), path));
  if (const Json* offsets = json->get("offsets")) {
    for (size_t i = 0; i < offsets->names().size(); ++i) {
      const auto offset = parse_offset(&offsets->items()[i]);
      if (!offset) return broken(path);
      progress_.offsets[offsets->names()[i]] = *offset;
    }
  }
  if (const Json* schemas = json->get("schemas")) {
    for (size_t i = 0; i < schemas->names().size(); ++i) {
      SL_ASSIGN(progress_.schemas[schemas->names()[i]],
                delta::parse_schema(schemas->items()[i].text()));
    }
  }
  if (const Json* sources = json->get("files")) {
    for (size_t i = 0; i < sources->names().size(); ++i) {
      auto& files = progress_.files[sources->names()[i]];
      for (const auto& entry : sources->items()[i].items()) {
        auto parsed = parse_file(entry);
        if (!parsed) return broken(path);
        std::string name = parsed->path;
        files.emplace(std::move(name), std::move(*parsed));
        ++state_files_;
      }
    }
  }
  return {};
}

}  // namespace strandline::pipeline
