-- ===== stage =====

-- make __strandline_cdc_payload
SELECT *, hash(c1) AS hash FROM (
  SELECT c0, c1, seq, CAST(NULL AS BIGINT) AS end_seq, kind, CAST(2 AS TINYINT) AS src,
         CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id
  FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, CAST("seq" AS BIGINT) AS seq, CAST(1 AS TINYINT) AS kind FROM source AS __strandline_source));

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
  SELECT c0, c1, seq, stop_seq AS end_seq, kind, CAST(1 AS TINYINT) AS src,
         row_file AS row_file, row_pos AS row_pos, row_id AS row_id
  FROM (SELECT r.* FROM (SELECT CAST(NULL AS BIGINT) AS c0, CAST(NULL AS VARCHAR) AS c1, CAST(NULL AS BIGINT) AS seq, CAST(NULL AS BIGINT) AS stop_seq, CAST(1 AS TINYINT) AS kind, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id WHERE false) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0));

-- change __strandline_cdc_payload
INSERT INTO __strandline_cdc_payload 
SELECT *, hash(c1) AS hash FROM (
  SELECT c0, c1, seq, CAST(NULL AS BIGINT) AS end_seq, kind, CAST(0 AS TINYINT) AS src,
         row_file AS row_file, row_pos AS row_pos, CAST(NULL AS BIGINT) AS row_id
  FROM (SELECT r.* FROM (SELECT CAST(NULL AS BIGINT) AS c0, CAST(NULL AS VARCHAR) AS c1, CAST(NULL AS BIGINT) AS seq, CAST(NULL AS TINYINT) AS kind, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos WHERE false) AS r SEMI JOIN __strandline_cdc_keys AS k ON r.c0 = k.c0));

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
sorted AS (
  SELECT c0, seq, up, src, entry, hash, false AS split
  FROM claims AS u  ORDER BY c0, seq NULLS FIRST, up DESC, false DESC, src, entry),
marked AS (
  SELECT *, c0 IS DISTINCT FROM lag(c0) OVER () AS new_key, lag(seq) OVER () AS seq_before FROM sorted),
coded AS (
  SELECT *, entry * 16 + CASE WHEN new_key OR seq IS DISTINCT FROM seq_before THEN 8 ELSE 0 END + up * 4 + src AS code
  FROM marked),
ahead AS (
  SELECT *, lead(code, 1, CAST(8 AS BIGINT)) OVER () AS code_1, lead(code, 2, CAST(8 AS BIGINT)) OVER () AS code_2 FROM coded),
grouped AS (
  SELECT c0, seq, up = 1 AS up, src, entry, hash, split, new_key,
         CASE WHEN code & 7 = 5 THEN entry
              WHEN code_1 & 15 = 5 THEN code_1 >> 4
              WHEN code_1 & 8 = 0 AND code_2 & 15 = 5 THEN code_2 >> 4 END AS old_entry,
         up = 1 AND (code_1 & 15 = 6 OR (code_1 & 8 = 0 AND code_2 & 15 = 6)) AS tied,
         (code & 7 = 5 AND code_1 & 15 = 5)
           OR (code_1 & 15 = 5 AND code_2 & 15 = 5) AS doubled
  FROM ahead WHERE code & 8 = 8),
joined AS (
  SELECT *, NOT new_key AND lag(up) OVER () AS follows,
         lag(hash) OVER () = hash AND NOT split AS same_hash, lag(entry) OVER () AS entry_before
  FROM grouped),
continued AS (SELECT *, coalesce(up AND follows AND same_hash, false) AS continues FROM joined),
folded AS (
  SELECT *, lead(continues, 1, false) OVER () AS goes_on, lead(new_key, 1, true) OVER () AS is_final,
         lead(seq) OVER () AS seq_after
  FROM continued)
SELECT c0, seq, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends,
       CASE WHEN NOT is_final THEN seq_after END AS next_seq,
       NOT up AND NOT coalesce(follows, false) AS hidden,
       CASE WHEN continues THEN entry_before END AS before_entry,
       count(CASE WHEN up AND NOT continues THEN 1 END) OVER (ROWS UNBOUNDED PRECEDING) AS run
FROM folded;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(l.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_line AS l WHERE doubled;

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_line WHERE tied
SELECT t.c0, t.seq, t.entry, t.rival, p.c1, row_number() OVER w AS standing, lag(t.rival) OVER w AS rival_before
FROM (SELECT l.c0, l.seq, l.entry, e.rowid AS rival
      FROM __strandline_cdc_line AS l JOIN __strandline_cdc_payload AS e ON e.c0 = l.c0 AND e.seq = l.seq
      WHERE l.tied AND e.src = 2 AND e.kind = 1
      UNION ALL
      SELECT l.c0, l.seq, l.entry, l.entry FROM __strandline_cdc_line AS l WHERE l.tied AND l.src <> 2) AS t
JOIN __strandline_cdc_payload AS p ON p.rowid = t.rival
WINDOW w AS (PARTITION BY t.c0, t.seq ORDER BY p.c1 DESC NULLS LAST, p.src, p.rowid);

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_line WHERE tied
SELECT DISTINCT x.c0, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON y.rival = x.rival_before WHERE NOT ((x.c1 IS NOT DISTINCT FROM y.c1));

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
sorted AS (
  SELECT c0, seq, up, src, entry, hash, x.splits IS NOT NULL AS split
  FROM claims AS u LEFT JOIN __strandline_cdc_won AS w ON w.winner = u.claim LEFT JOIN __strandline_cdc_splits AS x ON x.splits = u.claim ORDER BY c0, seq NULLS FIRST, up DESC, w.winner IS NOT NULL DESC, src, entry),
marked AS (
  SELECT *, c0 IS DISTINCT FROM lag(c0) OVER () AS new_key, lag(seq) OVER () AS seq_before FROM sorted),
coded AS (
  SELECT *, entry * 16 + CASE WHEN new_key OR seq IS DISTINCT FROM seq_before THEN 8 ELSE 0 END + up * 4 + src AS code
  FROM marked),
ahead AS (
  SELECT *, lead(code, 1, CAST(8 AS BIGINT)) OVER () AS code_1, lead(code, 2, CAST(8 AS BIGINT)) OVER () AS code_2 FROM coded),
grouped AS (
  SELECT c0, seq, up = 1 AS up, src, entry, hash, split, new_key,
         CASE WHEN code & 7 = 5 THEN entry
              WHEN code_1 & 15 = 5 THEN code_1 >> 4
              WHEN code_1 & 8 = 0 AND code_2 & 15 = 5 THEN code_2 >> 4 END AS old_entry,
         up = 1 AND (code_1 & 15 = 6 OR (code_1 & 8 = 0 AND code_2 & 15 = 6)) AS tied,
         (code & 7 = 5 AND code_1 & 15 = 5)
           OR (code_1 & 15 = 5 AND code_2 & 15 = 5) AS doubled
  FROM ahead WHERE code & 8 = 8),
joined AS (
  SELECT *, NOT new_key AND lag(up) OVER () AS follows,
         lag(hash) OVER () = hash AND NOT split AS same_hash, lag(entry) OVER () AS entry_before
  FROM grouped),
continued AS (SELECT *, coalesce(up AND follows AND same_hash, false) AS continues FROM joined),
folded AS (
  SELECT *, lead(continues, 1, false) OVER () AS goes_on, lead(new_key, 1, true) OVER () AS is_final,
         lead(seq) OVER () AS seq_after
  FROM continued)
SELECT c0, seq, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends,
       CASE WHEN NOT is_final THEN seq_after END AS next_seq,
       NOT up AND NOT coalesce(follows, false) AS hidden,
       CASE WHEN continues THEN entry_before END AS before_entry,
       count(CASE WHEN up AND NOT continues THEN 1 END) OVER (ROWS UNBOUNDED PRECEDING) AS run
FROM folded;

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
sorted AS (
  SELECT c0, seq, up, src, entry, hash, x.splits IS NOT NULL AS split
  FROM claims AS u LEFT JOIN __strandline_cdc_won AS w ON w.winner = u.claim LEFT JOIN __strandline_cdc_splits AS x ON x.splits = u.claim ORDER BY c0, seq NULLS FIRST, up DESC, w.winner IS NOT NULL DESC, src, entry),
marked AS (
  SELECT *, c0 IS DISTINCT FROM lag(c0) OVER () AS new_key, lag(seq) OVER () AS seq_before FROM sorted),
coded AS (
  SELECT *, entry * 16 + CASE WHEN new_key OR seq IS DISTINCT FROM seq_before THEN 8 ELSE 0 END + up * 4 + src AS code
  FROM marked),
ahead AS (
  SELECT *, lead(code, 1, CAST(8 AS BIGINT)) OVER () AS code_1, lead(code, 2, CAST(8 AS BIGINT)) OVER () AS code_2 FROM coded),
grouped AS (
  SELECT c0, seq, up = 1 AS up, src, entry, hash, split, new_key,
         CASE WHEN code & 7 = 5 THEN entry
              WHEN code_1 & 15 = 5 THEN code_1 >> 4
              WHEN code_1 & 8 = 0 AND code_2 & 15 = 5 THEN code_2 >> 4 END AS old_entry,
         up = 1 AND (code_1 & 15 = 6 OR (code_1 & 8 = 0 AND code_2 & 15 = 6)) AS tied,
         (code & 7 = 5 AND code_1 & 15 = 5)
           OR (code_1 & 15 = 5 AND code_2 & 15 = 5) AS doubled
  FROM ahead WHERE code & 8 = 8),
joined AS (
  SELECT *, NOT new_key AND lag(up) OVER () AS follows,
         lag(hash) OVER () = hash AND NOT split AS same_hash, lag(entry) OVER () AS entry_before
  FROM grouped),
continued AS (SELECT *, coalesce(up AND follows AND same_hash, false) AS continues FROM joined),
folded AS (
  SELECT *, lead(continues, 1, false) OVER () AS goes_on, lead(new_key, 1, true) OVER () AS is_final,
         lead(seq) OVER () AS seq_after
  FROM continued)
SELECT c0, seq, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends,
       CASE WHEN NOT is_final THEN seq_after END AS next_seq,
       NOT up AND NOT coalesce(follows, false) AS hidden,
       CASE WHEN continues THEN entry_before END AS before_entry,
       count(CASE WHEN up AND NOT continues THEN 1 END) OVER (ROWS UNBOUNDED PRECEDING) AS run
FROM folded;

-- ===== fold =====

-- make __strandline_cdc_runs
SELECT r.start_seq, r.stop_seq, r.last_entry, r.last_src, r.old_entry, p.end_seq AS old_stop, p.row_id AS old_row_id
FROM (SELECT seq AS start_seq, next_seq AS stop_seq, entry AS last_entry, src AS last_src, old_entry
      FROM __strandline_cdc_line WHERE starts AND ends
      UNION ALL
      SELECT a.seq, b.next_seq, b.entry, b.src, a.old_entry
      FROM __strandline_cdc_line AS a JOIN __strandline_cdc_line AS b ON b.c0 = a.c0 AND b.run = a.run
      WHERE a.starts AND NOT a.ends AND b.ends AND NOT b.starts) AS r
LEFT JOIN (SELECT rowid AS entry, end_seq, row_id FROM __strandline_cdc_payload WHERE src = 1) AS p ON p.entry = r.old_entry;

-- ===== diff =====

-- make __strandline_cdc_kept
SELECT r.old_entry AS entry FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src <> 2;

-- change __strandline_cdc_kept
-- only if SELECT count(*) FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src = 2
INSERT INTO __strandline_cdc_kept 
SELECT r.old_entry FROM (SELECT * FROM __strandline_cdc_runs AS r WHERE r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq AND r.last_src = 2) AS r
JOIN __strandline_cdc_payload AS x ON x.rowid = r.last_entry JOIN __strandline_cdc_payload AS y ON y.rowid = r.old_entry
WHERE (((x.c1 IS NOT DISTINCT FROM y.c1)));

-- make __strandline_cdc_changed
SELECT r.start_seq, r.stop_seq, r.last_entry, CASE WHEN lives THEN r.old_entry END AS old_entry,
       CASE WHEN lives THEN r.old_row_id END AS old_row_id
FROM (SELECT *, start_seq IS NOT NULL OR stop_seq IS NOT DISTINCT FROM old_stop AS lives FROM __strandline_cdc_runs) AS r
ANTI JOIN __strandline_cdc_kept AS k ON k.entry = r.old_entry;

-- ===== write =====

-- target new
SELECT p.c0 AS "id", p.c1 AS "name", r.start_seq AS "__START_AT", r.stop_seq AS "__END_AT", r.old_row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM __strandline_cdc_changed AS r JOIN __strandline_cdc_payload AS p ON p.rowid = r.last_entry;

-- target dead
SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM __strandline_cdc_payload AS p ANTI JOIN __strandline_cdc_kept AS k ON k.entry = p.rowid WHERE p.src = 1;

-- state new
SELECT p.c0 AS "id", l.seq AS "__strandline_sequence", CAST(l.up AS TINYINT) AS "__strandline_kind", CASE WHEN l.up THEN p.c1 END AS "name" FROM __strandline_cdc_line AS l JOIN __strandline_cdc_payload AS p ON p.rowid = l.entry WHERE l.src <> 0 AND (l.up AND NOT (l.starts AND l.ends) OR l.hidden);

-- state dead
SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM __strandline_cdc_payload AS p ANTI JOIN (SELECT l.entry FROM __strandline_cdc_line AS l WHERE l.src = 0 AND (l.up AND NOT (l.starts AND l.ends) OR l.hidden)) AS k ON k.entry = p.rowid WHERE p.src = 0;

-- metrics
SELECT
  (SELECT count(*) FROM __strandline_cdc_changed) AS num_upserted_rows,
  (SELECT count(*) FROM (SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM __strandline_cdc_payload AS p ANTI JOIN __strandline_cdc_kept AS k ON k.entry = p.rowid WHERE p.src = 1)) - (SELECT count(old_entry) FROM __strandline_cdc_changed) AS num_deleted_rows,
  (SELECT count(*) FROM __strandline_cdc_payload WHERE src = 2) AS num_input_rows,
  (SELECT count(*) FROM __strandline_cdc_payload AS e
   JOIN (SELECT c0, max(seq) AS known
         FROM (SELECT c0, seq FROM __strandline_cdc_payload WHERE src <> 2
               UNION ALL SELECT c0, end_seq FROM __strandline_cdc_payload WHERE src = 1)
         WHERE seq IS NOT NULL GROUP BY ALL) AS k ON e.c0 = k.c0
   WHERE e.src = 2 AND e.seq < k.known) AS num_late_rows,
  (SELECT count(*) FROM __strandline_cdc_conflicts) AS num_sequence_conflicts,
  (SELECT min(concat_ws(', ', 'id = ' || coalesce(CAST(x.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(x.seq AS VARCHAR)) FROM __strandline_cdc_conflicts AS x) AS conflict_example;
