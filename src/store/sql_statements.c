/* SPDX-License-Identifier: MIT
 * sql_statements.c - every statement of the store, once for both databases: SQLite takes them as they stand,
 * PostgreSQL after what postgres.c replaces. */
#include "store/sql.h"

/* Newest first; `more` is one more condition. */
#define LIST_RUNS(more) \
    "SELECT id, kind, created, subject, sha256, runtime, host, hostname, git_commit, git_branch," \
    " git_dirty, created_ms, cases, bytes," \
    " (SELECT group_concat(name, ',') FROM (SELECT 'baseline:' || name AS name FROM baseline" \
    "   WHERE baseline.run = run.seq UNION ALL SELECT name FROM tag WHERE tag.run = run.seq) AS mark)" \
    " FROM run WHERE (?1 IS NULL OR subject = ?1) AND (?2 IS NULL OR host = ?2 OR hostname = ?2)" \
    " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM tag WHERE tag.run = run.seq AND tag.name = ?3)" \
    "  OR EXISTS (SELECT 1 FROM baseline WHERE baseline.run = run.seq" \
    "   AND (baseline.name = ?3 OR 'baseline:' || baseline.name = ?3)))" \
    " AND (?4 IS NULL OR substr(id, 1, length(?4)) = ?4) AND created_ms >= ?5" \
    " AND (?7 IS NULL OR (created_ms, seq) < (SELECT created_ms, seq FROM run WHERE id = ?7))" \
    " AND (?8 IS NULL OR substr(git_commit, 1, length(?8)) = ?8)" more \
    " ORDER BY created_ms DESC, seq DESC LIMIT ?6"

/* `of` is one more condition on the values of a series: those of a project are as if there were no others. */
#define LIST_SERIES(of) \
    "SELECT id, subject, case_name, metric, anchor, host," \
    " (SELECT hostname FROM run WHERE run.seq = (SELECT run FROM value WHERE series = series.id" of \
    "   ORDER BY created_ms DESC, run DESC LIMIT 1))," \
    " (SELECT count(*) FROM value WHERE series = series.id" of ")" \
    " FROM series WHERE (?1 IS NULL OR subject = ?1) AND (?2 IS NULL OR case_name = ?2)" \
    " AND (?3 IS NULL OR metric = ?3) AND (?4 IS NULL OR host = ?4) AND (?5 IS NULL OR anchor = ?5)" \
    " AND id > ?6 AND EXISTS (SELECT 1 FROM value WHERE series = series.id" of ") ORDER BY id LIMIT ?7"
#define LIST_POINTS(of) \
    "SELECT run.id, value.created_ms, value, lo, hi, samples, git_commit, git_branch, git_dirty" \
    " FROM value JOIN run ON run.seq = value.run WHERE series = ?1" of \
    " ORDER BY value.created_ms DESC, value.run DESC LIMIT ?2"
#define OF_PROJECT(at) \
    " AND EXISTS (SELECT 1 FROM project WHERE project.run = value.run AND project.name = " at ")"

#define LIST_AUDIT(order) \
    "SELECT seq, at_ms, who, what, about, project, source, request, status, hash FROM audit" \
    " WHERE (?1 IS NULL OR project = ?1) AND (?2 = 0 OR seq < ?2) " order " LIMIT ?3"

#define LIST_UPLOADS(where) \
    "SELECT upload.id, run.id, upload.name, upload.hash, upload.bytes, upload.pieces, upload.created_ms" \
    " FROM upload JOIN run ON run.seq = upload.run LEFT JOIN project ON project.run = run.seq" \
    " WHERE " where " AND (?2 IS NULL OR project.name = ?2) ORDER BY upload.name, upload.id"

#define BLOCKS(where) "SELECT host, at_ms, seq, due_ms, cut FROM block WHERE " where

const char *const db_statements[DB_N] = {
    [DB_BEGIN] = "BEGIN IMMEDIATE",
    [DB_COMMIT] = "COMMIT",
    [DB_ROLLBACK] = "ROLLBACK",
    [DB_ADD_RUN] = "INSERT INTO run(id, created_ms, created, kind, subject, sha256, runtime, host, hostname,"
                   " git_commit, git_branch, git_dirty, cases, bytes)"
                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
                   " ON CONFLICT(id) DO NOTHING",
    [DB_ADD_DOCUMENT] = "INSERT INTO document(run, body) VALUES(?1, ?2)",
    [DB_FIND_SERIES] = "SELECT id FROM series WHERE subject = ?1 AND metric = ?2 AND anchor = ?3"
                       " AND case_name = ?4 AND host = ?5",
    [DB_ADD_SERIES] = "INSERT INTO series(subject, metric, anchor, case_name, host) VALUES(?1, ?2, ?3, ?4, ?5)"
                      " ON CONFLICT DO NOTHING",
    [DB_ADD_VALUE] = "INSERT INTO value(series, created_ms, run, value, lo, hi, samples)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                     " ON CONFLICT(series, created_ms, run) DO UPDATE SET value = excluded.value, lo = excluded.lo,"
                     " hi = excluded.hi, samples = excluded.samples",
    [DB_FIND_RUN] = "SELECT seq, subject, host, created_ms FROM run WHERE id = ?1",
    [DB_ADD_TAG] = "INSERT INTO tag(run, name) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
    [DB_DROP_TAG] = "DELETE FROM tag WHERE run = ?1 AND name = ?2",
    [DB_PIN] = "INSERT INTO baseline(name, subject, run) VALUES(?2,"
               " coalesce((SELECT project.name || '\x1f' FROM project WHERE project.run = ?1), '') || ?3, ?1)"
               " ON CONFLICT(name, subject) DO UPDATE SET run = excluded.run",
    [DB_UNPIN] = "DELETE FROM baseline WHERE run = ?1 AND name = ?2",
    [DB_PINNED] = "SELECT run.id FROM baseline JOIN run ON run.seq = baseline.run WHERE baseline.name = ?1"
                  " AND (?2 IS NULL OR run.subject = ?2) AND (?3 IS NULL OR EXISTS (SELECT 1 FROM project"
                  " WHERE project.run = run.seq AND project.name = ?3))"
                  " ORDER BY run.created_ms DESC, run.seq DESC LIMIT 1",
    [DB_PINS] = "SELECT count(*), CAST(coalesce(sum(run), 0) AS BIGINT) FROM baseline",
    [DB_DROP_VALUES] = "DELETE FROM value WHERE series IN (SELECT id FROM series WHERE subject = ?2 AND host = ?3)"
                       " AND created_ms = ?4 AND run = ?1",
    [DB_DROP_DOCUMENT] = "DELETE FROM document WHERE run = ?1",
    [DB_DROP_TAGS] = "DELETE FROM tag WHERE run = ?1",
    [DB_DROP_PINS] = "DELETE FROM baseline WHERE run = ?1",
    [DB_DROP_RUN] = "DELETE FROM run WHERE seq = ?1",
    [DB_DROP_EMPTY] = "DELETE FROM series WHERE subject = ?1"
                      " AND NOT EXISTS (SELECT 1 FROM value WHERE value.series = series.id)",
    [DB_LIST] = LIST_RUNS(""),
    [DB_LIST_PROJECT] = LIST_RUNS(" AND EXISTS (SELECT 1 FROM project"
                                  " WHERE project.run = run.seq AND project.name = ?9)"),
    [DB_COUNT_RUNS] = "SELECT count(*) FROM run",
    [DB_COUNT_BARE] = "SELECT count(*) FROM run WHERE seq NOT IN (SELECT run FROM document)",
    [DB_COUNT_ORPHANS] = "SELECT count(*) FROM value WHERE run NOT IN (SELECT seq FROM run)",
    [DB_OLD_RUNS] = "SELECT id FROM run WHERE created_ms < ?1"
                    " AND NOT EXISTS (SELECT 1 FROM tag WHERE tag.run = run.seq)"
                    " AND NOT EXISTS (SELECT 1 FROM baseline WHERE baseline.run = run.seq)"
                    " ORDER BY created_ms, seq LIMIT ?2",
    [DB_BODY] = "SELECT body FROM run JOIN document ON document.run = run.seq WHERE id = ?1",
    [DB_NAMES] = LIST_SERIES(""),
    [DB_NAMES_PROJECT] = LIST_SERIES(OF_PROJECT("?8")),
    [DB_SERIES] = LIST_POINTS(""),
    [DB_SERIES_PROJECT] = LIST_POINTS(OF_PROJECT("?3")),
    [DB_ADD_PROJECT] = "INSERT INTO project(run, name) VALUES(?1, ?2)",
    [DB_DROP_PROJECT] = "DELETE FROM project WHERE run = ?1",
    [DB_IN_PROJECT] = "SELECT 1 FROM run JOIN project ON project.run = run.seq WHERE run.id = ?1 AND project.name = ?2",
    [DB_ADD_TOKEN] = "INSERT INTO token(id, name, project, scopes, hash, created_ms, expires_ms, revoked_ms)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)",
    [DB_REVOKE_TOKEN] = "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms = 0",
    [DB_TOKENS] = "SELECT token.id, name, project, scopes, hash, created_ms, expires_ms, revoked_ms,"
                  " coalesce(used_ms, 0) FROM token LEFT JOIN token_use ON token_use.id = token.id"
                  " ORDER BY created_ms, token.id",
    [DB_USE_TOKEN] = "INSERT INTO token_use(id, used_ms) VALUES(?1, ?2)"
                     " ON CONFLICT(id) DO UPDATE SET used_ms = excluded.used_ms",
    [DB_ADD_AUDIT] = "INSERT INTO audit(seq, at_ms, who, what, about, project, source, request, status, hash)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [DB_AUDIT_SEQ] = "SELECT seq FROM audit_last",
    [DB_AUDIT_NEXT] = "INSERT INTO audit_last(one, seq) VALUES(1, 1)"
                      " ON CONFLICT(one) DO UPDATE SET seq = audit_last.seq + 1 RETURNING seq",
    [DB_AUDITS] = LIST_AUDIT("ORDER BY seq"),
    [DB_AUDITS_NEWEST] = LIST_AUDIT("ORDER BY seq DESC"),
    [DB_VERSION] = "PRAGMA data_version",
    [DB_FIND_HOST] = "SELECT id FROM host WHERE project = ?1 AND name = ?2",
    [DB_HEAR_HOST] = "INSERT INTO host(project, name, about, first_ms, heard_ms) VALUES(?1, ?2, ?3, ?4, ?4)"
                     " ON CONFLICT(project, name) DO UPDATE SET heard_ms = excluded.heard_ms,"
                     " about = coalesce(excluded.about, host.about) RETURNING id",
    [DB_ADD_BATCH] = "INSERT INTO batch(host, id, hash, heard_ms) VALUES(?1, ?2, ?3, ?4)"
                     " ON CONFLICT(host, id) DO NOTHING",
    [DB_BATCH_HASH] = "SELECT count(*) FROM batch WHERE host = ?1 AND id = ?2 AND hash = ?3",
    [DB_COUNT_METRICS] = "SELECT count(*) FROM metric WHERE host = ?1",
    [DB_FIND_METRIC] = "SELECT id FROM metric WHERE host = ?1 AND name = ?2 AND label = ?3",
    [DB_ADD_METRIC] = "INSERT INTO metric(host, name, label, unit, counter) VALUES(?1, ?2, ?3, ?4, ?5) RETURNING id",
    [DB_ADD_CHUNK] = "INSERT INTO chunk(host, metric, from_ms, body) VALUES(?1, 0, ?2, ?3)",
    [DB_HOSTS] = "SELECT id, project, name, about, first_ms, heard_ms,"
                 " (SELECT count(*) FROM metric WHERE metric.host = host.id) FROM host"
                 " WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR name = ?2) ORDER BY name, project",
    [DB_METRICS] = "SELECT id, name, label, unit, counter FROM metric WHERE host = ?1"
                   " AND (?2 IS NULL OR name = ?2) ORDER BY name, label",
    [DB_CHUNKS_BY_TIME] = "SELECT seq, host, from_ms, body FROM chunk WHERE host = ?1 AND metric = 0"
                          " AND from_ms > ?2 AND from_ms < ?3 ORDER BY from_ms LIMIT ?4",
    [DB_CHUNKS_AFTER] = "SELECT seq, host, from_ms, body FROM chunk WHERE seq > ?1 AND metric = 0"
                        " AND (?2 = 0 OR host = ?2) ORDER BY seq LIMIT ?3",
    [DB_CHUNK_NEWEST] = "SELECT coalesce(max(seq), 0) FROM chunk",
    [DB_ADD_REQUESTS] = "INSERT INTO request_batch(project, id, digest, received_ms) VALUES(?1, ?2, ?3, ?4)"
                     " ON CONFLICT(project, id) DO NOTHING",
    [DB_FIND_REQUESTS] = "SELECT digest FROM request_batch WHERE project = ?1 AND id = ?2",
    [DB_FIND_ROUTE] = "SELECT id FROM request_route WHERE project = ?1 AND service = ?2 AND route = ?3"
                      " AND host = ?4",
    [DB_ADD_ROUTE] = "INSERT INTO request_route(project, service, route, host, first_ms, last_ms)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING",
    [DB_TOUCH_ROUTE] = "UPDATE request_route SET last_ms = ?2 WHERE id = ?1 AND last_ms < ?2",
    [DB_GET_SLOT] = "SELECT tally FROM request_slot WHERE series = ?1 AND width_ms = ?2 AND at_ms = ?3"
                    " AND seal_ms = ?4",
    [DB_PUT_SLOT] = "INSERT INTO request_slot(series, width_ms, at_ms, seal_ms, tally)"
                    " VALUES(?1, ?2, ?3, ?4, ?5)"
                    " ON CONFLICT(series, width_ms, at_ms, seal_ms) DO UPDATE SET tally = excluded.tally",
    [DB_DROP_SLOTS] = "DELETE FROM request_slot WHERE series = ?1 AND width_ms = ?2 AND at_ms < ?3",
    [DB_DROP_REQUESTS] = "DELETE FROM request_batch WHERE received_ms < ?1",
    [DB_SLOTS] = "SELECT route, host, at_ms, seal_ms, tally FROM request_route JOIN request_slot"
                 " ON request_slot.series = request_route.id WHERE project = ?1 AND service = ?2"
                 " AND ((?3 IS NULL AND route <> '') OR route = ?3)"
                 " AND ((?8 IS NULL AND host <> '') OR host = ?8)"
                 " AND width_ms = ?4 AND at_ms >= ?5 AND at_ms < ?6 AND seal_ms <= ?7"
                 " ORDER BY route, host, at_ms, seal_ms",
    [DB_SERVICES] = "SELECT project, service, count(DISTINCT nullif(route, '')), count(DISTINCT nullif(host, '')),"
                    " min(first_ms), max(last_ms) FROM request_route WHERE ?1 IS NULL OR project = ?1"
                    " GROUP BY project, service ORDER BY service, project",
    [DB_ADD_JOB] = "INSERT INTO job(id, project, token, owner, operation, state, request, record, created_ms,"
                   " started_ms, ended_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [DB_CHANGE_JOB] = "UPDATE job SET state = ?2, record = ?3, started_ms = ?4, ended_ms = ?5 WHERE id = ?1",
    [DB_JOBS] = "SELECT id, project, token, owner, operation, state, request, record, created_ms, started_ms,"
                " ended_ms FROM job WHERE (?1 IS NULL OR id = ?1) AND (?2 IS NULL OR project = ?2)"
                " ORDER BY id DESC LIMIT ?3",
    [DB_LOSE_JOBS] = "UPDATE job SET state = 'lost', ended_ms = ?2"
                     " WHERE owner = ?1 AND state IN ('queued', 'running')",
    [DB_ALERT_PUT] = "INSERT INTO alert(rule, project, about, firing, told, since_ms, value, run)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(rule, project, about) DO UPDATE SET"
                     " firing = excluded.firing, told = excluded.told, since_ms = excluded.since_ms,"
                     " value = excluded.value, run = excluded.run",
    [DB_ALERTS] = "SELECT rule, project, about, firing, told, since_ms, value, run FROM alert"
                  " ORDER BY rule, project, about",
    [DB_ADD_SILENCE] = "INSERT INTO silence(id, project, rule, about, why, who, created_ms, until_ms)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [DB_END_SILENCE] = "UPDATE silence SET until_ms = ?3 WHERE id = ?1 AND (?2 IS NULL OR project = ?2)"
                       " AND until_ms > ?3",
    [DB_SILENCES] = "SELECT id, project, rule, about, why, who, created_ms, until_ms FROM silence"
                    " WHERE until_ms > ?1 ORDER BY id",
    [DB_RUNS_AFTER] = "SELECT max(run.seq), run.subject, project.name FROM run LEFT JOIN project"
                      " ON project.run = run.seq WHERE run.seq > ?1 GROUP BY run.subject, project.name ORDER BY 1",
    [DB_SUM_PIECES] = "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM piece WHERE project = ?1",
    [DB_TOUCH_PIECE] = "UPDATE piece SET heard_ms = ?3 WHERE project = ?1 AND hash = ?2",
    [DB_ADD_PIECE] = "INSERT INTO piece(project, hash, bytes, heard_ms, body) VALUES(?1, ?2, ?3, ?4, ?5)",
    [DB_FIND_PIECE] = "SELECT id, bytes FROM piece WHERE project = ?1 AND hash = ?2",
    [DB_UPLOAD_OWNER] = "SELECT run.seq, project.name, (SELECT count(*) FROM upload WHERE upload.run = run.seq)"
                        " FROM run LEFT JOIN project ON project.run = run.seq WHERE run.id = ?1",
    [DB_UPLOAD_NAMED] = "SELECT hash FROM upload WHERE run = ?1 AND name = ?2",
    [DB_ADD_UPLOAD] = "INSERT INTO upload(run, name, hash, bytes, pieces, created_ms)"
                      " VALUES(?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
    [DB_LINK_PIECE] = "INSERT INTO upload_piece(upload, number, piece)"
                      " SELECT ?1, ?2, id FROM piece WHERE project = ?3 AND hash = ?4",
    [DB_UPLOADS_OF_RUN] = LIST_UPLOADS("run.id = ?1"),
    [DB_UPLOADS_BY_HASH] = LIST_UPLOADS("upload.hash = ?1"),
    [DB_PIECE] = "SELECT hash, body FROM upload_piece JOIN piece ON piece.id = upload_piece.piece"
                 " WHERE upload = ?1 AND number = ?2",
    [DB_SWEEP_PIECES] = "DELETE FROM piece WHERE id IN (SELECT id FROM piece WHERE heard_ms < ?1"
                        " AND NOT EXISTS (SELECT 1 FROM upload_piece WHERE upload_piece.piece = piece.id)"
                        " ORDER BY heard_ms LIMIT ?2)",
    [DB_NEXT_PIECE] = "SELECT id, hash, body FROM piece WHERE id > ?1 ORDER BY id LIMIT 1",
    [DB_COUNT_TORN] = "SELECT count(*) FROM upload WHERE run NOT IN (SELECT seq FROM run)"
                      " OR bytes <> (SELECT coalesce(sum(piece.bytes), 0) FROM upload_piece"
                      "  JOIN piece ON piece.id = upload_piece.piece WHERE upload_piece.upload = upload.id)",
    [DB_DROP_LINKS] = "DELETE FROM upload_piece WHERE upload IN (SELECT id FROM upload WHERE run = ?1)",
    [DB_DROP_UPLOADS] = "DELETE FROM upload WHERE run = ?1",
    [DB_TOUCH_BLOCK] = "INSERT INTO block(host, at_ms, seq, due_ms, cut) VALUES(?1, ?2, 0, ?3, 0)"
                       " ON CONFLICT(host, at_ms) DO UPDATE SET due_ms = excluded.due_ms WHERE block.due_ms = 0",
    [DB_BLOCKS] = BLOCKS("host = ?1 AND at_ms >= ?2 AND at_ms < ?3 ORDER BY at_ms"),
    [DB_BLOCK_DUE] = BLOCKS("due_ms > 0 AND due_ms <= ?1 ORDER BY due_ms, at_ms LIMIT 1"),
    [DB_BLOCK_AGAIN] = "SELECT count(*) FROM block WHERE host = ?1 AND at_ms = ?2 AND seq = ?3 AND due_ms = ?4"
                       " AND cut = ?5",
    /* a chunk that an older tare wrote may begin up to an hour before */
    [DB_BLOCK_DONE] = "UPDATE block SET seq = ?3, due_ms = CASE WHEN EXISTS (SELECT 1 FROM chunk WHERE"
                      " chunk.host = ?1 AND metric = 0 AND from_ms >= ?2 - 3600000 AND from_ms < ?4 AND chunk.seq > ?3)"
                      " THEN due_ms ELSE 0 END WHERE host = ?1 AND at_ms = ?2",
    [DB_PUT_OFF_BLOCK] = "UPDATE block SET due_ms = ?3 + ?4 WHERE host = ?1 AND at_ms = ?2",
    [DB_BLOCK_WHOLE] = BLOCKS("cut < 2 AND due_ms = 0 AND at_ms <= ?1 ORDER BY at_ms LIMIT 1"),
    [DB_BLOCK_BARE] = BLOCKS("cut = 2 AND due_ms = 0 AND at_ms <= ?1 ORDER BY at_ms LIMIT 1"),
    [DB_BLOCK_LAST] = BLOCKS("cut = 3 AND due_ms = 0 AND at_ms <= ?1 ORDER BY at_ms LIMIT 1"),
    [DB_CUT_BLOCK] = "UPDATE block SET cut = ?3 + ?4 WHERE host = ?1 AND at_ms = ?2",
    [DB_DROP_BLOCKS] = "DELETE FROM block WHERE host = ?1 AND at_ms >= ?2 AND at_ms < ?3 + ?4 AND cut = 3"
                       " AND due_ms = 0",
    /* the newest stays, empty: SQLite would give its number to the next one */
    [DB_EMPTY_CHUNKS] = "UPDATE chunk SET body = '' WHERE host = ?1 AND metric = 0 AND from_ms >= ?2 AND from_ms < ?3"
                        " AND seq <= ?4",
    [DB_DROP_SUMMED] = "DELETE FROM chunk WHERE host = ?1 AND metric = 0 AND from_ms >= ?2 AND from_ms < ?3"
                       " AND seq <= ?4 AND seq < (SELECT max(seq) FROM chunk)",
    [DB_DROP_CHUNKS] = "DELETE FROM chunk WHERE seq IN (SELECT seq FROM chunk WHERE host = ?1 AND metric = 0"
                       " AND from_ms >= ?2 AND from_ms < ?3 AND seq < (SELECT max(seq) FROM chunk) LIMIT ?4)",
    [DB_DROP_BATCHES] = "DELETE FROM batch WHERE (host, id) IN (SELECT host, id FROM batch WHERE heard_ms < ?1"
                        " ORDER BY heard_ms LIMIT ?2)",
    [DB_PUT_ROLLUP] = "INSERT INTO rollup(metric, width_ms, at_ms, body) VALUES(?1, ?2, ?3, ?4)"
                      " ON CONFLICT(metric, width_ms, at_ms) DO UPDATE SET body = excluded.body",
    [DB_ROLLUPS] = "SELECT at_ms, body FROM rollup WHERE metric = ?1 AND width_ms = ?2 AND at_ms >= ?3 AND at_ms < ?4"
                   " ORDER BY at_ms",
    [DB_TAKE_FORWARD] = "INSERT INTO forward(name, seq, owner, until_ms)"
                        " VALUES(?1, (SELECT coalesce(max(seq), 0) FROM chunk), ?2, ?4) ON CONFLICT(name) DO UPDATE SET"
                        " owner = excluded.owner, until_ms = excluded.until_ms"
                        " WHERE forward.owner = excluded.owner OR forward.until_ms < ?3 RETURNING seq",
    [DB_NOTE_FORWARD] = "UPDATE forward SET seq = ?3 WHERE name = ?1 AND owner = ?2",
    [DB_DROP_ROLLUPS] = "DELETE FROM rollup WHERE width_ms = ?3 + ?4 AND at_ms = ?2"
                        " AND metric IN (SELECT id FROM metric WHERE host = ?1)",
};
