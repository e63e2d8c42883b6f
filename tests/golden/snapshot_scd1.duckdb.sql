-- ===== read =====

-- make __strandline_cdc_snapshot
SELECT CAST(__strandline_source."id" AS BIGINT) AS c2, CAST(__strandline_source."name" AS VARCHAR) AS c3, true AS here FROM source AS __strandline_source;

-- ===== compare =====

-- make __strandline_cdc_differences
SELECT s.c2 AS c2, s.c3 AS c3, t.c1 AS c1, s.here, t.row_file, t.row_pos, t.row_id
FROM __strandline_cdc_snapshot AS s FULL OUTER JOIN (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) AS t ON s.c2 = t.c2
WHERE s.here IS NULL OR t.row_file IS NULL OR NOT ((s.c3 IS NOT DISTINCT FROM t.c3));

-- make __strandline_cdc_counts
SELECT (SELECT count(*) FROM __strandline_cdc_snapshot) AS snapshot_rows, (SELECT count(*) FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target)) AS target_rows,
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
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c2 AS VARCHAR), 'NULL'))) FROM (SELECT c2 FROM (SELECT CAST(__strandline_target."id" AS BIGINT) AS c2, CAST(__strandline_target."name" AS VARCHAR) AS c3, CAST(__strandline_target."note" AS VARCHAR) AS c1, __strandline_target.__strandline_file AS row_file, __strandline_target.__strandline_row AS row_pos, __strandline_target.__strandline_row_id AS row_id FROM target AS __strandline_target) GROUP BY c2 HAVING count(*) > 1) AS d;

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DELETE_RATIO_EXCEEDED
SELECT CASE WHEN CAST(gone AS DOUBLE) / target_rows > CAST('0.5' AS DOUBLE) THEN gone ELSE 0 END, CAST(target_rows AS VARCHAR) FROM __strandline_cdc_counts;

-- ===== compare =====

-- check INTERNAL_INVARIANT
SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (
SELECT concat(CASE WHEN (c.snapshot_rows - c.fresh) IS DISTINCT FROM (c.target_rows - c.gone) THEN concat(CAST((c.snapshot_rows - c.fresh) AS VARCHAR), ' rows of the snapshot that the table has, but ', CAST((c.target_rows - c.gone) AS VARCHAR), ' of the table that the snapshot has; ') ELSE '' END) AS wrong
FROM (SELECT * FROM __strandline_cdc_counts) AS c) AS b;

-- ===== write =====

-- target new
SELECT CAST(NULL AS VARCHAR) AS "initial", CASE WHEN d.row_file IS NULL THEN CAST('new' AS VARCHAR) ELSE d.c1 END AS "note", d.c2 AS "id", d.c3 AS "name", d.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM __strandline_cdc_differences AS d WHERE d.here;

-- target dead
SELECT row_file AS __strandline_file, row_pos AS __strandline_row FROM __strandline_cdc_differences WHERE row_file IS NOT NULL;

-- state new
;

-- state dead
;

-- metrics
SELECT (SELECT count(*) FROM __strandline_cdc_differences WHERE here) AS num_upserted_rows, (SELECT count(*) FROM __strandline_cdc_differences WHERE here IS NULL) AS num_deleted_rows, snapshot_rows AS num_input_rows, CAST(0 AS BIGINT) AS num_late_rows, CAST(0 AS BIGINT) AS num_sequence_conflicts, NULL AS conflict_example, (SELECT count(row_file) FROM __strandline_cdc_differences) AS num_dead_rows FROM __strandline_cdc_counts;
