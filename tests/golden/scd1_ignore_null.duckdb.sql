-- ===== stage =====

-- make __strandline_cdc_events
SELECT c0 AS c0, c1 AS c1, c2 AS c2, seq, kind, nullif(list_filter(CAST([CASE WHEN (c2) IS NULL THEN 'seq' END] AS VARCHAR[]), lambda __strandline_x0: __strandline_x0 IS NOT NULL), CAST([] AS VARCHAR[])) AS nulls FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, CAST(__strandline_source."seq" AS BIGINT) AS c2, CAST("seq" AS BIGINT) AS seq, CAST(CASE WHEN (("op" = 'D')) THEN 0 ELSE 3 END AS TINYINT) AS kind FROM source AS __strandline_source);

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_events AS e WHERE e.seq IS NULL;

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM __strandline_cdc_events AS e WHERE e.kind <> 2 AND (e.c0 IS NULL);

-- ===== load =====

-- make __strandline_cdc_keys
SELECT DISTINCT c0 FROM __strandline_cdc_events WHERE kind <> 2;

-- make __strandline_cdc_rows
SELECT r.* FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c0, CAST(__strandline_target."name" AS VARCHAR) AS c1, CAST(__strandline_target."seq" AS BIGINT) AS c2, __strandline_target."seq" AS seq, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c0 AS VARCHAR), 'NULL'))) FROM (SELECT c0 FROM __strandline_cdc_rows GROUP BY ALL HAVING count(*) > 1) AS d;

-- make __strandline_cdc_entries
SELECT c0, c1, c2, seq, CAST(kind AS TINYINT) AS kind, CAST(2 AS TINYINT) AS src, nulls AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_events WHERE kind <> 2;

-- make __strandline_cdc_known
SELECT *, max(CASE WHEN kind = 3 THEN 1 ELSE 0 END) OVER (PARTITION BY c0) = 1 AS is_full FROM (SELECT r.* FROM (SELECT CAST(__strandline_state."id" AS BIGINT) AS c0, CAST(__strandline_state."name" AS VARCHAR) AS c1, CAST(__strandline_state."seq" AS BIGINT) AS c2, CAST(__strandline_state."__strandline_given_nulls" AS VARCHAR[]) AS nulls, CAST(__strandline_state."__strandline_sequence" AS BIGINT) AS seq, __strandline_state."__strandline_kind" AS kind, __strandline_state.__strandline_file AS row_file, __strandline_state.__strandline_row AS row_pos FROM state AS __strandline_state) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0);

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT k.c0 AS c0, CASE WHEN k.is_full THEN k.c1 ELSE r.c1 END AS c1, CASE WHEN k.is_full THEN k.c2 ELSE r.c2 END AS c2, k.seq, CAST(CASE WHEN NOT k.is_full AND k.kind IN (1, 4) AND r.row_file IS NULL THEN 0 ELSE k.kind END AS TINYINT) AS kind, CAST(CASE WHEN k.is_full OR k.kind IN (0, 5) THEN 0 ELSE 1 END AS TINYINT) AS src, k.nulls AS nulls, CAST(CASE WHEN k.is_full OR k.kind IN (0, 5) THEN 2 ELSE 1 END AS TINYINT) AS stored, k.row_file, k.row_pos FROM __strandline_cdc_known AS k LEFT JOIN __strandline_cdc_rows AS r ON k.c0 = r.c0;

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT r.c0, r.c1, r.c2, r.seq, CAST(1 AS TINYINT) AS kind, CAST(1 AS TINYINT) AS src, CAST(NULL AS VARCHAR[]) AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_rows AS r ANTI JOIN __strandline_cdc_known AS k ON r.c0 = k.c0;

-- ===== settle =====

-- make __strandline_cdc_places
SELECT entry, c0, seq, kind, src, count(*) OVER (PARTITION BY c0, seq, kind) AS n
FROM (SELECT e.rowid AS entry, c0, seq, kind, src,
             max(CASE WHEN kind >= 4 THEN 1 ELSE 0 END) OVER (PARTITION BY c0, seq) AS by_hand,
             min(src) OVER (PARTITION BY c0, seq, kind) AS first_src
      FROM __strandline_cdc_entries AS e WHERE true)
WHERE (by_hand = 0 OR kind >= 4) AND NOT (src = 1 AND first_src = 0);

-- make __strandline_cdc_chosen
SELECT c0, seq, kind, entry, src FROM __strandline_cdc_places WHERE n = 1
UNION ALL
SELECT c0, seq, kind, entry, src FROM (
  SELECT p.*, row_number() OVER (PARTITION BY p.c0, p.seq, p.kind ORDER BY p.src, p.entry) AS standing FROM __strandline_cdc_places AS p WHERE n > 1 AND kind NOT IN (1, 3))
WHERE standing = 1;

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT p.c0, p.seq, p.entry, p.src, e.c1, e.c2, row_number() OVER (PARTITION BY p.c0, p.seq, p.kind ORDER BY e.c1 DESC NULLS LAST, e.c2 DESC NULLS LAST, p.src, p.entry) AS standing
FROM __strandline_cdc_places AS p JOIN __strandline_cdc_entries AS e ON e.rowid = p.entry WHERE p.n > 1 AND p.kind = 1;

-- change __strandline_cdc_chosen
INSERT INTO __strandline_cdc_chosen SELECT c0, seq, CAST(1 AS TINYINT), entry, src FROM __strandline_cdc_tied WHERE standing = 1;

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 1
SELECT DISTINCT x.c0, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON x.c0 = y.c0 AND x.seq IS NOT DISTINCT FROM y.seq AND y.standing = 1 WHERE NOT ((x.c1 IS NOT DISTINCT FROM y.c1) AND (x.c2 IS NOT DISTINCT FROM y.c2));

-- make __strandline_cdc_merged
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 3
SELECT c0, seq, known_entry, conflict, l0, g0, l1, g1
FROM (SELECT c0, seq, min(CASE WHEN src = 0 THEN entry END) AS known_entry, (false OR (count(l0) > 0 AND max(CASE WHEN g0 AND l0 IS NULL THEN 1 ELSE 0 END) = 1) OR min(l0) IS DISTINCT FROM max(l0) OR (count(l1) > 0 AND max(CASE WHEN g1 AND l1 IS NULL THEN 1 ELSE 0 END) = 1) OR min(l1) IS DISTINCT FROM max(l1)) AS conflict, arg_max(l0, l0) AS l0, max(CASE WHEN g0 THEN 1 ELSE 0 END) = 1 AS g0, arg_max(l1, l1) AS l1, max(CASE WHEN g1 THEN 1 ELSE 0 END) = 1 AS g1
      FROM (SELECT p.c0, p.seq, p.src, p.entry, e.c1 AS l0, ((e.c1) IS NOT NULL OR coalesce(list_contains(e.nulls, 'name'), false)) AS g0, e.c2 AS l1, ((e.c2) IS NOT NULL OR coalesce(list_contains(e.nulls, 'seq'), false)) AS g1 FROM __strandline_cdc_places AS p JOIN __strandline_cdc_entries AS e ON e.rowid = p.entry
            WHERE p.n > 1 AND p.kind = 3)
      GROUP BY c0, seq);

-- change __strandline_cdc_entries
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 3
INSERT INTO __strandline_cdc_entries SELECT m.c0 AS c0, m.l0 AS c1, m.l1 AS c2, m.seq, CAST(3 AS TINYINT) AS kind, CAST(3 AS TINYINT) AS src, nullif(list_filter(CAST([CASE WHEN m.g0 AND m.l0 IS NULL THEN 'name' END, CASE WHEN m.g1 AND m.l1 IS NULL THEN 'seq' END] AS VARCHAR[]), lambda __strandline_x0: __strandline_x0 IS NOT NULL), CAST([] AS VARCHAR[])) AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_merged AS m;

-- change __strandline_cdc_chosen
-- only if SELECT count(*) FROM __strandline_cdc_places WHERE n > 1 AND kind = 3
INSERT INTO __strandline_cdc_chosen 
SELECT c0, seq, CAST(3 AS TINYINT), CASE WHEN is_same THEN known_entry ELSE entry END,
       CAST(CASE WHEN is_same THEN 0 ELSE 3 END AS TINYINT)
FROM (SELECT m.c0, m.seq, m.known_entry, e.rowid AS entry, m.known_entry IS NOT NULL AND true AND m.g0 = ((k.c1) IS NOT NULL OR coalesce(list_contains(k.nulls, 'name'), false)) AND (m.l0 IS NOT DISTINCT FROM k.c1) AND m.g1 = ((k.c2) IS NOT NULL OR coalesce(list_contains(k.nulls, 'seq'), false)) AND (m.l1 IS NOT DISTINCT FROM k.c2) AS is_same
      FROM __strandline_cdc_merged AS m JOIN __strandline_cdc_entries AS e ON m.c0 = e.c0 AND m.seq IS NOT DISTINCT FROM e.seq LEFT JOIN __strandline_cdc_entries AS k ON k.rowid = m.known_entry
      WHERE e.src = 3);

-- change __strandline_cdc_conflicts
INSERT INTO __strandline_cdc_conflicts SELECT c0, seq FROM __strandline_cdc_merged WHERE conflict;

-- make __strandline_cdc_changed
SELECT DISTINCT c0 FROM __strandline_cdc_chosen WHERE src >= 2;

-- ===== fold =====

-- make __strandline_cdc_moments
SELECT c0, seq, max(CASE WHEN kind IN (1, 4) THEN entry END) AS w, max(CASE WHEN kind = 3 THEN entry END) AS p,
       max(CASE WHEN kind IN (0, 5) THEN entry END) AS d
FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0 WHERE kind <> 6 GROUP BY c0, seq;

-- make __strandline_cdc_filled
SELECT l.c0, l.seq, l.f0 AS c1, l.f1 AS c2, l.up, l.w, l.p, l.d
FROM (SELECT *, struct_extract(last_value(b0 IGNORE NULLS) OVER so_far, 'v') AS f0, struct_extract(last_value(b1 IGNORE NULLS) OVER so_far, 'v') AS f1
      FROM (SELECT l.c0, l.seq, l.w IS NOT NULL OR l.p IS NOT NULL AS up, l.w, l.p, l.d, coalesce(CASE WHEN ((p.c1) IS NOT NULL OR coalesce(list_contains(p.nulls, 'name'), false)) THEN struct_pack("v" := p.c1) END, CASE WHEN l.begins THEN struct_pack("v" := w.c1) END) AS b0, coalesce(CASE WHEN ((p.c2) IS NOT NULL OR coalesce(list_contains(p.nulls, 'seq'), false)) THEN struct_pack("v" := p.c2) END, CASE WHEN l.begins THEN struct_pack("v" := w.c2) END) AS b1
            FROM (SELECT *, w IS NOT NULL OR d IS NOT NULL OR (c0 IS DISTINCT FROM lag(c0) OVER k) AS begins FROM (SELECT * FROM __strandline_cdc_moments) WINDOW k AS (ORDER BY c0, seq NULLS FIRST)) AS l
            LEFT JOIN __strandline_cdc_entries AS w ON w.rowid = l.w LEFT JOIN __strandline_cdc_entries AS p ON p.rowid = l.p)
      WINDOW so_far AS (ORDER BY c0, seq NULLS FIRST ROWS UNBOUNDED PRECEDING)) AS l;

-- make __strandline_cdc_result
SELECT c0, c1, c2, up FROM (SELECT *, lead(false, 1, true) OVER (PARTITION BY c0 ORDER BY seq NULLS FIRST) AS is_last FROM __strandline_cdc_filled) WHERE is_last AND up;

-- ===== diff =====

-- make __strandline_cdc_matched
SELECT n.rowid AS number, o.old AS old, CASE WHEN true THEN o.row_id END AS row_id,
       o.old IS NOT NULL AND true AS lives, o.old IS NOT NULL AND true AND (((n.c1 IS NOT DISTINCT FROM o.c1) AND (n.c2 IS NOT DISTINCT FROM o.c2))) AS is_same
FROM __strandline_cdc_result AS n LEFT JOIN (SELECT *, rowid AS old FROM __strandline_cdc_rows) AS o ON n.c0 = o.c0;

-- make __strandline_cdc_counting
SELECT * FROM (
  SELECT *, max(CASE WHEN w IS NOT NULL OR d IS NOT NULL THEN place END) OVER (PARTITION BY c0) AS base
  FROM (SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY seq NULLS FIRST) AS place,
               count(*) OVER (PARTITION BY c0) AS last_place FROM __strandline_cdc_moments))
WHERE base IS NULL OR place >= base;

-- make __strandline_cdc_patches
SELECT * FROM (
  SELECT c0, seq, place = last_place OR false OR (coalesce(g0 = max(g0) OVER k, false)) OR (coalesce(g1 = max(g1) OVER k, false)) AS counts, CASE WHEN coalesce(g0 = max(g0) OVER k, false) THEN l0 END AS l0, (coalesce(g0 = max(g0) OVER k, false)) AS g0, CASE WHEN coalesce(g1 = max(g1) OVER k, false) THEN l1 END AS l1, (coalesce(g1 = max(g1) OVER k, false)) AS g1
  FROM (SELECT m.c0, m.seq, m.place, m.last_place, e.c1 AS l0, CASE WHEN ((e.c1) IS NOT NULL OR coalesce(list_contains(e.nulls, 'name'), false)) THEN m.place END AS g0, e.c2 AS l1, CASE WHEN ((e.c2) IS NOT NULL OR coalesce(list_contains(e.nulls, 'seq'), false)) THEN m.place END AS g1 FROM __strandline_cdc_counting AS m JOIN __strandline_cdc_entries AS e ON e.rowid = m.p)
  WINDOW k AS (PARTITION BY c0))
WHERE counts;

-- change __strandline_cdc_entries
INSERT INTO __strandline_cdc_entries SELECT m.c0 AS c0, m.l0 AS c1, m.l1 AS c2, m.seq, CAST(3 AS TINYINT) AS kind, CAST(4 AS TINYINT) AS src, nullif(list_filter(CAST([CASE WHEN m.g0 AND m.l0 IS NULL THEN 'name' END, CASE WHEN m.g1 AND m.l1 IS NULL THEN 'seq' END] AS VARCHAR[]), lambda __strandline_x0: __strandline_x0 IS NOT NULL), CAST([] AS VARCHAR[])) AS nulls, CAST(0 AS TINYINT) AS stored, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos FROM __strandline_cdc_patches AS m;

-- make __strandline_cdc_giving
SELECT m.c0, CASE WHEN k.entry IS NOT NULL AND true AND m.g0 = ((k.c1) IS NOT NULL OR coalesce(list_contains(k.nulls, 'name'), false)) AND (m.l0 IS NOT DISTINCT FROM k.c1) AND m.g1 = ((k.c2) IS NOT NULL OR coalesce(list_contains(k.nulls, 'seq'), false)) AND (m.l1 IS NOT DISTINCT FROM k.c2) THEN k.entry ELSE e.rowid END AS p
FROM __strandline_cdc_patches AS m JOIN __strandline_cdc_entries AS e ON m.c0 = e.c0 AND m.seq IS NOT DISTINCT FROM e.seq AND e.src = 4
LEFT JOIN (SELECT *, rowid AS entry FROM __strandline_cdc_entries WHERE src = 0 AND kind = 3) AS k ON m.c0 = k.c0 AND m.seq IS NOT DISTINCT FROM k.seq;

-- make __strandline_cdc_needed
SELECT p AS entry, false AS bare FROM __strandline_cdc_giving
UNION ALL
SELECT entry, is_whole AND kind IN (1, 4) FROM (
  SELECT e.rowid AS entry, e.kind, (e.src = 1 AND e.stored = 0) OR (e.src = 2 AND e.kind = 1) AS is_told, g.c0 IS NULL AS is_whole
  FROM __strandline_cdc_counting AS m JOIN __strandline_cdc_entries AS e ON e.rowid = coalesce(m.w, m.d)
  LEFT JOIN (SELECT DISTINCT c0 FROM __strandline_cdc_giving) AS g ON m.c0 = g.c0
  WHERE m.place = m.base)
WHERE NOT (is_whole AND is_told);

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN c.n IS DISTINCT FROM a.entries THEN concat(CAST(c.n AS VARCHAR), ' entries that count, but ', CAST(a.entries AS VARCHAR), ' at the moments; ') ELSE '' END,
  CASE WHEN n.n IS DISTINCT FROM m.n THEN concat(CAST(n.n AS VARCHAR), ' rows shall be, but ', CAST(m.n AS VARCHAR), ' compared with the table; ') ELSE '' END,
  CASE WHEN m.same IS DISTINCT FROM m.olds THEN concat(CAST(m.same AS VARCHAR), ' rows stay, but ', CAST(m.olds AS VARCHAR), ' of the table; ') ELSE '' END,
  CASE WHEN a.n IS DISTINCT FROM f.n THEN concat(CAST(a.n AS VARCHAR), ' moments, but ', CAST(f.n AS VARCHAR), ' filled; ') ELSE '' END) AS wrong
FROM (SELECT count(*) AS n FROM __strandline_cdc_result) AS n,
  (SELECT count(*) AS n, count(CASE WHEN is_same THEN old END) AS same, count(DISTINCT CASE WHEN is_same THEN old END) AS olds FROM __strandline_cdc_matched) AS m,
  (SELECT count(CASE WHEN kind <> 6 THEN 1 END) AS n FROM __strandline_cdc_chosen AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0) AS c,
  (SELECT count(w) + count(p) + count(d) AS entries, count(*) AS n FROM __strandline_cdc_moments) AS a,
  (SELECT count(*) AS n FROM __strandline_cdc_filled) AS f) AS b;

-- ===== write =====

-- target new
SELECT r.c0 AS "id", r.c1 AS "name", r.c2 AS "seq", m.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT * FROM __strandline_cdc_matched WHERE NOT is_same) AS m JOIN __strandline_cdc_result AS r ON r.rowid = m.number;

-- target dead
SELECT o.row_file AS __strandline_file, o.row_pos AS __strandline_row FROM (SELECT r.rowid AS old, r.row_file, r.row_pos FROM __strandline_cdc_rows AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0) AS o ANTI JOIN (SELECT old FROM __strandline_cdc_matched WHERE is_same) AS m ON m.old = o.old;

-- state new
SELECT e.c0 AS "id", e.seq AS "__strandline_sequence", e.kind AS "__strandline_kind", e.nulls AS "__strandline_given_nulls", CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN e.c1 END AS "name", CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN e.c2 END AS "seq" FROM __strandline_cdc_needed AS n JOIN __strandline_cdc_entries AS e ON e.rowid = n.entry WHERE NOT (e.stored = 2 OR (e.stored = 1 AND n.bare));

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
FROM (SELECT (SELECT count(*) FROM (SELECT r.rowid AS old, r.row_file, r.row_pos FROM __strandline_cdc_rows AS r SEMI JOIN __strandline_cdc_changed AS k ON r.c0 = k.c0) AS o) - (SELECT count(*) FROM __strandline_cdc_matched WHERE is_same) AS n) AS d;
