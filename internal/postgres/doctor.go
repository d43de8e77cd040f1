package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Check is one finding about the server. Fix says what to do; it is "" when OK.
type Check struct {
	Name   string
	OK     bool
	Detail string
	Fix    string
}

// sqlDoctor reads all that the checks need. Reserved connections are those that only superusers, or from version 16
// holders of pg_use_reserved_connections, may use.
const sqlDoctor = `
select current_setting('server_version'),
       pg_is_in_recovery(),
       current_database(),
       current_user::text,
       has_database_privilege(current_database(), 'create'),
       current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true)::int, 0),
       (select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid())`

type diagnosis struct {
	version   string
	standby   bool
	database  string
	user      string
	mayCreate bool
	room      int // connections that ordinary users may have
	taken     int // sessions of others, and of this pool beside the one that asks
}

// Doctor returns the checks of a server that Open has accepted: version, primary, right to create schemas, and room for
// the pool. A server that cannot be asked gives the one check "answers", not OK.
func (db *DB) Doctor(ctx context.Context) []Check {
	var d diagnosis
	err := db.pool.QueryRow(ctx, sqlDoctor).
		Scan(&d.version, &d.standby, &d.database, &d.user, &d.mayCreate, &d.room, &d.taken)
	if err != nil {
		detail := fmt.Sprintf("%s does not answer: %v", place(db.uri), rootCause(err))
		return []Check{verdict("answers", false, detail, "check that it runs there and accepts connections")}
	}
	stat := db.pool.Stat()
	own := int(stat.TotalConns()) - 1 // counted in taken, but not in anybody's way
	return []Check{
		d.versionCheck(), d.primaryCheck(), d.rightCheck(),
		d.roomCheck(int(stat.MaxConns()), max(0, d.taken-own)),
	}
}

func (d *diagnosis) versionCheck() Check {
	return verdict("version", major(d.version) >= MinVersion, "PostgreSQL "+d.version,
		fmt.Sprintf("use PostgreSQL %d or later", MinVersion))
}

func (d *diagnosis) primaryCheck() Check {
	detail := "the server takes writes"
	if d.standby {
		detail = "the server is a standby and takes no writes"
	}
	return verdict("primary", !d.standby, detail, "give the address of the primary, or add target_session_attrs=read-write")
}

func (d *diagnosis) rightCheck() Check {
	detail := fmt.Sprintf("user %q may create schemas in database %q", d.user, d.database)
	if !d.mayCreate {
		detail = fmt.Sprintf("user %q may not create schemas in database %q", d.user, d.database)
	}
	return verdict("create schemas", d.mayCreate, detail, fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s",
		pgx.Identifier{d.database}.Sanitize(), pgx.Identifier{d.user}.Sanitize()))
}

func (d *diagnosis) roomCheck(need, others int) Check {
	return verdict("connections", d.room-others >= need,
		fmt.Sprintf("%d needed, %d free of %d", need, d.room-others, d.room),
		"raise max_connections, close other clients, or run fewer workers")
}

func verdict(name string, ok bool, detail, fix string) Check {
	if ok {
		fix = ""
	}
	return Check{Name: name, OK: ok, Detail: detail, Fix: fix}
}
