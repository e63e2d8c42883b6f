-- ===== stage =====

-- make __strandline_cdc_payload
SELECT *, hash(c1) AS hash FROM (
  SELECT c0, c1, c2, c3, seq, CAST(NULL AS BIGINT) AS end_seq, kind, CAST(2 AS TINYINT) AS src,
         CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id
  FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, CAST(__strandline_source."op" AS VARCHAR) AS c2, CAST(__strandline_source."seq" AS BIGINT) AS c3, CAST("seq" AS BIGINT) AS seq, CAST(CASE WHEN (("op" = 'D')) THEN 0 ELSE 1 END AS TINYINT) AS kind FROM source AS __strandline_source));

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_payload AS e WHERE e.seq IS NULL;

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM __strandline_cdc_payload AS e WHERE e.kind <> 2 AND (e.c0 IS NULL);

-- ===== load =====

-- make __strandline_cdc_keys
SELECT DISTINCT c0 FROM __strandline_cdc_payload;

-- change __strandline_cdc_payload
INSERT INTO __strandline_cdc_payload 
SELECT *, hash(c1) AS hash FROM (
  SELECT c0, c1, c2, c3, seq, stop_seq AS end_seq, kind, CAST(1 AS TINYINT) AS src,
         row_file AS row_file, row_pos AS row_pos, row_id AS row_id
  FROM (SELECT r.* FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c0, CAST(__strandline_target."name" AS VARCHAR) AS c1, CAST(__strandline_target."op" AS VARCHAR) AS c2, CAST(__strandline_target."seq" AS BIGINT) AS c3, __strandline_target."__START_AT" AS seq, __strandline_target."__END_AT" AS stop_seq, CAST(1 AS TINYINT) AS kind, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0));

-- change __strandline_cdc_payload
INSERT INTO __strandline_cdc_payload 
SELECT *, hash(c1) AS hash FROM (
  SELECT c0, c1, c2, c3, seq, CAST(NULL AS BIGINT) AS end_seq, kind, CAST(0 AS TINYINT) AS src,
         row_file AS row_file, row_pos AS row_pos, CAST(NULL AS BIGINT) AS row_id
  FROM (SELECT r.* FROM (SELECT CAST(__strandline_state."id" AS BIGINT) AS c0, CAST(__strandline_state."name" AS VARCHAR) AS c1, CAST(__strandline_state."op" AS VARCHAR) AS c2, CAST(__strandline_state."seq" AS BIGINT) AS c3, CAST(__strandline_state."__strandline_sequence" AS BIGINT) AS seq, __strandline_state."__strandline_kind" AS kind, __strandline_state.__strandline_file AS row_file, __strandline_state.__strandline_row AS row_pos FROM state AS __strandline_state) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0));

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(p.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_payload AS p WHERE src = 1 AND end_seq IS NOT NULL AND seq IS NOT NULL AND end_seq <= seq;

-- ===== merge =====

-- make __strandline_cdc_won
SELECT CAST(NULL AS BIGINT) AS winner WHERE false;

-- make __strandline_cdc_splits
SELECT CAST(NULL AS BIGINT) AS splits WHERE false;

-- make __strandline_cdc_line
WITH claims AS (
  SELECT p.c0, p.seq, p.kind AS up, p.src, p.rowid AS entry,
         CASE WHEN p.kind = 1 THEN p.rowid END AS claim, p.hash
  FROM __strandline_cdc_payload AS p 
  UNION ALL
  SELECT p.c0, p.end_seq, CAST(0 AS TINYINT), p.src, p.rowid, CAST(NULL AS BIGINT), CAST(0 AS UBIGINT)
  FROM __strandline_cdc_payload AS p  WHERE p.src = 1 AND p.end_seq IS NOT NULL),
ranked AS (
  SELECT c0, seq, up, src, entry, hash, ((1 - up) * 8 + src) * 288230376151711744 + entry AS code
  FROM claims AS u ),
slots AS (
  SELECT c0, seq, min(code) AS code, arg_min(hash, code) AS hash,
         min(CASE WHEN up = 1 AND src = 1 THEN entry END) AS old_entry,
         count(CASE WHEN up = 1 AND src = 1 THEN 1 END) > 1 AS doubled,
         count(CASE WHEN up = 1 AND src = 2 THEN 1 END) AS rivals, count(*) AS claims
  FROM ranked GROUP BY c0, seq),
chosen AS (
  SELECT c0, seq, code < 2305843009213693952 AS up, CAST((code >> 58) & 3 AS TINYINT) AS src,
         code & 288230376151711743 AS entry, CASE WHEN code < 2305843009213693952 THEN hash END AS hash,
         old_entry, doubled, claims,
         code < 2305843009213693952 AND rivals > CASE WHEN (code >> 58) & 3 = 2 THEN 1 ELSE 0 END AS tied
  FROM slots),
judged AS (SELECT g.*, false AS split FROM chosen AS g ),
placed AS (
  SELECT *, lag(hash) OVER w AS hash_before, lag(entry) OVER w AS entry_before,
         lead(hash) OVER w AS hash_after, false AS split_after, lead(seq) OVER w AS next_seq
  FROM judged WINDOW w AS (PARTITION BY c0 ORDER BY seq NULLS FIRST)),
linked AS (
  SELECT *, coalesce(hash_before = hash AND NOT split, false) AS continues,
         coalesce(hash_after = hash AND NOT split_after, false) AS goes_on
  FROM placed)
SELECT c0, seq, claims, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends, next_seq,
       NOT up AND hash_before IS NULL AS hidden, CASE WHEN continues THEN entry_before END AS before_entry
FROM linked;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(l.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_line AS l WHERE doubled;

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_line WHERE tied
SELECT t.c0, t.seq, t.entry, t.rival, p.c1, p.c2, p.c3, row_number() OVER w AS standing, lag(t.rival) OVER w AS rival_before
FROM (SELECT l.c0, l.seq, l.entry, e.rowid AS rival
      FROM __strandline_cdc_line AS l JOIN __strandline_cdc_payload AS e ON e.c0 = l.c0 AND e.seq = l.seq
      WHERE l.tied AND e.src = 2 AND e.kind = 1
      UNION ALL
      SELECT l.c0, l.seq, l.entry, l.entry FROM __strandline_cdc_line AS l WHERE l.tied AND l.src <> 2) AS t
JOIN __strandline_cdc_payload AS p ON p.rowid = t.rival
WINDOW w AS (PARTITION BY t.c0, t.seq ORDER BY p.c1 DESC NULLS LAST, p.c2 DESC NULLS LAST, p.c3 DESC NULLS LAST, p.src, p.rowid);

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_line WHERE tied
SELECT DISTINCT x.c0, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON y.rival = x.rival_before WHERE NOT ((x.c1 IS NOT DISTINCT FROM y.c1) AND (x.c2 IS NOT DISTINCT FROM y.c2) AND (x.c3 IS NOT DISTINCT FROM y.c3));

-- change __strandline_cdc_won
INSERT INTO __strandline_cdc_won SELECT rival FROM __strandline_cdc_tied WHERE standing = 1 AND rival <> entry;

-- make __strandline_cdc_redo
SELECT DISTINCT c0 FROM __strandline_cdc_tied WHERE standing = 1 AND rival <> entry;

-- change __strandline_cdc_line
-- only if SELECT count(*) FROM __strandline_cdc_won
DELETE FROM __strandline_cdc_line AS r USING __strandline_cdc_redo AS f WHERE r.c0 = f.c0;

-- change __strandline_cdc_line
-- only if SELECT count(*) FROM __strandline_cdc_won
INSERT INTO __strandline_cdc_line 
WITH claims AS (
  SELECT p.c0, p.seq, p.kind AS up, p.src, p.rowid AS entry,
         CASE WHEN p.kind = 1 THEN p.rowid END AS claim, p.hash
  FROM __strandline_cdc_payload AS p SEMI JOIN __strandline_cdc_redo AS k ON p.c0 = k.c0
  UNION ALL
  SELECT p.c0, p.end_seq, CAST(0 AS TINYINT), p.src, p.rowid, CAST(NULL AS BIGINT), CAST(0 AS UBIGINT)
  FROM __strandline_cdc_payload AS p SEMI JOIN __strandline_cdc_redo AS k ON p.c0 = k.c0 WHERE p.src = 1 AND p.end_seq IS NOT NULL),
ranked AS (
  SELECT c0, seq, up, src, entry, hash, ((1 - up) * 8 + src + CASE WHEN w.winner IS NULL THEN 4 ELSE 0 END) * 288230376151711744 + entry AS code
  FROM claims AS u LEFT JOIN __strandline_cdc_won AS w ON w.winner = u.claim),
slots AS (
  SELECT c0, seq, min(code) AS code, arg_min(hash, code) AS hash,
         min(CASE WHEN up = 1 AND src = 1 THEN entry END) AS old_entry,
         count(CASE WHEN up = 1 AND src = 1 THEN 1 END) > 1 AS doubled,
         count(CASE WHEN up = 1 AND src = 2 THEN 1 END) AS rivals, count(*) AS claims
  FROM ranked GROUP BY c0, seq),
chosen AS (
  SELECT c0, seq, code < 2305843009213693952 AS up, CAST((code >> 58) & 3 AS TINYINT) AS src,
         code & 288230376151711743 AS entry, CASE WHEN code < 2305843009213693952 THEN hash END AS hash,
         old_entry, doubled, claims,
         code < 2305843009213693952 AND rivals > CASE WHEN (code >> 58) & 3 = 2 THEN 1 ELSE 0 END AS tied
  FROM slots),
judged AS (SELECT g.*, x.splits IS NOT NULL AS split FROM chosen AS g LEFT JOIN __strandline_cdc_splits AS x ON x.splits = CASE WHEN g.up THEN g.entry END),
placed AS (
  SELECT *, lag(hash) OVER w AS hash_before, lag(entry) OVER w AS entry_before,
         lead(hash) OVER w AS hash_after, lead(split) OVER w AS split_after, lead(seq) OVER w AS next_seq
  FROM judged WINDOW w AS (PARTITION BY c0 ORDER BY seq NULLS FIRST)),
linked AS (
  SELECT *, coalesce(hash_before = hash AND NOT split, false) AS continues,
         coalesce(hash_after = hash AND NOT split_after, false) AS goes_on
  FROM placed)
SELECT c0, seq, claims, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends, next_seq,
       NOT up AND hash_before IS NULL AS hidden, CASE WHEN continues THEN entry_before END AS before_entry
FROM linked;

-- change __strandline_cdc_splits
-- only if SELECT count(before_entry) FROM __strandline_cdc_line
INSERT INTO __strandline_cdc_splits 
SELECT l.entry FROM (SELECT entry, before_entry FROM __strandline_cdc_line WHERE before_entry IS NOT NULL) AS l
JOIN __strandline_cdc_payload AS x ON x.rowid = l.entry JOIN __strandline_cdc_payload AS y ON y.rowid = l.before_entry
WHERE (x.c1 IS DISTINCT FROM y.c1);

-- make __strandline_cdc_redo
SELECT DISTINCT l.c0 FROM __strandline_cdc_line AS l JOIN __strandline_cdc_splits AS x ON x.splits = l.entry;

-- change __strandline_cdc_line
-- only if SELECT count(*) FROM __strandline_cdc_splits
DELETE FROM __strandline_cdc_line AS r USING __strandline_cdc_redo AS f WHERE r.c0 = f.c0;

-- change __strandline_cdc_line
-- only if SELECT count(*) FROM __strandline_cdc_splits
INSERT INTO __strandline_cdc_line 
WITH claims AS (
  SELECT p.c0, p.seq, p.kind AS up, p.src, p.rowid AS entry,
         CASE WHEN p.kind = 1 THEN p.rowid END AS claim, p.hash
  FROM __strandline_cdc_payload AS p SEMI JOIN __strandline_cdc_redo AS k ON p.c0 = k.c0
  UNION ALL
  SELECT p.c0, p.end_seq, CAST(0 AS TINYINT), p.src, p.rowid, CAST(NULL AS BIGINT), CAST(0 AS UBIGINT)
  FROM __strandline_cdc_payload AS p SEMI JOIN __strandline_cdc_redo AS k ON p.c0 = k.c0 WHERE p.src = 1 AND p.end_seq IS NOT NULL),
ranked AS (
  SELECT c0, seq, up, src, entry, hash, ((1 - up) * 8 + src + CASE WHEN w.winner IS NULL THEN 4 ELSE 0 END) * 288230376151711744 + entry AS code
  FROM claims AS u LEFT JOIN __strandline_cdc_won AS w ON w.winner = u.claim),
slots AS (
  SELECT c0, seq, min(code) AS code, arg_min(hash, code) AS hash,
         min(CASE WHEN up = 1 AND src = 1 THEN entry END) AS old_entry,
         count(CASE WHEN up = 1 AND src = 1 THEN 1 END) > 1 AS doubled,
         count(CASE WHEN up = 1 AND src = 2 THEN 1 END) AS rivals, count(*) AS claims
  FROM ranked GROUP BY c0, seq),
chosen AS (
  SELECT c0, seq, code < 2305843009213693952 AS up, CAST((code >> 58) & 3 AS TINYINT) AS src,
         code & 288230376151711743 AS entry, CASE WHEN code < 2305843009213693952 THEN hash END AS hash,
         old_entry, doubled, claims,
         code < 2305843009213693952 AND rivals > CASE WHEN (code >> 58) & 3 = 2 THEN 1 ELSE 0 END AS tied
  FROM slots),
judged AS (SELECT g.*, x.splits IS NOT NULL AS split FROM chosen AS g LEFT JOIN __strandline_cdc_splits AS x ON x.splits = CASE WHEN g.up THEN g.entry END),
placed AS (
  SELECT *, lag(hash) OVER w AS hash_before, lag(entry) OVER w AS entry_before,
         lead(hash) OVER w AS hash_after, lead(split) OVER w AS split_after, lead(seq) OVER w AS next_seq
  FROM judged WINDOW w AS (PARTITION BY c0 ORDER BY seq NULLS FIRST)),
linked AS (
  SELECT *, coalesce(hash_before = hash AND NOT split, false) AS continues,
         coalesce(hash_after = hash AND NOT split_after, false) AS goes_on
  FROM placed)
SELECT c0, seq, claims, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends, next_seq,
       NOT up AND hash_before IS NULL AS hidden, CASE WHEN continues THEN entry_before END AS before_entry
FROM linked;

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN p.claims IS DISTINCT FROM l.claims THEN concat(CAST(p.claims AS VARCHAR), ' claims of events and rows, but ', CAST(l.claims AS VARCHAR), ' in the timeline; ') ELSE '' END,
  CASE WHEN k.n IS DISTINCT FROM l.firsts THEN concat(CAST(k.n AS VARCHAR), ' keys, but ', CAST(l.firsts AS VARCHAR), ' with a first event; ') ELSE '' END,
  CASE WHEN l.starts IS DISTINCT FROM l.ends THEN concat(CAST(l.starts AS VARCHAR), ' runs begin, but ', CAST(l.ends AS VARCHAR), ' end; ') ELSE '' END) AS wrong
FROM (SELECT count(*) + count(end_seq) AS claims FROM __strandline_cdc_payload) AS p,
  (SELECT count(*) AS n FROM __strandline_cdc_keys) AS k,
  (SELECT coalesce(sum(claims), 0) AS claims, count(*) - count(next_seq) AS firsts, count(CASE WHEN starts THEN 1 END) AS starts, count(CASE WHEN ends THEN 1 END) AS ends FROM __strandline_cdc_line) AS l) AS b;

-- ===== fold =====

-- make __strandline_cdc_runs
SELECT r.start_seq, r.stop_seq, r.last_entry, r.last_src, r.old_entry, p.end_seq AS old_stop, p.row_id AS old_row_id
FROM (SELECT seq AS start_seq, next_seq AS stop_seq, entry AS last_entry, src AS last_src, old_entry
      FROM __strandline_cdc_line WHERE starts AND ends
      UNION ALL
      SELECT start_seq, stop_seq, last_entry, last_src, old_entry
      FROM (SELECT seq AS start_seq, lead(next_seq) OVER w AS stop_seq, lead(entry) OVER w AS last_entry,
                   lead(src) OVER w AS last_src, old_entry, starts
            FROM __strandline_cdc_line WHERE starts <> ends
            WINDOW w AS (PARTITION BY c0 ORDER BY seq NULLS FIRST)) AS b
      WHERE starts) AS r
LEFT JOIN (SELECT rowid AS entry, end_seq, row_id FROM __strandline_cdc_payload WHERE src = 1) AS p ON p.entry = r.old_entry;

-- ===== diff =====

-- make __strandline_cdc_kept
SELECT r.old_entry AS entry FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src <> 2;

-- change __strandline_cdc_kept
-- only if SELECT count(*) FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src = 2
INSERT INTO __strandline_cdc_kept 
SELECT r.old_entry FROM (SELECT * FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src = 2) AS r
JOIN __strandline_cdc_payload AS x ON x.rowid = r.last_entry JOIN __strandline_cdc_payload AS y ON y.rowid = r.old_entry
WHERE (((x.c1 IS NOT DISTINCT FROM y.c1) AND (x.c2 IS NOT DISTINCT FROM y.c2) AND (x.c3 IS NOT DISTINCT FROM y.c3)));

-- make __strandline_cdc_changed
SELECT r.start_seq, r.stop_seq, r.last_entry, CASE WHEN lives THEN r.old_entry END AS old_entry,
       CASE WHEN lives THEN r.old_row_id END AS old_row_id
FROM (SELECT *, start_seq IS NOT NULL OR stop_seq IS NOT DISTINCT FROM old_stop AS lives FROM __strandline_cdc_runs) AS r
ANTI JOIN __strandline_cdc_kept AS k ON k.entry = r.old_entry;

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN l.n IS DISTINCT FROM r.n THEN concat(CAST(l.n AS VARCHAR), ' runs of the timeline, but ', CAST(r.n AS VARCHAR), ' folded; ') ELSE '' END,
  CASE WHEN r.n IS DISTINCT FROM r.whole THEN concat(CAST(r.n AS VARCHAR), ' runs, but ', CAST(r.whole AS VARCHAR), ' with a last event; ') ELSE '' END,
  CASE WHEN r.n IS DISTINCT FROM (k.n + c.n) THEN concat(CAST(r.n AS VARCHAR), ' rows shall be, but ', CAST((k.n + c.n) AS VARCHAR), ' stay or are written; ') ELSE '' END) AS wrong
FROM (SELECT count(*) AS n FROM __strandline_cdc_line WHERE starts) AS l,
  (SELECT count(*) AS n, count(last_entry) AS whole FROM __strandline_cdc_runs) AS r,
  (SELECT count(*) AS n FROM __strandline_cdc_kept) AS k,
  (SELECT count(*) AS n FROM __strandline_cdc_changed) AS c) AS b;

-- ===== write =====

-- target new
SELECT p.c0 AS "id", p.c1 AS "name", p.c2 AS "op", p.c3 AS "seq", r.start_seq AS "__START_AT", r.stop_seq AS "__END_AT", r.old_row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM __strandline_cdc_changed AS r JOIN __strandline_cdc_payload AS p ON p.rowid = r.last_entry;

-- target dead
SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM __strandline_cdc_payload AS p ANTI JOIN __strandline_cdc_kept AS k ON k.entry = p.rowid WHERE p.src = 1;

-- state new
SELECT p.c0 AS "id", l.seq AS "__strandline_sequence", CAST(l.up AS TINYINT) AS "__strandline_kind", CASE WHEN l.up THEN p.c1 END AS "name", CASE WHEN l.up THEN p.c2 END AS "op", CASE WHEN l.up THEN p.c3 END AS "seq" FROM __strandline_cdc_line AS l JOIN __strandline_cdc_payload AS p ON p.rowid = l.entry WHERE l.src <> 0 AND (l.up AND NOT (l.starts AND l.ends) OR l.hidden);

-- state dead
SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM __strandline_cdc_payload AS p ANTI JOIN (SELECT l.entry FROM __strandline_cdc_line AS l WHERE l.src = 0 AND (l.up AND NOT (l.starts AND l.ends) OR l.hidden)) AS k ON k.entry = p.rowid WHERE p.src = 0;

-- metrics
SELECT
  (SELECT count(*) FROM __strandline_cdc_changed) AS num_upserted_rows,
  d.n - (SELECT count(old_entry) FROM __strandline_cdc_changed) AS num_deleted_rows,
  (SELECT count(*) FROM __strandline_cdc_payload WHERE src = 2) AS num_input_rows,
  (SELECT count(*) FROM __strandline_cdc_payload AS e
   JOIN (SELECT c0, max(seq) AS known
         FROM (SELECT c0, seq FROM __strandline_cdc_payload WHERE src <> 2
               UNION ALL SELECT c0, end_seq FROM __strandline_cdc_payload WHERE src = 1)
         WHERE seq IS NOT NULL GROUP BY ALL) AS k ON e.c0 = k.c0
   WHERE e.src = 2 AND e.seq < k.known) AS num_late_rows,
  (SELECT count(*) FROM __strandline_cdc_conflicts) AS num_sequence_conflicts,
  (SELECT min(concat_ws(', ', 'id = ' || coalesce(CAST(x.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(x.seq AS VARCHAR)) FROM __strandline_cdc_conflicts AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT b.n - (SELECT count(*) FROM __strandline_cdc_kept) AS n FROM (SELECT count(*) AS n FROM __strandline_cdc_payload WHERE src = 1) AS b) AS d;
