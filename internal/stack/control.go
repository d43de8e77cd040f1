package stack

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Names of the services, as used in Options.Services, Control and the command line.
const (
	RabbitMQ   = "rabbitmq"
	PostgreSQL = "postgres"
	Prometheus = "prometheus"
)

// AllServices lists every service that can be asked for, in the order in which they are shown. RabbitMQ stands for all its nodes.
func AllServices() []string { return []string{RabbitMQ, PostgreSQL, Prometheus} }

// MaxNodes bounds a cluster: quorum queues have five members at most that anybody would call sane, and each node takes some 140 MB.
const MaxNodes = 5

// nodeService returns the name of the service that is RabbitMQ's node i, counted from 0: rabbitmq, rabbitmq-2, rabbitmq-3.
func nodeService(i int) string {
	if i == 0 {
		return RabbitMQ
	}
	return RabbitMQ + "-" + strconv.Itoa(i+1)
}

// isNode reports whether a service is a node of RabbitMQ.
func isNode(service string) bool {
	return service == RabbitMQ || strings.HasPrefix(service, RabbitMQ+"-")
}

// Source says where a stack's servers come from.
type Source string

// The sources. SourceAuto is the zero value and means: the first of root, host and compose that serves.
const (
	SourceAuto    Source = ""
	SourceRoot    Source = "root"    // the Debian root made by MakeRoot
	SourceHost    Source = "host"    // the distribution's own packages
	SourceCompose Source = "compose" // docker compose
)

var (
	// ErrNoRoot is returned when no complete stack root lies in the cache folder.
	ErrNoRoot = errors.New("no stack root")
	// ErrNoServers is returned when the host lacks a server that was asked for.
	ErrNoServers = errors.New("server not installed")
	// ErrNeedRoot is returned when an operation needs the rights of root and neither the caller nor sudo has them.
	ErrNeedRoot = errors.New("needs root rights")
	// ErrUnsupported is returned on systems other than Linux for everything that needs namespaces.
	ErrUnsupported = errors.New("needs Linux")
	// ErrNotReady is returned when a server did not answer within Options.ReadyTimeout or ended before it did.
	ErrNotReady = errors.New("server did not become ready")
	// ErrNoCluster is returned where several nodes of RabbitMQ are asked for and cannot be had.
	ErrNoCluster = errors.New("no cluster to be had")
	// ErrUnknownService is returned for a name that the stack does not hold.
	ErrUnknownService = errors.New("unknown service")
	// ErrUnavailable is returned by Choose when no source serves; the text says what to do.
	ErrUnavailable = errors.New("no servers to be had")
	// ErrAlreadyUp is returned when a registered stack runs already.
	ErrAlreadyUp = errors.New("a stack is already up")
)

// Options says what to start. The zero value asks for all services from whichever source serves.
type Options struct {
	Services     []string      // names from AllServices; empty means all
	Nodes        int           // of RabbitMQ, up to MaxNodes; 0 means 1. Several form a cluster, which compose does not offer
	Source       Source        // SourceAuto by default
	Root         string        // folder of the stack root; empty means the one in the cache folder. It must be one, unless Source is another
	Executable   string        // the spillway binary started as first process of the namespaces; empty means os.Executable
	ReadyTimeout time.Duration // bound for each server's readiness; 0 means 60 s
	KeepData     bool          // leave the data folder behind on Close
	Progress     io.Writer     // one line for each step; nil means silent
}

// rabbitTool is RabbitMQ's administration tool.
const rabbitTool = "rabbitmqctl"

// The limits with which RabbitMQ is started, in rabbitmqctl's words, so that whoever changes them can put them back.
const (
	MemoryWatermark = "0.6"
	DiskFreeLimit   = "50MB"
)

// Addresses says where a stack's servers listen. All are on loopback; the URIs carry credentials, so show them through
// Redacted only. A service that was not asked for has an empty address.
type Addresses struct {
	AMQP       string `json:"amqp,omitempty"`        // amqp://user:password@127.0.0.1:port/
	Management string `json:"management,omitempty"`  // http://user:password@127.0.0.1:port
	Postgres   string `json:"postgres,omitempty"`    // postgres://user:password@127.0.0.1:port/postgres
	Prometheus string `json:"prometheus,omitempty"`  // http://127.0.0.1:port
	TargetsDir string `json:"targets_dir,omitempty"` // folder that Prometheus reads targets from (file_sd JSON)
	Nodes      []Node `json:"nodes,omitempty"`       // of a cluster, the first of which AMQP and Management lead to; none for a single one
}

// Node is one node of a cluster.
type Node struct {
	Service    string `json:"service"`    // its name in the stack: rabbitmq, rabbitmq-2, ...
	Name       string `json:"name"`       // its name in the cluster, as the management API tells it
	AMQP       string `json:"amqp"`       // as in Addresses
	Management string `json:"management"` // as in Addresses
}

// URIs returns the AMQP addresses of all nodes.
func (a Addresses) URIs() []string {
	if len(a.Nodes) == 0 && a.AMQP != "" {
		return []string{a.AMQP}
	}
	var all []string
	for _, n := range a.Nodes {
		all = append(all, n.AMQP)
	}
	return all
}

// Control is a running stack as a run sees it: *Stack, a stack under a detached supervisor, and docker compose all
// implement it. Methods are safe for use by several goroutines; operations on one service are carried out one by one.
type Control interface {
	// Stop ends a service in an orderly way (PostgreSQL: a fast shutdown), and by force after a bound. Data and ports are
	// kept. Stopping what is stopped is no error.
	Stop(ctx context.Context, service string) error
	// Start brings a stopped service back on the same ports and data and returns when it is ready. Starting what runs is
	// no error.
	Start(ctx context.Context, service string) error
	// Signal sends a signal to the service: SIGKILL ends it with all its processes, SIGSTOP and SIGCONT reach every process
	// of it, any other goes to its main process.
	Signal(ctx context.Context, service string, signal os.Signal) error
	// Admin runs the server's own administration tool (RabbitMQ: rabbitmqctl) with the given arguments, as the server's user and
	// beside the server, and returns when it has ended well. errors.ErrUnsupported is returned for a service that has none.
	Admin(ctx context.Context, service string, args ...string) error
	// Hold brings a service into trouble, such as frozen, and returns when it is there. The trouble ends with the release,
	// and also when this process dies: with the servers, where these are its own, else by the stack's supervisor. ctx
	// bounds the beginning alone. ErrUnknownTrouble means that the service cannot have it.
	Hold(ctx context.Context, service string, trouble Trouble) (Release, error)
	// Addresses returns where the services listen; stable for the life of the stack.
	Addresses() Addresses
	// CopyLogs writes one file <service>.log for each service into dir, which is made where missing.
	CopyLogs(dir string) error
	// Versions returns what each server reports as its version, by service name.
	Versions() map[string]string
	// Deaths tells of servers that end from now on without having been asked to. The channel is closed when ctx ends, and
	// earlier where nothing more can be heard; a listener that does not read misses some, and holds nobody up.
	Deaths(ctx context.Context) <-chan Death
}

// Status is the state of one service.
type Status struct {
	Service string `json:"service"`
	Running bool   `json:"running"`
	PID     int    `json:"pid,omitempty"` // first process of its namespace, as this machine counts; 0 when stopped, and for containers
	Version string `json:"version,omitempty"`
}

func (o Options) services() []string {
	if len(o.Services) == 0 {
		return AllServices()
	}
	return o.Services
}

// wanted is Source, but SourceRoot where a root is named: then nothing else will do.
func (o Options) wanted() Source {
	if o.Source == SourceAuto && o.Root != "" {
		return SourceRoot
	}
	return o.Source
}

// needed lists the services that a stack must hold, each node of RabbitMQ by its own name.
func (o Options) needed() []string {
	var all []string
	for _, service := range o.services() {
		all = append(all, service)
		for i := 1; service == RabbitMQ && i < o.nodes(); i++ {
			all = append(all, nodeService(i))
		}
	}
	return all
}

// nodes is how many nodes of RabbitMQ are asked for.
func (o Options) nodes() int { return max(1, o.Nodes) }

func (o Options) readyTimeout() time.Duration {
	if o.ReadyTimeout == 0 {
		return readyTimeoutDefault
	}
	return o.ReadyTimeout
}

func (o Options) progress() io.Writer {
	if o.Progress == nil {
		return io.Discard
	}
	return o.Progress
}

// readyTimeoutDefault is ten times what RabbitMQ needs on an idle 2-core machine (about 5 s).
const readyTimeoutDefault = 60 * time.Second
