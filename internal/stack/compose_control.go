package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Stop implements Control.
func (c *Compose) Stop(ctx context.Context, service string) error {
	c.expect(service, true)
	return c.order(ctx, service, "stop", "--timeout", strconv.Itoa(composeStopSeconds))
}

// Start implements Control.
func (c *Compose) Start(ctx context.Context, service string) error {
	err := c.order(ctx, service, "up", "--detach", "--wait", "--no-recreate")
	if err == nil {
		c.expect(service, false) // not earlier: the news of the ordered end may still be under way
	}
	return err
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
	if endsServer(number) {
		c.expect(service, true)
	}
	return c.order(ctx, service, "kill", "--signal", strconv.Itoa(int(number)))
}

// Admin implements Control.
func (c *Compose) Admin(ctx context.Context, service string, args ...string) error {
	if service != RabbitMQ {
		return fmt.Errorf("an administration tool of %s: %w", service, errors.ErrUnsupported)
	}
	return c.execute(ctx, service, append([]string{rabbitTool}, args...)...)
}

// Hold implements Control. A killed spillway leaves its containers as they are; the next start takes them down.
func (c *Compose) Hold(ctx context.Context, service string, t Trouble) (Release, error) {
	return hold(ctx, c, service, t)
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
		text, err := c.call(context.Background(), logsOf(service)...)
		if err != nil {
			return fmt.Errorf("copy the log of %s: %w", service, err)
		}
		if err := os.WriteFile(filepath.Join(dir, service+".log"), text, 0o644); err != nil {
			return fmt.Errorf("copy the log of %s: %w", service, err)
		}
	}
	return nil
}

func logsOf(service string) []string {
	return []string{"logs", "--no-color", "--no-log-prefix", service}
}

// Log returns the whole log of a service so far; the caller closes it.
func (c *Compose) Log(ctx context.Context, service string) (io.ReadCloser, error) {
	if err := c.holds(service); err != nil {
		return nil, err
	}
	text, err := c.call(ctx, logsOf(service)...)
	return io.NopCloser(bytes.NewReader(text)), err
}

// Source returns SourceCompose, and Suite nothing: images are of no Debian release that we chose.
func (c *Compose) Source() Source { return SourceCompose }

// Suite returns nothing.
func (c *Compose) Suite() string { return "" }

// Status returns the state of each service, in the order of AllServices. A paused container counts as running, as a
// stopped process does. When the engine does not answer within a bound, all count as not running, and the error says why.
func (c *Compose) Status(ctx context.Context) ([]Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, engineTimeout, errEngineSilent)
	defer cancel()
	text, err := c.call(ctx, "ps", "--services", "--status", "running", "--status", "paused")
	running := strings.Fields(string(text))
	var all []Status
	for _, name := range AllServices() {
		if c.holds(name) == nil {
			all = append(all, Status{Service: name, Running: slices.Contains(running, name), Version: c.versions[name]})
		}
	}
	return all, err
}
