package stack

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// postgres is one PostgreSQL server with default durability: fsync and synchronous_commit stay on, since the cost of a
// COMMIT is part of what is measured.
type postgres struct {
	base
	password string
}

func (*postgres) name() string   { return PostgreSQL }
func (*postgres) portCount() int { return 1 }

// stopSignal is the fast shutdown: sessions are ended, data is written, nothing is waited for.
func (*postgres) stopSignal() syscall.Signal { return syscall.SIGINT }

func (p *postgres) prepare(ports []int) error {
	p.ports = ports
	if p.initialised() {
		return nil
	}
	return p.data.write(p.owner, p.password+"\n", PostgreSQL, "password")
}

// initialised reports whether there is a cluster. A stack whose initdb failed is thrown away, so there is no half of one.
func (p *postgres) initialised() bool {
	_, err := os.Stat(p.data.host(PostgreSQL, "data", "PG_VERSION"))
	return err == nil
}

// setup makes the cluster. The C locale keeps sorting independent of the machine.
func (p *postgres) setup() (childSpec, bool) {
	if p.initialised() {
		return childSpec{}, false
	}
	return p.command(PostgreSQL, nil, filepath.Join(filepath.Dir(p.program), "initdb"),
		"--pgdata="+p.data.path(PostgreSQL, "data"),
		"--username="+userName,
		"--pwfile="+p.data.path(PostgreSQL, "password"),
		"--auth=scram-sha-256",
		"--encoding=UTF8",
		"--locale=C",
		"--no-sync", // the server itself syncs; only a crash of the machine between the two could tell
	), true
}

func (p *postgres) spec() childSpec {
	return p.command(PostgreSQL, nil, p.program,
		"-D", p.data.path(PostgreSQL, "data"),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port="+strconv.Itoa(p.ports[0]),
		"-c", "unix_socket_directories="+p.data.path(PostgreSQL),
		"-c", "max_connections=200", // a pool for each of some hundred workers, and room for the audit
		"-c", "password_encryption=scram-sha-256",
		"-c", "cluster_name=spillway-"+p.data.id,
		"-c", "logging_collector=off",
	)
}

func (p *postgres) addresses(a *Addresses) {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(userName, p.password),
		Host:     "127.0.0.1:" + strconv.Itoa(p.ports[0]),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	a.Postgres = u.String()
}
