/* SPDX-License-Identifier: MIT
 * schema.c - the tables of a history, on both backends: row i brings it from version i to i + 1, in one transaction. */
#include "store/sql.h"

/* Values are ordered by series and time, so that the last hundred points of one are neighbours. */
static const char version_1[] =
    "CREATE TABLE run(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_ms INTEGER NOT NULL,"
    " created TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, sha256 TEXT, runtime TEXT,"
    " host TEXT NOT NULL, hostname TEXT, git_commit TEXT, git_branch TEXT, git_dirty INTEGER,"
    " cases INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "CREATE INDEX run_by_time ON run(created_ms, seq);"
    "CREATE INDEX run_by_subject ON run(subject, created_ms, seq);"
    "CREATE TABLE document(run INTEGER PRIMARY KEY REFERENCES run(seq), body BLOB NOT NULL);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, subject TEXT NOT NULL, case_name TEXT NOT NULL,"
    " metric TEXT NOT NULL, anchor TEXT NOT NULL, host TEXT NOT NULL,"
    " UNIQUE(subject, metric, anchor, case_name, host));"
    "CREATE TABLE value(series INTEGER NOT NULL REFERENCES series(id), created_ms INTEGER NOT NULL,"
    " run INTEGER NOT NULL REFERENCES run(seq), value REAL NOT NULL, lo REAL, hi REAL, samples INTEGER,"
    " PRIMARY KEY(series, created_ms, run)) WITHOUT ROWID;"
    "CREATE TABLE tag(run INTEGER NOT NULL REFERENCES run(seq), name TEXT NOT NULL,"
    " PRIMARY KEY(run, name)) WITHOUT ROWID;"
    "CREATE TABLE baseline(name TEXT NOT NULL, subject TEXT NOT NULL, run INTEGER NOT NULL REFERENCES run(seq),"
    " PRIMARY KEY(name, subject)) WITHOUT ROWID;"
    "CREATE INDEX baseline_by_run ON baseline(run);";

/* Whose runs they are, and who may ask: what a server keeps beside them. */
static const char version_2[] =
    "CREATE TABLE project(run INTEGER PRIMARY KEY REFERENCES run(seq), name TEXT NOT NULL);"
    "CREATE INDEX project_by_name ON project(name, run);"
    "CREATE TABLE token(id TEXT PRIMARY KEY, name TEXT, project TEXT, scopes TEXT NOT NULL, hash BLOB NOT NULL,"
    " created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL) WITHOUT ROWID;";

/* What hosts send while they work. A batch is one chunk: rows of single readings would touch a page of each series at
 * every commit. `metric` 0: readings of many series; a number: of that one alone, which is what gathering the batches
 * of a day into one chunk per series will write. */
static const char version_3[] =
    "CREATE TABLE host(id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, about TEXT,"
    " first_ms INTEGER NOT NULL, heard_ms INTEGER NOT NULL, UNIQUE(project, name));"
    "CREATE TABLE metric(id INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES host(id), name TEXT NOT NULL,"
    " label TEXT NOT NULL, unit TEXT, counter INTEGER NOT NULL, UNIQUE(host, name, label));"
    "CREATE TABLE batch(host INTEGER NOT NULL REFERENCES host(id), id TEXT NOT NULL, hash BLOB NOT NULL,"
    " heard_ms INTEGER NOT NULL, PRIMARY KEY(host, id)) WITHOUT ROWID;"
    "CREATE TABLE chunk(seq INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES host(id),"
    " metric INTEGER NOT NULL, from_ms INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE INDEX chunk_by_time ON chunk(host, metric, from_ms);"
    /* who changed what: entries are added, never changed; when a token was used last */
    "CREATE TABLE audit(seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, who TEXT, what TEXT NOT NULL, about TEXT,"
    " project TEXT, source TEXT, request TEXT, status INTEGER NOT NULL, hash BLOB NOT NULL);"
    "CREATE TABLE audit_last(one INTEGER PRIMARY KEY, seq INTEGER NOT NULL);"
    "CREATE TABLE token_use(id TEXT PRIMARY KEY, used_ms INTEGER NOT NULL) WITHOUT ROWID;"
    /* What servers were told of requests: tallies by series and time, and which batches they came from. */
    "CREATE TABLE request_batch(project TEXT NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL,"
    " received_ms INTEGER NOT NULL, PRIMARY KEY(project, id)) WITHOUT ROWID;"
    "CREATE INDEX request_batch_by_time ON request_batch(received_ms);"
    "CREATE TABLE request_route(id INTEGER PRIMARY KEY, project TEXT NOT NULL, service TEXT NOT NULL,"
    " route TEXT NOT NULL, host TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,"
    " UNIQUE(project, service, route, host));"
    "CREATE TABLE request_slot(series INTEGER NOT NULL REFERENCES request_route(id), width_ms INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, seal_ms INTEGER NOT NULL, tally BLOB NOT NULL,"
    " PRIMARY KEY(series, width_ms, at_ms, seal_ms)) WITHOUT ROWID;"
    /* what it was asked to run */
    "CREATE TABLE job(id TEXT PRIMARY KEY, project TEXT, token TEXT NOT NULL, owner TEXT NOT NULL,"
    " operation TEXT NOT NULL, state TEXT NOT NULL, request TEXT NOT NULL, record TEXT,"
    " created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX job_by_state ON job(owner, state);"
    /* how alert rules stand, and who is not to be told */
    "CREATE TABLE alert(rule TEXT NOT NULL, project TEXT NOT NULL, about TEXT NOT NULL, firing INTEGER NOT NULL,"
    " told INTEGER NOT NULL, since_ms INTEGER NOT NULL, value REAL NOT NULL, run TEXT,"
    " PRIMARY KEY(rule, project, about)) WITHOUT ROWID;"
    "CREATE TABLE silence(id TEXT PRIMARY KEY, project TEXT NOT NULL, rule TEXT, about TEXT, why TEXT,"
    " who TEXT NOT NULL, created_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL) WITHOUT ROWID;";

/* Files of runs, in pieces (upload.h). A name of a baseline is one run of a subject in each project: the project stands
 * before the subject, whose only use is that there is one. */
static const char version_4[] =
    "CREATE TABLE piece(id INTEGER PRIMARY KEY, project TEXT NOT NULL, hash TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " heard_ms INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE(project, hash));"
    "CREATE INDEX piece_by_size ON piece(project, bytes);"
    "CREATE INDEX piece_by_time ON piece(heard_ms);"
    "CREATE TABLE upload(id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(seq), name TEXT NOT NULL,"
    " hash TEXT NOT NULL, bytes INTEGER NOT NULL, pieces INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " UNIQUE(run, name));"
    "CREATE INDEX upload_by_hash ON upload(hash);"
    "CREATE TABLE upload_piece(upload INTEGER NOT NULL REFERENCES upload(id), number INTEGER NOT NULL,"
    " piece INTEGER NOT NULL REFERENCES piece(id), PRIMARY KEY(upload, number)) WITHOUT ROWID;"
    "CREATE INDEX upload_piece_by_piece ON upload_piece(piece);"
    "UPDATE baseline SET subject = (SELECT project.name || '\x1f' || baseline.subject FROM project"
    " WHERE project.run = baseline.run) WHERE EXISTS (SELECT 1 FROM project WHERE project.run = baseline.run);";

/* Sums over minutes and hours (rollup.h). A chunk of before may reach into the next hour: that is due, too. */
static const char version_5[] =
    "CREATE TABLE block(host INTEGER NOT NULL REFERENCES host(id), at_ms INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " due_ms INTEGER NOT NULL, cut INTEGER NOT NULL, PRIMARY KEY(host, at_ms)) WITHOUT ROWID;"
    "CREATE INDEX block_by_due ON block(due_ms, at_ms) WHERE due_ms > 0;"
    "CREATE INDEX block_whole ON block(at_ms) WHERE cut < 2 AND due_ms = 0;"
    "CREATE INDEX block_by_cut ON block(cut, at_ms);"
    "CREATE TABLE rollup(metric INTEGER NOT NULL REFERENCES metric(id), width_ms INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY(metric, width_ms, at_ms)) WITHOUT ROWID;"
    "CREATE INDEX batch_by_time ON batch(heard_ms);"
    "INSERT INTO block(host, at_ms, seq, due_ms, cut) SELECT host, from_ms / 3600000 * 3600000, 0, 1, 0 FROM chunk"
    " UNION SELECT host, from_ms / 3600000 * 3600000 + 3600000, 0, 1, 0 FROM chunk;";

/* How far samples were handed on (forward.h). */
static const char version_6[] =
    "CREATE TABLE forward(name TEXT PRIMARY KEY, seq INTEGER NOT NULL, owner TEXT NOT NULL,"
    " until_ms INTEGER NOT NULL) WITHOUT ROWID;";

const char *const db_migrations[] = {version_1, version_2, version_3, version_4, version_5, version_6};
const int db_schema_version = sizeof db_migrations / sizeof *db_migrations;
