package stack

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// recorded is a compose project whose docker only writes down what it is called with. No engine is needed, and none is
// tested.
func recorded(t *testing.T, services ...string) (*Compose, *[][]string) {
	t.Helper()
	c, err := newCompose(t.Context(), t.TempDir(), services)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil || exists(c.dir) {
			t.Errorf("close: %v, folder there: %v", err, exists(c.dir))
		}
	})
	recorder := &recorder{}
	c.engine = recorder
	return c, &recorder.calls
}

// recorder stands in for docker.
type recorder struct {
	calls  [][]string
	stream string // what a followed command prints
}

func (r *recorder) run(_ context.Context, args ...string) ([]byte, error) {
	r.calls = append(r.calls, args)
	return []byte("a line\n"), nil
}

func (r *recorder) follow(_ context.Context, args ...string) (io.ReadCloser, error) {
	r.calls = append(r.calls, args)
	return io.NopCloser(strings.NewReader(r.stream)), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestComposeOrders(t *testing.T) {
	t.Parallel()
	c, calls := recorded(t, RabbitMQ, PostgreSQL)
	ctx := t.Context()
	for _, row := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a stop is bounded", func() error { return c.Stop(ctx, PostgreSQL) }, "stop --timeout 20 postgres"},
		{"a start waits and keeps the container", func() error { return c.Start(ctx, PostgreSQL) }, "up --detach --wait --no-recreate postgres"},
		{"a kill goes by number", func() error { return c.Signal(ctx, RabbitMQ, syscall.SIGKILL) }, "kill --signal 9 rabbitmq"},
		{"a freeze is a pause", func() error { return c.Signal(ctx, RabbitMQ, syscall.SIGSTOP) }, "pause rabbitmq"},
		{"a thaw is an unpause", func() error { return c.Signal(ctx, RabbitMQ, syscall.SIGCONT) }, "unpause rabbitmq"},
	} {
		*calls = nil
		if err := row.do(); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		want := slices.Concat([]string{"compose", "--project-name", c.project, "--env-file", filepath.Join(c.dir, "environment"),
			"--file", filepath.Join(c.dir, "compose.yml")}, strings.Fields(row.want))
		if len(*calls) != 1 || !slices.Equal((*calls)[0], want) {
			t.Errorf("%s: docker %v, want %v", row.name, *calls, want)
		}
	}
	if err := c.Stop(ctx, Prometheus); !errors.Is(err, ErrUnknownService) {
		t.Errorf("stopping what it does not hold gives %v, want %v", err, ErrUnknownService)
	}
}

func TestComposeSecretsAreInAPrivateFileOnly(t *testing.T) {
	t.Parallel()
	c, calls := recorded(t, AllServices()...)
	if err := c.CopyLogs(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.environmentFile())
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "SPILLWAY_PASSWORD=")
	password, _, _ := strings.Cut(rest, "\n")
	if len(password) != 32 || !strings.Contains(c.Addresses().AMQP, ":"+password+"@") {
		t.Errorf("password %q, addresses %v", password, c.Addresses())
	}
	if info, err := os.Stat(c.environmentFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for _, call := range *calls {
		if strings.Contains(strings.Join(call, " "), password) {
			t.Errorf("docker %v shows the password", call)
		}
	}
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	text, err := composeFiles.ReadFile("compose/compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	published := 0
	for line := range strings.Lines(string(text)) {
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), `- "`); ok {
			if published++; !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("published beyond loopback: %s", port)
			}
		}
	}
	if published != 4 {
		t.Errorf("%d published ports, want 4", published)
	}
}
