/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * database - the table of files on disk: an LMDB of handle -> (parent's handle,
 * name), with one entry for each hard link that is known.
 */
#include "vfs/posix/table/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAP_SIZE	(sizeof(size_t) > 4 ? (size_t)1 << 34 : (size_t)1 << 29)

/* No handle begins like this. */
#define done_key	((MDB_val){ 4, (void *)(uintptr_t)"done" })

static int mdb_errno(int rc)
{
	if (rc == 0)
		return 0;
	return rc > 0 ? -rc : rc == MDB_MAP_FULL ? -ENOSPC : -EIO;
}

/* An entry's data: length of the parent's handle, that, the name. */
struct entry {
	uint8_t	bytes[1 + VFS_HANDLE_MAX + VFS_NAME_MAX + 1];
};

static MDB_val entry_make(struct entry *e, const struct posix_place *place)
{
	size_t plen = place->parent.len, nlen = strlen(place->name.s);

	e->bytes[0] = plen;
	memcpy(e->bytes + 1, place->parent.data, plen);
	memcpy(e->bytes + 1 + plen, place->name.s, nlen);
	return (MDB_val){ 1 + plen + nlen, e->bytes };
}

static bool entry_read(const MDB_val *val, struct posix_place *place)
{
	const uint8_t *p = val->mv_data;

	if (val->mv_size < 2 || p[0] > VFS_HANDLE_MAX ||
	    val->mv_size < 1u + p[0] + 1u ||
	    val->mv_size > 1u + p[0] + VFS_NAME_MAX)
		return false;
	place->parent.len = p[0];
	memcpy(place->parent.data, p + 1, p[0]);
	posix_name_set(&place->name, (struct vfs_name){
		(const char *)p + 1 + p[0], val->mv_size - 1 - p[0] });
	return true;
}

static MDB_val key_of(const struct vfs_handle *h)
{
	return (MDB_val){ posix_handle_key(h), (void *)(uintptr_t)h->data };
}

int table_db_find(struct table_db *db, const struct vfs_handle *h,
		  struct table_places *ps)
{
	MDB_val key = key_of(h), val;
	MDB_cursor *cursor;
	MDB_txn *txn;
	int rc;

	ps->n = 0;
	rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);
	if (rc)
		return mdb_errno(rc);
	rc = mdb_cursor_open(txn, db->dbi, &cursor);
	if (rc == 0) {
		rc = mdb_cursor_get(cursor, &key, &val, MDB_SET);
		while (rc == 0 && ps->n < (int)ARRAY_SIZE(ps->at)) {
			if (entry_read(&val, &ps->at[ps->n]))
				ps->n++;
			rc = mdb_cursor_get(cursor, &key, &val, MDB_NEXT_DUP);
		}
		mdb_cursor_close(cursor);
	}
	mdb_txn_abort(txn);
	return rc == MDB_NOTFOUND ? 0 : mdb_errno(rc);
}

int table_db_done(struct table_db *db, uint64_t *done)
{
	MDB_val key = done_key, val;
	MDB_txn *txn;
	int rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);

	*done = 0;
	if (rc)
		return mdb_errno(rc);
	rc = mdb_get(txn, db->dbi, &key, &val);
	if (rc == 0 && val.mv_size == sizeof(*done))
		memcpy(done, val.mv_data, sizeof(*done));
	mdb_txn_abort(txn);
	return rc == MDB_NOTFOUND ? 0 : mdb_errno(rc);
}

static int write_done(struct table_db *db, MDB_txn *txn, uint64_t done)
{
	MDB_val key = done_key, val = { sizeof(done), &done };
	int rc = mdb_del(txn, db->dbi, &key, NULL);

	return rc && rc != MDB_NOTFOUND ? rc :
	       mdb_put(txn, db->dbi, &key, &val, 0);
}

int table_db_begin(struct table_db *db, uint64_t seq, MDB_txn **out)
{
	int rc = mdb_txn_begin(db->env, NULL, 0, out);

	if (rc)
		return mdb_errno(rc);
	rc = write_done(db, *out, seq);
	if (rc)
		mdb_txn_abort(*out);
	return mdb_errno(rc);
}

int table_db_write(struct table_db *db, MDB_txn *txn,
		   const struct table_op *op)
{
	MDB_val key = key_of(&op->h), val;
	struct entry e;
	int rc = 0;

	val = entry_make(&e, &op->place);
	if (op->what == TABLE_FORGET || op->what == TABLE_SET)
		rc = mdb_del(txn, db->dbi, &key, NULL);
	if (op->what == TABLE_DEL)
		rc = mdb_del(txn, db->dbi, &key, &val);
	if (rc == MDB_NOTFOUND)
		rc = 0;
	if (rc == 0 && (op->what == TABLE_ADD || op->what == TABLE_SET))
		rc = mdb_put(txn, db->dbi, &key, &val, MDB_NODUPDATA);
	return rc == MDB_KEYEXIST ? 0 : mdb_errno(rc);
}

int table_db_end(MDB_txn *txn, int err)
{
	if (err == 0)
		return mdb_errno(mdb_txn_commit(txn));
	mdb_txn_abort(txn);
	return err;
}

int table_db_open(struct table_db *db, const char *dir, const char *name,
		  unsigned flags)
{
	MDB_txn *txn;
	char *path;
	int rc;

	rc = mdb_env_create(&db->env);
	if (rc)
		return mdb_errno(rc);
	mdb_env_set_mapsize(db->env, MAP_SIZE);
	mdb_env_set_maxreaders(db->env, 1024);
	if (asprintf(&path, "%s/%s.table", dir, name) < 0)
		return -ENOMEM;
	rc = mdb_env_open(db->env, path, flags | MDB_NOSUBDIR | MDB_NOTLS |
			  MDB_NORDAHEAD, 0600);
	free(path);
	if (rc)
		return mdb_errno(rc);
	rc = mdb_txn_begin(db->env, NULL, 0, &txn);
	if (rc)
		return mdb_errno(rc);
	rc = mdb_dbi_open(txn, NULL, MDB_DUPSORT | MDB_CREATE, &db->dbi);
	if (rc) {
		mdb_txn_abort(txn);
		return mdb_errno(rc);
	}
	return mdb_errno(mdb_txn_commit(txn));
}

void table_db_close(struct table_db *db)
{
	if (db->env)
		mdb_env_close(db->env);
}
