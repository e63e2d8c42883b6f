#include "pipeline/feed_source.h"

#include "base/error.h"
#include "cdf/stream.h"

namespace strandline::pipeline {
namespace {

cdf::StreamOptions feed_options(const StreamOptions& options, bool unlimited, bool tolerate) {
  cdf::StreamOptions feed;
  if (options.starting_latest) {
    feed.start = cdf::FromLatest{};
  } else if (options.starting_version) {
    feed.start = cdf::Bound(*options.starting_version);
  } else if (options.starting_timestamp_ms) {
    feed.start = cdf::Bound(cdf::Timestamp{*options.starting_timestamp_ms * 1000});
  }
  feed.tolerate_out_of_range = tolerate;
  feed.max_files = options.max_files;
  feed.max_bytes = options.max_bytes;
  feed.exclude_regex = options.exclude_regex;
  feed.fail_on_data_loss = options.fail_on_data_loss;
  feed.unlimited = unlimited;
  return feed;
}

// A checkpoint counts the files that are done, an offset names the last of them.
cdf::StreamOffset feed_offset(const DeltaOffset& offset) {
  return {offset.table_id, offset.version, offset.index - 1, offset.initial};
}
DeltaOffset checkpoint_offset(const cdf::StreamOffset& offset) {
  return {offset.table_id, offset.version, offset.index + 1, offset.is_starting_version};
}

struct LostCommit {
  delta::Version version = 0;
  Error why;
};

// The first commit of which a file is gone, or the last.
std::optional<LostCommit> find_lost_commit(const delta::Table& table, const cdf::ChangePlan& plan,
                                           bool last) {
  cdf::ChangePlan one;
  one.definition = plan.definition;
  const size_t count = plan.commits.size();
  for (size_t i = 0; i < count; ++i) {
    one.commits.assign(1, plan.commits[last ? count - 1 - i : i]);
    if (auto why = cdf::find_missing_file(table.store().get(), one))
      return LostCommit{one.commits.front().version, *std::move(why)};
  }
  return std::nullopt;
}

// The next version that says what the table's columns are; none up to `last`.
Result<std::optional<delta::Version>> next_definition(const delta::Table& table,
                                                      delta::Version after, delta::Version last) {
  for (delta::Version version = after + 1; version <= last; ++version) {
    SL_ASSIGN(const auto actions, table.commit(version));
    for (const auto& action : actions) {
      if (std::holds_alternative<delta::Metadata>(action)) return std::optional(version);
    }
  }
  return std::optional<delta::Version>();
}

}  // namespace

Result<Schema> feed_schema(const Schema& table, const std::string& shown) {
  Schema schema = table;
  const std::pair<const char*, TypeId> columns[] = {
      {cdf::kChangeTypeColumn, TypeId::kString},
      {cdf::kCommitVersionColumn, TypeId::kLong},
      {cdf::kCommitTimestampColumn, TypeId::kTimestamp}};
  for (const auto& [name, type] : columns) {
    if (table.find(name)) {
      return invalid_argument(
          "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
          "'{}' has a column {} of its own, so that its change data feed cannot "
          "be read: read the table without readChangeFeed, or rename the column",
          shown, name);
    }
    schema.fields.push_back(Field{name, DataType::primitive(type), true, {}});
  }
  return schema;
}

Result<DeltaRange> plan_feed(const delta::Table& table,
                             const std::shared_ptr<const delta::Snapshot>& newest,
                             const StreamOptions& options,
                             const std::optional<DeltaOffset>& progress, bool unlimited,
                             bool tolerate, const std::string& shown) {
  const cdf::StreamOptions feed = feed_options(options, unlimited, tolerate);
  DeltaRange range;
  cdf::StreamOffset from;
  if (progress) {
    SL_TRY(check_same_table(*newest, *progress, shown));
    if (!progress->initial && progress->index > 0) {
      return invalid_data(
          "DELTA_STREAM_INSIDE_COMMIT",
          "the stream of '{}' stopped inside version {} when it was read without readChangeFeed: "
          "read it without once more, or run a full refresh of the flow's target",
          shown, progress->version);
    }
    SL_ASSIGN(const auto on, go_on_from(table, *newest, options, *progress, shown, &range.lost));
    from = feed_offset(on);
  } else {
    SL_ASSIGN(from, cdf::first_offset(table, feed));
  }
  const auto definition = cdf::without_files(*newest);
  const auto pass_over = [&](delta::Version last, const std::string& why) {
    range.lost.push_back(passed_over(shown, from.version, last, why));
    from = {from.table_id, last + 1, -1, false};
  };
  while (true) {
    auto planned = cdf::next_batch(table, definition, feed, from, newest->version);
    if (!planned.ok()) {
      if (options.fail_on_data_loss ||
          planned.error().code != "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE") {
        return planned.error();
      }
      SL_ASSIGN(const auto next, next_definition(table, from.version, newest->version));
      if (!next) return planned.error();
      pass_over(*next - 1, "its columns are not those of the table now");
      continue;
    }
    auto& batch = *planned;
    if (batch.from.version > from.version)
      pass_over(batch.from.version - 1, "the log no longer has that");
    if (!options.fail_on_data_loss && !batch.from.is_starting_version) {
      if (const auto lost = find_lost_commit(table, batch.plan, false)) {
        if (lost->version == batch.plan.commits.front().version) {
          from.version = lost->version;
          pass_over(lost->version, lost->why.message.substr(0, lost->why.message.rfind(": ")));
          continue;
        }
        // A part that is not limited has to be all there is.
        if (!unlimited) batch.to = {from.table_id, lost->version, -1, false};
      }
    }
    range.from = checkpoint_offset(batch.from);
    SL_ASSIGN(range.to, with_last_commit(table, newest->version, checkpoint_offset(batch.to)));
    range.has_data = !batch.plan.commits.empty();
    if (range.has_data || batch.to == batch.from) return range;
    from = batch.to;
  }
}

Result<StreamLoss> find_feed_loss(const delta::Table& table,
                                  const std::shared_ptr<const delta::Snapshot>& newest,
                                  const StreamOptions& options, bool tolerate) {
  StreamLoss loss;
  if (!options.fail_on_data_loss) return loss;
  const std::string& id = newest->metadata.id;
  cdf::StreamOptions feed = feed_options(options, true, tolerate);
  auto start = cdf::first_offset(table, feed);
  if (!start.ok() && start.error().kind == ErrorKind::kNotFound) {
    loss.first = start.error();
    SL_ASSIGN(const auto oldest, oldest_commit(table, *newest));
    loss.later = DeltaOffset{id, oldest, 0, false};
    feed.start = cdf::Bound(oldest);
    start = cdf::first_offset(table, feed);
  }
  if (!start.ok()) return loss;
  const auto definition = cdf::without_files(*newest);
  for (auto at = *start;;) {
    const auto batch = cdf::next_batch(table, definition, feed, at, newest->version);
    if (!batch.ok()) return loss;
    if (auto lost = find_lost_commit(table, batch->plan, false)) {
      if (!loss.first) loss.first = std::move(lost->why);
      if (at.is_starting_version) {
        loss.later.reset();
        return loss;
      }
      const auto last = find_lost_commit(table, batch->plan, true);
      loss.later = DeltaOffset{id, (last ? last->version : lost->version) + 1, 0, false};
    }
    if (batch->to == at) return loss;
    at = batch->to;
  }
}

Result<cdf::ChangePlan> feed_range(const delta::Table& table,
                                   const std::shared_ptr<const delta::Snapshot>& newest,
                                   const StreamOptions& options, const DeltaOffset& from,
                                   const DeltaOffset& to) {
  // What was planned is read whole, whatever the limits say now.
  const cdf::StreamOptions feed = feed_options(options, true, true);
  SL_ASSIGN(auto batch, cdf::repeat_batch(table, cdf::without_files(*newest), feed,
                                          feed_offset(from), feed_offset(to)));
  return std::move(batch.plan);
}

}  // namespace strandline::pipeline
