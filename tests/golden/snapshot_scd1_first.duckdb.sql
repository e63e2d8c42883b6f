-- ===== read =====

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.FIRST_SNAPSHOT_EMPTY
SELECT CASE WHEN count(*) = 0 THEN 1 ELSE 0 END, NULL FROM (SELECT here FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) LIMIT 1);

-- ===== compare =====

-- make __strandline_cdc_counts
SELECT count(*) AS snapshot_rows, CAST(0 AS BIGINT) AS target_rows, count(*) AS fresh, CAST(0 AS BIGINT) AS gone FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source);

-- make __strandline_cdc_repeated
SELECT c0 FROM (SELECT s.c0 AS c0, s.c1 AS c1, s.here AS here, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) AS s) WHERE row_file IS NULL AND NOT (c0 IS NULL) GROUP BY c0 HAVING count(*) > 1;

-- ===== validate =====

-- check AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c0 AS VARCHAR), 'NULL'))) FROM (SELECT s.c0 AS c0, s.c1 AS c1, s.here AS here, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) AS s) AS d WHERE d.here AND (d.c0 IS NULL);

-- check APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION
SELECT count(*), min(concat_ws(', ', 'id = ' || coalesce(CAST(d.c0 AS VARCHAR), 'NULL'))) FROM __strandline_cdc_repeated AS d;

-- ===== write =====

-- target new
SELECT d.c0 AS "id", d.c1 AS "name", d.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS __strandline_row_commit_version FROM (SELECT s.c0 AS c0, s.c1 AS c1, s.here AS here, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) AS s) AS d WHERE d.here;

-- target dead
SELECT row_file AS __strandline_file, row_pos AS __strandline_row FROM (SELECT s.c0 AS c0, s.c1 AS c1, s.here AS here, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) AS s) WHERE row_file IS NOT NULL;

-- state new
;

-- state dead
;

-- metrics
SELECT (SELECT count(*) FROM (SELECT s.c0 AS c0, s.c1 AS c1, s.here AS here, CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) AS row_id FROM (SELECT CAST(__strandline_source."id" AS BIGINT) AS c0, CAST(__strandline_source."name" AS VARCHAR) AS c1, true AS here FROM source AS __strandline_source) AS s) WHERE here) AS num_upserted_rows, CAST(0 AS BIGINT) AS num_deleted_rows, snapshot_rows AS num_input_rows, CAST(0 AS BIGINT) AS num_late_rows, CAST(0 AS BIGINT) AS num_sequence_conflicts, NULL AS conflict_example, CAST(0 AS BIGINT) AS num_dead_rows FROM __strandline_cdc_counts;
