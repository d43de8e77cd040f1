package stack

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed compose
var composeFiles embed.FS

const (
	// engineTimeout bounds the question whether an engine answers.
	engineTimeout = 10 * time.Second
	// composeStopSeconds is how long a container may take to end before the engine kills it; as stopGrace.
	composeStopSeconds = 20
	// composeDownTimeout bounds the removal of all: the stops run side by side, and an engine needs some seconds more.
	composeDownTimeout = time.Minute
	// composePorts is how many ports the compose file publishes.
	composePorts = 5
)

// Compose is a stack of containers under docker compose. It implements Control. Unlike child processes, containers
// outlive a spillway that is killed: the next StartCompose, or TakeDownLeftovers, ends what an unlocked project left.
type Compose struct {
	project   string
	dir       string // holds the compose file, its mounts and the environment file with ports and password
	lock      *os.File
	services  []string
	addresses Addresses
	versions  map[string]string // fixed after StartCompose
	engine    engine

	mu      sync.Mutex      // guards the fields below
	ending  map[string]bool // services whose end was ordered
	closing bool            // all ends are
}

// StartCompose brings the services up and returns when their health checks pass.
func StartCompose(ctx context.Context, o Options) (*Compose, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	c, err := newCompose(ctx, cache, o.services())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, composeStartTimeout)
	defer cancel()
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// projectPrefix begins the name of every project, and of its folder and lock.
const projectPrefix = "spillway-"

// composeStartTimeout leaves room for pulling the images, some 600 MB, on a slow line.
const composeStartTimeout = 10 * time.Minute

// newCompose cleans what dead ones left and writes a new project's folder.
func newCompose(ctx context.Context, cache string, services []string) (*Compose, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	all, err := waitLock(ctx, filepath.Join(cache, "compose.lock"), func() {}) // held for a cleaning at most
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if _, err := cleanComposeLeftovers(ctx, cache); err != nil {
		return nil, err
	}
	project := projectPrefix + randomHex(4)
	c := &Compose{project: project, dir: filepath.Join(cache, project), services: services, versions: map[string]string{}, engine: docker{}}
	if c.lock, err = tryLock(c.dir + ".lock"); err != nil {
		return nil, err
	}
	if err := c.write(); err != nil {
		return nil, errors.Join(err, c.forget())
	}
	return c, nil
}

// write fills the project's folder.
func (c *Compose) write() error {
	if err := os.MkdirAll(filepath.Join(c.dir, "targets"), 0o755); err != nil {
		return fmt.Errorf("folder for compose: %w", err)
	}
	reserved, err := reservePorts(composePorts)
	if err != nil {
		return err
	}
	reserved.release() // the engine may bind in a way that a reservation would hinder
	if err := copyEmbedded(c.dir); err != nil {
		return err
	}
	return c.writeEnvironment(reserved.ports, secret())
}

// forget removes the project's folder and lock; no container may be left.
func (c *Compose) forget() error {
	return errors.Join(os.RemoveAll(c.dir), os.Remove(c.lock.Name()), c.lock.Close())
}

func copyEmbedded(dir string) error {
	entries, err := fs.ReadDir(composeFiles, "compose")
	if err != nil {
		return fmt.Errorf("files for compose: %w", err)
	}
	for _, e := range entries {
		content, err := composeFiles.ReadFile("compose/" + e.Name())
		if err != nil {
			return fmt.Errorf("files for compose: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), content, 0o644); err != nil {
			return fmt.Errorf("files for compose: %w", err)
		}
	}
	return nil
}

// writeEnvironment gives ports and password to compose in a file, since arguments can be read by everyone.
func (c *Compose) writeEnvironment(ports []int, password string) error {
	names := [composePorts]string{"SPILLWAY_AMQP_PORT", "SPILLWAY_MANAGEMENT_PORT", "SPILLWAY_POSTGRES_PORT", "SPILLWAY_PROMETHEUS_PORT",
		"SPILLWAY_RABBITMQ_METRICS_PORT"}
	var text strings.Builder
	for i, name := range names {
		fmt.Fprintf(&text, "%s=%d\n", name, ports[i])
	}
	fmt.Fprintf(&text, "SPILLWAY_PASSWORD=%s\nSPILLWAY_TARGETS_DIR=%s\n", password, filepath.Join(c.dir, "targets"))
	c.addresses = composeAddresses(c.services, ports, password, filepath.Join(c.dir, "targets"))
	return os.WriteFile(c.environmentFile(), []byte(text.String()), 0o600)
}

func (c *Compose) environmentFile() string { return filepath.Join(c.dir, "environment") }

func composeAddresses(services []string, ports []int, password, targets string) Addresses {
	login := url.UserPassword(userName, password)
	host := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	var a Addresses
	if slices.Contains(services, RabbitMQ) {
		a.AMQP = (&url.URL{Scheme: "amqp", User: login, Host: host(0), Path: "/"}).String()
		a.Management = (&url.URL{Scheme: "http", User: login, Host: host(1)}).String()
	}
	if slices.Contains(services, PostgreSQL) {
		a.Postgres = (&url.URL{Scheme: "postgres", User: login, Host: host(2), Path: "/postgres", RawQuery: "sslmode=disable"}).String()
	}
	if slices.Contains(services, Prometheus) {
		a.Prometheus, a.TargetsDir = "http://"+host(3), targets
	}
	return a
}

func (c *Compose) up(ctx context.Context) error {
	if _, err := c.call(ctx, append([]string{"up", "--detach", "--wait"}, c.services...)...); err != nil {
		return err
	}
	for _, service := range c.services {
		version, err := probe(ctx, service, c.addresses)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", service, ErrNotReady, err)
		}
		c.versions[service] = version
	}
	return nil
}

// Close removes the containers, their data and the project's folder.
func (c *Compose) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, composeDownTimeout, errEngineSilent)
	defer cancel()
	if _, err := c.call(ctx, "down", "--volumes", "--timeout", strconv.Itoa(composeStopSeconds)); err != nil {
		return errors.Join(err, c.lock.Close()) // unlocked, so that the next start tries again
	}
	return c.forget()
}

// TakeDownLeftovers ends the containers of every project whose spillway is gone, and returns how many projects there
// were. Without any it asks no engine.
func TakeDownLeftovers(ctx context.Context) (int, error) {
	cache, err := CacheDir()
	if err != nil {
		return 0, err
	}
	if locks, err := projectLocks(cache); err != nil || len(locks) == 0 {
		return 0, err
	}
	all, err := waitLock(ctx, filepath.Join(cache, "compose.lock"), func() {}) // as in newCompose
	if err != nil {
		return 0, err
	}
	defer all.Close()
	return cleanComposeLeftovers(ctx, cache)
}

func projectLocks(cache string) ([]string, error) {
	locks, err := filepath.Glob(filepath.Join(cache, projectPrefix+"*.lock"))
	if err != nil {
		return nil, fmt.Errorf("look for compose leftovers: %w", err)
	}
	return locks, nil
}

// cleanComposeLeftovers takes down the projects whose spillway is gone, and counts them.
func cleanComposeLeftovers(ctx context.Context, cache string) (int, error) {
	locks, err := projectLocks(cache)
	if err != nil {
		return 0, err
	}
	cleaned := 0
	for _, path := range locks {
		lock, err := tryLock(path)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return cleaned, err
		}
		dir := strings.TrimSuffix(path, ".lock")
		c := &Compose{project: filepath.Base(dir), dir: dir, lock: lock, engine: docker{}}
		if err := c.takeDownLeft(ctx); err != nil {
			return cleaned, fmt.Errorf("take down what a stack left: %w", err)
		}
		cleaned++
	}
	return cleaned, nil
}

// takeDownLeft closes a dead one's project. Its environment is the last file to be written: without it no container was
// ever started, and compose would refuse to look.
func (c *Compose) takeDownLeft(ctx context.Context) error {
	if _, err := os.Stat(c.environmentFile()); errors.Is(err, os.ErrNotExist) {
		return c.forget()
	}
	return c.Close(ctx)
}
