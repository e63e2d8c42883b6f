-- ===== stage =====

-- make __strandline_cdc_events
SELECT c0 AS c0, c1 AS c1, seq, sys, kind, CAST(NULL AS VARCHAR[]) AS nulls FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, CAST("seq" AS BIGINT) AS seq, CAST(CASE WHEN (("op" = 'D')) THEN 0 ELSE 1 END AS TINYINT) AS kind, CAST("id" AS BIGINT) AS sys FROM source AS __strandline_source);

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_events AS e WHERE e.seq IS NULL;

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM __strandline_cdc_events AS e WHERE e.kind <> 2 AND (e.c0 IS NULL);

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_events AS e WHERE e.sys IS NULL;

-- ===== load =====

-- make __strandline_cdc_keys
SELECT DISTINCT c0 FROM __strandline_cdc_events WHERE kind <> 2;

-- make __strandline_cdc_rows
SELECT r.* FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c0, CAST(__strandline_target."name" AS VARCHAR) AS c1, __strandline_target."__START_AT" AS start_seq, __strandline_target."__END_AT" AS stop_seq, __strandline_target."__SYSTEM_START_AT" AS start_sys, __strandline_target."__SYSTEM_END_AT" AS stop_sys, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c0 AS VARCHAR), 'NULL'))) FROM (SELECT c0, start_seq, start_sys FROM __strandline_cdc_rows GROUP BY ALL HAVING count(*) > 1) AS d;

-- make __strandline_cdc_entries
SELECT c0, c1, seq, sys, CAST(kind AS TINYINT) AS kind, CAST(2 AS TINYINT) AS src, nulls AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_events WHERE kind <> 2;

-- make __strandline_cdc_known
SELECT *, max(CASE WHEN kind = 3 THEN 1 ELSE 0 END) OVER (PARTITION BY c0) = 1 AS is_full FROM (SELECT r.* FROM (SELECT CAST(__strandline_state."id" AS BIGINT) AS c0, CAST(__strandline_state."name" AS VARCHAR) AS c1, CAST(NULL AS VARCHAR[]) AS nulls, CAST(__strandline_state."__strandline_system_sequence" AS BIGINT) AS sys, CAST(__strandline_state."__strandline_sequence" AS BIGINT) AS seq, __strandline_state."__strandline_kind" AS kind, __strandline_state.__strandline_file AS row_file, __strandline_state.__strandline_row AS row_pos FROM state AS __strandline_state) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0);

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT c0, c1, seq, sys, CAST(kind AS TINYINT) AS kind, CAST(0 AS TINYINT) AS src, nulls AS nulls, CAST(2 AS TINYINT) AS stored, row_file, row_pos FROM __strandline_cdc_known;

-- ===== settle =====

-- make __strandline_cdc_places
SELECT entry, c0, seq, sys, kind, src, count(*) OVER (PARTITION BY c0, seq, sys, kind) AS n
FROM (SELECT e.rowid AS entry, c0, seq, sys, kind, src,
             max(CASE WHEN kind >= 4 THEN 1 ELSE 0 END) OVER (PARTITION BY c0, seq, sys) AS by_hand,
             min(src) OVER (PARTITION BY c0, seq, sys, kind) AS first_src
      FROM __strandline_cdc_entries AS e WHERE true)
WHERE (by_hand = 0 OR kind >= 4) AND NOT (src = 1 AND first_src = 0);

-- make __strandline_cdc_chosen
SELECT c0, seq, sys, kind, entry, src FROM __strandline_cdc_places WHERE n = 1
UNION ALL
SELECT c0, seq, sys, kind, entry, src FROM (
  SELECT p.*, row_number() OVER (PARTITION BY p.c0, p.seq, p.sys, p.kind ORDER BY p.src, p.entry) AS standing FROM __strandline_cdc_places AS p WHERE n > 1 AND kind NOT IN (1, 3))
WHERE standing = 1;

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT p.c0, p.seq, p.sys, p.entry, p.src, e.c1, row_number() OVER (PARTITION BY p.c0, p.seq, p.sys, p.kind ORDER BY e.c1 DESC NULLS LAST, p.src, p.entry) AS standing
FROM __strandline_cdc_places AS p JOIN __strandline_cdc_entries AS e ON e.rowid = p.entry WHERE p.n > 1 AND p.kind = 1;

-- change __strandline_cdc_chosen
INSERT INTO __strandline_cdc_chosen SELECT c0, seq, sys, CAST(1 AS TINYINT), entry, src FROM __strandline_cdc_tied WHERE standing = 1;

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT DISTINCT x.c0, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON x.c0 = y.c0 AND x.seq IS NOT DISTINCT FROM y.seq AND x.sys = y.sys AND y.standing = 1 WHERE NOT ((x.c1 IS NOT DISTINCT FROM y.c1));

-- make __strandline_cdc_changed
SELECT c0, arg_min(sys, sys) AS since FROM __strandline_cdc_chosen WHERE src >= 2 GROUP BY c0;

-- ===== fold =====

-- make __strandline_cdc_moments
SELECT c0, seq, sys, max(CASE WHEN kind IN (1, 4) THEN entry END) AS w, max(CASE WHEN kind = 3 THEN entry END) AS p,
       max(CASE WHEN kind IN (0, 5) THEN entry END) AS d
FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0 WHERE kind <> 6 GROUP BY c0, seq, sys;

-- make __strandline_cdc_times
SELECT c0, sys, place, next_sys, is_before, first_place
FROM (SELECT *, coalesce(max(CASE WHEN is_before THEN place END) OVER (PARTITION BY c0), 1) AS first_place
      FROM (SELECT t.c0, t.sys, t.sys < c.since AS is_before, row_number() OVER w AS place, lead(t.sys) OVER w AS next_sys
            FROM (SELECT DISTINCT c0, sys FROM __strandline_cdc_moments) AS t JOIN __strandline_cdc_changed AS c ON t.c0 = c.c0
            WINDOW w AS (PARTITION BY t.c0 ORDER BY t.sys)))
WHERE place >= first_place;

-- make __strandline_cdc_filled
SELECT * FROM (SELECT *, lead(false, 1, true) OVER (PARTITION BY c0, place, seq ORDER BY sys) AS is_last FROM (SELECT l.c0, l.seq, l.sys, l.place, e.c1, l.w IS NOT NULL AS up, l.w, l.p, l.d FROM (SELECT m.c0, m.seq, m.sys, t.place, m.w, m.p, m.d FROM __strandline_cdc_moments AS m JOIN __strandline_cdc_times AS t ON m.c0 = t.c0 AND m.sys <= t.sys) AS l LEFT JOIN __strandline_cdc_entries AS e ON e.rowid = l.w)) WHERE is_last;

-- make __strandline_cdc_line
SELECT c0, place, c1, seq, up, w, d, starts, struct_extract(last_value(CASE WHEN starts THEN struct_pack("v" := seq) END IGNORE NULLS) OVER (ORDER BY c0, place, seq NULLS FIRST ROWS UNBOUNDED PRECEDING), 'v') AS start_seq,
       up AND NOT lead(continues, 1, false) OVER k AS ends, CASE WHEN NOT lead(is_first, 1, true) OVER k THEN lead(seq) OVER k END AS next_seq,
       NOT up AND NOT coalesce(up_before, false) AS hidden
FROM (SELECT *, up AND NOT continues AS starts
      FROM (SELECT *, coalesce(up AND up_before AND (c1 IS NOT DISTINCT FROM b_c1), false) AS continues
            FROM (SELECT *, CASE WHEN NOT is_first THEN was_up END AS up_before
                  FROM (SELECT *, (c0 IS DISTINCT FROM lag(c0) OVER k OR place IS DISTINCT FROM lag(place) OVER k) AS is_first, lag(up) OVER k AS was_up, lag(c1) OVER k AS b_c1 FROM __strandline_cdc_filled WINDOW k AS (ORDER BY c0, place, seq NULLS FIRST)))))
WINDOW k AS (ORDER BY c0, place, seq NULLS FIRST);

-- make __strandline_cdc_stretches
SELECT c0, c1, start_seq, stop_seq, stop_sys, from_sys, reaches_back
FROM (SELECT *, struct_extract(last_value(CASE WHEN NOT continues THEN struct_pack("v" := sys) END IGNORE NULLS) OVER (PARTITION BY c0, start_seq ORDER BY place ROWS UNBOUNDED PRECEDING), 'v') AS from_sys, struct_extract(last_value(CASE WHEN NOT continues THEN struct_pack("v" := is_before) END IGNORE NULLS) OVER (PARTITION BY c0, start_seq ORDER BY place ROWS UNBOUNDED PRECEDING), 'v') AS reaches_back, NOT lead(continues, 1, false) OVER k AS ends
      FROM (SELECT *, coalesce(place = place_before + 1 AND stop_seq IS NOT DISTINCT FROM stop_before AND (c1 IS NOT DISTINCT FROM b_c1), false) AS continues
            FROM (SELECT l.c0, l.c1, l.start_seq, l.next_seq AS stop_seq, t.sys, t.next_sys AS stop_sys, l.place, t.is_before,
                         lag(l.place) OVER k AS place_before, lag(l.next_seq) OVER k AS stop_before, lag(l.c1) OVER k AS b_c1
                  FROM __strandline_cdc_line AS l JOIN __strandline_cdc_times AS t ON l.c0 = t.c0 AND t.place = l.place
                  WHERE l.ends WINDOW k AS (PARTITION BY l.c0, l.start_seq ORDER BY l.place)))
      WINDOW k AS (PARTITION BY c0, start_seq ORDER BY place))
WHERE ends;

-- make __strandline_cdc_active
SELECT r.*, r.rowid AS row_number, t.sys AS known_sys, t.is_before
FROM __strandline_cdc_rows AS r JOIN __strandline_cdc_times AS t ON r.c0 = t.c0 AND t.place = t.first_place
WHERE r.stop_sys IS NULL OR NOT t.is_before OR r.stop_sys > t.sys;

-- make __strandline_cdc_result
SELECT s.c0, s.c1, s.start_seq, s.stop_seq, CASE WHEN s.reaches_back THEN a.start_sys ELSE s.from_sys END AS start_sys,
       s.stop_sys, s.reaches_back AND a.row_number IS NULL AS is_lost
FROM __strandline_cdc_stretches AS s LEFT JOIN (SELECT * FROM __strandline_cdc_active WHERE is_before AND start_sys <= known_sys) AS a
  ON s.c0 = a.c0 AND a.start_seq IS NOT DISTINCT FROM s.start_seq AND s.reaches_back;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(r.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_result AS r WHERE is_lost;

-- ===== diff =====

-- make __strandline_cdc_matched
SELECT n.rowid AS number, o.old AS old, CASE WHEN (n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq) THEN o.row_id END AS row_id,
       o.old IS NOT NULL AND (n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq) AS lives, o.old IS NOT NULL AND n.stop_seq IS NOT DISTINCT FROM o.stop_seq AND n.stop_sys IS NOT DISTINCT FROM o.stop_sys AND (((n.c1 IS NOT DISTINCT FROM o.c1))) AS is_same
FROM __strandline_cdc_result AS n LEFT JOIN (SELECT *, rowid AS old FROM __strandline_cdc_rows) AS o ON n.c0 = o.c0 AND n.start_seq IS NOT DISTINCT FROM o.start_seq AND n.start_sys = o.start_sys;

-- make __strandline_cdc_needed
SELECT entry, false AS bare FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0;

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN c.n IS DISTINCT FROM a.entries THEN concat(CAST(c.n AS VARCHAR), ' entries that count, but ', CAST(a.entries AS VARCHAR), ' at the moments; ') ELSE '' END,
  CASE WHEN n.n IS DISTINCT FROM m.n THEN concat(CAST(n.n AS VARCHAR), ' rows shall be, but ', CAST(m.n AS VARCHAR), ' compared with the table; ') ELSE '' END,
  CASE WHEN m.same IS DISTINCT FROM m.olds THEN concat(CAST(m.same AS VARCHAR), ' rows stay, but ', CAST(m.olds AS VARCHAR), ' of the table; ') ELSE '' END,
  CASE WHEN f.n IS DISTINCT FROM l.n THEN concat(CAST(f.n AS VARCHAR), ' moments filled, but ', CAST(l.n AS VARCHAR), ' in the timeline; ') ELSE '' END,
  CASE WHEN l.starts IS DISTINCT FROM l.ends THEN concat(CAST(l.starts AS VARCHAR), ' runs begin, but ', CAST(l.ends AS VARCHAR), ' end; ') ELSE '' END,
  CASE WHEN s.n IS DISTINCT FROM n.n THEN concat(CAST(s.n AS VARCHAR), ' beliefs, but ', CAST(n.n AS VARCHAR), ' folded; ') ELSE '' END) AS wrong
FROM (SELECT count(*) AS n FROM __strandline_cdc_result) AS n,
  (SELECT count(*) AS n, count(CASE WHEN is_same THEN old END) AS same, count(DISTINCT CASE WHEN is_same THEN old END) AS olds FROM __strandline_cdc_matched) AS m,
  (SELECT count(CASE WHEN kind <> 6 THEN 1 END) AS n FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0) AS c,
  (SELECT count(w) + count(p) + count(d) AS entries, count(*) AS n FROM __strandline_cdc_moments) AS a,
  (SELECT count(*) AS n FROM __strandline_cdc_filled) AS f,
  (SELECT count(*) AS n, count(CASE WHEN starts THEN 1 END) AS starts, count(CASE WHEN ends THEN 1 END) AS ends FROM __strandline_cdc_line) AS l,
  (SELECT count(*) AS n FROM __strandline_cdc_stretches) AS s) AS b;

-- ===== write =====

-- target new
SELECT r.c0 AS "id", r.c1 AS "name", r.start_seq AS "__START_AT", r.stop_seq AS "__END_AT", r.start_sys AS "__SYSTEM_START_AT", r.stop_sys AS "__SYSTEM_END_AT", m.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT * FROM __strandline_cdc_matched WHERE NOT is_same) AS m JOIN __strandline_cdc_result AS r ON r.rowid = m.number;

-- target dead
SELECT o.row_file AS __strandline_file, o.row_pos AS __strandline_row FROM (SELECT row_number AS old, row_file, row_pos FROM __strandline_cdc_active) AS o ANTI JOIN (SELECT old FROM __strandline_cdc_matched WHERE is_same) AS m ON m.old = o.old;

-- state new
SELECT e.c0 AS "id", e.seq AS "__strandline_sequence", e.kind AS "__strandline_kind", e.sys AS "__strandline_system_sequence", CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN e.c1 END AS "name" FROM __strandline_cdc_needed AS n JOIN __strandline_cdc_entries AS e ON e.rowid = n.entry WHERE NOT (e.stored = 2 OR (e.stored = 1 AND n.bare));

-- state dead
SELECT r.row_file AS __strandline_file, r.row_pos AS __strandline_row FROM (SELECT *, rowid AS entry FROM __strandline_cdc_entries) AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0 ANTI JOIN (SELECT n.entry FROM __strandline_cdc_needed AS n JOIN __strandline_cdc_entries AS e ON e.rowid = n.entry WHERE (e.stored = 2 OR (e.stored = 1 AND n.bare))) AS s ON s.entry = r.entry WHERE r.row_file IS NOT NULL;

-- metrics
SELECT
  (SELECT count(*) FROM __strandline_cdc_matched WHERE NOT is_same) AS num_upserted_rows,
  d.n - (SELECT count(*) FROM __strandline_cdc_matched WHERE NOT is_same AND lives) AS num_deleted_rows,
  (SELECT count(*) FROM __strandline_cdc_events) AS num_input_rows,
  (SELECT count(*) FROM (
     SELECT e.seq, k.known FROM __strandline_cdc_events AS e
     LEFT JOIN (SELECT c0, arg_max(seq, seq) AS known FROM (SELECT c0, seq FROM __strandline_cdc_entries WHERE src < 2) GROUP BY c0) AS k
       ON e.kind <> 2 AND e.c0 = k.c0) AS e WHERE coalesce(seq < known, false)) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM __strandline_cdc_conflicts)) AS num_sequence_conflicts,
  (SELECT min(concat_ws(', ', 'id = ' || coalesce(CAST(x.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(x.seq AS VARCHAR)) FROM __strandline_cdc_conflicts AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT (SELECT count(*) FROM (SELECT row_number AS old, row_file, row_pos FROM __strandline_cdc_active) AS o) - (SELECT count(*) FROM __strandline_cdc_matched WHERE is_same) AS n) AS d;
