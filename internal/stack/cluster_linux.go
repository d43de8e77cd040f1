package stack

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// cluster is what the nodes of one RabbitMQ have in common: who they are, and the secrets by which they and their users know
// each other. A single node is a cluster of one.
type cluster struct {
	names    []string // of the nodes, as Erlang knows them
	cookie   string
	password string
	epmd     *service // the nodes' name server; nil for a single node
}

func newCluster(d *dataDir, nodes int) *cluster {
	c := &cluster{cookie: strings.ToUpper(randomHex(10)), password: secret()}
	for i := range nodes {
		name := "spillway-" + d.id
		if nodes > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		c.names = append(c.names, name+"@localhost")
	}
	return c
}

// discovery is what each node's configuration says of the others. Nodes that find each other missing stay as they are: quorum
// queues and the metadata store (Khepri, RabbitMQ 4) decide by majority.
func (c *cluster) discovery() string {
	if len(c.names) == 1 {
		return ""
	}
	var b strings.Builder
	b.WriteString("cluster_formation.peer_discovery_backend = classic_config\n")
	for i, name := range c.names {
		fmt.Fprintf(&b, "cluster_formation.classic_config.nodes.%d = %s\n", i+1, name)
	}
	return b.String()
}

// nameServer returns the port of the name server: a single node's own, or the one that all share.
func (c *cluster) nameServer(own int) int {
	if c.epmd == nil {
		return own
	}
	return c.epmd.ports.ports[0]
}

// epmd is the name server of a cluster's nodes. A single node starts one of its own, which dies with it; the nodes of a
// cluster share this one, which outlives each of them.
type epmd struct{ base }

// newEPMD returns it for the given node's program: it is started as the same user, out of the same Erlang.
func newEPMD(node base) (*epmd, error) {
	program, err := node.data.root.first("/usr/bin/epmd")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCluster, err)
	}
	node.program = program
	return &epmd{node}, node.data.mkdir(node.owner, epmdService)
}

func (*epmd) name() string               { return epmdService }
func (*epmd) portCount() int             { return 1 }
func (*epmd) setup() (childSpec, bool)   { return childSpec{}, false }
func (*epmd) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (*epmd) addresses(*Addresses)       {}

func (e *epmd) prepare(ports []int) error {
	e.ports = ports
	return nil
}

func (e *epmd) spec() childSpec {
	return e.command(epmdService, nil, e.program, "-address", "127.0.0.1", "-port", strconv.Itoa(e.ports[0]))
}

// confirm connects; a name server speaks only when it is asked something.
func (e *epmd) confirm(ctx context.Context) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(e.ports[0])))
	if err != nil {
		return err
	}
	return connection.Close()
}
