/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of exports(5) to a snapshot.  Pure but for messages.
 *
 *	PATH [-OPTIONS] [CLIENT[(OPTIONS)]]...
 *
 * Reads as exportfs(8) does: a backslash before the end of a line is white
 * space, in a comment too; a '#' begins a comment where a word could begin.
 */
#include "vfs/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/log.h"

#define TEXT_MAX	((size_t)16 << 20)
#define WORD_MAX	4096

struct parser {
	struct export_table *table;
	struct export_set   *set;
	const char	    *name;	/* of the text, for messages */
	const char	    *p;
	const char	    *end;
	unsigned	     line;	/* 0: the text is an argument */
	char		   **err;
	/* The last word; read_word() sets them. */
	char		     word[WORD_MAX];
	size_t		     len;
	unsigned	     word_line;
	/* Of the entry that is being read. */
	struct entry	    *entry;
	struct export_opts   defaults;
	struct fsid_option   default_fsid;
};

#define END_OF_TEXT	(-1)

/* "FILE:LINE", malloced. */
static char *where(const struct parser *p)
{
	char *s;

	if (p->line == 0)
		return strdup(p->name);
	return asprintf(&s, "%s:%u", p->name, p->word_line) < 0 ? NULL : s;
}

/* Says where we are; takes @msg (which may be NULL).  Returns -EINVAL. */
static int fail_msg(struct parser *p, char *msg)
{
	char *at = where(p);

	*p->err = NULL;
	if (at && msg)
		export_fail(p->err, "%s: %s", at, msg);
	free(at);
	free(msg);
	return -EINVAL;
}

#define fail(p, ...) ({ \
		char *msg_; \
		export_fail(&msg_, __VA_ARGS__); \
		fail_msg((p), msg_); \
	})

static int next_char(struct parser *p)
{
	int c;

	if (p->p == p->end)
		return END_OF_TEXT;
	c = (unsigned char)*p->p++;
	if (c == '\n' && p->line)
		p->line++;
	if (c != '\\' || p->p == p->end || *p->p != '\n')
		return c;
	p->p++;
	if (p->line)
		p->line++;
	while (p->p < p->end && (*p->p == ' ' || *p->p == '\t'))
		p->p++;
	return ' ';
}

static int peek_char(struct parser *p)
{
	struct parser *q = p;
	const char *at = p->p;
	unsigned line = p->line;
	int c = next_char(q);

	p->p = at;
	p->line = line;
	return c;
}

static bool is_end(int c)
{
	return c == '\n' || c == END_OF_TEXT;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* To the next word of the entry.  False: there is none. */
static bool skip_blank(struct parser *p)
{
	while (is_blank(peek_char(p)))
		next_char(p);
	if (peek_char(p) == '#')
		while (!is_end(peek_char(p)))
			next_char(p);
	return !is_end(peek_char(p));
}

/* Reads three octal digits, after a backslash, as a byte. */
static int read_escape(struct parser *p)
{
	int v = 0;

	for (int i = 0; i < 3; i++) {
		int c = next_char(p);

		if (c < '0' || c > '7')
			return fail(p, "a backslash stands before three octal "
				    "digits (\\040 is a space) or at the end "
				    "of the line");
		v = v * 8 + c - '0';
	}
	if (v == 0 || v > 255)
		return fail(p, "'\\%03o' is not a character: expected \\001 "
			    "to \\377", (unsigned)v);
	return v;
}

/* 1: a word is in p->word, 0: there is none left in this entry. */
static int read_word(struct parser *p)
{
	bool quoted = false;
	int c;

	p->len = 0;
	p->word_line = p->line;
	if (!skip_blank(p))
		return 0;
	p->word_line = p->line;
	for (;;) {
		c = peek_char(p);
		if (is_end(c) || (is_blank(c) && !quoted))
			break;
		next_char(p);
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\')
			c = read_escape(p);
		if (c < 0)
			return c;
		if (c == 0)
			return fail(p, "there is a NUL byte in the text");
		if (p->len == WORD_MAX - 1)
			return fail(p, "a word is longer than %d bytes",
				    WORD_MAX - 1);
		p->word[p->len++] = (char)c;
	}
	p->word[p->len] = '\0';
	return quoted ? fail(p, "a '\"' is not closed on its line") : 1;
}

static const struct vfs_ops *find_backend(const struct parser *p,
					  const char *name, size_t len)
{
	const struct vfs_ops *usual = p->table->backend;

	if (strlen(usual->name) == len && memcmp(usual->name, name, len) == 0)
		return usual;
	return backends_find(p->table->config.backends, name, len);
}

/* "mem,size=1g:/path": the backend's name, its options, the rest. */
static int read_backend(struct parser *p, struct entry *e, char **path)
{
	char *colon = strchr(p->word, ':'), *msg;
	size_t name = strcspn(p->word, ",:");
	const char *options = NULL;
	char names[128];
	int ret;

	*path = p->word;
	e->backend = p->table->backend;
	if (p->word[0] != '/' && colon) {
		e->backend = find_backend(p, p->word, name);
		if (!e->backend) {
			backends_names(p->table->config.backends, names,
				       sizeof(names));
			return fail(p, "'%.*s' is not a kind of file system; "
				    "expected KIND:/PATH, where KIND is one "
				    "of %s (others are loaded at the start, "
				    "with --backend), or just /PATH",
				    (int)name, p->word, names);
		}
		*colon = '\0';
		*path = colon + 1;
		if (p->word[name] == ',')
			options = p->word + name + 1;
	}
	ret = backend_options(e->backend, options, &e->options, &msg);
	return ret == -EINVAL ? fail_msg(p, msg) : ret;
}

/* One slash between components, none at the end; in place. */
static void squeeze(char *path)
{
	char *to = path;

	for (const char *s = path; *s; s++)
		if (*s != '/' || to == path || to[-1] != '/')
			*to++ = *s;
	if (to > path + 1 && to[-1] == '/')
		to--;
	*to = '\0';
}

static bool has_dots(const char *path)
{
	for (const char *s = path; (s = strstr(s, "/.")); s += 2) {
		const char *end = s + 2 + (s[2] == '.');

		if (*end == '/' || *end == '\0')
			return true;
	}
	return false;
}

static int check_path(struct parser *p, const char *path)
{
	if (!*path)
		return fail(p, "the path is empty");
	if (*path == '-' || *path == '(')
		return fail(p, "'%s' stands where a path should: an entry "
			    "begins with the directory to export", path);
	if (*path != '/')
		return fail(p, "'%s' is not an absolute path", path);
	if (has_dots(path))
		return fail(p, "'%s' has a component '.' or '..'", path);
	if (strlen(path) > EXPORT_PATH_MAX)
		return fail(p, "the path is longer than %d bytes, which "
			    "clients can't name", EXPORT_PATH_MAX);
	return 0;
}

/* The first word of an entry is in p->word. */
static int begin_entry(struct parser *p)
{
	struct entry e = { 0 };
	struct entry *old;
	char *path;
	int ret = read_backend(p, &e, &path);

	if (ret == 0)
		ret = check_path(p, path);
	if (ret < 0)
		goto fail;
	squeeze(path);
	old = export_set_find(p->set, path);
	if (old) {
		p->entry = old;
		if (!backend_same(old->backend, old->options, e.backend,
				  e.options))
			ret = fail(p, "'%s' is another file system in %s",
				   path, old->where);
		goto fail;		/* nothing of it is needed */
	}
	e.path = strdup(path);
	e.where = where(p);
	if (!e.path || !e.where) {
		free(e.path);
		free(e.where);
		ret = -ENOMEM;
		goto fail;
	}
	return export_set_add_entry(p->set, &e, &p->entry);

fail:
	free(e.options);
	return ret;
}

static int use_fsid(struct parser *p, const struct fsid_option *fsid)
{
	struct entry *e = p->entry;

	if (!fsid->given)
		return 0;
	if (e->has_fsid && (e->id != fsid->id || e->fsid != fsid->fsid))
		return fail(p, "'%s' has two different fsid= options",
			    e->path);
	if (!e->has_fsid)
		e->fsid_where = where(p);
	if (!e->fsid_where)
		return -ENOMEM;
	e->has_fsid = true;
	e->id = fsid->id;
	e->fsid = fsid->fsid;
	return 0;
}

static int read_options(struct parser *p, const char *text,
			struct export_opts *opts, struct fsid_option *fsid)
{
	char *msg = NULL;

	if (export_opts_parse(text, opts, fsid, &msg) < 0)
		return fail_msg(p, msg);
	return 0;
}

/* True if both name the same peers, in any spelling. */
static bool same_client(const struct client *a, const struct client *b)
{
	if (a->kind != b->kind || a->by_address != b->by_address)
		return false;
	if (!a->by_address)
		return strcasecmp(a->text, b->text) == 0;
	return a->bits == b->bits &&
	       addr_in_prefix(&a->addr, &b->addr, a->bits);
}

static int check_new_client(struct parser *p, const struct client *c)
{
	const struct entry *e = p->entry;

	for (unsigned i = 0; i < e->nclients; i++)
		if (same_client(&e->clients[i], c))
			return fail(p, "client '%s' of '%s' is there already "
				    "(%s)", c->text, e->path,
				    e->clients[i].where);
	return 0;
}

/* @text with @opts is one more client of the entry. */
static int add_client(struct parser *p, const char *text,
		      const struct export_opts *opts)
{
	struct client c = { .opts = *opts };
	const char *msg;
	int ret = -ENOMEM;

	c.text = strdup(text);
	c.where = where(p);
	if (!c.text || !c.where)
		goto fail;
	msg = client_parse(&c);
	ret = msg ? fail(p, "client '%s' %s", text, msg) :
		    check_new_client(p, &c);
	if (ret < 0)
		goto fail;
	return export_entry_add_client(p->entry, &c);

fail:
	free(c.text);
	free(c.where);
	return ret;
}

/* CLIENT or CLIENT(OPTIONS) is in p->word; (OPTIONS) too, if @may_be_all. */
static int read_client(struct parser *p, bool may_be_all)
{
	struct export_opts opts = p->defaults;
	struct fsid_option fsid = p->default_fsid;
	char *open = strchr(p->word, '('), *close;
	int ret = 0;

	if (!open && strchr(p->word, ')'))
		return fail(p, "'%s' has a ')' without a '('; there is no "
			    "space between options", p->word);
	if (open == p->word && !may_be_all)
		return fail(p, "a space stands before '%s': these options "
			    "would be everyone's; write CLIENT%s, or *%s if "
			    "you mean that", p->word, p->word, p->word);
	if (open) {
		close = strchr(open, ')');
		if (!close)
			return fail(p, "'%s' has a '(' without a ')'; there "
				    "is no space between options", p->word);
		if (close[1])
			return fail(p, "'%s' follows a ')'; expected a space",
				    close + 1);
		*open = *close = '\0';
		ret = read_options(p, open + 1, &opts, &fsid);
	}
	if (ret == 0)
		ret = use_fsid(p, &fsid);
	return ret < 0 ? ret : add_client(p, *p->word ? p->word : "*", &opts);
}

static int read_defaults(struct parser *p)
{
	return read_options(p, p->word + 1, &p->defaults, &p->default_fsid);
}

/* Completes an entry without a client. */
static int add_default_clients(struct parser *p, bool loopback_only)
{
	int ret = use_fsid(p, &p->default_fsid);

	if (ret < 0)
		return ret;
	if (!loopback_only)
		return add_client(p, "*", &p->defaults);
	log_info("%s: no client is named, so only this machine may mount "
		 "it%s", p->entry->path,
		 p->defaults.rw ? "" : ", and only to read");
	ret = add_client(p, "127.0.0.0/8", &p->defaults);
	return ret < 0 ? ret : add_client(p, "::1", &p->defaults);
}

/* The first word is in p->word. */
static int read_entry(struct parser *p, bool loopback_only)
{
	bool first = true;
	int ret = begin_entry(p);

	p->defaults = export_opts_default;
	p->default_fsid.given = false;
	while (ret == 0) {
		ret = read_word(p);
		if (ret <= 0)
			break;
		if (p->word[0] == '-') {
			ret = read_defaults(p);
		} else {
			ret = read_client(p, first && !loopback_only);
			first = false;
		}
	}
	if (ret == 0 && first)
		ret = add_default_clients(p, loopback_only);
	return ret;
}

/* All of @in; malloced. */
static int read_all(FILE *in, char **out, size_t *len)
{
	size_t cap = 4096, n = 0, got;
	char *text = malloc(cap), *more;
	int err = -ENOMEM;

	while (text && (got = fread(text + n, 1, cap - n, in)) > 0) {
		n += got;
		if (n < cap)
			continue;
		err = n >= TEXT_MAX ? -EFBIG : -ENOMEM;
		more = n >= TEXT_MAX ? NULL : realloc(text, cap *= 2);
		if (!more)
			goto fail;
		text = more;
	}
	if (!text)
		return -ENOMEM;
	err = -EIO;
	if (ferror(in))
		goto fail;
	*out = text;
	*len = n;
	return 0;

fail:
	free(text);
	return err;
}

static int parse_lines(struct parser *p)
{
	int ret;

	while (p->p < p->end) {
		ret = read_word(p);
		if (ret > 0)
			ret = read_entry(p, false);
		if (ret < 0)
			return ret;
		next_char(p);		/* the end of the line */
	}
	return 0;
}

/* Everything but the text; the set is made when there is none. */
static int parser_create(struct export_table *t, const char *name,
			 struct export_set **set, char **err,
			 struct parser **out)
{
	struct parser *p = calloc(1, sizeof(*p));

	*err = NULL;
	if (!p)
		return -ENOMEM;
	if (*set) {
		p->set = *set;
	} else if (export_set_alloc(&p->set) < 0) {
		free(p);
		return -ENOMEM;
	}
	p->table = t;
	p->name = name;
	p->err = err;
	*out = p;
	return 0;
}

/* The text was read with @ret.  A set that was made here is *@set's on
 * success only. */
static int parser_finish(struct parser *p, struct export_set **set, int ret)
{
	if (ret == 0)
		ret = export_set_finish(p->set, p->err);
	if (ret == 0)
		*set = p->set;
	else if (p->set != *set)
		export_set_put(p->set);
	free(p);
	return ret;
}

int export_set_parse(struct export_table *t, const char *name, FILE *in,
		     struct export_set **set, char **err)
{
	struct parser *p;
	char *text = NULL;
	size_t len;
	int ret = parser_create(t, name, set, err, &p);

	if (ret < 0)
		return ret;
	ret = read_all(in, &text, &len);
	if (ret < 0) {
		export_fail(err, "%s: can't be read: %s", name,
			    strerror(-ret));
	} else {
		p->p = text;
		p->end = text + len;
		p->line = 1;
		ret = parse_lines(p);
	}
	ret = parser_finish(p, set, ret);
	free(text);
	return ret;
}

int export_set_add(struct export_table *t, const char *arg,
		   struct export_set **set, char **err)
{
	struct parser *p;
	int ret = parser_create(t, "--export", set, err, &p);

	if (ret < 0)
		return ret;
	p->p = arg;
	p->end = arg + strlen(arg);
	ret = read_word(p);
	if (ret == 0)
		ret = fail(p, "expected a directory");
	else if (ret > 0)
		ret = read_entry(p, true);
	if (ret == 0 && peek_char(p) != END_OF_TEXT)
		ret = fail(p, "there is more than one line");
	return parser_finish(p, set, ret);
}
