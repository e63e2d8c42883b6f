-- ===== read =====

-- make __strandline_cdc_snapshot
SELECT CAST(__strandline_source."id" AS BIGINT) AS c2, CAST(__strandline_source."name" AS VARCHAR) AS c3, CAST(__strandline_source."seen" AS DOUBLE) AS c4, true AS here FROM source AS __strandline_source;

-- ===== compare =====

-- make __strandline_cdc_differences
SELECT s.c2 AS c2, s.c3 AS c3, s.c4 AS c4, t.c1 AS c1, t.c2 AS o2, t.c3 AS o3, t.c4 AS o4, t.start_at, t.row_file IS NULL OR NOT ((s.c3 IS NOT DISTINCT FROM t.c3)) AS opens, s.here, t.row_file, t.row_pos, t.row_id
FROM __strandline_cdc_snapshot AS s FULL OUTER JOIN (SELECT * FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."seen" AS DOUBLE) AS c4, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target."__START_AT" AS start_at, __strandline_target."__END_AT" AS end_at, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) WHERE end_at IS NULL) AS t ON s.c2 = t.c2
WHERE s.here IS NULL OR t.row_file IS NULL OR NOT ((s.c3 IS NOT DISTINCT FROM t.c3) AND (s.c4 IS NOT DISTINCT FROM t.c4));

-- make __strandline_cdc_counts
SELECT (SELECT count(*) FROM __strandline_cdc_snapshot) AS snapshot_rows, (SELECT count(*) FROM (SELECT * FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."seen" AS DOUBLE) AS c4, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target."__START_AT" AS start_at, __strandline_target."__END_AT" AS end_at, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) WHERE end_at IS NULL)) AS target_rows,
  count(*) FILTER (WHERE row_file IS NULL) AS fresh, count(*) FILTER (WHERE here IS NULL) AS gone
FROM __strandline_cdc_differences;

-- make __strandline_cdc_repeated
SELECT c2 FROM __strandline_cdc_differences WHERE row_file IS NULL AND NOT (c2 IS NULL) GROUP BY c2 HAVING count(*) > 1;

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_differences AS d WHERE d.here AND (d.c2 IS NULL);

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_repeated AS d;

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION
-- only if SELECT (snapshot_rows - fresh) - (target_rows - gone) FROM __strandline_cdc_counts
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM (SELECT c2 FROM __strandline_cdc_snapshot GROUP BY c2 HAVING count(*) > 1) AS d;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
-- only if SELECT (snapshot_rows - fresh) - (target_rows - gone) FROM __strandline_cdc_counts
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM (SELECT c2 FROM (SELECT * FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."seen" AS DOUBLE) AS c4, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target."__START_AT" AS start_at, __strandline_target."__END_AT" AS end_at, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) WHERE end_at IS NULL) GROUP BY c2 HAVING count(*) > 1) AS d;

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DELETE_RATIO_EXCEEDED
SELECT CASE WHEN CAST(gone AS DOUBLE) / target_rows > CAST('0.5' AS DOUBLE) THEN gone ELSE 0 END, CAST(target_rows AS VARCHAR) FROM __strandline_cdc_counts;

-- check AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.o2 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_differences AS d WHERE d.row_file IS NOT NULL AND (d.here IS NULL OR d.opens) AND d.start_at IS NOT NULL AND NOT (d.start_at < version);

-- ===== compare =====

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN (c.snapshot_rows - c.fresh) IS DISTINCT FROM (c.target_rows - c.gone) THEN concat(CAST((c.snapshot_rows - c.fresh) AS VARCHAR), ' rows of the snapshot that the table has, but ', CAST((c.target_rows - c.gone) AS VARCHAR), ' of the table that the snapshot has; ') ELSE '' END) AS wrong
FROM (SELECT * FROM __strandline_cdc_counts) AS c) AS b;

-- ===== write =====

-- target new
SELECT CAST(NULL AS VARCHAR) AS "initial", d.c1 AS "note", d.c2 AS "id", d.c3 AS "name", d.c4 AS "seen", CAST(version AS DATE) AS "__START_AT", CAST(NULL AS DATE) AS "__END_AT", CAST(NULL AS BIGINT) AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT c2, c3, c4, CAST('new' AS VARCHAR) AS c1, here FROM __strandline_cdc_differences WHERE here AND opens) AS d UNION ALL SELECT CAST(NULL AS VARCHAR) AS "initial", d.c1 AS "note", d.c2 AS "id", d.c3 AS "name", d.c4 AS "seen", d.start_at AS "__START_AT", CAST(NULL AS DATE) AS "__END_AT", d.row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM __strandline_cdc_differences AS d WHERE d.here AND NOT d.opens UNION ALL SELECT CAST(NULL AS VARCHAR) AS "initial", d.c1 AS "note", d.c2 AS "id", d.c3 AS "name", d.c4 AS "seen", d.start_at AS "__START_AT", CAST(version AS DATE) AS "__END_AT", CASE WHEN d.start_at IS NOT NULL THEN d.row_id END, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT o2 AS c2, o3 AS c3, o4 AS c4, c1, start_at, row_id FROM __strandline_cdc_differences WHERE row_file IS NOT NULL AND (here IS NULL OR opens)) AS d;

-- target dead
SELECT row_file AS __strandline_file, row_pos AS __strandline_row FROM __strandline_cdc_differences WHERE row_file IS NOT NULL;

-- state new
;

-- state dead
;

-- metrics
SELECT (SELECT count(*) + count(*) FILTER (WHERE here AND opens AND row_file IS NOT NULL) FROM __strandline_cdc_differences) AS num_upserted_rows, CAST(0 AS BIGINT) AS num_deleted_rows, snapshot_rows AS num_input_rows, CAST(0 AS BIGINT) AS num_late_rows, CAST(0 AS BIGINT) AS num_sequence_conflicts, NULL AS conflict_example, (SELECT count(row_file) FROM __strandline_cdc_differences) AS num_dead_rows FROM __strandline_cdc_counts;
