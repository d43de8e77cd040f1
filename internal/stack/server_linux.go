package stack

import (
	"context"
	"syscall"
)

// server knows how one kind of server is set up, started and asked whether it is ready. It holds no process.
type server interface {
	name() string
	// prepare writes the server's files for the given ports, as many as portCount says. It is called again with other ports
	// when one was taken, and must keep data that is there.
	prepare(ports []int) error
	portCount() int
	// setup returns a command to run to its end before the first start, and false when there is none to run (any more).
	setup() (childSpec, bool)
	// spec returns what the first process is told to start.
	spec() childSpec
	// admin returns a command that administers the running server; false when it has no such tool.
	admin(args []string) (childSpec, bool)
	// stopSignal asks for an orderly end.
	stopSignal() syscall.Signal
	// confirm makes sure that it is this server which answers, and not another one on a port that it lost.
	confirm(ctx context.Context) error
	// addresses fills in where the server listens.
	addresses(a *Addresses)
}

// newServer returns the server of a service other than RabbitMQ with its user looked up and its folder made.
func newServer(service string, d *dataDir) (server, error) {
	b, err := newBase(service, service, d)
	if err != nil {
		return nil, err
	}
	switch service {
	case PostgreSQL:
		return &postgres{base: b, password: secret()}, nil
	default: // program knows no other name
		return &prometheus{base: b}, b.data.mkdir(callerAccount(), Prometheus, "targets")
	}
}

// newNode returns one node of RabbitMQ, as newServer does.
func newNode(c *cluster, i int, d *dataDir) (*rabbitmq, error) {
	b, err := newBase(RabbitMQ, nodeService(i), d)
	return &rabbitmq{base: b, cluster: c, node: i}, err
}

// newBase looks up the program and the user of a kind of server, and makes the folder of one.
func newBase(kind, service string, d *dataDir) (base, error) {
	program, err := d.root.program(kind)
	if err != nil {
		return base{}, err
	}
	owner, err := d.root.user(kind)
	if err != nil {
		return base{}, err
	}
	return base{data: d, owner: owner, program: program}, d.mkdir(owner, service)
}

// base is what all servers have in common.
type base struct {
	data    *dataDir
	owner   account
	program string // server binary, as seen inside the root
	ports   []int
}

// confirm is good for servers that ask for a password: no other one knows it.
func (*base) confirm(context.Context) error { return nil }

// admin is for servers without a tool.
func (*base) admin([]string) (childSpec, bool) { return childSpec{}, false }

// command returns the spec of a program that runs as the server's user in its folder.
func (b *base) command(service string, env []string, argv ...string) childSpec {
	spec := childSpec{
		Root:      b.data.root.Path,
		Dir:       b.data.path(service),
		Argv:      argv,
		Env:       append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + b.data.path(service)}, env...),
		UID:       b.owner.uid,
		GID:       b.owner.gid,
		OpenFiles: openFiles,
		Private:   []string{"/dev/shm"},
	}
	if !b.data.root.host() {
		spec.Private = append(spec.Private, "/tmp")
	}
	return spec
}

// openFiles is enough for thousands of connections, and small enough that Erlang's tables stay cheap.
const openFiles = 65536
