-- ===== stage =====

-- make __strandline_cdc_events
SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, CAST(__strandline_source."seq" AS BIGINT) AS c2, CAST("seq" AS BIGINT) AS seq, CAST(CASE WHEN (("op" = 'D')) THEN 0 ELSE 1 END AS TINYINT) AS kind FROM source AS __strandline_source;

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_events AS e WHERE e.seq IS NULL;

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(e.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM __strandline_cdc_events AS e WHERE e.kind <> 2 AND (e.c0 IS NULL);

-- ===== normalise =====

-- make __strandline_cdc_ranked
SELECT c0, seq, kind, rowid AS rid, row_number() OVER w AS place,
       kind = 1 AND row_number() OVER w <> rank() OVER w AS tied
FROM __strandline_cdc_events WHERE kind < 2
WINDOW w AS (PARTITION BY c0 ORDER BY seq DESC, kind DESC);

-- make __strandline_cdc_tied
-- only if SELECT count(*) FROM __strandline_cdc_ranked WHERE tied
SELECT r.c0, r.seq, r.rid, e.c1, e.c2, row_number() OVER w AS standing, min(r.place) OVER g AS top_place,
       lag(r.rid) OVER w AS rid_before
FROM __strandline_cdc_ranked AS r
SEMI JOIN (SELECT DISTINCT c0, seq FROM __strandline_cdc_ranked WHERE tied) AS t ON t.c0 = r.c0 AND t.seq = r.seq
JOIN __strandline_cdc_events AS e ON e.rowid = r.rid
WHERE r.kind = 1
WINDOW g AS (PARTITION BY r.c0, r.seq), w AS (PARTITION BY r.c0, r.seq ORDER BY e.c1 DESC NULLS LAST, e.c2 DESC NULLS LAST, r.rid);

-- make __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_ranked WHERE tied
SELECT DISTINCT x.c0, x.seq FROM __strandline_cdc_tied AS x JOIN __strandline_cdc_tied AS y ON y.rid = x.rid_before WHERE NOT ((x.c1 IS NOT DISTINCT FROM y.c1) AND (x.c2 IS NOT DISTINCT FROM y.c2));

-- change __strandline_cdc_ranked
-- only if SELECT count(*) FROM __strandline_cdc_ranked WHERE tied
UPDATE __strandline_cdc_ranked AS r SET rid = f.rid FROM __strandline_cdc_tied AS f WHERE r.place = 1 AND f.top_place = 1 AND f.standing = 1 AND f.c0 = r.c0;

-- ===== locate =====

-- make __strandline_cdc_decided
SELECT c0, seq, kind, rid, target_file, target_pos, row_id, state_file, state_pos, state_kind, known,
  CAST(CASE 
       WHEN known_kind IS NULL OR known IS NULL THEN 1
       WHEN seq > known THEN 1
       WHEN seq < known OR kind = 0 THEN 0
       WHEN known_kind = 0 THEN 1
       ELSE 2 END AS TINYINT) AS verdict
FROM (
  SELECT w.c0, w.seq, w.kind, w.rid,
    t.row_file AS target_file, t.row_pos AS target_pos, t.row_id, CAST(NULL AS INTEGER) AS state_file, CAST(NULL AS BIGINT) AS state_pos, CAST(NULL AS TINYINT) AS state_kind, t.row_seq AS known, CASE WHEN t.row_file IS NOT NULL THEN 1 END AS known_kind
  FROM (SELECT c0, seq, kind, rid FROM __strandline_cdc_ranked WHERE place = 1) AS w
  LEFT JOIN (SELECT CAST(NULL AS BIGINT) AS c0, CAST(NULL AS BIGINT) AS row_seq, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id WHERE false) AS t ON w.c0 = t.c0
  );

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
-- only if SELECT (SELECT count(*) FROM __strandline_cdc_decided) - (SELECT count(*) FROM __strandline_cdc_ranked WHERE place = 1)
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c0 AS VARCHAR), 'NULL'))) FROM (SELECT c0 FROM __strandline_cdc_decided GROUP BY ALL HAVING count(*) > 1) AS d;

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN e.n IS DISTINCT FROM r.n THEN concat(CAST(e.n AS VARCHAR), ' events, but ', CAST(r.n AS VARCHAR), ' ranked; ') ELSE '' END,
  CASE WHEN r.latest IS DISTINCT FROM d.n THEN concat(CAST(r.latest AS VARCHAR), ' keys, but ', CAST(d.n AS VARCHAR), ' decided; ') ELSE '' END) AS wrong
FROM (SELECT count(*) AS n FROM __strandline_cdc_events WHERE kind < 2) AS e,
  (SELECT count(*) AS n, count(CASE WHEN place = 1 THEN 1 END) AS latest FROM __strandline_cdc_ranked) AS r,
  (SELECT count(*) AS n FROM __strandline_cdc_decided) AS d) AS b;

-- make __strandline_cdc_compared
-- only if SELECT count(*) FROM __strandline_cdc_decided WHERE (verdict = 2 OR (verdict = 1 AND kind = 1 AND target_file IS NOT NULL AND state_file IS NOT NULL))
SELECT d.rid, CASE WHEN (e.c1 IS DISTINCT FROM t.c1) THEN (CASE WHEN e.c1 IS NULL THEN false WHEN t.c1 IS NULL THEN true ELSE e.c1 > t.c1 END) WHEN (e.c2 IS DISTINCT FROM t.c2) THEN (CASE WHEN e.c2 IS NULL THEN false WHEN t.c2 IS NULL THEN true ELSE e.c2 > t.c2 END) ELSE false END AS is_greater, (((e.c1 IS NOT DISTINCT FROM t.c1) AND (e.c2 IS NOT DISTINCT FROM t.c2))) AS is_same, NOT ((e.c1 IS NOT DISTINCT FROM t.c1) AND (e.c2 IS NOT DISTINCT FROM t.c2)) AS differs
FROM (SELECT * FROM __strandline_cdc_decided WHERE (verdict = 2 OR (verdict = 1 AND kind = 1 AND target_file IS NOT NULL AND state_file IS NOT NULL))) AS d
JOIN __strandline_cdc_events AS e ON e.rowid = d.rid
JOIN (SELECT CAST(NULL AS BIGINT) AS c0, CAST(NULL AS VARCHAR) AS c1, CAST(NULL AS BIGINT) AS c2, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id WHERE false) AS t ON t.c0 = d.c0;

-- ===== diff =====

-- change __strandline_cdc_conflicts
-- only if SELECT count(*) FROM __strandline_cdc_decided WHERE (verdict = 2 OR (verdict = 1 AND kind = 1 AND target_file IS NOT NULL AND state_file IS NOT NULL))
INSERT INTO __strandline_cdc_conflicts SELECT d.c0, d.seq FROM __strandline_cdc_decided AS d JOIN __strandline_cdc_compared AS c ON c.rid = d.rid WHERE d.verdict = 2 AND c.differs;

-- change __strandline_cdc_decided
-- only if SELECT count(*) FROM __strandline_cdc_decided WHERE (verdict = 2 OR (verdict = 1 AND kind = 1 AND target_file IS NOT NULL AND state_file IS NOT NULL))
UPDATE __strandline_cdc_decided AS r SET verdict = CASE
  WHEN r.verdict = 2 THEN CASE WHEN f.is_greater THEN 4 ELSE 0 END
  WHEN r.verdict = 1 AND r.kind = 1 AND f.is_same THEN 3
  ELSE r.verdict END FROM __strandline_cdc_compared AS f WHERE f.rid = r.rid;

-- ===== write =====

-- target new
SELECT e.c0 AS "id", e.c1 AS "name", e.c2 AS "seq", d.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT rid, row_id FROM __strandline_cdc_decided WHERE (kind = 1 AND verdict IN (1, 4))) AS d JOIN __strandline_cdc_events AS e ON e.rowid = d.rid ;

-- target dead
SELECT target_file AS __strandline_file, target_pos AS __strandline_row FROM __strandline_cdc_decided WHERE (target_file IS NOT NULL AND verdict IN (1, 4));

-- state new
SELECT c0 AS "id", seq AS "__strandline_sequence", kind AS "__strandline_kind" FROM __strandline_cdc_decided WHERE (verdict IN (1, 3, 4) AND NOT (kind = 1) AND NOT false);

-- state dead
SELECT state_file AS __strandline_file, state_pos AS __strandline_row FROM __strandline_cdc_decided WHERE (state_file IS NOT NULL AND verdict IN (1, 3, 4) AND NOT false);

-- metrics
SELECT
  (SELECT count(*) FROM __strandline_cdc_decided WHERE (kind = 1 AND verdict IN (1, 4))) AS num_upserted_rows,
  d.n - (SELECT count(*) FROM __strandline_cdc_decided WHERE (kind = 1 AND verdict IN (1, 4)) AND target_file IS NOT NULL) AS num_deleted_rows,
  (SELECT count(*) FROM __strandline_cdc_events) AS num_input_rows,
  0 + (SELECT count(*) FROM __strandline_cdc_decided WHERE coalesce(seq < known, false))
    + (SELECT count(*) FROM (SELECT r.seq, d.known FROM __strandline_cdc_ranked AS r JOIN __strandline_cdc_decided AS d ON r.c0 = d.c0 WHERE r.place > 1)
       WHERE coalesce(seq < known, false)) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM __strandline_cdc_conflicts)) AS num_sequence_conflicts,
  (SELECT min(concat_ws(', ', 'id = ' || coalesce(CAST(x.c0 AS VARCHAR), 'NULL')) || ', sequence = ' || CAST(x.seq AS VARCHAR)) FROM __strandline_cdc_conflicts AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT count(*) AS n FROM (SELECT target_file AS __strandline_file, target_pos AS __strandline_row FROM __strandline_cdc_decided WHERE (target_file IS NOT NULL AND verdict IN (1, 4)))) AS d;
