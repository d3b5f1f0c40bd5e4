/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of exports(5) to a snapshot.  Pure except for messages.
 *
 *	PATH [-OPTIONS] [CLIENT[(OPTIONS)]]...
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/words.h"
#include "lib/fail.h"
#include "lib/file.h"
#include "lib/log.h"
#include "lib/util.h"

#define TEXT_MAX	((size_t)16 << 20)
/* A BOM: some editors begin files with it. */
#define BYTE_ORDER_MARK	"\xef\xbb\xbf"

struct parser {
	struct export_table *table;
	struct export_set   *set;
	struct words	     in;
	bool		     wrong;	/* a mistake was found */
	/* The rest of the entry can't be parsed after a mistake. */
	bool		     lost;
	/* Entries whose path is a mistake: their clients are still checked. */
	struct export_set   *strays;
	/* Of the entry that is being read. */
	struct export	    *export;
	struct option_target defaults;
};

#define fail(p, ...)	words_fail(&(p)->in, __VA_ARGS__)

/* As fail(), where the next words can only be misread. */
#define fail_entry(p, ...) \
	((p)->lost = true, words_fail(&(p)->in, __VA_ARGS__))

static const struct vfs_ops *find_backend(const struct parser *p,
					  const char *name, size_t len)
{
	const struct vfs_ops *usual = p->table->backend;

	if (strlen(usual->name) == len && memcmp(usual->name, name, len) == 0)
		return usual;
	return backends_find(p->table->config.backends, name, len);
}

/* A backend or a filter, and its options in the word. */
struct kind {
	const struct vfs_ops *ops;
	const char	     *text;
	size_t		      len;
};

/* "mem,size=1g:", or nothing: that is the usual backend.  *@path goes behind
 * it. */
static int read_kind(struct parser *p, char **path, struct kind *out)
{
	char *colon = strchr(*path, ':');
	size_t name = strcspn(*path, ",:");
	char names[128];

	*out = (struct kind){ p->table->backend, "", 0 };
	if (**path == '/' || !colon)
		return 0;
	out->ops = find_backend(p, *path, name);
	if (!out->ops) {
		backends_names(p->table->config.backends, names,
			       sizeof(names));
		return fail(p, "'%.*s' is not a kind of file system; expected "
			    "KIND:/PATH, where KIND is one of %s (others are "
			    "loaded at the start, with --backend), or just "
			    "/PATH", (int)name, *path, names);
	}
	if ((*path)[name] == ',') {
		out->text = *path + name + 1;
		out->len = (size_t)(colon - out->text);
	}
	*path = colon + 1;
	return 0;
}

static int read_kind_options(struct parser *p, const struct kind *kind,
			     void *block)
{
	char *msg;
	int ret = backend_options(kind->ops, kind->text, kind->len, block,
				  &msg);

	return ret == -EINVAL ? words_fail_msg(&p->in, msg) : ret;
}

/* "mem,size=1g:/path", or "delay,ms=5:mem,size=1g:/path" with a filter. */
static int read_backend(struct parser *p, struct export *e, char **path)
{
	struct kind filter = { 0 }, below;
	int ret;

	*path = p->in.word;
	ret = read_kind(p, path, &below);
	if (ret == 0 && below.ops->attach) {
		filter = below;
		ret = read_kind(p, path, &below);
	}
	if (ret < 0)
		return ret;
	e->backend = filter.ops ? backends_over(p->table->config.backends,
						filter.ops, below.ops) :
				  below.ops;
	if (!e->backend)
		return fail(p, "the filter '%s' stands over a backend; '%s' is "
			    "a filter, too", filter.ops->name,
			    below.ops->name);
	e->options = calloc(1, e->backend->options_size + 1);
	if (!e->options)
		return -ENOMEM;
	ret = read_kind_options(p, &below, e->options);
	if (ret == 0 && filter.ops)
		ret = read_kind_options(p, &filter, (char *)e->options +
					backend_filter_at(below.ops));
	return ret;
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
		return fail_entry(p, "'%s' stands where a path should: an "
				  "entry begins with the directory to export",
				  path);
	if (*path != '/')
		return fail(p, "'%s' is not an absolute path", path);
	if (has_dots(path))
		return fail(p, "'%s' has a component '.' or '..'", path);
	if (strlen(path) > EXPORT_PATH_MAX)
		return fail(p, "the path is longer than %d bytes, which "
			    "clients can't name", EXPORT_PATH_MAX);
	return 0;
}

/* The entry of a path that is a mistake. */
static int begin_stray(struct parser *p)
{
	const struct vfs_ops *usual = p->table->backend;
	struct export e = {
		.path = strdup(p->in.word), .backend = usual,
		.options = calloc(1, usual->options_size + 1),
		.where = words_where(&p->in), .max = { NO_RATE, NO_RATE },
	};

	if (e.path && e.options && e.where &&
	    (p->strays || export_set_alloc(&p->strays) == 0))
		return export_set_append(p->strays, &e, &p->export);
	free(e.path);
	free(e.options);
	free(e.where);
	return -ENOMEM;
}

/* The first word of an entry was read. */
static int begin_entry(struct parser *p)
{
	struct export e = { .max = { NO_RATE, NO_RATE } };
	struct export *old;
	char *path;
	int ret = read_backend(p, &e, &path);

	if (ret == 0)
		ret = check_path(p, path);
	if (ret < 0)
		goto fail;
	squeeze(path);
	old = export_set_find(p->set, path);
	if (old) {
		p->export = old;
		if (!backend_same(old->backend, old->options, e.backend,
				  e.options))
			ret = fail(p, "'%s' is another file system in %s",
				   path, old->where);
		goto fail;		/* nothing of it is needed */
	}
	e.path = strdup(path);
	e.prefix = strndup(p->in.word, (size_t)(path - p->in.word));
	e.where = words_where(&p->in);
	if (!e.path || !e.prefix || !e.where) {
		free(e.path);
		free(e.prefix);
		free(e.where);
		ret = -ENOMEM;
		goto fail;
	}
	return export_set_append(p->set, &e, &p->export);

fail:
	free(e.options);
	return ret;
}

static int use_fsid(struct parser *p, const struct fsid_option *fsid)
{
	struct export *e = p->export;

	/* Of several the smallest, whatever the order of the lines is. */
	if (!fsid->given || (e->has_fsid && e->id <= fsid->id))
		return 0;
	free(e->fsid_where);
	e->fsid_where = words_where(&p->in);
	if (!e->fsid_where)
		return -ENOMEM;
	fsid_take(e, fsid);
	return 0;
}

/* It is the export's: it holds for all of its clients. */
static int use_mountpoint(struct parser *p, const struct option_target *t)
{
	struct export *e = p->export;
	char *path;
	int ret;

	if (!t->mountpoint.given)
		return 0;
	if (!e->backend->is_at)
		return fail(p, "'%s' is of the kind %s, which is not mounted "
			    "in this system, so 'mountpoint' can't be asked "
			    "of it", e->path, e->backend->name);
	path = strdup(*t->mountpoint.path ? t->mountpoint.path : e->path);
	if (!path)
		return -ENOMEM;
	squeeze(path);
	if (e->mountpoint && strcmp(e->mountpoint, path) != 0) {
		ret = fail(p, "'%s' has two different mountpoint= options",
			   e->path);
		free(path);
		return ret;
	}
	free(e->mountpoint);
	e->mountpoint = path;
	return 0;
}

/* As use_mountpoint(). */
static int use_rate(struct parser *p, const char *name, uint64_t rate,
		    uint64_t *of_export)
{
	if (rate == NO_RATE || rate == *of_export)
		return 0;
	if (*of_export != NO_RATE)
		return fail(p, "'%s' has two different %s= options; it is the "
			    "limit of all clients together", p->export->path,
			    name);
	*of_export = rate;
	return 0;
}

static int read_options(struct parser *p, const char *text,
			struct option_target *t)
{
	char *msg = NULL;

	if (export_opts_parse(text, t, &msg) < 0)
		return words_fail_msg(&p->in, msg);
	return 0;
}

static void note_option(void *arg, const char *text)
{
	struct parser *p = arg;

	if (export_set_note(p->set, words_where(&p->in), text) < 0)
		log_warn("%s: %s", p->in.name, text);
}

/* 0: no client is @c yet.  1: one is, with the same options. */
static int check_new_client(struct parser *p, const struct client *c)
{
	const struct export *e = p->export;
	char text[256];

	for (unsigned i = 0; i < e->nclients; i++) {
		const struct client *old = &e->clients[i];

		if (!client_same(old, c))
			continue;
		if (!export_opts_same(&old->opts, &c->opts) ||
		    (old->opts.has_id && c->opts.has_id &&
		     old->opts.id != c->opts.id))
			return fail(p, "client '%s' of '%s' is there already "
				    "with other options (%s)", c->text,
				    e->path, old->where);
		snprintf(text, sizeof(text), "client '%.64s' of '%.64s' is "
			 "there already", c->text, e->path);
		note_option(p, text);
		return 1;
	}
	return 0;
}

/* @text with the options of @t is one more client of the entry. */
static int add_client(struct parser *p, const char *text,
		      const struct option_target *t)
{
	struct client c = { .opts = t->opts, .fsid = t->fsid };
	const char *msg;
	int ret = -ENOMEM;

	c.opts.has_id = t->fsid.given;
	c.opts.id = t->fsid.id;
	c.opts.fsid = t->fsid.fsid;
	c.text = strdup(text);
	c.where = words_where(&p->in);
	if (!c.text || !c.where)
		goto fail;
	msg = client_parse(&c);
	ret = msg ? fail(p, "client '%s' %s", text, msg) :
		    check_new_client(p, &c);
	if (ret == 0)
		return export_add_client(p->export, &c);

fail:
	free(c.text);
	free(c.where);
	return MIN(ret, 0);
}

/* The options of *@t are complete. */
static int finish_options(struct parser *p, struct option_target *t)
{
	char *msg = NULL;
	int ret;

	if (export_opts_finish(t, &msg) < 0)
		return words_fail_msg(&p->in, msg);
	ret = use_fsid(p, &t->fsid);
	if (ret == 0)
		ret = use_mountpoint(p, t);
	if (ret == 0)
		ret = use_rate(p, "max_ops", t->max.ops, &p->export->max.ops);
	if (ret == 0)
		ret = use_rate(p, "max_bytes", t->max.bytes,
			       &p->export->max.bytes);
	return ret;
}

/* CLIENT or CLIENT(OPTIONS) was read; (OPTIONS) too, if @may_be_all. */
static int read_client(struct parser *p, bool may_be_all)
{
	struct option_target t = p->defaults;
	char *word = p->in.word, *open = strchr(word, '('), *close;
	int ret = 0;

	if (!open && strchr(word, ')'))
		return fail_entry(p, "'%s' has a ')' without a '('; there is "
				  "no space between options", word);
	if (open == word && !may_be_all)
		return fail(p, "a space stands before '%s': these options "
			    "would be everyone's; write CLIENT%s, or *%s if "
			    "you mean that", word, word, word);
	if (open) {
		close = strchr(open, ')');
		if (!close)
			return fail_entry(p, "'%s' has a '(' without a ')'; "
					  "there is no space between options",
					  word);
		if (close[1])
			return fail_entry(p, "'%s' follows a ')'; expected a "
					  "space", close + 1);
		*open = *close = '\0';
		ret = read_options(p, open + 1, &t);
	}
	if (ret == 0)
		ret = finish_options(p, &t);
	return ret < 0 ? ret : add_client(p, *word ? word : "*", &t);
}

/* Completes an entry without a client. */
static int add_default_clients(struct parser *p, bool loopback_only)
{
	int ret = finish_options(p, &p->defaults);

	if (ret < 0)
		return ret;
	if (!loopback_only)
		return add_client(p, "*", &p->defaults);
	log_info("%s: no client is named, so only this machine may mount "
		 "it%s", p->export->path,
		 p->defaults.opts.rw ? "" : ", and only to read");
	ret = add_client(p, "127.0.0.0/8", &p->defaults);
	return ret < 0 ? ret : add_client(p, "::1", &p->defaults);
}

static void begin_defaults(struct parser *p)
{
	p->defaults = (struct option_target){
		.opts = export_opts_default, .max = { NO_RATE, NO_RATE },
		.has_krb5 = p->table->config.krb5,
		.protection = p->table->config.protection,
		.warn = note_option, .arg = p,
	};
	p->defaults.opts.manage_gids = p->table->config.manage_gids;
}

/* @ret, but 0 for a mistake: it was reported, so go on to find others. */
static int after_mistake(struct parser *p, int ret)
{
	p->wrong |= ret == -EINVAL;
	return ret == -EINVAL ? 0 : ret;
}

/* After a bad word it is unknown where the next one begins. */
static int next_word(struct parser *p)
{
	int ret = words_next(&p->in);

	p->lost |= ret == -EINVAL;
	return ret;
}

/* The first word was read.  0 also after mistakes. */
static int read_entry(struct parser *p, bool loopback_only)
{
	bool first = true;
	int ret = begin_entry(p);

	if (ret == -EINVAL && !p->lost)
		ret = begin_stray(p) < 0 ? -ENOMEM : ret;
	ret = after_mistake(p, ret);
	begin_defaults(p);
	while (ret == 0 && !p->lost) {
		ret = next_word(p);
		if (ret == 0)
			break;
		if (ret > 0 && p->in.word[0] == '-') {
			ret = read_options(p, p->in.word + 1, &p->defaults);
		} else if (ret > 0) {
			ret = read_client(p, first && !loopback_only);
			first = false;
		}
		ret = after_mistake(p, ret);
	}
	if (ret == 0 && first && !p->wrong)
		ret = after_mistake(p, add_default_clients(p, loopback_only));
	return ret;
}

static int parse_lines(struct parser *p)
{
	const size_t mark = strlen(BYTE_ORDER_MARK);
	int ret;

	p->in.line = p->in.word_line = 1;
	if ((size_t)(p->in.end - p->in.p) >= mark &&
	    memcmp(p->in.p, BYTE_ORDER_MARK, mark) == 0) {
		after_mistake(p, fail(p, "the file begins with a byte order "
				      "mark (BOM), three bytes that editors "
				      "hide; save it without"));
		p->in.p += mark;
	}
	do {
		p->lost = false;
		ret = next_word(p);
		if (ret > 0)
			ret = read_entry(p, false);
		ret = after_mistake(p, ret);
		if (p->lost)
			words_skip_entry(&p->in);
	} while (ret == 0 && !words_end_line(&p->in));
	return ret;
}

/* A parser without a text.  Creates the set if *@set is NULL. */
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
	} else if (export_set_create(t, &p->set) < 0) {
		free(p);
		return -ENOMEM;
	}
	p->table = t;
	p->in.name = name;
	p->in.err = err;
	*out = p;
	return 0;
}

/* The text was read with @ret.  A set that was made here is *@set's on
 * success only. */
static int parser_finish(struct parser *p, struct export_set **set, int ret)
{
	if (ret == 0)
		ret = export_set_finish(p->set, p->in.err);
	if (ret == 0 && p->wrong)
		ret = -EINVAL;
	export_set_put(p->strays);
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
	ret = file_read(in, TEXT_MAX, &text, &len);
	if (ret < 0) {
		fail_with(err, "%s: can't be read: %s", name,
			    strerror(-ret));
	} else {
		p->in.p = text;
		p->in.end = text + len;
		ret = parse_lines(p);
	}
	ret = parser_finish(p, set, ret);
	free(text);
	return ret;
}

int export_set_add(struct export_table *t, const char *name, const char *arg,
		   struct export_set **set, char **err)
{
	struct parser *p;
	int ret = parser_create(t, name, set, err, &p);

	if (ret < 0)
		return ret;
	p->in.p = arg;
	p->in.end = arg + strlen(arg);
	ret = next_word(p);
	if (ret == 0)
		ret = fail(p, "expected a directory");
	else if (ret > 0)
		ret = read_entry(p, true);
	ret = after_mistake(p, ret);
	if (ret == 0 && !p->wrong && !words_end_line(&p->in))
		ret = fail(p, "there is more than one line");
	return parser_finish(p, set, ret);
}
