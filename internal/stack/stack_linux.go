package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Stack is a set of servers that this process holds. It implements Control. The caller closes it; if the caller dies,
// the servers die too.
type Stack struct {
	source   Source
	root     *Root
	data     *dataDir
	launcher *launcher
	services map[string]*service // fixed after Start
	shown    []string            // their names, in the order in which they are shown
	epmd     *service            // of a cluster; nil without one
	keepData bool
	started  time.Time
	deaths   deaths
}

// Start brings the services up side by side and returns when all are ready. It needs root rights (ErrNeedRoot) and a
// source of servers (ErrNoRoot, ErrNoServers); a server that does not come up gives ErrNotReady with the end of its log.
// After an error nothing is left running. Cancelling ctx stops the start, not the stack.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start servers in namespaces of their own: %w", ErrNeedRoot)
	}
	root, source, err := pickRoot(o)
	if err != nil {
		return nil, err
	}
	executable := o.Executable
	if executable == "" {
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	data, err := openData(ctx, root, randomHex(4))
	if err != nil {
		return nil, err
	}
	s := &Stack{
		source: source, root: root, data: data, launcher: newLauncher(),
		services: map[string]*service{}, keepData: o.KeepData, started: time.Now(),
	}
	if err := s.startAll(ctx, o, executable); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// pickRoot finds the tree that Options ask for.
func pickRoot(o Options) (*Root, Source, error) {
	switch o.wanted() {
	case SourceHost:
		root, err := hostRoot(o.services())
		return root, SourceHost, err
	case SourceRoot:
		root, err := FindRoot(o.Root)
		return root, SourceRoot, err
	case SourceAuto:
		root, err := FindRoot("")
		if err == nil {
			return root, SourceRoot, nil
		}
		host, hostErr := hostRoot(o.services())
		if hostErr != nil {
			return nil, "", errors.Join(err, hostErr)
		}
		return host, SourceHost, nil
	default:
		return nil, "", fmt.Errorf("%w: source %q cannot be started as child processes", ErrUnavailable, o.Source)
	}
}

func (s *Stack) startAll(ctx context.Context, o Options, executable string) error {
	serve := func(one server) *service {
		return &service{
			server: one, data: s.data, launcher: s.launcher, executable: executable, timeout: o.readyTimeout(), reserve: reservePorts,
			died: s.deaths.tell,
		}
	}
	if err := s.plan(o, serve); err != nil {
		return err
	}
	if s.epmd != nil {
		if err := s.epmd.first(ctx); err != nil {
			return err
		}
	}
	progress := &lines{w: o.progress()}
	group, ctx := errgroup.WithContext(ctx)
	for name, service := range s.services {
		group.Go(func() error {
			began := time.Now()
			if err := service.first(ctx); err != nil {
				return err
			}
			progress.printf("%s %s ready after %.1f s", name, service.status().Version, time.Since(began).Seconds())
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.watchServers()
}

// plan makes the services that are asked for, none of them started.
func (s *Stack) plan(o Options, serve func(server) *service) error {
	for _, name := range o.services() {
		if name == RabbitMQ {
			if err := s.planCluster(o.nodes(), serve); err != nil {
				return err
			}
			continue
		}
		server, err := newServer(name, s.data)
		if err != nil {
			return err
		}
		s.services[name], s.shown = serve(server), append(s.shown, name)
	}
	slices.SortStableFunc(s.shown, func(a, b string) int { return placeOf(a) - placeOf(b) })
	return nil
}

// placeOf returns where a service is shown; nodes of one cluster stay in their order.
func placeOf(service string) int {
	if isNode(service) {
		service = RabbitMQ
	}
	return slices.Index(AllServices(), service)
}

func (s *Stack) planCluster(nodes int, serve func(server) *service) error {
	c := newCluster(s.data, nodes)
	for i := range nodes {
		node, err := newNode(c, i, s.data)
		if err != nil {
			return err
		}
		s.services[node.name()], s.shown = serve(node), append(s.shown, node.name())
		if i == 1 { // the second node needs to find the first
			names, err := newEPMD(node.base)
			if err != nil {
				return err
			}
			s.epmd = serve(names)
			c.epmd = s.epmd
		}
	}
	return nil
}

// watchServers tells Prometheus about RabbitMQ's own metrics, when the stack holds both.
func (s *Stack) watchServers() error {
	watcher := s.services[Prometheus]
	if watcher == nil {
		return nil
	}
	for name, one := range s.services {
		if node, ok := one.server.(*rabbitmq); ok {
			if err := watcher.server.(*prometheus).watch(name, node.ports[rabbitPrometheus]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close stops all services side by side and removes their data. It is bounded by the graces of each service; when ctx
// ends earlier, they are killed.
func (s *Stack) Close(ctx context.Context) error {
	var group errgroup.Group
	for _, service := range s.services {
		group.Go(func() error { return service.stop(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err // a server that cannot be killed still uses its data, so that stays, and the launcher with it
	}
	for _, service := range s.services {
		service.release()
	}
	if s.epmd != nil {
		if err := s.epmd.stop(ctx); err != nil {
			return err
		}
		s.epmd.release()
	}
	s.launcher.close()
	if s.keepData {
		return s.data.lock.Close()
	}
	return s.data.remove()
}

// Stop implements Control.
func (s *Stack) Stop(ctx context.Context, name string) error {
	service, err := s.service(name)
	if err != nil {
		return err
	}
	return service.stop(ctx)
}

// Start implements Control.
func (s *Stack) Start(ctx context.Context, name string) error {
	service, err := s.service(name)
	if err != nil {
		return err
	}
	return service.start(ctx)
}

// Signal implements Control.
func (s *Stack) Signal(_ context.Context, name string, signal os.Signal) error {
	service, err := s.service(name)
	if err != nil {
		return err
	}
	number, ok := signal.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v to %s: %w", signal, name, errors.ErrUnsupported)
	}
	return service.signal(number)
}

// Admin implements Control.
func (s *Stack) Admin(ctx context.Context, name string, args ...string) error {
	service, err := s.service(name)
	if err != nil {
		return err
	}
	return service.admin(ctx, args)
}

// Hold implements Control. The servers end with this process, and so does their trouble.
func (s *Stack) Hold(ctx context.Context, name string, t Trouble) (Release, error) {
	return hold(ctx, s, name, t)
}

func (s *Stack) service(name string) (*service, error) {
	service, ok := s.services[name]
	if !ok {
		have := slices.Sorted(maps.Keys(s.services))
		return nil, fmt.Errorf("%w: %q (this stack holds %s)", ErrUnknownService, name, strings.Join(have, ", "))
	}
	return service, nil
}

// Addresses implements Control.
func (s *Stack) Addresses() Addresses {
	var a Addresses
	for _, name := range s.shown {
		s.services[name].server.addresses(&a)
	}
	return a
}

// CopyLogs implements Control.
func (s *Stack) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder for logs: %w", err)
	}
	for name, service := range s.services {
		if err := copyFile(service.logPath(), filepath.Join(dir, name+".log")); err != nil {
			return fmt.Errorf("copy the log of %s: %w", name, err)
		}
	}
	return nil
}

// Versions implements Control.
func (s *Stack) Versions() map[string]string {
	versions := map[string]string{}
	for name, service := range s.services {
		versions[name] = service.status().Version
	}
	return versions
}

// Deaths implements Control.
func (s *Stack) Deaths(ctx context.Context) <-chan Death { return s.deaths.listen(ctx) }

// Status returns the state of each service, in the order of AllServices. It never fails.
func (s *Stack) Status(context.Context) ([]Status, error) {
	var all []Status
	for _, name := range s.shown {
		all = append(all, s.services[name].status())
	}
	return all, nil
}

// Source returns where the servers come from, and Suite which Debian release they are of; empty for the host's own.
func (s *Stack) Source() Source { return s.source }

// Suite returns the Debian release of the root; empty for the host's own servers.
func (s *Stack) Suite() string { return s.root.Suite }

// Log returns the whole log of a service so far; the caller closes it.
func (s *Stack) Log(_ context.Context, name string) (io.ReadCloser, error) {
	service, err := s.service(name)
	if err != nil {
		return nil, err
	}
	return os.Open(service.logPath())
}
