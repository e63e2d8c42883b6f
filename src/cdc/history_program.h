// Storage types whose rows come from several events: partial updates in SCD type 1 and 2, and
// bitemporal. The state keeps the events of a key one by one; a batch reads those of the keys it
// touches, settles what meets at one moment (auto-cdc.md section 7), fills what was not given
// (section 5) and folds the rows anew.
//
// A moment is a sequence; bitemporal, a sequence and a system sequence. A key is kept in one of two
// forms: *whole* while none of its events that still count is partial, the form the programs for
// whole rows use, where the target tells most; else *full*, where the state has every event that
// counts.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cdc/leaves.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

class HistoryProgram : public ProgramBuilder {
 public:
  HistoryProgram(const Dialect& dialect, const Plan& plan, const BatchRelations& relations,
                 const ProgramOptions& options)
      : ProgramBuilder(dialect, plan, relations, options) {
    for (size_t i = 0; i < plan.columns.size(); ++i) {
      if (plan.columns[i].owned) owned_.push_back(i);
    }
    for (const size_t i : values_) {
      if (plan.columns[i].tracked) tracked_.push_back(i);
    }
    for (const size_t i : user_columns_) {
      if (plan.columns[i].noted) noted_.push_back(i);
    }
    carried_ = owned_;
    carried_.insert(carried_.end(), noted_.begin(), noted_.end());
  }
  Result<Program> build() override;

 private:
  // Where an entry comes from. The smaller one is kept of two that say the same.
  static constexpr int kFromState = 0;
  static constexpr int kFromTarget = 1;
  static constexpr int kFromBatch = 2;
  static constexpr int kMerged = 3;   // partial events of one moment, laid over each other
  static constexpr int kTrimmed = 4;  // a partial event less what later ones give too
  static constexpr int kByHand = 5;   // what a row changed by hand says

  // What the state has of an entry.
  static constexpr int kNotStored = 0;
  static constexpr int kStoredWithoutValues = 1;
  static constexpr int kStored = 2;

  static std::string join(const std::vector<std::string>& parts, const char* glue = ", ") {
    return fmt::format("{}", fmt::join(parts, glue));
  }

  bool is_scd1() const { return plan_.scd_type == ScdType::kType1; }
  bool truncates() const { return plan_.state_spec.truncates; }
  bool is_edited() const { return !relations_.edits.empty(); }
  // Whether there may be events that a row changed by hand supersedes.
  bool weighs() const { return plan_.scd_type == ScdType::kType2 && plan_.state_spec.edited; }

  // --- names -----------------------------------------------------------------------------------
  static std::string prefix(const std::string& alias) { return alias.empty() ? "" : alias + "."; }
  // a.seq, a.sys
  std::string moment(const std::string& alias = "") const;
  std::string key_and_moment(const std::string& alias = "") const;
  std::string same_moment(const std::string& a, const std::string& b) const;
  std::string system_order(const std::string& sys) const;
  std::string by_moment(const std::string& direction = "NULLS FIRST") const;
  // The moments of a key, bitemporal of a key as it was known at one system time.
  std::string partition() const { return is_bitemporal() ? keys() + ", place" : keys(); }
  // Whether a row is the first of its partition, along a window.
  std::string is_first(const std::string& window) const;
  std::string columns(const std::vector<size_t>& which, const std::string& alias = "") const;
  // Whether a row is the last of its partition. Not row_number() = 1, which the engine turns into
  // an aggregate that writes values anew.
  static std::string last_of(const std::string& partition, const std::string& order);

  // --- leaves ----------------------------------------------------------------------------------
  // Leaves of all value columns of a row of `entries`.
  std::vector<Leaf> leaves(const std::string& alias) const;
  // Of a value column the numbers of its leaves among those of leaves(), first to end.
  struct LeafRange {
    size_t column, first, end;
  };
  std::vector<LeafRange> leaf_ranges() const;
  // Whether partial events that meet at one moment are settled by the column's whole value: of a
  // struct that every flow gives whole. Then no row has a value that no event had.
  bool settles_whole(size_t column) const {
    return plan_.columns[column].type.id == TypeId::kStruct && !plan_.columns[column].by_leaves;
  }
  // Whether a partial event gives any leaf of the range.
  std::string given_any(const LeafRange& range, const std::vector<Leaf>& leaves,
                        const std::string& alias) const;
  // Whether a partial event gives the leaf.
  std::string given(const Leaf& leaf, const std::string& alias) const;
  // "x AS c1, " of all value columns.
  std::string values_as(const std::function<std::string(size_t)>& value) const;
  // Of each value column the value from columns named mark0, mark1, ... of all their leaves.
  std::map<size_t, std::string> values_from_leaves(const std::string& alias,
                                                   const std::string& mark) const;

  // --- load ------------------------------------------------------------------------------------
  void stage_events(const std::string& events);
  // COLUMNS TO UPDATE may name what the source has.
  void check_names();
  std::string any_moved() const;
  // A truncate beyond the last one changes every key that has something below it.
  void touch_what_a_truncate_covers();
  std::string touched(const std::string& rows) const;
  // "x AS c0, " of a row of `entries`: the key of `key`, the values, and the notes, null if not
  // given.
  std::string owned(const std::string& key, const std::function<std::string(size_t)>& value,
                    const std::function<std::string(size_t)>& note = {}) const;
  // The same of the columns of `alias`, which has no notes.
  std::string without_notes(const std::string& alias = "") const;
  // An entry of the table `entries`; its rowid is the entry's number.
  std::string entry(const std::string& values, const std::string& at, const std::string& kind,
                    const std::string& src, const std::string& nulls, const std::string& stored,
                    const std::string& position, const std::string& from) const;
  static constexpr const char* kNoPosition =
      "CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos";
  std::string no_nulls() const { return list_of_texts({}); }
  void load();
  void load_rows();
  // In the whole form the state has the sequence of a row and the target its values.
  void load_type1();
  // In the whole form a row is an upsert at its start and, if no other one begins there, a delete
  // at its end.
  void load_type2_rows();

  // --- hand edits (section 8) ------------------------------------------------------------------
  // What a row of `hand_rows` says besides its columns.
  std::string hand_bounds() const;
  // What was known of the edited keys before: rows (keys, seq).
  std::string known_sequences() const;
  // The row, or its absence, at the greatest sequence known of the key, or below all.
  void take_in_edited_rows();
  // Rows of the table `rows` that a hand made or changed.
  std::string made_by_hand(const std::string& rows) const;
  // The rows as events made them: the table `told`.
  void undo_edits();
  // A row that a hand made or changed counts at its start and ends at its end, one that it took
  // away is a delete at its start; what was known between start and end counts no more. All other
  // rows stay what their events make them. The table `hand`.
  void take_in_edited_versions();
  // Puts into `hand` what was known where a hand says something: `inside` of a row s of `spans`.
  void supersede(const std::string& inside);
  // What else was known of edited keys counts no more: of type 1 at all, of type 2 where a hand
  // says something.
  std::string overruled() const;

  // New events of moments that have superseded ones: those that would not win are left out (the
  // table `outdone`), of partial updates the leaves that would. The table `superseded`.
  void weigh();
  void add_what_wins(const std::string& only_if);

  // --- settle ----------------------------------------------------------------------------------
  // What a truncate has ended. A row that a hand deleted at its very sequence is not: that beats
  // upserts of this sequence, which the truncate does not.
  std::string covered() const;
  // Of each key, moment and kind the one entry that counts: the table `chosen`.
  void settle();
  // Partial events of one moment: of each leaf the greatest value that one of them gives, of a
  // column that settles whole what the event with the greatest value gives.
  void merge_partial_events();
  // For merge_partial_events: columns l<j>, g<j> of the rows to merge, and of what they become.
  struct Merging {
    std::string inner, merged, unpacked, conflict;
  };
  void merge_leaf(const Leaf& leaf, size_t j, Merging* merging) const;
  void merge_column(const LeafRange& range, const std::vector<Leaf>& leaves,
                    Merging* merging) const;
  // A patch is what a partial update gives, leaf by leaf: l<j>, and g<j> for whether it is given.
  // Whether patch m says what entry k says.
  std::string same_patch(const std::string& m, const std::string& k) const;
  // Partial entries from the patches of a table.
  void add_patches(const char* stage, const char* from, int src, const std::string& where,
                   const std::string& only_if);
  // Keys of which something new counts, or something known no longer does. Bitemporal: since which
  // system time.
  void find_changed();
  std::string of_changed(const std::string& from) const;

  // --- line up and fill ------------------------------------------------------------------------
  // Moments of the changed keys: w, p, d are the entries of a whole row, a partial update and a
  // delete.
  void line_up();
  // The moments with the row that holds after each: the table `filled`.
  void fill();

  // --- fold: the table `result`, rows as they shall be -------------------------------------------
  void keep_latest();
  // Moments with what becomes of them: the table `line`.
  //   starts, ends  first, last event of its run; start_seq its run's start; next_seq the next
  //   moment's sequence; hidden: a delete that ends no run
  void fold_runs();
  void find_versions();
  // A version is believed from the first to the last of the consecutive system times that have it.
  void find_beliefs();
  std::string first_of_run(const std::string& value) const;

  // --- diff ------------------------------------------------------------------------------------
  // A note is a value of a user's column. What a hand writes there stands in its row's entry; a row
  // of the table has the notes of the last such entry among those that make it (type 2: of its run;
  // type 1: since the last delete), so that no order of arrival matters. The tables `noted`: of
  // each row of the result that entry; `annotated`: rows whose notes are such.
  void find_notes();
  // Each row of the result with the target row of the same primary key: the table `matched`.
  void diff();

  // --- state -----------------------------------------------------------------------------------
  // Entries that the state must have: the table `needed`; bare where the values are left out.
  void find_needed();
  // Whether no later partial update gives the leaf.
  static std::string still_gives(size_t j);
  // Nothing before the latest whole row or delete counts any more; of the partial updates since
  // then, those that still give a leaf, and the latest.
  void find_needed_type1();
  // An entry that stands in the state as it is needed.
  static std::string stands();
  std::string state_row(bool is_mark) const;

  // --- outputs ---------------------------------------------------------------------------------
  std::string old_rows() const;
  // Entries in are entries out, moment by moment; rows of the result are new or those that stay.
  void balance_stages();
  void outputs();
  void metrics();
  std::vector<size_t> owned_, tracked_;
  std::vector<size_t> noted_;    // columns with notes
  std::vector<size_t> carried_;  // those of `entries`: owned_, then noted_
};

}  // namespace strandline::cdc
