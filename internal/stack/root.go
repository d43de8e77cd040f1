package stack

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// suites are the Debian releases that a root can be made from, the preferred one first. forky has RabbitMQ 4.3 and
// PostgreSQL 18, trixie RabbitMQ 4.0 and PostgreSQL 17.
var suites = []suite{
	{name: "forky", postgres: "postgresql-18"},
	{name: "trixie", postgres: "postgresql-17"},
}

type suite struct{ name, postgres string }

// packages lists what debootstrap is asked to include.
func (s suite) packages() []string { return []string{"rabbitmq-server", s.postgres, "prometheus"} }

// Root is a tree that servers can be started in.
type Root struct {
	Path  string // folder; "/" for the host itself
	Suite string // Debian release; empty for the host
}

// CacheDir returns the folder that roots, state and the control socket live in: spillway below the user's cache folder.
// It may not exist yet.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(base, "spillway"), nil
}

// FindRoot returns the best complete stack root: the one at path when that is not empty, else the first of the known
// suites in the cache folder. The error wraps ErrNoRoot where there is none.
func FindRoot(path string) (*Root, error) {
	if path != "" {
		return namedRoot(path)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	for _, s := range suites {
		r := &Root{Path: rootPath(cache, s), Suite: s.name}
		if r.check(AllServices()) == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%w in %s", ErrNoRoot, cache)
}

// namedRoot takes no other root than the one that somebody named. The host is none: it has a source of its own.
func namedRoot(path string) (*Root, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("stack root %s: %w", path, err)
	}
	r := &Root{Path: path, Suite: suiteOf(path)}
	if r.host() {
		return nil, fmt.Errorf("%w: / is this machine itself, which is --source host", ErrNoRoot)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder", ErrNoRoot, path)
	}
	if err := r.check(AllServices()); err != nil {
		return nil, err
	}
	return r, nil
}

func rootPath(cache string, s suite) string { return filepath.Join(cache, "root-"+s.name) }

// suiteOf reads the release's name from a root; empty when it does not say.
func suiteOf(path string) string {
	f, err := os.Open(filepath.Join(path, "etc/os-release"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "VERSION_CODENAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return ""
}

// hostRoot returns the host itself as a root, if it has the servers that are asked for.
func hostRoot(services []string) (*Root, error) {
	r := &Root{Path: "/"}
	if err := r.check(services); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Root) host() bool { return r.Path == "/" }

// check says which server is missing.
func (r *Root) check(services []string) error {
	lacking := ErrNoRoot
	if r.host() {
		lacking = ErrNoServers
	}
	for _, s := range services {
		if _, err := r.program(s); err != nil {
			return fmt.Errorf("%w: %s has no %s", lacking, r.Path, s)
		}
	}
	return nil
}

// program returns the path of a service's server, as seen inside the root.
func (r *Root) program(service string) (string, error) {
	switch service {
	case RabbitMQ: // not the wrapper in /usr/sbin, which wants to become root first
		return r.first("/usr/lib/rabbitmq/bin/rabbitmq-server")
	case PostgreSQL:
		dir, err := r.postgresBin()
		return filepath.Join(dir, "postgres"), err
	case Prometheus:
		return r.first("/usr/bin/prometheus", "/usr/local/bin/prometheus")
	default:
		return "", fmt.Errorf("%w: %q", ErrUnknownService, service)
	}
}

// postgresBin returns the folder of the newest PostgreSQL in the root.
func (r *Root) postgresBin() (string, error) {
	found, err := filepath.Glob(r.join("/usr/lib/postgresql/*/bin/initdb"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%w: /usr/lib/postgresql/*/bin/initdb", os.ErrNotExist)
	}
	best, bestMajor := "", -1
	for _, path := range found {
		dir := filepath.Dir(path)
		if major, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && major > bestMajor {
			best, bestMajor = dir, major
		}
	}
	return r.inside(best), nil
}

func (r *Root) first(candidates ...string) (string, error) {
	for _, c := range candidates {
		if info, err := os.Stat(r.join(c)); err == nil && info.Mode().IsRegular() {
			return c, nil
		}
	}
	return "", fmt.Errorf("%w: %s", os.ErrNotExist, candidates[0])
}

// join turns a path inside the root into one of this machine; inside does the reverse.
func (r *Root) join(inside string) string { return filepath.Join(r.Path, inside) }

func (r *Root) inside(path string) string {
	rel, err := filepath.Rel(r.Path, path)
	if err != nil { // both are absolute and clean, so one is relative to the other
		return path
	}
	return "/" + rel
}

// user looks a name up in the root; the distribution's packages make one for each server.
func (r *Root) user(name string) (account, error) {
	f, err := os.Open(r.join("/etc/passwd"))
	if err != nil {
		return account{}, fmt.Errorf("users of root: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 || fields[0] != name {
			continue
		}
		uid, errUID := strconv.Atoi(fields[2])
		gid, errGID := strconv.Atoi(fields[3])
		if errUID != nil || errGID != nil || uid == 0 {
			return account{}, fmt.Errorf("user %q in %s: not an unprivileged user", name, r.join("/etc/passwd"))
		}
		return account{uid, gid}, nil
	}
	return account{}, fmt.Errorf("user %q is missing in %s", name, r.join("/etc/passwd"))
}
