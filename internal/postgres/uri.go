package postgres

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// masked stands in for a secret. It is the word that net/url uses.
const masked = "xxxxx"

// unreadable stands in for an address that cannot be taken apart, since a secret may be anywhere in it.
const unreadable = "(an unreadable PostgreSQL address)"

// secretParams are the parameters of a URI that hold secrets.
var secretParams = [...]string{"password", "sslpassword"}

// Redact returns the address with its passwords masked, for anything that people or files see. A keyword/value string
// comes back reduced to host, port, user and dbname; what cannot be read comes back as a fixed phrase.
func Redact(uri string) string {
	if !isURL(uri) {
		return redactKeywords(uri)
	}
	u, err := url.Parse(uri)
	if err != nil {
		return unreadable
	}
	query := u.Query()
	for _, name := range secretParams {
		if query.Has(name) {
			query.Set(name, masked)
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}

func redactKeywords(dsn string) string {
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return unreadable
	}
	return "host=" + c.Host + " port=" + strconv.Itoa(int(c.Port)) + " user=" + c.User + " dbname=" + c.Database
}

func isURL(uri string) bool {
	return strings.HasPrefix(uri, "postgres://") || strings.HasPrefix(uri, "postgresql://")
}

// Hosts returns the network hosts that the address may lead to, each once, in order; the caller checks them against
// what is allowed. A Unix socket is on this machine by nature and is left out, so the list may be empty. The error
// wraps ErrBadURI.
func Hosts(uri string) ([]string, error) {
	c, err := pgconn.ParseConfig(uri)
	if err != nil {
		return nil, badURI(uri, err)
	}
	var hosts []string
	for _, host := range configuredHosts(c) {
		if !isSocket(host) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

func configuredHosts(c *pgconn.Config) []string {
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return hosts
}

// isSocket reports whether a host is the folder of a Unix socket, or an abstract one.
func isSocket(host string) bool { return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") }

// place names the server in a sentence: "PostgreSQL at host:port".
func place(uri string) string {
	c, err := pgconn.ParseConfig(uri)
	if err != nil {
		return "PostgreSQL at " + unreadable
	}
	if isSocket(c.Host) {
		return "PostgreSQL at socket " + c.Host
	}
	return "PostgreSQL at " + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}

// login returns the user and the database that the address names.
func login(uri string) (user, database string) {
	c, err := pgconn.ParseConfig(uri)
	if err != nil {
		return "", ""
	}
	return c.User, orDefault(c.Database, c.User) // PostgreSQL takes the user's name for the database when none is given
}
