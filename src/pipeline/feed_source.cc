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
    from = feed_offset(*progress);
  } else {
    SL_ASSIGN(from, cdf::first_offset(table, feed));
  }
  const auto definition = cdf::without_files(*newest);
  DeltaRange range;
  while (true) {
    SL_ASSIGN(const auto batch, cdf::next_batch(table, definition, feed, from, newest->version));
    range.from = checkpoint_offset(batch.from);
    range.to = checkpoint_offset(batch.to);
    range.has_data = !batch.plan.commits.empty();
    if (range.has_data || batch.to == batch.from) return range;
    from = batch.to;
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
