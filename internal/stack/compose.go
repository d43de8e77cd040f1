package stack

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed compose
var composeFiles embed.FS

const (
	// engineTimeout bounds the question whether an engine answers.
	engineTimeout = 10 * time.Second
	// composeStopSeconds is how long a container may take to end before the engine kills it.
	composeStopSeconds = 10
	// composePorts is how many ports the compose file publishes.
	composePorts = 5
)

// Compose is a stack of containers under docker compose. It implements Control. Unlike child processes, containers
// outlive a spillway that is killed: the next StartCompose takes down what an unlocked project left.
type Compose struct {
	project   string
	dir       string // holds the compose file, its mounts and the environment file with ports and password
	lock      *os.File
	services  []string
	addresses Addresses
	versions  map[string]string // fixed after StartCompose
	run       func(ctx context.Context, args ...string) ([]byte, error)
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
	if err := cleanComposeLeftovers(ctx, cache); err != nil {
		return nil, err
	}
	project := "spillway-" + randomHex(4)
	c := &Compose{project: project, dir: filepath.Join(cache, project), services: services, versions: map[string]string{}, run: runDocker}
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

// arguments returns what `docker` is called with.
func (c *Compose) arguments(verb ...string) []string {
	return append([]string{"compose", "--project-name", c.project, "--env-file", c.environmentFile(),
		"--file", filepath.Join(c.dir, "compose.yml")}, verb...)
}

func (c *Compose) call(ctx context.Context, verb ...string) ([]byte, error) {
	return c.run(ctx, c.arguments(verb...)...)
}

// runDocker returns standard output; an error carries the end of standard error.
func runDocker(ctx context.Context, args ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "docker", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("docker compose: %w\n%s", err, lastLines(exit.Stderr, logTail))
	}
	return output, err
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
	if _, err := c.call(ctx, "down", "--volumes", "--timeout", strconv.Itoa(composeStopSeconds)); err != nil {
		return errors.Join(err, c.lock.Close()) // unlocked, so that the next start tries again
	}
	return c.forget()
}

// cleanComposeLeftovers takes down the projects whose spillway is gone.
func cleanComposeLeftovers(ctx context.Context, cache string) error {
	locks, err := filepath.Glob(filepath.Join(cache, "spillway-*.lock"))
	if err != nil {
		return fmt.Errorf("look for compose leftovers: %w", err)
	}
	for _, path := range locks {
		lock, err := tryLock(path)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		dir := strings.TrimSuffix(path, ".lock")
		c := &Compose{project: filepath.Base(dir), dir: dir, lock: lock, run: runDocker}
		if err := c.Close(ctx); err != nil {
			return fmt.Errorf("take down what a stack left: %w", err)
		}
	}
	return nil
}

// Stop implements Control.
func (c *Compose) Stop(ctx context.Context, service string) error {
	return c.order(ctx, service, "stop", "--timeout", strconv.Itoa(composeStopSeconds))
}

// Start implements Control.
func (c *Compose) Start(ctx context.Context, service string) error {
	return c.order(ctx, service, "up", "--detach", "--wait", "--no-recreate")
}

// Signal implements Control. SIGSTOP and SIGCONT become the engine's pause and unpause, which reach every process.
func (c *Compose) Signal(ctx context.Context, service string, signal os.Signal) error {
	switch signal {
	case syscall.SIGSTOP:
		return c.order(ctx, service, "pause")
	case syscall.SIGCONT:
		return c.order(ctx, service, "unpause")
	}
	number, ok := signal.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v to %s: %w", signal, service, errors.ErrUnsupported)
	}
	return c.order(ctx, service, "kill", "--signal", strconv.Itoa(int(number)))
}

func (c *Compose) order(ctx context.Context, service string, verb ...string) error {
	if !slices.Contains(c.services, service) {
		return fmt.Errorf("%w: %q (this stack holds %s)", ErrUnknownService, service, strings.Join(c.services, ", "))
	}
	_, err := c.call(ctx, append(verb, service)...)
	return err
}

// Addresses implements Control.
func (c *Compose) Addresses() Addresses { return c.addresses }

// Versions implements Control.
func (c *Compose) Versions() map[string]string { return c.versions }

// CopyLogs implements Control.
func (c *Compose) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder for logs: %w", err)
	}
	for _, service := range c.services {
		text, err := c.call(context.Background(), "logs", "--no-color", "--no-log-prefix", service)
		if err != nil {
			return fmt.Errorf("copy the log of %s: %w", service, err)
		}
		if err := os.WriteFile(filepath.Join(dir, service+".log"), text, 0o644); err != nil {
			return fmt.Errorf("copy the log of %s: %w", service, err)
		}
	}
	return nil
}
