-- ===== stage =====

-- make __strandline_cdc_events
SELECT c2 AS c2, c3 AS c3, seq, kind, CAST(NULL AS VARCHAR[]) AS nulls FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c2, CAST(__strandline_source."name" AS VARCHAR) AS c3, CAST("seq" AS BIGINT) AS seq, CAST(1 AS TINYINT) AS kind FROM source AS __strandline_source);

-- make __strandline_cdc_hand_rows
SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, __strandline_target."__START_AT" AS start_seq, __strandline_target."__END_AT" AS stop_seq, __strandline_target."__strandline_change" AS change FROM edits AS __strandline_target;

-- make __strandline_cdc_edited
SELECT DISTINCT c2 FROM __strandline_cdc_hand_rows;

-- ===== validate =====

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_hand_rows AS e WHERE change > 0 AND (e.c2 IS NULL);

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_events AS e WHERE e.seq IS NULL;

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c2 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM __strandline_cdc_events AS e WHERE e.kind <> 2 AND (e.c2 IS NULL);

-- ===== load =====

-- make __strandline_cdc_keys
SELECT DISTINCT c2 FROM __strandline_cdc_events WHERE kind <> 2;

-- change __strandline_cdc_keys
INSERT INTO __strandline_cdc_keys SELECT * FROM __strandline_cdc_edited EXCEPT SELECT * FROM __strandline_cdc_keys;

-- make __strandline_cdc_rows
SELECT r.* FROM (SELECT CAST(__strandline_target."initial" AS VARCHAR) AS c0, CAST(__strandline_target."note" AS VARCHAR) AS c1, CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, __strandline_target."__START_AT" AS start_seq, __strandline_target."__END_AT" AS stop_seq, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c2 = k.c2;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM (SELECT c2, start_seq FROM __strandline_cdc_rows GROUP BY ALL HAVING count(*) > 1) AS d;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(p.c2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_rows AS p WHERE stop_seq IS NOT NULL AND start_seq IS NOT NULL AND stop_seq <= start_seq;

-- make __strandline_cdc_entries
SELECT c2 AS c2, c3 AS c3, CAST(NULL AS VARCHAR) AS c1, seq, CAST(kind AS TINYINT) AS kind, CAST(2 AS TINYINT) AS src, nulls AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_events WHERE kind <> 2;

-- make __strandline_cdc_known
SELECT *, max(CASE WHEN kind = 3 THEN 1 ELSE 0 END) OVER (PARTITION BY c2) = 1 AS is_full FROM (SELECT r.* FROM (SELECT CAST(__strandline_state."id" AS BIGINT) AS c2, CAST(__strandline_state."name" AS VARCHAR) AS c3, CAST(NULL AS VARCHAR) AS c1, CAST(NULL AS VARCHAR[]) AS nulls, CAST(__strandline_state."__strandline_sequence" AS BIGINT) AS seq, __strandline_state."__strandline_kind" AS kind, __strandline_state.__strandline_file AS row_file, __strandline_state.__strandline_row AS row_pos FROM state AS __strandline_state) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c2 = k.c2);

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT c2, c3, c1, seq, CAST(kind AS TINYINT) AS kind, CAST(0 AS TINYINT) AS src, nulls AS nulls, CAST(2 AS TINYINT) AS stored, row_file, row_pos FROM __strandline_cdc_known;

-- make __strandline_cdc_told
SELECT r.c2, r.c3, r.start_seq, r.stop_seq FROM __strandline_cdc_rows AS r ANTI JOIN (SELECT DISTINCT c2, start_seq, true AS is_new FROM __strandline_cdc_hand_rows WHERE change > 0) AS h ON h.c2 = r.c2 AND h.start_seq IS NOT DISTINCT FROM r.start_seq UNION ALL SELECT c2, c3, start_seq, stop_seq FROM __strandline_cdc_hand_rows WHERE change < 0;

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT r.c2 AS c2, r.c3 AS c3, CAST(NULL AS VARCHAR) AS c1, r.start_seq, CAST(1 AS TINYINT) AS kind, CAST(1 AS TINYINT) AS src, CAST(NULL AS VARCHAR[]) AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_told AS r ANTI JOIN (SELECT c2 FROM __strandline_cdc_known WHERE is_full) AS k ON r.c2 = k.c2;

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT r.c2 AS c2, CAST(NULL AS VARCHAR) AS c3, CAST(NULL AS VARCHAR) AS c1, r.stop_seq, CAST(0 AS TINYINT) AS kind, CAST(1 AS TINYINT) AS src, CAST(NULL AS VARCHAR[]) AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_told AS r ANTI JOIN (SELECT c2 FROM __strandline_cdc_known WHERE is_full) AS k ON r.c2 = k.c2 ANTI JOIN __strandline_cdc_told AS n ON n.c2 = r.c2 AND n.start_seq = r.stop_seq WHERE r.stop_seq IS NOT NULL;

-- make __strandline_cdc_versions
SELECT r.*, coalesce(h.is_new, false) AS is_new
FROM (SELECT r.c2, r.c3, r.c1, r.start_seq, r.stop_seq, lead(r.start_seq) OVER (PARTITION BY r.c2 ORDER BY r.start_seq NULLS FIRST) AS next_start
      FROM __strandline_cdc_rows AS r SEMI JOIN __strandline_cdc_edited AS k ON r.c2 = k.c2) AS r
LEFT JOIN (SELECT DISTINCT c2, start_seq, true AS is_new FROM __strandline_cdc_hand_rows WHERE change > 0) AS h ON h.c2 = r.c2 AND h.start_seq IS NOT DISTINCT FROM r.start_seq;

-- make __strandline_cdc_spans
SELECT c2, start_seq, CASE WHEN (next_start IS NOT NULL AND (stop_seq IS NULL OR next_start <= stop_seq)) THEN next_start ELSE stop_seq END AS stop_seq, true AS stands, (next_start IS NOT NULL AND (stop_seq IS NULL OR next_start <= stop_seq)) AS is_cut
FROM __strandline_cdc_versions WHERE is_new
UNION ALL SELECT c2, start_seq, stop_seq, false, false FROM __strandline_cdc_hand_rows WHERE change < 0;

-- make __strandline_cdc_hand
SELECT c2, c3, c1, start_seq AS seq, 4 AS kind, CAST(NULL AS VARCHAR[]) AS nulls FROM __strandline_cdc_versions WHERE is_new
UNION ALL
SELECT r.c2 AS c2, CAST(NULL AS VARCHAR) AS c3, CAST(NULL AS VARCHAR) AS c1, r.seq, 5, CAST(NULL AS VARCHAR[]) FROM (
  SELECT c2, stop_seq AS seq FROM __strandline_cdc_spans WHERE stands AND NOT is_cut AND stop_seq IS NOT NULL
  UNION
  SELECT h.c2, h.start_seq FROM __strandline_cdc_spans AS h ANTI JOIN __strandline_cdc_versions AS v ON v.c2 = h.c2 AND v.start_seq IS NOT DISTINCT FROM h.start_seq
  ANTI JOIN (SELECT * FROM __strandline_cdc_spans WHERE stands) AS s ON s.c2 = h.c2 AND (h.start_seq IS NOT NULL AND (s.start_seq IS NULL OR s.start_seq < h.start_seq) AND (s.stop_seq IS NULL OR h.start_seq < s.stop_seq))
  WHERE NOT h.stands) AS r;

-- make __strandline_cdc_covered
SELECT entry, c2, seq, kind, src = min(src) OVER (PARTITION BY c2, seq, kind) AS is_first,
       max(CASE WHEN kind IN (4, 5, 6) THEN 1 ELSE 0 END) OVER (PARTITION BY c2, seq) = 1 AS by_hand
FROM (SELECT DISTINCT e.rowid AS entry, e.c2, e.seq, e.kind, e.src
      FROM __strandline_cdc_entries AS e JOIN __strandline_cdc_spans AS s ON s.c2 = e.c2 AND (e.seq IS NOT NULL AND (s.start_seq IS NULL OR s.start_seq < e.seq) AND (s.stop_seq IS NULL OR e.seq < s.stop_seq)) WHERE e.src < 2) AS e
ANTI JOIN __strandline_cdc_hand AS h ON h.c2 = e.c2 AND h.seq IS NOT DISTINCT FROM e.seq;

-- change __strandline_cdc_hand
INSERT INTO __strandline_cdc_hand 
SELECT r.c2 AS c2, CAST(NULL AS VARCHAR) AS c3, CAST(NULL AS VARCHAR) AS c1, r.seq, 6, CAST(NULL AS VARCHAR[]) FROM (SELECT DISTINCT c2, seq FROM __strandline_cdc_covered WHERE by_hand) AS r
UNION ALL
SELECT e.c2, e.c3, e.c1, e.seq, CASE c.kind WHEN 0 THEN 7 WHEN 1 THEN 8 WHEN 3 THEN 9 ELSE c.kind END, e.nulls
FROM __strandline_cdc_covered AS c JOIN __strandline_cdc_entries AS e ON e.rowid = c.entry WHERE c.is_first AND NOT c.by_hand;

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT c2, c3, c1, seq, CAST(kind AS TINYINT) AS kind, CAST(5 AS TINYINT) AS src, nulls AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_hand;

-- ===== settle =====

-- make __strandline_cdc_superseded
SELECT e.c2, e.c3, e.seq, e.kind, e.nulls, e.rowid AS entry FROM __strandline_cdc_entries AS e WHERE e.kind >= 7 AND NOT (e.src < 2 AND EXISTS (SELECT 1 FROM __strandline_cdc_hand AS h WHERE h.c2 = e.c2 AND h.seq IS NOT DISTINCT FROM e.seq));

-- make __strandline_cdc_outdone
-- only if SELECT count(*) FROM __strandline_cdc_superseded
SELECT DISTINCT e.rowid AS entry FROM __strandline_cdc_entries AS e JOIN __strandline_cdc_superseded AS k ON e.c2 = k.c2 AND e.seq IS NOT DISTINCT FROM k.seq
WHERE e.src = 2 AND ((e.kind = 0 AND k.kind IN (7, 8)) OR (e.kind = 3 AND k.kind = 9)
                        OR (e.kind = 1 AND k.kind = 8 AND NOT (CASE WHEN (e.c3 IS DISTINCT FROM k.c3) THEN (CASE WHEN e.c3 IS NULL THEN false WHEN k.c3 IS NULL THEN true ELSE e.c3 > k.c3 END) ELSE false END AND NOT ((e.c3 IS NOT DISTINCT FROM k.c3)))));

-- make __strandline_cdc_places
SELECT entry, c2, seq, kind, src, count(*) OVER (PARTITION BY c2, seq, kind) AS n
FROM (SELECT e.rowid AS entry, c2, seq, kind, src,
             max(CASE WHEN kind >= 4 THEN 1 ELSE 0 END) OVER (PARTITION BY c2, seq) AS by_hand,
             min(src) OVER (PARTITION BY c2, seq, kind) AS first_src
      FROM __strandline_cdc_entries AS e ANTI JOIN __strandline_cdc_outdone AS o ON o.entry = e.rowid WHERE true AND NOT (e.src < 2 AND EXISTS (SELECT 1 FROM __strandline_cdc_hand AS h WHERE h.c2 = e.c2 AND h.seq IS NOT DISTINCT FROM e.seq)) AND kind < 7)
WHERE (by_hand = 0 OR kind >= 4) AND NOT (src = 1 AND first_src = 0);

-- make __strandline_cdc_chosen
SELECT c2, seq, kind, entry, src FROM __strandline_cdc_places WHERE n = 1
UNION ALL
SELECT c2, seq, kind, entry, src FROM (
  SELECT p.*, row_number() OVER (PARTITION BY p.c2, p.seq, p.kind ORDER BY p.src, p.entry) AS standing FROM __strandline_cdc_places AS p WHERE n > 1 AND kind NOT IN (1, 3))
WHERE standing = 1;

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT p.c2, p.seq, p.entry, p.src, e.c3, row_number() OVER (PARTITION BY p.c2, p.seq, p.kind ORDER BY e.c3 DESC NULLS LAST, p.src, p.entry) AS standing
FROM __strandline_cdc_places AS p JOIN __strandline_cdc_entries AS e ON e.rowid = p.entry WHERE p.n > 1 AND p.kind = 1;

-- change __strandline_cdc_chosen
INSERT INTO __strandline_cdc_chosen SELECT c2, seq, CAST(1 AS TINYINT), entry, src FROM __strandline_cdc_tied WHERE standing = 1;

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT DISTINCT x.c2, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON x.c2 = y.c2 AND x.seq IS NOT DISTINCT FROM y.seq AND y.standing = 1 WHERE NOT ((x.c3 IS NOT DISTINCT FROM y.c3));

-- make __strandline_cdc_changed
SELECT DISTINCT c2 FROM __strandline_cdc_chosen WHERE src >= 2 UNION SELECT c2 FROM __strandline_cdc_edited;

-- ===== fold =====

-- make __strandline_cdc_moments
SELECT c2, seq, max(CASE WHEN kind IN (1, 4) THEN entry END) AS w, max(CASE WHEN kind = 3 THEN entry END) AS p,
       max(CASE WHEN kind IN (0, 5) THEN entry END) AS d
FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2 WHERE kind <> 6 GROUP BY c2, seq;

-- make __strandline_cdc_filled
SELECT l.c2, l.seq, e.c3, l.w IS NOT NULL AS up, l.w, l.p, l.d FROM (SELECT * FROM __strandline_cdc_moments) AS l LEFT JOIN __strandline_cdc_entries AS e ON e.rowid = l.w;

-- make __strandline_cdc_line
SELECT c2, c3, seq, up, w, d, starts, struct_extract(last_value(CASE WHEN starts THEN struct_pack("v" := seq) END IGNORE NULLS) OVER (ORDER BY c2, seq NULLS FIRST ROWS UNBOUNDED PRECEDING), 'v') AS start_seq,
       up AND NOT lead(continues, 1, false) OVER k AS ends, CASE WHEN NOT lead(is_first, 1, true) OVER k THEN lead(seq) OVER k END AS next_seq,
       NOT up AND NOT coalesce(up_before, false) AS hidden
FROM (SELECT *, up AND NOT continues AS starts
      FROM (SELECT *, coalesce(up AND up_before AND (c3 IS NOT DISTINCT FROM b_c3), false) AS continues
            FROM (SELECT *, CASE WHEN NOT is_first THEN was_up END AS up_before
                  FROM (SELECT *, (c2 IS DISTINCT FROM lag(c2) OVER k) AS is_first, lag(up) OVER k AS was_up, lag(c3) OVER k AS b_c3 FROM __strandline_cdc_filled WINDOW k AS (ORDER BY c2, seq NULLS FIRST)))))
WINDOW k AS (ORDER BY c2, seq NULLS FIRST);

-- make __strandline_cdc_result
SELECT c2, c3, start_seq, next_seq AS stop_seq FROM __strandline_cdc_line WHERE ends;

-- ===== diff =====

-- make __strandline_cdc_noted
SELECT c2, start_seq, entry
FROM (SELECT l.c2, l.start_seq, l.w AS entry, lead(false, 1, true) OVER (PARTITION BY l.c2, l.start_seq ORDER BY l.seq NULLS FIRST) AS is_last
      FROM __strandline_cdc_line AS l JOIN __strandline_cdc_entries AS e ON e.rowid = l.w
      WHERE l.up AND e.kind = 4)
WHERE is_last;

-- make __strandline_cdc_annotated
SELECT DISTINCT r.rowid AS old FROM __strandline_cdc_rows AS r JOIN (SELECT c2, seq FROM __strandline_cdc_entries WHERE kind = 4) AS h ON h.c2 = r.c2
WHERE h.seq IS NOT DISTINCT FROM r.start_seq
   OR (h.seq IS NOT NULL AND (r.start_seq IS NULL OR r.start_seq < h.seq) AND (r.stop_seq IS NULL OR h.seq < r.stop_seq));

-- make __strandline_cdc_matched
SELECT n.rowid AS number, o.old AS old, CASE WHEN (n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq) THEN o.row_id END AS row_id,
       o.old IS NOT NULL AND (n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq) AS lives, o.old IS NOT NULL AND n.stop_seq IS NOT DISTINCT FROM o.stop_seq AND (((n.c3 IS NOT DISTINCT FROM o.c3))) AND CASE WHEN x.entry IS NOT NULL THEN (u.c1 IS NOT DISTINCT FROM o.c1) ELSE a.old IS NULL OR (CAST('new' AS VARCHAR) IS NOT DISTINCT FROM o.c1) END AS is_same, x.entry AS note, o.old IS NOT NULL AND (n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq) AND a.old IS NULL AS keeps
FROM __strandline_cdc_result AS n LEFT JOIN (SELECT *, rowid AS old FROM __strandline_cdc_rows) AS o ON n.c2 = o.c2 AND n.start_seq IS NOT DISTINCT FROM o.start_seq
LEFT JOIN __strandline_cdc_noted AS x ON n.c2 = x.c2 AND n.start_seq IS NOT DISTINCT FROM x.start_seq LEFT JOIN __strandline_cdc_entries AS u ON u.rowid = x.entry LEFT JOIN __strandline_cdc_annotated AS a ON a.old = o.old;

-- make __strandline_cdc_full_keys
SELECT DISTINCT c2 FROM __strandline_cdc_moments WHERE p IS NOT NULL;

-- make __strandline_cdc_needed
SELECT entry, false AS bare FROM (
  SELECT r.w AS entry FROM __strandline_cdc_moments AS r SEMI JOIN __strandline_cdc_full_keys AS f ON r.c2 = f.c2
  UNION ALL SELECT r.p FROM __strandline_cdc_moments AS r SEMI JOIN __strandline_cdc_full_keys AS f ON r.c2 = f.c2
  UNION ALL SELECT r.d FROM __strandline_cdc_moments AS r SEMI JOIN __strandline_cdc_full_keys AS f ON r.c2 = f.c2 WHERE r.w IS NULL)
WHERE entry IS NOT NULL
UNION ALL
SELECT e.rowid, false FROM __strandline_cdc_line AS l JOIN __strandline_cdc_entries AS e ON e.rowid = l.w ANTI JOIN __strandline_cdc_full_keys AS f ON l.c2 = f.c2
WHERE NOT (l.starts AND l.ends) OR e.kind = 4
UNION ALL
SELECT e.rowid, false FROM __strandline_cdc_line AS l JOIN __strandline_cdc_entries AS e ON e.rowid = l.d ANTI JOIN __strandline_cdc_full_keys AS f ON l.c2 = f.c2
WHERE l.hidden OR e.kind = 5
UNION ALL
SELECT entry, false FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2 WHERE kind = 6
UNION ALL SELECT entry, false FROM __strandline_cdc_superseded AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2;

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN c.n IS DISTINCT FROM a.entries THEN concat(CAST(c.n AS VARCHAR), ' entries that count, but ', CAST(a.entries AS VARCHAR), ' at the moments; ') ELSE '' END,
  CASE WHEN n.n IS DISTINCT FROM m.n THEN concat(CAST(n.n AS VARCHAR), ' rows shall be, but ', CAST(m.n AS VARCHAR), ' compared with the table; ') ELSE '' END,
  CASE WHEN m.same IS DISTINCT FROM m.olds THEN concat(CAST(m.same AS VARCHAR), ' rows stay, but ', CAST(m.olds AS VARCHAR), ' of the table; ') ELSE '' END,
  CASE WHEN a.n IS DISTINCT FROM f.n THEN concat(CAST(a.n AS VARCHAR), ' moments, but ', CAST(f.n AS VARCHAR), ' filled; ') ELSE '' END,
  CASE WHEN f.n IS DISTINCT FROM l.n THEN concat(CAST(f.n AS VARCHAR), ' moments filled, but ', CAST(l.n AS VARCHAR), ' in the timeline; ') ELSE '' END,
  CASE WHEN l.starts IS DISTINCT FROM l.ends THEN concat(CAST(l.starts AS VARCHAR), ' runs begin, but ', CAST(l.ends AS VARCHAR), ' end; ') ELSE '' END,
  CASE WHEN l.ends IS DISTINCT FROM n.n THEN concat(CAST(l.ends AS VARCHAR), ' runs of the timeline, but ', CAST(n.n AS VARCHAR), ' folded; ') ELSE '' END) AS wrong
FROM (SELECT count(*) AS n FROM __strandline_cdc_result) AS n,
  (SELECT count(*) AS n, count(CASE WHEN is_same THEN old END) AS same, count(DISTINCT CASE WHEN is_same THEN old END) AS olds FROM __strandline_cdc_matched) AS m,
  (SELECT count(CASE WHEN kind <> 6 THEN 1 END) AS n FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2) AS c,
  (SELECT count(w) + count(p) + count(d) AS entries, count(*) AS n FROM __strandline_cdc_moments) AS a,
  (SELECT count(*) AS n FROM __strandline_cdc_filled) AS f,
  (SELECT count(*) AS n, count(CASE WHEN starts THEN 1 END) AS starts, count(CASE WHEN ends THEN 1 END) AS ends FROM __strandline_cdc_line) AS l) AS b;

-- ===== write =====

-- target new
SELECT CAST(NULL AS VARCHAR) AS "initial", CASE WHEN m.note IS NOT NULL THEN u.c1 WHEN m.keeps THEN o.c1 ELSE CAST('new' AS VARCHAR) END AS "note", r.c2 AS "id", r.c3 AS "name", r.start_seq AS "__START_AT", r.stop_seq AS "__END_AT", m.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT * FROM __strandline_cdc_matched WHERE NOT is_same) AS m JOIN __strandline_cdc_result AS r ON r.rowid = m.number LEFT JOIN __strandline_cdc_rows AS o ON o.rowid = CASE WHEN m.lives THEN m.old END LEFT JOIN __strandline_cdc_entries AS u ON u.rowid = m.note;

-- target dead
SELECT o.row_file AS __strandline_file, o.row_pos AS __strandline_row FROM (SELECT r.rowid AS old, r.row_file, r.row_pos FROM __strandline_cdc_rows AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2) AS o ANTI JOIN (SELECT old FROM __strandline_cdc_matched WHERE is_same) AS m ON m.old = o.old;

-- state new
SELECT e.c2 AS "id", e.seq AS "__strandline_sequence", e.kind AS "__strandline_kind", CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN e.c3 END AS "name", CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN e.c1 END AS "note" FROM __strandline_cdc_needed AS n JOIN __strandline_cdc_entries AS e ON e.rowid = n.entry WHERE NOT (e.stored = 2 OR (e.stored = 1 AND n.bare));

-- state dead
SELECT r.row_file AS __strandline_file, r.row_pos AS __strandline_row FROM (SELECT *, rowid AS entry FROM __strandline_cdc_entries) AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2 ANTI JOIN (SELECT n.entry FROM __strandline_cdc_needed AS n JOIN __strandline_cdc_entries AS e ON e.rowid = n.entry WHERE (e.stored = 2 OR (e.stored = 1 AND n.bare))) AS s ON s.entry = r.entry WHERE r.row_file IS NOT NULL;

-- metrics
SELECT
  (SELECT count(*) FROM __strandline_cdc_matched WHERE NOT is_same) AS num_upserted_rows,
  d.n - (SELECT count(*) FROM __strandline_cdc_matched WHERE NOT is_same AND lives) AS num_deleted_rows,
  (SELECT count(*) FROM __strandline_cdc_events) AS num_input_rows,
  (SELECT count(*) FROM (
     SELECT e.seq, k.known FROM __strandline_cdc_events AS e
     LEFT JOIN (SELECT c2, arg_max(seq, seq) AS known FROM (SELECT c2, seq FROM __strandline_cdc_entries WHERE src < 2 UNION ALL SELECT c2, seq FROM __strandline_cdc_hand) GROUP BY c2) AS k
       ON e.kind <> 2 AND e.c2 = k.c2) AS e WHERE coalesce(seq < known, false)) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM __strandline_cdc_conflicts)) AS num_sequence_conflicts,
  (SELECT min(concat_ws(', ', 'id = ' || coalesce(CAST(x.c2 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(x.seq AS VARCHAR)) FROM __strandline_cdc_conflicts AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT (SELECT count(*) FROM (SELECT r.rowid AS old, r.row_file, r.row_pos FROM __strandline_cdc_rows AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c2 = k.c2) AS o) - (SELECT count(*) FROM __strandline_cdc_matched WHERE is_same) AS n) AS d;
